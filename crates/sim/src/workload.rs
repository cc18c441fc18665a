//! Simulated programs, and the properties that they check. The seed decides which program runs, and
//! all its actions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;

use tautline_core::{Context, Error};

use tautline_io::lending::{self, Count};
use tautline_mem::sync::simulated::{Simulator, set_simulator};

use crate::faults::Faults;
use crate::memory;
use crate::raw;
use crate::rng::Rng;
use crate::store_buffer;
use crate::world::{self, SimulationConfig};

mod addresses;
mod bursts;
mod connection_rules;
mod datagrams;
mod devices;
mod edges;
mod endings;
mod envelopes;
mod event_checks;
mod faulty_peers;
mod greetings;
mod guarded;
mod hostile;
mod lenders;
mod monitoring;
mod multicast;
mod numbered;
mod observation;
mod patterns;
mod peer;
mod replays;
mod revocation;
mod sealed;
mod self_connections;
mod settings;
mod silent_senders;
mod streams;
mod subscriptions;
mod succession;
mod traffic;

use traffic::{Ledger, MessageProfile};

/// Runs the simulation that the arguments name.
pub fn main() {
    let name = run_workload();
    // The program has freed all its memory here.
    let here = 0_usize;
    if let Some((false, threads)) = world::with(|world| (world.has_killed(), world.stacks())) {
        let lost = memory::find_lost_blocks(&raw const here as usize, &threads);
        assert!(lost.is_empty(), "memory is lost: {lost:?}");
        let told = memory::secrets();
        assert!(told.is_empty(), "there are secrets in memory yet: {told:?}");
    }
    let text = world::with(|world| format!("passed {name}: {}\n", world.summary())).unwrap_or_default();
    raw::write_all(1, text.as_bytes());
    #[cfg(covered)]
    write_coverage();
    raw::exit(world::PASSED)
}

/// Runs the program. Returns its name.
#[inline(never)]
fn run_workload() -> &'static str {
    let mut arguments = std::env::args().skip(1);
    let Some(seed) = arguments.next().and_then(|seed| seed.parse::<u64>().ok()) else {
        eprintln!(
            "usage: tautline-sim SEED [--trace] [--only WORKLOAD] [--calm] [--late] [--delays] [--most MESSAGES] [--without FAULT]... [--block NUMBER]"
        );
        std::process::exit(2);
    };
    let rest: Vec<String> = arguments.collect();
    let has = |word: &str| rest.iter().any(|other| other == word);
    let only = rest.iter().position(|word| word == "--only").and_then(|at| rest.get(at + 1));
    let mut rng = Rng::new(seed, 3);
    let lossy = rng.chance(3);
    let mut faults = Faults::draw(&mut rng, lossy);
    if has("--calm") {
        faults = Faults { latency: faults.latency, buffer: faults.buffer, ..Faults::default() };
    }
    if has("--late") {
        faults.late = 2;
    }
    let left_out = rest.iter().zip(rest.iter().skip(1)).filter(|(word, _)| *word == "--without");
    for (_, name) in left_out {
        assert!(faults.disable(name), "there is no fault {name}");
    }
    let drawn = rng.below(patterns::ALL.len() as u64) as usize;
    let (name, program) = match only {
        None => patterns::ALL[drawn],
        Some(name) => {
            *patterns::ALL.iter().find(|(known, _)| known == name).expect("a workload of this name")
        }
    };
    let number = |word: &str| {
        let at = rest.iter().rposition(|other| other == word)?;
        rest.get(at + 1)?.parse::<u64>().ok()
    };
    traffic::MAX_MESSAGES.store(number("--most").unwrap_or(u64::MAX), SeqCst);
    disable_aslr();
    set_simulator(Simulator {
        point: world::point,
        fails: world::weak_exchange_fails,
        keep: store_buffer::delay_store,
        keeps_other: store_buffer::delays_other_store,
        linger: world::linger,
        flush: store_buffer::flush,
        flush_all: store_buffer::flush_all,
        before_lock: store_buffer::before_lock,
        locked: store_buffer::locked,
    });
    std::panic::set_hook(Box::new(|panic| {
        let text = format!("{panic}");
        world::with(|world| world.fail(FAILED, &text));
    }));
    world::begin(SimulationConfig {
        seed,
        workload: name,
        faults,
        delays: has("--delays"),
        trace: has("--trace"),
        limit: 86_400_000_000_000,
    });
    memory::begin(number("--block").unwrap_or(0));
    let mut stage = Scenario::draw(&mut rng, lossy);
    peer::trace(|| format!("{name}, lossy {lossy}, {stage:?}"));
    program(&mut stage, &mut rng);
    stage.end();
    name
}

/// Writes the line coverage to the file that the environment names.
#[cfg(covered)]
fn write_coverage() {
    unsafe extern "C" {
        fn __llvm_profile_write_file() -> i32;
    }
    world::leave();
    // SAFETY: no other thread runs.
    unsafe { __llvm_profile_write_file() };
}

/// Exit code for a failed check of a workload.
const FAILED: i32 = 5;

/// Folder of the counters files in the simulated system.
const RUN: &str = "/sim/run";

/// Keeps memory addresses and environment variables the same in each run.
fn disable_aslr() {
    const NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;
    // SAFETY: integers.
    let before = unsafe { libc::personality(0xffff_ffff) };
    let is_set_up = std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|folder| folder == RUN);
    if is_set_up && (before < 0 || before as libc::c_ulong & NO_RANDOMIZE != 0) {
        return;
    }
    // SAFETY: integers.
    if before >= 0 && unsafe { libc::personality(before as libc::c_ulong | NO_RANDOMIZE) } < 0 && is_set_up {
        return;
    }
    use std::os::unix::process::CommandExt;
    let mut again = std::process::Command::new("/proc/self/exe");
    let error = again.args(std::env::args().skip(1)).env("XDG_RUNTIME_DIR", RUN).exec();
    eprintln!("it cannot start itself again: {error}");
}

/// State shared by the programs of a simulation.
pub(crate) struct Scenario {
    /// Contexts. Several contexts behave like several processes.
    contexts: Vec<Context>,
    transport: &'static str,
    endpoints: u32,
    /// True if messages may be lost with a connection.
    lossy: bool,
    streams_are_lossy: bool,
    kind: MessageProfile,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} over {} contexts, {:?}", self.transport, self.contexts.len(), self.kind)
    }
}

impl Scenario {
    fn draw(rng: &mut Rng, lossy: bool) -> Self {
        let transport = *rng.pick(&["tcp", "tcp", "ipc", "ipc", "inproc", "ws"]);
        let most = if transport == "inproc" { 1 } else { 3 };
        let contexts: Vec<Context> = (0..rng.between(1, most)).map(|_| tautline_host::context()).collect();
        for context in &contexts {
            let threads = *rng.pick(&[1, 1, 1, 2]);
            context.set(1, threads).unwrap();
        }
        Scenario {
            contexts,
            transport,
            endpoints: 0,
            lossy: lossy && transport != "inproc",
            streams_are_lossy: lossy,
            kind: MessageProfile::draw(rng),
        }
    }

    fn context(&self, rng: &mut Rng) -> Context {
        rng.pick(&self.contexts).clone()
    }

    /// Returns an unused endpoint.
    fn endpoint(&mut self) -> String {
        self.endpoints += 1;
        let number = self.endpoints;
        match self.transport {
            "tcp" => format!("tcp://127.0.0.1:{}", 5000 + number),
            "ipc" => format!("ipc:///sim/{number}"),
            "ws" => format!("ws://127.0.0.1:{}/", 5000 + number),
            _ => format!("inproc://{number}"),
        }
    }

    fn transport(&self) -> &'static str {
        self.transport
    }

    /// Stops losing connections.
    fn stop_losses(&mut self) {
        world::with(|world| world.kernel.faults.stop_losses());
        (self.lossy, self.streams_are_lossy) = (false, false);
    }

    fn over_ipc(&mut self) {
        self.transport = "ipc";
        self.lossy = false;
        // Otherwise a stream that cannot be watched would be lost.
        world::with(|world| world.kernel.faults.watches = 0);
    }

    fn over_tcp(&mut self) {
        self.transport = "tcp";
        self.lossy = self.streams_are_lossy;
    }

    /// Restricts the transport to tcp or ipc.
    fn over_streams(&mut self) {
        if !matches!(self.transport, "tcp" | "ipc") {
            self.transport = "tcp";
            self.lossy = self.streams_are_lossy;
        }
    }

    fn ledger(&self) -> Arc<Ledger> {
        self.ledger_of(self.kind)
    }

    fn ledger_of(&self, kind: MessageProfile) -> Arc<Ledger> {
        Arc::new(Ledger::new(kind, self.lossy, true))
    }

    /// Returns a ledger that permits lost and reordered messages for all connections.
    fn lenient_ledger(&self) -> Arc<Ledger> {
        Arc::new(Ledger::new(self.kind, true, false))
    }

    /// Ends all contexts, and checks that all resources are released.
    fn end(self) {
        for context in self.contexts {
            while let Err(error) = context.terminate() {
                assert_eq!(error, Error::Interrupted, "terminate");
            }
        }
        // Threads of their own close descriptors and resolve names.
        std::thread::sleep(std::time::Duration::from_secs(20));
        let left = world::with(|world| world.kernel.open_descriptors()).unwrap_or_default();
        assert!(left.is_empty(), "descriptors are left: {left:?}");
        if let Some((false, mapped)) = world::with(|world| (world.has_killed(), world.kernel.mapped.clone()))
        {
            assert!(mapped.is_empty(), "memory is left mapped: {mapped:x?}");
            let counts = lending::counts();
            peer::trace(|| format!("loans: {counts:?}"));
            assert_eq!(counts[Count::Lent as usize], counts[Count::Returned as usize], "loans are left");
        }
    }
}

/// Counts down, and tells the caller that reaches 0.
struct Countdown(AtomicUsize);

impl Countdown {
    fn new(from: usize) -> Arc<Self> {
        Arc::new(Countdown(AtomicUsize::new(from)))
    }

    fn count_down(&self) -> bool {
        self.0.fetch_sub(1, SeqCst) == 1
    }

    fn remaining(&self) -> usize {
        self.0.load(SeqCst)
    }
}

fn spawn(name: &str, f: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(f).unwrap()
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Returns a separate stream of numbers, for one of several threads.
fn fork(rng: &mut Rng) -> Rng {
    Rng::new(rng.next(), 4)
}
