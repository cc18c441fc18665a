//! `tls+tcp://`: ZMTP in TLS 1.3 over TCP, and the code shared with `wss`. `proto::tls` implements
//! the protocol. Certificates come from the ZMQ_WSS_* options.
//!
//! | option | of a server | of a client |
//! |---|---|---|
//! | ZMQ_WSS_CERT_PEM, ZMQ_WSS_KEY_PEM | its certificate | its certificate, if the server asks for one |
//! | ZMQ_WSS_TRUST_PEM | authorities for client certificates, which become mandatory | authorities for the server's certificate |
//! | ZMQ_WSS_TRUST_SYSTEM | | also trust the system's authorities |
//! | ZMQ_WSS_HOSTNAME | | the name that the server has to prove |

use super::local::{AddressQuery, ResolvedAddress};
use super::{Bound, CarrierFactory, ConnectRoute, Failed, tcp, ws};
use crate::endpoint::{Endpoint, Host, TcpEndpoint, WsEndpoint};
use crate::error::Error;
use crate::options::Options;
use tautline_io::net::Address;
use tautline_io::{certificates, errno, lending};
use tautline_proto::tls::{BadCredentials, Identity, Tls, TlsConfig, Versions};
use tautline_proto::ws::{Role, WebSocket};
use tautline_proto::{Carrier, Direct};
use tautline_queue::sync::Arc;

pub(super) const SCHEME: &str = "tls+tcp";
/// The scheme of WebSocket over TLS.
pub(super) const WSS_SCHEME: &str = "wss";

pub(super) fn listen(
    endpoint: &Endpoint,
    at: ResolvedAddress,
    options: &Options,
) -> Option<Result<Bound, Failed>> {
    let address = tcp::of(endpoint, SCHEME)?;
    Some(server(options, Versions::Tls13).map_err(|fault| invalid(fault).into()).and_then(|config| {
        let carrying = direct(options, Arc::new(move || config.clone()))?;
        let mut bound = tcp::listen_tcp(address, at, options)?;
        bound.endpoint = format!("{SCHEME}://{}", bound.listener.local_address()?);
        bound.carrying = Some(carrying);
        Ok(bound)
    }))
}

pub(super) fn question(endpoint: &Endpoint, options: &Options) -> Option<AddressQuery> {
    tcp::question_tcp(tcp::of(endpoint, SCHEME)?, options)
}

pub(super) fn local_name(endpoint: &Endpoint, at: ResolvedAddress, options: &Options) -> Option<String> {
    let address = tcp::known_address(tcp::of(endpoint, SCHEME)?, at, options)?;
    Some(format!("{SCHEME}://{}", Address::Inet(address)))
}

pub(super) fn route(endpoint: &Endpoint, options: &Options) -> Option<Result<ConnectRoute, Error>> {
    Some(tcp::route_tcp(tcp::of(endpoint, SCHEME)?, options))
}

pub(super) fn carrying(endpoint: &Endpoint, options: &Options) -> Option<Result<CarrierFactory, Error>> {
    let host = host_of(tcp::of(endpoint, SCHEME)?);
    // A client without its own authorities trusts the system's, as usual for TLS clients.
    let system = options.wss_trust_system || options.wss_trust_pem.is_empty();
    Some(asked(options).and_then(|name| {
        let config =
            client(options, system, Some(name.unwrap_or(&host)), &host, Versions::Tls13).map_err(invalid)?;
        direct(options, Arc::new(move || config.clone()))
    }))
}

/// Carries ZMTP in TLS, with the configuration at the start of each stream.
fn direct(
    options: &Options,
    config: Arc<dyn Fn() -> TlsConfig + Send + Sync>,
) -> Result<CarrierFactory, Error> {
    if options.type_info().raw || options.router_raw {
        // Streams without ZMTP have no handshake in which a carrier could start.
        return Err(Error::IncompatibleProtocol);
    }
    lending::forbid_beside_encryption();
    Ok(Arc::new(move || Ok(Box::new(start(&config(), Direct)?) as Box<dyn Carrier>)))
}

/// TLS on a new stream.
pub(super) fn start<C: Carrier>(config: &TlsConfig, inside: C) -> std::io::Result<Tls<C>> {
    Tls::new(config, inside).map_err(|_| errno::error(errno::EINVAL))
}

/// Carries ZMTP in TLS that a policy adds to an endpoint. If the endpoint uses WebSocket, TLS
/// carries the WebSocket.
pub(crate) fn around(
    endpoint: &Endpoint,
    is_server: bool,
    options: &Options,
    config: Arc<dyn Fn() -> TlsConfig + Send + Sync>,
) -> Result<CarrierFactory, Error> {
    let Some(address) = ws::of(endpoint, ws::SCHEME) else { return direct(options, config) };
    let role = if is_server { Role::Server } else { ws::client(address, ws::PORT) };
    let inside = ws::config(role, options)?;
    lending::forbid_beside_encryption();
    Ok(Arc::new(move || {
        let socket = WebSocket::new(ws::seeded(&inside)?);
        Ok(Box::new(start(&config(), socket)?) as Box<dyn Carrier>)
    }))
}

/// The host to connect to, in the form of its certificate.
pub(crate) fn host(endpoint: &Endpoint) -> Option<String> {
    let address = endpoint.address().or_else(|| endpoint.address::<WsEndpoint>().map(|ws| &ws.tcp));
    address.map(host_of)
}

/// Configuration of a server.
pub(super) fn server(options: &Options, versions: Versions) -> Result<TlsConfig, BadCredentials> {
    let own = Identity { certificates: &options.wss_cert_pem, key: &options.wss_key_pem };
    let clients = Some(&options.wss_trust_pem[..]).filter(|pem| !pem.is_empty());
    TlsConfig::server(own, clients, versions)
}

/// Returns the fault of the certificates, or of the name of the server, for an endpoint with TLS.
pub(crate) fn fault(endpoint: &Endpoint, connecting: bool, options: &Options) -> Option<BadCredentials> {
    let address =
        tcp::of(endpoint, SCHEME).or_else(|| ws::of(endpoint, WSS_SCHEME).map(|address| &address.tcp))?;
    if !connecting {
        return server(options, Versions::Tls13).err();
    }
    let Ok(name) = asked(options) else { return Some(BadCredentials::Name) };
    client(options, false, name, &host_of(address), Versions::Tls13).err()
}

/// Configuration of a client that connects to `host`. The server has to prove `name`, if it is
/// given. `system`: also trust the system's authorities.
pub(super) fn client(
    options: &Options,
    system: bool,
    name: Option<&str>,
    host: &str,
    versions: Versions,
) -> Result<TlsConfig, BadCredentials> {
    let own = Identity { certificates: &options.wss_cert_pem, key: &options.wss_key_pem };
    let own = Some(own).filter(|own| !own.certificates.is_empty() || !own.key.is_empty());
    let further = if system { certificates::of_system() } else { Vec::new() };
    TlsConfig::client(&options.wss_trust_pem, further, own, name, host, versions)
}

/// The server name that the program has set.
pub(super) fn asked(options: &Options) -> Result<Option<&str>, Error> {
    match std::str::from_utf8(&options.wss_hostname) {
        Ok("") => Ok(None),
        Ok(name) => Ok(Some(name)),
        Err(_) => Err(Error::Invalid),
    }
}

/// The host as certificates contain it: without brackets and without a zone, which is valid on this
/// machine only.
pub(super) fn host_of(address: &TcpEndpoint) -> String {
    match &address.host {
        Host::Literal(ip, _) => ip.to_string(),
        host => host.to_string(),
    }
}

pub(super) fn invalid(_: BadCredentials) -> Error {
    Error::Invalid
}
