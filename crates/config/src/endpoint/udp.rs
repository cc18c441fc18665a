//! Addresses of `udp://`, zmq_udp(7): `[interface;]address:port`, where the address is that of a
//! host or of a multicast group.

use std::fmt;

use super::grammar::split_source;
use super::{Host, HostPort};
use crate::error::Error;

/// A UDP address to receive at or to send to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UdpEndpoint {
    /// The interface for multicast, by its name or address.
    pub interface: Option<Host>,
    /// The host, group or local address, and the port.
    pub target: HostPort,
}

impl UdpEndpoint {
    /// Parses the part after `://`. Returns `Error::Invalid` without a port, for a port that is not
    /// a number, and for an empty part.
    pub fn parse(address: &str) -> Result<UdpEndpoint, Error> {
        let (interface, target) = match split_source(address) {
            Some((interface, target)) => (Some(Host::parse(interface)?), target),
            None => (None, address),
        };
        let target = HostPort::parse(target)?;
        let nowhere = Host::Name(String::new());
        if target.host == nowhere || interface.as_ref() == Some(&nowhere) {
            return Err(Error::Invalid);
        }
        Ok(UdpEndpoint { interface, target })
    }
}

impl fmt::Display for UdpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(interface) = &self.interface {
            write!(f, "{interface};")?;
        }
        write!(f, "{}:{}", self.target.host, self.target.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, shown) in [
            ("127.0.0.1:5556", "127.0.0.1:5556"),
            ("*:5556", "0.0.0.0:5556"),
            ("[::1]:1", "[::1]:1"),
            ("eth0;239.1.2.3:5555", "eth0;239.1.2.3:5555"),
            ("10.0.0.1;239.1.2.3:5555", "10.0.0.1;239.1.2.3:5555"),
            ("host.example:9", "host.example:9"),
        ] {
            assert_eq!(UdpEndpoint::parse(text).unwrap().to_string(), shown);
        }
        for wrong in ["", "host", ":5556", ";1.2.3.4:5", "1.2.3.4:x", "1.2.3.4:99999", "eth0;"] {
            assert_eq!(UdpEndpoint::parse(wrong), Err(Error::Invalid), "{wrong}");
        }
    }
}
