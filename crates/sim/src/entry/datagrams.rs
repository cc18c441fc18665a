//! Datagrams.

use std::ffi::{c_int, c_void};

use libc::{size_t, sockaddr, socklen_t, ssize_t};

use super::{bytes, call, is_simulated, real_syscall, room};

#[unsafe(no_mangle)]
unsafe extern "C" fn sendto(
    fd: c_int,
    from: *const c_void,
    length: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> ssize_t {
    if !is_simulated(fd) {
        let arguments = [fd as usize, from as usize, length, flags as usize, to as usize, to_length as usize];
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_sendto, arguments) } as ssize_t;
    }
    // SAFETY: the caller's buffer and address.
    let (from, to) = unsafe { (bytes(from, length), bytes(to.cast(), to_length as usize)) };
    call("sendto", fd, |kernel| kernel.send_to(fd, from, to)) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvfrom(
    fd: c_int,
    into: *mut c_void,
    length: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    if !is_simulated(fd) {
        let arguments =
            [fd as usize, into as usize, length, flags as usize, from as usize, from_length as usize];
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_recvfrom, arguments) } as ssize_t;
    }
    call("recvfrom", fd, |kernel| {
        let (name, body) = kernel.receive_from(fd)?;
        let n = body.len().min(length);
        // SAFETY: the caller's buffers, of the lengths that it says.
        unsafe {
            room(into, length)[..n].copy_from_slice(&body[..n]);
            if !from.is_null() {
                let fits = name.len().min(*from_length as usize);
                std::ptr::copy_nonoverlapping(name.as_ptr(), from.cast(), fits);
                *from_length = name.len() as socklen_t;
            }
        }
        Ok(n)
    }) as ssize_t
}
