//! Every stage: golden bytes from the RFCs, every split, hostile input, bounded memory, round
//! trips.

use super::*;
use crate::command::{put_cancel, put_error, put_ping, put_pong, put_subscribe};
use crate::error::Violation;
use crate::frame::{self, COMMAND, MORE, decode_header};

type Direction = fn(&mut dyn Stage, &[u8], &mut Vec<u8>) -> Result<(), ProtocolError>;

const SEAL: Direction = |stage, bytes, out| {
    stage.seal(bytes, out);
    Ok(())
};
const OPEN: Direction = |stage, bytes, out| stage.open(bytes, out);

/// Maximum number of bytes that a stage may hold back: one frame head in each direction.
const HELD: usize = 40;

fn message(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::append_header(&mut out, flags, body.len() as u64);
    out.extend_from_slice(body);
    out
}

fn put(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn run<'a>(
    stage: &mut dyn Stage,
    direction: Direction,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Result<(), ProtocolError>, Vec<u8>) {
    let mut out = Vec::new();
    for piece in pieces {
        if let Err(error) = direction(stage, piece, &mut out) {
            return (Err(error), out);
        }
        assert!(stage.buffered() <= HELD);
    }
    (Ok(()), out)
}

/// Asserts that `input` becomes `expected`, however it is split.
fn becomes(make: impl Fn() -> Box<dyn Stage>, direction: Direction, input: &[u8], expected: &[u8]) {
    let expected = (Ok(()), expected.to_vec());
    assert_eq!(run(&mut *make(), direction, [input]), expected);
    assert_eq!(run(&mut *make(), direction, input.chunks(1)), expected, "byte by byte");
    for cut in 0..=input.len() {
        let (head, tail) = input.split_at(cut);
        assert_eq!(run(&mut *make(), direction, [head, &[], tail]), expected, "cut at {cut}");
        for second in 0..=tail.len().min(24) {
            let (middle, tail) = tail.split_at(second);
            assert_eq!(run(&mut *make(), direction, [head, middle, tail]), expected, "cut at {cut}+{second}");
        }
    }
}

fn fails(make: impl Fn() -> Box<dyn Stage>, input: &[u8], error: impl Into<ProtocolError>) {
    let error = error.into();
    assert_eq!(run(&mut *make(), OPEN, [input]).0, Err(error));
    assert_eq!(run(&mut *make(), OPEN, input.chunks(1)).0, Err(error));
}

/// Messages and commands of every kind, as they stand in a queue.
fn plain() -> Vec<u8> {
    [
        message(0, b"hello"),
        message(MORE, b""),
        message(MORE, b"\x01part"),
        message(0, &[b'l'; 300]),
        put(|out| put_ping(out, 7, b"ctx")),
        put(|out| put_subscribe(out, b"topic")),
        put(|out| put_subscribe(out, b"")),
        put(|out| put_cancel(out, &[b't'; 254])),
        put(|out| put_pong(out, b"")),
        put(|out| put_error(out, b"why")),
        message(COMMAND, b"\x09SUBSCRIB"),
        message(COMMAND, b"\x06CANCEX"),
        message(0, b""),
    ]
    .concat()
}

#[test]
fn golden_seal_1_0() {
    let expected = [
        &b"\x06\0hello\x01\x01\x06\x01\x01part"[..],
        b"\xff\0\0\0\0\0\0\x01\x2d\0",
        &[b'l'; 300],
        b"\x07\0\x01topic\x02\0\x01",
        b"\xff\0\0\0\0\0\0\x01\0\0\0",
        &[b't'; 254],
        b"\x01\0",
    ];
    becomes(|| v1::v1(SocketType::XSub), SEAL, &plain(), &expected.concat());
}

#[test]
fn golden_seal_2_0() {
    let expected = [
        &b"\0\x05hello\x01\0\x01\x05\x01part"[..],
        b"\x02\0\0\0\0\0\0\x01\x2c",
        &[b'l'; 300],
        b"\0\x06\x01topic\0\x01\x01",
        b"\0\xff\0",
        &[b't'; 254],
        b"\0\0",
    ];
    becomes(|| v2::v2(SocketType::XSub), SEAL, &plain(), &expected.concat());
}

#[test]
fn golden_seal_3_0() {
    let expected = [
        &b"\0\x05hello\x01\0\x01\x05\x01part"[..],
        b"\x02\0\0\0\0\0\0\x01\x2c",
        &[b'l'; 300],
        b"\x04\x0a\x04PING\0\x07ctx",
        b"\0\x06\x01topic\0\x01\x01",
        b"\0\xff\0",
        &[b't'; 254],
        b"\x04\x05\x04PONG",
        b"\x04\x0a\x05ERROR\x03why",
        b"\x04\x09\x09SUBSCRIB",
        b"\x04\x07\x06CANCEX",
        b"\0\0",
    ];
    becomes(|| v2::v3_0(SocketType::XSub), SEAL, &plain(), &expected.concat());
}

#[test]
fn golden_seal_raw() {
    let expected = [&b"hello\x01part"[..], &[b'l'; 300]];
    becomes(raw, SEAL, &plain(), &expected.concat());
}

#[test]
fn raw_opens_each_chunk_as_a_message() {
    let mut stage = raw();
    let long = [b'x'; 256];
    let (result, out) = run(&mut *stage, OPEN, [&b"GET /"[..], b"", &long]);
    assert_eq!(result, Ok(()));
    assert_eq!(out, [message(0, b"GET /"), message(0, &long)].concat());
    assert_eq!(stage.buffered(), 0);
}

#[test]
fn golden_open_1_0() {
    // Reserved flags are ignored, frames of length 0 are discarded, and long lengths are allowed
    // where short ones would suffice.
    let wire = [
        &b"\x06\0hello\0\x06\x7epart1\x01\x01\x06\x01\x01part"[..],
        b"\xff\0\0\0\0\0\0\0\0\xff\0\0\0\0\0\0\0\x03\0ab",
        b"\xff\0\0\0\0\0\0\x01\x01\0",
        &[b'l'; 256],
    ];
    let expected = [
        message(0, b"hello"),
        message(0, b"part1"),
        message(MORE, b""),
        message(MORE, b"\x01part"),
        message(0, b"ab"),
        message(0, &[b'l'; 256]),
    ];
    for ours in [SocketType::Pull, SocketType::Pub] {
        becomes(|| v1::v1(ours), OPEN, &wire.concat(), &expected.concat());
    }
}

#[test]
fn golden_open_2_0_and_3_0() {
    let wire =
        [message(0, b"hello"), message(MORE, b"\x01a"), message(0, b"\x01b"), message(0, b"")].concat();
    let long = b"\x02\0\0\0\0\0\0\0\x03abc\x03\0\0\0\0\0\0\0\0\0\x01\x01";
    for make in [v2::v2, v2::v3_0] {
        for ours in [SocketType::Pull, SocketType::XPub] {
            becomes(|| make(ours), OPEN, &wire, &wire);
            let expected = [message(0, b"abc"), message(MORE, b""), message(0, b"\x01")].concat();
            becomes(|| make(ours), OPEN, long, &expected);
        }
    }
}

#[test]
fn subscriptions_arrive_as_commands_where_they_are_taken() {
    let topic = [b't'; 300];
    let wire_2 = [
        message(0, b"\x01A"),
        message(0, b"\0A"),
        message(0, b"\x01"),
        message(0, &[b"\x01", &topic[..]].concat()),
    ];
    let wire_1 = [&b"\x03\0\x01A\x03\0\0A\x02\0\x01\xff\0\0\0\0\0\0\x01\x2e\0\x01"[..], &topic];
    let commands = [
        put(|out| put_subscribe(out, b"A")),
        put(|out| put_cancel(out, b"A")),
        put(|out| put_subscribe(out, b"")),
        put(|out| put_subscribe(out, &topic)),
    ];
    for ours in [SocketType::Pub, SocketType::XPub] {
        becomes(|| v1::v1(ours), OPEN, &wire_1.concat(), &commands.concat());
        becomes(|| v2::v2(ours), OPEN, &wire_2.concat(), &commands.concat());
        becomes(|| v2::v3_0(ours), OPEN, &wire_2.concat(), &commands.concat());
    }
    for ours in [SocketType::Sub, SocketType::XSub, SocketType::Pair] {
        becomes(|| v1::v1(ours), OPEN, &wire_1.concat(), &wire_2.concat());
        becomes(|| v2::v2(ours), OPEN, &wire_2.concat(), &wire_2.concat());
        becomes(|| v2::v3_0(ours), OPEN, &wire_2.concat(), &wire_2.concat());
    }
}

#[test]
fn commands_of_3_0_pass_inward() {
    let wire = [put(|out| put_ping(out, 0, b"c")), put(|out| put_subscribe(out, b"A")), message(0, b"\x02")]
        .concat();
    becomes(|| v2::v3_0(SocketType::Pub), OPEN, &wire, &wire);
    // A command between the parts of a message does not end the message.
    let wire = [message(MORE, b"a"), put(|out| put_pong(out, b"")), message(0, b"\x01b")].concat();
    becomes(|| v2::v3_0(SocketType::Pub), OPEN, &wire, &wire);
}

#[test]
fn wrong_bytes_have_their_error() {
    for ours in [SocketType::Pub, SocketType::Pull] {
        fails(|| v2::v2(ours), b"\x04\x05", Violation::ReservedFlags);
        fails(|| v2::v2(ours), b"\0\x01a\x06", Violation::ReservedFlags);
        for make in [v2::v2, v2::v3_0] {
            fails(|| make(ours), b"\x08", Violation::ReservedFlags);
            fails(|| make(ours), b"\0\x02ab\x80", Violation::ReservedFlags);
            fails(|| make(ours), b"\x02\x80\0\0\0\0\0\0\0", Violation::FrameLength);
        }
        fails(|| v2::v3_0(ours), b"\x05", Violation::CommandWithMore);
        fails(|| v1::v1(ours), b"\xff\x80\0\0\0\0\0\0\x01", Violation::FrameLength);
        fails(|| v1::v1(ours), &[0xFF; 9], Violation::FrameLength);
    }
    // 2^63-1 bytes are a valid frame, but not after a prefix is added.
    for make in [v2::v2, v2::v3_0] {
        fails(|| make(SocketType::Pub), b"\x02\x7f\xff\xff\xff\xff\xff\xff\xff\x01", Violation::FrameLength);
    }
    fails(|| v1::v1(SocketType::Pub), b"\xff\x80\0\0\0\0\0\0\0\0\x01", Violation::FrameLength);
}

#[test]
fn an_announced_size_allocates_nothing() {
    for wire in
        [&b"\x02\x7f\xff\xff\xff\xff\xff\xff\xff\x02xyz"[..], b"\x03\x7f\xff\xff\xff\xff\xff\xff\xff\x01xyz"]
    {
        let (result, out) = run(&mut *v2::v2(SocketType::Pub), OPEN, [wire]);
        assert_eq!((result, out), (Ok(()), wire.to_vec()));
    }
    let (result, out) = run(&mut *v1::v1(SocketType::Pub), OPEN, [&b"\xff\x80\0\0\0\0\0\0\0\0\x02xyz"[..]]);
    assert_eq!((result, out), (Ok(()), b"\x02\x7f\xff\xff\xff\xff\xff\xff\xff\x02xyz".to_vec()));
}

#[test]
fn both_ends_agree() {
    let subscriber = [
        put(|out| put_subscribe(out, b"a")),
        message(MORE, b"\x01user"),
        message(0, &[b'm'; 1000]),
        put(|out| put_cancel(out, b"a")),
        message(0, b"\x02last"),
    ]
    .concat();
    for make in [v1::v1, v2::v2, v2::v3_0] {
        let wire = run(&mut *make(SocketType::XSub), SEAL, [&subscriber[..]]).1;
        assert_eq!(run(&mut *make(SocketType::XPub), OPEN, [&wire[..]]), (Ok(()), subscriber.clone()));
        let publisher = [message(0, b"\x01data"), message(MORE, b"\0"), message(0, b"")].concat();
        let wire = run(&mut *make(SocketType::XPub), SEAL, [&publisher[..]]).1;
        assert_eq!(run(&mut *make(SocketType::XSub), OPEN, [&wire[..]]), (Ok(()), publisher));
    }
}

/// Walks over plain frames. Panics on an invalid header.
fn assert_plain(mut bytes: &[u8]) {
    while let Some(header) = decode_header(bytes).expect("a plain header") {
        let len = usize::try_from(header.body_len).unwrap_or(usize::MAX).saturating_add(header.header_len);
        bytes = bytes.get(len..).unwrap_or_default();
    }
}

#[test]
fn random_bytes_in_random_pieces() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let makers: [fn() -> Box<dyn Stage>; 7] = [
        raw,
        || v1::v1(SocketType::Pub),
        || v1::v1(SocketType::Pull),
        || v2::v2(SocketType::XPub),
        || v2::v2(SocketType::Sub),
        || v2::v3_0(SocketType::Pub),
        || v2::v3_0(SocketType::XSub),
    ];
    for round in 0..6000 {
        let make = makers[round % makers.len()];
        let pool: Vec<u8> = [&plain()[..], &[0; 40], &[1; 20], &[2; 5], &[0xFF; 3]].concat();
        let mut bytes: Vec<u8> = Vec::new();
        while bytes.len() < 300 {
            let start = random() as usize % pool.len();
            let end = (start + 1 + random() as usize % 40).min(pool.len());
            bytes.extend_from_slice(&pool[start..end]);
            bytes.push(random() as u8);
        }
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + random() as usize % rest.len().min(30));
            pieces.push(piece);
            rest = after;
        }
        let sealed = run(&mut *make(), SEAL, [&bytes[..]]);
        assert_eq!(run(&mut *make(), SEAL, pieces.iter().copied()), sealed);
        let opened = run(&mut *make(), OPEN, [&bytes[..]]);
        assert_plain(&opened.1);
        assert!(opened.1.len() <= 4 * bytes.len() + 16, "output stays in proportion");
        if round % makers.len() != 0 {
            assert_eq!(run(&mut *make(), OPEN, pieces), opened);
        }
    }
}
