//! All processes together: which sockets are linked, and where each endpoint is bound.

use std::collections::HashMap;

use super::text::distance;
use super::{Observed, ProcessState};
use crate::{Endpoint, EndpointState, Peer, Socket};

/// Most endpoints of one port or path that are compared. A counters file of another user may have
/// any number.
const MOST_PLACES: usize = 256;

/// A socket of a process: the place of the process, and the ID of the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SocketKey {
    pub(super) process: usize,
    pub(super) socket: u64,
}

/// An endpoint with its socket.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) key: SocketKey,
    pub(super) socket: &'a Socket,
    pub(super) endpoint: &'a Endpoint,
}

/// The processes and the links between them.
pub(super) struct Graph<'a> {
    pub(super) processes: &'a [Observed<'a>],
    sockets: HashMap<SocketKey, &'a Socket>,
    /// Endpoints, by socket.
    endpoints: HashMap<SocketKey, Vec<&'a Endpoint>>,
    /// Peers, by socket.
    peers: HashMap<SocketKey, Vec<&'a Peer>>,
    /// Bound endpoints, by port or path.
    bound: HashMap<&'a str, Vec<Place<'a>>>,
    /// Connected endpoints of the processes that run, by port or path.
    connected: HashMap<&'a str, Vec<Place<'a>>>,
    /// Sockets with an endpoint of this path, and whether they are bound to it, by process.
    by_path: HashMap<(usize, &'a str), Vec<(SocketKey, bool)>>,
    /// Ends of tcp connections, by local and remote address.
    by_addresses: HashMap<(&'a str, &'a str), SocketKey>,
    /// Places of the processes that run, by process ID.
    running: HashMap<u32, Vec<usize>>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(processes: &'a [Observed<'a>]) -> Self {
        let mut graph = Graph {
            processes,
            sockets: HashMap::new(),
            endpoints: HashMap::new(),
            peers: HashMap::new(),
            bound: HashMap::new(),
            connected: HashMap::new(),
            by_path: HashMap::new(),
            by_addresses: HashMap::new(),
            running: HashMap::new(),
        };
        for (process, observed) in processes.iter().enumerate() {
            let reading = observed.reading;
            if !matches!(observed.state, ProcessState::Ended { .. }) {
                graph.running.entry(reading.process.pid).or_default().push(process);
            }
            for socket in &reading.sockets {
                graph.sockets.insert(SocketKey { process, socket: socket.id }, socket);
            }
            for endpoint in &reading.endpoints {
                let key = SocketKey { process, socket: endpoint.socket };
                graph.endpoints.entry(key).or_default().push(endpoint);
                let same_path = graph.by_path.entry((process, Address::new(endpoint).path)).or_default();
                if same_path.len() < MOST_PLACES {
                    same_path.push((key, endpoint.bound));
                }
                let Some(socket) = graph.sockets.get(&key) else { continue };
                let (place, path) = (Place { key, socket, endpoint }, Address::new(endpoint).path);
                let places = match endpoint.bound {
                    true => graph.bound.entry(path).or_default(),
                    false if observed.state == ProcessState::Running => {
                        graph.connected.entry(path).or_default()
                    }
                    false => continue,
                };
                if places.len() < MOST_PLACES {
                    places.push(place);
                }
            }
            for peer in &reading.peers {
                let key = SocketKey { process, socket: peer.socket };
                graph.peers.entry(key).or_default().push(peer);
                if peer.address.starts_with("tcp://") && !peer.local.is_empty() {
                    graph.by_addresses.insert((&peer.local, &peer.address), key);
                }
            }
        }
        graph
    }

    /// True if the process runs.
    pub(super) fn is_running(&self, process: usize) -> bool {
        self.processes[process].state == ProcessState::Running
    }

    /// Returns the sockets of the processes that run, with their keys.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (SocketKey, &'a Socket)> + use<'a, '_> {
        let processes = self.processes.iter().enumerate();
        processes.filter(|(process, _)| self.is_running(*process)).flat_map(|(process, observed)| {
            let sockets = observed.reading.sockets.iter().filter(|socket| !socket.monitor);
            sockets.map(move |socket| (SocketKey { process, socket: socket.id }, socket))
        })
    }

    pub(super) fn endpoints_of(&self, key: SocketKey) -> &[&'a Endpoint] {
        self.endpoints.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn peers_of(&self, key: SocketKey) -> &[&'a Peer] {
        self.peers.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the connected endpoints of the processes that run.
    pub(super) fn connected(&self) -> impl Iterator<Item = Place<'a>> + use<'a, '_> {
        self.sockets().flat_map(move |(key, socket)| {
            let endpoints = self.endpoints_of(key).iter().filter(|endpoint| !endpoint.bound);
            endpoints.map(move |endpoint| Place { key, socket, endpoint })
        })
    }

    /// Returns all bound endpoints, also those of processes that have ended.
    pub(super) fn all_bound(&self) -> impl Iterator<Item = Place<'a>> + use<'a, '_> {
        self.bound.values().flatten().copied()
    }

    /// Returns the sockets that are bound to the port or path of this address.
    pub(super) fn bound_at(&self, text: &str) -> Vec<SocketKey> {
        let places = self.bound.get(Address::of(text).path).map_or(&[][..], Vec::as_slice);
        places.iter().map(|place| place.key).collect()
    }

    /// Returns the endpoints that are bound to the port or path of this one, reachable or not.
    pub(super) fn same_port_or_path<'s>(
        &'s self,
        endpoint: &'s Endpoint,
    ) -> impl Iterator<Item = Place<'a>> + use<'a, 's> {
        let address = Address::new(endpoint);
        let same = self.bound.get(address.path).map_or(&[][..], Vec::as_slice);
        same.iter().copied().filter(move |place| Address::new(place.endpoint).transport == address.transport)
    }

    /// Returns the bound endpoints that a connection to `place` reaches.
    pub(super) fn reached_from(&self, place: Place<'a>) -> impl Iterator<Item = Place<'a>> + use<'a, '_> {
        let address = Address::new(place.endpoint);
        self.same_port_or_path(place.endpoint).filter(move |bound| {
            let other = Address::new(bound.endpoint);
            self.is_same_namespace(place.key.process, bound.key.process, address.transport)
                && (address.transport != "inproc" || place.key.process == bound.key.process)
                && (address.is_path() || other.takes(address.host))
        })
    }

    /// False if the namespaces of the processes keep their endpoints of this transport apart.
    pub(super) fn is_same_namespace(&self, one: usize, other: usize, transport: &str) -> bool {
        let (one, other) = (self.processes[one].namespaces, self.processes[other].namespaces);
        let differ =
            |one: Option<u64>, other: Option<u64>| one.zip(other).is_some_and(|(one, other)| one != other);
        match transport {
            "ipc" => !differ(one.mount, other.mount),
            "inproc" => true,
            _ => !differ(one.network, other.network),
        }
    }

    /// Returns the sockets at the other ends of a socket's connections.
    pub(super) fn linked(&self, key: SocketKey) -> Vec<SocketKey> {
        let mut all: Vec<SocketKey> =
            self.peers_of(key).iter().flat_map(|peer| self.others(key, peer)).collect();
        all.dedup();
        all
    }

    /// Returns the possible sockets at the other end of a connection: one for tcp.
    pub(super) fn others(&self, key: SocketKey, peer: &Peer) -> Vec<SocketKey> {
        if let Some(other) = self.by_addresses.get(&(&*peer.address, &*peer.local)) {
            return vec![*other];
        }
        let candidates: Vec<usize> = match peer.process() {
            Some(pid) => self.running.get(&pid).cloned().unwrap_or_default(),
            None if peer.endpoint.starts_with("inproc://") => vec![key.process],
            None => return Vec::new(),
        };
        let path = Address::of(&peer.endpoint).path;
        let there = candidates.into_iter().filter_map(|process| self.by_path.get(&(process, path))).flatten();
        // One end is bound, the other one is connected.
        let is_other = |(other, bound): &&(SocketKey, bool)| *other != key && *bound == peer.connected_here;
        there.filter(is_other).map(|(other, _)| *other).collect()
    }

    /// Returns the sockets that are connected to a bound endpoint of `key`, or try to be.
    pub(super) fn connected_to(&self, key: SocketKey, bound: &Endpoint) -> Vec<SocketKey> {
        let places = self.connected.get(Address::new(bound).path).map_or(&[][..], Vec::as_slice);
        let is_there = |from: &&Place<'a>| {
            let mut reached = self.reached_from(**from);
            reached.any(|to| to.key == key && std::ptr::eq(to.endpoint, bound))
        };
        places.iter().filter(is_there).map(|from| from.key).collect()
    }

    /// Returns the sockets that are connected to the port or path of a bound endpoint, or try it.
    pub(super) fn same_port(&self, bound: &Endpoint) -> Vec<SocketKey> {
        let places = self.connected.get(Address::new(bound).path).map_or(&[][..], Vec::as_slice);
        places.iter().map(|from| from.key).collect()
    }

    /// Returns the bound endpoint that a socket without a peer was probably meant to connect to: of
    /// a type that fits, without any peer so far, and the most similar to its own endpoint.
    pub(super) fn meant_place(&self, key: SocketKey) -> Option<Place<'a>> {
        let socket = self.socket(key)?;
        let failing = |endpoint: &&&Endpoint| !endpoint.bound && endpoint.failures > 0;
        let own = Address::new(self.endpoints_of(key).iter().find(failing)?);
        let idle = self.all_bound().filter(|place| {
            let address = Address::new(place.endpoint);
            self.is_running(place.key.process)
                && place.key != key
                && place.endpoint.state == EndpointState::Listening
                && place.endpoint.accepted == 0
                && place.socket.peers == 0
                && address.transport == own.transport
                && fits(&socket.type_name, &place.socket.type_name)
                && self.is_same_namespace(key.process, place.key.process, own.transport)
        });
        idle.min_by_key(|place| (distance(own.path, Address::new(place.endpoint).path), place.key.socket))
    }

    pub(super) fn socket(&self, key: SocketKey) -> Option<&'a Socket> {
        self.sockets.get(&key).copied()
    }

    /// Returns the processes of the same program.
    pub(super) fn same_program(&self, process: usize) -> impl Iterator<Item = usize> + use<'a, '_> {
        let program = &self.processes[process].reading.process.program;
        let is_same = move |other: &usize| self.processes[*other].reading.process.program == *program;
        (0..self.processes.len()).filter(is_same)
    }

    /// Returns the program of a process, with its name: `orders.py (4711)`.
    pub(super) fn program(&self, process: usize) -> String {
        let reading = self.processes[process].reading;
        format!("{} ({})", reading.process.program, reading.name())
    }

    /// Returns the time of the counters of a process.
    pub(super) fn now(&self, process: usize) -> u64 {
        self.processes[process].reading.process.written
    }
}

/// The parts of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address<'a> {
    /// `tcp`, `ipc`, `inproc`.
    pub(super) transport: &'a str,
    /// Host of an address with a port; empty for a path.
    pub(super) host: &'a str,
    /// Port, or path.
    pub(super) path: &'a str,
}

impl<'a> Address<'a> {
    /// Returns the address of an endpoint: the resolved one, if there is one.
    pub(super) fn new(endpoint: &'a Endpoint) -> Self {
        Address::of(if endpoint.name.is_empty() { &endpoint.given } else { &endpoint.name })
    }

    pub(super) fn of(text: &'a str) -> Self {
        let (transport, rest) = text.split_once("://").unwrap_or(("", text));
        if matches!(transport, "ipc" | "inproc" | "") {
            return Address { transport, host: "", path: rest };
        }
        // A connecting address may begin with the local one: `tcp://local:port;host:port`.
        let rest = rest.rsplit_once(';').map_or(rest, |(_, rest)| rest);
        let rest = rest.split_once('/').map_or(rest, |(rest, _)| rest);
        let (host, path) = rest.rsplit_once(':').unwrap_or((rest, ""));
        Address { transport, host, path }
    }

    fn is_path(&self) -> bool {
        self.host.is_empty()
    }

    /// True if a listener on this address takes connections to `host` on the same machine.
    fn takes(&self, host: &str) -> bool {
        let plain = |host: &'a str| host.trim_start_matches('[').trim_end_matches(']');
        let own = plain(self.host);
        let any = matches!(own, "*" | "0.0.0.0" | "::" | "");
        let loopback = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "::1");
        any || own == host.trim_start_matches('[').trim_end_matches(']') || (loopback(own) && loopback(host))
    }
}

/// True if sockets of these types can exchange messages, as ZeroMQ's RFCs define.
pub(super) fn fits(one: &str, other: &str) -> bool {
    let peers: &[&str] = match one {
        "REQ" => &["REP", "ROUTER"],
        "REP" => &["REQ", "DEALER"],
        "DEALER" => &["REP", "DEALER", "ROUTER"],
        "ROUTER" => &["REQ", "DEALER", "ROUTER"],
        "PUB" | "XPUB" => &["SUB", "XSUB"],
        "SUB" | "XSUB" => &["PUB", "XPUB"],
        "PUSH" => &["PULL"],
        "PULL" => &["PUSH"],
        "PAIR" => &["PAIR"],
        "SERVER" => &["CLIENT"],
        "CLIENT" => &["SERVER"],
        "RADIO" => &["DISH"],
        "DISH" => &["RADIO"],
        "GATHER" => &["SCATTER"],
        "SCATTER" => &["GATHER"],
        "CHANNEL" => &["CHANNEL"],
        "PEER" => &["PEER"],
        _ => &[],
    };
    peers.contains(&other)
}
