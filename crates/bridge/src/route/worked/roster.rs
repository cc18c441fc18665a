//! Workers that are known one by one, and the message of each. Pure state, without I/O.

use std::collections::{HashMap, VecDeque};

/// Workers that have asked and are connected.
#[derive(Debug)]
pub struct Roster<T> {
    /// Message of each worker, by routing id.
    workers: HashMap<Vec<u8>, Option<T>>,
    /// Workers that wait for a message, the longest waiting first.
    idle: VecDeque<Vec<u8>>,
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Roster { workers: HashMap::new(), idle: VecDeque::new() }
    }
}

impl<T> Roster<T> {
    /// Returns the number of messages that the workers have.
    pub fn holds(&self) -> usize {
        self.workers.values().flatten().count()
    }

    /// True if there are no workers.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Handles an answer or a first request. The worker waits from now on. Returns the answered
    /// message.
    pub fn request(&mut self, id: &[u8]) -> Option<T> {
        let answered = self.workers.entry(id.to_vec()).or_default().take();
        if !self.idle.iter().any(|idle| idle == id) {
            self.idle.push_back(id.to_vec());
        }
        answered
    }

    /// Removes a worker that has disconnected. Returns its message.
    pub fn remove(&mut self, id: &[u8]) -> Option<T> {
        let held = self.workers.remove(id)?;
        self.idle.retain(|idle| idle != id);
        held
    }

    /// True if a worker waits for a message.
    pub fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Takes the worker that has waited for the longest time.
    pub fn take_idle(&mut self) -> Option<Vec<u8>> {
        self.idle.pop_front()
    }

    /// Puts back a worker that got no message.
    pub fn put_back(&mut self, id: Vec<u8>) {
        self.idle.push_front(id);
    }

    /// Records that a worker has a message.
    pub fn give(&mut self, id: Vec<u8>, message: T) {
        self.workers.insert(id, Some(message));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tautline_testkit::XorShift;

    use super::*;

    /// Workers ask at any time, also twice, without a message, and while they have one. Each
    /// message is at one worker, and leaves it once.
    #[test]
    fn random_workers_agree_with_a_model() {
        for seed in 0..100 {
            let mut random = XorShift::new(seed);
            let mut roster = Roster::default();
            let mut held: BTreeMap<Vec<u8>, Option<u32>> = BTreeMap::new();
            let mut idle: Vec<Vec<u8>> = Vec::new();
            for number in 0..300_u32 {
                let id = vec![random.below(5) as u8];
                match random.below(4) {
                    0 => {
                        assert_eq!(
                            roster.request(&id),
                            held.insert(id.clone(), None).flatten(),
                            "seed {seed}"
                        );
                        if !idle.contains(&id) {
                            idle.push(id);
                        }
                    }
                    1 => {
                        assert_eq!(roster.remove(&id), held.remove(&id).flatten(), "seed {seed}");
                        idle.retain(|idle| *idle != id);
                    }
                    _ => {
                        assert_eq!(roster.has_idle(), !idle.is_empty());
                        let Some(worker) = roster.take_idle() else { continue };
                        assert_eq!(worker, idle.remove(0), "seed {seed}: the longest waiting worker");
                        assert_eq!(
                            held.get(&worker),
                            Some(&None),
                            "seed {seed}: a worker with a message waits"
                        );
                        match random.below(4) {
                            // The message is malformed.
                            0 => {
                                idle.insert(0, worker.clone());
                                roster.put_back(worker);
                            }
                            // The worker cannot be reached: its disconnection is reported soon.
                            1 => {}
                            _ => {
                                held.insert(worker.clone(), Some(number));
                                roster.give(worker, number);
                            }
                        }
                    }
                }
                assert_eq!(roster.holds(), held.values().flatten().count(), "seed {seed}");
                assert_eq!(roster.is_empty(), held.is_empty(), "seed {seed}");
            }
        }
    }
}
