//! The NULL mechanism: both ends send one READY command with their metadata (RFC 37).

use super::{Entry, Mechanism};
use crate::command::put_frame;
use crate::error::{Clause, ProtocolError};
use crate::metadata::Metadata;

pub(super) static ENTRY: Entry =
    Entry { name: "NULL", has_roles: false, allows_older_peers: true, start: |_| Box::new(Null) };

struct Null;

impl Mechanism for Null {
    fn begin(&mut self, metadata: Vec<u8>, out: &mut Vec<u8>) {
        put_frame(out, b"\x05READY", &[&metadata]);
    }

    fn receive(
        &mut self,
        name: &[u8],
        data: &[u8],
        _out: &mut Vec<u8>,
    ) -> Result<Option<Metadata>, ProtocolError> {
        match name {
            b"READY" => Metadata::collect(data).map(Some),
            _ => Err(Clause::UnexpectedCommand.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::put_property;

    #[test]
    fn golden_ready() {
        let mut list = Vec::new();
        put_property(&mut list, "Socket-Type", b"DEALER");
        put_property(&mut list, "Identity", b"");
        let mut out = Vec::new();
        Null.begin(list, &mut out);
        // The worked example of RFC 37.
        assert_eq!(out, b"\x04\x29\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0");
    }

    #[test]
    fn takes_ready_only() {
        let mut out = Vec::new();
        assert_eq!(Null.receive(b"READY", b"", &mut out), Ok(Some(Metadata::default())));
        for name in [&b"HELLO"[..], b"PING", b"SUBSCRIBE", b"ready"] {
            assert_eq!(Null.receive(name, b"", &mut out), Err(Clause::UnexpectedCommand.into()));
        }
        assert!(out.is_empty());
    }
}
