//! The context: I/O threads, limits, inproc names, and the end of all sockets (zmq_ctx_new(3) and
//! related calls).

mod inproc_names;
mod services;
mod settings;

use std::collections::{HashMap, VecDeque};
use std::sync::{OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::conn::inproc::Offer;
use crate::conn::{News, PeerInfo, SocketInbox, Waker};
use crate::driver::{Driver, Site, Ticket, Tickets};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::host::{Admission, Allowed, Call, CallRequest, ContextReport, Denied, Host, Resolve};
use crate::idle;
use crate::options::{CommonOptions, ContextDefaults, Options};
use crate::transport::{self, ResolvedAddress};
use crate::zap::ZapRegistry;
use inproc_names::InprocNames;
pub(crate) use services::{bound_inproc_names, resolver};
use settings::Settings;
use std::io::ErrorKind;
use tautline_io::fd::AsRawFd;
use tautline_io::poll::{self, PollFd};
use tautline_io::thread::Started;
use tautline_io::{barrier, clock, fork, thread};
use tautline_proto::{SocketType, zap};
use tautline_queue::handoff::inbox::Inbox;
use tautline_queue::sync::atomic::AtomicU64;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Time limit for closed sockets to disappear after their linger time was cut. Normally a moment is
/// enough; the limit is long because a machine may be overloaded.
const CUT_LINGER_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of recently used option sets that are remembered for sharing between bound or connected
/// sockets.
const RECENT_OPTIONS: usize = 8;

/// A ZeroMQ context. Clones refer to the same context.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    process: u32,
    /// The process by [`fork::generation`], which needs no system call to compare.
    generation: u32,
    settings: Mutex<Settings>,
    state: Mutex<ContextState>,
    names: Arc<Mutex<InprocNames>>,
    /// Open sockets, and closed ones that linger.
    tickets: Arc<Tickets>,
    /// The place where the ZAP handler is registered.
    desk: Arc<ZapRegistry>,
    // Relaxed: number: it only needs to be unique.
    next_id: AtomicU64,
    /// Options and context defaults of the newest socket, as they were when it was created.
    newest_options: Mutex<Option<(ContextDefaults, Arc<Options>)>>,
    /// Option sets of recently bound or connected sockets, while a socket still uses them.
    recent_options: Mutex<VecDeque<(Weak<Options>, Weak<CommonOptions>)>>,
    /// The endpoint that was connected last.
    connected: Mutex<Arc<str>>,
    /// The report for tools, if the context is observed.
    report: OnceLock<Arc<dyn ContextReport>>,
    /// The policy of its sockets, if there is one.
    admission: OnceLock<Arc<dyn Admission>>,
    /// The resolver of names, if there is one.
    resolver: OnceLock<Arc<dyn Resolve>>,
    host: Host,
}

#[derive(Default)]
struct ContextState {
    drivers: Option<Vec<IoThread>>,
    inboxes: HashMap<u64, Arc<SocketInbox>>,
    /// Sites of closed sockets that may still have messages to send.
    lingering: Vec<Weak<Site>>,
    terminating: bool,
}

/// An I/O thread.
struct IoThread {
    driver: Arc<Driver>,
    thread: Started,
}

impl IoThread {
    /// Ends the thread when no object lives on it any longer.
    fn stop(self) {
        self.driver.stop();
        self.thread.join();
    }
}

/// Resources that a context gives to a new socket.
pub(crate) struct SocketResources {
    /// Number of the socket in the context; released by [`Context::remove_socket`].
    pub(crate) id: u64,
    /// Inbox of the socket.
    pub(crate) inbox: Arc<SocketInbox>,
    /// I/O thread of the socket. `None` with ZMQ_IO_THREADS 0.
    pub(crate) driver: Option<Arc<Driver>>,
    /// Defaults for sockets from the context's options.
    pub(crate) defaults: ContextDefaults,
    /// The place where the handler of the context's ZAP requests is registered.
    pub(crate) desk: Arc<ZapRegistry>,
    /// Held until the socket is closed.
    pub(crate) ticket: Ticket,
    /// Held until all lingering of the socket has ended.
    pub(crate) lingering: Ticket,
}

/// Fails with [`Error::Interrupted`] in a forked child of the process that created the context: the
/// child has no thread that could wake a call.
pub(crate) fn check_not_forked(context: &Context) -> Result<(), Error> {
    if context.0.generation == fork::generation() { Ok(()) } else { Err(refuse_forked(context)) }
}

#[cold]
fn refuse_forked(context: &Context) -> Error {
    if let Some(report) = context.report() {
        report.note_forked_call();
    }
    Error::Interrupted
}

/// The policy of the sockets of a context, if there is one.
pub(crate) fn admission(context: &Context) -> Option<&Arc<dyn Admission>> {
    context.0.admission.get()
}

/// Asks the policy about a call, if there is a policy. `at` is the resolved address of a host to
/// bind.
///
/// # Errors
/// Returns `Denied` if a rule refuses the call or asks for a wrap that cannot be applied, or if the
/// policy cannot be read.
pub(crate) fn check_policy(
    context: &Context,
    call: Call,
    endpoint: &str,
    parsed: &Endpoint,
    at: ResolvedAddress,
    options: &Options,
) -> Result<Option<Allowed>, Denied> {
    let Some(admission) = admission(context) else { return Ok(None) };
    let call = CallRequest::new(call, endpoint, parsed, at, options);
    Ok(Some(admission.clone().ask(&call)?.against(options)))
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(report) = self.report.get() {
            report.end();
        }
        // A forked child does not have these threads. Their handles may have the same numbers as
        // threads that the child has started since, which would be detached.
        if self.process != thread::process_id() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(state.drivers.take());
        }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Context {
    /// Creates a context without the services of a host. Its threads start with the first socket.
    /// The first context of the process reads TAUT_SPIN_US, TAUT_IPC_MEMORY and TAUT_IPC_LOANS from
    /// the environment, on the calling thread. The program may change the environment, so other
    /// threads must not read it.
    pub fn new() -> Context {
        Context::with(Host::default())
    }

    /// Creates a context that asks these services.
    pub fn with(host: Host) -> Context {
        tautline_timing::set_clock(clock::nanos_to_ticks);
        idle::spin_us();
        transport::read_environment();
        fork::start_counting();
        let is_observed = host.is_observed;
        let admission = host.admission.clone().map(OnceLock::from).unwrap_or_default();
        let resolver = host.resolve.clone().map(OnceLock::from).unwrap_or_default();
        let context = Context(Arc::new(Inner {
            process: thread::process_id(),
            generation: fork::generation(),
            settings: Mutex::default(),
            state: Mutex::default(),
            names: Arc::default(),
            tickets: Tickets::new(),
            desk: Arc::default(),
            next_id: AtomicU64::new(1),
            newest_options: Mutex::default(),
            recent_options: Mutex::default(),
            connected: Mutex::default(),
            report: OnceLock::new(),
            admission,
            resolver,
            host,
        }));
        if is_observed {
            // If observation fails, the program runs without it.
            let _ = context.observe();
        }
        context
    }

    /// Makes the context and its later sockets visible to tools that observe the process from
    /// outside (crate `tautline-observe`). The file for this is removed when the last observed
    /// context has ended. Has no effect if observation is already on. If the file cannot be
    /// written, the library reports that once on standard error, and tries again.
    ///
    /// # Errors
    /// A system error, if no thread can be started; [`Error::NotSupported`] on systems without it,
    /// and for a context without a host.
    pub fn observe(&self) -> Result<(), Error> {
        if self.report().is_some() {
            return Ok(());
        }
        let open = self.0.host.open_report.ok_or(Error::NotSupported)?;
        let (io_threads, max_sockets) = {
            let settings = lock(&self.0.settings);
            (settings.io_threads(), settings.max_sockets())
        };
        let report = open(io_threads, max_sockets).map_err(|error| match error.kind() {
            ErrorKind::Unsupported => Error::NotSupported,
            _ => error.into(),
        })?;
        if let Err(second) = self.0.report.set(report) {
            second.end();
        }
        Ok(())
    }

    /// The report for tools, if the context is observed.
    pub(crate) fn report(&self) -> Option<&Arc<dyn ContextReport>> {
        self.0.report.get()
    }

    /// Sets a context option, zmq_ctx_set(3).
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value out of range.
    pub fn set(&self, option: i32, value: i32) -> Result<(), Error> {
        match (option, value) {
            (settings::TAUTLINE_OBSERVE, 1) => return self.observe(),
            (settings::TAUTLINE_OBSERVE, 0) if self.report().is_none() => return Ok(()),
            _ => {}
        }
        lock(&self.0.settings).set(option, value)
    }

    /// Reads a context option, zmq_ctx_get(3).
    ///
    /// # Errors
    /// [`Error::Invalid`] for an option that is unknown or cannot be read.
    pub fn get(&self, option: i32) -> Result<i32, Error> {
        if option == settings::TAUTLINE_OBSERVE {
            return Ok(self.report().is_some().into());
        }
        lock(&self.0.settings).get(option)
    }

    /// Sets a context option from its bytes, zmq_ctx_set_ext(3).
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value of the wrong size or out of range.
    pub fn set_bytes(&self, option: i32, value: &[u8]) -> Result<(), Error> {
        if let (settings::TAUTLINE_OBSERVE, Ok(number)) = (option, value.try_into()) {
            return self.set(option, i32::from_ne_bytes(number));
        }
        if option == settings::TAUTLINE_POLICY {
            // The value may end with a NUL, as in C.
            let named = value.strip_suffix(&[0]).unwrap_or(value);
            return self.set_policy(std::str::from_utf8(named).map_err(|_| Error::Invalid)?);
        }
        if option == settings::TAUTLINE_NAMES && self.0.host.open_names.is_some() {
            let path = value.strip_suffix(&[0]).unwrap_or(value);
            return self.set_names(std::str::from_utf8(path).map_err(|_| Error::Invalid)?.as_ref());
        }
        lock(&self.0.settings).set_bytes(option, value)
    }

    /// Writes a context option to `out`, zmq_ctx_get_ext(3). Returns its number of bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an option that is unknown or cannot be read, or if `out` is too
    /// small.
    pub fn get_bytes(&self, option: i32, out: &mut [u8]) -> Result<usize, Error> {
        if option == settings::TAUTLINE_OBSERVE {
            let place = out.first_chunk_mut().ok_or(Error::Invalid)?;
            *place = self.get(option)?.to_ne_bytes();
            return Ok(place.len());
        }
        lock(&self.0.settings).get_bytes(option, out)
    }

    /// Reserves a place for one more socket.
    ///
    /// # Errors
    /// [`Error::TooManyFiles`] at ZMQ_MAX_SOCKETS, or for the first socket without descriptors for
    /// the I/O threads; [`Error::Terminated`].
    pub(crate) fn reserve_socket(&self) -> Result<SocketResources, Error> {
        let (defaults, max_sockets) = {
            let settings = lock(&self.0.settings);
            (settings.defaults(), settings.max_sockets())
        };
        let inbox = Arc::new(Inbox::new(Waker::new()));
        let id = self.0.next_id.fetch_add(1, Relaxed);
        let mut state = lock(&self.0.state);
        if state.terminating {
            return Err(Error::Terminated);
        }
        if state.inboxes.len() >= max_sockets {
            return Err(Error::TooManyFiles);
        }
        let driver = self.driver(&mut state)?;
        state.inboxes.insert(id, inbox.clone());
        let tickets = &self.0.tickets;
        Ok(SocketResources {
            id,
            inbox,
            driver,
            defaults,
            ticket: Ticket::new(tickets),
            desk: self.0.desk.clone(),
            lingering: Ticket::new(tickets),
        })
    }

    /// Returns the options of a new socket. Sockets of the same type share them until one sets an
    /// option.
    pub(crate) fn options(&self, socket_type: SocketType, defaults: ContextDefaults) -> Arc<Options> {
        let mut fresh = lock(&self.0.newest_options);
        if let Some((then, options)) = &*fresh
            && *then == defaults
            && options.socket_type == socket_type
        {
            return options.clone();
        }
        let options = Arc::new(Options::new(socket_type, &defaults));
        *fresh = Some((defaults, options.clone()));
        options
    }

    /// Lets sockets with equal options share them. The weak references keep the memory of freed
    /// options, but secrets are behind pointers, so their bytes are wiped even then.
    pub(crate) fn share_options(&self, options: &mut Arc<Options>) {
        if Arc::strong_count(options) > 1 {
            return;
        }
        let mut alike = lock(&self.0.recent_options);
        alike.retain(|(_, common)| common.strong_count() > 0);
        for (all, common) in &*alike {
            let Some(common) = common.upgrade().filter(|common| **common == *options.common) else {
                continue;
            };
            match all.upgrade().filter(|all| **all == **options) {
                Some(all) => *options = all,
                None => Arc::make_mut(options).common = common,
            }
            return;
        }
        alike.truncate(RECENT_OPTIONS - 1);
        alike.push_front((Arc::downgrade(options), Arc::downgrade(&options.common)));
    }

    /// Returns the text of an endpoint that a socket connects to. If thousands of sockets connect
    /// to the same endpoint in a row, they share the text.
    pub(crate) fn share_endpoint(&self, endpoint: &str) -> Arc<str> {
        let mut last = lock(&self.0.connected);
        if **last != *endpoint {
            *last = endpoint.into();
        }
        last.clone()
    }

    /// Returns the least loaded I/O thread. Starts all threads with the first socket. `None` with
    /// ZMQ_IO_THREADS 0.
    fn driver(&self, state: &mut ContextState) -> Result<Option<Arc<Driver>>, Error> {
        if state.drivers.is_none() {
            barrier::prepare();
            clock::calibrate();
            let settings = lock(&self.0.settings);
            let mut drivers = Vec::new();
            for index in 0..settings.io_threads() {
                match Driver::start(settings.thread(index)) {
                    Ok((driver, thread)) => drivers.push(IoThread { driver, thread }),
                    Err(error) => {
                        drop(settings);
                        // The next socket starts them again.
                        drivers.into_iter().for_each(IoThread::stop);
                        return Err(error);
                    }
                }
            }
            state.drivers = Some(drivers);
        }
        let drivers = state.drivers.iter().flatten();
        let driver =
            drivers.map(|running| &running.driver).min_by_key(|driver| driver.load.load(Relaxed)).cloned();
        if let Some(driver) = &driver {
            driver.load.fetch_add(1, Relaxed);
        }
        Ok(driver)
    }

    /// Removes a closed socket.
    pub(crate) fn remove_socket(&self, id: u64) {
        lock(&self.0.state).inboxes.remove(&id);
    }

    /// Remembers the site of a closed socket, which may linger.
    pub(crate) fn remember_lingering(&self, site: &Arc<Site>) {
        let all = &mut lock(&self.0.state).lingering;
        if all.len() == all.capacity() {
            all.retain(|site| site.strong_count() > 0);
        }
        all.push(Arc::downgrade(site));
    }

    /// Makes lingering sites drop their unsent messages. Returns true if no socket is open.
    fn cut_lingering(&self) -> bool {
        let (lingering, none_open) = {
            let mut state = lock(&self.0.state);
            (std::mem::take(&mut state.lingering), state.inboxes.is_empty())
        };
        lingering.iter().filter_map(Weak::upgrade).for_each(|site| site.drop_unsent());
        none_open
    }

    /// True if `process` is not the process that created this context, so it is a forked child.
    pub(crate) fn is_foreign(&self, process: u32) -> bool {
        self.0.process != process
    }

    /// Makes every blocked and every later call on the context's sockets fail with
    /// [`Error::Terminated`], zmq_ctx_shutdown(3).
    ///
    /// # Errors
    /// Does not fail at present.
    pub fn shutdown(&self) -> Result<(), Error> {
        if self.is_foreign(thread::process_id()) {
            return Ok(());
        }
        let inboxes: Vec<_> = {
            let mut state = lock(&self.0.state);
            state.terminating = true;
            state.inboxes.values().cloned().collect()
        };
        for inbox in inboxes {
            inbox.push(News::Terminated);
        }
        // Drop them without the lock, because this notifies their other sides.
        let pending = lock(&self.0.names).take_pending();
        drop(pending);
        Ok(())
    }

    /// Shuts down, waits until all sockets are closed and all lingering messages are sent or timed
    /// out, and ends the I/O threads, zmq_ctx_term(3).
    ///
    /// # Errors
    /// [`Error::Interrupted`] by a signal: call again.
    pub fn terminate(&self) -> Result<(), Error> {
        self.terminate_within(None)
    }

    /// Terminates the context as [`Context::terminate`] does, but waits for at most `patience`.
    /// Then closed sockets drop their unsent messages. If other sockets are still open, the context
    /// stays as after [`Context::shutdown`], and the call may be repeated.
    ///
    /// # Errors
    /// The errors of [`Context::terminate`], and [`Error::Again`] if messages were dropped or a
    /// socket is still open.
    pub fn terminate_within(&self, patience: Option<Duration>) -> Result<(), Error> {
        if self.is_foreign(thread::process_id()) {
            return Ok(());
        }
        self.shutdown()?;
        if let Some(report) = self.report() {
            report.mark_terminating();
        }
        let deadline = patience.and_then(|time| Instant::now().checked_add(time));
        let all_sent = self.wait_for_tickets(deadline)?;
        if !all_sent {
            // After the cut, sites disappear as soon as the I/O threads have run their tasks.
            let soon = Instant::now().checked_add(CUT_LINGER_TIMEOUT);
            if !self.cut_lingering() || !self.wait_for_tickets(soon)? {
                return Err(Error::Again);
            }
        }
        let drivers = lock(&self.0.state).drivers.take();
        drivers.into_iter().flatten().for_each(IoThread::stop);
        if let Some(report) = self.report() {
            report.end();
        }
        if all_sent { Ok(()) } else { Err(Error::Again) }
    }

    /// Waits until no socket is open or lingers. Returns false at `deadline`.
    fn wait_for_tickets(&self, deadline: Option<Instant>) -> Result<bool, Error> {
        let tickets = &self.0.tickets;
        while tickets.is_any_held() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            match &tickets.gone {
                Some(gone) => {
                    let mut fds = [PollFd::new(gone.as_fd().as_raw_fd(), PollFd::IN)];
                    match poll::poll(&mut fds, left) {
                        Err(error) if error.kind() == ErrorKind::Interrupted => {
                            return Err(Error::Interrupted);
                        }
                        _ => gone.drain(),
                    };
                }
                None => {
                    let pause = Duration::from_millis(10);
                    thread::sleep(left.map_or(pause, |left| left.min(pause)));
                }
            }
        }
        Ok(true)
    }

    // ---- inproc

    pub(crate) fn bind_inproc(
        &self,
        name: &str,
        id: u64,
        inbox: &Arc<SocketInbox>,
        options: &Options,
        whoami: Box<PeerInfo>,
    ) -> Result<Vec<Offer>, Error> {
        let mut names = lock(&self.0.names);
        let offers = names.bind(name, id, inbox, options, whoami)?;
        if name == zap::HANDLER {
            self.0.desk.open(options.socket_type, inbox, options.receive_hwm);
        }
        Ok(offers)
    }

    pub(crate) fn connect_inproc(&self, name: &str, offer: Offer) -> Option<Box<PeerInfo>> {
        let names: Weak<Mutex<InprocNames>> = Arc::downgrade(&self.0.names);
        lock(&self.0.names).connect(name, offer, names)
    }

    pub(crate) fn unbind_inproc(&self, endpoint: &str, id: u64) {
        let mut names = lock(&self.0.names);
        names.unbind(endpoint.strip_prefix("inproc://").unwrap_or(endpoint), id);
        if !names.is_bound(zap::HANDLER) {
            self.0.desk.shut();
        }
    }
}
