//! A bounded lock-free queue, first in, first out, for any number of threads on both sides.
//!
//! Each place has a turn that says who may use it. The push of a lap has the turn `2 * lap`, and
//! its pop has `2 * lap + 1`. The thread that advances the counter has the place alone until it
//! stores the next turn. No other thread waits for it: a push is refused if its place is not free
//! yet, and a pop returns `None` if its place is not filled yet. If a fork leaves a thread behind
//! in the middle of a push, the child only loses the use of the ring. An empty ring consists of
//! zero bytes, so that a static one takes no room in the library.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Padded, UnsafeCell};
use std::mem::MaybeUninit;

/// Place for one item of the queue.
struct RingSlot<T> {
    sequence: AtomicUsize,
    item: UnsafeCell<MaybeUninit<T>>,
}

/// A queue of up to `N` items; `N` is a power of two.
pub(super) struct Ring<T, const N: usize> {
    // Relaxed: look: the turn of the place decides, and has the ordering.
    pushed: Padded<AtomicUsize>,
    // Relaxed: look, as for `pushed`.
    popped: Padded<AtomicUsize>,
    places: [RingSlot<T>; N],
}

// SAFETY: an item is written by one thread and read by another one, with the turn's Release and
// Acquire in between.
unsafe impl<T: Send, const N: usize> Sync for Ring<T, N> {}

impl<T: Copy, const N: usize> Ring<T, N> {
    /// Returns an empty ring.
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        assert!(N.is_power_of_two());
        Ring {
            pushed: Padded(AtomicUsize::new(0)),
            popped: Padded(AtomicUsize::new(0)),
            places: [const {
                RingSlot { sequence: AtomicUsize::new(0), item: UnsafeCell::new(MaybeUninit::zeroed()) }
            }; N],
        }
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        let place =
            |_| RingSlot { sequence: AtomicUsize::new(0), item: UnsafeCell::new(MaybeUninit::zeroed()) };
        Ring {
            pushed: Padded(AtomicUsize::new(0)),
            popped: Padded(AtomicUsize::new(0)),
            places: std::array::from_fn(place),
        }
    }

    /// Returns the number of items ever pushed, modulo 2^64.
    pub(super) fn pushed(&self) -> usize {
        self.pushed.0.load(Ordering::Relaxed)
    }

    /// Returns the number of items in the ring. The number may be out of date.
    pub(super) fn len(&self) -> usize {
        let popped = self.popped.0.load(Ordering::Relaxed);
        self.pushed().wrapping_sub(popped).min(N)
    }

    /// Adds an item. Gives it back if the ring is full.
    pub(super) fn push(&self, item: T) -> Result<(), T> {
        let mut at = self.pushed.0.load(Ordering::Relaxed);
        loop {
            let place = &self.places[at % N];
            let turn = (at / N).wrapping_mul(2);
            // Acquire pairs with the Release of the pop that has emptied the place.
            match place.sequence.load(Ordering::Acquire).wrapping_sub(turn).cast_signed() {
                0 => match self.pushed.0.compare_exchange_weak(
                    at,
                    at.wrapping_add(1),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        // SAFETY: the turn was ours, and the thread that advances the counter has
                        // the place alone.
                        place.item.with_mut(|place| unsafe { place.write(MaybeUninit::new(item)) });
                        place.sequence.store(turn.wrapping_add(1), Ordering::Release);
                        return Ok(());
                    }
                    Err(now) => at = now,
                },
                // The place still holds the item of the lap before.
                ..0 => return Err(item),
                _ => at = self.pushed.0.load(Ordering::Relaxed),
            }
        }
    }

    /// Takes the oldest item out.
    pub(super) fn pop(&self) -> Option<T> {
        let mut at = self.popped.0.load(Ordering::Relaxed);
        loop {
            let place = &self.places[at % N];
            let turn = (at / N).wrapping_mul(2).wrapping_add(1);
            // Acquire pairs with the Release of the push that has filled the place.
            match place.sequence.load(Ordering::Acquire).wrapping_sub(turn).cast_signed() {
                0 => match self.popped.0.compare_exchange_weak(
                    at,
                    at.wrapping_add(1),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        // SAFETY: the turn says that an item was written, and the thread that
                        // advances the counter has the place alone.
                        let item = place.item.with(|place| unsafe { place.read().assume_init() });
                        place.sequence.store(turn.wrapping_add(1), Ordering::Release);
                        return Some(item);
                    }
                    Err(now) => at = now,
                },
                ..0 => return None,
                _ => at = self.popped.0.load(Ordering::Relaxed),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_up_to_its_size() {
        let ring: Ring<u32, 4> = Ring::new();
        for lap in 0..5 {
            assert_eq!((ring.pop(), ring.len()), (None, 0));
            for n in 0..4 {
                assert_eq!(ring.push(lap * 10 + n), Ok(()));
            }
            assert_eq!((ring.push(99), ring.len()), (Err(99), 4));
            assert_eq!(ring.pop(), Some(lap * 10));
            assert_eq!(ring.push(lap * 10 + 4), Ok(()));
            for n in 1..5 {
                assert_eq!(ring.pop(), Some(lap * 10 + n));
            }
            assert_eq!(ring.pushed(), (lap as usize + 1) * 5);
        }
    }

    #[test]
    fn many_threads_neither_lose_nor_double_anything() {
        let ring: Ring<usize, 8> = Ring::new();
        let each = if cfg!(miri) { 50 } else { 20_000 };
        let (sum, count) = (std::sync::atomic::AtomicUsize::new(0), std::sync::atomic::AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for first in [0, each] {
                let ring = &ring;
                scope.spawn(move || {
                    for n in first..first + each {
                        while ring.push(n).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
                scope.spawn(|| {
                    while count.load(Ordering::Relaxed) < 2 * each {
                        match ring.pop() {
                            Some(n) => {
                                sum.fetch_add(n, Ordering::Relaxed);
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
        });
        assert_eq!((count.into_inner(), sum.into_inner()), (2 * each, each * (2 * each - 1)));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    fn model(f: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound.get_or_insert(3);
        builder.check(f);
    }

    #[test]
    fn loom_a_ring_neither_loses_nor_doubles_anything() {
        model(|| {
            let ring: Arc<Ring<u32, 2>> = Arc::new(Ring::new());
            let pushers: Vec<_> = [1, 2]
                .map(|n| {
                    let ring = ring.clone();
                    thread::spawn(move || ring.push(n).is_ok())
                })
                .into();
            let mut got: Vec<u32> = ring.pop().into_iter().collect();
            for pusher in pushers {
                assert!(pusher.join().unwrap(), "there was room for both");
            }
            got.extend(std::iter::from_fn(|| ring.pop()));
            got.sort_unstable();
            assert_eq!(got, [1, 2]);
        });
    }

    #[test]
    fn loom_two_poppers_share_pushes_over_laps() {
        model(|| {
            let ring: Arc<Ring<u32, 2>> = Arc::new(Ring::new());
            let pusher = {
                let ring = ring.clone();
                thread::spawn(move || (1..4).filter(|&n| ring.push(n).is_ok()).collect::<Vec<_>>())
            };
            let popper = {
                let ring = ring.clone();
                thread::spawn(move || ring.pop())
            };
            let mine = ring.pop();
            let theirs = popper.join().unwrap();
            let pushed = pusher.join().unwrap();
            let rest: Vec<u32> = std::iter::from_fn(|| ring.pop()).collect();
            assert!(rest.is_sorted());
            let mut got: Vec<u32> = mine.into_iter().chain(theirs).chain(rest).collect();
            got.sort_unstable();
            assert_eq!(got, pushed);
        });
    }
}
