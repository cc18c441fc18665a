//! The CURVE handshake and its traffic, sans I/O: sizes and offsets of RFC 26, every cut, every
//! flipped bit, replays.

use super::nacl::{BoxKey, short_nonce};
use super::traffic::{CLIENT_PREFIX, SERVER_PREFIX, Traffic};
use super::*;
use crate::command::{put_ping, put_subscribe};
use crate::error::{ProtocolError, Violation};
use crate::frame::{self, COMMAND, MORE};
use crate::mechanism::Progress;
use crate::stage::Stage;
use std::cell::Cell;

thread_local! {
    static NEXT: Cell<u8> = const { Cell::new(1) };
}

/// Fills `out` with bytes that never repeat within a test and are the same in every run.
fn counting(out: &mut [u8]) -> bool {
    for octet in out.iter_mut() {
        *octet = NEXT.get();
        NEXT.set(octet.wrapping_mul(5).wrapping_add(3));
    }
    true
}

const SERVER_SECRET: [u8; 32] = [0x51; 32];
const CLIENT_SECRET: [u8; 32] = [0xC1; 32];

fn client_config(server: [u8; 32]) -> MechanismConfig {
    MechanismConfig::CurveClient {
        public: public_key(&CLIENT_SECRET),
        secret: Arc::new(CLIENT_SECRET.into()),
        server,
        random: counting,
    }
}

fn server_config() -> MechanismConfig {
    MechanismConfig::CurveServer { keys: ServerKeys::new(Arc::new(SERVER_SECRET.into())), random: counting }
}

fn client() -> Box<dyn Mechanism> {
    client::start(&client_config(public_key(&SERVER_SECRET)))
}

fn server() -> Box<dyn Mechanism> {
    server::start(&server_config())
}

/// Takes the body of the only command in `out`, after its name, and empties `out`.
fn command(out: &mut Vec<u8>, name: &[u8]) -> Vec<u8> {
    let header = frame::decode_header(out).unwrap().unwrap();
    assert!(header.is_command() && out.len() as u64 == header.header_len as u64 + header.body_len);
    let body = out.split_off(header.header_len);
    out.clear();
    assert_eq!(body[..name.len()], *name);
    body[name.len()..].to_vec()
}

/// Runs the handshake up to the command with this number (0 is HELLO). Returns the command and both
/// ends.
fn until(step: usize) -> (Box<dyn Mechanism>, Box<dyn Mechanism>, Vec<u8>) {
    let (mut client, mut server, mut out) = (client(), server(), Vec::new());
    client.begin(b"\x01c\0\0\0\x01x".to_vec(), &mut out).unwrap();
    let hello = command(&mut out, b"\x05HELLO");
    server.begin(b"\x01s\0\0\0\x01y".to_vec(), &mut out).unwrap();
    if step == 0 {
        return (client, server, hello);
    }
    server.receive(b"HELLO", &hello, &mut out).unwrap();
    let welcome = command(&mut out, b"\x07WELCOME");
    if step == 1 {
        return (client, server, welcome);
    }
    client.receive(b"WELCOME", &welcome, &mut out).unwrap();
    let initiate = command(&mut out, b"\x08INITIATE");
    if step == 2 {
        return (client, server, initiate);
    }
    let Ok(Progress::Judge(credentials)) = server.receive(b"INITIATE", &initiate, &mut out) else {
        panic!("not judged")
    };
    assert_eq!((credentials.mechanism, credentials.frames.len()), ("CURVE", 1));
    assert_eq!(credentials.frames[0].as_slice(), public_key(&CLIENT_SECRET));
    assert!(out.is_empty());
    let complete = server.admit(&mut out);
    assert!(matches!(complete, Ok(Progress::Complete(list)) if list.0 == [("c".to_owned(), b"x".to_vec())]));
    let ready = command(&mut out, b"\x05READY");
    (client, server, ready)
}

fn established() -> (Box<dyn Stage>, Box<dyn Stage>) {
    let (mut client, mut server, ready) = until(3);
    let complete = client.receive(b"READY", &ready, &mut Vec::new());
    assert!(matches!(complete, Ok(Progress::Complete(list)) if list.0 == [("s".to_owned(), b"y".to_vec())]));
    let stages = (client.stage(None).unwrap(), server.stage(None).unwrap());
    assert!(client.stage(None).is_none() && server.stage(None).is_none(), "once only");
    stages
}

#[test]
fn commands_have_the_sizes_of_the_rfc() {
    let (_, _, hello) = until(0);
    assert_eq!(hello.len() + 6, 200);
    assert_eq!(hello[..2], [1, 0]);
    assert!(hello[2..74].iter().all(|&octet| octet == 0));
    assert_eq!(hello[106..114], [0, 0, 0, 0, 0, 0, 0, 1], "nonces start with 1");
    assert_eq!(until(1).2.len() + 8, 168);
    let initiate = until(2).2;
    assert_eq!(initiate.len() + 9, 257 + 7);
    assert_eq!(initiate[96..104], [0, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(until(3).2.len() + 6, 30 + 7);
    let (mut client, _) = established();
    let mut out = Vec::new();
    client.seal(b"\0\x05hello", &mut out);
    // The message frame has no flags, and the box holds one octet more than the body.
    assert_eq!(out[..2], [0, 8 + 8 + 16 + 1 + 5]);
    assert_eq!(out[2..18], *b"\x07MESSAGE\0\0\0\0\0\0\0\x03");
}

/// Compares with the boxes that libsodium makes from the same keys, nonces and contents.
#[test]
fn boxes_are_those_of_nacl() {
    fn hex(text: &str) -> Vec<u8> {
        let octet = |i: usize| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(octet).collect()
    }
    let (client_public, server_public) = (public_key(&CLIENT_SECRET), public_key(&SERVER_SECRET));
    assert_eq!(client_public[..], hex("42575d5c8a93833255e09f04054a4f6246d36ed163c1c7f80c1fc9a58a0e912d"));
    assert_eq!(server_public[..], hex("ad908a8a708aca07588cda7c4ed3e44d4966a80a9abb2f1e4bbac53c67414e34"));
    let nonce = short_nonce(CLIENT_PREFIX, 7);
    let expected = hex("a0d8949be43a02603eb65a717d362e825eac3645fe");
    for (theirs, ours) in [(server_public, CLIENT_SECRET), (client_public, SERVER_SECRET)] {
        let (key, mut out) = (BoxKey::agreed(&theirs, &ours.into()).unwrap(), Vec::new());
        key.seal(&nonce, &[b"box", b"ed"], &mut out);
        assert_eq!(out, expected);
        assert_eq!(key.open(&nonce, &out).unwrap()[..], *b"boxed");
    }
    let content: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
    let mut out = Vec::new();
    BoxKey::own(SERVER_SECRET.into()).seal(&nonce, &[&content], &mut out);
    assert_eq!(out[..16], hex("af0e6653af0028e9c58e04a633d5de46"));
    assert_eq!(out[1000..], hex("2c9652ae130291a9da2e7f05ba9a45eb"));
}

#[test]
fn every_other_length_is_malformed() {
    let clauses = [
        Violation::MalformedHello,
        Violation::Cryptographic,
        Violation::MalformedInitiate,
        Violation::MalformedReady,
    ];
    let names = [&b"HELLO"[..], b"WELCOME", b"INITIATE", b"READY"];
    for (step, (clause, name)) in clauses.into_iter().zip(names).enumerate() {
        let shortest = [HELLO_LEN, WELCOME_LEN, INITIATE_LEN, READY_LEN][step];
        for cut in (0..shortest).step_by(7).chain([shortest - 1]) {
            let (client, server, data) = until(step);
            let mut taker = if step % 2 == 0 { server } else { client };
            let fault = taker.receive(name, &data[..cut], &mut Vec::new()).unwrap_err();
            assert_eq!(fault, clause.into(), "{step} cut at {cut}");
            // A second attempt fails.
            let again = taker.receive(name, &data, &mut Vec::new()).unwrap_err();
            assert_eq!(again, Violation::UnexpectedCommand.into());
        }
    }
    for step in [0, 1] {
        let (client, server, mut data) = until(step);
        data.push(0);
        let mut taker = if step == 0 { server } else { client };
        let fault = taker.receive(names[step], &data, &mut Vec::new()).unwrap_err();
        assert_eq!(fault, clauses[step].into());
    }
}

#[test]
fn no_octet_may_change() {
    let names = [&b"HELLO"[..], b"WELCOME", b"INITIATE", b"READY"];
    for (step, name) in names.into_iter().enumerate() {
        let len = until(step).2.len();
        for at in (0..len).step_by(5) {
            // The padding has no meaning.
            if step == 0 && (2..74).contains(&at) {
                continue;
            }
            let (client, server, mut data) = until(step);
            data[at] ^= 0x10;
            let mut taker = if step % 2 == 0 { server } else { client };
            let fault = taker.receive(name, &data, &mut Vec::new()).unwrap_err();
            let expected =
                if step == 0 && at < 2 { Violation::MalformedHello } else { Violation::Cryptographic };
            assert_eq!(fault, expected.into(), "{step} at {at}");
        }
    }
}

#[test]
fn commands_out_of_order() {
    let names = [&b"HELLO"[..], b"WELCOME", b"INITIATE", b"READY", b"MESSAGE", b"hello"];
    for step in 0..4 {
        for (index, name) in names.into_iter().enumerate() {
            let (client, server, data) = until(step);
            let (mut taker, mut other) = if step % 2 == 0 { (server, client) } else { (client, server) };
            if index != step {
                let fault = taker.receive(name, &data, &mut Vec::new()).unwrap_err();
                // A READY in place of WELCOME does not open.
                let early = step == 1 && name == b"READY";
                let expected = if early { Violation::Cryptographic } else { Violation::UnexpectedCommand };
                assert_eq!(fault, expected.into(), "{step} {index}");
            }
            // An end does not accept its own command.
            assert!(other.receive(names[step], &data, &mut Vec::new()).is_err());
        }
    }
}

#[test]
fn a_server_with_another_key_is_not_talked_to() {
    let mut client = client::start(&client_config(public_key(&[7; 32])));
    let (mut server, mut out) = (server(), Vec::new());
    client.begin(Vec::new(), &mut out).unwrap();
    let hello = command(&mut out, b"\x05HELLO");
    let fault = server.receive(b"HELLO", &hello, &mut out).unwrap_err();
    assert_eq!((fault, out.len()), (Violation::Cryptographic.into(), 0));
}

#[test]
fn keys_that_are_no_keys() {
    // With points of small order, the agreed key would be zero for every secret.
    let mut client = client::start(&client_config([0; 32]));
    assert_eq!(client.begin(Vec::new(), &mut Vec::new()).unwrap_err(), Violation::Cryptographic.into());
    let (_, mut server, mut hello) = until(0);
    hello[74..106].fill(0);
    let fault = server.receive(b"HELLO", &hello, &mut Vec::new()).unwrap_err();
    assert_eq!(fault, Violation::Cryptographic.into());
}

/// A client whose INITIATE is right except for its vouch.
#[test]
fn a_vouch_for_something_else() {
    let vouched_for = |short: Option<[u8; 32]>, server_key: Option<[u8; 32]>| {
        let (mut server, mut out) = (server(), Vec::new());
        server.begin(Vec::new(), &mut out).unwrap();
        let short_secret: Secret<[u8; 32]> = [9; 32].into();
        let short_public = public_key(&short_secret);
        let key = BoxKey::agreed(&public_key(&SERVER_SECRET), &short_secret).unwrap();
        let mut hello = vec![1, 0];
        hello.resize(74, 0);
        hello.extend(short_public);
        hello.extend(1u64.to_be_bytes());
        key.seal(&short_nonce(b"CurveZMQHELLO---", 1), &[&[0; 64]], &mut hello);
        server.receive(b"HELLO", &hello, &mut out).unwrap();
        let welcome = command(&mut out, b"\x07WELCOME");
        let nonce = nacl::long_nonce(b"WELCOME-", welcome[..16].try_into().unwrap());
        let content = key.open(&nonce, &welcome[16..]).unwrap();
        let server_short = content[..32].try_into().unwrap();
        let mut vouch = vec![3; 16];
        BoxKey::agreed(server_short, &CLIENT_SECRET.into()).unwrap().seal(
            &nacl::long_nonce(b"VOUCH---", &[3; 16]),
            &[&short.unwrap_or(short_public), &server_key.unwrap_or(public_key(&SERVER_SECRET))],
            &mut vouch,
        );
        let mut initiate = content[32..].to_vec();
        initiate.extend(2u64.to_be_bytes());
        BoxKey::agreed(server_short, &short_secret).unwrap().seal(
            &short_nonce(b"CurveZMQINITIATE", 2),
            &[&public_key(&CLIENT_SECRET), &vouch],
            &mut initiate,
        );
        server.receive(b"INITIATE", &initiate, &mut out).map(|_| ())
    };
    assert_eq!(vouched_for(None, None), Ok(()));
    assert_eq!(vouched_for(Some([4; 32]), None), Err(Violation::KeyExchange.into()));
    assert_eq!(vouched_for(None, Some([4; 32])), Err(Violation::KeyExchange.into()));
}

#[test]
fn without_randomness_nothing_is_sent() {
    let none: Random = |_| false;
    let mut config = client_config(public_key(&SERVER_SECRET));
    if let MechanismConfig::CurveClient { random, .. } = &mut config {
        *random = none;
    }
    let mut out = Vec::new();
    assert_eq!(client::start(&config).begin(Vec::new(), &mut out).unwrap_err(), ProtocolError::NoRandomness);
    let hello = until(0).2;
    let config =
        MechanismConfig::CurveServer { keys: ServerKeys::new(Arc::new(SERVER_SECRET.into())), random: none };
    let fault = server::start(&config).receive(b"HELLO", &hello, &mut out).unwrap_err();
    assert_eq!((fault, out.len()), (ProtocolError::NoRandomness, 0));
}

/// Frames of every kind, as they stand in a queue.
fn plain() -> Vec<u8> {
    let mut out = Vec::new();
    for (flags, body) in
        [(0, &b"hello"[..]), (MORE, b""), (MORE, b"part"), (0, &[7; 300]), (0, b""), (0, &[8; 70_000])]
    {
        frame::append_header(&mut out, flags, body.len() as u64);
        out.extend_from_slice(body);
    }
    put_ping(&mut out, 7, b"ctx");
    put_subscribe(&mut out, b"topic");
    // 222 bytes is the largest body whose box fits a short frame.
    for len in [221, 222, 223, 254, 255, 256] {
        frame::append_header(&mut out, 0, len);
        out.resize(out.len() + len as usize, 9);
    }
    out
}

#[test]
fn frames_round_trip_with_any_split() {
    let plain = plain();
    for (seal_piece, open_piece) in
        [(usize::MAX, usize::MAX), (1, usize::MAX), (usize::MAX, 1), (3, 5), (4096, 1000), (1000, 65_536)]
    {
        let (mut client, mut server) = established();
        let (mut wire, mut back) = (Vec::new(), Vec::new());
        plain.chunks(seal_piece.min(plain.len())).for_each(|piece| client.seal(piece, &mut wire));
        wire.chunks(open_piece.min(wire.len())).for_each(|piece| server.open(piece, &mut back).unwrap());
        assert_eq!(back, plain, "pieces of {seal_piece} and {open_piece}");
        assert_eq!((client.buffered(), server.buffered()), (0, 0));
        let (mut wire, mut back) = (Vec::new(), Vec::new());
        server.seal(&plain, &mut wire);
        client.open(&wire, &mut back).unwrap();
        assert_eq!(back, plain, "the other way");
    }
}

#[test]
fn replayed_reordered_and_altered_frames_are_refused() {
    let sealed = |bodies: &[&[u8]]| {
        let (mut client, server) = established();
        let frames: Vec<Vec<u8>> = bodies
            .iter()
            .map(|body| {
                let (mut plain, mut wire) = (Vec::new(), Vec::new());
                frame::append_header(&mut plain, 0, body.len() as u64);
                plain.extend_from_slice(body);
                client.seal(&plain, &mut wire);
                wire
            })
            .collect();
        (frames, client, server)
    };
    let out = &mut Vec::new();
    let (frames, mut client, mut server) = sealed(&[b"one", b"two"]);
    server.open(&frames[0], out).unwrap();
    assert_eq!(server.open(&frames[0], out), Err(Violation::NonceOrder.into()), "repeated");
    // The client's own frame, reflected.
    assert_eq!(client.open(&frames[1], out), Err(Violation::Cryptographic.into()));
    let (frames, _, mut server) = sealed(&[b"one", b"two"]);
    server.open(&frames[1], out).unwrap();
    assert_eq!(server.open(&frames[0], out), Err(Violation::NonceOrder.into()), "exchanged");
    let len = sealed(&[b"one"]).0[0].len();
    for at in 2..len {
        let (mut frames, _, mut server) = sealed(&[b"one"]);
        frames[0][at] ^= 1;
        let expected = match at {
            ..10 => Violation::UnexpectedCommand,
            17 => Violation::NonceOrder, // 3 became 2, the number of INITIATE
            _ => Violation::Cryptographic,
        };
        out.clear();
        assert_eq!(server.open(&frames[0], out), Err(expected.into()), "octet {at}");
        assert!(out.is_empty(), "nothing of it comes out");
    }
    // Frames that announce a size too short for a MESSAGE.
    for size in 0..33 {
        let (_, mut server) = established();
        assert_eq!(server.open(&[0, size], out), Err(Violation::MalformedMessage.into()));
    }
    // A plain frame after the handshake.
    let (_, mut server) = established();
    let fault = server.open(&[&[0, 40][..], &[b'x'; 40]].concat(), out);
    assert_eq!(fault, Err(Violation::UnexpectedCommand.into()));
}

#[test]
fn numbers_are_never_used_twice() {
    let key = || BoxKey::own([5; 32].into());
    let (last, out) = (u64::MAX - 1, &mut Vec::new());
    let mut end = Traffic::new(key(), (CLIENT_PREFIX, last), (SERVER_PREFIX, 1), None);
    end.seal(b"\0\x01a", out);
    let len = out.len();
    assert!(len > 0);
    end.seal(b"\0\x01b", out);
    assert_eq!(out.len(), len, "rather silence than a number again");
}

#[test]
fn memory_follows_what_arrives_and_sizes_are_judged_at_once() {
    let key = || BoxKey::own([5; 32].into());
    let ends = |limit| Traffic::new(key(), (CLIENT_PREFIX, 1), (SERVER_PREFIX, 1), limit);
    let out = &mut Vec::new();
    let announced = |size: u64| [&[2][..], &size.to_be_bytes()].concat();
    let mut end = ends(None);
    end.open(&announced(1 << 62), out).unwrap();
    end.open(&[0; 1000], out).unwrap();
    assert_eq!(end.buffered(), 1009);
    let mut end = ends(Some(100));
    end.open(&announced(133), out).unwrap();
    let mut end = ends(Some(100));
    let fault = end.open(&announced(134), out);
    assert_eq!(fault, Err(ProtocolError::TooLarge { size: 101, limit: 100 }));
    assert_eq!(ends(None).open(&[COMMAND | MORE], out), Err(Violation::CommandWithMore.into()));
}
