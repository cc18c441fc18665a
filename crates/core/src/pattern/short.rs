//! `Short`: a list of small values that usually has one or two of them and then needs no
//! allocation.

use std::ops::{Deref, DerefMut};

/// A `Vec` that starts in place. Choose `N` so that it is no larger than a `Vec` on a 64-bit
/// system.
#[derive(Debug)]
pub(super) enum Short<T, const N: usize> {
    /// The first `N` values.
    Here([T; N], u8),
    /// The list has once had more than `N` values.
    Heap(Vec<T>),
}

impl<T: Copy + Default, const N: usize> Default for Short<T, N> {
    fn default() -> Self {
        Short::Here([T::default(); N], 0)
    }
}

impl<T: Copy + Default, const N: usize> Short<T, N> {
    pub(super) fn push(&mut self, value: T) {
        match self {
            Short::Here(values, len) if usize::from(*len) < N => {
                values[usize::from(*len)] = value;
                *len += 1;
            }
            Short::Here(values, _) => {
                let mut all = Vec::with_capacity(2 * N);
                all.extend_from_slice(values);
                all.push(value);
                *self = Short::Heap(all);
            }
            Short::Heap(all) => all.push(value),
        }
    }
}

impl<T, const N: usize> Deref for Short<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Short::Here(values, len) => &values[..usize::from(*len).min(N)],
            Short::Heap(all) => all,
        }
    }
}

impl<T, const N: usize> DerefMut for Short<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Short::Here(values, len) => &mut values[..usize::from(*len).min(N)],
            Short::Heap(all) => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_its_values_also_where_it_begins_to_need_memory() {
        let mut short = Short::<u8, 3>::default();
        assert!(short.is_empty());
        for n in 0..10 {
            short.push(n);
            short[usize::from(n)] += 1;
            assert_eq!(*short, (1..=n + 1).collect::<Vec<_>>());
            assert_eq!(matches!(short, Short::Heap(_)), n >= 3);
        }
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn is_no_larger_than_a_vec() {
        assert!(size_of::<Short<u8, 14>>() <= size_of::<Vec<u8>>());
    }
}
