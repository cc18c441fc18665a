//! Checks that the ring's sockets protect messages at least as well as the live sockets.

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::{Socket, option};

/// Value of ZMQ_MECHANISM for peers without credentials.
const NULL: i32 = 0;

/// Compares a ring socket with the live socket beside it. `live_tls`: the live socket is protected
/// by TLS.
///
/// # Errors
/// Returns [`Error::Invalid`] if the ring's endpoint would accept peers that the live socket
/// refuses.
pub(super) fn compare<K: Kind, J: Kind>(
    live: &mut Socket<K>,
    live_tls: bool,
    ring: &mut Socket<J>,
    endpoint: &str,
) -> Result<()> {
    // `zmq.h` orders the mechanisms by strength.
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

/// Refuses a ring that binds with a client mechanism. It could not check peers, and would send its
/// password to every peer that connects.
///
/// # Errors
/// Returns [`Error::Invalid`].
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
