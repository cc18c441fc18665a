//! `tcp://`, zmq_tcp(7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::{Bound, Route};
use crate::endpoint::{Endpoint, Host, HostPort, TcpEndpoint};
use crate::error::Error;
use crate::options::Options;
use tautline_io::interfaces;
use tautline_io::net::{self, Address, Family as StreamFamily, Listener, Stream, StreamOptions};
use tautline_io::resolve::{Family, parse_literal};

pub(super) fn listen(endpoint: &Endpoint, options: &Options) -> Option<Result<Bound, Error>> {
    let tcp = endpoint.address()?;
    Some(listen_tcp(tcp, options))
}

fn listen_tcp(tcp: &TcpEndpoint, options: &Options) -> Result<Bound, Error> {
    let listener = match options.use_fd {
        Some(fd) => Listener::from_fd(net::duplicate(fd)?)?,
        None => {
            let address = listening_address(tcp, options)?;
            // An IPv6 wildcard serves IPv4 as well.
            Listener::bind(&Address::Inet(address), &stream_options(options), options.backlog, false)?
        }
    };
    let endpoint = format!("tcp://{}", listener.local_address()?);
    Ok(Bound { listener, endpoint, unlink: None })
}

/// Where to listen. With ZMQ_IPV6 all listeners are IPv6 ones, so that ZMQ_LAST_ENDPOINT shows `[::ffff:127.0.0.1]`, as in libzmq.
fn listening_address(tcp: &TcpEndpoint, options: &Options) -> Result<SocketAddr, Error> {
    let address = local_address(&tcp.host, tcp.port.number(), options.ipv6)?;
    Ok(match address.ip() {
        IpAddr::V4(v4) if options.ipv6 => (v4.to_ipv6_mapped(), address.port()).into(),
        _ => address,
    })
}

/// The name of a listener at `tcp`, if it does not depend on the port that the system gives.
pub(super) fn local_name(endpoint: &Endpoint, options: &Options) -> Option<String> {
    let tcp = endpoint.address()?;
    let address = listening_address(tcp, options).ok().filter(|address| address.port() != 0)?;
    Some(format!("tcp://{address}"))
}

/// A local address: a wildcard, a literal, an interface's name, or a host name that resolves to an address of ours.
fn local_address(host: &Host, port: u16, ipv6: bool) -> Result<SocketAddr, Error> {
    match host {
        Host::Wildcard if ipv6 => Ok((Ipv6Addr::UNSPECIFIED, port).into()),
        Host::Wildcard => Ok((Ipv4Addr::UNSPECIFIED, port).into()),
        Host::Literal(address, zone) => {
            if address.is_ipv6() && !ipv6 {
                return Err(Error::NoDevice);
            }
            literal(*address, zone.as_deref(), port)
        }
        Host::Name(name) => {
            let mut addresses = interfaces::addresses_of(name).map_err(|_| Error::NoDevice)?;
            addresses.sort_by_key(|address| address.is_ipv6() != ipv6);
            let usable = addresses.into_iter().find(|address| ipv6 || address.is_ipv4());
            usable.map(|address| (address, port).into()).ok_or(Error::NoDevice)
        }
    }
}

fn literal(address: IpAddr, zone: Option<&str>, port: u16) -> Result<SocketAddr, Error> {
    match address {
        IpAddr::V4(address) => Ok((address, port).into()),
        IpAddr::V6(address) => {
            let scope = match zone {
                None => 0,
                Some(zone) => {
                    interfaces::scope_id(zone).or_else(|| zone.parse().ok()).ok_or(Error::Invalid)?
                }
            };
            Ok(SocketAddrV6::new(address, port, 0, scope).into())
        }
    }
}

pub(super) fn route(endpoint: &Endpoint, options: &Options) -> Option<Result<Route, Error>> {
    let tcp = endpoint.address()?;
    Some(route_tcp(tcp, options))
}

fn route_tcp(tcp: &TcpEndpoint, options: &Options) -> Result<Route, Error> {
    let source = match &tcp.source {
        Some(HostPort { host, port }) => Some(local_address(host, port.number(), options.ipv6)?),
        None => None,
    };
    let port = tcp.port.number();
    match &tcp.host {
        Host::Wildcard => Err(Error::Invalid),
        Host::Literal(address, zone) => {
            let address = Address::Inet(literal(*address, zone.as_deref(), port)?);
            Ok(Route::Direct { source, address })
        }
        Host::Name(host) => match parse_literal(host, port) {
            Some(address) => Ok(Route::Direct { source, address: Address::Inet(address) }),
            None => {
                let family = if options.ipv6 { Family::Any } else { Family::V4 };
                Ok(Route::Resolve { source, host: host.clone(), port, family })
            }
        },
    }
}

pub(super) fn admit(stream: &Stream, family: StreamFamily, options: &Options) -> Option<bool> {
    if family == StreamFamily::Unix {
        return None;
    }
    let Ok(Address::Inet(peer)) = stream.peer_address() else { return Some(false) };
    let filters = &options.tcp_accept_filters;
    let wanted = filters.is_empty() || filters.iter().any(|filter| filter.matches(peer.ip()));
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
    }
}
