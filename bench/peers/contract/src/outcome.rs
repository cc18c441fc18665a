//! Result of a run: every message checked, and the line of JSON that reports it.

use crate::Run;
use std::time::Instant;

/// Sequence numbers that are not data, as in zmq-bench.
pub(crate) const HELLO: u64 = u64::MAX;
pub(crate) const FINISH: u64 = u64::MAX - 1;

fn tail_of(sequence: u64) -> u64 {
    sequence.wrapping_add(0x51ed_270b_2f1c_a3d5).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub(crate) fn stamp(body: &mut [u8], sequence: u64) {
    let end = body.len() - 8;
    body[..8].copy_from_slice(&sequence.to_le_bytes());
    body[end..].copy_from_slice(&tail_of(sequence).to_le_bytes());
}

/// Returns the sequence number of a whole message.
pub(crate) fn sequence_of(body: &[u8], size: usize) -> Option<u64> {
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
    if body.len() != size {
        return None;
    }
    let sequence = number(&body[..8])?;
    (number(&body[size - 8..])? == tail_of(sequence)).then_some(sequence)
}

/// Returns the processor time of the whole process.
pub(crate) fn cpu_seconds() -> f64 {
    use nix::sys::{resource, time::TimeVal};
    let seconds = |t: TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    match resource::getrusage(resource::UsageWho::RUSAGE_SELF) {
        Ok(usage) => seconds(usage.user_time()) + seconds(usage.system_time()),
        Err(_) => 0.0,
    }
}

/// Observations of one end, or of all of them together.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) messages: u64,
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
    pub(crate) corrupted: u64,
    /// Start and end of the measured part, and the processor time at each.
    pub(crate) began: Option<(Instant, f64)>,
    pub(crate) ended: Option<(Instant, f64)>,
    /// Start of a sender: processor time is counted from there.
    pub(crate) sending: Option<f64>,
    pub(crate) samples_ns: Vec<u64>,
    pub(crate) metrics: Vec<(&'static str, f64)>,
}

impl Outcome {
    pub(crate) fn begin(&mut self) {
        self.began = Some((Instant::now(), cpu_seconds()));
    }

    pub(crate) fn end(&mut self) {
        self.ended = Some((Instant::now(), cpu_seconds()));
    }

    pub(crate) fn take(&mut self, sequence: Option<u64>, expected: &mut u64) {
        match sequence {
            None => {
                self.corrupted += 1;
                *expected += 1;
            }
            Some(s) if s == *expected => *expected += 1,
            Some(s) if s > *expected => {
                self.lost += s - *expected;
                *expected = s + 1;
            }
            Some(_) => {
                self.reordered += 1;
                self.lost = self.lost.saturating_sub(1);
            }
        }
    }

    /// Combines both ends, or several streams: from the first start to the last end.
    pub(crate) fn add(mut self, other: Outcome) -> Outcome {
        self.messages += other.messages;
        self.lost += other.lost;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
        let earlier = |a: (Instant, f64), b: (Instant, f64)| if b.0 < a.0 { b } else { a };
        let later = |a: (Instant, f64), b: (Instant, f64)| if b.0 > a.0 { b } else { a };
        self.began = both(self.began, other.began, earlier);
        self.ended = both(self.ended, other.ended, later);
        self.sending = both(self.sending, other.sending, f64::min);
        self.samples_ns.extend(other.samples_ns);
        self.metrics.extend(other.metrics);
        self
    }

    pub(crate) fn json(mut self, run: &Run, version: &str) -> String {
        let (seconds, cpu) = match (self.began, self.ended) {
            (Some(from), Some(to)) => ((to.0 - from.0).as_secs_f64(), to.1 - self.sending.unwrap_or(from.1)),
            _ => (0.0, 0.0),
        };
        let seconds = seconds.max(1e-9);
        if !self.samples_ns.is_empty() {
            self.samples_ns.sort_unstable();
            let at = |q: f64| self.samples_ns[((self.samples_ns.len() - 1) as f64 * q) as usize] as f64 / 1e3;
            self.metrics.extend([("p50_us", at(0.5)), ("p99_us", at(0.99))]);
        } else if self.metrics.is_empty() {
            self.metrics.push(("messages_per_second", self.messages as f64 / seconds));
        }
        let metrics: Vec<String> =
            self.metrics.iter().map(|(name, value)| format!(r#""{name}":{value:.3}"#)).collect();
        format!(
            r#"{{"ok":true,"count":{},"messages":{},"seconds":{seconds:.9},"cpu_seconds":{cpu:.6},"lost":{},"reordered":{},"corrupted":{},"version":"{version}","metrics":{{{}}}}}"#,
            run.count,
            self.messages,
            self.lost,
            self.reordered,
            self.corrupted,
            metrics.join(",")
        )
    }
}

fn both<T>(a: Option<T>, b: Option<T>, choose: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(choose(a, b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_those_of_the_c_program() {
        let mut body = [0; 64];
        stamp(&mut body, 7);
        assert_eq!(sequence_of(&body, 64), Some(7));
        body[63] ^= 1;
        assert_eq!(sequence_of(&body, 64), None);
        assert_eq!(sequence_of(&body[..63], 64), None);
    }

    #[test]
    fn a_late_message_is_reordered_and_not_lost() {
        let (mut outcome, mut expected) = (Outcome::default(), 0);
        for sequence in [0, 2, 1, 3] {
            outcome.take(Some(sequence), &mut expected);
        }
        assert_eq!((outcome.lost, outcome.reordered, expected), (0, 1, 4));
    }

    #[test]
    fn streams_side_by_side_count_from_the_first_to_the_last() {
        let [mut one, mut other] = [Outcome::default(), Outcome::default()];
        one.begin();
        other.begin();
        one.end();
        other.end();
        let (first, last) = (one.began, other.ended);
        let all = other.add(one);
        assert_eq!((all.began, all.ended), (first, last));
    }
}
