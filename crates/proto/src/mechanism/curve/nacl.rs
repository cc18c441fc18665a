//! NaCl's boxes as CURVE uses them: X25519 for key agreement, XSalsa20-Poly1305 for sealing.
//!
//! Only this file and the two files below it name a library of ciphers. The tests compile both
//! libraries and compare them. Secrets are wiped, and tags are compared in constant time. A public
//! key that would make the shared key known to everyone is refused.

#[cfg(any(feature = "curve-dryoc", test))]
mod dryoc;
#[cfg(any(not(feature = "curve-dryoc"), test))]
mod rustcrypto;
#[cfg(test)]
mod tests;

#[cfg(feature = "curve-dryoc")]
use self::dryoc as cipher;
#[cfg(not(feature = "curve-dryoc"))]
use self::rustcrypto as cipher;

use zeroize::Zeroizing;

use super::Random;
use crate::error::{ProtocolError, Violation};
use crate::secret::Secret;

/// Number of bytes by which a box is longer than its content.
pub(super) const TAG: usize = 16;

/// A nonce of 24 bytes. XSalsa20 derives a subkey from the prefix; the other bytes are the nonce
/// for the stream of that subkey.
pub(super) struct Nonce {
    prefix: [u8; 16],
    rest: [u8; 8],
}

/// Derives the public key of a secret key.
pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
    cipher::public_key(secret)
}

/// Makes a nonce from a counter.
pub(super) fn short_nonce(prefix: &[u8; 16], counter: u64) -> Nonce {
    Nonce { prefix: *prefix, rest: counter.to_be_bytes() }
}

/// Makes a nonce from random bytes.
pub(super) fn long_nonce(prefix: &[u8; 8], random: &[u8; 16]) -> Nonce {
    let mut nonce = Nonce { prefix: [0; 16], rest: [0; 8] };
    nonce.prefix[..8].copy_from_slice(prefix);
    nonce.prefix[8..].copy_from_slice(&random[..8]);
    nonce.rest.copy_from_slice(&random[8..]);
    nonce
}

/// Returns `N` random bytes.
pub(super) fn random_bytes<const N: usize>(random: Random) -> Result<Secret<[u8; N]>, ProtocolError> {
    let mut bytes = Secret::new([0; N]);
    if random(&mut bytes[..]) { Ok(bytes) } else { Err(ProtocolError::NoRandomness) }
}

/// A key that seals and opens boxes. Two ends share it, or only one end knows it (for cookies).
pub(super) struct BoxKey(Secret<[u8; 32]>);

impl BoxKey {
    /// Agrees on a key: each end uses its own secret key and the public key of the other end.
    pub fn agreed(theirs: &[u8; 32], ours: &Secret<[u8; 32]>) -> Result<Self, ProtocolError> {
        cipher::agree(theirs, ours).map(Self).ok_or(Violation::Cryptographic.into())
    }

    /// Wraps a key of our own.
    pub fn own(key: Secret<[u8; 32]>) -> Self {
        Self(key)
    }

    /// Prepares this key for all nonces with this prefix.
    pub fn with_prefix(&self, prefix: &[u8; 16]) -> PrefixKey {
        PrefixKey(cipher::PrefixKey::new(&self.0, prefix))
    }

    /// Appends a box that holds `content`.
    pub fn seal(&self, nonce: &Nonce, content: &[&[u8]], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; TAG]);
        content.iter().for_each(|piece| out.extend_from_slice(piece));
        let (tag, body) = out[start..].split_at_mut(TAG);
        tag.copy_from_slice(&cipher::PrefixKey::new(&self.0, &nonce.prefix).seal(&nonce.rest, body));
    }

    /// Returns the content of a box.
    pub fn open(&self, nonce: &Nonce, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let (tag, body) = sealed.split_first_chunk::<TAG>().ok_or(Violation::Cryptographic)?;
        let mut content = Zeroizing::new(body.to_vec());
        let genuine = cipher::PrefixKey::new(&self.0, &nonce.prefix).open(&nonce.rest, tag, &mut content);
        if genuine { Ok(content) } else { Err(Violation::Cryptographic.into()) }
    }
}

/// A key that seals or opens one direction of a connection. The nonces of one direction differ only
/// in their counter.
pub(super) struct PrefixKey(cipher::PrefixKey);

impl PrefixKey {
    /// Encrypts `body` in place and returns its tag. The caller puts the tag in front of the body.
    pub fn seal_in_place(&self, counter: u64, body: &mut [u8]) -> [u8; TAG] {
        self.0.seal(&counter.to_be_bytes(), body)
    }

    /// Decrypts `body` in place if the tag is genuine.
    pub fn open_in_place(&self, counter: u64, tag: &[u8; TAG], body: &mut [u8]) -> Result<(), ProtocolError> {
        let genuine = self.0.open(&counter.to_be_bytes(), tag, body);
        if genuine { Ok(()) } else { Err(Violation::Cryptographic.into()) }
    }
}
