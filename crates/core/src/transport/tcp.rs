//! `tcp://`, zmq_tcp(7).

use std::net::{IpAddr, SocketAddr};

use super::local::{AddressQuery, ResolvedAddress, literal, local_address};
use super::{Bound, ConnectRoute, Failed, Hop};
use crate::endpoint::{Address as _, Endpoint, Host, HostPort, TcpEndpoint};
use crate::error::Error;
use crate::options::Options;
use tautline_io::fd::from_int;
use tautline_io::net::{self, Address, Family as StreamFamily, Listener, Stream, StreamOptions};
use tautline_io::resolve::{AcceptedFamily, parse_literal};
use tautline_proto::socks;

const SCHEME: &str = "tcp";

/// The address of an endpoint of `scheme`.
pub(super) fn of<'e>(endpoint: &'e Endpoint, scheme: &str) -> Option<&'e TcpEndpoint> {
    endpoint.address().filter(|_| endpoint.scheme() == scheme)
}

pub(super) fn listen(
    endpoint: &Endpoint,
    at: ResolvedAddress,
    options: &Options,
) -> Option<Result<Bound, Failed>> {
    Some(listen_tcp(of(endpoint, SCHEME)?, at, options))
}

pub(super) fn listen_tcp(tcp: &TcpEndpoint, at: ResolvedAddress, options: &Options) -> Result<Bound, Failed> {
    let listener = match options.use_fd {
        Some(fd) => Listener::take_over(from_int(fd))?,
        None => {
            if let Some(HostPort { host, port }) = &tcp.source {
                // The source is for connect only, but bind also refuses a source that is not a
                // local address.
                local_address(host, port.number(), options.ipv6)?;
            }
            let address = listening_address(tcp, at, options)?;
            // An IPv6 wildcard serves IPv4 as well.
            Listener::bind(&Address::Inet(address), &stream_options(options), options.backlog, false)?
        }
    };
    let endpoint = format!("tcp://{}", listener.local_address()?);
    Ok(Bound { listener, endpoint, unlink: None, carrying: None })
}

/// The address to listen at. `at` is the resolver's answer. With ZMQ_IPV6 all listeners are IPv6
/// ones, so that ZMQ_LAST_ENDPOINT shows `[::ffff:127.0.0.1]`, as in libzmq.
fn listening_address(tcp: &TcpEndpoint, at: ResolvedAddress, options: &Options) -> Result<SocketAddr, Error> {
    let ipv6 = listens_with_ipv6(options);
    let address = match at {
        Some(address) => address,
        None => local_address(&tcp.host, tcp.port.number(), ipv6)?,
    };
    Ok(match address.ip() {
        IpAddr::V4(v4) if ipv6 => (v4.to_ipv6_mapped(), address.port()).into(),
        _ => address,
    })
}

/// True if listeners use IPv6: if ZMQ_IPV6 is set and the system supports IPv6.
fn listens_with_ipv6(options: &Options) -> bool {
    options.ipv6 && net::is_ipv6_supported()
}

pub(super) fn question(endpoint: &Endpoint, options: &Options) -> Option<AddressQuery> {
    question_tcp(of(endpoint, SCHEME)?, options)
}

/// Returns the question for the resolver before listening at `tcp`.
pub(super) fn question_tcp(tcp: &TcpEndpoint, options: &Options) -> Option<AddressQuery> {
    if options.use_fd.is_some() {
        return None;
    }
    AddressQuery::about(&tcp.host, tcp.port.number(), listens_with_ipv6(options))
}

/// The name of a listener at `tcp`, if it does not depend on a port that the system chooses.
pub(super) fn local_name(endpoint: &Endpoint, at: ResolvedAddress, options: &Options) -> Option<String> {
    let address = known_address(of(endpoint, SCHEME)?, at, options)?;
    Some(format!("tcp://{}", Address::Inet(address)))
}

/// The address of a listener, if it does not depend on a port that the system chooses.
pub(super) fn known_address(tcp: &TcpEndpoint, at: ResolvedAddress, options: &Options) -> Option<SocketAddr> {
    listening_address(tcp, at, options).ok().filter(|address| address.port() != 0)
}

pub(super) fn route(endpoint: &Endpoint, options: &Options) -> Option<Result<ConnectRoute, Error>> {
    Some(route_tcp(of(endpoint, SCHEME)?, options))
}

pub(super) fn route_tcp(tcp: &TcpEndpoint, options: &Options) -> Result<ConnectRoute, Error> {
    let Some(proxy) = &options.socks_proxy else {
        return Ok(ConnectRoute { source: source(tcp, options)?, hop: hop(tcp, options)?, beyond: None });
    };
    let proxy = TcpEndpoint::parse(proxy)?;
    proxy.check_connect()?;
    let login = (options.socks_username.clone(), options.socks_password.clone());
    let request =
        socks::Request { target: target(tcp)?, login: Some(login).filter(|(name, _)| !name.is_empty()) };
    let source = source(&proxy, options)?.or(source(tcp, options)?);
    Ok(ConnectRoute { source, hop: hop(&proxy, options)?, beyond: Some(request) })
}

fn source(tcp: &TcpEndpoint, options: &Options) -> Result<Option<SocketAddr>, Error> {
    let of = |HostPort { host, port }: &HostPort| local_address(host, port.number(), options.ipv6);
    tcp.source.as_ref().map(of).transpose()
}

fn hop(tcp: &TcpEndpoint, options: &Options) -> Result<Hop, Error> {
    let port = tcp.port.number();
    let address = match &tcp.host {
        Host::Wildcard => return Err(Error::Invalid),
        Host::Literal(address, zone) => literal(*address, zone.as_deref(), port, options.ipv6)?,
        Host::Name(host) => match parse_literal(host, port) {
            Some(address) => address,
            None => {
                let family = if options.ipv6 { AcceptedFamily::Any } else { AcceptedFamily::V4 };
                return Ok(Hop::Resolve { host: host.clone(), port, family });
            }
        },
    };
    Ok(Hop::Direct(Address::Inet(address)))
}

/// The target for the proxy, which resolves the name: the host may be known to the proxy only, and
/// no resolver of this machine must learn of it.
fn target(tcp: &TcpEndpoint) -> Result<socks::Target, Error> {
    let port = tcp.port.number();
    match &tcp.host {
        Host::Wildcard => Err(Error::Invalid),
        Host::Literal(address, _) => Ok(socks::Target::Address((*address, port).into())),
        Host::Name(host) if host.len() > 255 => Err(Error::NameTooLong),
        Host::Name(host) => Ok(match parse_literal(host, port) {
            Some(address) => socks::Target::Address(address),
            None => socks::Target::Name(host.clone(), port),
        }),
    }
}

pub(super) fn admit(stream: &Stream, family: StreamFamily, options: &Options) -> Option<bool> {
    if !matches!(family, StreamFamily::V4 | StreamFamily::V6) {
        return None;
    }
    let filters = &options.tcp_accept_filters;
    let wanted = filters.is_empty()
        || matches!(stream.peer_address(), Ok(Address::Inet(peer)) if filters.iter().any(|filter| filter.matches(peer.ip())));
    Some(wanted && stream.apply(&stream_options(options)).is_ok())
}

/// The system's options for a stream of a socket with these options.
pub(super) fn stream_options(options: &Options) -> StreamOptions {
    StreamOptions {
        nodelay: true,
        send_buffer: options.send_buffer.map(|bytes| bytes as usize),
        receive_buffer: options.receive_buffer.map(|bytes| bytes as usize),
        keepalive: options.tcp_keepalive,
        keepalive_count: options.tcp_keepalive_count,
        keepalive_idle_s: options.tcp_keepalive_idle,
        keepalive_interval_s: options.tcp_keepalive_interval,
        tos: options.tos as u8,
        priority: (options.priority != 0).then_some(options.priority),
        bind_to_device: options.bind_to_device.clone(),
        max_retransmit_ms: options.tcp_max_retransmit.map(|time| time.as_millis() as u32),
        busy_poll: (options.busy_poll != 0).then_some(options.busy_poll),
        mode: options.policy_settings.ipc_mode,
    }
}
