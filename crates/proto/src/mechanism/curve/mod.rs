//! The CURVE mechanism: both ends prove their keys, and everything after is sealed (RFC 26).
//!
//! ```text
//! client (C, C')                                     server (S, S')
//!   HELLO     C', Box[zeros](C'->S) ───────────────▶
//!             ◀─────────────── WELCOME   Box[S', cookie](S->C')
//!   INITIATE  cookie, Box[C, Vouch, metadata](C'->S') ▶     C is judged
//!             ◀─────────────── READY     Box[metadata](S'->C')
//!   MESSAGE   Box[flags, body](C'->S')  ◀───────────▶       both ways, from then on
//! ```
//!
//! C and S are the long-term keys, C' and S' live for one connection. Vouch is `Box[C',S](C->S')`.
//! Boxes are NaCl's, from a library (`nacl`); what is ours is which bytes go into which box, and
//! that no nonce is ever used twice: short nonces count up from 1 in each direction, long ones are
//! random. `client` and `server` are the handshake, `traffic` is the stage for everything after.

mod client;
mod nacl;
mod server;
#[cfg(test)]
mod tests;
mod traffic;

use std::sync::Arc;

use super::{Entry, Mechanism, MechanismConfig};
use crate::secret::Secret;

pub use nacl::public_key;

pub(super) static CLIENT: Entry =
    Entry { name: "CURVE", as_server: false, allows_older_peers: false, start: client::start };
pub(super) static SERVER: Entry =
    Entry { name: "CURVE", as_server: true, allows_older_peers: false, start: server::start };

/// Fills the slice with random bytes fit for keys; false if there are none.
pub type Random = fn(&mut [u8]) -> bool;

/// The long-term keys of a server. Made once, not for each connection: the public key costs as much
/// as a quarter of a handshake.
#[derive(Clone, Debug)]
pub struct ServerKeys {
    public: [u8; 32],
    secret: Arc<Secret<[u8; 32]>>,
}

impl ServerKeys {
    /// Derives the public key. The secret key is shared, because a copy could stay on a stack.
    pub fn new(secret: Arc<Secret<[u8; 32]>>) -> Self {
        Self { public: public_key(&secret), secret }
    }
}

// What the handshake commands are made of: octets of name, then these offsets into the data behind
// it.
/// HELLO: version, padding, C', short nonce, box of 64 zeros.
const HELLO_LEN: usize = 2 + 72 + 32 + 8 + 80;
/// WELCOME: long nonce, box of S' and cookie.
const WELCOME_LEN: usize = 16 + 144;
/// A cookie: long nonce, box of C' and s'.
const COOKIE_LEN: usize = 96;
/// A vouch: long nonce, box of C' and S.
const VOUCH_LEN: usize = 96;
/// INITIATE without metadata: cookie, short nonce, box of C and vouch.
const INITIATE_LEN: usize = COOKIE_LEN + 8 + 16 + 32 + VOUCH_LEN;
/// READY without metadata: short nonce, box.
const READY_LEN: usize = 8 + 16;

/// Splits off the first `N` bytes; the callers have checked the length.
fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(head)
}

/// Starts what the configuration does not fit: never reached, and refuses everything if it were.
fn unfit() -> Box<dyn Mechanism> {
    (super::plain::SERVER.start)(&MechanismConfig::PlainServer)
}
