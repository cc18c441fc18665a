//! The turns of REQ and REP: which end must send the next message.

use super::{BUSY, PATIENCE, SLOW, finding};
use crate::diagnosis::text::format_count;
use crate::diagnosis::{Finding, Level, RuleInput};
use crate::{Options, Peer, PeerState, Socket};

/// Endpoint of the authentication handler, as RFC 27 (ZAP) defines it.
const ZAP: &str = "inproc://zeromq.zap.01";

/// Reports calls that were refused because they were out of turn.
pub(super) fn out_of_step(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
    let more = scene.increase(socket, |socket| socket.out_of_turn);
    if more == 0 {
        return None;
    }
    let name = scene.name_of(socket);
    let calls =
        if more == 1 { "1 call was".to_owned() } else { format!("{} were", format_count(more, "call")) };
    let evidence = format!("{calls} refused recently (EFSM), {} in total", socket.out_of_turn);
    if socket.type_name == "REQ" {
        let (what, advice) = match awaited(scene, socket) {
            Some(peer) => (
                match scene.peer_name(peer) {
                    // If a socket has connected to this name, its own name is the same.
                    from if name.ends_with(&from) => {
                        format!("{name} sends again before the reply has arrived")
                    }
                    from => format!("{name} sends again before the reply of {from} has arrived"),
                },
                "Find out why the peer does not reply: run `taut doctor` on its host. The REQ still waits after \
                 ZMQ_RCVTIMEO: to ask again, set ZMQ_REQ_RELAXED with ZMQ_REQ_CORRELATE, or replace the socket.",
            ),
            None => (
                format!("The program calls send and receive of {name} in the wrong order"),
                "A REQ sends, then receives, then sends: one message each, with all its parts.",
            ),
        };
        return finding(socket, Level::Warning, "out-of-step", more).with_text(what, evidence, advice);
    }
    // If several peers have sent requests, the program has taken the earliest request.
    let owed = scene.peers_of(socket.id).filter(|peer| owes(peer)).min_by_key(|peer| peer.last_in);
    let Some(peer) = owed else {
        return finding(socket, Level::Warning, "out-of-step", more).with_text(
            format!("The program calls send and receive of {name} in the wrong order"),
            evidence,
            "A REP receives, then replies, then receives: one message each, with all its parts.",
        );
    };
    let seconds = scene.seconds(peer.last_in);
    // The peer cannot correct this fault.
    let level = if seconds < PATIENCE { Level::Warning } else { Level::Trouble };
    finding(socket, level, "out-of-step", more.max(seconds)).about(peer).with_text(
        format!("{name} has not replied to {}, but receives again", scene.peer_name(peer)),
        format!("its request arrived {seconds} s ago; {evidence}"),
        "A REP must reply to each request before it receives the next one. If the work fails, reply with the error. \
         A ROUTER may reply later, in any order, or not at all.",
    )
}

/// Returns the peer whose reply a REQ waits for.
fn awaited<'a>(scene: &RuleInput<'a>, socket: &Socket) -> Option<&'a Peer> {
    if socket.messages_out <= socket.messages_in {
        return None;
    }
    let peer = scene.peers_of(socket.id).max_by_key(|peer| peer.last_out)?;
    // A relaxed REQ that sends again does not wait for the request that it has given up.
    let waits = socket.options & Options::REQ_RELAXED == 0 || peer.last_out > peer.last_in;
    (peer.state == PeerState::Connected && waits).then_some(peer)
}

pub(super) fn waits_for_reply(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
    let is_told = scene.increase(socket, |socket| socket.out_of_turn) > 0;
    if socket.type_name != "REQ" || socket.queued_out > 0 || is_told {
        return None;
    }
    let peer = awaited(scene, socket)?;
    let seconds = scene.seconds(peer.last_out);
    if seconds < BUSY {
        return None;
    }
    let begun = finding(socket, slow(seconds, 0), "no-reply", seconds).about(peer);
    begun.with_text(
        format!("REQ waits for a reply from {}", scene.peer_name(peer)),
        format!("the request was sent {seconds} s ago"),
        "Find out why the peer does not reply: run `taut doctor` on its host. If the request or the reply was lost, \
         the REQ waits for ever: set ZMQ_RCVTIMEO, and ZMQ_REQ_RELAXED with ZMQ_REQ_CORRELATE to ask again.",
    )
}

/// Returns the level of a reply that takes `seconds`, after others that took up to `longest`
/// microseconds.
fn slow(seconds: u64, longest: u64) -> Level {
    if seconds < SLOW.max(3 * longest / 1_000_000) { Level::Note } else { Level::Warning }
}

/// True if a REP has received more requests from a peer than it has replied to. The request of a
/// REQ counts as waiting even after the program has taken it.
fn owes(peer: &Peer) -> bool {
    peer.state == PeerState::Connected && peer.messages_in > peer.messages_out + peer.dropped
}

pub(super) fn owes_a_reply(scene: &RuleInput<'_>, socket: &Socket) -> Option<Finding> {
    let is_told = scene.increase(socket, |socket| socket.out_of_turn) > 0;
    if socket.type_name != "REP" || is_told {
        return None;
    }
    // A reply that was lost with a connection is not owed. In that case the REP has sent a later
    // message.
    let owed = |peer: &&Peer| owes(peer) && peer.last_in > peer.last_out;
    let peer = scene.peers_of(socket.id).filter(owed).min_by_key(|peer| peer.last_in)?;
    let seconds = scene.seconds(peer.last_in);
    if seconds < BUSY {
        return None;
    }
    let is_zap = |endpoint: &crate::Endpoint| endpoint.bound && endpoint.name == ZAP;
    if scene.endpoints_of(socket.id).any(is_zap) {
        return finding(socket, Level::Trouble, "zap-silent", seconds).with_text(
            format!(
                "The ZAP handler ({} at {ZAP}) does not reply, so no peer can complete a handshake",
                socket.type_name
            ),
            format!("a request waits for {seconds} s"),
            format!(
                "Check the thread of the authenticator: it has ended, or is blocked. {}",
                scene.stack_commands()
            ),
        );
    }
    let waiting = scene.peers_of(socket.id).filter(owed).count() - 1;
    let others = match waiting {
        0 => String::new(),
        1 => "; 1 request waits behind it".to_owned(),
        more => format!("; {} wait behind it", format_count(more as u64, "request")),
    };
    let longest = scene.peers_of(socket.id).map(|peer| peer.longest_reply_us).max().unwrap_or(0);
    let begun = finding(socket, slow(seconds, longest), "not-replied", seconds).about(peer);
    begun.with_text(
        format!("{} has a request from {}, and has not replied", scene.name_of(socket), scene.peer_name(peer)),
        format!("the request arrived {seconds} s ago{others}"),
        format!(
            "Check the thread of this socket: it still processes this request, or does not receive. {} A REP serves no \
             other client until it has replied; a ROUTER may reply in any order.",
            scene.stack_commands()
        ),
    )
}
