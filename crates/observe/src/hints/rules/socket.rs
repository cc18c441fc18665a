//! Rules about missing settings and lost messages of a socket.

use std::cmp::Reverse;

use super::{BUSY, PATIENCE, hint};
use crate::hints::{Hint, Level, RuleInput, format_count, id_name, readable_name};
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
        format!("{name} has no subscription, so it receives no messages"),
        format!("no topic for {seconds} s, {}", format_count(socket.peers, "peer")),
        "Set ZMQ_SUBSCRIBE to the prefix of a topic, or to an empty text for all messages.",
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
        format!("{} dropped in total, {more} of them recently; {peers}", socket.unroutable),
        "Compare the first part of the sent messages with the routing ids of the peers. Usually the peer has \
         disconnected, or has another id after it reconnected. With ZMQ_ROUTER_MANDATORY, the send fails instead.",
    )
}

pub(super) fn lost(scene: &RuleInput<'_>, socket: &Socket) -> Option<Hint> {
    let more = scene.increase(socket, |socket| socket.lost);
    if more == 0 {
        return None;
    }
    hint(socket, Level::Warning, "lost", more).with_text(
        format!("{} lost messages that were queued for disconnected peers", scene.name_of(socket)),
        format!("{} lost in total, {more} of them recently", socket.lost),
        "Unsent messages are dropped when their peer is gone for good. If a message must arrive, let the receiver confirm it.",
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
    let peers: Vec<String> = peers.into_iter().take(NAMED).map(|peer| scene.peer_name(peer)).collect();
    let ends = match socket.linger_ms {
        -1 => "for ever".to_owned(),
        ms => format!("for at most {ms} ms"),
    };
    let to = peers.join(", ") + &others;
    hint(socket, Level::Trouble, "linger", seconds).with_text(
        format!("The program cannot exit, because a closed {} still has messages for {to}", socket.type_name),
        format!(
            "{}, waiting for {seconds} s; ZMQ_LINGER lets them wait {ends}",
            format_count(socket.queued_out, "message")
        ),
        "Start the peer, which does not take the messages, or set ZMQ_LINGER to the milliseconds that an exit may wait.",
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
        (
            "all peers have disconnected",
            format!("{} has the events with the time and the reason.", scene.show_command(socket)),
        )
    } else {
        (
            "no peer has connected",
            "Compare this address with the endpoints to which the other programs connect.".to_owned(),
        )
    };
    hint(socket, Level::Note, "no-peers", seconds).with_text(
        format!("{} listens at {}, but {what}", socket.type_name, readable_name(endpoint)),
        format!("{} accepted in {seconds} s", format_count(endpoint.accepted, "peer")),
        advice,
    )
}
