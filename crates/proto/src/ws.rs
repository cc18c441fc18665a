//! WebSocket as a carrier of ZMTP: ZWS 2.0 (RFC 45), as libzmq's `ws://` speaks it.
//!
//! ```text
//!   ZMTP       greeting, commands, frames           to and from Session and its stages
//!     │
//!   WebSocket  [`opening`]  one HTTP request and its answer; the mechanism is settled as Sec-WebSocket-Protocol
//!     │        [`framing`]  a ZMTP frame is a binary message: an octet of flags, the body
//!   stream
//! ```
//!
//! The greeting of ZMTP is not sent: our own is swallowed, and the peer's is generated from the
//! result of the opening. It announces 3.0 for `ZWS2.0/MECHANISM`, so that subscriptions are
//! messages, and 2.0 for the bare `ZWS2.0`, where the first message is a routing id. A client masks
//! its frames. Fragmented messages are assembled; text and reserved frames are refused.

mod framing;
mod mask;
mod opening;

use crate::carrier::Carrier;
use crate::error::{ProtocolError, Violation};
use crate::greeting;
use crate::socket_type::SocketType;
use crate::stage::Stage;
use framing::{Opener, Sealer};
use mask::Masks;
use opening::{Opening, Protocol};

/// Role of our end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that sends the request.
    Client {
        /// Value of the Host header: with the port, unless it is the default one.
        host: String,
        /// Path of the request, with its leading slash.
        path: String,
    },
    /// The end that answers the request. It accepts any host and path.
    Server,
}

/// Configuration of a WebSocket.
#[derive(Clone, Debug)]
pub struct Config {
    /// Role of our end.
    pub role: Role,
    /// Our socket type.
    pub socket_type: SocketType,
    /// Name of our mechanism, as it stands in a greeting.
    pub mechanism: &'static str,
    /// True if we are the mechanism's server.
    pub as_server: bool,
    /// Largest message to accept.
    pub max_msg_size: Option<u64>,
    /// Unpredictable bytes, for the key of the opening and for the masks.
    pub seed: [u8; 32],
}

/// Lengths in octets of the greetings that are not sent.
const GREETING: usize = greeting::GREETING_LEN;
const OLDER_GREETING: usize = greeting::V2_GREETING_LEN;

enum Phase {
    Opening(Opening),
    Open,
    /// Closed by the peer's close frame, by our close frame, or by an error.
    Closed,
}

/// One end of a WebSocket that carries ZMTP.
pub struct WebSocket {
    phase: Phase,
    socket_type: SocketType,
    mechanism: &'static str,
    as_server: bool,
    max_msg_size: Option<u64>,
    /// HTTP bytes to write before any frame.
    http: Vec<u8>,
    /// ZMTP bytes sealed before the WebSocket was open: our signature.
    held: Vec<u8>,
    /// Number of bytes of our greeting still to be swallowed.
    swallow: usize,
    sealer: Sealer,
    opener: Opener,
    /// True if the peer's close frame has arrived.
    ended: bool,
}

impl WebSocket {
    /// Starts the opening. A client's request is ready to be written.
    pub fn new(config: Config) -> Self {
        let mut masks = Masks::new(config.seed);
        let client = matches!(config.role, Role::Client { .. });
        let mut http = Vec::new();
        let opening = Opening::start(&config.role, config.mechanism, masks.nonce(), &mut http);
        WebSocket {
            phase: Phase::Opening(opening),
            socket_type: config.socket_type,
            mechanism: config.mechanism,
            as_server: config.as_server,
            max_msg_size: config.max_msg_size,
            http,
            held: Vec::new(),
            swallow: 0,
            sealer: Sealer::new(client.then_some(masks)),
            opener: Opener::new(!client),
            ended: false,
        }
    }

    /// Completes the opening with this protocol, and generates the peer's greeting.
    fn complete_opening(&mut self, protocol: Protocol, out: &mut Vec<u8>) {
        out.extend_from_slice(&greeting::signature(0));
        match protocol {
            Protocol::Mechanism => {
                self.swallow = GREETING;
                let peer_as_server = self.mechanism != "NULL" && !self.as_server;
                greeting::put_rest_3_0(out, self.mechanism, peer_as_server);
            }
            Protocol::Bare => {
                self.swallow = OLDER_GREETING;
                greeting::put_rest_2_0(out, self.socket_type.some_peer().map_or(u8::MAX, SocketType::code));
            }
        }
        self.phase = Phase::Open;
        let held = std::mem::take(&mut self.held);
        self.swallow -= held.len().min(self.swallow);
    }

    fn fail(&mut self, error: ProtocolError) -> ProtocolError {
        if let Phase::Open = self.phase {
            self.sealer.close(&framing::PROTOCOL_ERROR.to_be_bytes());
        }
        self.phase = Phase::Closed;
        error
    }

    fn open_frames(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let said = self.opener.push(wire, out).map_err(|error| self.fail(error))?;
        if let Some(payload) = said.ping {
            self.sealer.pong(payload);
        }
        if let Some(code) = said.close {
            self.sealer.close(&code);
            self.phase = Phase::Closed;
            self.ended = true;
        }
        Ok(())
    }
}

impl Stage for WebSocket {
    fn seal(&mut self, zmtp: &[u8], out: &mut Vec<u8>) {
        out.append(&mut self.http);
        match &mut self.phase {
            // The session waits for the peer's greeting, so it sends little until then.
            Phase::Opening(_) => {
                self.held.extend_from_slice(&zmtp[..zmtp.len().min(GREETING - self.held.len())])
            }
            Phase::Open => {
                let swallowed = self.swallow.min(zmtp.len());
                self.swallow -= swallowed;
                self.sealer.push(&zmtp[swallowed..], out);
            }
            Phase::Closed => self.sealer.last(out),
        }
    }

    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        match &mut self.phase {
            Phase::Opening(opening) => match opening.push(wire, &mut self.http) {
                Ok(None) => Ok(()),
                Ok(Some((protocol, rest))) => {
                    self.complete_opening(protocol, out);
                    self.open_frames(&rest, out)
                }
                Err(clause) => Err(self.fail(clause.into())),
            },
            Phase::Open => self.open_frames(wire, out),
            // Bytes after a close frame have no meaning.
            Phase::Closed if self.ended => Ok(()),
            Phase::Closed => Err(Violation::WebSocketFrame.into()),
        }
    }

    fn buffered(&self) -> usize {
        let opening = if let Phase::Opening(opening) = &self.phase { opening.buffered() } else { 0 };
        opening + self.held.len() + self.sealer.buffered() + self.opener.buffered()
    }

    fn is_out_of_memory(&self) -> bool {
        self.sealer.is_exhausted()
    }

    fn has_output(&self) -> bool {
        !self.http.is_empty() || self.sealer.has_control()
    }

    fn is_closed(&self) -> bool {
        self.ended
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Phase::Open = self.phase {
            self.sealer.close(&framing::NORMAL.to_be_bytes());
            self.phase = Phase::Closed;
        }
        self.sealer.last(out);
    }
}

impl Carrier for WebSocket {
    fn complete_handshake(&mut self) {
        self.opener.set_limit(self.max_msg_size.unwrap_or(u64::MAX));
    }

    fn ping(&mut self) -> bool {
        self.sealer.ping();
        true
    }
}

#[cfg(test)]
mod tests;
