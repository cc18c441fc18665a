//! Checks of a peer against the policy of the host.

use std::time::Duration;

use super::{Origin, Phase, USER_ID, Wire};
use crate::conn::{Connection, Loss};
use crate::driver::EventLoop;
use crate::driver::peer_source::PeerSource;
use crate::host::{AllowedTopics, ConnectedPeer, Gate, Proof, Refusal, Server, SessionLimit};
use crate::transport;
use tautline_io::errno;
use tautline_proto::zap::ZapReply;
use tautline_proto::{PeerCertificates, ProtocolError};
use tautline_queue::message::Metadata;
use tautline_queue::sync::{Arc, lock, try_lock};

/// Interval between two checks of the peers' permissions. If a key is revoked, its connection ends
/// within a second.
pub(in crate::driver) const CHECK: Duration = Duration::from_millis(400);

/// Reason in events about a peer whose permissions have changed.
const CHANGED: &str = "the policy has changed which topics it may use";

/// Returns the bytes of a connection that wait to be written. 0 while a thread writes them.
fn unsent_bytes(connection: &Connection) -> u64 {
    try_lock(&connection.pump).map_or(0, |mut pump| pump.unsent_bytes())
}

impl Wire {
    /// The source address of the peer.
    pub(in crate::driver) fn source(&self) -> PeerSource {
        PeerSource::of(&self.stream)
    }

    /// Checks if the policy admits the peer, by the metadata from the peer and from the
    /// authentication handler.
    pub(super) fn may_stay(&self, told: &Metadata) -> Result<(), Refusal> {
        let Some(gate) = self.origin.gate() else { return Ok(()) };
        gate.check_lists()?;
        let mut state = lock(&self.state);
        self.passes(&**gate, state.proof.as_deref_mut(), told)
    }

    /// Ends the connection if a changed policy no longer admits the peer or gives it other
    /// permissions. Also ends it if more bytes are queued for the peer than allowed.
    pub(in crate::driver) fn check(self: &Arc<Self>, turn: &mut EventLoop, gate: &dyn Gate) {
        let (passes, connection) = {
            let mut state = lock(&self.state);
            let Phase::Open(connection) = &state.phase else { return };
            let connection = connection.clone();
            let Some(peer) = state.peer.clone() else { return };
            (self.passes(gate, state.proof.as_deref_mut(), &peer), connection)
        };
        if let Err(Refusal(why)) = passes {
            return self.end_because(turn, Loss::Stream(errno::EACCES), &why);
        }
        if gate.most_unread().is_some_and(|most| unsent_bytes(&connection) > most) {
            return self.end_beyond(turn, "unread_bytes_per_peer");
        }
        self.check_topics(turn);
    }

    fn passes(&self, gate: &dyn Gate, proof: Option<&mut Proof>, told: &Metadata) -> Result<(), Refusal> {
        gate.check_proof(proof)?;
        gate.check_peer(ConnectedPeer(&self.stream), &known_user(told))
    }

    /// Ends the connection of a peer that exceeds this limit.
    pub(in crate::driver) fn end_beyond(self: &Arc<Self>, turn: &mut EventLoop, limit: &str) {
        let Some(gate) = self.origin.gate() else { return };
        let Refusal(why) = gate.refuse_over_limit(limit, &transport::peer_name(&self.stream));
        self.end_because(turn, Loss::Stream(errno::ENOBUFS), &why);
    }

    /// Ends the connection if the peer may now use other topics. The peer reconnects, subscribes
    /// again, and gets the topics that it may have.
    pub(super) fn check_topics(self: &Arc<Self>, turn: &mut EventLoop) {
        let (peer, known) = {
            let state = lock(&self.state);
            let Phase::Open(_) = &state.phase else { return };
            (state.peer.clone(), state.topics.clone())
        };
        let now = peer.and_then(|peer| topics(self, &peer));
        if now.as_ref() != known.as_deref() {
            return self.end_because(turn, Loss::Stream(errno::EACCES), CHANGED);
        }
        let timer = check_later(self, turn);
        lock(&self.state).check_timer = timer;
    }
}

/// Stores the certificates that a client has shown, if the policy may have to check them again.
pub(super) fn note_certificates(wire: &Wire, shown: Option<Box<PeerCertificates>>) {
    if let (Some(shown), Some(_)) = (shown, wire.origin.gate()) {
        lock(&wire.state).proof.get_or_insert_default().add_certificates(*shown);
    }
}

/// True if the handshake is not complete.
pub(in crate::driver) fn is_stranger(wire: &Wire) -> bool {
    matches!(&lock(&wire.state).phase, Phase::Handshake(_))
}

/// True if the handshake is not complete and the peer has not sent a byte of it.
pub(in crate::driver) fn is_silent(wire: &Wire) -> bool {
    matches!(&lock(&wire.state).phase, Phase::Handshake(handshake) if handshake.is_silent())
}

/// The user to whom the policy assigns the peer's key. A user id from the authentication handler
/// has priority.
pub(super) fn key_owner(wire: &Wire, verdict: Option<&ZapReply>) -> Option<Arc<str>> {
    let gate = wire.origin.gate().filter(|_| verdict.is_none_or(|verdict| verdict.user_id.is_empty()))?;
    let state = lock(&wire.state);
    let key = state.proof.as_deref().and_then(Proof::key)?;
    gate.owner(key).ok()?
}

/// The topics that the peer may use, if the policy limits them.
pub(super) fn topics(wire: &Wire, told: &Metadata) -> Option<AllowedTopics> {
    let admission = wire.site().admission()?;
    match &wire.origin {
        Origin::Accepted(acceptor, _) => {
            acceptor.gate()?.topics(ConnectedPeer(&wire.stream), &known_user(told))
        }
        Origin::Dialed(_) => {
            let options = wire.options();
            let shows_key = options.mechanism.encrypts() && !options.as_server;
            admission.topics_of_server(&Server {
                peer: ConnectedPeer(&wire.stream),
                endpoint: wire.endpoint.name(),
                socket_type: options.socket_type.name(),
                mechanism: options.mechanism.name(),
                key: shows_key.then_some(&options.curve_server_key),
            })
        }
    }
}

/// Sets a timer to check again which topics a peer may use that we connected to. Returns the timer.
pub(super) fn check_later(wire: &Arc<Wire>, turn: &mut EventLoop) -> u64 {
    let is_dialed = matches!(wire.origin, Origin::Dialed(_));
    let may_change =
        is_dialed && wire.site().admission().is_some_and(|admission| admission.may_change_topics());
    if may_change { turn.set_timer(CHECK, wire) } else { 0 }
}

/// The limit that has most likely ended a session.
pub(super) fn limit_behind(why: Loss) -> Option<SessionLimit> {
    match why {
        Loss::Protocol(ProtocolError::TooLarge { .. }) => Some(SessionLimit::MessageBytes),
        Loss::Stream(errno::ENOBUFS) => Some(SessionLimit::SubscriptionBytes),
        _ => None,
    }
}

fn known_user(told: &Metadata) -> String {
    told.get(USER_ID).map(|user| user.to_string_lossy().into_owned()).unwrap_or_default()
}
