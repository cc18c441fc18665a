//! Replacements for the C library's functions that the engine and the standard library call. The
//! linker prefers a program's own symbols to those of a shared library, so every call from Rust
//! code comes here. This includes calls that close an `OwnedFd`, read the clock for an `Instant`,
//! start a thread, or wait for a `Mutex`. Calls from threads outside the simulation, and calls on
//! real descriptors, go to the real kernel.
//!
//! Functions that are variadic in C are declared with as many arguments as their calls have. The
//! calling convention of x86-64 allows this.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use std::ffi::{c_int, c_long, c_void};
use std::mem::size_of;

use libc::{iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};

use crate::kernel::{BASE, Body, Fd, Kernel, SysResult};
use crate::raw;
use crate::world;

mod datagrams;
mod files;
mod resolver;
mod threads;
mod time;
mod waiting;

/// Process ID that the first process sees.
const PID: c_int = 4242;

/// True if the simulation handles a call: both the thread and the descriptor are simulated.
fn is_simulated(fd: Fd) -> bool {
    fd >= BASE && world::current_thread().is_some()
}

fn set_errno(number: i32) {
    // SAFETY: the calling thread's own.
    unsafe { *libc::__errno_location() = number };
}

/// Converts an answer to the C return value.
fn to_c_result<T: TryInto<i64>>(name: &str, fd: Fd, answer: SysResult<T>) -> i64 {
    let result = answer.map(|value| value.try_into().unwrap_or(0));
    let number = match result {
        Ok(value) => value,
        Err(error) => -i64::from(error),
    };
    world::with(|world| {
        world.tell(number, || format!("{name}({}) = {number}", if fd >= BASE { fd - BASE } else { fd }));
        for real in std::mem::take(&mut world.kernel.to_close) {
            // SAFETY: the last name of the memory was removed, and this was its only descriptor.
            unsafe { raw::call(libc::SYS_close, [real as usize, 0, 0, 0, 0, 0]) };
        }
    });
    if number < 0 {
        set_errno(-number as i32);
        return -1;
    }
    number
}

/// Makes a call of the simulated kernel.
fn call<T: TryInto<i64>>(name: &'static str, fd: Fd, f: impl FnOnce(&mut Kernel) -> SysResult<T>) -> i64 {
    world::enter(name);
    let answer = world::with(|world| f(&mut world.kernel)).unwrap_or(Err(libc::ENOSYS));
    to_c_result(name, fd, answer)
}

/// Makes a call of the real kernel.
///
/// # Safety
///
/// The requirements of the call.
unsafe fn real_syscall(number: c_long, arguments: [usize; 6]) -> i64 {
    // SAFETY: the caller's word.
    let result = unsafe { raw::call(number, arguments) };
    if (-4095..0).contains(&result) {
        set_errno(-result as i32);
        return -1;
    }
    result as i64
}

unsafe fn bytes<'a>(at: *const c_void, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller of the C function guarantees the buffer.
    unsafe { std::slice::from_raw_parts(at.cast(), length) }
}

unsafe fn room<'a>(at: *mut c_void, length: usize) -> &'a mut [u8] {
    if length == 0 {
        return &mut [];
    }
    // SAFETY: as above; only bytes are written.
    unsafe { std::slice::from_raw_parts_mut(at.cast(), length) }
}

// ---- sockets

#[unsafe(no_mangle)]
unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    if world::current_thread().is_none() {
        // SAFETY: integers.
        return unsafe {
            real_syscall(libc::SYS_socket, [domain as usize, kind as usize, protocol as usize, 0, 0, 0])
        } as c_int;
    }
    call("socket", -1, |kernel| kernel.socket(domain, kind)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn socketpair(domain: c_int, kind: c_int, protocol: c_int, fds: *mut c_int) -> c_int {
    if world::current_thread().is_none() {
        let arguments = [domain as usize, kind as usize, protocol as usize, fds as usize, 0, 0];
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_socketpair, arguments) } as c_int;
    }
    call("socketpair", -1, |kernel| {
        let (first, second) = kernel.socket_pair();
        // SAFETY: room for two, by the contract of the call.
        unsafe { fds.cast::<[c_int; 2]>().write([first, second]) };
        Ok(0)
    }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's address.
    let name = unsafe { bytes(address.cast(), length as usize) };
    call("bind", fd, |kernel| kernel.bind(fd, name)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    call("listen", fd, |kernel| kernel.listen(fd, backlog)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's address.
    let name = unsafe { bytes(address.cast(), length as usize) };
    call("connect", fd, |kernel| kernel.connect(fd, name)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept4(fd: c_int, _: *mut sockaddr, _: *mut socklen_t, _: c_int) -> c_int {
    let taken = call("accept", fd, |kernel| kernel.accept(fd)) as c_int;
    if taken >= 0 { taken } else { -1 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    call("shutdown", fd, |kernel| kernel.shutdown(fd, how)) as c_int
}

unsafe fn name(
    what: &'static str,
    fd: c_int,
    of_peer: bool,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    call(what, fd, |kernel| {
        let name = kernel.name(fd, of_peer)?;
        // SAFETY: the caller's room, with its length.
        unsafe {
            let n = name.len().min(*length as usize);
            std::ptr::copy_nonoverlapping(name.as_ptr(), address.cast(), n);
            *length = name.len() as socklen_t;
        }
        Ok(0)
    }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: passed on.
    unsafe { name("getsockname", fd, false, address, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: passed on.
    unsafe { name("getpeername", fd, true, address, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller's value.
    let value = unsafe { bytes(value, length as usize) };
    call("setsockopt", fd, |kernel| kernel.set_option(fd, level, name, value)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    call("getsockopt", fd, |kernel| {
        let answer = if (level, name) == (libc::SOL_SOCKET, libc::SO_PEERCRED) {
            kernel.socket_of(fd)?;
            // SAFETY: no preconditions.
            let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
            [(PID + kernel.process as c_int).to_ne_bytes(), uid.to_ne_bytes(), gid.to_ne_bytes()].concat()
        } else {
            kernel.option(fd, level, name)?
        };
        // SAFETY: the caller's room, with its length.
        unsafe {
            let n = answer.len().min(*length as usize);
            std::ptr::copy_nonoverlapping(answer.as_ptr(), value.cast(), n);
            *length = n as socklen_t;
        }
        Ok(0)
    }) as c_int
}

// ---- bytes

#[unsafe(no_mangle)]
unsafe extern "C" fn send(fd: c_int, from: *const c_void, length: size_t, _: c_int) -> ssize_t {
    // SAFETY: the caller's buffer.
    let from = unsafe { bytes(from, length) };
    call("send", fd, |kernel| kernel.send(fd, from, &[])) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recv(fd: c_int, into: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
    let part = iovec { iov_base: into, iov_len: length };
    // SAFETY: the caller's buffer.
    call("recv", fd, |kernel| unsafe { receive(kernel, fd, &[part], flags, None) }) as ssize_t
}

/// Receives into buffers. Closes received descriptors that have no room.
unsafe fn receive(
    kernel: &mut Kernel,
    fd: Fd,
    parts: &[iovec],
    flags: c_int,
    rights: Option<&mut Vec<Fd>>,
) -> SysResult<usize> {
    let most = parts.iter().map(|part| part.iov_len).sum();
    let mut at = 0;
    let mut inside = 0;
    let mut put = |mut from: &[u8]| {
        while !from.is_empty() {
            let part = &parts[at];
            if inside == part.iov_len {
                (at, inside) = (at + 1, 0);
                continue;
            }
            let n = from.len().min(part.iov_len - inside);
            // SAFETY: within the caller's buffer.
            unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), part.iov_base.cast::<u8>().add(inside), n)
            };
            inside += n;
            from = &from[n..];
        }
    };
    let received = kernel.receive(fd, &mut put, most, flags & libc::MSG_PEEK != 0)?;
    let mut rights = rights;
    for id in received.rights {
        if let Some(rights) = rights.as_deref_mut() {
            let fd = kernel.open(id);
            rights.push(fd);
        }
        kernel.release(id);
    }
    Ok(received.length)
}

unsafe fn parts<'a>(message: *const msghdr) -> &'a [iovec] {
    // SAFETY: the caller's message.
    unsafe {
        match (*message).msg_iovlen {
            0 => &[],
            length => std::slice::from_raw_parts((*message).msg_iov, length),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, _: c_int) -> ssize_t {
    let mut rights = Vec::new();
    // SAFETY: the caller's message, with its control messages.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(one) = header.as_ref() {
            if (one.cmsg_level, one.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let start = libc::CMSG_DATA(header);
                let length = one.cmsg_len - (start as usize - header as usize);
                for n in 0..length / size_of::<c_int>() {
                    rights.push(start.cast::<c_int>().add(n).read_unaligned());
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    call("sendmsg", fd, |kernel| {
        // Offer only as much as there is room for, but at least one byte, because 0 bytes would be
        // an empty send.
        let mut left = kernel.room_of(fd)?.max(1);
        let mut from = Vec::new();
        // SAFETY: the caller's message.
        for part in unsafe { parts(message) } {
            let n = part.iov_len.min(left);
            // SAFETY: as above.
            from.extend_from_slice(unsafe { bytes(part.iov_base, n) });
            left -= n;
        }
        kernel.send(fd, &from, &rights)
    }) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    call("recvmsg", fd, |kernel| {
        let mut rights = Vec::new();
        // SAFETY: the caller's message.
        let (parts, has_control) = unsafe { (parts(message), !(*message).msg_control.is_null()) };
        // SAFETY: the same.
        let n = unsafe { receive(kernel, fd, parts, flags, has_control.then_some(&mut rights)) }?;
        // SAFETY: the same; the control message is written within its room.
        unsafe {
            (*message).msg_flags = 0;
            let space = (*message).msg_controllen;
            (*message).msg_controllen = 0;
            if has_control && !rights.is_empty() {
                let head = libc::CMSG_LEN(0) as usize;
                let fit = rights.len().min(space.saturating_sub(head) / size_of::<c_int>());
                for fd in rights.drain(fit..) {
                    let _ = kernel.close(fd);
                    (*message).msg_flags |= libc::MSG_CTRUNC;
                }
                if fit > 0 {
                    let header = (*message).msg_control.cast::<libc::cmsghdr>();
                    (*header).cmsg_level = libc::SOL_SOCKET;
                    (*header).cmsg_type = libc::SCM_RIGHTS;
                    (*header).cmsg_len = head + fit * size_of::<c_int>();
                    let data = libc::CMSG_DATA(header).cast::<c_int>();
                    for (n, fd) in rights.iter().enumerate() {
                        data.add(n).write_unaligned(*fd);
                    }
                    let used = libc::CMSG_SPACE((fit * size_of::<c_int>()) as u32) as usize;
                    (*message).msg_controllen = used.min(space);
                }
            }
        }
        Ok(n)
    }) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, into: *mut c_void, length: size_t) -> ssize_t {
    if !is_simulated(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_read, [fd as usize, into as usize, length, 0, 0, 0]) }
            as ssize_t;
    }
    call("read", fd, |kernel| match kernel.is_socket(fd) {
        // SAFETY: the caller's buffer.
        true => unsafe { receive(kernel, fd, &[iovec { iov_base: into, iov_len: length }], 0, None) },
        // SAFETY: the same.
        false => kernel.read(fd, unsafe { room(into, length) }),
    }) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, from: *const c_void, length: size_t) -> ssize_t {
    if !is_simulated(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_write, [fd as usize, from as usize, length, 0, 0, 0]) }
            as ssize_t;
    }
    // SAFETY: the caller's buffer.
    let from = unsafe { bytes(from, length) };
    call("write", fd, |kernel| match kernel.is_socket(fd) {
        true => kernel.send(fd, from, &[]),
        false => kernel.write(fd, from),
    }) as ssize_t
}

// ---- descriptors

#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    if !is_simulated(fd) {
        // SAFETY: the caller's descriptor.
        return unsafe { real_syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) } as c_int;
    }
    call("close", fd, |kernel| kernel.close(fd)) as c_int
}

/// Returns the real descriptor behind simulated memory.
fn real_of(kernel: &mut Kernel, fd: Fd) -> SysResult<c_int> {
    match kernel.body(fd)? {
        Body::Memory(real) => Ok(*real),
        _ => Err(libc::EINVAL),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    if !is_simulated(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_fcntl, [fd as usize, command as usize, argument, 0, 0, 0]) }
            as c_int;
    }
    call("fcntl", fd, |kernel| {
        kernel.id(fd)?;
        match command {
            libc::F_GETFD => Ok(libc::FD_CLOEXEC),
            libc::F_GETFL => Ok(libc::O_RDWR | libc::O_NONBLOCK),
            libc::F_SETFD | libc::F_SETFL => Ok(0),
            libc::F_DUPFD_CLOEXEC | libc::F_DUPFD => kernel.duplicate(fd),
            _ => {
                let real_fd = real_of(kernel, fd)?;
                // SAFETY: seals are integers.
                let result = unsafe {
                    raw::call(libc::SYS_fcntl, [real_fd as usize, command as usize, argument, 0, 0, 0])
                };
                if result < 0 { Err(-result as i32) } else { Ok(result as i32) }
            }
        }
    }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(fd: c_int, request: usize, argument: *mut c_int) -> c_int {
    if !is_simulated(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_ioctl, [fd as usize, request, argument as usize, 0, 0, 0]) }
            as c_int;
    }
    call("ioctl", fd, |kernel| {
        match request as u64 {
            libc::TIOCOUTQ => {}
            // Simulated descriptors never block.
            libc::FIONBIO => return Ok(0),
            _ => return Err(libc::ENOTTY),
        }
        let unconfirmed = kernel.unconfirmed(fd)?;
        // SAFETY: this request writes an int.
        unsafe { *argument = unconfirmed as c_int };
        Ok(0)
    }) as c_int
}

/// Returns a time span in nanoseconds, or `None` for null.
unsafe fn span(span: *const timespec) -> Option<u64> {
    // SAFETY: null, or the caller's.
    let span = unsafe { span.as_ref() }?;
    Some((span.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(span.tv_nsec as u64))
}
