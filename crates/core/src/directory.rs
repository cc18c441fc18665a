//! What names stand for (`name://orders`): asks the resolvers of a names file (crate
//! `tautline-names`) on behalf of the sockets that have connected to a name, again and again.
//!
//! ```text
//!  Context ── Directory ── Names, read again when its file changes
//!                 │
//!                 ├─ a thread for each resolver, while there are names to ask for
//!                 └─ Known, for each name: what each resolver has said last, its followers
//! ```
//!
//! A resolver that cannot be asked takes nothing away: what it has said last counts until it says
//! something else. The lock of a directory is a leaf.

use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::policy::{Watched, say, say_later};
use crate::sync::{Arc, Mutex, lock};
use crate::transport;
use tautline_io::thread::{OwnThread, process_id};
use tautline_names::{Entry, Names, RESOLVERS, Registration, is_name};

/// Longest time between two looks whether the names file has changed, and whether a name is still
/// followed.
const LOOK: Duration = Duration::from_millis(250);
/// When a resolver that could not be asked is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Wants to know what a name stands for.
pub(crate) trait Follower: Send + Sync {
    /// What the name stands for now; a higher `version` is a newer answer. Called with no lock
    /// held, by the thread that follows or by one of the directory's.
    fn found(self: Arc<Self>, version: u64, entries: &[Entry]);

    /// A resolver cannot be asked, and why; `None`: it can be asked again.
    fn away(&self, resolver: &str, why: Option<&str>);

    /// A resolver has named an endpoint that a name may not stand for. It is left out.
    fn refused(&self, resolver: &str, endpoint: &str);
}

/// What names stand for.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    state: Mutex<State>,
    /// Notified when there is something to ask, or nothing any more.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// `None`: the file could not be read when the context was made, and there are no names.
    names: Option<Watched<Arc<Names>>>,
    known: HashMap<String, Known>,
    /// Which resolvers have a thread.
    running: [bool; RESOLVERS.len()],
    /// The sockets of this process that have bound a name, by the ids of their entries.
    bound: HashMap<String, u64>,
    /// Whose threads these are: a forked child has none.
    process: u32,
}

/// What is known of one name.
#[derive(Default)]
struct Known {
    followers: Vec<Weak<dyn Follower>>,
    said: [Said; RESOLVERS.len()],
    /// All of that together, as the followers know it.
    entries: Vec<Entry>,
    version: u64,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").field("entries", &self.entries).finish_non_exhaustive()
    }
}

/// What one resolver has said of a name.
#[derive(Default)]
struct Said {
    entries: Vec<Entry>,
    /// Endpoints that it has named and that were left out.
    refused: Vec<String>,
    /// When to ask it; `None` is now.
    due: Option<Instant>,
    /// Why it could not be asked last.
    fault: Option<String>,
}

impl Known {
    /// Those that still want to know.
    fn followers(&mut self) -> Vec<Arc<dyn Follower>> {
        self.followers.retain(|follower| follower.strong_count() > 0);
        self.followers.iter().filter_map(Weak::upgrade).collect()
    }

    /// Puts together what the resolvers have said; true if that is something else than before.
    fn merge(&mut self) -> bool {
        let mut entries: Vec<Entry> = Vec::new();
        for entry in self.said.iter().flat_map(|said| &said.entries) {
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
    /// What the environment names (`TAUT_NAMES`: the path of a names file); `None` if it names
    /// nothing. Looked up once: a program may be changing the environment later.
    pub(crate) fn of_environment() -> Option<&'static Arc<Directory>> {
        static DIRECTORY: OnceLock<Option<Arc<Directory>>> = OnceLock::new();
        let named = || {
            let named = tautline_io::env::var_os("TAUT_NAMES").filter(|named| !named.is_empty())?;
            let path = PathBuf::from(named);
            let opened = Directory::open(path.clone()).unwrap_or_else(|fault| {
                say(&fault);
                // There are names, and none can be told.
                Arc::new(Directory::new(path, None))
            });
            Some(opened)
        };
        DIRECTORY.get_or_init(named).as_ref()
    }

    /// By the path of a names file.
    pub(crate) fn open(path: PathBuf) -> Result<Arc<Directory>, String> {
        // The process may change its folder.
        let path =
            std::path::absolute(&path).map_err(|error| format!("names {}: {error}", path.display()))?;
        let names = Watched::open(vec![path.clone()], || read(&path))?;
        Ok(Arc::new(Directory::new(path, Some(names))))
    }

    fn new(path: PathBuf, names: Option<Watched<Arc<Names>>>) -> Self {
        let state = State {
            names,
            known: HashMap::new(),
            running: Default::default(),
            bound: HashMap::new(),
            process: process_id(),
        };
        Directory { path, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Whether `name` can be one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it cannot be, or if the names file has a fault.
    pub(crate) fn check(&self, name: &str) -> Result<(), Error> {
        if is_name(name) && lock(&self.state).names.is_some() { Ok(()) } else { Err(Error::Invalid) }
    }

    /// An entry of `name` that is to be published, and what is to be bound for other hosts.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if the names file has no folder for it, or the system's.
    pub(crate) fn register(&self, name: &str, socket: u64) -> Result<(Registration, Option<String>), Error> {
        let names = self.names().ok_or(Error::Invalid)?;
        let folder = names.folder.as_ref().ok_or(Error::NotSupported)?;
        let registration = Registration::prepare(folder, name).map_err(|error| {
            // A folder that is not safe to use. The number alone does not tell what to do.
            if error.kind() == std::io::ErrorKind::PermissionDenied && error.get_ref().is_some() {
                say(&format!("names {}: {error}", self.path.display()));
            }
            Error::from(error)
        })?;
        lock(&self.state).bound.insert(registration.id().to_owned(), socket);
        Ok((registration, folder.tcp.clone()))
    }

    /// How other hosts call what is bound at `endpoint`.
    pub(crate) fn advertised(&self, endpoint: &str) -> String {
        let names = self.names();
        let host = names.as_ref().and_then(|names| names.folder.as_ref()?.advertise.as_deref());
        match (host, endpoint.rsplit_once(':')) {
            (Some(host), Some((_, port))) => format!("tcp://{host}:{port}"),
            _ => endpoint.to_owned(),
        }
    }

    /// An entry was published, or is gone. Those in this process need not wait for the next look.
    pub(crate) fn look_again(&self) {
        let mut state = lock(&self.state);
        state.known.values_mut().for_each(Known::forget_when);
        drop(state);
        self.changed.notify_all();
    }

    /// The entry of this id is gone.
    pub(crate) fn unregistered(&self, id: &str) {
        lock(&self.state).bound.remove(id);
        self.look_again();
    }

    /// The socket of this process whose entry this is.
    pub(crate) fn socket_of(&self, id: &str) -> Option<u64> {
        lock(&self.state).bound.get(id).copied()
    }

    /// Tells `follower` what `name` stands for, now and whenever that changes, as long as there is
    /// a follower.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    pub(crate) fn follow(self: &Arc<Self>, name: &str, follower: &Arc<dyn Follower>) -> Result<(), Error> {
        let mut idle = Vec::new();
        let (version, entries) = {
            let mut state = lock(&self.state);
            let State { known, running, process, .. } = &mut *state;
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
            let thread = std::thread::Builder::new().name("ZMQbg/names".into());
            let resolver = *resolver;
            if thread.spawn(move || directory.ask(resolver)).is_err() {
                let mut state = lock(&self.state);
                idle[index..].iter().for_each(|resolver| state.running[*resolver] = false);
                return Err(Error::NoThread);
            }
        }
        self.changed.notify_all();
        if !entries.is_empty() {
            follower.clone().found(version, &entries);
        }
        Ok(())
    }

    /// A follower is gone, or will be in a moment.
    pub(crate) fn left(&self) {
        self.changed.notify_all();
    }

    fn names(&self) -> Option<Arc<Names>> {
        let mut state = lock(&self.state);
        self.read_again(&mut state);
        state.names.as_ref().map(|names| names.get().clone())
    }

    /// A file that has changed is read again, as a whole or not at all.
    fn read_again(&self, state: &mut State) {
        let Some(names) = &mut state.names else { return };
        match names.refresh(|| read(&self.path)) {
            Ok(true) => {
                state.known.values_mut().for_each(Known::forget_when);
                self.changed.notify_all();
            }
            Ok(false) => {}
            Err(fault) => drop(say_later(&format!("{fault}; the names stay as they were"))),
        }
    }

    /// The thread of one resolver.
    fn ask(&self, resolver: usize) {
        let _own = OwnThread::new();
        while let Some((names, due)) = self.next(resolver) {
            for name in due {
                let ask = AssertUnwindSafe(|| RESOLVERS[resolver].resolve(&names, &name));
                let answer = panic::catch_unwind(ask).unwrap_or_else(|_| Err("it has panicked".to_owned()));
                self.note(resolver, &name, answer);
            }
        }
    }

    /// Waits for names to ask `resolver` for; `None` once there are none to wait for.
    fn next(&self, resolver: usize) -> Option<(Arc<Names>, Vec<String>)> {
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
                let when = &mut known.said[resolver].due;
                match *when {
                    Some(at) if at > now => wait = wait.min(at - now),
                    _ => {
                        // Unless the answer says another time, or it is wanted sooner.
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

    /// A resolver has answered.
    fn note(&self, resolver: usize, name: &str, answer: Result<tautline_names::Answer, String>) {
        let (followers, found, refused, fault) = {
            let mut state = lock(&self.state);
            let Some(known) = state.known.get_mut(name) else { return };
            let said = &mut known.said[resolver];
            let before = said.fault.is_some();
            let mut refused = Vec::new();
            match answer {
                Ok(answer) => {
                    // It may be wanted sooner, since.
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
            refused.iter().for_each(|endpoint| follower.refused(RESOLVERS[resolver].title(), endpoint));
            if let Some(fault) = &fault {
                follower.away(RESOLVERS[resolver].title(), fault.as_deref());
            }
            if let Some((version, entries)) = &found {
                follower.found(*version, entries);
            }
        }
    }
}

impl Known {
    /// Each resolver is to be asked now.
    fn forget_when(&mut self) {
        self.said.iter_mut().for_each(|said| said.due = None);
    }
}

fn read(path: &Path) -> Result<(Arc<Names>, bool), String> {
    Names::read(path, &is_endpoint).map(|names| (Arc::new(names), true))
}

/// Whether a name may stand for this: an endpoint of streams that can be connected to.
fn is_endpoint(text: &str) -> bool {
    transport::parse(text)
        .is_ok_and(|endpoint| matches!(endpoint, Endpoint::Stream(..)) && endpoint.for_connect().is_ok())
}
