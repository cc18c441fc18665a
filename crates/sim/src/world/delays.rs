//! Delays threads at critical points. A race often needs a window of a few steps: while one thread
//! stands between two steps, another thread must complete its work. Slices of equal length rarely
//! end in such a window, especially in rarely executed code.
//!
//! So the seed draws places, each equally likely, regardless of how often it is executed. A place
//! is a line of the engine with an atomic or a lock, or a system call behind such a line. A thread
//! that arrives there is delayed until no other can run (delay-bounded scheduling), or for a while.
//! The first arrivals are delayed, and later ones ever less often.

use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;

use super::{ARE_DELAYS, CURRENT_TID, LAST_POINT, NOW, POINTS, ThreadState, World, change_threads, world};
use crate::rng::Rng;

/// Number of entries for places, more than the engine has.
const PLACES: usize = 8192;
/// Most delays of a simulation.
const MOST: u32 = 300;

pub(super) struct Delays {
    rng: Rng,
    /// Inverse of the probability that a place in the code is chosen for a delay.
    one_in: u64,
    /// Open addressing by the key of each place. No two places share an entry, and places are drawn
    /// in the order in which threads first come to them: a seed does the same when lines move.
    places: Vec<(usize, DelayPlace)>,
    left: u32,
}

#[derive(Debug, Clone, Copy)]
enum DelayPlace {
    Unseen,
    /// A thread is delayed here after `after` more arrivals. `stood` counts the delays.
    Drawn {
        after: u64,
        stood: u32,
    },
    Other,
}

impl std::fmt::Debug for Delays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "delays at one of {} places", self.one_in)
    }
}

impl Delays {
    /// Draws the delays of a seed.
    pub(super) fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 5);
        let one_in = *rng.pick(&[4, 12, 40]);
        Delays { rng, one_in, places: vec![(0, DelayPlace::Unseen); PLACES], left: MOST }
    }

    /// True if the thread that arrives at a place is delayed.
    fn draw_delay(&mut self, key: usize) -> bool {
        let first = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let mut slots = (0..PLACES).map(|step| (first + step) % PLACES);
        let slot = slots.find(|slot| {
            matches!(self.places[*slot], (_, DelayPlace::Unseen)) || self.places[*slot].0 == key
        });
        let Some(slot) = slot else { return false };
        let (known, place) = &mut self.places[slot];
        if matches!(place, DelayPlace::Unseen) {
            *known = key;
            *place = match self.rng.chance(self.one_in) {
                // Some places are executed only once.
                true => DelayPlace::Drawn { after: self.rng.below(2) * self.rng.below(6), stood: 0 },
                false => DelayPlace::Other,
            };
        }
        match place {
            DelayPlace::Drawn { after: 0, stood } => {
                let stood = (*stood + 1).min(20);
                *place = DelayPlace::Drawn { after: self.rng.below(2 << stood), stood };
                self.left = self.left.saturating_sub(1);
                self.left > 0
            }
            DelayPlace::Drawn { after, .. } => {
                *after -= 1;
                false
            }
            _ => false,
        }
    }
}

/// Called before the engine's action at `place`.
#[inline]
pub(super) fn at_point(place: &'static Location<'static>) {
    if ARE_DELAYS.load(Relaxed) {
        let key = key(place);
        LAST_POINT.set(key);
        delay_at(key, || place.to_string());
    }
}

/// Called before a system call.
pub(super) fn at_call(name: &'static str) {
    if ARE_DELAYS.load(Relaxed) {
        delay_at(LAST_POINT.get() ^ hash(name.as_bytes()).rotate_left(20), || format!("a call: {name}"));
    }
}

/// Lets another thread run, and now and then a timer expire, while the calling thread delays a
/// store.
pub(crate) fn linger(place: &'static Location<'static>) {
    if CURRENT_TID.get() == 0 || delay_with_late_store(place) || !world().rng.chance(3) {
        return;
    }
    let world = world();
    if world.rng.chance(8) {
        let until = NOW.load(Relaxed) + world.rng.spread(1_000, 20_000_000);
        world.thread(CURRENT_TID.get()).stalled_until = until;
    }
    change_threads(true);
}

/// Called after the calling thread, which delays a store, has loaded a value at `place`. Returns
/// true if the thread was delayed.
fn delay_with_late_store(place: &'static Location<'static>) -> bool {
    let key = key(place).rotate_left(32);
    ARE_DELAYS.load(Relaxed) && delay_at(key, || format!("{place}, with a late store"))
}

/// Returns the key of a place. It is the same in each build as long as the line number is the same.
fn key(place: &Location<'_>) -> usize {
    let file = place.file().as_bytes();
    // The part before the extension.
    let end = file.len().saturating_sub(3);
    hash(&file[end.saturating_sub(12)..end]) ^ (place.line() as usize) << 40
}

fn hash(bytes: &[u8]) -> usize {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: usize, byte| {
        (hash ^ usize::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn delay_at(key: usize, text: impl FnOnce() -> String) -> bool {
    let world = world();
    if !world.delays.as_mut().is_some_and(|delays| delays.draw_delay(key)) {
        return false;
    }
    world.delay_thread(text);
    change_threads(true);
    true
}

impl World {
    /// Draws if a store is delayed.
    pub(crate) fn draw_store_delay(&mut self) -> bool {
        let one_in = self.kernel.faults.late;
        self.draw_fault(one_in)
    }

    /// Delays the calling thread.
    fn delay_thread(&mut self, text: impl FnOnce() -> String) {
        let Some(delays) = &mut self.delays else { return };
        let for_a_while = delays.rng.chance(4);
        let (points, time) = (delays.rng.spread(500, 50_000), delays.rng.spread(1_000, 20_000_000));
        let thread = self.thread(CURRENT_TID.get());
        if for_a_while {
            thread.stalled_until = NOW.load(Relaxed) + time;
        } else {
            thread.delayed_until_point = POINTS.load(Relaxed) + points;
        }
        if self.trace {
            self.say(&format!("stands at {}", text()));
        }
    }

    /// Resumes a delayed thread if no other can run. Returns false if no thread is delayed.
    pub(super) fn resume_delayed(&mut self, now: u64) -> bool {
        let points = POINTS.load(Relaxed);
        let standing: Vec<usize> = (0..self.threads.len())
            .filter(|at| {
                let thread = &self.threads[*at];
                thread.state == ThreadState::Ready
                    && thread.stalled_until <= now
                    && thread.delayed_until_point > points
            })
            .collect();
        let Some(delays) = self.delays.as_mut().filter(|_| !standing.is_empty()) else { return false };
        self.threads[*delays.rng.pick(&standing)].delayed_until_point = 0;
        true
    }
}
