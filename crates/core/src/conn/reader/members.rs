//! The connections of a read set, and the set's report of unread bytes in shared memory.
//!
//! A member's descriptor reports future bytes, but not bytes that its owner has left in shared
//! memory. While a member has such bytes, an extra descriptor of the set is readable.

use super::Connection;
use std::time::Duration;
use tautline_io::fd::AsRawFd;
use tautline_io::net::Stream;
use tautline_io::poll::{PollFd, poll};
use tautline_io::reactor::{Event, Interest, Mode, Reactor, SystemReactor, Token};
use tautline_io::wake::WakeFd;
use tautline_queue::sync::Arc;
use tautline_queue::sync::atomic::Ordering::Relaxed;

/// Name of the descriptor that reports members with unread bytes.
pub(super) const UNREAD: Token = Token(u64::MAX >> 1);

/// One connection of the set, with the registered stream.
pub(super) struct Member {
    pub(super) connection: Arc<Connection>,
    pub(super) stream: Arc<Stream>,
    /// True if the member must not be read before it has been resumed.
    pub(super) muted: bool,
    /// True if the member's registration reports no events. A muted member is silenced lazily, at
    /// its next event, because the owner has usually made room by then.
    pub(super) silent: bool,
    /// True if there are bytes to read that the member's descriptor does not report.
    pub(super) eager: bool,
    /// True if the set reports the unread bytes of this member.
    unread_reported: bool,
    /// True if the member's own registration reports its unread bytes, because there is no extra
    /// descriptor. The registration then waits for writability, which is almost always given.
    writable: bool,
}

impl Member {
    pub(super) fn new(connection: Arc<Connection>, stream: Arc<Stream>, eager: bool) -> Self {
        Member {
            connection,
            stream,
            muted: false,
            silent: false,
            eager,
            unread_reported: false,
            writable: false,
        }
    }

    /// True if the member's descriptor is ready although shared memory is empty: a bell was taken,
    /// and another bell or the end follows.
    pub(super) fn is_rung(&self) -> bool {
        let mut fds = [PollFd::new(self.stream.as_fd().as_raw_fd(), PollFd::IN)];
        self.stream.reads_from_memory() && poll(&mut fds, Some(Duration::ZERO)).is_ok_and(|ready| ready > 0)
    }

    /// Returns the events for which the member is registered in the set.
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
    /// True if the last read of all members has found bytes of an incomplete message. The rest of
    /// the message may have arrived since.
    pub(super) partly: bool,
    /// True if the set's descriptor was given away: all members must be registered in it.
    pub(super) watched: bool,
    /// True if the only member is not registered in the set.
    pub(super) apart: bool,
    /// Number of the owner's own reads since `apart` last changed.
    pub(super) own_reads: u32,
    /// Number of members whose unread bytes the set reports.
    unread: u32,
    /// Extra descriptor, readable while `unread` is not 0. Created when it is first needed.
    bell: Option<WakeFd>,
}

impl Members {
    /// Returns the index of a connection that is a member.
    pub(super) fn find(&self, connection: &Arc<Connection>) -> Option<usize> {
        let index = connection.place.load(Relaxed);
        let member = self.slots.get(index)?.as_ref()?;
        Arc::ptr_eq(&member.connection, connection).then_some(index)
    }

    /// True if this member has unread bytes that the set reports.
    pub(super) fn is_unread_reported(&self, index: usize) -> bool {
        self.slots[index].as_ref().is_some_and(|member| member.unread_reported)
    }

    /// Updates the registration of a member that has changed.
    pub(super) fn rearm(&mut self, reactor: &SystemReactor, index: usize) {
        self.update_unread_report(reactor, index);
        if let Some(member) = &self.slots[index] {
            let _ =
                reactor.modify(member.stream.as_fd(), Token(index as u64), member.interest(), Mode::Level);
        }
    }

    /// Updates the set's report after a change of the member's unread bytes or of its registration
    /// in the set.
    pub(super) fn update_unread_report(&mut self, reactor: &SystemReactor, index: usize) {
        let Some(member) = self.slots[index].as_mut() else { return };
        let tells = member.eager && !member.silent && !self.apart;
        if std::mem::replace(&mut member.unread_reported, tells) == tells {
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
