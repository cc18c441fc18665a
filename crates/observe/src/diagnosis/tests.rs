use super::*;
use crate::{
    Context, Endpoint, EndpointState, Event, Peer, PeerState, Process, Socket, SocketState, event_text,
};

const SECOND: u64 = 1_000_000;
/// Time of the readings in these tests.
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
    Reading { process, contexts, sockets: vec![socket], endpoints, peers, ..Reading::default() }
}

/// Returns the reading of ten seconds earlier.
fn before(reading: &Reading) -> Reading {
    let mut before = reading.clone();
    before.process.written -= 10 * SECOND;
    before
}

/// Returns the findings of a process that runs.
fn findings(reading: &Reading, before: Option<&Reading>) -> Vec<Finding> {
    diagnose(&[Observed { before, ..Observed::new(reading) }])
}

/// Returns the only finding.
fn only(reading: &Reading, before: Option<&Reading>) -> Finding {
    let mut all = findings(reading, before);
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
    assert_eq!(findings(&now, None), []);
    assert_eq!(findings(&now, Some(&earlier)), []);
    assert_eq!(findings(&Reading::default(), Some(&Reading::default())), []);
}

#[test]
fn an_address_that_refuses_is_told_with_its_time() {
    let mut refused = endpoint("tcp://127.0.0.1:5555", false);
    refused.state = EndpointState::Waiting;
    refused.failures = 120;
    refused.failing_since = NOW - 12 * SECOND;
    (refused.failed_by, refused.error) = (event_text::CONNECT_FAILED, event_text::errno::REFUSED);
    refused.reason = "Connection refused".into();
    let finding = only(&reading(socket("PUSH"), vec![refused.clone()], vec![]), None);
    assert_eq!((finding.level, finding.rule, finding.socket), (Level::Trouble, "connect-failed", 5));
    assert_eq!(finding.what, "PUSH cannot connect to tcp://127.0.0.1:5555: Connection refused");
    assert_eq!(finding.evidence, "120 attempts in 12 s");
    assert!(finding.advice.contains("No program listens there"));
    // The first attempts give no finding yet.
    refused.failing_since = NOW - SECOND;
    assert_eq!(findings(&reading(socket("PUSH"), vec![refused], vec![]), None), []);
}

#[test]
fn a_handshake_that_fails_is_told_with_what_to_compare() {
    for (event, value, rule) in [
        (0x2000, 0x1100_0002, "same mechanism"),
        (0x2000, 0x1100_0001, "ZMQ_CURVE_SERVERKEY"),
        (0x4000, 400, "does not know this key"),
        (0x800, 32, "closed the connection"),
    ] {
        let mut failing = endpoint("tcp://127.0.0.1:5555", false);
        (failing.state, failing.failures) = (EndpointState::Waiting, 3);
        (failing.failed_by, failing.error) = (event, value);
        let finding = only(&reading(socket("DEALER"), vec![failing], vec![]), None);
        assert_eq!((finding.level, finding.rule), (Level::Trouble, "handshake-failed"));
        assert!(finding.advice.contains(rule), "{finding}");
    }
}

#[test]
fn a_local_peer_has_the_name_of_its_program() {
    let mut slow = peer();
    (slow.dropped, slow.address, slow.host) = (7, "ipc://".into(), "localhost:0:0:4711".into());
    let mut now = reading(socket("PUB"), vec![], vec![slow]);
    assert!(only(&now, None).what.contains(" for process 4711"), "{}", only(&now, None));
    now.programs.insert(4711, "orders.py".to_owned());
    assert!(only(&now, None).what.contains(" for orders.py (4711)"), "{}", only(&now, None));
}

#[test]
fn a_process_that_has_ended_has_one_finding() {
    let reading = reading(socket("PUSH"), vec![], vec![]);
    let ended = |seconds| {
        let state = ProcessState::Ended { seconds, cause: None };
        diagnose(&[Observed { state, ..Observed::new(&reading) }]).remove(0)
    };
    let finding = ended(26);
    assert_eq!((finding.level, finding.rule, finding.socket), (Level::Warning, "ended", 0));
    assert!(finding.what.starts_with("The process ended 26 s ago: "), "{finding}");
    assert!(ended(600).what.contains(" 10 min ago"));
    let finding = ended(86_400);
    assert!(finding.what.contains(" 24 h ago"));
    assert_eq!((finding.level, &*finding.next), (Level::Note, "taut show 1"));
}

#[test]
fn a_subscriber_without_a_subscription_is_told() {
    let now = reading(socket("SUB"), vec![endpoint("tcp://127.0.0.1:1", false)], vec![]);
    let finding = only(&now, None);
    assert_eq!((finding.level, finding.rule), (Level::Trouble, "no-subscription"));
    assert!(finding.advice.contains("ZMQ_SUBSCRIBE"));
    // The socket has just been created, so it gets no finding yet.
    assert_eq!(findings(&reading(socket("SUB"), vec![], vec![]), None), []);
}

#[test]
fn a_slow_subscriber_is_told_with_both_rates() {
    let mut slow = peer();
    (slow.dropped, slow.messages_out, slow.queued_out) = (470_000, 31_000, 1000);
    slow.full_since = NOW - SECOND;
    let now = reading(socket("PUB"), vec![], vec![slow]);
    let mut earlier = before(&now);
    (earlier.peers[0].dropped, earlier.peers[0].messages_out) = (0, 1000);
    let finding = only(&now, Some(&earlier));
    assert_eq!((finding.level, finding.rule, finding.peer), (Level::Warning, "drops", Some(3)));
    assert_eq!(finding.evidence, "it takes 3000/s of 50 K/s; 470 K dropped in total");
    assert!(finding.what.contains("tcp://10.0.0.7:40000"));
    // Messages dropped before the earlier reading give no finding.
    assert_eq!(findings(&now, Some(&before(&now))), []);
}

#[test]
fn a_mark_that_is_too_low_for_bursts_is_no_slow_subscriber() {
    let mut peer = peer();
    (peer.dropped, peer.messages_out, peer.limit_out, peer.full_us) = (9_000, 1_000, 10, SECOND);
    let now = reading(socket("PUB"), vec![], vec![peer]);
    let mut earlier = before(&now);
    (earlier.peers[0].dropped, earlier.peers[0].messages_out, earlier.peers[0].full_us) = (0, 0, 0);
    let finding = only(&now, Some(&earlier));
    assert_eq!((finding.level, finding.rule, finding.peer), (Level::Warning, "hwm-too-small", Some(3)));
    assert!(finding.what.contains("tcp://10.0.0.7:40000, which keeps up"), "{finding}");
    assert_eq!(
        finding.evidence,
        "9000 of 10 K dropped recently; the queue holds 10 messages, and was full for 10 % of the time; 0 wait now"
    );
    assert!(finding.advice.contains("ZMQ_SNDHWM"));
    let mut short = now.clone();
    short.peers[0].full_us = SECOND / 1000;
    assert!(only(&short, Some(&earlier)).evidence.contains("full for less than 1 % of the time"));
    // If the queue is full most of the time, or in one of the readings, the subscriber is the
    // cause.
    let mut slow = now.clone();
    slow.peers[0].full_us = 9 * SECOND;
    assert_eq!(only(&slow, Some(&earlier)).rule, "drops");
    slow.peers[0].full_us = 0;
    slow.peers[0].queued_out = 9;
    assert_eq!(only(&slow, Some(&earlier)).rule, "drops");
}

#[test]
fn a_full_queue_is_told_with_its_time_and_cause() {
    let mut full = peer();
    (full.queued_out, full.full_since, full.messages_out) = (1000, NOW - 30 * SECOND, 1000);
    let now = reading(socket("PUSH"), vec![], vec![full]);
    let finding = only(&now, Some(&before(&now)));
    assert_eq!((finding.level, finding.rule), (Level::Trouble, "queue-full"));
    assert!(finding.what.contains("sending waits: the peer takes no messages"), "{finding}");
    assert_eq!(finding.evidence, "1000 of 1000 messages, for 30 s");
    let mut away = now;
    away.peers[0].state = PeerState::Connecting;
    assert!(only(&away, None).what.contains("the peer is not connected"));
}

#[test]
fn a_program_that_does_not_receive_is_told() {
    let mut stuck = peer();
    (stuck.messages_in, stuck.queued_in, stuck.full_in_since) = (1500, 1000, NOW - 20 * SECOND);
    let mut pull = socket("PULL");
    pull.peers = 1;
    let now = reading(pull, vec![endpoint("tcp://*:1", true)], vec![stuck]);
    let finding = only(&now, Some(&before(&now)));
    assert_eq!((finding.level, finding.rule), (Level::Trouble, "not-received"));
    assert!(
        finding.evidence.contains("1000 messages wait, and the program took hardly any for 20 s"),
        "{finding}"
    );
    assert!(finding.evidence.contains("ZMQ_RCVHWM"));
}

#[test]
fn few_unread_messages_give_a_hint_later() {
    let mut waiting = peer();
    (waiting.messages_in, waiting.queued_in, waiting.last_in) = (41, 1, NOW - 12 * SECOND);
    let mut now = reading(socket("ROUTER"), vec![endpoint("tcp://*:1", true)], vec![waiting]);
    now.sockets[0].peers = 1;
    let finding = only(&now, Some(&before(&now)));
    assert_eq!((finding.level, finding.rule), (Level::Warning, "not-received"));
    assert!(
        finding
            .what
            .contains("has not read ROUTER at tcp://*:1 since a message arrived from tcp://10.0.0.7:40000"),
        "{finding}"
    );
    assert_eq!(finding.evidence, "1 message waits for 12 s (the counter may be too high)");
    // The program may still be processing the message.
    now.peers[0].last_in = NOW - 9 * SECOND;
    assert_eq!(findings(&now, Some(&before(&now))), []);
    // A reply shows that the request was processed.
    now.peers[0].last_in = NOW - 12 * SECOND;
    now.peers[0].messages_out = 41;
    now.sockets[0].type_name = "REP".into();
    assert_eq!(findings(&now, Some(&before(&now))), []);
}

#[test]
fn waiting_side_ranks_below_its_cause() {
    let mut waiting = socket("REQ");
    (waiting.id, waiting.messages_out, waiting.messages_in, waiting.peers) = (6, 8, 7, 1);
    let silent = Peer { socket: 6, last_out: NOW - 40 * SECOND, ..peer() };
    let mut stuck = peer();
    (stuck.messages_in, stuck.queued_in, stuck.last_in) = (41, 1, NOW - 12 * SECOND);
    let mut now = reading(socket("ROUTER"), vec![], vec![silent, stuck]);
    now.sockets.insert(0, waiting);
    let all = findings(&now, Some(&before(&now)));
    assert_eq!(all.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["not-received", "no-reply"]);
}

#[test]
fn a_router_that_knows_no_such_peer_is_told() {
    let mut router = socket("ROUTER");
    (router.unroutable, router.peers) = (7, 1);
    let now = reading(router, vec![endpoint("tcp://*:1", true)], vec![]);
    assert_eq!(only(&now, None).rule, "unroutable");
    assert_eq!(findings(&now, Some(&before(&now))), []);
}

#[test]
fn a_wrong_routing_id_is_told_beside_those_that_there_are() {
    let mut router = socket("ROUTER");
    (router.unroutable, router.peers, router.astray) = (7, 2, b"diger".to_vec());
    let known = |id: u64, name: &[u8]| Peer { id, routing_id: name.to_vec(), ..peer() };
    let peers = vec![known(1, b"digger"), known(2, b"\0\x01ab\xff")];
    let mut now = reading(router, vec![endpoint("tcp://*:1", true)], peers);
    let finding = only(&now, None);
    assert!(finding.what.ends_with("routing ids that no peer has, the last one to `diger`"), "{finding}");
    assert_eq!(
        finding.evidence,
        "7 dropped in total, 7 of them recently; its peers are `digger`, 0x00016162ff"
    );
    now.peers.extend((3..10).map(|id| known(id, b"other")));
    assert!(only(&now, None).evidence.ends_with(", `other` and 6 others"));
    now.peers.clear();
    assert!(only(&now, None).evidence.ends_with("it has no peer with a routing id"));
}

#[test]
fn a_reply_that_is_owed_is_told_where_it_is_owed() {
    let mut server = socket("REP");
    (server.out_of_turn, server.peers) = (40, 1);
    let mut client = peer();
    (client.messages_in, client.messages_out) = (8, 7);
    (client.last_in, client.last_out) = (NOW - 12 * SECOND, NOW - 13 * SECOND);
    let mut now = reading(server, vec![endpoint("tcp://*:5", true)], vec![client]);
    let mut earlier = before(&now);
    earlier.sockets[0].out_of_turn = 10;
    let finding = only(&now, Some(&earlier));
    assert_eq!((finding.level, finding.rule, finding.peer), (Level::Trouble, "out-of-step", Some(3)));
    assert_eq!(finding.what, "REP at tcp://*:5 has not replied to tcp://10.0.0.7:40000, but receives again");
    assert_eq!(
        finding.evidence,
        "its request arrived 12 s ago; 30 calls were refused recently (EFSM), 40 in total"
    );
    // The program seems to be processing the request.
    let finding = only(&now, Some(&before(&now)));
    assert_eq!((finding.level, finding.rule), (Level::Note, "not-replied"));
    assert_eq!(finding.evidence, "the request arrived 12 s ago");
    // A REQ does not wait for a reply that was lost with a connection.
    now.peers[0].last_out = NOW;
    assert_eq!(findings(&now, Some(&before(&now))), []);
    // A call out of turn may also have another cause.
    now.peers[0].messages_out = 8;
    assert_eq!(
        only(&now, None).what,
        "The program calls send and receive of REP at tcp://*:5 in the wrong order"
    );
}

#[test]
fn a_request_that_is_sent_again_is_told() {
    let mut asking = socket("REQ");
    (asking.messages_out, asking.messages_in, asking.peers, asking.out_of_turn) = (8, 7, 1, 1);
    let mut silent = peer();
    silent.last_out = NOW - 40 * SECOND;
    let mut now = reading(asking, vec![endpoint("tcp://10.0.0.7:5", false)], vec![silent]);
    let finding = only(&now, None);
    assert_eq!((finding.level, finding.rule), (Level::Warning, "out-of-step"));
    assert!(
        finding.what.contains("sends again before the reply of tcp://10.0.0.7:40000 has arrived"),
        "{finding}"
    );
    assert_eq!(finding.evidence, "1 call was refused recently (EFSM), 1 in total");
    // A relaxed REQ does not wait for the earlier reply once a later one has arrived.
    (now.sockets[0].out_of_turn, now.sockets[0].options) = (0, crate::Options::REQ_RELAXED);
    assert_eq!(only(&now, None).rule, "no-reply");
    now.peers[0].last_in = NOW - 39 * SECOND;
    assert_eq!(findings(&now, None), []);
}

#[test]
fn old_events_give_no_hint() {
    let mut attacked = endpoint("tcp://*:5555", true);
    (attacked.failures, attacked.failed_by, attacked.error) = (3, 0x2000, 0x1100_0001);
    attacked.failing_since = NOW - 90 * SECOND;
    let mut now = reading(socket("REP"), vec![attacked], vec![]);
    let mut earlier = before(&now);
    assert_eq!(findings(&now, Some(&earlier)), []);
    earlier.endpoints[0].failures = 2;
    assert_eq!(only(&now, Some(&earlier)).rule, "handshake-failed");
    now.endpoints[0].failures = 0;
    now.sockets[0].peers = 1;
    let refused = Event { code: 0x40, value: event_text::errno::TOO_MANY_FILES[0], ..Event::default() };
    now.events = vec![Event { at: NOW - 61 * SECOND, socket: 5, ..refused }];
    assert_eq!(findings(&now, None), []);
}

#[test]
fn a_process_that_stands_still_is_told_with_the_reason() {
    let reading = reading(socket("PUSH"), vec![], vec![]);
    let stalled = |seconds, state| {
        let state = ProcessState::StandsStill { seconds, state };
        diagnose(&[Observed { state, ..Observed::new(&reading) }]).remove(0)
    };
    let finding = stalled(7, Some('T'));
    assert_eq!((finding.level, finding.rule, finding.socket), (Level::Trouble, "stands-still", 0));
    assert_eq!(finding.what, "The process stands still: it is stopped by a signal");
    assert!(finding.evidence.contains("for 7 s"));
    assert!(stalled(7, None).what.ends_with("it is not running"));
}

#[test]
fn worst_peers_are_named_and_others_counted() {
    let full = |id: u64| Peer {
        id,
        full_since: NOW - (id + 3) * SECOND,
        address: format!("tcp://10.0.0.7:{id}"),
        queued_out: 1000,
        ..peer()
    };
    let now = reading(socket("PUSH"), vec![], (1..=50).map(full).collect());
    let all = findings(&now, None);
    assert_eq!(all.iter().map(|finding| finding.peer).collect::<Vec<_>>(), [Some(50), Some(49), Some(48)]);
    assert!(all[2].evidence.ends_with("; the same for 47 more peers"), "{}", all[2]);
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
    let finding = only(&now, None);
    assert_eq!((finding.level, finding.rule), (Level::Trouble, "linger"));
    assert!(finding.what.contains("tcp://10.0.0.9:1"), "{finding}");
    assert!(
        finding.evidence.contains("5 messages, waiting for 9 s; ZMQ_LINGER lets them wait for ever"),
        "{finding}"
    );
    // Sockets that were not closed also hold up the process.
    (now.sockets[0].state, now.sockets[0].queued_out) = (SocketState::Open, 0);
    assert_eq!(only(&now, None).rule, "open-at-exit");
}

#[test]
fn a_request_without_a_reply_is_told() {
    let mut asking = socket("REQ");
    (asking.messages_out, asking.messages_in, asking.peers) = (8, 7, 1);
    let mut silent = peer();
    silent.last_out = NOW - 40 * SECOND;
    let finding = only(&reading(asking, vec![], vec![silent]), None);
    assert_eq!((finding.level, finding.rule), (Level::Warning, "no-reply"));
    assert!(finding.evidence.contains("40 s ago"));
}

#[test]
fn a_limit_of_open_files_is_told() {
    let mut now = reading(socket("ROUTER"), vec![], vec![]);
    now.events = vec![Event {
        at: NOW - 3 * SECOND,
        socket: 5,
        code: 0x40,
        value: event_text::errno::TOO_MANY_FILES[0],
        reason: "Too many open files".into(),
        ..Event::default()
    }];
    let finding = only(&now, None);
    assert_eq!((finding.level, finding.rule), (Level::Trouble, "too-many-files"));
    assert!(finding.advice.contains("ulimit -n"));
}

#[test]
fn a_listener_without_peers_is_only_a_note_and_comes_last() {
    let mut now = reading(socket("SUB"), vec![endpoint("tcp://*:1", true)], vec![]);
    let all = findings(&now, None);
    assert_eq!(all.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["no-subscription", "no-peers"]);
    now.process.omitted = 3;
    assert_eq!(findings(&now, None).len(), 3);
}

/// Measures the rules: `cargo test --release -p tautline-observe -- --ignored --nocapture
/// many_peers`.
#[test]
#[ignore = "a measurement"]
fn the_cost_of_many_peers() {
    for count in [1_000, 10_000, 50_000] {
        // First one socket with all peers, then as many sockets with one peer each.
        for sockets in [1, count] {
            let peers = (0..count).map(|id| Peer {
                id,
                socket: 5 + id % sockets,
                dropped: id % 2,
                queued_in: 3,
                messages_in: 3,
                ..peer()
            });
            let mut now = reading(socket("PUB"), vec![], peers.collect());
            now.sockets = (0..sockets).map(|id| Socket { id: 5 + id, ..socket("PUB") }).collect();
            now.endpoints =
                (0..sockets).map(|id| Endpoint { socket: 5 + id, ..endpoint("tcp://*:1", true) }).collect();
            let earlier = before(&now);
            let began = std::time::Instant::now();
            let found = findings(&now, Some(&earlier)).len();
            println!("{count} peers of {sockets} sockets: {:?}, {found} findings", began.elapsed());
        }
    }
}
