//! Admission of peers: a ZAP handler judges peers of listening sockets with NULL, PLAIN and CURVE, over live
//! connections.
//!
//! A peer that the handler does not admit never gets in, whatever the handler and the peer send. The library
//! reads little from such peers.

use super::handshake::{Edit, edits, session};
use super::{curve, plain};
use crate::abi::*;
use crate::input::{Reader, pieces};
use crate::live::*;
use crate::meter::{CONNECTION, Meter};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tautline_proto::{MechanismConfig, SocketType, Stage};

const PULL: u8 = 7;
const DEALER: u8 = 5;
const SCHEMES: [&str; 2] = ["ipc", "tcp"];
/// Size of a flood, and the limit of bytes read from a peer that is not admitted: the bytes sent before the
/// decision stay in the system's buffer.
const FLOOD: usize = 4 << 20;
const MOST_TAKEN: usize = 1 << 20;
/// Number of polls, a millisecond each, without an event, after which the peer continues.
const PATIENCE: usize = 3;
const USER: &str = "joe";

struct Hall {
    handler: Socket,
    listeners: BTreeMap<(usize, u8, usize), (Socket, Address)>,
}

static HALL: Mutex<Option<Hall>> = Mutex::new(None);

fn mechanism(number: usize) -> [MechanismConfig; 2] {
    match number {
        0 => [MechanismConfig::Null, MechanismConfig::Null],
        1 => plain::configs(),
        _ => curve::configs(),
    }
}

impl Hall {
    fn open() -> Hall {
        // The handler has its own context, and judges all its connections. As a ROUTER, it can take the next
        // request without answering the last one.
        let handler = Socket::in_other_context(6);
        assert!(handler.bind_to("inproc://zeromq.zap.01"), "{}", failed());
        Hall { handler, listeners: BTreeMap::new() }
    }
}

fn listen(mechanism: usize, kind: u8, scheme: usize) -> (Socket, Address) {
    let socket = Socket::in_other_context(kind);
    // The domain, and the ends of PLAIN and CURVE.
    socket.set(55, b"fuzz");
    match mechanism {
        0 => {}
        1 => socket.set_int(44, 1),
        _ => {
            socket.set_int(47, 1);
            socket.set(49, &curve::SERVER_SECRET);
        }
    }
    let address = socket.bind(SCHEMES[scheme], &format!("admission-{mechanism}-{kind}"));
    (socket, address)
}

/// Answers of the handler, and whether it has admitted a peer.
struct ZapHandler<'a> {
    handler: &'a Socket,
    status: &'a [u8],
    extra: &'a [u8],
    silent: bool,
    asked: bool,
    admitted: bool,
}

impl ZapHandler<'_> {
    /// Answers a request, if there is one.
    fn answer_request(&mut self) -> bool {
        let mut question = Vec::new();
        while let Some((part, more)) = self.handler.receive(256) {
            question.push(part);
            if !more {
                break;
            }
        }
        let [name, delimiter, version, id, domain, _address, _routing_id, mechanism, credentials @ ..] =
            &question[..]
        else {
            assert!(question.is_empty(), "a question without its frames");
            return false;
        };
        self.asked = true;
        assert_eq!((&delimiter[..], &version[..], &domain[..]), (&b""[..], &b"1.0"[..], &b"fuzz"[..]));
        let frames = match &mechanism[..] {
            b"NULL" => 0,
            b"PLAIN" => 2,
            b"CURVE" => 1,
            _ => panic!("an unknown mechanism"),
        };
        assert_eq!(credentials.len(), frames);
        if self.silent {
            return true;
        }
        let parts = [&name[..], b"", b"1.0", &id[..], self.status, b"", USER.as_bytes(), self.extra];
        for (number, part) in parts.iter().enumerate() {
            self.handler.send(part, if number + 1 < parts.len() { SNDMORE } else { 0 });
        }
        self.admitted |= self.status == b"200";
        true
    }
}

/// The input selects the mechanism, the type, the transport and the handler's answer, then changes to the
/// peer's handshake, then the sent bytes.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (number, flags, cut) = (usize::from(reader.byte()) % 3, reader.byte(), reader.byte());
    let kind = if flags & 1 == 0 { PULL } else { DEALER };
    let (scheme, raw, floods) = (usize::from(flags >> 1 & 1), flags & 4 != 0, flags & 8 != 0);
    let answers: [&[u8]; 8] = [b"200", b"200", b"200", b"300", b"400", b"500", b"20", b"2000"];
    let status = answers[usize::from(flags >> 4 & 7)];
    let mut hall = HALL.lock().unwrap_or_else(PoisonError::into_inner);
    let Hall { handler, listeners } = hall.get_or_insert_with(Hall::open);
    let (socket, address) =
        listeners.entry((number, kind, scheme)).or_insert_with(|| listen(number, kind, scheme));
    let meter = Meter::begin();
    let extra = usize::from(reader.byte() % 32);
    let extra = reader.bytes(extra);
    let mut judge =
        ZapHandler { handler, status, extra, silent: flags & 0x80 != 0, asked: false, admitted: false };
    let mut peer = Peer::connect(address);
    peer.count_parts(false);
    let theirs = if kind == PULL { SocketType::Push } else { SocketType::Dealer };
    let mut client = session(theirs, mechanism(number)[0].clone(), false);
    let edits = edits(usize::from(reader.byte() % 4), &mut reader);
    let rest = reader.rest();
    let mut stage: Option<Box<dyn Stage>> = None;
    if raw {
        peer.write_all(client.output(), 1);
        for piece in pieces(rest, cut) {
            peer.write_all(piece, 1);
            check_received(socket, &judge);
            judge.answer_request();
        }
    } else {
        let (mut said, mut idle, mut in_now) = (0, 0, false);
        while idle < PATIENCE && !peer.is_closed && !in_now {
            let mut bytes = client.output().to_vec();
            client.advance_output(bytes.len());
            let start = said;
            said += bytes.len();
            edits.iter().for_each(|edit: &Edit| edit.apply(start, &mut bytes));
            let mut moved = !bytes.is_empty();
            for piece in pieces(&bytes, cut) {
                peer.write_all(piece, 1);
            }
            let heard = peer.read(4096);
            moved |= !heard.is_empty() | judge.answer_request();
            if client.input(&heard).is_err() {
                break;
            }
            if let Some(established) = client.take_established() {
                assert!(judge.admitted || !edits.is_empty(), "a peer is in whom nobody has let in");
                stage = established.stage;
                in_now = true;
            }
            if !moved {
                wait(peer.fd(), libc::POLLIN, 1);
                idle += 1;
            }
        }
        let frames = super::handshake::frames_of(rest);
        let mut wire = Vec::new();
        match &mut stage {
            Some(stage) => pieces(&frames, cut).for_each(|piece| stage.seal(piece, &mut wire)),
            None => wire = frames,
        }
        peer.write_all(&wire, 1);
    }
    if floods {
        let piece = if rest.is_empty() { b"\0\x05Hello" } else { rest };
        // The decision comes in the middle of the stream.
        peer.flood(piece, FLOOD / 2);
        judge.answer_request();
        peer.flood(piece, FLOOD / 2);
    }
    check_received(socket, &judge);
    if !judge.admitted {
        assert!(peer.accepted <= MOST_TAKEN, "{} bytes of one who is not let in", peer.accepted);
    }
    let kept = HWM as usize * MAX_MESSAGE as usize + peer.unfinished() * 3 / 2;
    meter.check(2 * CONNECTION + kept, peer.accepted);
    peer.finish(|| {
        judge.answer_request();
        check_received(socket, &judge);
    });
    check_received(socket, &judge);
}

/// Receives the available messages, which only admitted peers may have sent.
fn check_received(socket: &Socket, judge: &ZapHandler<'_>) {
    let mut msg = Msg([0; 64]);
    // SAFETY: a message that was initialized, a socket of this thread, a C string.
    unsafe {
        zmq_msg_init(&mut msg);
        while zmq_msg_recv(&mut msg, socket.0, DONTWAIT) >= 0 {
            assert!(judge.admitted, "a message of one who was not let in");
            let user = zmq_msg_gets(&msg, c"User-Id".as_ptr());
            assert!(!user.is_null() && std::ffi::CStr::from_ptr(user).to_bytes() == USER.as_bytes());
        }
        zmq_msg_close(&mut msg);
    }
}

/// Each mechanism with each answer, with and without a flood, and raw commands.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for mechanism in 0..3 {
        for answer in [0, 3, 4, 6] {
            seeds.push(
                [&[mechanism, answer << 4, 0, 0, 0][..], b"\0\0\x05Hello\x01\0\x03abc\0\0\x01d"].concat(),
            );
            seeds.push([&[mechanism, answer << 4 | 9, 3, 0, 0][..], b"\0\0\x05Hello"].concat());
        }
        seeds.push([&[mechanism, 2, 3, 0, 1, 0, 70, 0, 1][..], b"\0\0\x05Hello"].concat());
        seeds.push([&[mechanism, 0x88, 3, 5, b'a', b'b', 0, 0, 0, 0][..], b"\0\0\x05Hello"].concat());
        seeds.push([&[mechanism, 12, 7, 0, 0][..], b"\x04\x06\x05READY\x04\x04\x04PING"].concat());
    }
    seeds.push([&[1, 12, 0, 0, 0][..], b"\x04\x13\x05HELLO\x05admin\x06s3cret"].concat());
    seeds
}
