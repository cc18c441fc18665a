//! A socket with a tap: no part goes by a route, so each part goes through the pattern. The pattern
//! returns the peer of the part. The report keeps the copies.

use super::{Flags, Socket};
use crate::error::Error;
use crate::host::TappedPart;
use crate::pattern::{Received, Sent};
use crate::pipe::{Part, PipeId, Target};

impl Socket {
    /// Updates the list of taps after a tap was added or removed.
    #[cold]
    pub(super) fn update_taps(&mut self) {
        self.pattern.routes.end();
        self.tapped = self.report().is_some_and(|report| report.update_taps());
    }

    /// Sends a part by the pattern, and offers it to the taps. The part may be empty after it was
    /// sent, so it is copied before.
    #[cold]
    #[inline(never)]
    pub(super) fn send_tapped(&mut self, part: &mut Part<'_>, flags: Flags) -> Result<Sent, Error> {
        let is_last = !part.more;
        if let Some(report) = self.report() {
            report.tap_sending(part.bytes());
        }
        let result = self.send_by_pattern(part, flags);
        self.pattern.routes.end();
        if let Some(report) = self.report() {
            report.tap_sent(result.as_ref().ok().map(|sent| tapped(sent.to, is_last)));
        }
        result
    }

    /// Offers a received part to the taps.
    #[cold]
    #[inline(never)]
    pub(super) fn offer_received(&mut self, target: &Target<'_>, result: &Result<Received, Error>) {
        self.pattern.routes.end();
        let (Some(report), Ok(received)) = (self.report(), result) else { return };
        let bytes = match target {
            Target::Buffer(buffer) => &buffer[..received.len.min(buffer.len())],
            Target::Message(message) => message.as_slice(),
        };
        report.tap_received(received.len, bytes, tapped(received.from, !received.more));
    }
}

fn tapped(peer: Option<PipeId>, is_last: bool) -> TappedPart {
    TappedPart { peer: peer.map(|id| id.0.into()), is_last }
}
