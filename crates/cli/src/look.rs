//! What observed processes tell of themselves: `ps`, `show`, `top`, `doctor`, `tap`, `metrics`,
//! `web`.
//!
//! `tautline-observe` reads everything from the files of counters
//! (`docs/reference/counters-file.md`); the processes do not notice it. If a file
//! cannot be read, the fault is reported, and the others are shown.

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
pub mod web;
mod words;

pub use tap::Filter;
pub use top::Order;

use std::collections::HashMap;

use tautline_observe::{Fault, Found, Reading};

use crate::failure::{Failure, Result};

/// A process and what it tells.
pub struct Seen {
    /// Where it is told.
    pub found: Found,
    /// What.
    pub reading: Reading,
    /// How many sockets were left out.
    pub left_out: usize,
}

/// Which sockets of a process are of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those that the program has for its messages.
    OfProgram,
    /// Also those that carry the events of monitors.
    All,
}

impl Which {
    /// As `--all` says.
    pub fn new(all: bool) -> Which {
        if all { Which::All } else { Which::OfProgram }
    }
}

/// All observed processes of this user, and what is wrong with those that cannot be read.
pub fn all(which: Which) -> (Vec<Seen>, Vec<(Found, Fault)>) {
    let (mut seen, mut faults) = (Vec::new(), Vec::new());
    for found in tautline_observe::processes() {
        match tautline_observe::read(&found.path) {
            Ok(mut reading) => {
                let left_out = if which == Which::All { 0 } else { reading.leave_out_monitors() };
                seen.push(Seen { found, reading, left_out });
            }
            // It has ended between the two looks.
            Err(Fault::Missing) => {}
            Err(fault) => faults.push((found, fault)),
        }
    }
    (seen, faults)
}

/// The processes with this number: one, or one for each library of it.
pub fn of(process: u32, which: Which) -> Result<Vec<Seen>> {
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

/// What to do to see a process.
pub const HOW: &str = "start it with TAUT_OBSERVE=1 in its environment, or by taut run --observe";

/// Tells what could not be read.
pub fn tell(faults: &[(Found, Fault)]) {
    for (found, fault) in faults {
        notice!("taut: {}: {fault}", found.path.display());
    }
}

/// Peers and endpoints of a reading by their sockets, for those that look at all of them.
pub struct BySocket<'a> {
    peers: HashMap<u64, Vec<&'a tautline_observe::Peer>>,
    endpoints: HashMap<u64, Vec<&'a tautline_observe::Endpoint>>,
}

impl<'a> BySocket<'a> {
    /// Of this one.
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

    /// The peers of a socket.
    pub fn peers(&self, socket: u64) -> &[&'a tautline_observe::Peer] {
        self.peers.get(&socket).map_or(&[], Vec::as_slice)
    }

    /// Its endpoints.
    pub fn endpoints(&self, socket: u64) -> &[&'a tautline_observe::Endpoint] {
        self.endpoints.get(&socket).map_or(&[], Vec::as_slice)
    }
}
