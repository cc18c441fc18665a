use super::*;
use crate::carrier::with_carrier;
use crate::command::put_ping;
use crate::frame::{COMMAND, MORE, append_header};
use crate::handshake::MAX_COMMAND;
use crate::session::{Established, Session, SessionConfig};
use crate::{MechanismConfig, SocketType};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

fn config(role: Role, socket_type: SocketType) -> Config {
    Config { role, socket_type, mechanism: "NULL", as_server: false, max_msg_size: None, seed: [7; 32] }
}

fn client(socket_type: SocketType) -> WebSocket {
    WebSocket::new(config(Role::Client { host: "localhost:81".into(), path: "/a".into() }, socket_type))
}

fn server(socket_type: SocketType) -> WebSocket {
    WebSocket::new(config(Role::Server, socket_type))
}

fn session(socket_type: SocketType, routing_id: &[u8]) -> Session {
    Session::new(SessionConfig {
        socket_type,
        routing_id: routing_id.to_vec(),
        mechanism: MechanismConfig::Null,
        authenticate: false,
        max_msg_size: None,
        properties: Vec::new(),
    })
}

/// One end, from the opening to the traffic.
struct End {
    carrier: Option<Box<dyn Carrier>>,
    session: Session,
    early: Vec<u8>,
    established: Option<Established>,
}

impl End {
    fn new(carrier: WebSocket, session: Session) -> Self {
        End { carrier: Some(Box::new(carrier)), session, early: Vec::new(), established: None }
    }

    fn take(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if let Some(established) = &mut self.established {
            return established.stage.as_mut().unwrap().open(wire, plain);
        }
        let mut zmtp = Vec::new();
        self.carrier.as_mut().unwrap().open(wire, &mut zmtp)?;
        let used = self.session.input(&zmtp)?;
        self.early.extend_from_slice(&zmtp[used..]);
        Ok(())
    }

    fn say(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        if let Some(established) = &mut self.established {
            established.stage.as_mut().unwrap().seal(&[], &mut wire);
            return wire;
        }
        let carrier = self.carrier.as_mut().unwrap();
        carrier.seal(self.session.output(), &mut wire);
        self.session.advance_output(usize::MAX >> 1);
        if let Some(established) = self.session.take_established() {
            let carrier = self.carrier.take().unwrap();
            self.established = Some(with_carrier(carrier, established, std::mem::take(&mut self.early)));
        }
        wire
    }

    fn stage(&mut self) -> &mut dyn Stage {
        &mut **self.established.as_mut().unwrap().stage.as_mut().unwrap()
    }
}

fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append_header(&mut out, flags, body.len() as u64);
    out.extend_from_slice(body);
    out
}

/// A frame as a client sends it.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x11, 0x22, 0x44, 0x88];
    let mut out = vec![first];
    match payload.len() {
        length @ 0..=125 => out.push(0x80 | length as u8),
        length => {
            out.push(0x80 | 126);
            out.extend((length as u16).to_be_bytes());
        }
    }
    out.extend(mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

fn request(extra: &str, protocols: &str) -> String {
    format!(
        "GET /x HTTP/1.1\r\nHost: h\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: {KEY}\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {protocols}\r\n{extra}\r\n"
    )
}

/// Makes a server that has completed the opening with the bare protocol and has received the
/// routing id.
fn open_server(socket_type: SocketType) -> End {
    let mut end = End::new(server(socket_type), session(socket_type, b""));
    end.take(request("", "ZWS2.0").as_bytes(), &mut Vec::new()).unwrap();
    while !end.say().is_empty() {}
    end.take(&masked(0x82, b"\0me"), &mut Vec::new()).unwrap();
    while !end.say().is_empty() {}
    assert!(end.established.is_some());
    end
}

/// Runs the opening in pieces of `piece` bytes.
fn shake(first: &mut End, second: &mut End, piece: usize) {
    loop {
        let mut quiet = true;
        for turn in 0..2 {
            let (from, to) =
                if turn == 0 { (&mut *first, &mut *second) } else { (&mut *second, &mut *first) };
            let wire = from.say();
            for bytes in wire.chunks(piece) {
                to.take(bytes, &mut Vec::new()).unwrap();
            }
            quiet &= wire.is_empty();
        }
        if quiet {
            return;
        }
    }
}

#[test]
fn two_ends_talk_in_any_pieces() {
    let long = vec![b'x'; 60_000];
    let plain =
        [frame(MORE, b"a"), frame(0, b""), frame(0, &[b'y'; 125]), frame(0, &[b'z'; 300]), frame(0, &long)]
            .concat();
    for piece in [1, 2, 3, 7, 64, 1000, 100_000] {
        let mut asks = End::new(client(SocketType::Dealer), session(SocketType::Dealer, b"me"));
        let mut answers = End::new(server(SocketType::Router), session(SocketType::Router, b""));
        shake(&mut asks, &mut answers, piece);
        assert_eq!(answers.established.as_ref().unwrap().peer.routing_id, b"me");
        assert_eq!(asks.established.as_ref().unwrap().peer.socket_type, Some(SocketType::Router));
        for turn in 0..2 {
            let (from, to) = if turn == 0 { (&mut asks, &mut answers) } else { (&mut answers, &mut asks) };
            let (mut wire, mut out) = (Vec::new(), Vec::new());
            plain.chunks(piece).for_each(|bytes| from.stage().seal(bytes, &mut wire));
            assert_eq!(wire.windows(10).any(|bytes| bytes == b"xxxxxxxxxx"), turn == 1, "a client masks");
            wire.chunks(piece).for_each(|bytes| to.stage().open(bytes, &mut out).unwrap());
            assert!(out == plain, "pieces of {piece}");
            assert_eq!(to.stage().buffered() + from.stage().buffered(), 0);
        }
    }
}

#[test]
fn subscriptions_are_messages() {
    let mut publisher = End::new(server(SocketType::Pub), session(SocketType::Pub, b""));
    let mut subscriber = End::new(client(SocketType::Sub), session(SocketType::Sub, b""));
    shake(&mut subscriber, &mut publisher, 10);
    let (mut plain, mut wire, mut out) = (Vec::new(), Vec::new(), Vec::new());
    crate::command::put_subscribe(&mut plain, b"T");
    subscriber.stage().seal(&plain, &mut wire);
    assert_eq!((wire[0], wire[1], wire.len()), (0x82, 0x83, 9));
    let unmasked: Vec<u8> = wire[6..].iter().zip(&wire[2..6]).map(|(byte, mask)| byte ^ mask).collect();
    assert_eq!(unmasked, b"\0\x01T", "as libzmq sends it");
    publisher.stage().open(&wire, &mut out).unwrap();
    assert_eq!(out, plain);
}

#[test]
fn golden_request_and_answer() {
    let mut wire = Vec::new();
    client(SocketType::Pair).seal(&[], &mut wire);
    let text = String::from_utf8(wire).unwrap();
    let (before, rest) = text.split_once("Sec-WebSocket-Key: ").unwrap();
    let (key, after) = rest.split_once("\r\n").unwrap();
    assert_eq!(
        before,
        "GET /a HTTP/1.1\r\nHost: localhost:81\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    );
    assert_eq!(key.len(), 24);
    assert_eq!(after, "Sec-WebSocket-Protocol: ZWS2.0/NULL,ZWS2.0\r\nSec-WebSocket-Version: 13\r\n\r\n");

    let mut end = End::new(server(SocketType::Pair), session(SocketType::Pair, b""));
    end.take(request("", "other, ZWS2.0/NULL").as_bytes(), &mut Vec::new()).unwrap();
    let wire = [end.say(), end.say()].concat();
    let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                  Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\n\r\n";
    // libzmq 4.3.5 sends this frame.
    assert_eq!(wire, [answer.as_bytes(), b"\x82\x1b\x02\x05READY\x0bSocket-Type\0\0\0\x04PAIR"].concat());
}

#[test]
fn the_bare_protocol_begins_with_a_routing_id() {
    let mut end = End::new(server(SocketType::Router), session(SocketType::Router, b"us"));
    let mut wire = request("", "ZWS2.0,ZWS2.0/NULL").into_bytes();
    wire.extend(masked(0x82, b"\0me"));
    wire.extend(masked(0x82, b"\x01first"));
    let mut said = Vec::new();
    for byte in &wire {
        end.take(&[*byte], &mut Vec::new()).unwrap();
        said.extend(end.say());
    }
    assert!(said.ends_with(b"Sec-WebSocket-Protocol: ZWS2.0\r\n\r\n\x82\x03\0us"));
    assert_eq!(end.established.as_ref().unwrap().peer.routing_id, b"me");
    let mut out = Vec::new();
    end.take(&masked(0x82, b"\0last"), &mut out).unwrap();
    assert!(out.ends_with(&frame(0, b"last")));
    for socket_type in
        [SocketType::Pub, SocketType::Sub, SocketType::Rep, SocketType::Push, SocketType::Server]
    {
        open_server(socket_type);
    }
}

#[test]
fn frames_after_the_handshake_in_one_read_are_kept() {
    let mut end = End::new(server(SocketType::Pull), session(SocketType::Pull, b""));
    let mut wire = request("", "ZWS2.0").into_bytes();
    wire.extend(masked(0x82, b"\0"));
    wire.extend(masked(0x82, b"\0one"));
    wire.extend(&masked(0x82, b"\0two")[..5]);
    end.take(&wire, &mut Vec::new()).unwrap();
    while !end.say().is_empty() {}
    // The handshake is complete only after the session has seen the carrier's generated greeting
    // and the routing id.
    let mut out = Vec::new();
    end.stage().open(&masked(0x82, b"\0two")[5..], &mut out).unwrap();
    assert_eq!(out, [frame(0, b"one"), frame(0, b"two")].concat());
}

#[test]
fn bad_requests_are_answered() {
    let good = request("", "ZWS2.0");
    let refused = |request: &str| {
        let (mut socket, mut wire) = (server(SocketType::Pair), Vec::new());
        assert_eq!(
            socket.open(request.as_bytes(), &mut Vec::new()),
            Err(Violation::WebSocketOpening.into()),
            "{request}"
        );
        socket.seal(&[], &mut wire);
        assert!(socket.open(good.as_bytes(), &mut Vec::new()).is_err(), "an end is an end");
        let answer = String::from_utf8(wire).unwrap();
        assert!(answer.ends_with("\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), "{answer}");
        answer.split_once(' ').unwrap().1[..3].to_owned()
    };
    for (from, to, status) in [
        ("GET /x", "POST /x", "405"),
        ("HTTP/1.1", "HTTP/1.0", "426"),
        ("HTTP/1.1", "HTTP/9", "400"),
        ("WebSocket\r\n", "h2c\r\n", "426"),
        ("keep-alive, Upgrade", "keep-alive", "426"),
        ("Version: 13", "Version: 8", "426"),
        ("Host: h", "Host h", "400"),
        (KEY, "c2hvcnQ=", "400"),
        (KEY, "not base64", "400"),
        ("ZWS2.0", "ZWS2.0/CURVE", "400"),
        ("ZWS2.0", "chat", "400"),
        ("Sec-WebSocket-Protocol", "X", "400"),
    ] {
        assert_eq!(refused(&good.replacen(from, to, 1)), status, "{to}");
    }
    assert_eq!(refused(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(9000))), "431");
    assert_eq!(refused(&request(&"A: b\r\n".repeat(70), "ZWS2.0")), "400");
    assert_eq!(refused("\x16\x03\x01 some other protocol\r\n\r\n"), "400");
}

#[test]
fn bad_answers_end_it() {
    let mut socket = client(SocketType::Pair);
    let mut wire = Vec::new();
    socket.seal(&[], &mut wire);
    let mut answerer = server(SocketType::Pair);
    answerer.open(&wire, &mut Vec::new()).unwrap();
    let mut good = Vec::new();
    answerer.seal(&[], &mut good);
    let good = String::from_utf8(good).unwrap();
    let judged = |answer: &str| {
        // The seed is the same, so the key is the same.
        let mut socket = client(SocketType::Pair);
        socket.open(answer.as_bytes(), &mut Vec::new())
    };
    assert_eq!(judged(&good), Ok(()));
    for (from, to) in [
        ("101", "200"),
        ("101 Switching Protocols", "503 Service Unavailable"),
        ("Upgrade: websocket", "Upgrade: h2"),
        ("Connection: Upgrade", "Connection: close"),
        ("Accept: ", "Accept: x"),
        ("ZWS2.0/NULL", "ZWS2.0/PLAIN"),
        ("Sec-WebSocket-Protocol", "X-Protocol"),
        ("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
    ] {
        let error = judged(&good.replacen(from, to, 1)).unwrap_err();
        assert!(error == Violation::WebSocketOpening.into() && error.is_retryable(), "{to}");
    }
}

#[test]
fn fragments_are_put_together() {
    let mut end = open_server(SocketType::Pull);
    let wire = [
        masked(0x02, b"\x01one "),
        masked(0x89, b"between"),
        masked(0x00, b""),
        masked(0x80, b"message"),
        masked(0x02, b""),
        masked(0x80, b"\0last"),
    ]
    .concat();
    for piece in 1..wire.len() {
        let mut out = Vec::new();
        for bytes in wire.chunks(piece) {
            end.stage().open(bytes, &mut out).unwrap();
        }
        assert_eq!(out, [frame(MORE, b"one message"), frame(0, b"last")].concat());
        assert_eq!(end.say(), b"\x8a\x07between", "the answer to the ping");
    }
}

#[test]
fn sizes_are_checked_before_anything_is_kept() {
    let mut config = config(Role::Server, SocketType::Pull);
    config.max_msg_size = Some(1000);
    let mut socket = WebSocket::new(config);
    socket.open(request("", "ZWS2.0").as_bytes(), &mut Vec::new()).unwrap();
    // During the handshake the memory for fragments is bounded whatever the option says.
    let head = [&[0x02, 0xFF][..], &(1_u64 << 40).to_be_bytes(), &[0; 4]].concat();
    let mut out = Vec::new();
    socket.open(&head, &mut out).unwrap();
    socket.open(&[0; MAX_COMMAND as usize + 1], &mut out).unwrap();
    assert!(matches!(socket.open(&[0], &mut out), Err(ProtocolError::TooLarge { limit: MAX_COMMAND, .. })));
    let mut end = open_server(SocketType::Pull);
    end.stage().open(&masked(0x02, &[0; 600]), &mut out).unwrap();
    let mut opener = Opener::new(true);
    opener.set_limit(1000);
    opener.push(&masked(0x02, &[0; 600]), &mut out).unwrap();
    opener.push(&masked(0x00, &[0; 401]), &mut out).unwrap();
    assert_eq!(opener.buffered(), 1001);
    let error = opener.push(&masked(0x00, &[0; 1]), &mut out).err().unwrap();
    assert_eq!(error, ProtocolError::TooLarge { size: 1001, limit: 1000 });
    // Data that followed the handshake in the same read is judged after the handshake.
    for (limit, good) in [(1000, false), (200_000, true)] {
        let mut opener = Opener::new(true);
        let wire = [masked(0x02, &[0; 60_000]), masked(0x80, &[0; 60_000])].concat();
        opener.push(&wire[..50_000], &mut out).unwrap();
        opener.set_limit(limit);
        assert_eq!(opener.push(&wire[50_000..], &mut out).is_ok(), good);
    }
    // Without fragments the header of the ZMTP frame has the size, and the engine judges it there.
    // No bytes are held back.
    out.clear();
    let mut opener = Opener::new(true);
    opener.set_limit(1000);
    opener.push(&[&head[..], &[0]].concat().map_first(0x82), &mut out).unwrap();
    assert_eq!(out, [&[2][..], &((1_u64 << 40) - 1).to_be_bytes()].concat());
    assert_eq!(opener.buffered(), 0);
}

trait MapFirst {
    fn map_first(self, octet: u8) -> Self;
}

impl MapFirst for Vec<u8> {
    fn map_first(mut self, octet: u8) -> Self {
        self[0] = octet;
        self
    }
}

#[test]
fn malformed_frames() {
    for (name, wire) in [
        ("not masked", b"\x82\x03\0hi".to_vec()),
        ("text", masked(0x81, b"\0hi")),
        ("reserved bit", masked(0xC2, b"\0hi")),
        ("reserved data opcode", masked(0x83, b"\0hi")),
        ("reserved control opcode", masked(0x8B, b"")),
        ("continuation of nothing", masked(0x80, b"hi")),
        ("no flags", masked(0x82, b"")),
        ("unknown flags", masked(0x82, b"\x03hi")),
        ("unknown flag", masked(0x82, b"\x04hi")),
        ("a message inside a message", [masked(0x02, b"\0hi"), masked(0x82, b"\0hi")].concat()),
        ("fragments without flags", [masked(0x02, b""), masked(0x80, b"")].concat()),
        ("ping in fragments", masked(0x09, b"")),
        ("long ping", masked(0x89, &[0; 126])),
        ("length of 64 bits", vec![0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        for piece in [1, wire.len()] {
            let (mut end, mut out) = (open_server(SocketType::Pull), Vec::new());
            let result = wire.chunks(piece).try_for_each(|bytes| end.stage().open(bytes, &mut out));
            assert_eq!(result, Err(Violation::WebSocketFrame.into()), "{name}");
            assert_eq!(end.say(), b"\x88\x02\x03\xea", "{name}: 1002");
            assert_eq!(end.say(), b"");
        }
    }
}

#[test]
fn pings_and_goodbyes() {
    let mut end = open_server(SocketType::Pull);
    let mut out = Vec::new();
    for n in 0..10_000_u16 {
        end.stage().open(&masked(0x89, &n.to_be_bytes()), &mut out).unwrap();
        end.stage().open(&masked(0x8A, b"unasked"), &mut out).unwrap();
    }
    assert!(end.stage().has_output() && end.stage().buffered() < 200, "a flood is not kept");
    assert_eq!(end.say(), [&b"\x8a\x02"[..], &9999_u16.to_be_bytes()].concat());
    assert!(!end.stage().has_output() && out.is_empty());

    // Our PINGs become pings of the carrier. Other commands stay unchanged.
    let (mut plain, mut wire) = (Vec::new(), Vec::new());
    put_ping(&mut plain, 10, b"context");
    end.stage().seal_control(&plain, &mut wire);
    assert_eq!(wire, b"\x89\x00");

    // In the middle of a frame the answer has to wait.
    let message = frame(0, b"message");
    wire.clear();
    end.stage().seal(&message[..4], &mut wire);
    end.stage().open(&masked(0x89, b"!"), &mut out).unwrap();
    end.stage().seal(&[], &mut wire);
    end.stage().seal(&message[4..], &mut wire);
    assert_eq!(wire, b"\x82\x08\0message\x8a\x01!");

    // The peer closes: it gets its own status back, and the bytes after its close frame have no
    // meaning.
    let goodbye = [masked(0x82, b"\0last"), masked(0x88, b"\x03\xe8why"), b"nonsense".to_vec()].concat();
    end.stage().open(&goodbye, &mut out).unwrap();
    assert!(end.stage().is_closed());
    assert_eq!(out, frame(0, b"last"));
    assert_eq!(end.say(), b"\x88\x02\x03\xe8");
    end.stage().open(b"more nonsense", &mut out).unwrap();
    let mut wire = Vec::new();
    end.stage().seal(&message, &mut wire);
    end.stage().close(&mut wire);
    assert!(wire.is_empty(), "nothing follows a close frame");

    // Our end closes.
    let mut end = open_server(SocketType::Pull);
    let mut wire = Vec::new();
    end.stage().close(&mut wire);
    assert_eq!(wire, b"\x88\x02\x03\xe8");
    assert!(!end.stage().is_closed());
}

#[test]
fn commands_have_their_flag() {
    let mut sealer = Sealer::new(None);
    let mut wire = Vec::new();
    sealer.push(&frame(COMMAND, b"\x04NAME"), &mut wire);
    assert_eq!(wire, b"\x82\x06\x02\x04NAME");
    let (mut opener, mut out) = (Opener::new(false), Vec::new());
    opener.push(&wire, &mut out).unwrap();
    assert_eq!(out, frame(COMMAND, b"\x04NAME"));
}
