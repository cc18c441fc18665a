//! [`Reactor`] on `WSAPoll`, and sets within sets, which Windows has not.
//!
//! A set has a socket of its own, which never becomes ready: its number stands for the set, to
//! [`crate::poll`] and in other sets. A wait looks for such numbers, and asks the system for their
//! members in their place. So every wait looks at every descriptor, and handing a set over costs
//! nothing.
//!
//! A wait under way is told of changes: it stands in each set that it looks at with a descriptor
//! that a change wakes, and looks again.

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
    /// Counts arming: tells an event of this registration from one of its predecessors.
    generation: u64,
    /// Waits that look at this set now.
    waits: Vec<Arc<Bell>>,
}

#[derive(Debug)]
struct Member {
    token: Token,
    interest: Interest,
    mode: Mode,
    generation: u64,
    /// A one-shot that has been reported is not, until it is modified.
    armed: bool,
    /// The system goes on to tell of a hang-up that was not asked for, so it is not asked by waits
    /// but from time to time.
    hung_up: bool,
}

/// All sets by the number of their socket.
static SETS: RwLock<Option<HashMap<RawFd, Weak<Set>>>> = RwLock::new(None);

/// What a wait is told of changes by.
#[derive(Debug)]
struct Bell {
    wake: WakeFd,
    rung: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        // SeqCst, as below: a thread that finds it rung knows that the descriptor is, or will be,
        // readable.
        if !self.rung.swap(true, SeqCst) {
            self.wake.wake();
        }
    }
}

/// Those of waits that are over, for the next ones.
static SPARE: Mutex<Vec<Arc<Bell>>> = Mutex::new(Vec::new());

/// No more are kept.
const MOST_SPARE: usize = 16;

/// How often those are asked that have hung up and wait for something else.
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
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        let name = UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        // So that no other socket's datagram gets there.
        name.connect(name.local_addr()?)?;
        let set = Arc::new(Set { name, state: Mutex::default() });
        let mut sets = SETS.write().unwrap_or_else(PoisonError::into_inner);
        sets.get_or_insert_default().insert(set.number(), Arc::downgrade(&set));
        Ok(WinsockReactor(set))
    }

    /// The number that stands for the set.
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

/// Waits for descriptors, among which there may be sets, which can be readable.
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
                // What a member of a set is ready for is not what the set is.
                let ready = if leaf.fd == fd.fd { leaf.revents } else { libc::POLLIN & fd.events };
                fd.revents |= if leaf.revents == 0 { 0 } else { ready };
            }
            fds.iter().filter(|fd| fd.revents != 0).count()
        },
    )
}

/// One look at the system: what it is asked.
struct Look {
    leaves: Vec<pollfd>,
    /// For each, where it is from in what the caller waits for.
    indices: Vec<Option<usize>>,
    /// For each, the registration that it is of: its descriptor, which may be a set, and its
    /// generation.
    origins: Vec<(RawFd, u64)>,
    /// Sets that are looked at.
    sets: Vec<Arc<Set>>,
    /// Some have hung up and wait for something else: they are asked from time to time.
    sparing: bool,
    /// What tells of changes of the sets, if there are some, and which leaf that is.
    bell: Option<(Arc<Bell>, usize)>,
    /// What the leaves that are being added are of.
    origin: (RawFd, u64),
}

/// How deep sets stand in sets: one that stands in itself ends here.
const DEEPEST: usize = 4;

/// No registration.
const NOBODY: (RawFd, u64) = (crate::fd::NONE, 0);

impl Default for Look {
    fn default() -> Self {
        let (leaves, indices, origins, sets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Look { leaves, indices, origins, sets, sparing: false, bell: None, origin: NOBODY }
    }
}

impl Look {
    /// What tells of changes.
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

    /// A descriptor, or all members of a set.
    fn descriptor(&mut self, fd: RawFd, events: i16, index: usize) -> io::Result<()> {
        match set_of(fd) {
            Some(set) if events & libc::POLLIN != 0 => return self.enter(&set, Some(index), false),
            Some(_) => {}
            None => self.leaf(fd, events, Some(index)),
        }
        Ok(())
    }

    /// The members of `set`, by themselves if they are what is waited for, else on its behalf.
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

    /// Asks the system.
    fn ask(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if self.leaves.is_empty() {
            // Winsock does not wait for nothing.
            std::thread::sleep(timeout.unwrap_or(Duration::MAX));
            return Ok(());
        }
        let (start, count) = (self.leaves.as_mut_ptr().cast(), self.leaves.len() as u32);
        // SAFETY: pointer and length describe one exclusive vector of what has the layout of
        // WSAPOLLFD (checked in `windows.rs`). Bad descriptors are reported in `revents`.
        let ready = unsafe { WSAPoll(start, count, milliseconds(timeout)) };
        check(ready).map(drop)
    }

    /// Turns what the system has said into events of `set`.
    fn report(&self, set: &Set, events: &mut Vec<Event>) {
        let mut state = set.state();
        let mut told: HashMap<RawFd, usize> = HashMap::new();
        for (leaf, &(fd, generation)) in
            self.leaves.iter().zip(&self.origins).filter(|(leaf, _)| leaf.revents != 0)
        {
            let Some(member) = state.members.get_mut(&fd) else { continue };
            // Another leaf of the same set within the set has been told of already.
            if member.generation != generation || told.contains_key(&fd) {
                continue;
            }
            if leaf.fd == fd && leaf.revents & libc::POLLNVAL != 0 {
                // It was closed: other systems forget it then.
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
        // It is not rung from here on. What comes late, the next wait takes for a change.
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

/// Asks for what `collect` names, until `report` has told of something or the time is over. How
/// much it has told.
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
    /// Those that have hung up are asked by the next look.
    fn spare(&self) {
        self.state().members.values_mut().for_each(|member| member.hung_up = false);
    }
}

fn nothing(token: Token) -> Event {
    Event { token, readable: false, writable: false, closed: false, ended: false }
}

/// What the system says of a member, as far as it was asked. Winsock tells that the other end will
/// send nothing more as a hang-up, asked or not.
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
