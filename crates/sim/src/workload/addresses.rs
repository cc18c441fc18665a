//! Endpoints in all forms, names with several addresses, and peers with the same name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tautline_core::{Error, SocketType};

use super::peer::{HEARTBEAT_IVL, LINGER, Peer, RCVHWM, ROUTING_ID, SNDHWM, SNDTIMEO};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const IPV6: i32 = 42;
const ROUTER_HANDOVER: i32 = 56;
const LAST_ENDPOINT: i32 = 32;

/// Endpoints that zmq_bind(3) and zmq_connect(3) refuse, each with the errors of both.
const REFUSED: [(&str, Error, Error); 27] = [
    ("", Error::Invalid, Error::Invalid),
    ("tcp", Error::Invalid, Error::Invalid),
    ("tcp://", Error::Invalid, Error::Invalid),
    ("://x", Error::Invalid, Error::Invalid),
    ("ipc://", Error::Invalid, Error::Invalid),
    ("inproc://", Error::Invalid, Error::Invalid),
    ("foo://127.0.0.1:5555", Error::ProtocolNotSupported, Error::ProtocolNotSupported),
    ("TCP://127.0.0.1:5555", Error::ProtocolNotSupported, Error::ProtocolNotSupported),
    ("tipc://x", Error::ProtocolNotSupported, Error::ProtocolNotSupported),
    ("tcp://*", Error::Invalid, Error::Invalid),
    ("tcp://5555", Error::Invalid, Error::Invalid),
    ("tcp://127.0.0.1", Error::Invalid, Error::Invalid),
    ("tcp://127.0.0.1:", Error::Invalid, Error::Invalid),
    ("tcp://127.0.0.1:65536", Error::Invalid, Error::Invalid),
    ("tcp://127.0.0.1:-1", Error::Invalid, Error::Invalid),
    ("tcp://127.0.0.1:x", Error::Invalid, Error::Invalid),
    ("tcp://127.0.0.1:00", Error::Invalid, Error::Invalid),
    ("tcp://[::1%]:5555", Error::Invalid, Error::Invalid),
    ("tcp://[%eth0]:5555", Error::Invalid, Error::Invalid),
    ("tcp://[[x]]:5555", Error::Invalid, Error::Invalid),
    ("tcp://:5555", Error::NoDevice, Error::Invalid),
    ("tcp://[]:5555", Error::NoDevice, Error::Invalid),
    ("tcp://nowhere.invalid:5555", Error::NoDevice, Error::Again),
    ("ws://127.0.0.1", Error::Invalid, Error::Invalid),
    ("udp://127.0.0.1", Error::IncompatibleProtocol, Error::IncompatibleProtocol),
    ("udp://127.0.0.1:9", Error::IncompatibleProtocol, Error::IncompatibleProtocol),
    ("vsock://x:1", Error::Invalid, Error::Invalid),
];

/// Checks endpoints that are refused, and endpoints that lead to each other.
pub(super) fn addresses(stage: &mut Scenario, rng: &mut Rng) {
    world::with(|world| world.kernel.faults.stop_losses());
    let context = stage.context(rng);
    let mut push = Peer::new(&context, SocketType::Push, fork(rng));
    push.set(LINGER, 0);
    for (endpoint, bind, connect) in REFUSED {
        assert_eq!(push.socket.bind(endpoint), Err(bind), "bind {endpoint}");
        // `Again`: the name is resolved later, so this call does not report the outcome.
        let wanted = if connect == Error::Again { Ok(()) } else { Err(connect) };
        assert_eq!(push.socket.connect(endpoint), wanted, "connect {endpoint}");
        assert_eq!(push.socket.unbind(endpoint).is_ok(), wanted.is_ok(), "unbind {endpoint}");
        assert!(push.socket.disconnect(endpoint).is_err(), "disconnect {endpoint}");
    }
    drop(push);
    let leading = [
        (0, "tcp://127.0.0.1:*", "tcp://127.0.0.1:PORT"),
        (0, "tcp://lo:*", "tcp://127.0.0.1:PORT"),
        (0, "tcp://*:*", "tcp://127.0.0.1:PORT"),
        (0, "tcp://eth0:*", "tcp://10.0.0.1:PORT"),
        (0, "tcp://10.0.1.1:*", "tcp://eth0:0;10.0.1.1:PORT"),
        (1, "tcp://[fe80::2%eth1]:5001", "tcp://[fe80::2%3]:5001"),
        (0, "tcp://127.0.0.1:*", "tcp://127.0.0.1:0;127.0.0.1:PORT"),
        (0, "tcp://[127.0.0.1]:5001", "tcp://this.sim:5001"),
        (1, "tcp://[::1]:*", "tcp://[::1]:PORT"),
        (1, "tcp://127.0.0.1:*", "tcp://[::ffff:127.0.0.1]:PORT"),
        (1, "tcp://::1:5001", "tcp://[::1]:5001"),
        (1, "tcp://[::1%lo]:5001", "tcp://[::1%lo]:5001"),
        (0, "ws://127.0.0.1:*/path", "ws://127.0.0.1:PORT/path"),
        (1, "ws://[::1]:5001/", "ws://[::1]:5001/"),
        (0, "ipc://@abstract", "ipc://@abstract"),
        (0, "ipc:///sim/a name with spaces", "ipc:///sim/a name with spaces"),
        (0, "inproc://a name with spaces", "inproc://a name with spaces"),
    ];
    for _ in 0..rng.between(1, 4) {
        let (ipv6, bound, connected) = *rng.pick(&leading);
        exchange(stage, rng, ipv6, bound, connected);
    }
    if rng.chance(2) {
        several(stage, rng);
    }
    namesakes(stage, rng);
}

fn exchange(stage: &Scenario, rng: &mut Rng, ipv6: i32, bound: &str, connected: &str) {
    let context = stage.context(rng);
    let mut pull = Peer::new(&context, SocketType::Pull, fork(rng));
    let mut push = Peer::new(&context, SocketType::Push, fork(rng));
    pull.set(IPV6, ipv6);
    push.set(IPV6, ipv6);
    pull.set(LINGER, 0);
    // A predecessor may still hold the address.
    while let Err(error) = pull.socket.bind(bound) {
        assert_eq!(error, Error::AddressInUse, "bind {bound}");
        pull.sleep_briefly();
    }
    let mut room = [0; 256];
    let n = pull.socket.option(LAST_ENDPOINT, &mut room).unwrap();
    let name = String::from_utf8_lossy(&room[..n - 1]).into_owned();
    let port: String =
        name.rsplit(':').next().unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    let connected = connected.replace("PORT", &port);
    push.socket.connect(&connected).unwrap_or_else(|error| panic!("connect {connected}: {error}"));
    let message = [connected.as_bytes().to_vec()];
    push.send(&message).unwrap();
    assert_eq!(pull.recv().unwrap(), message, "from {connected} to {name}");
    assert_eq!(push.socket.disconnect(&connected), Ok(()), "disconnect {connected}");
    assert_eq!(push.socket.disconnect(&connected), Err(Error::NoEntry));
    assert_eq!(pull.socket.unbind(&name), Ok(()), "unbind {name}");
    push.set(LINGER, 0);
}

/// A name with several addresses, of which at most one has a listener. All are tried before the
/// attempt counts as failed. An address that does not answer does not delay the others.
fn several(stage: &Scenario, rng: &mut Rng) {
    // Values from zmq_socket_monitor(3).
    const CONNECTED: u16 = 0x1;
    const CONNECT_DELAYED: u16 = 0x2;
    const CONNECT_RETRIED: u16 = 0x4;
    const CLOSED: u16 = 0x80;
    /// Linux gives up a connect without an answer after 127 s.
    const GIVEN_UP: u64 = 127_000_000_000;
    let ipv6 = rng.chance(2);
    let mut labels: Vec<&str> = ["silent", "other", "silent6", "this6"]
        .into_iter()
        .filter(|label| rng.chance(2) && (ipv6 || !label.ends_with('6')))
        .collect();
    let is_there = labels.is_empty() || rng.chance(2);
    labels.insert(rng.below(labels.len() as u64 + 1) as usize, "this");
    let context = stage.context(rng);
    let mut push = Peer::new(&context, SocketType::Push, fork(rng));
    push.set(IPV6, ipv6.into());
    push.set(LINGER, 0);
    let events = "inproc://events of several addresses";
    push.socket.monitor(Some(events), 0xffff, 1, SocketType::Pair).unwrap();
    let mut monitor = Peer::new(&context, SocketType::Pair, fork(rng));
    monitor.set(LINGER, 0);
    monitor.set(RCVHWM, 0);
    monitor.bind_or_connect(events, false);
    let mut pull = Peer::new(&context, SocketType::Pull, fork(rng));
    while is_there && let Err(error) = pull.socket.bind("tcp://127.0.0.1:5002") {
        assert_eq!(error, Error::AddressInUse);
        pull.sleep_briefly();
    }
    let start = world::current_time();
    let endpoint = format!("tcp://{}.sim:5002", labels.join("."));
    push.socket.connect(&endpoint).unwrap();
    if is_there {
        push.send(&[b"a message".to_vec()]).unwrap();
        assert_eq!(pull.recv().unwrap(), [b"a message"]);
        let took = world::current_time() - start;
        assert!(took < GIVEN_UP, "{endpoint} took {took} ns");
    }
    let (mut begun, mut closed) = (0, 0);
    let last = loop {
        let parts = monitor.recv().unwrap();
        match u16::from_ne_bytes(*parts[0].first_chunk().expect("a number")) {
            CONNECT_DELAYED => begun += 1,
            CLOSED => closed += 1,
            event => break event,
        }
    };
    if is_there {
        assert_eq!(last, CONNECTED, "{endpoint}");
        assert_eq!((begun, closed < labels.len()), (closed + 1, true), "{endpoint}");
    } else {
        assert_eq!(last, CONNECT_RETRIED, "{endpoint}");
        assert_eq!((begun, closed), (labels.len(), labels.len()), "{endpoint}");
    }
}

/// Several DEALER with the same name at a ROUTER. The ROUTER accepts the first until it
/// disconnects, or with ZMQ_ROUTER_HANDOVER the last. After all others have disconnected, it
/// accepts the remaining one.
fn namesakes(stage: &mut Scenario, rng: &mut Rng) {
    if rng.chance(2) {
        stage.stop_losses();
    }
    let is_calm = !stage.lossy && world::with(|world| world.kernel.faults.watches == 0) == Some(true);
    let endpoint = stage.endpoint();
    let kind = stage.kind;
    let ledger = stage.lenient_ledger();
    let handover = rng.chance(2);
    let mut router = Peer::new(&stage.context(rng), SocketType::Router, fork(rng));
    router.set(ROUTER_HANDOVER, handover.into());
    router.set(HEARTBEAT_IVL, 0);
    router.set(SNDHWM, 0);
    router.set(RCVHWM, 0);
    router.set(LINGER, 0);
    router.bind_or_connect(&endpoint, true);
    let count = rng.between(2, 4) as u32;
    let (busy, is_heard) = (Countdown::new(count as usize - 1), Countdown::new(1));
    let have_gone: Arc<Vec<AtomicBool>> = Arc::new((0..count).map(|_| AtomicBool::new(false)).collect());
    let mut handles = Vec::new();
    for sender in 0..count {
        let (context, mut rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        let (busy, is_heard, have_gone) = (busy.clone(), is_heard.clone(), have_gone.clone());
        handles.push(spawn("namesake", move || {
            let open = |rng: &mut Rng| {
                let mut peer = Peer::new(&context, SocketType::Dealer, fork(rng));
                peer.set_bytes(ROUTING_ID, b"the same");
                peer.set(HEARTBEAT_IVL, 0);
                peer.set(LINGER, 0);
                peer.set(SNDTIMEO, 10);
                peer.bind_or_connect(&endpoint, false);
                peer
            };
            let goes = || have_gone[sender as usize].store(true, SeqCst);
            let mut peer = open(&mut rng);
            let mut number = 0;
            let stays = sender + 1 == count;
            while if stays { is_heard.remaining() > 0 } else { number < 10 } {
                std::thread::sleep(Duration::from_micros(peer.rng.spread(10, 200_000)));
                match peer.try_send(&kind.message(sender, number)) {
                    Ok(()) => number += 1,
                    Err(error) => {
                        assert_eq!(error, Error::Again);
                        number += u32::from(!stays);
                    }
                }
                // An ignored peer stays ignored. It reconnects after the others have disconnected.
                if stays && busy.remaining() == 0 && peer.rng.chance(20) {
                    goes();
                    peer = open(&mut rng);
                }
            }
            goes();
            drop(peer);
            if !stays {
                busy.count_down();
            }
        }));
    }
    let mut heard = None;
    loop {
        let parts = router.recv().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parts[0], b"the same");
        let (sender, _) = ledger.record(0, &parts[1..]);
        if let Some(before) = heard.replace(sender).filter(|before| *before != sender) {
            let has_gone = have_gone[before as usize].load(SeqCst);
            assert!(handover || !is_calm || has_gone, "{sender} is heard, while {before} is there");
        }
        if sender + 1 == count && busy.remaining() == 0 {
            break;
        }
    }
    is_heard.count_down();
    join(handles);
}
