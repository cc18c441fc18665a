//! The read set: all readable connections of one socket, and the [`Baton`] that says which thread
//! may read.
//!
//! The connections are registered, level-triggered, in the socket's own set. Only the descriptor of
//! that set is registered, one-shot, in the I/O thread's reactor. So handing the reading over is
//! one system call for any number of connections.
//!
//! A descriptor that is registered in a set costs one call for each message that comes and one for
//! each message that is taken. If an owner reads its only connection again and again, that
//! connection therefore stands *apart*: it is not registered until another thread must listen.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::time::Duration;
use tautline_timing::rules::{Rule, is_disabled};

use super::Connection;
use super::intake::ReadOutcome;
use super::link::{SetKeeper, SocketInbox};
use tautline_io::errno;
use tautline_io::fd::{self, AsRawFd, BorrowedFd, RawFd};
use tautline_io::net::Stream;
use tautline_io::poll::{self, PollFd};
use tautline_io::reactor::{Mode, Reactor, SystemReactor, Token};
use tautline_queue::handoff::baton::{Baton, Surroundings, Tick};
use tautline_queue::handoff::registration::Registration;
use tautline_queue::sync::atomic::Ordering::{Acquire, Relaxed};
use tautline_queue::sync::{Arc, Mutex, lock};
use tautline_timing::RARE_INTERVAL;

mod members;

use members::{Member, Members, UNREAD};

/// All readable connections of one socket.
pub(crate) struct ReadSet {
    pub(crate) baton: Baton,
    reactor: SystemReactor,
    members: Mutex<Members>,
    inbox: Arc<SocketInbox>,
    keeper: Arc<dyn SetKeeper>,
    /// This set, for the tick.
    me: Weak<ReadSet>,
    /// Registration in the I/O thread's reactor.
    pub(crate) registration: Registration,
}

/// The thread that reads.
pub(super) enum Reader<'a> {
    /// Any thread: the inbox announces that a pipe has become readable.
    Any,
    /// The owner: readable pipes are added to this vector. While there are no bytes, the read is
    /// tried again, up to this number of tries in total.
    Owner(&'a mut Vec<u32>, u32),
}

impl Reader<'_> {
    fn times(&self) -> u32 {
        match self {
            Reader::Any => 1,
            Reader::Owner(_, times) => *times,
        }
    }

    /// Returns the same value for one try.
    fn once(&mut self) -> Reader<'_> {
        match self {
            Reader::Any => Reader::Any,
            Reader::Owner(arrived, _) => Reader::Owner(arrived, 1),
        }
    }
}

/// Reads a connection once. A panic on the I/O thread ends the session, because that thread must
/// continue. A panic on an owner's thread goes to the caller.
fn read_or_lose(connection: &Arc<Connection>, by: Reader<'_>) -> ControlFlow<(), ReadOutcome> {
    if matches!(by, Reader::Owner(..)) {
        return connection.read(by);
    }
    catch_unwind(AssertUnwindSafe(|| connection.read(by))).unwrap_or_else(|_| {
        connection.lose(errno::EFAULT);
        ControlFlow::Break(())
    })
}

/// The descriptor that the owner polls while it sleeps.
pub(crate) enum Sleep {
    /// No connection can be read now.
    Nothing,
    /// One connection: its own stream.
    Stream(Arc<Stream>),
    /// Several connections: the set.
    Set,
    /// The owner must not sleep: there are bytes to read now.
    NotNow,
}

impl Surroundings for ReadSet {
    fn arm(&self) {
        self.register_all(&mut lock(&self.members));
        self.keeper.arm(self);
    }

    fn disarm(&self) {
        self.keeper.disarm(self);
    }

    fn start_tick(&self) {
        self.keeper.start_tick();
    }

    fn join_tick(&self) {
        if let Some(set) = self.me.upgrade() {
            self.keeper.join_tick(set);
        }
    }

    fn wake_owner(&self) {
        self.inbox.waker().ring();
    }

    fn await_wake(&self) {
        // `ReadSet::new` has created the descriptor.
        let mut fds = [PollFd::new(self.inbox.waker().number().unwrap_or(fd::NONE), PollFd::IN)];
        // The time limit is for a wake-up that another look drained in between.
        let _ = poll::poll(&mut fds, Some(Duration::from_millis(1)));
    }
}

impl ReadSet {
    /// Returns an empty set whose baton lies with the I/O thread.
    pub(crate) fn new(inbox: Arc<SocketInbox>, keeper: Arc<dyn SetKeeper>) -> std::io::Result<Arc<Self>> {
        let reactor = SystemReactor::new()?;
        Ok(Arc::new_cyclic(|me| ReadSet {
            baton: Baton::armed(),
            reactor,
            members: Mutex::default(),
            inbox,
            keeper,
            me: me.clone(),
            registration: Registration::unnamed(),
        }))
    }

    /// Returns the set's descriptor, which is readable while a registered connection is readable.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.reactor.as_fd()
    }

    /// Returns the set's descriptor for a runtime or program to watch. From now on all connections
    /// are registered in the set.
    pub(crate) fn watched_fd(&self) -> BorrowedFd<'_> {
        let mut members = lock(&self.members);
        members.watched = true;
        self.register_all(&mut members);
        self.reactor.as_fd()
    }

    // ---- membership: the driver adds, the driver or the holder of the baton removes

    /// Adds a connection whose session `open` opens. The lock on the members prevents reads until
    /// then. So an owner that learns of the peer and looks finds the peer's bytes.
    pub(crate) fn admit(&self, connection: Arc<Connection>, open: impl FnOnce()) -> std::io::Result<()> {
        let mut members = lock(&self.members);
        open();
        let Some(stream) = lock(&connection.intake).stream().cloned() else { return Ok(()) };
        self.register_all(&mut members);
        let index = members.vacant.last().copied().unwrap_or(members.slots.len());
        let eager = !stream.request_wakeup();
        let member = Member::new(connection, stream, eager);
        self.reactor.add(member.stream.as_fd(), Token(index as u64), member.interest(), Mode::Level)?;
        member.connection.place.store(index, Relaxed);
        let member = Some(member);
        if index == members.slots.len() {
            if index == 0 {
                // Most sockets have one connection.
                members.slots.reserve_exact(1);
            }
            members.slots.push(member);
        } else {
            members.slots[index] = member;
            members.vacant.pop();
        }
        members.count += 1;
        members.update_unread_report(&self.reactor, index);
        drop(members);
        // A sleeping owner waits only for the earlier connections.
        self.inbox.wake_if_parked();
        Ok(())
    }

    /// Removes a connection, if it is a member.
    pub(crate) fn remove(&self, connection: &Arc<Connection>) {
        let mut members = lock(&self.members);
        if let Some(index) = members.find(connection) {
            self.drop_member(&mut members, index);
        }
    }

    /// Removes all connections and keeps the baton permanently, because the socket is closed.
    pub(crate) fn clear(&self) {
        let mut members = lock(&self.members);
        for index in 0..members.slots.len() {
            self.drop_member(&mut members, index);
        }
    }

    fn drop_member(&self, members: &mut Members, index: usize) {
        if let Some(member) = members.slots[index].as_mut() {
            member.eager = false;
            members.update_unread_report(&self.reactor, index);
        }
        if let Some(member) = members.slots[index].take() {
            let _ = self.reactor.remove(member.stream.as_fd());
            members.vacant.push(index);
            members.count -= 1;
            members.apart = false;
        }
    }

    /// Notes that the owner has read its only connection. After many such reads in a row the
    /// connection is set apart.
    fn note_own_read(&self, members: &mut Members) {
        members.own_reads += 1;
        if members.own_reads >= RARE_INTERVAL && !is_disabled(Rule::Apart) {
            members.own_reads = 0;
            if let (false, false, Some(Some(member))) =
                (members.watched, members.apart, members.slots.first())
            {
                members.apart = self.reactor.remove(member.stream.as_fd()).is_ok();
                members.update_unread_report(&self.reactor, 0);
            }
        }
    }

    /// Registers all members in the set, so that other threads can listen to it.
    fn register_all(&self, members: &mut Members) {
        members.own_reads = 0;
        if !std::mem::take(&mut members.apart) {
            return;
        }
        let Some(Some(member)) = members.slots.first_mut() else { return };
        member.eager = !member.stream.request_wakeup();
        if let Err(error) = self.reactor.add(member.stream.as_fd(), Token(0), member.interest(), Mode::Level)
        {
            // Handle it like a connection that could not be added in the first place.
            member.connection.lose(errno::of(&error).unwrap_or(0));
            self.drop_member(members, 0);
        }
        members.update_unread_report(&self.reactor, 0);
    }

    /// Continues to read a paused connection that has room again.
    pub(crate) fn resume(&self, connection: &Arc<Connection>) {
        if !connection.paused.take() {
            return;
        }
        let mut members = lock(&self.members);
        if let Some(index) = members.find(connection) {
            self.unmute(&mut members, index);
            // Unpublished bytes in user space raise no event of the kernel.
            self.read_member(&mut members, index, Reader::Any);
        }
    }

    /// Owner: reads one connection once, in any state of the baton. The lock on the members keeps
    /// other threads from reading it during this time. If the peer sends no further bytes, the call
    /// reads beyond the high-water mark. The inbox announces readable pipes. Returns true if bytes
    /// came. `Break` if the session is over.
    pub(crate) fn read_one(&self, connection: &Arc<Connection>) -> ControlFlow<(), bool> {
        let mut members = lock(&self.members);
        // After a read, each member in the set is checked for bytes that its descriptor does not
        // report.
        self.register_all(&mut members);
        let Some(index) = members.find(connection) else {
            // The I/O thread has seen its end, or has not made the stream yet.
            let is_over = connection.ended.load(Acquire) || !connection.is_linked();
            return if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(false) };
        };
        if connection.paused.take() {
            self.unmute(&mut members, index);
            if members.slots[index].as_ref().is_some_and(|member| member.stream.has_ended()) {
                connection.read_to_end();
            }
        }
        let partly = std::mem::take(&mut members.partly);
        let news = self.read_member(&mut members, index, Reader::Any);
        let came = news | members.partly;
        members.partly |= partly;
        match &members.slots[index] {
            None => ControlFlow::Break(()),
            // Behind bytes in shared memory, a second look finds the end of the stream. Behind a
            // bell, a third look does.
            Some(member) => {
                ControlFlow::Continue(came || !member.muted && (member.eager || member.is_rung()))
            }
        }
    }

    /// I/O thread: notes that the peer of `connection` sends no further bytes. Paused reading
    /// continues to the end.
    pub(crate) fn read_to_end(&self, connection: &Arc<Connection>) {
        connection.read_to_end();
        if connection.is_paused() {
            self.resume(connection);
            // A sleeping owner does not listen to paused connections.
            self.inbox.wake_if_parked();
        }
    }

    // ---- the owner's side

    /// Takes the baton.
    #[inline]
    pub(crate) fn acquire(&self) {
        self.baton.acquire(self);
    }

    /// Gives up the baton. The owner keeps it for a quick return. If ZMQ_FD is in use, it goes to
    /// the I/O thread at once.
    #[inline]
    pub(crate) fn release(&self) {
        if self.inbox.is_exposed() {
            self.baton.release_armed(self);
        } else {
            self.baton.release(self.keeper.tick_on(), self);
        }
    }

    /// Reads the available bytes, for an owner for which the I/O thread listens. Returns false if
    /// the I/O thread is reading now.
    pub(crate) fn glance(&self) -> bool {
        let glances = self.baton.glance();
        if glances {
            self.read_ready();
            self.baton.end_glance(self);
        }
        glances
    }

    /// Gives the baton to the I/O thread, which listens from now on. For an owner that waits for a
    /// notification.
    pub(crate) fn hand_over(&self) {
        self.baton.release_armed(self);
    }

    /// Holder: reads every ready connection once. The inbox announces readable pipes. Returns true
    /// if a complete message arrived or a connection was lost.
    pub(crate) fn read_ready(&self) -> bool {
        self.read_each_ready(Reader::Any)
    }

    /// The owner, as holder: like `read_ready`, but adds the readable pipes to `arrived`, which is
    /// cheaper than the inbox. All other news still comes through the inbox. While there are no
    /// bytes, the read is tried again, up to `times` times.
    pub(crate) fn read_own(&self, arrived: &mut Vec<u32>, times: u32) -> bool {
        self.read_each_ready(Reader::Owner(arrived, times))
    }

    fn read_each_ready(&self, mut by: Reader<'_>) -> bool {
        let mut members = lock(&self.members);
        members.partly = false;
        if members.count == 0 {
            return false;
        }
        // The set reports the end of a silent member once, and the member must then be removed from
        // the set.
        let is_only = members.slots.len() == 1;
        if is_only && members.slots[0].as_ref().is_some_and(|member| !member.silent) {
            let own = matches!(by, Reader::Owner(..));
            let news = self.read_unless_muted(&mut members, 0, by);
            if own && news {
                self.note_own_read(&mut members);
            }
            return news;
        }
        let mut events = std::mem::take(&mut members.events);
        let mut news = false;
        for _ in 0..by.times() {
            if self.reactor.wait(&mut events, Some(Duration::ZERO)).is_err() {
                events.clear();
            }
            if !events.is_empty() || self.inbox.has_pending() {
                break;
            }
        }
        members.partly = !events.is_empty();
        for event in &events {
            let index = event.token.0 as usize;
            if event.token == UNREAD {
                for index in 0..members.slots.len() {
                    if members.is_unread_reported(index) {
                        news |= self.read_unless_muted(&mut members, index, by.once());
                    }
                }
            } else if members.slots.get(index).is_some_and(|slot| slot.is_some()) {
                news |= self.read_unless_muted(&mut members, index, by.once());
            }
        }
        members.events = events;
        news
    }

    /// Reads a ready member. A muted member is silenced instead, so that the set does not report it
    /// again.
    fn read_unless_muted(&self, members: &mut Members, index: usize, by: Reader<'_>) -> bool {
        match members.slots[index].as_mut() {
            Some(member) if member.muted => {
                if !std::mem::replace(&mut member.silent, true) {
                    members.rearm(&self.reactor, index);
                }
                false
            }
            _ => self.read_member(members, index, by),
        }
    }

    fn read_member(&self, members: &mut Members, index: usize, by: Reader<'_>) -> bool {
        let apart = members.apart;
        let Some(member) = members.slots[index].as_mut() else { return false };
        match read_or_lose(&member.connection, by) {
            ControlFlow::Break(()) => {
                self.drop_member(members, index);
                true
            }
            ControlFlow::Continue(ReadOutcome::Full { published }) => {
                member.muted = true;
                published
            }
            ControlFlow::Continue(took) => {
                if !apart && member.stream.reads_from_memory() {
                    self.listen_on(members, index, took);
                }
                members.partly |= took == ReadOutcome::Bytes { published: false };
                took == ReadOutcome::Bytes { published: true }
            }
        }
    }

    /// Keeps a member registered in the set after a read. Its descriptor reports new bytes and
    /// unread bytes.
    fn listen_on(&self, members: &mut Members, index: usize, took: ReadOutcome) {
        let Some(member) = members.slots[index].as_mut() else { return };
        let listens = match took {
            // A report without bytes: a late bell, or the end.
            ReadOutcome::Nothing => member.stream.request_wakeup(),
            _ => member.stream.request_wakeup_again(),
        };
        if listens == member.eager {
            member.eager = !listens;
            members.update_unread_report(&self.reactor, index);
        }
    }

    /// Allows the member to be read again.
    fn unmute(&self, members: &mut Members, index: usize) {
        let Some(member) = members.slots[index].as_mut() else { return };
        member.muted = false;
        if std::mem::take(&mut member.silent) {
            members.rearm(&self.reactor, index);
        }
    }

    /// Holder, after `read_ready` has found no message: true if another read may find one at once.
    pub(crate) fn is_partly_read(&self) -> bool {
        lock(&self.members).partly
    }

    /// Holder: returns the object to sleep on until a connection can be read.
    pub(crate) fn sleep_on(&self) -> Sleep {
        let members = lock(&self.members);
        match (members.count, members.slots.first()) {
            (0, _) => Sleep::Nothing,
            (1, Some(Some(member))) if members.slots.len() == 1 => {
                if member.muted {
                    return Sleep::Nothing;
                }
                // A registered member already listens. A further `listen` would take away the bell
                // that the set must report.
                let listens = if members.apart { member.stream.request_wakeup() } else { !member.eager };
                if listens { Sleep::Stream(member.stream.clone()) } else { Sleep::NotNow }
            }
            _ => Sleep::Set,
        }
    }

    /// Holder: returns the descriptor that is readable when `read_ready` would succeed.
    pub(crate) fn poll_fd(&self) -> Option<RawFd> {
        let mut members = lock(&self.members);
        if members
            .slots
            .first()
            .is_some_and(|member| member.as_ref().is_some_and(|member| member.stream.reads_from_memory()))
        {
            // Its descriptor alone does not report bytes in shared memory.
            self.register_all(&mut members);
            return (members.count > 0).then(|| self.raw_fd());
        }
        match (members.count, members.slots.first()) {
            (0, _) => None,
            (1, Some(Some(member))) if members.slots.len() == 1 => {
                (!member.muted).then(|| member.stream.as_fd().as_raw_fd())
            }
            _ => Some(self.raw_fd()),
        }
    }

    // ---- the I/O thread's side

    /// Called when the registration has fired.
    pub(crate) fn io_ready(&self) {
        if self.baton.io_event() {
            self.io_read();
        }
    }

    /// I/O thread: called once a tick.
    pub(crate) fn io_tick(&self) -> Tick {
        let tick = self.baton.io_tick();
        if tick == Tick::Taken {
            self.io_read();
        }
        tick
    }

    fn io_read(&self) {
        if !self.baton.io_wanted() {
            self.read_ready();
        }
        self.baton.io_leave(self);
    }

    /// True if the I/O thread is reading, or is about to.
    #[cfg(test)]
    pub(crate) fn io_reads(&self) -> bool {
        self.baton.io_reads()
    }

    /// True if the owner waits for the I/O thread to stop reading.
    #[cfg(test)]
    pub(crate) fn io_wanted(&self) -> bool {
        self.baton.io_wanted()
    }

    /// Returns the driver's name for this set, once there is one.
    pub(crate) fn token(&self) -> Option<Token> {
        self.registration.name().map(Token)
    }

    /// Returns the raw descriptor to sleep on for [`Sleep::Set`].
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.reactor.as_fd().as_raw_fd()
    }
}
