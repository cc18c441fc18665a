//! A handshake by hand, over the state machines of `tautline-proto`, and PING afterwards.

use std::io;
use std::time::{Duration, Instant};

use tautline::kind::SocketType;
use tautline_proto::command::{self, Command};
use tautline_proto::frame::decode_header;
use tautline_proto::{
    AuthFailure, Established, MechanismConfig, Mismatch, Peer, ProtocolError, Session, SessionConfig, Version,
};

use super::dial::Connection;

/// Bytes of a greeting of ZMTP 3.
pub const GREETING: usize = 64;
/// Where it names the mechanism.
const MECHANISM: std::ops::Range<usize> = 12..32;
/// As much of a greeting makes the peer send all of its own: signature and version. A peer that
/// learns our mechanism before it has told its own may just leave.
const OPENING: usize = 11;
/// A peer that wants all of our greeting first gets it after this time.
const HELD: Duration = Duration::from_secs(1);
/// How long the answer to the end of a line is waited for.
const POKED: Duration = Duration::from_secs(1);
/// More than any frame that a peer sends unasked and that is looked at here.
const FRAME_MAX: u64 = 1 << 20;

/// How a handshake ended.
#[derive(Debug)]
pub enum End {
    /// The peer is this one.
    Met(Version, Peer),
    /// The peer is of a type that does not go with ours; which one, it need not tell.
    OtherType(Option<SocketType>),
    /// The peer has another mechanism.
    OtherMechanism(String),
    /// The peer does not let us in; with its reason.
    Refused(String),
    /// What the peer says is not ZMTP.
    SomethingElse,
    /// The peer has closed the connection.
    Closed,
    /// Nothing came in time.
    Silent,
    /// Something else.
    Broken(String),
}

/// One connection.
pub struct Talk {
    connection: Connection,
    session: Session,
    mechanism: &'static str,
    /// As many bytes are written at most before the peer is known.
    limit: usize,
    written: usize,
    /// The rest of the greeting waits for that of the peer.
    held: bool,
    timeout: Duration,
    /// The first bytes from the peer.
    heard: Vec<u8>,
    heard_in_all: usize,
    /// When our greeting was written, and when the handshake ended.
    greeted: Option<Instant>,
    over: Option<Instant>,
    established: Option<Established>,
    /// Bytes after the handshake: as they came, and as plain frames.
    wire: Vec<u8>,
    plain: Vec<u8>,
}

/// The name of a mechanism in the greeting.
pub fn mechanism_name(config: &MechanismConfig) -> &'static str {
    match config {
        MechanismConfig::Null => "NULL",
        MechanismConfig::PlainClient { .. } | MechanismConfig::PlainServer => "PLAIN",
        _ => "CURVE",
    }
}

impl Talk {
    /// To begin with.
    pub fn new(
        connection: Connection,
        mechanism: MechanismConfig,
        ours: SocketType,
        limit: usize,
        timeout: Duration,
    ) -> Talk {
        let name = mechanism_name(&mechanism);
        let session = Session::new(SessionConfig {
            socket_type: ours,
            routing_id: Vec::new(),
            mechanism,
            authenticate: false,
            max_msg_size: Some(FRAME_MAX),
            properties: Vec::new(),
        });
        Talk {
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

    /// Until the peer is known.
    pub fn shake_hands(&mut self) -> End {
        let start = Instant::now();
        let deadline = start + self.timeout;
        let end = loop {
            if let Err(error) = self.write() {
                // What the peer said before it left tells more.
                if self.heard.is_empty() && !is_gone(&error) {
                    break End::Broken(error.to_string());
                }
            }
            if let Some(established) = self.session.established() {
                let end = End::Met(established.version, established.peer.clone());
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
                        break End::SomethingElse;
                    }
                    match self.session.input(&bytes) {
                        Ok(used) => self.wire.extend_from_slice(&bytes[used..]),
                        Err(error) => break self.end_of(error),
                    }
                }
                Err(End::Silent) if self.is_holding() && Instant::now() < deadline => self.held = false,
                Err(End::Silent) if self.heard.is_empty() => break self.poke(),
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

    /// Ends a line, for which a server may wait that speaks in lines and is no ZeroMQ.
    fn poke(&mut self) -> End {
        if self.connection.write_all(b"\r\n\r\n").is_err() {
            return End::Closed;
        }
        match self.read(Instant::now() + self.timeout.min(POKED)) {
            Ok(bytes) => {
                self.heard.extend_from_slice(&bytes[..bytes.len().min(GREETING)]);
                if self.is_zmtp() { End::Silent } else { End::SomethingElse }
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
        // Until the greeting is whole: the answer to it is what is measured.
        if self.greeted.is_none() || self.written <= GREETING {
            self.greeted = Some(Instant::now());
        }
        Ok(())
    }

    fn read(&mut self, deadline: Instant) -> Result<Vec<u8>, End> {
        let mut bytes = vec![0; 8192];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(End::Silent);
            }
            let read = self.connection.set_timeout(left).and_then(|()| self.connection.read(&mut bytes));
            match read {
                Ok(0) => return Err(End::Closed),
                Ok(len) => {
                    bytes.truncate(len);
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(End::Silent);
                }
                Err(error) if is_gone(&error) => return Err(End::Closed),
                Err(error) => return Err(End::Broken(error.to_string())),
            }
        }
    }

    /// Whether what was heard may be a greeting of ZMTP 2 and up, or the identity of a peer of 1.0,
    /// whose flags follow its length.
    fn is_zmtp(&self) -> bool {
        match self.heard.as_slice() {
            [0xFF, rest @ ..] => rest.get(8).is_none_or(|last| last & 1 == 1),
            [length, flags, ..] => *length > 0 && *flags <= 1,
            [length] => *length > 0 && !length.is_ascii_graphic(),
            [] => true,
        }
    }

    fn end_of(&self, error: ProtocolError) -> End {
        match error {
            ProtocolError::PeerIncompatible(Mismatch::SocketType { theirs, .. }) => {
                End::OtherType(Some(theirs))
            }
            ProtocolError::PeerIncompatible(Mismatch::Mechanism) => {
                let name = self.heard.get(MECHANISM).unwrap_or_default();
                let name: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0).collect();
                End::OtherMechanism(crate::format::escaped(&name))
            }
            ProtocolError::PeerIncompatible(Mismatch::Version) => {
                End::Broken(format!("its ZMTP is older than 3.0 and has no {}", self.mechanism))
            }
            ProtocolError::Auth(AuthFailure::Refused { .. }) => {
                let reason = crate::format::escaped(self.session.refusal());
                // In these words Tautline says that the types do not go together.
                if reason == "Incompatible socket type" { End::OtherType(None) } else { End::Refused(reason) }
            }
            other => End::Broken(other.to_string()),
        }
    }

    /// The greeting, as far as it has come.
    pub fn greeting(&self) -> &[u8] {
        &self.heard
    }

    /// What the peer began with, for a message.
    pub fn beginning(&self) -> String {
        let line = self.heard.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        format!("{:?}", crate::format::escaped(&line[..line.len().min(40)]))
    }

    /// What it might be instead.
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

    /// The version in the greeting.
    pub fn version(&self) -> Version {
        match self.heard.get(10..) {
            Some([0, ..]) => Version::V1,
            Some([1 | 2, ..]) => Version::V2,
            Some([3, 0, ..]) => Version::V3_0,
            _ => Version::V3_1,
        }
    }

    /// Whether the server has answered what shows it our key or name.
    pub fn is_logged_in(&self) -> bool {
        self.heard_in_all > GREETING
    }

    /// From our greeting to the end of the handshake.
    pub fn handshake_time(&self) -> Duration {
        match (self.greeted, self.over) {
            (Some(from), Some(to)) => to.saturating_duration_since(from),
            _ => Duration::ZERO,
        }
    }

    /// Sends a PING, waits for its PONG.
    pub fn ping(&mut self, n: u64) -> Result<Duration, End> {
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

    fn send(&mut self, frame: &[u8]) -> Result<(), End> {
        let mut sealed = Vec::new();
        match self.established.as_mut().and_then(|established| established.stage.as_mut()) {
            Some(stage) => stage.seal_control(frame, &mut sealed),
            None => sealed.extend_from_slice(frame),
        }
        self.connection.write_all(&sealed).map_err(|_| End::Closed)
    }

    /// Looks at the frames that have come; whether the PONG was among them.
    fn take_frames(&mut self, context: &[u8]) -> Result<bool, End> {
        let broken = |error: ProtocolError| End::Broken(error.to_string());
        match self.established.as_mut().and_then(|established| established.stage.as_mut()) {
            Some(stage) => stage.open(&self.wire, &mut self.plain).map_err(broken)?,
            None => self.plain.extend_from_slice(&self.wire),
        }
        self.wire.clear();
        let mut found = false;
        while let Some(header) = decode_header(&self.plain).map_err(broken)? {
            if header.body_len > FRAME_MAX {
                return Err(End::Broken("a frame is too long".to_owned()));
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
