//! `ws://`: ZMTP in WebSocket messages (RFC 45), over TCP. `proto::ws` implements the protocol.
//!
//! A carrier is the protocol between ZMTP and a TCP stream, here WebSocket. Each stream has its own
//! carrier. A `CarrierFactory` makes the carriers of all streams of an endpoint.

use std::net::IpAddr;

use super::local::{AddressQuery, ResolvedAddress};
use super::{Bound, CarrierFactory, ConnectRoute, Failed, tcp};
use crate::endpoint::{Endpoint, Host, WsEndpoint};
use crate::error::Error;
use crate::options::Options;
use tautline_io::net::Address;
use tautline_proto::Carrier;
use tautline_proto::ws::{Config, Role, WebSocket};
use tautline_queue::sync::Arc;

pub(super) const SCHEME: &str = "ws";
/// The default port, which the Host header omits.
pub(super) const PORT: u16 = 80;

pub(super) fn listen(
    endpoint: &Endpoint,
    at: ResolvedAddress,
    options: &Options,
) -> Option<Result<Bound, Failed>> {
    let address = of(endpoint, SCHEME)?;
    let carrying = carry(Role::Server, options);
    Some(
        carrying
            .map_err(Failed::from)
            .and_then(|carrying| listen_with(SCHEME, address, at, carrying, options)),
    )
}

/// Listens for the transport `scheme`. `carrying` makes the carrier of each accepted stream.
pub(super) fn listen_with(
    scheme: &str,
    address: &WsEndpoint,
    at: ResolvedAddress,
    carrying: CarrierFactory,
    options: &Options,
) -> Result<Bound, Failed> {
    let mut bound = tcp::listen_tcp(&address.tcp, at, options)?;
    bound.endpoint = format!("{scheme}://{}{}", bound.listener.local_address()?, address.path);
    bound.carrying = Some(carrying);
    Ok(bound)
}

/// Returns the question for the resolver before listening at `endpoint`, if there is one.
pub(super) fn question(endpoint: &Endpoint, options: &Options) -> Option<AddressQuery> {
    tcp::question_tcp(&of(endpoint, SCHEME)?.tcp, options)
}

/// Returns the result of [`local_name_with`] for `ws`.
pub(super) fn local_name(endpoint: &Endpoint, at: ResolvedAddress, options: &Options) -> Option<String> {
    local_name_with(SCHEME, endpoint, at, options)
}

/// The name of a listener at `endpoint`, if the endpoint is one of `scheme` and the name does not
/// depend on a port that the system chooses.
pub(super) fn local_name_with(
    scheme: &str,
    endpoint: &Endpoint,
    at: ResolvedAddress,
    options: &Options,
) -> Option<String> {
    let WsEndpoint { tcp, path } = of(endpoint, scheme)?;
    let address = tcp::known_address(tcp, at, options)?;
    Some(format!("{scheme}://{}{path}", Address::Inet(address)))
}

/// Returns the addresses for a connect to `endpoint`, or `None` for another scheme.
pub(super) fn route(endpoint: &Endpoint, options: &Options) -> Option<Result<ConnectRoute, Error>> {
    Some(tcp::route_tcp(&of(endpoint, SCHEME)?.tcp, options))
}

/// Returns the factory of carriers for streams to `endpoint`, or `None` for another scheme.
pub(super) fn carrying(endpoint: &Endpoint, options: &Options) -> Option<Result<CarrierFactory, Error>> {
    let address = of(endpoint, SCHEME)?;
    Some(carry(client(address, PORT), options))
}

/// The address of an endpoint of `scheme`.
pub(super) fn of<'e>(endpoint: &'e Endpoint, scheme: &str) -> Option<&'e WsEndpoint> {
    endpoint.address().filter(|_| endpoint.scheme() == scheme)
}

/// The client side of a connection to `address`.
pub(super) fn client(address: &WsEndpoint, usual_port: u16) -> Role {
    let port = address.tcp.port;
    let host = host_without_zone(address);
    let host = if port.number() == usual_port { host.to_string() } else { format!("{host}:{port}") };
    Role::Client { host, path: address.path.clone() }
}

/// The host, in the form for the peer. A zone is valid on this machine only.
pub(super) fn host_without_zone(address: &WsEndpoint) -> String {
    match &address.tcp.host {
        Host::Literal(ip @ IpAddr::V6(_), _) => Host::Literal(*ip, None).to_string(),
        host => host.to_string(),
    }
}

/// Returns the factory of carriers for our end's `role`.
fn carry(role: Role, options: &Options) -> Result<CarrierFactory, Error> {
    let config = config(role, options)?;
    Ok(Arc::new(move || Ok(Box::new(WebSocket::new(seeded(&config)?)) as Box<dyn Carrier>)))
}

/// Configuration of all WebSockets of an endpoint.
pub(super) fn config(role: Role, options: &Options) -> Result<Config, Error> {
    if options.type_info().raw || options.router_raw {
        // An unframed byte stream has no messages to carry.
        return Err(Error::IncompatibleProtocol);
    }
    Ok(Config {
        role,
        socket_type: options.socket_type,
        mechanism: options.mechanism.name(),
        as_server: options.as_server,
        max_msg_size: options.max_msg_size,
        seed: [0; 32],
    })
}

/// Returns the configuration of one WebSocket. Its seed is random, for the key of the opening
/// handshake and for the masks of the frames.
pub(super) fn seeded(config: &Config) -> std::io::Result<Config> {
    let mut config = config.clone();
    tautline_io::random::fill(&mut config.seed)?;
    Ok(config)
}
