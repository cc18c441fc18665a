//! The simulator: plays arrivals of messages against the rules of this folder, with a model of the
//! system's behaviour and costs.
//!
//! One owner sends to one or more peers. One I/O thread watches the queued bytes. Time is simulated
//! in nanoseconds, so a run takes milliseconds and gives the same figures on every machine.
//!
//! The outcomes are those that a user notices: messages per second, the time from when a message
//! was due until the kernel has it, and the number of writes and wake-ups. The tests assert these
//! outcomes with a margin, but not which rule caused them.
//!
//! `cargo test -p tautline-core --lib timing::sim -- --nocapture` prints the whole table.

use super::bursts::Deferred;

use super::account::ThreadAccount;
use super::flush::{Decision, FlushRule};
use super::supervisor::{FOLLOW_UP_CHECK_NS, FlushSupervisor, NextWrite, OwnerActivity, SupervisorRound};
use crate::clock::nanos_to_ticks;

/// Behaviour and costs of the system, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct System {
    name: &'static str,
    /// Cost of a write, for each segment of `segment` bytes.
    write: u64,
    segment: u64,
    /// Cost of each written KiB.
    kib: u64,
    /// Extra cost of a write to a sleeping peer. A peer sleeps if it received no message for
    /// [`AWAKE`].
    wake_peer: u64,
    /// Cost of waking the I/O thread, and the delay until it runs.
    wake_io: u64,
    io_runs: u64,
}

/// A peer that received no message for this time sleeps.
const AWAKE: u64 = 20_000;
/// Cost of looking at the clock and deciding.
const LOOK: u64 = 25;

const TCP: System = System {
    name: "tcp",
    write: 2_500,
    segment: 65_483,
    kib: 300,
    wake_peer: 15_000,
    wake_io: 6_000,
    io_runs: 25_000,
};
const SLOW: System = System { name: "slow", write: 6_000, ..TCP };
const MEMORY: System = System { name: "memory", write: 100, segment: u64::MAX, wake_peer: 6_000, ..TCP };

const SYSTEMS: [System; 3] = [TCP, SLOW, MEMORY];

/// One peer and the messages queued for it.
#[derive(Default)]
struct Peer {
    rule: FlushRule,
    /// Due times of the queued messages.
    queued: Vec<u64>,
    bytes: u64,
    /// End of the last write.
    written: u64,
    /// Idle looks of the I/O thread at this owner. `None` if it does not watch the owner.
    idle: Option<u32>,
    worked_at: u64,
    next_write: NextWrite,
    hint: bool,
}

/// One run.
struct Run {
    system: System,
    peers: Vec<Peer>,
    now: u64,
    watch: FlushSupervisor,
    /// Time of the I/O thread's next look, and true if the owner woke it for that look.
    next: Option<u64>,
    woken: bool,
    thread: ThreadAccount,
    delays: Vec<u64>,
    start: u64,
    writes: u64,
    io_writes: u64,
    io_looks: u64,
    wakes: u64,
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    /// Nanoseconds per message for the owner.
    each: u64,
    /// Nanoseconds from the due time of a message until the kernel had it.
    p50: u64,
    p99: u64,
    most: u64,
    writes: u64,
    io_writes: u64,
    io_looks: u64,
    wakes: u64,
}

impl Run {
    fn new(system: System, peers: usize) -> Run {
        Run {
            system,
            peers: (0..peers).map(|_| Peer::default()).collect(),
            now: 1_000_000_000,
            watch: FlushSupervisor::default(),
            next: None,
            woken: false,
            thread: ThreadAccount::new(),
            delays: Vec::new(),
            start: 1_000_000_000,
            writes: 0,
            io_writes: 0,
            io_looks: 0,
            wakes: 0,
        }
    }

    fn cost(&self, peer: usize, at: u64) -> u64 {
        let Peer { bytes, written, .. } = self.peers[peer];
        let asleep = at.saturating_sub(written) > AWAKE;
        // Vary the duration of each write.
        let varies = 75 + at.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 51;
        self.system.write * varies / 100 * bytes.div_ceil(self.system.segment).max(1)
            + bytes * self.system.kib / 1024
            + if asleep { self.system.wake_peer } else { 0 }
    }

    /// Writes everything queued for a peer, starting at `at`. Returns the end of the write.
    fn write(&mut self, peer: usize, at: u64) -> u64 {
        let end = at + self.cost(peer, at);
        let peer = &mut self.peers[peer];
        self.delays.extend(peer.queued.drain(..).map(|due| end - due));
        peer.bytes = 0;
        peer.written = end;
        end
    }

    /// Runs the I/O thread up to `until`.
    fn watch_until(&mut self, until: u64) {
        while let Some(at) = self.next.filter(|at| *at <= until) {
            let mut round = SupervisorRound::begin(nanos_to_ticks(at));
            self.woken = false;
            let mut end = at;
            let mut watched = 0;
            for peer in 0..self.peers.len() {
                let Some(idle) = self.peers[peer].idle else { continue };
                self.io_looks += 1;
                let Peer { worked_at, next_write, bytes, .. } = self.peers[peer];
                let owner =
                    OwnerActivity { worked_at: nanos_to_ticks(worked_at), next_write, writing: false };
                let at_work = round.check_owner(owner);
                let writes = !at_work && bytes > 0;
                if writes {
                    end = self.write(peer, end);
                    self.io_writes += 1;
                    self.peers[peer].hint = true;
                }
                self.peers[peer].idle = round.idle(owner, idle, at_work, writes);
                match self.peers[peer].idle {
                    Some(_) => watched += 1,
                    None => self.peers[peer].hint = true,
                }
            }
            let pause = self.watch.next(&round);
            self.next = (watched > 0).then_some(end + pause);
        }
    }

    /// Sends a message of `len` bytes that was due at `due`, after `work` ns of the owner's own
    /// work.
    fn send(&mut self, to: usize, due: u64, work: u64, len: usize, reply: bool) {
        self.now = self.now.max(due) + work;
        self.watch_until(self.now);
        let peer = &mut self.peers[to];
        peer.queued.push(due);
        peer.bytes += len as u64 + if len > 255 { 9 } else { 2 };
        let hint = std::mem::take(&mut peer.hint);
        if !(peer.rule.count() || hint) {
            return;
        }
        peer.rule.ask_after(1);
        self.now += LOOK;
        let now = self.now;
        match peer.rule.decide(&self.thread, nanos_to_ticks(now), peer.bytes, len, reply) {
            Decision::Flush => {
                self.now = self.write(to, now);
                self.writes += 1;
                let peer = &mut self.peers[to];
                peer.worked_at = self.now;
                peer.rule.record_flush(&self.thread, nanos_to_ticks(now), nanos_to_ticks(self.now), true);
            }
            Decision::Later(rest) => {
                let unforeseen = rest == Deferred::Unassigned;
                peer.worked_at = now;
                peer.next_write = match rest {
                    Deferred::Predicted => NextWrite::EndOfBurst,
                    _ => NextWrite::Unknown,
                };
                let watched = peer.idle.replace(0).is_some();
                if unforeseen && !std::mem::replace(&mut self.woken, true) {
                    self.watch.restart();
                    let runs = now + self.system.io_runs;
                    self.next = Some(self.next.map_or(runs, |next| next.min(runs)));
                    self.wakes += 1;
                    self.now += self.system.wake_io;
                } else if !watched && self.next.is_none() {
                    self.next = Some(now + FOLLOW_UP_CHECK_NS);
                }
                if unforeseen || !watched {
                    self.peers[to].rule.resume(&self.thread, nanos_to_ticks(self.now));
                }
            }
        }
    }

    fn end(mut self) -> Outcome {
        let busy = self.now - self.start;
        self.watch_until(self.now + 100_000_000);
        assert!(self.peers.iter().all(|peer| peer.queued.is_empty()), "a message was left behind");
        self.delays.sort_unstable();
        let messages = self.delays.len() as u64;
        let at = |percent: usize| self.delays[(self.delays.len() - 1) * percent / 100];
        Outcome {
            each: busy / messages,
            p50: at(50),
            p99: at(99),
            most: at(100),
            writes: self.writes,
            io_writes: self.io_writes,
            io_looks: self.io_looks,
            wakes: self.wakes,
        }
    }
}

/// Pattern of arriving messages.
#[derive(Debug, Clone, Copy)]
enum Arrivals {
    /// A stream as fast as the sender can: it needs `work` ns per message and sends to `peers` in
    /// turn.
    Stream { work: u64, len: usize, peers: usize },
    /// One message every `every` nanoseconds, by a clock.
    Paced { every: u64 },
    /// One message every `mean` nanoseconds on average, at random.
    Random { mean: u64 },
    /// `of` messages together every `every` nanoseconds.
    Bursts { of: u64, every: u64 },
    /// A random number of messages from 1 to `most` together every `every` nanoseconds.
    Uneven { most: u64, every: u64 },
    /// A reply to a peer's request. The request comes `after` ns after the last reply.
    Replies { after: u64 },
}

/// Work of a sender in C per message, in nanoseconds.
const WORK: u64 = 30;

fn play(system: System, arrivals: Arrivals) -> Outcome {
    let peers = if let Arrivals::Stream { peers, .. } = arrivals { peers } else { 1 };
    let mut run = Run::new(system, peers);
    let start = run.now;
    let mut seed = 1u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed >> 33) * below) >> 31
    };
    match arrivals {
        Arrivals::Stream { work, len, peers } => {
            for number in 0..200_000 {
                let due = run.now;
                run.send(number % peers, due, work, len, false);
            }
        }
        Arrivals::Paced { every } => {
            for number in 0..(1_000_000_000 / every).clamp(2_000, 50_000) {
                run.send(0, start + number * every, WORK, 64, false);
            }
        }
        Arrivals::Random { mean } => {
            let mut due = start;
            for _ in 0..50_000 {
                // The sum of two uniform distributions: each message comes at most twice the mean
                // after the one before.
                due += random(mean) + random(mean);
                run.send(0, due, WORK, 64, false);
            }
        }
        Arrivals::Bursts { of, every } => {
            for burst in 0..2_000 {
                (0..of).for_each(|_| run.send(0, start + burst * every, 60, 64, false));
            }
        }
        Arrivals::Uneven { most, every } => {
            for burst in 0..2_000 {
                (0..=random(most)).for_each(|_| run.send(0, start + burst * every, 60, 64, false));
            }
        }
        Arrivals::Replies { after } => {
            for _ in 0..5_000 {
                let due = run.now + after;
                run.send(0, due, WORK, 64, true);
            }
        }
    }
    run.end()
}

/// Returns all arrival patterns to play.
fn scenarios() -> Vec<(String, Arrivals)> {
    let stream = |work, len, peers| Arrivals::Stream { work, len, peers };
    let mut all = vec![
        ("64 B".to_owned(), stream(18, 64, 1)),
        ("1 KiB".to_owned(), stream(60, 1024, 1)),
        ("8 KiB".to_owned(), stream(400, 8192, 1)),
        ("64 B to 2 in turn".to_owned(), stream(25, 64, 2)),
        ("64 B to 4 in turn".to_owned(), stream(25, 64, 4)),
        ("64 B to 8 in turn".to_owned(), stream(25, 64, 8)),
        ("64 B to 100 in turn".to_owned(), stream(25, 64, 100)),
    ];
    for work in [150, 300, 500, 1_000, 2_000, 5_000] {
        all.push((format!("a sender that needs {work} ns"), stream(work, 64, 1)));
    }
    for every in [200, 1_000, 2_000, 5_000, 10_000, 20_000, 1_000_000] {
        all.push((format!("one each {} us", every as f64 / 1e3), Arrivals::Paced { every }));
    }
    for mean in [1_000, 5_000, 20_000] {
        all.push((format!("random, one in {} us", mean / 1000), Arrivals::Random { mean }));
    }
    for (of, every) in [(2, 1_000_000), (10, 1_000_000), (100, 1_000_000), (1_000, 1_000_000), (10, 100_000)]
    {
        all.push((
            format!("bursts of {of}, {} a second", 1_000_000_000 / every),
            Arrivals::Bursts { of, every },
        ));
    }
    for most in [4, 100] {
        all.push((format!("1 to {most}, 1000 a second"), Arrivals::Uneven { most, every: 1_000_000 }));
    }
    all.push(("replies after 5 us".to_owned(), Arrivals::Replies { after: 5_000 }));
    all.push(("replies after 100 ns".to_owned(), Arrivals::Replies { after: 100 }));
    all
}

/// Returns the duration of a write of one message that wakes a sleeping peer.
fn alone(system: System) -> u64 {
    system.write * 5 / 4 + system.wake_peer + 66 * system.kib / 1024 + WORK + LOOK
}

#[test]
fn the_first_message_of_a_lull_is_written_at_once() {
    for system in SYSTEMS {
        let outcome = play(system, Arrivals::Paced { every: 1_000_000 });
        assert!(outcome.most <= alone(system) && outcome.wakes == 0, "{system:?}: {outcome:?}");
    }
}

#[test]
fn burst_of_known_length_takes_about_one_write() {
    for system in SYSTEMS {
        for of in [2, 10, 100] {
            let outcome = play(system, Arrivals::Bursts { of, every: 1_000_000 });
            let work = of * 60;
            assert!(outcome.p99 * 10 <= (alone(system) + work) * 13, "{system:?}, {of}: {outcome:?}");
        }
    }
}

#[test]
fn a_reply_waits_for_nothing() {
    for system in SYSTEMS {
        let outcome = play(system, Arrivals::Replies { after: 20_000 });
        assert!(outcome.p99 <= alone(system), "{system:?}: {outcome:?}");
    }
}

#[test]
fn a_stream_is_written_in_large_pieces() {
    for system in SYSTEMS {
        let outcome = play(system, Arrivals::Stream { work: 18, len: 64, peers: 1 });
        assert!(outcome.writes < 200_000 / 500, "{system:?}: {outcome:?}");
    }
}

/// Returns the minimum time of a sender per message: its own work, and the copying of the bytes.
fn ideal(system: System, work: u64, len: u64) -> u64 {
    work + len * system.kib / 1024
}

#[test]
fn busy_sender_reaches_half_the_ideal_rate() {
    for system in SYSTEMS {
        for work in [150, 300, 500, 1_000, 2_000, 5_000] {
            let outcome = play(system, Arrivals::Stream { work, len: 64, peers: 1 });
            assert!(outcome.each <= 2 * ideal(system, work, 66), "{system:?}, {work} ns: {outcome:?}");
        }
    }
}

#[test]
fn round_robin_sender_reaches_third_of_ideal_rate() {
    for system in SYSTEMS {
        for peers in [2, 4, 8] {
            let outcome = play(system, Arrivals::Stream { work: 25, len: 64, peers });
            assert!(outcome.each <= 3 * ideal(system, 25, 66), "{system:?}, {peers}: {outcome:?}");
        }
    }
}

#[test]
fn a_paced_message_waits_for_no_more_than_a_few_writes() {
    for system in SYSTEMS {
        let write = system.write + 2 * WORK + 2 * LOOK + 500;
        for every in [200, 1_000, 2_000, 5_000, 10_000, 20_000] {
            let outcome = play(system, Arrivals::Paced { every });
            assert!(outcome.p50 <= 5 * write, "{system:?}, {every} ns: {outcome:?}");
            assert!(outcome.p99 <= 7 * write, "{system:?}, {every} ns: {outcome:?}");
        }
        for mean in [1_000, 5_000, 20_000] {
            let outcome = play(system, Arrivals::Random { mean });
            assert!(outcome.p50 <= 5 * write, "{system:?}, {mean} ns: {outcome:?}");
        }
    }
}

#[test]
fn messages_that_come_alone_are_written_at_once() {
    for system in [TCP, MEMORY] {
        let every = (2 * system.write).max(1_000);
        let outcome = play(system, Arrivals::Paced { every });
        let write = system.write * 5 / 4 + 66 * system.kib / 1024 + WORK + LOOK;
        assert!(outcome.p99 <= write, "{system:?}: {outcome:?}");
    }
}

#[test]
fn last_message_waits_at_most_two_check_intervals() {
    for system in SYSTEMS {
        for (name, arrivals) in scenarios() {
            let outcome = play(system, arrivals);
            let peers = if let Arrivals::Stream { peers, .. } = arrivals { peers as u64 } else { 1 };
            let writes = peers * (alone(system) + 20_000);
            // A larger number of peers is a crowd, and the sweep writes to it.
            assert!(peers > 8 || outcome.most <= 1_100_000 + writes, "{system:?}, {name}: {outcome:?}");
        }
    }
}

#[test]
fn an_idle_peer_costs_the_io_thread_nothing() {
    for system in SYSTEMS {
        let outcome = play(system, Arrivals::Paced { every: 1_000_000 });
        assert_eq!((outcome.io_looks, outcome.io_writes), (0, 0), "{system:?}");
    }
}

#[test]
fn the_whole_table() {
    for system in SYSTEMS {
        println!(
            "{:>7}  {:<32} {:>9} {:>8} {:>8} {:>9} {:>8} {:>7} {:>7} {:>7}",
            system.name, "", "M/s", "p50 us", "p99 us", "most us", "writes", "io", "looks", "wakes"
        );
        for (name, arrivals) in scenarios() {
            let o = play(system, arrivals);
            let us = |ns: u64| ns as f64 / 1e3;
            println!(
                "{:>7}  {name:<32} {:>9.3} {:>8.2} {:>8.2} {:>9.2} {:>8} {:>7} {:>7} {:>7}",
                "",
                1e3 / o.each as f64,
                us(o.p50),
                us(o.p99),
                us(o.most),
                o.writes,
                o.io_writes,
                o.io_looks,
                o.wakes
            );
        }
    }
}
