//! The rules. Each looks at one thing, and gives at most one hint about it.

use super::{Hint, Level, Scene, about, name_of, peer_name, shown};
use crate::words::{self, errno};
use crate::{Endpoint, EndpointState, Options, Peer, PeerState, Socket, SocketState};

/// Shorter than this anything may take, in seconds.
const PATIENCE: u64 = 2;
/// For this long a program may do something else, in seconds.
const BUSY: u64 = 5;

/// Those about a socket.
pub(super) fn of_socket(scene: &Scene<'_>, socket: &Socket) -> impl Iterator<Item = Hint> {
    let rules = [no_subscription, unroutable, lost, lingers, waits_for_reply, has_no_peers];
    rules.map(|rule| rule(scene, socket)).into_iter().flatten()
}

/// Those about an endpoint.
pub(super) fn of_endpoint(
    scene: &Scene<'_>,
    socket: &Socket,
    endpoint: &Endpoint,
) -> impl Iterator<Item = Hint> {
    [cannot_connect, handshake_fails].map(|rule| rule(scene, socket, endpoint)).into_iter().flatten()
}

/// Those about a peer.
pub(super) fn of_peer(scene: &Scene<'_>, socket: &Socket, peer: &Peer) -> impl Iterator<Item = Hint> {
    [drops, full, unread].map(|rule| rule(scene, socket, peer)).into_iter().flatten()
}

/// Those about the process.
pub(super) fn of_process(scene: &Scene<'_>) -> impl Iterator<Item = Hint> {
    [too_many_files, ends_with_open, left_out].map(|rule| rule(scene)).into_iter().flatten()
}

fn hint(socket: &Socket, level: Level, rule: &'static str, weight: u64) -> Hint {
    Hint {
        level,
        rule,
        socket: socket.id,
        peer: None,
        what: String::new(),
        evidence: String::new(),
        advice: String::new(),
        weight,
    }
}

impl Hint {
    fn says(self, what: String, evidence: String, advice: impl Into<String>) -> Option<Hint> {
        Some(Hint { what, evidence, advice: advice.into(), ..self })
    }

    fn about(self, peer: &Peer) -> Hint {
        Hint { peer: Some(peer.id), ..self }
    }
}

/// Whether messages may be dropped where others would wait.
fn is_publisher(socket: &Socket) -> bool {
    matches!(&*socket.type_name, "PUB" | "XPUB" | "RADIO")
}

fn no_subscription(scene: &Scene<'_>, socket: &Socket) -> Option<Hint> {
    let seconds = scene.seconds(socket.since);
    let has_reason = socket.peers > 0 || scene.reading.endpoints_of(socket.id).next().is_some();
    if socket.type_name != "SUB" || socket.subscriptions > 0 || seconds < PATIENCE || !has_reason {
        return None;
    }
    let name = name_of(scene.reading, socket);
    hint(socket, Level::Trouble, "no-subscription", seconds).says(
        format!("{name} is subscribed to nothing, so it receives nothing"),
        format!("no topic for {seconds} s, {} peers", socket.peers),
        "Set ZMQ_SUBSCRIBE: to the prefix of a topic, or to an empty text for everything.",
    )
}

fn unroutable(scene: &Scene<'_>, socket: &Socket) -> Option<Hint> {
    let more = match scene.socket_before(socket) {
        Some(before) => socket.unroutable.saturating_sub(before.unroutable),
        None => socket.unroutable,
    };
    if more == 0 {
        return None;
    }
    let name = name_of(scene.reading, socket);
    hint(socket, Level::Warning, "unroutable", more).says(
        format!("{name} drops messages to routing ids that no peer has"),
        format!("{} dropped so, {more} of them lately", socket.unroutable),
        "Compare the first part of what is sent with the routing ids of the peers; ZMQ_ROUTER_MANDATORY makes \
         it an error instead. A peer that has gone, or has another id after it came back, is the usual cause.",
    )
}

fn lost(scene: &Scene<'_>, socket: &Socket) -> Option<Hint> {
    let more = match scene.socket_before(socket) {
        Some(before) => socket.lost.saturating_sub(before.lost),
        None => socket.lost,
    };
    if more == 0 {
        return None;
    }
    let name = name_of(scene.reading, socket);
    hint(socket, Level::Warning, "lost", more).says(
        format!("{name} has lost messages that were queued for peers that have gone"),
        format!("{} lost, {more} of them lately", socket.lost),
        "What a peer has not received goes with it. Let the receiver confirm what must arrive.",
    )
}

fn lingers(scene: &Scene<'_>, socket: &Socket) -> Option<Hint> {
    if socket.state != SocketState::Lingering || socket.queued_out == 0 {
        return None;
    }
    let waiting = scene.reading.contexts.iter().find(|context| context.id == socket.context)?.terminating;
    let seconds = scene.seconds(waiting);
    if waiting == 0 || seconds < PATIENCE {
        return None;
    }
    let peers = scene.reading.peers_of(socket.id).filter(|peer| peer.queued_out > 0);
    let peers: Vec<String> = peers.take(3).map(peer_name).collect();
    let ends = match socket.linger_ms {
        -1 => "for ever".to_owned(),
        ms => format!("for at most {ms} ms"),
    };
    let to = peers.join(", ");
    hint(socket, Level::Trouble, "linger", seconds).says(
        format!("The program waits for its end: a closed {} has still to send to {to}", socket.type_name),
        format!("{} messages, waiting for {seconds} s; ZMQ_LINGER waits {ends}", socket.queued_out),
        "Start the peer that does not take them, or set ZMQ_LINGER to the milliseconds that they are worth.",
    )
}

fn waits_for_reply(scene: &Scene<'_>, socket: &Socket) -> Option<Hint> {
    if socket.type_name != "REQ" || socket.messages_out <= socket.messages_in || socket.queued_out > 0 {
        return None;
    }
    let peer = scene.reading.peers_of(socket.id).max_by_key(|peer| peer.last_out)?;
    let seconds = scene.seconds(peer.last_out);
    if peer.state != PeerState::Connected || seconds < BUSY {
        return None;
    }
    let begun = hint(socket, Level::Warning, "no-reply", seconds).about(peer);
    begun.says(
        format!("REQ waits for a reply of {}", peer_name(peer)),
        format!("its request was sent {seconds} s ago"),
        "See what the peer does with the request. A REQ whose request or reply was lost waits for ever: set \
         ZMQ_RCVTIMEO, and ZMQ_REQ_RELAXED with ZMQ_REQ_CORRELATE to ask again.",
    )
}

fn has_no_peers(scene: &Scene<'_>, socket: &Socket) -> Option<Hint> {
    let seconds = scene.seconds(socket.since);
    let mut endpoints = scene.reading.endpoints_of(socket.id);
    if socket.state != SocketState::Open || socket.peers > 0 || seconds < 2 * BUSY {
        return None;
    }
    let endpoint = endpoints.find(|endpoint| endpoint.state == EndpointState::Listening)?;
    let came = socket.messages_in + socket.messages_out > 0 || endpoint.accepted > 0;
    let (what, advice) = if came {
        ("all peers have left", "See why they have gone: the events say when and how.")
    } else {
        ("no peer has come", "Compare the address with the one that the others connect to.")
    };
    hint(socket, Level::Note, "no-peers", seconds).says(
        format!("{} listens at {}, and {what}", socket.type_name, shown(endpoint)),
        format!("{} peers were accepted in {seconds} s", endpoint.accepted),
        advice,
    )
}

fn cannot_connect(scene: &Scene<'_>, socket: &Socket, endpoint: &Endpoint) -> Option<Hint> {
    let seconds = scene.seconds(endpoint.failing_since);
    let is_up = matches!(endpoint.state, EndpointState::Connected | EndpointState::Listening);
    if endpoint.failures == 0 || is_up || endpoint.failed_by != words::CONNECT_FAILED || seconds < PATIENCE {
        return None;
    }
    let advice = match endpoint.error {
        errno::REFUSED => "Nothing listens there: start the other program, or correct host and port.",
        errno::NO_ENTRY => "No socket is bound to that path: start the other program, or correct it.",
        errno::NO_ACCESS => "The path belongs to another user, or the system forbids it.",
        error if errno::TOO_MANY_FILES.contains(&error) => {
            "Raise the limit of open files (ulimit -n), or close sockets."
        }
        _ => "Look at the name, the route and the firewall between the two hosts.",
    };
    let given_up = if endpoint.state == EndpointState::Stopped { "; it is not tried again" } else { "" };
    hint(socket, Level::Trouble, "connect-failed", seconds).says(
        format!("{} cannot connect to {}: {}", socket.type_name, shown(endpoint), endpoint.reason),
        format!("{} attempts in {seconds} s{given_up}", endpoint.failures),
        advice,
    )
}

fn handshake_fails(scene: &Scene<'_>, socket: &Socket, endpoint: &Endpoint) -> Option<Hint> {
    if endpoint.failures == 0 || !matches!(endpoint.failed_by, 0x800 | 0x2000 | 0x4000) {
        return None;
    }
    let advice = match (endpoint.failed_by, endpoint.error) {
        (0x2000, 0x1100_0002) => format!(
            "Both ends need the same mechanism: this one has {}. One end has keys or a password set, and the other has not.",
            socket.mechanism
        ),
        (0x2000, 0x1100_0001 | 0x1000_0003) => {
            "Compare the keys: ZMQ_CURVE_SERVERKEY of the client is the public key of the server.".to_owned()
        }
        (0x4000, 300) => "The authentication handler says: not now.".to_owned(),
        (0x4000, 400) => "The authentication handler does not know this key, user or address.".to_owned(),
        (0x4000, _) => "The authentication handler has failed: see its log.".to_owned(),
        (0x800, _) => format!(
            "The peer broke off or said nothing. A server with CURVE does so to a wrong key, or something else than ZeroMQ is at that address. This end has {}.",
            socket.mechanism
        ),
        _ => "Something else than ZeroMQ is at the other end, or a port is mixed up.".to_owned(),
    };
    let seconds = scene.seconds(endpoint.failing_since);
    let whom = if endpoint.bound { "peers that come to" } else { "the peer at" };
    hint(socket, Level::Trouble, "handshake-failed", endpoint.failures).says(
        format!("{} and {whom} {} do not get on: {}", socket.type_name, shown(endpoint), endpoint.reason),
        format!("{} handshakes failed, the first one {seconds} s ago", endpoint.failures),
        advice,
    )
}

/// How many messages a peer has taken.
fn taken(peer: &Peer) -> u64 {
    peer.messages_out.saturating_sub(peer.queued_out)
}

fn drops(scene: &Scene<'_>, socket: &Socket, peer: &Peer) -> Option<Hint> {
    let before = scene.peer_before(peer);
    let more = peer.dropped.saturating_sub(before.map_or(0, |before| before.dropped));
    if more == 0 {
        return None;
    }
    let name = peer_name(peer);
    let evidence = match (before, scene.rate(more)) {
        (Some(before), Some(dropped)) => {
            let read = scene.rate(taken(peer).saturating_sub(taken(before))).unwrap_or(0);
            let all = read + dropped;
            format!("it takes {}/s of {}/s; {} dropped in all", about(read), about(all), about(peer.dropped))
        }
        _ => format!("{} dropped, {} sent", about(peer.dropped), about(peer.messages_out)),
    };
    let advice = if is_publisher(socket) {
        "Make the subscriber faster, or subscribe it to less. A higher ZMQ_SNDHWM here and ZMQ_RCVHWM there only help with bursts; ZMQ_XPUB_NODROP holds all others up instead."
    } else {
        "Make the receiver faster, or raise ZMQ_SNDHWM for bursts."
    };
    let begun = hint(socket, Level::Warning, "drops", more).about(peer);
    begun.says(
        format!("{} drops messages for {name}, which does not keep up", socket.type_name),
        evidence,
        advice,
    )
}

fn full(scene: &Scene<'_>, socket: &Socket, peer: &Peer) -> Option<Hint> {
    let seconds = scene.seconds(peer.full_since);
    if peer.full_since == 0 || seconds < PATIENCE || peer.state == PeerState::Lingering {
        return None;
    }
    let name = peer_name(peer);
    let moves = scene.peer_before(peer).map(|before| taken(peer) > taken(before));
    let (why, advice) = match (peer.state, moves) {
        (PeerState::Connecting, _) => ("it is not connected", "See why it is not connected."),
        (_, Some(false)) => {
            ("it takes nothing", "The program at the other end does not receive: see what it is doing.")
        }
        _ => {
            ("it is slower than this end", "Make the receiver faster, or spread the work over more of them.")
        }
    };
    let level = if is_publisher(socket) { Level::Warning } else { Level::Trouble };
    let blocks = if is_publisher(socket) { "messages are dropped" } else { "sending waits" };
    hint(socket, level, "queue-full", seconds).about(peer).says(
        format!("The queue of {} to {name} is full, so {blocks}: {why}", socket.type_name),
        format!("{} of {} messages for {seconds} s", peer.queued_out, peer.limit_out),
        advice,
    )
}

fn unread(scene: &Scene<'_>, socket: &Socket, peer: &Peer) -> Option<Hint> {
    if socket.options & Options::CONFLATE != 0 || peer.queued_in == 0 {
        return None;
    }
    let read = |peer: &Peer| peer.messages_in.saturating_sub(peer.queued_in);
    let before = scene.peer_before(peer)?;
    let earlier = scene.before.map_or(0, |before| before.process.written);
    let seconds = scene.seconds(earlier).max(scene.seconds(peer.full_in_since));
    if read(before) != read(peer) || before.queued_in == 0 || seconds < PATIENCE {
        return None;
    }
    let full = if peer.full_in_since > 0 { ", which is all that ZMQ_RCVHWM lets wait" } else { "" };
    hint(socket, Level::Trouble, "not-received", peer.queued_in).about(peer).says(
        format!("The program does not receive from {} what {} has sent", name_of(scene.reading, socket), peer_name(peer)),
        format!("{} messages wait, and none was taken for {seconds} s{full}", peer.queued_in),
        "See what the thread of this socket is doing: it waits for something else, or has forgotten the socket.",
    )
}

fn too_many_files(scene: &Scene<'_>) -> Option<Hint> {
    let failed = |event: &&crate::Event| event.code == 0x40 && errno::TOO_MANY_FILES.contains(&event.value);
    let count = scene.reading.events.iter().filter(failed).count() as u64;
    let last = scene.reading.events.iter().rfind(failed)?;
    let socket = scene.reading.socket(last.socket).cloned().unwrap_or_default();
    hint(&socket, Level::Trouble, "too-many-files", count).says(
        format!("{} cannot accept peers: {}", name_of(scene.reading, &socket), last.reason),
        format!("{count} times lately, {} s ago", scene.seconds(last.at)),
        "Raise the limit of open files (ulimit -n, LimitNOFILE= of the service), or close what is not used.",
    )
}

fn ends_with_open(scene: &Scene<'_>) -> Option<Hint> {
    let context = scene.reading.contexts.iter().find(|context| context.terminating > 0)?;
    let seconds = scene.seconds(context.terminating);
    let open: Vec<&Socket> = scene
        .reading
        .sockets
        .iter()
        .filter(|socket| socket.context == context.id && socket.state == SocketState::Open)
        .collect();
    let first = open.first().filter(|_| seconds >= PATIENCE)?;
    hint(first, Level::Trouble, "open-at-exit", seconds).says(
        format!("The program waits for its end: {} sockets are still open", open.len()),
        format!("since {seconds} s; one is {}", name_of(scene.reading, first)),
        "Close each socket before zmq_ctx_term, also those of other threads.",
    )
}

fn left_out(scene: &Scene<'_>) -> Option<Hint> {
    let omitted = scene.reading.process.omitted;
    if omitted == 0 {
        return None;
    }
    hint(&Socket::default(), Level::Note, "left-out", omitted).says(
        "Not all sockets and peers are shown".to_owned(),
        format!("{omitted} had no room in the file of counters"),
        "What is said here may not be all.",
    )
}
