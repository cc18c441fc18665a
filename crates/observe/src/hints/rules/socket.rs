//! Rules about missing settings and lost messages of a socket.

use std::cmp::Reverse;

use super::{BUSY, PATIENCE, hint};
use crate::hints::{Hint, Level, RuleInput, format_count, id_name, peer_name, readable_name};
use crate::{Endpoint, EndpointState, Socket, SocketState};

/// Maximum number of peers that a hint names.
const NAMED: usize = 3;

pub(super) fn no_subscription(scene: &RuleInput<'_>, socket: &Socket) -> Option<Hint> {
    let seconds = scene.seconds(socket.since);
    let has_reason = socket.peers > 0 || scene.endpoints_of(socket.id).next().is_some();
    if socket.type_name != "SUB" || socket.subscriptions > 0 || seconds < PATIENCE || !has_reason {
        return None;
    }
    let name = scene.name_of(socket);
    hint(socket, Level::Trouble, "no-subscription", seconds).with_text(
        format!("{name} is subscribed to nothing, so it receives nothing"),
        format!("no topic for {seconds} s, {}", format_count(socket.peers, "peer")),
        "Set ZMQ_SUBSCRIBE: to the prefix of a topic, or to an empty text for everything.",
    )
}

pub(super) fn unroutable(scene: &RuleInput<'_>, socket: &Socket) -> Option<Hint> {
    let more = scene.increase(socket, |socket| socket.unroutable);
    if more == 0 {
        return None;
    }
    let last = match &*socket.astray {
        [] => String::new(),
        id => format!(", the last one to {}", id_name(id)),
    };
    let known: Vec<_> = scene.peers_of(socket.id).filter(|peer| !peer.routing_id.is_empty()).collect();
    let names: Vec<String> = known.iter().take(NAMED).map(|peer| id_name(&peer.routing_id)).collect();
    let peers = match (names.join(", "), known.len().saturating_sub(NAMED)) {
        (names, _) if names.is_empty() => "it has no peer with a routing id".to_owned(),
        (names, 0) => format!("its peers are {names}"),
        (names, more) => format!("its peers are {names} and {more} others"),
    };
    hint(socket, Level::Warning, "unroutable", more).with_text(
        format!("{} drops messages to routing ids that no peer has{last}", scene.name_of(socket)),
        format!("{} dropped so, {more} of them lately; {peers}", socket.unroutable),
        "Compare the first part of what is sent with the routing ids of the peers; ZMQ_ROUTER_MANDATORY makes \
         it an error instead. A peer that has gone, or has another id after it came back, is the usual cause.",
    )
}

pub(super) fn lost(scene: &RuleInput<'_>, socket: &Socket) -> Option<Hint> {
    let more = scene.increase(socket, |socket| socket.lost);
    if more == 0 {
        return None;
    }
    hint(socket, Level::Warning, "lost", more).with_text(
        format!("{} has lost messages that were queued for peers that have gone", scene.name_of(socket)),
        format!("{} lost, {more} of them lately", socket.lost),
        "What a peer has not received goes with it. Let the receiver confirm what must arrive.",
    )
}

pub(super) fn lingers(scene: &RuleInput<'_>, socket: &Socket) -> Option<Hint> {
    if socket.state != SocketState::Lingering || socket.queued_out == 0 {
        return None;
    }
    let waiting = scene.reading.contexts.iter().find(|context| context.id == socket.context)?.terminating;
    let seconds = scene.seconds(waiting);
    if waiting == 0 || seconds < PATIENCE {
        return None;
    }
    let mut peers: Vec<_> = scene.peers_of(socket.id).filter(|peer| peer.queued_out > 0).collect();
    peers.sort_by_key(|peer| Reverse(peer.queued_out));
    let others = match peers.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} others"),
    };
    let peers: Vec<String> = peers.into_iter().take(NAMED).map(peer_name).collect();
    let ends = match socket.linger_ms {
        -1 => "for ever".to_owned(),
        ms => format!("for at most {ms} ms"),
    };
    let to = peers.join(", ") + &others;
    hint(socket, Level::Trouble, "linger", seconds).with_text(
        format!("The program waits for its end: a closed {} has still to send to {to}", socket.type_name),
        format!(
            "{}, waiting for {seconds} s; ZMQ_LINGER waits {ends}",
            format_count(socket.queued_out, "message")
        ),
        "Start the peer that does not take them, or set ZMQ_LINGER to the milliseconds that they are worth.",
    )
}

pub(super) fn has_no_peers(scene: &RuleInput<'_>, socket: &Socket) -> Option<Hint> {
    let seconds = scene.seconds(socket.since);
    let mut endpoints = scene.endpoints_of(socket.id);
    if socket.state != SocketState::Open || socket.peers > 0 || seconds < 2 * BUSY {
        return None;
    }
    // If handshakes fail, peers do reach the endpoint.
    let is_idle = |endpoint: &&Endpoint| endpoint.state == EndpointState::Listening && endpoint.failures == 0;
    let endpoint = endpoints.find(is_idle)?;
    let came = socket.messages_in + socket.messages_out > 0 || endpoint.accepted > 0;
    let (what, advice) = if came {
        ("all peers have left", "See why they have gone: the events say when and how.")
    } else {
        ("no peer has come", "Compare the address with the one that the others connect to.")
    };
    hint(socket, Level::Note, "no-peers", seconds).with_text(
        format!("{} listens at {}, and {what}", socket.type_name, readable_name(endpoint)),
        format!("{} accepted in {seconds} s", format_count(endpoint.accepted, "peer")),
        advice,
    )
}
