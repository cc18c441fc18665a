//! The context: I/O threads, limits, inproc names, and the end of all sockets (zmq_ctx_new(3) and its like).

mod names;
mod settings;

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::thread::JoinHandle;

use crate::conn::reader::ReadSet;
use crate::conn::{Kind, News, PeerInfo, SocketInbox, Waker};
use crate::driver::{Driver, Site};
use crate::error::Error;
use crate::monitor::Tap;
use crate::options::Options;
use crate::pattern;
use crate::queue::Inbox;
use crate::socket::Socket;
use crate::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use crate::sync::{Arc, Mutex, lock};
use crate::transport::inproc::Offer;
use names::Names;
use settings::Settings;
use std::io::ErrorKind;
use tautline_io::poll::{self, PollFd};
use tautline_io::wake::WakeFd;
use tautline_io::{barrier, clock, thread};
use tautline_proto::SocketType;

/// A ZeroMQ context. Clones are the same context.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    process: u32,
    settings: Mutex<Settings>,
    state: Mutex<State>,
    names: Mutex<Names>,
    /// Open sockets, and closed ones that linger.
    tickets: Arc<Tickets>,
    /// Somebody is bound to [`ZAP_HANDLER`].
    zap_handler: Arc<AtomicBool>,
    next_id: AtomicU64,
}

/// The inproc name at which a ZAP handler is asked (RFC 27).
const ZAP_HANDLER: &str = "zeromq.zap.01";

#[derive(Default)]
struct State {
    drivers: Option<Vec<(Arc<Driver>, Option<JoinHandle<()>>)>>,
    inboxes: HashMap<u64, Arc<SocketInbox>>,
    terminating: bool,
}

/// Counts what must be gone before a context is.
pub(crate) struct Tickets {
    count: AtomicUsize,
    /// Woken when the count falls to 0; there is none if the process was out of descriptors.
    gone: Option<WakeFd>,
}

/// One of what [`Tickets`] counts.
pub(crate) struct Ticket(Arc<Tickets>);

impl Ticket {
    fn new(tickets: &Arc<Tickets>) -> Self {
        tickets.count.fetch_add(1, SeqCst);
        Ticket(tickets.clone())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, SeqCst) == 1 {
            if let Some(gone) = &self.0.gone {
                gone.wake();
            }
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
    /// A new context. Its threads start with the first socket.
    pub fn new() -> Context {
        Context(Arc::new(Inner {
            process: thread::process_id(),
            settings: Mutex::default(),
            state: Mutex::default(),
            names: Mutex::default(),
            tickets: Arc::new(Tickets { count: AtomicUsize::new(0), gone: WakeFd::new().ok() }),
            zap_handler: Arc::default(),
            next_id: AtomicU64::new(1),
        }))
    }

    /// Sets a context option, zmq_ctx_set(3).
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value out of range.
    pub fn set(&self, option: i32, value: i32) -> Result<(), Error> {
        lock(&self.0.settings).set(option, value)
    }

    /// Reads a context option, zmq_ctx_get(3).
    ///
    /// # Errors
    /// [`Error::Invalid`] for an option that is unknown or cannot be read.
    pub fn get(&self, option: i32) -> Result<i32, Error> {
        lock(&self.0.settings).get(option)
    }

    /// Makes a socket, zmq_socket(3).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a type that this build does not have, [`Error::TooManyFiles`] at ZMQ_MAX_SOCKETS or without
    /// descriptors, [`Error::Terminated`].
    pub fn socket(&self, socket_type: SocketType) -> Result<Socket, Error> {
        let entry = pattern::entry(socket_type).ok_or(Error::Invalid)?;
        let (defaults, max_sockets) = {
            let settings = lock(&self.0.settings);
            (settings.defaults(), settings.max_sockets())
        };
        let inbox = Arc::new(Inbox::new(Waker(WakeFd::new()?)));
        let id = self.0.next_id.fetch_add(1, Relaxed);
        let driver = {
            let mut state = lock(&self.0.state);
            if state.terminating {
                return Err(Error::Terminated);
            }
            if state.inboxes.len() >= max_sockets {
                return Err(Error::TooManyFiles);
            }
            let driver = self.driver(&mut state)?;
            state.inboxes.insert(id, inbox.clone());
            driver
        };
        let ticket = Ticket::new(&self.0.tickets);
        let options = Options::new(socket_type, &defaults);
        let tap = Arc::new(Tap::default());
        let kind = Kind {
            socket_type,
            takes_subscriptions: entry.takes_subscriptions,
            raw: entry.raw,
            forgets_on_reconnect: entry.forgets_on_reconnect,
        };
        let site = match driver {
            None => None,
            Some(driver) => {
                let set = match ReadSet::new(inbox.clone(), driver.clone()) {
                    Ok(set) => Arc::new(set),
                    Err(error) => {
                        self.forget(id);
                        return Err(error.into());
                    }
                };
                driver.watch_set(set.clone());
                let lingering = Box::new(Ticket::new(&self.0.tickets));
                let zap_handler = self.0.zap_handler.clone();
                Some(Arc::new(Site::new(
                    kind,
                    inbox.clone(),
                    set,
                    driver,
                    tap.clone(),
                    zap_handler,
                    lingering,
                )))
            }
        };
        Ok(Socket::new(self.clone(), socket_type, (entry.create)(), options, inbox, site, tap, id, ticket))
    }

    /// The least loaded I/O thread; starts them all with the first socket. `None` with ZMQ_IO_THREADS 0.
    fn driver(&self, state: &mut State) -> Result<Option<Arc<Driver>>, Error> {
        if state.drivers.is_none() {
            barrier::prepare();
            clock::calibrate();
            let settings = lock(&self.0.settings);
            let mut drivers = Vec::new();
            for index in 0..settings.io_threads() {
                let (driver, thread) = Driver::start(settings.thread(index))?;
                drivers.push((driver, Some(thread)));
            }
            state.drivers = Some(drivers);
        }
        let drivers = state.drivers.iter().flatten();
        let driver =
            drivers.map(|(driver, _)| driver).min_by_key(|driver| driver.load.load(Relaxed)).cloned();
        if let Some(driver) = &driver {
            driver.load.fetch_add(1, Relaxed);
        }
        Ok(driver)
    }

    /// A socket was closed.
    pub(crate) fn forget(&self, id: u64) {
        lock(&self.0.state).inboxes.remove(&id);
    }

    /// Whether `process` is not the one that made this context: a forked child.
    pub(crate) fn is_foreign(&self, process: u32) -> bool {
        self.0.process != process
    }

    /// Makes every blocked and every further call on the context's sockets fail with [`Error::Terminated`], zmq_ctx_shutdown(3).
    ///
    /// # Errors
    /// None now.
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
        // Dropped outside the lock: their other sides are told.
        let pending = lock(&self.0.names).take_pending();
        drop(pending);
        Ok(())
    }

    /// Shuts down, waits until all sockets are closed and everything that lingers is sent or timed out, and ends the I/O threads,
    /// zmq_ctx_term(3).
    ///
    /// # Errors
    /// [`Error::Interrupted`] by a signal: call again.
    pub fn terminate(&self) -> Result<(), Error> {
        if self.is_foreign(thread::process_id()) {
            return Ok(());
        }
        self.shutdown()?;
        let tickets = &self.0.tickets;
        while tickets.count.load(SeqCst) > 0 {
            match &tickets.gone {
                Some(gone) => {
                    let mut fds = [PollFd::new(gone.as_fd().as_raw_fd(), PollFd::IN)];
                    match poll::poll(&mut fds, None) {
                        Err(error) if error.kind() == ErrorKind::Interrupted => {
                            return Err(Error::Interrupted);
                        }
                        _ => gone.drain(),
                    };
                }
                None => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        }
        let drivers = lock(&self.0.state).drivers.take();
        for (driver, thread) in drivers.into_iter().flatten() {
            driver.stop();
            if let Some(thread) = thread {
                let _ = thread.join();
            }
        }
        Ok(())
    }

    // ---- inproc

    pub(crate) fn bind_inproc(
        &self,
        name: &str,
        id: u64,
        inbox: &Arc<SocketInbox>,
        options: &Options,
        whoami: Arc<PeerInfo>,
    ) -> Result<Vec<Offer>, Error> {
        let mut names = lock(&self.0.names);
        let offers = names.bind(name, id, inbox, options, whoami)?;
        self.0.zap_handler.store(names.is_bound(ZAP_HANDLER), Release);
        Ok(offers)
    }

    pub(crate) fn connect_inproc(&self, name: &str, offer: Offer) -> Option<Arc<PeerInfo>> {
        lock(&self.0.names).connect(name, offer)
    }

    pub(crate) fn unbind_inproc(&self, endpoint: &str, id: u64) {
        let mut names = lock(&self.0.names);
        names.unbind(endpoint.strip_prefix("inproc://").unwrap_or(endpoint), id);
        self.0.zap_handler.store(names.is_bound(ZAP_HANDLER), Release);
    }
}
