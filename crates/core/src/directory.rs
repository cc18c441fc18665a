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

use crate::endpoint::Endpoint;
use crate::error::{Error, check_shortage};
use crate::policy::ReloadedValue;
use crate::stderr_report::{report_and_wait, report_in_background};
use crate::transport;
use tautline_io::thread::{self, OwnThread, process_id};
use tautline_names::{NameEntry, NamesConfig, RESOLVERS, Registration, is_name};
use tautline_queue::sync::{Arc, Mutex, lock};

/// Maximum time between two checks if the names file has changed, and if a name still has a
/// follower.
const LOOK: Duration = Duration::from_millis(250);
/// Time until a failed resolver is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Receives the endpoints of a name.
pub(crate) trait NameFollower: Send + Sync {
    /// Receives the current entries of the name. A higher `version` is a newer answer. Called
    /// without a lock, by the following thread or by a thread of the directory.
    fn update_entries(self: Arc<Self>, version: u64, entries: &[NameEntry]);

    /// Reports that a resolver has failed, with the reason. `None`: the resolver works again.
    fn report_resolver(&self, resolver: &str, why: Option<&str>);

    /// Reports an endpoint from a resolver that a name must not have. The endpoint is ignored.
    fn report_refused_endpoint(&self, resolver: &str, endpoint: &str);
}

/// The directory of names.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    state: Mutex<DirectoryState>,
    /// Notified when there are names to ask for, or when the last follower has gone.
    changed: Condvar,
}

#[derive(Debug)]
struct DirectoryState {
    /// `None`: the file could not be read when the context was created, and there are no names.
    names: Option<ReloadedValue<Arc<NamesConfig>>>,
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

impl Directory {
    /// Returns the directory that the environment names (`TAUT_NAMES`: the path of a names file),
    /// or `None` if it names none. Looked up once, because a program may change the environment
    /// later.
    pub(crate) fn of_environment() -> Option<&'static Arc<Directory>> {
        Directory::named_by_environment().as_ref().map(|(directory, _)| directory)
    }

    /// Returns the reason why the names file of the environment could not be read.
    pub(crate) fn environment_fault() -> Option<&'static str> {
        Directory::named_by_environment().as_ref().and_then(|(_, fault)| fault.as_deref())
    }

    fn named_by_environment() -> &'static Option<(Arc<Directory>, Option<String>)> {
        static DIRECTORY: OnceLock<Option<(Arc<Directory>, Option<String>)>> = OnceLock::new();
        DIRECTORY.get_or_init(|| {
            let named = tautline_io::env::var_os("TAUT_NAMES").filter(|named| !named.is_empty())?;
            let path = PathBuf::from(named);
            Some(match Directory::open(path.clone()) {
                Ok(directory) => (directory, None),
                Err(fault) => {
                    report_and_wait(&fault);
                    // Names are supported, but every lookup fails.
                    (Arc::new(Directory::new(path, None)), Some(fault))
                }
            })
        })
    }

    /// Opens a directory by the path of a names file.
    pub(crate) fn open(path: PathBuf) -> Result<Arc<Directory>, String> {
        // The process may change its working directory.
        let path =
            std::path::absolute(&path).map_err(|error| format!("names {}: {error}", path.display()))?;
        let names = ReloadedValue::open(vec![path.clone()], || read(&path))?;
        Ok(Arc::new(Directory::new(path, Some(names))))
    }

    fn new(path: PathBuf, names: Option<ReloadedValue<Arc<NamesConfig>>>) -> Self {
        let state = DirectoryState {
            names,
            known: HashMap::new(),
            running: Default::default(),
            bound: HashMap::new(),
            process: process_id(),
        };
        Directory { path, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Checks that `name` is valid.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not, or if the names file has a fault.
    pub(crate) fn check(&self, name: &str) -> Result<(), Error> {
        if is_name(name) && lock(&self.state).names.is_some() { Ok(()) } else { Err(Error::Invalid) }
    }

    /// Returns an entry of `name` for publication, and the endpoint to bind for other hosts.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if the names file has no folder for it, or a system error.
    pub(crate) fn register(&self, name: &str, socket: u64) -> Result<(Registration, Option<String>), Error> {
        let names = self.names().ok_or(Error::Invalid)?;
        let folder = names.folder.as_ref().ok_or(Error::NotSupported)?;
        let registration = Registration::prepare(folder, name).map_err(|error| {
            // The folder is not safe to use. Report the reason, because the errno alone does not
            // tell what to do.
            if error.kind() == std::io::ErrorKind::PermissionDenied && error.get_ref().is_some() {
                report_and_wait(&format!("names {}: {error}", self.path.display()));
            }
            Error::from(error)
        })?;
        lock(&self.state).bound.insert(registration.id().to_owned(), socket);
        Ok((registration, folder.tcp.clone()))
    }

    /// The endpoint that other hosts use for a socket bound at `endpoint`.
    pub(crate) fn advertised(&self, endpoint: &str) -> String {
        let names = self.names();
        let host = names.as_ref().and_then(|names| names.folder.as_ref()?.advertise.as_deref());
        match (host, endpoint.rsplit_once(':')) {
            (Some(host), Some((_, port))) => format!("tcp://{host}:{port}"),
            _ => endpoint.to_owned(),
        }
    }

    /// Triggers a lookup after an entry was published or removed, so that this process need not
    /// wait for the next one.
    pub(crate) fn refresh(&self) {
        let mut state = lock(&self.state);
        state.known.values_mut().for_each(NameState::make_due);
        drop(state);
        self.changed.notify_all();
    }

    /// Removes the entry of this id.
    pub(crate) fn unregister(&self, id: &str) {
        lock(&self.state).bound.remove(id);
        self.refresh();
    }

    /// The socket of this process that owns this entry.
    pub(crate) fn socket_of(&self, id: &str) -> Option<u64> {
        lock(&self.state).bound.get(id).copied()
    }

    /// Reports the endpoints of `name` to `follower`, now and after each change, until the follower
    /// is dropped.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    pub(crate) fn follow(
        self: &Arc<Self>,
        name: &str,
        follower: &Arc<dyn NameFollower>,
    ) -> Result<(), Error> {
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

    /// Notes that a follower is gone, or will be in a moment.
    pub(crate) fn notify_follower_dropped(&self) {
        self.changed.notify_all();
    }

    fn names(&self) -> Option<Arc<NamesConfig>> {
        let mut state = lock(&self.state);
        self.read_again(&mut state);
        state.names.as_ref().map(|names| names.get().clone())
    }

    /// Reads a changed file again, either completely or not at all.
    fn read_again(&self, state: &mut DirectoryState) {
        let Some(names) = &mut state.names else { return };
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
                let ask = AssertUnwindSafe(|| match check_shortage() {
                    Ok(()) => RESOLVERS[resolver].resolve(&names, &name),
                    Err(_) => Err(Error::NoMemory.to_string()),
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
            let names = state.names.as_ref().map(|names| names.get().clone());
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
                    (said.entries, said.fault) = (answer.entries, None);
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
    NamesConfig::read(path, &is_endpoint).map(|names| (Arc::new(names), true))
}

/// True if a name may have this endpoint: a byte-stream endpoint that can be connected to.
fn is_endpoint(text: &str) -> bool {
    transport::parse(text)
        .is_ok_and(|endpoint| matches!(endpoint, Endpoint::Stream(..)) && endpoint.check_connect().is_ok())
}
