//! Readings of all processes, and the rates between two readings.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use tautline_observe::{ObservedProcess, Peer, Reading, Socket};

use super::rows::SocketKey;
use crate::inspect::SocketSelection;
use crate::inspect::units::now;

/// Rates per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    pub sent: f64,
    pub received: f64,
    /// Messages dropped, unroutable, or lost with a peer.
    pub lost: f64,
}

/// Process with its rates.
pub struct Tracked {
    pub found: ObservedProcess,
    pub reading: Reading,
    /// Rates by socket.
    pub rates: HashMap<u64, Rates>,
    /// Rates by peer, for the socket whose peers are shown.
    pub peer_rates: HashMap<u64, Rates>,
}

/// All processes at the last reading.
#[derive(Default)]
pub struct Sample {
    pub processes: Vec<Tracked>,
    /// Descriptions of unreadable files.
    pub faults: Vec<String>,
}

impl Sample {
    /// Takes a new reading. `into` is the socket whose peers are shown.
    pub fn refresh(&mut self, which: SocketSelection, into: Option<&SocketKey>) {
        let mut before: HashMap<PathBuf, Tracked> =
            self.processes.drain(..).map(|process| (process.found.path.clone(), process)).collect();
        let (seen, faults) = crate::inspect::all(which);
        self.faults = faults.iter().map(|(found, fault)| format!("{}: {fault}", found.pid)).collect();
        self.processes = seen
            .into_iter()
            .map(|seen| {
                let mut process = Tracked {
                    found: seen.found,
                    reading: seen.reading,
                    rates: HashMap::new(),
                    peer_rates: HashMap::new(),
                };
                if let Some(before) = before.remove(&process.found.path) {
                    process.compare(before, into);
                }
                process
            })
            .collect();
    }

    /// Returns a process of the last reading.
    pub fn process(&self, key: &SocketKey) -> Option<&Tracked> {
        self.processes.iter().find(|process| process.found.path == key.path)
    }
}

/// Age of the counters of a running process that needs attention.
const OLD: Duration = Duration::from_secs(3);

impl Tracked {
    /// Returns the age of the counters.
    pub fn age(&self) -> Duration {
        Duration::from_micros(now().saturating_sub(self.reading.process.written))
    }

    /// True if a running process has not updated its counters for too long: it is stopped, or gets
    /// no processor.
    pub fn is_old(&self) -> bool {
        let interval = Duration::from_micros(self.reading.process.interval_us);
        self.found.is_running && self.age() > OLD.max(4 * interval)
    }

    fn compare(&mut self, before: Tracked, into: Option<&SocketKey>) {
        let (now, then) = (&self.reading.process, &before.reading.process);
        if now.start_ticks != then.start_ticks || now.pid != then.pid {
            return;
        }
        if now.written <= then.written {
            // The process has not updated its counters, so the old rates still hold unless it has
            // ended.
            if self.found.is_running {
                (self.rates, self.peer_rates) = (before.rates, before.peer_rates);
            }
            return;
        }
        let seconds = (now.written - then.written) as f64 / 1e6;
        let sockets: HashMap<u64, &Socket> =
            before.reading.sockets.iter().map(|socket| (socket.id, socket)).collect();
        let lost = |socket: &Socket| socket.dropped + socket.unroutable + socket.lost;
        self.rates = self
            .reading
            .sockets
            .iter()
            .filter_map(|socket| {
                let then = sockets.get(&socket.id)?;
                let rates = Rates {
                    sent: rate(socket.messages_out, then.messages_out, seconds),
                    received: rate(socket.messages_in, then.messages_in, seconds),
                    lost: rate(lost(socket), lost(then), seconds),
                };
                Some((socket.id, rates))
            })
            .collect();
        let Some(into) = into.filter(|into| into.path == self.found.path) else { return };
        let peers: HashMap<u64, &Peer> =
            before.reading.peers_of(into.socket).map(|peer| (peer.id, peer)).collect();
        self.peer_rates = self
            .reading
            .peers_of(into.socket)
            .filter_map(|peer| {
                let then = peers.get(&peer.id)?;
                let rates = Rates {
                    sent: rate(peer.messages_out, then.messages_out, seconds),
                    received: rate(peer.messages_in, then.messages_in, seconds),
                    lost: rate(peer.dropped, then.dropped, seconds),
                };
                Some((peer.id, rates))
            })
            .collect();
    }
}

/// Returns the rate of a counter. A counter that decreased belongs to another object and gives 0.
fn rate(now: u64, then: u64, seconds: f64) -> f64 {
    now.saturating_sub(then) as f64 / seconds
}
