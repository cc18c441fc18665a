//! The handshake item that is being gathered.
//!
//! Most items are short and are stored in the session itself, so that thousands of handshakes at a
//! time need no extra memory. The bytes of an item are wiped, because they may be a password.

use std::ops::Deref;

use zeroize::Zeroize;

use crate::error::ProtocolError;
use crate::greeting::GREETING_LEN;
use crate::memory::reserve;
use crate::secret::Secret;

/// Up to this length, all memory for an item is reserved at once; a HELLO of PLAIN is shorter than
/// this. The memory of longer items grows with them.
const WHOLE: usize = 600;

/// The bytes of an item.
pub(super) struct HandshakeBuffer {
    short: Secret<[u8; GREETING_LEN]>,
    /// Number of bytes in `short`. If `long` is not empty, the bytes are in `long` instead.
    len: usize,
    long: Secret<Vec<u8>>,
}

impl HandshakeBuffer {
    pub(super) fn new() -> Self {
        Self { short: [0; GREETING_LEN].into(), len: 0, long: Secret::default() }
    }

    /// Adds bytes, if there is memory for them. `wanted` is the expected total length.
    pub(super) fn add(&mut self, bytes: &[u8], wanted: usize) -> Result<(), ProtocolError> {
        let len = self.len + bytes.len();
        if self.long.is_empty()
            && let Some(place) = self.short.get_mut(self.len..len)
        {
            place.copy_from_slice(bytes);
            self.len = len;
            return Ok(());
        }
        if wanted <= WHOLE {
            // Otherwise growing would leave parts of the item behind in freed memory.
            let missing = wanted - self.long.len();
            self.long.try_reserve_exact(missing).map_err(|_| ProtocolError::NoMemory)?;
        }
        reserve(&mut self.long, len)?;
        self.long.extend_from_slice(&self.short[..self.len]);
        self.long.extend_from_slice(bytes);
        self.short.zeroize();
        self.len = 0;
        Ok(())
    }

    /// Starts the next item.
    pub(super) fn clear(&mut self) {
        self.short.zeroize();
        self.len = 0;
        self.long = Secret::default();
    }
}

impl Deref for HandshakeBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.len] } else { &self.long }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_every_length_in_pieces_of_every_length() {
        let all: Vec<u8> = (0..=255).cycle().take(WHOLE + 100).collect();
        let mut item = HandshakeBuffer::new();
        for len in (0..=2 * GREETING_LEN).chain([WHOLE, WHOLE + 1, all.len()]) {
            for piece in [1, 7, GREETING_LEN, len.max(1)] {
                for bytes in all[..len].chunks(piece) {
                    let wanted = (item.len() + 10).max(item.len() + bytes.len());
                    item.add(bytes, wanted).unwrap();
                }
                assert!(*item == all[..len], "{len} in pieces of {piece}");
                item.clear();
                assert!(item.is_empty() && *item.short == [0; GREETING_LEN]);
            }
        }
    }
}
