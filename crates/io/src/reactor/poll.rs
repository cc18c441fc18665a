//! [`Reactor`] on poll(2), to test the system's own reactor against. Every wait checks every
//! descriptor, so it suits dozens of descriptors, not thousands.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Event, Interest, Mode, Reactor, Token};
use crate::fd::{AsRawFd, BorrowedFd, RawFd};
use crate::libc;
use crate::poll::{PollFd, poll};
use crate::wake::WakeFd;

/// A set of descriptors for poll(2). One thread at a time may wait. Changes by other threads take
/// effect during a wait.
#[derive(Debug)]
pub struct PollReactor {
    members: Mutex<Members>,
    /// Woken when `members` changes, so that the waiting thread looks again.
    changed: WakeFd,
}

#[derive(Debug, Default)]
struct Members {
    by_fd: BTreeMap<RawFd, Member>,
    /// Counts each arming. Distinguishes an event of this registration from events of earlier ones.
    generation: u64,
}

#[derive(Debug)]
struct Member {
    token: Token,
    interest: Interest,
    mode: Mode,
    generation: u64,
    /// False for a one-shot member after its report, until it is modified.
    armed: bool,
}

impl PollReactor {
    /// Creates an empty set.
    pub fn new() -> io::Result<Self> {
        Ok(PollReactor { members: Mutex::default(), changed: WakeFd::new()? })
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the descriptors to poll and the generation of each. The first descriptor is our own
    /// wake-up descriptor.
    fn snapshot(&self) -> (Vec<PollFd>, Vec<u64>) {
        let members = self.members();
        let armed = members.by_fd.iter().filter(|(_, member)| member.armed);
        let (mut fds, generations): (Vec<PollFd>, Vec<u64>) =
            armed.map(|(&fd, member)| (PollFd::new(fd, flags(member.interest)), member.generation)).unzip();
        fds.insert(0, PollFd::new(self.changed.as_fd().as_raw_fd(), PollFd::IN));
        (fds, generations)
    }

    /// Converts the results of one poll to events, for the registrations that have not changed
    /// since.
    #[allow(clippy::bad_bit_mask, reason = "on some systems nothing tells of the end")]
    fn report(&self, fds: &[PollFd], generations: &[u64], events: &mut Vec<Event>) {
        let mut members = self.members();
        for (ready, generation) in fds.iter().zip(generations).filter(|(ready, _)| ready.revents != 0) {
            let Some(member) = members.by_fd.get_mut(&ready.fd) else { continue };
            if member.generation != *generation {
                continue;
            }
            if member.mode == Mode::OneShot || member.interest == Interest::NONE {
                member.armed = false;
            }
            events.push(Event {
                token: member.token,
                readable: ready.revents & PollFd::IN != 0,
                writable: ready.revents & PollFd::OUT != 0,
                closed: ready.revents & (PollFd::HUP | PollFd::ERR | PollFd::INVALID) != 0,
                ended: ready.revents & PollFd::ENDED != 0,
            });
        }
    }
}

impl Reactor for PollReactor {
    fn add(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()> {
        let mut members = self.members();
        if members.by_fd.contains_key(&fd.as_raw_fd()) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        members.arm(fd, token, interest, mode);
        drop(members);
        self.changed.wake();
        Ok(())
    }

    fn modify(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()> {
        let mut members = self.members();
        if !members.by_fd.contains_key(&fd.as_raw_fd()) {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        members.arm(fd, token, interest, mode);
        drop(members);
        self.changed.wake();
        Ok(())
    }

    fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let removed = self.members().by_fd.remove(&fd.as_raw_fd());
        self.changed.wake();
        removed.map(drop).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let deadline = timeout.and_then(|timeout| std::time::Instant::now().checked_add(timeout));
        loop {
            // Drain before the snapshot: a change after the snapshot ends the poll below.
            self.changed.drain();
            let (mut fds, generations) = self.snapshot();
            let left = deadline.map(|deadline| deadline.saturating_duration_since(std::time::Instant::now()));
            match poll(&mut fds, left) {
                Ok(0) => return Ok(()),
                Ok(_) => self.report(&fds[1..], &generations, events),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
                Err(error) => return Err(error),
            }
            if !events.is_empty() {
                return Ok(());
            }
        }
    }

    fn as_pollable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Members {
    fn arm(&mut self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) {
        self.generation += 1;
        let member = Member { token, interest, mode, generation: self.generation, armed: true };
        self.by_fd.insert(fd.as_raw_fd(), member);
    }
}

fn flags(interest: Interest) -> i16 {
    let read = if interest.readable { PollFd::IN } else { 0 };
    let write = if interest.writable { PollFd::OUT } else { 0 };
    let end = if interest.ended { PollFd::ENDED } else { 0 };
    read | write | end
}
