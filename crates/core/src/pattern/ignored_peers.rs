//! Ignored peers of a ROUTER: their routing id is in use by another peer.
//!
//! Their messages are dropped until the routing id is free. Any number of peers may want the same
//! id, so no operation here gets slower with their number, except for inproc peers, which must be
//! polled. `Peer::routing_id` holds the id that each peer wants.

use super::hash::SeededHash;
use crate::pipe::{Pipe, PipeId};
use std::collections::{BTreeMap, HashMap};

/// The pipes whose routing id is in use by another pipe.
#[derive(Debug, Default)]
pub(super) struct IgnoredPeers {
    /// The ignored pipes, ordered by the routing id that they want and by their arrival.
    by_name: BTreeMap<(Vec<u8>, u64), PipeId>,
    /// Arrival number of each pipe.
    since: HashMap<PipeId, u64, SeededHash>,
    /// Pipes that do not announce new messages.
    unannounced: Vec<PipeId>,
    /// Number of arrivals so far.
    count: u64,
}

impl IgnoredPeers {
    /// True if no pipe is ignored.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    /// True if this pipe is ignored.
    pub(super) fn contains(&self, id: PipeId) -> bool {
        self.since.contains_key(&id)
    }

    /// Adds a pipe. Its wanted id is `pipe.peer.routing_id`.
    pub(super) fn insert(&mut self, id: PipeId, pipe: &Pipe) {
        self.count += 1;
        self.since.insert(id, self.count);
        self.by_name.insert((pipe.peer.routing_id.clone(), self.count), id);
        if pipe.is_inproc() {
            self.unannounced.push(id);
        }
    }

    /// Removes a pipe. Returns true if it was ignored.
    pub(super) fn remove(&mut self, id: PipeId, pipe: &Pipe) -> bool {
        let Some(since) = self.since.remove(&id) else { return false };
        self.by_name.remove(&(pipe.peer.routing_id.clone(), since));
        self.unannounced.retain(|&other| other != id);
        true
    }

    /// The pipe that gets this routing id next: the first arrival, or the last.
    pub(super) fn successor(&self, name: &[u8], last: bool) -> Option<PipeId> {
        let mut heirs = self.by_name.range((name.to_vec(), 0)..=(name.to_vec(), u64::MAX));
        let heir = if last { heirs.next_back() } else { heirs.next() };
        heir.map(|(_, &id)| id)
    }

    /// Pipes that must be polled because they do not announce new messages.
    pub(super) fn unannounced(&self) -> &[PipeId] {
        &self.unannounced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::testbed::TestBed;
    use tautline_proto::SocketType;

    #[test]
    fn freed_id_goes_to_first_or_last_ignored_peer() {
        let mut bed = TestBed::new(SocketType::Router);
        let mut ignored = IgnoredPeers::default();
        let ids = [&b"A"[..], b"AA", b"A", b"B", b"A"].map(|name| {
            let id = bed.insert(b"", name);
            ignored.insert(id, bed.pipes.get(id).unwrap());
            id
        });
        let heirs =
            |ignored: &IgnoredPeers, name: &[u8]| [false, true].map(|last| ignored.successor(name, last));
        assert_eq!(heirs(&ignored, b"A"), [Some(ids[0]), Some(ids[4])]);
        assert_eq!(heirs(&ignored, b"AA"), [Some(ids[1]); 2]);
        assert_eq!(heirs(&ignored, b""), [None; 2]);
        assert_eq!(ignored.unannounced(), ids);
        for (id, rest) in [(ids[0], [ids[2], ids[4]]), (ids[4], [ids[2]; 2])] {
            assert!(ignored.remove(id, bed.pipes.get(id).unwrap()));
            assert!(!ignored.remove(id, bed.pipes.get(id).unwrap()) && !ignored.contains(id));
            assert_eq!(heirs(&ignored, b"A"), rest.map(Some));
        }
        for id in &ids[1..4] {
            assert!(!ignored.is_empty() && ignored.contains(*id));
            ignored.remove(*id, bed.pipes.get(*id).unwrap());
        }
        assert!(ignored.is_empty() && ignored.unannounced().is_empty());
        assert_eq!(heirs(&ignored, b"A"), [None; 2]);
    }
}
