//! TLS below WebSocket: `wss://`. The cryptography is rustls's, which is sans-I/O like everything
//! here.
//!
//! A server shows a certificate and asks for none. A client trusts what it is told to: certificates
//! in PEM, the system's, or both. A certificate that is itself among the trusted ones is good as it
//! is; any other needs a chain to one of them, and, if a host name is asked for, that name.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, RootCertStore, ServerConfig,
    ServerConnection,
};
use rustls::{Error, SignatureScheme};

use crate::carrier::Carrier;
use crate::error::{Clause, ProtocolError};
use crate::stage::Stage;
use crate::ws::WebSocket;

/// The certificates or keys given are of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCredentials;

/// What an end of TLS has to know; made once for an endpoint.
#[derive(Clone)]
pub struct TlsConfig(Side);

#[derive(Clone)]
enum Side {
    Server(Arc<ServerConfig>),
    Client(Arc<ClientConfig>, ServerName<'static>),
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl TlsConfig {
    /// A server with this certificate (and those that lead from it to one the peers trust) and its
    /// key, both in PEM.
    ///
    /// # Errors
    /// [`BadCredentials`] if one is missing, malformed, or does not belong to the other.
    pub fn server(certificates: &[u8], key: &[u8]) -> Result<Self, BadCredentials> {
        let chain = certificates_in(certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| BadCredentials)?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        config.map(|config| TlsConfig(Side::Server(Arc::new(config)))).map_err(|_| BadCredentials)
    }

    /// A client that trusts the certificates in `trusted` (PEM) and the `further` ones (DER). With
    /// a `name`, the server has to prove that it goes by it; without one, `host`, where it was
    /// found, is only told to it.
    ///
    /// # Errors
    /// [`BadCredentials`] for malformed certificates, and for a name that no certificate can have.
    pub fn client(
        trusted: &[u8],
        further: impl IntoIterator<Item = Vec<u8>>,
        name: Option<&str>,
        host: &str,
    ) -> Result<Self, BadCredentials> {
        let pinned = if trusted.is_empty() { Vec::new() } else { certificates_in(trusted)? };
        let mut roots = RootCertStore::empty();
        // What cannot be the end of a chain may still be trusted for itself.
        roots.add_parsable_certificates(pinned.iter().cloned());
        roots.add_parsable_certificates(further.into_iter().map(CertificateDer::from));
        let parse = |name: &str| ServerName::try_from(name.to_owned()).map_err(|_| BadCredentials);
        let asked = name.map(parse).transpose()?;
        let told = match &asked {
            Some(name) => name.clone(),
            None => parse(host)?,
        };
        let provider = provider();
        let verifier = Verifier { pinned, roots, name: asked, provider: provider.clone() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| BadCredentials)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(TlsConfig(Side::Client(Arc::new(config), told)))
    }
}

fn certificates_in(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BadCredentials> {
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| BadCredentials)?;
    if certificates.is_empty() { Err(BadCredentials) } else { Ok(certificates) }
}

/// Judges a server's certificate.
struct Verifier {
    /// Good as they are.
    pinned: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
    name: Option<ServerName<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.pinned.iter().any(|trusted| trusted.as_ref() == end_entity.as_ref()) {
            return Ok(ServerCertVerified::assertion());
        }
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
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
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A WebSocket over TLS.
pub struct Tls {
    connection: Connection,
    socket: WebSocket,
    /// Bytes between the two; empty between calls.
    clear: Vec<u8>,
    /// The peer has ended TLS.
    ended: bool,
    failed: bool,
}

/// What `clear` may keep of its memory.
const KEEP: usize = 64 * 1024;

impl Tls {
    /// One end of a new stream.
    ///
    /// # Errors
    /// [`BadCredentials`] if rustls cannot begin with this configuration.
    pub fn new(config: &TlsConfig, socket: WebSocket) -> Result<Self, BadCredentials> {
        let connection = match &config.0 {
            Side::Server(config) => ServerConnection::new(config.clone()).map(Connection::from),
            Side::Client(config, name) => {
                ClientConnection::new(config.clone(), name.clone()).map(Connection::from)
            }
        };
        let mut connection = connection.map_err(|_| BadCredentials)?;
        // All that is sealed is written by the caller at once; only the opening request waits for
        // the handshake.
        connection.set_buffer_limit(None);
        Ok(Tls { connection, socket, clear: Vec::new(), ended: false, failed: false })
    }

    /// Encrypts `clear`, and yields what is to be written.
    fn put(&mut self, out: &mut Vec<u8>) {
        if !self.failed {
            // Into memory: does not fail.
            let _ = self.connection.writer().write_all(&self.clear);
        }
        self.tidy();
        while self.connection.wants_write() {
            if !matches!(self.connection.write_tls(out), Ok(1..)) {
                return;
            }
        }
    }

    fn tidy(&mut self) {
        self.clear.clear();
        self.clear.shrink_to(KEEP);
    }
}

impl Stage for Tls {
    fn seal(&mut self, zmtp: &[u8], out: &mut Vec<u8>) {
        self.socket.seal(zmtp, &mut self.clear);
        self.put(out);
    }

    fn open(&mut self, mut wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        while !wire.is_empty() && !self.ended {
            let broken = ProtocolError::from(Clause::Tls);
            if self.failed || !matches!(self.connection.read_tls(&mut wire), Ok(1..)) {
                self.failed = true;
                return Err(broken);
            }
            let state = self.connection.process_new_packets().map_err(|_| {
                self.failed = true;
                broken
            })?;
            self.clear.resize(state.plaintext_bytes_to_read(), 0);
            self.ended = state.peer_has_closed();
            let read = self.connection.reader().read_exact(&mut self.clear).map_err(|_| broken);
            let result = read.and_then(|()| self.socket.open(&self.clear, out));
            self.tidy();
            result?;
        }
        Ok(())
    }

    fn buffered(&self) -> usize {
        // What rustls keeps, at most a record and a handshake message, it does not tell.
        self.socket.buffered()
    }

    fn exhausted(&self) -> bool {
        self.socket.exhausted()
    }

    fn has_output(&self) -> bool {
        self.connection.wants_write() || self.socket.has_output()
    }

    fn ended(&self) -> bool {
        self.ended || self.socket.ended()
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.socket.finish(&mut self.clear);
        self.connection.send_close_notify();
        self.put(out);
    }
}

impl Carrier for Tls {
    fn established(&mut self) {
        self.socket.established();
    }

    fn ping(&mut self) {
        self.socket.ping();
    }
}

#[cfg(test)]
mod tests;
