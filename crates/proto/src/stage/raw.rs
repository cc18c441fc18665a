//! The stage without a protocol, for STREAM sockets and for ROUTER sockets with ZMQ_ROUTER_RAW.
//!
//! Outward, only the bodies of messages go on the wire. Inward, each chunk that was read becomes a
//! message of one frame; the boundaries of chunks have no meaning.

use super::Stage;
use super::rewrite::{Head, Rewriter};
use crate::error::ProtocolError;
use crate::frame::{append_header, decode_header};

/// Returns the stage between plain 3.1 frames and a peer that does not speak ZMTP.
pub fn raw() -> Box<dyn Stage> {
    Box::new(Raw { seal: Rewriter::default() })
}

struct Raw {
    seal: Rewriter,
}

impl Stage for Raw {
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        let sealed = self.seal.push(plain, out, |bytes, _| {
            let Some(header) = decode_header(bytes)? else { return Ok(Head::Short) };
            let keep = !header.is_command();
            Ok(Head::Frame { consumed: header.header_len, body: header.body_len, keep })
        });
        if sealed.is_err() {
            self.seal.discard();
        }
    }

    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if !wire.is_empty() {
            append_header(out, 0, wire.len() as u64);
            out.extend_from_slice(wire);
        }
        Ok(())
    }

    fn buffered(&self) -> usize {
        self.seal.buffered()
    }
}
