use super::*;
use crate::{Context, EndpointState, Event, PeerState, Process, SocketState, words};

const SECOND: u64 = 1_000_000;
/// When the readings here are made.
const NOW: u64 = 1_000 * SECOND;

fn socket(type_name: &str) -> Socket {
    Socket {
        id: 5,
        context: 1,
        type_name: type_name.into(),
        mechanism: "NULL".into(),
        since: NOW - 60 * SECOND,
        linger_ms: -1,
        ..Socket::default()
    }
}

fn endpoint(name: &str, bound: bool) -> Endpoint {
    let state = if bound { EndpointState::Listening } else { EndpointState::Connected };
    Endpoint { socket: 5, name: name.into(), given: name.into(), bound, state, ..Endpoint::default() }
}

fn peer() -> Peer {
    Peer {
        socket: 5,
        id: 3,
        state: PeerState::Connected,
        address: "tcp://10.0.0.7:40000".into(),
        limit_out: 1000,
        ..Peer::default()
    }
}

fn reading(socket: Socket, endpoints: Vec<Endpoint>, peers: Vec<Peer>) -> Reading {
    let process = Process { pid: 1, written: NOW, ..Process::default() };
    let contexts = vec![Context { id: 1, ..Context::default() }];
    Reading { process, contexts, sockets: vec![socket], endpoints, peers, events: Vec::new() }
}

/// The same ten seconds before.
fn before(reading: &Reading) -> Reading {
    let mut before = reading.clone();
    before.process.written -= 10 * SECOND;
    before
}

/// The only hint.
fn only(reading: &Reading, before: Option<&Reading>) -> Hint {
    let mut all = hints(reading, before);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

#[test]
fn nothing_is_said_of_what_works() {
    let mut subscriber = socket("SUB");
    (subscriber.subscriptions, subscriber.peers) = (1, 1);
    let mut busy = peer();
    (busy.messages_in, busy.queued_in) = (1000, 10);
    let now = reading(subscriber, vec![endpoint("tcp://127.0.0.1:1", false)], vec![busy]);
    let mut earlier = before(&now);
    earlier.peers[0].messages_in = 500;
    assert_eq!(hints(&now, None), []);
    assert_eq!(hints(&now, Some(&earlier)), []);
    assert_eq!(hints(&Reading::default(), Some(&Reading::default())), []);
}

#[test]
fn an_address_that_refuses_is_told_with_its_time() {
    let mut refused = endpoint("tcp://127.0.0.1:5555", false);
    refused.state = EndpointState::Waiting;
    refused.failures = 120;
    refused.failing_since = NOW - 12 * SECOND;
    (refused.failed_by, refused.error) = (words::CONNECT_FAILED, words::errno::REFUSED);
    refused.reason = "Connection refused".into();
    let hint = only(&reading(socket("PUSH"), vec![refused.clone()], vec![]), None);
    assert_eq!((hint.level, hint.rule, hint.socket), (Level::Trouble, "connect-failed", 5));
    assert_eq!(hint.what, "PUSH cannot connect to tcp://127.0.0.1:5555: Connection refused");
    assert_eq!(hint.evidence, "120 attempts in 12 s");
    assert!(hint.advice.contains("Nothing listens there"));
    // The first attempts say nothing yet.
    refused.failing_since = NOW - SECOND;
    assert_eq!(hints(&reading(socket("PUSH"), vec![refused], vec![]), None), []);
}

#[test]
fn a_handshake_that_fails_is_told_with_what_to_compare() {
    for (event, value, rule) in [
        (0x2000, 0x1100_0002, "same mechanism"),
        (0x2000, 0x1100_0001, "ZMQ_CURVE_SERVERKEY"),
        (0x4000, 400, "does not know this key"),
        (0x800, 32, "broke off"),
    ] {
        let mut failing = endpoint("tcp://127.0.0.1:5555", false);
        (failing.state, failing.failures) = (EndpointState::Waiting, 3);
        (failing.failed_by, failing.error) = (event, value);
        failing.reason = words::event_reason(event, value);
        let hint = only(&reading(socket("DEALER"), vec![failing], vec![]), None);
        assert_eq!((hint.level, hint.rule), (Level::Trouble, "handshake-failed"));
        assert!(hint.advice.contains(rule), "{hint}");
    }
}

#[test]
fn a_subscriber_without_a_subscription_is_told() {
    let now = reading(socket("SUB"), vec![endpoint("tcp://127.0.0.1:1", false)], vec![]);
    let hint = only(&now, None);
    assert_eq!((hint.level, hint.rule), (Level::Trouble, "no-subscription"));
    assert!(hint.advice.contains("ZMQ_SUBSCRIBE"));
    // It is of no use yet.
    assert_eq!(hints(&reading(socket("SUB"), vec![], vec![]), None), []);
}

#[test]
fn a_slow_subscriber_is_told_with_both_rates() {
    let mut slow = peer();
    (slow.dropped, slow.messages_out, slow.queued_out) = (470_000, 31_000, 1000);
    let now = reading(socket("PUB"), vec![], vec![slow]);
    let mut earlier = before(&now);
    (earlier.peers[0].dropped, earlier.peers[0].messages_out) = (0, 1000);
    let hint = only(&now, Some(&earlier));
    assert_eq!((hint.level, hint.rule, hint.peer), (Level::Warning, "drops", Some(3)));
    assert_eq!(hint.evidence, "it takes 3000/s of 50 K/s; 470 K dropped in all");
    assert!(hint.what.contains("tcp://10.0.0.7:40000"));
    // What was dropped before the earlier reading is no news.
    assert_eq!(hints(&now, Some(&before(&now))), []);
}

#[test]
fn a_full_queue_is_told_with_its_time_and_cause() {
    let mut full = peer();
    (full.queued_out, full.full_since, full.messages_out) = (1000, NOW - 30 * SECOND, 1000);
    let now = reading(socket("PUSH"), vec![], vec![full]);
    let hint = only(&now, Some(&before(&now)));
    assert_eq!((hint.level, hint.rule), (Level::Trouble, "queue-full"));
    assert!(hint.what.contains("sending waits: it takes nothing"), "{hint}");
    assert_eq!(hint.evidence, "1000 of 1000 messages for 30 s");
    let mut away = now;
    away.peers[0].state = PeerState::Connecting;
    assert!(only(&away, None).what.contains("it is not connected"));
}

#[test]
fn a_program_that_does_not_receive_is_told() {
    let mut stuck = peer();
    (stuck.messages_in, stuck.queued_in, stuck.full_in_since) = (1500, 1000, NOW - 20 * SECOND);
    let mut pull = socket("PULL");
    pull.peers = 1;
    let now = reading(pull, vec![endpoint("tcp://*:1", true)], vec![stuck]);
    let hint = only(&now, Some(&before(&now)));
    assert_eq!((hint.level, hint.rule), (Level::Trouble, "not-received"));
    assert!(hint.evidence.contains("1000 messages wait, and none was taken for 20 s"), "{hint}");
    assert!(hint.evidence.contains("ZMQ_RCVHWM"));
}

#[test]
fn a_router_that_knows_no_such_peer_is_told() {
    let mut router = socket("ROUTER");
    (router.unroutable, router.peers) = (7, 1);
    let now = reading(router, vec![endpoint("tcp://*:1", true)], vec![]);
    assert_eq!(only(&now, None).rule, "unroutable");
    assert_eq!(hints(&now, Some(&before(&now))), []);
}

#[test]
fn an_end_that_waits_says_for_what() {
    let mut closed = socket("PUSH");
    (closed.state, closed.queued_out) = (SocketState::Lingering, 5);
    let mut left = peer();
    (left.queued_out, left.state, left.endpoint) = (5, PeerState::Lingering, "tcp://10.0.0.9:1".into());
    left.address.clear();
    let mut now = reading(closed, vec![], vec![left]);
    now.contexts[0].terminating = NOW - 9 * SECOND;
    let hint = only(&now, None);
    assert_eq!((hint.level, hint.rule), (Level::Trouble, "linger"));
    assert!(hint.what.contains("tcp://10.0.0.9:1"), "{hint}");
    assert!(hint.evidence.contains("5 messages, waiting for 9 s; ZMQ_LINGER waits for ever"), "{hint}");
    // Or for sockets that were not closed.
    (now.sockets[0].state, now.sockets[0].queued_out) = (SocketState::Open, 0);
    assert_eq!(only(&now, None).rule, "open-at-exit");
}

#[test]
fn a_request_without_a_reply_is_told() {
    let mut asking = socket("REQ");
    (asking.messages_out, asking.messages_in, asking.peers) = (8, 7, 1);
    let mut silent = peer();
    silent.last_out = NOW - 40 * SECOND;
    let hint = only(&reading(asking, vec![], vec![silent]), None);
    assert_eq!((hint.level, hint.rule), (Level::Warning, "no-reply"));
    assert!(hint.evidence.contains("40 s ago"));
}

#[test]
fn a_limit_of_open_files_is_told() {
    let mut now = reading(socket("ROUTER"), vec![], vec![]);
    now.events = vec![Event {
        at: NOW - 3 * SECOND,
        socket: 5,
        code: 0x40,
        value: words::errno::TOO_MANY_FILES[0],
        reason: "Too many open files".into(),
        ..Event::default()
    }];
    let hint = only(&now, None);
    assert_eq!((hint.level, hint.rule), (Level::Trouble, "too-many-files"));
    assert!(hint.advice.contains("ulimit -n"));
}

#[test]
fn a_listener_without_peers_is_only_a_note_and_comes_last() {
    let mut now = reading(socket("SUB"), vec![endpoint("tcp://*:1", true)], vec![]);
    let all = hints(&now, None);
    assert_eq!(all.iter().map(|hint| hint.rule).collect::<Vec<_>>(), ["no-subscription", "no-peers"]);
    now.process.omitted = 3;
    assert_eq!(hints(&now, None).len(), 3);
}
