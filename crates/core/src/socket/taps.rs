//! A socket with a tap: each part goes through the pattern, where the owner inspects it. A socket
//! without a tap has no extra work.

use super::Socket;
use crate::error::Error;
use crate::pipe::{Part, Received, Route, Target};
use crate::sync::Arc;
use crate::watch::{Tap, TappedMessage};
use tautline_observe::tap::Direction;

/// The taps, and the messages in progress.
pub(super) struct TapState {
    taps: Vec<Arc<Tap>>,
    /// Maximum number of bytes of a part that a tap inspects.
    most: u64,
    sent: TappedMessage,
    /// True if the part being sent is the last one.
    sent_whole: bool,
    received: TappedMessage,
}

impl Socket {
    /// Updates the list of taps after a tap was added or removed.
    #[cold]
    pub(super) fn update_taps(&mut self) {
        let taps = self.watch.as_ref().map(|watch| watch.taps()).unwrap_or_default();
        let most = taps.iter().map(|tap| tap.most()).max();
        self.pipes.set_tapped(most.is_some());
        self.pattern.routes.end();
        let Some(most) = most else {
            self.tapped = None;
            return;
        };
        match &mut self.tapped {
            Some(tapped) => (tapped.taps, tapped.most) = (taps, most),
            None => {
                let (sent, received) = (TappedMessage::default(), TappedMessage::default());
                self.tapped = Some(Box::new(TapState { taps, most, sent, sent_whole: false, received }));
            }
        }
    }

    /// Inspects a part that is about to be sent.
    pub(super) fn inspect_sent(&mut self, part: &Part<'_>) {
        if let Some(tapped) = &mut self.tapped {
            let bytes = part.bytes();
            tapped.sent.add(bytes.len(), bytes, tapped.most);
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
        if !sent {
            tapped.sent.undo();
            return;
        }
        tapped.sent.with(to);
        if tapped.sent_whole && !tapped.sent.is_empty() {
            tapped.taps.iter().for_each(|tap| tap.offer(watch.id(), Direction::Out, &tapped.sent));
            tapped.sent.clear();
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
        tapped.received.add(*len, bytes, tapped.most);
        tapped.received.with(from);
        if !more {
            tapped.taps.iter().for_each(|tap| tap.offer(watch.id(), Direction::In, &tapped.received));
            tapped.received.clear();
        }
    }
}
