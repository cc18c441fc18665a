//! CURVE in each of the four programs.

use languages_rust_tautline::{Keys, fail};
use tautline::curve::{KeyPair, SecretKey};
use tautline::{Builder, kind::Kind};

/// Adds the keys of CURVE, if the environment has some.
pub fn secure<K: Kind>(socket: Builder<K>) -> Builder<K> {
    match Keys::read() {
        None => socket,
        Some(Keys::Server { secret }) => socket.curve_server(&key(&secret)),
        // The public key follows from the secret key.
        Some(Keys::Client { secret, server, .. }) => {
            socket.curve_client(&key(&server), &KeyPair::from(key::<SecretKey>(&secret)))
        }
    }
}

fn key<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| fail("a variable of CURVE contains no key"))
}
