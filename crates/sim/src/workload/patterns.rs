//! The workloads: one for each pattern.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tautline_core::{Context, Error, SocketType};

use super::addresses::addresses;
use super::bursts::{ahead, alive, bursts};
use super::connection_rules::{filters, lengths, patience, relayed};
use super::datagrams::datagrams;
use super::devices::{devices, many, rebind, shared};
use super::edges::{bounds, churn, conflate, memory, room, tasks, terminate};
use super::endings::{closes, farewells, halves, retries};
use super::envelopes::envelopes;
use super::faulty_peers::{crash, strangers};
use super::greetings::greetings;
use super::guarded::{guarded, idle};
use super::hostile::{flood, liars, silence};
use super::lenders::lenders;
use super::monitoring::{monitored, peers, steered};
use super::multicast::multicast;
use super::numbered::numbered;
use super::observation::shown;
use super::peer::{IMMEDIATE, LINGER, MANDATORY, Peer, ROUTING_ID, SNDHWM, SNDTIMEO, SUBSCRIBE};
use super::replays::replays;
use super::revocation::revoked;
use super::sealed::sealed;
use super::self_connections::itself;
use super::settings::settings;
use super::silent_senders::{answers, batches, crossed, joiners};
use super::streams::streams;
use super::subscriptions::{catalogue, groups, manual};
use super::succession::{heirs, migrate, successors};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;

pub(super) const XPUB_NODROP: i32 = 69;

type Program = fn(&mut Scenario, &mut Rng);

pub(super) const ALL: [(&str, Program); 62] = [
    ("pipeline", pipeline),
    ("pair", pair),
    ("request", request),
    ("router", router),
    ("publish", publish),
    ("leave", leave),
    ("devices", devices),
    ("shared", shared),
    ("many", many),
    ("rebind", rebind),
    ("crash", crash),
    ("strangers", strangers),
    ("guarded", guarded),
    ("idle", idle),
    ("churn", churn),
    ("conflate", conflate),
    ("bounds", bounds),
    ("terminate", terminate),
    ("halves", halves),
    ("closes", closes),
    ("retries", retries),
    ("itself", itself),
    ("replays", replays),
    ("revoked", revoked),
    ("successors", successors),
    ("migrate", migrate),
    ("flood", flood),
    ("liars", liars),
    ("datagrams", datagrams),
    ("memory", memory),
    ("numbered", numbered),
    ("silence", silence),
    ("bursts", bursts),
    ("ahead", ahead),
    ("alive", alive),
    ("room", room),
    ("settings", settings),
    ("greetings", greetings),
    ("streams", streams),
    ("monitored", monitored),
    ("peers", peers),
    ("steered", steered),
    ("catalogue", catalogue),
    ("manual", manual),
    ("groups", groups),
    ("filters", filters),
    ("lengths", lengths),
    ("patience", patience),
    ("relayed", relayed),
    ("shown", shown),
    ("envelopes", envelopes),
    ("addresses", addresses),
    ("sealed", sealed),
    ("multicast", multicast),
    ("heirs", heirs),
    ("answers", answers),
    ("joiners", joiners),
    ("crossed", crossed),
    ("batches", batches),
    ("tasks", tasks),
    ("farewells", farewells),
    ("lenders", lenders),
];

/// Longest wait of a receiver that cannot know if a message was lost.
pub(super) const QUIET: i32 = 60_000;

/// Returns a small or a large number.
pub(super) fn some_or_many(rng: &mut Rng, some: u64) -> u32 {
    match rng.chance(6) {
        true => rng.between(some, 90) as u32,
        false => rng.between(1, some) as u32,
    }
}

/// Several PUSH, each connected to several PULL, or the PULL connected to the PUSH.
fn pipeline(stage: &mut Scenario, rng: &mut Rng) {
    let senders_bind = rng.chance(3);
    flow(stage, rng, senders_bind);
}

pub(super) fn flow(stage: &mut Scenario, rng: &mut Rng, senders_bind: bool) {
    let (senders, receivers) =
        (rng.between(1, 4) as u32, if rng.chance(8) { 30 } else { rng.between(1, 3) as u32 });
    let lossy = stage.lossy;
    let ledger = stage.ledger();
    let endpoints: Vec<String> =
        (0..if senders_bind { senders } else { receivers }).map(|_| stage.endpoint()).collect();
    let sent: Vec<(u32, u32)> = (0..senders).map(|sender| (sender, stage.kind.count(rng, 400))).collect();
    let total: u32 = sent.iter().map(|(_, count)| count).sum();
    let (missing, busy) = (Countdown::new(total as usize), Countdown::new(senders as usize));
    let mut contexts = Vec::new();
    let mut threads = Vec::new();
    for receiver in 0..receivers {
        let mut endpoints = endpoints.clone();
        if !senders_bind {
            endpoints = vec![endpoints.swap_remove(receiver as usize)];
        }
        // A separate context, which ends after all messages have arrived.
        let context = if stage.transport == "inproc" { stage.contexts[0].clone() } else { Context::new() };
        contexts.push(context.clone());
        let (rng, ledger, missing, busy) = (fork(rng), ledger.clone(), missing.clone(), busy.clone());
        threads.push((receiver, context, endpoints, rng, ledger, missing, busy));
    }
    let mut handles = Vec::new();
    for (receiver, context, endpoints, rng, ledger, missing, busy) in threads {
        let all = contexts.clone();
        handles.push(spawn("pull", move || {
            // Others may have received all messages before this peer starts.
            let Some(mut peer) = Peer::try_new(&context, SocketType::Pull, rng) else { return };
            endpoints.iter().for_each(|endpoint| peer.bind_or_connect(endpoint, !senders_bind));
            if lossy {
                peer.set_receive_timeout(QUIET);
            }
            loop {
                match peer.recv() {
                    Ok(parts) => {
                        ledger.record(receiver, &parts);
                        if missing.count_down() {
                            all.iter().for_each(|context| context.shutdown().unwrap());
                        }
                    }
                    Err(Error::Again) if lossy && busy.remaining() > 0 => {}
                    Err(Error::Again) if lossy => break,
                    Err(Error::Terminated) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }));
    }
    for (sender, count) in sent.iter().copied() {
        let context = stage.context(rng);
        let (mut rng, mut endpoints, kind) = (fork(rng), endpoints.clone(), stage.kind);
        if senders_bind {
            endpoints = vec![endpoints.swap_remove(sender as usize)];
        }
        let (busy, missing) = (busy.clone(), missing.clone());
        handles.push(spawn("push", move || {
            let immediate = rng.chance(3);
            let stays = !lossy && rng.chance(2);
            let mut peer = Peer::new(&context, SocketType::Push, rng);
            peer.set(IMMEDIATE, immediate.into());
            endpoints.iter().for_each(|endpoint| peer.bind_or_connect(endpoint, senders_bind));
            for number in 0..count {
                match peer.send(&kind.message(sender, number)) {
                    Ok(()) => {}
                    // inproc has one context, which the last message ends.
                    Err(Error::Terminated) => panic!("it ends before all is sent"),
                    Err(error) => panic!("{error}"),
                }
            }
            if lossy {
                peer.set(LINGER, 20_000);
            }
            // All its messages arrive, though the sender makes no further call.
            while stays && missing.remaining() > 0 {
                std::thread::sleep(Duration::from_millis(100));
            }
            drop(peer);
            busy.count_down();
        }));
    }
    join(handles);
    ledger.check_complete(&sent);
    if stage.transport != "inproc" {
        stage.contexts.extend(contexts);
    }
}

/// Two PAIR that both send and receive.
fn pair(stage: &mut Scenario, rng: &mut Rng) {
    let ledger = stage.ledger();
    let endpoint = stage.endpoint();
    let lossy = stage.lossy;
    let counts = [(); 2].map(|()| stage.kind.count(rng, 300));
    let mut handles = Vec::new();
    let busy = Countdown::new(2);
    for own in 0..2_u32 {
        let context = stage.context(rng);
        let (rng, ledger, kind, endpoint, busy) =
            (fork(rng), ledger.clone(), stage.kind, endpoint.clone(), busy.clone());
        handles.push(spawn("pair", move || {
            let mut peer = Peer::new(&context, SocketType::Pair, rng);
            peer.bind_or_connect(&endpoint, own == 0);
            let (mut sent, mut received) = (0, 0);
            let (to_send, to_receive) = (counts[own as usize], counts[1 - own as usize]);
            // Each must be able to receive before the other has taken its messages.
            peer.set(SNDTIMEO, 5);
            if lossy {
                peer.set_receive_timeout(QUIET);
            }
            while sent < to_send || received < to_receive {
                if sent < to_send {
                    match peer.try_send(&kind.message(own, sent)) {
                        Ok(()) => sent += 1,
                        Err(Error::Again) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                let wants = received < to_receive && (sent == to_send || peer.rng.chance(2));
                if !wants {
                    continue;
                }
                let outcome = if sent < to_send { peer.try_recv() } else { peer.recv() };
                match outcome {
                    Ok(parts) => {
                        ledger.record(own, &parts);
                        received += 1;
                    }
                    Err(Error::Again) if sent < to_send => {}
                    Err(Error::Again) if lossy => break,
                    Err(error) => panic!("{error}"),
                }
            }
            busy.count_down();
            // A PAIR that closes discards the messages that it has not received, and may make the
            // other lose a connection. So both stay until both are done.
            while busy.remaining() > 0 {
                std::thread::sleep(Duration::from_millis(50));
                if lossy {
                    while let Ok(parts) = peer.try_recv() {
                        ledger.record(own, &parts);
                    }
                }
            }
            if lossy {
                peer.set(LINGER, 1000);
            }
        }));
    }
    join(handles);
    ledger.check_complete(&[(0, counts[0]), (1, counts[1])]);
}

/// Several REQ, or DEALER that behave like REQ, and a REP.
fn request(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let clients = rng.between(1, 5) as u32;
    let lossy = stage.lossy;
    let busy = Countdown::new(clients as usize);
    let server_context = if stage.transport == "inproc" { stage.contexts[0].clone() } else { Context::new() };
    let mut handles = Vec::new();
    {
        let (rng, context, endpoint) = (fork(rng), server_context.clone(), endpoint.clone());
        handles.push(spawn("rep", move || {
            let mut peer = Peer::new(&context, SocketType::Rep, rng);
            peer.bind_or_connect(&endpoint, true);
            if lossy {
                peer.set(LINGER, 1000);
            }
            loop {
                let parts = match peer.recv() {
                    Ok(parts) => parts,
                    Err(Error::Terminated) => break,
                    Err(error) => panic!("{error}"),
                };
                match peer.send(&parts) {
                    Ok(()) => {}
                    Err(Error::Terminated) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }));
    }
    for client in 0..clients {
        let context = stage.context(rng);
        let (mut rng, endpoint, kind, busy) = (fork(rng), endpoint.clone(), stage.kind, busy.clone());
        let rounds = kind.count(&mut rng, 120);
        let server_context = server_context.clone();
        let shuts = stage.transport != "inproc" || clients == 1;
        handles.push(spawn("req", move || {
            let mut peer = Peer::new(&context, SocketType::Req, rng);
            peer.bind_or_connect(&endpoint, false);
            if lossy {
                peer.tolerate_losses();
            }
            for number in 0..rounds {
                peer.ask(&kind.message(client, number), lossy);
            }
            drop(peer);
            if busy.count_down() && shuts {
                server_context.shutdown().unwrap();
            }
        }));
    }
    if stage.transport == "inproc" && clients > 1 {
        let server = handles.remove(0);
        join(handles);
        server_context.shutdown().unwrap();
        server.join().unwrap();
    } else {
        join(handles);
    }
    if stage.transport != "inproc" {
        stage.contexts.push(server_context);
    }
}

/// Several DEALER and a ROUTER that echoes all messages.
fn router(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let clients = some_or_many(rng, 5);
    // A ROUTER drops the queued messages of a peer that disconnects.
    let lossy = stage.lossy;
    let ledger = stage.ledger();
    let busy = Countdown::new(clients as usize);
    let server_context = if stage.transport == "inproc" { stage.contexts[0].clone() } else { Context::new() };
    let (server_rng, context, at) = (fork(rng), server_context.clone(), endpoint.clone());
    let server = spawn("router", move || {
        let mut peer = Peer::new(&context, SocketType::Router, server_rng);
        peer.set(MANDATORY, 1);
        // Without a limit, the ROUTER never waits for one of its peers.
        peer.set(SNDHWM, 0);
        peer.bind_or_connect(&at, true);
        if lossy {
            peer.set(LINGER, 1000);
        }
        loop {
            let parts = match peer.recv() {
                Ok(parts) => parts,
                Err(Error::Terminated) => break,
                Err(error) => panic!("{error}"),
            };
            match peer.send(&parts) {
                Ok(()) => {}
                Err(Error::HostUnreachable) if lossy => {}
                Err(Error::Terminated) => break,
                Err(error) => panic!("{error}"),
            }
        }
    });
    let mut handles = Vec::new();
    let mut counts = Vec::new();
    for client in 0..clients {
        let context = stage.context(rng);
        let (mut rng, endpoint, kind, busy, ledger) =
            (fork(rng), endpoint.clone(), stage.kind, busy.clone(), ledger.clone());
        let count = kind.count(&mut rng, 200);
        counts.push((client, count));
        handles.push(spawn("dealer", move || {
            let named = rng.chance(2);
            let mut peer = Peer::new(&context, SocketType::Dealer, rng);
            if named {
                peer.set_bytes(ROUTING_ID, format!("client {client}").as_bytes());
            }
            peer.set(SNDTIMEO, 5);
            peer.bind_or_connect(&endpoint, false);
            if lossy {
                peer.set_receive_timeout(QUIET);
                peer.set(LINGER, 0);
            }
            let (mut sent, mut received) = (0, 0);
            while received < count {
                if sent < count && (sent == received || peer.rng.chance(2)) {
                    match peer.try_send(&kind.message(client, sent)) {
                        Ok(()) => sent += 1,
                        Err(Error::Again) => {}
                        Err(error) => panic!("{error}"),
                    }
                    continue;
                }
                let waits = sent > received;
                let outcome = if waits && sent == count { peer.recv() } else { peer.try_recv() };
                match outcome {
                    Ok(parts) => {
                        ledger.record(client, &parts);
                        received += 1;
                    }
                    Err(Error::Again) if sent < count => peer.sleep_briefly(),
                    Err(Error::Again) if lossy => break,
                    Err(error) => panic!("{error}"),
                }
            }
            drop(peer);
            busy.count_down();
        }));
    }
    join(handles);
    server_context.shutdown().unwrap();
    server.join().unwrap();
    ledger.check_complete(&counts);
    if stage.transport != "inproc" {
        stage.contexts.push(server_context);
    }
}

/// An XPUB, and several SUB of some topics.
fn publish(stage: &mut Scenario, rng: &mut Rng) {
    // Sometimes more than the log of a publisher and all buffers hold.
    let is_bulk = rng.chance(3);
    let (kind, subscribers, count) = match is_bulk {
        true => (stage.kind.of_bulk(), rng.between(2, 5) as u32, rng.between(50, 400) as u32),
        false => (stage.kind, some_or_many(rng, 6), stage.kind.count(rng, 400).max(3)),
    };
    // Without high-water marks no message is lost. With them a slow subscriber misses some, unless
    // its publisher waits for it.
    let lossy = stage.lossy;
    let waits = !lossy && rng.chance(3);
    let drops = lossy || !waits && rng.chance(2);
    let connects = rng.chance(3);
    let first = stage.endpoint();
    let mut endpoints = vec![first.clone()];
    let done = Countdown::new(1);
    let topics = rng.between(1, 3) as u32;
    let heard = Arc::new(AtomicU64::new(0));
    let mut wanted = 0;
    let mut handles = Vec::new();
    for subscriber in 0..subscribers {
        let topic = subscriber % topics;
        let expected: Vec<u32> = (0..count).filter(|number| number % topics == topic).collect();
        wanted += expected.len() as u64;
        let context = stage.context(rng);
        let endpoint = match connects && subscriber > 0 {
            true => stage.endpoint(),
            false => first.clone(),
        };
        if subscriber > 0 && connects {
            endpoints.push(endpoint.clone());
        }
        let (mut rng, done, heard) = (fork(rng), done.clone(), heard.clone());
        // A late subscriber: it has received only one message when the publisher has sent all of
        // them.
        let is_late = is_bulk && !waits && rng.chance(3);
        handles.push(spawn("sub", move || {
            let mut peer = Peer::new(&context, SocketType::Sub, rng);
            peer.set_bytes(SUBSCRIBE, &topic.to_be_bytes());
            if drops {
                peer.set_receive_timeout(QUIET);
                peer.limit_pings();
            }
            peer.bind_or_connect(&endpoint, connects);
            let mut next = 0;
            while next < expected.len() {
                let parts = match peer.recv() {
                    Ok(parts) => parts,
                    Err(Error::Again) if drops && done.remaining() == 0 => break,
                    Err(Error::Again) if drops => continue,
                    Err(error) => panic!("{error}"),
                };
                let number = u32::from_be_bytes(*parts[0][4..].first_chunk().expect("a number"));
                assert!(parts == kind.message(topic, number), "message {number} of {topic} is another");
                let at = expected.binary_search(&number).expect("a message that was sent");
                assert!(at >= next, "message {number} comes late or again");
                assert!(drops || at == next, "message {number} comes before {}", expected[next]);
                next = at + 1;
                heard.fetch_add(1, SeqCst);
                while is_late && done.remaining() > 0 {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }));
    }
    let context = stage.context(rng);
    let mut publisher = Peer::new(&context, SocketType::XPub, fork(rng));
    if waits {
        publisher.set(XPUB_NODROP, 1);
    } else if !drops {
        publisher.set(SNDHWM, 0);
    }
    publisher.set(LINGER, if lossy { 1000 } else { -1 });
    if drops {
        publisher.limit_pings();
    }
    // XPUB_VERBOSE: the XPUB receives every subscription.
    publisher.set(40, 1);
    endpoints.iter().for_each(|endpoint| publisher.bind_or_connect(endpoint, !connects));
    let mut there = 0;
    while there < subscribers {
        match publisher.recv().unwrap()[0][0] {
            1 => there += 1,
            // A connection was lost.
            0 if lossy => there -= 1,
            other => panic!("a subscription begins with {other}"),
        }
    }
    for number in 0..count {
        publisher.send(&kind.message(number % topics, number)).unwrap_or_else(|error| panic!("{error}"));
    }
    done.count_down();
    join(handles);
    if !lossy {
        let (sent, dropped) = (publisher.statistic(0), publisher.statistic(4));
        let heard = heard.load(SeqCst);
        assert_eq!((sent, sent + dropped), (heard, wanted), "statistics of the publisher, {dropped} dropped");
    }
}

/// Sockets of all types that close with messages in flight.
fn leave(stage: &mut Scenario, rng: &mut Rng) {
    let pairs = [
        (SocketType::Push, SocketType::Pull),
        (SocketType::Dealer, SocketType::Router),
        (SocketType::Pair, SocketType::Pair),
        (SocketType::Pub, SocketType::Sub),
        (SocketType::Dealer, SocketType::Dealer),
    ];
    let mut handles = Vec::new();
    for _ in 0..rng.between(1, 3) {
        let endpoint = stage.endpoint();
        let (first, second) = *rng.pick(&pairs);
        let first_binds = rng.chance(2);
        for (own, socket_type, binds) in [(0, first, first_binds), (1, second, !first_binds)] {
            let context = stage.context(rng);
            let (mut rng, endpoint, kind) = (fork(rng), endpoint.clone(), stage.kind);
            handles.push(spawn("leaver", move || {
                for _ in 0..rng.between(1, 4) {
                    let mut peer = Peer::new(&context, socket_type, fork(&mut rng));
                    peer.set(LINGER, *rng.pick(&[0, 1, 50, 2000]));
                    peer.set(SNDTIMEO, 5);
                    if socket_type == SocketType::Sub {
                        peer.set_bytes(SUBSCRIBE, b"");
                    }
                    // A predecessor may still hold the address.
                    let outcome =
                        if binds { peer.socket.bind(&endpoint) } else { peer.socket.connect(&endpoint) };
                    match outcome {
                        Ok(()) => {}
                        Err(Error::AddressInUse | Error::ConnectionRefused) => {}
                        Err(error) => panic!("{error}"),
                    }
                    for number in 0..rng.spread(1, 100) as u32 {
                        let sends = own == 0 || rng.chance(2);
                        let outcome = if sends && socket_type != SocketType::Router {
                            peer.try_send(&kind.message(own, number))
                        } else {
                            peer.try_recv().map(drop)
                        };
                        match outcome {
                            Ok(()) | Err(Error::Again | Error::NotSupported | Error::State) => {}
                            Err(error) => panic!("{error}"),
                        }
                        if outcome == Err(Error::Again) && rng.chance(4) {
                            peer.sleep_briefly();
                        }
                    }
                }
            }));
        }
    }
    join(handles);
}
