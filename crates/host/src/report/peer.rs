//! A peer in a report: its description, its counters, and how they change with time.

use tautline_core::host::{PeerCounts, PeerProbe, PeerReport, PeerState as State};
use tautline_observe::{Peer, PeerState};

/// A queue that has not reached a new maximum for this time, in microseconds, does not grow.
const STEADY: u64 = 5_000_000;

/// A peer, and the access to its counters.
pub(super) struct PeerWatch {
    pub(super) peer: Peer,
    pub(super) probe: PeerProbe,
    /// Growth of the send queue and of the receive queue.
    growth: [Growth; 2],
    /// Messages that the program has taken.
    taken: u64,
    /// Requests that will never get a reply.
    unanswered: u64,
    /// Parts of multipart messages that ZMQ_CONFLATE has split.
    pub(super) split_parts: u64,
}

/// Growth of a queue, as seen by the looks.
#[derive(Debug, Default)]
struct Growth {
    /// Time and length at the start of the growth.
    since: u64,
    from: u64,
    /// Time and length of the last maximum.
    peaked: u64,
    peak: u64,
}

impl Growth {
    /// Notes the length of the queue. Returns the start of its growth and the length then; zeros if
    /// it does not grow.
    fn update(&mut self, length: u64, now: u64) -> (u64, u64) {
        if length > self.peak && length >= self.from && self.since > 0 {
            (self.peaked, self.peak) = (now, length);
        } else if self.since == 0
            || length < self.from
            || length == self.from && self.peak > length
            || now.saturating_sub(self.peaked) > STEADY
        {
            *self = Growth { since: now, from: length, peaked: now, peak: length };
        }
        if self.peak > self.from { (self.since, self.from) } else { (0, 0) }
    }
}

/// Measures how long work waits. `waits`: work waits now. `progress`: some of it was done since the
/// last look.
fn measure(since: &mut u64, longest: &mut u64, waits: bool, progress: bool, now: u64) {
    if *since > 0 && (progress || !waits) {
        *longest = (*longest).max(now.saturating_sub(*since));
        *since = 0;
    }
    if waits && *since == 0 {
        *since = now;
    }
}

impl PeerWatch {
    pub(super) fn new(id: u64, peer: PeerReport, probe: PeerProbe) -> Self {
        let mut known = PeerWatch {
            peer: Peer::default(),
            probe,
            growth: Default::default(),
            taken: 0,
            unanswered: 0,
            split_parts: 0,
        };
        (known.peer.id, known.peer.connected_here) = (id, peer.connected_here);
        known.describe(peer);
        known
    }

    /// Returns the same peer with another id, after the owner has noticed it.
    pub(super) fn renewed(mut self, id: u64, peer: PeerReport, probe: PeerProbe) -> Self {
        (self.peer.id, self.probe) = (id, probe);
        self.describe(peer);
        self
    }

    /// Copies everything but the counters from `peer`.
    pub(super) fn describe(&mut self, peer: PeerReport) {
        let known = &mut self.peer;
        known.state = match peer.state {
            State::Connected => PeerState::Connected,
            State::Gone => PeerState::Gone,
            _ => PeerState::Connecting,
        };
        known.since = peer.since.max(known.since);
        known.reconnects = peer.reconnects.max(known.reconnects);
        (known.limit_in, known.limit_out) = (peer.limit_in, peer.limit_out);
        (known.address, known.local) = (peer.address, peer.local);
        if !peer.endpoint.is_empty() {
            known.endpoint = peer.endpoint;
        }
        known.mechanism = peer.mechanism;
        (known.host, known.user_id, known.routing_id) = (peer.host, peer.user_id, peer.routing_id);
        if let Some(socket_type) = peer.socket_type {
            socket_type.name().clone_into(&mut known.socket_type);
        }
    }

    /// Reads the counters. `now` is 0 for a last look. The caller must drop them when no lock is
    /// held.
    pub(super) fn look(&mut self, now: u64) -> PeerCounts {
        let counts = self.probe.counts();
        let (out, incoming) = (counts.outgoing, counts.incoming);
        let peer = &mut self.peer;
        if let Some(connection) = &counts.connection {
            peer.shared_memory = connection.shares_memory;
            peer.round_trip_us = connection.round_trip_us;
            if matches!(peer.state, PeerState::Connecting | PeerState::Connected) {
                peer.state = if connection.is_linked { PeerState::Connected } else { PeerState::Connecting };
            }
        }
        // A counter may be lower for a moment while the connection changes its queue.
        if out.messages > peer.messages_out && out.messages < 1 << 63 {
            (peer.messages_out, peer.last_out) = (out.messages, now);
            peer.bytes_out = peer.bytes_out.max(out.bytes);
        }
        if incoming.messages > peer.messages_in {
            (peer.messages_in, peer.bytes_in, peer.last_in) = (incoming.messages, incoming.bytes, now);
        }
        (peer.queued_out, peer.queued_out_bytes) = (out.queued, out.queued_bytes);
        (peer.queued_in, peer.queued_in_bytes) = (incoming.queued, incoming.queued_bytes);
        self.split_parts = counts.split_parts;
        let [outgoing, arriving] = &mut self.growth;
        (peer.growing_since, peer.growing_from) = outgoing.update(peer.queued_out, now);
        (peer.growing_in_since, peer.growing_in_from) = arriving.update(peer.queued_in, now);
        let taken = peer.messages_in.saturating_sub(peer.queued_in);
        let progress = std::mem::replace(&mut self.taken, taken) != taken;
        measure(&mut peer.idle_since, &mut peer.longest_idle_us, peer.queued_in > 0, progress, now);
        (peer.dropped, peer.full) = (out.dropped, out.full);
        if out.limit > 0 {
            peer.limit_out = out.limit;
        }
        let is_full = peer.limit_out > 0 && peer.queued_out > peer.limit_out - (peer.limit_out / 20).max(1);
        match (is_full, peer.full_since) {
            (true, 0) => peer.full_since = now,
            (false, since) if since > 0 => {
                peer.full_us += now.saturating_sub(since);
                peer.full_since = 0;
            }
            _ => {}
        }
        let is_paused = counts.connection.as_ref().is_some_and(|connection| connection.is_paused);
        match (is_paused, peer.full_in_since) {
            (true, 0) => peer.full_in_since = now,
            (false, _) => peer.full_in_since = 0,
            _ => {}
        }
        counts
    }

    /// Returns the number of messages that wait for a peer that has ended for good, by its counts.
    /// The messages of an inproc peer do not count: it may still receive them.
    pub(super) fn unsent(&self, counts: &PeerCounts) -> u64 {
        if self.probe.is_wire() && counts.connection.is_none() { self.peer.queued_out } else { 0 }
    }

    /// Measures how long the program of a REP takes for a reply. `before` is the number of replies
    /// at the last look, and `discarded` is true if the socket has discarded requests since then.
    pub(super) fn measure_replies(&mut self, before: u64, discarded: bool, now: u64) {
        let peer = &mut self.peer;
        let open = peer.messages_in.saturating_sub(peer.messages_out);
        self.unanswered = if discarded { open } else { self.unanswered.min(open) };
        let waits = open > self.unanswered;
        let replied = peer.messages_out != before;
        measure(&mut peer.reply_since, &mut peer.longest_reply_us, waits, replied, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_grows_while_it_reaches_new_maxima() {
        let mut growth = Growth::default();
        assert_eq!(growth.update(0, 100), (0, 0));
        assert_eq!(growth.update(5, 200), (100, 0));
        assert_eq!(growth.update(3, 300), (100, 0), "above its start");
        assert_eq!(growth.update(9, 400), (100, 0));
        assert_eq!(growth.update(9, 400 + STEADY), (100, 0));
        assert_eq!(growth.update(9, 401 + STEADY), (0, 0), "no new maximum");
        assert_eq!(growth.update(10, 500 + STEADY), (401 + STEADY, 9));
        assert_eq!(growth.update(9, 600 + STEADY), (0, 0), "back at its start");
        assert_eq!(growth.update(11, 700 + STEADY), (600 + STEADY, 9));
        assert_eq!(growth.update(2, 800 + STEADY), (0, 0), "below its start");
    }

    #[test]
    fn wait_ends_with_progress() {
        let (mut since, mut longest) = (0, 0);
        let mut look = |waits, progress, now| {
            measure(&mut since, &mut longest, waits, progress, now);
            (since, longest)
        };
        assert_eq!(look(false, false, 10), (0, 0));
        assert_eq!(look(true, false, 20), (20, 0));
        assert_eq!(look(true, false, 90), (20, 0));
        assert_eq!(look(true, true, 100), (100, 80), "the next message waits");
        assert_eq!(look(false, true, 110), (0, 80));
    }
}
