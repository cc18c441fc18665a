//! Boxes made by the crates of dalek and RustCrypto. This is the default.
//!
//! The crate crypto_box would do the same, but it copies its input and depends on versions of these
//! crates from 2023. The few lines that join the three primitives are here, and the tests compare
//! them with the results of other libraries.

use poly1305::Poly1305;
use poly1305::universal_hash::NewUniversalHash;
use salsa20::cipher::consts::U10;
use salsa20::cipher::{KeyIvInit, StreamCipher};
use salsa20::{Salsa20, hsalsa};
use subtle::ConstantTimeEq;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::TAG;
use crate::secret::Secret;

/// Derives the public key of a secret key.
pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
    PublicKey::from(&StaticSecret::from(*secret)).to_bytes()
}

/// Agrees on a key. Returns `None` if the other public key would make the result known to everyone.
pub fn agree(theirs: &[u8; 32], ours: &[u8; 32]) -> Option<Secret<[u8; 32]>> {
    let shared = StaticSecret::from(*ours).diffie_hellman(&PublicKey::from(*theirs));
    shared.was_contributory().then(|| subkey(shared.as_bytes(), &[0; 16]))
}

/// A key for all nonces that begin with the same 16 octets: the first half of XSalsa20, computed
/// once.
pub struct PrefixKey(Secret<[u8; 32]>);

impl PrefixKey {
    pub fn new(key: &[u8; 32], prefix: &[u8; 16]) -> Self {
        Self(subkey(key, prefix))
    }

    /// Encrypts `body` in place and returns its tag.
    pub fn seal(&self, rest: &[u8; 8], body: &mut [u8]) -> [u8; TAG] {
        let (mut stream, authenticator) = self.start(rest);
        stream.apply_keystream(body);
        authenticator.compute_unpadded(body).into_bytes().into()
    }

    /// Decrypts `body` in place. If the tag does not match, returns false and leaves `body`
    /// unchanged.
    pub fn open(&self, rest: &[u8; 8], tag: &[u8; TAG], body: &mut [u8]) -> bool {
        let (mut stream, authenticator) = self.start(rest);
        let expected: [u8; TAG] = authenticator.compute_unpadded(body).into_bytes().into();
        let genuine = expected.ct_eq(tag).into();
        if genuine {
            stream.apply_keystream(body);
        }
        genuine
    }

    /// Returns the key stream after its first 32 octets, which are the key of the tag.
    fn start(&self, rest: &[u8; 8]) -> (Salsa20, Poly1305) {
        let mut stream = Salsa20::new((&*self.0).into(), rest.into());
        let mut key = Zeroizing::new([0; 32]);
        stream.apply_keystream(&mut key[..]);
        (stream, Poly1305::new((&*key).into()))
    }
}

pub(super) fn subkey(key: &[u8; 32], input: &[u8; 16]) -> Secret<[u8; 32]> {
    let bytes: [u8; 32] = hsalsa::<U10>(key.into(), input.into()).into();
    bytes.into()
}
