//! A connection: the I/O half of a pipe over a byte stream.
//!
//! A connection joins the pipe's two queues with the stream of the current session.
//! [`Pump`](pump::Pump) moves bytes from the outbound queue to the kernel.
//! [`Intake`](intake::Intake) moves bytes from the kernel to the inbound queue. Any thread may
//! pump, one at a time, under the pump's lock. Only the holder of the socket's
//! [`baton`](tautline_queue::handoff::baton) reads.
//!
//! A connection outlives its stream. `connect` makes the connection before there is a peer. The
//! connection survives the loss and the reconnect of the peer, with the messages queued since.
//!
//! This module knows neither sockets nor patterns. News go up through the socket's inbox. Requests
//! that only the I/O thread can serve go to [`IoSide`].

mod connection;
pub(crate) mod inproc;
mod intake;
mod link;
mod log_readers;
pub(crate) mod outbox;
mod pump;
pub(crate) mod reader;
mod receiver_wakeups;
mod room;
#[cfg(test)]
pub(crate) mod testbed;
pub(crate) mod wakes;

pub(crate) use connection::{Connection, ConnectionKind, FinishedHandshakes, Session, THROUGH_LEAST};
pub(crate) use link::{
    ConnectionEvent, Handover, IoSide, Loss, NewPipe, News, PeerInfo, SetKeeper, Silence, SocketInbox, Waker,
};
pub(crate) use log_readers::LogReaders;
pub(crate) use pump::Flushed;
pub(crate) use receiver_wakeups::ReceiverWakeups;
pub(crate) use room::{room_fd, wait_for_room};
