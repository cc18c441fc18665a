//! Rows of sockets and peers, and their order.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use clap::ValueEnum;
use tautline_observe::{Endpoint, EndpointState, Peer, PeerState, Reading, Socket, SocketState};

use super::sample::{Rates, Sample, Tracked};
use crate::format::escaped;
use crate::inspect::BySocket;
use crate::inspect::units::{self, count, rate, round_trip, span};

/// Sort order of the sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Most severe problem first, then message loss, then the fullest queue
    Trouble,
    /// Messages sent per second
    Out,
    /// Messages received per second
    In,
    /// Number of queued messages
    Queued,
    /// Number of peers
    Peers,
    /// Process and socket
    Pid,
}

impl Order {
    /// Returns the name of the order.
    pub fn name(self) -> &'static str {
        match self {
            Order::Trouble => "trouble",
            Order::Out => "out",
            Order::In => "in",
            Order::Queued => "queued",
            Order::Peers => "peers",
            Order::Pid => "pid",
        }
    }

    /// Returns the next order.
    pub fn next(self) -> Order {
        let all = [Order::Trouble, Order::Out, Order::In, Order::Queued, Order::Peers, Order::Pid];
        let at = all.iter().position(|order| *order == self).unwrap_or(0);
        all[(at + 1) % all.len()]
    }
}

/// Identifies a socket on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketKey {
    /// Counters file of its process.
    pub path: PathBuf,
    pub socket: u64,
}

/// Meaning of a full queue to a peer, and of one to this program. A receive queue is not always
/// full while the program is too slow: it takes new messages in batches.
const SLOW_READER: &str = ": the reader is slower";
const SLOW_PROGRAM: &str = "reads too slowly";

/// Severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    None,
    /// Worth attention.
    Warning,
    /// Messages are lost, or the socket is stuck.
    Critical,
}

/// Row of a socket.
pub struct SocketRow<'a> {
    pub process: &'a Tracked,
    pub socket: &'a Socket,
    pub rates: Rates,
    pub queued: u64,
    /// Fill level of its fullest queue, in per mille.
    pub fill_per_mille: u64,
    pub trouble: Severity,
    /// Endpoints, separated by spaces.
    pub places: String,
    /// Short note: the problem, or another fact about the socket.
    pub note: String,
}

impl SocketRow<'_> {
    /// Returns the identity of the socket.
    pub fn key(&self) -> SocketKey {
        SocketKey { path: self.process.found.path.clone(), socket: self.socket.id }
    }
}

/// Returns all sockets that match the filter, in order.
pub fn sockets<'a>(sample: &'a Sample, order: Order, filter: &str) -> Vec<SocketRow<'a>> {
    let mut rows = Vec::new();
    for process in &sample.processes {
        let by = BySocket::new(&process.reading);
        for socket in &process.reading.sockets {
            let row = socket_row(process, socket, &by);
            if filter.is_empty() || passes(&row, &by, filter) {
                rows.push(row);
            }
        }
    }
    let key = |row: &SocketRow<'_>| (row.process.found.pid, row.socket.id);
    let whole = |rate: f64| Reverse((rate * 10.0) as u64);
    match order {
        Order::Trouble => rows.sort_by_key(|row| {
            (
                Reverse(row.trouble),
                whole(row.rates.lost),
                Reverse(row.fill_per_mille),
                Reverse(row.queued),
                key(row),
            )
        }),
        Order::Out => rows.sort_by_key(|row| (whole(row.rates.sent), key(row))),
        Order::In => rows.sort_by_key(|row| (whole(row.rates.received), key(row))),
        Order::Queued => rows.sort_by_key(|row| (Reverse(row.queued), key(row))),
        Order::Peers => rows.sort_by_key(|row| (Reverse(row.socket.peers), key(row))),
        Order::Pid => rows.sort_by_key(key),
    }
    if order != Order::Pid {
        // Processes that have ended come last. This sort is stable.
        rows.sort_by_key(|row| !row.process.found.is_running);
    }
    rows
}

/// True if the process, the type, an endpoint or the note contains the text. Ignores case.
fn passes(row: &SocketRow<'_>, by: &BySocket<'_>, filter: &str) -> bool {
    let filter = filter.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&filter);
    has(&row.process.reading.process.program)
        || row.process.reading.name().starts_with(&filter)
        || has(&row.socket.type_name)
        || has(&row.note)
        || by.endpoints(row.socket.id).iter().any(|endpoint| has(&endpoint.name) || has(&endpoint.given))
}

fn socket_row<'a>(process: &'a Tracked, socket: &'a Socket, by: &BySocket<'_>) -> SocketRow<'a> {
    let now = process.reading.process.written;
    let rates = process.rates.get(&socket.id).copied().unwrap_or_default();
    let places: Vec<String> = by.endpoints(socket.id).iter().map(|endpoint| place(endpoint)).collect();
    let places = places.join(" ");
    if !process.found.is_running {
        // The queues of a process that has ended are gone.
        let note = format!("ended {} ago", span(now, units::now()));
        let trouble = Severity::None;
        return SocketRow { process, socket, rates, queued: 0, fill_per_mille: 0, trouble, places, note };
    }
    let peers = by.peers(socket.id);
    let fill_per_mille = peers.iter().map(|peer| fill(peer)).max().unwrap_or(0);
    let oldest = |since: fn(&Peer) -> u64| peers.iter().map(|peer| since(peer)).filter(|at| *at > 0).min();
    let (full_since, full_in_since) = (oldest(|peer| peer.full_since), oldest(|peer| peer.full_in_since));
    let failing = by.endpoints(socket.id).iter().find(|endpoint| endpoint.failures > 0 && !endpoint.bound);
    let (trouble, note) = if rates.lost > 0.0 {
        let why = if full_since.is_some() { SLOW_READER } else { "" };
        (Severity::Critical, format!("loses {}/s{why}", rate(rates.lost)))
    } else if let Some(since) = full_since {
        // A queue that moves holds back the sender as it should.
        let trouble = if rates.sent > 0.0 { Severity::Warning } else { Severity::Critical };
        (trouble, format!("full for {}{SLOW_READER}", span(since, now)))
    } else if let Some(endpoint) = failing {
        let reason = if endpoint.reason.is_empty() { "no connection" } else { endpoint.reason.as_str() };
        (
            Severity::Critical,
            format!("{} for {}", escaped(reason.as_bytes()), span(endpoint.failing_since, now)),
        )
    } else if socket.state == SocketState::Lingering {
        (Severity::Warning, "closed, lingering".to_owned())
    } else if socket.type_name == "SUB" && socket.subscriptions == 0 {
        (Severity::Warning, "no subscription".to_owned())
    } else if let Some(endpoint) =
        by.endpoints(socket.id).iter().find(|endpoint| endpoint.state == EndpointState::Failed)
    {
        (Severity::Critical, format!("bind failed: {}", escaped(endpoint.reason.as_bytes())))
    } else if let Some(since) = full_in_since {
        (Severity::Warning, format!("{SLOW_PROGRAM}, for {}", span(since, now)))
    } else if fill_per_mille >= 500 {
        let is_out = peers.iter().any(|peer| fill_out(peer) == fill_per_mille);
        let why = if is_out { SLOW_READER.to_owned() } else { format!(": {SLOW_PROGRAM}") };
        (Severity::Warning, format!("{} % full{why}", fill_per_mille / 10))
    } else if socket.dropped + socket.lost > 0 {
        (Severity::None, format!("{} lost earlier", count(socket.dropped + socket.lost)))
    } else if socket.monitor {
        (Severity::None, "monitor events".to_owned())
    } else if process.is_old() {
        (Severity::Warning, format!("no news for {}", span(now, units::now())))
    } else if let Some(route) = process.reading.route_of(socket.id) {
        let waiting =
            if route.waiting == 0 { String::new() } else { format!(", {} wait", count(route.waiting)) };
        let [name, promise] = [&route.name, &route.promise].map(|text| escaped(text.as_bytes()));
        (Severity::None, format!("{name} ({promise}): {} done{waiting}", count(route.done)))
    } else {
        (Severity::None, String::new())
    };
    let queued = socket.queued_out + socket.queued_in;
    SocketRow { process, socket, rates, queued, fill_per_mille, trouble, places, note }
}

/// Returns the address of an endpoint, the resolved one if it is known.
fn place(endpoint: &Endpoint) -> String {
    let name = if endpoint.name.is_empty() { &endpoint.given } else { &endpoint.name };
    escaped(name.as_bytes())
}

/// Describes the endpoints of a socket with their states.
pub fn endpoint_states(process: &Tracked, socket: u64) -> String {
    let describe = |endpoint: &Endpoint| {
        let way = if endpoint.bound { "bound" } else { "connects" };
        let state = match (endpoint.bound, endpoint.state) {
            (true, EndpointState::Listening) | (_, EndpointState::Unknown) => String::new(),
            (_, state) => format!(" ({state})"),
        };
        format!("{way} to {}{state}", place(endpoint))
    };
    let all: Vec<String> = process.reading.endpoints_of(socket).map(describe).collect();
    all.join(", ")
}

/// Returns the fill level of the fuller queue of a peer, in per mille.
fn fill(peer: &Peer) -> u64 {
    fill_out(peer).max(per_mille(peer.queued_in, peer.limit_in))
}

fn fill_out(peer: &Peer) -> u64 {
    per_mille(peer.queued_out, peer.limit_out)
}

fn per_mille(queued: u64, limit: u64) -> u64 {
    queued.saturating_mul(1000).checked_div(limit).unwrap_or(0)
}

/// Row of a peer.
pub struct PeerRow<'a> {
    pub peer: &'a Peer,
    pub rates: Rates,
    pub trouble: Severity,
    /// Routing id and user id of the peer, or its program or address if it has neither.
    pub name: String,
    /// Messages in its fuller queue, and the limit of this queue if there is one.
    pub queued: String,
    pub round_trip: String,
    /// Short note: the problem, or another fact about the peer.
    pub note: String,
}

/// Returns the peers of a socket, sorted by the fill level of their fuller queue, fullest first.
pub fn peers<'a>(sample: &Sample, process: &'a Tracked, socket: u64) -> Vec<PeerRow<'a>> {
    let now = process.reading.process.written;
    let programs = observed_peers(sample, process, socket);
    let mut peers: Vec<&Peer> = process.reading.peers_of(socket).collect();
    peers.sort_by_key(|peer| (Reverse(fill(peer)), Reverse(peer.queued_out + peer.queued_in), peer.id));
    peers.into_iter().map(|peer| peer_row(process, peer, programs.get(&peer.id), now)).collect()
}

/// Returns the programs of the peers that are observed, by peer. Both ends of a connection know
/// both addresses.
fn observed_peers(sample: &Sample, process: &Tracked, socket: u64) -> HashMap<u64, String> {
    let peers = process.reading.peers_of(socket).filter(|peer| !peer.address.is_empty());
    let ends: HashMap<_, u64> = peers.map(|peer| ((&*peer.address, &*peer.local), peer.id)).collect();
    let mut programs = HashMap::new();
    for other in sample.processes.iter().filter(|other| other.found.is_running) {
        for peer in &other.reading.peers {
            if let Some(id) = ends.get(&(&*peer.local, &*peer.address)) {
                let reading = &other.reading;
                programs.insert(*id, format!("{} ({})", reading.process.program, reading.name()));
            }
        }
    }
    programs
}

fn peer_row<'a>(process: &'a Tracked, peer: &'a Peer, program: Option<&String>, now: u64) -> PeerRow<'a> {
    let rates = process.peer_rates.get(&peer.id).copied().unwrap_or_default();
    let (trouble, note) = if rates.lost > 0.0 {
        let why = if peer.full_since > 0 { SLOW_READER } else { "" };
        (Severity::Critical, format!("loses {}/s{why}", rate(rates.lost)))
    } else if peer.full_since > 0 {
        let trouble = if rates.sent > 0.0 { Severity::Warning } else { Severity::Critical };
        (trouble, format!("full for {}{SLOW_READER}", span(peer.full_since, now)))
    } else if peer.full_in_since > 0 {
        (Severity::Warning, format!("{SLOW_PROGRAM}, for {}", span(peer.full_in_since, now)))
    } else if peer.state != PeerState::Connected {
        (Severity::Warning, peer.state.to_string())
    } else if peer.reconnects > 0 {
        (Severity::None, format!("{} reconnects", count(peer.reconnects)))
    } else {
        (Severity::None, String::new())
    };
    let name = match (peer.routing_id.as_slice(), peer.user_id.as_str()) {
        ([], "") => String::new(),
        (id, "") => escaped(id),
        ([], user) => escaped(user.as_bytes()),
        (id, user) => format!("{} {}", escaped(id), escaped(user.as_bytes())),
    };
    let program = program.cloned().or_else(|| process.reading.peer_program(peer));
    let address = if peer.address.is_empty() { &peer.endpoint } else { &peer.address };
    let place = program.as_ref().unwrap_or(address);
    let name = if name.is_empty() { escaped(place.as_bytes()) } else { name };
    let (queued, limit) = if peer.queued_in > peer.queued_out {
        (peer.queued_in, peer.limit_in)
    } else {
        (peer.queued_out, peer.limit_out)
    };
    let queued = if limit == 0 { queued.to_string() } else { format!("{queued}/{limit}") };
    PeerRow { peer, rates, trouble, name, queued, round_trip: round_trip(peer.round_trip_us), note }
}

/// Totals for the header line.
pub struct Totals {
    /// Numbers of objects of the running processes.
    pub processes: usize,
    pub sockets: usize,
    pub peers: usize,
    /// Number of processes that have ended.
    pub ended: usize,
    pub rates: Rates,
    /// Time of the oldest reading of a running process.
    pub oldest: Option<u64>,
}

/// Returns the totals.
pub fn totals(sample: &Sample) -> Totals {
    let running: Vec<_> = sample.processes.iter().filter(|process| process.found.is_running).collect();
    let count = |of: fn(&Reading) -> usize| running.iter().map(|process| of(&process.reading)).sum();
    let mut rates = Rates::default();
    for one in running.iter().flat_map(|process| process.rates.values()) {
        rates.sent += one.sent;
        rates.received += one.received;
        rates.lost += one.lost;
    }
    Totals {
        processes: running.len(),
        sockets: count(|reading| reading.sockets.len()),
        peers: count(|reading| reading.peers.len()),
        ended: sample.processes.len() - running.len(),
        rates,
        oldest: running.iter().map(|process| process.reading.process.written).min(),
    }
}
