//! Commands that show observed processes: `ps`, `show`, `top`, `doctor`, `tap`, `metrics`, `web`.
//!
//! `tautline-observe` reads all data from the counters files (`docs/reference/counters-file.md`),
//! so the processes do not notice it. If a file cannot be read, its fault is reported and the other
//! processes are shown.

mod absence;
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
mod unacknowledged;
pub mod units;
mod users;
pub mod web;

pub use tap::Filter;
pub use top::Order;
use users::Users;
pub use users::owner_of;

use std::collections::HashMap;
use std::path::Path;
use std::{env, fs};

use signal_hook::low_level::signal_name;
use tautline_observe::{EndCause, ObservedProcess, Peer, ReadError, Reading};

use crate::failure::{Failure, Result};
pub use absence::{HOW, report_none};

/// Observed process and its data.
pub struct ProcessSnapshot {
    /// Location of its counters file.
    pub found: ObservedProcess,
    /// Name of its user.
    pub user: String,
    /// Contents of the file.
    pub reading: Reading,
    /// Number of sockets that were left out.
    pub left_out: usize,
}

impl ProcessSnapshot {
    /// Describes the end of a process that does not run: `killed by signal 9 (SIGKILL), 26s ago`.
    /// If `taut run` has not recorded the end, this is the time of its last update: `crashed or was
    /// killed 26s ago`.
    pub fn end(&self, now: u64) -> Option<String> {
        let ago = |at| units::span(at, now);
        match self.found.end {
            _ if self.found.is_running => None,
            Some(end) => Some(format!("{}, {} ago", describe_cause(end.cause), ago(end.at))),
            None => Some(format!("crashed or was killed {} ago", ago(self.reading.process.written))),
        }
    }
}

/// Describes the reason for the end of a process, with the name of a signal.
pub fn describe_cause(cause: EndCause) -> String {
    let name = match cause {
        EndCause::Killed(signal) => i32::try_from(signal).ok().and_then(signal_name),
        _ => None,
    };
    name.map_or_else(|| cause.to_string(), |name| format!("{cause} ({name})"))
}

/// A process in an argument, and the copy of the library in it, if the argument has one: `PID` or
/// `PID.COPY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessName {
    pub pid: u32,
    copy: Option<u32>,
}

impl ProcessName {
    /// True if it names this process, or this copy of the library in it.
    pub fn is(self, seen: &ProcessSnapshot) -> bool {
        seen.found.pid == self.pid && self.copy.is_none_or(|copy| copy == seen.reading.copy)
    }
}

impl std::str::FromStr for ProcessName {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (pid, copy) = text.split_once('.').map_or((text, None), |(pid, copy)| (pid, Some(copy)));
        match (pid.parse(), copy.map(str::parse).transpose()) {
            (Ok(pid), Ok(copy)) => Ok(ProcessName { pid, copy }),
            _ => Err(format!("{text:?} is not a process")),
        }
    }
}

impl std::fmt::Display for ProcessName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.copy {
            Some(copy) => write!(f, "{}.{copy}", self.pid),
            None => write!(f, "{}", self.pid),
        }
    }
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

/// Variable with the only folder of counters files that the tools read.
const FOLDER: &str = "TAUT_COUNTERS";

/// Bytes of memory for the readings of other users, who can write files of any size.
const OTHERS: usize = 512 << 20;
/// Approximate bytes of memory of a record.
const RECORD: usize = 640;

/// Returns the observed processes that this user may see: its own ones, or those of all users if it
/// is root. `TAUT_COUNTERS` selects one folder.
pub fn observed() -> Vec<ObservedProcess> {
    match env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        Some(folder) => tautline_observe::processes_of_folder(Path::new(&folder)),
        None => tautline_observe::visible_processes(),
    }
}

/// Returns all observed processes that this user may see, and the faults of unreadable ones.
pub fn all(which: SocketSelection) -> (Vec<ProcessSnapshot>, Vec<(ObservedProcess, ReadError)>) {
    let (mut seen, mut faults) = (Vec::new(), Vec::new());
    let (own, mut left, mut users) = (users::own(), OTHERS, Users::new());
    for found in observed() {
        let is_foreign = found.user != own;
        if is_foreign && left == 0 {
            faults.push((found, ReadError::TooLarge));
            continue;
        }
        match tautline_observe::read_process(&found) {
            Ok(mut reading) => {
                if is_foreign {
                    left = left.saturating_sub(records(&reading) * RECORD);
                }
                let left_out = if which == SocketSelection::All { 0 } else { reading.leave_out_monitors() };
                let user = users.name(found.user).to_owned();
                seen.push(ProcessSnapshot { found, user, reading, left_out });
            }
            // The process ended after it was found.
            Err(ReadError::Missing) => {}
            Err(fault) => faults.push((found, fault)),
        }
    }
    name_local_peers(&mut seen);
    (seen, faults)
}

fn records(reading: &Reading) -> usize {
    let Reading { contexts, sockets, endpoints, peers, events, routes, .. } = reading;
    contexts.len() + sockets.len() + endpoints.len() + peers.len() + events.len() + routes.len()
}

/// Adds the names of the programs of local peers: the name that an observed program has, or that
/// the system knows.
fn name_local_peers(seen: &mut [ProcessSnapshot]) {
    let running = seen.iter().filter(|seen| seen.found.is_running);
    let mut names: HashMap<u32, Option<String>> =
        running.map(|seen| (seen.found.pid, Some(seen.reading.process.program.clone()))).collect();
    for seen in seen.iter_mut().filter(|seen| seen.found.is_running) {
        let Reading { peers, programs, .. } = &mut seen.reading;
        for process in peers.iter().filter_map(Peer::process) {
            let name = names.entry(process).or_insert_with(|| {
                let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
                Some(name.trim_end().to_owned())
            });
            if let Some(name) = name {
                programs.entry(process).or_insert_with(|| name.clone());
            }
        }
    }
}

/// Returns the data of a process: one entry for each Tautline library in it.
pub fn snapshots_of(process: ProcessName, which: SocketSelection) -> Result<Vec<ProcessSnapshot>> {
    let (mut seen, faults) = all(which);
    seen.retain(|seen| process.is(seen));
    if !seen.is_empty() {
        return Ok(seen);
    }
    if let Some((found, fault)) = faults.into_iter().find(|(found, _)| found.pid == process.pid) {
        return Err(Failure::failed(format!("{process}: {fault}"))
            .hint(format!("the file is {}", found.path.display())));
    }
    Err(absence::not_observed(process))
}

/// Reports the unreadable files.
pub fn report_unreadable(faults: &[(ObservedProcess, ReadError)]) {
    for (found, fault) in faults {
        notice!("taut: {}: {fault}", found.path.display());
    }
}

/// Index of the peers and endpoints of a reading by socket, for loops over all sockets.
pub struct BySocket<'a> {
    pub reading: &'a Reading,
    peers: HashMap<u64, Vec<&'a tautline_observe::Peer>>,
    endpoints: HashMap<u64, Vec<&'a tautline_observe::Endpoint>>,
}

impl<'a> BySocket<'a> {
    /// Builds the index of a reading.
    pub fn new(reading: &'a Reading) -> Self {
        let mut by = BySocket { reading, peers: HashMap::new(), endpoints: HashMap::new() };
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

    /// Returns the program of a local peer with its process.
    pub fn program(&self, peer: &tautline_observe::Peer) -> Option<String> {
        self.reading.peer_program(peer)
    }

    /// Returns the endpoints of a socket.
    pub fn endpoints(&self, socket: u64) -> &[&'a tautline_observe::Endpoint] {
        self.endpoints.get(&socket).map_or(&[], Vec::as_slice)
    }
}
