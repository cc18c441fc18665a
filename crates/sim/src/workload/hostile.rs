//! Workloads with malicious peers: their messages must not make memory grow, and their writes to
//! shared memory must harm only their own connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tautline_core::{Error, SocketType};

use super::event_checks::STRANGERS;
use super::patterns::flow;
use super::peer::{HEARTBEAT_IVL, HEARTBEAT_TIMEOUT, LINGER, Peer, RCVHWM, SNDHWM, SNDTIMEO};
use super::{Scenario, fork, join, spawn};
use crate::memory;
use crate::raw;
use crate::rng::Rng;
use crate::store_buffer;
use crate::world;

const SNDBUF: i32 = 11;
const RCVBUF: i32 = 12;
const HANDSHAKE: &[u8] = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH";
const PING: &[u8] = b"\x04\x07\x04PING\0\0";
const PONG: &[u8] = b"\x04\x05\x04PONG";
/// Extra bytes that the process may hold while the peers send, and further growth while that goes
/// on.
const MOST: i64 = 1024 * 1024;
const SLACK: i64 = 128 * 1024;

/// Peers that complete the handshake, send PINGs and read no bytes. The PULL sends PINGs as well.
/// The memory for the PULL's unsent output must stay bounded.
pub(super) fn flood(stage: &mut Scenario, rng: &mut Rng) {
    STRANGERS.store(true, SeqCst);
    stage.over_tcp();
    let endpoint = stage.endpoint();
    let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    pull.set(HEARTBEAT_IVL, rng.between(4, 8) as i32);
    pull.set(SNDBUF, 2048);
    pull.set(RCVBUF, 2048);
    pull.set(LINGER, 0);
    pull.bind_or_connect(&endpoint, true);
    world::with(|world| world.kernel.faults.stop_losses());
    let (more, ends) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut handles = Vec::new();
    for _ in 0..rng.between(1, 2) {
        let (more, ends, sends) = (more.clone(), ends.clone(), rng.chance(2));
        handles.push(spawn("flood", move || flooder(&more, &ends, sends)));
    }
    std::thread::sleep(Duration::from_secs(60));
    let before = memory::allocated_bytes();
    more.store(true, SeqCst);
    let later = || {
        for _ in 0..20 {
            std::thread::sleep(Duration::from_secs(10));
            world::progress();
        }
        memory::allocated_bytes()
    };
    let meanwhile = later();
    let grown = meanwhile - before;
    assert!(grown < MOST, "{grown} bytes more are held");
    let grown = later() - meanwhile;
    assert!(grown < SLACK, "{grown} bytes more are held again");
    ends.store(true, SeqCst);
    join(handles);
}

/// Connects and completes the handshake. Floods at the given time, if `sends` is true.
fn flooder(more: &AtomicBool, ends: &AtomicBool, sends: bool) {
    let fd = connect();
    write_all(fd, &greeting(), ends);
    let pings = PING.repeat(500);
    let mut left = 400;
    while !ends.load(SeqCst) {
        if sends && left > 0 && more.load(SeqCst) {
            left -= 1;
            write_all(fd, &pings, ends);
        }
        std::thread::sleep(Duration::from_millis(if left > 0 { 20 } else { 5_000 }));
    }
    // SAFETY: it is this function's.
    unsafe { libc::close(fd) };
}

/// Connects to the first tcp endpoint.
fn connect() -> i32 {
    let name = [&[2, 0][..], &5001_u16.to_be_bytes(), &[127, 0, 0, 1], &[0; 8]].concat();
    // SAFETY: integers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    let small = 2048_i32;
    // SAFETY: pointer and length are the number's.
    unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, (&raw const small).cast(), 4) };
    // SAFETY: pointer and length are the name's.
    unsafe { libc::connect(fd, name.as_ptr().cast(), name.len() as libc::socklen_t) };
    fd
}

/// Returns the bytes that a PUSH sends before its messages.
fn greeting() -> Vec<u8> {
    [&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1][..], b"NULL", &[0; 48], HANDSHAKE].concat()
}

/// Sends all bytes, unless the workload ends.
fn write_all(fd: i32, mut words: &[u8], ends: &AtomicBool) {
    while !words.is_empty() && !ends.load(SeqCst) {
        let mut fds = [libc::pollfd { fd, events: libc::POLLOUT, revents: 0 }];
        // SAFETY: an array of one.
        unsafe { libc::poll(fds.as_mut_ptr(), 1, 1000) };
        // SAFETY: pointer and length are the slice's.
        let sent = unsafe { libc::send(fd, words.as_ptr().cast(), words.len(), libc::MSG_NOSIGNAL) };
        if sent < 0 && fds[0].revents & (libc::POLLERR | libc::POLLHUP) != 0 {
            return;
        }
        words = &words[sent.max(0) as usize..];
    }
}

/// A peer that connects to a socket with heartbeats, and stays silent from the start or after the
/// handshake. It receives PINGs, and is disconnected in time.
pub(super) fn silence(stage: &mut Scenario, rng: &mut Rng) {
    STRANGERS.store(true, SeqCst);
    stage.over_tcp();
    let endpoint = stage.endpoint();
    // A long timeout exceeds the slack below. So a connection that ends after twice its timeout is
    // late.
    let mut own = Rng::new(rng.clone().next(), 9);
    let timeout = rng.spread(1, 60_000);
    let timeout = if own.chance(2) { own.between(50_000, 90_000) } else { timeout };
    // Limits the number of PINGs.
    let interval = rng.spread(1, 2_000).max(timeout / 2_000);
    let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    // Otherwise the peer's own PING grants the time for which it may be silent, in tenths of a
    // second.
    let grants = rng.chance(3);
    pull.set(HEARTBEAT_IVL, if grants { 0 } else { interval as i32 });
    pull.set(HEARTBEAT_TIMEOUT, timeout as i32);
    pull.set(LINGER, 0);
    pull.bind_or_connect(&endpoint, true);
    world::with(|world| world.kernel.faults.stop_losses());
    let introduces = grants || rng.chance(2);
    let fd = connect();
    let never = AtomicBool::new(false);
    if introduces {
        write_all(fd, &greeting(), &never);
    }
    if grants {
        let [high, low] = ((timeout / 100) as u16 + 1).to_be_bytes();
        write_all(fd, &[&PING[..PING.len() - 2], &[high, low]].concat(), &never);
    }
    // Silence counts from the last sign of life, not from the time when the peer was first watched.
    let speaks_again = introduces && rng.chance(2);
    if speaks_again {
        // SAFETY: no descriptor is looked at.
        unsafe { libc::poll(std::ptr::null_mut(), 0, (timeout / own.between(2, 10)) as i32) };
        write_all(fd, PONG, &never);
    }
    let start = world::current_time();
    let heard = read_to_end(fd);
    let took = Duration::from_nanos(world::current_time() - start);
    // A thread may stall for seconds, and an unaccepted connection is retried later.
    let slack = Duration::from_secs(20);
    if grants {
        assert!(heard.windows(6).any(|bytes| bytes == b"\x04\x05\x04PON"), "no PONG in {heard:x?}");
        let least = Duration::from_millis(timeout / 100 * 100);
        // A stalled thread may have extended the silence before that.
        let least_of_all = if speaks_again { Duration::ZERO } else { least };
        let fits = took >= least_of_all && took < least + slack;
        assert!(fits, "it goes {took:?} after it was silent, not {least:?}");
    } else if introduces {
        let pinged = heard.windows(PING.len() - 2).any(|bytes| bytes == &PING[..PING.len() - 2]);
        assert!(pinged, "no PING in {heard:x?}");
        let least = Duration::from_millis(interval + timeout);
        assert!(took < least + slack, "it goes {took:?} after it was silent, not {least:?}");
    } else {
        assert!(took < Duration::from_secs(30) + slack, "it goes {took:?} after it has come");
    }
    // SAFETY: it is this function's.
    unsafe { libc::close(fd) };
}

/// Reads all bytes until the end of the stream.
fn read_to_end(fd: i32) -> Vec<u8> {
    let mut heard = Vec::new();
    loop {
        let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
        // SAFETY: an array of one.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 1, 100_000) };
        if ready < 0 {
            // Interrupted.
            continue;
        }
        assert!(ready > 0, "a silent connection stays open");
        let mut bytes = [0_u8; 256];
        // SAFETY: pointer and length are the array's.
        let n = unsafe { libc::recv(fd, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match n {
            1.. => heard.extend_from_slice(&bytes[..n as usize]),
            0 => return heard,
            _ if fds[0].revents & (libc::POLLERR | libc::POLLHUP) != 0 => return heard,
            _ => {}
        }
    }
}

/// A pipeline, and in the same contexts a PUSH and a PULL over ipc. Another thread writes random
/// words into their shared memory. The pipeline loses no message, and all ends in order.
pub(super) fn liars(stage: &mut Scenario, rng: &mut Rng) {
    STRANGERS.store(true, SeqCst);
    stage.over_tcp();
    let is_over = Arc::new(AtomicBool::new(false));
    let mut handles = Vec::new();
    for (socket_type, binds) in [(SocketType::Push, false), (SocketType::Pull, true)] {
        let (context, mut rng, kind, is_over) = (stage.context(rng), fork(rng), stage.kind, is_over.clone());
        handles.push(spawn("victim", move || {
            let mut peer = Peer::new(&context, socket_type, fork(&mut rng));
            peer.set(LINGER, 0);
            // Without high-water marks they would fill all memory.
            peer.set(SNDHWM, 20);
            peer.set(RCVHWM, 20);
            peer.set(SNDTIMEO, 50);
            peer.set_receive_timeout(50);
            peer.bind_or_connect("ipc:///sim/lies", binds);
            let mut number = 0;
            while !is_over.load(SeqCst) {
                let outcome = match socket_type {
                    SocketType::Push => peer.try_send(&kind.message(0, number)),
                    _ => peer.try_recv().map(drop),
                };
                match outcome {
                    Ok(()) => number += 1,
                    Err(Error::Again) => {}
                    Err(error) => panic!("{error}"),
                }
                peer.sleep_briefly();
            }
        }));
    }
    let (mut liar_rng, over) = (fork(rng), is_over.clone());
    handles.push(spawn("liar", move || {
        while !over.load(SeqCst) {
            std::thread::sleep(Duration::from_micros(liar_rng.spread(10, 20_000)));
            scribble(&mut liar_rng);
        }
    }));
    flow(stage, rng, false);
    std::thread::sleep(Duration::from_millis(rng.spread(1, 2000)));
    is_over.store(true, SeqCst);
    join(handles);
}

/// Writes a word into the first page of a shared memory.
fn scribble(rng: &mut Rng) {
    const PAGE: usize = 4096;
    store_buffer::flush_all();
    world::enter("scribble");
    let memories = world::with(|world| world.kernel.memories()).unwrap_or_default();
    let Some(fd) = (!memories.is_empty()).then(|| *rng.pick(&memories)) else { return };
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let arguments = [0, PAGE, access, libc::MAP_SHARED as usize, fd as usize, 0];
    // SAFETY: a new mapping.
    let base = unsafe { raw::call(libc::SYS_mmap, arguments) };
    if base < 0 {
        return;
    }
    // The meaningful words are at the starts of cache lines.
    let word = (base as usize + 64 * rng.below(PAGE as u64 / 64) as usize) as *mut u64;
    // SAFETY: within the page, and aligned.
    let before = unsafe { word.read_volatile() };
    let after = match rng.below(4) {
        0 => rng.next(),
        1 => before.wrapping_add(rng.spread(1, 40_000)),
        2 => before.wrapping_sub(rng.spread(1, 40_000)),
        _ => rng.below(2),
    };
    // SAFETY: the same.
    unsafe { word.write_volatile(after) };
    // SAFETY: this function's mapping.
    unsafe { raw::call(libc::SYS_munmap, [base as usize, PAGE, 0, 0, 0, 0]) };
}
