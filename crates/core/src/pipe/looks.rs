//! What the owner looks at beside the messages themselves: what peers have to say before the next
//! ones are sent, and each part of a message where a tool taps the socket.

use crate::timing::SELDOM;

/// In `Looks::before`: each part is looked at.
const TAPPED: u32 = 1 << 31;

/// What is looked at.
pub(crate) struct Looks {
    /// Before how many more messages the owner listens to what peers have to say.
    before: u32,
}

impl Looks {
    /// At nothing.
    pub(super) fn new() -> Self {
        Looks { before: 0 }
    }

    /// A peer has come that is about to say what it wants: the next messages are not sent before
    /// the owner itself has looked at what is there. It may lie in the kernel, with an I/O thread
    /// to read it that has no processor yet, when the owner is given a message that the peer sent
    /// after it.
    pub(crate) fn listen(&mut self) {
        self.before = (self.before & TAPPED) | SELDOM;
    }

    /// Whether the owner listens before messages are sent, or has them looked at.
    #[inline]
    pub(crate) fn listens(&self) -> bool {
        self.before > 0
    }

    /// Whether it is to listen before this message.
    pub(crate) fn listened(&mut self) -> bool {
        let listens = self.before & !TAPPED > 0;
        self.before -= u32::from(listens);
        listens
    }

    /// Whether each part is looked at.
    pub(super) fn is_tapped(&self) -> bool {
        self.before & TAPPED != 0
    }

    /// From now on each part is looked at, or not any more: `listens` is always true then.
    pub(super) fn set_tapped(&mut self, tapped: bool) {
        self.before = (self.before & !TAPPED) | if tapped { TAPPED } else { 0 };
    }
}
