//! Finds the causes of trouble in the counters of the processes of a host, and explains them in
//! words.
//!
//! ```text
//!  each reading ── rules ──┐
//!                          ├─▶ findings ── effects ──▶ causes, each with its effects
//!  all readings ── system ─┘
//! ```
//!
//! A pure function of the readings. Each rule is one function that checks one condition. It states
//! the evidence, the meaning and the change to make.

mod effects;
mod graph;
mod input;
mod rules;
mod system;
mod text;

use std::cmp::Reverse;
use std::fmt;

use crate::{EndCause, Reading};
use graph::Graph;
use input::RuleInput;

/// Most findings of one rule about peers of one socket. Further findings are only counted.
const PEERS: usize = 3;

/// Most findings that are compared with each other; the worst ones are kept.
const MOST: usize = 1000;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Useful to know. Possibly no fault.
    Note,
    /// Messages are lost or late.
    Warning,
    /// A part of the program does not work at all.
    Trouble,
}

impl Level {
    /// Returns the level as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Trouble => "trouble",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A fault, or a possible fault.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Severity.
    pub level: Level,
    /// Name of the rule, for scripts: `connect-failed`.
    pub rule: &'static str,
    /// The process at fault: its place in the list that was diagnosed.
    pub process: usize,
    /// ID of the socket that the finding is about; 0 for the whole process.
    pub socket: u64,
    /// Peer that the finding is about, by [`Peer::id`](crate::Peer::id), if there is one.
    pub peer: Option<u64>,
    /// The fault, in a sentence.
    pub what: String,
    /// The evidence for the fault.
    pub evidence: String,
    /// The change to make.
    pub advice: String,
    /// The command that shows more.
    pub next: String,
    /// Extent of the fault. Orders the findings of one level.
    pub weight: u64,
    /// Findings that follow from this one.
    pub effects: Vec<Finding>,
}

impl Finding {
    /// Returns a sort key for findings. The finding with the highest key comes first.
    fn rank(&self) -> impl Ord + use<> {
        (self.level, self.effects.len().min(1), effects::precedence(self.rule), self.weight)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}). {}", self.level, self.what, self.evidence, self.advice)
    }
}

/// A process to diagnose.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// Its counters.
    pub reading: &'a Reading,
    /// Its counters some seconds earlier. Some rules need them for a rate or for changes over time,
    /// and say less without them.
    pub before: Option<&'a Reading>,
    /// Whether it runs.
    pub state: ProcessState,
    /// Its namespaces.
    pub namespaces: Namespaces,
    /// TCP connections of its network namespace whose bytes are not acknowledged.
    pub unacknowledged: Vec<Unacknowledged>,
}

impl<'a> Observed<'a> {
    /// Returns a process that runs and of which only the counters are known.
    pub fn new(reading: &'a Reading) -> Self {
        let namespaces = Namespaces::default();
        let unacknowledged = Vec::new();
        Observed { reading, before: None, state: ProcessState::Running, namespaces, unacknowledged }
    }
}

/// A TCP connection with bytes that were sent again and again, and are not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unacknowledged {
    /// Local address: `tcp://10.0.0.7:40000`.
    pub local: String,
    /// Remote address.
    pub remote: String,
    /// Number of unacknowledged bytes.
    pub bytes: u64,
    /// Number of times that they were sent again, since the last acknowledgement.
    pub retransmits: u64,
}

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs.
    Running,
    /// It has not updated its counters for so long that it does not run.
    StandsStill {
        /// Age of its counters.
        seconds: u64,
        /// Field 3 of `/proc/PID/stat`, if known.
        state: Option<char>,
    },
    /// It has ended without removing its counters.
    Ended {
        /// Time since its end, or else the age of its counters.
        seconds: u64,
        /// Reason for the end, if it is known.
        cause: Option<EndCause>,
    },
}

/// Namespaces of a process. A number identifies each; `None` if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// Namespace of its mounts.
    pub mount: Option<u64>,
    /// Namespace of its network.
    pub network: Option<u64>,
}

/// Returns the faults in these processes, the worst first. A fault that follows from another one is
/// among the effects of that one. If peers have the same fault, the worst three are named.
pub fn diagnose(processes: &[Observed<'_>]) -> Vec<Finding> {
    let graph = Graph::new(processes);
    let mut all: Vec<Finding> = Vec::new();
    for (place, observed) in processes.iter().enumerate() {
        let of_process = of_process(observed);
        all.extend(of_process.into_iter().map(|finding| Finding { process: place, ..finding }));
    }
    all.extend(system::findings(&graph));
    all.sort_by_key(|finding| Reverse(finding.rank()));
    all.truncate(MOST);
    for finding in all.iter_mut().filter(|finding| finding.next.is_empty()) {
        let name = processes[finding.process].reading.name();
        finding.next = match finding.socket {
            0 => format!("taut show {name}"),
            socket => format!("taut show {name}/{socket}"),
        };
    }
    let mut causes = effects::group(&graph, all);
    causes.sort_by_key(|finding| Reverse(finding.rank()));
    causes
}

/// Returns the faults that the counters of one process show.
fn of_process(observed: &Observed<'_>) -> Vec<Finding> {
    // The counters of a process that does not run are outdated.
    match observed.state {
        ProcessState::Running => {}
        ProcessState::StandsStill { seconds, state } => return vec![rules::stalled_process(seconds, state)],
        ProcessState::Ended { .. } => return Vec::new(),
    }
    let reading = observed.reading;
    let before = observed.before.filter(|before| {
        before.process.pid == reading.process.pid && before.process.written < reading.process.written
    });
    let scene = RuleInput::new(reading, before);
    let mut all = Vec::new();
    for socket in &reading.sockets {
        all.extend(rules::of_socket(&scene, socket));
        for endpoint in scene.endpoints_of(socket.id) {
            all.extend(rules::of_endpoint(&scene, socket, endpoint));
        }
        all.extend(keep_worst(
            scene.peers_of(socket.id).flat_map(|peer| rules::of_peer(&scene, socket, peer)),
        ));
    }
    all.extend(rules::of_process(&scene));
    all
}

/// Keeps the worst findings of each rule about peers of one socket, and adds the number of the
/// others.
fn keep_worst(findings: impl Iterator<Item = Finding>) -> Vec<Finding> {
    let mut rules: Vec<(&'static str, Vec<Finding>)> = Vec::new();
    for finding in findings {
        match rules.iter_mut().find(|(rule, _)| *rule == finding.rule) {
            Some((_, of_rule)) => of_rule.push(finding),
            None => rules.push((finding.rule, vec![finding])),
        }
    }
    for (_, of_rule) in &mut rules {
        of_rule.sort_by_key(|finding| Reverse((finding.level, finding.weight)));
        let more = of_rule.len().saturating_sub(PEERS);
        of_rule.truncate(PEERS);
        if let (Some(last), 1..) = (of_rule.last_mut(), more) {
            let peers = if more == 1 { "peer" } else { "peers" };
            last.evidence += &format!("; the same for {more} more {peers}");
        }
    }
    rules.into_iter().flat_map(|(_, of_rule)| of_rule).collect()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod together_tests;
