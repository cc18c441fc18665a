//! Why nothing moves: what a reading shows of the usual mistakes, in words.
//!
//! A pure function of one reading, or of two for what needs a rate. One rule is one function; each
//! says what it has seen, what that means and what to change.

mod rules;

use std::cmp::Reverse;
use std::fmt;

use crate::{Endpoint, Peer, Reading, Socket};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Good to know. Nothing need be wrong.
    Note,
    /// Messages are lost or late.
    Warning,
    /// Something does not work at all.
    Trouble,
}

impl Level {
    /// In a word.
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

/// One thing that is wrong, or may be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// How bad it is.
    pub level: Level,
    /// Names the rule, for scripts: `connect-refused`.
    pub rule: &'static str,
    /// The socket that it is about; 0 for the whole process.
    pub socket: u64,
    /// The peer that it is about, by [`Peer::id`], if it is about one.
    pub peer: Option<u64>,
    /// What is wrong, in a sentence.
    pub what: String,
    /// What shows it.
    pub evidence: String,
    /// What to do about it.
    pub advice: String,
    /// How much of it there is: orders the hints of one level.
    pub weight: u64,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}). {}", self.level, self.what, self.evidence, self.advice)
    }
}

/// What is wrong by this reading, the worst first. `before` is an earlier reading of the same
/// process, for what needs a rate or shows only in time; without it those rules say less.
pub fn hints(reading: &Reading, before: Option<&Reading>) -> Vec<Hint> {
    let before = before.filter(|before| {
        before.process.pid == reading.process.pid && before.process.written < reading.process.written
    });
    let scene = Scene { reading, before, now: reading.process.written };
    let mut all = Vec::new();
    for socket in &reading.sockets {
        all.extend(rules::of_socket(&scene, socket));
        for endpoint in reading.endpoints_of(socket.id) {
            all.extend(rules::of_endpoint(&scene, socket, endpoint));
        }
    }
    for peer in &reading.peers {
        if let Some(socket) = reading.socket(peer.socket) {
            all.extend(rules::of_peer(&scene, socket, peer));
        }
    }
    all.extend(rules::of_process(&scene));
    all.sort_by_key(|hint| Reverse((hint.level, hint.weight)));
    all
}

/// What the rules look at.
struct Scene<'a> {
    reading: &'a Reading,
    before: Option<&'a Reading>,
    now: u64,
}

impl Scene<'_> {
    /// For how many whole seconds something is so.
    fn seconds(&self, since: u64) -> u64 {
        if since == 0 { 0 } else { self.now.saturating_sub(since) / 1_000_000 }
    }

    /// The socket as it was before.
    fn socket_before(&self, socket: &Socket) -> Option<&Socket> {
        self.before?.socket(socket.id)
    }

    /// The peer as it was before.
    fn peer_before(&self, peer: &Peer) -> Option<&Peer> {
        self.before?.peers.iter().find(|known| (known.socket, known.id) == (peer.socket, peer.id))
    }

    /// How many of something there are each second, if there were `more` than before.
    fn rate(&self, more: u64) -> Option<u64> {
        let time = self.now.checked_sub(self.before?.process.written).filter(|time| *time > 0)?;
        Some((u128::from(more) * 1_000_000 / u128::from(time)) as u64)
    }
}

/// What a person calls a socket.
fn name_of(reading: &Reading, socket: &Socket) -> String {
    let at = reading.endpoints_of(socket.id).next().map(shown);
    match at {
        Some(at) => format!("{} at {at}", socket.type_name),
        None => format!("{} (socket {})", socket.type_name, socket.id),
    }
}

/// An endpoint as a person knows it.
fn shown(endpoint: &Endpoint) -> &str {
    if endpoint.name.is_empty() { &endpoint.given } else { &endpoint.name }
}

/// A peer as a person knows it.
fn peer_name(peer: &Peer) -> String {
    let id = &peer.routing_id;
    let printable = !id.is_empty() && id.iter().all(|byte| (0x20..0x7F).contains(byte));
    let address = [&peer.address, &peer.endpoint, &peer.host].into_iter().find(|text| !text.is_empty());
    match (printable, address) {
        (true, Some(address)) => format!("`{}` at {address}", String::from_utf8_lossy(id)),
        (true, None) => format!("`{}`", String::from_utf8_lossy(id)),
        (false, Some(address)) => address.clone(),
        (false, None) => format!("peer {}", peer.id),
    }
}

/// A number as a person reads it: 3 K, 50 M.
fn about(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{} K", number / 1000),
        _ => format!("{} M", number / 1_000_000),
    }
}

#[cfg(test)]
mod tests;
