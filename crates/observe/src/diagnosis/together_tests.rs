//! Tests of the rules about several processes.

use super::*;
use crate::{
    Context, DiscardReason, Endpoint, EndpointState, Options, Peer, PeerState, Process, Socket, Topic,
    event_text, event_text::errno,
};

const SECOND: u64 = 1_000_000;
const NOW: u64 = 1_000 * SECOND;

/// A process with one context.
fn process(pid: u32, program: &str) -> Reading {
    let process = Process { pid, program: program.into(), written: NOW, ..Process::default() };
    Reading { process, contexts: vec![Context { id: 1, ..Context::default() }], ..Reading::default() }
}

fn add_socket<'a>(reading: &'a mut Reading, id: u64, type_name: &str) -> &'a mut Socket {
    reading.sockets.push(Socket {
        id,
        context: 1,
        type_name: type_name.into(),
        since: NOW - 60 * SECOND,
        linger_ms: -1,
        ..Socket::default()
    });
    reading.sockets.last_mut().unwrap()
}

fn add_bound<'a>(reading: &'a mut Reading, socket: u64, name: &str) -> &'a mut Endpoint {
    reading.endpoints.push(Endpoint {
        socket,
        bound: true,
        name: name.into(),
        given: name.into(),
        state: EndpointState::Listening,
        ..Endpoint::default()
    });
    reading.endpoints.last_mut().unwrap()
}

/// An endpoint to which no connection comes about.
fn add_failing<'a>(reading: &'a mut Reading, socket: u64, name: &str, event: u32) -> &'a mut Endpoint {
    reading.endpoints.push(Endpoint {
        socket,
        name: name.into(),
        given: name.into(),
        state: EndpointState::Waiting,
        failures: 9,
        failing_since: NOW - 12 * SECOND,
        failed_by: event,
        error: if event == event_text::CONNECT_FAILED { errno::REFUSED } else { 0x2000_0000 },
        reason: "it fails".into(),
        ..Endpoint::default()
    });
    reading.endpoints.last_mut().unwrap()
}

/// A tcp connection between two sockets: `(process, socket)`. The second one is bound.
fn link(one: (&mut Reading, u64), other: (&mut Reading, u64), port: u16) {
    let (local, remote) = (format!("tcp://127.0.0.1:4{port}"), format!("tcp://127.0.0.1:{port}"));
    let peer = |socket, local: &str, address: &str| Peer {
        socket,
        id: port.into(),
        state: PeerState::Connected,
        since: NOW - 30 * SECOND,
        local: local.into(),
        address: address.into(),
        limit_in: 1000,
        limit_out: 1000,
        ..Peer::default()
    };
    one.0.peers.push(peer(one.1, &local, &remote));
    other.0.peers.push(peer(other.1, &remote, &local));
    one.0.sockets.iter_mut().find(|socket| socket.id == one.1).unwrap().peers += 1;
    other.0.sockets.iter_mut().find(|socket| socket.id == other.1).unwrap().peers += 1;
}

/// Returns the findings, and checks that the first one is of this rule at this process.
fn first_is(processes: &[Observed<'_>], rule: &str, process: usize) -> Vec<Finding> {
    let all = diagnose(processes);
    assert_eq!((all[0].rule, all[0].process), (rule, process), "{all:#?}");
    all
}

fn running(readings: &[Reading]) -> Vec<Observed<'_>> {
    readings.iter().map(Observed::new).collect()
}

fn rules_of(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.rule).collect()
}

#[test]
fn a_socket_of_the_wrong_type_is_told_with_the_one_that_was_meant() {
    let (mut server, mut news, mut reader) =
        (process(1, "server.py"), process(2, "news.py"), process(3, "reader.py"));
    add_socket(&mut server, 1, "REP");
    let at = add_bound(&mut server, 1, "tcp://0.0.0.0:6072");
    (at.failures, at.failed_by, at.failing_since) = (9, 0x2000, NOW - 5 * SECOND);
    add_socket(&mut news, 1, "PUB");
    add_bound(&mut news, 1, "tcp://127.0.0.1:6073");
    add_socket(&mut reader, 4, "SUB").subscriptions = 1;
    add_failing(&mut reader, 4, "tcp://127.0.0.1:6072", 0x2000);
    let readings = [server, news, reader];
    let all = first_is(&running(&readings), "wrong-type", 2);
    assert_eq!(all[0].what, "SUB connects to tcp://127.0.0.1:6072, but REP of server.py (1) listens there");
    assert!(all[0].evidence.contains("SUB can talk to PUB or XPUB only"), "{}", all[0]);
    assert!(
        all[0].advice.contains("Perhaps tcp://127.0.0.1:6073 was meant: PUB of news.py (2)"),
        "{}",
        all[0]
    );
    assert_eq!(all[0].next, "taut ping tcp://127.0.0.1:6072");
    // The refused handshakes at the REP, and the PUB without a peer, follow from it.
    let mut effects = rules_of(&all[0].effects);
    effects.sort_unstable();
    assert_eq!((all.len(), &effects[..]), (1, &["handshake-failed", "handshake-failed", "no-peers"][..]));
}

#[test]
fn the_type_that_an_unobserved_peer_announced_is_enough() {
    let mut reader = process(3, "reader.py");
    add_socket(&mut reader, 4, "SUB").subscriptions = 1;
    add_failing(&mut reader, 4, "tcp://127.0.0.1:6072", 0x2000).peer_type = "REP".into();
    let readings = [reader];
    let all = first_is(&running(&readings), "wrong-type", 0);
    assert_eq!(all[0].what, "SUB connects to tcp://127.0.0.1:6072, but REP listens there");
}

#[test]
fn a_proxy_that_is_wired_backwards_is_told_once() {
    let (mut proxy, mut news, mut reader) =
        (process(1, "proxy"), process(2, "news.py"), process(3, "reader.py"));
    add_socket(&mut proxy, 1, "XSUB");
    add_bound(&mut proxy, 1, "tcp://127.0.0.1:6001");
    add_socket(&mut proxy, 2, "XPUB");
    add_bound(&mut proxy, 2, "tcp://127.0.0.1:6002");
    add_socket(&mut news, 1, "PUB");
    add_failing(&mut news, 1, "tcp://127.0.0.1:6002", 0x2000);
    add_socket(&mut reader, 1, "SUB").subscriptions = 1;
    add_failing(&mut reader, 1, "tcp://127.0.0.1:6001", 0x2000);
    let readings = [proxy, news, reader];
    let all = first_is(&running(&readings), "swapped", 0);
    assert!(all[0].what.starts_with("The two sides of proxy (1) are swapped: "), "{}", all[0]);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert!(rules_of(&all[0].effects).contains(&"wrong-type"));
}

#[test]
fn an_endpoint_in_another_namespace_is_told() {
    for (name, space) in [("ipc:///run/orders.ipc", "mount"), ("tcp://127.0.0.1:6001", "network")] {
        let (mut server, mut client) = (process(1, "server.py"), process(2, "client.py"));
        add_socket(&mut server, 1, "REP");
        add_bound(&mut server, 1, name);
        add_socket(&mut client, 1, "REQ");
        add_failing(&mut client, 1, name, event_text::CONNECT_FAILED).error = errno::NO_ENTRY;
        let readings = [server, client];
        let mut observed = running(&readings);
        observed[0].namespaces = Namespaces { mount: Some(1), network: Some(2) };
        observed[1].namespaces = Namespaces { mount: Some(3), network: Some(4) };
        let all = first_is(&observed, "other-namespace", 1);
        assert!(all[0].what.ends_with(&format!("is bound there in another {space} namespace")), "{}", all[0]);
        assert_eq!((all.len(), rules_of(&all[0].effects).len()), (1, 2), "{all:#?}");
        // In the same namespace, the file is gone, or it is an ordinary failure.
        observed[1].namespaces = observed[0].namespaces;
        let rule = if space == "mount" { "file-gone" } else { "connect-failed" };
        assert_eq!(diagnose(&observed)[0].rule, rule);
    }
}

#[test]
fn a_waiting_socket_at_another_port_is_told() {
    let (mut server, mut client) = (process(1, "work.py"), process(2, "client"));
    add_socket(&mut server, 1, "PULL");
    add_bound(&mut server, 1, "tcp://127.0.0.1:6052");
    add_socket(&mut client, 1, "PUSH");
    add_failing(&mut client, 1, "tcp://127.0.0.1:6051", event_text::CONNECT_FAILED);
    let readings = [server, client];
    let all = first_is(&running(&readings), "wrong-endpoint", 1);
    assert_eq!(
        all[0].what,
        "PUSH cannot connect to tcp://127.0.0.1:6051, because no socket listens there; PULL of work.py (1) listens at tcp://127.0.0.1:6052"
    );
    assert_eq!((all.len(), rules_of(&all[0].effects).len()), (1, 2), "{all:#?}");
}

#[test]
fn a_name_that_leads_elsewhere_is_told() {
    let (mut server, mut client) = (process(1, "server"), process(2, "client"));
    add_socket(&mut server, 1, "REP");
    add_bound(&mut server, 1, "tcp://127.0.0.2:6001");
    add_socket(&mut client, 1, "REQ");
    let to = add_failing(&mut client, 1, "tcp://orders:6001", event_text::CONNECT_FAILED);
    to.resolved = "tcp://127.0.0.3:6001".into();
    let readings = [server, client];
    let all = first_is(&running(&readings), "wrong-address", 1);
    assert!(
        all[0].what.starts_with("The name `orders` resolves to 127.0.0.3, but no socket listens there"),
        "{}",
        all[0]
    );
}

#[test]
fn a_topic_that_nobody_publishes_is_told_with_the_similar_one() {
    let (mut news, mut reader) = (process(1, "news.py"), process(2, "reader.js"));
    add_socket(&mut news, 1, "PUB");
    add_socket(&mut reader, 1, "SUB").subscriptions = 1;
    link((&mut reader, 1), (&mut news, 1), 6001);
    let topic =
        |published, prefix: &str| Topic { socket: 1, published, prefix: prefix.into(), ..Topic::default() };
    news.topics = vec![topic(true, "market.trades.7"), topic(true, "weather")];
    reader.topics = vec![topic(false, "market.trade.")];
    let mut readings = [news, reader];
    let all = first_is(&running(&readings), "topic-unmatched", 1);
    assert_eq!(all[0].level, Level::Trouble);
    assert!(
        all[0]
            .what
            .starts_with("SUB subscribes to `market.trade.`, which no publisher sends: PUB of news.py (1)"),
        "{}",
        all[0]
    );
    // A topic that may come later is only worth a note.
    readings[1].topics = vec![topic(false, "alarm")];
    assert_eq!(first_is(&running(&readings), "topic-unmatched", 1)[0].level, Level::Note);
    readings[1].topics = vec![topic(false, "market.")];
    assert_eq!(diagnose(&running(&readings)), []);
    // With the case of the letters, another topic is meant.
    readings[1].topics = vec![topic(false, "Weather")];
    assert_eq!(first_is(&running(&readings), "topic-unmatched", 1)[0].level, Level::Trouble);
}

#[test]
fn peers_with_the_same_routing_id_are_told() {
    let mut router = process(1, "broker");
    let socket = add_socket(&mut router, 1, "ROUTER");
    (socket.duplicates, socket.duplicate_id) = (5, b"till".to_vec());
    add_bound(&mut router, 1, "tcp://127.0.0.1:6001");
    let till = |pid| {
        let mut till = process(pid, "till.py");
        add_socket(&mut till, 1, "DEALER").routing_id = b"till".to_vec();
        let to = add_failing(&mut till, 1, "tcp://127.0.0.1:6001", 0);
        (to.failures, to.state) = (0, EndpointState::Connected);
        till
    };
    let readings = [router, till(2), till(3)];
    let all = first_is(&running(&readings), "same-id", 0);
    assert_eq!(all[0].what, "2 peers of ROUTER have the same routing id `till`: till.py (2), till.py (3)");
}

#[test]
fn a_stopped_process_explains_what_waits_for_it() {
    let (mut sender, mut middle, mut last) = (process(1, "a"), process(2, "b"), process(3, "c"));
    add_socket(&mut sender, 1, "PUSH");
    add_socket(&mut middle, 1, "PULL");
    add_socket(&mut middle, 2, "PUSH");
    add_socket(&mut last, 1, "PULL");
    link((&mut sender, 1), (&mut middle, 1), 6001);
    link((&mut middle, 2), (&mut last, 1), 6002);
    for reading in [&mut sender, &mut middle] {
        for peer in
            reading.peers.iter_mut().filter(|peer| peer.address.ends_with(":6001") || peer.socket == 2)
        {
            (peer.full_since, peer.queued_out) = (NOW - 20 * SECOND, 1000);
        }
    }
    let inner = middle.peers.iter_mut().find(|peer| peer.socket == 1).unwrap();
    (inner.full_since, inner.queued_out) = (0, 0);
    (inner.queued_in, inner.messages_in) = (1000, 5000);
    (inner.idle_since, inner.full_in_since) = (NOW - 20 * SECOND, NOW - 19 * SECOND);
    let mut readings = [sender, middle, last];
    let before = readings.clone().map(|mut before| {
        before.process.written -= 3 * SECOND;
        before
    });
    let observed = |readings: &'static [Reading; 3], before: &'static [Reading; 3]| {
        let both = readings.iter().zip(before);
        both.map(|(now, before)| Observed { before: Some(before), ..Observed::new(now) }).collect::<Vec<_>>()
    };
    // Without the stopped process, the middle one is told to be slow.
    readings[2].process.written = NOW;
    let readings: &'static [Reading; 3] = Box::leak(Box::new(readings));
    let before: &'static [Reading; 3] = Box::leak(Box::new(before));
    let mut all = observed(readings, before);
    all[2].state = ProcessState::StandsStill { seconds: 20, state: Some('T') };
    let found = first_is(&all, "stands-still", 2);
    assert_eq!(found.len(), 1, "{found:#?}");
    let mut effects = rules_of(&found[0].effects);
    effects.sort_unstable();
    assert_eq!(effects, ["not-received", "queue-full", "queue-full"]);
}

#[test]
fn a_program_that_crashes_again_and_again_is_told_at_the_running_one() {
    let mut broker = process(1, "broker");
    add_socket(&mut broker, 1, "ROUTER");
    add_bound(&mut broker, 1, "tcp://127.0.0.1:6001");
    let mut last = process(4, "worker.py");
    last.process.since = NOW;
    let readings = [broker, process(2, "worker.py"), process(3, "worker.py"), last];
    let mut all = running(&readings);
    let ended = |seconds, cause| ProcessState::Ended { seconds, cause };
    all[1].state = ended(9, None);
    all[2].state = ended(1, Some(EndCause::Killed(11)));
    let found = first_is(&all, "crashes", 3);
    assert_eq!(found[0].what, "worker.py crashed 2 times in 9 s, and runs again");
    assert_eq!(found[0].evidence, "the last time 1 s ago");
    assert_eq!(rules_of(&found[0].effects), ["ended", "ended"]);
    // One that ended once and runs again is a note.
    all[1].state = ended(9, Some(EndCause::Killed(15)));
    let found = diagnose(&all);
    assert!(found.iter().all(|finding| finding.level == Level::Note), "{found:#?}");
    assert!(
        found.iter().any(|finding| finding.evidence.ends_with("; worker.py (4) runs since")),
        "{found:#?}"
    );
    // One that does not run again is news, unless it was asked to end.
    all.remove(3);
    assert_eq!((diagnose(&all)[0].rule, diagnose(&all)[0].level), ("ended", Level::Warning));
    all[2].state = ended(1, Some(EndCause::Exited(0)));
    assert_eq!(diagnose(&all)[0].level, Level::Note);
}

#[test]
fn keys_that_do_not_belong_together_explain_the_refused_handshakes() {
    let (mut server, mut client) = (process(1, "vault"), process(2, "client"));
    add_socket(&mut server, 1, "REP").mechanism = "CURVE".into();
    let at = add_bound(&mut server, 1, "tcp://127.0.0.1:6001");
    (at.failures, at.failed_by, at.failing_since) = (9, 0x2000, NOW - 5 * SECOND);
    let socket = add_socket(&mut client, 1, "REQ");
    (socket.mechanism, socket.options) = ("CURVE".into(), Options::KEY_PAIR_MISMATCH);
    add_failing(&mut client, 1, "tcp://127.0.0.1:6001", 0x800);
    let readings = [server, client];
    let all = first_is(&running(&readings), "key-pair", 1);
    assert_eq!((all.len(), rules_of(&all[0].effects).len()), (1, 2), "{all:#?}");
}

/// A REQ that waits for a reply, and a REP that owes one.
fn add_call(client: &mut Reading, server: &mut Reading, port: u16) {
    add_socket(client, 7, "REQ").messages_out = 1;
    add_socket(server, 8, "REP").messages_in = 1;
    add_bound(server, 8, &format!("tcp://127.0.0.1:{port}"));
    link((client, 7), (server, 8), port);
    let asked = client.peers.iter_mut().find(|peer| peer.socket == 7).unwrap();
    (asked.messages_out, asked.last_out) = (1, NOW - 20 * SECOND);
    let owing = server.peers.iter_mut().find(|peer| peer.socket == 8).unwrap();
    (owing.messages_in, owing.last_in) = (1, NOW - 20 * SECOND);
}

#[test]
fn programs_that_wait_for_each_other_are_told_once() {
    let (mut orders, mut stock) = (process(1, "orders.py"), process(2, "stock.py"));
    add_call(&mut orders, &mut stock, 6001);
    add_call(&mut stock, &mut orders, 6002);
    let readings = [orders, stock];
    let all = first_is(&running(&readings), "deadlock", 0);
    assert!(all[0].what.starts_with("orders.py (1) and stock.py (2) wait for each other: "), "{}", all[0]);
    assert_eq!((all.len(), all[0].effects.len()), (1, 4), "{all:#?}");
    // A chain is no circle.
    let (mut orders, mut stock) = (process(1, "orders.py"), process(2, "stock.py"));
    add_call(&mut orders, &mut stock, 6001);
    let readings = [orders, stock];
    assert_eq!(diagnose(&running(&readings))[0].rule, "not-replied");
}

#[test]
fn a_broker_without_workers_is_told_with_those_at_another_broker() {
    let (mut broker, mut client) = (process(1, "broker"), process(2, "client"));
    let (mut old, mut worker) = (process(3, "old"), process(4, "worker"));
    add_socket(&mut broker, 1, "ROUTER");
    add_socket(&mut broker, 2, "DEALER");
    add_bound(&mut broker, 2, "ipc:///run/new");
    add_socket(&mut client, 1, "DEALER");
    link((&mut client, 1), (&mut broker, 1), 6001);
    let waiting = broker.peers.iter_mut().find(|peer| peer.socket == 1).unwrap();
    (waiting.queued_in, waiting.messages_in) = (3, 3);
    (waiting.idle_since, waiting.last_in) = (NOW - 20 * SECOND, NOW - 20 * SECOND);
    add_socket(&mut old, 1, "DEALER");
    add_bound(&mut old, 1, "tcp://127.0.0.1:6002");
    add_socket(&mut worker, 1, "REP");
    link((&mut worker, 1), (&mut old, 1), 6002);
    let readings = [broker, client, old, worker];
    let all = first_is(&running(&readings), "idle-side", 0);
    assert_eq!(
        all[0].what,
        "DEALER at ipc:///run/new has no peer, while messages wait at ROUTER of the same program"
    );
    assert!(all[0].advice.ends_with("DEALER of old (3) has 1 peer: perhaps they belong here."), "{}", all[0]);
    assert_eq!(rules_of(&all[0].effects), ["no-peers"]);
}

#[test]
fn an_inproc_endpoint_of_another_context_is_told() {
    let mut resizer = process(1, "resizer");
    add_socket(&mut resizer, 1, "PUSH");
    add_bound(&mut resizer, 1, "inproc://jobs");
    add_socket(&mut resizer, 2, "PULL").context = 2;
    resizer.endpoints.push(Endpoint { socket: 2, name: "inproc://jobs".into(), ..Endpoint::default() });
    let mut readings = [resizer];
    let all = first_is(&running(&readings), "other-context", 0);
    assert_eq!((all[0].socket, all.len()), (2, 1));
    readings[0].sockets[1].context = 1;
    assert_eq!(diagnose(&running(&readings)), []);
}

#[test]
fn a_subscriber_that_came_after_the_messages_is_a_note() {
    let (mut news, mut reader) = (process(1, "configd"), process(2, "edge"));
    add_socket(&mut news, 1, "PUB").unmatched = 10;
    add_socket(&mut reader, 1, "SUB").subscriptions = 1;
    link((&mut reader, 1), (&mut news, 1), 6001);
    let readings = [news, reader];
    let before = readings.clone();
    let observed: Vec<Observed<'_>> = readings
        .iter()
        .zip(&before)
        .map(|(now, before)| Observed { before: Some(before), ..Observed::new(now) })
        .collect();
    let all = first_is(&observed, "joined-late", 1);
    assert_eq!(all[0].level, Level::Note);
    assert!(all[0].evidence.starts_with("10 messages without a subscriber, and none since"), "{}", all[0]);
}

#[test]
fn endpoints_of_a_hostile_file_are_compared_in_bounded_time() {
    let mut hostile = process(1, "hostile");
    for id in 0..20_000 {
        add_socket(&mut hostile, id, if id % 2 == 0 { "SUB" } else { "REP" });
        // A full queue concerns all sockets of its process.
        let full = Peer { queued_out: 9, limit_out: 9, full_since: NOW - 60 * SECOND, ..Peer::default() };
        hostile.peers.push(Peer { socket: id, id, state: PeerState::Connected, ..full });
        match id % 2 {
            0 => drop(add_failing(&mut hostile, id, "tcp://127.0.0.1:1", 0x2000)),
            _ => drop(add_bound(&mut hostile, id, "tcp://127.0.0.1:1")),
        };
    }
    let readings = [hostile];
    assert!(!diagnose(&running(&readings)).is_empty());
}

#[test]
fn a_forwarder_that_keeps_subscriptions_to_itself_is_told() {
    let (mut feed, mut forwarder, mut display) =
        (process(1, "feed.py"), process(2, "forwarder.py"), process(3, "display.py"));
    add_socket(&mut feed, 1, "PUB").unmatched = 1000;
    add_socket(&mut forwarder, 1, "XSUB");
    add_socket(&mut forwarder, 2, "XPUB");
    add_socket(&mut display, 1, "SUB").subscriptions = 1;
    link((&mut feed, 1), (&mut forwarder, 1), 6001);
    link((&mut display, 1), (&mut forwarder, 2), 6002);
    let readings = [feed, forwarder, display];
    let mut before = readings.clone();
    before[0].sockets[0].unmatched = 900;
    let both = readings.iter().zip(&before);
    let observed: Vec<Observed<'_>> =
        both.map(|(now, before)| Observed { before: Some(before), ..Observed::new(now) }).collect();
    let all = first_is(&observed, "not-forwarded", 1);
    assert!(all[0].what.ends_with("so PUB of feed.py (1) sends it no message"), "{}", all[0]);
    assert_eq!(
        all[0].evidence,
        "1000 messages without a subscriber there, while 1 subscriber waits at this XPUB"
    );
}

#[test]
fn sockets_that_are_not_closed_are_told() {
    let mut portal = process(1, "portal.py");
    for id in 0..60 {
        add_socket(&mut portal, id, "REQ");
        let to = add_failing(&mut portal, id, "tcp://127.0.0.1:6001", 0);
        (to.failures, to.state) = (0, EndpointState::Connected);
    }
    let mut before = portal.clone();
    before.process.written -= 3 * SECOND;
    before.sockets.truncate(55);
    let observed = [Observed { before: Some(&before), ..Observed::new(&portal) }];
    let all = first_is(&observed, "sockets-grow", 0);
    assert!(
        all[0].what.contains("REQ sockets to tcp://127.0.0.1:6001 and does not close them: it has 60"),
        "{}",
        all[0]
    );
    assert!(all[0].evidence.starts_with("5 more in 3 s; "), "{}", all[0]);
    before.sockets.push(Socket { id: 99, ..portal.sockets[0].clone() });
    let same = [Observed { before: Some(&portal), ..Observed::new(&portal) }];
    assert_eq!(diagnose(&same), []);
}

#[test]
fn late_replies_are_told_at_the_program_that_sends_them() {
    let (mut pricing, mut one, mut other) = (process(1, "pricing.py"), process(2, "web"), process(3, "web"));
    let rep = add_socket(&mut pricing, 1, "REP");
    rep.queued_in = 120;
    for (client, port) in [(&mut one, 6001), (&mut other, 6002)] {
        let req = add_socket(client, 1, "REQ");
        (req.discarded, req.discarded_by) = (9, DiscardReason::StaleReply);
        link((client, 1), (&mut pricing, 1), port);
    }
    let readings = [pricing, one, other];
    let all = first_is(&running(&readings), "slow-replies", 0);
    assert_eq!(all[0].what, "REP replies later than its clients wait: 2 clients discard the replies");
    assert_eq!((all.len(), rules_of(&all[0].effects)), (1, vec!["discards", "discards"]));
}

#[test]
fn bytes_that_are_not_acknowledged_are_told() {
    let (mut ticker, mut display) = (process(1, "ticker.py"), process(2, "display.py"));
    add_socket(&mut ticker, 1, "PUB");
    add_socket(&mut display, 1, "SUB").subscriptions = 1;
    link((&mut display, 1), (&mut ticker, 1), 6001);
    let readings = [ticker, display];
    let mut all = running(&readings);
    all[0].unacknowledged = vec![Unacknowledged {
        local: "tcp://127.0.0.1:6001".into(),
        remote: "tcp://127.0.0.1:46001".into(),
        bytes: 787_227,
        retransmits: 5,
    }];
    let found = first_is(&all, "unacknowledged", 0);
    assert!(
        found[0].what.starts_with("The network takes no bytes from PUB to display.py (2)"),
        "{}",
        found[0]
    );
    assert_eq!(found[0].evidence, "768 KiB unacknowledged, sent again 5 times");
}

#[test]
fn a_listener_for_its_own_host_only_is_told() {
    let (mut server, mut client) = (process(1, "inventory.py"), process(2, "shop.py"));
    add_socket(&mut server, 1, "REP");
    add_bound(&mut server, 1, "tcp://127.0.0.1:7021");
    add_socket(&mut client, 1, "REQ");
    add_failing(&mut client, 1, "tcp://192.0.2.2:7021", event_text::CONNECT_FAILED);
    let readings = [server, client];
    let all = first_is(&running(&readings), "only-local", 0);
    assert_eq!(
        all[0].what,
        "REP listens at tcp://127.0.0.1:7021 only, and REQ of shop.py (2) connects to tcp://192.0.2.2:7021"
    );
    assert_eq!((all.len(), all[0].effects.len()), (1, 2), "{all:#?}");
}

#[test]
fn a_port_that_another_process_has_is_told_with_it() {
    let (mut old, mut new) = (process(1, "api_v1.py"), process(2, "api_v2.py"));
    add_socket(&mut old, 1, "REP");
    add_bound(&mut old, 1, "tcp://127.0.0.1:7001");
    add_socket(&mut new, 1, "REP");
    for second in 1..4 {
        new.events.push(crate::Event {
            at: NOW - second * SECOND,
            socket: 1,
            code: 0x10,
            local: "127.0.0.1:7001".into(),
            reason: "Address already in use".into(),
            ..crate::Event::default()
        });
    }
    let mut readings = [old, new];
    let found = diagnose(&running(&readings));
    let first = found.iter().find(|finding| finding.rule == "not-bound").unwrap();
    assert_eq!(first.what, "REP cannot bind tcp://127.0.0.1:7001: REP of api_v1.py (1) has it");
    assert!(first.evidence.starts_with("Address already in use, 3 failed attempts"), "{first}");
    assert_eq!(first.next, "taut show 1/1");
    // It has bound another port instead.
    add_bound(&mut readings[1], 1, "tcp://127.0.0.1:7002");
    assert!(diagnose(&running(&readings)).iter().all(|finding| finding.rule != "not-bound"));
}

#[test]
fn a_connection_that_is_given_up_is_told() {
    let mut alarm = process(1, "alarm.py");
    add_socket(&mut alarm, 1, "SUB").subscriptions = 1;
    let to = add_failing(&mut alarm, 1, "tcp://127.0.0.1:7041", 0);
    (to.failures, to.failed_by) = (1, event_text::LOST);
    (to.state, to.since) = (EndpointState::Stopped, NOW - 14 * SECOND);
    let readings = [alarm];
    let all = first_is(&running(&readings), "given-up", 0);
    assert_eq!(all[0].what, "SUB has lost tcp://127.0.0.1:7041 and does not connect again");
}
