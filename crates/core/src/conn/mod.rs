//! A connection: the I/O half of a pipe over a byte stream.
//!
//! A connection joins the pipe's two queues with the stream of the current session.
//! [`Pump`](pump::Pump) moves bytes from the outbound queue to the kernel.
//! [`Intake`](intake::Intake) moves bytes from the kernel to the inbound queue. Any thread may
//! pump, one at a time, under the pump's lock. Only the holder of the socket's [`baton`] reads.
//!
//! A connection outlives its stream. `connect` makes the connection before there is a peer. The
//! connection survives the loss and the reconnect of the peer, with the messages queued since.
//!
//! This module knows neither sockets nor patterns. News go up through the socket's inbox. Requests
//! that only the I/O thread can serve go to [`IoSide`].

pub(crate) mod baton;
pub(crate) mod chore;
#[cfg(not(loom))]
pub(crate) mod inproc;
#[cfg(not(loom))]
mod intake;
#[cfg(not(loom))]
mod link;
#[cfg(not(loom))]
mod log_readers;
#[cfg(not(loom))]
mod pump;
#[cfg(not(loom))]
pub(crate) mod reader;
#[cfg(not(loom))]
mod receiver_wakeups;
pub(crate) mod registration;
#[cfg(not(loom))]
mod room;
#[cfg(all(test, not(loom)))]
pub(crate) mod testbed;
#[cfg(not(loom))]
pub(crate) mod unwritten;
#[cfg(not(loom))]
pub(crate) mod wakes;

#[cfg(not(loom))]
pub(crate) use connection::{
    Connection, ConnectionKind, FinishedHandshakes, Session, THROUGH_LEAST, unsent_bytes,
};
#[cfg(not(loom))]
pub(crate) use link::{IoSide, Loss, NewPipe, News, PeerInfo, SetKeeper, SocketInbox, Waker};
#[cfg(not(loom))]
pub(crate) use log_readers::LogReaders;
#[cfg(not(loom))]
pub(crate) use pump::Flushed;
#[cfg(not(loom))]
pub(crate) use receiver_wakeups::ReceiverWakeups;
#[cfg(not(loom))]
pub(crate) use room::{room_fd, wait_for_room};

#[cfg(not(loom))]
mod connection;
