//! Certificates for tests, valid until 2126, and their keys, which protect no data.
//!
//! `taut keygen --ca` makes such files, except the ones that are wrong on purpose.

/// Certificate authority.
pub const CA: &str = include_str!("certificates/ca.pem");
/// Server certificate for `localhost`, `127.0.0.1`, `::1` and `example.org`, signed by [`CA`].
pub const SERVER: &str = include_str!("certificates/server.pem");
/// Key of [`SERVER`].
pub const SERVER_KEY: &str = include_str!("certificates/server-key.pem");
/// Second certificate with the content of [`SERVER`].
pub const RENEWED: &str = include_str!("certificates/renewed.pem");
/// Key of [`RENEWED`].
pub const RENEWED_KEY: &str = include_str!("certificates/renewed-key.pem");
/// Certificate with the content of [`SERVER`] that was valid for a day in 2025.
pub const EXPIRED: &str = include_str!("certificates/expired.pem");
/// Key of [`EXPIRED`].
pub const EXPIRED_KEY: &str = include_str!("certificates/expired-key.pem");
/// Client certificate for `alice`, signed by [`CA`].
pub const CLIENT: &str = include_str!("certificates/client.pem");
/// Key of [`CLIENT`].
pub const CLIENT_KEY: &str = include_str!("certificates/client-key.pem");
/// Second certificate authority.
pub const OTHER_CA: &str = include_str!("certificates/other-ca.pem");
/// Client certificate for `mallory`, signed by [`OTHER_CA`], with a URI instead of a common name.
pub const OTHER_CLIENT: &str = include_str!("certificates/other-client.pem");
/// Key of [`OTHER_CLIENT`].
pub const OTHER_CLIENT_KEY: &str = include_str!("certificates/other-client-key.pem");
/// Certificate as `openssl req -x509` makes it by default: a self-signed authority that is used as
/// a server certificate. Its only name is `CN=self`.
pub const SELF_SIGNED: &str = include_str!("certificates/self-signed.pem");
/// Key of [`SELF_SIGNED`].
pub const SELF_SIGNED_KEY: &str = include_str!("certificates/self-signed-key.pem");
/// Certificate authority with a P-521 key, which the library does not support.
pub const P521_CA: &str = include_str!("certificates/p521-ca.pem");
/// Key of [`P521_CA`].
pub const P521_KEY: &str = include_str!("certificates/p521-key.pem");
/// Certificate authority with an RSA key of 1024 bits, which the library does not support.
pub const RSA_1024_CA: &str = include_str!("certificates/rsa-1024-ca.pem");
/// Key of [`RSA_1024_CA`].
pub const RSA_1024_KEY: &str = include_str!("certificates/rsa-1024-key.pem");
/// [`SERVER_KEY`], encrypted with a passphrase (PKCS#8).
pub const ENCRYPTED_KEY: &str = include_str!("certificates/encrypted-key.pem");
/// [`RSA_1024_KEY`], encrypted with a passphrase (PKCS#1).
pub const ENCRYPTED_RSA_KEY: &str = include_str!("certificates/encrypted-rsa-key.pem");
