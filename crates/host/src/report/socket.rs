//! State of a socket: reported by its owner and by its I/O thread, read by the watch.

use std::collections::HashMap;
use std::mem::take;
use std::time::Duration;

use super::Watch;
use super::tap::{Tap, TapState};
use tautline_config::event;
use tautline_config::options::Options;
use tautline_core::host::{
    EventReport, Observed, PeerCounts, PeerProbe, PeerReport, PeerState as State, SocketProbe, SocketReport,
    TappedPart,
};
use tautline_io::clock::unix_us;
use tautline_observe::{
    self as observe, Endpoint, EndpointState, Event, Image, Peer, PeerState, Route, Socket, SocketState,
};
use tautline_proto::zap;
use tautline_queue::sync::{Arc, Mutex, lock};

/// First id of peers that the owner has not numbered yet.
const UNSEEN: u64 = 1 << 32;

/// An observed socket.
pub(super) struct SocketWatch {
    watch: Arc<Watch>,
    id: u64,
    probe: SocketProbe,
    state: Mutex<SocketWatchState>,
    /// Copies for the taps. Only the owner locks it.
    taps: Mutex<TapState>,
    /// Time since which the program has a route for its messages, and the function that describes
    /// it.
    route: Mutex<Option<(u64, Teller)>>,
}

/// Describes the program's route. Called by the watch, without a lock.
type Teller = std::sync::Arc<dyn Fn() -> Route + Send + Sync>;

#[derive(Default)]
struct SocketWatchState {
    socket: Socket,
    endpoints: Vec<Endpoint>,
    peers: HashMap<u64, PeerWatch>,
    /// Connected peers that the owner has not noticed yet.
    unseen: Vec<PeerWatch>,
    /// Peers of a closed socket that still has messages for them.
    lingering: Vec<PeerWatch>,
    /// The counters of former peers.
    past: Totals,
    /// Endpoint on which it sends the events of a monitor, if it is the library's end of one.
    monitor_endpoint: Option<String>,
}

/// Counters of peers together: messages and bytes out, messages and bytes in, dropped messages.
type Totals = [u64; 5];

fn add(totals: &mut Totals, peer: &Peer) {
    let counts = [peer.messages_out, peer.bytes_out, peer.messages_in, peer.bytes_in, peer.dropped];
    totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
}

/// A peer, and the access to its counters.
struct PeerWatch {
    peer: Peer,
    probe: PeerProbe,
}

/// True if the endpoint carries ZAP requests.
fn is_zap(endpoint: &Endpoint) -> bool {
    endpoint.name.strip_prefix("inproc://") == Some(zap::HANDLER)
}

impl SocketWatch {
    pub(super) fn new(watch: Arc<Watch>, socket: Socket, probe: SocketProbe) -> Self {
        let id = socket.id;
        let state = Mutex::new(SocketWatchState { socket, ..SocketWatchState::default() });
        SocketWatch { watch, id, probe, state, taps: Mutex::default(), route: Mutex::default() }
    }

    /// The taps that concern this socket.
    pub(super) fn taps(&self) -> Vec<Arc<Tap>> {
        let mut taps = self.watch.taps();
        taps.retain(|tap| self.is_of(tap));
        taps
    }

    /// True if this tap concerns this socket. Monitor sockets are copied only if the tap names
    /// them. Passwords in requests to a ZAP handler are never copied.
    pub(super) fn is_of(&self, tap: &Tap) -> bool {
        let state = lock(&self.state);
        !state.endpoints.iter().any(is_zap)
            && tap.socket().map_or(!state.socket.monitor, |wanted| wanted == self.id)
    }

    /// Makes the owner update its list of taps.
    pub(super) fn notify_taps_changed(&self) {
        self.probe.notify_taps_changed();
    }

    /// Handles a monitor that sends events on this endpoint, in this context: if this socket is
    /// connected to it, it is a monitor socket too.
    fn mark_if_monitor(&self, context: u64, place: &str) {
        let mut state = lock(&self.state);
        let SocketWatchState { socket, endpoints, .. } = &mut *state;
        let hears = |endpoint: &Endpoint| !endpoint.bound && endpoint.name == place;
        if !socket.monitor && socket.context == context && endpoints.iter().any(hears) {
            socket.monitor = true;
            drop(state);
            self.notify_taps_changed();
        }
    }

    /// Sets the function that describes the program's route. An earlier function is replaced.
    pub(super) fn route(&self, teller: Teller) {
        // The former function is program code. Drop it without a lock.
        let former = lock(&self.route).replace((unix_us(), teller));
        drop(former);
    }

    /// Reads the counters, and records everything but the peers.
    pub(super) fn look(&self, now: u64, image: &mut Image) {
        // Drop these when no lock is held: with the last references the messages are freed.
        let mut held: Vec<PeerCounts> = Vec::new();
        let mut state = lock(&self.state);
        let SocketWatchState { socket, endpoints, peers, unseen, lingering, past, .. } = &mut *state;
        held.reserve(peers.len() + unseen.len() + lingering.len());
        // Remove a peer that has left again without a message: the owner never hears of it.
        unseen.retain_mut(|known| {
            held.push(known.look(now));
            held.last().is_some_and(|counts| counts.connection.is_some())
        });
        lingering.retain_mut(|known| {
            let counts = known.look(now);
            let stays = counts.connection.as_ref().is_some_and(|connection| connection.has_pending());
            held.push(counts);
            if !stays {
                add(past, &known.peer);
            }
            stays
        });
        let mut all = *past;
        let (mut queued_out, mut queued_in) = (0, 0);
        held.extend(peers.values_mut().map(|known| known.look(now)));
        for known in peers.values().chain(&*unseen).chain(&*lingering) {
            add(&mut all, &known.peer);
            queued_out += known.peer.queued_out;
            queued_in += known.peer.queued_in;
        }
        socket.peers = (peers.len() + unseen.len() + lingering.len()) as u64;
        [socket.messages_out, socket.bytes_out, socket.messages_in, socket.bytes_in, socket.dropped] = all;
        (socket.queued_out, socket.queued_in) = (queued_out, queued_in);
        let counts = self.probe.counts();
        (socket.unroutable, socket.out_of_turn) = (counts.unroutable, counts.out_of_turn);
        socket.astray = counts.last_unroutable_id;
        image.put(socket);
        for endpoint in endpoints {
            endpoint.socket = socket.id;
            image.put(endpoint);
        }
    }

    /// Records the program's description of its route.
    pub(super) fn put_route(&self, image: &mut Image) {
        let Some((since, teller)) = lock(&self.route).clone() else { return };
        let mut route = teller();
        (route.socket, route.since) = (self.id, since);
        image.put(&route);
    }

    /// Records the peers with the counters of the last look.
    pub(super) fn put_peers(&self, image: &mut Image) {
        let mut state = lock(&self.state);
        let SocketWatchState { socket, peers, unseen, lingering, .. } = &mut *state;
        for known in peers.values_mut().chain(unseen).chain(lingering) {
            known.peer.socket = socket.id;
            image.put(&known.peer);
        }
    }
}

impl SocketReport for SocketWatch {
    fn set_options(&self, options: &Options, subscriptions: usize) {
        let ms = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
        let socket = &mut lock(&self.state).socket;
        socket.send_hwm = options.send_hwm.into();
        socket.receive_hwm = options.receive_hwm.into();
        socket.linger_ms = ms(options.linger).map_or(-1, |ms| ms as i64);
        socket.heartbeat_ms = ms(options.heartbeat_interval).unwrap_or(0);
        options.mechanism.name().clone_into(&mut socket.mechanism);
        socket.routing_id.clone_from(&options.routing_id);
        let bits = [
            (options.immediate, observe::Options::IMMEDIATE),
            (options.conflate, observe::Options::CONFLATE),
            (options.router_mandatory, observe::Options::ROUTER_MANDATORY),
            (options.xpub_nodrop, observe::Options::XPUB_NODROP),
            (options.req_relaxed, observe::Options::REQ_RELAXED),
        ];
        socket.options = bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum();
        socket.subscriptions = subscriptions as u64;
    }

    fn add_endpoint(&self, given: &str, name: &str, bound: bool, mechanism: &str) {
        let mut state = lock(&self.state);
        let SocketWatchState { socket, endpoints, .. } = &mut *state;
        let context = socket.context;
        if endpoints.iter().any(|endpoint| endpoint.given == given && endpoint.bound == bound) {
            return;
        }
        let mut endpoint = Endpoint::default();
        endpoint.bound = bound;
        endpoint.since = unix_us();
        endpoint.state = match (bound, name.starts_with("inproc:")) {
            (true, _) => EndpointState::Listening,
            (false, true) => EndpointState::Connected,
            (false, false) => EndpointState::Connecting,
        };
        (endpoint.given, endpoint.name) = (given.to_owned(), name.to_owned());
        mechanism.clone_into(&mut endpoint.mechanism);
        let ends_taps = is_zap(&endpoint);
        endpoints.push(endpoint);
        drop(state);
        if ends_taps {
            self.notify_taps_changed();
        }
        let is_this = |(other, place): &(u64, String)| *other == context && place == name;
        let tells = !bound && lock(&self.watch.monitors).iter().any(is_this);
        if tells {
            self.mark_if_monitor(context, name);
        }
    }

    fn keep_endpoints(&self, is_there: &dyn Fn(&str, bool) -> bool) {
        lock(&self.state).endpoints.retain(|endpoint| is_there(&endpoint.given, endpoint.bound));
    }

    fn set_monitor_endpoint(&self, endpoint: &str) {
        let context = {
            let mut state = lock(&self.state);
            state.socket.monitor = true;
            state.monitor_endpoint = Some(endpoint.to_owned());
            lock(&self.watch.monitors).push((state.socket.context, endpoint.to_owned()));
            state.socket.context
        };
        // The program's end may have connected before the bind.
        self.watch.sockets().iter().for_each(|socket| socket.mark_if_monitor(context, endpoint));
    }

    fn add_peer(&self, peer: PeerReport, probe: PeerProbe) {
        let mut state = lock(&self.state);
        state.unseen.retain(|known| !known.probe.is_same(&probe));
        let id = peer.id;
        state.peers.insert(id, PeerWatch::new(id, peer, probe));
    }

    fn update_peer(&self, peer: PeerReport, reconnects: u64) {
        let mut state = lock(&self.state);
        state.socket.reconnects = reconnects;
        if let Some(known) = state.peers.get_mut(&peer.id) {
            known.describe(peer);
        }
    }

    fn remove_peer(&self, id: u64, lost: u64) {
        let mut state = lock(&self.state);
        state.socket.lost = lost;
        if let Some(mut gone) = state.peers.remove(&id) {
            let counts = gone.look(0);
            add(&mut state.past, &gone.peer);
            drop(state);
            drop(counts);
        }
    }

    fn add_unseen_peer(&self, peer: PeerReport, probe: PeerProbe) {
        let id = UNSEEN | self.watch.next_id();
        lock(&self.state).unseen.push(PeerWatch::new(id, peer, probe));
    }

    fn mark_connected(&self, mut peer: PeerReport, again: bool) {
        if let Some(known) = lock(&self.state).peers.get_mut(&peer.id) {
            let Peer { reconnects, limit_in, limit_out, .. } = known.peer;
            peer.reconnects = reconnects + u64::from(again);
            (peer.limit_in, peer.limit_out) = (limit_in, limit_out);
            if !known.peer.routing_id.is_empty() {
                peer.routing_id = take(&mut known.peer.routing_id);
            }
            known.describe(peer);
        }
    }

    fn mark_closed(&self) {
        let route = lock(&self.route).take();
        drop(route);
        let mut state = lock(&self.state);
        let SocketWatchState {
            socket, peers, unseen, lingering, endpoints, monitor_endpoint: tells_at, ..
        } = &mut *state;
        unseen.clear();
        socket.state = SocketState::Lingering;
        endpoints.clear();
        lingering.extend(peers.drain().map(|(_, mut known)| {
            known.peer.state = PeerState::Lingering;
            known
        }));
        if let Some(told) = tells_at.take() {
            let mut monitors = lock(&self.watch.monitors);
            let own =
                monitors.iter().position(|(context, place)| *context == socket.context && *place == told);
            own.map(|own| monitors.swap_remove(own));
        }
    }

    fn update_taps(&self) -> bool {
        lock(&self.taps).update(self.taps())
    }

    fn tap_sending(&self, part: &[u8]) {
        lock(&self.taps).add_sent(part);
    }

    fn tap_sent(&self, sent: Option<TappedPart>) {
        lock(&self.taps).end_sent(self.id, sent);
    }

    fn tap_received(&self, length: usize, bytes: &[u8], part: TappedPart) {
        lock(&self.taps).add_received(self.id, length, bytes, part);
    }
}

impl PeerWatch {
    fn new(id: u64, peer: PeerReport, probe: PeerProbe) -> Self {
        let mut known = PeerWatch { peer: Peer::default(), probe };
        (known.peer.id, known.peer.connected_here) = (id, peer.connected_here);
        known.describe(peer);
        known
    }

    /// Copies everything but the counters from `peer`.
    fn describe(&mut self, peer: PeerReport) {
        let known = &mut self.peer;
        known.state = match peer.state {
            State::Connected => PeerState::Connected,
            State::Gone => PeerState::Gone,
            _ => PeerState::Connecting,
        };
        known.since = peer.since.max(known.since);
        known.reconnects = peer.reconnects.max(known.reconnects);
        (known.limit_in, known.limit_out) = (peer.limit_in, peer.limit_out);
        (known.address, known.local) = (peer.address, peer.local);
        if !peer.endpoint.is_empty() {
            known.endpoint = peer.endpoint;
        }
        known.mechanism = peer.mechanism;
        (known.host, known.user_id, known.routing_id) = (peer.host, peer.user_id, peer.routing_id);
    }

    /// Reads the counters. `now` is 0 for a last look. The caller must drop them when no lock is
    /// held.
    fn look(&mut self, now: u64) -> PeerCounts {
        let counts = self.probe.counts();
        let (out, incoming) = (counts.outgoing, counts.incoming);
        let peer = &mut self.peer;
        if let Some(connection) = &counts.connection {
            peer.shared_memory = connection.shares_memory;
            peer.round_trip_us = connection.round_trip_us;
            if matches!(peer.state, PeerState::Connecting | PeerState::Connected) {
                peer.state = if connection.is_linked { PeerState::Connected } else { PeerState::Connecting };
            }
        }
        // A counter may be lower for a moment while the connection changes its queue.
        if out.messages > peer.messages_out && out.messages < 1 << 63 {
            (peer.messages_out, peer.last_out) = (out.messages, now);
            peer.bytes_out = peer.bytes_out.max(out.bytes);
        }
        if incoming.messages > peer.messages_in {
            (peer.messages_in, peer.bytes_in, peer.last_in) = (incoming.messages, incoming.bytes, now);
        }
        (peer.queued_out, peer.queued_out_bytes) = (out.queued, out.queued_bytes);
        (peer.queued_in, peer.queued_in_bytes) = (incoming.queued, incoming.queued_bytes);
        (peer.dropped, peer.full) = (out.dropped, out.full);
        if out.limit > 0 {
            peer.limit_out = out.limit;
        }
        let is_full = peer.limit_out > 0 && peer.queued_out > peer.limit_out - (peer.limit_out / 20).max(1);
        match (is_full, peer.full_since) {
            (true, 0) => peer.full_since = now,
            (false, since) if since > 0 => {
                peer.full_us += now.saturating_sub(since);
                peer.full_since = 0;
            }
            _ => {}
        }
        let is_paused = counts.connection.as_ref().is_some_and(|connection| connection.is_paused);
        match (is_paused, peer.full_in_since) {
            (true, 0) => peer.full_in_since = now,
            (false, _) => peer.full_in_since = 0,
            _ => {}
        }
        counts
    }
}

impl EventReport for SocketWatch {
    fn event(&self, seen: &Observed<'_>) {
        let (now, code, value) = (unix_us(), seen.event, seen.value);
        let reason = seen.reason();
        let mut told = Event::default();
        (told.at, told.code, told.value) = (now, code, value);
        event::name(code).clone_into(&mut told.name);
        (told.local, told.remote) = (seen.local.to_owned(), seen.remote.to_owned());
        told.reason.clone_from(&reason);
        {
            let mut state = lock(&self.state);
            let SocketWatchState { socket, endpoints, .. } = &mut *state;
            told.socket = socket.id;
            match code {
                event::CONNECT_FAILED => socket.failed_connects += 1,
                event::HANDSHAKE_FAILED_NO_DETAIL
                | event::HANDSHAKE_FAILED_PROTOCOL
                | event::HANDSHAKE_FAILED_AUTH => socket.failed_handshakes += 1,
                event::NAME if value != 0 => socket.names_away += 1,
                _ => {}
            }
            for endpoint in endpoints.iter_mut().filter(|endpoint| endpoint.name == seen.endpoint) {
                heed(endpoint, code, value, &reason, now);
            }
        }
        self.watch.note(told);
    }
}

/// Updates the state of an endpoint from an event.
fn heed(endpoint: &mut Endpoint, code: u32, value: u64, reason: &str, now: u64) {
    let was = endpoint.state;
    let fail = |endpoint: &mut Endpoint| {
        if endpoint.failures == 0 {
            endpoint.failing_since = now;
        }
        endpoint.failures += 1;
        (endpoint.error, endpoint.failed_by) = (value, code);
        reason.clone_into(&mut endpoint.reason);
    };
    match code {
        event::ACCEPTED => endpoint.accepted += 1,
        event::HANDSHAKE_FAILED_NO_DETAIL
        | event::HANDSHAKE_FAILED_PROTOCOL
        | event::HANDSHAKE_FAILED_AUTH => {
            fail(endpoint);
            if !endpoint.bound {
                // A later event announces a retry, if there is one.
                endpoint.state = EndpointState::Stopped;
            }
        }
        event::HANDSHAKE_SUCCEEDED => {
            if !endpoint.bound {
                endpoint.state = EndpointState::Connected;
            }
            (endpoint.failures, endpoint.failing_since, endpoint.error) = (0, 0, 0);
            endpoint.reason.clear();
        }
        _ if endpoint.bound => {}
        event::NAME if value != 0 => fail(endpoint),
        event::NAME => {
            endpoint.state = EndpointState::Connected;
            (endpoint.failures, endpoint.failing_since, endpoint.error) = (0, 0, 0);
            reason.clone_into(&mut endpoint.reason);
        }
        event::CONNECT_DELAYED => endpoint.state = EndpointState::Connecting,
        event::CONNECTED => endpoint.state = EndpointState::Handshaking,
        event::CONNECT_RETRIED => endpoint.state = EndpointState::Waiting,
        event::CONNECT_FAILED | event::LOST => {
            fail(endpoint);
            endpoint.state = EndpointState::Stopped;
        }
        _ => {}
    }
    if endpoint.state != was {
        endpoint.since = now;
    }
}
