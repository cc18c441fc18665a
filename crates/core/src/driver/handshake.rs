//! A handshake on a stream: the session, and below it the carrier of ZMTP (WebSocket or TLS), if
//! the transport has one.
//!
//! The wire uses a handshake like a [`Session`]. The only difference is that the incoming and
//! outgoing bytes pass through the carrier.

use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};

use crate::conn::Loss;
use crate::monitor::Claim;
use crate::zap::ZapRequest;
use tautline_io::errno;
use tautline_io::net::Stream;
use tautline_io::reactor::Interest;
use tautline_proto::zap::ZapReply;
use tautline_proto::{
    Carrier, Established, PeerCertificates, ProtocolError, Session, SessionConfig, with_carrier,
};

/// A handshake in progress. The wire's notes on the handshake are here too, because an open stream
/// no longer needs them.
pub(super) struct Handshake {
    session: Session,
    carriage: Option<Box<Carriage>>,
    /// Current interest of the stream's registration.
    pub(super) armed: Interest,
    /// Timer of the handshake: the peer has been silent for too long when it expires. 0 means no
    /// timer.
    pub(super) timer: u64,
    /// The pending request to the ZAP handler about this peer.
    pub(super) inquiry: Option<Box<ZapRequest>>,
    /// Credentials that the peer has shown to the handler.
    pub(super) claim: Option<Box<Claim>>,
    /// The handler's reply that admits the peer.
    pub(super) verdict: Option<Box<ZapReply>>,
    /// Certificates of the peer, set when the handshake is complete.
    pub(super) shown: Option<Box<PeerCertificates>>,
    /// True if the handler refused the peer and this was reported. The peer is told, and then we
    /// wait for its reply or its close.
    pub(super) refused: bool,
    /// True until the first bytes are read or written.
    pub(super) fresh: bool,
    /// Bytes that arrived behind the end of the handshake. Our last output may still be unwritten.
    leftover: Vec<u8>,
    /// Maximum number of bytes that the peer may send until it is admitted, and the number it has
    /// sent.
    pub(super) most: u64,
    received_bytes: u64,
}

/// Result of a read.
pub(super) enum ReadStep {
    /// There may be more to read.
    More,
    /// All bytes that had arrived are read.
    Drained,
    /// The peer has sent more bytes than a peer may send before it is admitted.
    Beyond,
}

/// A carrier and the bytes on both sides of it.
struct Carriage {
    carrier: Box<dyn Carrier>,
    /// Bytes for the stream, and the number of them that are written.
    out: Vec<u8>,
    written: usize,
    /// ZMTP bytes that arrived behind the handshake.
    early: Vec<u8>,
}

impl Handshake {
    /// Starts a handshake on a stream whose registration has the interest `armed`.
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
            fresh: true,
            leftover: Vec::new(),
            most: u64::MAX,
            received_bytes: 0,
        }
    }

    /// Counts `bytes` more bytes from the peer. Returns true if the peer exceeds its limit.
    fn exceeds_limit_with(&mut self, bytes: usize) -> bool {
        self.received_bytes += bytes as u64;
        self.received_bytes > self.most
    }

    /// True if the peer has not sent a byte yet.
    pub(super) fn is_silent(&self) -> bool {
        self.received_bytes == 0
    }

    /// The bytes to write to the stream now.
    pub(super) fn output(&mut self) -> &[u8] {
        let Some(Carriage { carrier, out, written, .. }) = self.carriage.as_deref_mut() else {
            return self.session.output();
        };
        let zmtp = self.session.output();
        let length = zmtp.len();
        // Call `seal` even if `zmtp` is empty: the carrier may have bytes to send itself.
        carrier.seal(zmtp, out);
        self.session.advance_output(length);
        &out[*written..]
    }

    /// Writes the output to the stream until the stream is full.
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

    /// Reads once from the stream, and takes the bytes.
    pub(super) fn read(&mut self, stream: &Stream) -> Result<ReadStep, Loss> {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer) {
            Ok(0) => Err(Loss::Stream(errno::EPIPE)),
            // As in libzmq: the peer was refused and must not send more.
            Ok(_) if self.refused => Err(Loss::Stream(errno::EPROTO)),
            Ok(n) if self.exceeds_limit_with(n) => Ok(ReadStep::Beyond),
            Ok(n) => match self.input(&buffer[..n]) {
                Ok(()) if n < buffer.len() => Ok(ReadStep::Drained),
                Ok(()) => Ok(ReadStep::More),
                Err(error) => {
                    // Sends the ERROR command with the reason to the peer, if the protocol has such
                    // a command.
                    let _ = self.write(stream);
                    Err(Loss::Protocol(error))
                }
            },
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(ReadStep::Drained),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(ReadStep::More),
            Err(error) => Err(Loss::Stream(errno::of(&error).unwrap_or(0))),
        }
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

    /// Takes bytes from the stream. Bytes behind the end of the handshake are kept.
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

    /// True if a carrier (WebSocket, TLS) wraps ZMTP.
    pub(super) fn is_carried(&self) -> bool {
        self.carriage.is_some()
    }

    /// True if the peer has closed the carrier.
    pub(super) fn has_ended(&self) -> bool {
        self.carriage.as_ref().is_some_and(|carriage| carriage.carrier.is_closed())
    }

    /// Takes the bytes that arrived behind the handshake.
    pub(super) fn take_leftover(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.leftover)
    }

    /// Returns the result once, when the handshake is complete.
    pub(super) fn take_established(&mut self) -> Option<Established> {
        let established = self.session.take_established()?;
        Some(match self.carriage.take().map(|carriage| *carriage) {
            None => established,
            Some(Carriage { carrier, early, .. }) => {
                self.shown = carrier.peer_certificates().map(Box::new);
                with_carrier(carrier, established, early)
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
    fn bytes_after_handshake_are_kept_until_output_is_written() {
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
        assert!(handshake.take_established().is_some());
        assert_eq!((handshake.take_leftover(), handshake.take_leftover()), (message.to_vec(), Vec::new()));
    }
}
