//! Workloads with several patterns or threads: a proxy, sockets shared by threads, endpoints that
//! are bound and unbound.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tautline_core::poller::{self, Item, POLLIN, POLLOUT, PollTarget};
use tautline_core::{Context, Error, Flags, Message, SharedSocket, SocketType, proxy};

use super::patterns::{QUIET, some_or_many};
use super::peer::{LINGER, Peer, SNDHWM, SNDTIMEO};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;

/// Longest wait for a message that may be lost, regardless of how often the waiting call was
/// interrupted.
const LONG: Duration = Duration::from_millis(QUIET as u64);

/// REQ clients, a proxy of ROUTER and DEALER, and REP workers.
pub(super) fn devices(stage: &mut Scenario, rng: &mut Rng) {
    let (front, back) = (stage.endpoint(), stage.endpoint());
    let (clients, workers) = (rng.between(1, 5) as u32, rng.between(1, 3));
    let lossy = stage.lossy;
    let hub = if stage.transport == "inproc" { stage.contexts[0].clone() } else { Context::new() };
    let (mut hub_rng, context, ends) = (fork(rng), hub.clone(), (front.clone(), back.clone()));
    let device = spawn("proxy", move || {
        let mut frontend = Peer::new(&context, SocketType::Router, fork(&mut hub_rng));
        let mut backend = Peer::new(&context, SocketType::Dealer, fork(&mut hub_rng));
        frontend.bind_or_connect(&ends.0, true);
        backend.bind_or_connect(&ends.1, true);
        if lossy {
            frontend.set(LINGER, 0);
            backend.set(LINGER, 0);
        }
        loop {
            match proxy::run(&mut frontend.socket, Some(&mut backend.socket), None, None) {
                Err(Error::Interrupted) => {}
                Err(Error::Terminated) => break,
                other => panic!("a proxy ends: {other:?}"),
            }
        }
    });
    let mut servers = Vec::new();
    for _ in 0..workers {
        let (context, rng, back) = (hub.clone(), fork(rng), back.clone());
        servers.push(spawn("worker", move || {
            // All requests may have been answered before this peer starts.
            let Some(mut peer) = Peer::try_new(&context, SocketType::Rep, rng) else { return };
            // Requests of several clients share one connection, and a reply without room is
            // dropped.
            peer.set(SNDHWM, 0);
            peer.bind_or_connect(&back, false);
            peer.set(LINGER, 0);
            loop {
                let outcome = peer.recv().and_then(|question| peer.send(&question));
                match outcome {
                    Ok(()) => {}
                    Err(Error::Terminated) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }));
    }
    let mut askers = Vec::new();
    for client in 0..clients {
        let context = stage.context(rng);
        let (mut rng, front, kind) = (fork(rng), front.clone(), stage.kind);
        askers.push(spawn("client", move || {
            let rounds = kind.count(&mut rng, 60);
            let mut peer = Peer::new(&context, SocketType::Req, rng);
            peer.bind_or_connect(&front, false);
            if lossy {
                peer.tolerate_losses();
            }
            for number in 0..rounds {
                peer.ask(&kind.message(client, number), lossy);
            }
        }));
    }
    join(askers);
    hub.shutdown().unwrap();
    join(servers);
    device.join().unwrap();
    if stage.transport != "inproc" {
        stage.contexts.push(hub);
    }
}

/// SCATTER and GATHER, each used by several threads at a time.
pub(super) fn shared(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let kind = stage.kind.of_one_part();
    let lossy = stage.lossy;
    let ledger = stage.ledger_of(kind);
    let (senders, receivers) = (rng.between(1, 3) as u32, rng.between(1, 3) as u32);
    let sent: Vec<(u32, u32)> = (0..senders).map(|sender| (sender, kind.count(rng, 200))).collect();
    let total: u32 = sent.iter().map(|(_, count)| count).sum();
    let missing = Countdown::new(total as usize);
    let server = if stage.transport == "inproc" { stage.contexts[0].clone() } else { Context::new() };
    let share = |context: &Context, socket_type, rng: &mut Rng, binds: bool| {
        let mut peer = Peer::new(context, socket_type, fork(rng));
        if lossy {
            peer.set(LINGER, 1000);
            peer.set_receive_timeout(QUIET);
        }
        peer.bind_or_connect(&endpoint, binds);
        SharedSocket::new(peer.socket).unwrap()
    };
    let gather = share(&server, SocketType::Gather, rng, true);
    let scatter = share(&stage.context(rng), SocketType::Scatter, rng, false);
    let mut takers = Vec::new();
    for receiver in 0..receivers {
        let (gather, ledger, missing, server) =
            (gather.clone(), ledger.clone(), missing.clone(), server.clone());
        takers.push(spawn("gather", move || {
            let mut message = Message::new();
            let mut heard = Instant::now();
            loop {
                match gather.recv_message(&mut message, Flags::NONE) {
                    Ok(_) => {
                        ledger.record(receiver, &[message.as_slice().to_vec()]);
                        if missing.count_down() {
                            server.shutdown().unwrap();
                        }
                        heard = Instant::now();
                    }
                    // Each call restarts its timeout.
                    Err(Error::Interrupted) if lossy && heard.elapsed() > LONG => break,
                    Err(Error::Interrupted) => {}
                    Err(Error::Terminated) => break,
                    Err(Error::Again) if lossy => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }));
    }
    let mut givers = Vec::new();
    for (sender, count) in sent.iter().copied() {
        let (scatter, mut rng) = (scatter.clone(), fork(rng));
        givers.push(spawn("scatter", move || {
            for number in 0..count {
                let parts = kind.message(sender, number);
                let flags = if rng.chance(4) { Flags::DONTWAIT } else { Flags::NONE };
                loop {
                    match scatter.send(&parts[0], flags) {
                        Ok(()) => break,
                        Err(Error::Interrupted) => {}
                        Err(Error::Again) if flags == Flags::DONTWAIT && rng.chance(2) => {
                            let mut items =
                                [Item { watched: PollTarget::Shared(&scatter), events: POLLOUT, revents: 0 }];
                            let timeout = lossy.then(|| Duration::from_secs(1));
                            match poller::poll(&mut items, timeout) {
                                Ok(_) | Err(Error::Interrupted) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                        Err(Error::Again) if flags == Flags::DONTWAIT => {
                            std::thread::sleep(Duration::from_micros(rng.spread(10, 2000)));
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }));
    }
    join(givers);
    join(takers);
    drop((gather, scatter));
    ledger.check_complete(&sent);
    if stage.transport != "inproc" {
        stage.contexts.push(server);
    }
}

/// A PULL that binds and unbinds, and PUSH that connect and disconnect. Messages sent during these
/// changes may be lost, but messages sent after the last change arrive.
pub(super) fn rebind(stage: &mut Scenario, rng: &mut Rng) {
    let endpoints = [stage.endpoint(), stage.endpoint()];
    let kind = stage.kind;
    let ledger = stage.lenient_ledger();
    let senders = rng.between(1, 3) as u32;
    let busy = Countdown::new(senders as usize + 1);
    let last = Countdown::new(senders as usize);
    let mut handles = Vec::new();
    for sender in 0..senders {
        let (context, mut rng) = (stage.context(rng), fork(rng));
        let (endpoints, busy, last) = (endpoints.clone(), busy.clone(), last.clone());
        handles.push(spawn("push", move || {
            let mut peer = Peer::new(&context, SocketType::Push, fork(&mut rng));
            peer.set(SNDTIMEO, 20);
            // Messages for an endpoint that is no longer bound are dropped.
            peer.set(LINGER, 500);
            let mut number = 0;
            for _ in 0..rng.between(1, 8) {
                let endpoint = rng.pick(&endpoints);
                let connects = rng.chance(2);
                let outcome =
                    if connects { peer.socket.connect(endpoint) } else { peer.socket.disconnect(endpoint) };
                assert!(matches!(outcome, Ok(()) | Err(Error::NoEntry)), "connects {connects}: {outcome:?}");
                for _ in 0..rng.between(0, 20) {
                    match peer.try_send(&kind.message(sender, number)) {
                        Ok(()) => number += 1,
                        Err(Error::Again) => peer.sleep_briefly(),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            // Only the first endpoint is bound at the end.
            for endpoint in &endpoints {
                while peer.socket.disconnect(endpoint).is_ok() {}
            }
            busy.count_down();
            while busy.remaining() > 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
            peer.bind_or_connect(&endpoints[0], false);
            while last.remaining() > 0 {
                match peer.try_send(&kind.message(sender, number)) {
                    Ok(()) => number += 1,
                    Err(Error::Again) => {}
                    Err(error) => panic!("{error}"),
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            peer.set(LINGER, 0);
        }));
    }
    let (context, mut rng) = (stage.context(rng), fork(rng));
    let mut peer = Peer::new(&context, SocketType::Pull, fork(&mut rng));
    for _ in 0..rng.between(1, 8) {
        let endpoint = rng.pick(&endpoints);
        let binds = rng.chance(2);
        let outcome = if binds { peer.socket.bind(endpoint) } else { peer.socket.unbind(endpoint) };
        assert!(
            matches!(outcome, Ok(()) | Err(Error::NoEntry | Error::AddressInUse)),
            "binds {binds}: {outcome:?}"
        );
        for _ in 0..rng.between(0, 20) {
            match peer.try_recv() {
                Ok(parts) => drop(ledger.record(0, &parts)),
                Err(Error::Again) => peer.sleep_briefly(),
                Err(error) => panic!("{error}"),
            }
        }
    }
    for endpoint in &endpoints {
        let _ = peer.socket.unbind(endpoint);
    }
    // The closed listener may hold the address for a moment.
    while let Err(error) = peer.socket.bind(&endpoints[0]) {
        assert_eq!(error, Error::AddressInUse);
        peer.sleep_briefly();
    }
    busy.count_down();
    peer.set_receive_timeout(QUIET);
    let mut heard = std::collections::BTreeSet::new();
    while heard.len() < senders as usize {
        match peer.recv() {
            Ok(parts) => {
                // Earlier messages count. All senders repeat their messages.
                let (sender, _) = ledger.record(0, &parts);
                if busy.remaining() == 0 && heard.insert(sender) {
                    last.count_down();
                }
            }
            Err(error) => panic!("of {senders} senders only {heard:?} are heard: {error}"),
        }
    }
    peer.set(LINGER, 0);
    drop(peer);
    join(handles);
}

/// A thread that waits for several PULL sockets with one `poll`.
pub(super) fn many(stage: &mut Scenario, rng: &mut Rng) {
    let lossy = stage.lossy;
    let ledger = stage.ledger();
    let sent: Vec<(u32, u32)> =
        (0..some_or_many(rng, 6).min(24)).map(|at| (at, stage.kind.count(rng, 60))).collect();
    let busy = Countdown::new(sent.len());
    let mut pulls = Vec::new();
    let mut senders = Vec::new();
    for (sender, count) in sent.iter().copied() {
        let endpoint = stage.endpoint();
        let (context, rng_of_sender) = (stage.context(rng), fork(rng));
        let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
        pull.bind_or_connect(&endpoint, true);
        pulls.push(pull);
        let (kind, busy) = (stage.kind, busy.clone());
        senders.push(spawn("push", move || {
            let mut peer = Peer::new(&context, SocketType::Push, rng_of_sender);
            peer.bind_or_connect(&endpoint, false);
            for number in 0..count {
                peer.send(&kind.message(sender, number)).unwrap_or_else(|error| panic!("{error}"));
            }
            if lossy {
                peer.set(LINGER, 20_000);
            }
            drop(peer);
            busy.count_down();
        }));
    }
    let mut left: u32 = sent.iter().map(|(_, count)| count).sum();
    let quiet = UnixStream::pair().unwrap();
    let mut heard = Instant::now();
    while left > 0 {
        let mut items: Vec<Item<'_>> = pulls
            .iter_mut()
            .map(|pull| Item { watched: PollTarget::Socket(&mut pull.socket), events: POLLIN, revents: 0 })
            .collect();
        if lossy {
            // An additional descriptor that never becomes ready.
            items.push(Item {
                watched: PollTarget::Descriptor(quiet.0.as_raw_fd()),
                events: POLLIN,
                revents: 0,
            });
        }
        let was_busy = busy.remaining() > 0;
        let pulls_there = sent.len();
        let outcome = poller::poll(&mut items, lossy.then_some(LONG));
        assert!(
            items.len() == pulls_there || items[pulls_there].revents == 0,
            "poll reports an idle descriptor as readable"
        );
        let ready: Vec<bool> = items.iter().map(|item| item.revents & POLLIN != 0).collect();
        drop(items);
        match outcome {
            Ok(0) if lossy && !was_busy => break,
            Err(Error::Interrupted) if lossy && !was_busy && heard.elapsed() > LONG => break,
            Ok(_) | Err(Error::Interrupted) => {}
            Err(error) => panic!("{error}"),
        }
        for (receiver, pull) in pulls.iter_mut().enumerate().filter(|(at, _)| ready[*at]) {
            match pull.try_recv() {
                Ok(parts) => drop(ledger.record(receiver as u32, &parts)),
                Err(error) => panic!("POLLIN, and {error}"),
            }
            (left, heard) = (left - 1, Instant::now());
        }
    }
    join(senders);
    ledger.check_complete(&sent);
}
