//! `--pcapng`: writes messages for Wireshark as if plain ZMTP 3.1 over tcp had carried them.
//!
//! Each peer gets a simulated connection that starts with the handshake that Tautline would make.
//! If the peer is connected by tcp, its real addresses are used. Otherwise the listening end is at
//! port 5555 of 127.0.0.1, or at the endpoint to which the socket is bound. Messages to all peers
//! of a socket have their own connection.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use tautline_observe::tap::{Direction, MANY, MessageCopy};
use tautline_observe::{ObservedProcess, Peer, ReadError, Reading};
use tautline_proto::frame::{MAX_HEADER, MORE, encode_header};
use tautline_proto::{MechanismConfig, Session, SessionConfig, SocketType};

use super::View;
use super::filter::way;
use super::pcapng::{self, ACK, PUSH, SYN, SegmentHeader, segment};
use super::source::Source;
use crate::failure::Result;
use crate::format::escaped;
use crate::sink::write_failure;

/// Simulated port of a listening end.
const PORT: u16 = 5555;
/// First simulated port of connecting ends.
const EPHEMERAL: u16 = 49_152;
/// Maximum payload of a packet.
const SEGMENT: usize = 16 * 1024;
/// Maximum number of unacknowledged bytes. It is smaller than the window.
const UNACKNOWLEDGED: u32 = 32 * 1024;
/// Buffer size that triggers a write.
const FULL: usize = 64 * 1024;
/// Time limit for a new peer to appear in the counters file.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
/// Time in microseconds after which a peer number may belong to another peer.
const FRESH: u64 = 1_000_000;
/// Size of a greeting in bytes.
const GREETING: usize = 64;
/// Indexes of the two ends.
const PROGRAM: usize = 0;
const PEER: usize = 1;

/// Writer of a capture file.
pub struct Capture {
    out: File,
    /// Path of the file. `None`: standard output.
    path: Option<PathBuf>,
    buffer: Vec<u8>,
    /// The process with its counters file.
    process: ObservedProcess,
    /// Last reading of the counters file.
    reading: Reading,
    conversations: HashMap<(u64, u64), Conversation>,
    /// Number of connections so far.
    count: u16,
    /// Ports of the listening ends.
    ports: BTreeSet<u16>,
    quiet: bool,
}

/// Simulated connection.
struct Conversation {
    ends: Ends,
    /// Next sequence number of each end.
    next: [u32; 2],
    /// Sequence number of each end that its peer has acknowledged.
    acknowledged: [u32; 2],
    /// Time of the last lookup of the peer.
    known_at: u64,
}

/// Addresses of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    program: SocketAddr,
    peer: SocketAddr,
    /// True if the program made the connection.
    connected_here: bool,
}

impl Capture {
    /// Creates a capture of this tap in this file; `path` is `None` for standard output. Reports
    /// each port, unless `quiet`.
    pub fn new(source: &Source, out: File, path: Option<PathBuf>, quiet: bool) -> Capture {
        let process = &source.reading.process;
        let mut buffer = Vec::new();
        let program = escaped(process.program.as_bytes());
        pcapng::head(&format!("{program} {} as tapped", process.pid), &mut buffer);
        Capture {
            out,
            path,
            buffer,
            process: source.process().clone(),
            reading: source.reading.clone(),
            conversations: HashMap::new(),
            count: 0,
            ports: BTreeSet::new(),
            quiet,
        }
    }

    /// Looks up the peer of a message. The peer is new, or its last lookup is too old.
    fn meet(&mut self, copy: &MessageCopy, former: Option<Conversation>) -> Conversation {
        self.look(copy, former.is_none());
        let ends = self.ends(copy, former.as_ref().map(|former| former.ends));
        let known_at = copy.at.max(self.reading.process.written);
        if let Some(former) = former.filter(|former| former.ends == ends) {
            return Conversation { known_at, ..former };
        }
        self.count = self.count.wrapping_add(1);
        let port = if ends.connected_here { ends.peer.port() } else { ends.program.port() };
        if self.ports.insert(port) && !self.quiet {
            notice!("taut: read it with wireshark -d tcp.port=={port},zmtp");
        }
        let mut conversation = Conversation { ends, next: [0; 2], acknowledged: [0; 2], known_at };
        let (own, peer) = self.sessions(copy);
        conversation.begin(copy.at, own, peer, &mut self.buffer);
        conversation
    }

    /// Reads the counters file until it contains the peer. A new peer may be missing at first. If a
    /// reading newer than the message does not contain the peer, the loop stops.
    fn look(&mut self, copy: &MessageCopy, patient: bool) {
        let until = Instant::now() + PATIENCE;
        let mut is_fresh = self.reading.process.written.saturating_add(FRESH) >= copy.at;
        while !is_fresh || patient && copy.peer != MANY && self.peer(copy).is_none() {
            match tautline_observe::read_process(&self.process) {
                Ok(reading) => self.reading = reading,
                // The file is being written.
                Err(ReadError::Busy) => {}
                Err(_) => return,
            }
            if !patient || self.reading.process.written > copy.at || Instant::now() >= until {
                return;
            }
            is_fresh = true;
            thread::sleep(PAUSE);
        }
    }

    fn peer(&self, copy: &MessageCopy) -> Option<&Peer> {
        self.reading.peers_of(copy.socket).find(|peer| peer.id == copy.peer)
    }

    /// Returns the addresses of the two ends.
    fn ends(&self, copy: &MessageCopy, former: Option<Ends>) -> Ends {
        let peer = self.peer(copy);
        let addresses = peer.and_then(|peer| Some((address(&peer.local)?, address(&peer.address)?)));
        if let (Some(peer), Some((program, other))) = (peer, addresses)
            && program.is_ipv4() == other.is_ipv4()
        {
            return Ends { program, peer: other, connected_here: peer.connected_here };
        }
        if let Some(former) = former {
            return former;
        }
        let bound = self.reading.endpoints_of(copy.socket).filter(|endpoint| endpoint.bound);
        let bound: Vec<&str> = bound.map(|endpoint| &endpoint.name[..]).collect();
        let connected_here = peer.map_or(bound.is_empty(), |peer| peer.connected_here);
        let here = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listens = bound.iter().find_map(|name| address(name)).filter(SocketAddr::is_ipv4);
        let listens = listens.filter(|_| !connected_here).unwrap_or(here(PORT));
        let connects = here(EPHEMERAL + self.count % (u16::MAX - EPHEMERAL));
        let (program, peer) = if connected_here { (connects, listens) } else { (listens, connects) };
        Ends { program, peer, connected_here }
    }

    /// Returns the handshakes of the two ends.
    fn sessions(&self, copy: &MessageCopy) -> (Session, Session) {
        let socket = self.reading.socket(copy.socket);
        let kind = socket.and_then(|socket| SocketType::from_name(socket.type_name.as_bytes()));
        // The peers of STREAM and DGRAM do not speak ZMTP.
        let kind = kind.filter(|kind| !matches!(kind, SocketType::Stream | SocketType::Dgram));
        let kind = kind.unwrap_or(SocketType::Pair);
        let other = match kind {
            SocketType::Dealer => SocketType::Router,
            SocketType::Router => SocketType::Dealer,
            kind => (0..).map_while(SocketType::from_code).find(|other| kind.accepts(*other)).unwrap_or(kind),
        };
        let session = |socket_type, routing_id: Option<&Vec<u8>>| {
            Session::new(SessionConfig {
                socket_type,
                routing_id: routing_id.cloned().unwrap_or_default(),
                mechanism: MechanismConfig::Null,
                authenticate: false,
                max_msg_size: None,
                properties: Vec::new(),
            })
        };
        let peer = self.peer(copy).map(|peer| &peer.routing_id);
        (session(kind, socket.map(|socket| &socket.routing_id)), session(other, peer))
    }
}

impl View for Capture {
    fn show(&mut self, copy: &MessageCopy, number: u64) -> Result<()> {
        let key = (copy.socket, copy.peer);
        let conversation = match self.conversations.remove(&key) {
            Some(known) if copy.at <= known.known_at.saturating_add(FRESH) => known,
            former => self.meet(copy, former),
        };
        let conversation = self.conversations.entry(key).insert_entry(conversation).into_mut();
        conversation.carry(copy, number, &mut self.buffer);
        if self.buffer.len() >= FULL { self.flush() } else { Ok(()) }
    }

    /// Writes only whole blocks, so that the file is readable even if the writer is killed.
    fn flush(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.buffer);
        written.map_err(|error| write_failure(self.path.as_deref(), &error))?;
        self.buffer.clear();
        Ok(())
    }
}

impl Conversation {
    /// Writes the handshakes of tcp and ZMTP.
    fn begin(&mut self, at: u64, own: Session, peer: Session, out: &mut Vec<u8>) {
        let client = if self.ends.connected_here { PROGRAM } else { PEER };
        for (sender, flags) in [(client, SYN), (1 - client, SYN | ACK), (client, ACK)] {
            self.put(at, sender, flags, &[], "", out);
            // A SYN uses one sequence number.
            self.next[sender] += u32::from(flags & SYN > 0);
        }
        let said = handshake([own, peer]);
        for part in 0..2 {
            for sender in [client, 1 - client] {
                let (greeting, ready) = said[sender].split_at(said[sender].len().min(GREETING));
                self.transmit(at, sender, if part == 0 { greeting } else { ready }, "", out);
            }
        }
    }

    /// Writes a message.
    fn carry(&mut self, copy: &MessageCopy, number: u64, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        for (at, part) in copy.parts.iter().enumerate() {
            let mut header = [0; MAX_HEADER];
            let flags = if at + 1 < copy.parts.len() { MORE } else { 0 };
            let length = encode_header(flags, part.bytes.len() as u64, &mut header);
            bytes.extend_from_slice(&header[..length]);
            bytes.extend_from_slice(&part.bytes);
        }
        let mut comment = format!("message {number} of socket {}, {}", copy.socket, way(copy.direction));
        comment += &if copy.peer == MANY {
            ", of no single peer".to_owned()
        } else {
            format!(", peer {}", copy.peer)
        };
        if copy.parts.iter().any(|part| (part.bytes.len() as u64) < part.length) {
            let lengths: Vec<String> = copy.parts.iter().map(|part| part.length.to_string()).collect();
            comment += &format!(", cut: it has {} bytes", lengths.join(" + "));
        }
        let sender = if copy.direction == Direction::Out { PROGRAM } else { PEER };
        self.transmit(copy.at, sender, &bytes, &comment, out);
    }

    /// Writes bytes from one end to the other in segments.
    fn transmit(&mut self, at: u64, sender: usize, bytes: &[u8], comment: &str, out: &mut Vec<u8>) {
        for (number, piece) in bytes.chunks(SEGMENT).enumerate() {
            let comment = if number == 0 { comment } else { "" };
            self.put(at, sender, PUSH | ACK, piece, comment, out);
            self.next[sender] = self.next[sender].wrapping_add(piece.len() as u32);
            if self.next[sender].wrapping_sub(self.acknowledged[sender]) > UNACKNOWLEDGED {
                self.put(at, 1 - sender, ACK, &[], "", out);
            }
        }
    }

    fn put(&mut self, at: u64, sender: usize, flags: u8, bytes: &[u8], comment: &str, out: &mut Vec<u8>) {
        let receiver = 1 - sender;
        let ends = [self.ends.program, self.ends.peer];
        let acknowledged = if flags & ACK > 0 { self.next[receiver] } else { 0 };
        self.acknowledged[receiver] = acknowledged;
        let (from, to, sequence) = (ends[sender], ends[receiver], self.next[sender]);
        let place = SegmentHeader { from, to, sequence, acknowledged, flags };
        pcapng::packet(at, &segment(&place, bytes), comment, out);
    }
}

/// Returns the bytes of the handshake in both directions.
fn handshake(mut ends: [Session; 2]) -> [Vec<u8>; 2] {
    let mut said = [Vec::new(), Vec::new()];
    loop {
        let before = said[PROGRAM].len() + said[PEER].len();
        for (from, to) in [(PROGRAM, PEER), (PEER, PROGRAM)] {
            let bytes = ends[from].output().to_vec();
            ends[from].advance_output(bytes.len());
            // Both sessions are ours, so the input is valid.
            let _ = ends[to].input(&bytes);
            said[from].extend(bytes);
        }
        if said[PROGRAM].len() + said[PEER].len() == before {
            return said;
        }
    }
}

/// Parses `tcp://ADDRESS:PORT`.
fn address(name: &str) -> Option<SocketAddr> {
    let mut address: SocketAddr = name.strip_prefix("tcp://")?.parse().ok()?;
    if address.ip().is_unspecified() && address.is_ipv4() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_found_in_its_name() {
        let found = |name| address(name).map(|address| address.to_string());
        assert_eq!(found("tcp://10.0.0.7:5556").as_deref(), Some("10.0.0.7:5556"));
        assert_eq!(found("tcp://0.0.0.0:5556").as_deref(), Some("127.0.0.1:5556"));
        assert_eq!(found("tcp://[::1]:5556").as_deref(), Some("[::1]:5556"));
        assert_eq!((found("ipc:///tmp/a"), found("tcp://host:1"), found("")), (None, None, None));
    }
}
