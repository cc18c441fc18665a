//! A list of small values that usually has one or two of them and then needs no allocation.

use std::ops::{Deref, DerefMut};

/// A `Vec` that starts in place. Choose `N` so that it is no larger than a `Vec` on a 64-bit
/// system.
#[derive(Debug)]
pub(super) enum InlineVec<T, const N: usize> {
    /// The first `N` values.
    Inline([T; N], u8),
    /// The list has once had more than `N` values.
    Heap(Vec<T>),
}

impl<T: Copy + Default, const N: usize> Default for InlineVec<T, N> {
    fn default() -> Self {
        InlineVec::Inline([T::default(); N], 0)
    }
}

impl<T: Copy + Default, const N: usize> InlineVec<T, N> {
    pub(super) fn push(&mut self, value: T) {
        match self {
            InlineVec::Inline(values, len) if usize::from(*len) < N => {
                values[usize::from(*len)] = value;
                *len += 1;
            }
            InlineVec::Inline(values, _) => {
                let mut all = Vec::with_capacity(2 * N);
                all.extend_from_slice(values);
                all.push(value);
                *self = InlineVec::Heap(all);
            }
            InlineVec::Heap(all) => all.push(value),
        }
    }
}

impl<T, const N: usize> Deref for InlineVec<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            InlineVec::Inline(values, len) => &values[..usize::from(*len).min(N)],
            InlineVec::Heap(all) => all,
        }
    }
}

impl<T, const N: usize> DerefMut for InlineVec<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            InlineVec::Inline(values, len) => &mut values[..usize::from(*len).min(N)],
            InlineVec::Heap(all) => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_move_to_the_heap() {
        let mut short = InlineVec::<u8, 3>::default();
        assert!(short.is_empty());
        for n in 0..10 {
            short.push(n);
            short[usize::from(n)] += 1;
            assert_eq!(*short, (1..=n + 1).collect::<Vec<_>>());
            assert_eq!(matches!(short, InlineVec::Heap(_)), n >= 3);
        }
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn is_no_larger_than_a_vec() {
        assert!(size_of::<InlineVec<u8, 14>>() <= size_of::<Vec<u8>>());
    }
}
