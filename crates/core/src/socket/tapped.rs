//! A socket that a tool has tapped: each part takes the way by the pattern, where the owner looks
//! at it. Nothing of this is done, or asked for, on a socket without a tap.

use super::Socket;
use crate::error::Error;
use crate::pipe::{Part, Received, Route, Target};
use crate::sync::Arc;
use crate::watch::{Seen, Tap};
use tautline_observe::tap::Direction;

/// The taps, and the messages that are under way.
pub(super) struct Tapped {
    taps: Vec<Arc<Tap>>,
    /// Most bytes of a part that one of them looks at.
    most: u64,
    sent: Seen,
    /// The part that is being sent is the last one.
    sent_whole: bool,
    received: Seen,
}

impl Socket {
    /// Taps have come or gone.
    #[cold]
    pub(super) fn look_for_taps(&mut self) {
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
                let (sent, received) = (Seen::default(), Seen::default());
                self.tapped = Some(Box::new(Tapped { taps, most, sent, sent_whole: false, received }));
            }
        }
    }

    /// A part is about to be sent.
    pub(super) fn look_at_sent(&mut self, part: &Part<'_>) {
        if let Some(tapped) = &mut self.tapped {
            let bytes = part.bytes();
            tapped.sent.add(bytes.len(), bytes, tapped.most);
            tapped.sent_whole = !part.more;
            // What was done before is of another message.
            self.pipes.take_asked();
        }
    }

    /// It was sent, or was not: ends the pipes that the pattern wants to end, and shows the part
    /// with its peer, if it went to one alone. Apart, so that it costs others no registers.
    #[cold]
    #[inline(never)]
    pub(super) fn tidy_up_sent(&mut self, sent: bool) {
        let to = self.pipes.take_asked();
        self.close_refused();
        let to = to.filter(|_| !self.pipes.options.facts().sends_to_all);
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

    /// A part was received, or was not: the same, and forgets pipes that are read to their end.
    #[cold]
    #[inline(never)]
    pub(super) fn tidy_up_received(
        &mut self,
        target: &Target<'_>,
        result: &Result<(Received, Route), Error>,
    ) {
        let from = self.pipes.take_asked();
        self.close_refused();
        self.detach_ended();
        // The caller that reads the last of what a peer has left learns of its end at once.
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
