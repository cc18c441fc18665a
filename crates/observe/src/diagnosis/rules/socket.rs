//! Rules about missing settings and lost messages of a socket.

use std::cmp::Reverse;

use super::{BUSY, LATELY, PATIENCE, finding};
use crate::diagnosis::text::{format_count, format_short, id_name, readable_name};
use crate::diagnosis::{Finding, Level, RuleInput};
use crate::event_text;
use crate::{DiscardReason, Endpoint, EndpointState, Options, Socket, SocketState};

/// Smallest number of a protocol error in an event (`ZMQ_PROTOCOL_ERROR_*`).
const PROTOCOL_ERROR: u64 = 0x1000_0000;
/// Maximum number of peers that a finding names.
const NAMED: usize = 3;

pub(super) fn no_subscription(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
    let seconds = scene.seconds(socket.since);
    let has_reason = socket.peers > 0 || scene.endpoints_of(socket.id).next().is_some();
    if socket.type_name != "SUB" || socket.subscriptions > 0 || seconds < PATIENCE || !has_reason {
        return None;
    }
    let name = scene.name_of(socket);
    finding(socket, Level::Trouble, "no-subscription", seconds).with_text(
        format!("{name} has no subscription, so it receives no messages"),
        format!("no topic for {seconds} s, {}", format_count(socket.peers, "peer")),
        "Set ZMQ_SUBSCRIBE to the prefix of a topic, or to an empty text for all messages.",
    )
}

pub(super) fn unroutable(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
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
    finding(socket, Level::Warning, "unroutable", more).with_text(
        format!("{} drops messages to routing ids that no peer has{last}", scene.name_of(socket)),
        format!("{} dropped in total, {more} of them recently; {peers}", socket.unroutable),
        "Compare the first part of the sent messages with the routing ids of the peers. Usually the peer has \
         disconnected, or has another id after it reconnected. With ZMQ_ROUTER_MANDATORY, the send fails instead.",
    )
}

pub(super) fn lost(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
    let more = scene.increase(socket, |socket| socket.lost);
    if more == 0 {
        return None;
    }
    finding(socket, Level::Warning, "lost", more).with_text(
        format!("{} lost messages that were queued for disconnected peers", scene.name_of(socket)),
        format!("{} lost in total, {more} of them recently", socket.lost),
        "Unsent messages are dropped when their peer is gone for good. If a message must arrive, let the receiver confirm it.",
    )
}

pub(super) fn lingers(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
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
    finding(socket, Level::Trouble, "linger", seconds).with_text(
        format!("The program cannot exit, because a closed {} still has messages for {to}", socket.type_name),
        format!(
            "{}, waiting for {seconds} s; ZMQ_LINGER lets them wait {ends}",
            format_count(socket.queued_out, "message")
        ),
        "Start the peer, which does not take the messages, or set ZMQ_LINGER to the milliseconds that an exit may wait.",
    )
}

pub(super) fn has_no_peers(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
    let seconds = scene.seconds(socket.since);
    let mut endpoints = scene.endpoints_of(socket.id);
    if socket.state != SocketState::Open || socket.peers > 0 || seconds < 2 * BUSY {
        return None;
    }
    // If handshakes fail, peers do reach the endpoint.
    // An inproc peer counts only after the program has used the socket.
    let is_inproc = |endpoint: &Endpoint| readable_name(endpoint).starts_with("inproc://");
    let is_idle = |endpoint: &&Endpoint| {
        endpoint.state == EndpointState::Listening && endpoint.failures == 0 && !is_inproc(endpoint)
    };
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
    finding(socket, Level::Note, "no-peers", seconds).with_text(
        format!("{} listens at {}, but {what}", socket.type_name, readable_name(endpoint)),
        format!("{} accepted in {seconds} s", format_count(endpoint.accepted, "peer")),
        advice,
    )
}

/// Reports received messages that the socket threw away.
pub(super) fn discards(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
    let more = scene.increase(socket, |socket| socket.discarded);
    if more == 0 {
        return None;
    }
    let name = scene.name_of(socket);
    let (what, advice) = match socket.discarded_by {
        DiscardReason::NoDelimiter => (
            format!("{name} discards requests that have no empty delimiter"),
            "A DEALER must send an empty part before the request, as a REQ does. Its reply also begins with an empty part.",
        ),
        DiscardReason::NoReplyDelimiter => (
            format!("{name} discards replies that have no empty delimiter"),
            "A ROUTER or DEALER must return the empty part that came before the request, and send it before the reply.",
        ),
        DiscardReason::StaleReply => (
            format!("{name} discards replies that come too late or from another peer"),
            "The REQ has asked again since (ZMQ_REQ_RELAXED): allow more time for a reply, or make the peer faster.",
        ),
        DiscardReason::SeveralParts => (
            format!("{name} has ZMQ_CONFLATE, which keeps only one part of messages with several parts"),
            "Put everything into one part, or leave ZMQ_CONFLATE out and read until no message is left.",
        ),
        DiscardReason::RefusedPeer => (
            format!("{name} discards messages of a peer that it refused"),
            "Give each peer its own ZMQ_ROUTING_ID.",
        ),
        DiscardReason::TooManyParts => (
            format!("{name} discards messages with several parts, which its type does not have"),
            "Send one part for each message to a socket of this type.",
        ),
        _ => (
            format!("{name} discards messages that it cannot use"),
            "Compare the form of the messages at both ends.",
        ),
    };
    finding(socket, Level::Trouble, "discards", more).with_text(
        what,
        format!("{} discarded in total, {more} of them recently", format_short(socket.discarded)),
        advice,
    )
}

/// Reports a pair of CURVE keys that do not belong together.
pub(super) fn key_pair(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
    if socket.options & Options::KEY_PAIR_MISMATCH == 0 {
        return None;
    }
    finding(socket, Level::Trouble, "key-pair", 1).with_text(
        format!(
            "The CURVE keys of {} do not belong together: its public key is not that of its secret key",
            scene.name_of(socket)
        ),
        "ZMQ_CURVE_PUBLICKEY differs from the public key that belongs to ZMQ_CURVE_SECRETKEY".to_owned(),
        "Perhaps the two are swapped, or come from different pairs. `zmq_curve_public` computes the public key of a \
         secret one; `taut keygen` makes a new pair.",
    )
}

/// Reports connections that this socket itself closed, because of what the peer sent.
pub(super) fn breaks_off(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
    let broken = scene.reading.events.iter().filter(|event| {
        event.socket == socket.id
            && event.code == event_text::LOST
            && event.value >= PROTOCOL_ERROR
            && scene.seconds(event.at) < LATELY
    });
    let last = broken.clone().next_back()?;
    let count = broken.count() as u64;
    finding(socket, Level::Trouble, "breaks-off", count).with_text(
        format!("{} closes the connection of a peer: {}", scene.name_of(socket), last.reason),
        format!(
            "{}, the latest {} s ago, to {}",
            format_count(count, "closed connection"),
            scene.seconds(last.at),
            last.remote
        ),
        "Correct the messages of that peer, or the limit of this socket (ZMQ_MAXMSGSIZE).",
    )
}
