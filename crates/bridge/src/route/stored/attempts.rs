//! Attempts to publish one message: the delay before the next one, and when to give up. Pure state,
//! without I/O.

use std::time::Duration;

/// Delay before the second attempt. It doubles for each later attempt.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// Longest delay between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Limit of consecutive attempts without an answer, while the stream answers other messages. At
/// the limit, we assume that NATS does not forward the message, because the bridge may not publish
/// to its subject.
const UNHEARD: u32 = 3;

/// The attempts so far.
#[derive(Debug)]
pub struct Attempts {
    wait: Duration,
    unheard: u32,
}

impl Default for Attempts {
    fn default() -> Self {
        Attempts { wait: FIRST_WAIT, unheard: 0 }
    }
}

impl Attempts {
    /// Records a failed attempt. `is_unheard`: no answer came, while the stream answered other
    /// messages. Returns true if no further attempt helps.
    pub fn record_failure(&mut self, is_unheard: bool) -> bool {
        self.unheard = if is_unheard { self.unheard + 1 } else { 0 };
        self.unheard == UNHEARD
    }

    /// Returns the delay before the next attempt.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.wait;
        self.wait = (wait * 2).min(LONGEST_WAIT);
        wait
    }
}

#[cfg(test)]
mod tests {
    use tautline_testkit::XorShift;

    use super::*;

    #[test]
    fn random_attempts_agree_with_a_model() {
        for seed in 0..100 {
            let mut random = XorShift::new(seed);
            let mut attempts = Attempts::default();
            let mut unheard = Vec::new();
            let mut waited = Vec::new();
            loop {
                let is_unheard = random.one_in(2);
                unheard.push(is_unheard);
                let gives_up = unheard.len() >= 3 && unheard.iter().rev().take(3).all(|unheard| *unheard);
                assert_eq!(attempts.record_failure(is_unheard), gives_up, "seed {seed}: {unheard:?}");
                if gives_up {
                    break;
                }
                // While NATS is away, the route waits for the connection instead.
                if random.one_in(3) {
                    continue;
                }
                let wait = attempts.next_wait();
                let expected = (50 << waited.len().min(10)).min(2_000);
                assert_eq!(wait, Duration::from_millis(expected), "seed {seed}: after {waited:?}");
                waited.push(wait);
            }
        }
    }
}
