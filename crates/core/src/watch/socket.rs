//! Observed state of a socket: reported by its owner and by its I/O thread, read by the watch.

use std::collections::HashMap;
use std::time::Duration;

use super::{Tap, Watch};
use crate::conn::{Connection, News, PeerInfo, SocketInbox};
use crate::monitor::{self, Ends, EventDetails, Watcher, event};
use crate::options::Options;
use crate::pipe::{PipeId, PipeProbe, PipesShared};
use tautline_io::clock::unix_us;
use tautline_observe::{
    self as observe, Endpoint, EndpointState, Event, Image, Peer, PeerState, Route, Socket, SocketState,
    event_name,
};
use tautline_proto::zap;
use tautline_queue::sync::{Arc, Mutex, lock};
use tautline_queue::{ChainCounts, Probe};

/// First id of peers that the owner has not numbered yet.
const UNSEEN: u64 = 1 << 32;

/// An observed socket.
pub(crate) struct SocketWatch {
    watch: Arc<Watch>,
    id: u64,
    /// Inbox for telling the owner that taps were added or removed.
    inbox: Arc<SocketInbox>,
    state: Mutex<SocketWatchState>,
    /// Time since which the program has a route for its messages, and the function that describes
    /// it.
    route: Mutex<Option<(u64, Teller)>>,
}

/// Describes the program's route. Called by the watch, without a lock.
type Teller = std::sync::Arc<dyn Fn() -> Route + Send + Sync>;

struct SocketWatchState {
    socket: Socket,
    /// Counters that the owner keeps for all of its pipes. `None` until the socket is complete.
    left: Option<Arc<PipesShared>>,
    endpoints: Vec<Endpoint>,
    peers: HashMap<u32, PeerWatch>,
    /// Connected peers that the owner has not noticed yet.
    unseen: Vec<PeerWatch>,
    /// Peers of a closed socket that still has messages for them.
    lingering: Vec<PeerWatch>,
    /// The counters of former peers.
    past: Past,
    /// Endpoint on which it sends the events of a monitor, if it is the library's end of one.
    monitor_endpoint: Option<String>,
}

#[derive(Default, Clone, Copy)]
struct Past {
    messages_out: u64,
    bytes_out: u64,
    messages_in: u64,
    bytes_in: u64,
    dropped: u64,
}

impl Past {
    fn add(&mut self, peer: &Peer) {
        self.messages_out += peer.messages_out;
        self.bytes_out += peer.bytes_out;
        self.messages_in += peer.messages_in;
        self.bytes_in += peer.bytes_in;
        self.dropped += peer.dropped;
    }
}

/// A peer, and the access to its counters.
struct PeerWatch {
    peer: Peer,
    sight: PipeProbe,
}

/// True if the endpoint carries ZAP requests.
fn is_zap(endpoint: &Endpoint) -> bool {
    endpoint.name.strip_prefix("inproc://") == Some(zap::HANDLER)
}

impl SocketWatch {
    pub(super) fn new(watch: Arc<Watch>, socket: Socket, inbox: Arc<SocketInbox>) -> Self {
        let id = socket.id;
        let state = SocketWatchState {
            socket,
            left: None,
            endpoints: Vec::new(),
            peers: HashMap::new(),
            unseen: Vec::new(),
            lingering: Vec::new(),
            past: Past::default(),
            monitor_endpoint: None,
        };
        SocketWatch { watch, id, inbox, state: Mutex::new(state), route: Mutex::default() }
    }

    /// Returns the number of the socket.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The taps that concern this socket.
    pub(crate) fn taps(&self) -> Vec<Arc<Tap>> {
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
        self.inbox.push(News::TapsChanged);
    }

    // ---- reported by the owner

    /// Notes that the socket is the library's end of a monitor on this endpoint.
    pub(crate) fn set_monitor_endpoint(&self, endpoint: &str) {
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

    /// Reports the current options, and the number of subscribed topics.
    pub(crate) fn set_options(&self, options: &Options, subscriptions: usize) {
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

    /// Sets the counters that the owner keeps for all of its pipes.
    pub(crate) fn set_counters(&self, left: &Arc<PipesShared>) {
        left.record_unroutable_ids();
        lock(&self.state).left = Some(left.clone());
    }

    /// Adds an endpoint, before it is served. `name` is its name in events.
    pub(crate) fn add_endpoint(&self, given: &str, name: &str, bound: bool) {
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

    /// Sets the mechanism of a bound endpoint.
    pub(crate) fn set_mechanism(&self, given: &str, mechanism: &str) {
        let mut state = lock(&self.state);
        let bound = |endpoint: &&mut Endpoint| endpoint.bound && endpoint.given == given;
        if let Some(endpoint) = state.endpoints.iter_mut().find(bound) {
            mechanism.clone_into(&mut endpoint.mechanism);
        }
    }

    /// Removes all endpoints but these, which are identified by the texts that the program gave.
    pub(crate) fn keep_endpoints(&self, is_there: impl Fn(&str, bool) -> bool) {
        lock(&self.state).endpoints.retain(|endpoint| is_there(&endpoint.given, endpoint.bound));
    }

    /// Adds a peer that has connected, or that is being connected to.
    pub(crate) fn add_peer(&self, peer: Peer, sight: PipeProbe) {
        let mut state = lock(&self.state);
        if let Some(connection) = &sight.connection {
            let is_same = |known: &PeerWatch| {
                known.sight.connection.as_ref().is_some_and(|other| other.ptr_eq(connection))
            };
            state.unseen.retain(|known| !is_same(known));
        }
        let id = peer.id as u32;
        state.peers.insert(id, PeerWatch { peer, sight });
    }

    /// Sets the endpoint that a pipe connects to, before its peer is known.
    pub(crate) fn target(&self, id: PipeId, endpoint: &str) {
        if let Some(known) = lock(&self.state).peers.get_mut(&id.0) {
            endpoint.clone_into(&mut known.peer.endpoint);
        }
    }

    /// Updates all facts about a peer except its counters.
    pub(crate) fn update_peer(&self, peer: Peer) {
        let mut state = lock(&self.state);
        if let Some(known) = state.peers.get_mut(&(peer.id as u32)) {
            known.describe(peer);
        }
    }

    /// Sets the number of reconnects, of all peers together.
    pub(crate) fn set_reconnects(&self, reconnects: u64) {
        lock(&self.state).socket.reconnects = reconnects;
    }

    /// Notes that a peer has left. There may still be unread messages from it.
    pub(crate) fn mark_peer_ended(&self, id: PipeId) {
        if let Some(known) = lock(&self.state).peers.get_mut(&id.0) {
            known.peer.state = PeerState::Gone;
        }
    }

    /// Removes a peer. `lost` is the total number of messages lost with peers.
    pub(crate) fn remove_peer(&self, id: PipeId, lost: u64) {
        let mut state = lock(&self.state);
        state.socket.lost = lost;
        if let Some(mut gone) = state.peers.remove(&id.0) {
            let connection = gone.look(0);
            state.past.add(&gone.peer);
            drop(state);
            drop(connection);
        }
    }

    /// Sets the function that describes the program's route. An earlier function is replaced.
    pub(crate) fn route(&self, teller: Teller) {
        // The former function is program code. Drop it without a lock.
        let former = lock(&self.route).replace((unix_us(), teller));
        drop(former);
    }

    /// Notes that the socket is closed, before its pipes are.
    pub(crate) fn mark_closed(&self) {
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

    // ---- reported by the I/O thread

    /// Adds a peer that has connected. The owner notices it in its next call.
    pub(crate) fn add_unseen_peer(&self, connection: &Connection, info: &PeerInfo, sight: PipeProbe) {
        let mut peer = Peer::default();
        info.describe(&mut peer);
        peer.id = UNSEEN | self.watch.next_id();
        peer.state = PeerState::Connected;
        connection.options.mechanism.name().clone_into(&mut peer.mechanism);
        peer.limit_in = connection.options.receive_hwm.into();
        lock(&self.state).unseen.push(PeerWatch { peer, sight });
    }

    /// Notes that the peer of a pipe made by `connect` is connected; `again` for a reconnect.
    pub(crate) fn mark_connected(&self, connection: &Connection, info: &PeerInfo, again: bool) {
        let mut state = lock(&self.state);
        if let Some(known) = connection.token().and_then(|token| state.peers.get_mut(&token)) {
            info.describe(&mut known.peer);
            known.peer.reconnects += u64::from(again);
        }
    }

    // ---- looks of the watch

    /// Reads the counters, and records everything but the peers.
    pub(super) fn look(&self, now: u64, image: &mut Image) {
        // Drop these when no lock is held: with the last references the messages are freed.
        let mut held: Vec<Arc<Connection>> = Vec::new();
        let mut state = lock(&self.state);
        let SocketWatchState { socket, left, endpoints, peers, unseen, lingering, past, .. } = &mut *state;
        held.reserve(peers.len() + unseen.len() + lingering.len());
        // Remove a peer that has left again without a message: the owner never hears of it.
        unseen.retain_mut(|known| {
            let connection = known.look(now);
            let stays = connection.is_some();
            held.extend(connection);
            stays
        });
        lingering.retain_mut(|known| {
            let connection = known.look(now);
            let stays = connection.as_ref().is_some_and(|connection| connection.has_pending());
            held.extend(connection);
            if !stays {
                past.add(&known.peer);
            }
            stays
        });
        let mut all = *past;
        let (mut queued_out, mut queued_in) = (0, 0);
        held.extend(peers.values_mut().filter_map(|known| known.look(now)));
        for known in peers.values().chain(&*unseen).chain(&*lingering) {
            all.add(&known.peer);
            queued_out += known.peer.queued_out;
            queued_in += known.peer.queued_in;
        }
        socket.peers = (peers.len() + unseen.len() + lingering.len()) as u64;
        (socket.messages_out, socket.bytes_out) = (all.messages_out, all.bytes_out);
        (socket.messages_in, socket.bytes_in) = (all.messages_in, all.bytes_in);
        (socket.queued_out, socket.queued_in) = (queued_out, queued_in);
        socket.dropped = all.dropped;
        if let Some(left) = left {
            socket.unroutable = left.unroutable();
            socket.out_of_turn = left.out_of_turn();
            socket.astray = left.last_unroutable_id();
        }
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

impl PeerWatch {
    fn connection(&self) -> Option<Arc<Connection>> {
        self.sight.connection.as_ref()?.upgrade()
    }

    /// Copies everything but the counters from `peer`.
    fn describe(&mut self, peer: Peer) {
        let known = &mut self.peer;
        known.state = peer.state;
        known.since = peer.since.max(known.since);
        known.reconnects = peer.reconnects.max(known.reconnects);
        (known.limit_in, known.limit_out) = (peer.limit_in, peer.limit_out);
        (known.address, known.local) = (peer.address, peer.local);
        if !peer.endpoint.is_empty() {
            known.endpoint = peer.endpoint;
        }
        (known.host, known.user_id, known.routing_id) = (peer.host, peer.user_id, peer.routing_id);
    }

    /// Reads the counters. `now` is 0 for a last look. The caller must drop the connection when no
    /// lock is held.
    fn look(&mut self, now: u64) -> Option<Arc<Connection>> {
        let connection = self.connection();
        let peer = &mut self.peer;
        let mut out = self.sight.outgoing.as_ref().map(Probe::counts).unwrap_or_default();
        let incoming = self.sight.incoming.as_ref().map(Probe::counts).unwrap_or_default();
        if let Some(connection) = &connection {
            add_followed(connection, &mut out);
            peer.shared_memory = connection.shares_memory();
            peer.round_trip_us = connection.liveness.round_trip_ns().div_ceil(1000);
            if matches!(peer.state, PeerState::Connecting | PeerState::Connected) {
                let linked = connection.is_linked();
                peer.state = if linked { PeerState::Connected } else { PeerState::Connecting };
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
        match (connection.as_ref().is_some_and(|connection| connection.is_paused()), peer.full_in_since) {
            (true, 0) => peer.full_in_since = now,
            (false, _) => peer.full_in_since = 0,
            _ => {}
        }
        connection
    }
}

/// Adds the messages that go to the peer through a broadcast log.
fn add_followed(connection: &Connection, counts: &mut ChainCounts) {
    let progress = lock(&connection.followed).as_ref().map(|(_, progress)| progress.clone());
    if let Some(progress) = progress {
        let (messages, bytes) = progress.published();
        counts.messages = counts.messages.wrapping_add(messages);
        counts.bytes = counts.bytes.wrapping_add(bytes);
        counts.queued += progress.pending_messages();
        counts.queued_bytes += progress.pending_bytes();
    }
}

impl Watcher for SocketWatch {
    fn event(&self, code: u32, value: u64, ends: &Ends, about: &EventDetails<'_>) {
        let now = unix_us();
        let mut reason = about.reason(code, value);
        if let Some(claim) = about.claim.filter(|claim| !claim.reason.is_empty()) {
            let said = String::from_utf8_lossy(&claim.reason);
            reason = if reason.is_empty() { said.into_owned() } else { format!("{reason}: {said}") };
        }
        let mut told = Event::default();
        (told.at, told.code, told.value) = (now, code, value);
        event_name(code).clone_into(&mut told.name);
        (told.local, told.remote) = (ends.local().to_owned(), ends.remote().to_owned());
        told.reason.clone_from(&reason);
        {
            let mut state = lock(&self.state);
            let SocketWatchState { socket, endpoints, .. } = &mut *state;
            told.socket = socket.id;
            match code {
                monitor::CONNECT_FAILED => socket.failed_connects += 1,
                event::HANDSHAKE_FAILED_NO_DETAIL
                | event::HANDSHAKE_FAILED_PROTOCOL
                | event::HANDSHAKE_FAILED_AUTH => socket.failed_handshakes += 1,
                event::NAME if value != 0 => socket.names_away += 1,
                _ => {}
            }
            for endpoint in endpoints.iter_mut().filter(|endpoint| endpoint.name == **ends.name()) {
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
        monitor::CONNECT_FAILED => {
            fail(endpoint);
            endpoint.state = EndpointState::Stopped;
        }
        monitor::LOST => {
            fail(endpoint);
            endpoint.state = EndpointState::Stopped;
        }
        _ => {}
    }
    if endpoint.state != was {
        endpoint.since = now;
    }
}
