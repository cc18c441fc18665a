//! Calls that end an object while it is in use: an unbind within a message, a close beside a
//! blocked call, and a disconnect between two attempts to connect.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tautline_core::{Closer, Context, Error, Flags, Observed, SharedSocket, SocketType, proxy};

use super::peer::{LINGER, Peer, RCVHWM, SNDHWM, SNDTIMEO, trace};
use super::{Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const RECONNECT_IVL: i32 = 18;
const RECONNECT_STOP: i32 = 109;
const STOP_AFTER_DISCONNECT: i32 = 4;
// zmq_socket_monitor(3).
const CONNECT_RETRIED: u32 = 0x4;
const CLOSED: u32 = 0x80;

/// A socket that unbinds between two parts of a message, and binds again. Its peer sends messages,
/// some of which are unread at that time, and receives no incomplete message.
pub(super) fn halves(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_streams();
    world::with(|world| world.kernel.faults.stop_losses());
    let endpoint = stage.endpoint();
    let (binds, connects) = *rng.pick(&[
        (SocketType::Dealer, SocketType::Dealer),
        (SocketType::Pair, SocketType::Pair),
        (SocketType::Router, SocketType::Dealer),
        (SocketType::Rep, SocketType::Dealer),
        (SocketType::XPub, SocketType::XSub),
    ]);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut peer = Peer::new(&stage.context(rng), connects, fork(rng));
    peer.set(RECONNECT_IVL, 5);
    peer.set(LINGER, 0);
    peer.set(SNDTIMEO, 5);
    peer.set_receive_timeout(5);
    peer.socket.connect(&endpoint).unwrap();
    let over = is_over.clone();
    let receiver = spawn("receiver", move || {
        let hello: &[&[u8]] = match binds {
            SocketType::XPub => &[b"\x01"],
            SocketType::Rep => &[b"", b"hello"],
            _ => &[b"hello"],
        };
        let hello: Vec<Vec<u8>> = hello.iter().map(|part| part.to_vec()).collect();
        while !over.load(SeqCst) {
            for _ in 0..peer.rng.between(1, 3) {
                let _ = peer.try_send(&hello);
            }
            while let Ok(mut parts) = peer.recv() {
                if binds == SocketType::Rep {
                    assert_eq!(parts.remove(0), b"", "the delimiter of a reply");
                }
                check_whole(&parts);
            }
        }
    });
    let mut peer = Peer::new(&stage.context(rng), binds, fork(rng));
    peer.set(LINGER, *rng.pick(&[0, 100, -1]));
    peer.set(SNDTIMEO, 50);
    peer.set_receive_timeout(2_000);
    for number in 0..rng.between(3, 12) as u8 {
        // The closed listener may hold the address for a moment.
        while let Err(error) = peer.socket.bind(&endpoint) {
            assert_eq!(error, Error::AddressInUse);
            peer.sleep_briefly();
        }
        // Later messages of the peer stay unread.
        let Ok(from) = peer.recv() else {
            peer.socket.unbind(&endpoint).unwrap();
            continue;
        };
        if rng.chance(2) {
            peer.sleep_briefly();
        }
        let mut parts = whole(number, rng);
        if binds == SocketType::Router {
            parts.insert(0, from[0].clone());
        }
        let unbinds_before = rng.between(1, parts.len() as u64 - 1) as usize;
        for (at, part) in parts.iter().enumerate() {
            if at == unbinds_before {
                peer.socket.unbind(&endpoint).unwrap();
            }
            if !send_part(&mut peer, part, at + 1 < parts.len()) {
                assert_eq!(at, 0, "a part of a message is refused after the first one");
                peer.socket.unbind(&endpoint).unwrap();
                break;
            }
        }
    }
    is_over.store(true, SeqCst);
    join(vec![receiver]);
    peer.set(LINGER, 0);
}

/// Sends a part. Returns false if there is no peer or no room.
fn send_part(peer: &mut Peer, part: &[u8], more: bool) -> bool {
    world::progress();
    loop {
        match peer.socket.send(part, if more { Flags::MORE } else { Flags::NONE }) {
            Ok(()) => return true,
            Err(Error::Interrupted) => {}
            Err(Error::Again) => return false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns a message whose parts show its number, their own place, and the number of parts.
fn whole(number: u8, rng: &mut Rng) -> Vec<Vec<u8>> {
    let count = rng.between(2, 5) as u8;
    (0..count)
        .map(|at| [&[number, at, count][..], &vec![7; rng.spread(1, 4_000) as usize]].concat())
        .collect()
}

fn check_whole(parts: &[Vec<u8>]) {
    world::progress();
    let heads: Vec<&[u8]> = parts.iter().map(|part| &part[..3]).collect();
    let is_whole =
        heads.iter().enumerate().all(|(at, head)| *head == [heads[0][0], at as u8, parts.len() as u8]);
    assert!(is_whole, "a part of a message arrives as a message: {heads:?}");
}

/// Threads that block in a call on a socket: a receive, a send, a poll or a proxy. Another thread
/// closes the socket, and the call ends with ENOTSOCK.
pub(super) fn closes(stage: &mut Scenario, rng: &mut Rng) {
    let mut handles = Vec::new();
    for _ in 0..rng.between(1, 4) {
        let context = stage.context(rng);
        let endpoint = stage.endpoint();
        let case = rng.below(4);
        let (mut own, kind) = (fork(rng), stage.kind);
        let closer = match case {
            0 => {
                let mut peer = Peer::new(&context, SocketType::Pull, own);
                peer.bind_or_connect(&endpoint, true);
                let closer = Closer::of(&peer.socket);
                let mut outcome = move || loop {
                    if let Err(error) = peer.recv() {
                        break error;
                    }
                };
                handles.push(spawn("recv", move || assert_eq!(outcome(), Error::NotSocket)));
                Ending::Closer(closer)
            }
            1 => {
                let mut peer = Peer::new(&context, SocketType::Push, own);
                peer.set(LINGER, 0);
                peer.set(SNDHWM, 2);
                peer.bind_or_connect(&endpoint, true);
                let closer = Closer::of(&peer.socket);
                let mut outcome = move || {
                    (0..).find_map(|number| peer.send(&kind.message(0, number)).err()).expect("an end")
                };
                handles.push(spawn("send", move || assert_eq!(outcome(), Error::NotSocket)));
                Ending::Closer(closer)
            }
            2 => run_proxy(&context, &endpoint, &mut own, &mut handles),
            _ => {
                let mut peer = Peer::new(&context, SocketType::Gather, own);
                peer.bind_or_connect(&endpoint, true);
                let shared = SharedSocket::new(peer.socket).unwrap();
                let inside = shared.clone();
                let proxies = rng.chance(2);
                handles.push(spawn("shared", move || {
                    let outcome = match proxies {
                        // A closed socket has no proxy.
                        true => inside.with(|socket| proxy::run(socket, None, None, None)),
                        false => inside.recv(&mut [], Flags::NONE).map(drop),
                    };
                    if outcome != Err(Error::Interrupted) {
                        assert_eq!(outcome, Err(Error::NotSocket));
                    }
                }));
                Ending::Shared(shared)
            }
        };
        let pause = Duration::from_micros(rng.spread(1, 200_000));
        handles.push(spawn("closer", move || {
            std::thread::sleep(pause);
            match closer {
                Ending::Closer(closer) => closer.end_calls(),
                Ending::Shared(shared) => shared.close().unwrap(),
            }
        }));
    }
    join(handles);
}

/// A thread that sends from some sockets, closes them, and then waits for an answer at another
/// socket. The receiver answers when it has all messages, so they are sent although the sockets are
/// closed. Then the context ends.
pub(super) fn farewells(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_streams();
    world::with(|world| world.kernel.faults.stop_losses());
    let kind = stage.kind;
    let [endpoint, back] = [(); 2].map(|()| stage.endpoint());
    let rounds: Vec<Vec<u32>> = (0..rng.between(1, 8))
        .map(|_| (0..rng.between(1, 4)).map(|_| kind.count(rng, 8)).collect())
        .collect();
    let mut receiver = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    receiver.bind_or_connect(&endpoint, true);
    let mut answers = Peer::new(&stage.context(rng), SocketType::Push, fork(rng));
    answers.bind_or_connect(&back, true);
    let (context, mut own, sent) = (stage.context(rng), fork(rng), rounds.clone());
    let sender = spawn("sender", move || {
        let mut waiter = Peer::new(&context, SocketType::Pull, fork(&mut own));
        waiter.bind_or_connect(&back, false);
        for counts in rounds {
            let mut peers: Vec<Peer> = counts
                .iter()
                .map(|_| {
                    let mut peer = Peer::new(&context, SocketType::Push, fork(&mut own));
                    peer.bind_or_connect(&endpoint, false);
                    peer
                })
                .collect();
            for (peer, &count) in peers.iter_mut().zip(&counts) {
                for number in 0..count {
                    peer.send(&kind.message(0, number)).unwrap();
                }
            }
            drop(peers);
            waiter.recv().unwrap();
        }
    });
    for counts in sent {
        (0..counts.iter().sum()).for_each(|_| drop(receiver.recv().unwrap()));
        answers.send(&kind.message(0, 0)).unwrap();
    }
    join(vec![sender]);
}

/// The means by which another thread closes a socket.
enum Ending {
    Closer(Closer),
    Shared(Arc<SharedSocket>),
}

/// Starts a proxy between sockets without peers, which may be paused, or may wait for room of its
/// capture socket. One of its sockets is closed.
fn run_proxy(
    context: &Context,
    endpoint: &str,
    rng: &mut Rng,
    handles: &mut Vec<std::thread::JoinHandle<()>>,
) -> Ending {
    let types = [SocketType::Pull, SocketType::Push, SocketType::Push, SocketType::Pair];
    let [mut front, mut back, mut capture, mut control] = types.map(|kind| {
        let mut peer = Peer::new(context, kind, fork(rng));
        peer.set(LINGER, 0);
        peer
    });
    let steering = format!("inproc://steering of {endpoint}");
    control.bind_or_connect(&steering, true);
    let mut controller = Peer::new(context, SocketType::Pair, fork(rng));
    controller.set(LINGER, 0);
    controller.set(SNDHWM, 0);
    controller.bind_or_connect(&steering, false);
    let source = format!("inproc://source of {endpoint}");
    front.bind_or_connect(&source, true);
    let mut push = Peer::new(context, SocketType::Push, fork(rng));
    push.set(LINGER, 0);
    push.set(SNDHWM, 0);
    push.bind_or_connect(&source, false);
    if rng.chance(2) {
        controller.send(&[b"PAUSE".to_vec()]).unwrap();
    }
    for number in 0..rng.below(3) as u8 {
        push.send(&[vec![number]]).unwrap();
    }
    let closer = Closer::of(&[&front, &back, &capture, &control][rng.below(4) as usize].socket);
    handles.push(spawn("proxy", move || {
        loop {
            let outcome = proxy::run(
                &mut front.socket,
                Some(&mut back.socket),
                Some(&mut capture.socket),
                Some(&mut control.socket),
            );
            if outcome != Err(Error::Interrupted) {
                assert_eq!(outcome, Err(Error::NotSocket), "a proxy with a closed socket");
                // They stay until the proxy has ended.
                drop((controller, push));
                break;
            }
        }
    }));
    Ending::Closer(closer)
}

/// A socket that connects to an endpoint without a listener, and disconnects while it waits for its
/// next attempt. It makes no further attempt. With ZMQ_RECONNECT_STOP_AFTER_DISCONNECT, one CLOSED
/// tells the program so.
pub(super) fn retries(stage: &mut Scenario, rng: &mut Rng) {
    // An inproc endpoint needs no attempts.
    if stage.transport() == "inproc" {
        stage.over_tcp();
    }
    world::with(|world| world.kernel.faults.stop_losses());
    let endpoint = stage.endpoint();
    let kind = *rng.pick(&[SocketType::Sub, SocketType::Push, SocketType::Dealer, SocketType::Req]);
    let mut peer = Peer::new(&stage.context(rng), kind, fork(rng));
    let seen: Arc<Mutex<Vec<u32>>> = Arc::default();
    let all = seen.clone();
    peer.socket.observe(Arc::new(move |seen: &Observed<'_>| {
        trace(|| format!("event {:#x} {} {} {}", seen.event, seen.value, seen.local, seen.remote));
        all.lock().unwrap().push(seen.event);
    }));
    let stops = rng.chance(2);
    peer.set(RECONNECT_STOP, if stops { STOP_AFTER_DISCONNECT } else { 0 });
    // No stall of a thread lasts as long.
    peer.set(RECONNECT_IVL, 1_000_000);
    peer.set(LINGER, *rng.pick(&[0, 50, -1]));
    peer.set(RCVHWM, 10);
    peer.socket.connect(&endpoint).unwrap();
    while !seen.lock().unwrap().contains(&CONNECT_RETRIED) {
        std::thread::sleep(Duration::from_millis(10));
        world::progress();
    }
    std::thread::sleep(Duration::from_micros(rng.spread(1, 5_000_000)));
    let before = seen.lock().unwrap().len();
    peer.socket.disconnect(&endpoint).unwrap();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_secs(25));
        world::progress();
    }
    let after = seen.lock().unwrap().split_off(before);
    let count = |event| after.iter().filter(|seen| **seen == event).count();
    let (closed, retried) = (count(CLOSED), count(CONNECT_RETRIED));
    assert_eq!((closed, retried), (usize::from(stops), 0), "events after the disconnect: {after:x?}");
    peer.set(LINGER, 0);
}
