//! Encryption for `https`: rustls with the ciphers of ring, as for `wss`.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tautline_proto::tls::trusted_certificates;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::failure::{Failure, Result};
use crate::security::read;

/// TLS connector with its trusted certificates.
pub struct Connector(TlsConnector);

impl Connector {
    /// Trusts the PEM certificates in this file, or those that the system trusts.
    pub fn new(trusted: Option<&Path>) -> Result<Connector> {
        let mut roots = RootCertStore::empty();
        match trusted {
            Some(path) => {
                let bad = |fault: &dyn Display| {
                    Failure::failed(format!("{}: {fault}", path.display()))
                        .hint("--otlp-trust must name a PEM file, with lines -----BEGIN CERTIFICATE-----")
                };
                for certificate in trusted_certificates(&read(path)?).map_err(|fault| bad(&fault))? {
                    roots.add(certificate).map_err(|fault| bad(&fault))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err(Failure::failed("this system has no certificates to trust")
                        .hint("install ca-certificates, or name a file in PEM: --otlp-trust FILE"));
                }
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::failed(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Connector(TlsConnector::from(Arc::new(config))))
    }

    /// Makes the TLS handshake with the server of this name.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.0.connect(name, stream).await
    }
}
