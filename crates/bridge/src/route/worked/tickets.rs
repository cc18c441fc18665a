//! Messages that are out, by random tickets. Pure state, without I/O.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

/// Limit of remembered workers that have disconnected.
const GONE: usize = 1024;

/// Identifies a message. It cannot be guessed.
pub type Ticket = [u8; 16];

/// Messages of workers that are not known one by one.
#[derive(Debug)]
pub struct Tickets<T> {
    /// Number of connected workers.
    workers: usize,
    /// Deadlines of the messages that disconnected workers may have.
    gone: VecDeque<Instant>,
    /// Messages that are out, and their deadlines.
    out: HashMap<Ticket, (T, Instant)>,
}

impl<T> Default for Tickets<T> {
    fn default() -> Self {
        Tickets { workers: 0, gone: VecDeque::new(), out: HashMap::new() }
    }
}

impl<T> Tickets<T> {
    /// Returns the number of messages that are out.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// True if there are no workers.
    pub fn has_no_workers(&self) -> bool {
        self.workers == 0
    }

    /// Counts a worker that has connected.
    pub fn add_worker(&mut self) {
        self.workers += 1;
    }

    /// Counts a worker that has disconnected. It may have a message until `until`.
    pub fn remove_worker(&mut self, until: Instant) {
        self.workers = self.workers.saturating_sub(1);
        if self.gone.len() < GONE {
            self.gone.push_back(until);
        }
    }

    /// True if a worker may be without a message.
    pub fn has_room(&self) -> bool {
        self.out.len() < self.workers + self.gone.len()
    }

    /// Records that a message is out until its deadline.
    pub fn give(&mut self, ticket: Ticket, message: T, until: Instant) {
        self.out.insert(ticket, (message, until));
    }

    /// Returns the message of an answer, or `None` for an unknown ticket: an answer of another run,
    /// or to a message whose time is over.
    pub fn take(&mut self, ticket: &[u8]) -> Option<T> {
        let ticket = Ticket::try_from(ticket).ok()?;
        self.out.remove(&ticket).map(|(message, _)| message)
    }

    /// Forgets the messages that JetStream redelivers. Returns their number.
    pub fn expire(&mut self, now: Instant) -> usize {
        while self.gone.front().is_some_and(|until| *until <= now) {
            self.gone.pop_front();
        }
        let before = self.out.len();
        self.out.retain(|_, (_, until)| *until > now);
        before - self.out.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use tautline_testkit::XorShift;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn ticket(random: &mut XorShift) -> Ticket {
        let mut ticket = Ticket::default();
        random.fill(&mut ticket);
        ticket
    }

    /// Hostile workers answer with tickets near known ones, with old ones, and with nonsense.
    fn guess(known: &[Ticket], random: &mut XorShift) -> Vec<u8> {
        let Some(known) = (!known.is_empty()).then(|| known[random.below(known.len())]) else {
            return random.bytes(16);
        };
        let number = u128::from_be_bytes(known);
        match random.below(5) {
            0 => number.wrapping_sub(1).to_be_bytes().to_vec(),
            1 => number.wrapping_add(1).to_be_bytes().to_vec(),
            2 => known[..random.below(16)].to_vec(),
            3 => [&known[..], b"x"].concat(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn random_workers_agree_with_a_model() {
        for seed in 0..100 {
            let mut random = XorShift::new(seed);
            let mut now = Instant::now();
            let mut tickets = Tickets::default();
            let (mut workers, mut gone) = (0_usize, Vec::new());
            let mut out: BTreeMap<Ticket, (u32, Instant)> = BTreeMap::new();
            let mut all: Vec<Ticket> = Vec::new();
            for number in 0..200_u32 {
                match random.below(8) {
                    0 => {
                        tickets.add_worker();
                        workers += 1;
                    }
                    1 => {
                        tickets.remove_worker(now + LIMIT);
                        workers = workers.saturating_sub(1);
                        gone.push(now + LIMIT);
                    }
                    2 | 3 if tickets.has_room() => {
                        let ticket = ticket(&mut random);
                        tickets.give(ticket, number, now + LIMIT);
                        out.insert(ticket, (number, now + LIMIT));
                        all.push(ticket);
                    }
                    4 if !all.is_empty() => {
                        // A worker answers, perhaps for the second time or too late.
                        let ticket = all[random.below(all.len())];
                        assert_eq!(tickets.take(&ticket), out.remove(&ticket).map(|(number, _)| number));
                    }
                    5 => {
                        let guess = guess(&all, &mut random);
                        assert_eq!(tickets.take(&guess), None, "seed {seed}: the guess {guess:x?}");
                    }
                    6 => {
                        now += Duration::from_millis(random.below(6_000) as u64);
                        gone.retain(|until| *until > now);
                        let before = out.len();
                        out.retain(|_, (_, until)| *until > now);
                        assert_eq!(tickets.expire(now), before - out.len(), "seed {seed}");
                    }
                    _ => {}
                }
                assert_eq!(tickets.len(), out.len(), "seed {seed}");
                assert_eq!(tickets.has_room(), out.len() < workers + gone.len(), "seed {seed}");
                assert_eq!(tickets.has_no_workers(), workers == 0, "seed {seed}");
            }
        }
    }

    #[test]
    fn disconnected_workers_take_bounded_memory() {
        let mut tickets = Tickets::<()>::default();
        for _ in 0..2 * GONE {
            tickets.add_worker();
            tickets.remove_worker(Instant::now() + LIMIT);
        }
        assert_eq!((tickets.gone.len(), tickets.workers), (GONE, 0));
    }
}
