//! The socket: a pattern, its pipes, and the application's calls on them.
//!
//! A socket has one owner at a time, the thread that calls it. Moving it to another thread needs
//! the usual full fence. The owner and an I/O thread serve its connections. The I/O thread reports
//! events to the owner through the inbox.

mod create;
mod datagrams;
mod endpoints;
mod explain;
mod monitor;
mod news;
mod options;
mod peer_list;
mod peers;
mod reports;
mod sharing;
pub(crate) mod signals;
mod statistics;
mod taps;
mod task;
mod topic_keeper;
mod topics;

pub use explain::endpoint_fault;
pub use sharing::Closer;
pub use task::{WaitMode, WaitState, WaitStep};
pub use topic_keeper::{TopicAuthorizer, TopicRequest};
pub use topics::authorize_topics;

use std::time::{Duration, Instant};
use tautline_timing::rules::{Rule, is_disabled};

use crate::conn::SocketInbox;
use crate::conn::reader::ReadSet;
use crate::context::{Context, check_not_forked};
use crate::driver::{Site, Ticket};
use crate::error::Error;
use crate::host::SocketReport;
use crate::idle::Pause;
use crate::monitor::EventDispatcher;
use crate::pattern::{Received, Routed, Sent};
use crate::pipe::{Body, Part, Pipe, PipeId, SocketPipes, Target};
use crate::wait::{self, Waiter};
use endpoints::EndpointEntry;
use signals::Found;
use tautline_io::net::Stream;
use tautline_io::thread;
use tautline_proto::SocketType;
use tautline_queue::INPROC_BY_REFERENCE;
use tautline_queue::message::Message;
use tautline_queue::sync::{Arc, barrier_heavy};

/// Flags of a send or receive, as in `zmq.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub i32);

impl Flags {
    /// Block; a single or last part.
    pub const NONE: Flags = Flags(0);
    /// ZMQ_DONTWAIT: fail with [`Error::Again`] instead of blocking.
    pub const DONTWAIT: Flags = Flags(1);
    /// ZMQ_SNDMORE: more parts of the same message follow.
    pub const MORE: Flags = Flags(2);

    #[inline]
    pub(crate) fn dontwait(self) -> bool {
        self.0 & 1 != 0
    }

    #[inline]
    pub(crate) fn more(self) -> bool {
        self.0 & 2 != 0
    }
}

/// A ZeroMQ socket, zmq_socket(3).
pub struct Socket {
    inbox: Arc<SocketInbox>,
    pattern: Routed,
    pipes: SocketPipes,
    receive_more: bool,
    /// Numbers of parts sent and received, and the state that waits derive from them.
    sent: u64,
    received: u64,
    pause: Pause,
    found: Found,
    /// Pipes whose peer is gone and that still have unread messages.
    ending: Vec<PipeId>,
    /// The I/O thread's side. `None` in a context without I/O threads.
    site: Option<Arc<Site>>,
    /// The connections to read. `None` until the first one is possible.
    set: Option<Arc<ReadSet>>,
    context: Context,
    socket_type: SocketType,
    endpoints: Vec<EndpointEntry>,
    last_endpoint: Arc<str>,
    events: Arc<EventDispatcher>,
    /// Error of every call. Set when the context is terminated or another thread closes the socket.
    over: Option<Error>,
    /// Number of lost and re-established connections to peers that we connect to.
    reconnects: u64,
    /// The report for tools, if the socket is observed.
    report: Option<Arc<dyn SocketReport>>,
    /// True if a tool wants copies of the messages.
    tapped: bool,
    id: u64,
    _ticket: Ticket,
}

/// The events that a wait is for.
#[derive(Clone, Copy)]
pub(crate) struct PollEvents {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl PollEvents {
    /// Converts ZMQ_POLLIN and ZMQ_POLLOUT.
    pub(crate) fn of(events: i16) -> Self {
        PollEvents { read: events & 1 != 0, write: events & 2 != 0 }
    }
}

impl Socket {
    /// Sends a message part that is copied from `body`, zmq_send(3).
    ///
    /// # Errors
    /// [`Error::Again`] with [`Flags::DONTWAIT`] or after ZMQ_SNDTIMEO; [`Error::NotSupported`] and
    /// [`Error::State`] by socket type; [`Error::HostUnreachable`] for ROUTER with
    /// ZMQ_ROUTER_MANDATORY; [`Error::Terminated`]; [`Error::Interrupted`].
    #[inline(always)]
    pub fn send(&mut self, body: &[u8], flags: Flags) -> Result<(), Error> {
        if self.send_by_route(body, flags) {
            return Ok(());
        }
        let patient = !flags.dontwait();
        self.send_part(Part { body: Body::Borrowed(body), more: flags.more(), patient }, flags)
    }

    /// Sends a message part, zmq_msg_send(3). On success `message` is left empty, on failure it is
    /// unchanged.
    ///
    /// # Errors
    /// The errors of [`Socket::send`].
    #[inline(always)]
    pub fn send_message(&mut self, message: &mut Message, flags: Flags) -> Result<(), Error> {
        let sent = match message.shorter_than(INPROC_BY_REFERENCE) {
            Some(bytes) => self.send_by_route(bytes, flags),
            None => self.send_owned_by_route(message, flags),
        };
        if !sent {
            let patient = !flags.dontwait();
            self.send_part(Part { body: Body::Owned(message), more: flags.more(), patient }, flags)?;
        }
        // If the body was copied and not taken, release it here.
        message.clear();
        Ok(())
    }

    /// Sends a short last part or a routing id by the current route.
    #[inline(always)]
    fn send_by_route(&mut self, bytes: &[u8], flags: Flags) -> bool {
        let sent = !self.inbox.has_pending()
            && if flags.more() {
                self.pattern.routes.try_begin_addressed(&mut self.pipes, bytes)
            } else {
                self.pattern.routes.try_send_short(&mut self.pipes, bytes, !flags.dontwait())
            };
        if sent {
            self.sent = self.sent.wrapping_add(1);
        }
        sent
    }

    /// Sends a body that goes by reference to an inproc peer, by the current route.
    #[inline(never)]
    fn send_owned_by_route(&mut self, message: &mut Message, flags: Flags) -> bool {
        let sent = !flags.more()
            && !self.inbox.has_pending()
            && self.pattern.routes.send_owned(&mut self.pipes, message, !flags.dontwait());
        if sent {
            self.sent = self.sent.wrapping_add(1);
        }
        sent
    }

    /// Sends a part that [`Socket::send_by_route`] did not send: long parts, and parts for which
    /// the pattern must be called.
    #[inline(never)]
    fn send_part(&mut self, mut part: Part<'_>, flags: Flags) -> Result<(), Error> {
        if self.inbox.has_pending() {
            self.process_news()?;
        } else if self.pattern.routes.send(&mut self.pipes, &mut part)? {
            self.sent = self.sent.wrapping_add(1);
            return Ok(());
        }
        if self.pipes.take_due_read() {
            self.read_due()?;
        }
        let result = if self.tapped {
            self.send_tapped(&mut part, flags)
        } else {
            self.send_by_pattern(&mut part, flags)
        };
        self.sent = self.sent.wrapping_add(1);
        result.map(|_| ())
    }

    /// Sends a part by the pattern, and blocks if the part must wait.
    #[inline(always)]
    fn send_by_pattern(&mut self, part: &mut Part<'_>, flags: Flags) -> Result<Sent, Error> {
        let mut result = self.pattern.send(&mut self.pipes, part);
        if result == Err(Error::Again) {
            result = self.send_waiting(part, flags);
            if self.tapped {
                // The tap may have been attached during the wait.
                self.pattern.routes.end();
            }
        }
        if self.pipes.has_closing() {
            self.remove_closed_pipes();
        }
        result
    }

    #[cold]
    fn send_waiting(&mut self, part: &mut Part<'_>, flags: Flags) -> Result<Sent, Error> {
        if flags.dontwait() && self.inbox.is_exposed() {
            // Reset the signal before the last check, so that later room signals again.
            self.inbox.waker().clear();
        }
        if flags.dontwait() && self.pipes.take_burst_refused() {
            // There is room already, so no event will announce it to a program that waits on
            // ZMQ_FD.
            self.inbox.wake_if_parked();
            return Err(Error::Again);
        }
        let deadline = self.deadline(flags, self.pipes.options.send_timeout);
        loop {
            match self.pattern.send(&mut self.pipes, part) {
                Err(Error::Again) => match self.wait(PollEvents { read: false, write: true }, deadline) {
                    Err(Error::Again) if self.request_room() => {
                        return self.pattern.send(&mut self.pipes, part);
                    }
                    Err(Error::Again) => {
                        self.found.lacks_room = true;
                        return Err(Error::Again);
                    }
                    waited => waited?,
                },
                result => return result,
            }
        }
    }

    /// Handles a send that found no room, because the program may now wait on ZMQ_FD: asks inproc
    /// peers with full queues to signal when they have made room. Returns true if there is room
    /// now.
    fn request_room(&mut self) -> bool {
        if !self.inbox.is_exposed() || !self.pipes.has_inproc() {
            return false;
        }
        if self.pipes.ask_inproc_for_room() {
            // Store the request for room, then check the queues again. Pairs with the light barrier
            // in `InprocEnd::notify_room`.
            barrier_heavy();
        }
        // Check even if no peer was asked: a queue that the caller found full may have been read
        // since.
        self.pattern.can_send(&mut self.pipes)
    }

    /// Receives a message part into `buffer`, zmq_recv(3). A longer part is truncated. Returns the
    /// whole length.
    ///
    /// # Errors
    /// [`Error::Again`] with [`Flags::DONTWAIT`] or after ZMQ_RCVTIMEO; [`Error::NotSupported`] and
    /// [`Error::State`] by socket type; [`Error::Terminated`]; [`Error::Interrupted`].
    #[inline(always)]
    pub fn recv(&mut self, buffer: &mut [u8], flags: Flags) -> Result<usize, Error> {
        match self.recv_by_route(|pipe| pipe.recv_last_into(buffer)) {
            Some(len) => Ok(len),
            None => self.recv_part(Target::Buffer(buffer), flags),
        }
    }

    /// Receives a message part, zmq_msg_recv(3), and releases the former content of `message`.
    /// Returns its length.
    ///
    /// # Errors
    /// The errors of [`Socket::recv`].
    #[inline(always)]
    pub fn recv_message(&mut self, message: &mut Message, flags: Flags) -> Result<usize, Error> {
        match self.recv_by_route(|pipe| pipe.recv_last_message(message)) {
            Some(len) => Ok(len),
            None => self.recv_part(Target::Message(message), flags),
        }
    }

    /// Receives the last part of a message by the current route, if the part is available.
    #[inline(always)]
    fn recv_by_route(&mut self, take: impl FnOnce(&mut Pipe) -> Option<usize>) -> Option<usize> {
        if self.inbox.has_pending() {
            return None;
        }
        let len = self.pattern.routes.recv(&mut self.pipes, take)?;
        self.receive_more = false;
        self.received = self.received.wrapping_add(1);
        Some(len)
    }

    /// Receives a part that [`Socket::recv_by_route`] did not receive: routing ids, and parts for
    /// which the pattern must be called.
    #[inline(never)]
    fn recv_part(&mut self, mut target: Target<'_>, flags: Flags) -> Result<usize, Error> {
        let target = &mut target;
        if self.inbox.has_pending() {
            self.process_news()?;
        } else if let Some(received) = self.pattern.routes.recv_name(&mut self.pipes, target) {
            self.receive_more = received.more;
            self.received = self.received.wrapping_add(1);
            return Ok(received.len);
        }
        let mut result = self.pattern.recv(&mut self.pipes, target);
        if result == Err(Error::Again) {
            result = self.recv_waiting(target, flags);
            self.call_again();
        }
        if self.pipes.has_closing() || !self.ending.is_empty() {
            self.remove_closed_pipes();
            self.detach_ended();
            // The caller that reads a peer's last message learns of its end at once.
            self.pattern.routes.end();
        }
        if self.tapped {
            self.offer_received(target, &result);
        }
        if result == Err(Error::NoMemory) && !self.pipes.receiving {
            // If the message had more parts, they are lost together with the peer.
            self.receive_more = false;
        }
        let Received { len, more, .. } = result?;
        self.receive_more = more;
        self.received = self.received.wrapping_add(1);
        Ok(len)
    }

    #[inline(never)]
    fn recv_waiting(&mut self, target: &mut Target<'_>, flags: Flags) -> Result<Received, Error> {
        let deadline = self.deadline(flags, self.pipes.options.receive_timeout);
        loop {
            if flags.dontwait() {
                self.read_available()?;
            } else if !self.pauses() {
                self.wait(PollEvents { read: true, write: false }, deadline)?;
            }
            match self.pattern.recv(&mut self.pipes, target) {
                Err(Error::Again) if !flags.dontwait() => {}
                result => return result,
            }
        }
    }

    /// Signals ZMQ_FD again if the pattern has unfinished work and the program may wait on ZMQ_FD.
    /// The program then calls again.
    fn call_again(&mut self) {
        if self.inbox.is_exposed() && self.pattern.has_more_to_do() {
            self.inbox.wake_if_parked();
        }
    }

    /// Pauses for a moment before a wait for inproc messages, if the pause lets more of them
    /// arrive. Returns true if messages have arrived.
    fn pauses(&mut self) -> bool {
        let Socket { pause, pipes, received, sent, .. } = self;
        pipes.has_inproc()
            && !is_disabled(Rule::Pause)
            && pause.pause_before_wait(*received, *sent, || pipes.arrival_count())
    }

    /// Holder of the baton: reads the available data and processes it. Returns true if the state
    /// has changed. If no data is available, tries again, up to `times` times.
    fn read_connections(&mut self, times: u32) -> bool {
        let Socket { set: Some(set), found: Found { arrived, .. }, .. } = self else { return false };
        let changed = set.read_own(arrived, times);
        if !arrived.is_empty() {
            self.note_arrived();
        }
        changed
    }

    /// The time until which a call may block. `None` means for ever.
    fn deadline(&self, flags: Flags, timeout: Option<Duration>) -> Option<Instant> {
        if flags.dontwait() {
            Some(Instant::now())
        } else {
            timeout.and_then(|time| Instant::now().checked_add(time))
        }
    }

    /// Reads the data that the network has, without blocking. If the program waits on ZMQ_FD, the
    /// I/O thread listens all the time, because taking the baton and handing it back for every
    /// check would cost four system calls.
    fn read_available(&mut self) -> Result<(), Error> {
        if self.inbox.is_exposed() {
            let receives = self.site.as_ref().is_some_and(|site| site.kind.receives);
            let set = self.set.as_ref().filter(|_| receives);
            self.inbox.waker().coalesce_during(|| {
                if let Some(set) = set {
                    set.glance();
                }
            });
        } else if let Some(set) = self.set.clone() {
            set.acquire();
            self.read_connections(1);
            set.release();
        }
        if self.inbox.has_pending() { self.process_news() } else { Ok(()) }
    }

    /// Waits until the state has changed, and processes the news.
    pub(crate) fn wait(&mut self, wanted: PollEvents, deadline: Option<Instant>) -> Result<(), Error> {
        check_not_forked(&self.context)?;
        let mut waiting = Waiting { socket: self, wanted, refused: wanted.write };
        let waited = wait::wait(&mut [&mut waiting], &mut [], deadline);
        if self.inbox.has_pending() {
            self.process_news()?;
        }
        waited
    }

    // ---- readiness, for polling

    /// Processes news. With `pull`, and if `read` is wanted and no message is available yet, also
    /// reads the network. Returns the operations that are possible now.
    pub(crate) fn refresh(&mut self, wanted: PollEvents, pull: bool) -> Result<PollEvents, Error> {
        check_not_forked(&self.context)?;
        if self.inbox.has_pending() {
            self.process_news()?;
        }
        if pull && wanted.read && !self.pattern.can_recv(&mut self.pipes) {
            self.read_available()?;
        }
        let read = wanted.read && self.pattern.can_recv(&mut self.pipes);
        let write = wanted.write && self.pattern.can_send(&mut self.pipes);
        self.remove_closed_pipes();
        self.detach_ended();
        Ok(PollEvents { read, write })
    }

    /// Returns this socket as an object to wait for.
    pub(crate) fn waiter(&mut self, wanted: PollEvents) -> Waiting<'_> {
        Waiting { socket: self, wanted, refused: false }
    }

    // ---- the end

    /// Closes the socket, zmq_close(3). Returns at once. Queued messages are still sent for at most
    /// ZMQ_LINGER, and the context waits for that.
    pub fn close(self) {
        drop(self);
    }

    fn shut(&mut self) {
        let linger = self.pipes.options.linger;
        if let Some(report) = &self.report {
            report.mark_closed();
        }
        for entry in std::mem::take(&mut self.endpoints) {
            self.close_bound(&entry);
        }
        for id in self.pipes.all() {
            if let Some(mut pipe) = self.pipes.remove(id) {
                pipe.outgoing.rollback();
            }
        }
        if let Some(set) = self.set.take() {
            set.acquire();
            set.clear();
        }
        // A monitor ends with the site, because lingering connections still emit events.
        self.events.release();
        let site = self.site.take();
        if site.is_none() {
            self.events.listen(0, None);
        }
        if let Some(site) = site
            && site.is_in_use()
        {
            if linger != Some(Duration::ZERO) {
                self.context.remember_lingering(&site);
            }
            site.close(linger);
        }
        self.context.remove_socket(self.id);
        self.inbox.close();
        // Peers may hold the inbox for a long time, so release its waker now.
        self.inbox.waker().release();
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A forked child shares the parent's descriptors and reactors, and must not touch them.
        if self.context.is_foreign(thread::process_id()) {
            for id in self.pipes.all() {
                std::mem::forget(self.pipes.remove(id));
            }
            std::mem::forget(self.set.take());
            std::mem::forget(self.site.take());
            std::mem::forget(std::mem::take(&mut self.endpoints));
            std::mem::forget(self.inbox.clone());
            return;
        }
        self.shut();
    }
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket")
            .field("type", &self.socket_type.name())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A socket in a wait.
pub(crate) struct Waiting<'a> {
    socket: &'a mut Socket,
    wanted: PollEvents,
    /// True for a blocking send: it waits for room for the refused part, not for any room
    /// (ZMQ_POLLOUT).
    refused: bool,
}

impl Waiter for Waiting<'_> {
    fn flush(&mut self) {
        self.socket.pipes.flush();
    }

    fn ready(&mut self) -> bool {
        let Socket { pattern, pipes, .. } = &mut *self.socket;
        self.wanted.read && pattern.can_recv(pipes)
            || self.wanted.write
                && if self.refused { pattern.can_send_refused(pipes) } else { pattern.can_send(pipes) }
    }

    fn has_more_to_do(&self) -> bool {
        self.wanted.read && self.socket.pattern.has_more_to_do()
    }

    fn inbox(&self) -> &SocketInbox {
        &self.socket.inbox
    }

    fn read_set(&self) -> Option<&ReadSet> {
        self.socket.set.as_deref().filter(|_| self.wanted.read)
    }

    fn read(&mut self, times: u32) -> bool {
        self.wanted.read && self.socket.read_connections(times)
    }

    fn only_reads(&self) -> bool {
        self.wanted.read && !self.wanted.write && !self.has_inproc()
    }

    fn has_inproc(&self) -> bool {
        self.socket.pipes.has_inproc()
    }

    fn needs_sleep_barrier(&self) -> bool {
        // Room is made by a look.
        if self.wanted.write { self.has_inproc() } else { self.socket.pipes.peers_check_sleep() }
    }

    fn full_streams(&mut self) -> Vec<Arc<Stream>> {
        if self.wanted.write { self.socket.pipes.full_streams() } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests;
