//! `wss://`: as `ws://`, over TLS (`transport::tls`).

use super::local::{AddressQuery, ResolvedAddress};
use super::{Bound, CarrierFactory, ConnectRoute, Failed, tcp, tls, ws};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::options::Options;
use tautline_io::lending;
use tautline_proto::Carrier;
use tautline_proto::tls::{TlsConfig, Versions};
use tautline_proto::ws::{Role, WebSocket};
use tautline_queue::sync::Arc;

pub(super) use super::tls::WSS_SCHEME as SCHEME;
/// The default port, which the Host header omits.
const PORT: u16 = 443;
/// TLS versions that browsers and libzmq support.
const VERSIONS: Versions = Versions::Tls12And13;

pub(super) fn listen(
    endpoint: &Endpoint,
    at: ResolvedAddress,
    options: &Options,
) -> Option<Result<Bound, Failed>> {
    let address = ws::of(endpoint, SCHEME)?;
    let carrying = tls::server(options, VERSIONS)
        .map_err(tls::invalid)
        .and_then(|config| carry(Role::Server, config, options));
    Some(
        carrying
            .map_err(Failed::from)
            .and_then(|carrying| ws::listen_with(SCHEME, address, at, carrying, options)),
    )
}

pub(super) fn question(endpoint: &Endpoint, options: &Options) -> Option<AddressQuery> {
    tcp::question_tcp(&ws::of(endpoint, SCHEME)?.tcp, options)
}

pub(super) fn local_name(endpoint: &Endpoint, at: ResolvedAddress, options: &Options) -> Option<String> {
    ws::local_name_with(SCHEME, endpoint, at, options)
}

pub(super) fn route(endpoint: &Endpoint, options: &Options) -> Option<Result<ConnectRoute, Error>> {
    Some(tcp::route_tcp(&ws::of(endpoint, SCHEME)?.tcp, options))
}

pub(super) fn carrying(endpoint: &Endpoint, options: &Options) -> Option<Result<CarrierFactory, Error>> {
    let address = ws::of(endpoint, SCHEME)?;
    let host = tls::host_of(&address.tcp);
    Some(asked(&host, options).and_then(|name| {
        let config =
            tls::client(options, options.wss_trust_system, name, &host, VERSIONS).map_err(tls::invalid)?;
        carry(ws::client(address, PORT), config, options)
    }))
}

/// The name that a server at `host` has to prove. As in libzmq, there is no such name if the
/// program sets none. With the system's authorities it is `host`: the owner of any name can get a
/// certificate that the system trusts, so a valid chain alone does not identify the server.
fn asked<'a>(host: &'a str, options: &'a Options) -> Result<Option<&'a str>, Error> {
    Ok(tls::asked(options)?.or(options.wss_trust_system.then_some(host)))
}

fn carry(role: Role, config: TlsConfig, options: &Options) -> Result<CarrierFactory, Error> {
    let inside = ws::config(role, options)?;
    lending::forbid_beside_encryption();
    Ok(Arc::new(move || {
        let socket = WebSocket::new(ws::seeded(&inside)?);
        Ok(Box::new(tls::start(&config, socket)?) as Box<dyn Carrier>)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ContextDefaults;
    use tautline_proto::SocketType;

    #[test]
    fn system_trust_requires_matching_host_name() {
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
