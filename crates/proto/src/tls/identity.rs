//! Certificate and key that an end of TLS shows.

use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::config::{BadCredentials, provider};
use super::pem;

/// A certificate and its key, both in PEM.
///
/// A server may have several certificates, for several names. Each certificate is followed by its
/// chain to a certificate that the peers trust; the keys may be in any order. A client uses only
/// its first certificate. A key without a certificate is skipped, because it may belong to the next
/// certificate.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    /// The certificate, followed by its chain to a certificate that the peers trust.
    pub certificates: &'a [u8],
    /// Secret key of the certificate.
    pub key: &'a [u8],
}

impl Identity<'_> {
    /// Checks that an end of TLS can show this certificate.
    ///
    /// # Errors
    /// Returns [`BadCredentials`] of the certificate or the key.
    pub fn check(&self) -> Result<(), BadCredentials> {
        self.read(&provider()).map(drop)
    }

    /// Returns each certificate that has a key, with its chain, in the order of the text.
    pub(super) fn read(&self, provider: &CryptoProvider) -> Result<CertificateChooser, BadCredentials> {
        let certificates = pem::certificates(self.certificates)?;
        let mut keys = Vec::new();
        for key in pem::keys(self.key)? {
            keys.push(provider.key_provider.load_private_key(key).map_err(|_| BadCredentials::KeyKind)?);
        }
        let with_key = |certificate: &CertificateDer<'static>| {
            let with = |key: &Arc<_>| CertifiedKey::new(vec![certificate.clone()], Arc::clone(key));
            keys.iter().map(with).find(|both| both.keys_match().is_ok())
        };
        let mut shows: Vec<CertifiedKey> = Vec::new();
        for (index, certificate) in certificates.iter().enumerate() {
            match (with_key(certificate), shows.last_mut()) {
                (Some(both), _) => shows.push(both),
                // This certificate continues the chain of the previous one.
                (None, Some(last)) => last.cert.push(certificate.clone()),
                (None, None) => {
                    ParsedCertificate::try_from(certificate).map_err(|_| BadCredentials::Certificate)?;
                    let is_later = certificates[index..].iter().any(|later| with_key(later).is_some());
                    return Err(if is_later { BadCredentials::Order } else { BadCredentials::KeyMismatch });
                }
            }
        }
        Ok(CertificateChooser(shows.into_iter().map(Arc::new).collect()))
    }
}

/// Certificates that this end can show, at least one.
#[derive(Debug)]
pub(super) struct CertificateChooser(Vec<Arc<CertifiedKey>>);

impl CertificateChooser {
    /// Returns only the first certificate.
    pub(super) fn first(self) -> Option<SingleCertAndKey> {
        self.0.into_iter().next().map(SingleCertAndKey::from)
    }
}

/// Chooses the first certificate that has the name that the client asks for (RFC 6066, 3) and a
/// kind of key that the client knows. If no certificate fits, chooses the first one of all.
impl ResolvesServerCert for CertificateChooser {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let knows = |one: &&Arc<CertifiedKey>| one.key.choose_scheme(client.signature_schemes()).is_some();
        let name = client.server_name().and_then(|name| ServerName::try_from(name).ok());
        let named = name.and_then(|name| self.0.iter().filter(knows).find(|one| has(one, &name)));
        named.or_else(|| self.0.iter().find(knows)).or(self.0.first()).cloned()
    }
}

fn has(shown: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let own: Option<&CertificateDer<'_>> = shown.cert.first();
    own.and_then(|own| ParsedCertificate::try_from(own).ok())
        .is_some_and(|own| verify_server_name(&own, name).is_ok())
}
