//! Certificates for `tls+tcp` and `wss` endpoints: their sources, and the socket options for them.

use std::path::{Path, PathBuf};

use clap::Args;
use tautline_proto::tls::{
    BadCredentials, CredentialPart, Identity, Tls, TlsConfig, Versions, trusted_certificates,
};
use tautline_proto::{Carrier, Direct, Secret};

use crate::endpoint::Endpoint;
use crate::failure::{Failure, Result};
use crate::security::{read, warn_if_open};

/// Certificates
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Certificates (tls+tcp, wss)")]
pub struct TlsArgs {
    /// Our certificate chain in PEM: our certificate, then those that lead to a trusted one.
    /// Required to bind such an endpoint; a client presents it if the server requests one
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Secret key of our certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Trust peers whose certificates lead to one in this PEM file. A server with this option
    /// requires a certificate from each client. By default, a client trusts those that the system
    /// trusts
    #[arg(long, value_name = "FILE")]
    tls_trust: Option<PathBuf>,
    /// Required name in the server's certificate, if it differs from the host
    #[arg(long, value_name = "NAME")]
    tls_name: Option<String>,
}

// The numbers in `zmq_draft.h`.
const WSS_KEY_PEM: i32 = 103;
const WSS_CERT_PEM: i32 = 104;
const WSS_TRUST_PEM: i32 = 105;
const WSS_HOSTNAME: i32 = 106;
const WSS_TRUST_SYSTEM: i32 = 107;

/// True if an endpoint uses certificates.
fn is_for(address: &str) -> bool {
    address.starts_with("wss://") || address.starts_with("tls+tcp://")
}

/// Returns the options of a socket with these endpoints.
pub fn options(args: &TlsArgs, endpoints: &[Endpoint]) -> Result<Vec<(i32, Vec<u8>)>> {
    let mut options = Vec::new();
    let mut sealed = endpoints.iter().filter(|endpoint| is_for(&endpoint.address));
    let Some(first) = sealed.clone().next() else { return Ok(options) };
    if let (Some(certificates), Some(key)) = (&args.tls_cert, &args.tls_key) {
        warn_if_open(key);
        let (certificates, key) = (read(certificates)?, read(key)?);
        let own = Identity { certificates: &certificates, key: &key };
        own.check().map_err(|fault| failure(args, fault))?;
        options.push((WSS_CERT_PEM, certificates.to_vec()));
        options.push((WSS_KEY_PEM, key.to_vec()));
    } else if sealed.clone().any(|endpoint| endpoint.bind) {
        let scheme = first.address.split("://").next().unwrap_or_default();
        return Err(Failure::usage(format!("{}: a {scheme} server needs a certificate", first.address))
            .hint(
                "use --tls-cert FILE --tls-key FILE; `taut keygen --ca FOLDER` makes certificates for tests",
            ));
    }
    match &args.tls_trust {
        Some(file) => {
            let pem = read(file)?;
            trusted_certificates(&pem).map_err(|fault| failure(args, fault))?;
            options.push((WSS_TRUST_PEM, pem.to_vec()));
        }
        None if sealed.any(|endpoint| !endpoint.bind) => {
            options.push((WSS_TRUST_SYSTEM, 1_i32.to_ne_bytes().to_vec()));
        }
        None => {}
    }
    if let Some(name) = &args.tls_name {
        options.push((WSS_HOSTNAME, name.as_bytes().to_vec()));
    }
    Ok(options)
}

/// Returns the TLS layer for a connection to a server at this host.
pub fn carrier(args: &TlsArgs, address: &str, host: &str) -> Result<Box<dyn Carrier>> {
    let name = args.tls_name.as_deref().unwrap_or(host);
    let open = |path: &Option<PathBuf>| path.as_deref().map(read).transpose();
    let (certificates, key) = (open(&args.tls_cert)?, open(&args.tls_key)?);
    let own = certificates.as_deref().zip(key.as_deref());
    let own = own.map(|(certificates, key)| Identity { certificates, key });
    let (trusted, system) = match &args.tls_trust {
        Some(file) => (read(file)?, Vec::new()),
        None => {
            let found = rustls_native_certs::load_native_certs().certs;
            (Secret::default(), found.into_iter().map(|one| one.to_vec()).collect())
        }
    };
    let config = TlsConfig::client(&trusted, system, own, Some(name), name, Versions::Tls13);
    let carrier = config.and_then(|config| Tls::new(&config, Direct));
    Ok(Box::new(carrier.map_err(|fault| match fault.part() {
        CredentialPart::Name => Failure::failed(format!("{address}: {fault}")),
        _ => failure(args, fault),
    })?))
}

/// Returns the failure for a fault in one of the files.
fn failure(args: &TlsArgs, fault: BadCredentials) -> Failure {
    let file = match fault.part() {
        CredentialPart::Certificate => &args.tls_cert,
        CredentialPart::Key => &args.tls_key,
        _ => &args.tls_trust,
    };
    Failure::failed(format!("{}: {fault}", file.as_deref().unwrap_or_else(|| Path::new("")).display()))
}
