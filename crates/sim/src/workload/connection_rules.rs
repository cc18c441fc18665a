//! Admission and limits: filters of addresses and users, the longest message, timeouts, and SOCKS
//! proxies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use tautline_core::{Error, SocketType};

use super::event_checks::STRANGERS;
use super::patterns::QUIET;
use super::peer::{IMMEDIATE, LINGER, Peer, SNDTIMEO};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const RECONNECT_IVL: i32 = 18;
const RECONNECT_IVL_MAX: i32 = 21;
const MAXMSGSIZE: i32 = 22;
const TCP_ACCEPT_FILTER: i32 = 38;
const IPC_FILTER_PID: i32 = 58;
const IPC_FILTER_UID: i32 = 59;
const IPC_FILTER_GID: i32 = 60;
const HANDSHAKE_IVL: i32 = 66;
const SOCKS_PROXY: i32 = 68;
const HEARTBEAT_TTL: i32 = 76;
const CONNECT_TIMEOUT: i32 = 79;
const USE_FD: i32 = 89;
const SOCKS_USERNAME: i32 = 99;
const SOCKS_PASSWORD: i32 = 100;
const RECONNECT_STOP: i32 = 109;
const MAX_MULTIPART: i32 = 0x5441_0003;

/// A PULL whose filters admit or refuse its PUSH.
pub(super) fn filters(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_streams();
    let endpoint = stage.endpoint();
    world::with(|world| world.kernel.faults.stop_losses());
    let (kind, ledger) = (stage.kind, stage.ledger());
    let count = kind.count(rng, 40);
    let is_open = rng.chance(2);
    let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    // SAFETY: no preconditions.
    let own = unsafe { [libc::getuid() as i32, libc::getgid() as i32, libc::getpid()] };
    match stage.transport() {
        "tcp" => {
            let open: &[&[u8]] = &[b"127.0.0.1", b"127.0.0.0/8", b"0.0.0.0/0"];
            let closed: &[&[u8]] = &[b"10.0.0.0/8", b"127.0.0.2", b"128.0.0.0/1"];
            for _ in 0..rng.between(1, 3) {
                pull.set_bytes(TCP_ACCEPT_FILTER, rng.pick::<&[u8]>(closed));
            }
            if is_open {
                pull.set_bytes(TCP_ACCEPT_FILTER, rng.pick::<&[u8]>(open));
            }
            for wrong in [&b"no address"[..], b"127.0.0.1/33", b"1.2.3"] {
                assert_eq!(pull.socket.set_option(TCP_ACCEPT_FILTER, wrong), Err(Error::Invalid));
            }
        }
        _ => {
            let (option, own) =
                *rng.pick(&[(IPC_FILTER_UID, own[0]), (IPC_FILTER_GID, own[1]), (IPC_FILTER_PID, own[2])]);
            pull.set(option, own + 1);
            if is_open {
                pull.set(option, own);
            }
        }
    }
    // A listener created by the program (ZMQ_USE_FD).
    if stage.transport() == "tcp" && rng.chance(3) {
        let own = listener(5001);
        assert_eq!(pull.socket.set_option(USE_FD, &own.to_ne_bytes()), Ok(()));
        // From now on the socket must close the listener.
        pull.socket.bind(&endpoint).unwrap();
    } else {
        pull.bind_or_connect(&endpoint, true);
    }
    let mut push = Peer::new(&stage.context(rng), SocketType::Push, fork(rng));
    push.set(IMMEDIATE, 1);
    push.set(RECONNECT_IVL, 50);
    if rng.chance(2) {
        push.set(RECONNECT_IVL_MAX, 400);
    }
    push.bind_or_connect(&endpoint, false);
    if !is_open {
        push.set(SNDTIMEO, rng.spread(1, 2_000) as i32);
        push.set(LINGER, 0);
        for _ in 0..3 {
            assert_eq!(push.try_send(&kind.message(0, 0)), Err(Error::Again), "a stranger sends");
        }
        return;
    }
    let sender = spawn("push", move || {
        for number in 0..count {
            push.send(&kind.message(0, number)).unwrap_or_else(|error| panic!("{error}"));
        }
    });
    for _ in 0..count {
        ledger.record(0, &pull.recv().unwrap_or_else(|error| panic!("{error}")));
    }
    join(vec![sender]);
    ledger.check_complete(&[(0, count)]);
}

/// A PULL with a maximum message length, and PUSH that exceed it. A longer message, and all later
/// messages of its connection, are not received. Each received message is whole.
pub(super) fn lengths(stage: &mut Scenario, rng: &mut Rng) {
    // An oversized message violates the protocol.
    STRANGERS.store(true, SeqCst);
    stage.over_streams();
    let endpoint = stage.endpoint();
    let (kind, ledger) = (stage.kind, stage.lenient_ledger());
    let most = rng.spread(10, 2 * 9_000);
    let of_all_parts = rng.chance(3);
    let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    let option = if of_all_parts { MAX_MULTIPART } else { MAXMSGSIZE };
    pull.set_bytes(option, &(most as i64).to_ne_bytes());
    pull.bind_or_connect(&endpoint, true);
    let count = kind.count(rng, 60);
    let mut push = Peer::new(&stage.context(rng), SocketType::Push, fork(rng));
    push.set(SNDTIMEO, 2_000);
    push.set(LINGER, 2_000);
    push.set(RECONNECT_IVL, 10);
    push.bind_or_connect(&endpoint, false);
    let sender = spawn("push", move || {
        for number in 0..count {
            match push.try_send(&kind.message(0, number)) {
                Ok(()) | Err(Error::Again) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    pull.set_receive_timeout(10_000);
    loop {
        match pull.recv() {
            Ok(parts) => {
                let longest = parts.iter().map(Vec::len).max().unwrap_or(0) as u64;
                let all: u64 = parts.iter().map(|part| part.len() as u64).sum();
                let counts = if of_all_parts { all } else { longest };
                assert!(counts <= most, "{counts} bytes are received, more than {most}");
                ledger.record(0, &parts);
            }
            Err(Error::Again) => break,
            Err(error) => panic!("{error}"),
        }
    }
    join(vec![sender]);
    pull.set(LINGER, 0);
}

/// A PUSH whose peer does not listen, does not answer, or disconnects. The PUSH reconnects as its
/// options say, and not more often.
pub(super) fn patience(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_tcp();
    let endpoint = stage.endpoint();
    world::with(|world| world.kernel.faults.stop_losses());
    let mut push = Peer::new(&stage.context(rng), SocketType::Push, fork(rng));
    push.set(LINGER, 0);
    push.set(super::peer::HEARTBEAT_IVL, 0);
    let case = rng.below(5);
    let interval = rng.spread(20, 500);
    push.set(RECONNECT_IVL, interval as i32);
    let accepted = Arc::new(AtomicU32::new(0));
    let ends = Arc::new(AtomicBool::new(false));
    let mut handles = Vec::new();
    let (count, over, closes) = (accepted.clone(), ends.clone(), case == 3);
    if case != 0 {
        handles.push(spawn("mute", move || accept_silently(&count, &over, closes)));
        std::thread::sleep(Duration::from_millis(10));
    }
    match case {
        // ZMQ_RECONNECT_STOP_CONN_REFUSED: one attempt.
        0 => push.set(RECONNECT_STOP, 1),
        // A handshake that times out is retried. With ZMQ_RECONNECT_STOP_HANDSHAKE_FAILED or
        // without an interval, it is not.
        1 => push.set(HANDSHAKE_IVL, 200),
        2 => {
            push.set(HANDSHAKE_IVL, 200);
            push.set(RECONNECT_STOP, 2);
        }
        3 => push.set(RECONNECT_IVL, -1),
        _ => {
            push.set(HANDSHAKE_IVL, 300);
            push.set(CONNECT_TIMEOUT, 100);
            push.set(HEARTBEAT_TTL, 500);
        }
    }
    push.bind_or_connect(&endpoint, false);
    push.set(SNDTIMEO, 5);
    let _ = push.try_send(&[b"for nobody".to_vec()]);
    let calls = world::calls();
    std::thread::sleep(Duration::from_secs(30));
    let made = world::calls() - calls;
    let tried = accepted.load(SeqCst);
    match case {
        0 => assert!(made < 100, "{made} calls in half a minute after the last attempt"),
        2 | 3 => assert!(tried <= 2, "{tried} attempts, and the first one was to be the last"),
        _ => {
            // Each attempt takes the interval, which a random draw may double, and the time of a
            // handshake.
            let most = 30_000 / (interval + 200).min(500) + 2;
            assert!(tried >= 2 && u64::from(tried) <= 2 * most, "{tried} attempts, at most {most}");
        }
    }
    ends.store(true, SeqCst);
    join(handles);
}

/// Listens at the first tcp endpoint.
fn listener(port: u16) -> i32 {
    let name = [&[2, 0][..], &port.to_be_bytes(), &[127, 0, 0, 1], &[0; 8]].concat();
    // SAFETY: integers; pointer and length are the name's.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        assert_eq!(libc::bind(fd, name.as_ptr().cast(), name.len() as libc::socklen_t), 0);
        assert_eq!(libc::listen(fd, 100), 0);
        fd
    }
}

/// Waits for a connection for up to 0.1 s.
fn accept(listener: i32) -> Option<i32> {
    let mut fds = [libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 }];
    // SAFETY: an array of one; no address is asked for.
    unsafe {
        if libc::poll(fds.as_mut_ptr(), 1, 100) <= 0 {
            return None;
        }
        let fd = libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), 0);
        (fd >= 0).then_some(fd)
    }
}

fn close(fd: i32) {
    // SAFETY: the caller's descriptor.
    unsafe { libc::close(fd) };
}

/// A listener that accepts and sends no bytes.
fn accept_silently(accepted: &AtomicU32, ends: &AtomicBool, closes: bool) {
    let fd = listener(5001);
    let mut open = Vec::new();
    while !ends.load(SeqCst) {
        world::progress();
        if let Some(stream) = accept(fd) {
            accepted.fetch_add(1, SeqCst);
            if closes { close(stream) } else { open.push(stream) }
        }
    }
    open.into_iter().chain([fd]).for_each(close);
}

/// A pipeline through a SOCKS proxy, which may require a name and a password.
pub(super) fn relayed(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_tcp();
    let endpoint = stage.endpoint();
    let (kind, ledger, lossy) = (stage.kind, stage.ledger(), stage.lossy);
    let ends = Arc::new(AtomicBool::new(false));
    let login = rng.chance(2);
    let (over, mut relay_rng) = (ends.clone(), fork(rng));
    let refuses = if rng.chance(2) { 3 } else { 0 };
    let relay = spawn("relay", move || relay(&over, login, refuses, &mut relay_rng));
    std::thread::sleep(Duration::from_millis(20));
    let sent: Vec<(u32, u32)> = (0..rng.between(1, 3) as u32).map(|at| (at, kind.count(rng, 40))).collect();
    let busy = Countdown::new(sent.len());
    let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    pull.set(super::peer::HEARTBEAT_IVL, 0);
    pull.bind_or_connect(&endpoint, true);
    let mut handles = Vec::new();
    for (sender, count) in sent.iter().copied() {
        let (context, rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        let busy = busy.clone();
        handles.push(spawn("push", move || {
            let mut push = Peer::new(&context, SocketType::Push, rng);
            let proxy = if push.rng.chance(2) { "127.0.0.1:1080" } else { "this.sim:1080" };
            push.set_bytes(SOCKS_PROXY, proxy.as_bytes());
            // A proxy confirms bytes that have not arrived. If the client closes while the proxy
            // sends, the proxy cannot pass on the rest.
            push.set(super::peer::HEARTBEAT_IVL, 0);
            push.set(RECONNECT_IVL, 20);
            if login {
                push.set_bytes(SOCKS_USERNAME, b"user");
                push.set_bytes(SOCKS_PASSWORD, b"password");
            }
            push.bind_or_connect(&endpoint, false);
            for number in 0..count {
                push.send(&kind.message(sender, number)).unwrap_or_else(|error| panic!("{error}"));
            }
            if lossy {
                push.set(LINGER, 20_000);
            }
            drop(push);
            busy.count_down();
        }));
    }
    if lossy {
        pull.set_receive_timeout(QUIET);
    }
    let mut missing: u32 = sent.iter().map(|(_, count)| count).sum();
    while missing > 0 {
        match pull.recv() {
            Ok(parts) => {
                ledger.record(0, &parts);
                missing -= 1;
            }
            Err(Error::Again) if lossy && busy.remaining() > 0 => {}
            Err(Error::Again) if lossy => break,
            Err(error) => panic!("{error}"),
        }
    }
    join(handles);
    ends.store(true, SeqCst);
    relay.join().unwrap();
    ledger.check_complete(&sent);
}

/// A SOCKS 5 proxy (RFC 1928, RFC 1929) with one thread for each connection. Refuses one connection
/// in `refuses`.
fn relay(ends: &Arc<AtomicBool>, login: bool, refuses: u64, rng: &mut Rng) {
    let fd = listener(1080);
    let mut handles = Vec::new();
    while !ends.load(SeqCst) {
        if let Some(stream) = accept(fd) {
            let (ends, mut rng) = (ends.clone(), fork(rng));
            handles.push(spawn("relayed", move || {
                let answer = match rng.chance(refuses) {
                    true => rng.between(1, 9) as u8,
                    false => 0,
                };
                let target = negotiate(stream, login, answer, &ends);
                if let Some(target) = target {
                    relay_bytes([stream, target], &ends);
                    close(target);
                }
                close(stream);
            }));
        }
    }
    close(fd);
    join(handles);
}

/// Reads exactly `N` bytes.
fn take<const N: usize>(fd: i32, ends: &AtomicBool) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let mut n = 0;
    while n < N {
        let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
        // SAFETY: an array of one; pointer and length are of a part of the array.
        let got = unsafe {
            libc::poll(fds.as_mut_ptr(), 1, 100);
            libc::recv(fd, bytes[n..].as_mut_ptr().cast(), N - n, 0)
        };
        match got {
            0 => return None,
            1.. => n += got as usize,
            _ if ends.load(SeqCst) || fds[0].revents & libc::POLLERR != 0 => return None,
            _ => {}
        }
    }
    Some(bytes)
}

/// Sends all bytes.
fn put(fd: i32, mut bytes: &[u8], ends: &AtomicBool) -> Option<()> {
    while !bytes.is_empty() {
        let mut fds = [libc::pollfd { fd, events: libc::POLLOUT, revents: 0 }];
        // SAFETY: an array of one; pointer and length are the slice's.
        let n = unsafe {
            libc::poll(fds.as_mut_ptr(), 1, 100);
            libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
        };
        if n < 0 && (ends.load(SeqCst) || fds[0].revents & (libc::POLLERR | libc::POLLHUP) != 0) {
            return None;
        }
        bytes = &bytes[n.max(0) as usize..];
    }
    Some(())
}

/// Returns the connection that the client requests, unless `answer` refuses it.
fn negotiate(fd: i32, login: bool, answer: u8, ends: &AtomicBool) -> Option<i32> {
    let [version, methods] = take(fd, ends)?;
    assert_eq!((version, methods), (5, 1), "a greeting");
    let [method] = take(fd, ends)?;
    assert_eq!(method, if login { 2 } else { 0 }, "the method");
    put(fd, &[5, method], ends)?;
    if login {
        for (wanted, word) in [(1, &b"user"[..]), (0, b"password")] {
            if wanted == 1 {
                assert_eq!(take(fd, ends)?, [1_u8], "the version of the login");
            }
            let [length] = take(fd, ends)?;
            let mut said = Vec::new();
            for _ in 0..length {
                said.extend(take::<1>(fd, ends)?);
            }
            assert_eq!(said, word);
        }
        put(fd, &[1, 0], ends)?;
    }
    let [version, command, zero, kind] = take(fd, ends)?;
    assert_eq!((version, command, zero), (5, 1, 0), "a request to connect");
    match kind {
        1 => assert_eq!(take(fd, ends)?, [127, 0, 0, 1]),
        3 => {
            let [length] = take(fd, ends)?;
            let mut name = Vec::new();
            for _ in 0..length {
                name.extend(take::<1>(fd, ends)?);
            }
            assert_eq!(name, b"this.sim");
        }
        other => panic!("an address of kind {other}"),
    }
    let port = u16::from_be_bytes(take(fd, ends)?);
    let name = [&[2, 0][..], &port.to_be_bytes(), &[127, 0, 0, 1], &[0; 8]].concat();
    let target = match answer {
        // SAFETY: integers; pointer and length are the name's.
        0 => unsafe {
            let target = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
            libc::connect(target, name.as_ptr().cast(), name.len() as libc::socklen_t);
            Some(target)
        },
        _ => None,
    };
    let reply = [5, answer, 0, 1, 127, 0, 0, 1, 0, 0];
    if put(fd, &reply, ends).is_none() {
        target.into_iter().for_each(close);
        return None;
    }
    target
}

/// Relays bytes in both directions until one end closes.
fn relay_bytes(ends: [i32; 2], over: &AtomicBool) {
    let mut waiting: [Vec<u8>; 2] = Default::default();
    let mut has_ended = [false; 2];
    while !over.load(SeqCst) {
        let mut fds = [0, 1].map(|at| {
            let reads = if waiting[at].is_empty() && !has_ended[at] { libc::POLLIN } else { 0 };
            let writes = if waiting[1 - at].is_empty() { 0 } else { libc::POLLOUT };
            libc::pollfd { fd: ends[at], events: reads | writes, revents: 0 }
        });
        // SAFETY: an array of two.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, 100) };
        for (from, to) in [(0, 1), (1, 0)] {
            let mut bytes = [0_u8; 4096];
            if waiting[from].is_empty() && !has_ended[from] {
                // SAFETY: pointer and length are the array's.
                match unsafe { libc::recv(ends[from], bytes.as_mut_ptr().cast(), bytes.len(), 0) } {
                    0 => {
                        has_ended[from] = true;
                        // SAFETY: integers.
                        unsafe { libc::shutdown(ends[to], libc::SHUT_WR) };
                    }
                    n @ 1.. => waiting[from].extend_from_slice(&bytes[..n as usize]),
                    _ => {}
                }
            }
            if !waiting[from].is_empty() {
                let words = &waiting[from];
                // SAFETY: pointer and length are the vector's.
                let n =
                    unsafe { libc::send(ends[to], words.as_ptr().cast(), words.len(), libc::MSG_NOSIGNAL) };
                waiting[from].drain(..n.max(0) as usize);
            }
        }
        let is_lost = fds.iter().any(|entry| entry.revents & libc::POLLERR != 0);
        if has_ended == [true; 2] || is_lost {
            return;
        }
    }
}
