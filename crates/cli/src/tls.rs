//! Certificates for endpoints of `wss`: where they come from, and the options of a socket that they
//! become.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::endpoint::Endpoint;
use crate::failure::{Failure, Result};
use crate::security::{read, warn_if_open};

/// Certificates
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Certificates (wss)")]
pub struct TlsArgs {
    /// The certificates of the server, ours first, in PEM: for wss endpoints that are bound
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The secret key to the first of them, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Trust servers whose certificates lead to one of these, in PEM; without it those that the
    /// system trusts, if they have the name of the host
    #[arg(long, value_name = "FILE")]
    tls_trust: Option<PathBuf>,
    /// The name that the server's certificate must have
    #[arg(long, value_name = "NAME")]
    tls_name: Option<String>,
}

// The numbers in `zmq_draft.h`.
const WSS_KEY_PEM: i32 = 103;
const WSS_CERT_PEM: i32 = 104;
const WSS_TRUST_PEM: i32 = 105;
const WSS_HOSTNAME: i32 = 106;
const WSS_TRUST_SYSTEM: i32 = 107;

/// The options of a socket with these endpoints.
pub fn options(args: &TlsArgs, endpoints: &[Endpoint]) -> Result<Vec<(i32, Vec<u8>)>> {
    let mut options = Vec::new();
    let mut wss = endpoints.iter().filter(|endpoint| endpoint.address.starts_with("wss://"));
    let Some(first) = wss.clone().next() else { return Ok(options) };
    if let (Some(certificates), Some(key)) = (&args.tls_cert, &args.tls_key) {
        options.push((WSS_CERT_PEM, pem(certificates)?));
        options.push((WSS_KEY_PEM, pem(key)?));
        warn_if_open(key);
    } else if wss.clone().any(|endpoint| endpoint.bind) {
        return Err(Failure::usage(format!("{}: a wss server needs a certificate", first.address))
            .hint("--tls-cert FILE --tls-key FILE"));
    }
    match &args.tls_trust {
        Some(file) => options.push((WSS_TRUST_PEM, pem(file)?)),
        None if wss.any(|endpoint| !endpoint.bind) => {
            options.push((WSS_TRUST_SYSTEM, 1_i32.to_ne_bytes().to_vec()));
        }
        None => {}
    }
    if let Some(name) = &args.tls_name {
        options.push((WSS_HOSTNAME, name.as_bytes().to_vec()));
    }
    Ok(options)
}

fn pem(path: &Path) -> Result<Vec<u8>> {
    let bytes = read(path)?;
    if !bytes.windows(11).any(|part| part == b"-----BEGIN ") {
        return Err(Failure::failed(format!("{}: there is no PEM in it", path.display()))
            .hint("it would have a line -----BEGIN CERTIFICATE----- or -----BEGIN PRIVATE KEY-----"));
    }
    Ok(bytes.to_vec())
}
