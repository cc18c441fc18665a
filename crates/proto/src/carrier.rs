//! Carriers: protocols that carry ZMTP over a stream, such as WebSocket and TLS.
//!
//! A carrier is a [`Stage`] between ZMTP and the wire. To the [`Session`](crate::Session) above it
//! looks like the wire itself: it plays the peer's greeting, where its own protocol has settled
//! that already, and takes ours away. So handshakes, mechanisms and their stages know nothing of
//! it. It has output of its own (openings, answers to the peer's control frames), which goes out
//! with the next [`seal`](Stage::seal), if need be of nothing.

use crate::command::{self, Command};
use crate::error::ProtocolError;
use crate::frame::decode_header;
use crate::session::Established;
use crate::stage::Stage;

/// What carries ZMTP over a stream.
pub trait Carrier: Stage {
    /// The handshake of ZMTP is done: messages may be as large as they may be.
    fn established(&mut self);

    /// Asks the peer for a sign of life in the carrier's own way; false if it has none.
    fn ping(&mut self) -> bool;

    /// Whether bytes go through as they are, in both directions.
    fn is_transparent(&self) -> bool {
        false
    }

    /// What the peer has shown to prove what it is, if this side has asked for that.
    fn shown(&self) -> Option<Shown> {
        None
    }
}

/// Certificates of a peer that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The name of the peer; empty if there is none in its certificate.
    pub user: String,
    /// In DER, the peer's own first.
    pub certificates: Vec<Vec<u8>>,
    /// The number of the configuration that has judged them.
    pub judged: u64,
}

/// Carries ZMTP as it is.
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
    fn established(&mut self) {}

    fn ping(&mut self) -> bool {
        false
    }

    fn is_transparent(&self) -> bool {
        true
    }
}

/// Puts a carrier under what a handshake has resulted in. `early` are ZMTP bytes that came behind
/// the handshake.
pub fn carried(mut carrier: Box<dyn Carrier>, mut established: Established, early: Vec<u8>) -> Established {
    carrier.established();
    let inner = established.stage.take();
    established.stage = Some(Box::new(Carried { inner, carrier, early, between: Vec::new() }));
    established
}

struct Carried {
    /// What is between plain frames and ZMTP, if anything.
    inner: Option<Box<dyn Stage>>,
    carrier: Box<dyn Carrier>,
    /// What the carrier has yielded already.
    early: Vec<u8>,
    /// ZMTP bytes on their way from one to the other; empty between calls, and kept small.
    between: Vec<u8>,
}

/// What `between` may keep of its memory.
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

    /// PINGs become the carrier's, if it has its own: an older peer, or one that reads only what
    /// the mechanism has opened, would not answer ours.
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
        // What came whole before a fault is good.
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

    fn exhausted(&self) -> bool {
        self.carrier.exhausted() || self.inner.as_ref().is_some_and(|inner| inner.exhausted())
    }

    fn ended(&self) -> bool {
        self.carrier.ended()
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.carrier.finish(out);
    }
}
