//! Whole handshakes: golden bytes from the RFCs, every split, every fault, and two sessions against
//! each other.

use super::*;
use crate::error::{AuthFailure, Violation};
use crate::metadata::put_property;

const SIGNATURE: &[u8] = b"\xff\0\0\0\0\0\0\0\x01\x7f";

fn config(socket_type: SocketType) -> SessionConfig {
    SessionConfig {
        socket_type,
        routing_id: Vec::new(),
        mechanism: MechanismConfig::Null,
        authenticate: false,
        max_msg_size: None,
        properties: Vec::new(),
    }
}

fn session(socket_type: SocketType) -> Session {
    Session::new(config(socket_type))
}

fn session_with_id(socket_type: SocketType, routing_id: &[u8]) -> Session {
    Session::new(SessionConfig { routing_id: routing_id.to_vec(), ..config(socket_type) })
}

/// A 3.x greeting with the mechanism NULL.
fn greeting(major: u8, minor: u8) -> Vec<u8> {
    let mut out = SIGNATURE.to_vec();
    out.extend([major, minor]);
    out.extend(b"NULL");
    out.resize(64, 0);
    out
}

fn ready(properties: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = b"\x05READY".to_vec();
    properties.iter().for_each(|(name, value)| put_property(&mut body, name, value));
    frame(4, &body)
}

fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append_header(&mut out, flags, body.len() as u64);
    out.extend_from_slice(body);
    out
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn handshake_3(minor: u8, socket_type: &str) -> Vec<u8> {
    join(&[&greeting(3, minor), &ready(&[("Socket-Type", socket_type.as_bytes())])])
}

/// Takes all output.
fn drain(session: &mut Session) -> Vec<u8> {
    let out = session.output().to_vec();
    session.advance_output(out.len());
    assert!(session.output().is_empty());
    out
}

/// Feeds `bytes` and returns the error, which must occur.
fn failure(session: &mut Session, bytes: &[u8]) -> ProtocolError {
    let error = session.input(bytes).expect_err("the handshake must fail");
    assert_eq!(session.input(b"more"), Err(error), "an error stays");
    assert_eq!(session.input(b""), Err(error));
    assert!(session.take_established().is_none());
    error
}

#[test]
fn golden_3_1() {
    let mut session = session_with_id(SocketType::Dealer, b"abc");
    assert_eq!(drain(&mut session), b"\xff\0\0\0\0\0\0\0\x04\x7f");
    assert_eq!(session.input(&SIGNATURE[..9]), Ok(9));
    assert!(!session.has_started());
    assert_eq!(session.input(&SIGNATURE[9..]), Ok(1));
    assert!(session.has_started());
    assert_eq!(drain(&mut session), b"\x03");
    assert_eq!(session.input(b"\x03"), Ok(1));
    assert_eq!(drain(&mut session), greeting(3, 1)[11..]);
    assert_eq!(session.input(&greeting(3, 1)[11..]), Ok(53));
    let expected = b"\x04\x2c\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\x03abc";
    assert_eq!(drain(&mut session), expected);
    let ready = b"\x04\x2b\x05READY\x0bSocket-Type\0\0\0\x06ROUTER\x08Identity\0\0\0\x02id";
    assert_eq!(session.input(&ready[..ready.len() - 1]), Ok(ready.len() - 1));
    assert!(session.take_established().is_none());
    assert_eq!(session.input(b"dtraffic"), Ok(1), "traffic is not taken");
    let established = session.take_established().unwrap();
    assert_eq!(established.version, Version::V3_1);
    assert_eq!(established.peer.socket_type, Some(SocketType::Router));
    assert_eq!(established.peer.routing_id, b"id");
    assert_eq!(
        established.peer.properties,
        [("Socket-Type".into(), b"ROUTER".to_vec()), ("Identity".into(), b"id".to_vec())]
    );
    assert!(established.stage.is_none() && established.inbound.is_empty());
    assert!(session.take_established().is_none(), "once only");
    assert_eq!(session.input(b"traffic"), Ok(0));
    assert!(session.output().is_empty());
}

#[test]
fn golden_2_0() {
    // RFC 15: revision 1 or 2, socket type, identity frame.
    for revision in [1, 2] {
        let mut session = session_with_id(SocketType::Router, b"me");
        assert_eq!(drain(&mut session), b"\xff\0\0\0\0\0\0\0\x03\x7f");
        assert_eq!(session.input(SIGNATURE), Ok(10));
        assert_eq!(session.input(&[revision]), Ok(1));
        assert_eq!(drain(&mut session), b"\x03\x06\x00\x02me");
        assert_eq!(session.input(b"\x05\0\x03you\0\x01x"), Ok(6));
        let established = session.take_established().unwrap();
        assert_eq!(established.version, Version::V2);
        assert_eq!(established.peer.socket_type, Some(SocketType::Dealer));
        assert_eq!(established.peer.routing_id, b"you");
        assert!(established.peer.properties.is_empty());
        assert!(established.stage.is_some() && established.inbound.is_empty());
        assert!(session.output().is_empty());
    }
}

#[test]
fn xpub_and_xsub_are_pub_and_sub_to_2_0() {
    for (ours, octet) in [(SocketType::XPub, 1), (SocketType::XSub, 2), (SocketType::Push, 8)] {
        let mut session = session(ours);
        session.input(&join(&[SIGNATURE, b"\x01"])).unwrap();
        assert_eq!(drain(&mut session)[10..], [3, octet, 0, 0]);
    }
    let mut session = session(SocketType::Sub);
    assert_eq!(session.input(&join(&[SIGNATURE, b"\x01\x09\0\0"])), Ok(14));
    assert_eq!(session.take_established().unwrap().peer.socket_type, Some(SocketType::XPub));
}

#[test]
fn golden_revision_0_has_the_frames_of_1_0() {
    let mut session = session_with_id(SocketType::Router, b"me");
    assert_eq!(session.input(&join(&[SIGNATURE, b"\0\x05\x04\0you\x02\0x"])), Ok(17));
    assert_eq!(drain(&mut session), b"\xff\0\0\0\0\0\0\0\x03\x7f\x03\x06\x03\0me");
    let established = session.take_established().unwrap();
    assert_eq!(established.version, Version::V1);
    assert_eq!(established.peer.socket_type, Some(SocketType::Dealer));
    assert_eq!(established.peer.routing_id, b"you");
    assert!(established.stage.is_some());
}

#[test]
fn golden_1_0() {
    // RFC 13: the length of an identity frame counts the flags. Our own frame began with the
    // signature.
    for (input, id) in [
        (&b"\x01\0"[..], &b""[..]),
        (b"\x04\0xyz", b"xyz"),
        (b"\x04\x7fxyz", b"xyz"),
        (b"\xff\0\0\0\0\0\0\0\x04\0xyz", b"xyz"),
        (b"\xff\0\0\0\0\0\0\0\x01\xfe", b""),
    ] {
        let mut session = session_with_id(SocketType::Dealer, b"abc");
        let traffic = join(&[input, b"\x02\0x"]);
        assert_eq!(session.input(&traffic), Ok(input.len()));
        assert!(session.has_started());
        assert_eq!(drain(&mut session), b"\xff\0\0\0\0\0\0\0\x04\x7fabc");
        let established = session.take_established().unwrap();
        assert_eq!(established.version, Version::V1);
        assert_eq!((established.peer.socket_type, &*established.peer.routing_id), (None, id));
        assert!(established.stage.is_some() && established.inbound.is_empty());
    }
}

#[test]
fn a_1_0_subscriber_gets_everything() {
    for (ours, inbound) in [
        (SocketType::Pub, &b"\x04\x0a\x09SUBSCRIBE"[..]),
        (SocketType::XPub, b"\x04\x0a\x09SUBSCRIBE"),
        (SocketType::Push, b""),
    ] {
        let mut session = session(ours);
        session.input(b"\x01\0").unwrap();
        assert_eq!(session.take_established().unwrap().inbound, inbound);
    }
}

#[test]
fn stages_by_version_and_type() {
    for (ours, theirs, at_3_0) in
        [(SocketType::Pub, "SUB", true), (SocketType::XSub, "PUB", true), (SocketType::Push, "PULL", false)]
    {
        for (major, minor, version) in
            [(3, 0, Version::V3_0), (3, 1, Version::V3_1), (3, 9, Version::V3_1), (4, 0, Version::V3_1)]
        {
            let mut session = session(ours);
            let input = join(&[&greeting(major, minor), &ready(&[("Socket-Type", theirs.as_bytes())])]);
            assert_eq!(session.input(&input), Ok(input.len()));
            let established = session.take_established().unwrap();
            assert_eq!(established.version, version);
            assert_eq!(established.stage.is_some(), at_3_0 && version == Version::V3_0);
        }
    }
}

#[test]
fn a_peer_need_not_tell_its_type() {
    let mut session = session(SocketType::Router);
    session.input(&join(&[&greeting(3, 1), &ready(&[("identity", b"\0id"), ("X-a", b"")])])).unwrap();
    let peer = session.take_established().unwrap().peer;
    assert_eq!((peer.socket_type, &*peer.routing_id), (None, &b"\0id"[..]));
    assert_eq!(peer.properties.len(), 2);
}

#[test]
fn our_metadata_and_bounds() {
    let mut session = Session::new(SessionConfig {
        routing_id: vec![b'x'; 300],
        properties: vec![("X-key".into(), b"value".to_vec()), ("not a name".into(), vec![])],
        ..config(SocketType::Push)
    });
    session.input(&greeting(3, 1)).unwrap();
    let out = drain(&mut session);
    assert_eq!(out[..10], *b"\xff\0\0\0\0\0\0\x01\0\x7f", "255 bytes of routing id and one");
    assert_eq!(out[32], 0, "NULL has no server");
    let expected = ready(&[("Socket-Type", b"PUSH"), ("X-key", b"value")]);
    assert_eq!(out[64..], expected, "PUSH has no identity");
}

/// Transcripts of peers of every version, each with our type.
fn transcripts() -> Vec<(SocketType, Vec<u8>)> {
    let id = ready(&[("Socket-Type", b"DEALER"), ("Identity", b"id"), ("X-long", &[b'x'; 300])]);
    vec![
        (SocketType::Pull, handshake_3(1, "PUSH")),
        (SocketType::Pub, handshake_3(0, "SUB")),
        (SocketType::Router, join(&[&greeting(3, 1), &id])),
        (SocketType::Router, join(&[SIGNATURE, b"\x01\x05\0\x02id"])),
        (SocketType::Router, join(&[SIGNATURE, b"\x02\x05\x02\0\0\0\0\0\0\0\x02id"])),
        (SocketType::Router, join(&[SIGNATURE, b"\0\x05\x03\0id"])),
        (SocketType::XPub, b"\x03\0id".to_vec()),
        (SocketType::Router, b"\xff\0\0\0\0\0\0\0\x03\0id".to_vec()),
    ]
}

type Outcome = (Result<(usize, Option<(Version, Peer)>), ProtocolError>, Vec<u8>);

/// Feeds `pieces` one after the other. Collects the number of bytes taken, the result and all
/// output.
fn feed<'a>(ours: SocketType, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut session = session_with_id(ours, b"our-id");
    let (mut used, mut out) = (0, drain(&mut session));
    for piece in pieces {
        let taken = session.input(piece);
        out.extend(drain(&mut session));
        match taken {
            Err(error) => return (Err(error), out),
            Ok(taken) => used += taken,
        }
    }
    let established = session.take_established().map(|established| (established.version, established.peer));
    (Ok((used, established)), out)
}

#[test]
fn every_split_gives_the_same() {
    for (ours, handshake) in transcripts() {
        let stream = join(&[&handshake, b"\0\x05hello"]);
        let whole = feed(ours, [&stream[..]]);
        let (used, established) = whole.0.clone().unwrap();
        assert_eq!(used, handshake.len());
        assert!(established.is_some());
        assert_eq!(feed(ours, stream.chunks(1)), whole);
        for cut in 0..=stream.len() {
            assert_eq!(feed(ours, [&stream[..cut], &[], &stream[cut..]]), whole, "cut at {cut}");
        }
    }
}

#[test]
fn half_a_handshake_is_neither_done_nor_wrong() {
    for (ours, handshake) in transcripts() {
        for cut in 0..handshake.len() {
            assert_eq!(feed(ours, [&handshake[..cut]]).0, Ok((cut, None)), "cut at {cut}");
        }
    }
}

#[test]
fn each_violation_has_its_error() {
    let ready_body = |data: &[u8]| join(&[&greeting(3, 1), &frame(4, &join(&[b"\x05READY", data]))]);
    let after = |bytes: &[u8]| join(&[&greeting(3, 1), bytes]);
    let mismatch = |theirs| ProtocolError::from(Mismatch::SocketType { ours: SocketType::Router, theirs });
    let too_large = |size| ProtocolError::TooLarge { size, limit: 65_536 };
    let refused = |status| ProtocolError::Auth(AuthFailure::Refused { status });
    let mut plain = greeting(3, 1);
    plain[12..17].copy_from_slice(b"PLAIN");
    let mut lower = greeting(3, 0);
    lower[12] = b'n';
    let cases: Vec<(&str, Vec<u8>, ProtocolError)> = vec![
        ("1.0 length 0", b"\0".to_vec(), Violation::IdentityFrame.into()),
        ("1.0 long length 0", b"\xff\0\0\0\0\0\0\0\0\0".to_vec(), Violation::IdentityFrame.into()),
        ("1.0 identity of 256", b"\xff\0\0\0\0\0\0\x01\x01\0".to_vec(), Violation::IdentityLength.into()),
        ("1.0 identity of 2^63", b"\xff\x80\0\0\0\0\0\0\0\0".to_vec(), Violation::IdentityLength.into()),
        ("2.0 unknown type", join(&[SIGNATURE, b"\x01\x15"]), Mismatch::UnknownSocketType.into()),
        ("2.0 other type", join(&[SIGNATURE, b"\x01\x02"]), mismatch(SocketType::Sub)),
        ("revision 0 other type", join(&[SIGNATURE, b"\0\x02"]), mismatch(SocketType::Sub)),
        ("2.0 identity goes on", join(&[SIGNATURE, b"\x01\x05\x01\x02"]), Violation::IdentityFrame.into()),
        (
            "2.0 identity is a command",
            join(&[SIGNATURE, b"\x01\x05\x04\x02"]),
            Violation::ReservedFlags.into(),
        ),
        ("2.0 identity flags", join(&[SIGNATURE, b"\x01\x05\x80"]), Violation::ReservedFlags.into()),
        (
            "2.0 identity of 256",
            join(&[SIGNATURE, b"\x01\x05\x02\0\0\0\0\0\0\x01\0"]),
            Violation::IdentityLength.into(),
        ),
        ("other mechanism", plain, Mismatch::Mechanism.into()),
        ("mechanism name", lower, Violation::MechanismName.into()),
        ("message", after(b"\0\x05"), Violation::UnexpectedMessage.into()),
        ("long message", after(b"\x02\0\0\0\0\0\0\0\0"), Violation::UnexpectedMessage.into()),
        ("reserved flags", after(b"\xf8"), Violation::ReservedFlags.into()),
        ("command with more", after(b"\x05"), Violation::CommandWithMore.into()),
        ("2^63 bytes", after(b"\x06\x80\0\0\0\0\0\0\0"), Violation::FrameLength.into()),
        ("64 KiB and one", after(b"\x06\0\0\0\0\0\x01\0\x01"), too_large(65_537)),
        ("2^63-1 bytes", after(b"\x06\x7f\xff\xff\xff\xff\xff\xff\xff"), too_large(i64::MAX as u64)),
        ("empty command", after(b"\x04\0"), Violation::UnexpectedCommand.into()),
        ("name cut off", after(b"\x04\x03\x05RE"), Violation::UnexpectedCommand.into()),
        ("other command", after(&frame(4, b"\x04PING\0\0")), Violation::UnexpectedCommand.into()),
        ("PLAIN's first command", after(&frame(4, b"\x05HELLO\0\0")), Violation::UnexpectedCommand.into()),
        (
            "property cut off",
            ready_body(b"\x0bSocket-Type\0\0\0\x06DEALE"),
            Violation::PropertyTruncated.into(),
        ),
        ("property without a name", ready_body(b"\0\0\0\0\0"), Violation::PropertyName.into()),
        ("property name", ready_body(b"\x01 \0\0\0\0"), Violation::PropertyName.into()),
        ("property of 2^31", ready_body(b"\x01a\x80\0\0\0"), Violation::PropertyLength.into()),
        ("property twice", ready_body(b"\x01a\0\0\0\0\x01A\0\0\0\0"), Violation::PropertyDuplicate.into()),
        ("unknown type", ready_body(b"\x0bSocket-Type\0\0\0\x03FOO"), Mismatch::UnknownSocketType.into()),
        ("other type", ready_body(b"\x0bSocket-Type\0\0\0\x03SUB"), mismatch(SocketType::Sub)),
        (
            "identity of 256",
            after(&ready(&[("Socket-Type", b"DEALER"), ("Identity", &[b'x'; 256])])),
            Violation::IdentityLength.into(),
        ),
        ("refused", after(&frame(4, b"\x05ERROR\x04what")), refused(None)),
        ("refused with a status", after(&frame(4, b"\x05ERROR\x03400")), refused(Some(400))),
        ("reason cut off", after(&frame(4, b"\x05ERROR\x09400")), Violation::MalformedError.into()),
        ("reason too short", after(&frame(4, b"\x05ERROR\x02400")), Violation::MalformedError.into()),
        ("no reason", after(&frame(4, b"\x05ERROR")), Violation::MalformedError.into()),
    ];
    for (what, input, error) in cases {
        let mut whole = session(SocketType::Router);
        assert_eq!(failure(&mut whole, &input), error, "{what}");
        let mut bytewise = session(SocketType::Router);
        let (last, before) = input.split_last().unwrap();
        for byte in before {
            assert_eq!(bytewise.input(&[*byte]), Ok(1), "{what}: told too early");
        }
        assert_eq!(bytewise.input(&[*last]), Err(error), "{what}: not told at the last byte");
    }
}

#[test]
fn a_refusal_keeps_its_reason() {
    let mut session = session(SocketType::Pull);
    let mut error = Vec::new();
    put_error(&mut error, &[b'r'; 300]);
    failure(&mut session, &join(&[&greeting(3, 1), &error]));
    assert_eq!(session.refusal(), [b'r'; 255]);
}

#[test]
fn an_incompatible_peer_is_told() {
    let mut session = session(SocketType::Pull);
    failure(&mut session, &handshake_3(1, "PULL"));
    let told = frame(4, b"\x05ERROR\x18Incompatible socket type");
    assert!(session.output().ends_with(&told));
}

#[test]
fn a_command_just_within_bounds_is_taken() {
    let name_and_length = 6 + 1 + 1 + 4;
    let list = [("a", &vec![b'x'; 65_536 - name_and_length][..])];
    let mut session = session(SocketType::Pull);
    let input = join(&[&greeting(3, 1), &ready(&list)]);
    assert_eq!(session.input(&input), Ok(64 + 9 + 65_536));
    assert!(session.take_established().is_some());
}

#[test]
fn output_can_be_written_in_pieces() {
    let mut session = session(SocketType::Pull);
    let mut out = Vec::new();
    for byte in handshake_3(1, "PUSH") {
        session.input(&[byte]).unwrap();
        let n = session.output().len().min(3);
        out.extend_from_slice(&session.output()[..n]);
        session.advance_output(n);
    }
    out.extend(drain(&mut session));
    session.advance_output(100);
    assert_eq!(out, join(&[&greeting(3, 1), &ready(&[("Socket-Type", b"PULL")])]));
}

/// Moves bytes between two sessions, at most `step` at a time, until both are silent.
fn converse(a: &mut Session, b: &mut Session, step: usize) -> [Result<(), ProtocolError>; 2] {
    let mut results = [Ok(()), Ok(())];
    loop {
        let mut moved = false;
        for direction in 0..2 {
            let (from, to) = if direction == 0 { (&mut *a, &mut *b) } else { (&mut *b, &mut *a) };
            let n = from.output().len().min(step);
            if n > 0 && results[1 - direction].is_ok() {
                results[1 - direction] = to.input(&from.output()[..n]).map(|taken| assert_eq!(taken, n));
                from.advance_output(n);
                moved = true;
            }
        }
        if !moved {
            return results;
        }
    }
}

#[test]
fn every_pair_of_types() {
    let types: Vec<SocketType> = (0..=20).map(|code| SocketType::from_code(code).unwrap()).collect();
    for &ours in &types {
        for &theirs in &types {
            for step in [1, 7, 1000] {
                let (mut a, mut b) = (session_with_id(ours, b"a"), session_with_id(theirs, b"bb"));
                let [at_a, at_b] = converse(&mut a, &mut b, step);
                if ours.accepts(theirs) {
                    assert_eq!((at_a, at_b), (Ok(()), Ok(())));
                    let (seen_by_a, seen_by_b) =
                        (a.take_established().unwrap(), b.take_established().unwrap());
                    assert_eq!(seen_by_a.version, Version::V3_1);
                    assert_eq!(seen_by_a.peer.socket_type, Some(theirs));
                    assert_eq!(seen_by_b.peer.socket_type, Some(ours));
                    let has_id = |of: SocketType| matches!(of.name(), "REQ" | "DEALER" | "ROUTER");
                    assert_eq!(seen_by_a.peer.routing_id, if has_id(theirs) { &b"bb"[..] } else { b"" });
                    assert_eq!(seen_by_b.peer.routing_id, if has_id(ours) { &b"a"[..] } else { b"" });
                } else {
                    assert_eq!(at_a, Err(Mismatch::SocketType { ours, theirs }.into()));
                    assert_eq!(at_b, Err(Mismatch::SocketType { ours: theirs, theirs: ours }.into()));
                    assert!(a.take_established().is_none() && b.take_established().is_none());
                }
            }
        }
    }
}

/// Feeds filler after `start`, and returns true if the handshake ends, with or without success.
fn ends(ours: SocketType, start: &[u8], filler: u8) -> bool {
    let mut session = session(ours);
    let mut bytes = start.to_vec();
    bytes.resize(start.len() + 70_000, filler);
    match session.input(&bytes) {
        Ok(taken) => taken < bytes.len() && session.take_established().is_some(),
        Err(_) => session.take_established().is_none(),
    }
}

#[test]
fn one_wrong_byte_never_leaves_a_session_hanging() {
    for (ours, handshake) in transcripts() {
        for at in 0..handshake.len() {
            for change in [0x01, 0x02, 0x04, 0x08, 0x7F, 0x80, 0xFF, handshake[at], !handshake[at]] {
                let mut mutant = handshake.clone();
                mutant[at] ^= change;
                for filler in [0, 0xFF] {
                    assert!(ends(ours, &mutant, filler), "byte {at} changed by {change:#x}");
                }
                assert_eq!(
                    feed(ours, mutant.chunks(1)).0.map(|(_, established)| established),
                    feed(ours, [&mutant[..]]).0.map(|(_, established)| established)
                );
            }
        }
    }
}

#[test]
fn random_bytes_in_random_pieces() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let transcripts = transcripts();
    for _ in 0..4000 {
        let (ours, handshake) = &transcripts[random() as usize % transcripts.len()];
        let keep = random() as usize % (handshake.len() + 1);
        let mut bytes = handshake[..keep].to_vec();
        bytes.extend((0..random() % 400).map(|_| {
            let byte = random();
            if byte & 0x100 == 0 { byte as u8 & 7 } else { byte as u8 }
        }));
        let whole = feed(*ours, [&bytes[..]]);
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + random() as usize % rest.len());
            pieces.push(piece);
            rest = after;
        }
        assert_eq!(feed(*ours, pieces), whole);
    }
}
