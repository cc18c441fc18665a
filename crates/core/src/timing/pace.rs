//! What sets the pace of a sender: a clock, or its own work.
//!
//! A program that sends when a clock says so makes up for the time that a write took: the longer
//! the write, the sooner its next message. One that sends as fast as it can needs as long for the
//! next message whatever the write took, and the time of the write is lost to it. So of the two,
//! the time from the write to the next message, and the same with the write, the one that varies
//! less tells which it is. Where both vary, nothing is known.

/// A mean with one more value, which weighs an eighth. Rounded up: in whole numbers a mean of a few
/// ticks would never grow, as each value counts for twice the mean at most.
pub(super) fn weigh(mean: u64, value: u64) -> u64 {
    (mean * 7 + uninterrupted(mean, value)).div_ceil(8)
}

/// What takes more than twice as long as usual was interrupted.
fn uninterrupted(mean: u64, value: u64) -> u64 {
    if mean == 0 { value } else { value.min(mean * 2) }
}

/// A mean and the mean deviation from it, each new value weighing an eighth.
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

/// What is known of the pace of one pipe's sender, in clock ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// From the end of a write to the first message after it.
    lead: Mean,
    /// From its beginning.
    cycle: Mean,
}

impl Pace {
    /// The first message after a write that took `took` has come `lead` after its end.
    pub(super) fn note(&mut self, lead: u64, took: u64) {
        self.lead.note(lead);
        self.cycle.note(lead + took);
    }

    /// Whether the sender's own work sets its pace: nothing is sent later if a message waits. Its
    /// messages are `interval` apart.
    pub(super) fn is_set_by_work(&self, interval: u64) -> bool {
        self.lead.deviation * 2 < self.cycle.deviation && self.lead.value * 4 >= interval * 3
    }
}
