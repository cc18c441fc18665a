//! Security mechanisms: who the peers are to each other before the first message (RFC 37).
//!
//! A mechanism is one file with one [`Entry`], plus one variant and one line in [`MechanismConfig::entry`]. It
//! starts when both greetings announce its name, exchanges commands, and ends by yielding the peer's
//! metadata. It never sees the ERROR command, which is the same for all.

mod null;

use crate::error::ProtocolError;
use crate::metadata::Metadata;

/// Which security mechanism a session uses, with what it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MechanismConfig {
    /// No authentication, no encryption (RFC 37, "The NULL Security Mechanism").
    #[default]
    Null,
}

/// The row of a mechanism.
pub(crate) struct Entry {
    /// The name in the greeting, at most 20 octets.
    pub name: &'static str,
    /// Whether one end is the server; if not, as-server of the greeting stays zero.
    pub has_roles: bool,
    /// Whether peers before 3.0, which know no mechanisms, are as good. Must be false for all that protect:
    /// an attacker could just ask for an older version.
    pub allows_older_peers: bool,
    /// Makes the state of one handshake.
    pub start: fn(&MechanismConfig) -> Box<dyn Mechanism>,
}

/// One handshake in progress.
pub(crate) trait Mechanism: Send {
    /// Called once when the greetings are through; appends the command frames to send unasked. `metadata` is
    /// our encoded property list.
    fn begin(&mut self, metadata: Vec<u8>, out: &mut Vec<u8>);

    /// Takes a command of the peer and appends the frames that answer it. Yields the peer's metadata when
    /// nothing more is expected from either end but messages.
    fn receive(
        &mut self,
        name: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Metadata>, ProtocolError>;
}

impl MechanismConfig {
    pub(crate) fn entry(&self) -> &'static Entry {
        match self {
            Self::Null => &null::ENTRY,
        }
    }
}
