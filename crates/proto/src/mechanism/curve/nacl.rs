//! NaCl's boxes as CURVE uses them: X25519 for agreeing on a key, XSalsa20-Poly1305 for sealing with it.
//!
//! The only file that names the library. Secrets are wiped, tags are compared by the library in constant time, and a public key that
//! would make the shared key known to everybody is refused.

use dryoc::classic::crypto_box::{
    crypto_box_beforenm, crypto_box_detached_afternm_inplace, crypto_box_open_detached_afternm_inplace,
};
use dryoc::classic::crypto_core::crypto_scalarmult_base;
use zeroize::Zeroizing;

use super::Random;
use crate::error::{Clause, ProtocolError};
use crate::secret::Secret;

/// Bytes that a box is longer than its content.
pub(super) const TAG: usize = 16;

/// A nonce of 24 bytes: a prefix, and what makes it different from all others with that prefix.
pub(super) type Nonce = [u8; 24];

/// The public key of a secret one.
pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
    let mut public = [0; 32];
    crypto_scalarmult_base(&mut public, secret);
    public
}

/// A nonce that counts.
pub(super) fn short_nonce(prefix: &[u8; 16], counter: u64) -> Nonce {
    let mut nonce = [0; 24];
    nonce[..16].copy_from_slice(prefix);
    nonce[16..].copy_from_slice(&counter.to_be_bytes());
    nonce
}

/// A nonce that is random.
pub(super) fn long_nonce(prefix: &[u8; 8], random: &[u8; 16]) -> Nonce {
    let mut nonce = [0; 24];
    nonce[..8].copy_from_slice(prefix);
    nonce[8..].copy_from_slice(random);
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
        crypto_box_beforenm(theirs, ours)
            .map(|key| Self(key.into()))
            .map_err(|_| Clause::Cryptographic.into())
    }

    /// A key of our own.
    pub fn own(key: Secret<[u8; 32]>) -> Self {
        Self(key)
    }

    /// Encrypts `body` where it is, and returns its tag, which belongs in front of it.
    pub fn seal_in_place(&self, nonce: &Nonce, body: &mut [u8]) -> [u8; TAG] {
        let mut tag = [0; TAG];
        crypto_box_detached_afternm_inplace(body, &mut tag, nonce, &self.0);
        tag
    }

    /// Decrypts `body` where it is, if the tag says that it is genuine.
    pub fn open_in_place(
        &self,
        nonce: &Nonce,
        tag: &[u8; TAG],
        body: &mut [u8],
    ) -> Result<(), ProtocolError> {
        crypto_box_open_detached_afternm_inplace(body, tag, nonce, &self.0)
            .map_err(|_| Clause::Cryptographic.into())
    }

    /// Appends a box that holds `content`.
    pub fn seal(&self, nonce: &Nonce, content: &[&[u8]], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; TAG]);
        content.iter().for_each(|piece| out.extend_from_slice(piece));
        let (head, body) = out[start..].split_at_mut(TAG);
        head.copy_from_slice(&self.seal_in_place(nonce, body));
    }

    /// The content of a box.
    pub fn open(&self, nonce: &Nonce, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let (tag, body) = sealed.split_first_chunk::<TAG>().ok_or(Clause::Cryptographic)?;
        let mut content = Zeroizing::new(body.to_vec());
        self.open_in_place(nonce, tag, &mut content)?;
        Ok(content)
    }
}
