//! A listening stream socket.

use crate::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use crate::libc;
use std::io;

use super::address::{RawAddress, local_address};
use super::adopt::{self, Taken};
use super::{Address, Failure, Family, Stream, StreamOptions, option, rights, unix_path};
use crate::sys::{self, check};

/// A socket that accepts connections. The file of a Unix domain one is its maker's to remove.
#[derive(Debug)]
pub struct Listener {
    /// It was listening when it was taken over, so peers may have come before it was told to refuse
    /// descriptors, which they inherit. Dropped before the descriptor is closed.
    taken: Option<Taken>,
    fd: OwnedFd,
    family: Family,
}

impl Listener {
    /// Listens at `address`. Port 0 lets the system choose. A TCP port that old connections still
    /// linger on can be taken at once. `v6only` keeps IPv4 out of an IPv6 wildcard. `options` are
    /// set before binding, and most are inherited by what is accepted.
    pub fn bind(
        address: &Address,
        options: &StreamOptions,
        backlog: i32,
        v6only: bool,
    ) -> Result<Listener, Failure> {
        let raw = RawAddress::new(address)?;
        let listener = Listener {
            taken: None,
            fd: sys::socket(address.domain(), libc::SOCK_STREAM)?,
            family: address.family(),
        };
        match listener.start(address, &raw, options, backlog, v6only) {
            Ok(()) => Ok(listener),
            Err(error) => Err(Failure { error, fd: Some(listener.fd.as_raw_fd()) }),
        }
    }

    fn start(
        &self,
        address: &Address,
        raw: &RawAddress,
        options: &StreamOptions,
        backlog: i32,
        v6only: bool,
    ) -> io::Result<()> {
        let fd = self.as_fd();
        if address.is_inet() {
            option::set(fd, libc::SOL_SOCKET, sys::REUSE_PORT_OF_THE_GONE, 1)?;
        }
        if address.domain() == libc::AF_INET6 {
            option::set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, v6only.into())?;
        }
        options.apply(fd, self.family)?;
        if self.family == Family::Unix {
            rights::refuse(fd);
        }
        if let (Family::Unix, Some(mode)) = (self.family, options.mode) {
            // Others could connect meanwhile if it had its permissions only afterwards.
            unix_path::set_mode(fd, mode)?;
        }
        // SAFETY: the descriptor is open; the address outlives the call and its length is its own.
        check(unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.length()) })?;
        // SAFETY: integers only.
        check(unsafe { libc::listen(fd.as_raw_fd(), backlog) })?;
        Ok(())
    }

    /// Takes over a socket that listens already, which the program gives up (ZMQ_USE_FD): it is
    /// closed with the listener. After an error it is still the program's: ENOTSOCK, EPROTOTYPE,
    /// EAFNOSUPPORT or EINVAL if it is no such socket, EBADF if it is not open or was taken before.
    pub fn take_over(raw: RawFd) -> io::Result<Listener> {
        let (taken, fd, family) = adopt::take_listener(raw)?;
        Ok(Listener { taken: Some(taken), fd, family })
    }

    /// Ends it. A socket that was taken over is the program's again, and stays open.
    pub fn give_back(self) {
        if self.taken.is_some() {
            std::mem::forget(self.fd);
        }
    }

    /// Takes the next connection. WouldBlock if there is none; other errors concern that connection
    /// ([`concerns_one_connection`](super::concerns_one_connection)) or the process, never the
    /// listener itself.
    pub fn accept(&self) -> io::Result<Stream> {
        let fd = sys::accept(self.as_fd())?;
        if self.taken.is_some() && self.family == Family::Unix {
            rights::refuse(fd.as_fd());
        }
        Ok(Stream::new(fd, self.family))
    }

    /// Where it listens, with the port the system chose.
    pub fn local_address(&self) -> io::Result<Address> {
        local_address(self.fd.as_fd())
    }

    /// The descriptor to wait on: readable when there is a connection to accept.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether the system has Unix domain sockets. All but Windows have; that has them since 2018.
pub fn is_unix_supported() -> bool {
    let missing = |error: io::Error| error.raw_os_error() == Some(libc::EAFNOSUPPORT);
    cfg!(unix) || !sys::socket(libc::AF_UNIX, libc::SOCK_STREAM).is_err_and(missing)
}

/// Whether the system has IPv6 at all. Where it cannot be found out (no descriptor is left), it
/// has.
pub fn is_ipv6_supported() -> bool {
    let missing = |error: io::Error| error.raw_os_error() == Some(libc::EAFNOSUPPORT);
    !sys::socket(libc::AF_INET6, libc::SOCK_STREAM).is_err_and(missing)
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
