//! A peer that came to us, and the policy of the host.

use super::{USER_ID, Wire};
use crate::conn::Loss;
use crate::driver::Turn;
use crate::message::Metadata;
use crate::policy::{Gate, Proof};
use crate::sync::{Arc, lock};
use tautline_io::errno;
use tautline_proto::Shown;

impl Wire {
    /// Whether the policy lets the peer be here, by what it and the authentication handler have
    /// told.
    pub(super) fn may_stay(&self, told: &Metadata) -> bool {
        let Some(gate) = self.origin.gate() else { return true };
        let mut state = lock(&self.state);
        self.passes(gate, state.proof.as_deref_mut(), told)
    }

    /// Keeps the certificates that a client has shown, if it may have to be judged by them again.
    pub(super) fn note_certificates(&self, shown: Option<Box<Shown>>) {
        if let (Some(shown), Some(_)) = (shown, self.origin.gate()) {
            lock(&self.state).proof.get_or_insert_default().add_certificates(*shown);
        }
    }

    /// Ends the connection if the policy has changed and the peer may no longer be here.
    pub(in crate::driver) fn check(self: &Arc<Self>, turn: &mut Turn, gate: &Gate) {
        let passes = {
            let mut state = lock(&self.state);
            let peer = state.peer.clone();
            peer.is_none_or(|peer| self.passes(gate, state.proof.as_deref_mut(), &peer))
        };
        if !passes {
            self.end(turn, Loss::Stream(errno::EACCES));
        }
    }

    fn passes(&self, gate: &Gate, proof: Option<&mut Proof>, told: &Metadata) -> bool {
        let user = told.get(USER_ID).map(|user| user.to_string_lossy());
        gate.trusts(proof) && gate.admits(&self.stream, &user.unwrap_or_default()).is_ok()
    }
}
