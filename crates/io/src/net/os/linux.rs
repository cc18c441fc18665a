//! Socket options and peer credentials of Linux.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use super::address::{Address, RawAddress};
use super::identity::Credentials;
use super::option;
use crate::poll::{PollFd, poll};
use crate::sys::check;

/// True if Unix sockets may have names outside the file system.
pub(super) const HAS_ABSTRACT: bool = true;

/// Address family for connections between virtual machines and their host. If the kernel lacks it,
/// creating a socket fails.
pub(super) const VSOCK: Option<libc::c_int> = Some(libc::AF_VSOCK);

pub(super) fn vsock(cid: u32, port: u32) -> Option<RawAddress> {
    // SAFETY: sockaddr_vm is a struct of integers.
    let mut raw: libc::sockaddr_vm = unsafe { std::mem::zeroed() };
    raw.svm_family = libc::AF_VSOCK as libc::sa_family_t;
    (raw.svm_cid, raw.svm_port) = (cid, port);
    Some(RawAddress::of(&raw, size_of_val(&raw)))
}

pub(super) fn decode_vsock(raw: &RawAddress) -> Option<Address> {
    let raw = raw.view::<libc::sockaddr_vm>()?;
    Some(Address::Vsock { cid: raw.svm_cid, port: raw.svm_port })
}

pub(super) const KEEPALIVE_COUNT: Option<libc::c_int> = Some(libc::TCP_KEEPCNT);
pub(super) const KEEPALIVE_IDLE: Option<libc::c_int> = Some(libc::TCP_KEEPIDLE);
pub(super) const KEEPALIVE_INTERVAL: Option<libc::c_int> = Some(libc::TCP_KEEPINTVL);

pub(super) fn set_priority(fd: BorrowedFd<'_>, priority: libc::c_int) -> io::Result<()> {
    option::set(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, priority)
}

pub(super) fn set_busy_poll(fd: BorrowedFd<'_>, micros: libc::c_int) -> io::Result<()> {
    option::set(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL, micros)
}

pub(super) fn set_user_timeout(fd: BorrowedFd<'_>, millis: libc::c_int) -> io::Result<()> {
    option::set(fd, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, millis)
}

pub(super) fn limit_unsent(fd: BorrowedFd<'_>, bytes: libc::c_int) -> io::Result<()> {
    option::set(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Restricts a socket to the groups that it has joined. By default Linux delivers data for any
/// group that some socket of the host has joined.
pub(super) fn hear_joined_only(fd: BorrowedFd<'_>, v4: bool) {
    let (level, name) = match v4 {
        true => (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL),
        false => (libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL),
    };
    // A kernel older than the option delivers more.
    let _ = option::set(fd, level, name, 0);
}

/// Available since Linux 4.20.
const IPV6_MULTICAST_ALL: libc::c_int = 29;

pub(super) fn bind_to_device(fd: BorrowedFd<'_>, device: &str) -> io::Result<()> {
    option::set_bytes(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device.as_bytes())
}

/// Defers the choice of the port of a bound source address until the destination is known, so that
/// many connections can share one port.
pub(super) fn defer_port_choice(fd: BorrowedFd<'_>) {
    // Only an optimisation: without it the system chooses the port at once.
    let _ = option::set(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
}

/// Sets whether a Unix domain socket accepts descriptors from its peer. Needs Linux 6.16; the C
/// library's headers may be older.
pub(super) fn pass_rights(fd: BorrowedFd<'_>, pass: bool) -> io::Result<()> {
    const SO_PASSRIGHTS: libc::c_int =
        if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) { 0x5c } else { 83 };
    option::set(fd, libc::SOL_SOCKET, SO_PASSRIGHTS, pass.into())
}

pub(super) fn domain(fd: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    option::read(fd, libc::SOL_SOCKET, libc::SO_DOMAIN)
}

pub(super) fn peer_credentials(fd: BorrowedFd<'_>) -> io::Result<Credentials> {
    // SAFETY: SO_PEERCRED's value is a ucred, three integers.
    let raw: libc::ucred = unsafe { option::read_struct(fd, libc::SOL_SOCKET, libc::SO_PEERCRED)? };
    Ok(Credentials { pid: raw.pid, uid: raw.uid, gid: raw.gid })
}

pub(super) fn unconfirmed(fd: BorrowedFd<'_>) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open while borrowed; TIOCOUTQ (SIOCOUTQ) writes one int, which is
    // ours.
    match check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) }) {
        Ok(_) => usize::try_from(bytes).unwrap_or(0),
        Err(_) => 0,
    }
}

/// True if the other end is gone.
pub(super) fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    tells_of(fd, PollFd::HUP)
}

/// True if the other end has stopped sending.
pub(super) fn has_ended(fd: BorrowedFd<'_>) -> bool {
    tells_of(fd, PollFd::ENDED | PollFd::HUP)
}

fn tells_of(fd: BorrowedFd<'_>, what: i16) -> bool {
    let mut fds = [PollFd::new(fd.as_raw_fd(), what)];
    matches!(poll(&mut fds, Some(Duration::ZERO)), Ok(1..)) && fds[0].revents & what != 0
}
