//! Progress of the run, and an estimate of the remaining time: one line rewritten on a terminal, plain lines
//! elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Compares expected with real seconds, so that a slow machine stretches the estimate.
pub(crate) struct Progress {
    began: Instant,
    expected: Duration,
    done: Duration,
    terminal: bool,
    /// Time of the last printed line, if the output is not a terminal.
    printed: Option<Instant>,
}

impl Progress {
    pub(crate) fn new(expected: Duration) -> Self {
        let progress = Self {
            began: Instant::now(),
            expected,
            done: Duration::ZERO,
            terminal: std::io::stdout().is_terminal(),
            printed: None,
        };
        println!("about {} to go", clock(expected));
        progress
    }

    /// Marks `share` of the expected time as done.
    pub(crate) fn advance(&mut self, share: Duration) {
        self.done += share;
    }

    /// Replaces the estimate of the remaining time.
    pub(crate) fn expect_more(&mut self, left: Duration) {
        self.expected = self.done + left;
    }

    /// Reduces the expected work: a peer dropped out of a cell.
    pub(crate) fn shrink(&mut self, share: Duration) {
        self.expected = self.expected.saturating_sub(share).max(self.done);
    }

    /// Shows that `what` was done. If the output is not a terminal, at most one line every five seconds.
    pub(crate) fn show(&mut self, what: &str) {
        let now = Instant::now();
        if !self.terminal && self.printed.is_some_and(|at| now - at < Duration::from_secs(5)) {
            return;
        }
        self.printed = Some(now);
        let left = self.expected.saturating_sub(self.done);
        let pace = if self.done > Duration::from_secs(2) {
            (now - self.began).as_secs_f64() / self.done.as_secs_f64()
        } else {
            1.0
        };
        let left = left.mul_f64(pace);
        let percent = 100.0 * self.done.as_secs_f64() / self.expected.as_secs_f64().max(1e-9);
        let line = format!("[{percent:3.0} %, {} left] {what}", clock(left));
        if self.terminal {
            let cut: String = line.chars().take(110).collect();
            print!("\r\x1b[K{cut}");
            let _ = std::io::stdout().flush();
        } else {
            println!("{line}");
        }
    }

    /// Prints a line that stays on the screen.
    pub(crate) fn note(&self, text: &str) {
        if self.terminal {
            print!("\r\x1b[K");
        }
        println!("{text}");
    }

    pub(crate) fn finish(&self) -> Duration {
        let took = self.began.elapsed();
        self.note(&format!("done in {}", clock(took)));
        took
    }
}

/// Formats a time: `1:05`, or `40 s` under a minute.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    if seconds < 60 { format!("{seconds} s") } else { format!("{}:{:02}", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_reads_like_one() {
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
        assert_eq!(clock(Duration::from_millis(9600)), "10 s");
    }
}
