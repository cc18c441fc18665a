//! `tap --pcapng`: checks the file itself, and reads it with tshark if `tests/tools/cli/run.sh`
//! provides it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use tautline_proto::frame::decode_header;
use tautline_proto::{MechanismConfig, Session, SessionConfig, SocketType};

use crate::libzmq::python;
use crate::observed::World;
use crate::support::{Running, run, start, test};
use crate::tapped::{observed, tap, until_seen};

const SYN: u8 = 2;

/// Bytes sent by each end of each connection. The key has the sender's address, then the address of
/// the other end.
type Streams = BTreeMap<(SocketAddr, SocketAddr), Vec<u8>>;

/// Reads the streams of a capture and the comments of its packets.
fn read(mut file: &[u8]) -> (Streams, Vec<String>) {
    let (mut streams, mut next, mut comments) = (Streams::new(), BTreeMap::new(), Vec::new());
    while !file.is_empty() {
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let (kind, length) = (word(0), word(4));
        assert_eq!(word(length - 4), length);
        if kind == 6 {
            let packet = &file[28..28 + word(20)];
            let options = &file[28 + word(20).next_multiple_of(4)..length - 4];
            if let [1, 0, low, high, text @ ..] = options {
                let text = &text[..usize::from(u16::from_le_bytes([*low, *high]))];
                comments.push(String::from_utf8(text.to_vec()).unwrap());
            }
            let (from, to, tcp) = addresses(packet);
            let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
            let key = (SocketAddr::new(from, port(0)), SocketAddr::new(to, port(2)));
            let number = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().unwrap());
            let payload = &tcp[20..];
            let expected: &mut u32 = next.entry(key).or_default();
            assert_eq!(number(4), *expected, "no gap");
            *expected += payload.len() as u32 + u32::from(tcp[13] & SYN > 0);
            streams.entry(key).or_default().extend_from_slice(payload);
        }
        file = &file[length..];
    }
    (streams, comments)
}

fn addresses(packet: &[u8]) -> (IpAddr, IpAddr, &[u8]) {
    if packet[0] >> 4 == 4 {
        let address =
            |at: usize| IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).unwrap()));
        return (address(12), address(16), &packet[20..]);
    }
    let address =
        |at: usize| IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).unwrap()));
    (address(8), address(24), &packet[40..])
}

/// Returns the parts after the handshake, sent by an end of this type.
fn parts(stream: &[u8], of: SocketType, to: SocketType) -> Vec<(bool, Vec<u8>)> {
    let mut session = Session::new(SessionConfig {
        socket_type: to,
        routing_id: Vec::new(),
        mechanism: MechanismConfig::Null,
        authenticate: false,
        max_msg_size: None,
        properties: Vec::new(),
    });
    let taken = session.input(stream).unwrap();
    assert_eq!(session.take_established().unwrap().peer.socket_type, Some(of));
    let (mut left, mut parts) = (&stream[taken..], Vec::new());
    while !left.is_empty() {
        let header = decode_header(left).unwrap().unwrap();
        let end = header.header_len + header.body_len as usize;
        parts.push((header.more(), left[header.header_len..end].to_vec()));
        left = &left[end..];
    }
    parts
}

#[test]
fn captured_tcp_messages_keep_their_addresses() {
    test("captured_tcp_messages_keep_their_addresses", || {
        let at = "tcp://127.0.0.1:*";
        let world = World::new();
        let mut rep = observed(&world, &["rep", at, "--echo"]);
        let (at, pid) = (rep.bound(), rep.id().to_string());
        until_seen(&world, &pid);
        let file = world.folder.path().join("tap.pcapng");
        let capture = tap(&world, &pid, &["--pcapng", file.to_str().unwrap(), "-n", "4"]);
        assert_eq!(run(&["req", &at, "-q", "one", "{size:40000}"]).code, Some(0));
        let end: SocketAddr = at.trim_start_matches("tcp://").parse().unwrap();
        let ended = capture.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let hint = format!("read it with wireshark -d tcp.port=={},zmtp", end.port());
        assert!(ended.err.contains(&hint), "{ended:?}");
        let (streams, comments) = read(&std::fs::read(&file).unwrap());
        assert_eq!(streams.len(), 2);
        for ((from, _), stream) in &streams {
            let (of, to) = match *from == end {
                true => (SocketType::Rep, SocketType::Req),
                false => (SocketType::Req, SocketType::Rep),
            };
            let lengths: Vec<usize> = parts(stream, of, to).iter().map(|(_, part)| part.len()).collect();
            assert_eq!(lengths, [3, 40_000]);
        }
        assert!(streams.keys().any(|(from, to)| *from == end && from.ip() == to.ip()));
        assert_eq!(comments.len(), 4, "{comments:?}");
        assert!(comments[0].starts_with("message 1 of socket ") && comments[0].contains(", in, peer "));
        let again = world.run(&["tap", &pid, "--pcapng", file.to_str().unwrap()]);
        again.failed(1, &["choose another name"]);
    });
}

#[test]
fn other_transports_get_simulated_addresses() {
    test("other_transports_get_simulated_addresses", || {
        let world = World::new();
        let at = world.folder.ipc("news");
        let mut command = world.command(&["pub", &at, "-D", "|"]);
        command.env("TAUT_OBSERVE", "1").stdin(Stdio::piped());
        let mut publisher = Running::start(command);
        let mut sub = start(&["sub", &at]);
        let pid = publisher.id().to_string();
        until_seen(&world, &pid);
        // Capture to standard output, as for a live Wireshark.
        let capture = tap(&world, &pid, &["--pcapng", "-", "-n", "2", "--bytes", "3", "-d", "out"]);
        publisher.write(b"weather|6 degrees\nsports\n");
        assert_eq!([sub.line(), sub.line()], ["weather\t6 degrees", "sports"]);
        let ended = capture.end();
        assert!(ended.err.contains("-d tcp.port==5555,zmtp"), "{ended:?}");
        let (streams, comments) = read(&ended.out);
        let sent = streams.iter().find(|((from, _), _)| from.port() == 5555).unwrap().1;
        let part = |more: bool, text: &[u8]| (more, text.to_vec());
        let expected = [part(true, b"wea"), part(false, b"6 d"), part(false, b"spo")];
        assert_eq!(parts(sent, SocketType::XPub, SocketType::Sub), expected);
        assert!(comments[0].ends_with(", out, of no single peer, cut: it has 7 + 9 bytes"), "{comments:?}");
    });
}

/// To libzmq, the peer's half of a captured conversation is a normal peer.
#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn libzmq_understands_what_is_captured() {
    test("libzmq_understands_what_is_captured", || {
        let world = World::new();
        let mut pull = observed(&world, &["pull", "tcp://127.0.0.1:*"]);
        let (at, pid) = (pull.bound(), pull.id().to_string());
        until_seen(&world, &pid);
        let capture = tap(&world, &pid, &["--pcapng", "-", "-n", "2"]);
        assert_eq!(run(&["push", &at, "-D", "|", "one|{size:70000}", "two"]).code, Some(0));
        let (streams, _) = read(&capture.end().out);
        let end: SocketAddr = at.trim_start_matches("tcp://").parse().unwrap();
        let mut peer = python(
            "s = bound(zmq.PULL)\nfor _ in range(2): print([len(p) for p in s.recv_multipart()], flush=True)",
        );
        let to = peer.bound();
        let stream = streams.iter().find(|((_, to), _)| *to == end).unwrap().1;
        let mut connection = TcpStream::connect(to.trim_start_matches("tcp://")).unwrap();
        // A peer sends its READY only after the greeting of the other end, and then waits for the
        // other READY.
        let (greeting, rest) = stream.split_at(64);
        let (ready, messages) = rest.split_at(28);
        for said in [greeting, ready] {
            connection.write_all(said).unwrap();
            connection.read_exact(&mut vec![0; said.len()]).unwrap();
        }
        connection.write_all(messages).unwrap();
        assert_eq!([peer.line(), peer.line()], ["[3, 70000]", "[3]"]);
    });
}

#[test]
#[ignore = "needs tshark: tests/tools/cli/run.sh"]
fn wireshark_reads_it() {
    test("wireshark_reads_it", || {
        let world = World::new();
        let mut router = observed(&world, &["router", "tcp://127.0.0.1:*", "--echo"]);
        let (at, pid) = (router.bound(), router.id().to_string());
        until_seen(&world, &pid);
        let file = world.folder.path().join("tap.pcapng");
        let capture = tap(&world, &pid, &["--pcapng", file.to_str().unwrap(), "-n", "8"]);
        let args = ["dealer", &at, "-q", "-n", "4", "hello", "{size:100000}", "again", "{size:200000}"];
        assert_eq!(run(&args).code, Some(0));
        assert_eq!(capture.end().code, Some(0));
        let tshark = std::env::var("TAUT_TSHARK").expect("TAUT_TSHARK names tshark: tests/tools/cli/run.sh");
        let read = |args: &[&str]| {
            let mut command = Command::new(&tshark);
            command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // tshark prints a warning if it runs as root.
            Running::start(command).end().lines()
        };
        let file = file.to_str().unwrap();
        let strange =
            "tcp.analysis.flags or tcp.checksum.status != 1 or ip.checksum.status != 1 or _ws.malformed";
        let checked = ["-r", file, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y"];
        assert_eq!(read(&[&checked[..], &["tcp.checksum.status == 1", "-c", "1"]].concat()).len(), 1);
        assert_eq!(read(&[&checked[..], &[strange]].concat()), Vec::<String>::new());
        let comments = read(&["-r", file, "-Y", "frame.comment", "-T", "fields", "-e", "frame.comment"]);
        assert_eq!(comments.len(), 8, "{comments:?}");
        // Older versions of tshark do not know ZMTP.
        if !read(&["-G", "protocols"]).iter().any(|line| line.ends_with("\tzmtp")) {
            eprintln!("this tshark does not know ZMTP: it has read tcp only");
            return;
        }
        let decode = format!("tcp.port=={},zmtp", at.rsplit_once(':').unwrap().1);
        let texts = read(&["-r", file, "-d", &decode, "-T", "fields", "-e", "zmtp.data.text"]).join("\n");
        assert!(texts.contains("hello") && texts.contains("again"), "{texts}");
    });
}
