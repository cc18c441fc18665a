//! A short keyed hash for the byte strings that patterns look up: topics and routing ids.
//!
//! Peers choose these strings, so each table has random keys. Words are mixed by a multiplication
//! whose halves are folded together, which takes a few instructions for a typical short key. Unlike
//! SipHash, this is not a pseudorandom function: a peer that could measure the cost of a lookup
//! might find colliding keys. SipHash would noticeably reduce the rate of a publisher with many
//! topics.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The random keys of one hash table.
#[derive(Debug, Clone)]
pub(crate) struct SeededHash {
    first: u64,
    second: u64,
}

impl Default for SeededHash {
    fn default() -> Self {
        let random = RandomState::new();
        // Odd keys, so that multiplication by a key never loses a bit.
        SeededHash { first: random.hash_one(1_u8) | 1, second: random.hash_one(2_u8) | 1 }
    }
}

impl BuildHasher for SeededHash {
    type Hasher = FoldHasher;

    #[inline]
    fn build_hasher(&self) -> FoldHasher {
        FoldHasher { state: self.first, second: self.second }
    }
}

/// The hash of one key in progress.
#[derive(Debug)]
pub(crate) struct FoldHasher {
    state: u64,
    second: u64,
}

/// Both halves of the 128-bit product, combined.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Up to eight bytes as a number.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    match bytes.len() {
        8 => bytes.try_into().map_or(0, u64::from_le_bytes),
        4..8 => {
            // Two overlapping reads cover four to seven bytes.
            let low = bytes.first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk));
            let high = bytes.last_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk));
            u64::from(low) | u64::from(high) << 32
        }
        _ => bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

impl Hasher for FoldHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            self.state = fold(self.state ^ word(chunk), self.second);
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.state = fold(self.state ^ value, self.second);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The table takes its bits from both ends. A last fold spreads a short key over all of
        // them.
        fold(self.state, self.second ^ 0x9e37_79b9_7f4a_7c15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn short_and_long_keys_rarely_collide() {
        let build = SeededHash::default();
        let mut seen = HashSet::new();
        let mut keys = 0;
        for length in 0..40_usize {
            for fill in 0..=255_u8 {
                let mut key = vec![fill; length];
                if let Some(last) = key.last_mut() {
                    *last = last.wrapping_add(1);
                }
                if length == 0 && fill > 0 {
                    continue;
                }
                seen.insert(build.hash_one(key.as_slice()));
                keys += 1;
            }
        }
        // Keys of one byte differ in that byte only; all others differ in length or content.
        assert_eq!(seen.len(), keys);
    }

    #[test]
    fn low_and_high_bits_are_both_spread() {
        let build = SeededHash::default();
        let mut low = HashSet::new();
        let mut high = HashSet::new();
        for number in 0..4096_u32 {
            let hash = build.hash_one(number.to_be_bytes().as_slice());
            low.insert(hash & 0xffff);
            high.insert(hash >> 48);
        }
        assert!(low.len() > 3500, "{}", low.len());
        assert!(high.len() > 3500, "{}", high.len());
    }

    #[test]
    fn tables_have_their_own_keys() {
        let (a, b) = (SeededHash::default(), SeededHash::default());
        assert_ne!(a.hash_one(b"topic".as_slice()), b.hash_one(b"topic".as_slice()));
    }
}
