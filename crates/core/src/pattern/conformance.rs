//! Rules that every pattern must keep, whatever its socket type. One line of the macro per type
//! runs the suite on it.

use super::testbed::TestBed;
use super::{REGISTRY, entry};
use crate::error::Error;
use crate::pipe::{OnFull, Part, PipeId, Target};
use tautline_proto::SocketType;
use tautline_queue::message::Message;
use tautline_testkit::XorShift;

/// Tests the pattern of a socket type. `sends` and `receives` are the results of an unconnected
/// socket.
macro_rules! conforms {
    ($module:ident, $socket_type:ident, sends: $sends:pat, receives: $receives:pat) => {
        mod $module {
            use super::*;

            const TYPE: SocketType = SocketType::$socket_type;

            #[test]
            fn answers_without_pipes() {
                let mut bed = TestBed::new(TYPE);
                assert!(matches!(bed.send_part(b"x", false), $sends));
                // An unknown peer is no reason to wait.
                let sent = TestBed::new(TYPE).send_part(b"x", TYPE == SocketType::Dgram);
                assert_eq!(bed.can_send(), matches!(sent, Ok(()) | Err(Error::HostUnreachable)));
                assert!(matches!(bed.recv_part(), $receives));
            }

            #[test]
            fn attaches_and_detaches_in_any_state() {
                attach_and_detach(TYPE);
            }

            #[test]
            fn drops_the_rest_of_a_message_to_an_ended_pipe() {
                drop_rest_of_message(TYPE);
            }

            #[test]
            fn survives_random_use() {
                for seed in 1..=40 {
                    random_use(TYPE, seed);
                }
            }

            #[test]
            fn results_name_the_peer() {
                check_named_peers(TYPE);
            }

            #[test]
            fn decides_by_routes_what_it_would_decide_itself() {
                routes_change_nothing(TYPE);
            }
        }
    };
}

conforms!(pair, Pair, sends: Err(Error::Again), receives: Err(Error::Again));
conforms!(publisher, Pub, sends: Ok(()), receives: Err(Error::NotSupported));
conforms!(xpub, XPub, sends: Ok(()), receives: Err(Error::Again));
conforms!(subscriber, Sub, sends: Err(Error::NotSupported), receives: Err(Error::Again));
conforms!(xsub, XSub, sends: Ok(()), receives: Err(Error::Again));
conforms!(push, Push, sends: Err(Error::Again), receives: Err(Error::NotSupported));
conforms!(pull, Pull, sends: Err(Error::NotSupported), receives: Err(Error::Again));
conforms!(req, Req, sends: Err(Error::Again), receives: Err(Error::State));
conforms!(rep, Rep, sends: Err(Error::State), receives: Err(Error::Again));
conforms!(dealer, Dealer, sends: Err(Error::Again), receives: Err(Error::Again));
conforms!(router, Router, sends: Ok(()), receives: Err(Error::Again));
conforms!(stream, Stream, sends: Ok(()), receives: Err(Error::Again));
conforms!(server, Server, sends: Err(Error::HostUnreachable), receives: Err(Error::Again));
conforms!(client, Client, sends: Err(Error::Again), receives: Err(Error::Again));
conforms!(radio, Radio, sends: Ok(()), receives: Err(Error::NotSupported));
conforms!(dish, Dish, sends: Err(Error::NotSupported), receives: Err(Error::Again));
conforms!(gather, Gather, sends: Err(Error::NotSupported), receives: Err(Error::Again));
conforms!(scatter, Scatter, sends: Err(Error::Again), receives: Err(Error::NotSupported));
conforms!(dgram, Dgram, sends: Err(Error::Invalid), receives: Err(Error::Again));
conforms!(peer, Peer, sends: Err(Error::HostUnreachable), receives: Err(Error::Again));
conforms!(channel, Channel, sends: Err(Error::Again), receives: Err(Error::Again));

#[test]
fn every_type_is_registered_once() {
    for row in REGISTRY {
        assert_eq!(REGISTRY.iter().filter(|other| other.socket_type == row.socket_type).count(), 1);
        assert!(std::ptr::eq(entry(row.socket_type).unwrap(), row));
    }
    assert_eq!(REGISTRY.len(), 21);
}

#[test]
fn only_subscribing_types_subscribe_and_count_topics() {
    for row in REGISTRY {
        let mut bed = TestBed::new(row.socket_type);
        let subscribes = row.socket_type == SocketType::Sub;
        let result = bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"topic", true);
        assert_eq!(result, if subscribes { Ok(()) } else { Err(Error::Invalid) });
        let counts = matches!(
            row.socket_type,
            SocketType::Pub | SocketType::XPub | SocketType::Sub | SocketType::XSub
        );
        assert_eq!(bed.pattern.topics_count(), counts.then_some(usize::from(subscribes)));
    }
}

/// Adds and removes pipes around every kind of unfinished operation.
fn attach_and_detach(socket_type: SocketType) {
    let bodies: [&[u8]; 4] = [b"", b"\x01", b"name", b"more"];
    for half_sent in 0..3 {
        for half_received in 0..3 {
            let mut bed = TestBed::new(socket_type);
            let first = bed.join_as(b"name");
            bed.peer_sends(first, bodies);
            for _ in 0..half_received {
                let _ = bed.recv_part();
            }
            let second = bed.join();
            for _ in 0..half_sent {
                let _ = bed.send_part(b"name", true);
            }
            bed.closed();
            if bed.pipes.get(second).is_some() {
                bed.leave(second);
            }
            bed.leave(first);
            for _ in 0..4 {
                let _ = bed.send_part(b"name", false);
                let _ = bed.recv_part();
            }
            // The names are reused by pipes that are unrelated to the former ones.
            let third = bed.join();
            let fourth = bed.join_as(b"name");
            bed.peer_sends(third, bodies);
            for _ in 0..4 {
                let _ = bed.send_part(b"name", false);
                let _ = bed.recv_part();
            }
            bed.closed();
            for id in [third, fourth] {
                if bed.pipes.get(id).is_some() {
                    bed.detach(id);
                }
            }
            assert!(bed.pipes.all().is_empty());
            let _ = bed.can_send();
            let _ = bed.can_recv();
        }
    }
}

/// Ends a pipe between two parts of a message, with an unread message in it: the peer gets no part
/// of the message being sent.
fn drop_rest_of_message(socket_type: SocketType) {
    // The first part is a routing id for ROUTER and STREAM.
    let parts: [&[u8]; 4] = [b"name", b"0", b"1", b"2"];
    for sent_before in 1..parts.len() {
        let mut bed = TestBed::new(socket_type);
        let id = bed.insert(b"name", b"name");
        bed.pattern.pattern_mut().attach(&mut bed.pipes, id);
        bed.pattern.pattern_mut().ready(&mut bed.pipes, id, false);
        if entry(socket_type).is_some_and(|row| row.takes_subscriptions) {
            bed.peer_subscribes(id, b"", true);
        }
        // Two requests, for REP; the second one stays unread.
        bed.peer_sends(id, [b"", b"request"]);
        while matches!(bed.recv_part(), Ok((_, true))) {}
        bed.peer_sends(id, [b"", b"unread"]);
        let (before, after) = parts.split_at(sent_before);
        for part in before {
            let _ = bed.send_part(part, true);
        }
        while bed.peer_receives(id).is_some() {}
        bed.pipes.end(id);
        bed.pattern.pattern_mut().handle_readable(&mut bed.pipes, id);
        for (index, part) in after.iter().enumerate() {
            let _ = bed.send_part(part, index + 1 < after.len());
        }
        assert_eq!(bed.peer_receives(id), None, "{sent_before} parts were sent before the end");
    }
}

/// Checks the peers in the results: a part was sent by the peer that the result names, and a
/// message arrives at the peer that the result names.
fn check_named_peers(socket_type: SocketType) {
    let row = entry(socket_type).unwrap();
    let mut bed = TestBed::new(socket_type);
    let ids = [bed.join_as(b"one"), bed.join_as(b"two")];
    let _ = bed.pattern.pattern_mut().subscribe(&mut bed.pipes, b"", true);
    for id in ids.into_iter().filter(|_| row.takes_subscriptions) {
        bed.peer_subscribes(id, b"", true);
    }
    let peer = send_to_named_peer(&mut bed, ids).unwrap_or(ids[1]);
    if row.thread_safe {
        bed.peer_sends(peer, [b"request"]);
    } else {
        bed.peer_sends(peer, [b"", b"request"]);
    }
    let mut part = Message::new();
    while let Ok(received) = bed.pattern.recv(&mut bed.pipes, &mut Target::Message(&mut part)) {
        if part.as_slice() == b"request" {
            assert_eq!(received.from, Some(peer));
        }
    }
    let replied = send_to_named_peer(&mut bed, ids);
    assert!(socket_type != SocketType::Rep || replied == Some(peer));
}

/// Sends two parts. Returns the only peer that they have reached.
fn send_to_named_peer(bed: &mut TestBed, ids: [PipeId; 2]) -> Option<PipeId> {
    let parts: [(&[u8], bool); 2] = [(b"two", true), (b"body", false)];
    let sent = parts.map(|(body, more)| bed.pattern.send(&mut bed.pipes, &mut Part::copied(body, more)));
    let named = sent.into_iter().filter_map(Result::ok).next_back().and_then(|sent| sent.to);
    let reached: Vec<_> = ids.into_iter().filter(|&id| bed.peer_receives(id).is_some()).collect();
    let only = if let [id] = reached[..] { Some(id) } else { None };
    assert_eq!(named, only);
    only
}

fn random_numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut random = XorShift::new(seed);
    move |below| random.below(below as usize) as u64
}

/// Runs a random sequence of operations from a seed. No operation may panic, every received message
/// has an end, and `can_send` and `can_recv` must be right.
fn random_use(socket_type: SocketType, seed: u64) {
    let mut random = random_numbers(seed);
    let bodies: [&[u8]; 7] =
        [b"", b"A", b"\x01A", b"\x00A", b"\x01", b"A much longer body that is not kept inline", &[7; 9000]];
    let mut bed = TestBed::with(socket_type, |options| {
        options.send_hwm = 2;
        options.receive_hwm = 2;
        options.router_mandatory = random(2) == 0;
        options.router_handover = random(2) == 0;
        options.req_relaxed = random(2) == 0;
        options.req_correlate = random(2) == 0;
        options.probe_router = random(3) == 0;
        options.xpub_verboser = random(2) == 0;
        options.xpub_manual = random(2) == 0;
        options.xpub_manual_last_value = options.xpub_manual && random(2) == 0;
        options.xpub_nodrop = random(2) == 0;
        options.invert_matching = random(3) == 0;
        options.only_first_subscribe = random(2) == 0;
    });
    // Connections deliver subscriptions only to types that take them.
    let takes_subscriptions = entry(socket_type).is_some_and(|row| row.takes_subscriptions);
    let mut alive: Vec<PipeId> = Vec::new();
    let mut names: Vec<Vec<u8>> = vec![b"A".to_vec()];
    for _ in 0..300 {
        for closed in bed.closed() {
            alive.retain(|&id| id != closed);
        }
        let body = bodies[random(bodies.len() as u64) as usize];
        let picked = alive.get(random(alive.len().max(1) as u64) as usize).copied();
        match random(12) {
            0 if alive.len() < 6 => {
                let name: &[u8] = [&b""[..], b"A", b"B"][random(3) as usize];
                alive.push(bed.join_as(name));
            }
            1 if alive.len() < 6 => {
                let id = bed.connect(b"");
                bed.pattern.pattern_mut().ready(&mut bed.pipes, id, false);
                if random(2) == 0 {
                    bed.pattern.pattern_mut().ready(&mut bed.pipes, id, true);
                }
                alive.push(id);
            }
            2 => {
                if let Some(id) = picked {
                    alive.retain(|&other| other != id);
                    if random(2) == 0 { bed.leave(id) } else { bed.detach(id) }
                }
            }
            3 | 4 => {
                if let Some(id) = picked
                    && bed.peer(id).outgoing.has_room(OnFull::Wait)
                {
                    match random(3) {
                        0 => bed.peer_sends(id, [body]),
                        1 => bed.peer_sends(id, [b"", body]),
                        _ => bed.peer_sends(id, [body, b"", body]),
                    }
                }
            }
            5 if takes_subscriptions => {
                if let Some(id) = picked {
                    bed.peer_subscribes(id, body, random(2) == 0);
                }
            }
            6 => {
                if let Some(id) = picked {
                    bed.empty(id);
                }
            }
            7 => {
                let _ = bed.pattern.pattern_mut().subscribe(&mut bed.pipes, body, random(2) == 0);
            }
            8 | 9 => {
                let name = names[random(names.len() as u64) as usize].clone();
                let body = if random(3) == 0 { &name } else { body };
                let more = random(2) == 0;
                let blocks = !bed.can_send();
                let result =
                    if random(2) == 0 { bed.send_part(body, more) } else { bed.send_owned(body, more) };
                // ROUTER always accepts and drops a routing id without further parts.
                let swallowed = socket_type == SocketType::Router && !more;
                assert!(!blocks || swallowed || result.is_err(), "sent although it would block");
            }
            _ => {
                if let Ok((body, _)) = bed.recv_part()
                    && names.len() < 20
                {
                    names.push(body);
                }
            }
        }
    }
    let mut buffer = [0; 4];
    let _ = bed.pattern.recv(&mut bed.pipes, &mut Target::Buffer(&mut buffer));
}

/// Tests that a message by a route has the same visible effect as a message by the pattern.
fn routes_change_nothing(socket_type: SocketType) {
    let mut all = 0;
    for seed in 1..=60 {
        let (by_routes, followed) = transcript(socket_type, seed, true);
        let (by_pattern, none) = transcript(socket_type, seed, false);
        let difference = by_routes.iter().zip(&by_pattern).position(|(one, other)| one != other);
        if let Some(at) = difference {
            panic!("seed {seed}: {:?}, by the pattern {:?}", &by_routes[..=at], by_pattern[at]);
        }
        assert_eq!(none, 0);
        all += followed;
    }
    let asks = matches!(
        socket_type,
        SocketType::Req
            | SocketType::Rep
            | SocketType::Stream
            | SocketType::Server
            | SocketType::Peer
            | SocketType::Radio
            | SocketType::Dish
            | SocketType::Dgram
    );
    assert_eq!(all == 0, asks, "{all} parts went by routes");
}

/// Returns the results of a random sequence of operations that programs and peers see, and the
/// number of parts that went by routes.
fn transcript(socket_type: SocketType, seed: u64, follows: bool) -> (Vec<String>, usize) {
    const INVERT_MATCHING: i32 = 74;
    let mut random = random_numbers(seed);
    let names: [&[u8]; 4] = [b"A", b"B", b"peer-with-a-name", b"a name that is longer than the others"];
    let bodies: [&[u8]; 6] =
        [b"", b"A", b"\x01", b"\x00A", b"A body that is not kept inline in messages", &[7; 9000]];
    let mut bed = TestBed::with(socket_type, |options| {
        options.send_hwm = 3;
        options.receive_hwm = 3;
        options.router_mandatory = random(2) == 0;
        options.router_handover = random(2) == 0;
        options.req_relaxed = random(2) == 0;
        options.xpub_verboser = random(2) == 0;
        options.xpub_nodrop = random(2) == 0;
    });
    bed.follows = follows;
    let named = matches!(socket_type, SocketType::Router | SocketType::Stream | SocketType::Dgram);
    let takes_subscriptions = entry(socket_type).is_some_and(|row| row.takes_subscriptions);
    // Most of the time there is one peer.
    let most = 1 + seed as usize % 3;
    let mut alive: Vec<PipeId> = Vec::new();
    let mut seen = Vec::new();
    for step in 0..400 {
        let body = bodies[random(bodies.len() as u64) as usize];
        let picked = alive.get(random(alive.len().max(1) as u64) as usize).copied();
        let happened = match (random(20), picked) {
            (0 | 1, _) if alive.len() < most => {
                alive.push(bed.join_as(names[random(4) as usize]));
                String::new()
            }
            (0, Some(id)) if random(4) == 0 => {
                alive.retain(|&other| other != id);
                if random(2) == 0 {
                    bed.leave(id)
                } else {
                    bed.detach(id)
                }
                String::new()
            }
            (1, _) if random(4) == 0 => {
                let inverted = &mut bed.pipes.options_mut().invert_matching;
                *inverted = !*inverted;
                bed.pattern.pattern_mut().option_changed(&mut bed.pipes, INVERT_MATCHING);
                String::new()
            }
            (2..=5, Some(id)) if bed.peer(id).outgoing.has_room(OnFull::Wait) => {
                match random(4) {
                    0 => bed.peer_sends(id, [b"", body]),
                    1 => bed.peer_sends(id, [body, b"", body]),
                    _ => bed.peer_sends(id, [body]),
                }
                String::new()
            }
            (6, Some(id)) if takes_subscriptions => {
                bed.peer_subscribes(id, if random(2) == 0 { b"" } else { body }, random(3) != 0);
                String::new()
            }
            (7, _) => {
                let topic = if random(2) == 0 { b"" } else { body };
                format!("{:?}", bed.pattern.pattern_mut().subscribe(&mut bed.pipes, topic, random(3) != 0))
            }
            (8 | 9, Some(id)) => {
                let received: Vec<_> = std::iter::from_fn(|| bed.peer_receives(id)).collect();
                format!("{received:?}")
            }
            (10, _) => format!("{} {}", bed.can_send(), bed.can_recv()),
            (11..=15, _) => {
                let name = names[random(4) as usize];
                let mut parts = if named { vec![name, body] } else { vec![body] };
                if random(4) == 0 {
                    parts.push(b"the last one");
                }
                let whole = parts.len() - usize::from(random(8) == 0);
                let last = parts.len() - 1;
                let mut results = Vec::new();
                for (index, part) in parts.iter().enumerate().take(whole) {
                    results.push(bed.send_part(part, index < last));
                    if results[index].is_err() {
                        break;
                    }
                }
                format!("{results:?}")
            }
            _ => {
                let parts: Vec<_> = (0..random(5)).map(|_| bed.recv_part()).collect();
                // Generated ids start at a random number.
                let made = |part: &Result<(Vec<u8>, bool), _>| matches!(part, Ok((id, true)) if id.len() == 5 && id[0] == 0);
                format!(
                    "{:?}",
                    parts.iter().map(|part| if made(part) { None } else { Some(part) }).collect::<Vec<_>>()
                )
            }
        };
        let closed = bed.closed();
        alive.retain(|id| !closed.contains(id));
        seen.push(format!("{step}: {happened}, closed {closed:?}"));
    }
    (seen, bed.followed)
}
