//! Addresses of `tcp://`, zmq_tcp(7): `host:port`, or `source:port;host:port` to connect from a
//! chosen local address.
//!
//! libzmq is lenient: it ignores characters after the digits of a port (in bind even blanks and
//! slashes), and accepts IPv6 addresses with and without brackets. Programs rely on this, so we
//! accept the same texts.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use super::Address;
use super::grammar::{decimal, split_port, split_source};
use crate::error::Error;

/// A TCP address to bind or connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TcpEndpoint {
    /// Source of connections. Bind does not use it.
    pub source: Option<HostPort>,
    /// The host, interface or local address.
    pub host: Host,
    /// The port.
    pub port: Port,
    /// True if the text has characters that zmq_bind ignores and zmq_connect refuses.
    loose: bool,
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// The host, interface or local address.
    pub host: Host,
    /// The port.
    pub port: Port,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// `*`: every local address.
    Wildcard,
    /// An address, for IPv6 with the zone (an interface's name or number) if one was given. A
    /// socket without ZMQ_IPV6 must not use an IPv6 address: bind fails with ENODEV then, and
    /// connect never succeeds.
    Literal(IpAddr, Option<String>),
    /// The name of an interface (bind, source) or of a host: the resolver decides. The name may be
    /// empty or nonsense.
    Name(String),
}

/// A port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Port {
    /// This port; never 0.
    Number(u16),
    /// `*` or `0`: any free port.
    Wildcard,
}

impl Address for TcpEndpoint {
    /// Parses `host:port` or `source:port;host:port`. Returns `Error::Invalid` without a port in
    /// either part, for a port that is neither a wildcard nor 1 to 65535, for an empty zone, and
    /// for more than two parts.
    fn parse(address: &str) -> Result<TcpEndpoint, Error> {
        let (source, target) = match split_source(address) {
            Some((_, rest)) if rest.contains(';') => return Err(Error::Invalid),
            Some((source, target)) => (Some(HostPort::parse(source)?), target),
            None => (None, address),
        };
        let HostPort { host, port } = HostPort::parse(target)?;
        Ok(TcpEndpoint { source, host, port, loose: !is_strict(address) })
    }

    fn check_bind(&self) -> Result<(), Error> {
        let nowhere = |host: &Host| *host == Host::Name(String::new());
        if nowhere(&self.host) || self.source.as_ref().is_some_and(|source| nowhere(&source.host)) {
            return Err(Error::NoDevice);
        }
        Ok(())
    }

    fn check_connect(&self) -> Result<(), Error> {
        let source_reachable = self.source.as_ref().is_none_or(|source| source.host.is_reachable());
        if self.loose || self.port == Port::Wildcard || !self.host.is_reachable() || !source_reachable {
            return Err(Error::Invalid);
        }
        Ok(())
    }
}

impl HostPort {
    pub(super) fn parse(text: &str) -> Result<HostPort, Error> {
        let (host, port) = split_port(text).ok_or(Error::Invalid)?;
        Ok(HostPort { host: Host::parse(host)?, port: Port::parse(port)? })
    }
}

impl Host {
    pub(super) fn parse(text: &str) -> Result<Host, Error> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if bare == "*" {
            return Ok(Host::Wildcard);
        }
        let (address, zone) = match bare.split_once('%') {
            Some((_, "")) => return Err(Error::Invalid),
            Some((address, zone)) => (address, Some(zone.to_owned())),
            None => (bare, None),
        };
        Ok(match IpAddr::from_str(address) {
            Ok(IpAddr::V4(address)) => Host::Literal(address.into(), None),
            Ok(IpAddr::V6(address)) => Host::Literal(address.into(), zone),
            // A name never begins like this. Without the brackets the text would not be a valid
            // name either.
            Err(_) if bare != text && bare.starts_with(|c: char| !c.is_ascii_alphanumeric() && c != ':') => {
                return Err(Error::Invalid);
            }
            Err(_) => Host::Name(bare.to_owned()),
        })
    }

    /// True if a connection to or from this host is possible in principle.
    fn is_reachable(&self) -> bool {
        match self {
            Host::Wildcard => false,
            Host::Literal(..) => true,
            Host::Name(name) => !name.is_empty() && !name.contains(['[', ']', ':', '*']),
        }
    }
}

impl Port {
    /// Parses a number like C: ignores blanks and a plus sign before it, and all characters after
    /// it.
    fn parse(text: &str) -> Result<Port, Error> {
        if text == "*" || text == "0" {
            return Ok(Port::Wildcard);
        }
        let text = text.trim_start();
        let text = text.strip_prefix('+').unwrap_or(text);
        let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        match decimal(&text[..end]).map(u16::try_from) {
            Some(Ok(number)) if number > 0 => Ok(Port::Number(number)),
            _ => Err(Error::Invalid),
        }
    }

    /// The number for the system, where 0 means any port.
    pub fn number(self) -> u16 {
        match self {
            Port::Number(number) => number,
            Port::Wildcard => 0,
        }
    }
}

/// Checks the characters of an address as zmq_connect does: only hosts, zones, brackets and
/// separators, with a digit after the last colon.
fn is_strict(address: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '[' || c == ':';
    let later = |c: char| c.is_ascii_alphanumeric() || "[]:;.-_%*".contains(c);
    let port = address.rsplit(':').next().unwrap_or_default();
    address.starts_with(first) && address.chars().all(later) && port.starts_with(|c: char| c.is_ascii_digit())
}

impl From<SocketAddr> for TcpEndpoint {
    /// The endpoint of a bound or connected descriptor.
    fn from(address: SocketAddr) -> Self {
        let zone = match address {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id().to_string()),
            _ => None,
        };
        let port = if address.port() == 0 { Port::Wildcard } else { Port::Number(address.port()) };
        TcpEndpoint { source: None, host: Host::Literal(address.ip(), zone), port, loose: false }
    }
}

impl fmt::Display for TcpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{}:{};", source.host, source.port)?;
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Wildcard => write!(f, "{}", Ipv4Addr::UNSPECIFIED),
            Host::Literal(IpAddr::V4(address), _) => write!(f, "{address}"),
            Host::Literal(IpAddr::V6(address), None) => write!(f, "[{address}]"),
            Host::Literal(IpAddr::V6(address), Some(zone)) => write!(f, "[{address}%{zone}]"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Port::Number(number) => write!(f, "{number}"),
            Port::Wildcard => f.write_str("*"),
        }
    }
}
