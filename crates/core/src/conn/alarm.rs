//! A timer that covers what an owner has published and told no receiver about: when it starts, and
//! when it stops (`summons` is what it is for).
//!
//! ```text
//! owner:       publish;  hint?  [light barrier] -> think about it:  tell them, or
//!              later:  [fence; armed?] -> armed = true, start the timer
//! I/O thread:  timer:  the owner has told them since? -> again later;
//!              else  armed = false; hint = true  [heavy barrier]  tell them
//! ```
//!
//! The first message after the owner has told them is always thought about. So whatever is
//! published and not thought about has either the timer running behind it, or was published before
//! the heavy barrier of the timer's end, which tells them of it.

use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32, fence};
use crate::sync::{barrier_heavy, barrier_light};

/// The timer's state.
pub(crate) struct Alarm {
    /// It runs.
    // Relaxed: fence, by `later` and `overdue`.
    armed: AtomicBool,
    /// It has stopped: the owner's next message must be thought about.
    // Relaxed: fence, by `take_hint` and `overdue`; the swap decides which call takes it.
    hint: AtomicBool,
    /// How often the owner has told them.
    // Relaxed: number: the timer runs once more, or once less.
    rounds: AtomicU32,
}

impl Alarm {
    /// Off.
    pub(crate) fn new() -> Self {
        Alarm { armed: AtomicBool::new(false), hint: AtomicBool::new(false), rounds: AtomicU32::new(0) }
    }

    /// Owner: is going to tell all of them.
    pub(crate) fn told(&self) {
        self.rounds.fetch_add(1, Relaxed);
    }

    /// Owner: has published, thought about it and told no receiver. True if the timer is to be
    /// started. One load if it runs already.
    pub(crate) fn later(&self) -> bool {
        // Store (what was published), then load: pairs with the heavy barrier in `overdue`.
        fence(SeqCst);
        !self.armed.load(Relaxed) && !self.armed.swap(true, AcqRel)
    }

    /// Owner, after publishing: whether the timer has stopped since this was last asked. One load;
    /// clears the hint.
    #[inline]
    pub(crate) fn take_hint(&self) -> bool {
        // Store (what was published), then load: pairs with the heavy barrier in `overdue`.
        barrier_light();
        // Acquire: the thread that takes the hint must see that the timer has stopped.
        self.hint.load(Relaxed) && self.hint.swap(false, Acquire)
    }

    /// I/O thread: the timer has expired; `seen` are the rounds at the last time, and `tell` tells
    /// all of them. True if it must run on, because the owner is at work.
    pub(crate) fn overdue(&self, seen: &mut u32, tell: impl FnOnce()) -> bool {
        let rounds = self.rounds.load(Relaxed);
        if std::mem::replace(seen, rounds) != rounds {
            return true;
        }
        // In this order: the owner's next message finds the hint, and with it that nothing runs any
        // more.
        self.armed.store(false, Relaxed);
        self.hint.store(true, Release);
        // That message either sees the hint, or was published before this, and the receivers that
        // missed it are seen asleep now.
        barrier_heavy();
        tell();
        false
    }

    /// How often the owner has told them.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.load(Relaxed)
    }
}

/// Loom model: an owner that publishes for a receiver, with the real inbox to sleep and wake by,
/// and the I/O thread with the timer.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::queue::{Inbox, Unpark};
    use crate::sync::{Arc, Condvar, Mutex};

    #[derive(Default)]
    struct Bed {
        woken: Mutex<bool>,
        wake: Condvar,
    }

    impl Unpark for Bed {
        fn unpark(&self) {
            *self.woken.lock().unwrap() = true;
            self.wake.notify_one();
        }
    }

    impl Bed {
        fn sleep(&self) {
            let mut woken = self.woken.lock().unwrap();
            while !*woken {
                woken = self.wake.wait(woken).unwrap();
            }
            *woken = false;
        }
    }

    struct Model {
        alarm: Alarm,
        tail: AtomicU32,
        receiver: Inbox<(), Bed>,
        /// How often the timer was started, and whether all is over.
        timer: Mutex<(u32, bool)>,
        started: Condvar,
    }

    /// What the rule makes of a message when it is thought about.
    #[derive(Clone, Copy, PartialEq)]
    enum Thought {
        /// It is not, unless there is a hint.
        None,
        Later,
        Tell,
    }

    impl Model {
        fn ring(&self) {
            self.receiver.nudge();
        }

        fn publish(&self, message: u32, thought: Thought) {
            self.tail.store(message, Release);
            let hint = self.alarm.take_hint();
            match thought {
                Thought::Tell => {
                    self.alarm.told();
                    self.ring();
                }
                Thought::None if !hint => {}
                _ => {
                    if self.alarm.later() {
                        self.timer.lock().unwrap().0 += 1;
                        self.started.notify_one();
                    }
                }
            }
        }

        fn io_thread(&self) {
            loop {
                let mut timer = self.timer.lock().unwrap();
                while timer.0 == 0 {
                    if timer.1 {
                        return;
                    }
                    timer = self.started.wait(timer).unwrap();
                }
                timer.0 -= 1;
                drop(timer);
                let mut seen = self.alarm.rounds();
                while self.alarm.overdue(&mut seen, || self.ring()) {
                    loom::thread::yield_now();
                }
            }
        }

        fn receive(&self, last: u32) {
            // A message without a wake-up is a deadlock here.
            while self.tail.load(Acquire) != last {
                if self.receiver.prepare_park_alone() {
                    if self.tail.load(Acquire) != last {
                        self.receiver.waker().sleep();
                    }
                    self.receiver.finish_park();
                }
            }
        }
    }

    fn check(preemptions: usize, script: &'static [Thought]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(move || {
            let model = Arc::new(Model {
                alarm: Alarm::new(),
                tail: AtomicU32::new(0),
                receiver: Inbox::new(Bed::default()),
                timer: Mutex::new((0, false)),
                started: Condvar::new(),
            });
            let owner = model.clone();
            let publishing = loom::thread::spawn(move || {
                for (message, &thought) in (1..).zip(script) {
                    owner.publish(message, thought);
                }
            });
            let io = model.clone();
            let driving = loom::thread::spawn(move || io.io_thread());
            model.receive(script.len() as u32);
            publishing.join().unwrap();
            model.timer.lock().unwrap().1 = true;
            model.started.notify_one();
            driving.join().unwrap();
        });
    }

    #[test]
    fn loom_messages_that_nobody_thinks_about_are_covered_by_the_timer() {
        check(3, &[Thought::Later, Thought::None, Thought::None]);
    }

    #[test]
    fn loom_the_timer_that_just_stops_is_started_again() {
        check(3, &[Thought::Later, Thought::Later, Thought::None]);
    }

    #[test]
    fn loom_a_timer_runs_on_while_the_owner_tells() {
        check(2, &[Thought::Later, Thought::Tell, Thought::Later]);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_timer_runs_while_the_owner_tells_and_leaves_a_hint() {
        let alarm = Alarm::new();
        assert!(!alarm.take_hint());
        assert!(alarm.later() && !alarm.later());
        let mut seen = alarm.rounds();
        alarm.told();
        assert!(alarm.overdue(&mut seen, || unreachable!("the owner does it")));
        let mut told = 0;
        assert!(!alarm.overdue(&mut seen, || told += 1));
        assert_eq!(told, 1);
        assert!(alarm.take_hint() && !alarm.take_hint());
        assert!(alarm.later());
    }
}
