//! Workloads with faulty peers: processes that are killed and restarted, and strangers without
//! ZMTP.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tautline_core::{Context, Error, SocketType};

use super::event_checks::STRANGERS;
use super::patterns::flow;
use super::peer::{LINGER, Peer, SNDTIMEO, trace};
use super::traffic::{Ledger, MessageProfile};
use super::{Scenario, fork, spawn};
use crate::rng::Rng;
use crate::world::{self, Process};

/// State that the processes of [`crash`] share with their killer.
struct Scene {
    endpoint: String,
    kind: MessageProfile,
    ledger: Arc<Ledger>,
    /// Each start of a process counts as a new sender or receiver.
    starts: AtomicU32,
    /// Senders that the last receiver has received from.
    heard: Mutex<(u32, BTreeSet<u32>)>,
    ends: AtomicBool,
}

struct Running {
    process: Process,
    start: u32,
    thread: JoinHandle<()>,
}

/// A PULL and some PUSH, each in a process that is killed and restarted. The last processes
/// exchange messages.
pub(super) fn crash(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_streams();
    // A thread that waits for another thread of its process, such as a timer thread, is not killed.
    world::with(|world| world.kernel.faults.sandbox = false);
    let scene = Arc::new(Scene {
        endpoint: stage.endpoint(),
        kind: stage.kind,
        ledger: stage.lenient_ledger(),
        starts: AtomicU32::new(0),
        heard: Mutex::default(),
        ends: AtomicBool::new(false),
    });
    let mut server = start(&scene, rng, pull);
    let mut clients: Vec<Running> = (0..rng.between(1, 3)).map(|_| start(&scene, rng, push)).collect();
    for _ in 0..rng.between(1, 8) {
        std::thread::sleep(Duration::from_micros(rng.spread(10, 400_000)));
        let victim = rng.below(clients.len() as u64 + 1) as usize;
        let running = clients.get_mut(victim).unwrap_or(&mut server);
        world::kill(running.process);
        if rng.chance(2) {
            std::thread::sleep(Duration::from_micros(rng.spread(10, 400_000)));
        }
        let program: Program = if victim < clients.len() { push } else { pull };
        let new = start(&scene, rng, program);
        let old = std::mem::replace(clients.get_mut(victim).unwrap_or(&mut server), new);
        // Its end cannot be awaited.
        std::mem::forget(old.thread);
    }
    let wanted: BTreeSet<u32> = clients.iter().map(|client| client.start).collect();
    for round in 0.. {
        let heard = scene.heard.lock().unwrap().clone();
        if heard.0 == server.start && wanted.is_subset(&heard.1) {
            break;
        }
        assert!(round < 6000, "{} hears {:?}, not {wanted:?}", heard.0, heard.1);
        std::thread::sleep(Duration::from_millis(100));
    }
    scene.ends.store(true, SeqCst);
    for running in clients.into_iter().chain([server]) {
        running.thread.join().unwrap();
    }
}

type Program = fn(&Scene, u32, &Context, Rng);

fn start(scene: &Arc<Scene>, rng: &mut Rng, program: Program) -> Running {
    let (scene, rng) = (scene.clone(), fork(rng));
    let start = scene.starts.fetch_add(1, SeqCst);
    let process = world::begin_process();
    trace(|| format!("start process {process}, number {start}"));
    let thread = spawn("process", move || {
        let context = Context::new();
        program(&scene, start, &context, rng);
        while let Err(error) = context.terminate() {
            assert_eq!(error, Error::Interrupted, "terminate");
        }
    });
    Running { process, start, thread }
}

fn push(scene: &Scene, start: u32, context: &Context, rng: Rng) {
    let mut peer = Peer::new(context, SocketType::Push, rng);
    peer.set(SNDTIMEO, 50);
    peer.set(LINGER, 0);
    peer.bind_or_connect(&scene.endpoint, false);
    let mut number = 0;
    while !scene.ends.load(SeqCst) {
        match peer.try_send(&scene.kind.message(start, number)) {
            Ok(()) => number += 1,
            Err(Error::Again) => {}
            Err(error) => panic!("{error}"),
        }
        std::thread::sleep(Duration::from_micros(peer.rng.spread(10, 50_000)));
    }
}

fn pull(scene: &Scene, start: u32, context: &Context, rng: Rng) {
    let mut peer = Peer::new(context, SocketType::Pull, rng);
    peer.set(LINGER, 0);
    peer.set_receive_timeout(50);
    // The previous process may still exist.
    while let Err(error) = peer.socket.bind(&scene.endpoint) {
        assert_eq!(error, Error::AddressInUse, "bind");
        peer.sleep_briefly();
    }
    while !scene.ends.load(SeqCst) {
        match peer.recv() {
            Ok(parts) => {
                let (sender, _) = scene.ledger.record(start, &parts);
                let mut heard = scene.heard.lock().unwrap();
                if heard.0 != start {
                    *heard = (start, BTreeSet::new());
                }
                heard.1.insert(sender);
            }
            Err(Error::Again) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The pipeline, with strangers at its first endpoint. Their messages are not received, and no
/// other message is lost.
pub(super) fn strangers(stage: &mut Scenario, rng: &mut Rng) {
    STRANGERS.store(true, SeqCst);
    let web = stage.transport() == "ws";
    if !web {
        stage.over_streams();
    }
    let name = match stage.transport() {
        "tcp" | "ws" => [&[2, 0][..], &5001_u16.to_be_bytes(), &[127, 0, 0, 1], &[0; 8]].concat(),
        _ => [&[1, 0][..], b"/sim/1\0"].concat(),
    };
    let strangers: Vec<JoinHandle<()>> = (0..rng.between(1, 5))
        .map(|_| {
            let (name, rng) = (name.clone(), fork(rng));
            spawn("stranger", move || stranger(&name, web, rng))
        })
        .collect();
    flow(stage, rng, false);
    super::join(strangers);
}

/// Connects several times, and sends invalid bytes sooner or later.
fn stranger(name: &[u8], web: bool, mut rng: Rng) {
    for _ in 0..rng.between(1, 8) {
        world::progress();
        std::thread::sleep(Duration::from_micros(rng.spread(1, 100_000)));
        // SAFETY: integers.
        let fd = unsafe { libc::socket(i32::from(name[0]), libc::SOCK_STREAM, 0) };
        // SAFETY: pointer and length are the name's.
        unsafe { libc::connect(fd, name.as_ptr().cast(), name.len() as libc::socklen_t) };
        let mut words = if web { request(&mut rng) } else { greeting(&mut rng) };
        while !words.is_empty() {
            let mut fds = [libc::pollfd { fd, events: libc::POLLOUT, revents: 0 }];
            // SAFETY: an array of one.
            unsafe { libc::poll(fds.as_mut_ptr(), 1, 1000) };
            let n = rng.between(1, words.len() as u64) as usize;
            // SAFETY: pointer and length are the vector's.
            let sent = unsafe { libc::send(fd, words.as_ptr().cast(), n, libc::MSG_NOSIGNAL) };
            if sent < 0 && (fds[0].revents & libc::POLLOUT == 0 || rng.chance(8)) {
                break;
            }
            words.drain(..sent.max(0) as usize);
            if rng.chance(3) {
                std::thread::sleep(Duration::from_micros(rng.spread(1, 40_000_000)));
            }
        }
        if rng.chance(2) {
            let mut bytes = [0_u8; 64];
            // SAFETY: pointer and length are the array's.
            unsafe { libc::recv(fd, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        }
        // SAFETY: it is this function's.
        unsafe { libc::close(fd) };
    }
}

/// Returns a stranger's WebSocket input: a request with or without the required headers (RFC 6455),
/// and then frames of any kind.
fn request(rng: &mut Rng) -> Vec<u8> {
    let lines = [
        "Host: 127.0.0.1",
        "Upgrade: websocket",
        "Connection: keep-alive, Upgrade",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol: ZWS2.0/NULL,ZWS2.0",
        "Sec-WebSocket-Version: 13",
    ];
    let first =
        *rng.pick(&["GET / HTTP/1.1", "GET / HTTP/1.1", "POST / HTTP/1.1", "GET / HTTP/1.0", "nonsense"]);
    let (leaves_out, left_out) = (rng.chance(3), rng.below(lines.len() as u64) as usize);
    let mut words = format!("{first}\r\n").into_bytes();
    for (at, line) in lines.iter().enumerate() {
        if !leaves_out || at != left_out {
            words.extend(format!("{line}\r\n").into_bytes());
        }
    }
    if rng.chance(8) {
        words.extend(b"X: y\r\n".repeat(rng.spread(1, 3000) as usize));
    }
    words.extend(b"\r\n");
    for _ in 0..rng.below(6) {
        // Operation, length, mask, body; sometimes of another length, or not masked.
        let operation = *rng.pick(&[0x82, 0x82, 0x02, 0x80, 0x81, 0x88, 0x89, 0x8a, 0x8f, 0xf2]);
        let length = rng.below(126) as u8;
        let masked = if rng.chance(8) { 0 } else { 0x80 };
        words.extend([operation, length | masked]);
        if rng.chance(16) {
            words.extend([127 | masked, 0xff]);
        }
        let body = u64::from(length) + if masked == 0 { 0 } else { 4 };
        words.extend((0..body).map(|_| if rng.chance(2) { 0 } else { rng.next() as u8 }));
    }
    if rng.chance(3) {
        words.truncate(rng.between(1, words.len() as u64) as usize);
    }
    words
}

/// Returns a stranger's input: noise, or the start of ZMTP and then noise.
fn greeting(rng: &mut Rng) -> Vec<u8> {
    let mut words = Vec::new();
    let noise = |rng: &mut Rng, words: &mut Vec<u8>| {
        for _ in 0..rng.spread(1, 2000) {
            words.push(rng.next() as u8);
        }
    };
    if rng.chance(4) {
        // A peer without this start is a peer of ZMTP 1.0, whose bytes are messages.
        words.extend([0xff, 1, 2, 3, 4, 5, 6, 7, 8, 0x7f, 3]);
        noise(rng, &mut words);
        return words;
    }
    words.extend([&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1][..], b"NULL", &[0; 48]].concat());
    if rng.chance(2) {
        let ready = b"\x05READY\x0bSocket-Type\0\0\0\x04PUSH";
        words.extend([&[4, ready.len() as u8][..], ready].concat());
        // A frame with undefined bits, or an endless frame.
        let flags = if rng.chance(2) { 0xfa } else { 2 };
        words.extend([&[flags][..], &(rng.next() >> 24).to_be_bytes()].concat());
    }
    match rng.below(3) {
        0 => words.truncate(rng.between(1, words.len() as u64) as usize),
        1 => noise(rng, &mut words),
        _ => {}
    }
    words
}
