//! Checks of the owner beside the messages themselves: input of peers before the next messages are
//! sent, and each part of a message while a tool taps the socket.

use tautline_timing::RARE_INTERVAL;

/// Flag in `SendChecks::reads_due`: each part is checked.
const TAPPED: u32 = 1 << 31;

/// The checks that are enabled.
pub(crate) struct SendChecks {
    /// Number of messages before which the owner still reads the input of peers.
    reads_due: u32,
}

impl SendChecks {
    /// Returns a state without checks.
    pub(super) fn new() -> Self {
        SendChecks { reads_due: 0 }
    }

    /// Called when a peer has come that is about to send its subscriptions. The owner reads the
    /// available input itself before it sends the next messages. The input may still be in the
    /// kernel, waiting for an I/O thread that has no processor yet, when the owner is given a
    /// message that the peer sent later.
    pub(crate) fn expect_input(&mut self) {
        self.reads_due = (self.reads_due & TAPPED) | RARE_INTERVAL;
    }

    /// True if the owner reads input before it sends messages, or if each part is checked.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.reads_due > 0
    }

    /// Returns true if the owner must read input before this message, and counts the message.
    pub(crate) fn take_due_read(&mut self) -> bool {
        let listens = self.reads_due & !TAPPED > 0;
        self.reads_due -= u32::from(listens);
        listens
    }

    /// True if each part is checked.
    pub(super) fn is_tapped(&self) -> bool {
        self.reads_due & TAPPED != 0
    }

    /// Enables or disables the check of each part. While it is enabled, `is_enabled` is always
    /// true.
    pub(super) fn set_tapped(&mut self, tapped: bool) {
        self.reads_due = (self.reads_due & !TAPPED) | if tapped { TAPPED } else { 0 };
    }
}
