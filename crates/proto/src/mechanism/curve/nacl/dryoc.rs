//! Boxes made by the crate dryoc, used with the feature `curve-dryoc`.

use dryoc::classic::crypto_box::{
    crypto_box_beforenm, crypto_box_detached_afternm_inplace, crypto_box_open_detached_afternm_inplace,
};
use dryoc::classic::crypto_core::crypto_scalarmult_base;

use super::TAG;
use crate::secret::Secret;

/// Derives the public key of a secret key.
pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
    let mut public = [0; 32];
    crypto_scalarmult_base(&mut public, secret);
    public
}

/// Agrees on a key. Returns `None` if the other public key would make the result known to everyone.
pub fn agree(theirs: &[u8; 32], ours: &[u8; 32]) -> Option<Secret<[u8; 32]>> {
    crypto_box_beforenm(theirs, ours).ok().map(Secret::new)
}

/// A key for all nonces that begin with the same 16 octets.
pub struct PrefixKey {
    key: Secret<[u8; 32]>,
    prefix: [u8; 16],
}

impl PrefixKey {
    pub fn new(key: &[u8; 32], prefix: &[u8; 16]) -> Self {
        Self { key: Secret::new(*key), prefix: *prefix }
    }

    /// Encrypts `body` in place and returns its tag.
    pub fn seal(&self, rest: &[u8; 8], body: &mut [u8]) -> [u8; TAG] {
        let mut tag = [0; TAG];
        crypto_box_detached_afternm_inplace(body, &mut tag, &self.nonce(rest), &self.key);
        tag
    }

    /// Decrypts `body` in place. If the tag does not match, returns false and leaves `body`
    /// unchanged.
    pub fn open(&self, rest: &[u8; 8], tag: &[u8; TAG], body: &mut [u8]) -> bool {
        crypto_box_open_detached_afternm_inplace(body, tag, &self.nonce(rest), &self.key).is_ok()
    }

    fn nonce(&self, rest: &[u8; 8]) -> [u8; 24] {
        let mut nonce = [0; 24];
        nonce[..16].copy_from_slice(&self.prefix);
        nonce[16..].copy_from_slice(rest);
        nonce
    }
}
