//! The C library's functions, as the engine and the standard library call them. The linker prefers
//! the program's own symbols to those of a shared library, so every call of Rust code comes here:
//! also those that close an `OwnedFd`, read the clock for an `Instant`, start a thread, or wait for
//! a `Mutex`. What a thread outside of the simulation calls, or what is about a real descriptor,
//! goes on to the real kernel.
//!
//! Functions that are variadic in C are declared with as many arguments as their calls have, which
//! the calling convention of x86-64 allows.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::mem::size_of;

use libc::{iovec, msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, timespec};

use crate::kernel::{Answer, BASE, Body, Fd};
use crate::world::{self, Wait, Woken};
use crate::raw;

mod threads;

/// Whether a call is the simulation's: the thread is, and so is the descriptor.
fn ours(fd: Fd) -> bool {
    fd >= BASE && world::me().is_some()
}

fn set_errno(number: i32) {
    // SAFETY: the calling thread's own.
    unsafe { *libc::__errno_location() = number };
}

/// What C makes of an answer.
fn finish<T: TryInto<i64>>(name: &str, fd: Fd, answer: Answer<T>) -> i64 {
    let result = answer.map(|value| value.try_into().unwrap_or(0));
    let number = match result {
        Ok(value) => value,
        Err(error) => -i64::from(error),
    };
    world::with(|world| {
        world.tell(number, || format!("{name}({}) = {number}", if fd >= BASE { fd - BASE } else { fd }));
        for real in std::mem::take(&mut world.kernel.to_close) {
            // SAFETY: the memory's last name is gone, and this was its only descriptor.
            unsafe { raw::call(libc::SYS_close, [real as usize, 0, 0, 0, 0, 0]) };
        }
    });
    if number < 0 {
        set_errno(-number as i32);
        return -1;
    }
    number
}

/// A call of the simulated kernel.
fn call<T: TryInto<i64>>(name: &str, fd: Fd, f: impl FnOnce(&mut crate::kernel::Kernel) -> Answer<T>) -> i64 {
    world::enter();
    let answer = world::with(|world| f(&mut world.kernel)).unwrap_or(Err(libc::ENOSYS));
    finish(name, fd, answer)
}

/// A call of the real kernel.
///
/// # Safety
/// As the call's.
unsafe fn real(number: c_long, arguments: [usize; 6]) -> i64 {
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
    // SAFETY: the caller of the C function vouches for the buffer.
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
    if world::me().is_none() {
        // SAFETY: integers.
        return unsafe { real(libc::SYS_socket, [domain as usize, kind as usize, protocol as usize, 0, 0, 0]) } as c_int;
    }
    call("socket", -1, |kernel| kernel.socket(domain, kind)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn socketpair(domain: c_int, kind: c_int, protocol: c_int, fds: *mut c_int) -> c_int {
    if world::me().is_none() {
        let arguments = [domain as usize, kind as usize, protocol as usize, fds as usize, 0, 0];
        // SAFETY: the caller's arguments.
        return unsafe { real(libc::SYS_socketpair, arguments) } as c_int;
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

unsafe fn name(what: &str, fd: c_int, of_peer: bool, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    call(what, fd, |kernel| {
        let name = kernel.name(fd, of_peer)?;
        // SAFETY: the caller's room, of the length that it says.
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
unsafe extern "C" fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int {
    // SAFETY: the caller's value.
    let value = unsafe { bytes(value, length as usize) };
    call("setsockopt", fd, |kernel| kernel.set_option(fd, level, name, value)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int {
    call("getsockopt", fd, |kernel| {
        let answer = if (level, name) == (libc::SOL_SOCKET, libc::SO_PEERCRED) {
            kernel.socket_of(fd)?;
            // SAFETY: no preconditions.
            let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
            [PID.to_ne_bytes(), uid.to_ne_bytes(), gid.to_ne_bytes()].concat()
        } else {
            kernel.option(fd, level, name)?
        };
        // SAFETY: the caller's room, of the length that it says.
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

/// Receives into buffers; descriptors that have no room are closed.
unsafe fn receive(
    kernel: &mut crate::kernel::Kernel,
    fd: Fd,
    parts: &[iovec],
    flags: c_int,
    rights: Option<&mut Vec<Fd>>,
) -> Answer<usize> {
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
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), part.iov_base.cast::<u8>().add(inside), n) };
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
        // Not more than there is room for, but a byte, so that it is not taken for nothing.
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
    if !ours(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real(libc::SYS_read, [fd as usize, into as usize, length, 0, 0, 0]) } as ssize_t;
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
    if !ours(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real(libc::SYS_write, [fd as usize, from as usize, length, 0, 0, 0]) } as ssize_t;
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
    if !ours(fd) {
        // SAFETY: the caller's descriptor.
        return unsafe { real(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) } as c_int;
    }
    call("close", fd, |kernel| kernel.close(fd)) as c_int
}

/// The real descriptor behind memory of the simulation.
fn real_of(kernel: &mut crate::kernel::Kernel, fd: Fd) -> Answer<c_int> {
    match kernel.body(fd)? {
        Body::Memory(real) => Ok(*real),
        _ => Err(libc::EINVAL),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    if !ours(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real(libc::SYS_fcntl, [fd as usize, command as usize, argument, 0, 0, 0]) } as c_int;
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
    if !ours(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real(libc::SYS_ioctl, [fd as usize, request, argument as usize, 0, 0, 0]) } as c_int;
    }
    call("ioctl", fd, |kernel| {
        if request != libc::TIOCOUTQ as usize {
            return Err(libc::ENOTTY);
        }
        let unconfirmed = kernel.unconfirmed(fd)?;
        // SAFETY: this request writes an int.
        unsafe { *argument = unconfirmed as c_int };
        Ok(0)
    }) as c_int
}

// ---- waiting

/// Waits until `ask` has an answer, `deadline` at most, and says how it ended.
fn wait_until<T>(
    waits_for: impl Fn() -> Wait,
    deadline: Option<u64>,
    mut ask: impl FnMut(&mut crate::kernel::Kernel) -> Option<T>,
) -> Result<Option<T>, i32> {
    loop {
        if let Some(answer) = world::with(|world| ask(&mut world.kernel)).flatten() {
            return Ok(Some(answer));
        }
        if deadline.is_some_and(|deadline| deadline <= world::time()) {
            return Ok(None);
        }
        if world::wait(waits_for(), deadline) == Woken::Interrupted {
            return Err(libc::EINTR);
        }
    }
}

fn deadline_in_millis(timeout: c_int) -> Option<u64> {
    u64::try_from(timeout).ok().map(|millis| world::time() + millis * 1_000_000)
}

unsafe fn span(span: *const timespec) -> Option<u64> {
    // SAFETY: null, or the caller's.
    let span = unsafe { span.as_ref() }?;
    Some((span.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(span.tv_nsec as u64))
}

fn poll_until(fds: &mut [pollfd], deadline: Option<u64>) -> c_int {
    world::enter();
    let asked: Vec<(Fd, i16)> = fds.iter().map(|entry| (entry.fd, entry.events)).collect();
    let outcome = wait_until(|| Wait::Poll(asked.clone()), deadline, |kernel| match kernel.poll(fds) {
        0 => None,
        ready => Some(ready),
    });
    let text = if asked.is_empty() { "sleep" } else { "poll" };
    finish(text, asked.first().map_or(-1, |(fd, _)| *fd), outcome.map(|ready| ready.unwrap_or(0) as i64)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    if world::me().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real(libc::SYS_poll, [fds as usize, count as usize, timeout as usize, 0, 0, 0]) } as c_int;
    }
    // SAFETY: the caller's array.
    let fds = unsafe { if count == 0 { &mut [][..] } else { std::slice::from_raw_parts_mut(fds, count as usize) } };
    poll_until(fds, deadline_in_millis(timeout))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const libc::sigset_t) -> c_int {
    if world::me().is_none() {
        let arguments = [fds as usize, count as usize, timeout as usize, mask as usize, 8, 0];
        // SAFETY: the caller's arguments.
        return unsafe { real(libc::SYS_ppoll, arguments) } as c_int;
    }
    // SAFETY: the caller's array and time.
    let (fds, timeout) = unsafe {
        (if count == 0 { &mut [][..] } else { std::slice::from_raw_parts_mut(fds, count as usize) }, span(timeout))
    };
    poll_until(fds, timeout.map(|timeout| world::time().saturating_add(timeout)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_create1(_: c_int) -> c_int {
    call("epoll_create", -1, |kernel| Ok(kernel.open_new(Body::Epoll(Default::default())))) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int {
    // SAFETY: null, or the caller's.
    let (events, data) = unsafe { event.as_ref() }.map_or((0, 0), |event| (event.events, event.u64));
    call("epoll_ctl", fd, |kernel| kernel.epoll_control(set, operation, fd, events, data)) as c_int
}

unsafe fn epoll_until(set: c_int, into: *mut libc::epoll_event, most: c_int, deadline: Option<u64>) -> i64 {
    world::enter();
    let outcome = wait_until(|| Wait::Epoll(set), deadline, |kernel| match kernel.epoll_take(set, most as usize) {
        Ok(events) if events.is_empty() => None,
        other => Some(other),
    });
    let answer = match outcome {
        Ok(None) => Ok(0),
        Err(error) | Ok(Some(Err(error))) => Err(error),
        Ok(Some(Ok(events))) => {
            for (at, (events, data)) in events.iter().enumerate() {
                // SAFETY: no more than the caller has room for.
                unsafe { into.add(at).write(libc::epoll_event { events: *events, u64: *data }) };
            }
            Ok(events.len() as i64)
        }
    };
    finish("epoll_wait", set, answer)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(set: c_int, into: *mut libc::epoll_event, most: c_int, timeout: c_int) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { epoll_until(set, into, most, deadline_in_millis(timeout)) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eventfd(start: u32, _: c_int) -> c_int {
    call("eventfd", -1, |kernel| Ok(kernel.open_new(Body::Counter(start.into())))) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn timerfd_create(_: c_int, _: c_int) -> c_int {
    call("timerfd_create", -1, |kernel| Ok(kernel.open_new(Body::Timer(Default::default())))) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn timerfd_settime(fd: c_int, flags: c_int, new: *const libc::itimerspec, _: *mut libc::itimerspec) -> c_int {
    // SAFETY: the caller's.
    let (value, interval) = unsafe { (span(&raw const (*new).it_value), span(&raw const (*new).it_interval)) };
    let mut value = value.unwrap_or(0);
    if flags & libc::TFD_TIMER_ABSTIME != 0 && value > 0 {
        value = value.saturating_sub(world::time()).max(1);
    }
    call("timerfd_settime", fd, |kernel| kernel.set_timer(fd, value, interval.unwrap_or(0))) as c_int
}

// ---- time

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: c_int, into: *mut timespec) -> c_int {
    if world::me().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real(libc::SYS_clock_gettime, [clock as usize, into as usize, 0, 0, 0, 0]) } as c_int;
    }
    let now = world::now();
    let start = if clock == libc::CLOCK_REALTIME { 1_800_000_000 } else { 100 };
    // SAFETY: the caller's room.
    unsafe { *into = timespec { tv_sec: start + (now / 1_000_000_000) as i64, tv_nsec: (now % 1_000_000_000) as i64 } };
    0
}

/// What the clocks have shown at the start of the simulation.
fn since_start(clock: c_int, nanos: u64) -> u64 {
    nanos.saturating_sub(if clock == libc::CLOCK_REALTIME { 1_800_000_000 } else { 100 } * 1_000_000_000)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(clock: c_int, flags: c_int, time: *const timespec, left: *mut timespec) -> c_int {
    if world::me().is_none() {
        let arguments = [clock as usize, flags as usize, time as usize, left as usize, 0, 0];
        // SAFETY: the caller's arguments.
        return unsafe { -raw::call(libc::SYS_clock_nanosleep, arguments) } as c_int;
    }
    // SAFETY: the caller's.
    let time = unsafe { span(time) }.unwrap_or(0);
    let deadline = match flags & libc::TIMER_ABSTIME {
        0 => world::time().saturating_add(time),
        _ => since_start(clock, time),
    };
    world::enter();
    while deadline > world::time() {
        world::wait(Wait::Time, Some(deadline));
    }
    finish("sleep", -1, Ok(0_i64)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { clock_nanosleep(libc::CLOCK_MONOTONIC, 0, time, left) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_yield() -> c_int {
    world::give_way();
    0
}

// ---- by number

const PID: c_int = 4242;

#[unsafe(no_mangle)]
unsafe extern "C" fn getpid() -> c_int {
    match world::me() {
        Some(_) => PID,
        // SAFETY: no arguments.
        None => unsafe { real(libc::SYS_getpid, [0; 6]) as c_int },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(into: *mut c_void, length: size_t, flags: u32) -> ssize_t {
    if world::me().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real(libc::SYS_getrandom, [into as usize, length, flags as usize, 0, 0, 0]) } as ssize_t;
    }
    world::with(|world| {
        // SAFETY: the caller's buffer.
        for byte in unsafe { room(into, length) } {
            *byte = world.kernel.rng.next() as u8;
        }
    });
    length as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long {
    if world::me().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real(number, [a, b, c, d, e, f]) };
    }
    let old = || world::with(|world| world.kernel.faults.old).unwrap_or(false);
    match number {
        // SAFETY: the caller's arguments, here and below.
        libc::SYS_futex => unsafe { futex(a, b as c_int, c as u32, d as *const timespec) },
        libc::SYS_getrandom => unsafe { getrandom(a as *mut c_void, b, c as u32) as c_long },
        libc::SYS_membarrier => call("membarrier", -1, |_| if old() { Err(libc::ENOSYS) } else { Ok(0_i64) }),
        libc::SYS_epoll_pwait2 if old() => call("epoll_pwait2", -1, |_| Err::<i64, _>(libc::ENOSYS)),
        libc::SYS_epoll_pwait2 => unsafe {
            let deadline = span(d as *const timespec).map(|span| world::time().saturating_add(span));
            epoll_until(a as c_int, b as *mut libc::epoll_event, c as c_int, deadline)
        },
        libc::SYS_memfd_create => call("memfd_create", -1, |kernel| {
            let one_in = kernel.faults.no_memory;
            if kernel.rng.chance(one_in) {
                return Err(libc::ENOMEM);
            }
            let real = unsafe { raw::call(number, [a, b, c, d, e, f]) };
            if real < 0 { Err(-real as i32) } else { Ok(kernel.open_new(Body::Memory(real as c_int))) }
        }),
        _ => unsafe { real(number, [a, b, c, d, e, f]) },
    }
}

unsafe fn futex(address: usize, operation: c_int, value: u32, timeout: *const timespec) -> c_long {
    // SAFETY: the caller's time; only calls that wait have one.
    let time = || unsafe { span(timeout) };
    let deadline = match operation & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAKE => {
            world::enter();
            let woken = world::with(|world| world.wake_futex(address, value as usize)).unwrap_or(0);
            return finish("futex_wake", -1, Ok(woken as i64));
        }
        libc::FUTEX_WAIT => time().map(|time| world::time().saturating_add(time)),
        libc::FUTEX_WAIT_BITSET => {
            let clock = if operation & libc::FUTEX_CLOCK_REALTIME != 0 { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
            time().map(|time| since_start(clock, time))
        }
        _ => return finish("futex", -1, Err::<i64, _>(libc::ENOSYS)),
    };
    world::enter();
    // SAFETY: a word that the caller waits for.
    let word = unsafe { (*(address as *const std::sync::atomic::AtomicU32)).load(std::sync::atomic::Ordering::SeqCst) };
    if word != value {
        return finish("futex_wait", -1, Err::<i64, _>(libc::EAGAIN));
    }
    let answer = match world::wait(Wait::Futex(address), deadline) {
        Woken::Timeout => Err(libc::ETIMEDOUT),
        _ => Ok(0_i64),
    };
    finish("futex_wait", -1, answer)
}

// ---- memory and files

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(at: *mut c_void, length: size_t, access: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void {
    let mut fd = fd;
    if ours(fd) {
        world::enter();
        fd = world::with(|world| real_of(&mut world.kernel, fd)).unwrap_or(Err(0)).unwrap_or(-1);
    }
    let arguments = [at as usize, length, access as usize, flags as usize, fd as usize, offset as usize];
    // SAFETY: the caller's arguments.
    unsafe { real(libc::SYS_mmap, arguments) as *mut c_void }
}

/// A call of the real kernel about memory of the simulation.
unsafe fn of_memory(name: &str, number: c_long, fd: c_int, rest: [usize; 4]) -> i64 {
    let [a, b, c, d] = rest;
    if !ours(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real(number, [fd as usize, a, b, c, d, 0]) };
    }
    call(name, fd, |kernel| {
        let real = real_of(kernel, fd)?;
        // SAFETY: the caller's arguments.
        let result = unsafe { raw::call(number, [real as usize, a, b, c, d, 0]) };
        if result < 0 { Err(-result as i32) } else { Ok(result as i64) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fallocate(fd: c_int, mode: c_int, from: i64, length: i64) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { of_memory("fallocate", libc::SYS_fallocate, fd, [mode as usize, from as usize, length as usize, 0]) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate(fd: c_int, length: i64) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { of_memory("ftruncate", libc::SYS_ftruncate, fd, [length as usize, 0, 0, 0]) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fstatfs(fd: c_int, into: *mut c_void) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { of_memory("fstatfs", libc::SYS_fstatfs, fd, [into as usize, 0, 0, 0]) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(fd: c_int, into: *mut c_void, length: size_t, from: i64) -> ssize_t {
    // SAFETY: the caller's arguments.
    unsafe { of_memory("pread", libc::SYS_pread64, fd, [into as usize, length, from as usize, 0]) as ssize_t }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: usize) -> c_int {
    if world::me().is_some() {
        // SAFETY: the caller's text.
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        if path == b"/proc/loadavg" {
            let text = b"0.50 0.50 0.50 2/100 4242\n".to_vec();
            return call("open", -1, |kernel| Ok(kernel.open_new(Body::Text(text, 0)))) as c_int;
        }
        if path.starts_with(b"/proc/") || path.starts_with(b"/sys/") {
            return call("open", -1, |_| Err::<i64, _>(libc::ENOENT)) as c_int;
        }
    }
    // SAFETY: the caller's arguments.
    unsafe { real(libc::SYS_open, [path as usize, flags as usize, mode, 0, 0, 0]) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(at: c_int, path: *const c_char, flags: c_int, mask: u32, into: *mut libc::statx) -> c_int {
    if world::me().is_some() && !path.is_null() {
        // SAFETY: the caller's text.
        let name = unsafe { CStr::from_ptr(path) }.to_bytes();
        if ours(at) {
            return call("statx", at, |_| Err::<i64, _>(libc::ENOSYS)) as c_int;
        }
        if name.starts_with(PLACE) {
            return call("statx", -1, |kernel| {
                let inode = kernel.file(name).ok_or(libc::ENOENT)?;
                // SAFETY: the caller's room; all zeroes is valid.
                unsafe {
                    *into = std::mem::zeroed();
                    (*into).stx_mask = libc::STATX_BASIC_STATS;
                    (*into).stx_mode = (libc::S_IFSOCK | 0o777) as u16;
                    (*into).stx_ino = inode;
                    (*into).stx_nlink = 1;
                }
                Ok(0)
            }) as c_int;
        }
    }
    let arguments = [at as usize, path as usize, flags as usize, mask as usize, into as usize, 0];
    // SAFETY: the caller's arguments.
    unsafe { real(libc::SYS_statx, arguments) as c_int }
}

/// Where files of the simulation are.
const PLACE: &[u8] = b"/sim/";

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(path) }.to_bytes();
    if world::me().is_some() && name.starts_with(PLACE) {
        return call("unlink", -1, |kernel| kernel.unlink(name)) as c_int;
    }
    // SAFETY: the caller's arguments.
    unsafe { real(libc::SYS_unlink, [path as usize, 0, 0, 0, 0, 0]) as c_int }
}
