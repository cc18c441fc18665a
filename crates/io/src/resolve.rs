//! Resolves host names to addresses. [`addresses`] asks the system directly. A [`Resolver`] works
//! off the caller's path: its one background thread resolves one name after the other and calls
//! back.
//!
//! The thread starts with the first request. It ends when no request has come for a while or when
//! the resolver is dropped. A request that the system is working on cannot be cancelled, and may
//! take long. Therefore a request keeps its *asker*, the object that waits for the answer, alive
//! only while the callback runs. If the asker is gone, the answer is dropped, and its waiting
//! requests are never sent.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::{interfaces, thread};

mod lookup;

pub use lookup::{addresses, numeric_addresses};

/// Address families that the caller accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptedFamily {
    /// IPv4 only.
    V4,
    /// Both, in the system's order of preference (RFC 6724), which puts unreachable addresses last.
    Any,
    /// IPv6 only.
    V6,
}

impl AcceptedFamily {
    /// True if the caller accepts `address`.
    pub fn admits(self, address: &IpAddr) -> bool {
        match self {
            AcceptedFamily::V4 => address.is_ipv4(),
            AcceptedFamily::Any => true,
            AcceptedFamily::V6 => address.is_ipv6(),
        }
    }
}

/// The addresses of a name, at least one, or the error.
pub type LookupResult = io::Result<Vec<SocketAddr>>;

/// Resolves host names on a background thread.
#[derive(Debug)]
pub struct Resolver {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    idle: Duration,
    state: Mutex<State>,
    /// Notified when a request is added or the resolver is dropped.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: VecDeque<LookupRequest>,
    /// True if a thread takes the requests. The thread clears this under the lock, so that no
    /// request is left without a thread.
    running: bool,
    dropped: bool,
}

impl State {
    /// Adds a request. If the list must allocate memory for it, first removes the requests whose
    /// asker is gone, and returns them.
    fn add(&mut self, request: LookupRequest) -> VecDeque<LookupRequest> {
        let mut unwanted = VecDeque::new();
        if self.requests.len() == self.requests.capacity() {
            let wanted;
            (wanted, unwanted) = std::mem::take(&mut self.requests)
                .into_iter()
                .partition(|request| request.asker.is_waiting());
            self.requests = wanted;
        }
        self.requests.push_back(request);
        unwanted
    }
}

struct LookupRequest {
    host: String,
    port: u16,
    family: AcceptedFamily,
    asker: Box<dyn Asker>,
}

/// Receiver of an answer.
trait Asker: Send {
    /// True if the asker still waits.
    fn is_waiting(&self) -> bool;
    /// Delivers the answer.
    fn answer(self: Box<Self>, outcome: LookupResult);
}

/// Calls `callback` with the asker and the answer, unless the asker was dropped before.
struct WeakCallback<T, F> {
    asker: Weak<T>,
    callback: F,
}

impl<T: Send + Sync, F: FnOnce(Arc<T>, LookupResult) + Send> Asker for WeakCallback<T, F> {
    fn is_waiting(&self) -> bool {
        self.asker.strong_count() > 0
    }

    fn answer(self: Box<Self>, outcome: LookupResult) {
        if let Some(asker) = self.asker.upgrade() {
            (self.callback)(asker, outcome);
        }
    }
}

impl Resolver {
    /// Creates a resolver. Its thread starts later.
    pub fn new() -> Self {
        Resolver::with_name("resolver")
    }

    /// Creates a resolver whose thread has this name. The thread starts later.
    pub fn with_name(name: &str) -> Self {
        Resolver::with_idle_time(name, IDLE)
    }

    fn with_idle_time(name: &str, idle: Duration) -> Self {
        let state = Mutex::default();
        let shared = Shared { name: name.to_owned(), idle, state, changed: Condvar::new() };
        Resolver { shared: Arc::new(shared) }
    }

    /// Asks for the addresses of `host`, and returns at once. The thread calls `callback`
    /// with the asker, and holds the asker only during that call. If the asker is gone by then,
    /// `callback` is never called.
    ///
    /// # Errors
    /// Fails if no thread can be started. `callback` is not called then.
    pub fn resolve<T: Send + Sync + 'static>(
        &self,
        host: String,
        port: u16,
        family: AcceptedFamily,
        asker: &Arc<T>,
        callback: impl FnOnce(Arc<T>, LookupResult) + Send + 'static,
    ) -> io::Result<()> {
        let asker = Box::new(WeakCallback { asker: Arc::downgrade(asker), callback });
        let request = LookupRequest { host, port, family, asker };
        let mut state = self.shared.state();
        if !state.running {
            let shared = self.shared.clone();
            thread::start(&self.shared.name, STACK, move || shared.work())?;
            state.running = true;
        }
        let unwanted = state.add(request);
        self.shared.changed.notify_one();
        drop(state);
        // Dropping a request runs the destructors of the values that its callback owns. These may
        // use this resolver, so the requests are dropped outside the lock.
        drop(unwanted);
        Ok(())
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Resolver::new()
    }
}

impl Drop for Resolver {
    /// Does not wait for the thread, which a system call may block for long.
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.dropped = true;
        let unanswered = std::mem::take(&mut state.requests);
        drop(state);
        self.shared.changed.notify_one();
        // The destructors of the callbacks' values may take locks, so the requests are dropped
        // outside this lock.
        drop(unanswered);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let _own = thread::OwnThread::new();
        while let Some(request) = self.next() {
            if request.asker.is_waiting() {
                let outcome = addresses(&request.host, request.port, request.family);
                request.asker.answer(outcome);
            }
        }
    }

    /// Returns the next request, or `None` if the thread must end.
    fn next(&self) -> Option<LookupRequest> {
        let state = self.state();
        let nothing_to_do = |state: &mut State| state.requests.is_empty() && !state.dropped;
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, self.idle, nothing_to_do)
            .unwrap_or_else(PoisonError::into_inner);
        let request = state.requests.pop_front();
        state.running = request.is_some();
        request
    }
}

/// Orders addresses as they are best tried (RFC 8305, section 4): alternates between the families,
/// starting with the family of the first address. Each family keeps its order.
pub fn interleave_families(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut these, mut others): (VecDeque<_>, VecDeque<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first);
    let mut ordered = Vec::with_capacity(these.len() + others.len());
    while let Some(address) = these.pop_front() {
        ordered.push(address);
        std::mem::swap(&mut these, &mut others);
        if these.is_empty() {
            std::mem::swap(&mut these, &mut others);
        }
    }
    ordered
}

/// Parses a literal address: dotted IPv4, or IPv6 with or without brackets and with or without a
/// scope (`%eth0`, `%2`), which link-local addresses need. Returns `None` for any other text.
pub fn parse_literal(host: &str, port: u16) -> Option<SocketAddr> {
    if let Ok(ip) = host.parse::<Ipv4Addr>() {
        return Some(SocketAddr::new(ip.into(), port));
    }
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None => host,
    };
    let (ip, scope) = match host.split_once('%') {
        Some((ip, scope)) => (ip, parse_scope(scope)?),
        None => (host, 0),
    };
    let ip = ip.parse::<Ipv6Addr>().ok()?;
    Some(SocketAddrV6::new(ip, port, 0, scope).into())
}

/// Returns the scope of an IPv6 address as the number of an interface. `scope` is the name or the
/// number of that interface. Never returns 0, which means no scope.
pub fn parse_scope(scope: &str) -> Option<u32> {
    interfaces::scope_id(scope).or_else(|| scope.parse().ok().filter(|number| *number != 0))
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("requests", &self.requests.len())
            .field("running", &self.running)
            .field("dropped", &self.dropped)
            .finish()
    }
}

/// Time that the thread waits for another request.
const IDLE: Duration = Duration::from_secs(5);

/// Stack size. Sufficient for the C library's resolver with all its plug-ins.
const STACK: usize = 512 * 1024;

#[cfg(test)]
mod tests;
