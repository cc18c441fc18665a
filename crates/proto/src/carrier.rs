//! Carriers: protocols that carry ZMTP over a stream, such as WebSocket and TLS.
//!
//! A carrier is a [`Stage`] between ZMTP and the wire. The [`Session`](crate::Session) above it
//! sees an ordinary stream: if the carrier's own protocol has already settled the greeting, the
//! carrier generates the peer's greeting and swallows ours. Handshakes, mechanisms and their stages
//! are therefore independent of the carrier. A carrier also has output of its own (opening
//! handshakes, answers to the peer's control frames), which the next [`seal`](Stage::seal) returns.
//! The input of that call may be empty.

use crate::command::{self, Command};
use crate::error::ProtocolError;
use crate::frame::decode_header;
use crate::session::Established;
use crate::stage::Stage;

/// A protocol that carries ZMTP over a stream.
pub trait Carrier: Stage {
    /// Tells the carrier that the handshake of ZMTP is complete. From now on the configured limit
    /// on message sizes applies.
    fn complete_handshake(&mut self);

    /// Sends a ping of the carrier's own protocol. Returns false if that protocol has no ping.
    fn ping(&mut self) -> bool;

    /// True if bytes pass through unchanged in both directions.
    fn is_transparent(&self) -> bool {
        false
    }

    /// Returns the certificates by which the peer proved its identity, if this side asked for them.
    fn peer_certificates(&self) -> Option<PeerCertificates> {
        None
    }
}

/// Trusted certificates of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificates {
    /// Name of the peer; empty if its certificate has no name.
    pub user: String,
    /// Certificates in DER, the peer's own first.
    pub certificates: Vec<Vec<u8>>,
    /// Revision of the configuration that verified the certificates.
    pub verified_by: u64,
}

/// Carries ZMTP unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Stage for Direct {
    fn seal(&mut self, zmtp: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(zmtp);
    }

    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        out.extend_from_slice(wire);
        Ok(())
    }

    fn buffered(&self) -> usize {
        0
    }
}

impl Carrier for Direct {
    fn complete_handshake(&mut self) {}

    fn ping(&mut self) -> bool {
        false
    }

    fn is_transparent(&self) -> bool {
        true
    }
}

/// Puts a carrier below the result of a handshake. `early` holds the ZMTP bytes that followed the
/// handshake.
pub fn with_carrier(
    mut carrier: Box<dyn Carrier>,
    mut established: Established,
    early: Vec<u8>,
) -> Established {
    carrier.complete_handshake();
    let inner = established.stage.take();
    established.stage = Some(Box::new(Carried { inner, carrier, early, between: Vec::new() }));
    established
}

struct Carried {
    /// Stage between plain frames and ZMTP, if there is one.
    inner: Option<Box<dyn Stage>>,
    carrier: Box<dyn Carrier>,
    /// ZMTP bytes that the carrier has already returned.
    early: Vec<u8>,
    /// ZMTP bytes on their way between `inner` and `carrier`. Empty between calls, and kept small.
    between: Vec<u8>,
}

/// Memory that `between` may keep from one call to the next, in bytes.
const KEEP: usize = 64 * 1024;

impl Carried {
    fn tidy(&mut self) {
        self.between.clear();
        self.between.shrink_to(KEEP);
    }
}

impl Stage for Carried {
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        match &mut self.inner {
            Some(inner) if !plain.is_empty() => {
                inner.seal(plain, &mut self.between);
                self.carrier.seal(&self.between, out);
                self.tidy();
            }
            _ => self.carrier.seal(plain, out),
        }
    }

    /// Sends pings of the carrier instead of PING commands if the carrier has pings: an older peer,
    /// or a peer that reads only frames opened by its mechanism, would not answer a PING command.
    fn seal_control(&mut self, mut frames: &[u8], out: &mut Vec<u8>) {
        while let Ok(Some(header)) = decode_header(frames) {
            let Some(end) =
                usize::try_from(header.body_len).ok().and_then(|len| header.header_len.checked_add(len))
            else {
                return;
            };
            let (Some(frame), Some(body)) = (frames.get(..end), frames.get(header.header_len..end)) else {
                return;
            };
            let is_ping = header.is_command() && matches!(command::parse(body), Ok(Command::Ping { .. }));
            if is_ping && self.carrier.ping() {
                self.carrier.seal(&[], out);
            } else {
                self.seal(frame, out);
            }
            frames = &frames[end..];
        }
    }

    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let early = std::mem::take(&mut self.early);
        let Some(inner) = &mut self.inner else {
            out.extend_from_slice(&early);
            return self.carrier.open(wire, out);
        };
        let first = inner.open(&early, out);
        let opened = first.and_then(|()| self.carrier.open(wire, &mut self.between));
        // Frames that were complete before the error are valid.
        let result = inner.open(&self.between, out);
        self.tidy();
        opened.and(result)
    }

    fn buffered(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.buffered()) + self.carrier.buffered() + self.early.len()
    }

    fn has_output(&self) -> bool {
        self.carrier.has_output()
    }

    fn is_out_of_memory(&self) -> bool {
        self.carrier.is_out_of_memory() || self.inner.as_ref().is_some_and(|inner| inner.is_out_of_memory())
    }

    fn is_closed(&self) -> bool {
        self.carrier.is_closed()
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.carrier.close(out);
    }
}
