//! The directory of names (`name://orders`): asks the resolvers of a names file (crate
//! `tautline-names`), repeatedly, for the sockets that have connected to a name.
//!
//! ```text
//!  Context ── Directory ── Names, read again when its file changes
//!                 │
//!                 ├─ a thread for each resolver, while there are names to ask for
//!                 └─ Known, for each name: what each resolver has said last, its followers
//! ```
//!
//! If a resolver fails, its last answer stays valid until it gives a new one. The lock of a
//! directory is a leaf.

use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::reload::ReloadedValue;
use tautline_core::host::{NameEntry, NameFollower, NameRegistration, Resolve, may_be_named};
use tautline_core::{Error, is_memory_short};
use tautline_io::stderr_report::{report_and_wait, report_in_background};
use tautline_io::thread::{self, OwnThread, process_id};
use tautline_names::{NamesConfig, RESOLVERS, Registration, is_name};
use tautline_queue::sync::{Arc, Mutex, lock};

/// Maximum time between two checks if the names file has changed, and if a name still has a
/// follower.
const LOOK: Duration = Duration::from_millis(250);
/// Time until a failed resolver is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// The directory of names.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    state: Mutex<DirectoryState>,
    /// Notified when there are names to ask for, or when the last follower has gone.
    changed: Condvar,
}

#[derive(Debug)]
struct DirectoryState {
    /// The fault if the file could not be read when the context was created: there are no names.
    names: Result<ReloadedValue<Arc<NamesConfig>>, String>,
    known: HashMap<String, NameState>,
    /// The resolvers that have a thread.
    running: [bool; RESOLVERS.len()],
    /// The sockets of this process that have bound a name, by the ids of their entries.
    bound: HashMap<String, u64>,
    /// The process that owns these threads. A forked child does not have them.
    process: u32,
}

/// State of one name.
#[derive(Default)]
struct NameState {
    followers: Vec<Weak<dyn NameFollower>>,
    answers: [ResolverAnswer; RESOLVERS.len()],
    /// All answers merged, as the followers know them.
    entries: Vec<NameEntry>,
    version: u64,
}

impl std::fmt::Debug for NameState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").field("entries", &self.entries).finish_non_exhaustive()
    }
}

/// The last answer of one resolver about a name.
#[derive(Default)]
struct ResolverAnswer {
    entries: Vec<NameEntry>,
    /// Endpoints of the answer that were ignored.
    refused: Vec<String>,
    /// Time of the next request. `None` means now.
    due: Option<Instant>,
    /// Reason of the last failure.
    fault: Option<String>,
}

impl NameState {
    /// The current followers.
    fn followers(&mut self) -> Vec<Arc<dyn NameFollower>> {
        self.followers.retain(|follower| follower.strong_count() > 0);
        self.followers.iter().filter_map(Weak::upgrade).collect()
    }

    /// Merges the answers of the resolvers. Returns true if the result has changed.
    fn merge(&mut self) -> bool {
        let mut entries: Vec<NameEntry> = Vec::new();
        for entry in self.answers.iter().flat_map(|said| &said.entries) {
            if !entries.contains(entry) {
                entries.push(entry.clone());
            }
        }
        let differs = entries != self.entries;
        if differs {
            self.entries = entries;
            self.version += 1;
        }
        differs
    }
}

/// Returns the directory that the environment names (`TAUT_NAMES`: the path of a names file), if it
/// names one. Looked up once, because a program may change the environment later.
pub(crate) fn of_environment() -> Option<Arc<dyn Resolve>> {
    static DIRECTORY: OnceLock<Option<Arc<Directory>>> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| {
        let named = tautline_io::env::var_os("TAUT_NAMES").filter(|named| !named.is_empty())?;
        let path = PathBuf::from(named);
        Some(Arc::new(Directory::open(&path).unwrap_or_else(|fault| {
            report_and_wait(&fault);
            // Names are supported, but every lookup fails.
            Directory::new(path, Err(fault))
        })))
    });
    directory.clone().map(|directory| directory as Arc<dyn Resolve>)
}

/// Opens a directory by the path of a names file. Reports a fault of the file on standard error.
pub(crate) fn open(path: &Path) -> Result<Arc<dyn Resolve>, Error> {
    match Directory::open(path) {
        Ok(directory) => Ok(Arc::new(directory)),
        Err(fault) => {
            report_and_wait(&fault);
            Err(Error::Invalid)
        }
    }
}

impl Resolve for Directory {
    fn check(&self, name: &str) -> Result<(), Error> {
        if is_name(name) && lock(&self.state).names.is_ok() { Ok(()) } else { Err(Error::Invalid) }
    }

    fn fault(&self, name: &str) -> Option<String> {
        let fault = lock(&self.state).names.as_ref().err().cloned();
        fault.filter(|_| is_name(name))
    }

    fn register(self: Arc<Self>, name: &str, socket: u64) -> Result<Box<dyn NameRegistration>, Error> {
        let names = self.names().ok_or(Error::Invalid)?;
        let folder = names.folder.as_ref().ok_or(Error::NotSupported)?;
        let entry = Registration::prepare(folder, name).map_err(|error| {
            // The folder is not safe to use. Report the reason, because the errno alone does not
            // tell what to do.
            if error.kind() == std::io::ErrorKind::PermissionDenied && error.get_ref().is_some() {
                report_and_wait(&format!("names {}: {error}", self.path.display()));
            }
            Error::from(error)
        })?;
        lock(&self.state).bound.insert(entry.id().to_owned(), socket);
        Ok(Box::new(RegisteredSocket { tcp: folder.tcp.clone(), directory: self, entry }))
    }

    fn socket_of(&self, id: &str) -> Option<u64> {
        lock(&self.state).bound.get(id).copied()
    }

    fn follow(self: Arc<Self>, name: &str, follower: &Arc<dyn NameFollower>) -> Result<(), Error> {
        let mut idle = Vec::new();
        let (version, entries) = {
            let mut state = lock(&self.state);
            let DirectoryState { known, running, process, .. } = &mut *state;
            if *process != process_id() {
                (*process, *running) = (process_id(), Default::default());
                known.clear();
            }
            let known = known.entry(name.to_owned()).or_default();
            known.followers.retain(|follower| follower.strong_count() > 0);
            known.followers.push(Arc::downgrade(follower));
            for (resolver, runs) in running.iter_mut().enumerate() {
                if !std::mem::replace(runs, true) {
                    idle.push(resolver);
                }
            }
            (known.version, known.entries.clone())
        };
        for (index, resolver) in idle.iter().enumerate() {
            let directory = self.clone();
            let resolver = *resolver;
            if thread::start("ZMQbg/names", thread::STACK, move || directory.ask(resolver)).is_err() {
                let mut state = lock(&self.state);
                idle[index..].iter().for_each(|resolver| state.running[*resolver] = false);
                return Err(Error::NoThread);
            }
        }
        self.changed.notify_all();
        if !entries.is_empty() {
            follower.clone().update_entries(version, &entries);
        }
        Ok(())
    }

    fn notify_follower_dropped(&self) {
        self.changed.notify_all();
    }
}

/// An entry of a socket of this process.
struct RegisteredSocket {
    directory: Arc<Directory>,
    entry: Registration,
    /// The endpoint to bind for other hosts.
    tcp: Option<String>,
}

impl NameRegistration for RegisteredSocket {
    fn id(&self) -> &str {
        self.entry.id()
    }

    fn ipc(&self) -> String {
        self.entry.ipc()
    }

    fn tcp(&self) -> Option<&str> {
        self.tcp.as_deref()
    }

    fn publish(&mut self, tcp: Option<&str>) -> Result<(), Error> {
        let remote: Vec<String> = tcp.into_iter().map(|tcp| self.directory.advertised(tcp)).collect();
        self.entry.publish(&remote)?;
        self.directory.refresh();
        Ok(())
    }
}

impl Drop for RegisteredSocket {
    fn drop(&mut self) {
        self.entry.withdraw();
        // Usually the file of an ipc path stays when its socket is closed. This path is unique to
        // this socket, so no other socket reuses it.
        if let Some(path) = self.entry.ipc().strip_prefix("ipc://") {
            let _ = std::fs::remove_file(path);
        }
        lock(&self.directory.state).bound.remove(self.entry.id());
        self.directory.refresh();
    }
}

impl Directory {
    /// Opens a directory by the path of a names file.
    fn open(path: &Path) -> Result<Self, String> {
        // The process may change its working directory.
        let path = std::path::absolute(path).map_err(|error| format!("names {}: {error}", path.display()))?;
        let names = ReloadedValue::open(vec![path.clone()], || read(&path))?;
        Ok(Directory::new(path, Ok(names)))
    }

    fn new(path: PathBuf, names: Result<ReloadedValue<Arc<NamesConfig>>, String>) -> Self {
        let state = DirectoryState {
            names,
            known: HashMap::new(),
            running: Default::default(),
            bound: HashMap::new(),
            process: process_id(),
        };
        Directory { path, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The endpoint that other hosts use for a socket bound at `endpoint`.
    fn advertised(&self, endpoint: &str) -> String {
        let names = self.names();
        let host = names.as_ref().and_then(|names| names.folder.as_ref()?.advertise.as_deref());
        match (host, endpoint.rsplit_once(':')) {
            (Some(host), Some((_, port))) => format!("tcp://{host}:{port}"),
            _ => endpoint.to_owned(),
        }
    }

    /// Triggers a lookup after an entry was published or removed, so that this process need not
    /// wait for the next one.
    fn refresh(&self) {
        let mut state = lock(&self.state);
        state.known.values_mut().for_each(NameState::make_due);
        drop(state);
        self.changed.notify_all();
    }

    fn names(&self) -> Option<Arc<NamesConfig>> {
        let mut state = lock(&self.state);
        self.read_again(&mut state);
        state.names.as_ref().ok().map(|names| names.get().clone())
    }

    /// Reads a changed file again, either completely or not at all.
    fn read_again(&self, state: &mut DirectoryState) {
        let Ok(names) = &mut state.names else { return };
        match names.refresh(|| read(&self.path)) {
            Ok(true) => {
                state.known.values_mut().for_each(NameState::make_due);
                self.changed.notify_all();
            }
            Ok(false) => {}
            Err(fault) => {
                drop(report_in_background(&format!("{fault}; the last valid names file stays in force")))
            }
        }
    }

    /// The thread of one resolver.
    fn ask(&self, resolver: usize) {
        let _own = OwnThread::new();
        while let Some((names, due)) = self.wait_for_names(resolver) {
            for name in due {
                let ask = AssertUnwindSafe(|| match is_memory_short() {
                    false => RESOLVERS[resolver].resolve(&names, &name),
                    true => Err(Error::NoMemory.to_string()),
                });
                let answer =
                    panic::catch_unwind(ask).unwrap_or_else(|_| Err("the resolver panicked".to_owned()));
                self.note(resolver, &name, answer);
            }
        }
    }

    /// Waits for names to ask `resolver` for. Returns `None` if all names are gone.
    fn wait_for_names(&self, resolver: usize) -> Option<(Arc<NamesConfig>, Vec<String>)> {
        let mut state = lock(&self.state);
        loop {
            self.read_again(&mut state);
            state.known.retain(|_, known| known.followers.iter().any(|who| who.strong_count() > 0));
            let names = state.names.as_ref().ok().map(|names| names.get().clone());
            let Some(names) = names.filter(|_| !state.known.is_empty()) else {
                state.running[resolver] = false;
                return None;
            };
            let now = Instant::now();
            let mut wait = LOOK;
            let mut due = Vec::new();
            for (name, known) in &mut state.known {
                let when = &mut known.answers[resolver].due;
                match *when {
                    Some(at) if at > now => wait = wait.min(at - now),
                    _ => {
                        // The default, unless the answer gives another time, or an earlier lookup
                        // is requested.
                        *when = Some(now + AGAIN);
                        due.push(name.clone());
                    }
                }
            }
            if !due.is_empty() {
                return Some((names, due));
            }
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Handles the answer of a resolver.
    fn note(&self, resolver: usize, name: &str, answer: Result<tautline_names::Resolution, String>) {
        let (followers, found, refused, fault) = {
            let mut state = lock(&self.state);
            let Some(known) = state.known.get_mut(name) else { return };
            let said = &mut known.answers[resolver];
            let before = said.fault.is_some();
            let mut refused = Vec::new();
            match answer {
                Ok(answer) => {
                    // If `due` is `None`, an earlier lookup was requested in the meantime.
                    if said.due.is_some() {
                        said.due = Instant::now().checked_add(answer.fresh_for);
                    }
                    said.entries = answer.entries.into_iter().map(entry).collect();
                    said.fault = None;
                    let known = std::mem::replace(&mut said.refused, answer.refused);
                    refused.extend(said.refused.iter().filter(|new| !known.contains(new)).cloned());
                }
                Err(why) => said.fault = Some(why),
            }
            let fault = (before != said.fault.is_some()).then(|| said.fault.clone());
            let found = known.merge().then(|| (known.version, known.entries.clone()));
            (known.followers(), found, refused, fault)
        };
        for follower in followers {
            refused
                .iter()
                .for_each(|endpoint| follower.report_refused_endpoint(RESOLVERS[resolver].title(), endpoint));
            if let Some(fault) = &fault {
                follower.report_resolver(RESOLVERS[resolver].title(), fault.as_deref());
            }
            if let Some((version, entries)) = &found {
                follower.update_entries(*version, entries);
            }
        }
    }
}

impl NameState {
    /// Makes each resolver due now.
    fn make_due(&mut self) {
        self.answers.iter_mut().for_each(|said| said.due = None);
    }
}

fn read(path: &Path) -> Result<(Arc<NamesConfig>, bool), String> {
    NamesConfig::read(path, &may_be_named).map(|names| (Arc::new(names), true))
}

fn entry(tautline_names::NameEntry { id, endpoints }: tautline_names::NameEntry) -> NameEntry {
    NameEntry { id, endpoints }
}
