//! A socket with a tap: each part goes through the pattern, where the owner inspects it. A socket
//! without a tap has no extra work.

use super::Socket;
use crate::error::Error;
use crate::pipe::{Part, Received, Route, Target};
use crate::watch::{Tap, TappedMessage};
use tautline_observe::tap::Direction;
use tautline_queue::sync::Arc;

/// The taps of a socket.
#[derive(Default)]
pub(super) struct TapState {
    taps: Vec<AttachedTap>,
    /// True if the part being sent is the last one.
    sent_whole: bool,
}

/// A tap, and its copies of the messages in progress. Each tap has its own copies, because the taps
/// want different numbers of bytes.
struct AttachedTap {
    tap: Arc<Tap>,
    sent: TappedMessage,
    received: TappedMessage,
}

impl Socket {
    /// Updates the list of taps after a tap was added or removed.
    #[cold]
    pub(super) fn update_taps(&mut self) {
        let taps = self.watch.as_ref().map(|watch| watch.taps()).unwrap_or_default();
        self.pipes.set_tapped(!taps.is_empty());
        self.pattern.routes.end();
        if taps.is_empty() {
            self.tapped = None;
            return;
        }
        let tapped = self.tapped.get_or_insert_default();
        tapped.taps.retain(|one| taps.iter().any(|tap| Arc::ptr_eq(tap, &one.tap)));
        for tap in taps {
            if !tapped.taps.iter().any(|one| Arc::ptr_eq(&tap, &one.tap)) {
                let (sent, received) = (TappedMessage::default(), TappedMessage::default());
                tapped.taps.push(AttachedTap { tap, sent, received });
            }
        }
    }

    /// Inspects a part that is about to be sent.
    pub(super) fn inspect_sent(&mut self, part: &Part<'_>) {
        if let Some(tapped) = &mut self.tapped {
            let bytes = part.bytes();
            for one in &mut tapped.taps {
                one.sent.add(bytes.len(), bytes, one.tap.most());
            }
            tapped.sent_whole = !part.more;
            // An earlier entry belongs to another message.
            self.pipes.take_last_accessed();
        }
    }

    /// Finishes a send, successful or not: ends the pipes that the pattern has closed. Shows the
    /// part with its peer, if it went to one peer only. A separate function, so that an untapped
    /// send needs no registers for it.
    #[cold]
    #[inline(never)]
    pub(super) fn finish_send(&mut self, sent: bool) {
        let to = self.pipes.take_last_accessed();
        self.remove_closed_pipes();
        let to = to.filter(|_| !self.pipes.options.type_info().is_fan_out);
        let (Some(tapped), Some(watch)) = (&mut self.tapped, &self.watch) else { return };
        self.pattern.routes.end();
        for one in &mut tapped.taps {
            if !sent {
                one.sent.undo();
                continue;
            }
            one.sent.with(to);
            if tapped.sent_whole && !one.sent.is_empty() {
                one.tap.offer(watch.id(), Direction::Out, &one.sent);
                one.sent.clear();
            }
        }
    }

    /// Finishes a receive, successful or not: does the same, and removes pipes that are read to
    /// their end.
    #[cold]
    #[inline(never)]
    pub(super) fn finish_recv(&mut self, target: &Target<'_>, result: &Result<(Received, Route), Error>) {
        let from = self.pipes.take_last_accessed();
        self.remove_closed_pipes();
        self.detach_ended();
        // The caller that reads a peer's last message learns of its end at once.
        self.pattern.routes.end();
        let (Some(tapped), Some(watch)) = (&mut self.tapped, &self.watch) else { return };
        let Ok((Received { len, more }, _)) = result else { return };
        let bytes = match target {
            Target::Buffer(buffer) => &buffer[..(*len).min(buffer.len())],
            Target::Message(message) => message.as_slice(),
        };
        for one in &mut tapped.taps {
            one.received.add(*len, bytes, one.tap.most());
            one.received.with(from);
            if !more {
                one.tap.offer(watch.id(), Direction::In, &one.received);
                one.received.clear();
            }
        }
    }
}
