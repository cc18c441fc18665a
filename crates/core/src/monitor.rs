//! Socket events: reports about a socket's connections to a listener (zmq_socket_monitor(3)).
//!
//! The I/O side and the socket emit events. A sink, which the socket layer provides, turns them
//! into messages. Without a listener an event costs one load.

use std::sync::Arc;
pub(crate) use tautline_config::event;
pub use tautline_config::event::{CONNECT_FAILED, LOST};
use tautline_queue::sync::atomic::AtomicU32;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Mutex, lock};

/// The two ends of a connection, as endpoints. Each may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ends {
    /// The endpoint that the program has bound or connected.
    name: Arc<str>,
    other: Box<str>,
    /// True if the local end is a bound endpoint.
    bound: bool,
}

impl Ends {
    /// Ends of a bound endpoint.
    pub(crate) fn bound(local: impl Into<Arc<str>>) -> Self {
        Ends { name: local.into(), other: Box::default(), bound: true }
    }

    /// Ends of a connected endpoint.
    pub(crate) fn connected(remote: impl Into<Arc<str>>) -> Self {
        Ends { name: remote.into(), other: Box::default(), bound: false }
    }

    /// Adds the other end, which the program has not named.
    pub(crate) fn with_other(self, other: impl Into<Box<str>>) -> Self {
        Ends { other: other.into(), ..self }
    }

    /// The endpoint that the program has bound or connected.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The local end.
    pub(crate) fn local(&self) -> &str {
        if self.bound { &self.name } else { &self.other }
    }

    /// The peer's end.
    pub(crate) fn remote(&self) -> &str {
        if self.bound { &self.other } else { &self.name }
    }
}

/// Credentials of a peer whose handshake has failed, and the ZAP handler's reply about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The name of the mechanism.
    pub(crate) mechanism: &'static str,
    /// The peer's key or user name. Empty for NULL.
    pub(crate) name: Vec<u8>,
    /// Reason of the refusal. May be empty.
    pub(crate) reason: Vec<u8>,
}

/// Information about an event in addition to its values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EventDetails<'a> {
    /// Credentials of a peer whose handshake has failed.
    pub(crate) claim: Option<&'a Claim>,
    /// The peer of a connection that is or was in use.
    pub(crate) peer: KnownPeer<'a>,
    /// Cause of the event, if its own value does not give it: another event and its value.
    pub(crate) cause: Option<(u32, u64)>,
    /// The rule or limit of the policy behind the event. May be empty.
    pub(crate) why: &'a str,
    /// Reason in words, in place of the text for the value. May be empty.
    pub(crate) words: &'a str,
    /// Socket type of a peer that may not talk to this socket. May be empty.
    pub(crate) peer_type: &'static str,
    /// True if a connection is lost because the peer was silent for too long.
    pub(crate) is_silent: bool,
    /// Start of the session that has ended, in microseconds since 1970; 0 if no session was open.
    pub(crate) since: u64,
}

impl EventDetails<'_> {
    /// Returns the reason of an event with this value in words. Empty if there is no reason.
    pub(crate) fn reason(&self, event: u32, value: u64) -> String {
        let (cause, value) = self.cause.unwrap_or((event, value));
        let mut reason =
            if self.words.is_empty() { event::reason(cause, value) } else { self.words.to_owned() };
        if !self.why.is_empty() {
            reason.push_str(if reason.is_empty() { "" } else { ": " });
            reason.push_str(self.why);
        }
        reason
    }
}

/// Known facts about a peer. Each may be empty.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownPeer<'a> {
    /// The peer's own routing id, up to the first NUL.
    pub(crate) routing_id: &'a [u8],
    /// The peer's address, as in the metadata of its messages.
    pub(crate) host: &'a [u8],
    /// The user id from the authentication handler.
    pub(crate) user_id: &'a [u8],
}

/// Receives events. Called with the tap's lock held; must not block for long.
pub(crate) trait EventSink: Send {
    /// Handles `event` with its values (a descriptor, an errno, an interval in milliseconds,
    /// numbers of messages), on this connection.
    fn report_event(&mut self, event: u32, values: &[u64], ends: &Ends, about: &EventDetails<'_>);

    /// Handles the close of the socket. More events may follow. The name of the event endpoint is
    /// freed.
    fn release(&mut self);
}

/// An event for an observer.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// One of the numbers in `zmq.h`, or [`CONNECT_FAILED`] or [`LOST`].
    pub event: u32,
    /// First value of the event: an errno, an interval in milliseconds, a code.
    pub value: u64,
    /// Our end, as an endpoint. May be empty.
    pub local: &'a str,
    /// The peer's end. May be empty.
    pub remote: &'a str,
    /// The endpoint that the program has bound or connected.
    pub endpoint: &'a str,
    about: &'a EventDetails<'a>,
}

impl Observed<'_> {
    /// Returns the socket type that the peer announced, if it may not talk to this socket; else an
    /// empty text.
    pub fn peer_type(&self) -> &'static str {
        self.about.peer_type
    }

    /// Returns the start of the session that has ended, in microseconds since 1970; 0 if no session
    /// was open.
    pub fn since(&self) -> u64 {
        self.about.since
    }

    /// True if the connection is lost because the peer was silent for too long.
    pub fn is_silent(&self) -> bool {
        self.about.is_silent
    }

    /// Returns the reason of the event in words, with the reply of an authentication handler. Empty
    /// if there is no reason.
    pub fn reason(&self) -> String {
        let mut reason = self.about.reason(self.event, self.value);
        if let Some(claim) = self.about.claim.filter(|claim| !claim.reason.is_empty()) {
            reason.push_str(if reason.is_empty() { "" } else { ": " });
            reason.push_str(&String::from_utf8_lossy(&claim.reason));
        }
        reason
    }
}

/// Receives all events except queue statistics, to show them outside the process. Called by any
/// thread, which may hold locks of the engine: it must neither wait nor call the socket.
pub trait EventReport: Send + Sync {
    /// Handles an event.
    fn event(&self, event: &Observed<'_>);
}

/// Receives events in addition to any monitor, for logs. Called by I/O threads and by the socket's
/// own thread, which hold locks of the engine: it must neither wait nor call the socket.
pub type Observer = dyn Fn(&Observed<'_>) + Send + Sync;

const OWN: u32 = CONNECT_FAILED | LOST;
/// Events for an observer.
const OBSERVED: u32 = !(event::PIPES_STATS | event::MONITOR_STOPPED | event::DISCONNECTED);

/// Events for a report.
const REPORTED: u32 = !(event::PIPES_STATS | event::MONITOR_STOPPED);

/// Distributor of a socket's events.
#[derive(Default)]
pub(crate) struct EventDispatcher {
    /// Events that any listener wants.
    // Relaxed: look: the delivery is under the lock. An event while a listener is being added may
    // be delivered or not.
    mask: AtomicU32,
    /// Few sockets have listeners, so the others need only one word for them.
    listeners: Mutex<Option<Box<Listeners>>>,
}

#[derive(Default)]
struct Listeners {
    monitor: Option<Box<dyn EventSink>>,
    /// Events that the monitor wants.
    wanted: u32,
    observer: Option<Arc<Observer>>,
    report: Option<Arc<dyn EventReport>>,
}

impl EventDispatcher {
    /// Emits an event, if a listener wants it.
    pub(crate) fn emit(&self, event: u32, value: u32, ends: &Ends) {
        self.emit_all(event, &[value.into()], ends);
    }

    /// Emits an event with further information, if a listener wants it.
    pub(crate) fn emit_about(&self, event: u32, value: u32, ends: &Ends, about: &EventDetails<'_>) {
        if self.wants(event) {
            self.dispatch(event, &[value.into()], ends, about);
        }
    }

    /// Emits an event with a rule or a limit as the reason, if a listener wants it.
    pub(crate) fn emit_because(&self, event: u32, value: u32, ends: &Ends, why: &str) {
        self.emit_about(event, value, ends, &EventDetails { why, ..EventDetails::default() });
    }

    /// True if a listener wants this event.
    pub(crate) fn wants(&self, event: u32) -> bool {
        self.mask.load(Relaxed) & event != 0
    }

    /// Emits an event with any number of values, if a listener wants it.
    pub(crate) fn emit_all(&self, event: u32, values: &[u64], ends: &Ends) {
        if self.wants(event) {
            self.dispatch(event, values, ends, &EventDetails::default());
        }
    }

    #[cold]
    fn dispatch(&self, event: u32, values: &[u64], ends: &Ends, about: &EventDetails<'_>) {
        let value = values.first().copied().unwrap_or(0);
        let (local, remote) = (ends.local(), ends.remote());
        let observed = Observed { event, value, local, remote, endpoint: ends.name(), about };
        let observer = {
            let mut listeners = lock(&self.listeners);
            let Some(listeners) = &mut *listeners else { return };
            if listeners.wanted & event != 0
                && let Some(monitor) = &mut listeners.monitor
            {
                monitor.report_event(event, values, ends, about);
            }
            if REPORTED & event != 0
                && let Some(report) = &listeners.report
            {
                report.event(&observed);
            }
            listeners.observer.clone()
        };
        // Call it without the lock: the observer is code of the program.
        if OBSERVED & event != 0
            && let Some(observer) = observer
        {
            observer(&observed);
        }
    }

    /// Handles the close of the socket. Lingering connections may still emit events.
    pub(crate) fn release(&self) {
        if let Some(monitor) = lock(&self.listeners).as_mut().and_then(|listeners| listeners.monitor.as_mut())
        {
            monitor.release();
        }
    }

    /// Sends the events of `wanted` to `sink` from now on. A former sink gets MONITOR_STOPPED.
    pub(crate) fn listen(&self, wanted: u32, sink: Option<Box<dyn EventSink>>) {
        let former = {
            let mut place = lock(&self.listeners);
            if sink.is_none() && place.is_none() {
                return;
            }
            let listeners = place.get_or_insert_default();
            let wanted = if sink.is_some() { wanted & !OWN } else { 0 };
            let before = std::mem::replace(&mut listeners.wanted, wanted);
            let former = std::mem::replace(&mut listeners.monitor, sink);
            self.adjust(listeners);
            former.map(|sink| (sink, before))
        };
        if let Some((mut sink, wanted)) = former
            && wanted & event::MONITOR_STOPPED != 0
        {
            sink.report_event(event::MONITOR_STOPPED, &[0], &Ends::default(), &EventDetails::default());
        }
    }

    /// Sends events also to `observer` from now on.
    pub(crate) fn observe(&self, observer: Arc<Observer>) {
        let mut place = lock(&self.listeners);
        let listeners = place.get_or_insert_default();
        listeners.observer = Some(observer);
        self.adjust(listeners);
    }

    /// Sends events also to `report` from now on.
    pub(crate) fn report_to(&self, report: Arc<dyn EventReport>) {
        let mut place = lock(&self.listeners);
        let listeners = place.get_or_insert_default();
        listeners.report = Some(report);
        self.adjust(listeners);
    }

    fn adjust(&self, listeners: &Listeners) {
        let observed = if listeners.observer.is_some() { OBSERVED } else { 0 };
        let reported = if listeners.report.is_some() { REPORTED } else { 0 };
        self.mask.store(listeners.wanted | observed | reported, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sink(Arc<Mutex<Vec<u32>>>);

    impl EventSink for Sink {
        fn report_event(&mut self, event: u32, _: &[u64], _: &Ends, _: &EventDetails<'_>) {
            lock(&self.0).push(event);
        }

        fn release(&mut self) {}
    }

    #[test]
    fn observer_gets_events_in_addition_to_monitor() {
        let tap = EventDispatcher::default();
        let (seen, told) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let place = seen.clone();
        tap.emit(event::CLOSED, 0, &Ends::default());
        assert!(!tap.wants(u32::MAX));
        tap.observe(Arc::new(move |observed| lock(&place).push((observed.event, observed.value))));
        tap.listen(u32::MAX, Some(Box::new(Sink(told.clone()))));
        let ends = Ends::connected("tcp://there");
        for event in [event::CONNECTED, CONNECT_FAILED, event::DISCONNECTED, LOST, event::PIPES_STATS] {
            tap.emit(event, 7, &ends);
        }
        tap.listen(0, None);
        assert!(!tap.wants(event::PIPES_STATS) && tap.wants(LOST));
        tap.emit(event::ACCEPTED, 8, &ends);
        assert_eq!(
            *lock(&seen),
            [(event::CONNECTED, 7), (CONNECT_FAILED, 7), (LOST, 7), (event::ACCEPTED, 8)]
        );
        let stopped = event::MONITOR_STOPPED;
        assert_eq!(*lock(&told), [event::CONNECTED, event::DISCONNECTED, event::PIPES_STATS, stopped]);
    }
}
