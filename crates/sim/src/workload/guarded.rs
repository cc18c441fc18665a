//! Workloads about absent actions: refused peers send no message, and idle sockets make no system
//! call.

use std::sync::Arc;
use std::time::Duration;

use tautline_core::{Context, Error, SocketType, public_key};

use super::peer::{HEARTBEAT_IVL, IMMEDIATE, LINGER, Peer, SNDHWM, SNDTIMEO, SUBSCRIBE};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::memory;
use crate::rng::Rng;
use crate::world;

const PLAIN_SERVER: i32 = 44;
const PLAIN_USERNAME: i32 = 45;
const PLAIN_PASSWORD: i32 = 46;
const CURVE_SERVER: i32 = 47;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;

/// Keys of 32 bytes each: the server's, and those of admitted and refused clients; and the
/// passwords of these clients. Freed memory must not contain any of them.
struct Keys {
    server: [u8; 32],
    good: [u8; 32],
    bad: [u8; 32],
    password: [u8; 16],
    wrong: [u8; 16],
}

impl Keys {
    fn draw(rng: &mut Rng) -> Arc<Self> {
        let mut key = || [(); 32].map(|()| rng.next() as u8);
        let (server, good, bad) = (key(), key(), key());
        let mut password = || [(); 16].map(|()| b'a' + rng.below(26) as u8);
        let keys = Keys { server, good, bad, password: password(), wrong: password() };
        for secret in [&keys.server[..], &keys.good, &keys.bad, &keys.password, &keys.wrong] {
            memory::register_secret(secret);
        }
        Arc::new(keys)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        (self.server, self.good, self.bad) = Default::default();
        (self.password, self.wrong) = Default::default();
    }
}

/// PUSH with and without the right password or key, and a PULL whose context has a ZAP handler. The
/// handler may be slow.
pub(super) fn guarded(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_streams();
    let endpoint = stage.endpoint();
    let curve = rng.chance(2);
    let keys = Keys::draw(rng);
    let lossy = stage.lossy;
    let ledger = stage.ledger();
    let sent: Vec<(u32, u32)> =
        (0..rng.between(1, 3) as u32).map(|at| (at, stage.kind.count(rng, 100))).collect();
    let total: u32 = sent.iter().map(|(_, count)| count).sum();
    let (missing, busy) = (Countdown::new(total as usize), Countdown::new(sent.len()));
    let context = Context::new();
    // Unlike a REP, a ROUTER may answer late or never.
    let mut handler = Peer::new(&context, SocketType::Router, fork(rng));
    handler.set(SNDHWM, 0);
    handler.bind_or_connect("inproc://zeromq.zap.01", true);
    let is_whimsical = rng.chance(2);
    let judge = spawn("zap", {
        let keys = keys.clone();
        move || serve_zap(handler, &keys, is_whimsical)
    });
    let mut pull = Peer::new(&context, SocketType::Pull, fork(rng));
    if curve {
        pull.set(CURVE_SERVER, 1);
        pull.set_bytes(CURVE_SECRETKEY, &keys.server);
    } else {
        pull.set(PLAIN_SERVER, 1);
    }
    let introduce = move |peer: &mut Peer, is_good: bool| {
        if curve {
            let secret = if is_good { &keys.good } else { &keys.bad };
            peer.set_bytes(CURVE_SERVERKEY, &public_key(&keys.server));
            peer.set_bytes(CURVE_PUBLICKEY, &public_key(secret));
            peer.set_bytes(CURVE_SECRETKEY, secret);
        } else {
            peer.set_bytes(PLAIN_USERNAME, b"user");
            peer.set_bytes(PLAIN_PASSWORD, if is_good { &keys.password } else { &keys.wrong });
        }
    };
    let mut senders = Vec::new();
    for (sender, count) in sent.iter().copied() {
        let (context, rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        let (kind, busy, introduce) = (stage.kind, busy.clone(), introduce.clone());
        senders.push(spawn("push", move || {
            let mut peer = Peer::new(&context, SocketType::Push, rng);
            introduce(&mut peer, true);
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
    for _ in 0..rng.between(0, 2) {
        let (context, rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        let introduce = introduce.clone();
        senders.push(spawn("stranger", move || {
            let mut peer = Peer::new(&context, SocketType::Push, rng);
            introduce(&mut peer, false);
            peer.set(IMMEDIATE, 1);
            peer.set(SNDTIMEO, 300);
            peer.set(LINGER, 0);
            peer.bind_or_connect(&endpoint, false);
            for _ in 0..5 {
                let outcome = peer.try_send(&[b"from a stranger".to_vec()]);
                assert_eq!(outcome, Err(Error::Again), "a stranger sends");
            }
        }));
    }
    pull.bind_or_connect(&endpoint, true);
    if lossy {
        pull.set_receive_timeout(super::patterns::QUIET);
    }
    while missing.remaining() > 0 {
        match pull.recv() {
            Ok(parts) => {
                ledger.record(0, &parts);
                missing.count_down();
            }
            Err(Error::Again) if lossy && busy.remaining() > 0 => {}
            Err(Error::Again) if lossy => break,
            Err(error) => panic!("{error}"),
        }
    }
    join(senders);
    ledger.check_complete(&sent);
    drop(pull);
    context.shutdown().unwrap();
    judge.join().unwrap();
    stage.contexts.push(context);
}

/// Judges clients. A whimsical handler sometimes sends no answer, or an invalid one.
fn serve_zap(mut handler: Peer, keys: &Keys, is_whimsical: bool) {
    handler.set(LINGER, 0);
    loop {
        let mut question = match handler.recv() {
            Ok(question) => question,
            Err(Error::Terminated) => return,
            Err(error) => panic!("{error}"),
        };
        let (way, question) = question.split_at_mut(2);
        assert!(question.len() > 6 && question[0] == b"1.0", "a request of ZAP");
        let is_good = match question[5].as_slice() {
            b"PLAIN" => {
                let is_good = question[7] == keys.password;
                question[7].fill(0);
                is_good
            }
            b"CURVE" => question[6] == public_key(&keys.good),
            other => panic!("mechanism {other:?}"),
        };
        if handler.rng.chance(3) {
            std::thread::sleep(Duration::from_micros(handler.rng.spread(10, 2_000_000)));
        }
        let (status, text) = if is_good { ("200", "OK") } else { ("400", "no") };
        let mut answer = [b"1.0", question[1].as_slice(), status.as_bytes(), text.as_bytes(), b"", b""];
        match handler.rng.below(if is_whimsical { 12 } else { 1 }) {
            // After these faults the client must start again, sooner or later.
            1 => continue,
            2 => answer[1] = b"another request",
            3 => (answer[2], answer[3]) = (b"300", b"later"),
            _ => {}
        }
        let whole: Vec<Vec<u8>> = way.iter().cloned().chain(answer.map(<[u8]>::to_vec)).collect();
        match handler.send(&whole) {
            Ok(()) => {}
            Err(Error::Terminated) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Connected sockets of all types that have exchanged messages. While they are idle, the process
/// makes no system call.
pub(super) fn idle(stage: &mut Scenario, rng: &mut Rng) {
    let pairs = [
        (SocketType::Push, SocketType::Pull),
        (SocketType::Pub, SocketType::Sub),
        (SocketType::Pair, SocketType::Pair),
        (SocketType::Dealer, SocketType::Router),
        (SocketType::Dealer, SocketType::Dealer),
    ];
    let mut peers = Vec::new();
    for _ in 0..rng.between(1, 4) {
        let endpoint = stage.endpoint();
        let (first, second) = *rng.pick(&pairs);
        let mut ends = [(first, false), (second, true)].map(|(socket_type, binds)| {
            let context = stage.context(rng);
            let mut peer = Peer::new(&context, socket_type, fork(rng));
            peer.set(HEARTBEAT_IVL, 0);
            peer.set(LINGER, 0);
            peer.set(SNDTIMEO, 500);
            if socket_type == SocketType::Sub {
                peer.set_bytes(SUBSCRIBE, b"");
            }
            peer.set_receive_timeout(500);
            peer.bind_or_connect(&endpoint, binds);
            peer
        });
        for number in 0..rng.spread(1, 200) as u32 {
            let _ = ends[0].try_send(&stage.kind.message(0, number));
            if rng.chance(2) {
                let _ = ends[1].try_recv();
            }
        }
        peers.extend(ends);
    }
    // By then connections are made, and temporary threads have ended.
    std::thread::sleep(Duration::from_secs(60));
    let before = world::calls();
    std::thread::sleep(Duration::from_secs(1000));
    let made = world::calls() - before;
    // The sleep is one call.
    assert!(made <= 1, "{made} system calls in 1000 idle seconds");
}
