//! Security mechanisms: the peers authenticate each other before the first message (RFC 37).
//!
//! A mechanism is one file with one [`MechanismInfo`] for each of its roles, plus one variant and
//! one line in [`MechanismConfig::entry`]. It starts when both greetings announce its name,
//! exchanges commands, and may ask for a verdict on the peer's credentials. At the end it returns
//! the peer's metadata and the stage between frames and the wire. It never sees the ERROR command,
//! which works the same way in all mechanisms.

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

/// The security mechanism of a session, with its keys or passwords.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum MechanismConfig {
    /// No encryption, and no authentication except by address (RFC 37, "The NULL Security
    /// Mechanism").
    #[default]
    Null,
    /// The end that sends a user name and a password, each cut at 255 bytes (RFC 24).
    PlainClient {
        /// The user name.
        username: Vec<u8>,
        /// The password.
        password: Secret<Vec<u8>>,
    },
    /// The end that has user names and passwords judged (RFC 24).
    PlainServer,
    /// The end that knows the key of the other end (RFC 26).
    CurveClient {
        /// Our public key.
        public: [u8; 32],
        /// Our secret key. Shared, because a copy could stay on a stack.
        secret: Arc<Secret<[u8; 32]>>,
        /// The public key of the server.
        server: [u8; 32],
        /// Source of random bytes.
        random: Random,
    },
    /// The end whose public key the other end knows (RFC 26).
    CurveServer {
        /// Keys of the server.
        keys: ServerKeys,
        /// Source of random bytes.
        random: Random,
    },
}

/// The row of a mechanism in one role.
pub(crate) struct MechanismInfo {
    /// The name in the greeting, at most 20 octets.
    pub name: &'static str,
    /// The as-server field of the greeting: zero for clients and for mechanisms without roles.
    pub as_server: bool,
    /// True if peers before 3.0, which know no mechanisms, are acceptable. Must be false for all
    /// mechanisms that protect: an attacker could simply ask for an older version.
    pub allows_older_peers: bool,
    /// Makes the state of one handshake.
    pub start: fn(&MechanismConfig) -> Box<dyn Mechanism>,
}

/// Result of a step of a handshake.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The handshake waits for the peer's next command.
    Pending,
    /// A handler has to judge these credentials. Next comes a call of `admit`, or the end of the
    /// connection.
    Judge(Credentials),
    /// The peer's metadata. The handshake is complete, and from now on both ends send only
    /// messages.
    Complete(Metadata),
}

/// One handshake in progress.
pub(crate) trait Mechanism: Send {
    /// Called once after both greetings. Appends the command frames that this end sends first.
    /// `metadata` is our encoded property list.
    fn begin(&mut self, metadata: Vec<u8>, out: &mut Vec<u8>) -> Result<Progress, ProtocolError>;

    /// Processes a command of the peer and appends the frames that answer it. Also called between
    /// [`Progress::Judge`] and [`admit`](Self::admit), because a peer may send at any time.
    fn receive(&mut self, name: &[u8], data: &[u8], out: &mut Vec<u8>) -> Result<Progress, ProtocolError>;

    /// Accepts the credentials returned last. Appends the frames that tell the peer.
    fn admit(&mut self, out: &mut Vec<u8>) -> Result<Progress, ProtocolError>;

    /// Returns the largest command body that makes sense now, if it is below the general limit.
    fn command_limit(&self) -> u64 {
        u64::MAX
    }

    /// True if the peer may end the handshake with ERROR. A server may; a client just disconnects.
    fn heeds_error(&self) -> bool {
        true
    }

    /// Returns the stage between plain frames and the wire, if there is one. Called after
    /// [`Progress::Complete`]. The stage refuses bodies of more than `max_msg_size` bytes.
    fn stage(&mut self, _max_msg_size: Option<u64>) -> Option<Box<dyn Stage>> {
        None
    }
}

impl MechanismConfig {
    pub(crate) fn entry(&self) -> &'static MechanismInfo {
        match self {
            Self::Null => &null::ENTRY,
            Self::PlainClient { .. } => &plain::CLIENT,
            Self::PlainServer => &plain::SERVER,
            Self::CurveClient { .. } => &curve::CLIENT,
            Self::CurveServer { .. } => &curve::SERVER,
        }
    }
}
