//! Keys, passwords and access control.

use super::Builder;
use crate::curve::{KeyPair, PublicKey, SecretKey};
use crate::kind::Kind;
use crate::option;

/// Options for security: see [`curve`](crate::curve) and [`zap`](crate::zap).
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
    /// Encrypts as a CURVE server. Peers must know the public key of this secret key. The handler
    /// of the context decides which peers may connect, see
    /// [`Context::authenticate`](crate::Context::authenticate). Without a handler, all peers may
    /// connect. See [`curve`](crate::curve).
    pub fn curve_server(self, own: &SecretKey) -> Self {
        self.int(option::CURVE_SERVER, 1).raw_option(option::CURVE_SECRETKEY, own.expose_bytes())
    }

    /// Encrypts as a CURVE client. The socket talks only to the server with the key `server`, and
    /// identifies itself by `own`.
    pub fn curve_client(self, server: &PublicKey, own: &KeyPair) -> Self {
        self.raw_option(option::CURVE_SERVERKEY, server.as_bytes())
            .raw_option(option::CURVE_PUBLICKEY, own.public.as_bytes())
            .raw_option(option::CURVE_SECRETKEY, own.secret.expose_bytes())
    }

    /// Requires name and password from peers (PLAIN). The handler of the context checks them, see
    /// [`Context::authenticate`](crate::Context::authenticate). Without a handler, every peer is
    /// refused. The connection is not encrypted.
    pub fn plain_server(self) -> Self {
        self.int(option::PLAIN_SERVER, 1)
    }

    /// Sends this name and password to peers (PLAIN), 1 to 255 bytes each. The connection is not
    /// encrypted.
    pub fn plain_client(self, username: &str, password: &str) -> Self {
        self.raw_option(option::PLAIN_USERNAME, username.as_bytes())
            .raw_option(option::PLAIN_PASSWORD, password.as_bytes())
    }

    /// Sets the domain that the handler of the context receives, 1 to 255 bytes: see
    /// [`Request::domain`](crate::zap::Request::domain). With a domain, the handler also checks
    /// peers without credentials, and without a handler every peer is refused.
    pub fn zap_domain(self, domain: &str) -> Self {
        self.raw_option(option::ZAP_DOMAIN, domain.as_bytes()).int(option::ZAP_ENFORCE_DOMAIN, 1)
    }
}
