//! The masks of a WebSocket client (RFC 6455, section 5.3). With masks, the program that chooses
//! the bodies does not control the bytes on the wire.

use sha1::{Digest, Sha1};

/// Makes unpredictable masks: hashes of a secret and a counter.
pub(super) struct Masks {
    secret: [u8; 32],
    counter: u64,
    block: [u8; 20],
    used: usize,
}

impl Masks {
    /// `secret` must be unpredictable.
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Masks { secret, counter: 0, block: [0; 20], used: 20 }
    }

    /// Returns the mask of the next frame.
    pub(super) fn next(&mut self) -> [u8; 4] {
        if self.used == self.block.len() {
            self.counter += 1;
            self.block = Sha1::new()
                .chain_update(self.secret)
                .chain_update(self.counter.to_le_bytes())
                .finalize()
                .into();
            self.used = 0;
        }
        let mask = self.block[self.used..].first_chunk().copied().unwrap_or_default();
        self.used += 4;
        mask
    }

    /// Returns the bytes of a Sec-WebSocket-Key.
    pub(super) fn nonce(&mut self) -> [u8; 16] {
        let mut nonce = [0; 16];
        nonce.chunks_exact_mut(4).for_each(|four| four.copy_from_slice(&self.next()));
        nonce
    }
}

/// Masks or unmasks bytes that start at offset `phase` of a payload. Returns the phase after them.
pub(super) fn apply(bytes: &mut [u8], mut mask: [u8; 4], phase: usize) -> usize {
    mask.rotate_left(phase % 4);
    let wide = u64::from_ne_bytes([mask, mask].as_flattened().first_chunk().copied().unwrap_or_default());
    let length = bytes.len();
    let mut words = bytes.chunks_exact_mut(8);
    for word in &mut words {
        let masked = u64::from_ne_bytes(word.first_chunk().copied().unwrap_or_default()) ^ wide;
        word.copy_from_slice(&masked.to_ne_bytes());
    }
    for (byte, mask) in words.into_remainder().iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    (phase + length) % 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_in_pieces_is_masking_at_once() {
        let mask = [1, 2, 4, 8];
        let plain: Vec<u8> = (0..100).collect();
        let expected: Vec<u8> =
            plain.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        for cut in 0..=plain.len() {
            let mut bytes = plain.clone();
            let (first, second) = bytes.split_at_mut(cut);
            let phase = apply(first, mask, 0);
            assert_eq!(apply(second, mask, phase), 0);
            assert_eq!(bytes, expected, "cut at {cut}");
        }
    }

    #[test]
    fn masks_differ_and_depend_on_the_secret() {
        let (mut one, mut same, mut other) = (Masks::new([1; 32]), Masks::new([1; 32]), Masks::new([2; 32]));
        let masks: Vec<_> = (0..20).map(|_| one.next()).collect();
        for (n, mask) in masks.iter().enumerate() {
            assert_eq!(*mask, same.next());
            assert_ne!(*mask, other.next());
            assert!(!masks[..n].contains(mask));
        }
    }
}
