//! Waiting for many sockets at once.

use std::time::Duration;

use tautline_core::fd::{AsRawFd, BorrowedFd};
use tautline_core::poller::{self, Item, POLLERR, POLLIN, POLLOUT, POLLPRI, PollTarget};

use crate::Socket;
use crate::error::Result;
use crate::kind::{Receives, Sends};

/// One item to wait for: a socket or a descriptor, and the awaited event.
///
/// An item borrows its socket until the item is dropped. After [`poll`], the item holds the result.
#[derive(Debug)]
pub struct PollItem<'a>(Item<'a>);

/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::os::fd::AsFd;
/// use std::time::Duration;
/// use tautline::{Context, Dealer, PollItem, Push, poll};
///
/// let context = Context::new();
/// let mut dealer = Dealer::builder(&context).connect("inproc://later")?;
/// let mut push = Push::new(&context)?;
/// let (wake, _waker) = std::os::unix::net::UnixStream::pair().unwrap();
///
/// let mut items =
///     [PollItem::readable_or_writable(&mut dealer), PollItem::writable(&mut push), PollItem::descriptor(wake.as_fd())];
/// poll(&mut items, Some(Duration::from_secs(1)))?;
/// assert!(items[0].is_writable() && !items[0].is_readable(), "it queues for the peer to come");
/// assert!(!items[1].is_writable(), "it has no peer");
/// assert!(!items[2].is_readable() && !items[2].has_error());
/// # drop(items);
/// # Ok(()) }
/// ```
impl<'a> PollItem<'a> {
    fn new(watched: PollTarget<'a>, events: i16) -> Self {
        PollItem(Item { watched, events, revents: 0 })
    }

    /// Waits until a message can be received.
    pub fn readable<K: Receives>(socket: &'a mut Socket<K>) -> Self {
        PollItem::new(PollTarget::Socket(&mut socket.inner), POLLIN)
    }

    /// Waits until a message can be sent.
    pub fn writable<K: Sends>(socket: &'a mut Socket<K>) -> Self {
        PollItem::new(PollTarget::Socket(&mut socket.inner), POLLOUT)
    }

    /// Waits until a message can be received or sent.
    pub fn readable_or_writable<K: Sends + Receives>(socket: &'a mut Socket<K>) -> Self {
        PollItem::new(PollTarget::Socket(&mut socket.inner), POLLIN | POLLOUT)
    }

    /// Waits until a descriptor of another library is readable, or has an error or urgent data.
    pub fn descriptor(fd: BorrowedFd<'a>) -> Self {
        PollItem::new(PollTarget::Descriptor(fd.as_raw_fd()), POLLIN | POLLPRI | POLLERR)
    }

    /// After [`poll`]: true if a message can be received, or the descriptor can be read.
    pub fn is_readable(&self) -> bool {
        self.0.revents & POLLIN != 0
    }

    /// After [`poll`]: true if a message can be sent.
    pub fn is_writable(&self) -> bool {
        self.0.revents & POLLOUT != 0
    }

    /// After [`poll`]: true if the descriptor has an error.
    pub fn has_error(&self) -> bool {
        self.0.revents & POLLERR != 0
    }
}

/// Waits until at least one item is ready, for at most `timeout` (`None`: without limit),
/// `zmq_poll(3)`. Returns the number of ready items.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, PollItem, Pull, poll};
///
/// let context = Context::new();
/// let (mut one, mut other) = (Pull::new(&context)?, Pull::new(&context)?);
/// # one.bind("inproc://one")?;
/// # tautline::Push::builder(&context).connect("inproc://one")?.send("x")?;
/// let mut items = [PollItem::readable(&mut one), PollItem::readable(&mut other)];
/// poll(&mut items, None)?;
/// let [first, second] = items.map(|item| item.is_readable());
/// if first {
///     one.recv()?;
/// }
/// # assert!(!second);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns [`Error::Interrupted`](crate::Error::Interrupted) or
/// [`Error::Terminated`](crate::Error::Terminated).
pub fn poll(items: &mut [PollItem<'_>], timeout: impl Into<Option<Duration>>) -> Result<usize> {
    let mut inner: Vec<Item<'_>> = items.iter_mut().map(|item| item.reborrow()).collect();
    let ready = poller::poll(&mut inner, timeout.into())?;
    let events: Vec<i16> = inner.iter().map(|item| item.revents).collect();
    drop(inner);
    for (item, revents) in items.iter_mut().zip(events) {
        item.0.revents = revents;
    }
    Ok(ready)
}

impl PollItem<'_> {
    fn reborrow(&mut self) -> Item<'_> {
        let watched = match &mut self.0.watched {
            PollTarget::Socket(socket) => PollTarget::Socket(socket),
            PollTarget::Shared(socket) => PollTarget::Shared(socket),
            PollTarget::Descriptor(fd) => PollTarget::Descriptor(*fd),
        };
        Item { watched, events: self.0.events, revents: 0 }
    }
}
