//! `tls+tcp://`: ZMTP in TLS 1.3, over TCP, and what it shares with `wss`. What is said on the
//! stream is `proto::tls`'s; certificates come from the ZMQ_WSS_* options.
//!
//! | option | of a server | of a client |
//! |---|---|---|
//! | ZMQ_WSS_CERT_PEM, ZMQ_WSS_KEY_PEM | what it shows | what it shows if it is asked |
//! | ZMQ_WSS_TRUST_PEM | clients have to show a certificate that leads to one of these | whose certificates are good |
//! | ZMQ_WSS_TRUST_SYSTEM | | as good are those that the system trusts |
//! | ZMQ_WSS_HOSTNAME | | the name that the server has to prove |

use super::local::{Answer, Question};
use super::{Bound, Carrying, Failed, Route, tcp, ws};
use crate::endpoint::{Endpoint, Host, TcpEndpoint, WsEndpoint};
use crate::error::Error;
use crate::options::Options;
use crate::sync::Arc;
use tautline_io::errno;
use tautline_io::net::Address;
use tautline_proto::tls::{BadCredentials, Identity, Tls, TlsConfig, Versions};
use tautline_proto::ws::{Role, WebSocket};
use tautline_proto::{Carrier, Direct};

pub(super) const SCHEME: &str = "tls+tcp";

pub(super) fn listen(endpoint: &Endpoint, at: Answer, options: &Options) -> Option<Result<Bound, Failed>> {
    let address = tcp::of(endpoint, SCHEME)?;
    Some(server(options, Versions::Tls13).map_err(Failed::from).and_then(|config| {
        let carrying = direct(options, Arc::new(move || config.clone()))?;
        let mut bound = tcp::listen_tcp(address, at, options)?;
        bound.endpoint = format!("{SCHEME}://{}", bound.listener.local_address()?);
        bound.carrying = Some(carrying);
        Ok(bound)
    }))
}

pub(super) fn question(endpoint: &Endpoint, options: &Options) -> Option<Question> {
    tcp::question_tcp(tcp::of(endpoint, SCHEME)?, options)
}

pub(super) fn local_name(endpoint: &Endpoint, at: Answer, options: &Options) -> Option<String> {
    let address = tcp::known_address(tcp::of(endpoint, SCHEME)?, at, options)?;
    Some(format!("{SCHEME}://{}", Address::Inet(address)))
}

pub(super) fn route(endpoint: &Endpoint, options: &Options) -> Option<Result<Route, Error>> {
    Some(tcp::route_tcp(tcp::of(endpoint, SCHEME)?, options))
}

pub(super) fn carrying(endpoint: &Endpoint, options: &Options) -> Option<Result<Carrying, Error>> {
    let host = host_of(tcp::of(endpoint, SCHEME)?);
    // Without certificates of its own choice a client trusts the system's, as clients of TLS do.
    let system = options.wss_trust_system || options.wss_trust_pem.is_empty();
    Some(asked(options).and_then(|name| {
        let config = client(options, system, Some(name.unwrap_or(&host)), &host, Versions::Tls13)?;
        direct(options, Arc::new(move || config.clone()))
    }))
}

/// Carries ZMTP in TLS, by the configuration that there is when a stream begins.
fn direct(options: &Options, config: Arc<dyn Fn() -> TlsConfig + Send + Sync>) -> Result<Carrying, Error> {
    if options.facts().raw || options.router_raw {
        // Streams without ZMTP have no handshake in which anything could be carried.
        return Err(Error::IncompatibleProtocol);
    }
    Ok(Arc::new(move || Ok(Box::new(start(&config(), Direct)?) as Box<dyn Carrier>)))
}

/// TLS on a new stream.
pub(super) fn start<C: Carrier>(config: &TlsConfig, inside: C) -> std::io::Result<Tls<C>> {
    Tls::new(config, inside).map_err(|_| errno::error(errno::EINVAL))
}

/// Carries ZMTP in TLS that a policy has put on an endpoint: within a WebSocket, if that carries it
/// anyway.
pub(crate) fn around(
    endpoint: &Endpoint,
    is_server: bool,
    options: &Options,
    config: Arc<dyn Fn() -> TlsConfig + Send + Sync>,
) -> Result<Carrying, Error> {
    let Some(address) = ws::of(endpoint, ws::SCHEME) else { return direct(options, config) };
    let role = if is_server { Role::Server } else { ws::client(address, ws::PORT) };
    let inside = ws::config(role, options)?;
    Ok(Arc::new(move || {
        let socket = WebSocket::new(ws::seeded(&inside)?);
        Ok(Box::new(start(&config(), socket)?) as Box<dyn Carrier>)
    }))
}

/// The host that is connected to, as its certificate may have it.
pub(crate) fn host(endpoint: &Endpoint) -> Option<String> {
    let address = endpoint.address().or_else(|| endpoint.address::<WsEndpoint>().map(|ws| &ws.tcp));
    address.map(host_of)
}

/// What a server has to know.
pub(super) fn server(options: &Options, versions: Versions) -> Result<TlsConfig, Error> {
    let own = Identity { certificates: &options.wss_cert_pem, key: &options.wss_key_pem };
    let clients = Some(&options.wss_trust_pem[..]).filter(|pem| !pem.is_empty());
    TlsConfig::server(own, clients, versions).map_err(invalid)
}

/// What a client has to know that looks for a server at `host`, which has to prove `name`, if one
/// is given. `system`: what the system trusts is as good.
pub(super) fn client(
    options: &Options,
    system: bool,
    name: Option<&str>,
    host: &str,
    versions: Versions,
) -> Result<TlsConfig, Error> {
    let own = Identity { certificates: &options.wss_cert_pem, key: &options.wss_key_pem };
    let own = Some(own).filter(|own| !own.certificates.is_empty() || !own.key.is_empty());
    let further = if system { of_system() } else { Vec::new() };
    TlsConfig::client(&options.wss_trust_pem, further, own, name, host, versions).map_err(invalid)
}

/// The certificates that the system trusts. None if the caller of a program with more rights says
/// which these are: then no server is trusted.
pub(crate) fn of_system() -> Vec<Vec<u8>> {
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().any(|name| std::env::var_os(name).is_some());
    if named && !tautline_io::env::is_trusted() {
        return Vec::new();
    }
    let found = rustls_native_certs::load_native_certs().certs;
    found.into_iter().map(|certificate| certificate.to_vec()).collect()
}

/// The name that the program has asked for.
pub(super) fn asked(options: &Options) -> Result<Option<&str>, Error> {
    match std::str::from_utf8(&options.wss_hostname) {
        Ok("") => Ok(None),
        Ok(name) => Ok(Some(name)),
        Err(_) => Err(Error::Invalid),
    }
}

/// The host as certificates have it: without brackets, and without a zone, which has a meaning on
/// this machine only.
pub(super) fn host_of(address: &TcpEndpoint) -> String {
    match &address.host {
        Host::Literal(ip, _) => ip.to_string(),
        host => host.to_string(),
    }
}

pub(super) fn invalid(_: BadCredentials) -> Error {
    Error::Invalid
}
