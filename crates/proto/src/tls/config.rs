//! Configuration of the ends of TLS, made once for an endpoint.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, ServerConfig, SupportedProtocolVersion, version};

use super::identity::{CertificateChooser, Identity};
use super::pem;
use super::verifier::{Clients, Servers, Trusted};

/// Fault in the given certificates, keys or names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadCredentials {
    /// There is no certificate.
    NoCertificate,
    /// A certificate is malformed.
    Certificate,
    /// A certificate has another form than `-----BEGIN CERTIFICATE-----`.
    CertificateForm,
    /// The key belongs to a certificate that is not the first one.
    Order,
    /// There is no key.
    NoKey,
    /// The key is malformed.
    Key,
    /// The key is encrypted with a passphrase.
    EncryptedKey,
    /// The key is of an unsupported kind.
    KeyKind,
    /// The key belongs to another certificate.
    KeyMismatch,
    /// There is no trusted certificate.
    NoTrust,
    /// A trusted certificate is malformed.
    Trust,
    /// A trusted certificate has another form than `-----BEGIN CERTIFICATE-----`.
    TrustForm,
    /// A trusted certificate has a key of an unsupported kind.
    TrustKind,
    /// No certificate can have this name.
    Name,
}

/// Part of the credentials with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialPart {
    /// The own certificates.
    Certificate,
    /// The own key.
    Key,
    /// The trusted certificates.
    Trust,
    /// The name of the server.
    Name,
}

impl BadCredentials {
    /// Returns the part with the fault.
    pub fn part(self) -> CredentialPart {
        use BadCredentials::*;
        match self {
            NoCertificate | Certificate | CertificateForm | Order => CredentialPart::Certificate,
            NoKey | Key | EncryptedKey | KeyKind | KeyMismatch => CredentialPart::Key,
            NoTrust | Trust | TrustForm | TrustKind => CredentialPart::Trust,
            Name => CredentialPart::Name,
        }
    }

    /// Converts a fault of certificates into the same fault of trusted certificates.
    pub(super) fn of_trusted(self) -> Self {
        match self {
            Self::NoCertificate => Self::NoTrust,
            Self::Certificate => Self::Trust,
            Self::CertificateForm => Self::TrustForm,
            other => other,
        }
    }
}

impl fmt::Display for BadCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCertificate => "there is no certificate in PEM",
            Self::Certificate => "a certificate is malformed",
            Self::CertificateForm => {
                "a certificate has an unsupported form: convert it to BEGIN CERTIFICATE, for example with \
                 `openssl x509`"
            }
            Self::Order => {
                "the first certificate is not the one of the key: put that one first, and its issuers behind it"
            }
            Self::NoKey => "there is no key in PEM",
            Self::Key => "the key is malformed",
            Self::EncryptedKey => {
                "the key is encrypted: remove its passphrase, for example with `openssl pkey`"
            }
            Self::KeyKind => {
                "the key is not supported: use ECDSA with P-256 or P-384, Ed25519, or RSA with 2048 to 4096 bits"
            }
            Self::KeyMismatch => "the key does not match the certificate",
            Self::NoTrust => "there is no trusted certificate in PEM",
            Self::Trust => "a trusted certificate is malformed",
            Self::TrustForm => {
                "a trusted certificate has an unsupported form: convert it to BEGIN CERTIFICATE, for example \
                 with `openssl x509`"
            }
            Self::TrustKind => {
                "the key of a trusted certificate is not supported: use ECDSA with P-256 or P-384, Ed25519, \
                 or RSA with 2048 to 8192 bits"
            }
            Self::Name => "the name of the server is not valid in a certificate",
        })
    }
}

impl std::error::Error for BadCredentials {}

/// Versions of TLS to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// 1.3 only.
    Tls13,
    /// 1.2 and 1.3. 1.2 is for WebSockets of other implementations.
    Tls12And13,
}

impl Versions {
    fn supported(self) -> &'static [&'static SupportedProtocolVersion] {
        static BOTH: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        match self {
            Self::Tls13 => &BOTH[..1],
            Self::Tls12And13 => &BOTH,
        }
    }
}

/// Configuration of one end of TLS.
#[derive(Clone)]
pub struct TlsConfig {
    pub(super) side: Side,
    pub(super) revision: u64,
}

#[derive(Clone)]
pub(super) enum Side {
    Server { config: Arc<ServerConfig>, clients: Option<Arc<Clients>> },
    Client { config: Arc<ClientConfig>, name: ServerName<'static> },
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl TlsConfig {
    /// Makes a server. With `clients` (certificates in PEM), a client must show a certificate that
    /// is one of them, or whose chain ends at one of them. An empty `clients` is valid, and then
    /// the server refuses every client.
    ///
    /// # Errors
    /// Returns [`BadCredentials`] if something is missing, malformed, or does not belong together.
    pub fn server(
        own: Identity<'_>,
        clients: Option<&[u8]>,
        versions: Versions,
    ) -> Result<Self, BadCredentials> {
        let provider = provider();
        let shows = own.read(&provider)?;
        let clients = match clients {
            Some(pem) => Some(Arc::new(Clients::new(Trusted::new(pem, [], &provider)?)?)),
            None => None,
        };
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions.supported())
            .map_err(|_| BadCredentials::Key)?;
        let builder = match &clients {
            Some(clients) => builder.with_client_cert_verifier(clients.clone()),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(shows));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(TlsConfig { side: Side::Server { config: Arc::new(config), clients }, revision: 0 })
    }

    /// Makes a client that trusts the certificates in `trusted` (PEM) and in `further` (DER). The
    /// client shows `own` if the server requests a certificate.
    ///
    /// With `name`, the server has to prove that name, unless its certificate is itself in
    /// `trusted`; the client sends `name` to the server. Without `name`, the client sends `host`,
    /// the host that it connected to, and every trusted certificate is sufficient.
    ///
    /// # Errors
    /// Returns [`BadCredentials`] for malformed certificates, a faulty own key, and a name or host
    /// that no certificate can have.
    pub fn client(
        trusted: &[u8],
        further: impl IntoIterator<Item = Vec<u8>>,
        own: Option<Identity<'_>>,
        name: Option<&str>,
        host: &str,
        versions: Versions,
    ) -> Result<Self, BadCredentials> {
        let provider = provider();
        let parse = |name: &str| ServerName::try_from(name.to_owned()).map_err(|_| BadCredentials::Name);
        let asked = name.map(parse).transpose()?;
        let told = match &asked {
            Some(name) => name.clone(),
            None => parse(host)?,
        };
        let verifier = Servers::new(Trusted::new(trusted, further, &provider)?, asked);
        let shows = own.map(|own| own.read(&provider)).transpose()?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions.supported())
            .map_err(|_| BadCredentials::Key)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match shows.and_then(CertificateChooser::first) {
            Some(own) => builder.with_client_cert_resolver(Arc::new(own)),
            None => builder.with_no_client_auth(),
        };
        config.resumption = Resumption::disabled();
        Ok(TlsConfig { side: Side::Client { config: Arc::new(config), name: told }, revision: 0 })
    }

    /// Sets the revision of this configuration. [`PeerCertificates`] contain the revision that
    /// accepted the peer. So the caller recognises peers that an older revision accepted, and
    /// checks them again.
    ///
    /// [`PeerCertificates`]: crate::PeerCertificates
    #[must_use]
    pub fn with_revision(self, revision: u64) -> Self {
        TlsConfig { revision, ..self }
    }

    /// True if a server would accept a client with these certificates now. A server without a list
    /// of client certificates accepts every client.
    pub fn admits(&self, certificates: &[Vec<u8>]) -> bool {
        let Side::Server { clients: Some(clients), .. } = &self.side else { return true };
        let shown: Vec<_> = certificates.iter().map(|one| CertificateDer::from(&one[..])).collect();
        let Some((own, between)) = shown.split_first() else { return false };
        clients.verify_client_cert(own, between, UnixTime::now()).is_ok()
    }
}

/// Returns the certificates of a text in PEM, at least one, if peers can be verified with each of
/// them.
///
/// # Errors
/// Returns [`BadCredentials`] of the trusted certificates.
pub fn trusted_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BadCredentials> {
    pem::trusted(pem, &provider())
}
