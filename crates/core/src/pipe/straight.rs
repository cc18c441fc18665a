//! The straight way: messages that go to one pipe, or come from one, with nothing for the pattern to decide.
//!
//! Most sockets have one peer. A pattern that has just sent or received something can say that what comes next goes the same way, if it
//! is the last part of a message; the socket then takes it there without asking. That holds until anything else happens: a pipe comes or
//! goes, news or an option come in, a part with more to follow, or one that the pipe has no room for. Then the pattern is asked, and says
//! so again or not. What a pattern must know of a message that ends this way therefore stands here: whether one has been begun, and
//! where it goes.

use super::{Part, Pipe, PipeId, Pipes, Received, Target};

/// The name of no pipe.
const NOBODY: PipeId = PipeId(u32::MAX);
/// Where parts go that are dropped.
const NOWHERE: PipeId = PipeId(u32::MAX - 1);

/// The pipes that are sent to and received from straight.
pub(super) struct Straight {
    out: PipeId,
    incoming: PipeId,
    /// The destination of a message of which some parts were sent.
    begun: PipeId,
    /// What the pipe that is sent to has to say comes first.
    listens: bool,
}

impl Default for Straight {
    fn default() -> Self {
        Straight { out: NOBODY, incoming: NOBODY, begun: NOBODY, listens: false }
    }
}

impl Pipes {
    /// For a pattern that is sending: the next part goes to this pipe and nowhere else, if it is the last one of its message and there is
    /// room for sure, and there is nothing to do for it but to send it.
    #[inline]
    pub(crate) fn send_straight_to(&mut self, pipe: Option<PipeId>) {
        self.straight.out = pipe.unwrap_or(NOBODY);
        self.straight.listens = false;
    }

    /// The same, unless something has come from this pipe.
    #[inline]
    pub(crate) fn send_straight_while_silent(&mut self, pipe: PipeId) {
        self.straight.out = pipe;
        self.straight.listens = true;
    }

    /// For a pattern that is receiving: the next part is the next one of this pipe, if one is there, it is the last one of its message, and
    /// no news have come of another pipe; and there is nothing to do for it but to receive it.
    #[inline]
    pub(crate) fn receive_straight_from(&mut self, pipe: Option<PipeId>) {
        self.straight.incoming = pipe.unwrap_or(NOBODY);
    }

    /// The pattern must be asked what the next part to be sent means.
    #[inline(always)]
    pub(crate) fn ask_where_to(&mut self) {
        self.straight.out = NOBODY;
    }

    /// The pattern must be asked for the next part to be received.
    #[inline(always)]
    pub(crate) fn ask_where_from(&mut self) {
        self.straight.incoming = NOBODY;
    }

    /// The pattern must be asked in any case.
    pub(crate) fn ask(&mut self) {
        self.ask_where_to();
        self.ask_where_from();
    }

    /// A message has been begun whose other parts go to this pipe; `None`: they are dropped.
    #[inline]
    pub(crate) fn begin(&mut self, to: Option<PipeId>) {
        self.straight.begun = to.unwrap_or(NOWHERE);
    }

    /// Where the other parts of the begun message go, if one has been begun.
    #[inline]
    pub(crate) fn begun(&self) -> Option<Option<PipeId>> {
        match self.straight.begun {
            NOBODY => None,
            NOWHERE => Some(None),
            id => Some(Some(id)),
        }
    }

    /// The begun message has come to its end.
    #[inline]
    pub(crate) fn finish(&mut self) {
        self.straight.begun = NOBODY;
    }

    /// The pipe that the last part of a message goes to, if the pattern need not be asked and there is room.
    #[inline(always)]
    fn straight_out(&mut self) -> Option<&mut Pipe> {
        let pipe = self.slots.get_mut(self.straight.out.0 as usize)?.as_mut()?;
        (pipe.has_room_for_sure() && !(self.straight.listens && pipe.sees_more())).then_some(pipe)
    }

    /// Something was sent straight.
    #[inline(always)]
    fn sent_straight(&mut self) {
        if self.straight.begun != NOBODY {
            self.finish();
            self.ask_where_to();
        }
    }

    /// Sends the last part of a message, a short one as a rule, if the pattern need not be asked and there is room.
    #[inline(always)]
    pub(crate) fn send_straight_short(&mut self, bytes: &[u8], patient: bool) -> bool {
        let sent = self.straight_out().is_some_and(|pipe| pipe.send_short(bytes, patient));
        if sent {
            self.sent_straight();
        }
        sent
    }

    /// The same for any part.
    pub(crate) fn send_straight(&mut self, part: &mut Part<'_>) -> bool {
        if part.more {
            return false;
        }
        let Some(pipe) = self.straight_out() else { return false };
        pipe.send(part);
        self.sent_straight();
        true
    }

    /// Receives the last part of a message, if the pattern need not be asked and it is at hand.
    #[inline(always)]
    pub(crate) fn receive_straight(&mut self, target: &mut Target<'_>) -> Option<Received> {
        let pipe = self.slots.get_mut(self.straight.incoming.0 as usize)?.as_mut()?;
        let received = pipe.recv_last(target)?;
        if self.receiving {
            self.receiving = false;
            self.ask_where_from();
        }
        Some(received)
    }
}
