//! A handshake on a stream: the session, and below it what carries ZMTP, if the transport has such
//! a thing.
//!
//! To the wire it looks like a [`Session`], which it otherwise is; only the bytes that go in and
//! out pass the carrier.

use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};

use crate::conn::Loss;
use crate::monitor::Claim;
use crate::zap::Inquiry;
use tautline_io::errno;
use tautline_io::net::Stream;
use tautline_io::reactor::Interest;
use tautline_proto::zap::Verdict;
use tautline_proto::{Carrier, Established, ProtocolError, Session, SessionConfig, Shown, carried};

/// A handshake in progress. What the wire notes about it stands here, too: of an open stream
/// nothing of it is kept.
pub(super) struct Handshake {
    session: Session,
    carriage: Option<Box<Carriage>>,
    /// What the stream's registration waits for.
    pub(super) armed: Interest,
    /// When this runs out the peer has been silent for too long; 0 is no timer.
    pub(super) timer: u64,
    /// The question to the ZAP handler about this peer.
    pub(super) inquiry: Option<Box<Inquiry>>,
    /// What the peer has shown to the handler.
    pub(super) claim: Option<Box<Claim>>,
    /// What the handler has said: the peer is in.
    pub(super) verdict: Option<Box<Verdict>>,
    /// The certificates of the peer, when the handshake is complete.
    pub(super) shown: Option<Box<Shown>>,
    /// The handler said no, which has been reported: the peer is told, and has the last word.
    pub(super) refused: bool,
    /// What came with the end of the handshake, and lies behind it. Our last word may not be
    /// written yet.
    leftover: Vec<u8>,
    /// Most bytes that the peer may say until it is let in, and how many it has said.
    pub(super) most: u64,
    said: u64,
}

/// A carrier and the bytes on both sides of it.
struct Carriage {
    carrier: Box<dyn Carrier>,
    /// Bytes for the stream, and how many of them are written.
    out: Vec<u8>,
    written: usize,
    /// ZMTP bytes behind the handshake.
    early: Vec<u8>,
}

impl Handshake {
    /// Starts, on a stream whose registration waits for `armed`.
    pub(super) fn new(config: SessionConfig, carrier: Option<Box<dyn Carrier>>, armed: Interest) -> Self {
        let carriage = carrier
            .map(|carrier| Box::new(Carriage { carrier, out: Vec::new(), written: 0, early: Vec::new() }));
        Handshake {
            session: Session::new(config),
            carriage,
            armed,
            timer: 0,
            inquiry: None,
            claim: None,
            verdict: None,
            shown: None,
            refused: false,
            leftover: Vec::new(),
            most: u64::MAX,
            said: 0,
        }
    }

    /// The peer says this many bytes more: whether that is too much.
    pub(super) fn goes_beyond(&mut self, bytes: usize) -> bool {
        self.said += bytes as u64;
        self.said > self.most
    }

    /// Whether the peer has said nothing yet.
    pub(super) fn is_silent(&self) -> bool {
        self.said == 0
    }

    /// The bytes to write to the stream now.
    pub(super) fn output(&mut self) -> &[u8] {
        let Some(Carriage { carrier, out, written, .. }) = self.carriage.as_deref_mut() else {
            return self.session.output();
        };
        let zmtp = self.session.output();
        let length = zmtp.len();
        // Also if that is nothing: the carrier has something of its own to say.
        carrier.seal(zmtp, out);
        self.session.advance_output(length);
        &out[*written..]
    }

    /// Writes the output to the stream, as far as it goes.
    pub(super) fn write(&mut self, stream: &Stream) -> Result<(), Loss> {
        while !self.output().is_empty() {
            match stream.write(self.output()) {
                Ok(n) => self.advance_output(n),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                Err(error) => return Err(Loss::Stream(errno::of(&error).unwrap_or(0))),
            }
        }
        Ok(())
    }

    /// Drops the first `n` bytes of the output, which have been written.
    fn advance_output(&mut self, n: usize) {
        match self.carriage.as_deref_mut() {
            None => self.session.advance_output(n),
            Some(Carriage { out, written, .. }) => {
                *written = (*written + n).min(out.len());
                if *written == out.len() {
                    out.clear();
                    *written = 0;
                }
            }
        }
    }

    /// Takes bytes from the stream. Those behind the end of the handshake are kept.
    pub(super) fn input(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        let Some(Carriage { carrier, early, .. }) = self.carriage.as_deref_mut() else {
            let used = self.session.input(bytes)?;
            self.leftover.extend_from_slice(&bytes[used..]);
            return Ok(());
        };
        let mut zmtp = Vec::new();
        let opened = carrier.open(bytes, &mut zmtp);
        let used = self.session.input(&zmtp)?;
        early.try_reserve(zmtp.len() - used).map_err(|_| ProtocolError::NoMemory)?;
        early.extend_from_slice(&zmtp[used..]);
        opened
    }

    /// Whether something carries ZMTP: WebSocket, TLS.
    pub(super) fn is_carried(&self) -> bool {
        self.carriage.is_some()
    }

    /// Whether the peer has closed what carries ZMTP.
    pub(super) fn has_ended(&self) -> bool {
        self.carriage.as_ref().is_some_and(|carriage| carriage.carrier.ended())
    }

    /// What came behind the handshake, once.
    pub(super) fn take_leftover(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.leftover)
    }

    /// The result, once, as soon as the handshake is complete.
    pub(super) fn established(&mut self) -> Option<Established> {
        let established = self.session.established()?;
        Some(match self.carriage.take().map(|carriage| *carriage) {
            None => established,
            Some(Carriage { carrier, early, .. }) => {
                self.shown = carrier.shown().map(Box::new);
                carried(carrier, established, early)
            }
        })
    }
}

impl Deref for Handshake {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for Handshake {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tautline_proto::{MechanismConfig, SocketType};

    #[test]
    fn what_lies_behind_the_handshake_is_kept_until_our_last_word_is_written() {
        let config = SessionConfig {
            socket_type: SocketType::Pull,
            routing_id: Vec::new(),
            mechanism: MechanismConfig::Null,
            authenticate: false,
            max_msg_size: None,
            properties: Vec::new(),
        };
        let mut handshake = Handshake::new(config, None, Interest::READ);
        let ready = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH";
        let greeting = [&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1][..], b"NULL", &[0; 48]].concat();
        let message = b"\0\x05early";
        handshake.input(&[&greeting[..], ready, message].concat()).unwrap();
        assert!(!handshake.output().is_empty());
        handshake.advance_output(1000);
        assert!(handshake.established().is_some());
        assert_eq!((handshake.take_leftover(), handshake.take_leftover()), (message.to_vec(), Vec::new()));
    }
}
