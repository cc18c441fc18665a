//! Secret values: wiped from memory when they are dropped, and never shown by `Debug`.
//!
//! Keys and passwords have this type from the option that sets them to the cipher that uses them.

use std::fmt;
use std::ops::{Deref, DerefMut};

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// A secret.
#[derive(Clone, Default)]
pub struct Secret<T: Zeroize>(Zeroizing<T>);

impl<T: Zeroize> Secret<T> {
    /// Takes the value. If the caller keeps a copy, the caller must wipe it.
    pub fn new(value: T) -> Self {
        Self(Zeroizing::new(value))
    }
}

impl<T: Zeroize> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Zeroize> Deref for Secret<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> DerefMut for Secret<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Takes the same time wherever the bytes differ. Lengths are not secret.
impl<T: Zeroize + AsRef<[u8]>> PartialEq for Secret<T> {
    fn eq(&self, other: &Self) -> bool {
        equal(self.0.as_ref(), other.0.as_ref())
    }
}

impl<T: Zeroize + AsRef<[u8]>> Eq for Secret<T> {}

/// Compares in a time that depends only on the lengths.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_compare_and_do_not_show() {
        let secret = Secret::new(*b"0123456789abcdef0123456789abcdef");
        assert_eq!(format!("{secret:?}"), "(secret)");
        let mut other = secret.clone();
        assert!(secret == other);
        other[31] ^= 1;
        assert!(secret != other);
        assert!(Secret::new(vec![1, 2]) != Secret::new(vec![1, 2, 3]));
        assert!(equal(b"", b"") && !equal(b"", b"x"));
    }
}
