//! `taut show`: prints a process or one of its sockets.

use tautline_observe::{
    Context, Endpoint, EndpointState, Event, Loans, Options, Peer, Reading, Route, Socket, SocketState, Topic,
};

use super::metrics::has_loans;
use super::table::{Column, Side, Table};
use super::units::{bytes, count, many, now, round_trip, span};
use super::{BySocket, ProcessName, ProcessSnapshot, SocketSelection, json};
use crate::args::Show;
use crate::failure::{Failure, Result};
use crate::format::escaped;

/// Maximum number of peers per socket, if all sockets are shown.
const SOME: usize = 10;
/// Maximum number of events per socket.
const EVENTS: usize = 20;

/// Shortest growth or wait of a queue that is mentioned, in microseconds.
const NOTABLE: u64 = 2_000_000;

/// Columns of the table of peers.
const PEERS: &[Column] = &[
    Column("PEER", Side::Right),
    Column("STATE", Side::Left),
    Column("TYPE", Side::Left),
    Column("ADDRESS", Side::Left),
    Column("OUT", Side::Right),
    Column("IN", Side::Right),
    Column("WAITING", Side::Left),
    Column("DROPPED", Side::Right),
    Column("IDLE", Side::Right),
    Column("TRIP", Side::Right),
    Column("KNOWN AS", Side::Left),
];

/// Prints the process or the socket.
pub fn run(args: &Show) -> Result<()> {
    let (process, socket) = target(&args.target)?;
    // A socket that the user names is shown even if it belongs to a monitor.
    let seen = super::snapshots_of(process, SocketSelection::new(args.all || socket.is_some()))?;
    if let Some(socket) = socket
        && seen.iter().all(|seen| seen.reading.socket(socket).is_none())
    {
        let all: Vec<String> = seen
            .iter()
            .flat_map(|seen| &seen.reading.sockets)
            .map(|socket| format!("{} ({})", socket.id, socket.type_name))
            .collect();
        return Err(Failure::usage(format!("the process {process} has no socket {socket}")).hint(
            if all.is_empty() {
                "it has no sockets".to_owned()
            } else {
                format!("it has {}", all.join(", "))
            },
        ));
    }
    let mut text = String::new();
    for seen in &seen {
        text += &match args.json {
            true => format!("{}\n", json::whole(seen, socket)),
            false => describe(seen, socket, now()),
        };
    }
    crate::print(&text)
}

/// Parses `PID` or `PID/SOCKET`. A further copy of the library in a process is `PID.COPY`.
pub fn target(text: &str) -> Result<(ProcessName, Option<u64>)> {
    let (process, socket) =
        text.split_once('/').map_or((text, None), |(process, socket)| (process, Some(socket)));
    let socket = socket.map(str::parse).transpose();
    match (process.parse(), socket) {
        (Ok(process), Ok(socket)) => Ok((process, socket)),
        _ => Err(Failure::usage(format!("{text:?} is neither a process nor a socket"))
            .hint("use PID, or PID/SOCKET: taut show PID lists the sockets")),
    }
}

fn describe(seen: &ProcessSnapshot, only: Option<u64>, now: u64) -> String {
    let ProcessSnapshot { found, reading, left_out, .. } = seen;
    let process = &reading.process;
    let age = match seen.end(now) {
        Some(end) => format!("{end}: this is its last state"),
        None => format!("counters {} old", span(process.written, now)),
    };
    // For a process that has ended, use the time of its last update.
    let now = if found.is_running { now } else { process.written };
    let mut text = format!(
        "{} ({}), Tautline {}, observed for {}, {age}\n",
        escaped(process.program.as_bytes()),
        reading.name(),
        escaped(process.version.as_bytes()),
        span(process.since, now),
    );
    if process.omitted > 0 {
        text += &format!(
            "  {} are missing, because the file of counters is full\n",
            many(process.omitted as usize, "record")
        );
    }
    for context in reading.contexts.iter().filter(|_| only.is_none()) {
        text += &format!("context {}: {}", context.id, many(context.io_threads as usize, "I/O thread"));
        if context.terminating > 0 {
            text += &format!(
                ", the program has waited for its termination for {}",
                span(context.terminating, now)
            );
        }
        text += &closed(context, now);
        text.push('\n');
    }
    if only.is_none() && has_loans(reading) {
        text += &describe_loans(&reading.loans);
    }
    let by = BySocket::new(reading);
    for socket in reading.sockets.iter().filter(|socket| only.is_none_or(|only| socket.id == only)) {
        text.push('\n');
        text += &describe_socket(socket, &by, only.is_some(), now);
        if let Some(route) = reading.route_of(socket.id) {
            text += &describe_route(route);
        }
        if only.is_some() {
            text += &events(reading, socket.id);
        }
    }
    if reading.sockets.is_empty() {
        text += "no sockets\n";
    }
    if *left_out > 0 {
        text += &format!(
            "\nand {} with monitor events: taut show {} --all\n",
            many(*left_out, "socket"),
            reading.name()
        );
    }
    text
}

fn describe_socket(socket: &Socket, by: &BySocket<'_>, whole: bool, now: u64) -> String {
    let (peers, endpoints) = (by.peers(socket.id), by.endpoints(socket.id));
    let mut text = format!("socket {}: {}", socket.id, socket.type_name);
    if !socket.routing_id.is_empty() {
        text += &format!(" {}", escaped(&socket.routing_id));
    }
    if socket.monitor {
        text += ", carries monitor events";
    }
    if socket.mechanism != "NULL" && !socket.mechanism.is_empty() {
        text += &format!(", {}", socket.mechanism);
    }
    if socket.state == SocketState::Lingering {
        text += ", closed, with unsent messages";
    }
    text += &format!(", {}\n", many(peers.len(), "peer"));
    text += &format!(
        "  out {} ({}), in {} ({}), {} queued to send and {} queued to receive\n",
        count(socket.messages_out),
        bytes(socket.bytes_out),
        count(socket.messages_in),
        bytes(socket.bytes_in),
        count(socket.queued_out),
        count(socket.queued_in)
    );
    let losses = [
        (socket.dropped, "dropped at the high-water mark".to_owned()),
        (socket.unroutable, "for unknown peers".to_owned()),
        (socket.unmatched, format!("without a subscriber{}", example(&socket.unmatched_topic))),
        (socket.discarded, format!("discarded ({})", socket.discarded_by)),
        (socket.lost, "lost with disconnected peers".to_owned()),
        (socket.discarded_unsent, "discarded unsent".to_owned()),
        (socket.duplicates, format!("refused duplicates of a routing id{}", example(&socket.duplicate_id))),
        (socket.taken_over, format!("routing ids taken over{}", example(&socket.duplicate_id))),
        (socket.reconnects, "reconnects".to_owned()),
        (socket.lost_silent, "connections lost because the peer was silent".to_owned()),
        (socket.lost_closed, "connections closed by the peer".to_owned()),
        (socket.brief, "brief connections".to_owned()),
        (socket.failed_connects, "failed connects".to_owned()),
        (socket.failed_handshakes, "failed handshakes".to_owned()),
        (socket.names_away, "failed lookups of names".to_owned()),
    ];
    let losses: Vec<String> = losses
        .iter()
        .filter(|(value, _)| *value > 0)
        .map(|(value, what)| format!("{} {what}", count(*value)))
        .collect();
    if !losses.is_empty() {
        text += &format!("  {}\n", losses.join(", "));
    }
    if whole {
        text += &format!("  {}\n", settings(socket));
    }
    for (published, what) in [(false, "subscribed to"), (true, "published lately")] {
        let of_kind = by.reading.topics_of(socket.id).filter(|topic| topic.published == published);
        let topics: Vec<String> = of_kind.map(topic).collect();
        if !topics.is_empty() {
            let more = (socket.subscriptions as usize).saturating_sub(topics.len());
            let more = if published || more == 0 { String::new() } else { format!(" and {more} more") };
            text += &format!("  {what} {}{more}\n", topics.join(", "));
        }
    }
    for endpoint in endpoints {
        text += &format!("  {}\n", describe_endpoint(endpoint, now));
    }
    let mut peers = peers.to_vec();
    if !whole {
        // Show the peers with the longest queues first.
        peers.sort_by_key(|peer| std::cmp::Reverse(peer.queued_out + peer.queued_in));
    }
    let shown = if whole { peers.len() } else { peers.len().min(SOME) };
    let mut table = Table::new(PEERS);
    for peer in &peers[..shown] {
        table.add_row(row(peer, by.program(peer), now));
    }
    if !table.is_empty() {
        text += &table.text("  ");
    }
    if shown < peers.len() {
        text +=
            &format!("  and {} more: taut show {}/{}\n", peers.len() - shown, by.reading.name(), socket.id);
    }
    text
}

/// Describes the closed sockets of a context.
fn closed(context: &Context, now: u64) -> String {
    if context.closed_sockets == 0 {
        return String::new();
    }
    let mut text = format!(", {}", many(context.closed_sockets as usize, "closed socket"));
    if context.closed_last > 0 {
        text += &format!(
            "\n  {} of them discarded {} unsent, {} matched no subscription, the last {} ago: {} {}, {}",
            count(context.closed_discarding),
            many(context.closed_discarded as usize, "message"),
            many(context.closed_unmatched as usize, "message"),
            span(context.closed_last, now),
            escaped(context.closed_type.as_bytes()),
            escaped(context.closed_endpoint.as_bytes()),
            linger(context.closed_linger_ms),
        );
    }
    text
}

/// Returns a text in parentheses, empty for an empty text.
fn example(text: &[u8]) -> String {
    if text.is_empty() { String::new() } else { format!(" (such as \"{}\")", escaped(text)) }
}

/// Returns a topic in quotation marks.
fn topic(topic: &Topic) -> String {
    let more = if topic.length > topic.prefix.len() as u64 { "..." } else { "" };
    format!("\"{}{more}\"", escaped(&topic.prefix))
}

fn linger(ms: i64) -> String {
    if ms < 0 { "unlimited linger".to_owned() } else { format!("linger {ms} ms") }
}

/// Describes the route between this socket and NATS, which `taut bridge` has.
fn describe_loans(loans: &Loans) -> String {
    let mut text = format!("loans {}: {} lent", loans.state, count(loans.lent));
    let others = [
        (loans.returned, "returned"),
        (loans.held_bytes, "bytes held by peers"),
        (loans.adopted, "received"),
        (loans.copied, "received with a copy"),
        (loans.exposed, "exposed"),
        (loans.copied_pages, "pages written"),
    ];
    for (value, what) in others.iter().filter(|(value, _)| *value > 0) {
        text += &format!(", {} {what}", count(*value));
    }
    let reasons = [
        (loans.short, "short"),
        (loans.no_slab, "elsewhere in memory"),
        (loans.over_budget, "memory used up"),
        (loans.peer_limit, "peer holds too many bytes"),
        (loans.no_place, "peer holds too many"),
        (loans.not_mapped, "not mapped yet"),
        (loans.refused, "refused by the peer"),
        (loans.encrypted, "encryption in the process"),
        (loans.forbidden, "off"),
    ];
    let copies: Vec<String> = reasons
        .iter()
        .filter(|(value, _)| *value > 0)
        .map(|(value, why)| format!("{} {why}", count(*value)))
        .collect();
    if !copies.is_empty() {
        text += &format!("\n  sent as copies: {}", copies.join(", "));
    }
    text.push('\n');
    text
}

fn describe_route(route: &Route) -> String {
    let [name, promise] = [&route.name, &route.promise].map(|text| escaped(text.as_bytes()));
    let mut text = format!(
        "  route {name} ({promise}): {} received, {} done, {} waiting",
        count(route.received),
        count(route.done),
        count(route.waiting)
    );
    let others = [
        (route.dropped, "dropped"),
        (route.refused, "refused"),
        (route.unwanted, "unwanted"),
        (route.again, "again"),
        (route.known, "known"),
    ];
    for (value, what) in others.iter().filter(|(value, _)| *value > 0) {
        text += &format!(", {} {what}", count(*value));
    }
    text.push('\n');
    text
}

fn settings(socket: &Socket) -> String {
    let limit = |hwm: u64| if hwm == 0 { "none".to_owned() } else { hwm.to_string() };
    let mut all = vec![
        format!("high-water marks {} out, {} in", limit(socket.send_hwm), limit(socket.receive_hwm)),
        linger(socket.linger_ms),
    ];
    if socket.heartbeat_ms > 0 {
        let ttl = match socket.heartbeat_ttl_ms {
            0 => String::new(),
            ttl => format!(", time to live {ttl} ms"),
        };
        let timeout = socket.heartbeat_timeout_ms;
        all.push(format!("heartbeat {} ms (timeout {timeout} ms{ttl})", socket.heartbeat_ms));
    }
    if socket.type_name.ends_with("SUB") {
        all.push(many(socket.subscriptions as usize, "subscription"));
    }
    let names = [
        (Options::IMMEDIATE, "IMMEDIATE"),
        (Options::CONFLATE, "CONFLATE (its messages are not counted)"),
        (Options::ROUTER_MANDATORY, "ROUTER_MANDATORY"),
        (Options::XPUB_NODROP, "XPUB_NODROP"),
        (Options::REQ_RELAXED, "REQ_RELAXED"),
        (Options::KEY_PAIR_MISMATCH, "the CURVE public key does not belong to the secret key"),
    ];
    all.extend(names.iter().filter(|(bit, _)| socket.options & bit != 0).map(|(_, name)| (*name).to_owned()));
    all.join(", ")
}

fn describe_endpoint(endpoint: &Endpoint, now: u64) -> String {
    let name = if endpoint.name.is_empty() { &endpoint.given } else { &endpoint.name };
    let mut text =
        format!("{} {}", if endpoint.bound { "bound to" } else { "connects to" }, escaped(name.as_bytes()));
    if !endpoint.given.is_empty() && endpoint.given != *name {
        text += &format!(" (as {})", escaped(endpoint.given.as_bytes()));
    }
    if !endpoint.resolved.is_empty() && endpoint.resolved != *name {
        text += &format!(" at {}", escaped(endpoint.resolved.as_bytes()));
    }
    match endpoint.state {
        EndpointState::Unknown => {}
        EndpointState::Listening => {
            text += &format!(", accepted {}", many(endpoint.accepted as usize, "peer"))
        }
        state => text += &format!(", {state} for {}", span(endpoint.since, now)),
    }
    if endpoint.failures > 0 {
        let failing = span(endpoint.failing_since, now);
        text += &format!(", {} failed in {failing}", many(endpoint.failures as usize, "attempt"));
    }
    if !endpoint.reason.is_empty() {
        text += &format!(": {}", escaped(endpoint.reason.as_bytes()));
    }
    text
}

fn row(peer: &Peer, program: Option<String>, now: u64) -> [String; 11] {
    let waiting = |queued: u64, limit: u64| match limit {
        0 => queued.to_string(),
        limit => format!("{queued}/{limit}"),
    };
    let mut queues = waiting(peer.queued_out, peer.limit_out);
    if peer.queued_in > 0 {
        queues += &format!(" in {}", waiting(peer.queued_in, peer.limit_in));
    }
    if peer.full_since > 0 {
        queues += &format!(" full for {}", span(peer.full_since, now));
    }
    for (since, what) in [
        (peer.growing_since, "growing"),
        (peer.growing_in_since, "growing"),
        (peer.idle_since, "untouched"),
        (peer.reply_since, "without a reply"),
    ] {
        if since > 0 && since + NOTABLE < now {
            queues += &format!(" {what} for {}", span(since, now));
        }
    }
    let last = peer.last_out.max(peer.last_in);
    let known = [escaped(&peer.routing_id), escaped(peer.user_id.as_bytes())];
    let known: Vec<String> = known.into_iter().filter(|name| !name.is_empty()).collect();
    let address = [&peer.address, &peer.endpoint].into_iter().find(|text| !text.is_empty());
    [
        peer.id.to_string(),
        peer.state.to_string(),
        escaped(peer.socket_type.as_bytes()),
        address.map_or_else(String::new, |text| escaped(text.as_bytes()))
            + &program.map_or_else(String::new, |program| format!(" {}", escaped(program.as_bytes())))
            + if peer.shared_memory { " (shared memory)" } else { "" },
        count(peer.messages_out),
        count(peer.messages_in),
        queues,
        count(peer.dropped),
        if last == 0 { "-".to_owned() } else { span(last, now) },
        round_trip(peer.round_trip_us),
        known.join(" "),
    ]
}

fn events(reading: &Reading, socket: u64) -> String {
    let of_socket: Vec<&Event> = reading.events.iter().filter(|event| event.socket == socket).collect();
    let mut text = String::new();
    for event in &of_socket[of_socket.len().saturating_sub(EVENTS)..] {
        let at = humantime::format_rfc3339_millis(
            std::time::UNIX_EPOCH + std::time::Duration::from_micros(event.at),
        );
        let ends = [&event.local, &event.remote].map(|end| escaped(end.as_bytes()));
        let ends =
            ends.iter().filter(|end| !end.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" ");
        text += format!("  {at} {} {ends} {}", event.name, escaped(event.reason.as_bytes())).trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loans_show_only_what_has_happened() {
        let mut loans = Loans::default();
        (loans.lent, loans.returned, loans.short) = (12, 9, 3);
        assert_eq!(describe_loans(&loans), "loans absent: 12 lent, 9 returned\n  sent as copies: 3 short\n");
        loans.short = 0;
        assert_eq!(describe_loans(&loans), "loans absent: 12 lent, 9 returned\n");
    }

    #[test]
    fn closed_sockets_are_shown_with_what_they_discarded() {
        let mut context = Context::default();
        assert_eq!(closed(&context, 10_000_000), "");
        (context.closed_sockets, context.closed_linger_ms) = (7, 0);
        assert_eq!(closed(&context, 10_000_000), ", 7 closed sockets");
        (context.closed_discarding, context.closed_discarded) = (3, 6);
        context.closed_last = 7_000_000;
        (context.closed_type, context.closed_endpoint) = ("PUSH".to_owned(), "tcp://host:5555".to_owned());
        assert_eq!(
            closed(&context, 10_000_000),
            ", 7 closed sockets\n  3 of them discarded 6 messages unsent, 0 messages matched no subscription, \
             the last 3s ago: PUSH tcp://host:5555, linger 0 ms"
        );
    }

    #[test]
    fn reasons_of_lost_messages_are_shown() {
        let mut reading = Reading::default();
        let mut socket = Socket::default();
        (socket.id, socket.type_name) = (3, "XPUB".to_owned());
        (socket.unmatched, socket.unmatched_topic) = (12, b"order".to_vec());
        (socket.discarded, socket.discarded_by) = (2, tautline_observe::DiscardReason::StaleReply);
        (socket.duplicates, socket.duplicate_id) = (1, b"worker".to_vec());
        (socket.lost_silent, socket.lost_closed, socket.brief) = (4, 5, 6);
        (socket.heartbeat_ms, socket.heartbeat_timeout_ms, socket.heartbeat_ttl_ms) = (100, 200, 300);
        socket.options = Options::KEY_PAIR_MISMATCH;
        reading.sockets.push(socket.clone());
        let mut peer = Peer::default();
        (peer.socket, peer.socket_type, peer.idle_since) = (3, "SUB".to_owned(), 1_000_000);
        reading.peers.push(peer);
        let mut endpoint = Endpoint::default();
        (endpoint.socket, endpoint.name) = (3, "tcp://host:5555".to_owned());
        endpoint.resolved = "tcp://10.0.0.7:5555".to_owned();
        reading.endpoints.push(endpoint);
        for (published, prefix, length) in [(false, "a", 1), (true, "orders.", 70), (true, "b", 1)] {
            let mut topic = Topic::default();
            (topic.socket, topic.published) = (3, published);
            (topic.prefix, topic.length) = (prefix.into(), length);
            reading.topics.push(topic);
        }
        let text = describe_socket(&socket, &BySocket::new(&reading), true, 10_000_000);
        for part in [
            "12 without a subscriber (such as \"order\"), 2 discarded (stale reply)",
            "1 refused duplicates of a routing id (such as \"worker\")",
            "4 connections lost because the peer was silent, 5 connections closed by the peer, 6 brief",
            "heartbeat 100 ms (timeout 200 ms, time to live 300 ms)",
            "the CURVE public key does not belong to the secret key",
            "  subscribed to \"a\"\n  published lately \"orders....\", \"b\"\n",
            "tcp://host:5555 at tcp://10.0.0.7:5555",
            "untouched for 9s",
            "  SUB  ",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
