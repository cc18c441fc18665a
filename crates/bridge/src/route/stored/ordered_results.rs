//! Answers of each peer, in the order of its messages.

use std::collections::{HashMap, VecDeque};

/// Outcomes that wait for earlier messages of the same peer.
#[derive(Debug)]
pub struct OrderedResults<T> {
    /// In the order of their tickets. `None` if the message is still in flight.
    lanes: HashMap<Vec<u8>, VecDeque<(u64, Option<T>)>>,
    next: u64,
    /// Number of outcomes that wait.
    waiting: usize,
}

impl<T> Default for OrderedResults<T> {
    fn default() -> Self {
        OrderedResults { lanes: HashMap::new(), next: 0, waiting: 0 }
    }
}

impl<T> OrderedResults<T> {
    /// Returns the ticket of the next message of a peer.
    pub fn enter(&mut self, peer: &[u8]) -> u64 {
        let ticket = self.next;
        self.next += 1;
        self.lanes.entry(peer.to_vec()).or_default().push_back((ticket, None));
        ticket
    }

    /// Records the outcome of the message with this ticket. Returns all outcomes that no
    /// longer wait.
    pub fn complete(&mut self, peer: &[u8], ticket: u64, outcome: T) -> Vec<T> {
        let Some(lane) = self.lanes.get_mut(peer) else { return Vec::new() };
        // The tickets are sorted.
        if let Ok(at) = lane.binary_search_by_key(&ticket, |(ticket, _)| *ticket) {
            lane[at].1 = Some(outcome);
            self.waiting += 1;
        }
        let mut ready = Vec::new();
        while let Some((_, Some(_))) = lane.front() {
            ready.extend(lane.pop_front().and_then(|(_, outcome)| outcome));
        }
        if lane.is_empty() {
            self.lanes.remove(peer);
        }
        self.waiting -= ready.len();
        ready
    }

    /// Returns the number of outcomes that wait for earlier messages.
    pub fn len(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use tautline_testkit::XorShift;

    use super::*;

    #[test]
    fn peers_wait_for_their_own_messages_only() {
        let mut lanes = OrderedResults::default();
        let [a1, b1, a2, b2, a3] = [b"a", b"b", b"a", b"b", b"a"].map(|peer| lanes.enter(peer));
        assert!(lanes.complete(b"a", a2, "a2").is_empty());
        assert_eq!(lanes.complete(b"b", b1, "b1"), ["b1"]);
        assert_eq!(lanes.complete(b"b", b2, "b2"), ["b2"]);
        assert!(lanes.complete(b"a", a3, "a3").is_empty());
        assert_eq!(lanes.len(), 2);
        assert_eq!(lanes.complete(b"a", a1, "a1"), ["a1", "a2", "a3"]);
        assert_eq!((lanes.len(), lanes.lanes.len()), (0, 0));
    }

    /// Outcomes of random messages come back once, and for each peer in the order of its messages.
    #[test]
    fn random_outcomes_agree_with_a_model() {
        for seed in 0..100 {
            let mut random = XorShift::new(seed);
            let mut lanes = OrderedResults::default();
            // The messages of each peer whose outcomes have not come back, and if they are known.
            let mut model: [Vec<(u64, bool)>; 4] = Default::default();
            for _ in 0..300 {
                let peer = random.below(4);
                let id = [peer as u8];
                if random.one_in(2) {
                    model[peer].push((lanes.enter(&id), false));
                    continue;
                }
                let flying: Vec<usize> = (0..model[peer].len()).filter(|at| !model[peer][*at].1).collect();
                if flying.is_empty() {
                    assert!(lanes.complete(&id, u64::MAX, 0).is_empty(), "an unknown ticket");
                    continue;
                }
                let at = flying[random.below(flying.len())];
                let ticket = model[peer][at].0;
                model[peer][at].1 = true;
                let ready = model[peer].iter().take_while(|(_, is_known)| *is_known).count();
                let expected: Vec<u64> = model[peer].drain(..ready).map(|(ticket, _)| ticket).collect();
                assert_eq!(lanes.complete(&id, ticket, ticket), expected, "seed {seed}");
                let waiting = model.iter().flatten().filter(|(_, is_known)| *is_known).count();
                assert_eq!(lanes.len(), waiting, "seed {seed}");
                let peers = model.iter().filter(|lane| !lane.is_empty()).count();
                assert_eq!(lanes.lanes.len(), peers, "seed {seed}: memory for peers without messages");
            }
        }
    }
}
