//! Reports of sockets to their program: monitors of all versions, lists of peers, and the
//! statistics of a proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tautline_core::{Context, Error, SocketType, proxy};

use super::peer::{LINGER, Peer, RCVHWM, SNDHWM, SUBSCRIBE};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

// zmq_socket_monitor(3), zmq_socket_monitor_versioned(3).
const CONNECTED: u64 = 0x1;
const ACCEPTED: u64 = 0x20;
const DISCONNECTED: u64 = 0x200;
const MONITOR_STOPPED: u64 = 0x400;
const HANDSHAKE_SUCCEEDED: u64 = 0x1000;
const HANDSHAKE_FAILED: u64 = 0x800 | 0x2000 | 0x4000;
const PIPES_STATS: u64 = 0x10000;

/// PULL and PUSH with monitors, each read by its own thread. The PUSH connect and disconnect.
pub(super) fn monitored(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_streams();
    let endpoint = stage.endpoint();
    let (kind, lossy, ledger) = (stage.kind, stage.lossy, stage.ledger());
    let sent: Vec<(u32, u32)> = (0..rng.between(1, 4) as u32).map(|at| (at, kind.count(rng, 60))).collect();
    let total: u32 = sent.iter().map(|(_, count)| count).sum();
    let context = stage.context(rng);
    let mut pull = Peer::new(&context, SocketType::Pull, fork(rng));
    if lossy {
        pull.set_receive_timeout(super::patterns::QUIET);
    }
    let reader = watch(&context, &mut pull, "inproc://events of the pull", rng);
    pull.bind_or_connect(&endpoint, true);
    let busy = Countdown::new(1);
    let own = stage.context(rng);
    let (senders, at, done, mut sender_rng) = (sent.clone(), endpoint.clone(), busy.clone(), fork(rng));
    let clients = std::thread::spawn(move || {
        let mut readers = Vec::new();
        for (sender, count) in senders {
            let mut push = Peer::new(&own, SocketType::Push, fork(&mut sender_rng));
            let name = format!("inproc://events of {sender}");
            readers.push(watch(&own, &mut push, &name, &mut sender_rng));
            push.bind_or_connect(&at, false);
            for number in 0..count {
                push.send(&kind.message(sender, number)).unwrap_or_else(|error| panic!("{error}"));
            }
            if lossy {
                push.set(LINGER, 20_000);
            }
            if push.rng.chance(2) {
                push.socket.monitor(None, 0, 1, SocketType::Pair).unwrap();
            }
            drop(push);
        }
        done.count_down();
        readers
    });
    let mut heard = 0;
    while heard < total {
        match pull.recv() {
            Ok(parts) => {
                ledger.record(0, &parts);
                heard += 1;
            }
            Err(Error::Again) if lossy && busy.remaining() > 0 => {}
            Err(Error::Again) if lossy => break,
            Err(error) => panic!("{error}"),
        }
        if pull.rng.chance(4) {
            match pull.socket.monitor_queues() {
                Ok(()) | Err(Error::Again | Error::Invalid) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    let mut readers = clients.join().unwrap();
    ledger.check_complete(&sent);
    readers.push(reader);
    // Ends the monitor, because its reader would wait without end.
    pull.socket.monitor(None, 0, 1, SocketType::Pair).unwrap();
    drop(pull);
    for (reader, ends) in readers {
        ends.store(true, SeqCst);
        reader.join().unwrap();
    }
}

/// Thread of a reader, and its request to end when no event arrives.
type Reader = (std::thread::JoinHandle<()>, Arc<AtomicBool>);

/// Starts a monitor, and a thread that reads it.
fn watch(context: &Context, peer: &mut Peer, endpoint: &str, rng: &mut Rng) -> Reader {
    let version = rng.between(1, 3) as i32;
    let (writes, reads) = *rng.pick(&[
        (SocketType::Pair, SocketType::Pair),
        (SocketType::Pub, SocketType::Sub),
        (SocketType::Push, SocketType::Pull),
    ]);
    let events = if version == 1 { 0xffff } else { 0x1_ffff };
    // Arguments that zmq_socket_monitor_versioned(3) refuses.
    for (endpoint, version, kind, error) in [
        ("tcp://127.0.0.1:9", 1, SocketType::Pair, Error::ProtocolNotSupported),
        ("inproc://x", 9, SocketType::Pair, Error::Invalid),
        ("inproc://x", 2, SocketType::Router, Error::Invalid),
    ] {
        assert_eq!(peer.socket.monitor(Some(endpoint), 1, version, kind), Err(error));
    }
    if version == 3 && writes == SocketType::Pair && rng.chance(2) {
        peer.socket.monitor_in_detail(endpoint).unwrap();
    } else {
        peer.socket.monitor(Some(endpoint), events, version, writes).unwrap();
    }
    let mut reader = Peer::new(context, reads, fork(rng));
    reader.set(RCVHWM, 0);
    reader.set(super::peer::HEARTBEAT_IVL, 0);
    reader.set(LINGER, 0);
    if reads == SocketType::Sub {
        reader.set_bytes(SUBSCRIBE, b"");
    }
    reader.set_receive_timeout(1_000);
    reader.bind_or_connect(endpoint, false);
    let ends = Arc::new(AtomicBool::new(false));
    let over = ends.clone();
    // A PUB learns of its subscriber after its first events, which are lost.
    let is_whole = writes != SocketType::Pub;
    (spawn("monitor", move || read(&mut reader, version, is_whole, &over)), ends)
}

/// Checks that events are whole, and in an order that connections can have.
fn read(reader: &mut Peer, version: i32, is_whole: bool, ends: &AtomicBool) {
    let (mut opened, mut in_use, mut lost, mut failed, mut stopped) = (0, 0, 0, 0, false);
    loop {
        let parts = match reader.recv() {
            Ok(parts) => parts,
            Err(Error::Again) if ends.load(SeqCst) => return,
            Err(error) => {
                assert_eq!(error, Error::Again);
                continue;
            }
        };
        assert!(!stopped, "an event behind the last one");
        let event = match version {
            1 => {
                assert_eq!((parts.len(), parts[0].len()), (2, 6), "an event of version 1");
                u64::from(u16::from_ne_bytes(*parts[0].first_chunk().expect("a number")))
            }
            _ => {
                let numbers: Vec<u64> = parts
                    .iter()
                    .map_while(|part| Some(u64::from_ne_bytes(part.as_slice().try_into().ok()?)))
                    .collect();
                let count = numbers[1] as usize;
                assert!(numbers.len() >= 2 + count, "{count} values in {parts:?}");
                let texts = parts.len() - 2 - count;
                assert!(if version == 2 { texts == 2 } else { texts > 2 }, "{texts} texts in {parts:?}");
                assert_eq!(count, if numbers[0] == PIPES_STATS { 2 } else { count.max(1) });
                numbers[0]
            }
        };
        match event {
            CONNECTED | ACCEPTED => opened += 1,
            HANDSHAKE_SUCCEEDED => in_use += 1,
            DISCONNECTED => lost += 1,
            MONITOR_STOPPED => stopped = true,
            _ if event & HANDSHAKE_FAILED != 0 => failed += 1,
            _ => {}
        }
        let has_streams = in_use + failed <= opened && lost <= opened;
        assert!(
            has_streams || !is_whole,
            "{opened} streams, of which {in_use} are in use, {failed} have failed and {lost} are lost"
        );
    }
}

/// A DEALER that waits for its peers, queries them, and disconnects them; PUB and SUB that wait for
/// subscriptions; a SERVER that disconnects one of its peers.
pub(super) fn peers(stage: &mut Scenario, rng: &mut Rng) {
    world::with(|world| world.kernel.faults.stop_losses());
    let endpoint = stage.endpoint();
    let context = stage.context(rng);
    let mut router = Peer::new(&context, SocketType::Router, fork(rng));
    router.set(LINGER, 0);
    router.set(SNDHWM, 0);
    router.set(RCVHWM, 0);
    router.bind_or_connect(&endpoint, true);
    let count = rng.between(1, 4) as usize;
    let mut dealers = Vec::new();
    for number in 0..count {
        let mut dealer = Peer::new(&stage.context(rng), SocketType::Dealer, fork(rng));
        dealer.set_bytes(super::peer::ROUTING_ID, &[b'd', number as u8]);
        dealer.set(LINGER, 0);
        dealer.bind_or_connect(&endpoint, false);
        dealers.push(dealer);
    }
    wait(|deadline| router.socket.wait_for_peers(count, deadline));
    let names: Vec<Vec<u8>> = (0..count as u8).map(|number| vec![b'd', number]).collect();
    let mut seen: Vec<Vec<u8>> =
        router.socket.peers().unwrap().into_iter().map(|peer| peer.routing_id).collect();
    seen.sort();
    assert_eq!(seen, names);
    for name in &names {
        let state = router.socket.peer_state(name).unwrap();
        assert_eq!(state, 2, "state of a peer that has not sent a message");
        router.send(&[name.clone(), b"a question".to_vec()]).unwrap();
    }
    assert_eq!(router.socket.peer_state(b"nobody"), Err(Error::HostUnreachable));
    for dealer in &mut dealers {
        wait(|deadline| dealer.socket.wait_for_peers(1, deadline));
        assert_eq!(dealer.recv().unwrap(), [b"a question"]);
        dealer.send(&[b"an answer".to_vec()]).unwrap();
        let all = dealer.socket.peers().unwrap();
        assert_eq!((all.len(), all[0].connected_here), (1, true));
        assert_eq!(dealer.socket.peer_state(b"x"), Err(Error::NotSupported));
    }
    for _ in 0..count {
        assert_eq!(router.recv().unwrap()[1], b"an answer");
    }
    let messages: u64 =
        router.socket.peers().unwrap().iter().map(|peer| peer.messages_in + peer.messages_out).sum();
    assert_eq!(messages, 2 * count as u64, "messages that the peers have counted");
    // ZMQ_TAUTLINE_PEERS and ZMQ_TAUTLINE_WAIT_PEERS.
    let mut room = vec![0; 8192];
    let n = router.socket.option(0x5441_0005, &mut room).unwrap();
    assert!(n > 0 && n.is_multiple_of(count), "{n} bytes of {count} peers");
    router.set(0x5441_0006, count as i32);
    drop(dealers);
    let far = Instant::now() + Duration::from_secs(1);
    while let Err(error) = router.socket.wait_for_peers(count + 1, Some(far)) {
        if error == Error::Again {
            break;
        }
        assert_eq!(error, Error::Interrupted);
    }
    assert_eq!(router.socket.wait_for_subscriptions(1, None), Err(Error::NotSupported));
    topics(stage, rng);
    numbers(stage, rng);
}

fn wait(mut f: impl FnMut(Option<Instant>) -> Result<(), Error>) {
    loop {
        match f(Some(Instant::now() + Duration::from_secs(1000))) {
            Ok(()) => return,
            Err(Error::Interrupted) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn topics(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let (mut publisher, mut subscriber) = (
        Peer::new(&stage.context(rng), SocketType::Pub, fork(rng)),
        Peer::new(&stage.context(rng), SocketType::Sub, fork(rng)),
    );
    publisher.set(LINGER, 0);
    publisher.set(SNDHWM, 0);
    subscriber.set(RCVHWM, 0);
    publisher.bind_or_connect(&endpoint, true);
    subscriber.bind_or_connect(&endpoint, false);
    let count = rng.between(1, 30) as usize;
    for number in 0..count {
        subscriber.set_bytes(SUBSCRIBE, &[b't', number as u8]);
    }
    wait(|deadline| publisher.socket.wait_for_subscriptions(count, deadline));
    // ZMQ_TOPICS_COUNT.
    for peer in [&mut publisher, &mut subscriber] {
        let mut number = [0; 4];
        while let Err(error) = peer.socket.option(116, &mut number) {
            assert_eq!(error, Error::Interrupted);
        }
        assert_eq!(i32::from_ne_bytes(number), count as i32);
    }
    for number in 0..=count {
        publisher.send(&[vec![b't', number as u8]]).unwrap();
    }
    for number in 0..count {
        assert_eq!(subscriber.recv().unwrap(), [[b't', number as u8]]);
    }
}

fn numbers(stage: &mut Scenario, rng: &mut Rng) {
    use tautline_core::{Flags, Message};
    let endpoint = stage.endpoint();
    let (mut server, mut client) = (
        stage.context(rng).socket(SocketType::Server).unwrap(),
        stage.context(rng).socket(SocketType::Client).unwrap(),
    );
    for socket in [&mut server, &mut client] {
        socket.set_option(LINGER, &0_i32.to_ne_bytes()).unwrap();
    }
    server.bind(&endpoint).unwrap();
    client.connect(&endpoint).unwrap();
    assert_eq!(client.connect_peer(&endpoint), Err(Error::NotSupported));
    assert_eq!(client.disconnect_peer(1), Err(Error::NotSupported));
    while let Err(error) = client.send(b"here", Flags::NONE) {
        assert_eq!(error, Error::Interrupted);
    }
    let mut message = Message::new();
    while let Err(error) = server.recv_message(&mut message, Flags::NONE) {
        assert_eq!(error, Error::Interrupted);
    }
    let number = message.routing_id();
    assert_eq!(server.disconnect_peer(number), Ok(()));
    assert_eq!(server.disconnect_peer(number), Err(Error::HostUnreachable));
    message.set_routing_id(number);
    assert_eq!(server.send_message(&mut message, Flags::DONTWAIT), Err(Error::HostUnreachable));
}

/// A pipeline through a proxy that is paused, asked and ended.
pub(super) fn steered(stage: &mut Scenario, rng: &mut Rng) {
    let (front, back, steering) = (stage.endpoint(), stage.endpoint(), "inproc://steering");
    world::with(|world| {
        world.kernel.faults.stop_losses();
        // An interrupted proxy starts anew, with all counters at 0.
        world.kernel.faults.interrupted = 0;
    });
    let kind = stage.kind;
    let count = kind.count(rng, 200);
    let answers = rng.chance(2);
    let hub = if stage.transport == "inproc" { stage.contexts[0].clone() } else { Context::new() };
    let captures = rng.chance(2);
    let (context, mut hub_rng, ends) = (hub.clone(), fork(rng), (front.clone(), back.clone()));
    let bound = Countdown::new(1);
    let is_bound = bound.clone();
    let device = spawn("proxy", move || {
        let mut frontend = Peer::new(&context, SocketType::Pull, fork(&mut hub_rng));
        let mut backend = Peer::new(&context, SocketType::Push, fork(&mut hub_rng));
        let control_type = if answers { SocketType::Rep } else { SocketType::Pair };
        let mut control = Peer::new(&context, control_type, fork(&mut hub_rng));
        let mut capture = captures.then(|| Peer::new(&context, SocketType::Pair, fork(&mut hub_rng)));
        frontend.bind_or_connect(&ends.0, true);
        backend.bind_or_connect(&ends.1, true);
        control.bind_or_connect(steering, true);
        if let Some(capture) = &mut capture {
            capture.set(SNDHWM, 0);
            capture.bind_or_connect("inproc://captured", true);
        }
        is_bound.count_down();
        loop {
            let outcome = proxy::run(
                &mut frontend.socket,
                Some(&mut backend.socket),
                capture.as_mut().map(|capture| &mut capture.socket),
                Some(&mut control.socket),
            );
            match outcome {
                Ok(()) => break,
                Err(error) => assert_eq!(error, Error::Interrupted, "a proxy ends"),
            }
        }
    });
    while bound.remaining() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let ledger = stage.ledger();
    let mut handles = Vec::new();
    let (mut push, mut pull) = (
        Peer::new(&stage.context(rng), SocketType::Push, fork(rng)),
        Peer::new(&stage.context(rng), SocketType::Pull, fork(rng)),
    );
    push.bind_or_connect(&front, false);
    pull.bind_or_connect(&back, false);
    handles.push(spawn("push", move || {
        for number in 0..count {
            push.send(&kind.message(0, number)).unwrap_or_else(|error| panic!("{error}"));
        }
    }));
    let entered = ledger.clone();
    handles.push(spawn("pull", move || {
        for _ in 0..count {
            entered.record(0, &pull.recv().unwrap_or_else(|error| panic!("{error}")));
        }
    }));
    if captures {
        let mut seen = Peer::new(&hub, SocketType::Pair, fork(rng));
        seen.set(RCVHWM, 0);
        seen.bind_or_connect("inproc://captured", false);
        handles.push(spawn("capture", move || {
            for number in 0..count {
                assert!(
                    seen.recv().unwrap() == kind.message(0, number),
                    "the captured message differs from the sent one"
                );
            }
        }));
    }
    let asks = if answers { SocketType::Req } else { SocketType::Pair };
    let mut controller = Peer::new(&hub, asks, fork(rng));
    controller.bind_or_connect(steering, false);
    let mut last = [0; 8];
    for _ in 0..rng.between(1, 10) {
        let pauses = rng.chance(2);
        if pauses {
            command(&mut controller, "PAUSE", answers);
        }
        let first = statistics(&mut controller);
        controller.sleep_briefly();
        let second = statistics(&mut controller);
        assert!(!pauses || first == second, "a proxy that is paused passes on: {first:?}, {second:?}");
        for (numbers, before) in [(first, last), (second, first)] {
            assert!(numbers.iter().zip(before).all(|(now, before)| *now >= before), "fewer than {before:?}");
            // All input of the frontend leaves through the backend.
            assert_eq!((numbers[0], numbers[1]), (numbers[6], numbers[7]));
        }
        last = second;
        command(&mut controller, "NONSENSE", answers);
        command(&mut controller, "RESUME", answers);
        controller.sleep_briefly();
    }
    join(handles);
    ledger.check_complete(&[(0, count)]);
    let parts: u64 = (0..count).map(|number| kind.message(0, number).len() as u64).sum();
    assert_eq!(statistics(&mut controller)[0], parts, "parts that have passed");
    command(&mut controller, "TERMINATE", answers);
    device.join().unwrap();
    controller.set(LINGER, 0);
    if stage.transport != "inproc" {
        stage.contexts.push(hub);
    }
}

fn command(controller: &mut Peer, word: &str, answers: bool) {
    controller.send(&[word.as_bytes().to_vec()]).unwrap();
    if answers {
        assert_eq!(controller.recv().unwrap(), [b""]);
    }
}

/// zmq_proxy_steerable(3): messages and bytes received and sent, of the frontend and the backend.
fn statistics(controller: &mut Peer) -> [u64; 8] {
    controller.send(&[b"STATISTICS".to_vec()]).unwrap();
    let parts = controller.recv().unwrap();
    assert_eq!(parts.len(), 8);
    let number = |at: usize| u64::from_ne_bytes(parts[at].as_slice().try_into().expect("eight bytes"));
    std::array::from_fn(number)
}
