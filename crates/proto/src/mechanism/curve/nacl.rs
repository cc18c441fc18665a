//! NaCl's boxes as CURVE uses them: X25519 for agreeing on a key, XSalsa20-Poly1305 for sealing
//! with it.
//!
//! Only this file and the two below it name a library of ciphers; both are compiled into the tests,
//! which compare them. Secrets are wiped, tags are compared in constant time, and a public key that
//! would make the shared key known to all is refused.

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
use crate::error::{Clause, ProtocolError};
use crate::secret::Secret;

/// Bytes that a box is longer than its content.
pub(super) const TAG: usize = 16;

/// A nonce of 24 bytes: what XSalsa20 makes a subkey with, and what is left for the stream of that
/// subkey.
pub(super) struct Nonce {
    prefix: [u8; 16],
    rest: [u8; 8],
}

/// The public key of a secret one.
pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
    cipher::public_key(secret)
}

/// A nonce that counts.
pub(super) fn short_nonce(prefix: &[u8; 16], counter: u64) -> Nonce {
    Nonce { prefix: *prefix, rest: counter.to_be_bytes() }
}

/// A nonce that is random.
pub(super) fn long_nonce(prefix: &[u8; 8], random: &[u8; 16]) -> Nonce {
    let mut nonce = Nonce { prefix: [0; 16], rest: [0; 8] };
    nonce.prefix[..8].copy_from_slice(prefix);
    nonce.prefix[8..].copy_from_slice(&random[..8]);
    nonce.rest.copy_from_slice(&random[8..]);
    nonce
}

/// `N` random bytes.
pub(super) fn random_bytes<const N: usize>(random: Random) -> Result<Secret<[u8; N]>, ProtocolError> {
    let mut bytes = Secret::new([0; N]);
    if random(&mut bytes[..]) { Ok(bytes) } else { Err(ProtocolError::NoRandomness) }
}

/// A key that seals and opens boxes: shared by two ends, or known to one only (for cookies).
pub(super) struct BoxKey(Secret<[u8; 32]>);

impl BoxKey {
    /// What two ends agree on, each with its own secret key and the other's public one.
    pub fn agreed(theirs: &[u8; 32], ours: &Secret<[u8; 32]>) -> Result<Self, ProtocolError> {
        cipher::agree(theirs, ours).map(Self).ok_or(Clause::Cryptographic.into())
    }

    /// A key of our own.
    pub fn own(key: Secret<[u8; 32]>) -> Self {
        Self(key)
    }

    /// This key for all nonces with this prefix.
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

    /// The content of a box.
    pub fn open(&self, nonce: &Nonce, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let (tag, body) = sealed.split_first_chunk::<TAG>().ok_or(Clause::Cryptographic)?;
        let mut content = Zeroizing::new(body.to_vec());
        let genuine = cipher::PrefixKey::new(&self.0, &nonce.prefix).open(&nonce.rest, tag, &mut content);
        if genuine { Ok(content) } else { Err(Clause::Cryptographic.into()) }
    }
}

/// A key that seals or opens one direction of a connection, whose nonces differ in their counter
/// only.
pub(super) struct PrefixKey(cipher::PrefixKey);

impl PrefixKey {
    /// Encrypts `body` where it is, and returns its tag, which belongs in front of it.
    pub fn seal_in_place(&self, counter: u64, body: &mut [u8]) -> [u8; TAG] {
        self.0.seal(&counter.to_be_bytes(), body)
    }

    /// Decrypts `body` where it is, if the tag says that it is genuine.
    pub fn open_in_place(&self, counter: u64, tag: &[u8; TAG], body: &mut [u8]) -> Result<(), ProtocolError> {
        let genuine = self.0.open(&counter.to_be_bytes(), tag, body);
        if genuine { Ok(()) } else { Err(Clause::Cryptographic.into()) }
    }
}
