//! Security mechanisms: what the peers are to each other before the first message (RFC 37).
//!
//! A mechanism is one file with one [`Entry`] for each of its roles, plus one variant and one line
//! in [`MechanismConfig::entry`]. It starts when both greetings announce its name, exchanges
//! commands, may ask for a judgement of the peer's credentials on the way, and ends by yielding the
//! peer's metadata and what lies between frames and the wire from then on. It never sees the ERROR
//! command, which is the same for all.

mod curve;
mod null;
mod plain;

use std::sync::Arc;

use crate::error::ProtocolError;
use crate::metadata::Metadata;
use crate::secret::Secret;
use crate::stage::Stage;
use crate::zap::Credentials;
pub use curve::{Random, ServerKeys, public_key};

/// Which security mechanism a session uses, with what it needs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum MechanismConfig {
    /// No authentication but what an address may prove, no encryption (RFC 37, "The NULL Security
    /// Mechanism").
    #[default]
    Null,
    /// The end that shows a user name and a password, each cut at 255 bytes (RFC 24).
    PlainClient {
        /// The user name.
        username: Vec<u8>,
        /// The password.
        password: Secret<Vec<u8>>,
    },
    /// The end that has them judged (RFC 24).
    PlainServer,
    /// The end that knows the other's key (RFC 26).
    CurveClient {
        /// Our public key.
        public: [u8; 32],
        /// Our secret key. Shared, because a copy could stay on a stack.
        secret: Arc<Secret<[u8; 32]>>,
        /// The public key of the server.
        server: [u8; 32],
        /// Where random bytes come from.
        random: Random,
    },
    /// The end whose key is known (RFC 26).
    CurveServer {
        /// Its keys.
        keys: ServerKeys,
        /// Where random bytes come from.
        random: Random,
    },
}

/// The row of a mechanism in one role.
pub(crate) struct Entry {
    /// The name in the greeting, at most 20 octets.
    pub name: &'static str,
    /// As-server of the greeting: zero for clients and for mechanisms without roles.
    pub as_server: bool,
    /// Whether peers before 3.0, which know no mechanisms, are as good. Must be false for all that
    /// protect: an attacker could just ask for an older version.
    pub allows_older_peers: bool,
    /// Makes the state of one handshake.
    pub start: fn(&MechanismConfig) -> Box<dyn Mechanism>,
}

/// What a step of a handshake has come to.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The peer's next command is awaited.
    Pending,
    /// A handler has to judge these; `admit` follows, or the end.
    Judge(Credentials),
    /// The peer's metadata: nothing more is expected from either end but messages.
    Complete(Metadata),
}

/// One handshake in progress.
pub(crate) trait Mechanism: Send {
    /// Called once when the greetings are through; appends the command frames to send unasked.
    /// `metadata` is our encoded property list.
    fn begin(&mut self, metadata: Vec<u8>, out: &mut Vec<u8>) -> Result<Progress, ProtocolError>;

    /// Takes a command of the peer and appends the frames that answer it. Also called between
    /// [`Progress::Judge`] and [`admit`](Self::admit), because a peer may speak at any time.
    fn receive(&mut self, name: &[u8], data: &[u8], out: &mut Vec<u8>) -> Result<Progress, ProtocolError>;

    /// The credentials last yielded are good. Appends the frames that say so.
    fn admit(&mut self, out: &mut Vec<u8>) -> Result<Progress, ProtocolError>;

    /// The largest command body that makes sense now, if that is less than for all.
    fn command_limit(&self) -> u64 {
        u64::MAX
    }

    /// Whether the peer may end the handshake with ERROR: a server may, a client just leaves.
    fn heeds_error(&self) -> bool {
        true
    }

    /// After [`Progress::Complete`]: what lies between plain frames and the wire, if anything.
    /// Bodies of more than `max_msg_size` are not accepted.
    fn stage(&mut self, _max_msg_size: Option<u64>) -> Option<Box<dyn Stage>> {
        None
    }
}

impl MechanismConfig {
    pub(crate) fn entry(&self) -> &'static Entry {
        match self {
            Self::Null => &null::ENTRY,
            Self::PlainClient { .. } => &plain::CLIENT,
            Self::PlainServer => &plain::SERVER,
            Self::CurveClient { .. } => &curve::CLIENT,
            Self::CurveServer { .. } => &curve::SERVER,
        }
    }
}
