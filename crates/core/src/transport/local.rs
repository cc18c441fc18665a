//! Local addresses by name: the host of a bind, and the source of a connect.
//!
//! A name is that of an interface, or else of a host. Only bind asks the resolver for host names.
//! The resolver may take long, so the [`AddressQuery`] is asked separately, without any lock. A
//! source must be a number or an interface, as in libzmq: the I/O thread looks it up again for each
//! attempt to connect.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::endpoint::Host;
use crate::error::Error;
use tautline_io::interfaces;
use tautline_io::resolve::{self, AcceptedFamily};

/// A question: which local address does a host's name stand for?
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AddressQuery {
    host: String,
    port: u16,
    ipv6: bool,
}

/// The answer to a question, if there was a question.
pub(crate) type ResolvedAddress = Option<SocketAddr>;

impl AddressQuery {
    /// Makes a question about `host`, if only the resolver may know it.
    pub(super) fn about(host: &Host, port: u16, ipv6: bool) -> Option<AddressQuery> {
        match (host, local_address(host, port, ipv6)) {
            (Host::Name(host), Err(Error::NoDevice)) => Some(AddressQuery { host: host.clone(), port, ipv6 }),
            _ => None,
        }
    }

    /// True if the port of the address is known in advance.
    pub(crate) fn has_port(&self) -> bool {
        self.port != 0
    }

    /// Asks the resolver; the caller waits. The first address of the answer counts, as in libzmq;
    /// with ZMQ_IPV6 the first IPv6 address, if there is one. Fails with NoDevice if there is no
    /// address.
    pub(crate) fn ask(&self) -> Result<SocketAddr, Error> {
        by_name(&self.host, self.port, self.ipv6, resolve::addresses)
    }
}

/// Returns a local address that needs no resolver: a wildcard, a literal, or the first address of
/// an interface. Fails with NoDevice for another name.
pub(super) fn local_address(host: &Host, port: u16, ipv6: bool) -> Result<SocketAddr, Error> {
    match host {
        Host::Wildcard if ipv6 => Ok((Ipv6Addr::UNSPECIFIED, port).into()),
        Host::Wildcard => Ok((Ipv4Addr::UNSPECIFIED, port).into()),
        Host::Literal(address, zone) => {
            let address = literal(*address, zone.as_deref(), port, ipv6)?;
            if address.is_ipv6() && !ipv6 { Err(Error::NoDevice) } else { Ok(address) }
        }
        Host::Name(name) => match of_interface(name, port, ipv6) {
            Some(address) => Ok(address),
            None => by_name(name, port, ipv6, resolve::numeric_addresses),
        },
    }
}

/// The address of a literal, with its zone. Fails with Invalid if the zone is not the name or
/// number of an interface. Without `ipv6`, an IPv4-mapped address means its IPv4 address, as in
/// libzmq.
pub(super) fn literal(
    address: IpAddr,
    zone: Option<&str>,
    port: u16,
    ipv6: bool,
) -> Result<SocketAddr, Error> {
    match address {
        IpAddr::V6(mapped) if !ipv6 && zone.is_none() && mapped.to_ipv4_mapped().is_some() => {
            Ok((address.to_canonical(), port).into())
        }
        IpAddr::V4(address) => Ok((address, port).into()),
        IpAddr::V6(address) => {
            let scope = zone.map(|zone| resolve::parse_scope(zone).ok_or(Error::Invalid)).transpose()?;
            Ok(SocketAddrV6::new(address, port, 0, scope.unwrap_or(0)).into())
        }
    }
}

fn of_interface(name: &str, port: u16, ipv6: bool) -> Option<SocketAddr> {
    let mut addresses = interfaces::addresses_of(name).ok()?;
    addresses.sort_by_key(|address| address.is_ipv6() != ipv6);
    let mut usable = addresses.into_iter().find(|address| ipv6 || address.is_ipv4())?;
    usable.set_port(port);
    Some(usable)
}

fn by_name(
    name: &str,
    port: u16,
    ipv6: bool,
    lookup: fn(&str, u16, AcceptedFamily) -> io::Result<Vec<SocketAddr>>,
) -> Result<SocketAddr, Error> {
    let families: &[AcceptedFamily] =
        if ipv6 { &[AcceptedFamily::V6, AcceptedFamily::V4] } else { &[AcceptedFamily::V4] };
    let mut outcome = Err(Error::NoDevice);
    for family in families {
        match lookup(name, port, *family) {
            Ok(addresses) => return addresses.into_iter().next().ok_or(Error::NoDevice),
            Err(error) => outcome = Err(failure(&error)),
        }
    }
    outcome
}

fn failure(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::OutOfMemory => Error::NoMemory,
        io::ErrorKind::InvalidInput => Error::Invalid,
        _ => Error::NoDevice,
    }
}
