//! The NULL mechanism: both ends send one READY command with their metadata (RFC 37).
//!
//! Each end may first have the other judged by its address (RFC 27). Until then it does not send
//! READY.

use super::{Mechanism, MechanismInfo, Progress};
use crate::command::put_frame;
use crate::error::{ProtocolError, Violation};
use crate::metadata::Metadata;
use crate::zap::Credentials;

pub(super) static ENTRY: MechanismInfo = MechanismInfo {
    name: "NULL",
    as_server: false,
    allows_older_peers: true,
    start: |_| Box::new(Null::default()),
};

#[derive(Default)]
struct Null {
    /// Our metadata, until it is sent.
    ours: Option<Vec<u8>>,
    /// The peer's metadata, if it arrives before we may answer.
    theirs: Option<Box<Metadata>>,
    heard: bool,
}

impl Mechanism for Null {
    fn begin(&mut self, metadata: Vec<u8>, _out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        self.ours = Some(metadata);
        Ok(Progress::Judge(Credentials { mechanism: "NULL", frames: Vec::new() }))
    }

    fn receive(&mut self, name: &[u8], data: &[u8], _out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        if name != b"READY" || self.heard {
            return Err(Violation::UnexpectedCommand.into());
        }
        self.heard = true;
        let metadata = Metadata::collect(data)?;
        if self.ours.is_none() {
            return Ok(Progress::Complete(metadata));
        }
        self.theirs = Some(Box::new(metadata));
        Ok(Progress::Pending)
    }

    fn admit(&mut self, out: &mut Vec<u8>) -> Result<Progress, ProtocolError> {
        if let Some(metadata) = self.ours.take() {
            put_frame(out, b"\x05READY", &[&metadata]);
        }
        Ok(self.theirs.take().map_or(Progress::Pending, |metadata| Progress::Complete(*metadata)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::put_property;

    fn begun() -> Null {
        let mut null = Null::default();
        let mut list = Vec::new();
        put_property(&mut list, "Socket-Type", b"DEALER");
        put_property(&mut list, "Identity", b"");
        let mut out = Vec::new();
        assert!(matches!(null.begin(list, &mut out), Ok(Progress::Judge(_))));
        assert!(out.is_empty(), "nothing is said before the judgement");
        null
    }

    // This is the worked example of RFC 37.
    const READY: &[u8] = b"\x04\x29\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0";

    #[test]
    fn golden_ready() {
        let mut out = Vec::new();
        let mut null = begun();
        assert!(matches!(null.admit(&mut out), Ok(Progress::Pending)));
        assert_eq!(out, READY);
        let complete = null.receive(b"READY", b"", &mut out);
        assert!(matches!(complete, Ok(Progress::Complete(metadata)) if metadata == Metadata::default()));
        assert_eq!(out, READY);
    }

    #[test]
    fn the_peer_may_be_quicker_than_the_judgement() {
        let (mut out, mut null) = (Vec::new(), begun());
        assert!(matches!(null.receive(b"READY", &READY[8..], &mut out), Ok(Progress::Pending)));
        assert!(out.is_empty());
        let again = null.receive(b"READY", b"", &mut out);
        assert_eq!(again.unwrap_err(), Violation::UnexpectedCommand.into());
        assert!(matches!(null.admit(&mut out), Ok(Progress::Complete(metadata)) if metadata.0.len() == 2));
        assert_eq!(out, READY);
    }

    #[test]
    fn takes_ready_only() {
        for name in [&b"HELLO"[..], b"PING", b"SUBSCRIBE", b"ready"] {
            let (mut out, mut null) = (Vec::new(), begun());
            let refused = null.receive(name, b"", &mut out);
            assert_eq!(refused.unwrap_err(), Violation::UnexpectedCommand.into());
            assert!(out.is_empty());
        }
    }
}
