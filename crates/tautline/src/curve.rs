//! Keys for CURVE (RFC 26): encrypted connections whose peers know each other by their public keys.
//!
//! A server has a [`KeyPair`]; its clients know its [`PublicKey`] and each has a pair of its own.
//! Which peers may come in is up to the context's [`zap`](crate::zap) handler; without one it is
//! every peer that knows the server's key.
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

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// What is wrong with the text of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "crate::serde::KeyErrorForm"))]
#[cfg_attr(feature = "serde", serde(from = "crate::serde::KeyErrorForm"))]
#[non_exhaustive]
pub enum KeyError {
    /// A key in Z85 has 40 characters; this text has another number of bytes.
    Length(u32),
    /// There is a character that Z85 does not have, or five characters that stand for no number of
    /// 32 bits.
    NotZ85,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Length(length) => write!(f, "a key in Z85 has 40 characters, not {length}"),
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

/// A key that may be known to all; it tells its owner from others.
///
/// Shown and parsed as the 40 characters of Z85 that other ZeroMQ programs use.
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
    /// The bytes of the key.
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

/// A key that no one else may know. Wiped when it is dropped, not shown by `Debug`, compared in
/// constant time.
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
    /// The public key that belongs to it.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(public_key(&self.0))
    }

    /// The bytes, for storing them where no one else can read them.
    pub fn expose_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// The key as Z85, for storing it where no one else can read it. The text is not wiped.
    pub fn expose_z85(&self) -> String {
        encode(&self.0)
    }
}

/// The caller's own copy, if it keeps one, is its business.
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

/// A secret key and the public one that belongs to it.
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
    /// To be given to the peers.
    pub public: PublicKey,
    /// To be kept.
    pub secret: SecretKey,
}

impl KeyPair {
    /// A new pair from the system's random source.
    ///
    /// # Errors
    /// [`Error::Os`] if the system gives no random bytes.
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
        assert_eq!(error.to_string(), "a key in Z85 has 40 characters, not 5");
        assert_eq!(error.errno(), tautline_core::Error::Invalid.errno());
    }

    #[test]
    fn pairs_differ_and_survive_as_text() {
        let (one, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.public.to_string().parse(), Ok(one.public));
        assert_eq!(KeyPair::from(SecretKey::from(*one.secret.expose_bytes())), one);
        assert!(!format!("{one:?}").contains(&one.secret.expose_z85()));
    }
}
