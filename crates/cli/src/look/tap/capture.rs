//! `--pcapng`: messages as if they had gone over tcp in plain ZMTP 3.1, for Wireshark.
//!
//! For each peer there is a made-up connection, which begins with the handshake that Tautline would
//! make. Its addresses are the peer's own where it has come by tcp. Else they are made up: the end
//! that listens is at port 5555 of 127.0.0.1, or where the socket is bound. What goes to all peers
//! of a socket has a connection of its own.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use tautline_observe::tap::{Copied, Direction, MANY};
use tautline_observe::{Fault, Peer, Reading};
use tautline_proto::frame::{MAX_HEADER, MORE, encode_header};
use tautline_proto::{MechanismConfig, Session, SessionConfig, SocketType};

use super::View;
use super::filter::way;
use super::pcapng::{self, ACK, PUSH, Place, SYN, segment};
use super::source::Source;
use crate::failure::Result;
use crate::format::escaped;

/// The made-up port of an end that listens.
const PORT: u16 = 5555;
/// The first one of those of the others.
const EPHEMERAL: u16 = 49_152;
/// As much is in a packet.
const SEGMENT: usize = 16 * 1024;
/// As much goes without an acknowledgement: less than the window.
const UNACKNOWLEDGED: u32 = 32 * 1024;
/// As much is written at once.
const FULL: usize = 64 * 1024;
/// As long is waited for the file of counters to name a peer.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
/// After this many microseconds a peer of the same number may be another one.
const FRESH: u64 = 1_000_000;
/// Bytes of a greeting.
const GREETING: usize = 64;
/// The ends, as they are counted.
const PROGRAM: usize = 0;
const PEER: usize = 1;

/// A file of packets.
pub struct Capture {
    out: File,
    buffer: Vec<u8>,
    /// The file of counters.
    counters: PathBuf,
    /// Read last.
    reading: Reading,
    conversations: HashMap<(u64, u64), Conversation>,
    /// How many there were.
    count: u16,
    /// Where ends listen.
    ports: BTreeSet<u16>,
    quiet: bool,
}

/// A made-up connection.
struct Conversation {
    ends: Ends,
    /// What the program's end, and the peer's, will send next.
    next: [u32; 2],
    /// What the other end has acknowledged of it.
    acknowledged: [u32; 2],
    /// When the peer was looked up.
    known_at: u64,
}

/// The two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    program: SocketAddr,
    peer: SocketAddr,
    /// The program has connected.
    connected_here: bool,
}

impl Capture {
    /// Into this file, of this tap. Unless it is to be quiet it tells of each port.
    pub fn new(source: &Source, out: File, quiet: bool) -> Capture {
        let process = &source.reading.process;
        let mut buffer = Vec::new();
        let program = escaped(process.program.as_bytes());
        pcapng::head(&format!("{program} {} as tapped", process.pid), &mut buffer);
        Capture {
            out,
            buffer,
            counters: source.path().to_owned(),
            reading: source.reading.clone(),
            conversations: HashMap::new(),
            count: 0,
            ports: BTreeSet::new(),
            quiet,
        }
    }

    /// The peer of this message is not known, or was not for a while.
    fn meet(&mut self, copy: &Copied, former: Option<Conversation>) -> Conversation {
        self.look(copy, former.is_none());
        let ends = self.ends(copy, former.as_ref().map(|former| former.ends));
        let known_at = copy.at.max(self.reading.process.written);
        if let Some(former) = former.filter(|former| former.ends == ends) {
            return Conversation { known_at, ..former };
        }
        self.count = self.count.wrapping_add(1);
        let port = if ends.connected_here { ends.peer.port() } else { ends.program.port() };
        if self.ports.insert(port) && !self.quiet {
            notice!("taut: to be read with wireshark -d tcp.port=={port},zmtp");
        }
        let mut conversation = Conversation { ends, next: [0; 2], acknowledged: [0; 2], known_at };
        let (own, peer) = self.sessions(copy);
        conversation.begin(copy.at, own, peer, &mut self.buffer);
        conversation
    }

    /// Reads the file of counters until it knows the peer. One that has come just now may not be in
    /// it yet; one that is not in it after the message is not waited for any longer.
    fn look(&mut self, copy: &Copied, patient: bool) {
        let until = Instant::now() + PATIENCE;
        let mut is_fresh = self.reading.process.written.saturating_add(FRESH) >= copy.at;
        while !is_fresh || patient && copy.peer != MANY && self.peer(copy).is_none() {
            match tautline_observe::read(&self.counters) {
                Ok(reading) => self.reading = reading,
                // It is being written.
                Err(Fault::Busy) => {}
                Err(_) => return,
            }
            if !patient || self.reading.process.written > copy.at || Instant::now() >= until {
                return;
            }
            is_fresh = true;
            thread::sleep(PAUSE);
        }
    }

    fn peer(&self, copy: &Copied) -> Option<&Peer> {
        self.reading.peers_of(copy.socket).find(|peer| peer.id == copy.peer)
    }

    /// Where the two ends are.
    fn ends(&self, copy: &Copied, former: Option<Ends>) -> Ends {
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

    /// The handshakes of the two ends.
    fn sessions(&self, copy: &Copied) -> (Session, Session) {
        let socket = self.reading.socket(copy.socket);
        let kind = socket.and_then(|socket| SocketType::from_name(socket.type_name.as_bytes()));
        // STREAM and DGRAM have peers that speak no ZMTP.
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
    fn show(&mut self, copy: &Copied, number: u64) -> Result<()> {
        let key = (copy.socket, copy.peer);
        let conversation = match self.conversations.remove(&key) {
            Some(known) if copy.at <= known.known_at.saturating_add(FRESH) => known,
            former => self.meet(copy, former),
        };
        let conversation = self.conversations.entry(key).insert_entry(conversation).into_mut();
        conversation.carry(copy, number, &mut self.buffer);
        if self.buffer.len() >= FULL { self.flush() } else { Ok(()) }
    }

    /// Whole blocks only, so that a file whose writer is ended can be read.
    fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.buffer).map_err(|error| crate::sink::broken(&error))?;
        self.buffer.clear();
        Ok(())
    }
}

impl Conversation {
    /// The handshakes of tcp and of ZMTP.
    fn begin(&mut self, at: u64, own: Session, peer: Session, out: &mut Vec<u8>) {
        let client = if self.ends.connected_here { PROGRAM } else { PEER };
        for (sender, flags) in [(client, SYN), (1 - client, SYN | ACK), (client, ACK)] {
            self.put(at, sender, flags, &[], "", out);
            // A SYN counts as a byte.
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

    /// A message.
    fn carry(&mut self, copy: &Copied, number: u64, out: &mut Vec<u8>) {
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

    /// Bytes from one end to the other, in segments.
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
        let place = Place { from, to, sequence, acknowledged, flags };
        pcapng::packet(at, &segment(&place, bytes), comment, out);
    }
}

/// What the two ends say until they know each other.
fn handshake(mut ends: [Session; 2]) -> [Vec<u8>; 2] {
    let mut said = [Vec::new(), Vec::new()];
    loop {
        let before = said[PROGRAM].len() + said[PEER].len();
        for (from, to) in [(PROGRAM, PEER), (PEER, PROGRAM)] {
            let bytes = ends[from].output().to_vec();
            ends[from].advance_output(bytes.len());
            // Both are our own.
            let _ = ends[to].input(&bytes);
            said[from].extend(bytes);
        }
        if said[PROGRAM].len() + said[PEER].len() == before {
            return said;
        }
    }
}

/// Of `tcp://ADDRESS:PORT`.
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
