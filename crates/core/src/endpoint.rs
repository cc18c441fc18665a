//! Endpoint strings: `transport://address`, as zmq_bind(3) and zmq_connect(3) take them.
//!
//! [`Endpoint::parse`] reads what either call may be given; [`Endpoint::for_bind`] and [`Endpoint::for_connect`] then say
//! whether this one can be used so, with the errno of libzmq. Nothing here asks the system: names of interfaces and hosts
//! stay text, and whether they exist is found out by the transport. `Display` gives the canonical text, the one that
//! ZMQ_LAST_ENDPOINT shows once the transport has put in the address it was really given.
//!
//! A new transport is a row in [`SCHEMES`], a variant of [`Endpoint`], and a file beside this one that reads its address.

use std::fmt;

use crate::error::Error;

mod ipc;
mod tcp;
#[cfg(test)]
mod tests;

pub(crate) use ipc::IpcEndpoint;
pub(crate) use tcp::{Host, HostPort, TcpEndpoint};

/// Where to bind or connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Endpoint {
    /// `tcp://`: a host and a port.
    Tcp(TcpEndpoint),
    /// `ipc://`: a Unix domain socket.
    Ipc(IpcEndpoint),
    /// `inproc://`: a name inside the context; never empty.
    Inproc(String),
}

/// One transport's way to read its addresses.
struct Scheme {
    name: &'static str,
    read: fn(&str) -> Result<Endpoint, Error>,
}

/// Every scheme that libzmq knows; those without a transport here answer what a libzmq built without them does.
static SCHEMES: &[Scheme] = &[
    Scheme { name: "tcp", read: |address| TcpEndpoint::parse(address).map(Endpoint::Tcp) },
    Scheme { name: "ipc", read: |address| IpcEndpoint::parse(address).map(Endpoint::Ipc) },
    Scheme { name: "inproc", read: |address| Ok(Endpoint::Inproc(address.to_owned())) },
    // UDP is always there in libzmq, but only for RADIO, DISH and DGRAM: the other socket types get this errno.
    Scheme { name: "udp", read: |_| Err(Error::IncompatibleProtocol) },
    Scheme { name: "ws", read: absent },
    Scheme { name: "wss", read: absent },
    Scheme { name: "vsock", read: absent },
    Scheme { name: "tipc", read: absent },
    Scheme { name: "vmci", read: absent },
    Scheme { name: "pgm", read: absent },
    Scheme { name: "epgm", read: absent },
    Scheme { name: "norm", read: absent },
];

fn absent(_address: &str) -> Result<Endpoint, Error> {
    Err(Error::ProtocolNotSupported)
}

impl Endpoint {
    /// Reads an endpoint. `Error::Invalid` without `://`, with an empty scheme or address, or when no reading of the
    /// address makes sense; `Error::ProtocolNotSupported` for a transport that is not there, whether known or not;
    /// `Error::NameTooLong` for a path beyond the system's limit.
    pub(crate) fn parse(text: &str) -> Result<Endpoint, Error> {
        let (scheme, address) = text.split_once("://").ok_or(Error::Invalid)?;
        if scheme.is_empty() || address.is_empty() {
            return Err(Error::Invalid);
        }
        let known = SCHEMES.iter().find(|known| known.name == scheme).ok_or(Error::ProtocolNotSupported)?;
        (known.read)(address)
    }

    /// Whether zmq_bind takes it: `Error::NoDevice` for an empty host.
    pub(crate) fn for_bind(&self) -> Result<(), Error> {
        match self {
            Endpoint::Tcp(tcp) => tcp.for_bind(),
            Endpoint::Ipc(_) | Endpoint::Inproc(_) => Ok(()),
        }
    }

    /// Whether zmq_connect takes it: `Error::Invalid` for wildcards and for addresses nobody can ever be reached at.
    pub(crate) fn for_connect(&self) -> Result<(), Error> {
        match self {
            Endpoint::Tcp(tcp) => tcp.for_connect(),
            Endpoint::Ipc(ipc) => ipc.for_connect(),
            Endpoint::Inproc(_) => Ok(()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(tcp) => write!(f, "tcp://{tcp}"),
            Endpoint::Ipc(ipc) => write!(f, "ipc://{ipc}"),
            Endpoint::Inproc(name) => write!(f, "inproc://{name}"),
        }
    }
}
