//! The dirty list: connections with something queued that their senders have left to the sweep of
//! the I/O thread.
//!
//! ```text
//! sender:   publish to the queue   light barrier   marked? ──no──▶ mark, add to the list;
//!           the first one wakes the sweeper
//! sweeper:  take the list   clear the marks   heavy barrier   write each queue
//! ```
//!
//! No message is left behind: of the sender's store (the queue's tail) and the sweeper's (the
//! mark), each followed by a load of the other behind a barrier, at least one load sees the other
//! side's store. So a sender that finds the mark set knows that its message will be written by a
//! sweep that is still to come, and pays two loads for it.

use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::{Mutex, barrier_heavy, barrier_light, lock};

/// Whether a connection is on the list. One in each connection.
// Relaxed: fence, by `is_set` and `DirtyList::take`, where the lock and the swap before order it
// after the setting.
#[derive(Debug)]
pub(crate) struct Mark(AtomicBool);

impl Mark {
    /// Not on the list.
    pub(crate) fn new() -> Self {
        Mark(AtomicBool::new(false))
    }

    /// Sender, after publishing: whether a sweep that is still to come will see what was published.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Store (the queue's tail), then load: pairs with the heavy barrier in `DirtyList::take`.
        barrier_light();
        self.0.load(Relaxed)
    }

    /// Sets the mark; true if it was not set: the caller adds the connection to the list.
    pub(crate) fn set(&self) -> bool {
        !self.0.swap(true, AcqRel)
    }
}

struct State<T> {
    items: Vec<T>,
    /// The sweeper is at work, or was woken.
    awake: bool,
    /// How often the list was taken.
    round: u32,
}

/// What has become of an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Added {
    /// The sweeper sleeps: the caller wakes it.
    pub(crate) wake: bool,
    /// The round of the sweep that will come by.
    pub(crate) round: u32,
}

/// The list, with many senders and one sweeper.
pub(crate) struct DirtyList<T>(Mutex<State<T>>);

impl<T> DirtyList<T> {
    /// An empty list, whose sweeper sleeps.
    pub(crate) fn new() -> Self {
        DirtyList(Mutex::new(State { items: Vec::new(), awake: false, round: 0 }))
    }

    /// Adds what was not marked.
    pub(crate) fn add(&self, item: T) -> Added {
        let mut state = lock(&self.0);
        state.items.push(item);
        Added { wake: !std::mem::replace(&mut state.awake, true), round: state.round }
    }

    /// Whether the sweeper sleeps, or will when it finds nothing new.
    pub(crate) fn is_idle(&self) -> bool {
        !lock(&self.0).awake
    }

    /// How many wait for the next round.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).items.len()
    }

    /// Sweeper: moves the list to `out`, which is empty, and clears the marks. Whatever is
    /// published before a sender sees its mark cleared is visible to the caller afterwards. False:
    /// there was nothing, the sweeper may sleep until it is woken.
    pub(crate) fn take(&self, out: &mut Vec<T>, mark: impl Fn(&T) -> &Mark) -> bool {
        {
            let mut state = lock(&self.0);
            if state.items.is_empty() {
                state.awake = false;
                return false;
            }
            state.round = state.round.wrapping_add(1);
            std::mem::swap(&mut state.items, out);
        }
        for item in out.iter() {
            // Relaxed: fence, see `Mark`.
            mark(item).0.store(false, Relaxed);
        }
        barrier_heavy();
        true
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::sync::atomic::AtomicU32;
    use crate::sync::atomic::Ordering::{Acquire, Release};
    use crate::sync::{Arc, Condvar};

    struct Queue {
        mark: Mark,
        tail: AtomicU32,
        written: AtomicU32,
    }

    struct Model {
        queues: [Arc<Queue>; 2],
        list: DirtyList<Arc<Queue>>,
        woken: Mutex<bool>,
        wake: Condvar,
    }

    impl Model {
        fn send(&self, to: usize, message: u32) {
            let queue = &self.queues[to];
            queue.tail.store(message, Release);
            if !queue.mark.is_set() && queue.mark.set() && self.list.add(queue.clone()).wake {
                *self.woken.lock().unwrap() = true;
                self.wake.notify_one();
            }
        }

        fn sweep(&self, last: [u32; 2]) {
            let mut work = Vec::new();
            loop {
                while self.list.take(&mut work, |queue| &queue.mark) {
                    for queue in work.drain(..) {
                        queue.written.store(queue.tail.load(Acquire), Relaxed);
                    }
                }
                if [0, 1].iter().all(|&index| self.queues[index].written.load(Relaxed) == last[index]) {
                    return;
                }
                // A lost wake-up, or a message that no sweep comes by for, is a deadlock here.
                let mut woken = self.woken.lock().unwrap();
                while !*woken {
                    woken = self.wake.wait(woken).unwrap();
                }
                *woken = false;
            }
        }
    }

    fn check(run: impl Fn(&Model) + Send + Sync + Copy + 'static, last: [u32; 2]) {
        loom::model(move || {
            let queue =
                || Arc::new(Queue { mark: Mark::new(), tail: AtomicU32::new(0), written: AtomicU32::new(0) });
            let model = Arc::new(Model {
                queues: [queue(), queue()],
                list: DirtyList::new(),
                woken: Mutex::new(false),
                wake: Condvar::new(),
            });
            let sender = model.clone();
            let thread = loom::thread::spawn(move || run(&sender));
            model.sweep(last);
            thread.join().unwrap();
        });
    }

    #[test]
    fn loom_every_message_of_a_sender_is_swept() {
        check(
            |model| {
                for message in 1..=3 {
                    model.send(0, message);
                }
            },
            [3, 0],
        );
    }

    #[test]
    fn loom_every_message_to_two_connections_is_swept() {
        check(
            |model| {
                model.send(0, 1);
                model.send(1, 1);
                model.send(0, 2);
            },
            [2, 1],
        );
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_addition_wakes_until_the_sweeper_finds_nothing() {
        let list = DirtyList::new();
        let mut out = Vec::new();
        assert!(list.is_idle());
        assert_eq!(list.add(Mark::new()), Added { wake: true, round: 0 });
        assert_eq!(list.add(Mark::new()), Added { wake: false, round: 0 });
        for _ in 0..2 {
            assert!(!list.is_idle());
            assert!(list.take(&mut out, |mark| mark));
            out.clear();
            assert!(!list.add(Mark::new()).wake);
        }
        assert!(list.take(&mut out, |mark| mark));
        out.clear();
        assert!(!list.take(&mut out, |mark| mark));
        assert!(list.is_idle());
        assert_eq!(list.add(Mark::new()), Added { wake: true, round: 3 });
    }

    #[test]
    fn taking_clears_the_marks_in_the_order_of_the_list() {
        let list = DirtyList::new();
        for number in 0..3 {
            let mark = Mark::new();
            assert!(mark.set() && !mark.set() && mark.is_set());
            list.add((number, mark));
        }
        let mut out = Vec::new();
        assert!(list.take(&mut out, |(_, mark)| mark));
        assert!(out.iter().map(|(number, _)| *number).eq(0..3));
        assert!(out.iter().all(|(_, mark)| !mark.is_set()));
    }
}
