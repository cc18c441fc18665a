//! A connected endpoint: finds the peer, and finds it again.

mod refusal;
mod tries;

use std::time::Duration;

use self::tries::Try;
use super::origin::Origin;
use super::wire::Wire;
use super::{Resident, Site, Source, Turn, relay};
use crate::conn::{Connection, Loss, News};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::monitor::{CONNECT_FAILED, Ends, event};
use crate::options::{
    Options, RECONNECT_STOP_AFTER_DISCONNECT, RECONNECT_STOP_CONN_REFUSED, RECONNECT_STOP_HANDSHAKE_FAILED,
};
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, Mutex, lock};
use crate::transport::{self, Carrying, Hop, Route};
use std::net::SocketAddr;
use tautline_io::errno;
use tautline_io::fd::AsRawFd;
use tautline_io::net::{Address, Stream};
use tautline_io::reactor::{Event, Interest, Mode, Token};
use tautline_io::resolve;
use tautline_proto::socks::{Request, Socks};

/// In an event: no descriptor was closed.
const NO_FD: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// On the way: what it is doing about that is in [`Way`].
    Away,
    /// A stream is there; it looks after itself.
    Up,
    /// There was no peer, and there is no second try. As in libzmq, messages are still taken.
    Resting,
    /// The peer has refused the connection, and the socket does not act on it yet: messages are
    /// still taken.
    Refused,
    /// Given up. The program may still disconnect it.
    Stopped,
    /// Given up, and as if it had been disconnected.
    Gone,
}

struct State {
    phase: Phase,
    /// The pipe's connection; with ZMQ_IMMEDIATE there is one only while a session is open.
    connection: Option<Arc<Connection>>,
    sessions: u32,
    /// How the peer may be reached, from the first attempt until it is.
    way: Option<Box<Way>>,
    /// The stream, from its handshake to its end.
    wire: Option<Arc<Wire>>,
    linger_timer: u64,
    lingering: bool,
}

impl State {
    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Stopped | Phase::Gone)
    }

    /// Whether it is on the way, and nothing but time or the resolver can bring it further.
    fn is_waiting(&self) -> bool {
        let attempt = self.way.as_ref().map(|way| &way.attempt);
        self.phase == Phase::Away && matches!(attempt, None | Some(Attempt::Waiting))
    }

    /// Whether the system is connecting.
    fn is_connecting(&self) -> bool {
        self.way.as_ref().is_some_and(|way| matches!(way.attempt, Attempt::Connecting(_)))
    }

    /// The attempt under way, which is over now.
    fn end_attempt(&mut self) -> Attempt {
        self.way.as_mut().map(|way| std::mem::take(&mut way.attempt)).unwrap_or_default()
    }
}

/// How the peer may be reached. What is connected does without.
#[derive(Default)]
struct Way {
    attempt: Attempt,
    /// The interval last waited for.
    interval: Option<Duration>,
    retry_timer: u64,
    /// Ends the patience with a proxy.
    proxy_timer: u64,
    /// Addresses still to be tried, the last one first.
    candidates: Vec<Address>,
    /// Ends the head start of the last one that is tried.
    next_timer: u64,
    source: Option<Box<SocketAddr>>,
    /// What a proxy is asked for, if the candidates are one.
    request: Option<Box<Request>>,
}

/// How far an attempt to connect has come.
#[derive(Default)]
enum Attempt {
    /// Waiting: for the first turn, for the resolver, or for the time to try again.
    #[default]
    Waiting,
    /// The system is connecting, to one address or to several; never to none.
    Connecting(Vec<Try>),
    /// A proxy was reached; it is to lead to the peer.
    Asking(Arc<Stream>, Token, Box<Socks>),
}

/// A connected endpoint.
pub(crate) struct Dialer {
    site: Arc<Site>,
    options: Arc<Options>,
    /// The text it was given as: read anew for each attempt, so nothing else of it is kept.
    given: Arc<str>,
    /// How streams carry ZMTP, unless as it is, which they mostly do.
    carrying: Option<Box<Result<Carrying, Error>>>,
    state: Mutex<State>,
}

impl Dialer {
    /// Has the I/O thread connect to `given`. `connection` is the pipe's, unless ZMQ_IMMEDIATE
    /// postpones it.
    pub(crate) fn start(
        site: &Arc<Site>,
        options: Arc<Options>,
        carrying: Result<Option<Carrying>, Error>,
        given: Arc<str>,
        connection: Option<Arc<Connection>>,
    ) -> Arc<Self> {
        let dialer = Arc::new(Dialer {
            site: site.clone(),
            carrying: carrying.transpose().map(Box::new),
            options,
            given,
            state: Mutex::new(State {
                phase: Phase::Away,
                connection,
                sessions: 0,
                way: None,
                wire: None,
                linger_timer: 0,
                lingering: false,
            }),
        });
        site.enter(Resident::Dialer(dialer.clone()));
        let newborn = dialer.clone();
        site.driver.post(Box::new(move |turn| newborn.dial(turn)));
        dialer
    }

    /// The options in force when the endpoint was connected.
    pub(super) fn options(&self) -> &Arc<Options> {
        &self.options
    }

    /// The socket that it belongs to.
    pub(super) fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// How streams carry ZMTP, unless as it is.
    pub(super) fn carrying(&self) -> Result<Option<&Carrying>, &Error> {
        self.carrying.as_deref().map(Result::as_ref).transpose()
    }

    /// The canonical text of the endpoint.
    fn name(&self) -> Arc<str> {
        match transport::parse(&self.given).map(|endpoint| endpoint.to_string()) {
            Ok(name) if *name != *self.given => name.into(),
            _ => self.given.clone(),
        }
    }

    /// The connection of the waiting pipe, and whether it had a session before this one.
    pub(super) fn connection(&self) -> Option<(Arc<Connection>, bool)> {
        let state = lock(&self.state);
        state.connection.clone().map(|connection| (connection, state.sessions > 1))
    }

    /// The connection of the pipe, if there is one now.
    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        lock(&self.state).connection.clone()
    }

    /// With ZMQ_IMMEDIATE: the session that begins has made a connection.
    pub(super) fn adopt(&self, connection: Arc<Connection>) {
        lock(&self.state).connection = Some(connection);
    }

    /// Whether it has given up for good.
    pub(crate) fn is_stopped(&self) -> bool {
        let state = lock(&self.state);
        state.is_over() || state.phase == Phase::Refused
    }

    /// Whether it is also as if it had been disconnected.
    pub(crate) fn has_left(&self) -> bool {
        lock(&self.state).phase == Phase::Gone
    }

    /// Whether the endpoint was given up and only sends what is queued.
    pub(super) fn is_lingering(&self) -> bool {
        lock(&self.state).lingering
    }

    /// Whether there is no limit to that.
    pub(super) fn lingers_for_ever(&self) -> bool {
        lock(&self.state).linger_timer == 0
    }

    /// The endpoint was disconnected: as `linger`, from any thread.
    pub(crate) fn disconnect(self: &Arc<Self>, linger: Option<Duration>) {
        let dialer = self.clone();
        self.site.driver.post(Box::new(move |turn| dialer.linger(turn, linger)));
    }

    /// Sends what is queued, for at most `linger` (`None`: without a limit), then stops.
    pub(super) fn linger(self: &Arc<Self>, turn: &mut Turn, linger: Option<Duration>) {
        let mut pending = self.current().is_some_and(|connection| connection.has_pending());
        let mut retries = self.options.reconnect_stop & RECONNECT_STOP_AFTER_DISCONNECT != 0;
        {
            let mut state = lock(&self.state);
            if state.is_over() || state.lingering {
                return;
            }
            retries &= state.is_waiting() && state.way.as_ref().is_some_and(|way| way.retry_timer != 0);
            // What no peer will ever take is not worth waiting for.
            pending &= !matches!(state.phase, Phase::Resting | Phase::Refused);
            state.lingering = true;
            if let Some(time) = linger {
                state.linger_timer = turn.after(time, self);
            }
        }
        let wire = self.wire();
        // A handshake is worth waiting for only if there is something to send afterwards.
        if linger == Some(Duration::ZERO)
            || !pending && wire.as_ref().is_none_or(|wire| wire.connection().is_none())
        {
            if retries {
                // libzmq's sign that it does not try again is the event of one more attempt.
                self.emit(event::CLOSED, NO_FD);
            }
            return self.stop(turn);
        }
        if let Some(wire) = wire {
            wire.linger(turn, None);
        }
    }

    /// The stream that it has made, if there is one now.
    fn wire(&self) -> Option<Arc<Wire>> {
        lock(&self.state).wire.clone()
    }

    /// A stream begins its handshake.
    pub(super) fn begun(&self, wire: &Arc<Wire>) {
        lock(&self.state).wire = Some(wire.clone());
    }

    /// It has come to its end; `lost` follows.
    pub(super) fn ended(&self) {
        let gone = lock(&self.state).wire.take();
        // Not with the lock held: what it holds may be the last of its kind.
        drop(gone);
    }

    /// Tells of an attempt. There is no stream then.
    fn emit(&self, event: u32, value: u32) {
        if self.site.tap.wants(event) {
            self.site.tap.emit(event, value, &Ends::connected(self.name()));
        }
    }

    // ---- connecting

    fn dial(self: &Arc<Self>, turn: &mut Turn) {
        if lock(&self.state).is_over() {
            return;
        }
        let route =
            transport::parse(&self.given).and_then(|endpoint| transport::route(&endpoint, &self.options));
        let Route { source, hop, beyond } = match route {
            Ok(route) => route,
            Err(error) => return self.failed(turn, error.errno(), None),
        };
        {
            let mut state = lock(&self.state);
            let way = state.way.get_or_insert_default();
            (way.source, way.request) = (source.map(Box::new), beyond.map(Box::new));
            way.candidates.clear();
        }
        match hop {
            Hop::Direct(address) => {
                lock(&self.state).way.get_or_insert_default().candidates.push(address);
                self.try_next(turn, errno::EHOSTUNREACH);
            }
            Hop::Resolve { host, port, family } => {
                // The system may take long. An endpoint that is given up meanwhile is gone at once.
                let done = |dialer: Arc<Self>, resolved: resolve::Outcome| {
                    let driver = dialer.site.driver.clone();
                    driver.post(Box::new(move |turn| dialer.resolved(turn, resolved)));
                };
                let asked = turn.driver().resolver().resolve(host, port, family, self, done);
                if let Err(error) = asked {
                    self.failed(turn, errno::of(&error).unwrap_or(0), None);
                }
            }
        }
    }

    /// The peer is reached, or the proxy before it. Others that are being tried are not needed.
    fn arrived(self: &Arc<Self>, turn: &mut Turn, stream: Arc<Stream>) {
        let others = lock(&self.state).end_attempt();
        others.abandon(turn, self);
        let request = lock(&self.state).way.as_ref().and_then(|way| way.request.clone());
        let Some(request) = request else { return self.connected(turn, stream) };
        match turn.register(self.clone(), stream.as_fd(), Interest::WRITE, Mode::Level) {
            Ok(token) => {
                // A proxy that says nothing is not waited for for ever.
                let patience = self.options.connect_timeout.or(self.options.handshake_interval);
                let timer = patience.map_or(0, |time| turn.after(time, self));
                let mut state = lock(&self.state);
                let way = state.way.get_or_insert_default();
                way.proxy_timer = timer;
                way.attempt = Attempt::Asking(stream, token, Box::new(Socks::new(*request)));
            }
            Err(error) => self.failed(turn, errno::of(&error).unwrap_or(0), Some(stream)),
        }
    }

    /// Goes on asking the proxy.
    fn ask(self: &Arc<Self>, turn: &mut Turn) {
        let (stream, token, outcome) = {
            let mut state = lock(&self.state);
            let Some(Attempt::Asking(stream, token, socks)) = state.way.as_mut().map(|way| &mut way.attempt)
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
            Ok(_) => self.connected(turn, stream),
            Err(errno) => self.failed(turn, errno, Some(stream)),
        }
    }

    fn connected(self: &Arc<Self>, turn: &mut Turn, stream: Arc<Stream>) {
        if self.options.by_policy.own_user_only && !stream.is_of_own_user() {
            return self.deny(turn, stream);
        }
        let number = {
            let mut state = lock(&self.state);
            state.phase = Phase::Up;
            state.way = None;
            state.sessions += 1;
            state.sessions
        };
        let ends = transport::ends(&stream, &self.name(), false);
        self.site.tap.emit(event::CONNECTED, stream.as_fd().as_raw_fd() as u32, &ends);
        Wire::start(turn, Origin::Dialed(self.clone()), stream, ends, number);
    }

    /// The policy lets it connect to its own user only, and another one is there.
    fn deny(self: &Arc<Self>, turn: &mut Turn, stream: Arc<Stream>) {
        let (name, peer) = (self.name(), transport::peer_name(&stream));
        if let Some(guard) = self.site.guard() {
            guard.tell_of_stranger(&name, &peer);
        }
        let why = format!("{peer} is another user");
        let event = event::HANDSHAKE_FAILED_NO_DETAIL;
        self.site.tap.emit_because(event, errno::EACCES as u32, &Ends::connected(name), &why);
        self.failed(turn, errno::EACCES, Some(stream));
    }

    /// An address, or the name of it, has led nowhere.
    fn failed(self: &Arc<Self>, turn: &mut Turn, errno: i32, stream: Option<Arc<Stream>>) {
        if let Some(stream) = stream {
            self.emit(event::CLOSED, stream.as_fd().as_raw_fd() as u32);
        }
        self.try_next(turn, errno);
    }

    /// The attempt to connect has failed.
    fn exhausted(self: &Arc<Self>, turn: &mut Turn, errno: i32) {
        self.site.failed_connects.fetch_add(1, Relaxed);
        self.emit(CONNECT_FAILED, errno as u32);
        if errno == errno::ECONNREFUSED && self.options.reconnect_stop & RECONNECT_STOP_CONN_REFUSED != 0 {
            return self.leave(turn);
        }
        self.retry(turn);
    }

    /// The stream has ended.
    pub(super) fn lost(self: Arc<Self>, turn: &mut Turn, opened: bool, why: Loss) {
        let stop = match why {
            Loss::Protocol(error) if error.may_pass() => false,
            // What the peer said shows that it will not get better.
            Loss::Protocol(_) => return self.refused(turn),
            Loss::Closed => true,
            // Observed of libzmq: only the program's own disconnect is a reason, not a lost peer.
            _ if opened => {
                self.is_lingering() && self.options.reconnect_stop & RECONNECT_STOP_AFTER_DISCONNECT != 0
            }
            _ if self.options.reconnect_stop & RECONNECT_STOP_HANDSHAKE_FAILED != 0 => {
                return self.refused(turn);
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
            && !self.options.hiccup().is_empty()
            && let Some(connection) = self.current()
        {
            connection.push_news(News::Interrupted(connection.clone()));
        }
        let pending = self.current().is_some_and(|connection| connection.has_pending());
        if self.is_lingering() && !pending {
            return self.stop(turn);
        }
        self.retry(turn);
    }

    fn retry(self: &Arc<Self>, turn: &mut Turn) {
        // Observed of libzmq: 0 is no interval, and the longest counts also if it is below the
        // first.
        let Some(base) = self.options.reconnect_interval.filter(|base| !base.is_zero()) else {
            return self.rest(turn);
        };
        let wait = {
            let mut state = lock(&self.state);
            state.phase = Phase::Away;
            let way = state.way.get_or_insert_default();
            let wait = match self.options.reconnect_interval_max {
                Some(max) => way.interval.map_or(base, |last| last * 2).min(max),
                None => base + jitter(base),
            };
            way.interval = Some(wait);
            way.attempt = Attempt::Waiting;
            wait
        };
        self.emit(event::CONNECT_RETRIED, wait.as_millis() as u32);
        let key = turn.after(wait, self);
        lock(&self.state).way.get_or_insert_default().retry_timer = key;
    }

    /// Does not try again.
    fn rest(self: &Arc<Self>, turn: &mut Turn) {
        let hopeless = {
            let mut state = lock(&self.state);
            let hopeless = state.lingering || state.sessions > 0;
            if !hopeless {
                state.phase = Phase::Resting;
            }
            hopeless
        };
        if hopeless {
            self.leave(turn);
        }
    }

    /// Gives up for good. The endpoint keeps its name, as in libzmq: it may be disconnected.
    pub(super) fn stop(self: &Arc<Self>, turn: &mut Turn) {
        self.give_up(turn, Phase::Stopped);
    }

    /// Gives up for good, as if the program had disconnected it.
    fn leave(self: &Arc<Self>, turn: &mut Turn) {
        self.give_up(turn, Phase::Gone);
    }

    fn give_up(self: &Arc<Self>, turn: &mut Turn, phase: Phase) {
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

/// A random part of `base`, so that the peers of a restarted server do not come all at once.
fn jitter(base: Duration) -> Duration {
    let mut bytes = [0; 4];
    if tautline_io::random::fill(&mut bytes).is_err() {
        return Duration::ZERO;
    }
    base.mul_f64(f64::from(u32::from_ne_bytes(bytes)) / (f64::from(u32::MAX) + 1.0))
}

impl Source for Dialer {
    fn ready(self: Arc<Self>, turn: &mut Turn, event: &Event) {
        if lock(&self.state).is_connecting() {
            self.answered(turn, event.token);
        } else {
            self.ask(turn);
        }
    }

    fn timer(self: Arc<Self>, turn: &mut Turn, key: u64) {
        enum Due {
            Retry,
            Stop,
            Next,
            GiveUp(Arc<Stream>, Token),
        }
        let due = {
            let state = &mut *lock(&self.state);
            let (waiting, connecting) = (state.is_waiting(), state.is_connecting());
            match &mut state.way {
                _ if key == state.linger_timer => Due::Stop,
                Some(way) if key == way.retry_timer && state.phase == Phase::Refused => Due::Stop,
                Some(way) if key == way.retry_timer && waiting => Due::Retry,
                Some(way) if key == way.next_timer && connecting => Due::Next,
                Some(way) => match way.attempt.out_of_time(key, way.proxy_timer) {
                    Some((stream, token)) => Due::GiveUp(stream, token),
                    None => return,
                },
                _ => return,
            }
        };
        match due {
            Due::Retry => self.dial(turn),
            Due::Stop => self.stop(turn),
            Due::Next => self.try_next(turn, errno::ETIMEDOUT),
            Due::GiveUp(stream, token) => {
                turn.unregister(token, stream.as_fd());
                self.failed(turn, errno::ETIMEDOUT, Some(stream));
            }
        }
    }
}

/// `connect`'s errors that show at once, without the network.
pub(crate) fn check(endpoint: &Endpoint, options: &Options) -> Result<(), Error> {
    endpoint.for_connect()?;
    transport::carrying(endpoint, options)?;
    transport::route(endpoint, options).map(|_| ())
}
