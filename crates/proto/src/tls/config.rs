//! Configuration of the ends of TLS, made once for an endpoint.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, ServerConfig, SupportedProtocolVersion, version};

use super::identity::{CertificateChooser, Identity};
use super::verifier::{Clients, Servers, Trusted};

/// Fault in the given certificates, keys or names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadCredentials {
    /// There is no certificate, or one is invalid.
    Certificate,
    /// There is no key, or no usable key.
    Key,
    /// The key belongs to another certificate.
    KeyMismatch,
    /// The text of the trusted certificates has no certificate, or an invalid one.
    Trust,
    /// No certificate can have this name.
    Name,
}

impl fmt::Display for BadCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "the certificate is missing or not valid PEM",
            Self::Key => "the key is missing, not valid PEM, or of an unsupported kind",
            Self::KeyMismatch => "the key does not match the certificate",
            Self::Trust => "the trusted certificates are missing, or one of them is not valid PEM",
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

fn provider() -> Arc<CryptoProvider> {
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

/// True if a text in PEM has certificates, and all of them are well formed.
pub fn has_certificates(pem: &[u8]) -> bool {
    certificates_in(pem).is_some()
}

/// Returns the certificates of a text in PEM, or `None` if it has no certificate or a malformed
/// one.
pub(super) fn certificates_in(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    (!certificates.is_empty()).then_some(certificates)
}
