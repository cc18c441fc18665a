//! What every pattern must do, whatever its socket type: one line of the macro per type runs the
//! suite on it.

use super::testbed::Bed;
use super::{REGISTRY, entry};
use crate::error::Error;
use crate::pipe::{Else, PipeId, Target};
use tautline_proto::SocketType;

/// Tests the pattern of a socket type. `sends` and `receives` tell what an unconnected socket
/// answers.
macro_rules! conforms {
    ($module:ident, $socket_type:ident, sends: $sends:pat, receives: $receives:pat) => {
        mod $module {
            use super::*;

            const TYPE: SocketType = SocketType::$socket_type;

            #[test]
            fn answers_without_pipes() {
                let mut bed = Bed::new(TYPE);
                assert!(matches!(bed.send_part(b"x", false), $sends));
                // An unknown peer is no reason to wait.
                let sent = Bed::new(TYPE).send_part(b"x", TYPE == SocketType::Dgram);
                assert_eq!(bed.can_send(), matches!(sent, Ok(()) | Err(Error::HostUnreachable)));
                assert!(matches!(bed.recv_part(), $receives));
            }

            #[test]
            fn attaches_and_detaches_in_any_state() {
                attach_and_detach(TYPE);
            }

            #[test]
            fn survives_random_use() {
                for seed in 1..=40 {
                    random_use(TYPE, seed);
                }
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
        let mut bed = Bed::new(row.socket_type);
        let subscribes = row.socket_type == SocketType::Sub;
        let result = bed.pattern.subscribe(&mut bed.pipes, b"topic", true);
        assert_eq!(result, if subscribes { Ok(()) } else { Err(Error::Invalid) });
        let counts = matches!(
            row.socket_type,
            SocketType::Pub | SocketType::XPub | SocketType::Sub | SocketType::XSub
        );
        assert_eq!(bed.pattern.topics_count(), counts.then_some(usize::from(subscribes)));
    }
}

/// Pipes come and go around every kind of half-done operation.
fn attach_and_detach(socket_type: SocketType) {
    let bodies: [&[u8]; 4] = [b"", b"\x01", b"name", b"more"];
    for half_sent in 0..3 {
        for half_received in 0..3 {
            let mut bed = Bed::new(socket_type);
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
            // The names are used again, by pipes that have nothing to do with the former ones.
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
            assert!(bed.pipes.ids().next().is_none());
            let _ = bed.can_send();
            let _ = bed.can_recv();
        }
    }
}

/// A random sequence of operations from a seed. Nothing may panic, every received message has an
/// end, and `can_send` and `can_recv` tell the truth.
fn random_use(socket_type: SocketType, seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let bodies: [&[u8]; 7] =
        [b"", b"A", b"\x01A", b"\x00A", b"\x01", b"A much longer body that is not kept inline", &[7; 9000]];
    let mut bed = Bed::with(socket_type, |options| {
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
    // Connections hand subscriptions on only to types that take them.
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
                bed.pattern.ready(&mut bed.pipes, id, false);
                if random(2) == 0 {
                    bed.pattern.ready(&mut bed.pipes, id, true);
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
                    && bed.peer(id).has_room(Else::Wait)
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
                let _ = bed.pattern.subscribe(&mut bed.pipes, body, random(2) == 0);
            }
            8 | 9 => {
                let name = names[random(names.len() as u64) as usize].clone();
                let body = if random(3) == 0 { &name } else { body };
                let more = random(2) == 0;
                let blocks = !bed.can_send();
                let result =
                    if random(2) == 0 { bed.send_part(body, more) } else { bed.send_owned(body, more) };
                // ROUTER swallows a routing id that nothing follows in any case.
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
