//! Keys, passwords and what judges them.

use super::Builder;
use crate::curve::{KeyPair, PublicKey, SecretKey};
use crate::kind::Kind;
use crate::option;

/// Security: see [`curve`](crate::curve) and [`zap`](crate::zap).
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Rep, curve::KeyPair};
///
/// let (context, server) = (Context::new(), KeyPair::generate()?);
/// let service = Rep::builder(&context).curve_server(&server.secret).zap_domain("shop").bind("tcp://127.0.0.1:*")?;
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Encrypt, as the server of CURVE: peers must know the public key of this secret one. Which of
    /// them may come in says the context's handler, see
    /// [`Context::authenticate`](crate::Context::authenticate); without a handler, all of them. See
    /// [`curve`](crate::curve).
    pub fn curve_server(self, own: &SecretKey) -> Self {
        self.int(option::CURVE_SERVER, 1).raw_option(option::CURVE_SECRETKEY, own.expose_bytes())
    }

    /// Encrypt, as a client of CURVE: talk to no peer but the server with this key, and be known to
    /// it by `own`.
    pub fn curve_client(self, server: &PublicKey, own: &KeyPair) -> Self {
        self.raw_option(option::CURVE_SERVERKEY, server.as_bytes())
            .raw_option(option::CURVE_PUBLICKEY, own.public.as_bytes())
            .raw_option(option::CURVE_SECRETKEY, own.secret.expose_bytes())
    }

    /// Ask peers for name and password (PLAIN), which the context's handler judges; without one no
    /// peer comes in, see [`Context::authenticate`](crate::Context::authenticate). Nothing is
    /// encrypted.
    pub fn plain_server(self) -> Self {
        self.int(option::PLAIN_SERVER, 1)
    }

    /// Tell peers this name and password (PLAIN), each of 1 to 255 bytes. Nothing is encrypted.
    pub fn plain_client(self, username: &str, password: &str) -> Self {
        self.raw_option(option::PLAIN_USERNAME, username.as_bytes())
            .raw_option(option::PLAIN_PASSWORD, password.as_bytes())
    }

    /// What the context's handler is told the peers want to get at, 1 to 255 bytes: see
    /// [`Request::domain`](crate::zap::Request::domain). With a domain the handler is asked about
    /// peers without any credentials too, and no peer comes in without a handler.
    pub fn zap_domain(self, domain: &str) -> Self {
        self.raw_option(option::ZAP_DOMAIN, domain.as_bytes()).int(option::ZAP_ENFORCE_DOMAIN, 1)
    }
}
