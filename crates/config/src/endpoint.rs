//! Endpoint strings: `transport://address`, as zmq_bind(3) and zmq_connect(3) accept them.
//!
//! [`Endpoint::parse`] parses the argument of either call. [`Endpoint::check_bind`] and
//! [`Endpoint::check_connect`] then check if this call may use it, with the errno of libzmq. This
//! module makes no system call: names of interfaces and hosts stay text, and the transport finds
//! out if they exist. `Display` gives the canonical text, which ZMQ_LAST_ENDPOINT shows once the
//! transport has inserted the real address.
//!
//! Only a transport knows its addresses; all other code sees an [`Address`].

use std::any::Any;
use std::fmt;

use crate::error::Error;

mod check;
mod grammar;
mod ipc;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;
mod vsock;
mod ws;

pub use check::{EndpointError, assert_valid, check};
pub use ipc::IpcEndpoint;
pub use tcp::{Host, HostPort, TcpEndpoint};
pub use udp::UdpEndpoint;
pub use vsock::VsockEndpoint;
pub use ws::WsEndpoint;

/// An address of a byte-stream transport.
pub trait Address: Any + fmt::Debug + fmt::Display + Send + Sync {
    /// Parses the part after `://`, which is not empty. Returns `Error::Invalid` if it has no valid
    /// meaning.
    fn parse(text: &str) -> Result<Self, Error>
    where
        Self: Sized;

    /// Checks if zmq_bind accepts it: `Error::NoDevice` for an empty host.
    fn check_bind(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Checks if zmq_connect accepts it: `Error::Invalid` for wildcards and for addresses that can
    /// never reach a peer.
    fn check_connect(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Scheme of a name.
const NAME: &str = "name";

/// An endpoint to bind or to connect to.
#[derive(Debug)]
pub enum Endpoint {
    /// The scheme of a byte-stream transport, and an address of its kind.
    Stream(&'static str, Box<dyn Address>),
    /// `inproc://`: a name inside the context; never empty.
    Inproc(String),
    /// `udp://`: an address; never empty. The socket parses it later, if its type supports
    /// datagrams.
    Datagram(String),
    /// `name://`: a name whose endpoints the host resolves; never empty.
    Name(String),
}

impl Endpoint {
    /// Parses an endpoint. Returns `Error::Invalid` without `://`, with an empty scheme or address,
    /// or for an address without any valid meaning; `Error::ProtocolNotSupported` for a transport
    /// that this build does not have; `Error::NameTooLong` for a path beyond the system's limit.
    pub fn parse(text: &str) -> Result<Endpoint, Error> {
        let (scheme, address) = grammar::split_scheme(text).ok_or(Error::Invalid)?;
        if scheme.is_empty() || address.is_empty() {
            return Err(Error::Invalid);
        }
        match scheme {
            "tcp" => Endpoint::stream::<TcpEndpoint>("tcp", address),
            "ipc" => Endpoint::stream::<IpcEndpoint>("ipc", address),
            "inproc" => Ok(Endpoint::Inproc(address.to_owned())),
            "udp" => Ok(Endpoint::Datagram(address.to_owned())),
            "vsock" => Endpoint::stream::<VsockEndpoint>("vsock", address),
            "ws" => Endpoint::stream::<WsEndpoint>("ws", address),
            #[cfg(feature = "tls")]
            "wss" => Endpoint::stream::<WsEndpoint>("wss", address),
            #[cfg(feature = "tls")]
            "tls+tcp" => Endpoint::stream::<TcpEndpoint>("tls+tcp", address),
            NAME => Ok(Endpoint::Name(address.to_owned())),
            _ => Err(Error::ProtocolNotSupported),
        }
    }

    fn stream<A: Address>(scheme: &'static str, address: &str) -> Result<Endpoint, Error> {
        Ok(Endpoint::Stream(scheme, Box::new(A::parse(address)?)))
    }

    /// The scheme, before `://`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Endpoint::Stream(scheme, _) => scheme,
            Endpoint::Inproc(_) => "inproc",
            Endpoint::Datagram(_) => "udp",
            Endpoint::Name(_) => NAME,
        }
    }

    /// The address, if it is of the kind `A`.
    pub fn address<A: Address>(&self) -> Option<&A> {
        match self {
            Endpoint::Stream(_, address) => (&**address as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// Checks if zmq_bind accepts it.
    pub fn check_bind(&self) -> Result<(), Error> {
        match self {
            Endpoint::Stream(_, address) => address.check_bind(),
            _ => Ok(()),
        }
    }

    /// Checks if zmq_connect accepts it.
    pub fn check_connect(&self) -> Result<(), Error> {
        match self {
            Endpoint::Stream(_, address) => address.check_connect(),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Stream(scheme, address) => write!(f, "{scheme}://{address}"),
            Endpoint::Inproc(name) => write!(f, "inproc://{name}"),
            Endpoint::Datagram(address) => write!(f, "udp://{address}"),
            Endpoint::Name(name) => write!(f, "{NAME}://{name}"),
        }
    }
}
