//! Commands that show observed processes: `ps`, `show`, `top`, `doctor`, `tap`, `metrics`, `web`.
//!
//! `tautline-observe` reads all data from the counters files (`docs/reference/counters-file.md`),
//! so the processes do not notice it. If a file cannot be read, its fault is reported and the other
//! processes are shown.

pub mod doctor;
mod http;
mod json;
pub mod metrics;
mod otlp;
mod post;
pub mod ps;
pub mod show;
mod table;
pub mod tap;
pub mod top;
pub mod units;
pub mod web;

pub use tap::Filter;
pub use top::Order;

use std::collections::HashMap;

use tautline_observe::{ObservedProcess, ReadError, Reading};

use crate::failure::{Failure, Result};

/// Observed process and its data.
pub struct ProcessSnapshot {
    /// Location of its counters file.
    pub found: ObservedProcess,
    /// Contents of the file.
    pub reading: Reading,
    /// Number of sockets that were left out.
    pub left_out: usize,
}

/// Selection of the sockets of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketSelection {
    /// Sockets that the program uses for its messages.
    OfProgram,
    /// Also the sockets that carry monitor events.
    All,
}

impl SocketSelection {
    /// Returns the selection for `--all`.
    pub fn new(all: bool) -> SocketSelection {
        if all { SocketSelection::All } else { SocketSelection::OfProgram }
    }
}

/// Returns all observed processes of this user, and the faults of unreadable ones.
pub fn all(which: SocketSelection) -> (Vec<ProcessSnapshot>, Vec<(ObservedProcess, ReadError)>) {
    let (mut seen, mut faults) = (Vec::new(), Vec::new());
    for found in tautline_observe::processes() {
        match tautline_observe::read(&found.path) {
            Ok(mut reading) => {
                let left_out = if which == SocketSelection::All { 0 } else { reading.leave_out_monitors() };
                seen.push(ProcessSnapshot { found, reading, left_out });
            }
            // The process ended after it was found.
            Err(ReadError::Missing) => {}
            Err(fault) => faults.push((found, fault)),
        }
    }
    (seen, faults)
}

/// Returns the data of a process: one entry for each Tautline library in it.
pub fn snapshots_of(process: u32, which: SocketSelection) -> Result<Vec<ProcessSnapshot>> {
    let (mut seen, faults) = all(which);
    seen.retain(|seen| seen.found.pid == process);
    if !seen.is_empty() {
        return Ok(seen);
    }
    if let Some((found, fault)) = faults.into_iter().find(|(found, _)| found.pid == process) {
        return Err(Failure::failed(format!("{process}: {fault}"))
            .hint(format!("the file is {}", found.path.display())));
    }
    Err(Failure::usage(format!("the process {process} is not observed")).hint(HOW))
}

/// Advice on how to observe a process.
pub const HOW: &str = "start it with TAUT_OBSERVE=1 in its environment, or with taut run --observe";

/// Reports the unreadable files.
pub fn report_unreadable(faults: &[(ObservedProcess, ReadError)]) {
    for (found, fault) in faults {
        notice!("taut: {}: {fault}", found.path.display());
    }
}

/// Index of the peers and endpoints of a reading by socket, for loops over all sockets.
pub struct BySocket<'a> {
    peers: HashMap<u64, Vec<&'a tautline_observe::Peer>>,
    endpoints: HashMap<u64, Vec<&'a tautline_observe::Endpoint>>,
}

impl<'a> BySocket<'a> {
    /// Builds the index of a reading.
    pub fn new(reading: &'a Reading) -> Self {
        let mut by = BySocket { peers: HashMap::new(), endpoints: HashMap::new() };
        for peer in &reading.peers {
            by.peers.entry(peer.socket).or_default().push(peer);
        }
        for endpoint in &reading.endpoints {
            by.endpoints.entry(endpoint.socket).or_default().push(endpoint);
        }
        by
    }

    /// Returns the peers of a socket.
    pub fn peers(&self, socket: u64) -> &[&'a tautline_observe::Peer] {
        self.peers.get(&socket).map_or(&[], Vec::as_slice)
    }

    /// Returns the endpoints of a socket.
    pub fn endpoints(&self, socket: u64) -> &[&'a tautline_observe::Endpoint] {
        self.endpoints.get(&socket).map_or(&[], Vec::as_slice)
    }
}
