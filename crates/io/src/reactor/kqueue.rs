//! [`Reactor`] as a kqueue.
//!
//! A kqueue has filters instead of descriptors: one for reading and one for writing. Therefore a
//! table holds the registrations, and two events of one descriptor are merged. The end of the other
//! end's data is a flag of the reading filter. A registration for the end alone, or a muted one,
//! has a reading filter that no amount of data triggers. (On macOS a full buffer triggers it. The
//! end is then reported after the data is read.) A muted descriptor that is not a socket has no
//! filter at all.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Event, Interest, Mode, Reactor, Token};
use crate::kqueue::{
    EV_ADD, EV_DELETE, EV_DISABLE, EV_DISPATCH, EV_ENABLE, Filter, Flags, Kevent, Kqueue, has_hung_up,
    is_socket,
};

/// A kqueue. Its own descriptor is readable while any member is ready.
#[derive(Debug)]
pub struct KqueueReactor {
    queue: Kqueue,
    members: Mutex<Members>,
}

#[derive(Debug, Default)]
struct Members {
    by_fd: BTreeMap<RawFd, Member>,
    /// Counts each arming. Distinguishes an event of a registration from events of earlier ones.
    generation: usize,
    /// Counts the waits that had events.
    wait: u64,
}

#[derive(Debug)]
struct Member {
    token: Token,
    interest: Interest,
    mode: Mode,
    is_socket: bool,
    generation: usize,
    /// True while a one-time report has not been made.
    armed: bool,
    /// Filters that the kernel has.
    read: Option<Kind>,
    write: Option<Kind>,
    /// Last wait that reported this member, and the index of its event.
    reported: (u64, usize),
}

/// Kind of a filter, chosen when it was first added. Adding the filter again does not change its
/// kind in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Repeats,
    /// The event disables the filter.
    Once,
}

impl KqueueReactor {
    /// Creates an empty set.
    pub fn new() -> io::Result<Self> {
        Ok(KqueueReactor { queue: Kqueue::new()?, members: Mutex::default() })
    }

    /// Returns the set's own descriptor.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the kernel still has this member. The kernel drops a member whose descriptor is
    /// closed, and another descriptor may have its number now.
    fn knows(&self, fd: RawFd, member: &Member) -> bool {
        let Some(filter) = [Filter::Read, Filter::Write].into_iter().find(|&filter| member.has(filter))
        else {
            return true;
        };
        // Has no effect if the filter exists.
        self.queue.change(&[member.filter(fd, filter, 0)]).is_ok()
    }

    /// Updates the kernel's filters to match the registration.
    fn apply(&self, fd: RawFd, member: &mut Member) -> io::Result<()> {
        let [read, write] = member.wanted();
        let mut changes = Vec::with_capacity(4);
        for (filter, has, wanted) in [(Filter::Read, member.read, read), (Filter::Write, member.write, write)]
        {
            if has.is_some() && has != wanted {
                changes.push(Kevent::new(fd as usize, filter, EV_DELETE));
            }
            match wanted {
                None => {}
                Some(Kind::Repeats) => changes.push(member.filter(fd, filter, EV_ADD | EV_ENABLE)),
                Some(Kind::Once) => {
                    changes.push(member.filter(fd, filter, EV_ADD | EV_ENABLE | EV_DISPATCH));
                }
            }
        }
        (member.read, member.write) = (read, write);
        if changes.is_empty() {
            return Ok(());
        }
        self.queue.change(&changes).inspect_err(|_| {
            // Remove the filters that were added.
            let _ = self.queue.change(&[Kevent::new(fd as usize, Filter::Read, EV_DELETE)]);
            let _ = self.queue.change(&[Kevent::new(fd as usize, Filter::Write, EV_DELETE)]);
        })
    }

    /// Converts the kernel's events to ours.
    fn report(&self, ready: &[Kevent], events: &mut Vec<Event>) {
        let mut members = self.members();
        members.wait += 1;
        let mut changes = Vec::new();
        for one in ready {
            let wait = members.wait;
            let Some(member) = members.by_fd.get_mut(&(one.ident() as RawFd)) else { continue };
            let again = member.reported.0 == wait;
            // If the member was armed since, the kernel reports its readiness again.
            if member.generation != one.number() || !(member.armed || again) {
                continue;
            }
            let event = member.event_of(one);
            if !(event.readable || event.writable || event.closed || event.ended) {
                continue;
            }
            if again {
                let whole: &mut Event = &mut events[member.reported.1];
                whole.readable |= event.readable;
                whole.writable |= event.writable;
                whole.closed |= event.closed;
                whole.ended |= event.ended;
            } else {
                member.reported = (wait, events.len());
                events.push(event);
            }
            if member.is_told_once() {
                member.armed = false;
                // Disable the other filter, unless it has an event as well, which disables it.
                let other = if one.is_of(Filter::Read) { Filter::Write } else { Filter::Read };
                if member.has(other) && !ready.iter().any(|it| it.ident() == one.ident() && it.is_of(other)) {
                    changes.push(Kevent::new(one.ident(), other, EV_DISABLE));
                }
            } else if event.ended && member.read == Some(Kind::Once) {
                changes.push(member.filter(one.ident() as RawFd, Filter::Read, EV_ENABLE));
            }
        }
        if !changes.is_empty() {
            // Under the lock, so that no thread can arm it in between. The kernel drops all filters
            // of closed descriptors.
            let _ = self.queue.change(&changes);
        }
    }
}

impl Member {
    /// Returns the filters for the interest: reading and writing.
    fn wanted(&self) -> [Option<Kind>; 2] {
        let Interest { readable, writable, ended } = self.interest;
        let kind = if self.mode == Mode::OneShot { Kind::Once } else { Kind::Repeats };
        let muted = self.interest == Interest::NONE && self.is_socket;
        let read = match readable {
            true => Some(kind),
            // One-shot, so that a trigger other than the end does not repeat.
            false => (ended || muted).then_some(Kind::Once),
        };
        [read, writable.then_some(kind)]
    }

    /// Creates a change to one of its filters. The change sets every field, because some kernels
    /// also overwrite the fields that a change does not mention.
    fn filter(&self, fd: RawFd, filter: Filter, flags: Flags) -> Kevent {
        let change = Kevent::new(fd as usize, filter, flags).with_number(self.generation);
        if filter == Filter::Read && !self.interest.readable { change.of_the_end() } else { change }
    }

    fn has(&self, filter: Filter) -> bool {
        match filter {
            Filter::Read => self.read.is_some(),
            Filter::Write => self.write.is_some(),
            Filter::Timer => false,
        }
    }

    fn is_told_once(&self) -> bool {
        self.mode == Mode::OneShot || self.interest == Interest::NONE
    }

    fn event_of(&self, one: &Kevent) -> Event {
        let (reads, end) = (one.is_of(Filter::Read), one.is_end());
        Event {
            token: self.token,
            readable: reads && self.interest.readable,
            writable: !reads && self.interest.writable,
            closed: end && has_hung_up(one.ident() as RawFd),
            ended: reads && end && self.interest.ended,
        }
    }
}

impl Members {
    fn next_generation(&mut self) -> usize {
        self.generation = self.generation.wrapping_add(1);
        self.generation
    }
}

impl Reactor for KqueueReactor {
    fn add(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()> {
        let mut members = self.members();
        if members.by_fd.get(&fd.as_raw_fd()).is_some_and(|member| self.knows(fd.as_raw_fd(), member)) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        let mut member = Member {
            token,
            interest,
            mode,
            is_socket: is_socket(fd),
            generation: members.next_generation(),
            armed: true,
            read: None,
            write: None,
            reported: (0, 0),
        };
        self.apply(fd.as_raw_fd(), &mut member)?;
        members.by_fd.insert(fd.as_raw_fd(), member);
        Ok(())
    }

    fn modify(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()> {
        let mut members = self.members();
        let generation = members.next_generation();
        let member = members.by_fd.get_mut(&fd.as_raw_fd()).ok_or_else(not_there)?;
        (member.token, member.interest, member.mode) = (token, interest, mode);
        (member.generation, member.armed) = (generation, true);
        let outcome = self.apply(fd.as_raw_fd(), member);
        if outcome.is_err() {
            // As if it had never been registered.
            members.by_fd.remove(&fd.as_raw_fd());
        }
        outcome
    }

    fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let mut members = self.members();
        let member = members.by_fd.remove(&fd.as_raw_fd()).ok_or_else(not_there)?;
        let delete = |filter| Kevent::new(fd.as_raw_fd() as usize, filter, EV_DELETE);
        let filters = [member.read.map(|_| Filter::Read), member.write.map(|_| Filter::Write)];
        let changes: Vec<Kevent> = filters.into_iter().flatten().map(delete).collect();
        if changes.is_empty() { Ok(()) } else { self.queue.change(&changes) }
    }

    fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut ready = [Kevent::new(0, Filter::Read, 0); BATCH];
        let mut left = timeout;
        loop {
            match self.queue.wait(&mut ready, left) {
                Ok(0) => return Ok(()),
                Ok(count) => self.report(&ready[..count], events),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
                Err(error) => return Err(error),
            }
            if !events.is_empty() {
                return Ok(());
            }
            left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        }
    }

    fn as_pollable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl AsFd for KqueueReactor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

fn not_there() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOENT)
}

/// Kernel events per wait: 4 KiB of stack. The next wait reports the remaining events first.
const BATCH: usize = 64;
