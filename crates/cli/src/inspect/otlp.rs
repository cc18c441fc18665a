//! Sends the counters of all observed processes to an OpenTelemetry collector: OTLP over HTTP, in
//! JSON.
//!
//! Each process is a resource. The metrics have their OpenMetrics names. Counters are cumulative
//! and start when their socket or peer appeared.

use std::thread;

use serde_json::{Value, json};
use tautline_observe::{Endpoint, EndpointState, Peer, PeerState, Route, Socket};

use super::metrics::{FULL, Family, Kind, LOANS, PEERS, ROUTES, SOCKETS, full_queues, has_loans};
use super::post::{self, Client};
use super::{ProcessSnapshot, SocketSelection};
use crate::args::Metrics;
use crate::failure::{Failure, Result};

/// Default port of OTLP over HTTP, and default path for metrics.
const PORT: u16 = 4318;
const PATH: &str = "/v1/metrics";
/// Name of the only metric that an ended process also has.
const RUNNING: &str = "tautline_process_running";
/// Value of CUMULATIVE.
const TEMPORALITY: u64 = 2;

/// Sends the counters periodically. A failed request is reported, and the next one is sent as
/// usual.
pub fn push(url: &str, args: &Metrics) -> Result<()> {
    let variable = std::env::var("OTEL_EXPORTER_OTLP_HEADERS").ok();
    let headers = post::headers(&args.otlp_header, variable.as_deref())?;
    let client = Client::new(url, PORT, PATH, headers, args.otlp_trust.as_deref())?;
    let mut count = 0;
    loop {
        let (seen, faults) = super::all(SocketSelection::new(args.all));
        super::report_unreadable(&faults);
        let outcome = send(&client, document(&seen, args.peers).to_string());
        count += 1;
        let is_last = args.count.is_some_and(|most| count >= most);
        match outcome {
            Err(why) if is_last => return Err(Failure::failed(format!("{url}: {why}"))),
            Err(why) => notice!("taut: {url}: {why}"),
            Ok(()) if is_last => return Ok(()),
            Ok(()) => {}
        }
        thread::sleep(args.interval);
    }
}

fn send(client: &Client, body: String) -> std::result::Result<(), String> {
    let (status, answer) = client.post(body)?;
    if !(200..300).contains(&status) {
        let line = answer.lines().next().unwrap_or_default();
        return Err(format!("the server answered {status} {}", crate::format::escaped(line.as_bytes())));
    }
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    let rejected = &answer["partialSuccess"]["rejectedDataPoints"];
    let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0);
    if rejected > 0 {
        let why = answer["partialSuccess"]["errorMessage"].as_str().unwrap_or_default();
        return Err(format!(
            "the collector refused {rejected} data points: {}",
            crate::format::escaped(why.as_bytes())
        ));
    }
    Ok(())
}

/// Returns the ExportMetricsServiceRequest with all counters.
fn document(seen: &[ProcessSnapshot], with_peers: bool) -> Value {
    json!({ "resourceMetrics": seen.iter().map(|seen| resource(seen, with_peers)).collect::<Vec<_>>() })
}

fn resource(seen: &ProcessSnapshot, with_peers: bool) -> Value {
    let ProcessSnapshot { found, user, reading, .. } = seen;
    let process = &reading.process;
    let at = process.written;
    let mut metrics = vec![gauge(
        RUNNING,
        "1 if the process runs, 0 if it crashed or was killed",
        vec![point(&[], at, u64::from(found.is_running))],
    )];
    for family in SOCKETS {
        let points = reading.sockets.iter().map(|socket| (socket_labels(socket), socket.since, socket));
        metrics.extend(metric(family, points, at));
    }
    let endpoints = reading.endpoints.iter().filter_map(|endpoint| {
        let labels = [socket_labels(reading.socket(endpoint.socket)?), endpoint_labels(endpoint)].concat();
        let up = matches!(endpoint.state, EndpointState::Listening | EndpointState::Connected);
        Some(point(&labels, at, u64::from(up)))
    });
    metrics.push(gauge(
        "tautline_endpoint_up",
        "1 if the endpoint is bound or connected, otherwise 0",
        endpoints.collect(),
    ));
    let full = full_queues(reading).into_iter().map(|(socket, direction, count)| {
        let labels = [socket_labels(socket), vec![label("direction", direction)]].concat();
        point(&labels, at, count as u64)
    });
    metrics.push(gauge(FULL, "Peers whose queue is full at present, by direction", full.collect()));
    for family in LOANS.iter().filter(|_| has_loans(reading)) {
        metrics.extend(metric(family, [(Vec::new(), process.since, &reading.loans)].into_iter(), at));
    }
    for family in ROUTES {
        let points = reading.routes.iter().filter_map(|route| {
            let labels = [socket_labels(reading.socket(route.socket)?), route_labels(route)].concat();
            Some((labels, route.since, route))
        });
        metrics.extend(metric(family, points, at));
    }
    if with_peers {
        let labelled = |peer: &Peer| {
            let socket = reading.socket(peer.socket)?;
            Some(
                [
                    socket_labels(socket),
                    vec![label_of_number("peer", peer.id), label("address", &peer.address)],
                ]
                .concat(),
            )
        };
        for family in PEERS {
            // The session of a peer may have started after its counters.
            let points = reading
                .peers
                .iter()
                .filter_map(|peer| Some((labelled(peer)?, reading.socket(peer.socket)?.since, peer)));
            metrics.extend(metric(family, points, at));
        }
        let connected = reading.peers.iter().filter_map(|peer| {
            Some(point(&labelled(peer)?, at, u64::from(peer.state == PeerState::Connected)))
        });
        metrics.push(gauge(
            "tautline_peer_connected",
            "1 if the peer is connected, otherwise 0",
            connected.collect(),
        ));
        let measured = reading.peers.iter().filter(|peer| peer.round_trip_us > 0);
        let heartbeats = measured.filter_map(|peer| {
            let seconds = peer.round_trip_us as f64 / 1e6;
            Some(json!({ "attributes": labelled(peer)?, "timeUnixNano": nanos(at), "asDouble": seconds }))
        });
        let mut heartbeat = gauge(
            "tautline_peer_heartbeat_seconds",
            "Round trip time of the last heartbeat",
            heartbeats.collect(),
        );
        heartbeat["unit"] = "s".into();
        metrics.push(heartbeat);
    }
    metrics.retain(|metric| {
        let points = &metric["sum"]["dataPoints"];
        let points = if points.is_null() { &metric["gauge"]["dataPoints"] } else { points };
        points.as_array().is_some_and(|points| !points.is_empty())
    });
    if !found.is_running {
        // The gauges of a process that has ended would describe the past.
        metrics.retain(|metric| metric["gauge"].is_null() || metric["name"] == RUNNING);
    }
    let attributes = [
        label("service.name", &process.program),
        // Tells processes of one program apart, and copies of the library in one process.
        label("service.instance.id", &reading.name()),
        label_of_number("process.pid", process.pid.into()),
        label("process.owner", user),
        label("service.version", &process.version),
    ];
    json!({
        "resource": { "attributes": attributes },
        "scopeMetrics": [{ "scope": { "name": "taut", "version": env!("CARGO_PKG_VERSION") }, "metrics": metrics }],
    })
}

fn socket_labels(socket: &Socket) -> Vec<Value> {
    vec![label_of_number("socket", socket.id), label("type", &socket.type_name)]
}

fn route_labels(route: &Route) -> Vec<Value> {
    vec![label("route", &route.name), label("promise", &route.promise)]
}

fn endpoint_labels(endpoint: &Endpoint) -> Vec<Value> {
    let name = if endpoint.name.is_empty() { &endpoint.given } else { &endpoint.name };
    vec![label("endpoint", name), label("end", if endpoint.bound { "bound" } else { "connected" })]
}

/// Returns a metric of this family. Each record comes with its labels and its start time.
fn metric<'a, R: 'a>(
    family: &Family<R>,
    records: impl Iterator<Item = (Vec<Value>, u64, &'a R)>,
    at: u64,
) -> Option<Value> {
    let points: Vec<Value> = records
        .map(|(labels, since, record)| {
            let mut point = point(&labels, at, (family.value)(record));
            if family.kind != Kind::Gauge {
                point["startTimeUnixNano"] = nanos(since);
            }
            point
        })
        .collect();
    if points.is_empty() {
        return None;
    }
    let (unit, is_gauge) = match family.kind {
        Kind::Counter => ("1", false),
        Kind::ByteCounter => ("By", false),
        Kind::Gauge => ("1", true),
    };
    if is_gauge {
        return Some(gauge(family.name, family.help, points));
    }
    Some(json!({
        "name": family.name, "description": family.help, "unit": unit,
        "sum": { "aggregationTemporality": TEMPORALITY, "isMonotonic": true, "dataPoints": points },
    }))
}

fn gauge(name: &str, help: &str, points: Vec<Value>) -> Value {
    json!({ "name": name, "description": help, "unit": "1", "gauge": { "dataPoints": points } })
}

/// Protobuf encodes 64-bit numbers as strings in JSON.
fn point(labels: &[Value], at: u64, value: u64) -> Value {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    json!({ "attributes": labels, "timeUnixNano": nanos(at), "asInt": value.to_string() })
}

fn nanos(micros: u64) -> Value {
    micros.saturating_mul(1000).to_string().into()
}

fn label(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn label_of_number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}
