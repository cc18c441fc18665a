//! A connected endpoint: connects to the peer, and reconnects.

mod refusal;
mod tries;

use self::tries::Try;
use super::origin::Origin;
use super::wire::Wire;
use super::{EventLoop, EventSource, Resident, Site, relay};
use crate::conn::{Connection, Loss, News};
use crate::endpoint::Endpoint;
use crate::error::{Error, check_shortage};
use crate::monitor::{CONNECT_FAILED, Ends, event};
use crate::options::{
    Options, RECONNECT_STOP_AFTER_DISCONNECT, RECONNECT_STOP_CONN_REFUSED, RECONNECT_STOP_HANDSHAKE_FAILED,
};
use crate::transport::{self, CarrierFactory, ConnectRoute, ConnectTarget, Hop};
use std::net::SocketAddr;
use std::time::Duration;
use tautline_io::errno;
use tautline_io::fd::AsRawFd;
use tautline_io::net::{Address, Stream};
use tautline_io::reactor::{Event, Interest, Mode, Token};
use tautline_io::resolve;
use tautline_proto::socks::{Request, Socks};
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Event value: no descriptor was closed.
const NO_FD: u32 = u32::MAX;
/// Longest wait before a retry: the value of its event is a C int.
const LONGEST_WAIT: Duration = Duration::from_millis(i32::MAX as u64);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not connected, but trying. [`ConnectAttempts`] has the state of the attempt.
    Away,
    /// A stream exists and runs independently of the dialer.
    Up,
    /// The first attempt found no peer, and retries are off. As in libzmq, the pipe still accepts
    /// messages.
    Resting,
    /// The peer has refused the connection, but the socket has not noticed yet: the pipe still
    /// accepts messages.
    Refused,
    /// The dialer has given up. The program may still disconnect the endpoint.
    Stopped,
    /// The dialer has given up, and the endpoint counts as disconnected by the program.
    Gone,
}

struct DialerState {
    phase: Phase,
    /// The pipe's connection. With ZMQ_IMMEDIATE it exists only while a session is open.
    connection: Option<Arc<Connection>>,
    sessions: u32,
    /// State of the connection attempts, from the first attempt until the peer is connected.
    attempts: Option<Box<ConnectAttempts>>,
    /// The stream, from its handshake to its end.
    wire: Option<Arc<Wire>>,
    linger_timer: u64,
    lingering: bool,
}

impl DialerState {
    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Stopped | Phase::Gone)
    }

    /// True if the dialer is trying to connect, and waits only for a timer or for the resolver.
    fn is_waiting(&self) -> bool {
        let attempt = self.attempts.as_ref().map(|way| &way.attempt);
        self.phase == Phase::Away && matches!(attempt, None | Some(Attempt::Waiting))
    }

    /// True if the system is connecting.
    fn is_connecting(&self) -> bool {
        self.attempts.as_ref().is_some_and(|way| matches!(way.attempt, Attempt::Connecting(_)))
    }

    /// Takes the current attempt, which has ended.
    fn end_attempt(&mut self) -> Attempt {
        self.attempts.as_mut().map(|way| std::mem::take(&mut way.attempt)).unwrap_or_default()
    }
}

/// State of the connection attempts. A connected dialer has none.
#[derive(Default)]
struct ConnectAttempts {
    attempt: Attempt,
    /// Length of the last retry interval.
    interval: Option<Duration>,
    retry_timer: u64,
    /// Timer that limits the wait for a proxy.
    proxy_timer: u64,
    /// Addresses that are still untried, in reverse order.
    candidates: Vec<Address>,
    /// Timer that ends the head start of the last address being tried.
    next_timer: u64,
    source: Option<Box<SocketAddr>>,
    /// Request to the proxy, if the candidates are the addresses of a proxy.
    request: Option<Box<Request>>,
}

/// Stage of an attempt to connect.
#[derive(Default)]
enum Attempt {
    /// Waiting: for the first turn, for the resolver, or for the retry timer.
    #[default]
    Waiting,
    /// The system is connecting to at least one address.
    Connecting(Vec<Try>),
    /// A proxy was reached. The proxy will connect us to the peer.
    Asking(Arc<Stream>, Token, Box<Socks>),
}

/// A connected endpoint.
pub(crate) struct Dialer {
    site: Arc<Site>,
    options: Arc<Options>,
    /// The canonical text of the endpoint. A retry parses it, so no parsed form is kept.
    name: Arc<str>,
    /// WebSocket or TLS wrapper of the streams. `None` for plain ZMTP.
    carrying: Option<Box<Result<CarrierFactory, Error>>>,
    state: Mutex<DialerState>,
}

impl Dialer {
    /// Starts to connect to `target`, which the program gave as `given`, on the I/O thread.
    /// `connection` is the pipe's, unless ZMQ_IMMEDIATE postpones it.
    pub(crate) fn start(
        site: &Arc<Site>,
        options: Arc<Options>,
        target: ConnectTarget,
        given: Arc<str>,
        connection: Option<Arc<Connection>>,
    ) -> Arc<Self> {
        transport::forbid_loans_of_encrypted(&options);
        let ConnectTarget { endpoint, route, carrying } = target;
        let name = endpoint.to_string();
        let dialer = Arc::new(Dialer {
            site: site.clone(),
            carrying: carrying.transpose().map(Box::new),
            options,
            name: if *name == *given { given } else { name.into() },
            state: Mutex::new(DialerState {
                phase: Phase::Away,
                connection,
                sessions: 0,
                attempts: None,
                wire: None,
                linger_timer: 0,
                lingering: false,
            }),
        });
        site.enter(Resident::Dialer(dialer.clone()));
        let newborn = dialer.clone();
        site.driver.post(Box::new(move |turn| newborn.dial(turn, route)));
        dialer
    }

    /// The options in force when the endpoint was connected.
    pub(super) fn options(&self) -> &Arc<Options> {
        &self.options
    }

    /// The site of the socket that owns this endpoint.
    pub(super) fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// The wrapper of the streams. `None` for plain ZMTP.
    pub(super) fn carrying(&self) -> Result<Option<&CarrierFactory>, &Error> {
        self.carrying.as_deref().map(Result::as_ref).transpose()
    }

    /// The connection of the waiting pipe, and true if that connection had an earlier session.
    pub(super) fn connection(&self) -> Option<(Arc<Connection>, bool)> {
        let state = lock(&self.state);
        state.connection.clone().map(|connection| (connection, state.sessions > 1))
    }

    /// The connection of the pipe, if there is one now.
    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        lock(&self.state).connection.clone()
    }

    /// Stores the connection that a new session has made (ZMQ_IMMEDIATE).
    pub(super) fn adopt(&self, connection: Arc<Connection>) {
        lock(&self.state).connection = Some(connection);
    }

    /// True if the dialer has given up for good.
    pub(crate) fn is_stopped(&self) -> bool {
        let state = lock(&self.state);
        state.is_over() || state.phase == Phase::Refused
    }

    /// True if the dialer has given up and the endpoint counts as disconnected by the program.
    pub(crate) fn is_disconnected(&self) -> bool {
        lock(&self.state).phase == Phase::Gone
    }

    /// True if the endpoint was given up and only sends its queued messages.
    pub(super) fn is_lingering(&self) -> bool {
        lock(&self.state).lingering
    }

    /// True if lingering has no time limit.
    pub(super) fn lingers_for_ever(&self) -> bool {
        lock(&self.state).linger_timer == 0
    }

    /// Any thread: sends the queued messages for at most `linger` (`None`: without a limit), then
    /// stops.
    pub(crate) fn disconnect(self: &Arc<Self>, linger: Option<Duration>) {
        let dialer = self.clone();
        self.site.driver.post(Box::new(move |turn| dialer.linger(turn, linger)));
    }

    /// Sends the queued messages for at most `linger` (`None`: without a limit), then stops.
    pub(super) fn linger(self: &Arc<Self>, turn: &mut EventLoop, linger: Option<Duration>) {
        let mut pending = self.current().is_some_and(|connection| connection.has_unsent());
        let mut retries = self.options.reconnect_stop & RECONNECT_STOP_AFTER_DISCONNECT != 0;
        {
            let mut state = lock(&self.state);
            if state.is_over() || state.lingering {
                return;
            }
            retries &= state.is_waiting() && state.attempts.as_ref().is_some_and(|way| way.retry_timer != 0);
            // No peer will ever read these messages, so do not wait for them.
            pending &= !matches!(state.phase, Phase::Resting | Phase::Refused);
            state.lingering = true;
            if let Some(time) = linger {
                state.linger_timer = turn.set_timer(time, self);
            }
        }
        let wire = self.wire();
        // Wait for a handshake only if there are messages to send after it.
        if linger == Some(Duration::ZERO)
            || !pending && wire.as_ref().is_none_or(|wire| wire.connection().is_none())
        {
            if retries {
                // libzmq emits the event of one more attempt to signal that it gives up.
                self.emit(event::CLOSED, NO_FD);
            }
            return self.stop(turn);
        }
        if let Some(wire) = wire {
            wire.linger(turn, None);
        }
    }

    /// The dialer's stream, if there is one now.
    fn wire(&self) -> Option<Arc<Wire>> {
        lock(&self.state).wire.clone()
    }

    /// Stores the stream when its handshake begins.
    pub(super) fn store_stream(&self, wire: &Arc<Wire>) {
        lock(&self.state).wire = Some(wire.clone());
    }

    /// Drops the stream when it ends. A call of `handle_stream_end` follows.
    pub(super) fn drop_stream(&self) {
        let gone = lock(&self.state).wire.take();
        // Drop it after the lock is released: this may be the last reference to other objects.
        drop(gone);
    }

    /// Emits an event about an attempt. There is no stream at that time.
    fn emit(&self, event: u32, value: u32) {
        if self.site.events.wants(event) {
            self.site.events.emit(event, value, &Ends::connected(self.name.clone()));
        }
    }

    // ---- connecting

    /// Starts an attempt. The first one gets its route from the connect.
    fn dial(self: &Arc<Self>, turn: &mut EventLoop, route: Option<ConnectRoute>) {
        if lock(&self.state).is_over() {
            return;
        }
        if check_shortage().is_err() {
            return self.handle_attempt_failure(turn, errno::ENOMEM);
        }
        let route = route.map_or_else(|| self.find_route(), Ok);
        let ConnectRoute { source, hop, beyond } = match route {
            Ok(route) => route,
            Err(error) => return self.handle_address_failure(turn, error.errno(), None),
        };
        {
            let mut state = lock(&self.state);
            let way = state.attempts.get_or_insert_default();
            (way.source, way.request) = (source.map(Box::new), beyond.map(Box::new));
            way.candidates.clear();
        }
        match hop {
            Hop::Direct(address) => {
                lock(&self.state).attempts.get_or_insert_default().candidates.push(address);
                self.try_next(turn, errno::EHOSTUNREACH);
            }
            Hop::Resolve { host, port, family } => {
                // The system may take long. If the endpoint is given up before the answer, it ends
                // at once.
                let done = |dialer: Arc<Self>, resolved: resolve::LookupResult| {
                    let driver = dialer.site.driver.clone();
                    driver.post(Box::new(move |turn| dialer.handle_resolution(turn, resolved)));
                };
                let asked = turn.driver().resolver().resolve(host, port, family, self, done);
                if let Err(error) = asked {
                    self.handle_address_failure(turn, errno::of(&error).unwrap_or(0), None);
                }
            }
        }
    }

    /// Returns the route of a retry. A network interface may have changed since the last attempt.
    fn find_route(&self) -> Result<ConnectRoute, Error> {
        transport::route(&Endpoint::parse(&self.name)?, &self.options)
    }

    /// Called when a stream to the peer, or to the proxy before it, is connected. Abandons all
    /// other attempts.
    fn handle_reached(self: &Arc<Self>, turn: &mut EventLoop, stream: Arc<Stream>) {
        let others = lock(&self.state).end_attempt();
        others.abandon(turn, self);
        let request = lock(&self.state).attempts.as_ref().and_then(|way| way.request.clone());
        let Some(request) = request else { return self.begin_session(turn, stream) };
        match turn.register(self.clone(), stream.as_fd(), Interest::WRITE, Mode::Level) {
            Ok(token) => {
                // Limit the wait for a proxy that does not answer.
                let patience = self.options.connect_timeout.or(self.options.handshake_interval);
                let timer = patience.map_or(0, |time| turn.set_timer(time, self));
                let mut state = lock(&self.state);
                let way = state.attempts.get_or_insert_default();
                way.proxy_timer = timer;
                way.attempt = Attempt::Asking(stream, token, Box::new(Socks::new(*request)));
            }
            Err(error) => self.handle_address_failure(turn, errno::of(&error).unwrap_or(0), Some(stream)),
        }
    }

    /// Continues the SOCKS exchange with the proxy.
    fn ask(self: &Arc<Self>, turn: &mut EventLoop) {
        let (stream, token, outcome) = {
            let mut state = lock(&self.state);
            let Some(Attempt::Asking(stream, token, socks)) =
                state.attempts.as_mut().map(|way| &mut way.attempt)
            else {
                return;
            };
            let outcome = relay::advance(socks, stream);
            if let Ok(Some(interest)) = outcome {
                return turn.modify(*token, stream.as_fd(), interest, Mode::Level);
            }
            let over = (stream.clone(), *token, outcome);
            state.end_attempt();
            over
        };
        turn.unregister(token, stream.as_fd());
        match outcome {
            Ok(_) => self.begin_session(turn, stream),
            Err(errno) => self.handle_address_failure(turn, errno, Some(stream)),
        }
    }

    fn begin_session(self: &Arc<Self>, turn: &mut EventLoop, stream: Arc<Stream>) {
        if self.options.policy_settings.own_user_only && !stream.is_peer_own_user() {
            return self.deny(turn, stream);
        }
        let number = {
            let mut state = lock(&self.state);
            state.phase = Phase::Up;
            state.attempts = None;
            state.sessions += 1;
            state.sessions
        };
        let ends = transport::ends(&stream, &self.name, false);
        self.site.events.emit(event::CONNECTED, stream.as_fd().as_raw_fd() as u32, &ends);
        Wire::start(turn, Origin::Dialed(self.clone()), stream, ends, number);
    }

    /// Refuses a peer of another user, because the policy allows only connections to the own user.
    fn deny(self: &Arc<Self>, turn: &mut EventLoop, stream: Arc<Stream>) {
        let (name, peer) = (&self.name, transport::peer_name(&stream));
        if let Some(admission) = self.site.admission() {
            admission.report_stranger(name, &peer);
        }
        let why = format!("{peer} is a process of another user");
        let event = event::HANDSHAKE_FAILED_NO_DETAIL;
        self.site.events.emit_because(event, errno::EACCES as u32, &Ends::connected(name.clone()), &why);
        self.handle_address_failure(turn, errno::EACCES, Some(stream));
    }

    /// Called when connecting to an address, or resolving its name, has failed. Tries the next
    /// address.
    fn handle_address_failure(
        self: &Arc<Self>,
        turn: &mut EventLoop,
        errno: i32,
        stream: Option<Arc<Stream>>,
    ) {
        if let Some(stream) = stream {
            self.emit(event::CLOSED, stream.as_fd().as_raw_fd() as u32);
        }
        self.try_next(turn, errno);
    }

    /// Called when the attempt to connect has failed for all addresses.
    fn handle_attempt_failure(self: &Arc<Self>, turn: &mut EventLoop, errno: i32) {
        self.site.failed_connects.fetch_add(1, Relaxed);
        self.emit(CONNECT_FAILED, errno as u32);
        if errno == errno::ECONNREFUSED && self.options.reconnect_stop & RECONNECT_STOP_CONN_REFUSED != 0 {
            return self.stop_and_disconnect(turn);
        }
        self.retry(turn);
    }

    /// Called when the stream has ended.
    pub(super) fn handle_stream_end(self: Arc<Self>, turn: &mut EventLoop, opened: bool, why: Loss) {
        let stop = match why {
            Loss::Protocol(error) if error.is_retryable() => false,
            // The peer's bytes show that a retry would also fail.
            Loss::Protocol(_) => return self.handle_refusal(turn),
            Loss::Closed => true,
            // Observed of libzmq: only the program's own disconnect is a reason to stop, a lost
            // peer is not.
            _ if opened => {
                self.is_lingering() && self.options.reconnect_stop & RECONNECT_STOP_AFTER_DISCONNECT != 0
            }
            _ if self.options.reconnect_stop & RECONNECT_STOP_HANDSHAKE_FAILED != 0 => {
                return self.handle_refusal(turn);
            }
            _ => false,
        };
        if stop {
            return self.stop(turn);
        }
        let gone = {
            let mut state = lock(&self.state);
            state.phase = Phase::Away;
            if self.options.immediate { state.connection.take() } else { None }
        };
        if let Some(connection) = gone {
            connection.finish();
        } else if opened
            && !self.options.effective_hiccup_msg().is_empty()
            && let Some(connection) = self.current()
        {
            connection.inbox.push(News::Interrupted(connection.clone()));
        }
        let pending = self.current().is_some_and(|connection| connection.has_unsent());
        if self.is_lingering() && !pending {
            return self.stop(turn);
        }
        self.retry(turn);
    }

    fn retry(self: &Arc<Self>, turn: &mut EventLoop) {
        // Observed of libzmq: an interval of 0 means no retry, and the maximum counts even if it is
        // below the first interval.
        let Some(base) = self.options.reconnect_interval.filter(|base| !base.is_zero()) else {
            return self.stop_retrying(turn);
        };
        let wait = {
            let mut state = lock(&self.state);
            state.phase = Phase::Away;
            let way = state.attempts.get_or_insert_default();
            let wait = match self.options.reconnect_interval_max {
                Some(max) => way.interval.map_or(base, |last| last * 2).min(max),
                None => with_jitter(base),
            };
            way.interval = Some(wait);
            way.attempt = Attempt::Waiting;
            wait
        };
        self.emit(event::CONNECT_RETRIED, wait.as_millis() as u32);
        let key = turn.set_timer(wait, self);
        lock(&self.state).attempts.get_or_insert_default().retry_timer = key;
    }

    /// Stops retrying.
    fn stop_retrying(self: &Arc<Self>, turn: &mut EventLoop) {
        let hopeless = {
            let mut state = lock(&self.state);
            let hopeless = state.lingering || state.sessions > 0;
            if !hopeless {
                state.phase = Phase::Resting;
            }
            hopeless
        };
        if hopeless {
            self.stop_and_disconnect(turn);
        }
    }

    /// Gives up for good. As in libzmq, the program may still disconnect the endpoint.
    pub(super) fn stop(self: &Arc<Self>, turn: &mut EventLoop) {
        self.give_up(turn, Phase::Stopped);
    }

    /// Gives up for good, with the same effect as if the program had disconnected it.
    fn stop_and_disconnect(self: &Arc<Self>, turn: &mut EventLoop) {
        self.give_up(turn, Phase::Gone);
    }

    fn give_up(self: &Arc<Self>, turn: &mut EventLoop, phase: Phase) {
        let (attempt, connection) = {
            let mut state = lock(&self.state);
            if state.is_over() {
                return;
            }
            state.phase = phase;
            (state.end_attempt(), state.connection.take())
        };
        attempt.abandon(turn, self);
        if let Some(wire) = self.wire() {
            wire.end(turn, Loss::Closed);
        }
        if let Some(connection) = connection {
            connection.finish();
        }
        self.site.leave(&Resident::Dialer(self.clone()));
    }
}

/// Adds a random part of `base`, so that the peers of a restarted server do not reconnect all at
/// once.
fn with_jitter(base: Duration) -> Duration {
    let mut bytes = [0; 4];
    if tautline_io::random::fill(&mut bytes).is_err() {
        return base;
    }
    let part = f64::from(u32::from_ne_bytes(bytes)) / (f64::from(u32::MAX) + 1.0);
    (base + base.mul_f64(part)).min(LONGEST_WAIT)
}

impl EventSource for Dialer {
    fn needs_timer(&self, key: u64) -> bool {
        let state = lock(&self.state);
        key == state.linger_timer || state.attempts.as_ref().is_some_and(|way| way.has_timer(key))
    }

    fn on_ready(self: Arc<Self>, turn: &mut EventLoop, event: &Event) {
        if lock(&self.state).is_connecting() {
            self.handle_try_end(turn, event.token);
        } else {
            self.ask(turn);
        }
    }

    fn on_timer(self: Arc<Self>, turn: &mut EventLoop, key: u64) {
        enum Due {
            Retry,
            Stop,
            Next,
            GiveUp(Arc<Stream>, Token),
        }
        let due = {
            let state = &mut *lock(&self.state);
            let (waiting, connecting) = (state.is_waiting(), state.is_connecting());
            match &mut state.attempts {
                _ if key == state.linger_timer => Due::Stop,
                Some(way) if key == way.retry_timer && state.phase == Phase::Refused => Due::Stop,
                Some(way) if key == way.retry_timer && waiting => Due::Retry,
                Some(way) if key == way.next_timer && connecting => Due::Next,
                Some(way) => match way.attempt.take_expired(key, way.proxy_timer) {
                    Some((stream, token)) => Due::GiveUp(stream, token),
                    None => return,
                },
                _ => return,
            }
        };
        match due {
            Due::Retry => self.dial(turn, None),
            Due::Stop => self.stop(turn),
            Due::Next => self.try_next(turn, errno::ETIMEDOUT),
            Due::GiveUp(stream, token) => {
                turn.unregister(token, stream.as_fd());
                self.handle_address_failure(turn, errno::ETIMEDOUT, Some(stream));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_interval_with_jitter_stays_a_c_int() {
        for _ in 0..100 {
            assert_eq!(with_jitter(LONGEST_WAIT), LONGEST_WAIT);
            let wait = with_jitter(Duration::from_millis(100));
            assert!(wait >= Duration::from_millis(100) && wait < Duration::from_millis(200));
        }
    }
}
