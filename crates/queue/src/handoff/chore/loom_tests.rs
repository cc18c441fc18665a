//! Models of the protocol: owners publish, and an I/O thread sleeps until a chore is handed over
//! and does it in one of three ways. If the I/O thread misses a message, the model deadlocks.

use super::*;
use crate::handoff::inbox::{Inbox, Unpark};
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::Release;
use crate::sync::{Arc, Condvar};
use loom::thread;

/// The owner's decision about a message that it has published.
#[derive(Clone, Copy, PartialEq)]
enum Thought {
    /// No decision, unless there is a hint.
    None,
    /// Leave the message to the I/O thread.
    Leave,
    /// Do the work.
    Work,
}

/// Time at which the I/O thread releases the chore.
#[derive(Clone, Copy, PartialEq)]
enum ReleaseTime {
    /// Before the work, as the sweep does.
    First,
    /// After the work, followed by one more check, as the residual watch and the rounds over a log
    /// do.
    Last,
    /// Before the work, if the time is over and the owner has not worked since: the wake-ups of
    /// inproc receivers.
    Late,
}

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

/// One owner's chore.
struct Item {
    mark: Mark,
    hint: Hint,
    published: AtomicU32,
    done: AtomicU32,
    /// Number of times that the owner has worked.
    rounds: AtomicU32,
    /// The receiver that the work wakes.
    receiver: Inbox<(), Bed>,
}

impl Chore for Item {
    fn mark(&self) -> &Mark {
        &self.mark
    }

    fn give_hint(&self) {
        self.hint.give();
    }
}

impl Item {
    fn work(&self) {
        self.done.fetch_max(self.published.load(Acquire), AcqRel);
        self.receiver.wake_if_parked();
    }

    fn has_more(&self) -> bool {
        self.done.load(Acquire) != self.published.load(Acquire)
    }
}

struct Model {
    items: [Arc<Item>; 2],
    list: Chores<Arc<Item>>,
    io: Bed,
    over: AtomicBool,
}

impl Model {
    fn publish(&self, to: usize, message: u32, thought: Thought) {
        let item = &self.items[to];
        item.published.store(message, Release);
        let hint = item.hint.take();
        match thought {
            Thought::Work => {
                item.rounds.fetch_add(1, Relaxed);
                item.work();
            }
            Thought::None if !hint => {}
            _ => {
                if item.mark.claim_handover() && self.list.add(item.clone()).wake {
                    self.io.unpark();
                }
            }
        }
    }

    fn io_thread(&self, way: ReleaseTime) {
        let mut all = Vec::new();
        loop {
            // Before the last look.
            let over = self.over.load(Acquire);
            while self.list.take(&mut all) {
                match way {
                    ReleaseTime::First => {
                        release(&all);
                        all.drain(..).for_each(|item| item.work());
                    }
                    ReleaseTime::Last => {
                        while !all.is_empty() {
                            all.iter().for_each(|item| item.work());
                            release(&all);
                            all.retain(|item| item.has_more() && item.mark.set());
                        }
                    }
                    ReleaseTime::Late => {
                        for item in all.drain(..) {
                            let mut seen = item.rounds.load(Relaxed);
                            loop {
                                let rounds = item.rounds.load(Relaxed);
                                if std::mem::replace(&mut seen, rounds) == rounds {
                                    break;
                                }
                                thread::yield_now();
                            }
                            release(std::slice::from_ref(&item));
                            item.work();
                        }
                    }
                }
            }
            if over {
                return;
            }
            self.io.sleep();
        }
    }

    /// Runs a receiver that waits for the messages of the first item.
    fn receive(&self, last: u32) {
        let item = &self.items[0];
        while item.published.load(Acquire) != last {
            if item.receiver.prepare_park_without_barrier() {
                if item.published.load(Acquire) != last {
                    item.receiver.waker().sleep();
                }
                item.receiver.finish_park();
            }
        }
    }
}

/// Runs an owner with this script: the item, and the decision for each message.
fn check(preemptions: usize, way: ReleaseTime, receives: bool, script: &'static [(usize, Thought)]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let item = || {
            Arc::new(Item {
                mark: Mark::new(),
                hint: Hint::new(),
                published: AtomicU32::new(0),
                done: AtomicU32::new(0),
                rounds: AtomicU32::new(0),
                receiver: Inbox::new(Bed::default()),
            })
        };
        let model = Arc::new(Model {
            items: [item(), item()],
            list: Chores::new(),
            io: Bed::default(),
            over: AtomicBool::new(false),
        });
        let io = model.clone();
        let driving = thread::spawn(move || io.io_thread(way));
        let owner = model.clone();
        let publishing = thread::spawn(move || {
            for (message, &(to, thought)) in (1..).zip(script) {
                owner.publish(to, message, thought);
            }
        });
        if receives {
            model.receive(script.len() as u32);
        }
        publishing.join().unwrap();
        model.over.store(true, Release);
        model.io.unpark();
        driving.join().unwrap();
        for item in &model.items {
            assert!(!item.has_more(), "a message was left behind");
        }
    });
}

use Thought::{Leave, None as Forget, Work};

#[test]
fn loom_the_sweep_comes_by_for_every_message() {
    check(3, ReleaseTime::First, false, &[(0, Leave), (0, Leave), (0, Leave)]);
}

#[test]
fn loom_the_sweep_comes_by_for_every_message_to_two() {
    check(3, ReleaseTime::First, false, &[(0, Leave), (1, Leave), (0, Leave)]);
}

#[test]
fn loom_residual_release_loses_no_message() {
    check(3, ReleaseTime::Last, false, &[(0, Leave), (0, Leave), (0, Leave)]);
}

#[test]
fn loom_residual_covers_unhandled_messages() {
    check(3, ReleaseTime::Last, false, &[(0, Leave), (0, Forget), (0, Forget)]);
}

#[test]
fn loom_owner_and_residual_leave_no_message() {
    check(2, ReleaseTime::Last, false, &[(0, Leave), (0, Work), (0, Leave)]);
}

#[test]
fn loom_timer_wakes_receivers_of_unhandled_messages() {
    check(3, ReleaseTime::Late, true, &[(0, Leave), (0, Forget), (0, Forget)]);
}

#[test]
fn loom_the_ringing_that_just_stops_is_started_again() {
    check(3, ReleaseTime::Late, true, &[(0, Leave), (0, Leave), (0, Forget)]);
}

#[test]
fn loom_the_ringing_goes_on_while_the_owner_rings() {
    check(2, ReleaseTime::Late, true, &[(0, Leave), (0, Work), (0, Leave)]);
}
