//! Addresses of `vsock://`, zmq_vsock(7): `cid:port`, each a number; to bind also `*`, and `@` for
//! this machine.

use std::fmt;

use super::Address;
use crate::error::Error;

/// A virtual machine, or the host of some, and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct VsockEndpoint {
    /// The context identifier; `None` for all there are.
    pub(crate) cid: Option<u32>,
    /// The port; `None` for any that is free.
    pub(crate) port: Option<u32>,
}

/// The context identifier of this machine, whatever it is to others.
const LOCAL: u32 = 1;

impl Address for VsockEndpoint {
    /// Reads the part after `vsock://`. `Error::Invalid` without a port, and for what is neither a
    /// number of 32 bits nor a wildcard.
    fn parse(address: &str) -> Result<VsockEndpoint, Error> {
        let (cid, port) = address.rsplit_once(':').ok_or(Error::Invalid)?;
        let cid = if cid == "@" { Some(LOCAL) } else { number(cid)? };
        Ok(VsockEndpoint { cid, port: number(port)? })
    }

    fn for_connect(&self) -> Result<(), Error> {
        if self.cid.is_none() || self.port.is_none() { Err(Error::Invalid) } else { Ok(()) }
    }
}

/// A number, or `*` and what the system takes for it: -1, written in either way.
fn number(text: &str) -> Result<Option<u32>, Error> {
    match text {
        "*" | "-1" => Ok(None),
        _ if text.starts_with('+') => Err(Error::Invalid),
        _ => {
            let number: u32 = text.parse().map_err(|_| Error::Invalid)?;
            Ok(Some(number).filter(|number| *number != u32::MAX))
        }
    }
}

impl fmt::Display for VsockEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (part, end) in [(self.cid, ":"), (self.port, "")] {
            match part {
                Some(number) => write!(f, "{number}{end}")?,
                None => write!(f, "*{end}")?,
            }
        }
        Ok(())
    }
}
