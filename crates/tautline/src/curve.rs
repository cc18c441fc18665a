//! Keys for CURVE (RFC 26): encrypted connections between peers that identify each other by public
//! keys.
//!
//! A server has a [`KeyPair`]. Its clients know its [`PublicKey`], and each client has its own
//! pair. The context's [`zap`](crate::zap) handler decides which peers may connect. Without a
//! handler, every peer that knows the server's key may connect.
//!
//! ```
//! # fn main() -> tautline::Result<()> {
//! use tautline::curve::KeyPair;
//! use tautline::zap::AllowList;
//! use tautline::{Context, Pull, Push};
//!
//! let (server, client) = (KeyPair::generate()?, KeyPair::generate()?);
//! let context = Context::new();
//! context.authenticate(AllowList::new().key(client.public, "alice"))?;
//!
//! let mut sink = Pull::builder(&context).curve_server(&server.secret).build()?;
//! let endpoint = sink.bind("tcp://127.0.0.1:*")?;
//! let mut source = Push::builder(&context).curve_client(&server.public, &client).connect(&endpoint)?;
//!
//! source.send("for your eyes only")?;
//! let message = sink.recv()?;
//! assert_eq!(message, "for your eyes only");
//! assert_eq!(message.user_id(), Some("alice"));
//! # Ok(()) }
//! ```

use std::fmt;
use std::str::FromStr;

use tautline_core::{Secret, fill_random, public_key, z85};

use crate::error::{Error, Result};

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 32;

/// Reason why a text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "crate::serde::KeyErrorForm"))]
#[cfg_attr(feature = "serde", serde(from = "crate::serde::KeyErrorForm"))]
#[non_exhaustive]
pub enum KeyError {
    /// A key in Z85 has 40 characters; this text has another length, in bytes.
    Length(u32),
    /// The text contains a character outside of Z85, or five characters whose value exceeds 32
    /// bits.
    NotZ85,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Length(length) => write!(f, "a key in Z85 must have 40 characters, not {length}"),
            KeyError::NotZ85 => f.write_str("the text of a key is not Z85"),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Error::MalformedKey(error)
    }
}

fn decode(text: &str) -> std::result::Result<[u8; KEY_BYTES], KeyError> {
    match z85::decode_key(text.as_bytes()) {
        Some(key) => Ok(key),
        None if text.len() != z85::KEY_LENGTH => {
            Err(KeyError::Length(u32::try_from(text.len()).unwrap_or(u32::MAX)))
        }
        None => Err(KeyError::NotZ85),
    }
}

fn encode(key: &[u8; KEY_BYTES]) -> String {
    z85::encode_key(key).into_iter().map(char::from).collect()
}

/// A key that may be published. It identifies its owner.
///
/// Displayed and parsed as the 40 characters of Z85 that other ZeroMQ programs use.
///
/// ```
/// use tautline::curve::PublicKey;
///
/// let text = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
/// let key: PublicKey = text.parse().unwrap();
/// assert_eq!(key.to_string(), text);
/// assert_eq!(PublicKey::from(*key.as_bytes()), key);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// Returns the bytes of the key.
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl From<[u8; KEY_BYTES]> for PublicKey {
    fn from(bytes: [u8; KEY_BYTES]) -> Self {
        PublicKey(bytes)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> std::result::Result<Self, KeyError> {
        decode(text).map(PublicKey)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// A key that must stay secret. It is wiped when it is dropped, not shown by `Debug`, and compared
/// in constant time.
///
/// ```
/// use tautline::curve::{PublicKey, SecretKey};
///
/// let secret: SecretKey = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6".parse().unwrap();
/// assert_eq!(secret.public_key().to_string(), "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7");
/// assert_eq!(format!("{secret:?}"), "SecretKey(..)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(Secret<[u8; KEY_BYTES]>);

impl SecretKey {
    /// Returns the public key that belongs to it.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(public_key(&self.0))
    }

    /// Returns the bytes, for secure storage.
    pub fn expose_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Returns the key as Z85, for secure storage. The returned text is not wiped.
    pub fn expose_z85(&self) -> String {
        encode(&self.0)
    }
}

/// The caller must wipe its own copy, if it keeps one.
impl From<[u8; KEY_BYTES]> for SecretKey {
    fn from(bytes: [u8; KEY_BYTES]) -> Self {
        SecretKey(Secret::new(bytes))
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> std::result::Result<Self, KeyError> {
        decode(text).map(SecretKey::from)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// A secret key and its public key.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::curve::{KeyPair, SecretKey};
///
/// let pair = KeyPair::generate()?;
/// let stored = pair.secret.expose_z85();
/// // Later:
/// let again = KeyPair::from(stored.parse::<SecretKey>()?);
/// assert_eq!(again, pair);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// Public key, to give to the peers.
    pub public: PublicKey,
    /// Secret key, to keep.
    pub secret: SecretKey,
}

impl KeyPair {
    /// Creates a pair from the system's random source.
    ///
    /// # Errors
    /// Returns [`Error::Os`] if the system provides no random bytes.
    pub fn generate() -> Result<Self> {
        let mut secret = Secret::new([0; KEY_BYTES]);
        fill_random(&mut secret[..]).map_err(|error| Error::from(tautline_core::Error::from(error)))?;
        Ok(KeyPair::from(SecretKey(secret)))
    }
}

impl From<SecretKey> for KeyPair {
    fn from(secret: SecretKey) -> Self {
        KeyPair { public: secret.public_key(), secret }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_keys_are_told_apart() {
        assert_eq!("short".parse::<PublicKey>(), Err(KeyError::Length(5)));
        assert_eq!("~".repeat(40).parse::<PublicKey>(), Err(KeyError::NotZ85));
        assert_eq!("#".repeat(40).parse::<SecretKey>().unwrap_err(), KeyError::NotZ85);
        let error = Error::from(KeyError::Length(5));
        assert_eq!(error.to_string(), "a key in Z85 must have 40 characters, not 5");
        assert_eq!(error.errno(), tautline_core::Error::Invalid.errno());
    }

    #[test]
    fn key_pairs_are_unique_and_round_trip() {
        let (one, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.public.to_string().parse(), Ok(one.public));
        assert_eq!(KeyPair::from(SecretKey::from(*one.secret.expose_bytes())), one);
        assert!(!format!("{one:?}").contains(&one.secret.expose_z85()));
    }
}
