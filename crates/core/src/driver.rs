//! The I/O thread: a reactor, timers and the objects that live on it.
//!
//! The I/O thread does the work that no caller's thread can do: accept, connect, handshake,
//! reconnect; flush residuals and full buffers; read while the owner is away; send heartbeats;
//! linger. On the data path of a busy socket it is idle.
//!
//! Each object that reacts to events is a [`EventSource`]. The thread calls its sources one at a
//! time; no other thread calls them. Other threads reach the I/O thread by [`Driver::post`]. A few
//! operations of the data path use the reactor and the timers directly (`IoSide`).

mod acceptor;
mod closing;
mod datagram;
mod dialer;
mod finder;
mod handshake;
mod heartbeat;
mod origin;
mod panics;
mod peer_source;
mod relay;
mod residual;
mod schedule;
mod security;
mod site;
mod small_map;
mod sweep;
mod tick;
mod ticket;
mod timers;
mod wire;

pub(crate) use acceptor::Acceptor;
pub(crate) use datagram::{DatagramPort, Form};
pub(crate) use dialer::Dialer;
pub(crate) use finder::{Finder, InprocSockets, NamePath, inproc_endpoint, may_be_inproc};
use site::Resident;
pub(crate) use site::Site;
pub(crate) use ticket::{Ticket, Tickets};

use std::sync::Weak;
use std::time::{Duration, Instant};
use timers::{Timer, Timers};

use crate::conn::reader::ReadSet;
use crate::conn::{Connection, Handover, SetKeeper, wakes};
use crate::error::Error;
use residual::Residual;
use schedule::{ChoreSchedule, Due};
use sweep::Swept;
use tautline_io::errno;
use tautline_io::fd::BorrowedFd;
use tautline_io::net::Stream;
use tautline_io::reactor::{Event, Interest, Mode, Reactor, SystemReactor, Token};
use tautline_io::resolve::Resolver;
use tautline_io::thread::{STACK, Started};
use tautline_io::wake::WakeFd;
use tautline_queue::handoff::chore::Chores;
use tautline_queue::sync::atomic::Ordering::{AcqRel, Relaxed};
use tautline_queue::sync::atomic::{AtomicBool, AtomicUsize};
use tautline_queue::sync::{Arc, Mutex, barrier_heavy, lock};
use tick::Ticker;

/// An object that lives on an I/O thread.
pub(crate) trait EventSource: Send + Sync {
    /// Handles an event of the source's registration.
    fn on_ready(self: Arc<Self>, turn: &mut EventLoop, event: &Event);
    /// Handles the end of a timer that the source set with [`EventLoop::set_timer`]. Timers are not
    /// cancelled: the source compares `key` to see if this timer is still valid.
    fn on_timer(self: Arc<Self>, turn: &mut EventLoop, key: u64);
    /// False if the timer `key` would have no effect: the driver may then forget it.
    fn needs_timer(&self, _key: u64) -> bool {
        true
    }
    /// Cleans up after a panic in one of the other methods: ends everything that can be ended.
    fn on_panic(self: Arc<Self>, _turn: &mut EventLoop) {}
}

/// Work posted to the I/O thread.
pub(crate) type Task = Box<dyn FnOnce(&mut EventLoop) + Send>;

const WAKE: Token = Token(u64::MAX);
const RESIDUAL: Token = Token(u64::MAX - 1);
const TICK: Token = Token(u64::MAX - 2);
const VISITS: Token = Token(u64::MAX - 3);
/// A token that belongs to no source, for a descriptor that is not registered.
const NOWHERE: Token = Token(u64::MAX >> 1);

/// Time to wait before a retry if the process is out of descriptors, epoll watches or memory, or if
/// a sandbox refuses the operation.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// The shared part of an I/O thread, which other threads may call.
pub(crate) struct Driver {
    reactor: SystemReactor,
    wake: WakeFd,
    tasks: Mutex<Vec<Task>>,
    // Relaxed: look: the tasks are under a lock, and the wake descriptor is written after this
    // flag.
    has_tasks: AtomicBool,
    residual: Residual,
    sweep: Chores<Swept>,
    visits: ChoreSchedule,
    ticker: Ticker,
    /// Number of sockets on this thread, to spread sockets over the threads.
    // Relaxed: number: it only decides where the next socket goes.
    pub(crate) load: AtomicUsize,
    // Relaxed: behind the system call that wakes the thread.
    stopping: AtomicBool,
    resolver: Resolver,
}

/// Settings of the thread (context options).
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadOptions {
    /// Name of the thread, at most 15 bytes.
    pub(crate) name: String,
    /// ZMQ_THREAD_SCHED_POLICY and ZMQ_THREAD_PRIORITY, if set.
    pub(crate) scheduling: Option<(i32, i32)>,
    /// ZMQ_THREAD_AFFINITY_CPU_ADD and _REMOVE.
    pub(crate) affinity: Vec<usize>,
}

impl Driver {
    /// Starts an I/O thread.
    pub(crate) fn start(options: ThreadOptions) -> Result<(Arc<Self>, Started), Error> {
        let driver = Arc::new(Driver {
            reactor: SystemReactor::new()?,
            wake: WakeFd::new()?,
            tasks: Mutex::default(),
            has_tasks: AtomicBool::new(false),
            residual: Residual::new()?,
            sweep: Chores::new(),
            visits: ChoreSchedule::new()?,
            ticker: Ticker::new()?,
            load: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            resolver: Resolver::with_name("ZMQbg/DNS"),
        });
        driver.reactor.add(driver.wake.as_fd(), WAKE, Interest::READ, Mode::Level)?;
        driver.reactor.add(driver.residual.as_fd(), RESIDUAL, Interest::READ, Mode::Level)?;
        driver.reactor.add(driver.visits.as_fd(), VISITS, Interest::READ, Mode::Level)?;
        driver.reactor.add(driver.ticker.as_fd(), TICK, Interest::READ, Mode::Level)?;
        let turn = EventLoop {
            driver: driver.clone(),
            sources: Vec::new(),
            vacant: Vec::new(),
            unswept: Vec::new(),
            released: Vec::new(),
            visits: Vec::new(),
            timers: Timers::default(),
            timer_keys: 0,
            closing_streams: 0,
        };
        let name = options.name.clone();
        let work = move || {
            let _own = tautline_io::thread::OwnThread::new();
            tautline_io::thread::set_timer_slack_ns(1);
            if let Some((policy, priority)) = options.scheduling {
                let _ = tautline_io::thread::set_scheduling(policy, priority);
            }
            if !options.affinity.is_empty() {
                let _ = tautline_io::thread::set_affinity(&options.affinity);
            }
            // Drop `turn` before the thread ends.
            let mut turn = turn;
            wakes::begin();
            turn.run();
            wakes::end();
        };
        let thread = tautline_io::thread::start(&name, STACK, work).map_err(|_| Error::NoThread)?;
        Ok((driver, thread))
    }

    /// I/O thread: handles one of the thread's own descriptors, which is readable.
    fn expired(&self, token: Token) {
        match token {
            VISITS => self.visits.handle_expiry(),
            RESIDUAL => self.residual.handle_expiry(),
            TICK => self.ticker.handle_expiry(),
            _ => {
                self.wake.drain();
            }
        }
    }

    /// Runs `task` on the I/O thread soon.
    pub(crate) fn post(&self, task: Task) {
        lock(&self.tasks).push(task);
        // AcqRel pairs with the swap in `run_tasks`, which clears the flag before it takes the
        // tasks.
        if !self.has_tasks.swap(true, AcqRel) {
            self.wake.wake();
        }
    }

    /// Takes over work from an owner ([`IoSide::hand_over`](crate::conn::IoSide::hand_over)).
    pub(crate) fn hand_over(&self, work: Handover) -> u32 {
        let mut round = 0;
        let must_wake = match work {
            Handover::Watch { connection, soon } => self.residual.watch(connection, soon),
            Handover::HurryWatch => self.residual.new.hurry(),
            Handover::Sweep(connection) => {
                let added = self.sweep.add(Swept(connection));
                round = added.round;
                added.wake
            }
            Handover::Visit(chore, after) => self.visits.add(chore, after),
        };
        if must_wake {
            self.wake.wake();
        }
        round
    }

    /// Reports once when the stream accepts bytes again, or when the event in `idle` occurs.
    /// Returns false if the system refuses the registration.
    pub(crate) fn want_write(&self, stream: &Stream, registration: Token, idle: Interest) -> bool {
        let (fd, readable) = stream.space_fd();
        if readable {
            return self.report_once(fd, registration, Interest::READ)
                && (idle == Interest::NONE || self.report_once(stream.as_fd(), registration, idle));
        }
        self.report_once(fd, registration, Interest { writable: true, ..idle })
    }

    fn report_once(&self, fd: BorrowedFd<'_>, registration: Token, interest: Interest) -> bool {
        match self.reactor.modify(fd, registration, interest, Mode::OneShot) {
            // This is the first use of this descriptor in the session, so it is added. The session
            // cannot end now, because its end waits for the pump's lock, which the caller holds.
            Err(error) if errno::of(&error) == Some(errno::ENOENT) => {
                self.reactor.add(fd, registration, interest, Mode::OneShot).is_ok()
            }
            changed => changed.is_ok(),
        }
    }

    /// Changes the interest of a registration, from any thread.
    pub(crate) fn rearm(&self, fd: BorrowedFd<'_>, registration: Token, interest: Interest, mode: Mode) {
        // ENOENT: the registration has just ended.
        let _ = self.reactor.modify(fd, registration, interest, mode);
    }

    /// The thread that resolves host names for this one.
    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// Removes a descriptor from the reactor, from another thread. The entry of its source stays
    /// until [`EventLoop::forget`].
    pub(crate) fn deregister(&self, fd: BorrowedFd<'_>) {
        let _ = self.reactor.remove(fd);
    }

    /// Ends the thread when no object lives on it any longer. The context joins the thread.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.wake.wake();
    }

    /// Puts a socket's read set under this thread's supervision.
    pub(crate) fn watch_set(self: &Arc<Self>, set: Arc<ReadSet>) {
        self.post(Box::new(move |turn| turn.register_set(&set)));
    }

    /// I/O thread: ends the supervision of a read set, whose socket is closed.
    pub(crate) fn unwatch_set(&self, set: Arc<ReadSet>) {
        self.ticker.remove(&set);
        self.post(Box::new(move |turn| {
            if let Some(token) = set.registration.end() {
                turn.unregister(Token(token), set.as_fd());
            }
        }));
    }
}

impl SetKeeper for Driver {
    fn arm(&self, set: &ReadSet) {
        if let Some(token) = set.token() {
            let _ = self.reactor.modify(set.as_fd(), token, Interest::READ, Mode::OneShot);
        }
    }

    fn disarm(&self, set: &ReadSet) {
        if let Some(token) = set.token() {
            let _ = self.reactor.modify(set.as_fd(), token, Interest::NONE, Mode::OneShot);
        }
    }

    fn start_tick(&self) {
        self.ticker.start();
    }

    fn join_tick(&self, set: Arc<ReadSet>) {
        self.ticker.add(set);
    }

    fn tick_on(&self) -> &AtomicBool {
        self.ticker.on()
    }
}

impl EventSource for ReadSet {
    fn on_ready(self: Arc<Self>, _turn: &mut EventLoop, _event: &Event) {
        self.io_ready();
    }

    fn on_timer(self: Arc<Self>, turn: &mut EventLoop, _key: u64) {
        if !self.registration.is_ended() {
            turn.register_set(&self);
        }
    }
}

/// A registered source, and the number of earlier uses of its place. The number tells events of an
/// earlier source apart from events of this one.
struct SourceEntry {
    generation: u32,
    source: Option<Arc<dyn EventSource>>,
}

/// The private part of an I/O thread, which its sources get while they run on the thread.
pub(crate) struct EventLoop {
    driver: Arc<Driver>,
    sources: Vec<SourceEntry>,
    vacant: Vec<u32>,
    /// Work that the sweep has still to write.
    unswept: Vec<Swept>,
    /// Connections that this thread releases at the end of its turn, all behind one barrier.
    released: Vec<Arc<Connection>>,
    /// Chores that this thread calls at a given time.
    visits: Vec<Due>,
    timers: Timers,
    timer_keys: u64,
    /// Streams without a socket whose final bytes are still unconfirmed. The thread waits for them
    /// before it exits.
    closing_streams: usize,
}

impl EventLoop {
    /// The thread's shared part.
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Registers a descriptor for a source.
    pub(crate) fn register(
        &mut self,
        source: Arc<dyn EventSource>,
        fd: BorrowedFd<'_>,
        interest: Interest,
        mode: Mode,
    ) -> std::io::Result<Token> {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.sources.push(SourceEntry { generation: 0, source: None });
            self.sources.len() as u32 - 1
        });
        let place = &mut self.sources[index as usize];
        let token = Token(u64::from(place.generation) << 32 | u64::from(index));
        match self.driver.reactor.add(fd, token, interest, mode) {
            Ok(()) => {
                place.source = Some(source);
                Ok(token)
            }
            Err(error) => {
                self.vacant.push(index);
                Err(error)
            }
        }
    }

    /// Registers a socket's read set. If the system has no more watches now, retries later.
    fn register_set(&mut self, set: &Arc<ReadSet>) {
        match self.register(set.clone(), set.as_fd(), Interest::READ, Mode::OneShot) {
            Ok(token) => {
                // It is armed: a handover before this line had no token and could not arm it.
                set.registration.set_name(token.0);
            }
            Err(_) => {
                self.set_timer(EXHAUSTED, set);
            }
        }
    }

    /// Changes the interest of a registration.
    pub(crate) fn modify(&self, token: Token, fd: BorrowedFd<'_>, interest: Interest, mode: Mode) {
        let _ = self.driver.reactor.modify(fd, token, interest, mode);
    }

    /// Removes the descriptor of a registration from the reactor until there is an event to report
    /// (`Driver::want_write`). The registration stays valid. A descriptor in the reactor adds a
    /// small cost to each read and write of its stream.
    pub(crate) fn mute(&self, fd: BorrowedFd<'_>) {
        self.driver.deregister(fd);
    }

    /// Ends a registration.
    pub(crate) fn unregister(&mut self, token: Token, fd: BorrowedFd<'_>) {
        if self.forget(token) {
            let _ = self.driver.reactor.remove(fd);
        }
    }

    /// Frees the place of a registration whose descriptor is already out of the reactor. Returns
    /// false if there is no such registration.
    pub(crate) fn forget(&mut self, token: Token) -> bool {
        let (index, generation) = (token.0 as u32, (token.0 >> 32) as u32);
        let place =
            self.sources.get_mut(index as usize).filter(|p| p.generation == generation && p.source.is_some());
        if let Some(place) = place {
            place.source = None;
            // The highest generation must never occur in a token of a source: the driver's own
            // tokens are at the end of the number range.
            place.generation = (generation + 1) & 0x7fff_ffff;
            self.vacant.push(index);
            return true;
        }
        false
    }

    /// Releases `connection`: from now on only its owner flushes its queue. The owner checks the
    /// clock with its next message.
    pub(crate) fn release_to_owner(&mut self, connection: Arc<Connection>) {
        connection.give_hint();
        self.released.push(connection);
    }

    /// Checks the released connections once more. A barrier takes longer than much of a handshake,
    /// so all connections that were released in one turn share one barrier.
    fn recheck_released(&mut self) {
        if self.released.is_empty() {
            return;
        }
        barrier_heavy();
        for connection in self.released.drain(..) {
            // From now on only the owner handles the queue. Messages that it published before it
            // could see the hint are written here.
            if connection.has_pending() {
                connection.pump_writable();
            }
        }
    }

    /// Calls `source.on_timer` after this time. Returns the timer's key.
    pub(crate) fn set_timer<S: EventSource + 'static>(&mut self, delay: Duration, source: &Arc<S>) -> u64 {
        let weak: Weak<S> = Arc::downgrade(source);
        self.timer_keys += 1;
        let key = self.timer_keys;
        // A delay over some 30 years is treated as "never".
        let at = Instant::now() + delay.min(Duration::from_secs(1 << 30));
        self.timers.push(Timer { at, key, source: weak });
        key
    }

    fn run(&mut self) {
        let mut events = Vec::new();
        let mut sweeps = false;
        while !self.driver.stopping.load(Relaxed)
            || self.driver.has_tasks.load(Relaxed)
            || self.closing_streams > 0
        {
            self.catch_panic(|turn| turn.run_once(&mut events, &mut sweeps));
        }
    }

    /// Runs one turn of the loop: waits for events, then handles them, the expired timers and the
    /// posted tasks.
    fn run_once(&mut self, events: &mut Vec<Event>, sweeps: &mut bool) {
        let visits = self.visits.iter().map(|&(at, _)| at);
        let next = self.timers.next().into_iter().chain(visits).min();
        let timeout = match next {
            _ if *sweeps => Some(Duration::ZERO),
            Some(at) => Some(at.saturating_duration_since(Instant::now())),
            None => None,
        };
        if self.driver.reactor.wait(events, timeout).is_err() {
            // Only a broken reactor gets here. Sleep, so that the loop does not burn the core.
            tautline_io::thread::sleep(Duration::from_millis(10));
        }
        for event in &*events {
            match event.token {
                WAKE | VISITS | RESIDUAL | TICK => {
                    self.catch_panic(|turn| turn.driver.clone().expired(event.token));
                }
                token => self.dispatch(token, event),
            }
            wakes::run();
        }
        // Each step is its own attempt: a panic in one step must not delay the next step until
        // another event.
        let driver = self.driver.clone();
        self.catch_panic(|_| driver.residual.run_if_hurried());
        self.catch_panic(|turn| driver.visits.run(&mut turn.visits));
        self.run_tasks();
        self.run_timers();
        self.catch_panic(EventLoop::recheck_released);
        self.catch_panic(|turn| *sweeps = sweep::run(&driver.sweep, &mut turn.unswept));
        wakes::run();
    }

    fn dispatch(&mut self, token: Token, event: &Event) {
        let (index, generation) = (token.0 as u32, (token.0 >> 32) as u32);
        let source = self.sources.get(index as usize).filter(|place| place.generation == generation);
        if let Some(source) = source.and_then(|place| place.source.clone()) {
            self.call(&source, |source, turn| source.on_ready(turn, event));
        }
    }

    fn run_tasks(&mut self) {
        // Tasks that these tasks post run after the next poll of the reactor.
        if self.driver.has_tasks.swap(false, AcqRel) {
            let tasks = std::mem::take(&mut *lock(&self.driver.tasks));
            for task in tasks {
                self.catch_panic(task);
            }
        }
    }

    fn run_timers(&mut self) {
        if self.timers.next().is_none() {
            return;
        }
        self.timers.clean_up();
        let now = Instant::now();
        while let Some(timer) = self.timers.pop_due(now) {
            if let Some(source) = timer.source.upgrade() {
                self.call(&source, |source, turn| source.on_timer(turn, timer.key));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    struct Told(mpsc::Sender<()>);

    impl EventSource for Told {
        fn on_ready(self: Arc<Self>, _turn: &mut EventLoop, _event: &Event) {
            self.0.send(()).unwrap();
        }

        fn on_timer(self: Arc<Self>, _turn: &mut EventLoop, _key: u64) {}
    }

    /// The reactor refuses a stream if the system has no more watches. The stream then frees
    /// `NOWHERE`, which must not free the place of the first source.
    #[test]
    fn failed_registration_frees_its_entry() {
        let (driver, thread) = Driver::start(ThreadOptions::default()).unwrap();
        let (sender, told) = mpsc::channel();
        let wake = Arc::new(WakeFd::new().unwrap());
        let watched = wake.clone();
        driver.post(Box::new(move |turn| {
            let first = Arc::new(Told(sender));
            turn.register(first, watched.as_fd(), Interest::READ, Mode::OneShot).unwrap();
            assert!(!turn.forget(NOWHERE));
            watched.wake();
        }));
        told.recv().unwrap();
        driver.stop();
        thread.join();
    }
}
