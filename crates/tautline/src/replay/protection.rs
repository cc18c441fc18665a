//! The sockets of the ring protect its messages at least as well as the live sockets do.

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::{Socket, option};

/// ZMQ_MECHANISM of peers without credentials.
const NULL: i32 = 0;

/// Compares a socket of the ring with the live socket beside it. `live_tls`: TLS protects the
/// messages of the live socket.
///
/// # Errors
/// [`Error::Invalid`] if the endpoint of the ring would be open to peers that the live socket
/// refuses.
pub(super) fn compare<K: Kind, J: Kind>(
    live: &mut Socket<K>,
    live_tls: bool,
    ring: &mut Socket<J>,
    endpoint: &str,
) -> Result<()> {
    // Their order in `zmq.h` is that of their strength.
    let (live_mechanism, mechanism) = (int(live, option::MECHANISM)?, int(ring, option::MECHANISM)?);
    let is_domain_gone = option::text(&mut live.inner, option::ZAP_DOMAIN)?
        != option::text(&mut ring.inner, option::ZAP_DOMAIN)?
        && int(ring, option::ZAP_ENFORCE_DOMAIN)? == 0
        && int(live, option::ZAP_ENFORCE_DOMAIN)? != 0;
    if mechanism < live_mechanism || is_domain_gone {
        return Err(Error::invalid(format!(
            "the ring at {endpoint} would be less protected than the live messages: \
             give it keys or a password with `with_ring`"
        )));
    }
    let is_safe =
        ["tls+tcp://", "wss://", "ipc://", "inproc://"].iter().any(|scheme| endpoint.starts_with(scheme));
    if live_tls && !is_safe && mechanism == NULL {
        return Err(Error::invalid(format!(
            "the ring at {endpoint} would be open, although TLS protects the live messages: \
             use tls+tcp:// or wss://"
        )));
    }
    Ok(())
}

/// Refuses a ring that binds as the client of its mechanism: it could check no peer, and would
/// tell its password to every peer that connects.
///
/// # Errors
/// [`Error::Invalid`].
pub(super) fn expect_server<K: Kind>(ring: &mut Socket<K>, endpoint: &str) -> Result<()> {
    let is_server = int(ring, option::CURVE_SERVER)? != 0 || int(ring, option::PLAIN_SERVER)? != 0;
    if int(ring, option::MECHANISM)? == NULL || is_server {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the ring at {endpoint} has the keys or the password of a client: make it a server with `with_ring`"
    )))
}

fn int<K: Kind>(socket: &mut Socket<K>, number: i32) -> Result<i32> {
    let mut value = [0; size_of::<i32>()];
    option::get(&mut socket.inner, number, &mut value)?;
    Ok(i32::from_ne_bytes(value))
}
