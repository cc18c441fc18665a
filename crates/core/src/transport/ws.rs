//! `ws://`: ZMTP in WebSocket messages (RFC 45), over TCP. What is said on the stream is `proto::ws`'s.

use super::{Bound, Carrying, Route, tcp};
use crate::endpoint::{Endpoint, WsEndpoint};
use crate::error::Error;
use crate::options::{Mechanism, Options};
use crate::sync::Arc;
use tautline_proto::ws::{Config, Role, WebSocket};
use tautline_proto::{Carrier, SocketType};

/// The port that the Host header leaves out.
const PORT: u16 = 80;

pub(super) fn listen(endpoint: &Endpoint, options: &Options) -> Option<Result<Bound, Error>> {
    let ws: &WsEndpoint = endpoint.address()?;
    Some(listen_ws(endpoint.scheme(), ws, options))
}

fn listen_ws(scheme: &str, ws: &WsEndpoint, options: &Options) -> Result<Bound, Error> {
    let carrying = server(options)?;
    let mut bound = tcp::listen_tcp(&ws.tcp, options)?;
    let address = bound.listener.local_address()?;
    bound.endpoint = format!("{scheme}://{address}{}", ws.path);
    bound.carrying = Some(carrying);
    Ok(bound)
}

/// The name of a listener at `endpoint`, if it does not depend on the port that the system gives.
pub(super) fn local_name(endpoint: &Endpoint, options: &Options) -> Option<String> {
    let ws: &WsEndpoint = endpoint.address()?;
    let address = tcp::known_address(&ws.tcp, options)?;
    Some(format!("{}://{address}{}", endpoint.scheme(), ws.path))
}

pub(super) fn route(endpoint: &Endpoint, options: &Options) -> Option<Result<Route, Error>> {
    let ws: &WsEndpoint = endpoint.address()?;
    Some(tcp::route_tcp(&ws.tcp, options))
}

/// How streams to `endpoint` carry ZMTP.
pub(super) fn carrying(endpoint: &Endpoint, options: &Options) -> Option<Result<Carrying, Error>> {
    let ws: &WsEndpoint = endpoint.address()?;
    Some(client(ws, PORT, options))
}

fn client(ws: &WsEndpoint, usual_port: u16, options: &Options) -> Result<Carrying, Error> {
    let (host, port) = (&ws.tcp.host, ws.tcp.port);
    let host = if port.number() == usual_port { host.to_string() } else { format!("{host}:{port}") };
    carry(Role::Client { host, path: ws.path.clone() }, options)
}

fn server(options: &Options) -> Result<Carrying, Error> {
    carry(Role::Server, options)
}

fn carry(role: Role, options: &Options) -> Result<Carrying, Error> {
    if options.socket_type == SocketType::Stream || options.router_raw {
        // Bytes as they are have no messages to be carried in.
        return Err(Error::IncompatibleProtocol);
    }
    let config = Config {
        role,
        socket_type: options.socket_type,
        mechanism: mechanism(options.mechanism),
        as_server: options.as_server,
        max_msg_size: options.max_msg_size,
        seed: [0; 32],
    };
    Ok(Arc::new(move || {
        let mut config = config.clone();
        tautline_io::random::fill(&mut config.seed)?;
        Ok(Box::new(WebSocket::new(config)) as Box<dyn Carrier>)
    }))
}

fn mechanism(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Null => "NULL",
        Mechanism::Plain => "PLAIN",
        Mechanism::Curve => "CURVE",
        Mechanism::Gssapi => "GSSAPI",
    }
}
