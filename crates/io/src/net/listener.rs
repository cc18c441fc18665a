//! A listening stream socket.

use crate::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use crate::libc;
use std::io;

use super::address::{RawAddress, local_address};
use super::adopt::{self, AdoptedFd};
use super::{Address, Failure, Family, Stream, StreamOptions, option, rights, unix_path};
use crate::sys::{self, check};

/// A socket that accepts connections. The creator of a Unix domain listener must remove its file.
#[derive(Debug)]
pub struct Listener {
    /// Set if the program passed a listening socket to us. Peers may have connected before we set
    /// the socket to refuse descriptors, and accepted sockets inherit that setting. Dropped before
    /// the descriptor is closed.
    taken: Option<AdoptedFd>,
    fd: OwnedFd,
    family: Family,
}

impl Listener {
    /// Listens at `address`. Port 0 lets the system choose. A TCP port can be bound at once even if
    /// old connections still linger on it. `v6only` keeps IPv4 out of an IPv6 wildcard. `options`
    /// are set before binding, and accepted connections inherit most of them.
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
            option::set(fd, libc::SOL_SOCKET, sys::REUSE_OLD_PORT, 1)?;
        }
        if address.domain() == libc::AF_INET6 {
            option::set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, v6only.into())?;
        }
        options.apply(fd, self.family)?;
        if self.family == Family::Unix {
            rights::refuse(fd);
        }
        if let (Family::Unix, Some(mode)) = (self.family, options.mode) {
            // The permissions must be set before the bind, otherwise other users could connect in
            // between.
            unix_path::set_mode(fd, mode)?;
        }
        // SAFETY: the descriptor is open. The address outlives the call, and its length is correct.
        check(unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.length()) })?;
        // SAFETY: integers only.
        check(unsafe { libc::listen(fd.as_raw_fd(), backlog) })?;
        Ok(())
    }

    /// Takes over a listening socket that the program gives up (ZMQ_USE_FD). The socket closes with
    /// the listener. After an error it still belongs to the program. Fails with ENOTSOCK,
    /// EPROTOTYPE, EAFNOSUPPORT or EINVAL if the socket does not fit, and with EBADF if it is not
    /// open or was taken before.
    pub fn take_over(raw: RawFd) -> io::Result<Listener> {
        let (taken, fd, family) = adopt::take_listener(raw)?;
        Ok(Listener { taken: Some(taken), fd, family })
    }

    /// Closes the listener. A socket that was taken over returns to the program and stays open.
    pub fn give_back(self) {
        if self.taken.is_some() {
            std::mem::forget(self.fd);
        }
    }

    /// Accepts the next connection. Returns WouldBlock if no connection waits. Other errors concern
    /// that connection ([`concerns_one_connection`](super::concerns_one_connection)) or the
    /// process, never the listener itself.
    pub fn accept(&self) -> io::Result<Stream> {
        let fd = sys::accept(self.as_fd())?;
        if self.taken.is_some() && self.family == Family::Unix {
            rights::refuse(fd.as_fd());
        }
        Ok(Stream::new(fd, self.family))
    }

    /// Returns the local address, with the port that the system chose.
    pub fn local_address(&self) -> io::Result<Address> {
        local_address(self.fd.as_fd())
    }

    /// Returns the descriptor to wait on. It is readable when a connection waits.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// True if the system has Unix domain sockets. Every Unix system has them, and Windows since 2018.
pub fn is_unix_supported() -> bool {
    let missing = |error: io::Error| error.raw_os_error() == Some(libc::EAFNOSUPPORT);
    cfg!(unix) || !sys::socket(libc::AF_UNIX, libc::SOCK_STREAM).is_err_and(missing)
}

/// True if the system supports IPv6. Also true if the test itself fails, for example without a free
/// descriptor.
pub fn is_ipv6_supported() -> bool {
    let missing = |error: io::Error| error.raw_os_error() == Some(libc::EAFNOSUPPORT);
    !sys::socket(libc::AF_INET6, libc::SOCK_STREAM).is_err_and(missing)
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
