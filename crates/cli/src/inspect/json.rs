//! Converts readings to JSON, with the field names of `docs/reference/counters-file.md`.

use serde_json::{Map, Value, json};
use tautline_observe::{Context, Endpoint, Event, Loans, Peer, Process, Route, Socket, Topic};

use super::ProcessSnapshot;
use crate::format::escaped;

/// Creates an object with these fields. States become words; bytes become text with escapes.
macro_rules! object {
    ($record:expr, [$($plain:ident)*], [$($state:ident)*], [$($bytes:ident)*]) => {{
        let record = $record;
        let mut object = Map::new();
        $( object.insert(stringify!($plain).to_owned(), json!(record.$plain)); )*
        $( object.insert(stringify!($state).to_owned(), json!(record.$state.as_str())); )*
        $( object.insert(stringify!($bytes).to_owned(), json!(escaped(&record.$bytes))); )*
        object
    }};
}

fn process(record: &Process) -> Map<String, Value> {
    object!(
        record,
        [pid uid start_ticks since written interval_us look_ns looks omitted events program version tap],
        [],
        []
    )
}

fn context(record: &Context) -> Map<String, Value> {
    object!(
        record,
        [id since io_threads max_sockets terminating closed_sockets closed_discarded closed_discarding
         closed_last closed_linger_ms closed_unmatched closed_type closed_endpoint],
        [],
        []
    )
}

fn socket(record: &Socket) -> Map<String, Value> {
    object!(
        record,
        [id context type_code since send_hwm receive_hwm linger_ms heartbeat_ms options subscriptions peers
         messages_out bytes_out messages_in bytes_in queued_out queued_in dropped unroutable lost reconnects
         failed_connects failed_handshakes out_of_turn monitor names_away duplicates taken_over discarded unmatched
         lost_silent lost_closed brief discarded_unsent heartbeat_timeout_ms heartbeat_ttl_ms subscribed
         type_name mechanism],
        [state discarded_by],
        [routing_id astray duplicate_id unmatched_topic]
    )
}

fn endpoint(record: &Endpoint) -> Map<String, Value> {
    object!(
        record,
        [socket bound since failures failing_since error accepted failed_by lost_silent lost_closed failed_at
         given name reason mechanism resolved peer_type],
        [state],
        []
    )
}

fn peer(record: &Peer) -> Map<String, Value> {
    object!(
        record,
        [socket id connected_here since shared_memory messages_out bytes_out messages_in bytes_in queued_out
         queued_out_bytes queued_in queued_in_bytes limit_out limit_in dropped full full_since full_us
         full_in_since reconnects last_out last_in round_trip_us growing_since growing_from
         growing_in_since growing_in_from idle_since longest_idle_us reply_since longest_reply_us address local
         endpoint host mechanism user_id socket_type],
        [state],
        [routing_id]
    )
}

fn event(record: &Event) -> Map<String, Value> {
    object!(record, [at socket code value name local remote reason], [], [])
}

fn route(record: &Route) -> Map<String, Value> {
    object!(
        record,
        [socket since received done waiting dropped refused unwanted again known name promise],
        [],
        []
    )
}

fn topic(record: &Topic) -> Map<String, Value> {
    object!(record, [socket published at length], [], [prefix])
}

fn loans(record: &Loans) -> Map<String, Value> {
    object!(
        record,
        [lent returned held_bytes adopted copied exposed copied_pages short no_slab over_budget peer_limit
         no_place not_mapped refused encrypted forbidden],
        [state],
        []
    )
}

fn array(records: impl Iterator<Item = Map<String, Value>>) -> Value {
    Value::Array(records.map(Value::Object).collect())
}

/// Returns the end of a process, if it is known: its time, and its cause in words.
fn end(seen: &ProcessSnapshot) -> Value {
    let end = seen.found.end.filter(|_| !seen.found.is_running);
    end.map_or(Value::Null, |end| json!({ "at": end.at, "cause": end.cause.to_string() }))
}

/// Returns a process without its sockets, peers and other parts.
pub fn summary(seen: &ProcessSnapshot) -> Value {
    let reading = &seen.reading;
    let mut object = process(&reading.process);
    object.insert("runs".to_owned(), json!(seen.found.is_running));
    object.insert("end".to_owned(), end(seen));
    object.insert("copy".to_owned(), json!(reading.copy));
    object.insert("sockets".to_owned(), json!(reading.sockets.len()));
    object.insert("peers".to_owned(), json!(reading.peers.len()));
    object.insert("routes".to_owned(), json!(reading.routes.len()));
    Value::Object(object)
}

/// Returns a process with all its parts, or with only one of its sockets.
pub fn whole(seen: &ProcessSnapshot, only: Option<u64>) -> Value {
    let reading = &seen.reading;
    let wanted = |socket: u64| only.is_none_or(|only| only == socket);
    let mut object = process(&reading.process);
    let mut add = |name: &str, value: Value| object.insert(name.to_owned(), value);
    add("runs", json!(seen.found.is_running));
    add("end", end(seen));
    add("forked_calls", json!(reading.forked_calls));
    add("copy", json!(reading.copy));
    add("contexts", array(reading.contexts.iter().map(context)));
    add("sockets", array(reading.sockets.iter().filter(|one| wanted(one.id)).map(socket)));
    add("endpoints", array(reading.endpoints.iter().filter(|one| wanted(one.socket)).map(endpoint)));
    let peers = reading.peers.iter().filter(|one| wanted(one.socket)).map(|one| {
        let mut object = peer(one);
        if let Some(process) = one.process() {
            object.insert("process".to_owned(), json!(process));
            object.insert("program".to_owned(), json!(reading.programs.get(&process)));
        }
        object
    });
    add("peers", array(peers));
    add("loans", Value::Object(loans(&reading.loans)));
    add("routes", array(reading.routes.iter().filter(|one| wanted(one.socket)).map(route)));
    add("topics", array(reading.topics.iter().filter(|one| wanted(one.socket)).map(topic)));
    add("last_events", array(reading.events.iter().filter(|one| wanted(one.socket)).map(event)));
    Value::Object(object)
}
