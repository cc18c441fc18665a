//! [`Reactor`] on `WSAPoll`, with nested sets, which Windows lacks.
//!
//! A set owns a socket that never becomes ready. The socket's number stands for the set, in
//! [`crate::poll`] and in other sets. A wait recognises such numbers and asks the system for the
//! members instead. Every wait therefore checks every descriptor, and passing a set costs no extra
//! work.
//!
//! A wait learns of changes while it runs: it adds a wake-up descriptor to each set that it
//! watches. A change wakes that descriptor, and the wait then looks again.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use windows_sys::Win32::Networking::WinSock::WSAPoll;

use super::{Event, Interest, Mode, Reactor, Token};
use crate::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use crate::libc::{self, pollfd};
use crate::sys::{check, milliseconds};
use crate::wake::WakeFd;

/// A set of descriptors. Any thread may wait.
#[derive(Debug)]
pub struct WinsockReactor(Arc<Set>);

#[derive(Debug)]
struct Set {
    name: UdpSocket,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    members: BTreeMap<RawFd, Member>,
    /// Counts each arming. Distinguishes an event of this registration from events of earlier ones.
    generation: u64,
    /// Waits that watch this set now.
    waits: Vec<Arc<Bell>>,
}

#[derive(Debug)]
struct Member {
    token: Token,
    interest: Interest,
    mode: Mode,
    generation: u64,
    /// False for a one-shot member after its report, until it is modified.
    armed: bool,
    /// True if the member has hung up although it waits for another event. The system reports that
    /// hang-up in every poll, so waits leave the member out and check it only from time to time.
    hung_up: bool,
}

/// All sets by the number of their socket.
static SETS: RwLock<Option<HashMap<RawFd, Weak<Set>>>> = RwLock::new(None);

/// Signal that tells a wait of changes.
#[derive(Debug)]
struct Bell {
    wake: WakeFd,
    rung: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        // SeqCst, as below: a thread that finds the bell rung knows that the descriptor is readable
        // or will be.
        if !self.rung.swap(true, SeqCst) {
            self.wake.wake();
        }
    }
}

/// Bells of finished waits, kept for later ones.
static SPARE: Mutex<Vec<Arc<Bell>>> = Mutex::new(Vec::new());

/// Most spare bells that are kept.
const MOST_SPARE: usize = 16;

/// Interval at which members are checked that have hung up and wait for another event.
const AFTER_HANG_UP: Duration = Duration::from_millis(10);

fn set_of(fd: RawFd) -> Option<Arc<Set>> {
    SETS.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&fd)?.upgrade()
}

impl Set {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> RawFd {
        self.name.as_raw_fd()
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        let number = self.number();
        if let Some(sets) = &mut *SETS.write().unwrap_or_else(PoisonError::into_inner) {
            sets.remove(&number);
        }
    }
}

impl WinsockReactor {
    /// Creates an empty set.
    pub fn new() -> io::Result<Self> {
        let name = UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        // Connected to itself, so that datagrams of other sockets do not arrive.
        name.connect(name.local_addr()?)?;
        let set = Arc::new(Set { name, state: Mutex::default() });
        let mut sets = SETS.write().unwrap_or_else(PoisonError::into_inner);
        sets.get_or_insert_default().insert(set.number(), Arc::downgrade(&set));
        Ok(WinsockReactor(set))
    }

    /// Returns the number that stands for the set.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.name.as_fd()
    }

    fn change(&self, change: impl FnOnce(&mut State) -> io::Result<()>) -> io::Result<()> {
        let mut state = self.0.state();
        let outcome = change(&mut state);
        state.waits.iter().for_each(|bell| bell.ring());
        outcome
    }
}

impl AsFd for WinsockReactor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.name.as_fd()
    }
}

impl Reactor for WinsockReactor {
    fn add(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()> {
        self.change(|state| match state.members.contains_key(&fd.as_raw_fd()) {
            true => Err(io::Error::from_raw_os_error(libc::EEXIST)),
            false => {
                state.arm(fd, token, interest, mode);
                Ok(())
            }
        })
    }

    fn modify(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()> {
        self.change(|state| match state.members.contains_key(&fd.as_raw_fd()) {
            false => Err(io::Error::from_raw_os_error(libc::ENOENT)),
            true => {
                state.arm(fd, token, interest, mode);
                Ok(())
            }
        })
    }

    fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.change(|state| match state.members.remove(&fd.as_raw_fd()) {
            None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
            Some(_) => Ok(()),
        })
    }

    fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let report = |look: &Look| {
            look.report(&self.0, events);
            events.len()
        };
        wait(timeout, |look| look.enter(&self.0, None, true), report).map(drop)
    }

    fn as_pollable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl State {
    fn arm(&mut self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) {
        self.generation += 1;
        let generation = self.generation;
        let member = Member { token, interest, mode, generation, armed: true, hung_up: false };
        self.members.insert(fd.as_raw_fd(), member);
    }
}

/// Waits for descriptors. They may include sets, which can only be readable.
pub(crate) fn poll_with_sets(fds: &mut [pollfd], timeout: Option<Duration>) -> io::Result<usize> {
    let wanted = fds.to_vec();
    wait(
        timeout,
        |look| {
            let mut given = wanted.iter().enumerate().filter(|(_, fd)| fd.fd != crate::fd::NONE);
            given.try_for_each(|(index, fd)| look.descriptor(fd.fd, fd.events, index))
        },
        |look| {
            fds.iter_mut().for_each(|fd| fd.revents = 0);
            for (leaf, index) in look.leaves.iter().zip(&look.indices) {
                let Some(fd) = index.and_then(|index| fds.get_mut(index)) else { continue };
                // If a member is ready for any event, its set is readable.
                let ready = if leaf.fd == fd.fd { leaf.revents } else { libc::POLLIN & fd.events };
                fd.revents |= if leaf.revents == 0 { 0 } else { ready };
            }
            fds.iter().filter(|fd| fd.revents != 0).count()
        },
    )
}

/// One query to the system.
struct Look {
    leaves: Vec<pollfd>,
    /// For each leaf, its index in the caller's list.
    indices: Vec<Option<usize>>,
    /// For each leaf, its registration: the descriptor, which may be a set, and the generation.
    origins: Vec<(RawFd, u64)>,
    /// Sets that this query covers.
    sets: Vec<Arc<Set>>,
    /// True if some members have hung up and wait for another event. They are checked only from
    /// time to time.
    sparing: bool,
    /// Bell for changes of the sets, if there are sets, and the index of its leaf.
    bell: Option<(Arc<Bell>, usize)>,
    /// Registration of the leaves that are being added.
    origin: (RawFd, u64),
}

/// Deepest nesting of sets. Stops at a set that contains itself.
const DEEPEST: usize = 4;

/// Stands for no registration.
const NOBODY: (RawFd, u64) = (crate::fd::NONE, 0);

impl Default for Look {
    fn default() -> Self {
        let (leaves, indices, origins, sets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Look { leaves, indices, origins, sets, sparing: false, bell: None, origin: NOBODY }
    }
}

impl Look {
    /// Returns the bell for changes.
    fn bell(&mut self) -> io::Result<Arc<Bell>> {
        if let Some((bell, _)) = &self.bell {
            return Ok(bell.clone());
        }
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bell = match spare {
            Some(bell) => bell,
            None => Arc::new(Bell { wake: WakeFd::new()?, rung: AtomicBool::new(false) }),
        };
        self.bell = Some((bell.clone(), self.leaves.len()));
        let origin = std::mem::replace(&mut self.origin, NOBODY);
        self.leaf(bell.wake.as_fd().as_raw_fd(), libc::POLLIN, None);
        self.origin = origin;
        Ok(bell)
    }

    fn leaf(&mut self, fd: RawFd, events: i16, index: Option<usize>) {
        self.leaves.push(pollfd { fd, events, revents: 0 });
        self.indices.push(index);
        self.origins.push(self.origin);
    }

    /// Adds a descriptor, or all members of a set.
    fn descriptor(&mut self, fd: RawFd, events: i16, index: usize) -> io::Result<()> {
        match set_of(fd) {
            Some(set) if events & libc::POLLIN != 0 => return self.enter(&set, Some(index), false),
            Some(_) => {}
            None => self.leaf(fd, events, Some(index)),
        }
        Ok(())
    }

    /// Adds the members of `set`, under their own registrations if the caller waits on this set,
    /// otherwise on behalf of the set.
    fn enter(&mut self, set: &Arc<Set>, index: Option<usize>, own: bool) -> io::Result<()> {
        let bell = self.bell()?;
        if self.sets.len() >= DEEPEST && self.sets.iter().any(|known| Arc::ptr_eq(known, set)) {
            return Ok(());
        }
        self.sets.push(set.clone());
        let mut state = set.state();
        state.waits.push(bell);
        let mut inner = Vec::new();
        for (&fd, member) in state.members.iter().filter(|(_, member)| member.armed) {
            if own {
                self.origin = (fd, member.generation);
            }
            self.sparing |= member.hung_up;
            if member.hung_up {
                continue;
            }
            match set_of(fd) {
                Some(set) if member.interest.readable => inner.push((set, self.origin)),
                Some(_) => {}
                None => self.leaf(fd, flags(member.interest), index),
            }
        }
        drop(state);
        for (set, origin) in inner {
            self.origin = origin;
            self.enter(&set, index, false)?;
        }
        Ok(())
    }

    /// Queries the system.
    fn ask(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if self.leaves.is_empty() {
            // Winsock refuses an empty list.
            std::thread::sleep(timeout.unwrap_or(Duration::MAX));
            return Ok(());
        }
        let (start, count) = (self.leaves.as_mut_ptr().cast(), self.leaves.len() as u32);
        // SAFETY: pointer and length describe one exclusive vector, whose elements have the layout
        // of WSAPOLLFD (checked in `windows.rs`). Bad descriptors are reported in `revents`.
        let ready = unsafe { WSAPoll(start, count, milliseconds(timeout)) };
        check(ready).map(drop)
    }

    /// Converts the system's results to events of `set`.
    fn report(&self, set: &Set, events: &mut Vec<Event>) {
        let mut state = set.state();
        let mut told: HashMap<RawFd, usize> = HashMap::new();
        for (leaf, &(fd, generation)) in
            self.leaves.iter().zip(&self.origins).filter(|(leaf, _)| leaf.revents != 0)
        {
            let Some(member) = state.members.get_mut(&fd) else { continue };
            // Another leaf of the same nested set has been reported already.
            if member.generation != generation || told.contains_key(&fd) {
                continue;
            }
            if leaf.fd == fd && leaf.revents & libc::POLLNVAL != 0 {
                // The descriptor was closed. Other systems drop it then.
                state.members.remove(&fd);
                continue;
            }
            let event = match leaf.fd == fd {
                true => event(member, leaf.revents),
                false => Event { readable: true, ..nothing(member.token) },
            };
            let is_nothing = event == nothing(member.token);
            member.hung_up = is_nothing && (member.interest.readable || member.interest.writable);
            if member.mode == Mode::OneShot && !is_nothing || member.interest == Interest::NONE {
                member.armed = false;
            }
            if !is_nothing {
                told.insert(fd, events.len());
                events.push(event);
            }
        }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        let Some((bell, leaf)) = self.bell.take() else { return };
        for set in &self.sets {
            set.state().waits.retain(|other| !Arc::ptr_eq(other, &bell));
        }
        // The bell is not rung from here on. The next wait takes a late signal for a change.
        let heard = self.leaves.get(leaf).is_some_and(|leaf| leaf.revents != 0);
        if bell.rung.swap(false, SeqCst) || heard {
            bell.wake.drain();
        }
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < MOST_SPARE {
            spare.push(bell);
        }
    }
}

/// Queries the descriptors that `collect` adds, until `report` has found an event or the timeout
/// has passed. Returns the number of events.
fn wait(
    timeout: Option<Duration>,
    mut collect: impl FnMut(&mut Look) -> io::Result<()>,
    mut report: impl FnMut(&Look) -> usize,
) -> io::Result<usize> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let mut look = Look::default();
        collect(&mut look)?;
        let mut left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let last = left == Some(Duration::ZERO);
        if look.sparing {
            left = Some(left.map_or(AFTER_HANG_UP, |left| left.min(AFTER_HANG_UP)));
        }
        look.ask(left)?;
        let told = report(&look);
        if told > 0 || last {
            return Ok(told);
        }
        if look.sparing {
            look.sets.iter().for_each(|set| set.spare());
        }
    }
}

impl Set {
    /// Includes members that have hung up in the next query.
    fn spare(&self) {
        self.state().members.values_mut().for_each(|member| member.hung_up = false);
    }
}

fn nothing(token: Token) -> Event {
    Event { token, readable: false, writable: false, closed: false, ended: false }
}

/// Converts the system's flags of a member to an event, as far as the registration asked for them.
/// Winsock reports the end of the other end's data as a hang-up, whether requested or not.
fn event(member: &Member, revents: i16) -> Event {
    let has = |flags: i16| revents & flags != 0;
    let over = has(libc::POLLHUP | libc::POLLERR | libc::POLLNVAL);
    Event {
        token: member.token,
        readable: member.interest.readable && (has(libc::POLLIN) || over),
        writable: member.interest.writable && (has(libc::POLLOUT) || has(libc::POLLERR)),
        closed: has(libc::POLLERR | libc::POLLNVAL),
        ended: member.interest.ended && over,
    }
}

fn flags(interest: Interest) -> i16 {
    let read = if interest.readable { libc::POLLIN } else { 0 };
    let write = if interest.writable { libc::POLLOUT } else { 0 };
    read | write
}
