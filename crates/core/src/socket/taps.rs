//! A socket with a tap: no part goes by a route, so each part goes through the pattern. The pattern
//! returns the peer of the part.

use super::{Flags, Socket};
use crate::error::Error;
use crate::pattern::{Received, Sent};
use crate::pipe::{Part, Target};
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

    /// Sends a part by the pattern, and offers the message to the taps after its last part. The
    /// part may be empty after it was sent, so it is copied before.
    #[cold]
    #[inline(never)]
    pub(super) fn send_tapped(&mut self, part: &mut Part<'_>, flags: Flags) -> Result<Sent, Error> {
        if let Some(tapped) = &mut self.tapped {
            let bytes = part.bytes();
            for one in &mut tapped.taps {
                one.sent.add(bytes.len(), bytes, one.tap.most());
            }
            tapped.sent_whole = !part.more;
        }
        let result = self.send_by_pattern(part, flags);
        self.pattern.routes.end();
        let (Some(tapped), Some(watch)) = (&mut self.tapped, &self.watch) else { return result };
        for one in &mut tapped.taps {
            let Ok(sent) = &result else {
                one.sent.undo();
                continue;
            };
            one.sent.with(sent.to);
            if tapped.sent_whole && !one.sent.is_empty() {
                one.tap.offer(watch.id(), Direction::Out, &one.sent);
                one.sent.clear();
            }
        }
        result
    }

    /// Offers a received message to the taps after its last part.
    #[cold]
    #[inline(never)]
    pub(super) fn offer_received(&mut self, target: &Target<'_>, result: &Result<Received, Error>) {
        self.pattern.routes.end();
        let (Some(tapped), Some(watch)) = (&mut self.tapped, &self.watch) else { return };
        let Ok(received) = result else { return };
        let bytes = match target {
            Target::Buffer(buffer) => &buffer[..received.len.min(buffer.len())],
            Target::Message(message) => message.as_slice(),
        };
        for one in &mut tapped.taps {
            one.received.add(received.len, bytes, one.tap.most());
            one.received.with(received.from);
            if !received.more {
                one.tap.offer(watch.id(), Direction::In, &one.received);
                one.received.clear();
            }
        }
    }
}
