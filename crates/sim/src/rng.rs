//! Random numbers from a seed (SplitMix64). Each part of a simulation that draws has its own
//! stream, so that an additional draw in one part does not change another part.

/// A stream of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Creates the stream `name` of `seed`.
    pub(crate) fn new(seed: u64, name: u64) -> Self {
        let mut rng = Rng(seed ^ name.wrapping_mul(0xd6e8_feb8_6659_fd93));
        rng.next();
        rng
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number below `bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64 }
    }

    /// Draws a number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Draws as `between` does, with all orders of magnitude equally likely.
    pub(crate) fn spread(&mut self, low: u64, high: u64) -> u64 {
        let (first, last) = (low.max(1).ilog2(), high.max(1).ilog2());
        let bits = self.between(first.into(), last.into());
        self.between(1 << bits, (2 << bits) - 1).clamp(low, high)
    }

    /// Returns true once in `one_in` times; never for 0.
    pub(crate) fn chance(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.below(one_in) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}
