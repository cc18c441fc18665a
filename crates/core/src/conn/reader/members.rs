//! The connections of a read set, and how the set tells of what lies unread in shared memory.
//!
//! A member's descriptor tells of what comes from now on, not of what its owner has left in shared
//! memory. While there is such a member the set holds a descriptor of its own that is readable.

use super::Connection;
use crate::sync::Arc;
use crate::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tautline_io::fd::AsRawFd;
use tautline_io::net::Stream;
use tautline_io::poll::{PollFd, poll};
use tautline_io::reactor::{Event, Interest, Mode, Reactor, SystemReactor, Token};
use tautline_io::wake::WakeFd;

/// The name of the descriptor that tells of members with something unread.
pub(super) const UNREAD: Token = Token(u64::MAX >> 1);

/// One connection of the set, with the stream that is registered.
pub(super) struct Member {
    pub(super) connection: Arc<Connection>,
    pub(super) stream: Arc<Stream>,
    /// Not to be read before it has been resumed.
    pub(super) muted: bool,
    /// Its registration listens to nothing. One that is muted has that only once it has come to
    /// matter: mostly the owner has made room before a wait.
    pub(super) silent: bool,
    /// There is something to read that its descriptor does not tell of.
    pub(super) eager: bool,
    /// The set tells of that.
    told: bool,
    /// By its own registration, for want of a descriptor: as one that can be written, which it
    /// mostly can.
    writable: bool,
}

impl Member {
    pub(super) fn new(connection: Arc<Connection>, stream: Arc<Stream>, eager: bool) -> Self {
        Member { connection, stream, muted: false, silent: false, eager, told: false, writable: false }
    }

    /// Whether its descriptor is ready, though nothing lies in shared memory: a bell was taken, and
    /// behind it comes another one or the end.
    pub(super) fn is_rung(&self) -> bool {
        let mut fds = [PollFd::new(self.stream.as_fd().as_raw_fd(), PollFd::IN)];
        self.stream.reads_from_memory() && poll(&mut fds, Some(Duration::ZERO)).is_ok_and(|ready| ready > 0)
    }

    /// What it stands in the set for.
    pub(super) fn interest(&self) -> Interest {
        match (self.silent, self.writable) {
            (true, _) => Interest::NONE,
            (false, true) => Interest::BOTH,
            (false, false) => Interest::READ,
        }
    }
}

/// The members, by their token in the set.
#[derive(Default)]
pub(super) struct Members {
    pub(super) slots: Vec<Option<Member>>,
    pub(super) vacant: Vec<usize>,
    pub(super) count: u32,
    pub(super) events: Vec<Event>,
    /// The last look at all of them has found bytes that are no whole message: there may be more.
    pub(super) partly: bool,
    /// The set's descriptor was given away: all members must stand in it.
    pub(super) watched: bool,
    /// The only member does not stand in the set.
    pub(super) apart: bool,
    /// How often the owner has read by itself since `apart` changed last.
    pub(super) own_reads: u32,
    /// How many members the set tells of that have something unread.
    unread: u32,
    /// It is readable while there are any. Made for the first one.
    bell: Option<WakeFd>,
}

impl Members {
    /// The place of a connection that is there.
    pub(super) fn find(&self, connection: &Arc<Connection>) -> Option<usize> {
        let index = connection.place.load(Relaxed);
        let member = self.slots.get(index)?.as_ref()?;
        Arc::ptr_eq(&member.connection, connection).then_some(index)
    }

    /// Whether this member has something unread that the set tells of.
    pub(super) fn is_told(&self, index: usize) -> bool {
        self.slots[index].as_ref().is_some_and(|member| member.told)
    }

    /// The member has changed: so does its registration.
    pub(super) fn rearm(&mut self, reactor: &SystemReactor, index: usize) {
        self.tell_unread(reactor, index);
        if let Some(member) = &self.slots[index] {
            let _ =
                reactor.modify(member.stream.as_fd(), Token(index as u64), member.interest(), Mode::Level);
        }
    }

    /// What the member has unread may have changed, or whether it stands in the set: has the set
    /// tell of it, or no longer.
    pub(super) fn tell_unread(&mut self, reactor: &SystemReactor, index: usize) {
        let Some(member) = self.slots[index].as_mut() else { return };
        let tells = member.eager && !member.silent && !self.apart;
        if std::mem::replace(&mut member.told, tells) == tells {
            return;
        }
        if tells {
            self.unread += 1;
        } else {
            self.unread -= 1;
        }
        let is_new = tells && self.bell.is_none();
        if is_new {
            self.bell = WakeFd::new()
                .ok()
                .filter(|bell| reactor.add(bell.as_fd(), UNREAD, Interest::READ, Mode::Level).is_ok());
        }
        match &self.bell {
            Some(bell) if tells && (is_new || self.unread == 1) => bell.wake(),
            Some(bell) if self.unread == 0 => {
                bell.drain();
            }
            _ => {}
        }
        let writable = tells && self.bell.is_none();
        if std::mem::replace(&mut member.writable, writable) != writable {
            let _ =
                reactor.modify(member.stream.as_fd(), Token(index as u64), member.interest(), Mode::Level);
        }
    }
}
