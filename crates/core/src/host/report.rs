//! Reports about contexts and sockets, for tools outside the process.
//!
//! The engine reports rare changes as they happen: sockets, endpoints, peers, options, events. It
//! reports no message. A host reads the counters of the queues by probes, on its own thread. A
//! socket without a report pays one look at an empty field for each of these changes.
//!
//! The methods are called by the owner of a socket and by its I/O thread, which may hold locks of
//! the engine. They must neither wait nor call the socket.

use std::any::Any;
use std::io;

pub use crate::monitor::{EventReport, Observed};
pub use crate::pipe::{ConnectionCounts, PeerCounts, PeerProbe, PeerReport, PeerState};
pub use crate::pipe::{DiscardReason, Examples, SocketCounts, SocketProbe, TopicExample};

use crate::options::Options;
use tautline_proto::SocketType;
use tautline_queue::sync::Arc;

/// Starts to report a context with these numbers of I/O threads and of most sockets. Fails with
/// `Unsupported` on systems without reports.
pub type OpenReport = fn(io_threads: usize, max_sockets: usize) -> io::Result<Arc<dyn ContextReport>>;

/// The report of a context.
pub trait ContextReport: Send + Sync {
    /// Starts to report a new socket.
    fn socket(&self, socket_type: SocketType, options: &Options, probe: SocketProbe)
    -> Arc<dyn SocketReport>;

    /// Notes that the program waits for the context to end.
    fn mark_terminating(&self);

    /// In a forked child: notes a call of it that was refused, because the context belongs to the
    /// parent.
    fn note_forked_call(&self);

    /// Notes the end of the context. May be called again.
    fn end(&self);
}

/// The report of a socket. A peer has the id that its own report gives.
pub trait SocketReport: EventReport + Any {
    /// Sets the options, and the number of subscribed topics.
    fn set_options(&self, options: &Options, subscriptions: usize);

    /// Adds an endpoint, before it is served. `given` is the text of the program, `name` the name
    /// in events, and `mechanism` the one of a bound endpoint for streams.
    fn add_endpoint(&self, given: &str, name: &str, bound: bool, mechanism: &str);

    /// I/O thread: sets the address that the name of a connected endpoint has resolved to. An
    /// attempt to connect to it follows.
    fn set_resolved(&self, name: &str, address: &str);

    /// Removes the endpoints for whose given text and `bound` the function returns false.
    fn keep_endpoints(&self, is_there: &dyn Fn(&str, bool) -> bool);

    /// Notes that the socket is the library's end of a monitor on this endpoint.
    fn set_monitor_endpoint(&self, endpoint: &str);

    /// Adds a peer that has connected, or that is being connected to.
    fn add_peer(&self, peer: PeerReport, probe: PeerProbe);

    /// Updates all facts about a peer except its counters, and the number of reconnects of all
    /// peers together.
    fn update_peer(&self, peer: PeerReport, reconnects: u64);

    /// Removes a peer. `lost` is the total number of messages lost with peers.
    fn remove_peer(&self, id: u64, lost: u64);

    /// I/O thread: adds a peer that the owner does not know yet. [`SocketReport::add_peer`] with
    /// the same connection replaces it.
    fn add_unseen_peer(&self, peer: PeerReport, probe: PeerProbe);

    /// I/O thread: updates a peer to which the socket has connected, `again` for a reconnect.
    fn mark_connected(&self, peer: PeerReport, again: bool);

    /// Notes that the socket is closed, before its pipes are.
    fn mark_closed(&self);

    /// Updates the list of taps. Returns true if a tool wants copies of the messages.
    fn update_taps(&self) -> bool;

    /// Notes a part that is about to be sent. The part may be empty after it was sent.
    fn tap_sending(&self, part: &[u8]);

    /// Completes a part after [`SocketReport::tap_sending`]. `None` means that it was not sent.
    fn tap_sent(&self, sent: Option<TappedPart>);

    /// Notes a received part of this length, with its available bytes.
    fn tap_received(&self, length: usize, bytes: &[u8], part: TappedPart);
}

/// The way of a message part.
#[derive(Debug, Clone, Copy)]
pub struct TappedPart {
    /// The peer that the part went to or came from, if there is exactly one.
    pub peer: Option<u64>,
    /// True for the last part of a message.
    pub is_last: bool,
}
