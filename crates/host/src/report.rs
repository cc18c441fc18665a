//! Observation by tools outside the process: one file of counters. Its layout and reader are crate
//! `tautline-observe`. Observation is off, unless the environment or the program asks for it.
//!
//! A separate thread reads, at intervals, the counters that the queues keep anyway (`PeerProbe`),
//! and writes the file. Owners and I/O threads report only rare changes, when they happen: sockets,
//! endpoints, peers, options, events. So observation adds no work per message.
//!
//! ```text
//!  Context ── ContextWatch ──┐
//!  Socket ─┬─ SocketWatch ◀──┴── Watch ── thread: look, write ──▶ file
//!  Tap ────┘   told by owners and I/O threads
//! ```
//!
//! A process has one [`Watch`] as long as it has an observed context. A forked child does not touch
//! the watch of its parent; a context that the child creates gets a new one. Lock order: the
//! process's watch, its contexts, a context's sockets, one socket. Below them are only the locks of
//! the monitors' endpoints and of a connection's observed state. No application code is called
//! under these locks: the program's route information is requested without a lock.

mod ended;
mod endpoint;
mod peer;
mod program;
mod sampler;
mod server;
mod socket;
mod tap;
mod topics;

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, OnceLock, PoisonError, Weak, mpsc};
use std::time::Duration;

use sampler::Sampler;
use server::Server;
use socket::SocketWatch;
use tap::Tap;
use tautline_config::options::Options;
use tautline_core::host::{ContextReport, SocketProbe, SocketReport};
use tautline_io::clock::unix_us;
use tautline_io::thread;
use tautline_observe::{Context, Event, Identity, Route};
use tautline_proto::SocketType;
use tautline_queue::sync::atomic::AtomicU64;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Maximum number of events that are kept.
const EVENTS: usize = 512;

/// The watch of the process, if it has an observed context.
static WATCH: Mutex<Option<Arc<Watch>>> = Mutex::new(None);

/// Returns true if the environment asks for observation (`TAUT_OBSERVE=1`). The first context reads
/// this variable and the program's name, because a program may change the environment later.
pub(crate) fn of_environment() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    program::given_name();
    *ASKED.get_or_init(|| tautline_io::env::var_os("TAUT_OBSERVE").is_some_and(|value| value == "1"))
}

/// State of the process that observers see.
struct Watch {
    identity: Identity,
    inner: Mutex<Inner>,
    /// Notified when the thread must check if it has to end.
    changed: Condvar,
    events: Mutex<Events>,
    taps: Mutex<Vec<Arc<Tap>>>,
    /// Endpoints on which monitors send events: the context, and the endpoint in it.
    monitors: Mutex<Vec<(u64, String)>>,
    /// Next number for a context or socket.
    // Relaxed: number: it only needs to be unique.
    next_id: AtomicU64,
}

#[derive(Default)]
struct Inner {
    contexts: Vec<Arc<ContextWatch>>,
    ending: bool,
    thread: Option<thread::Started>,
    /// The control socket, if there is one.
    server: Option<Server>,
}

/// The last events.
#[derive(Default)]
struct Events {
    kept: VecDeque<Event>,
    /// Total number of events.
    count: u64,
}

/// State of a context that observers see.
struct ContextWatch {
    watch: Arc<Watch>,
    id: u64,
    shown: Arc<Mutex<Context>>,
    sockets: Mutex<Vec<Weak<SocketWatch>>>,
}

/// Starts to report a context.
///
/// # Errors
/// A system error, if the thread cannot be started.
pub(crate) fn open(io_threads: usize, max_sockets: usize) -> io::Result<Arc<dyn ContextReport>> {
    let mut place = lock(&WATCH);
    let watch = match &*place {
        Some(watch) if watch.identity.pid == thread::process_id() => watch.clone(),
        _ => {
            let watch = Watch::start()?;
            // This is the parent's watch. Forget it, because it refers to threads that do not exist
            // here.
            std::mem::forget(place.replace(watch.clone()));
            watch
        }
    };
    let mut shown = Context::default();
    shown.id = watch.next_id();
    shown.since = unix_us();
    shown.io_threads = io_threads as u64;
    shown.max_sockets = max_sockets as u64;
    let (id, sockets) = (shown.id, Mutex::default());
    let context =
        Arc::new(ContextWatch { watch: watch.clone(), id, shown: Arc::new(Mutex::new(shown)), sockets });
    lock(&watch.inner).contexts.push(context.clone());
    Ok(context)
}

/// Adds information to a socket about the program's use of its messages: the names and counts that
/// `tell` returns. A thread of the library calls `tell` at each observation. A later call replaces
/// an earlier one. Has no effect if the socket is not observed.
pub fn show_route(socket: &tautline_core::Socket, tell: impl Fn() -> Route + Send + Sync + 'static) {
    let report = socket.report().map(|report| report as &dyn Any);
    if let Some(watch) = report.and_then(|report| report.downcast_ref::<SocketWatch>()) {
        watch.route(std::sync::Arc::new(tell));
    }
}

/// In a forked child: notes that a call of it was refused, because it used a socket of its parent.
/// Has no effect if the parent is not observed.
pub fn note_forked_call() {
    ended::note_forked_call();
}

impl ContextReport for ContextWatch {
    fn socket(
        &self,
        socket_type: SocketType,
        options: &Options,
        probe: SocketProbe,
    ) -> Arc<dyn SocketReport> {
        let mut shown = tautline_observe::Socket::default();
        shown.id = self.watch.next_id();
        shown.context = self.id;
        shown.type_code = socket_type.code() as u32;
        shown.type_name = socket_type.name().to_owned();
        shown.since = unix_us();
        let socket = Arc::new(SocketWatch::new(self.watch.clone(), self.shown.clone(), shown, probe));
        socket.set_options(options, 0);
        lock(&self.sockets).push(Arc::downgrade(&socket));
        if !socket.taps().is_empty() {
            socket.notify_taps_changed();
        }
        socket
    }

    fn mark_terminating(&self) {
        let mut shown = lock(&self.shown);
        if shown.terminating == 0 {
            shown.terminating = unix_us();
        }
    }

    fn note_forked_call(&self) {
        note_forked_call();
    }

    /// With the last context the file and the thread end.
    fn end(&self) {
        let watch = &self.watch;
        if watch.identity.pid != thread::process_id() {
            return;
        }
        // Hold the lock until the file is gone: a context that begins now creates it again.
        let mut place = lock(&WATCH);
        let (thread, server) = {
            let mut inner = lock(&watch.inner);
            inner.contexts.retain(|context| context.id != self.id);
            if !inner.contexts.is_empty() {
                return;
            }
            inner.ending = true;
            (inner.thread.take(), inner.server.take())
        };
        watch.changed.notify_all();
        if let Some(server) = server {
            server.end();
        }
        if let Some(thread) = thread {
            // The thread itself may run this, if it drops the last reference to a connection.
            if !thread.is_current() {
                thread.join();
            }
            *place = None;
        }
    }
}

impl Watch {
    /// Starts the thread that creates and writes the file. When this returns, the file exists, or
    /// the thread has reported that it cannot be written.
    fn start() -> io::Result<Arc<Self>> {
        let identity = Identity::own()?;
        let watch = Arc::new(Watch {
            identity,
            inner: Mutex::default(),
            changed: Condvar::new(),
            events: Mutex::default(),
            taps: Mutex::default(),
            monitors: Mutex::default(),
            next_id: AtomicU64::new(1),
        });
        let watched = watch.clone();
        let (begun, begins) = mpsc::channel();
        let thread = thread::start("ZMQbg/watch", thread::STACK, move || {
            // Block signals: a write beyond RLIMIT_FSIZE must return an error, not raise SIGXFSZ.
            let _own = thread::OwnThread::new();
            let mut looks = Sampler::new(&watched);
            looks.begin(&watched);
            let _ = begun.send(());
            loop {
                let pause = looks.sample(&watched);
                if watched.wait(pause) {
                    break;
                }
            }
        })?;
        // Wait for the answer, because a starting thread takes the dynamic loader's lock, which the
        // thread that ends it may hold. Without an answer the thread has panicked.
        begins.recv().map_err(|_| io::ErrorKind::Other)?;
        lock(&watch.inner).thread = Some(thread);
        Ok(watch)
    }

    /// Keeps the control socket until the end of the observation.
    fn serve(&self, server: Option<Server>) {
        let mut inner = lock(&self.inner);
        if inner.ending {
            drop(inner);
            server.into_iter().for_each(Server::end);
        } else {
            inner.server = server;
        }
    }

    /// Waits for the next look. Returns true if the thread has to end.
    fn wait(&self, pause: Duration) -> bool {
        let inner = lock(&self.inner);
        let waited = self.changed.wait_timeout_while(inner, pause, |inner| !inner.ending);
        waited.unwrap_or_else(PoisonError::into_inner).0.ending
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// All current taps.
    fn taps(&self) -> Vec<Arc<Tap>> {
        lock(&self.taps).clone()
    }

    /// Adds a tap for a tool. The owners of the sockets learn of it in their next call.
    fn begin_tap(&self, tap: &Arc<Tap>) {
        lock(&self.taps).push(tap.clone());
        self.notify_taps_changed(tap);
    }

    /// Removes a tap whose tool has gone.
    fn end_tap(&self, tap: &Arc<Tap>) {
        lock(&self.taps).retain(|other| !Arc::ptr_eq(other, tap));
        self.notify_taps_changed(tap);
    }

    fn notify_taps_changed(&self, tap: &Tap) {
        self.sockets()
            .iter()
            .filter(|socket| socket.is_of(tap))
            .for_each(|socket| socket.notify_taps_changed());
    }

    /// All observed sockets.
    fn sockets(&self) -> Vec<Arc<SocketWatch>> {
        let of = |context: Arc<ContextWatch>| -> Vec<_> {
            lock(&context.sockets).iter().filter_map(Weak::upgrade).collect()
        };
        self.contexts().into_iter().flat_map(of).collect()
    }

    fn contexts(&self) -> Vec<Arc<ContextWatch>> {
        lock(&self.inner).contexts.clone()
    }

    /// Notes an event.
    fn note(&self, event: Event) {
        let mut events = lock(&self.events);
        events.count += 1;
        if events.kept.len() == EVENTS {
            events.kept.pop_front();
        }
        events.kept.push_back(event);
    }
}
