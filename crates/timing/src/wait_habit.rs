//! The habit of a thread to wait soon after it has sent.
//!
//! A thread that passes messages on receives from one socket and sends with another. After the last
//! received message it waits, and it writes its queued messages before the wait. So each message
//! may stay queued until the thread waits, but no longer than the flush rule lets a message wait
//! for others. Messages that arrive together then leave together.
//!
//! The habit is known from the past: the thread has several times waited before another thread
//! wrote its messages. Messages that are sent one at a time only lose time in the queue, so many of
//! them end the habit.
//!
//! Inputs are times in clock ticks.

use super::HABIT;
use super::flush::times;
use super::supervisor::FOLLOW_UP_CHECK_NS;
use crate::clock::nanos_to_ticks;
use crate::rules::{Rule, is_disabled};

/// One wait after several messages counts as much as this number of waits after one message.
const GAIN: u8 = 4;
/// Strength from which the habit is expected to last.
const ENOUGH: u8 = GAIN * HABIT;

/// The habit of one thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct WaitHabit {
    /// Rises by `GAIN` with each wait after several messages, falls by 1 with each wait after one.
    strength: u8,
    /// True if one of the messages left since the last wait follows another one to the same peer.
    joined: bool,
    /// Time of the first message left since the last wait or since the end of the last hold.
    since: u64,
}

impl WaitHabit {
    /// Returns the state of a thread that has not sent yet.
    pub const fn new() -> WaitHabit {
        WaitHabit { strength: 0, joined: false, since: 0 }
    }

    /// True if the thread will probably wait soon.
    #[inline]
    pub fn is_expected(self) -> bool {
        self.strength >= ENOUGH && !is_disabled(Rule::WaitHabit)
    }

    /// Notes a message that stays queued at `now`. `first` is true if no other message has stayed
    /// queued since the last wait. `joins` is true if the message follows another one to the same
    /// peer.
    #[inline]
    pub fn leave(&mut self, now: u64, first: bool, joins: bool) {
        if first {
            (self.since, self.joined) = (now, false);
        } else if now.saturating_sub(self.since) > nanos_to_ticks(FOLLOW_UP_CHECK_NS) {
            // The thread has not waited for long.
            (self.since, self.strength) = (now, self.strength / 2);
        }
        self.joined |= joins;
    }

    /// True if a message may stay queued at `now`, behind others.
    #[inline]
    pub fn may_hold(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.since) > times().longest {
            self.since = now;
            return false;
        }
        true
    }

    /// Notes that the thread waits at `now`. `pending` is true if it has found its messages still
    /// queued.
    #[inline]
    pub fn wait(&mut self, now: u64, pending: bool) {
        self.strength = match (pending, self.joined) {
            (true, true) => (self.strength + GAIN).min(2 * ENOUGH),
            (true, false) => self.strength.saturating_sub(1),
            _ if now.saturating_sub(self.since) > nanos_to_ticks(FOLLOW_UP_CHECK_NS) => self.strength / 2,
            _ => self.strength,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `messages` to one peer, 1 µs apart, and waits. Returns the time of the wait.
    fn cycle(habit: &mut WaitHabit, now: u64, messages: u64, pending: bool) -> u64 {
        let step = nanos_to_ticks(1000);
        for message in 0..messages {
            habit.leave(now + message * step, message == 0, message > 0);
        }
        habit.wait(now + messages * step, pending);
        now + messages * step
    }

    /// Returns a thread that has the habit, and the time.
    fn forwarder() -> (WaitHabit, u64) {
        let (mut habit, mut now) = (WaitHabit::new(), nanos_to_ticks(1_000_000));
        for _ in 0..HABIT {
            assert!(!habit.is_expected());
            now = cycle(&mut habit, now, 3, true);
        }
        assert!(habit.is_expected());
        (habit, now)
    }

    #[test]
    fn several_waits_after_several_messages_make_a_habit() {
        forwarder();
    }

    #[test]
    fn single_messages_end_the_habit() {
        let (mut habit, mut now) = forwarder();
        for _ in 0..=ENOUGH {
            now = cycle(&mut habit, now, 1, true);
        }
        assert!(!habit.is_expected());
    }

    #[test]
    fn some_single_messages_do_not_end_the_habit() {
        let (mut habit, mut now) = forwarder();
        for round in 0..100 {
            now = cycle(&mut habit, now, if round % 4 == 0 { 2 } else { 1 }, true);
            assert!(habit.is_expected() || round < 4, "{habit:?}");
        }
    }

    #[test]
    fn a_thread_whose_messages_others_write_loses_the_habit() {
        let (mut habit, now) = forwarder();
        habit.leave(now, true, false);
        habit.wait(now + nanos_to_ticks(1_000_000), false);
        assert!(!habit.is_expected());
    }

    #[test]
    fn a_thread_that_never_waits_loses_the_habit() {
        let (mut habit, now) = forwarder();
        for message in 0..300 {
            habit.leave(now + message * nanos_to_ticks(1000), message == 0, message > 0);
        }
        assert!(!habit.is_expected());
    }

    #[test]
    fn a_message_is_held_for_half_a_spin() {
        let (mut habit, now) = forwarder();
        habit.leave(now, true, false);
        assert!(habit.may_hold(now + nanos_to_ticks(9_000)));
        assert!(!habit.may_hold(now + nanos_to_ticks(11_000)));
        assert!(habit.may_hold(now + nanos_to_ticks(12_000)), "a new hold begins");
    }
}
