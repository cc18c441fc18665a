//! `taut metrics`: the counters of all observed processes in OpenMetrics. For OTLP see `otlp`.

use std::fmt::Write;

use tautline_observe::{EndpointState, Peer, PeerState, Reading, Route, Socket};

use super::http::{HttpReply, Server};
use super::{ProcessSnapshot, SocketSelection, otlp};
use crate::args::Metrics;
use crate::failure::Result;

/// Prints the metrics, or serves them over HTTP.
pub fn run(args: &Metrics) -> Result<()> {
    let (which, peers) = (SocketSelection::new(args.all), args.peers);
    let text = move || {
        let (seen, faults) = super::all(which);
        super::report_unreadable(&faults);
        text(&seen, faults.len(), peers)
    };
    if let Some(url) = &args.otlp {
        return otlp::push(url, args);
    }
    let Some(address) = &args.listen else { return crate::print(&text()) };
    let server = Server::bind(address)?;
    notice!("listening at http://{}/metrics", server.at);
    server.serve(move |path| match path {
        "/" | "/metrics" => HttpReply::new(TYPE, text()),
        _ => HttpReply::nothing(),
    })
}

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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
    Counter "tautline_socket_reconnects" reconnects "Connections lost and restored";
    Counter "tautline_socket_failed_connects" failed_connects "Failed connection attempts";
    Counter "tautline_socket_failed_handshakes" failed_handshakes "Failed or refused handshakes";
    Counter "tautline_socket_names_away" names_away "Failed lookups of names";
};

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

/// Returns all metrics as text.
fn text(seen: &[ProcessSnapshot], unreadable: usize, with_peers: bool) -> String {
    let mut text = String::new();
    head(&mut text, "tautline_process", "info", "", "An observed process");
    for ProcessSnapshot { reading, .. } in seen {
        let version = escaped(&reading.process.version);
        let _ = writeln!(text, "tautline_process_info{{{},version=\"{version}\"}} 1", of_process(reading));
    }
    head(
        &mut text,
        "tautline_process_running",
        "gauge",
        "",
        "1 if the process runs, 0 if it crashed or was killed",
    );
    for ProcessSnapshot { found, reading, .. } in seen {
        let _ = writeln!(
            text,
            "tautline_process_running{{{}}} {}",
            of_process(reading),
            u8::from(found.is_running)
        );
    }
    let _ = head_of_one(
        &mut text,
        "tautline_unreadable_processes",
        "Files of counters that could not be read",
        unreadable,
    );
    for family in SOCKETS {
        write_family(&mut text, family, seen, |reading| {
            reading.sockets.iter().map(|socket| (of_socket(reading, socket), socket)).collect()
        });
    }
    head(
        &mut text,
        "tautline_endpoint_up",
        "gauge",
        "",
        "1 if the endpoint is bound or connected, otherwise 0",
    );
    for ProcessSnapshot { reading, .. } in seen {
        for endpoint in &reading.endpoints {
            let Some(socket) = reading.socket(endpoint.socket) else { continue };
            let up = matches!(endpoint.state, EndpointState::Listening | EndpointState::Connected);
            let name = if endpoint.name.is_empty() { &endpoint.given } else { &endpoint.name };
            let bound = if endpoint.bound { "bound" } else { "connected" };
            let _ = writeln!(
                text,
                "tautline_endpoint_up{{{},endpoint=\"{}\",end=\"{bound}\"}} {}",
                of_socket(reading, socket),
                escaped(name),
                u8::from(up)
            );
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
        head(&mut text, "tautline_peer_connected", "gauge", "", "1 if the peer is connected, otherwise 0");
        for (labels, peer) in seen.iter().flat_map(|seen| peers_of(&seen.reading)) {
            let connected = u8::from(peer.state == PeerState::Connected);
            let _ = writeln!(text, "tautline_peer_connected{{{labels}}} {connected}");
        }
        head(
            &mut text,
            "tautline_peer_heartbeat_seconds",
            "gauge",
            "seconds",
            "Round trip time of the last heartbeat",
        );
        for (labels, peer) in seen.iter().flat_map(|seen| peers_of(&seen.reading)) {
            if peer.round_trip_us > 0 {
                let seconds = peer.round_trip_us as f64 / 1e6;
                let _ = writeln!(text, "tautline_peer_heartbeat_seconds{{{labels}}} {seconds}");
            }
        }
    }
    text += "# EOF\n";
    text
}

fn routes_of(reading: &Reading) -> Vec<(String, &Route)> {
    let labelled = reading.routes.iter().filter_map(|route| {
        let socket = of_socket(reading, reading.socket(route.socket)?);
        let [name, promise] = [&route.name, &route.promise].map(|text| escaped(text));
        Some((format!("{socket},route=\"{name}\",promise=\"{promise}\""), route))
    });
    labelled.collect()
}

fn peers_of(reading: &Reading) -> Vec<(String, &Peer)> {
    let labelled = reading.peers.iter().filter_map(|peer| {
        let socket = reading.socket(peer.socket)?;
        let address = escaped(&peer.address);
        Some((format!("{},peer=\"{}\",address=\"{address}\"", of_socket(reading, socket), peer.id), peer))
    });
    labelled.collect()
}

fn write_family<R>(
    text: &mut String,
    family: &Family<R>,
    seen: &[ProcessSnapshot],
    records: impl Fn(&Reading) -> Vec<(String, &R)>,
) {
    let (kind, unit, suffix) = match family.kind {
        Kind::Counter => ("counter", "", "_total"),
        Kind::ByteCounter => ("counter", "bytes", "_total"),
        Kind::Gauge => ("gauge", "", ""),
    };
    head(text, family.name, kind, unit, family.help);
    for ProcessSnapshot { reading, .. } in seen {
        for (labels, record) in records(reading) {
            let _ = writeln!(text, "{}{suffix}{{{labels}}} {}", family.name, (family.value)(record));
        }
    }
}

fn head(text: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
}

fn head_of_one(text: &mut String, name: &str, help: &str, value: usize) -> std::fmt::Result {
    head(text, name, "gauge", "", help);
    writeln!(text, "{name} {value}")
}

fn of_process(reading: &Reading) -> String {
    format!("pid=\"{}\",program=\"{}\"", reading.process.pid, escaped(&reading.process.program))
}

fn of_socket(reading: &Reading, socket: &Socket) -> String {
    format!("{},socket=\"{}\",type=\"{}\"", of_process(reading), socket.id, escaped(&socket.type_name))
}

/// Escapes a text for the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
