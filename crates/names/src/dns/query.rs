//! One query to DNS servers, one server after the other. Uses UDP, and TCP if the answer is too
//! long for UDP.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};

/// Time limit for the answer of a server.
const PATIENCE: Duration = Duration::from_secs(2);
/// Number of queries to each server, because a datagram may be lost.
const TRIES: usize = 2;
/// Length of a header, and shortest length of a question or record, in bytes.
const HEADER: usize = 12;
const LEAST_RECORD: usize = 5;
/// Most bytes of an answer by TCP.
const MOST_BYTES: usize = 65_535;

/// The bytes of an answer from the name's servers.
pub(super) struct Reply(pub(super) Vec<u8>);

/// Asks `servers` in order until one of them knows the answer. The answer that a name does not
/// exist counts as knowing.
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
    let question = question(id, name, kind).ok_or_else(|| format!("{name} is not a valid DNS name"))?;
    let said = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer".to_owned(),
        _ => error.to_string(),
    };
    let mut message = query_udp(server, &question).map_err(said)?;
    if has_flag(&message, PacketFlag::TRUNCATION) {
        message = query_tcp(server, &question).map_err(said)?;
        if !is_answer_to(&message, &question) {
            return Err("the answer belongs to another question".to_owned());
        }
    }
    let code = parse(&message).map(|packet| packet.rcode());
    match code {
        Some(RCODE::NoError | RCODE::NameError) => Ok(Reply(message)),
        Some(code) => Err(format!("{code:?}")),
        None => Err("the answer is malformed".to_owned()),
    }
}

/// Parses a message, which may come from any source.
pub(super) fn parse(message: &[u8]) -> Option<Packet<'_>> {
    // The parser allocates memory for the announced records, so these must fit into the message.
    let counts = message.get(4..HEADER)?.chunks_exact(2);
    let records: usize = counts.map(|count| usize::from(u16::from_be_bytes([count[0], count[1]]))).sum();
    if records * LEAST_RECORD > message.len() {
        return None;
    }
    Packet::parse(message).ok()
}

/// Returns the query message.
fn question(id: u16, name: &str, kind: TYPE) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).ok()?;
    packet.questions.push(Question::new(name, kind.into(), CLASS::IN.into(), false));
    packet.build_bytes_vec().ok()
}

fn query_udp(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // The system chooses the port, so that an attacker cannot guess it.
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
        // Any other datagram is late or forged.
        if is_answer_to(&message[..length], question) {
            return Ok(message[..length].to_vec());
        }
    }
}

fn query_tcp(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
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

/// True if a message is an answer to this question.
pub(super) fn is_answer_to(message: &[u8], question: &[u8]) -> bool {
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

/// Returns a number that an attacker cannot guess: std seeds its hashers with random numbers of the
/// system.
fn new_id() -> u16 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() as u16
}
