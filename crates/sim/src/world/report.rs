//! Output of a simulation: its hash, its trace, and its failure.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use super::{CURRENT_TID, NOW, POINTS, World, with};
use crate::raw;

/// Returns the number of system calls.
pub(crate) fn calls() -> u64 {
    with(|world| world.calls).unwrap_or_default()
}

impl World {
    pub(super) fn note(&mut self, what: u64) {
        self.hash =
            (self.hash ^ what ^ NOW.load(Relaxed).rotate_left(20)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// Adds a call and its result to the trace.
    pub(crate) fn tell(&mut self, result: i64, text: impl FnOnce() -> String) {
        self.note(u64::from(CURRENT_TID.get()) << 40 ^ result as u64);
        if self.trace {
            self.say(&text());
        }
    }

    /// Prints a line of the trace, if enabled.
    pub(crate) fn say(&mut self, text: &str) {
        if self.trace {
            let me = CURRENT_TID.get();
            let now = NOW.load(Relaxed);
            let line = format!("{:>14.3} us  {:<18} {text}\n", now as f64 / 1e3, self.thread(me).name);
            raw::write_all(2, line.as_bytes());
        }
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "hash {:016x} virtual {:.6} s, {} switches, {} calls, {} points, {} faults",
            self.hash,
            NOW.load(Relaxed) as f64 / 1e9,
            self.switches,
            self.calls,
            POINTS.load(Relaxed),
            self.kernel.injected
        )
    }

    /// Reports a failure and ends the simulation.
    pub(crate) fn fail(&mut self, code: i32, why: &str) -> ! {
        let mut text = format!("FAILED: {why}\n");
        for (at, thread) in self.threads.iter().enumerate() {
            let _ = writeln!(text, "  thread {} {}: {:?}", at + 1, thread.name, thread.state);
        }
        for line in self.kernel.describe() {
            let _ = writeln!(text, "  {line}");
        }
        let _ = writeln!(text, "  workload {}, {}", self.workload, self.summary());
        raw::write_all(2, text.as_bytes());
        raw::exit(code)
    }
}
