//! Certificates for tests, good until 2126, and their keys, which protect nothing.
//!
//! `taut keygen --ca` makes such files, but for the ones that are wrong on purpose.

/// An authority.
pub const CA: &str = include_str!("certificates/ca.pem");
/// A server's: `localhost`, `127.0.0.1`, `::1` and `example.org`. [`CA`] has signed it.
pub const SERVER: &str = include_str!("certificates/server.pem");
/// Its key.
pub const SERVER_KEY: &str = include_str!("certificates/server-key.pem");
/// Another of the same.
pub const RENEWED: &str = include_str!("certificates/renewed.pem");
/// Its key.
pub const RENEWED_KEY: &str = include_str!("certificates/renewed-key.pem");
/// One of the same that was good for a day in 2025.
pub const EXPIRED: &str = include_str!("certificates/expired.pem");
/// Its key.
pub const EXPIRED_KEY: &str = include_str!("certificates/expired-key.pem");
/// A client's: `alice`. [`CA`] has signed it.
pub const CLIENT: &str = include_str!("certificates/client.pem");
/// Its key.
pub const CLIENT_KEY: &str = include_str!("certificates/client-key.pem");
/// Another authority.
pub const OTHER_CA: &str = include_str!("certificates/other-ca.pem");
/// A client's: `mallory`. [`OTHER_CA`] has signed it. It has no common name, but a URI.
pub const OTHER_CLIENT: &str = include_str!("certificates/other-client.pem");
/// Its key.
pub const OTHER_CLIENT_KEY: &str = include_str!("certificates/other-client-key.pem");
/// As `openssl req -x509` makes it without further ado: an authority, signed by itself, that is
/// used as a server's. It has no name but `CN=self`.
pub const SELF_SIGNED: &str = include_str!("certificates/self-signed.pem");
/// Its key.
pub const SELF_SIGNED_KEY: &str = include_str!("certificates/self-signed-key.pem");
