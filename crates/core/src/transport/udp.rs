//! `udp://`, zmq_udp(7): sockets for datagrams. There are no connections: a socket receives from
//! any address, or sends.

use std::net::{IpAddr, SocketAddr};

use super::local::{AddressQuery, ResolvedAddress, literal, local_address};
use crate::endpoint::{Host, HostPort, UdpEndpoint};
use crate::error::Error;
use crate::options::Options;
use tautline_io::interfaces;
use tautline_io::net::{Address, Datagram, DatagramOptions, MulticastInterface};
use tautline_io::resolve::{AcceptedFamily, parse_literal};

/// Destination of datagrams.
pub(crate) enum Destination {
    /// This address.
    Known(SocketAddr),
    /// A host that the resolver knows.
    Named { host: String, port: u16, family: AcceptedFamily },
}

/// Returns the question for the resolver before receiving at `address`.
pub(super) fn question(address: &str, options: &Options) -> Option<AddressQuery> {
    let HostPort { host, port } = UdpEndpoint::parse(address).ok()?.target;
    AddressQuery::about(&host, port.number(), options.ipv6)
}

/// Opens a receiver at `endpoint`. If the resolver was asked for the host, `at` is its address.
/// Also returns the resolved endpoint.
pub(crate) fn receiver(
    endpoint: &UdpEndpoint,
    at: ResolvedAddress,
    options: &Options,
) -> Result<(Datagram, String), Error> {
    let target = match at {
        Some(address) => address,
        None => local_address(&endpoint.target.host, endpoint.target.port.number(), options.ipv6)?,
    };
    check_interface(endpoint, &target)?;
    let is_group = target.ip().is_multicast();
    let address = if is_group { any_like(target.ip(), target.port()) } else { target };
    let socket = Datagram::new(&address, &datagram_options(options))?;
    socket.bind(&address, is_group)?;
    let interface = interface(endpoint, &target)?;
    if is_group {
        socket.join(target.ip(), interface)?;
    }
    set_multicast(&socket, &target, interface, options)?;
    let mut shown = socket.local_address()?;
    if is_group {
        let port = shown.port();
        shown = target;
        shown.set_port(port);
    }
    Ok((socket, format!("udp://{}", Address::Inet(shown))))
}

/// Opens a sender to `endpoint`.
pub(crate) fn sender(endpoint: &UdpEndpoint, options: &Options) -> Result<(Datagram, Destination), Error> {
    let port = endpoint.target.port.number();
    if port == 0 {
        return Err(Error::Invalid);
    }
    let destination = match &endpoint.target.host {
        Host::Wildcard => return Err(Error::Invalid),
        Host::Literal(address, zone) => {
            Destination::Known(literal(*address, zone.as_deref(), port, options.ipv6)?)
        }
        Host::Name(name) => match parse_literal(name, port) {
            Some(address) => Destination::Known(address),
            None => {
                let family = if options.ipv6 { AcceptedFamily::Any } else { AcceptedFamily::V4 };
                Destination::Named { host: name.clone(), port, family }
            }
        },
    };
    let like = match &destination {
        Destination::Known(address) if address.is_ipv6() && !options.ipv6 => return Err(Error::Invalid),
        Destination::Known(address) => {
            check_interface(endpoint, address)?;
            *address
        }
        Destination::Named { .. } if options.ipv6 => SocketAddr::from(([0_u16; 8], 0)),
        Destination::Named { .. } => SocketAddr::from(([0, 0, 0, 0], 0)),
    };
    let socket = Datagram::new(&like, &datagram_options(options))?;
    set_multicast(&socket, &like, interface(endpoint, &like)?, options)?;
    Ok((socket, destination))
}

/// Checks the interface: only a multicast group may have one. Fails with Invalid for other hosts.
fn check_interface(endpoint: &UdpEndpoint, target: &SocketAddr) -> Result<(), Error> {
    if endpoint.interface.is_some() && !target.ip().is_multicast() { Err(Error::Invalid) } else { Ok(()) }
}

fn set_multicast(
    socket: &Datagram,
    like: &SocketAddr,
    interface: MulticastInterface,
    options: &Options,
) -> Result<(), Error> {
    Ok(socket.set_multicast(like.is_ipv4(), options.multicast_hops, options.multicast_loop, interface)?)
}

/// The wildcard address of the family of `address`.
fn any_like(address: IpAddr, port: u16) -> SocketAddr {
    match address {
        IpAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], port)),
        IpAddr::V6(_) => SocketAddr::from(([0_u16; 8], port)),
    }
}

/// The interface for multicast to or from `target`: the one in the endpoint, or the one of the
/// target's zone.
fn interface(endpoint: &UdpEndpoint, target: &SocketAddr) -> Result<MulticastInterface, Error> {
    match (&endpoint.interface, target) {
        (None, SocketAddr::V6(target)) if target.scope_id() != 0 => {
            Ok(MulticastInterface::Index(target.scope_id()))
        }
        (None | Some(Host::Wildcard), _) => Ok(MulticastInterface::Any),
        (Some(host), SocketAddr::V4(_)) => match local_address(host, 0, false)?.ip() {
            IpAddr::V4(address) => Ok(MulticastInterface::Address(address)),
            IpAddr::V6(_) => Err(Error::NoDevice),
        },
        (Some(Host::Name(name)), SocketAddr::V6(_)) => {
            interfaces::scope_id(name).map(MulticastInterface::Index).ok_or(Error::NoDevice)
        }
        (Some(Host::Literal(..)), SocketAddr::V6(_)) => Err(Error::NoDevice),
    }
}

fn datagram_options(options: &Options) -> DatagramOptions {
    DatagramOptions {
        send_buffer: options.send_buffer,
        receive_buffer: options.receive_buffer,
        tos: options.tos as u8,
        priority: (options.priority != 0).then_some(options.priority),
        bind_to_device: options.bind_to_device.clone(),
    }
}
