//! The word of a loan: its state in the two lowest bits, and its generation in the others.
//!
//! ```text
//! writer:  the body;  lend   [the end of the lane: Release]
//! reader:  [the end of the lane: Acquire]   take;  the body;  give_back [Release]
//! writer:  end_returned [Acquire]   the memory of the body is free
//! ```
//!
//! The writer believes a return only with its own generation. Other values that a faulty reader
//! writes keep the loan.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

/// States of a loan.
const FREE: u32 = 0;
pub(super) const LENT: u32 = 1;
pub(super) const HELD: u32 = 2;
pub(super) const RETURNED: u32 = 3;
const STATE: u32 = 3;

/// Returns the word of a loan.
pub(super) fn word(generation: u32, state: u32) -> u32 {
    generation << 2 | state
}

/// A word that both processes write to.
pub(super) trait Word {
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32);
    /// Replaces `old` by `new`. Returns false if the word is not `old`.
    fn replace(&self, old: u32, new: u32) -> bool;
    fn add_bits(&self, bits: u32);
}

/// Implements the trait for the standard library's atomic type, and for that of the model.
macro_rules! word {
    ($atomic:ty) => {
        impl Word for $atomic {
            fn load(&self, order: Ordering) -> u32 {
                Self::load(self, order)
            }

            fn store(&self, value: u32) {
                // Relaxed: behind the end of the lane, or own: the reader takes no FREE loan.
                self.store(value, Relaxed);
            }

            fn replace(&self, old: u32, new: u32) -> bool {
                // Relaxed: look: after a failure, the stream ends.
                self.compare_exchange(old, new, AcqRel, Relaxed).is_ok()
            }

            fn add_bits(&self, bits: u32) {
                self.fetch_or(bits, Release);
            }
        }
    };
}

word!(super::super::atomic::AtomicU32);

/// Writer: lends. The reader sees it with the end of the lane.
pub(super) fn lend(loan: &impl Word, generation: u32) {
    loan.store(word(generation, LENT));
}

/// Writer: true if the reader has not taken the loan.
pub(super) fn is_untaken(loan: &impl Word) -> bool {
    // Acquire, as all loads of the word by the writer.
    loan.load(Acquire) & STATE == LENT
}

/// Writer: ends a loan that the reader has returned. Returns true if it was returned.
pub(super) fn end_returned(loan: &impl Word, generation: &mut u32) -> bool {
    // Acquire: the reader's last use of the bytes precedes its store.
    let returned = loan.load(Acquire) == word(*generation, RETURNED);
    if returned {
        *generation = generation.wrapping_add(1) & (u32::MAX >> 2);
        loan.store(word(*generation, FREE));
    }
    returned
}

/// Reader: takes a loan. Returns false if it is not lent.
pub(super) fn take(loan: &impl Word) -> bool {
    // Relaxed: look: the exchange decides.
    let lent = loan.load(Relaxed);
    lent & STATE == LENT && loan.replace(lent, lent & !STATE | HELD)
}

/// Reader: returns a loan. Release: the last use of its bytes is over.
pub(super) fn give_back(loan: &impl Word) {
    loan.add_bits(RETURNED);
}

/// Reader at its end: returns a loan that it has not taken.
pub(super) fn give_back_untaken(loan: &impl Word) {
    // Relaxed: own: only the reader changes a loan that is lent.
    if loan.load(Relaxed) & STATE == LENT {
        give_back(loan);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;

    word!(AtomicU32);

    /// Two loans, one after the other, of the same memory.
    struct Shared {
        word: AtomicU32,
        end: AtomicU32,
        body: UnsafeCell<u32>,
    }

    // SAFETY: the claim of the model: writer and reader take turns. Loom reports a violation.
    unsafe impl Sync for Shared {}

    fn run(rounds: u32, reader: impl Fn(&Shared, u32) + Send + Sync + 'static) {
        let reader = std::sync::Arc::new(reader);
        loom::model(move || {
            let shared = Arc::new(Shared {
                word: AtomicU32::new(0),
                end: AtomicU32::new(0),
                body: UnsafeCell::new(0),
            });
            let reading = {
                let (shared, reader) = (shared.clone(), reader.clone());
                loom::thread::spawn(move || {
                    for round in 1..=rounds {
                        while shared.end.load(Acquire) < round {
                            loom::thread::yield_now();
                        }
                        reader(&shared, round);
                    }
                })
            };
            let mut generation = 0;
            for round in 1..=rounds {
                // SAFETY: see `Shared`.
                shared.body.with_mut(|body| unsafe { *body = round });
                lend(&shared.word, generation);
                shared.end.store(round, Release);
                while !end_returned(&shared.word, &mut generation) {
                    loom::thread::yield_now();
                }
            }
            assert!(generation == rounds && !is_untaken(&shared.word));
            reading.join().unwrap();
        });
    }

    #[test]
    fn loom_memory_of_a_returned_body_is_free() {
        run(2, |shared, round| {
            assert!(take(&shared.word) && !take(&shared.word), "a loan is taken once");
            // SAFETY: see `Shared`.
            shared.body.with(|body| assert_eq!(unsafe { *body }, round));
            give_back(&shared.word);
        });
    }

    #[test]
    fn loom_untaken_body_is_returned_at_the_end() {
        run(2, |shared, round| {
            if round == 1 {
                assert!(take(&shared.word));
                give_back(&shared.word);
            }
            give_back_untaken(&shared.word);
        });
    }
}
