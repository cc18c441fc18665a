//! The stage for peers of ZMTP 2.0 (RFC 15) and, on publish-subscribe sockets, 3.0 (RFC 23).
//!
//! The frames are those of 3.1, except that subscriptions are messages. 2.0 has no commands: we
//! send no commands to a 2.0 peer, and the flag of a received one is a reserved flag. To a 3.0 peer
//! commands pass, PING and PONG included: RFC 23 lets a peer ignore unknown commands, and many
//! implementations that announce 3.0 have heartbeats.

use super::Stage;
use super::rewrite::{Head, Rewriter};
use super::subscription::{open_head, seal_head};
use crate::error::{ProtocolError, Violation};
use crate::frame::{COMMAND, append_header, decode_header};
use crate::socket_type::SocketType;

pub(super) fn v2(ours: SocketType) -> Box<dyn Stage> {
    Box::new(V2::new(ours, false))
}

pub(super) fn v3_0(ours: SocketType) -> Box<dyn Stage> {
    Box::new(V2::new(ours, true))
}

struct V2 {
    seal: Rewriter,
    open: Rewriter,
    commands: bool,
    takes_subscriptions: bool,
    /// True if the previous frame announced this one.
    inside_message: bool,
}

impl V2 {
    fn new(ours: SocketType, commands: bool) -> Self {
        Self {
            seal: Rewriter::default(),
            open: Rewriter::default(),
            commands,
            takes_subscriptions: ours.takes_subscriptions(),
            inside_message: false,
        }
    }
}

impl Stage for V2 {
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        let commands = self.commands;
        if self.seal.push(plain, out, |bytes, out| seal_head(bytes, out, commands, append_header)).is_err() {
            self.seal.discard();
        }
    }

    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let Self { open, commands, takes_subscriptions, inside_message, .. } = self;
        open.push(wire, out, |bytes, out| {
            if !*commands && bytes.first().is_some_and(|flags| flags & COMMAND != 0) {
                return Err(Violation::ReservedFlags.into());
            }
            let Some(header) = decode_header(bytes)? else { return Ok(Head::Short) };
            if header.is_command() {
                append_header(out, COMMAND, header.body_len);
                return Ok(Head::Frame { consumed: header.header_len, body: header.body_len, keep: true });
            }
            let head = open_head(&header, bytes, out, *takes_subscriptions && !*inside_message)?;
            if let Head::Frame { .. } = head {
                *inside_message = header.more();
            }
            Ok(head)
        })
    }

    fn buffered(&self) -> usize {
        self.seal.buffered() + self.open.buffered()
    }
}
