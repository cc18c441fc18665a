//! Malformed requests and replies (RFC 28): a message without an envelope is not received, and a
//! REQ ignores a message that is not its reply. Also messages themselves, and errors.

use std::sync::Arc;

use tautline_core::{Error, Flags, Message, Metadata, SocketType};

use super::peer::{LINGER, Peer, SNDHWM};
use super::traffic::Parts;
use super::{Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const REQ_CORRELATE: i32 = 52;

/// A REP with DEALER as clients, and a REQ with a ROUTER as server. The peers also send other
/// messages.
pub(super) fn envelopes(stage: &mut Scenario, rng: &mut Rng) {
    world::with(|world| world.kernel.faults.stop_losses());
    to_rep(stage, rng);
    to_req(stage, rng);
    messages(stage, rng);
    errors();
}

/// Returns a message that does not start with an empty part and is not of a kind in
/// `super::traffic`.
fn nonsense(rng: &mut Rng) -> Parts {
    (0..rng.between(1, 3)).map(|_| vec![rng.next() as u8; rng.between(1, 7) as usize]).collect()
}

fn to_rep(stage: &mut Scenario, rng: &mut Rng) {
    let (endpoint, kind) = (stage.endpoint(), stage.kind);
    let rounds = kind.count(rng, 40);
    let context = stage.context(rng);
    let mut rep = Peer::new(&context, SocketType::Rep, fork(rng));
    // A reply without room is dropped.
    rep.set(SNDHWM, 0);
    rep.bind_or_connect(&endpoint, true);
    let clients = rng.between(1, 3) as u32;
    let mut handles = Vec::new();
    for client in 0..clients {
        let (context, mut rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        handles.push(spawn("dealer", move || {
            let mut peer = Peer::new(&context, SocketType::Dealer, fork(&mut rng));
            peer.bind_or_connect(&endpoint, false);
            for number in 0..rounds {
                if rng.chance(2) {
                    peer.send(&nonsense(&mut rng)).unwrap();
                }
                // An envelope without a body.
                if rng.chance(8) {
                    peer.send(&[b"label".to_vec(), Vec::new()]).unwrap();
                }
                let mut question: Parts = (0..rng.below(3)).map(|at| vec![b'l', at as u8]).collect();
                question.push(Vec::new());
                question.extend(kind.message(client, number));
                peer.send(&question).unwrap();
                assert!(peer.recv().unwrap() == question, "another answer to question {number}");
            }
        }));
    }
    for _ in 0..rounds * clients {
        let question = rep.recv().unwrap();
        assert!(question[0].len() >= 8, "nonsense is received");
        assert_eq!(rep.try_recv(), Err(Error::State));
        rep.send(&question).unwrap();
        assert_eq!(rep.send_dontwait(&question), Err(Error::State));
    }
    join(handles);
    rep.set(LINGER, 0);
}

fn to_req(stage: &mut Scenario, rng: &mut Rng) {
    let (endpoint, kind) = (stage.endpoint(), stage.kind);
    let rounds = kind.count(rng, 40);
    let correlates = rng.chance(2);
    let mut router = Peer::new(&stage.context(rng), SocketType::Router, fork(rng));
    router.set(SNDHWM, 0);
    router.bind_or_connect(&endpoint, true);
    let (context, req_rng) = (stage.context(rng), fork(rng));
    let client = spawn("req", move || {
        let mut req = Peer::new(&context, SocketType::Req, req_rng);
        req.set(REQ_CORRELATE, correlates.into());
        req.set(super::peer::RCVHWM, 0);
        req.bind_or_connect(&endpoint, false);
        for number in 0..rounds {
            assert_eq!(req.try_recv(), Err(Error::State));
            req.send(&kind.message(0, number)).unwrap();
            assert_eq!(req.send_dontwait(&[Vec::new()]), Err(Error::State));
            assert!(req.recv().unwrap() == kind.message(0, number), "another answer to question {number}");
        }
        req.set(LINGER, 0);
    });
    for number in 0..rounds {
        let mut question = router.recv().unwrap();
        let body = kind.message(0, number);
        let head = question.len() - body.len();
        assert!(question[head..] == body && question[head - 1].is_empty(), "question {number}");
        assert_eq!(head, if correlates { 3 } else { 2 });
        let name = question[0].clone();
        // A reply to another request. A malformed reply would end the connection.
        for _ in 0..if correlates { rng.below(3) } else { 0 } {
            let wrong = [name.clone(), vec![0xee; 4], Vec::new(), b"late".to_vec()];
            router.send(&wrong).unwrap();
        }
        router.send(&std::mem::take(&mut question)).unwrap();
    }
    join(vec![client]);
    router.set(LINGER, 0);
}

/// Checks a message after it was sent, copied and changed, and its metadata.
fn messages(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let context = stage.context(rng);
    let mut push = Peer::new(&context, SocketType::Push, fork(rng));
    let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    pull.set(LINGER, 0);
    // ZMQ_METADATA.
    push.set_bytes(95, b"X-origin:here");
    pull.bind_or_connect(&endpoint, true);
    push.bind_or_connect(&endpoint, false);
    let length = rng.spread(1, 100_000) as usize;
    let body = vec![rng.next() as u8; length];
    let mut message = Message::from_slice(&body);
    let mut copy = message.share();
    assert_eq!(message.is_shared(), copy.is_shared());
    // A write to one copy does not change the other.
    copy.as_mut_slice()[0] ^= 1;
    assert_eq!((message.as_slice(), copy.as_slice()[0]), (&body[..], body[0] ^ 1));
    assert!(format!("{message:?}").contains(&length.to_string()));
    let metadata = Arc::new(Metadata::new([("one", "1")], None));
    copy.set_metadata(Some(metadata));
    assert_eq!(copy.property("one").and_then(|value| value.to_str().ok()), Some("1"));
    copy.clear_properties();
    assert!(copy.property("one").is_none() && copy.metadata().is_none());
    assert!(!copy.set_group(&[b'x'; 300]) && copy.set_group(b"a group"));
    while let Err(error) = push.socket.send_message(&mut message, Flags::NONE) {
        assert_eq!(error, Error::Interrupted);
    }
    assert!(message.is_empty());
    let mut heard = Message::new();
    while let Err(error) = pull.socket.recv_message(&mut heard, Flags::NONE) {
        assert_eq!(error, Error::Interrupted);
    }
    assert!(heard.as_slice() == body);
    let told = |name: &str| heard.property(name).map(|value| value.to_string_lossy().into_owned());
    if stage.transport() != "inproc" {
        assert_eq!(told("Socket-Type").as_deref(), Some("PUSH"));
        assert_eq!(told("X-origin").as_deref(), Some("here"));
        let address = told("Peer-Address");
        assert!(address.is_some_and(|address| stage.transport() == "ipc" || address == "127.0.0.1"));
    }
    assert_eq!(told("Nothing"), None);
    push.set(LINGER, 0);
}

/// Checks that each error has a distinct number and text.
fn errors() {
    let all = [
        Error::Again,
        Error::Invalid,
        Error::NotSocket,
        Error::Fault,
        Error::State,
        Error::IncompatibleProtocol,
        Error::Terminated,
        Error::NoThread,
        Error::ProtocolNotSupported,
        Error::NotSupported,
        Error::AddressInUse,
        Error::AddressNotAvailable,
        Error::NoDevice,
        Error::ConnectionRefused,
        Error::HostUnreachable,
        Error::NoEntry,
        Error::TooManyFiles,
        Error::MessageSize,
        Error::NameTooLong,
        Error::NoMemory,
        Error::Interrupted,
        Error::Os(libc::EIO),
    ];
    for (at, error) in all.iter().enumerate() {
        let is_told_apart = all[..at]
            .iter()
            .all(|other| other.errno() != error.errno() && other.to_string() != error.to_string());
        assert!(is_told_apart, "{error}");
    }
}
