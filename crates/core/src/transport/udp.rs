//! `udp://`, zmq_udp(7): sockets for datagrams. There are no connections: what is opened here receives from anybody, or sends.

use std::net::{IpAddr, SocketAddr};

use super::tcp::local_address;
use crate::endpoint::{Host, UdpEndpoint};
use crate::error::Error;
use crate::options::Options;
use tautline_io::interfaces;
use tautline_io::net::{Datagram, DatagramOptions, MulticastInterface};
use tautline_io::resolve::{Family, parse_literal};

/// Where datagrams go.
pub(crate) enum Destination {
    /// To this address.
    Known(SocketAddr),
    /// To a host that the resolver knows.
    Named { host: String, port: u16, family: Family },
}

/// Receives at `endpoint`; also tells the endpoint as it has come out.
pub(crate) fn receiver(endpoint: &UdpEndpoint, options: &Options) -> Result<(Datagram, String), Error> {
    let port = endpoint.target.port.number();
    let group = match &endpoint.target.host {
        Host::Literal(address, _) if address.is_multicast() => Some(*address),
        _ => None,
    };
    let address = match (group, &endpoint.interface) {
        (Some(group), _) => any_like(group, port),
        (None, Some(interface)) => local_address(interface, port, options.ipv6)?,
        (None, None) => local_address(&endpoint.target.host, port, options.ipv6)?,
    };
    let socket = Datagram::new(&address, &datagram_options(options))?;
    socket.bind(&address, group.is_some())?;
    if let Some(group) = group {
        socket.join(group, interface(endpoint, group.is_ipv4(), options)?)?;
    }
    let shown = match group {
        Some(group) => SocketAddr::new(group, socket.local_address()?.port()),
        None => socket.local_address()?,
    };
    set_multicast(&socket, endpoint, shown.is_ipv4(), options)?;
    Ok((socket, format!("udp://{shown}")))
}

/// Sends to `endpoint`.
pub(crate) fn sender(endpoint: &UdpEndpoint, options: &Options) -> Result<(Datagram, Destination), Error> {
    let port = endpoint.target.port.number();
    if port == 0 {
        return Err(Error::Invalid);
    }
    let destination = match &endpoint.target.host {
        Host::Wildcard => return Err(Error::Invalid),
        Host::Literal(address, _) => Destination::Known(SocketAddr::new(*address, port)),
        Host::Name(name) => match parse_literal(name, port) {
            Some(address) => Destination::Known(address),
            None => {
                let family = if options.ipv6 { Family::Any } else { Family::V4 };
                Destination::Named { host: name.clone(), port, family }
            }
        },
    };
    let v4 = match destination {
        Destination::Known(address) => address.is_ipv4(),
        Destination::Named { .. } => !options.ipv6,
    };
    let like = if v4 { any_like(IpAddr::from([0, 0, 0, 0]), 0) } else { any_like(IpAddr::from([0; 16]), 0) };
    let socket = Datagram::new(&like, &datagram_options(options))?;
    set_multicast(&socket, endpoint, v4, options)?;
    Ok((socket, destination))
}

fn set_multicast(
    socket: &Datagram,
    endpoint: &UdpEndpoint,
    v4: bool,
    options: &Options,
) -> Result<(), Error> {
    let interface = interface(endpoint, v4, options)?;
    Ok(socket.set_multicast(v4, options.multicast_hops, options.multicast_loop, interface)?)
}

/// All addresses of the family of `address`.
fn any_like(address: IpAddr, port: u16) -> SocketAddr {
    match address {
        IpAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], port)),
        IpAddr::V6(_) => SocketAddr::from(([0_u16; 8], port)),
    }
}

fn interface(endpoint: &UdpEndpoint, v4: bool, options: &Options) -> Result<MulticastInterface, Error> {
    let Some(host) = &endpoint.interface else { return Ok(MulticastInterface::Any) };
    if *host == Host::Wildcard {
        return Ok(MulticastInterface::Any);
    }
    if v4 {
        return match local_address(host, 0, options.ipv6)?.ip() {
            IpAddr::V4(address) => Ok(MulticastInterface::Address(address)),
            IpAddr::V6(_) => Err(Error::NoDevice),
        };
    }
    match host {
        Host::Name(name) => interfaces::scope_id(name).map(MulticastInterface::Index).ok_or(Error::NoDevice),
        _ => Err(Error::NoDevice),
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
