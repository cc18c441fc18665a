//! `wss://`: as `ws://`, over TLS. What is said on the stream is `proto::tls`'s; certificates come
//! from the ZMQ_WSS_* options.

use super::local::{Answer, Question};
use super::{Bound, Carrying, Failed, Route, tcp, ws};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::options::Options;
use crate::sync::Arc;
use tautline_proto::Carrier;
use tautline_proto::tls::{BadCredentials, Tls, TlsConfig};
use tautline_proto::ws::{Role, WebSocket};

pub(super) const SCHEME: &str = "wss";
/// The port that the Host header leaves out.
const PORT: u16 = 443;

pub(super) fn listen(endpoint: &Endpoint, at: Answer, options: &Options) -> Option<Result<Bound, Failed>> {
    let address = ws::of(endpoint, SCHEME)?;
    let carrying = TlsConfig::server(&options.wss_cert_pem, &options.wss_key_pem)
        .map_err(invalid)
        .and_then(|tls| carry(Role::Server, tls, options));
    Some(
        carrying
            .map_err(Failed::from)
            .and_then(|carrying| ws::listen_with(SCHEME, address, at, carrying, options)),
    )
}

pub(super) fn question(endpoint: &Endpoint, options: &Options) -> Option<Question> {
    tcp::question_tcp(&ws::of(endpoint, SCHEME)?.tcp, options)
}

pub(super) fn local_name(endpoint: &Endpoint, at: Answer, options: &Options) -> Option<String> {
    ws::local_name_with(SCHEME, endpoint, at, options)
}

pub(super) fn route(endpoint: &Endpoint, options: &Options) -> Option<Result<Route, Error>> {
    Some(tcp::route_tcp(&ws::of(endpoint, SCHEME)?.tcp, options))
}

pub(super) fn carrying(endpoint: &Endpoint, options: &Options) -> Option<Result<Carrying, Error>> {
    let address = ws::of(endpoint, SCHEME)?;
    Some(
        client(&ws::host_without_zone(address), options)
            .and_then(|tls| carry(ws::client(address, PORT), tls, options)),
    )
}

fn client(host: &str, options: &Options) -> Result<TlsConfig, Error> {
    let system =
        if options.wss_trust_system { rustls_native_certs::load_native_certs().certs } else { Vec::new() };
    let further = system.into_iter().map(|certificate| certificate.to_vec());
    let host = host.trim_start_matches('[').trim_end_matches(']');
    TlsConfig::client(&options.wss_trust_pem, further, asked(host, options)?, host).map_err(invalid)
}

/// The name that a server found at `host` has to prove. The owner of any name can have a
/// certificate that the system trusts, so there the chain alone says nothing.
fn asked<'a>(host: &'a str, options: &'a Options) -> Result<Option<&'a str>, Error> {
    match std::str::from_utf8(&options.wss_hostname).map_err(|_| Error::Invalid)? {
        "" => Ok(options.wss_trust_system.then_some(host)),
        name => Ok(Some(name)),
    }
}

fn carry(role: Role, tls: TlsConfig, options: &Options) -> Result<Carrying, Error> {
    let config = ws::config(role, options)?;
    Ok(Arc::new(move || {
        let socket = WebSocket::new(ws::seeded(&config)?);
        let tls =
            Tls::new(&tls, socket).map_err(|_| tautline_io::errno::error(tautline_io::errno::EINVAL))?;
        Ok(Box::new(tls) as Box<dyn Carrier>)
    }))
}

fn invalid(_: BadCredentials) -> Error {
    Error::Invalid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ContextDefaults;
    use tautline_proto::SocketType;

    #[test]
    fn a_server_that_the_system_trusts_has_to_prove_the_name_that_was_looked_for() {
        let mut options = Options::new(SocketType::Push, &ContextDefaults::default());
        assert_eq!(asked("host", &options), Ok(None), "as in libzmq");
        options.wss_trust_system = true;
        assert_eq!(asked("host", &options), Ok(Some("host")));
        assert_eq!(asked("127.0.0.1", &options), Ok(Some("127.0.0.1")));
        options.wss_hostname = b"name".to_vec();
        assert_eq!(asked("host", &options), Ok(Some("name")));
        options.wss_trust_system = false;
        assert_eq!(asked("host", &options), Ok(Some("name")));
    }
}
