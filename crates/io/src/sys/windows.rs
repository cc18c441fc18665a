//! Descriptor primitives of Windows, where a descriptor is a Winsock socket.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ptr::null_mut;
use std::sync::Once;
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation};
use windows_sys::Win32::Networking::WinSock as ws;
use windows_sys::Win32::Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom};

use super::check;
use crate::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use crate::libc;

/// Windows has no SIGPIPE.
pub(crate) const NO_SIGNAL: libc::c_int = 0;

/// Option that gives a listener exclusive use of its port, even while connections of an earlier
/// listener linger. On Windows SO_REUSEADDR would let any process take the port away.
pub(crate) const REUSE_OLD_PORT: libc::c_int = ws::SO_EXCLUSIVEADDRUSE;

/// Starts Winsock, which must happen before its first call. (The standard library starts it as
/// well; Winsock counts the starts.)
pub(crate) fn start_winsock() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // SAFETY: WSADATA is a struct of integers and pointers.
        let mut data: ws::WSADATA = unsafe { std::mem::zeroed() };
        // SAFETY: the description goes into the exclusive variable. If this fails, the first socket
        // call fails with the same error.
        unsafe { ws::WSAStartup(0x0202, &mut data) };
    });
}

/// Creates a non-blocking socket that child processes do not inherit.
pub(crate) fn socket(domain: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    start_winsock();
    let flags = ws::WSA_FLAG_OVERLAPPED | ws::WSA_FLAG_NO_HANDLE_INHERIT;
    // SAFETY: integers and a null pointer, which asks for any provider.
    let raw = unsafe { ws::WSASocketW(domain, kind, 0, std::ptr::null(), 0, flags) };
    let fd = owned(raw)?;
    if kind == libc::SOCK_DGRAM {
        ignore_unreachable_ports(fd.as_fd());
    }
    set_nonblocking(fd.as_fd())?;
    Ok(fd)
}

/// Creates two connected stream sockets over TCP on this host, because Windows has no pairs.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let first = TcpStream::connect(listener.local_addr()?)?;
    let second = loop {
        let (second, from) = listener.accept()?;
        // Another process may have connected to the port.
        if from == first.local_addr()? {
            break second;
        }
    };
    let prepared = |stream: TcpStream| -> io::Result<OwnedFd> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(OwnedFd::from(stream))
    };
    Ok((prepared(first)?, prepared(second)?))
}

/// Accepts one connection from a listening socket.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: null pointers ask the system not to write an address.
    let raw =
        unsafe { ws::accept(listener.as_raw_fd() as ws::SOCKET, std::ptr::null_mut(), std::ptr::null_mut()) };
    let fd = owned(raw)?;
    prepare(fd.as_fd())?;
    Ok(fd)
}

/// Waits with millisecond precision. A set of the reactor is ready when one of its members is
/// ready.
pub(crate) fn poll(
    fds: &mut [libc::pollfd],
    timeout: Option<Duration>,
    mask: Option<&libc::sigset_t>,
) -> io::Result<usize> {
    if mask.is_some() {
        return Err(io::Error::from_raw_os_error(libc::ENOTSUP));
    }
    let ready = crate::reactor::poll_with_sets(fds, timeout)?;
    fds.iter_mut().for_each(say_end);
    Ok(ready)
}

/// Converts the end of the peer's data. Winsock reports it only as a hang-up. On other systems the
/// end is readable, and only a descriptor that can neither be read nor written has hung up.
fn say_end(fd: &mut libc::pollfd) {
    if fd.revents & libc::POLLHUP == 0 || fd.events & libc::POLLIN == 0 {
        return;
    }
    fd.revents |= libc::POLLIN;
    if fd.revents & (libc::POLLERR | libc::POLLNVAL) == 0 {
        fd.revents &= !libc::POLLHUP;
    }
}

/// Fills `bytes`, and returns their length.
pub(crate) fn random(bytes: &mut [u8]) -> io::Result<usize> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let (start, flags) = (bytes.as_mut_ptr(), BCRYPT_USE_SYSTEM_PREFERRED_RNG);
    // SAFETY: the system writes `length` bytes, which the exclusive slice has. A null algorithm
    // selects the system's own.
    let status = unsafe { BCryptGenRandom(null_mut(), start, length, flags) };
    if status == 0 { Ok(length as usize) } else { Err(io::ErrorKind::Other.into()) }
}

/// Sets the flags that all our descriptors have.
pub(crate) fn prepare(fd: BorrowedFd<'_>) -> io::Result<()> {
    // Sockets of some providers are not handles of the system, and child processes do not inherit
    // those.
    // SAFETY: the handle is open while borrowed.
    unsafe { SetHandleInformation(fd.as_raw_fd() as HANDLE, HANDLE_FLAG_INHERIT, 0) };
    set_nonblocking(fd)
}

/// Fails with EBADF or ENOTSOCK if the number is not a socket.
pub(crate) fn check_open(raw: RawFd) -> io::Result<()> {
    start_winsock();
    let (mut kind, mut length) = (0_i32, size_of::<i32>() as libc::socklen_t);
    let (level, name, place) = (libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast());
    // SAFETY: the system accepts any number. The option is an int, which goes into the exclusive
    // variable.
    check(unsafe { libc::getsockopt(raw, level, name, place, &mut length) }).map(drop)
}

fn owned(raw: ws::SOCKET) -> io::Result<OwnedFd> {
    if raw == ws::INVALID_SOCKET {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the socket was just created and is not shared.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as RawFd) })
}

fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut on = 1_u32;
    // SAFETY: the socket is open while borrowed; the system reads the exclusive integer.
    check(unsafe { ws::ioctlsocket(fd.as_raw_fd() as ws::SOCKET, ws::FIONBIO, &mut on) })?;
    Ok(())
}

/// Switches off the error reports of unreachable ports. Otherwise a datagram that its receiver
/// refused makes our next receive call fail.
fn ignore_unreachable_ports(fd: BorrowedFd<'_>) {
    let (off, mut returned) = (0_u32, 0_u32);
    let (socket, what) = (fd.as_raw_fd() as ws::SOCKET, ws::SIO_UDP_CONNRESET);
    let (value, length) = ((&raw const off).cast(), size_of_val(&off) as u32);
    // SAFETY: the socket is open while borrowed. The system reads an integer, and writes the length
    // of the empty result.
    unsafe { ws::WSAIoctl(socket, what, value, length, null_mut(), 0, &mut returned, null_mut(), None) };
}
