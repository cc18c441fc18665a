//! Counts the bytes of a peer that belong to an unfinished message. That many bytes may be in memory, because
//! the targets limit only the size of a part.

use tautline_proto::ws::{Config, Role, WebSocket};
use tautline_proto::{SocketType, Stage, frame};

const GREETING: usize = 64;

/// Parses the bytes that a peer sends to a listener.
pub struct Parts {
    carrier: Option<WebSocket>,
    greeting: Vec<u8>,
    header: Vec<u8>,
    /// Octets of the current body that are still to come, and the flags of its frame.
    body: u64,
    flags: u8,
    unfinished: usize,
    /// True if the peer uses a version with other frames, so that the count is unknown.
    foreign: bool,
}

impl Parts {
    /// Creates a parser for a peer over WebSocket, or over a plain stream.
    pub fn new(websocket: bool) -> Parts {
        let config = Config {
            role: Role::Server,
            socket_type: SocketType::Dealer,
            mechanism: "NULL",
            as_server: false,
            max_msg_size: None,
            seed: [7; 32],
        };
        Parts {
            carrier: websocket.then(|| WebSocket::new(config)),
            greeting: Vec::new(),
            header: Vec::new(),
            body: 0,
            flags: 0,
            unfinished: 0,
            foreign: false,
        }
    }

    /// Parses bytes that the peer has sent.
    pub fn hear(&mut self, bytes: &[u8]) {
        let Some(carrier) = &mut self.carrier else { return self.read(bytes) };
        let (mut opened, mut unused) = (Vec::new(), Vec::new());
        self.foreign |= carrier.open(bytes, &mut opened).is_err();
        carrier.seal(&[], &mut unused);
        self.read(&opened);
    }

    fn read(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.greeting.len() < GREETING {
                self.greeting.push(byte);
                self.foreign |=
                    self.greeting[0] != 0xFF || self.greeting.get(10).is_some_and(|major| *major < 3);
                bytes = rest;
            } else if self.body > 0 {
                let n = usize::try_from(self.body).unwrap_or(usize::MAX).min(bytes.len());
                bytes = &bytes[n..];
                self.body -= n as u64;
                self.count(n);
            } else {
                bytes = rest;
                self.header.push(byte);
                let long = self.header[0] & frame::LONG != 0;
                if self.header.len() == if long { 9 } else { 2 } {
                    self.flags = self.header[0];
                    self.body = self.header[1..].iter().fold(0, |sum, octet| sum << 8 | u64::from(*octet));
                    self.count(self.header.len());
                    self.header.clear();
                }
            }
        }
    }

    fn count(&mut self, octets: usize) {
        if self.flags & frame::COMMAND != 0 {
            return;
        }
        self.unfinished += octets;
        if self.body == 0 && self.flags & frame::MORE == 0 {
            self.unfinished = 0;
        }
    }

    /// Returns the bytes of an unfinished message, or `said` if that number is unknown.
    pub fn unfinished(&self, said: usize) -> usize {
        if self.foreign { said } else { self.unfinished }
    }
}
