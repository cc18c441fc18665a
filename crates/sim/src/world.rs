//! Threads and time. Simulated threads are real threads, so that each has its own thread-local
//! values, stack and standard library state. But only one runs at a time, drawn from the seed, and
//! the others wait for their turn.
//!
//! A thread may lose its turn at a *point*: before an access to an atomic or a lock of the engine
//! ([`point`]), and in every system call. Most points only count down the rest of the thread's
//! slice. In some simulations threads are delayed at some points for long ([`delays`]). Actions
//! advance the time: a point takes some nanoseconds, a call takes more. If no thread can run, time
//! jumps to the next moment at which one can. If no such moment exists, there is a deadlock, and
//! the simulation ends with a report.

use std::cell::{Cell, UnsafeCell};
use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::faults::Faults;
use crate::kernel::{Fd, Kernel};
use crate::raw;
use crate::rng::Rng;

mod delays;
mod processes;
mod report;

use delays::Delays;
pub(crate) use delays::linger;
pub(crate) use report::calls;

pub(crate) use processes::{Process, begin_process, end_if_killed, kill};

/// Number of a simulated thread; 0 is a thread outside.
pub(crate) type Tid = u32;

thread_local! {
    static CURRENT_TID: Cell<Tid> = const { Cell::new(0) };
    /// Last point of the thread.
    static LAST_POINT: Cell<usize> = const { Cell::new(0) };
}

/// Nanoseconds since the start. Only the thread whose turn it is writes to it.
static NOW: AtomicU64 = AtomicU64::new(0);
/// Points that remain in the slice.
static SLICE_LEFT: AtomicI64 = AtomicI64::new(0);
/// Time of the last progress of a program.
static PROGRESS: AtomicU64 = AtomicU64::new(0);
/// Number of all points, and their number at the last progress of a program.
static POINTS: AtomicU64 = AtomicU64::new(0);
static POINTS_BEFORE: AtomicU64 = AtomicU64::new(0);
/// True while simulated system code runs.
static IS_INSIDE: AtomicBool = AtomicBool::new(false);
/// True if this simulation delays threads.
static ARE_DELAYS: AtomicBool = AtomicBool::new(false);

/// Duration of a point in nanoseconds.
const POINT: u64 = 5;
/// Longest time without progress of a program, in nanoseconds and in points.
const NO_PROGRESS_LIMIT_NS: u64 = 2_000_000_000_000;
const NO_PROGRESS_LIMIT_POINTS: u64 = 40_000_000;

struct WorldCell(UnsafeCell<Option<World>>);

// SAFETY: only the thread with the turn accesses the world, and futexes hand over the turns.
unsafe impl Sync for WorldCell {}

static WORLD: WorldCell = WorldCell(UnsafeCell::new(None));

pub(crate) struct World {
    pub(crate) kernel: Kernel,
    rng: Rng,
    threads: Vec<Thread>,
    strategy: Strategy,
    delays: Option<Delays>,
    workload: &'static str,
    trace: bool,
    hash: u64,
    /// Time limit of the simulation.
    end: u64,
    switches: u64,
    calls: u64,
    last_wake_check: (u64, u64),
    pub(crate) cores: u32,
    /// Number of processes besides the first.
    processes: Process,
    /// Process of the next thread that this thread starts, if the process is new.
    next_process: Option<(Tid, Process)>,
    killed: BTreeSet<Process>,
}

struct Thread {
    turn: &'static AtomicU32,
    name: String,
    state: ThreadState,
    /// Time until which the thread is stalled.
    stalled_until: u64,
    /// Number of points until which the thread is delayed, while others can run.
    delayed_until_point: u64,
    priority: u64,
    /// True if the thread has blocked the program's signals.
    blocks_signals: bool,
    woken: Woken,
    handle: usize,
    process: Process,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ThreadState {
    Ready,
    Waits(Wait, Option<u64>),
    Ended,
}

/// The condition that a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wait {
    Futex(usize),
    /// Descriptors, each with the requested events.
    Poll(Vec<(Fd, i16)>),
    Epoll(Fd),
    Thread(Tid),
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    Ready,
    Timeout,
    /// Woken by a signal.
    Interrupted,
    /// Woken spuriously.
    Spurious,
}

/// Choice of the next thread.
#[derive(Debug, Clone)]
enum Strategy {
    /// Any thread, with slices of this many points on average.
    Random { slice: u64 },
    /// The thread with the highest priority. Now and then the running thread falls behind all
    /// others (probabilistic concurrency testing).
    Priorities { slice: u64 },
}

/// Parameters of a simulation.
pub(crate) struct SimulationConfig {
    pub(crate) seed: u64,
    pub(crate) workload: &'static str,
    pub(crate) faults: Faults,
    /// Delays threads at some points, for any seed.
    pub(crate) delays: bool,
    pub(crate) trace: bool,
    /// Limit of the virtual time in nanoseconds. Beyond it the simulation has failed.
    pub(crate) limit: u64,
}

/// Exit codes of the process.
pub(crate) const PASSED: i32 = 0;
pub(crate) const STUCK: i32 = 3;
pub(crate) const ENDLESS: i32 = 4;

fn world() -> &'static mut World {
    // SAFETY: the caller has the turn, and keeps no other reference: those of this module and of
    // `entry` end before a turn is given away.
    unsafe { (*WORLD.0.get()).as_mut() }.expect("a simulation runs")
}

/// Makes the calling thread the first thread of a simulation.
pub(crate) fn begin(plan: SimulationConfig) {
    let mut rng = Rng::new(plan.seed, 1);
    let slice = *rng.pick(&[2, 8, 40, 300, 3000]);
    let strategy = match rng.chance(2) {
        true => Strategy::Random { slice },
        false => Strategy::Priorities { slice: slice * 4 },
    };
    let delays = plan.delays.then(|| Delays::draw(plan.seed));
    ARE_DELAYS.store(delays.is_some(), Relaxed);
    let mut world = World {
        kernel: Kernel::new(plan.seed, plan.faults),
        cores: rng.between(1, 4) as u32,
        rng,
        threads: Vec::new(),
        strategy,
        delays,
        workload: plan.workload,
        trace: plan.trace,
        hash: 0xcbf2_9ce4_8422_2325,
        end: plan.limit,
        switches: 0,
        calls: 0,
        last_wake_check: (u64::MAX, 0),
        processes: 0,
        next_process: None,
        killed: BTreeSet::new(),
    };
    let me = world.add_thread("main");
    // SAFETY: no preconditions.
    world.set_handle(me, unsafe { libc::pthread_self() } as usize);
    if world.trace {
        let text = format!(
            "strategy {:?}, {:?}, {} cores, {:?}\n",
            world.strategy, world.delays, world.cores, world.kernel.faults
        );
        raw::write_all(2, text.as_bytes());
    }
    // SAFETY: no thread of the simulation runs yet.
    unsafe { *WORLD.0.get() = Some(world) };
    NOW.store(1_000_000, Relaxed);
    CURRENT_TID.set(me);
}

/// Takes the calling thread out of the simulation. No other thread gets a turn.
#[cfg(covered)]
pub(crate) fn leave() {
    CURRENT_TID.set(0);
}

/// Returns the number of the calling thread, if it is simulated.
pub(crate) fn current_thread() -> Option<Tid> {
    match CURRENT_TID.get() {
        0 => None,
        me => Some(me),
    }
}

/// Runs `f` on the world, for the thread whose turn it is. Returns `None` outside a simulation. `f`
/// must not give the turn away.
pub(crate) fn with<T>(f: impl FnOnce(&mut World) -> T) -> Option<T> {
    let act = || {
        let world = world();
        world.kernel.advance(NOW.load(Relaxed));
        world.kernel.process = world.thread(CURRENT_TID.get()).process;
        world.kernel.is_dead = world.killed.contains(&world.kernel.process);
        f(world)
    };
    current_thread().map(|_| in_system_code(act))
}

/// Runs code of the simulated system.
fn in_system_code<T>(f: impl FnOnce() -> T) -> T {
    let before = IS_INSIDE.swap(true, Relaxed);
    let result = f();
    IS_INSIDE.store(before, Relaxed);
    result
}

/// True while system code runs instead of a program.
pub(crate) fn is_in_system_code() -> bool {
    IS_INSIDE.load(Relaxed)
}

/// Lets another thread run before the engine's action at `place`.
#[inline]
pub(crate) fn point(place: &'static Location<'static>) {
    if CURRENT_TID.get() == 0 {
        return;
    }
    delays::at_point(place);
    pass();
}

#[inline]
fn pass() {
    NOW.store(NOW.load(Relaxed) + POINT, Relaxed);
    POINTS.store(POINTS.load(Relaxed) + 1, Relaxed);
    let left = SLICE_LEFT.load(Relaxed) - 1;
    SLICE_LEFT.store(left, Relaxed);
    if left < 0 {
        change_threads(false);
    }
}

/// Begins a system call: advances the time, and may let another thread run first.
pub(crate) fn enter(name: &'static str) {
    if CURRENT_TID.get() == 0 {
        return;
    }
    #[cfg(simulated)]
    crate::store_buffer::flush();
    delays::at_call(name);
    let world = world();
    world.calls += 1;
    let took = if world.rng.chance(2000) {
        world.rng.between(10_000, 100_000)
    } else {
        world.rng.between(100, 1500)
    };
    NOW.store(NOW.load(Relaxed) + took, Relaxed);
    SLICE_LEFT.store(SLICE_LEFT.load(Relaxed) - 8, Relaxed);
    if SLICE_LEFT.load(Relaxed) < 0 {
        change_threads(false);
    }
}

/// Lets other threads run first.
pub(crate) fn yield_turn() {
    if CURRENT_TID.get() != 0 {
        let world = world();
        NOW.store(NOW.load(Relaxed) + world.rng.between(200, 1000), Relaxed);
        change_threads(true);
    }
}

/// Returns the nanoseconds since the start. The call itself takes time.
pub(crate) fn now() -> u64 {
    if CURRENT_TID.get() != 0 {
        pass();
    }
    let now = NOW.load(Relaxed) + 20;
    NOW.store(now, Relaxed);
    now
}

/// Returns the time without advancing it.
pub(crate) fn current_time() -> u64 {
    NOW.load(Relaxed)
}

/// Records that a call of a program has returned.
pub(crate) fn progress() {
    PROGRESS.store(NOW.load(Relaxed), Relaxed);
    POINTS_BEFORE.store(POINTS.load(Relaxed), Relaxed);
}

/// True if stores may be delayed.
pub(crate) fn may_delay_stores() -> bool {
    world().kernel.faults.late > 0
}

/// Draws if a weak compare-exchange fails spuriously.
pub(crate) fn weak_exchange_fails() -> bool {
    CURRENT_TID.get() != 0 && {
        let world = world();
        let one_in = world.kernel.faults.weak;
        world.draw_fault(one_in)
    }
}

/// Makes the calling thread wait, at most until `deadline`.
pub(crate) fn wait(wait: Wait, deadline: Option<u64>) -> Woken {
    let me = CURRENT_TID.get();
    if processes::must_stop(me, &wait) {
        end_this_thread();
    }
    let world = world();
    let can_be_woken = matches!(wait, Wait::Futex(_));
    let hears = matches!(wait, Wait::Poll(_) | Wait::Epoll(_)) && !world.thread(me).blocks_signals;
    let faults = &world.kernel.faults;
    let (spurious, interrupted) = (faults.spurious, faults.interrupted);
    if hears && world.draw_fault(interrupted) {
        return Woken::Interrupted;
    }
    if can_be_woken && world.draw_fault(spurious) {
        return Woken::Spurious;
    }
    world.thread(me).state = ThreadState::Waits(wait, deadline);
    world.last_wake_check = (u64::MAX, 0);
    change_threads(false);
    self::world().thread(me).woken
}

impl World {
    fn thread(&mut self, tid: Tid) -> &mut Thread {
        &mut self.threads[tid as usize - 1]
    }

    /// Adds a thread that has not had a turn yet.
    pub(crate) fn add_thread(&mut self, name: &str) -> Tid {
        let (priority, process) = (self.rng.next() >> 1, self.process_of_new());
        self.threads.push(Thread {
            turn: Box::leak(Box::new(AtomicU32::new(0))),
            name: name.to_owned(),
            state: ThreadState::Ready,
            stalled_until: 0,
            delayed_until_point: 0,
            priority,
            blocks_signals: false,
            woken: Woken::Ready,
            handle: 0,
            process,
        });
        self.threads.len() as Tid
    }

    pub(crate) fn turn_of(&mut self, tid: Tid) -> &'static AtomicU32 {
        self.thread(tid).turn
    }

    pub(crate) fn set_handle(&mut self, tid: Tid, handle: usize) {
        self.thread(tid).handle = handle;
    }

    pub(crate) fn thread_of_handle(&self, handle: usize) -> Option<Tid> {
        self.threads.iter().rposition(|thread| thread.handle == handle).map(|at| at as Tid + 1)
    }

    /// Draws a fault of threads, as [`Kernel::draw_fault`] does.
    fn draw_fault(&mut self, one_in: u64) -> bool {
        let fault = self.rng.chance(one_in);
        self.kernel.injected += u64::from(fault);
        fault
    }

    pub(crate) fn has_ended(&mut self, tid: Tid) -> bool {
        self.thread(tid).state == ThreadState::Ended
    }

    pub(crate) fn rename(&mut self, name: &str) {
        let tid = CURRENT_TID.get();
        self.thread(tid).name = format!("{name}#{tid}");
    }

    pub(crate) fn set_blocks_signals(&mut self, deaf: bool) {
        self.thread(CURRENT_TID.get()).blocks_signals = deaf;
    }

    /// Wakes threads that wait at an address. Returns their number.
    pub(crate) fn wake_futex(&mut self, address: usize, most: usize) -> usize {
        let mut woken = 0;
        while woken < most {
            let waiting: Vec<usize> = (0..self.threads.len())
                .filter(|at| matches!(&self.threads[*at].state, ThreadState::Waits(Wait::Futex(there), _) if *there == address))
                .collect();
            if waiting.is_empty() {
                break;
            }
            let thread = &mut self.threads[*self.rng.pick(&waiting)];
            (thread.state, thread.woken) = (ThreadState::Ready, Woken::Ready);
            woken += 1;
        }
        woken
    }

    /// Draws the next thread to run. Returns the turns of the caller and of that thread, if the two
    /// differ.
    fn next_turn(&mut self, yields: bool) -> Option<Turns> {
        let me = CURRENT_TID.get();
        let next = self.choose(me, yields);
        let slice = match self.strategy {
            Strategy::Random { slice } | Strategy::Priorities { slice } => slice,
        };
        SLICE_LEFT.store(self.rng.between(0, slice * 2) as i64, Relaxed);
        if next == me {
            return None;
        }
        self.switches += 1;
        self.note(u64::from(next) << 32 | 0xffff);
        Some((self.thread(me).turn, self.thread(next).turn))
    }

    /// Ends the thread. Returns its turn and that of the next thread.
    fn last_turn(&mut self) -> Turns {
        let me = CURRENT_TID.get();
        self.thread(me).state = ThreadState::Ended;
        self.last_wake_check = (u64::MAX, 0);
        self.kernel.changes += 1;
        let process = self.thread(me).process;
        self.close_killed_process(process);
        let next = self.choose(me, false);
        (self.thread(me).turn, self.thread(next).turn)
    }

    fn choose(&mut self, me: Tid, yields: bool) -> Tid {
        let (stall, longest) = (self.kernel.faults.stall, self.kernel.faults.longest_stall);
        if self.draw_fault(stall) {
            let now = NOW.load(Relaxed);
            let until = now + self.rng.spread(1_000, longest.max(1_000));
            self.thread(me).stalled_until = until;
        }
        if let Strategy::Priorities { slice } = self.strategy
            && (yields || self.rng.chance(1 + 2000 / slice.max(1)))
        {
            let lowest = self.threads.iter().map(|thread| thread.priority).min().unwrap_or(0);
            self.thread(me).priority = lowest.saturating_sub(1);
        }
        loop {
            let now = NOW.load(Relaxed);
            self.kernel.advance(now);
            self.wake(now);
            let able = |thread: &Thread| thread.state == ThreadState::Ready && thread.stalled_until <= now;
            let points = POINTS.load(Relaxed);
            let ready: Vec<Tid> = (1..=self.threads.len() as Tid)
                .filter(|tid| {
                    let thread = &self.threads[*tid as usize - 1];
                    able(thread) && thread.delayed_until_point <= points
                })
                .collect();
            if ready.is_empty() {
                if self.resume_delayed(now) {
                    continue;
                }
                let next = self.next_time(now);
                let Some(next) = next else {
                    self.fail(STUCK, "every thread waits, and nothing will happen")
                };
                if next > self.end {
                    self.fail(ENDLESS, "no end within the time")
                }
                NOW.store(next.max(now), Relaxed);
                continue;
            }
            if now > self.end {
                self.fail(ENDLESS, "no end within the time")
            }
            let for_nothing = points - POINTS_BEFORE.load(Relaxed);
            if now > PROGRESS.load(Relaxed) + NO_PROGRESS_LIMIT_NS || for_nothing > NO_PROGRESS_LIMIT_POINTS {
                self.fail(STUCK, "threads run, and no program gets on")
            }
            return match self.strategy {
                Strategy::Random { .. } => {
                    let others: Vec<Tid> = ready.iter().copied().filter(|tid| *tid != me).collect();
                    *self.rng.pick(if yields && !others.is_empty() { &others } else { &ready })
                }
                Strategy::Priorities { .. } => {
                    let first =
                        ready.iter().copied().max_by_key(|tid| self.threads[*tid as usize - 1].priority);
                    first.unwrap_or(me)
                }
            };
        }
    }

    /// Makes the threads ready whose wait is over.
    fn wake(&mut self, now: u64) {
        // Unchanged since the last time, and no deadline has passed.
        if self.last_wake_check.0 == self.kernel.changes && now < self.last_wake_check.1 {
            return;
        }
        let mut earliest = u64::MAX;
        for at in 0..self.threads.len() {
            let ThreadState::Waits(wait, deadline) = &self.threads[at].state else { continue };
            let is_ready = match wait {
                Wait::Futex(_) | Wait::Time => false,
                Wait::Epoll(set) => self.kernel.epoll_ready(*set),
                Wait::Poll(fds) => {
                    let mut fds: Vec<libc::pollfd> =
                        fds.iter().map(|&(fd, events)| libc::pollfd { fd, events, revents: 0 }).collect();
                    self.kernel.poll(&mut fds) > 0
                }
                Wait::Thread(tid) => self.threads[*tid as usize - 1].state == ThreadState::Ended,
            };
            let late = deadline.is_some_and(|deadline| deadline <= now);
            if is_ready || late {
                let thread = &mut self.threads[at];
                thread.state = ThreadState::Ready;
                thread.woken = if is_ready { Woken::Ready } else { Woken::Timeout };
            } else if let Some(deadline) = deadline {
                earliest = earliest.min(*deadline);
            }
        }
        self.last_wake_check = (self.kernel.changes, earliest);
    }

    /// Returns the next time at which a thread can run.
    fn next_time(&self, now: u64) -> Option<u64> {
        let stalled = self
            .threads
            .iter()
            .filter(|thread| thread.state == ThreadState::Ready)
            .map(|thread| thread.stalled_until);
        let deadlines = self.threads.iter().filter_map(|thread| match &thread.state {
            ThreadState::Waits(_, deadline) => *deadline,
            _ => None,
        });
        stalled.filter(|time| *time > now).chain(deadlines).chain(self.kernel.next_due()).min()
    }
}

/// Turns of a thread and of the next thread.
type Turns = (&'static AtomicU32, &'static AtomicU32);

/// Lets the next thread run, and returns at the caller's next turn. The world must not be borrowed
/// across the call, because others use it.
fn change_threads(yields: bool) {
    if let Some((mine, theirs)) = in_system_code(|| world().next_turn(yields)) {
        raw::give_turn(theirs);
        raw::wait_for_turn(mine);
    }
}

/// Ends the calling thread and gives its turn away. The thread keeps its stack, so that the
/// addresses of other stacks do not depend on when the real thread ends.
pub(crate) fn end_this_thread() -> ! {
    #[cfg(simulated)]
    crate::store_buffer::flush_all();
    let (mine, theirs) = in_system_code(|| world().last_turn());
    raw::give_turn(theirs);
    loop {
        raw::wait_for_turn(mine);
    }
}

/// First action of a new thread: waits for its turn.
pub(crate) fn start_thread(tid: Tid, turn: &AtomicU32) {
    raw::wait_for_turn(turn);
    CURRENT_TID.set(tid);
}
