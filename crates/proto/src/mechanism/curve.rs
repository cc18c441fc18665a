//! The CURVE mechanism: both ends prove their keys, and all later frames are sealed (RFC 26).
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
//! A library (`nacl`) makes NaCl's boxes. Our code decides which bytes go into which box, and
//! ensures that no nonce is ever used twice: short nonces count up from 1 in each direction, long
//! nonces are random. `client` and `server` are the handshake, `traffic` is the stage for all later
//! frames.

mod client;
mod nacl;
mod server;
#[cfg(test)]
mod tests;
mod traffic;

use std::sync::Arc;

use super::{Mechanism, MechanismConfig, MechanismInfo};
use crate::secret::Secret;

pub use nacl::public_key;

pub(super) static CLIENT: MechanismInfo =
    MechanismInfo { name: "CURVE", as_server: false, allows_older_peers: false, start: client::start };
pub(super) static SERVER: MechanismInfo =
    MechanismInfo { name: "CURVE", as_server: true, allows_older_peers: false, start: server::start };

/// Fills the slice with random bytes fit for keys. Returns false if there are no random bytes.
pub type Random = fn(&mut [u8]) -> bool;

/// The long-term keys of a server. They are made once and shared by all connections, because
/// deriving the public key costs as much as a quarter of a handshake.
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

// Layout of the handshake commands: the octets of the name, then these offsets into the data after
// the name.
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

/// Splits off the first `N` bytes. The callers have already checked the length.
fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(head)
}

/// Handles a configuration of another mechanism. Never reached; if it were, it would refuse every
/// peer.
fn unfit() -> Box<dyn Mechanism> {
    (super::plain::SERVER.start)(&MechanismConfig::PlainServer)
}
