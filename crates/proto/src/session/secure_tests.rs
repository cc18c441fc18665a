//! Handshakes with PLAIN and CURVE, and with a handler that judges. Two sessions talk to each
//! other, with every split of the bytes.

use std::sync::Arc;

use super::*;
use crate::error::Violation;
use crate::mechanism::{ServerKeys, public_key};

const SERVER_SECRET: [u8; 32] = [0x51; 32];
const CLIENT_SECRET: [u8; 32] = [0xC1; 32];

/// Not random, but different for different lengths, and never used twice under one key in a test.
fn fixed(out: &mut [u8]) -> bool {
    let len = out.len() as u8;
    out.iter_mut().enumerate().for_each(|(i, octet)| *octet = (i as u8).wrapping_mul(7) ^ len);
    true
}

fn session(socket_type: SocketType, mechanism: MechanismConfig, authenticate: bool) -> Session {
    Session::new(SessionConfig {
        socket_type,
        routing_id: Vec::new(),
        mechanism,
        authenticate,
        max_msg_size: None,
        properties: Vec::new(),
    })
}

fn plain() -> [MechanismConfig; 2] {
    let client =
        MechanismConfig::PlainClient { username: b"joe".to_vec(), password: b"s3cret".to_vec().into() };
    [client, MechanismConfig::PlainServer]
}

fn curve() -> [MechanismConfig; 2] {
    let client = MechanismConfig::CurveClient {
        public: public_key(&CLIENT_SECRET),
        secret: Arc::new(CLIENT_SECRET.into()),
        server: public_key(&SERVER_SECRET),
        random: fixed,
    };
    let server =
        MechanismConfig::CurveServer { keys: ServerKeys::new(Arc::new(SERVER_SECRET.into())), random: fixed };
    [client, server]
}

/// A PUSH client and a PULL server.
fn ends([client, server]: [MechanismConfig; 2], authenticate: bool) -> (Session, Session) {
    (session(SocketType::Push, client, false), session(SocketType::Pull, server, authenticate))
}

/// Moves the output of `from` in pieces of `size` bytes. Returns its length.
fn pass(from: &mut Session, to: &mut Session, size: usize) -> Result<usize, ProtocolError> {
    let out = from.output().to_vec();
    from.advance_output(out.len());
    for piece in out.chunks(size) {
        assert_eq!(to.input(piece)?, piece.len());
    }
    Ok(out.len())
}

/// Moves bytes both ways until neither end has output.
fn settle(a: &mut Session, b: &mut Session, size: usize) -> Result<(), ProtocolError> {
    while pass(a, b, size)? + pass(b, a, size)? > 0 {}
    Ok(())
}

#[test]
fn handshakes_complete_with_any_split() {
    for (mechanism, seals) in [(plain as fn() -> _, false), (curve, true)] {
        for size in [1, 2, 7, 64, 65, 1000] {
            let (mut client, mut server) = ends(mechanism(), false);
            settle(&mut client, &mut server, size).unwrap();
            let (there, here) = (client.take_established().unwrap(), server.take_established().unwrap());
            assert_eq!(there.peer.socket_type, Some(SocketType::Pull));
            assert_eq!(here.peer.socket_type, Some(SocketType::Push));
            assert_eq!((there.version, here.version), (Version::V3_1, Version::V3_1));
            assert_eq!((there.stage.is_some(), here.stage.is_some()), (seals, seals));
            if let (Some(mut there), Some(mut here)) = (there.stage, here.stage) {
                let (mut wire, mut back) = (Vec::new(), Vec::new());
                there.seal(b"\x01\x01a\0\x01b", &mut wire);
                here.open(&wire, &mut back).unwrap();
                assert_eq!(back, b"\x01\x01a\0\x01b");
            }
        }
    }
}

#[test]
fn the_greeting_tells_the_roles() {
    for mechanism in [plain as fn() -> _, curve] {
        let (mut client, mut server) = ends(mechanism(), false);
        for (session, as_server) in [(&mut client, 0), (&mut server, 1)] {
            session.input(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03").unwrap();
            assert_eq!(session.output()[32], as_server);
        }
    }
}

#[test]
fn nothing_goes_on_before_the_judgement() {
    let shown: [&[&[u8]]; 3] = [&[], &[b"joe", b"s3cret"], &[&public_key(&CLIENT_SECRET)]];
    let null = || [MechanismConfig::Null, MechanismConfig::Null];
    for (mechanism, shown) in [null as fn() -> _, plain, curve].into_iter().zip(shown) {
        let (mut client, mut server) = ends(mechanism(), true);
        settle(&mut client, &mut server, 100).unwrap();
        assert!(server.take_established().is_none() && client.take_established().is_none());
        let credentials = server.take_credentials().unwrap();
        assert!(server.take_credentials().is_none(), "once");
        let frames: Vec<&[u8]> = credentials.frames.iter().map(|frame| frame.as_slice()).collect();
        assert_eq!(frames, shown);
        server.admit().unwrap();
        settle(&mut client, &mut server, 100).unwrap();
        assert!(server.take_established().is_some() && client.take_established().is_some());
    }
}

#[test]
fn a_refusal_reaches_the_peer_unless_it_may_pass() {
    let null = || [MechanismConfig::Null, MechanismConfig::Null];
    for mechanism in [null as fn() -> _, plain, curve] {
        for status in [300, 400, 500] {
            let (mut client, mut server) = ends(mechanism(), true);
            settle(&mut client, &mut server, 100).unwrap();
            server.refuse(status);
            let denied = ProtocolError::Auth(AuthFailure::Denied { status });
            assert_eq!(server.input(b"x"), Err(denied));
            assert!(server.take_established().is_none());
            if status == 300 {
                assert!(server.output().is_empty());
                continue;
            }
            let told = pass(&mut server, &mut client, 100).unwrap_err();
            assert_eq!(told, ProtocolError::Auth(AuthFailure::Refused { status: Some(status) }));
            assert!(client.take_established().is_none());
        }
    }
}

/// libzmq's PLAIN server sends `^RROR`.
#[test]
fn a_misspelt_error_is_understood() {
    let (mut client, mut server) = ends(plain(), true);
    settle(&mut client, &mut server, 100).unwrap();
    let told = client.input(b"\x04\x09^RROR\x03400").unwrap_err();
    assert_eq!(told, ProtocolError::Auth(AuthFailure::Refused { status: Some(400) }));
}

/// Makes a server to which a peer has sent a valid greeting.
fn greeted(mechanism: MechanismConfig) -> Session {
    let mut server = session(SocketType::Pull, mechanism, true);
    let mut greeting = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01".to_vec();
    greeting.extend(server.mechanism().name.as_bytes());
    greeting.resize(64, 0);
    server.input(&greeting).unwrap();
    server
}

#[test]
fn a_server_does_not_take_error() {
    for [_, server] in [plain(), curve()] {
        let mut server = greeted(server);
        assert_eq!(server.input(b"\x04\x0a\x05ERROR\x03400"), Err(Violation::UnexpectedCommand.into()));
    }
}

#[test]
fn mechanisms_do_not_mix() {
    let all = || [plain(), curve(), [MechanismConfig::Null, MechanismConfig::Null]];
    for (i, [client, _]) in all().into_iter().enumerate() {
        for (j, [_, server]) in all().into_iter().enumerate() {
            let (mut client, mut server) = ends([client.clone(), server], false);
            let outcome = settle(&mut client, &mut server, 100);
            assert_eq!(outcome, if i == j { Ok(()) } else { Err(Mismatch::Mechanism.into()) });
        }
    }
}

#[test]
fn older_peers_cannot_get_around_it() {
    for (mechanism, authenticate) in [(plain(), false), (curve(), false), (Default::default(), true)] {
        let [_, server] = mechanism;
        for greeting in [&b"\x01\0"[..], b"\xff\0\0\0\0\0\0\0\x01\x7f\x01", b"\xff\0\0\0\0\0\0\0\x01\x7f\0"] {
            let mut server = session(SocketType::Pull, server.clone(), authenticate);
            assert_eq!(server.input(greeting), Err(Mismatch::Version.into()));
        }
    }
}

#[test]
fn a_stranger_costs_little() {
    for ([_, server], limit) in [(plain(), 518), (curve(), 512)] {
        let announced = [&[6][..], &(limit + 1u64).to_be_bytes()].concat();
        let fault = greeted(server).input(&announced);
        assert_eq!(fault, Err(ProtocolError::TooLarge { size: limit + 1, limit }));
    }
}
