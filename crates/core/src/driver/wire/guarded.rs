//! A peer that came to us, and the policy of the host.

use super::{USER_ID, Wire};
use crate::conn::Loss;
use crate::driver::Turn;
use crate::message::Metadata;
use crate::policy::Gate;
use crate::sync::{Arc, lock};
use tautline_io::errno;

impl Wire {
    /// Whether the policy lets the peer be here, by what it and the authentication handler have
    /// told.
    pub(super) fn may_stay(&self, told: &Metadata) -> bool {
        let Some(gate) = self.origin.gate() else { return true };
        let key = lock(&self.state).key.clone();
        self.passes(gate, key.as_deref(), told)
    }

    /// Ends the connection if the policy has changed and the peer may no longer be here.
    pub(in crate::driver) fn check(self: &Arc<Self>, turn: &mut Turn, gate: &Gate) {
        let (key, peer) = {
            let state = lock(&self.state);
            (state.key.clone(), state.peer.clone())
        };
        if let Some(peer) = peer
            && !self.passes(gate, key.as_deref(), &peer)
        {
            self.end(turn, Loss::Stream(errno::EACCES));
        }
    }

    fn passes(&self, gate: &Gate, key: Option<&[u8]>, told: &Metadata) -> bool {
        let user = told.get(USER_ID).map(|user| user.to_string_lossy());
        key.is_none_or(|key| gate.trusts(key)) && gate.admits(&self.stream, &user.unwrap_or_default()).is_ok()
    }
}
