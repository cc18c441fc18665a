//! A wire: one stream of a connection, from its handshake to its end.

mod authentication;
mod linger;
mod policy_checks;
mod reporting;

use super::handshake::{Handshake, ReadStep};
use super::heartbeat::Heartbeat;
use super::origin::Origin;
use super::security::Security;
use super::{Acceptor, EventLoop, EventSource, NOWHERE, Resident, Site};
use crate::conn::{Connection, Flushed, Loss, News, PeerInfo, Session, Silence};
use crate::error::check_shortage;
use crate::host::{AllowedTopics, Proof, Refusal};
use crate::monitor::{Ends, EventDetails, LOST, event};
use crate::options::Options;
use crate::pipe::{PeerProbe, PeerReport};
use crate::transport;
pub(super) use policy_checks::{CHECK, is_silent, is_stranger};
use reporting::known;
use tautline_io::errno;
use tautline_io::fd::AsRawFd;
use tautline_io::net::Stream;
use tautline_io::reactor::{Event, Interest, Mode, Token};
use tautline_proto::zap::Credentials;
use tautline_proto::{Established, ProtocolError, SessionConfig, stage};
use tautline_queue::message::Metadata;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Maximum number of consecutive reads in one handshake, of 4 KiB each. Together they hold the
/// longest handshake command.
const READS: usize = 16;

/// The property that tells the authenticator which user a peer is.
const USER_ID: &str = "User-Id";

enum Phase {
    /// The handshake is in progress.
    Handshake(Box<Handshake>),
    /// Messages flow over this connection.
    Open(Arc<Connection>),
    Closed,
}

struct WireState {
    phase: Phase,
    registration: Token,
    number: u32,
    linger_timer: u64,
    /// Timer to write again, if the system refuses to report room.
    room_timer: u64,
    lingering: bool,
    heartbeat: Option<Box<Heartbeat>>,
    /// Metadata of the peer of an open stream.
    peer: Option<Arc<Metadata>>,
    /// Time at which the stream was opened, in microseconds since 1970.
    since: u64,
    /// The peer's proof of identity, if the policy requires one.
    proof: Option<Box<Proof>>,
    /// The topics that the peer may use, if the policy limits them.
    topics: Option<Arc<AllowedTopics>>,
    /// Timer to check again if a peer that we connected to may still use these topics.
    check_timer: u64,
}

impl WireState {
    fn handshake(&mut self) -> Option<&mut Handshake> {
        match &mut self.phase {
            Phase::Handshake(handshake) => Some(handshake),
            _ => None,
        }
    }
}

/// The next requirement of the handshake.
enum HandshakeStep {
    /// Wait for the stream or for the ZAP handler.
    Wait,
    Judge(Credentials),
    /// The peer has sent more bytes than a peer may send before it is admitted.
    Beyond,
    Open(Box<Established>),
}

/// One stream of a connection. Lives on the I/O thread.
pub(crate) struct Wire {
    origin: Origin,
    stream: Arc<Stream>,
    /// The name of this end in events and LAST_ENDPOINT.
    endpoint: Arc<Ends>,
    state: Mutex<WireState>,
}

impl Wire {
    /// Starts a handshake on a connected stream. `number` tells the sessions of one connection
    /// apart.
    pub(super) fn start(
        turn: &mut EventLoop,
        origin: Origin,
        stream: Arc<Stream>,
        endpoint: Arc<Ends>,
        number: u32,
    ) -> Arc<Self> {
        let (site, options) = (origin.site(), origin.options());
        let Security { mechanism, authenticate, .. } = origin.security().into_owned();
        let config = SessionConfig {
            socket_type: site.kind.socket_type,
            routing_id: options.routing_id.clone(),
            mechanism,
            authenticate,
            max_msg_size: options.max_msg_size,
            properties: options.metadata.clone(),
        };
        let (carrier, broken) = match origin.carrier() {
            Ok(carrier) => (carrier, None),
            Err(errno) => (None, Some(errno)),
        };
        // True for streams without ZMTP: the type is STREAM, or ZMQ_ROUTER_RAW was set when the
        // endpoint was bound or connected.
        let raw = site.kind.raw || options.router_raw;
        let interest = if raw { Interest::NONE } else { Interest::READ };
        let mut handshake = Handshake::new(config, carrier, interest);
        handshake.most = origin.gate().and_then(|gate| gate.handshake_bytes()).unwrap_or(u64::MAX);
        let state = WireState {
            phase: Phase::Handshake(Box::new(handshake)),
            registration: NOWHERE,
            number,
            linger_timer: 0,
            room_timer: 0,
            lingering: false,
            heartbeat: None,
            peer: None,
            since: 0,
            proof: None,
            topics: None,
            check_timer: 0,
        };
        let wire = Arc::new(Wire { endpoint, origin, stream, state: Mutex::new(state) });
        match &wire.origin {
            Origin::Accepted(..) => wire.site().enter(Resident::Wire(wire.clone())),
            Origin::Dialed(dialer) => dialer.store_stream(&wire),
        }
        wire.begin(turn, raw, interest, broken);
        wire
    }

    fn begin(self: &Arc<Self>, turn: &mut EventLoop, raw: bool, interest: Interest, broken: Option<i32>) {
        // Each event makes the handshake read or write until the event is used up, so its
        // registration needs no rearming.
        match turn.register(self.clone(), self.stream.as_fd(), interest, Mode::Level) {
            Ok(token) => lock(&self.state).registration = token,
            Err(error) => return self.end(turn, Loss::Stream(errno::of(&error).unwrap_or(0))),
        }
        if let Some(errno) = broken {
            return self.end(turn, Loss::Stream(errno));
        }
        if raw {
            let stage: Box<dyn tautline_proto::Stage> = stage::raw();
            let peer = self.peer_info(Vec::new(), Vec::new(), None, None);
            return self.open(turn, peer, Some(stage), Vec::new(), Vec::new());
        }
        if let Some(deadline) = self.options().handshake_interval {
            let key = turn.set_timer(deadline, self);
            if let Some(handshake) = lock(&self.state).handshake() {
                handshake.timer = key;
            }
        }
        self.shake_hands(turn);
    }

    /// The options in force when the endpoint was bound or connected.
    pub(super) fn options(&self) -> &Arc<Options> {
        self.origin.options()
    }

    fn site(&self) -> &Arc<Site> {
        self.origin.site()
    }

    /// Continues the handshake as far as the stream and the handler allow. A panic in the handshake
    /// must not end the caller's work.
    fn shake_hands(self: &Arc<Self>, turn: &mut EventLoop) {
        if !turn.catch_panic(|turn| self.negotiate(turn)) {
            self.end(turn, Loss::Stream(errno::EFAULT));
        }
    }

    fn negotiate(self: &Arc<Self>, turn: &mut EventLoop) {
        loop {
            let established = match self.advance_handshake(turn) {
                Ok(HandshakeStep::Wait) => return,
                Ok(HandshakeStep::Judge(credentials)) => match self.judge(&credentials) {
                    Ok(()) => continue,
                    Err(loss) => return self.end(turn, loss),
                },
                Ok(HandshakeStep::Beyond) => return self.end_beyond(turn, "handshake_bytes"),
                Ok(HandshakeStep::Open(established)) => established,
                Err(loss) => return self.end(turn, loss),
            };
            let Established { peer, stage, inbound, .. } = *established;
            let socket_type = peer.socket_type;
            let (verdict, shown, leftover) = match lock(&self.state).handshake() {
                Some(handshake) => {
                    (handshake.verdict.take(), handshake.shown.take(), handshake.take_leftover())
                }
                None => (None, None, Vec::new()),
            };
            let mut peer = self.peer_info(peer.routing_id, peer.properties, verdict, shown.as_deref());
            peer.socket_type = socket_type;
            policy_checks::note_certificates(self, shown);
            if let Err(Refusal(why)) = self.may_stay(&peer.metadata) {
                return self.end_because(turn, Loss::Stream(errno::EACCES), &why);
            }
            let about = EventDetails { peer: known(&peer.metadata), ..EventDetails::default() };
            self.site().events.emit_about(event::HANDSHAKE_SUCCEEDED, 0, &self.endpoint, &about);
            return self.open(turn, peer, stage, inbound, leftover);
        }
    }

    /// Reads and writes until the handshake needs something else.
    fn advance_handshake(&self, turn: &EventLoop) -> Result<HandshakeStep, Loss> {
        let mut state = lock(&self.state);
        let WireState { phase: Phase::Handshake(session), registration, .. } = &mut *state else {
            return Ok(HandshakeStep::Wait);
        };
        let wait = |session: &mut Handshake, interest| {
            if session.armed != interest {
                turn.modify(*registration, self.stream.as_fd(), interest, Mode::Level);
                session.armed = interest;
            }
            Ok(HandshakeStep::Wait)
        };
        check_shortage().map_err(|_| Loss::Stream(errno::ENOMEM))?;
        let fresh = std::mem::take(&mut session.fresh);
        // The end that connected usually sends first. If its bytes are here already, one write
        // answers them together with the greeting.
        let mut reads_first = fresh && self.is_accepted();
        // The answer to the first bytes takes longer than the write.
        let mut drained = fresh && !reads_first;
        let mut reads = 0;
        loop {
            if !std::mem::take(&mut reads_first) {
                if let Err(loss) = session.write(&self.stream) {
                    // A peer over WebSocket or TLS may have completed the handshake and closed the
                    // stream before our last bytes, which belong to that carrier.
                    let established = session.is_carried().then(|| session.take_established()).flatten();
                    let open = |established| HandshakeStep::Open(Box::new(established));
                    return established.map(open).ok_or(loss);
                }
                if let Some(credentials) = session.take_credentials() {
                    return Ok(HandshakeStep::Judge(credentials));
                }
                // We do not read while output is pending. So a peer cannot make us produce
                // unlimited output or use unlimited memory.
                if !session.output().is_empty() {
                    return wait(session, Interest::WRITE);
                }
                if let Some(established) = session.take_established() {
                    return Ok(HandshakeStep::Open(Box::new(established)));
                }
                if session.has_ended() {
                    return Err(Loss::Stream(errno::EPIPE));
                }
                // After the last read there may be more, but other connections get their turn
                // first. The registration reports it.
                if drained || reads == READS {
                    return wait(session, Interest::READ);
                }
            }
            reads += 1;
            let step = session.read(&self.stream)?;
            #[cfg(test)]
            assert_ne!(self.options().routing_id, b"panics in a handshake", "on purpose");
            match step {
                ReadStep::More => {}
                ReadStep::Drained => drained = true,
                ReadStep::Beyond => return Ok(HandshakeStep::Beyond),
            }
        }
    }

    /// Opens the connection after the handshake. From now on, messages are sent and received.
    fn open(
        self: &Arc<Self>,
        turn: &mut EventLoop,
        peer: Box<PeerInfo>,
        stage: Option<Box<dyn tautline_proto::Stage>>,
        inbound: Vec<u8>,
        leftover: Vec<u8>,
    ) {
        let (told, topics, since) = (peer.metadata.clone(), peer.topics.clone(), peer.since);
        let dialed = match &self.origin {
            Origin::Accepted(acceptor, _) => {
                acceptor.note_completed_handshake();
                None
            }
            Origin::Dialed(dialer) => dialer.connection(),
        };
        let (connection, news) = match dialed {
            Some((connection, reconnected)) => {
                if let Some(report) = &self.site().report {
                    report.mark_connected(PeerReport::new(&connection, &peer), reconnected);
                }
                let is_news = connection.unseen.note_handshake(peer, reconnected);
                let news = is_news.then(|| News::Ready(connection.clone()));
                (connection, news)
            }
            None => {
                let (connection, mut pipe) = self.site().new_connection(self.options().clone());
                pipe.connected_here = matches!(self.origin, Origin::Dialed(_));
                if let Some(report) = &self.site().report {
                    let probe = PeerProbe::from_new_pipe(&pipe);
                    report.add_unseen_peer(PeerReport::new(&connection, &peer), probe);
                }
                if let Origin::Dialed(dialer) = &self.origin {
                    dialer.adopt(connection.clone());
                }
                (connection, Some(News::Attached(Box::new(pipe), peer)))
            }
        };
        let (registration, number) = {
            let mut state = lock(&self.state);
            state.phase = Phase::Open(connection.clone());
            (state.peer, state.topics, state.since) = (Some(told), topics, since);
            state.check_timer = policy_checks::check_later(self, turn);
            if self.options().heartbeat_interval.is_some() {
                state.heartbeat.get_or_insert_default().begin(turn, self);
            }
            (state.registration, state.number)
        };
        turn.mute(self.stream.as_fd());
        self.site().set_open_wire(&connection, Some(self));
        transport::begin_sharing(&self.stream);
        let stage = stage.map(|stage| Arc::new(Mutex::new(stage)));
        let session = Session { stream: self.stream.clone(), registration, stage, inbound, leftover };
        let added = self.site().add_to_set(&connection, || connection.open(number, session, news));
        // If everything is written, the I/O thread releases the connection.
        if connection.pump_writable() == Some(Flushed::Drained) {
            turn.release_to_owner(connection.clone());
        }
        let given_up = matches!(&self.origin, Origin::Dialed(dialer) if dialer.is_lingering());
        if self.site().is_closed() || given_up {
            self.site().remove_from_set(&connection);
            lock(&self.state).lingering = true;
            return self.end_drained(turn);
        }
        if let Err(error) = added {
            self.end(turn, Loss::Stream(errno::of(&error).unwrap_or(0)));
        }
    }

    /// Handles a stream that accepts no more bytes. If the peer is gone, the kernel holds a finite
    /// number of its bytes: we read them and then find the end of the stream. A peer that only
    /// closed its receiving side might keep sending for ever.
    pub(super) fn handle_unwritable(self: &Arc<Self>, turn: &mut EventLoop, errno: i32) {
        let state = lock(&self.state);
        let Phase::Open(connection) = &state.phase else { return };
        let connection = connection.clone();
        let lingering = state.lingering || self.site().is_closed();
        drop(state);
        if lingering || !self.stream.has_hung_up() {
            return self.end(turn, Loss::Stream(errno));
        }
        self.site().read_to_end(&connection);
    }

    fn end_later(self: &Arc<Self>, turn: &EventLoop) {
        let wire = self.clone();
        turn.driver().post(Box::new(move |turn| wire.end(turn, Loss::Closed)));
    }

    /// Ends the stream for this reason.
    pub(super) fn end(self: &Arc<Self>, turn: &mut EventLoop, why: Loss) {
        let because = self
            .site()
            .admission()
            .and_then(|admission| admission.limit_name(policy_checks::limit_behind(why)?));
        self.end_because(turn, why, because.as_deref().unwrap_or_default());
    }

    /// Ends the stream for this reason. `because` is the rule or limit behind the reason.
    fn end_because(self: &Arc<Self>, turn: &mut EventLoop, why: Loss, because: &str) {
        let (phase, registration, peer, since) = {
            let mut state = lock(&self.state);
            let phase = std::mem::replace(&mut state.phase, Phase::Closed);
            (phase, state.registration, state.peer.take(), state.since)
        };
        let fd = self.stream.as_fd().as_raw_fd() as u32;
        let opened = match phase {
            Phase::Closed => return,
            Phase::Handshake(handshake) => {
                if let Origin::Accepted(acceptor, _) = &self.origin {
                    acceptor.forget_stranger();
                }
                if !handshake.refused {
                    self.report_failed_handshake(
                        why,
                        handshake.claim.as_deref(),
                        handshake.refusal(),
                        because,
                    );
                }
                None
            }
            Phase::Open(connection) => {
                if let Loss::Protocol(error @ ProtocolError::PeerMisbehaved(clause)) = why
                    && clause.is_decryption_error()
                {
                    self.site().events.emit(
                        event::HANDSHAKE_FAILED_PROTOCOL,
                        error.zmq_code(),
                        &self.endpoint,
                    );
                }
                self.site().set_open_wire(&connection, None);
                self.site().remove_from_set(&connection);
                connection.close();
                Some(connection)
            }
        };
        turn.unregister(registration, self.stream.as_fd());
        if let (room, true) = self.stream.space_fd() {
            turn.mute(room);
        }
        if why == Loss::Closed {
            let _ = self.stream.shutdown(std::net::Shutdown::Write);
        } else {
            let reason = match why {
                Loss::Stream(errno) => errno as u32,
                Loss::Protocol(error) => error.zmq_code(),
                Loss::Silent(_) => errno::ETIMEDOUT as u32,
                Loss::Closed => 0,
            };
            let peer = peer.as_deref().map(known).unwrap_or_default();
            let ttl = opened.as_ref().map(|connection| connection.liveness.granted_ttl());
            let words = reporting::words(self.options(), why, ttl.unwrap_or_default());
            let about = EventDetails {
                peer,
                cause: Some((LOST, reason.into())),
                why: because,
                words: &words,
                since,
                is_silent: matches!(why, Loss::Silent(_)),
                ..EventDetails::default()
            };
            self.site().events.emit_about(event::DISCONNECTED, fd, &self.endpoint, &about);
            if opened.is_some() {
                self.site().events.emit_about(LOST, reason, &self.endpoint, &about);
            }
        }
        match &self.origin {
            Origin::Accepted(..) => {
                self.site().leave(&Resident::Wire(self.clone()));
                if let Some(connection) = opened {
                    connection.finish();
                }
            }
            Origin::Dialed(dialer) => {
                dialer.drop_stream();
                dialer.clone().handle_stream_end(turn, opened.is_some(), why);
            }
        }
    }

    /// True if this stream carries the session of this number of `connection`.
    pub(super) fn carries(&self, connection: &Arc<Connection>, number: u32) -> bool {
        let state = lock(&self.state);
        state.number == number && matches!(&state.phase, Phase::Open(mine) if Arc::ptr_eq(mine, connection))
    }

    /// Starts to watch the peer's silence, because the peer's PING has granted a time to live.
    pub(super) fn watch_ttl(self: &Arc<Self>, turn: &mut EventLoop) {
        let mut state = lock(&self.state);
        if let Phase::Open(connection) = &state.phase {
            let ttl = connection.liveness.granted_ttl();
            state.heartbeat.get_or_insert_default().watch_ttl(turn, self, ttl);
        }
    }

    /// True if this bound endpoint accepted the stream.
    pub(super) fn is_accepted_by(&self, acceptor: &Arc<Acceptor>) -> bool {
        matches!(&self.origin, Origin::Accepted(mine, _) if Arc::ptr_eq(mine, acceptor))
    }

    /// True if the stream was accepted, not dialed.
    pub(super) fn is_accepted(&self) -> bool {
        matches!(&self.origin, Origin::Accepted(..))
    }

    /// The connection of an open stream.
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        match &lock(&self.state).phase {
            Phase::Open(connection) => Some(connection.clone()),
            _ => None,
        }
    }
}

impl EventSource for Wire {
    fn on_ready(self: Arc<Self>, turn: &mut EventLoop, event: &Event) {
        let (open, lingering) = {
            let state = lock(&self.state);
            let lingering = state.lingering || self.site().is_closed();
            match &state.phase {
                Phase::Handshake(_) => (None, false),
                Phase::Open(connection) => (Some(connection.clone()), lingering),
                Phase::Closed => return,
            }
        };
        match open {
            None => self.shake_hands(turn),
            Some(_) if lingering && event.closed => self.end(turn, Loss::Stream(0)),
            Some(connection) if lingering => {
                if event.ended {
                    connection.read_to_end();
                }
                self.end_drained(turn);
            }
            // Readable: shared memory reports room on its own descriptor.
            Some(connection) if event.writable || event.readable || event.ended => {
                if event.ended {
                    self.site().read_to_end(&connection);
                } else if connection.idle_interest() != Interest::NONE {
                    // Rearm before the pump runs: the pump may ask to be called again.
                    let registration = lock(&self.state).registration;
                    turn.modify(registration, self.stream.as_fd(), connection.idle_interest(), Mode::OneShot);
                }
                // Pump even if the stream has ended, because a sender may rely on this event.
                if connection.pump_writable() == Some(Flushed::Drained) {
                    turn.release_to_owner(connection);
                }
            }
            // A hang-up: the holder of the baton finds the end behind the remaining data.
            Some(_) => {}
        }
    }

    fn on_timer(self: Arc<Self>, turn: &mut EventLoop, key: u64) {
        let verdict = {
            let mut state = lock(&self.state);
            match &state.phase {
                Phase::Closed => return,
                _ if key == state.linger_timer => Some(Loss::Closed),
                _ if key == state.check_timer => {
                    drop(state);
                    return self.check_topics(turn);
                }
                _ if key == state.room_timer => {
                    drop(state);
                    return self.end_drained(turn);
                }
                Phase::Handshake(handshake) => {
                    (key == handshake.timer).then_some(Loss::Silent(Silence::Handshake))
                }
                Phase::Open(connection) => {
                    let connection = connection.clone();
                    let heartbeat = state.heartbeat.as_mut();
                    heartbeat.and_then(|beat| beat.handle_expiry(turn, &self, &connection, key))
                }
            }
        };
        if let Some(why) = verdict {
            self.end(turn, why);
        }
    }

    fn on_panic(self: Arc<Self>, turn: &mut EventLoop) {
        self.end(turn, Loss::Stream(errno::EFAULT));
    }
}
