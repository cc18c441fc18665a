//! The pace of a sender: either a clock sets it, or the sender's own work.
//!
//! A program that sends by a clock makes up for the time of a write: the longer the write, the
//! sooner the next message. A program that sends as fast as it can loses the time of the write: it
//! needs the same time for its next message, however long the write took.
//!
//! We measure two times to the next message: from the end of the write, and from its start. The
//! time that varies less shows which kind of sender it is. If both vary, the kind is unknown.

/// Returns the mean after one more value, which weighs an eighth. The result is rounded up.
/// Otherwise an integer mean of a few ticks would never grow, because each value counts for at most
/// twice the mean.
pub(super) fn weigh(mean: u64, value: u64) -> u64 {
    (mean * 7 + uninterrupted(mean, value)).div_ceil(8)
}

/// Limits a value to twice the mean. A longer time was interrupted.
fn uninterrupted(mean: u64, value: u64) -> u64 {
    if mean == 0 { value } else { value.min(mean * 2) }
}

/// A mean and the mean deviation from it. Each new value weighs an eighth.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    value: u64,
    deviation: u64,
}

impl Mean {
    fn note(&mut self, value: u64) {
        let distance = uninterrupted(self.value, value).abs_diff(self.value);
        self.deviation = (self.deviation * 7 + distance) / 8;
        self.value = weigh(self.value, value);
    }
}

/// Measured pace of one pipe's sender, in clock ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// Time from the end of a write to the first message after it.
    lead: Mean,
    /// Time from the start of a write to the first message after it.
    cycle: Mean,
}

impl Pace {
    /// Notes that the first message came `lead` ticks after the end of a write that took `took`.
    pub(super) fn note(&mut self, lead: u64, took: u64) {
        self.lead.note(lead);
        self.cycle.note(lead + took);
    }

    /// True if the sender's own work sets its pace: queuing a message does not delay the ones after
    /// it. Its messages are `interval` apart.
    pub(super) fn is_set_by_work(&self, interval: u64) -> bool {
        self.lead.deviation * 2 < self.cycle.deviation && self.lead.value * 4 >= interval * 3
    }
}
