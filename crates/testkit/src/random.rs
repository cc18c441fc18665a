//! A small seeded random source for tests: the same seed gives the same run on every machine.

/// Xorshift64* generator. Not suitable for keys.
#[derive(Clone, Debug)]
pub struct XorShift {
    state: u64,
}

impl XorShift {
    /// Creates a generator from `seed`. Every seed works, including 0.
    pub fn new(seed: u64) -> Self {
        // The all-zero state would never change. Spreading the seed keeps neighbouring seeds apart.
        Self { state: (seed ^ 0x9E37_79B9_7F4A_7C15).max(1) }
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a number in `0..limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        // Takes the high bits of a product. The modulo bias is negligible for test-sized limits.
        ((u128::from(self.next_u64()) * limit as u128) >> 64) as usize
    }

    /// True once in `n` times on average; never for 0.
    pub fn one_in(&mut self, n: usize) -> bool {
        n > 0 && self.below(n) == 0
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Returns `len` random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats() {
        let (mut a, mut b) = (XorShift::new(42), XorShift::new(42));
        assert_eq!(a.bytes(100), b.bytes(100));
        assert_ne!(XorShift::new(1).next_u64(), XorShift::new(2).next_u64());
        assert_ne!(XorShift::new(0x9E37_79B9_7F4A_7C15).next_u64(), 0);
    }

    #[test]
    fn below_stays_below() {
        let mut random = XorShift::new(1);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert!((0..7).all(|n| (0..1000).any(|_| random.below(7) == n)));
        assert_eq!(random.below(0), 0);
        assert!(!random.one_in(0));
    }
}
