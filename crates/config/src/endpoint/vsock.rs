//! Addresses of `vsock://`, zmq_vsock(7): `cid:port`, each a number. Bind also accepts `*`, and `@`
//! for this machine.

use std::fmt;

use super::Address;
use super::grammar::{decimal, split_port};
use crate::error::Error;

/// A virtual machine, or the host of virtual machines, and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VsockEndpoint {
    /// The context identifier. `None` for all identifiers.
    pub cid: Option<u32>,
    /// The port. `None` for any free port.
    pub port: Option<u32>,
}

/// The context identifier that each machine uses for itself.
const LOCAL: u32 = 1;

impl Address for VsockEndpoint {
    /// Parses the part after `vsock://`. Returns `Error::Invalid` without a port, and for parts
    /// that are neither a number of 32 bits nor a wildcard.
    fn parse(address: &str) -> Result<VsockEndpoint, Error> {
        let (cid, port) = split_port(address).ok_or(Error::Invalid)?;
        let cid = if cid == "@" { Some(LOCAL) } else { number(cid)? };
        Ok(VsockEndpoint { cid, port: number(port)? })
    }

    fn check_connect(&self) -> Result<(), Error> {
        if self.cid.is_none() || self.port.is_none() { Err(Error::Invalid) } else { Ok(()) }
    }
}

/// Parses a number, or a wildcard: `*`, or the system's wildcard, written as -1 or as 4294967295.
fn number(text: &str) -> Result<Option<u32>, Error> {
    match text {
        "*" | "-1" => Ok(None),
        _ => {
            let number = decimal(text).ok_or(Error::Invalid)?;
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
