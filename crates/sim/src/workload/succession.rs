//! Peers that succeed each other, and sockets that move between threads.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tautline_core::{Context, Error, SocketType};

use super::patterns::QUIET;
use super::peer::{HEARTBEAT_IVL, IN_BATCH_SIZE, LINGER, Peer, ROUTING_ID, SNDHWM};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const ROUTER_HANDOVER: i32 = 56;
/// Index of `queued_out` in the statistics.
const QUEUED_OUT: usize = 7;
/// System calls that one peer needs to fill its room, in addition to those that read from its
/// socket.
const SOME: u64 = 50_000;

/// Successive peers, each with messages to send, at a socket with room for one peer, or for one
/// peer of their name. All messages are received, though the receiver polls only now and then. Each
/// peer has been received and has closed before the next one connects, which would otherwise be
/// refused, as by libzmq. If a ROUTER lets the next one take over, the messages need only have
/// arrived. Heartbeats are off: a reply to a peer that has waited for long and closed resets the
/// connection, and its messages are lost with it.
pub(super) fn successors(stage: &mut Scenario, rng: &mut Rng) {
    run_successive_peers(stage, rng, false);
}

/// Successive peers through shared memory. The receiver stops reading after a peer's last message,
/// so the end of that peer is unread when the next one connects.
pub(super) fn heirs(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_ipc();
    world::with(|world| world.kernel.faults.no_memory = 0);
    run_successive_peers(stage, rng, true);
}

fn run_successive_peers(stage: &mut Scenario, rng: &mut Rng, looks_away: bool) {
    let endpoint = stage.endpoint();
    let lossy = stage.lossy;
    let (first, second) =
        *rng.pick(&[(SocketType::Pair, SocketType::Pair), (SocketType::Router, SocketType::Dealer)]);
    let takes_over = first == SocketType::Router && rng.chance(2);
    // The socket spends only a limited number of reads on the unread data of a predecessor.
    let kind = if takes_over { stage.kind.of_at_most(3_000) } else { stage.kind };
    let ledger = stage.ledger_of(kind);
    let counts: Vec<(u32, u32)> = (0..rng.between(2, 6) as u32).map(|at| (at, kind.count(rng, 40))).collect();
    let busy = Countdown::new(1);
    let total: u32 = counts.iter().map(|(_, count)| count).sum();
    let (context, server_rng) = (stage.context(rng), fork(rng));
    let mut server = Peer::new(&context, first, server_rng);
    if takes_over {
        server.set(ROUTER_HANDOVER, 1);
        server.set(IN_BATCH_SIZE, 8192);
    }
    server.set(HEARTBEAT_IVL, 0);
    server.bind_or_connect(&endpoint, true);
    if lossy {
        server.set_receive_timeout(QUIET);
    }
    let (own, is_inproc) = (stage.context(rng), stage.transport() == "inproc");
    let (peers, mut rng, done) = (counts.clone(), fork(rng), busy.clone());
    let [said, heard] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let (tells, hears) = (said.clone(), heard.clone());
    // A read may return few bytes, and costs three calls.
    let some = SOME + world::with(|world| world.kernel.faults.buffer.1).unwrap_or(0) / 4;
    let clients = spawn("clients", move || {
        let leave = |(peer, context): (Peer, Context)| {
            drop(peer);
            while let Some(Err(error)) = (!is_inproc).then(|| context.terminate()) {
                assert_eq!(error, Error::Interrupted, "terminate");
            }
        };
        let mut stays = None;
        for (sender, count) in peers {
            let context = if is_inproc { own.clone() } else { Context::new() };
            let mut peer = Peer::new(&context, second, fork(&mut rng));
            peer.set_bytes(ROUTING_ID, b"the same");
            peer.set(HEARTBEAT_IVL, 0);
            peer.bind_or_connect(&endpoint, false);
            for number in 0..count {
                peer.send(&kind.message(sender, number)).unwrap_or_else(|error| panic!("{error}"));
                tells.fetch_add(1, SeqCst);
                // Several writes, after which the ends share memory.
                if looks_away && rng.chance(2) {
                    std::thread::sleep(Duration::from_micros(rng.spread(10, 5_000)));
                }
            }
            // Bytes without room in a small buffer are still in the sender's kernel.
            let waits = takes_over && !lossy && !is_inproc;
            let has_arrived = || world::with(|world| world.kernel.is_all_delivered()).unwrap_or(true);
            while waits && (peer.statistic(QUEUED_OUT) > 0 || !has_arrived()) {
                std::thread::sleep(Duration::from_millis(100));
            }
            if lossy {
                peer.set(LINGER, 20_000);
            }
            let leaves = match waits && rng.chance(2) {
                // This socket still exists when the next one connects.
                true => stays.replace((peer, context)),
                false => Some((peer, context)),
            };
            leaves.into_iter().for_each(leave);
            while !lossy && !takes_over && hears.load(SeqCst) < tells.load(SeqCst) {
                std::thread::sleep(Duration::from_secs(1));
            }
            // By then its end has arrived, but may not have been read.
            let longest = world::with(|world| world.kernel.faults.latency.1).unwrap_or(0);
            let more = if rng.chance(2) { rng.spread(1, 20_000) } else { 3_000_000 };
            std::thread::sleep(Duration::from_nanos(4 * longest) + Duration::from_micros(more));
        }
        stays.into_iter().for_each(leave);
        done.count_down();
    });
    while heard.load(SeqCst) < total {
        // A receiver that has all messages learns of the end inside its call, or makes no call.
        let behind = heard.load(SeqCst) < said.load(SeqCst) || server.rng.chance(4);
        let often = if takes_over { 3 } else { 20 };
        if behind && (heard.load(SeqCst) == 0 && server.rng.chance(2) || server.rng.chance(often)) {
            let (micros, before) = (server.rng.spread(1_000, 30_000_000), world::calls());
            std::thread::sleep(Duration::from_micros(micros));
            let calls = world::calls() - before;
            assert!(calls < some + micros / 20, "{calls} calls while the receiver slept");
        }
        match server.recv() {
            Ok(parts) => {
                let parts = if first == SocketType::Router { &parts[1..] } else { &parts };
                ledger.record(0, parts);
                heard.fetch_add(1, SeqCst);
                // Each is received before the next one sends.
                let is_last = !takes_over && heard.load(SeqCst) == said.load(SeqCst);
                if looks_away && is_last && server.rng.chance(3) {
                    std::thread::sleep(Duration::from_millis(server.rng.spread(1, 10_000)));
                }
            }
            Err(Error::Again) if lossy && busy.remaining() > 0 => {}
            Err(Error::Again) if lossy => break,
            Err(error) => panic!("{error}"),
        }
    }
    join(vec![clients]);
    ledger.check_complete(&counts);
    server.set(LINGER, 0);
}

/// A socket that several threads use in turns, and the number of its next message.
type SharedPeer = Arc<Mutex<Option<(Peer, u32)>>>;

/// A PUSH and a PULL, each used by several threads in turns.
pub(super) fn migrate(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let (lossy, kind) = (stage.lossy, stage.kind);
    let ledger = stage.ledger();
    let count = kind.count(rng, 200);
    let mut pull = Peer::new(&stage.context(rng), SocketType::Pull, fork(rng));
    pull.set_receive_timeout(50);
    pull.bind_or_connect(&endpoint, true);
    let mut push = Peer::new(&stage.context(rng), SocketType::Push, fork(rng));
    push.bind_or_connect(&endpoint, false);
    let [sender, receiver]: [SharedPeer; 2] = [push, pull].map(|peer| Arc::new(Mutex::new(Some((peer, 0)))));
    let quiet_since = Arc::new(Mutex::new(world::current_time()));
    let mut handles = Vec::new();
    for _ in 0..rng.between(2, 4) {
        let (turn, mut rng) = (sender.clone(), fork(rng));
        handles.push(spawn("push", move || {
            while let Some((mut peer, mut number)) = take(&turn, &mut rng) {
                let most = number + rng.spread(1, 20) as u32;
                while number < count.min(most) {
                    peer.send(&kind.message(0, number)).unwrap_or_else(|error| panic!("{error}"));
                    number += 1;
                }
                let is_over = number == count;
                *turn.lock().unwrap() = Some((peer, number));
                if is_over {
                    return;
                }
            }
        }));
    }
    for _ in 0..rng.between(2, 4) {
        let (turn, mut rng) = (receiver.clone(), fork(rng));
        let (ledger, sender, quiet_since) = (ledger.clone(), sender.clone(), quiet_since.clone());
        handles.push(spawn("pull", move || {
            while let Some((mut peer, mut heard)) = take(&turn, &mut rng) {
                for _ in 0..rng.spread(1, 20) {
                    match peer.recv() {
                        Ok(parts) => {
                            ledger.record(0, &parts);
                            heard += 1;
                            *quiet_since.lock().unwrap() = world::current_time();
                        }
                        Err(Error::Again) => {}
                        Err(error) => panic!("{error}"),
                    }
                    if heard == count {
                        break;
                    }
                }
                let all_is_sent = sender.lock().unwrap().as_ref().is_some_and(|(_, sent)| *sent == count);
                let quiet = world::current_time() - *quiet_since.lock().unwrap();
                let is_over = heard == count || lossy && all_is_sent && quiet > 60_000_000_000;
                *turn.lock().unwrap() = Some((peer, heard));
                if is_over {
                    return;
                }
            }
        }));
    }
    join(handles);
    ledger.check_complete(&[(0, count)]);
    for turn in [sender, receiver] {
        if let Some((mut peer, _)) = turn.lock().unwrap().take() {
            peer.set(LINGER, 0);
            peer.set(SNDHWM, 1);
        }
    }
}

/// Waits for the socket, and takes it.
fn take(turn: &SharedPeer, rng: &mut Rng) -> Option<(Peer, u32)> {
    loop {
        if let Some(taken) = turn.lock().unwrap().take() {
            return Some(taken);
        }
        std::thread::sleep(Duration::from_micros(rng.spread(1, 5_000)));
    }
}
