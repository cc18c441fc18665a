//! Finds usual mistakes in a reading and explains them in words.
//!
//! A pure function of one reading, or of two if a rule needs a rate. Each rule is one function. It
//! states the evidence, the meaning and the change to make.

mod rules;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use crate::{Endpoint, Peer, Reading, Socket};

pub use rules::{ended_process, stalled_process};

/// Most hints of one rule about peers of one socket. Further hints are only counted.
const PEERS: usize = 3;

/// Severity of a hint.
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
pub struct Hint {
    /// Severity.
    pub level: Level,
    /// Name of the rule, for scripts: `connect-refused`.
    pub rule: &'static str,
    /// ID of the socket that the hint is about; 0 for the whole process.
    pub socket: u64,
    /// Peer that the hint is about, by [`Peer::id`], if there is one.
    pub peer: Option<u64>,
    /// The fault, in a sentence.
    pub what: String,
    /// The evidence for the fault.
    pub evidence: String,
    /// The change to make.
    pub advice: String,
    /// Extent of the fault. Orders the hints of one level.
    pub weight: u64,
}

/// Rules about a peer that waits for another peer. The cause at the other peer ranks first.
const WAITING: [&str; 3] = ["no-reply", "queue-full", "drops"];

impl Hint {
    /// Returns a sort key for hints, also across processes. The hint with the highest key comes
    /// first.
    pub fn rank(&self) -> impl Ord + use<> {
        (self.level, !WAITING.contains(&self.rule), self.weight)
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}). {}", self.level, self.what, self.evidence, self.advice)
    }
}

/// Returns the faults of this reading, the worst first. `before` is an earlier reading of the same
/// process. Some rules need it for a rate or for changes over time, and say less without it. If
/// peers have the same fault, the worst three are named.
pub fn hints(reading: &Reading, before: Option<&Reading>) -> Vec<Hint> {
    let before = before.filter(|before| {
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
    all.sort_by_key(|hint| Reverse(hint.rank()));
    all
}

/// Keeps the worst hints of each rule about peers of one socket, and adds the number of the others.
fn keep_worst(hints: impl Iterator<Item = Hint>) -> Vec<Hint> {
    let mut rules: Vec<(&'static str, Vec<Hint>)> = Vec::new();
    for hint in hints {
        match rules.iter_mut().find(|(rule, _)| *rule == hint.rule) {
            Some((_, of_rule)) => of_rule.push(hint),
            None => rules.push((hint.rule, vec![hint])),
        }
    }
    for (_, of_rule) in &mut rules {
        of_rule.sort_by_key(|hint| Reverse((hint.level, hint.weight)));
        let more = of_rule.len().saturating_sub(PEERS);
        of_rule.truncate(PEERS);
        if let (Some(last), 1..) = (of_rule.last_mut(), more) {
            let peers = if more == 1 { "peer" } else { "peers" };
            last.evidence += &format!("; the same for {more} more {peers}");
        }
    }
    rules.into_iter().flat_map(|(_, of_rule)| of_rule).collect()
}

/// Input of the rules. Lookups use indexes instead of scans, because a process may have tens of
/// thousands of peers.
struct RuleInput<'a> {
    reading: &'a Reading,
    before: Option<&'a Reading>,
    now: u64,
    sockets: HashMap<u64, Parts<'a>>,
    sockets_before: HashMap<u64, Parts<'a>>,
    /// Earlier peers, by socket and peer.
    peers_before: HashMap<(u64, u64), &'a Peer>,
}

/// Endpoints and peers of a socket.
#[derive(Default)]
struct Parts<'a> {
    socket: Option<&'a Socket>,
    endpoints: Vec<&'a Endpoint>,
    peers: Vec<&'a Peer>,
}

/// Returns the parts of each socket of a reading.
fn by_socket(reading: &Reading) -> HashMap<u64, Parts<'_>> {
    let mut sockets: HashMap<u64, Parts<'_>> = HashMap::new();
    for socket in &reading.sockets {
        sockets.entry(socket.id).or_default().socket = Some(socket);
    }
    for endpoint in &reading.endpoints {
        sockets.entry(endpoint.socket).or_default().endpoints.push(endpoint);
    }
    for peer in &reading.peers {
        sockets.entry(peer.socket).or_default().peers.push(peer);
    }
    sockets
}

impl<'a> RuleInput<'a> {
    fn new(reading: &'a Reading, before: Option<&'a Reading>) -> Self {
        let before_peers = before.into_iter().flat_map(|before| &before.peers);
        RuleInput {
            reading,
            before,
            now: reading.process.written,
            sockets: by_socket(reading),
            sockets_before: before.map(by_socket).unwrap_or_default(),
            peers_before: before_peers.map(|peer| ((peer.socket, peer.id), peer)).collect(),
        }
    }

    /// Returns the whole seconds since `since`.
    fn seconds(&self, since: u64) -> u64 {
        if since == 0 { 0 } else { self.now.saturating_sub(since) / 1_000_000 }
    }

    /// Returns the microseconds between the two readings.
    fn between(&self) -> Option<u64> {
        self.now.checked_sub(self.before?.process.written).filter(|time| *time > 0)
    }

    fn socket(&self, id: u64) -> Option<&'a Socket> {
        self.sockets.get(&id)?.socket
    }

    fn endpoints_of(&self, socket: u64) -> impl Iterator<Item = &'a Endpoint> + use<'a, '_> {
        self.sockets.get(&socket).into_iter().flat_map(|parts| parts.endpoints.iter().copied())
    }

    fn peers_of(&self, socket: u64) -> impl Iterator<Item = &'a Peer> + use<'a, '_> {
        self.sockets.get(&socket).into_iter().flat_map(|parts| parts.peers.iter().copied())
    }

    /// Returns the increase of a number of the socket since the earlier reading. Without one,
    /// returns the whole number.
    fn increase(&self, socket: &Socket, number: impl Fn(&Socket) -> u64) -> u64 {
        let before = self.sockets_before.get(&socket.id).and_then(|before| before.socket);
        number(socket).saturating_sub(before.map_or(0, number))
    }

    /// Returns the endpoint from the earlier reading.
    fn endpoint_before(&self, endpoint: &Endpoint) -> Option<&'a Endpoint> {
        let before = &self.sockets_before.get(&endpoint.socket)?.endpoints;
        let is_same = |known: &&Endpoint| known.bound == endpoint.bound && known.given == endpoint.given;
        before.iter().copied().find(|known| is_same(known))
    }

    /// Returns the peer from the earlier reading.
    fn peer_before(&self, peer: &Peer) -> Option<&'a Peer> {
        self.peers_before.get(&(peer.socket, peer.id)).copied()
    }

    /// Returns the rate per second for an increase by `more`.
    fn rate(&self, more: u64) -> Option<u64> {
        Some((u128::from(more) * 1_000_000 / u128::from(self.between()?)) as u64)
    }

    /// Returns the command that shows a socket with its peers and its last events.
    fn show_command(&self, socket: &Socket) -> String {
        format!("`taut show {}/{}`", self.reading.name(), socket.id)
    }

    /// Returns a sentence with the commands that show the stacks of the threads.
    fn stack_commands(&self) -> String {
        let pid = self.reading.process.pid;
        format!("`gdb -p {pid}` shows its stack (in Python: `py-spy dump --pid {pid}`).")
    }

    /// Returns a readable name of a peer: its routing ID, and its program or address.
    fn peer_name(&self, peer: &Peer) -> String {
        let program = self.reading.peer_program(peer);
        let mut addresses = [&peer.address, &peer.endpoint, &peer.host].into_iter();
        let place = program.or_else(|| addresses.find(|text| !text.is_empty()).cloned());
        match (is_text(&peer.routing_id), place) {
            (true, Some(place)) => format!("{} at {place}", id_name(&peer.routing_id)),
            (true, None) => id_name(&peer.routing_id),
            (false, Some(place)) => place,
            (false, None) => format!("peer {}", peer.id),
        }
    }

    /// Returns a readable name of a socket.
    fn name_of(&self, socket: &Socket) -> String {
        match self.endpoints_of(socket.id).next().map(readable_name) {
            Some(at) => format!("{} at {at}", socket.type_name),
            None => format!("{} (socket {})", socket.type_name, socket.id),
        }
    }
}

/// Returns a readable name of an endpoint.
fn readable_name(endpoint: &Endpoint) -> &str {
    if endpoint.name.is_empty() { &endpoint.given } else { &endpoint.name }
}

/// Returns a readable routing ID: its text, or else its bytes.
fn id_name(id: &[u8]) -> String {
    match is_text(id) {
        true => format!("`{}`", String::from_utf8_lossy(id)),
        false => id.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
    }
}

fn is_text(id: &[u8]) -> bool {
    !id.is_empty() && id.iter().all(|byte| (0x20..0x7F).contains(byte))
}

/// Returns a number and a noun, in the singular or plural.
fn format_count(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{} {thing}s", format_short(number)) }
}

/// Returns a number in short form: 3 K, 50 M.
fn format_short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{} K", number / 1000),
        _ => format!("{} M", number / 1_000_000),
    }
}

#[cfg(test)]
mod tests;
