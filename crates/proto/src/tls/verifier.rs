//! Verifies certificates against the trusted ones.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

use super::config::BadCredentials;
use super::pem;

/// Trusted certificates.
pub(super) struct Trusted {
    /// Certificates that are trusted themselves.
    pinned: Vec<CertificateDer<'static>>,
    /// Certificates at which a chain may end.
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl Trusted {
    pub(super) fn new(
        pem: &[u8],
        further: impl IntoIterator<Item = Vec<u8>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, BadCredentials> {
        let pinned = if pem.is_empty() { Vec::new() } else { pem::trusted(pem, provider)? };
        let mut roots = RootCertStore::empty();
        // A certificate that cannot be the end of a chain may still be trusted itself.
        roots.add_parsable_certificates(pinned.iter().cloned());
        roots.add_parsable_certificates(further.into_iter().map(CertificateDer::from));
        Ok(Trusted { pinned, roots: Arc::new(roots), provider: provider.clone() })
    }

    /// True if the certificate is itself among the trusted ones. Such a certificate may still have
    /// expired: `judged`, the verdict about its chain, reports that first.
    fn has<T>(&self, certificate: &CertificateDer<'_>, judged: &Result<T, Error>) -> bool {
        use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        let is_in_time = !matches!(
            judged,
            Err(Error::InvalidCertificate(
                Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. }
            ))
        );
        is_in_time && self.pinned.iter().any(|trusted| trusted.as_ref() == certificate.as_ref())
    }

    fn verify_tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Judges a server's certificate.
pub(super) struct Servers {
    trusted: Trusted,
    name: Option<ServerName<'static>>,
}

impl Servers {
    pub(super) fn new(trusted: Trusted, name: Option<ServerName<'static>>) -> Self {
        Servers { trusted, name }
    }
}

impl ServerCertVerifier for Servers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let Trusted { roots, provider, .. } = &self.trusted;
        let algorithms = provider.signature_verification_algorithms.all;
        let judged =
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms);
        if self.trusted.has(end_entity, &judged) {
            return Ok(ServerCertVerified::assertion());
        }
        judged?;
        if let Some(name) = &self.name {
            verify_server_name(&certificate, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted.verify_tls12(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted.verify_tls13(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trusted.schemes()
    }
}

/// Judges the certificates of clients.
pub(super) struct Clients {
    trusted: Trusted,
    /// Verifies chains; `None` if no certificate can end a chain.
    chains: Option<Arc<dyn ClientCertVerifier>>,
}

impl Clients {
    pub(super) fn new(trusted: Trusted) -> Result<Self, BadCredentials> {
        let (roots, provider) = (trusted.roots.clone(), trusted.provider.clone());
        let chains = if roots.is_empty() {
            None
        } else {
            let built = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            Some(built.map_err(|_| BadCredentials::Trust)?)
        };
        Ok(Clients { trusted, chains })
    }
}

impl ClientCertVerifier for Clients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chains.as_ref().map_or(&[], |chains| chains.root_hint_subjects())
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let judged = match &self.chains {
            Some(chains) => chains.verify_client_cert(end_entity, intermediates, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        };
        if self.trusted.has(end_entity, &judged) { Ok(ClientCertVerified::assertion()) } else { judged }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted.verify_tls12(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted.verify_tls13(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trusted.schemes()
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}
