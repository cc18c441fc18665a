//! `taut metrics`: the counters of all observed processes in the text format of Prometheus, or in
//! OpenMetrics for a client that asks for it. For OTLP see `otlp`.

mod exposition;

use tautline_observe::{EndpointState, Loans, Peer, PeerState, Reading, Route, Socket};

use super::http::{HttpReply, Server};
use super::{BySocket, ProcessSnapshot, SocketSelection, otlp};
use crate::args::Metrics;
use crate::failure::Result;
use exposition::{Exposition, Kind as Type, Syntax, escaped};

/// Prints the metrics, or serves them over HTTP.
pub fn run(args: &Metrics) -> Result<()> {
    let (which, peers) = (SocketSelection::new(args.all), args.peers);
    let text = move |syntax| {
        let (seen, faults) = super::all(which);
        super::report_unreadable(&faults);
        text(syntax, &seen, faults.len(), peers)
    };
    if let Some(url) = &args.otlp {
        return otlp::push(url, args);
    }
    let Some(address) = &args.listen else { return crate::print(&text(Syntax::Prometheus)) };
    let server = Server::bind(address)?;
    notice!("listening at http://{}/metrics", server.at);
    server.serve(move |request| match &*request.path {
        "/" | "/metrics" => {
            let syntax = Syntax::wanted(&request.accept);
            HttpReply::new(syntax.content_type(), text(syntax))
        }
        _ => HttpReply::nothing(),
    })
}

/// Metrics with the same name, for sockets or peers.
pub struct Family<R> {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub value: fn(&R) -> u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Counter of messages or events.
    Counter,
    /// Value that can decrease.
    Gauge,
    /// Counter of bytes.
    ByteCounter,
}

macro_rules! families {
    ($record:ty: $($kind:ident $name:literal $value:ident $help:literal;)*) => {
        &[$(Family::<$record> { name: $name, kind: Kind::$kind, help: $help, value: |record| record.$value }),*]
    };
}

/// Metrics of sockets.
pub const SOCKETS: &[Family<Socket>] = families! { Socket:
    Counter "tautline_socket_messages_sent" messages_out "Messages handed to the peers' queues";
    ByteCounter "tautline_socket_sent_bytes" bytes_out "Their bytes";
    Counter "tautline_socket_messages_received" messages_in "Messages received from the peers";
    ByteCounter "tautline_socket_received_bytes" bytes_in "Their bytes";
    Gauge "tautline_socket_queued_to_send" queued_out "Messages queued for sending";
    Gauge "tautline_socket_queued_to_receive" queued_in "Messages queued for the program";
    Gauge "tautline_socket_peers" peers "Peers that are connected or being connected";
    Counter "tautline_socket_dropped" dropped "Messages not sent because a peer was at its high-water mark";
    Counter "tautline_socket_unroutable" unroutable "Messages not sent because the peer is unknown";
    Counter "tautline_socket_lost" lost "Messages not delivered because the peer disconnected permanently";
    Counter "tautline_socket_discarded" discarded "Messages discarded because their form or their time was wrong";
    Counter "tautline_socket_discarded_unsent" discarded_unsent "Messages discarded unsent after the socket was closed";
    Counter "tautline_socket_duplicates" duplicates "Peers refused because another peer has their routing id";
    Counter "tautline_socket_reconnects" reconnects "Connections lost and restored";
    Counter "tautline_socket_failed_connects" failed_connects "Failed connection attempts";
    Counter "tautline_socket_failed_handshakes" failed_handshakes "Failed or refused handshakes";
    Counter "tautline_socket_names_away" names_away "Failed lookups of names";
};

/// Metrics of the loans of a process.
pub const LOANS: &[Family<Loans>] = families! { Loans:
    Counter "tautline_loans_lent" lent "Large bodies over ipc lent to peers";
    Counter "tautline_loans_returned" returned "Loans that peers have returned";
    Gauge "tautline_loans_held_bytes" held_bytes "Bytes of the loans that peers hold";
    Counter "tautline_loans_adopted" adopted "Loans received from peers without a copy";
    Counter "tautline_loans_copied" copied "Loans received from peers with a copy";
    Counter "tautline_loans_exposed" exposed "Received loans that the program may write to";
    Counter "tautline_loans_copied_pages" copied_pages "Pages of loans that the program has written to";
    Counter "tautline_loans_short" short "Bodies copied because they are below the limit for loans";
    Counter "tautline_loans_no_slab" no_slab "Bodies copied because they lie elsewhere in memory";
    Counter "tautline_loans_over_budget" over_budget "Bodies copied because the memory for loans is used up";
    Counter "tautline_loans_peer_limit" peer_limit "Bodies copied because the peer holds too many bytes";
    Counter "tautline_loans_no_place" no_place "Bodies copied because the peer holds too many loans";
    Counter "tautline_loans_not_mapped" not_mapped "Bodies copied because the peer has not mapped their memory yet";
    Counter "tautline_loans_refused" refused "Bodies copied because the peer could not map their memory";
    Counter "tautline_loans_encrypted" encrypted "Bodies copied because a socket of the process encrypts";
    Counter "tautline_loans_forbidden" forbidden "Bodies copied because a setting has turned loans off";
};

/// True if the process has lent or received a loan, or tried to.
pub fn has_loans(reading: &Reading) -> bool {
    LOANS.iter().any(|family| (family.value)(&reading.loans) > 0)
}

/// Metrics of routes.
pub const ROUTES: &[Family<Route>] = families! { Route:
    Counter "tautline_route_received" received "Messages received at the start of the route";
    Counter "tautline_route_done" done "Messages delivered as the route promises";
    Gauge "tautline_route_waiting" waiting "Messages that the bridge still has to deliver";
    Counter "tautline_route_dropped" dropped "Messages dropped by a route that promises nothing";
    Counter "tautline_route_refused" refused "Messages that the route cannot carry";
    Counter "tautline_route_unwanted" unwanted "Messages without a receiver";
    Counter "tautline_route_again" again "Repeated delivery attempts";
    Counter "tautline_route_known" known "Messages that the stream already had";
};

/// Metrics of peers.
pub const PEERS: &[Family<Peer>] = families! { Peer:
    Counter "tautline_peer_messages_sent" messages_out "Messages handed to the peer's queue";
    ByteCounter "tautline_peer_sent_bytes" bytes_out "Their bytes";
    Counter "tautline_peer_messages_received" messages_in "Messages received from the peer";
    ByteCounter "tautline_peer_received_bytes" bytes_in "Their bytes";
    Gauge "tautline_peer_queued_to_send" queued_out "Messages queued for sending to the peer";
    Gauge "tautline_peer_queued_to_receive" queued_in "Messages from the peer queued for the program";
    Counter "tautline_peer_dropped" dropped "Messages not sent because the peer was at its high-water mark";
    Counter "tautline_peer_full" full "Times that a message found the peer's queue full";
    Counter "tautline_peer_reconnects" reconnects "Times that the connection was lost and restored";
};

/// Returns all metrics as text. A process that has ended has its counters, which keep their last
/// values, and no gauges, which would describe the past.
fn text(syntax: Syntax, seen: &[ProcessSnapshot], unreadable: usize, with_peers: bool) -> String {
    let mut text = Exposition::new(syntax);
    text.head("tautline_process", Type::Info, "", "An observed process");
    for seen in seen {
        let version = escaped(&seen.reading.process.version);
        text.sample(&format!("{},version=\"{version}\"", of_process(seen)), 1);
    }
    let help = "1 if the process runs, 0 if it crashed or was killed";
    text.head("tautline_process_running", Type::Gauge, "", help);
    for seen in seen {
        text.sample(&of_process(seen), u8::from(seen.found.is_running));
    }
    let help = "Time of the end of a process that crashed or was killed, or of its last counters";
    text.head("tautline_process_end_time_seconds", Type::Gauge, "seconds", help);
    for seen in seen.iter().filter(|seen| !seen.found.is_running) {
        let at = seen.found.end.map_or(seen.reading.process.written, |end| end.at);
        text.sample(&of_process(seen), at as f64 / 1e6);
    }
    let help = "Files of counters that could not be read";
    text.head("tautline_unreadable_processes", Type::Gauge, "", help);
    text.sample("", unreadable);
    for family in SOCKETS {
        write_family(&mut text, family, seen, |seen| {
            seen.reading.sockets.iter().map(|socket| (of_socket(seen, socket), socket)).collect()
        });
    }
    let running = || seen.iter().filter(|seen| seen.found.is_running);
    let help = "1 if the endpoint is bound or connected, otherwise 0";
    text.head("tautline_endpoint_up", Type::Gauge, "", help);
    for seen in running() {
        for endpoint in &seen.reading.endpoints {
            let Some(socket) = seen.reading.socket(endpoint.socket) else { continue };
            let up = matches!(endpoint.state, EndpointState::Listening | EndpointState::Connected);
            let name = if endpoint.name.is_empty() { &endpoint.given } else { &endpoint.name };
            let bound = if endpoint.bound { "bound" } else { "connected" };
            let labels =
                format!("{},endpoint=\"{}\",end=\"{bound}\"", of_socket(seen, socket), escaped(name));
            text.sample(&labels, u8::from(up));
        }
    }
    let help = "Peers whose queue is full at present, by direction";
    text.head(FULL, Type::Gauge, "", help);
    for seen in running() {
        for (socket, direction, count) in full_queues(&seen.reading) {
            text.sample(&format!("{},direction=\"{direction}\"", of_socket(seen, socket)), count);
        }
    }
    for family in LOANS {
        if seen.iter().any(|seen| has_loans(&seen.reading)) {
            write_family(&mut text, family, seen, |seen| vec![(of_process(seen), &seen.reading.loans)]);
        }
    }
    for family in ROUTES {
        if seen.iter().any(|seen| !seen.reading.routes.is_empty()) {
            write_family(&mut text, family, seen, routes_of);
        }
    }
    if with_peers {
        for family in PEERS {
            write_family(&mut text, family, seen, peers_of);
        }
        text.head("tautline_peer_connected", Type::Gauge, "", "1 if the peer is connected, otherwise 0");
        for (labels, peer) in running().flat_map(peers_of) {
            text.sample(&labels, u8::from(peer.state == PeerState::Connected));
        }
        let help = "Round trip time of the last heartbeat";
        text.head("tautline_peer_heartbeat_seconds", Type::Gauge, "seconds", help);
        for (labels, peer) in running().flat_map(peers_of) {
            if peer.round_trip_us > 0 {
                text.sample(&labels, peer.round_trip_us as f64 / 1e6);
            }
        }
    }
    text.end()
}

/// Name of the metric of full queues.
pub const FULL: &str = "tautline_socket_full_queues";

/// Returns the number of full queues of each socket and direction.
pub fn full_queues(reading: &Reading) -> Vec<(&Socket, &'static str, usize)> {
    let by = BySocket::new(reading);
    let of_socket = |socket| {
        let count = |since: fn(&Peer) -> u64| by.peers(socket).iter().filter(|peer| since(peer) > 0).count();
        [("out", count(|peer| peer.full_since)), ("in", count(|peer| peer.full_in_since))]
    };
    let sockets = reading.sockets.iter();
    let counted = sockets.flat_map(|one| of_socket(one.id).map(|(direction, count)| (one, direction, count)));
    counted.collect()
}

fn routes_of(seen: &ProcessSnapshot) -> Vec<(String, &Route)> {
    let reading = &seen.reading;
    let labelled = reading.routes.iter().filter_map(|route| {
        let socket = of_socket(seen, reading.socket(route.socket)?);
        let [name, promise] = [&route.name, &route.promise].map(|text| escaped(text));
        Some((format!("{socket},route=\"{name}\",promise=\"{promise}\""), route))
    });
    labelled.collect()
}

fn peers_of(seen: &ProcessSnapshot) -> Vec<(String, &Peer)> {
    let reading = &seen.reading;
    let labelled = reading.peers.iter().filter_map(|peer| {
        let socket = reading.socket(peer.socket)?;
        let address = escaped(&peer.address);
        Some((format!("{},peer=\"{}\",address=\"{address}\"", of_socket(seen, socket), peer.id), peer))
    });
    labelled.collect()
}

fn write_family<R>(
    text: &mut Exposition,
    family: &Family<R>,
    seen: &[ProcessSnapshot],
    records: impl Fn(&ProcessSnapshot) -> Vec<(String, &R)>,
) {
    let (kind, unit) = match family.kind {
        Kind::Counter => (Type::Counter, ""),
        Kind::ByteCounter => (Type::Counter, "bytes"),
        Kind::Gauge => (Type::Gauge, ""),
    };
    text.head(family.name, kind, unit, family.help);
    for seen in seen {
        if family.kind == Kind::Gauge && !seen.found.is_running {
            continue;
        }
        for (labels, record) in records(seen) {
            text.sample(&labels, (family.value)(record));
        }
    }
}

/// Returns the labels of a process. A further copy of the library in the process also has the label
/// `copy`, because its socket numbers begin at 1 again.
fn of_process(seen: &ProcessSnapshot) -> String {
    let ProcessSnapshot { user, reading, .. } = seen;
    let copy = if reading.copy == 0 { String::new() } else { format!(",copy=\"{}\"", reading.copy) };
    let [program, user] = [&reading.process.program, user].map(|text| escaped(text));
    format!("pid=\"{}\"{copy},program=\"{program}\",user=\"{user}\"", reading.process.pid)
}

fn of_socket(seen: &ProcessSnapshot, socket: &Socket) -> String {
    format!("{},socket=\"{}\",type=\"{}\"", of_process(seen), socket.id, escaped(&socket.type_name))
}
