//! Makes a ZMTP handshake with the state machines of `tautline-proto`, and sends PING afterwards.

use std::io;
use std::time::{Duration, Instant};

use tautline::kind::SocketType;
use tautline_proto::command::{self, Command};
use tautline_proto::frame::decode_header;
use tautline_proto::{
    AuthFailure, Established, MechanismConfig, Mismatch, Peer, ProtocolError, Session, SessionConfig, Version,
};

use super::dial::Connection;

/// Size of a ZMTP 3 greeting in bytes.
pub const GREETING: usize = 64;
/// Position of the mechanism in the greeting.
const MECHANISM: std::ops::Range<usize> = 12..32;
/// Number of greeting bytes (signature and version) that make the peer send its whole greeting. A
/// peer that learns our mechanism before it has sent its own may just disconnect.
const OPENING: usize = 11;
/// Time after which the rest of our greeting is sent to a peer that waits for it.
const HELD: Duration = Duration::from_secs(1);
/// Time limit for the reply to an empty line.
const POKED: Duration = Duration::from_secs(1);
/// Size limit of a frame. Every frame that a peer sends unrequested and that this module reads is
/// smaller.
const FRAME_MAX: u64 = 1 << 20;

/// Result of a handshake.
#[derive(Debug)]
pub enum HandshakeResult {
    /// The handshake succeeded with this peer.
    Met(Version, Peer),
    /// The socket type of the peer does not match ours. The peer need not tell its type.
    OtherType(Option<SocketType>),
    /// The peer uses another mechanism.
    OtherMechanism(String),
    /// The peer refused us for this reason.
    Refused(String),
    /// The peer does not speak ZMTP.
    SomethingElse,
    /// The peer closed the connection.
    Closed,
    /// The peer sent no data in time.
    Silent,
    /// Another error.
    Broken(String),
}

/// A connection to a peer.
pub struct Handshake {
    connection: Connection,
    session: Session,
    mechanism: &'static str,
    /// Maximum number of bytes to write before the peer is known.
    limit: usize,
    written: usize,
    /// True while the rest of our greeting waits for the greeting of the peer.
    held: bool,
    timeout: Duration,
    /// First bytes from the peer.
    heard: Vec<u8>,
    heard_in_all: usize,
    /// Time when our greeting was written, and time when the handshake ended.
    greeted: Option<Instant>,
    over: Option<Instant>,
    established: Option<Established>,
    /// Bytes after the handshake: as received (`wire`) and as plaintext frames (`plain`).
    wire: Vec<u8>,
    plain: Vec<u8>,
}

/// Returns the name of a mechanism in the greeting.
pub fn mechanism_name(config: &MechanismConfig) -> &'static str {
    match config {
        MechanismConfig::Null => "NULL",
        MechanismConfig::PlainClient { .. } | MechanismConfig::PlainServer => "PLAIN",
        _ => "CURVE",
    }
}

impl Handshake {
    /// Prepares a handshake on a connection.
    pub fn new(
        connection: Connection,
        mechanism: MechanismConfig,
        ours: SocketType,
        limit: usize,
        timeout: Duration,
    ) -> Handshake {
        let name = mechanism_name(&mechanism);
        let session = Session::new(SessionConfig {
            socket_type: ours,
            routing_id: Vec::new(),
            mechanism,
            authenticate: false,
            max_msg_size: Some(FRAME_MAX),
            properties: Vec::new(),
        });
        Handshake {
            connection,
            session,
            mechanism: name,
            limit,
            written: 0,
            held: true,
            timeout,
            heard: Vec::new(),
            heard_in_all: 0,
            greeted: None,
            over: None,
            established: None,
            wire: Vec::new(),
            plain: Vec::new(),
        }
    }

    /// Makes the handshake until the peer is known or the handshake fails.
    pub fn shake_hands(&mut self) -> HandshakeResult {
        let start = Instant::now();
        let deadline = start + self.timeout;
        let end = loop {
            if let Err(error) = self.write() {
                // The last bytes from the peer tell more than the write error.
                if self.heard.is_empty() && !is_gone(&error) {
                    break HandshakeResult::Broken(error.to_string());
                }
            }
            if let Some(established) = self.session.take_established() {
                let end = HandshakeResult::Met(established.version, established.peer.clone());
                self.established = Some(established);
                break end;
            }
            let until = if self.is_holding() { deadline.min(start + HELD) } else { deadline };
            match self.read(until) {
                Ok(bytes) => {
                    let room = GREETING.saturating_sub(self.heard.len());
                    self.heard.extend_from_slice(&bytes[..bytes.len().min(room)]);
                    self.heard_in_all += bytes.len();
                    if !self.is_zmtp() {
                        break HandshakeResult::SomethingElse;
                    }
                    match self.session.input(&bytes) {
                        Ok(used) => self.wire.extend_from_slice(&bytes[used..]),
                        Err(error) => break self.end_of(error),
                    }
                }
                Err(HandshakeResult::Silent) if self.is_holding() && Instant::now() < deadline => {
                    self.held = false
                }
                Err(HandshakeResult::Silent) if self.heard.is_empty() => break self.poke(),
                Err(end) => break end,
            }
        };
        self.over = Some(Instant::now());
        end
    }

    fn is_holding(&self) -> bool {
        let is_older = self.heard.get(OPENING - 1).is_some_and(|version| *version < 3);
        self.held && self.heard.len() < GREETING && !is_older
    }

    /// Sends an empty line. A server with a text protocol may wait for one before it replies.
    fn poke(&mut self) -> HandshakeResult {
        if self.connection.write_all(b"\r\n\r\n").is_err() {
            return HandshakeResult::Closed;
        }
        match self.read(Instant::now() + self.timeout.min(POKED)) {
            Ok(bytes) => {
                self.heard.extend_from_slice(&bytes[..bytes.len().min(GREETING)]);
                if self.is_zmtp() { HandshakeResult::Silent } else { HandshakeResult::SomethingElse }
            }
            Err(end) => end,
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let output = self.session.output();
        let limit = if self.is_holding() { OPENING } else { self.limit };
        let take = output.len().min(limit.saturating_sub(self.written));
        if take == 0 {
            return Ok(());
        }
        let bytes = output[..take].to_vec();
        self.session.advance_output(take);
        self.written += take;
        self.connection.write_all(&bytes)?;
        // Set the time until the greeting is complete, because the measurement starts with the last
        // byte of it.
        if self.greeted.is_none() || self.written <= GREETING {
            self.greeted = Some(Instant::now());
        }
        Ok(())
    }

    fn read(&mut self, deadline: Instant) -> Result<Vec<u8>, HandshakeResult> {
        let mut bytes = vec![0; 8192];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(HandshakeResult::Silent);
            }
            let read = self.connection.set_timeout(left).and_then(|()| self.connection.read(&mut bytes));
            match read {
                Ok(0) => return Err(HandshakeResult::Closed),
                Ok(len) => {
                    bytes.truncate(len);
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(HandshakeResult::Silent);
                }
                Err(error) if is_gone(&error) => return Err(HandshakeResult::Closed),
                Err(error) => return Err(HandshakeResult::Broken(error.to_string())),
            }
        }
    }

    /// True if the received bytes may start a greeting of ZMTP 2 or later, or the identity of a
    /// ZMTP 1.0 peer (a length, then flags).
    fn is_zmtp(&self) -> bool {
        match self.heard.as_slice() {
            [0xFF, rest @ ..] => rest.get(8).is_none_or(|last| last & 1 == 1),
            [length, flags, ..] => *length > 0 && *flags <= 1,
            [length] => *length > 0 && !length.is_ascii_graphic(),
            [] => true,
        }
    }

    fn end_of(&self, error: ProtocolError) -> HandshakeResult {
        match error {
            ProtocolError::PeerIncompatible(Mismatch::SocketType { theirs, .. }) => {
                HandshakeResult::OtherType(Some(theirs))
            }
            ProtocolError::PeerIncompatible(Mismatch::Mechanism) => {
                let name = self.heard.get(MECHANISM).unwrap_or_default();
                let name: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0).collect();
                HandshakeResult::OtherMechanism(crate::format::escaped(&name))
            }
            ProtocolError::PeerIncompatible(Mismatch::Version) => {
                HandshakeResult::Broken(format!("its ZMTP is older than 3.0 and has no {}", self.mechanism))
            }
            ProtocolError::Auth(AuthFailure::Refused { .. }) => {
                let reason = crate::format::escaped(self.session.refusal());
                // Tautline uses these words if the socket types do not match.
                if reason == "Incompatible socket type" {
                    HandshakeResult::OtherType(None)
                } else {
                    HandshakeResult::Refused(reason)
                }
            }
            other => HandshakeResult::Broken(other.to_string()),
        }
    }

    /// Returns the received part of the greeting.
    pub fn greeting(&self) -> &[u8] {
        &self.heard
    }

    /// Returns the first bytes of the peer for an error message.
    pub fn beginning(&self) -> String {
        let line = self.heard.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        format!("{:?}", crate::format::escaped(&line[..line.len().min(40)]))
    }

    /// Returns a hint about the actual protocol.
    pub fn guess(&self) -> &'static str {
        match self.heard.as_slice() {
            [b'S', b'S', b'H', ..] => "that is an SSH server",
            [b'H', b'T', b'T', b'P', ..] | [b'<', ..] => {
                "that is an HTTP server; ZeroMQ over WebSocket is ws://"
            }
            [0x15, 3, ..] => "that is a TLS server",
            [b'I', b'N', b'F', b'O', b' ', ..] => "that is a NATS server",
            [b'-', b'E', b'R', b'R', ..] => "that is a Redis server",
            [b'2', b'2', b'0', b' ', ..] => "that is a mail or FTP server",
            _ => "is it the right port?",
        }
    }

    /// Returns the version in the greeting.
    pub fn version(&self) -> Version {
        match self.heard.get(10..) {
            Some([0, ..]) => Version::V1,
            Some([1 | 2, ..]) => Version::V2,
            Some([3, 0, ..]) => Version::V3_0,
            _ => Version::V3_1,
        }
    }

    /// True if the server has replied to our key or user name.
    pub fn is_logged_in(&self) -> bool {
        self.heard_in_all > GREETING
    }

    /// Returns the time from our greeting to the end of the handshake.
    pub fn handshake_time(&self) -> Duration {
        match (self.greeted, self.over) {
            (Some(from), Some(to)) => to.saturating_duration_since(from),
            _ => Duration::ZERO,
        }
    }

    /// Sends a PING and waits for its PONG.
    pub fn ping(&mut self, n: u64) -> Result<Duration, HandshakeResult> {
        let context = n.to_be_bytes();
        let mut frame = Vec::new();
        command::put_ping(&mut frame, 0, &context);
        let start = Instant::now();
        self.send(&frame)?;
        let deadline = start + self.timeout;
        loop {
            if self.take_frames(&context)? {
                return Ok(start.elapsed());
            }
            let bytes = self.read(deadline)?;
            self.wire.extend_from_slice(&bytes);
        }
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), HandshakeResult> {
        let mut sealed = Vec::new();
        match self.established.as_mut().and_then(|established| established.stage.as_mut()) {
            Some(stage) => stage.seal_control(frame, &mut sealed),
            None => sealed.extend_from_slice(frame),
        }
        self.connection.write_all(&sealed).map_err(|_| HandshakeResult::Closed)
    }

    /// Reads the received frames. Returns true if one of them is the PONG.
    fn take_frames(&mut self, context: &[u8]) -> Result<bool, HandshakeResult> {
        let broken = |error: ProtocolError| HandshakeResult::Broken(error.to_string());
        match self.established.as_mut().and_then(|established| established.stage.as_mut()) {
            Some(stage) => stage.open(&self.wire, &mut self.plain).map_err(broken)?,
            None => self.plain.extend_from_slice(&self.wire),
        }
        self.wire.clear();
        let mut found = false;
        while let Some(header) = decode_header(&self.plain).map_err(broken)? {
            if header.body_len > FRAME_MAX {
                return Err(HandshakeResult::Broken("a frame is too long".to_owned()));
            }
            let end = header.header_len + header.body_len as usize;
            let Some(frame) = self.plain.get(..end) else { break };
            let body = frame[header.header_len..].to_vec();
            self.plain.drain(..end);
            if !header.is_command() {
                continue;
            }
            match command::parse(&body) {
                Ok(Command::Pong { context: echoed }) => found |= echoed == context,
                Ok(Command::Ping { context, .. }) => {
                    let mut frame = Vec::new();
                    command::put_pong(&mut frame, context);
                    self.send(&frame)?;
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::ConnectionReset | K::BrokenPipe | K::ConnectionAborted | K::NotConnected)
}
