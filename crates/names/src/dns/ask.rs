//! One question to DNS servers, one after the other: by UDP, and by TCP where the answer is too
//! long for that.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often each server is asked: a datagram may be lost.
const TRIES: usize = 2;
/// Bytes of a header, and least bytes of a question or record.
const HEADER: usize = 12;
const LEAST_RECORD: usize = 5;
/// Most bytes of an answer by TCP.
const MOST_BYTES: usize = 65_535;

/// The bytes of an answer, by the servers of the name.
pub(super) struct Reply(pub(super) Vec<u8>);

/// Asks `servers` in turn, until one of them knows. An answer that there is nothing is one.
pub(super) fn ask(servers: &[SocketAddr], name: &str, kind: TYPE) -> Result<Reply, String> {
    let mut why = String::new();
    for _ in 0..TRIES {
        for server in servers {
            match ask_one(*server, name, kind) {
                Ok(reply) => return Ok(reply),
                Err(what) => why = format!("{server}: {what}"),
            }
        }
    }
    Err(why)
}

fn ask_one(server: SocketAddr, name: &str, kind: TYPE) -> Result<Reply, String> {
    let id = new_id();
    let question = question(id, name, kind).ok_or_else(|| format!("{name} is no name of DNS"))?;
    let said = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer".to_owned(),
        _ => error.to_string(),
    };
    let mut message = by_datagram(server, &question).map_err(said)?;
    if has_flag(&message, PacketFlag::TRUNCATION) {
        message = by_stream(server, &question).map_err(said)?;
        if !answers(&message, &question) {
            return Err("the answer is to another question".to_owned());
        }
    }
    let code = parse(&message).map(|packet| packet.rcode());
    match code {
        Some(RCODE::NoError | RCODE::NameError) => Ok(Reply(message)),
        Some(code) => Err(format!("{code:?}")),
        None => Err("the answer makes no sense".to_owned()),
    }
}

/// Reads a message, which may come from anywhere.
pub(super) fn parse(message: &[u8]) -> Option<Packet<'_>> {
    // What is said to follow is made room for, so it has to fit in.
    let counts = message.get(4..HEADER)?.chunks_exact(2);
    let records: usize = counts.map(|count| usize::from(u16::from_be_bytes([count[0], count[1]]))).sum();
    if records * LEAST_RECORD > message.len() {
        return None;
    }
    Packet::parse(message).ok()
}

/// The message that asks.
fn question(id: u16, name: &str, kind: TYPE) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).ok()?;
    packet.questions.push(Question::new(name, kind.into(), CLASS::IN.into(), false));
    packet.build_bytes_vec().ok()
}

fn by_datagram(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // A port of the system's choice, which others cannot guess.
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.send(question)?;
    let deadline = Instant::now() + PATIENCE;
    let mut message = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = match socket.recv(&mut message) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            received => received?,
        };
        // Anything else is late, or made up.
        if answers(&message[..length], question) {
            return Ok(message[..length].to_vec());
        }
    }
}

fn by_stream(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = u16::try_from(question.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length)).min(MOST_BYTES)];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// Whether a message is an answer to this question.
fn answers(message: &[u8], question: &[u8]) -> bool {
    let (Some(asked), true) = (question.get(HEADER..), has_flag(message, PacketFlag::RESPONSE)) else {
        return false;
    };
    let said = message.get(HEADER..HEADER + asked.len());
    message[..2] == question[..2] && said.is_some_and(|said| said.eq_ignore_ascii_case(asked))
}

fn has_flag(message: &[u8], flag: PacketFlag) -> bool {
    let flags = message.get(2..4).map(|flags| u16::from_be_bytes([flags[0], flags[1]]));
    flags.is_some_and(|flags| flags & flag.bits() != 0)
}

/// A number that others cannot guess: std seeds its hashers with random numbers of the system.
fn new_id() -> u16 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() as u16
}
