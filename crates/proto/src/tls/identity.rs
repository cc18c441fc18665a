//! What an end of TLS shows of itself.

use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::config::{BadCredentials, certificates_in};

/// A certificate and its key, both in PEM.
///
/// A server may have several, for several names: each certificate with those that lead from it to
/// one the peers trust behind it, and all keys, in any order. A client's first one counts. A key
/// without a certificate is passed over: it may be that of the next one.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    /// The certificate, and behind it those that lead from it to one the peers trust.
    pub certificates: &'a [u8],
    /// Its secret key.
    pub key: &'a [u8],
}

impl Identity<'_> {
    /// Each certificate that has a key, with its chain, in the order in which they stand.
    pub(super) fn read(&self, provider: &CryptoProvider) -> Result<Shows, BadCredentials> {
        let certificates = certificates_in(self.certificates).ok_or(BadCredentials::Certificate)?;
        let mut keys = Vec::new();
        for key in PrivateKeyDer::pem_slice_iter(self.key) {
            let key = key.map_err(|_| BadCredentials::Key)?;
            keys.push(provider.key_provider.load_private_key(key).map_err(|_| BadCredentials::Key)?);
        }
        if keys.is_empty() {
            return Err(BadCredentials::Key);
        }
        let mut shows: Vec<CertifiedKey> = Vec::new();
        for certificate in certificates {
            let with = |key: &Arc<_>| CertifiedKey::new(vec![certificate.clone()], Arc::clone(key));
            match (keys.iter().map(with).find(|both| both.keys_match().is_ok()), shows.last_mut()) {
                (Some(both), _) => shows.push(both),
                // It leads on from the one before it.
                (None, Some(last)) => last.cert.push(certificate),
                (None, None) => {
                    ParsedCertificate::try_from(&certificate).map_err(|_| BadCredentials::Certificate)?;
                    return Err(BadCredentials::OtherKey);
                }
            }
        }
        Ok(Shows(shows.into_iter().map(Arc::new).collect()))
    }
}

/// What can be shown; there is at least one.
#[derive(Debug)]
pub(super) struct Shows(Vec<Arc<CertifiedKey>>);

impl Shows {
    /// The first one alone.
    pub(super) fn first(self) -> Option<SingleCertAndKey> {
        self.0.into_iter().next().map(SingleCertAndKey::from)
    }
}

/// The first one that has the name that the client asks for (RFC 6066, 3) and a kind of key that it
/// knows; where none has, the first one of all.
impl ResolvesServerCert for Shows {
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
