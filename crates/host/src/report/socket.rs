//! State of a socket: reported by its owner and by its I/O thread, read by the watch.

use std::collections::HashMap;
use std::mem::take;
use std::time::Duration;

use super::Watch;
use super::endpoint::{self, count_lost, is_brief};
use super::peer::PeerWatch;
use super::tap::{Tap, TapState};
use super::topics::{PublishedTopics, put_subscriptions};
use tautline_config::event;
use tautline_config::options::{Mechanism, Options};
use tautline_core::host::{
    DiscardReason, EventReport, Observed, PeerCounts, PeerProbe, PeerReport, SocketCounts, SocketProbe,
    SocketReport, TappedPart,
};
use tautline_io::clock::unix_us;
use tautline_observe::{
    self as observe, Context, Endpoint, EndpointState, Event, Image, Peer, PeerState, Route, Socket,
    SocketState,
};
use tautline_proto::{Secret, public_key, zap};
use tautline_queue::sync::{Arc, Mutex, lock};

/// Numbers of socket types, as in `zmq.h`.
const PUB: u32 = 1;
const REP: u32 = 4;
const XPUB: u32 = 9;

/// Option bit of a CURVE client whose keys do not belong together.
const MISMATCH: u64 = observe::Options::KEY_PAIR_MISMATCH;

/// First id of peers that the owner has not numbered yet.
const UNSEEN: u64 = 1 << 32;

/// An observed socket.
pub(super) struct SocketWatch {
    watch: Arc<Watch>,
    /// Facts about its context.
    context: Arc<Mutex<Context>>,
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
    /// Number of messages that the socket itself had discarded at the last look.
    discarded: u64,
    /// Parts that ZMQ_CONFLATE has split, of former peers.
    past_split: u64,
    /// Messages that wait for former peers that cannot get them any more.
    unsent: u64,
    topics: PublishedTopics,
    /// Number of sent messages at the last request for a topic.
    asked_at: u64,
    /// Keys of a CURVE client.
    keys: Option<KeyPair>,
    /// First endpoint, after the socket is closed.
    former_endpoint: String,
    /// Endpoint on which it sends the events of a monitor, if it is the library's end of one.
    monitor_endpoint: Option<String>,
}

/// The keys of a CURVE client.
struct KeyPair {
    public: [u8; 32],
    secret: std::sync::Arc<Secret<[u8; 32]>>,
    /// True if they do not belong together; `None` if this was not checked.
    mismatch: Option<bool>,
}

impl KeyPair {
    /// True if the keys do not belong together. Takes some microseconds the first time.
    fn is_mismatch(&mut self) -> bool {
        *self.mismatch.get_or_insert_with(|| public_key(&self.secret) != self.public)
    }
}

/// Counters of peers together: messages and bytes out, messages and bytes in, dropped messages.
type Totals = [u64; 5];

fn add(totals: &mut Totals, peer: &Peer) {
    let counts = [peer.messages_out, peer.bytes_out, peer.messages_in, peer.bytes_in, peer.dropped];
    totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
}

/// True if the endpoint carries ZAP requests.
fn is_zap(endpoint: &Endpoint) -> bool {
    endpoint.name.strip_prefix("inproc://") == Some(zap::HANDLER)
}

impl SocketWatch {
    pub(super) fn new(
        watch: Arc<Watch>,
        context: Arc<Mutex<Context>>,
        socket: Socket,
        probe: SocketProbe,
    ) -> Self {
        let id = socket.id;
        let state = Mutex::new(SocketWatchState { socket, ..SocketWatchState::default() });
        SocketWatch { watch, context, id, probe, state, taps: Mutex::default(), route: Mutex::default() }
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
        let SocketWatchState {
            socket,
            endpoints,
            peers,
            unseen,
            lingering,
            past,
            past_split,
            unsent,
            topics,
            asked_at,
            discarded,
            ..
        } = &mut *state;
        let mut counts = self.probe.counts();
        held.reserve(peers.len() + unseen.len() + lingering.len());
        // Remove a peer that has left again without a message: the owner never hears of it.
        unseen.retain_mut(|known| {
            held.push(known.look(now));
            held.last().is_some_and(|counts| counts.connection.is_some())
        });
        lingering.retain_mut(|known| {
            let counts = known.look(now);
            let stays = counts.connection.as_ref().is_some_and(|connection| connection.has_pending());
            if !stays {
                add(past, &known.peer);
                *past_split += known.split_parts;
                *unsent += known.unsent(&counts);
            }
            held.push(counts);
            stays
        });
        let mut all = *past;
        let (mut queued_out, mut queued_in) = (0, 0);
        let has_discarded = std::mem::replace(discarded, counts.discarded.0) != counts.discarded.0;
        let mut split_parts = *past_split;
        for known in peers.values_mut() {
            let replies = known.peer.messages_out;
            held.push(known.look(now));
            if socket.type_code == REP {
                known.measure_replies(replies, has_discarded, now);
            }
        }
        for known in peers.values().chain(&*unseen).chain(&*lingering) {
            add(&mut all, &known.peer);
            split_parts += known.split_parts;
            queued_out += known.peer.queued_out;
            queued_in += known.peer.queued_in;
        }
        socket.peers = (peers.len() + unseen.len() + lingering.len()) as u64;
        [socket.messages_out, socket.bytes_out, socket.messages_in, socket.bytes_in, socket.dropped] = all;
        (socket.queued_out, socket.queued_in) = (queued_out, queued_in);
        socket.discarded_unsent = *unsent;
        let published = counts.examples.published.take();
        let subscriptions = std::mem::take(&mut counts.examples.subscriptions);
        take_counts(socket, counts, split_parts);
        if let Some((topic, subscribed)) = published {
            topics.add(self.id, topic, now);
            socket.subscribed = subscribed as u64;
        }
        // Ask only a socket that sends: the request wakes its owner.
        let sent = socket.messages_out + socket.unmatched + socket.dropped;
        if [PUB, XPUB].contains(&socket.type_code) && *asked_at != sent {
            *asked_at = sent;
            self.probe.request_topics();
        }
        image.put(socket);
        put_subscriptions(self.id, subscriptions, image);
        topics.put(image);
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
        let mut state = lock(&self.state);
        let SocketWatchState { socket, keys, .. } = &mut *state;
        let is_client = options.mechanism == Mechanism::Curve && !options.as_server;
        let is_known = keys.as_ref().is_some_and(|keys| {
            keys.public == options.curve_public_key
                && std::sync::Arc::ptr_eq(&keys.secret, &options.curve_secret_key)
        });
        if !(is_client && is_known) {
            *keys = is_client.then(|| KeyPair {
                public: options.curve_public_key,
                secret: options.curve_secret_key.clone(),
                mismatch: None,
            });
        }
        socket.send_hwm = options.send_hwm.into();
        socket.receive_hwm = options.receive_hwm.into();
        socket.linger_ms = ms(options.linger).map_or(-1, |ms| ms as i64);
        socket.heartbeat_ms = ms(options.heartbeat_interval).unwrap_or(0);
        socket.heartbeat_timeout_ms = options
            .heartbeat_interval
            .and_then(|interval| ms(options.heartbeat_timeout.or(Some(interval))))
            .unwrap_or(0);
        socket.heartbeat_ttl_ms = ms(options.heartbeat_ttl).unwrap_or(0);
        options.mechanism.name().clone_into(&mut socket.mechanism);
        socket.routing_id.clone_from(&options.routing_id);
        let bits = [
            (options.immediate, observe::Options::IMMEDIATE),
            (options.conflate, observe::Options::CONFLATE),
            (options.router_mandatory, observe::Options::ROUTER_MANDATORY),
            (options.xpub_nodrop, observe::Options::XPUB_NODROP),
            (options.req_relaxed, observe::Options::REQ_RELAXED),
            (socket.options & MISMATCH != 0, MISMATCH),
        ];
        socket.options = bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum();
        socket.subscriptions = subscriptions as u64;
    }

    fn add_endpoint(&self, given: &str, name: &str, bound: bool, mechanism: &str) {
        let mut state = lock(&self.state);
        let SocketWatchState { socket, endpoints, keys, .. } = &mut *state;
        let context = socket.context;
        if !bound && let Some(keys) = keys {
            socket.options = socket.options & !MISMATCH | if keys.is_mismatch() { MISMATCH } else { 0 };
        }
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

    fn set_resolved(&self, name: &str, address: &str) {
        let mut state = lock(&self.state);
        let connected =
            state.endpoints.iter_mut().filter(|endpoint| !endpoint.bound && endpoint.name == name);
        connected.for_each(|endpoint| address.clone_into(&mut endpoint.resolved));
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
        let id = peer.id;
        // Keep the counters of a peer that the owner has not noticed before.
        let unseen = state.unseen.iter().position(|known| known.probe.is_same(&probe));
        let known = match unseen.map(|at| state.unseen.swap_remove(at)) {
            Some(unseen) => unseen.renewed(id, peer, probe),
            None => PeerWatch::new(id, peer, probe),
        };
        state.peers.insert(id, known);
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
            state.past_split += gone.split_parts;
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
            socket,
            peers,
            unseen,
            lingering,
            endpoints,
            former_endpoint,
            monitor_endpoint: tells_at,
            ..
        } = &mut *state;
        unseen.clear();
        socket.state = SocketState::Lingering;
        if let Some(first) = endpoints.first_mut() {
            *former_endpoint = take(&mut first.given);
        }
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
                event::LOST => count_lost(seen, &mut socket.lost_silent, &mut socket.lost_closed),
                _ => {}
            }
            socket.brief += u64::from(is_brief(seen, now));
            for endpoint in endpoints.iter_mut().filter(|endpoint| endpoint.name == seen.endpoint) {
                endpoint::update(endpoint, seen, &reason, now);
            }
        }
        self.watch.note(told);
    }
}

/// Copies the counters of a socket. `split_parts` is the number of parts that ZMQ_CONFLATE has
/// split.
fn take_counts(socket: &mut Socket, counts: SocketCounts, split_parts: u64) {
    let (own, reason) = counts.discarded;
    socket.discarded_by = match reason {
        _ if split_parts > 0 => observe::DiscardReason::SeveralParts,
        DiscardReason::None => observe::DiscardReason::None,
        DiscardReason::NoDelimiter => observe::DiscardReason::NoDelimiter,
        DiscardReason::StaleReply => observe::DiscardReason::StaleReply,
        DiscardReason::NoReplyDelimiter => observe::DiscardReason::NoReplyDelimiter,
        DiscardReason::RefusedPeer => observe::DiscardReason::RefusedPeer,
        DiscardReason::TooManyParts => observe::DiscardReason::TooManyParts,
    };
    socket.discarded = own + split_parts;
    (socket.unroutable, socket.out_of_turn) = (counts.unroutable, counts.out_of_turn);
    (socket.duplicates, socket.taken_over) = (counts.duplicates, counts.taken_over);
    socket.unmatched = counts.unmatched;
    socket.astray = counts.examples.unroutable_id;
    socket.duplicate_id = counts.examples.duplicate_id;
    socket.unmatched_topic = counts.examples.unmatched.map(|topic| topic.prefix).unwrap_or_default();
}

/// Adds a closed socket to the totals of its context.
impl Drop for SocketWatch {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        let SocketWatchState { socket, lingering, unsent, former_endpoint, .. } = &mut *state;
        if socket.state != SocketState::Lingering || socket.monitor {
            return;
        }
        let held: Vec<PeerCounts> = lingering.iter_mut().map(|known| known.look(0)).collect();
        *unsent += lingering.iter().zip(&held).map(|(known, counts)| known.unsent(counts)).sum::<u64>();
        let unmatched = self.probe.counts().unmatched;
        let mut context = lock(&self.context);
        context.closed_sockets += 1;
        context.closed_unmatched += unmatched;
        context.closed_discarded += *unsent;
        context.closed_discarding += u64::from(*unsent > 0);
        if *unsent + unmatched > 0 {
            context.closed_last = unix_us();
            context.closed_linger_ms = socket.linger_ms;
            context.closed_type.clone_from(&socket.type_name);
            context.closed_endpoint = take(former_endpoint);
        }
        drop(context);
        drop(state);
        drop(held);
    }
}
