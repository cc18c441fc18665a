//! Socket events: what happens to a socket's connections, told to a listener
//! (zmq_socket_monitor(3)).
//!
//! The I/O side and the socket emit; a sink, which the socket layer provides, turns the events into
//! messages. Without a listener an event costs one load.

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Mutex, lock};
use std::sync::Arc;

/// The numbers of the events, as in `zmq.h`.
pub(crate) mod event {
    pub(crate) const CONNECTED: u32 = 0x1;
    pub(crate) const CONNECT_DELAYED: u32 = 0x2;
    pub(crate) const CONNECT_RETRIED: u32 = 0x4;
    pub(crate) const LISTENING: u32 = 0x8;
    pub(crate) const BIND_FAILED: u32 = 0x10;
    pub(crate) const ACCEPTED: u32 = 0x20;
    pub(crate) const ACCEPT_FAILED: u32 = 0x40;
    pub(crate) const CLOSED: u32 = 0x80;
    pub(crate) const DISCONNECTED: u32 = 0x200;
    pub(crate) const MONITOR_STOPPED: u32 = 0x400;
    pub(crate) const HANDSHAKE_FAILED_NO_DETAIL: u32 = 0x800;
    pub(crate) const HANDSHAKE_SUCCEEDED: u32 = 0x1000;
    pub(crate) const HANDSHAKE_FAILED_PROTOCOL: u32 = 0x2000;
    pub(crate) const HANDSHAKE_FAILED_AUTH: u32 = 0x4000;
    pub(crate) const PIPES_STATS: u32 = 0x10000;
}

/// The two ends of a connection, as endpoints; either may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ends {
    /// The one by which the program knows the connection: what it has bound or connected.
    name: Arc<str>,
    other: Box<str>,
    /// The local one is a bound endpoint.
    bound: bool,
}

impl Ends {
    /// Of a bound endpoint.
    pub(crate) fn bound(local: impl Into<Arc<str>>) -> Self {
        Ends { name: local.into(), other: Box::default(), bound: true }
    }

    /// Of an endpoint that we connect to.
    pub(crate) fn connected(remote: impl Into<Arc<str>>) -> Self {
        Ends { name: remote.into(), other: Box::default(), bound: false }
    }

    /// With the other end, which the program has not named.
    pub(crate) fn with_other(self, other: impl Into<Box<str>>) -> Self {
        Ends { other: other.into(), ..self }
    }

    /// The one by which the program knows the connection: what it has bound or connected.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Ours.
    pub(crate) fn local(&self) -> &str {
        if self.bound { &self.name } else { &self.other }
    }

    /// The peer's.
    pub(crate) fn remote(&self) -> &str {
        if self.bound { &self.other } else { &self.name }
    }
}

/// Takes events. Called with the tap's lock held; must not block for long.
pub(crate) trait EventSink: Send {
    /// `event` with its values (a descriptor, an errno, an interval in milliseconds, numbers of
    /// messages), on this connection.
    fn event(&mut self, event: u32, values: &[u64], ends: &Ends);

    /// The socket is closed. Events may still come; the name that they were found by is free.
    fn release(&mut self);
}

/// Where a socket's events can be tapped.
#[derive(Default)]
pub(crate) struct Tap {
    mask: AtomicU32,
    /// Of few sockets there is one, so it takes one word of the others.
    sink: Mutex<Option<Box<Box<dyn EventSink>>>>,
}

impl Tap {
    /// Emits an event, if it is wanted.
    pub(crate) fn emit(&self, event: u32, value: u32, ends: &Ends) {
        self.emit_all(event, &[value.into()], ends);
    }

    /// Whether this event is wanted.
    pub(crate) fn wants(&self, event: u32) -> bool {
        self.mask.load(Relaxed) & event != 0
    }

    /// As `emit`, for any number of values.
    pub(crate) fn emit_all(&self, event: u32, values: &[u64], ends: &Ends) {
        if self.mask.load(Relaxed) & event != 0
            && let Some(sink) = &mut *lock(&self.sink)
        {
            sink.event(event, values, ends);
        }
    }

    /// The socket is closed. What lingers of it may still emit.
    pub(crate) fn release(&self) {
        if let Some(sink) = &mut *lock(&self.sink) {
            sink.release();
        }
    }

    /// From now on `sink` gets the events of `mask`. A former sink gets MONITOR_STOPPED.
    pub(crate) fn listen(&self, mask: u32, sink: Option<Box<dyn EventSink>>) {
        let former = {
            let mut place = lock(&self.sink);
            let former = place.take();
            let wanted = self.mask.swap(if sink.is_some() { mask } else { 0 }, Relaxed);
            *place = sink.map(Box::new);
            former.map(|sink| (sink, wanted))
        };
        if let Some((mut sink, wanted)) = former
            && wanted & event::MONITOR_STOPPED != 0
        {
            sink.event(event::MONITOR_STOPPED, &[0], &Ends::default());
        }
    }
}
