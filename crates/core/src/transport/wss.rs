//! `wss://`: as `ws://`, over TLS. What is said on the stream is `proto::tls`'s; certificates come from the ZMQ_WSS_* options.

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
    let hostname = std::str::from_utf8(&options.wss_hostname).map_err(|_| Error::Invalid)?;
    let system =
        if options.wss_trust_system { rustls_native_certs::load_native_certs().certs } else { Vec::new() };
    let further = system.into_iter().map(|certificate| certificate.to_vec());
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = Some(hostname).filter(|name| !name.is_empty());
    TlsConfig::client(&options.wss_trust_pem, further, name, host).map_err(invalid)
}

fn carry(role: Role, tls: TlsConfig, options: &Options) -> Result<Carrying, Error> {
    let config = ws::config(role, options)?;
    Ok(Arc::new(move || {
        let socket = WebSocket::new(ws::seeded(&config)?);
        let tls = Tls::new(&tls, socket)
            .map_err(|_| std::io::Error::from_raw_os_error(tautline_io::errno::EINVAL))?;
        Ok(Box::new(tls) as Box<dyn Carrier>)
    }))
}

fn invalid(_: BadCredentials) -> Error {
    Error::Invalid
}
