//! A connected, or connecting, stream socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use super::address::{RawAddress, local_address, peer_address};
use super::shared::{LOAN_AHEAD, Loan, SharedLink};
use super::transfer::{self, Sources, Targets};
use super::{Address, Credentials, Failure, Family, StreamOptions, adopt, option, os, rights};
use crate::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use crate::libc;
use crate::sys::{self, check, is_refused};

pub use std::net::Shutdown;

/// One end of a byte stream. One thread may read while another writes. Both operations never block
/// and never raise SIGPIPE.
#[derive(Debug)]
pub struct Stream {
    fd: OwnedFd,
    family: Family,
    /// Memory shared with the other end.
    link: OnceLock<Arc<SharedLink>>,
}

impl Stream {
    pub(super) fn new(fd: OwnedFd, family: Family) -> Self {
        Stream { fd, family, link: OnceLock::new() }
    }

    /// Starts to connect, from `source` if given (its port may be 0). Returns true if the
    /// connection is established already. Otherwise wait until the stream is writable and call
    /// [`finish_connect`](Stream::finish_connect). WouldBlock from a Unix domain address means that
    /// its backlog is full; try again later.
    pub fn connect(
        address: &Address,
        source: Option<&SocketAddr>,
        options: &StreamOptions,
    ) -> Result<(Stream, bool), Failure> {
        let raw = RawAddress::new(address)?;
        let stream = Stream::new(sys::socket(address.domain(), libc::SOCK_STREAM)?, address.family());
        let started = stream.start(&raw, source.filter(|_| address.is_inet()), options);
        match started.and_then(|()| reject_self_connect(&stream, stream.peer_address().ok())) {
            Ok(()) => Ok((stream, true)),
            // The system continues an interrupted connect, so it must not be called again.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => {
                Ok((stream, false))
            }
            Err(error) => Err(Failure { error, fd: Some(stream.fd.as_raw_fd()) }),
        }
    }

    fn start(
        &self,
        address: &RawAddress,
        source: Option<&SocketAddr>,
        options: &StreamOptions,
    ) -> io::Result<()> {
        self.apply(options)?;
        if self.family == Family::Unix {
            rights::refuse(self.as_fd());
        }
        if self.family == Family::V6 {
            option::allow_v4(self.as_fd());
        }
        if let Some(source) = source {
            self.bind(source)?;
        }
        // SAFETY: the descriptor is open. The address outlives the call, and its length is correct.
        check(unsafe { libc::connect(self.fd.as_raw_fd(), address.as_ptr(), address.length()) })?;
        Ok(())
    }

    fn bind(&self, source: &SocketAddr) -> io::Result<()> {
        // One source port may serve connections to several destinations.
        option::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        if source.port() == 0 {
            os::defer_port_choice(self.as_fd());
        }
        let raw = RawAddress::inet(source);
        // SAFETY: the descriptor is open. The address outlives the call, and its length is correct.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), raw.as_ptr(), raw.length()) })?;
        Ok(())
    }

    /// Takes over a connected or connecting socket. Fails with ENOTSOCK, EPROTOTYPE, EAFNOSUPPORT
    /// or EINVAL if the descriptor is not such a socket.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Stream> {
        let family = adopt::take_over(fd.as_fd(), false)?;
        if family == Family::Unix {
            rights::refuse(fd.as_fd());
        }
        Ok(Stream::new(fd, family))
    }

    /// Creates two connected streams of the Unix domain.
    pub fn pair() -> io::Result<(Stream, Stream)> {
        let (first, second) = sys::socket_pair()?;
        rights::refuse(first.as_fd());
        rights::refuse(second.as_fd());
        Ok((Stream::new(first, Family::Unix), Stream::new(second, Family::Unix)))
    }

    /// Unix domain: prepares for [`begin_sharing`](Stream::begin_sharing). Call this before any
    /// data is written or read. Has no effect on other families, or on a system that cannot share
    /// memory.
    pub fn prepare_sharing(&self) {
        if self.family == Family::Unix
            && let Some(link) = SharedLink::new()
        {
            let _ = self.link.set(link);
        }
    }

    /// Lets the bytes travel through memory that both ends map, if this was prepared and the other
    /// end supports it. Call this when the peer's user is known: before that, no descriptor of the
    /// peer is inspected. Unless `others` is set, this has no effect for a peer of another user.
    pub fn begin_sharing(&self, others: bool) {
        if let Some(link) = self.link.get()
            && (others || self.is_peer_own_user())
        {
            // With `others`, processes of other users may see the memory.
            link.begin(self.as_fd(), !others);
        }
    }

    /// True if incoming data is in shared memory, so that looking for it takes no system call.
    #[inline]
    pub fn reads_from_memory(&self) -> bool {
        self.link.get().is_some_and(|link| link.takes_from_memory())
    }

    /// True if the peer takes large bodies as loans. A body is lent in place if it begins a block
    /// of a slab. Otherwise a write copies it to a slab once.
    pub fn lends(&self) -> bool {
        self.link.get().is_some_and(|link| link.lends())
    }

    /// Makes a read stop before a loan: a large body that the peer has in memory which this process
    /// can read. At a loan, a read fails with an error for which [`is_loan`] is true.
    pub fn adopt_loans(&self) {
        if let Some(link) = self.link.get() {
            link.adopt_loans();
        }
    }

    /// Takes the loan at which a read has failed, if `fits` is true for its length. Otherwise the
    /// next read copies its bytes.
    ///
    /// # Errors
    /// EPROTO if the peer breaks the rules.
    pub fn take_loan(&self, fits: impl FnOnce(usize) -> bool) -> io::Result<Option<Loan>> {
        self.link.get().map_or(Ok(None), |link| link.take_loan(fits))
    }

    /// Asks for a wake-up. The reader calls this before it waits for the descriptor to become
    /// readable. Returns false if there is data to read now, in which case the descriptor may stay
    /// unreadable.
    pub fn request_wakeup(&self) -> bool {
        self.link.get().is_none_or(|link| link.request_wakeup(self.as_fd()))
    }

    /// Asks for a wake-up again, after a read by a thread that has asked before and not stopped
    /// listening. Returns false if there is data to read now.
    pub fn request_wakeup_again(&self) -> bool {
        self.link.get().is_none_or(|link| link.request_wakeup_again(self.as_fd()))
    }

    /// Returns the descriptor to wait on for space. The flag is true if it then becomes readable,
    /// false if it becomes writable.
    pub fn space_fd(&self) -> (BorrowedFd<'_>, bool) {
        match self.link.get().and_then(|link| link.space_fd()) {
            Some(room) => (room, true),
            None => (self.as_fd(), false),
        }
    }

    /// Returns the error that the kernel has recorded since the last call, such as that of a
    /// connect. (On Windows: the last error that it recorded.)
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let number = option::read(self.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR)?;
        Ok((number != 0).then(|| io::Error::from_raw_os_error(number)))
    }

    /// Returns the state of a connect: true if the connection is established, false if it is
    /// pending, or the error. A TCP socket that has connected to itself is ECONNREFUSED, because no
    /// server listens there.
    pub fn finish_connect(&self) -> io::Result<bool> {
        if let Some(error) = self.take_error()? {
            return Err(error);
        }
        match RawAddress::ask(self.as_fd(), libc::getpeername) {
            Ok(peer) => reject_self_connect(self, peer.decode()).map(|()| true),
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(false),
            // The caller asked after the socket became writable, and it has no error.
            Err(error) if is_refused(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Sets `options` on a stream, for example after it was accepted or taken over.
    pub fn apply(&self, options: &StreamOptions) -> io::Result<()> {
        options.apply(self.as_fd(), self.family)
    }

    /// TCP: sets whether small segments are sent at once. Has no effect on other families.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        if !matches!(self.family, Family::V4 | Family::V6) {
            return Ok(());
        }
        option::set(self.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, nodelay.into())
    }

    /// TCP: limits how many bytes, approximately, the kernel accepts beyond those that the peer has
    /// space for. `None` restores the system's setting. Has no effect on other families.
    pub fn limit_unsent(&self, bytes: Option<u32>) -> io::Result<()> {
        if !matches!(self.family, Family::V4 | Family::V6) {
            return Ok(());
        }
        let bytes = bytes.map_or(0, |bytes| libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX));
        os::limit_unsent(self.as_fd(), bytes)
    }

    /// Reads the available data, up to `buffer`'s length. Returns 0 at the end of the stream.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(Targets::one(transfer::uninit(buffer)))
    }

    /// Reads the available data into two buffers, the first one before the second. The buffers may
    /// be uninitialised. Returns the written part of each; both are empty at the end of the stream.
    #[inline]
    pub fn read_uninit<'a>(
        &self,
        [first, second]: [&'a mut [MaybeUninit<u8>]; 2],
    ) -> io::Result<[&'a mut [u8]; 2]> {
        let n = match second.is_empty() {
            true => self.receive(Targets::one(first))?,
            false => self.receive(Targets::two(first, second))?,
        };
        let in_first = n.min(first.len());
        // SAFETY: as many bytes were written, to the first buffer first.
        Ok(unsafe { [initialised(&mut first[..in_first]), initialised(&mut second[..n - in_first])] })
    }

    /// Reads into several buffers in order. Uses at most the first 1024.
    pub fn readv(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.receive(Targets::several(buffers))
    }

    #[inline]
    fn receive(&self, targets: Targets<'_>) -> io::Result<usize> {
        match self.link.get() {
            Some(link) => link.read(self.as_fd(), &targets),
            None if self.family == Family::Unix => rights::receive(self.as_fd(), &targets),
            None => transfer::receive(self.as_fd(), &targets),
        }
    }

    /// Writes as much of `bytes` as there is space for.
    #[inline]
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.send(Sources::one(bytes))
    }

    /// Writes from several buffers in order. Uses at most the first 1024.
    pub fn writev(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(Sources::several(buffers))
    }

    #[inline]
    fn send(&self, sources: Sources<'_>) -> io::Result<usize> {
        match self.link.get() {
            Some(link) => link.write(self.as_fd(), &sources),
            None => transfer::send(self.as_fd(), &sources),
        }
    }

    /// True if the other end is gone, so that the data to read is finite.
    pub fn has_hung_up(&self) -> bool {
        os::has_hung_up(self.as_fd())
    }

    /// True if the other end has stopped sending, so that the data to read is finite.
    pub fn has_ended(&self) -> bool {
        os::has_ended(self.as_fd())
    }

    /// TCP: returns the number of written bytes that the other end's system has not acknowledged,
    /// plus one if writing was shut down. Returns 0 if the number is unknown.
    pub fn unconfirmed(&self) -> usize {
        match self.family {
            Family::V4 | Family::V6 => os::unconfirmed(self.as_fd()),
            Family::Unix | Family::Vsock => 0,
        }
    }

    /// Shuts down one direction or both. The descriptor stays open.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let how = match how {
            Shutdown::Read => libc::SHUT_RD,
            Shutdown::Write => libc::SHUT_WR,
            Shutdown::Both => libc::SHUT_RDWR,
        };
        // SAFETY: integers only.
        check(unsafe { libc::shutdown(self.fd.as_raw_fd(), how) })?;
        Ok(())
    }

    /// Returns this end's address.
    pub fn local_address(&self) -> io::Result<Address> {
        local_address(self.as_fd())
    }

    /// Returns the other end's address, which is usually the empty path for a Unix domain client.
    pub fn peer_address(&self) -> io::Result<Address> {
        peer_address(self.as_fd())
    }

    /// Returns the process that created the other end. Unix domain only.
    pub fn peer_credentials(&self) -> io::Result<Credentials> {
        if self.family != Family::Unix {
            return Err(io::Error::from_raw_os_error(libc::ENOTSUP));
        }
        os::peer_credentials(self.as_fd())
    }

    /// True if this is a Unix domain stream and its peer process runs as this process's effective
    /// user.
    pub fn is_peer_own_user(&self) -> bool {
        self.peer_credentials().is_ok_and(|who| who.uid == super::identity::own_user())
    }

    /// Returns the address family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the descriptor to wait on.
    #[inline]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Gives up the descriptor.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

/// Fails with ECONNREFUSED if the two ends of a TCP connection are the same socket. TCP allows that
/// (simultaneous open) if the system happens to choose the destination port as the local port. The
/// socket is set to reset on close: in TIME_WAIT it would keep the port from the server for a
/// minute.
fn reject_self_connect(stream: &Stream, peer: Option<Address>) -> io::Result<()> {
    if !matches!(stream.family, Family::V4 | Family::V6) {
        return Ok(());
    }
    match (stream.local_address(), peer) {
        (Ok(local), Some(peer)) if local == peer => {
            option::reset_on_close(stream.as_fd())?;
            Err(io::Error::from_raw_os_error(libc::ECONNREFUSED))
        }
        _ => Ok(()),
    }
}

/// Returns the bytes as initialised.
///
/// # Safety
/// All bytes are initialised.
unsafe fn initialised(bytes: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    // SAFETY: the caller guarantees it, and the layout is the same.
    unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [u8]) }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// True for the error of a read that finds a loan, see [`Stream::adopt_loans`].
pub fn is_loan(error: &io::Error) -> bool {
    error.raw_os_error() == Some(LOAN_AHEAD)
}
