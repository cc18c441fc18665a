//! Rules about the queues of a peer: full, dropping messages, or not read.

use super::{PATIENCE, UNREAD, finding};
use crate::diagnosis::text::{format_bytes, format_count, format_short};
use crate::diagnosis::{Finding, Level, RuleInput};
use crate::{Options, Peer, PeerState, Socket};

/// Largest step by which the count of messages queued for the program falls.
const STEP: u64 = 64;
/// Growth of a queue that is worth a warning, in messages.
const MANY: u64 = 1000;

/// True if the socket drops messages at its limit instead of waiting.
fn is_publisher(socket: &Socket) -> bool {
    matches!(&*socket.type_name, "PUB" | "XPUB" | "RADIO")
}

/// Returns the number of messages that a peer has taken.
fn taken(peer: &Peer) -> u64 {
    peer.messages_out.saturating_sub(peer.queued_out)
}

/// Returns the share of the time between the two readings, in per cent, for which the queue to the
/// peer was full. Applies only if the queue is full now and then: the peer takes all messages, and
/// has room again.
fn full_in_bursts(scene: &RuleInput<'_>, peer: &Peer, before: &Peer) -> Option<u64> {
    let full = |peer: &Peer, now: u64| match peer.full_since {
        0 => peer.full_us,
        since => peer.full_us + now.saturating_sub(since),
    };
    let earlier = full(before, scene.before?.process.written);
    let percent = full(peer, scene.now).saturating_sub(earlier).saturating_mul(100) / scene.between()?;
    let has_room = |peer: &Peer| peer.queued_out <= peer.limit_out / 2;
    (percent < 50 && has_room(peer) && has_room(before)).then_some(percent)
}

pub(super) fn drops(scene: &RuleInput<'_>, socket: &Socket, peer: &Peer) -> Option<Finding> {
    let before = scene.peer_before(peer);
    let more = peer.dropped.saturating_sub(before.map_or(0, |before| before.dropped));
    if more == 0 {
        return None;
    }
    let name = scene.peer_name(peer);
    if let Some(percent) = before.and_then(|before| full_in_bursts(scene, peer, before)) {
        let read = taken(peer).saturating_sub(before.map_or(0, taken));
        let how_often = match percent {
            0 => "for less than 1 % of the time".to_owned(),
            percent => format!("for {percent} % of the time"),
        };
        return finding(socket, Level::Warning, "hwm-too-small", more).about(peer).with_text(
            format!(
                "{} drops messages for {name}, which keeps up: the high-water mark is too small for bursts",
                socket.type_name
            ),
            format!(
                "{} of {} dropped recently; the queue holds {}, and was full {how_often}; {} wait now",
                format_short(more),
                format_short(read + more),
                format_count(peer.limit_out, "message"),
                format_short(peer.queued_out)
            ),
            "Raise ZMQ_SNDHWM to the length of the longest burst (0 means no limit), or send more evenly.",
        );
    }
    let evidence = match (before, scene.rate(more)) {
        (Some(before), Some(dropped)) => {
            let read = scene.rate(taken(peer).saturating_sub(taken(before))).unwrap_or(0);
            let all = read + dropped;
            format!(
                "it takes {}/s of {}/s; {} dropped in total",
                format_short(read),
                format_short(all),
                format_short(peer.dropped)
            )
        }
        _ => format!("{} dropped, {} sent", format_short(peer.dropped), format_short(peer.messages_out)),
    };
    let advice = if is_publisher(socket) {
        "Make the subscriber faster, or reduce its subscriptions. A higher ZMQ_SNDHWM here and ZMQ_RCVHWM there \
         help only with bursts. With ZMQ_XPUB_NODROP, the publisher waits for this subscriber instead, and \
         delays all others."
    } else {
        "Make the receiver faster, or raise ZMQ_SNDHWM for bursts."
    };
    let begun = finding(socket, Level::Warning, "drops", more).about(peer);
    begun.with_text(
        format!("{} drops messages for {name}, which does not keep up", socket.type_name),
        evidence,
        advice,
    )
}

pub(super) fn full(scene: &RuleInput<'_>, socket: &Socket, peer: &Peer) -> Option<Finding> {
    let seconds = scene.seconds(peer.full_since);
    if peer.full_since == 0 || seconds < PATIENCE || peer.state == PeerState::Lingering {
        return None;
    }
    let name = scene.peer_name(peer);
    let moves = scene.peer_before(peer).map(|before| taken(peer) > taken(before));
    let (why, advice) = match (peer.state, moves) {
        (PeerState::Connecting, _) => (
            "the peer is not connected",
            format!("Find the reason in the events: {}.", scene.show_command(socket)),
        ),
        (_, Some(false)) => (
            "the peer takes no messages",
            "The program at the other end does not receive: run `taut doctor` there, and look at its threads."
                .to_owned(),
        ),
        _ => (
            "the peer is slower than this end",
            "Make the receiver faster, or distribute the work to more receivers.".to_owned(),
        ),
    };
    // A sender that waits for a slower receiver is how a pipeline works.
    let level = match (peer.state, moves) {
        (PeerState::Connected, Some(true)) if !is_publisher(socket) => Level::Note,
        _ if is_publisher(socket) => Level::Warning,
        _ => Level::Trouble,
    };
    let blocks = if is_publisher(socket) { "messages are dropped" } else { "sending waits" };
    finding(socket, level, "queue-full", seconds).about(peer).with_text(
        format!("The queue of {} to {name} is full, so {blocks}: {why}", socket.type_name),
        format!("{} of {} messages, for {seconds} s", peer.queued_out, peer.limit_out),
        advice,
    )
}

pub(super) fn unread(scene: &RuleInput<'_>, socket: &Socket, peer: &Peer) -> Option<Finding> {
    // For requests and replies, a missing reply tells more; another rule reports it.
    let is_one = matches!(&*socket.type_name, "REQ" | "REP") && peer.queued_in == 1;
    if socket.options & Options::CONFLATE != 0 || peer.queued_in == 0 || is_one {
        return None;
    }
    let read = |peer: &Peer| peer.messages_in.saturating_sub(peer.queued_in);
    let before = scene.peer_before(peer)?;
    if read(before) != read(peer) || before.queued_in == 0 {
        return None;
    }
    let name = scene.name_of(socket);
    let from = match scene.peer_name(peer) {
        // If a socket has connected to this name, its own name is the same.
        from if name.ends_with(&from) => String::new(),
        from => format!(" from {from}"),
    };
    let advice = format!(
        "Check the thread of this socket: it waits for something else, has ended (a zmq_proxy may have returned), \
         or never reads the socket. {}",
        scene.stack_commands()
    );
    let waiting = match peer.queued_in {
        1 => "1 message waits".to_owned(),
        more => format!("{} wait", format_count(more, "message")),
    };
    if peer.queued_in < STEP && peer.full_in_since == 0 {
        // The program may have taken the messages without checking for more.
        let seconds = scene.seconds(peer.last_in);
        if seconds < UNREAD.max(3 * peer.longest_idle_us / 1_000_000)
            || peer.messages_in != before.messages_in
        {
            return None;
        }
        return finding(socket, Level::Warning, "not-received", seconds).about(peer).with_text(
            format!("The program has not read {name} since a message arrived{from}"),
            format!("{waiting} for {seconds} s (the counter may be too high)"),
            advice,
        );
    }
    let seconds = scene.seconds(peer.idle_since).max(scene.seconds(peer.full_in_since));
    // A program may take its messages in batches.
    if seconds < UNREAD.max(3 * peer.longest_idle_us / 1_000_000) {
        return None;
    }
    let messages = if from.is_empty() { String::new() } else { format!(": messages{from} wait") };
    let full = if peer.full_in_since > 0 { "; the queue is full (ZMQ_RCVHWM)" } else { "" };
    finding(socket, Level::Trouble, "not-received", peer.queued_in).about(peer).with_text(
        format!("The program does not receive from {name}{messages}"),
        format!("{waiting}, and the program took hardly any for {seconds} s{full}"),
        advice,
    )
}

/// Reports a queue without a limit that has grown for a long time: the memory is used up first.
pub(super) fn grows(scene: &RuleInput<'_>, socket: &Socket, peer: &Peer) -> Option<Finding> {
    let out = (peer.queued_out, peer.queued_out_bytes, peer.limit_out, peer.growing_since, peer.growing_from);
    let into =
        (peer.queued_in, peer.queued_in_bytes, peer.limit_in, peer.growing_in_since, peer.growing_in_from);
    let (is_out, (queued, bytes, limit, since, from)) =
        if out.0 >= into.0 { (true, out) } else { (false, into) };
    let seconds = scene.seconds(since);
    if since == 0 || seconds < UNREAD || limit != 0 || queued < from.saturating_add(MANY) {
        return None;
    }
    let rate = (queued - from) / seconds.max(1);
    let name = scene.peer_name(peer);
    let (queue, option, end) = if is_out {
        (
            format!("The queue of {} to {name}", socket.type_name),
            "ZMQ_SNDHWM",
            "the peer takes fewer messages than are sent",
        )
    } else {
        (
            format!("The receive queue of {}", scene.name_of(socket)),
            "ZMQ_RCVHWM",
            "the program takes fewer messages than arrive",
        )
    };
    finding(socket, Level::Warning, "queue-grows", queued).about(peer).with_text(
        format!("{queue} has no limit and only grows: the program will run out of memory"),
        format!(
            "{} in {} of memory, {} more each second for {seconds} s: {end}",
            format_count(queued, "message"),
            format_bytes(bytes),
            format_short(rate)
        ),
        format!(
            "Make the receiver faster, or set {option} (it is 0, without a limit): then the sender waits, or a \
             publisher drops messages."
        ),
    )
}
