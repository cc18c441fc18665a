//! Waiting as a task: an asynchronous caller waits for a socket without blocking its thread.
//!
//! This is the wait rule of `wait`, in steps: check, spin for a moment (one turn each time the task
//! is polled), then rest. The I/O thread wakes a resting task and reads for it. If the runtime can
//! watch descriptors, the task instead keeps the read baton and reads itself when a descriptor
//! becomes readable. So no switch between threads is necessary. The task keeps the baton like an
//! owner that is away. If the task does not return within two ticks (no data arrives, its runtime
//! is busy or stopped, or the wait is no longer polled), the I/O thread reads.

use std::io;
use std::task::Waker;

use super::{PollEvents, Socket};
use crate::conn::reader::ReadSet;
use crate::error::Error;
use crate::idle::{self, Spin, SpinOutcome};
use crate::pipe::Cork;
use tautline_io::clock;
use tautline_io::fd::OwnedFd;
use tautline_proto::SocketType;

/// Progress of a task's wait. Each wait has its own value.
#[derive(Debug, Default)]
pub struct WaitState(WaitPhase);

#[derive(Debug, Default)]
enum WaitPhase {
    #[default]
    New,
    Spinning(Spin),
    /// The wait began at that tick.
    Sleeping(u64),
}

/// The party that watches the connections while the task rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// The I/O thread.
    IoThread,
    /// The task's runtime watches [`Socket::descriptors`].
    Descriptors,
}

/// Next step of a task's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "nothing wakes a task that overlooks `CheckAgain`"]
pub enum WaitStep {
    /// Retry the operation. The [`WaitState`] is new again, for the next wait.
    Ready,
    /// Call [`Socket::poll_ready`] again after the other tasks have had a turn, without a wake-up:
    /// the wait spins, or it has read only a part of the available data.
    CheckAgain,
    /// Call [`Socket::poll_ready`] again after a wake-up.
    Sleeping,
}

impl Socket {
    /// Continues the wait of a task whose operation in `events` (of `POLLIN`, `POLLOUT`) has failed
    /// with [`Error::Again`]. POLLOUT means the message that was refused.
    ///
    /// After [`WaitStep::Sleeping`], `waker` is woken when a retry is worthwhile; with
    /// [`WaitMode::Descriptors`], one of the descriptors becomes readable. [`WaitStep::CheckAgain`]
    /// promises neither.
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn poll_ready(
        &mut self,
        events: i16,
        patience: &mut WaitState,
        rest: WaitMode,
        waker: &Waker,
    ) -> Result<WaitStep, Error> {
        let wanted = PollEvents::of(events);
        if patience.is_sleeping() {
            self.end_sleep();
        }
        let set = self.set.as_ref().filter(|_| wanted.read).cloned();
        if let Some(set) = &set {
            set.acquire();
        }
        let outcome = self.spin_or_sleep(wanted, patience, set.as_deref(), rest, waker);
        match (&set, &outcome, rest) {
            (Some(set), Ok(WaitStep::Sleeping), WaitMode::IoThread) => set.hand_over(),
            (Some(set), ..) => set.release(),
            (None, ..) => {}
        }
        let step = outcome?;
        if step == WaitStep::Ready && self.inbox.has_pending() {
            // The retried operation would process the news itself; the wait of the next operation
            // starts anew.
            self.process_news()?;
        }
        Ok(step)
    }

    /// Holder of the baton: checks, spins one turn, or prepares the rest.
    fn spin_or_sleep(
        &mut self,
        wanted: PollEvents,
        patience: &mut WaitState,
        set: Option<&ReadSet>,
        rest: WaitMode,
        waker: &Waker,
    ) -> Result<WaitStep, Error> {
        if let WaitPhase::New = patience.0 {
            if self.check_ready(wanted, set) {
                return Ok(WaitStep::Ready);
            }
            self.pipes.flush();
            patience.0 =
                Spin::begin().map_or_else(|| WaitPhase::Sleeping(clock::ticks()), WaitPhase::Spinning);
        }
        if let WaitPhase::Spinning(spin) = &patience.0 {
            match spin.step(&mut |times| Ok::<_, Error>((0..times).any(|_| self.check_ready(wanted, set))))? {
                SpinOutcome::Ready => {
                    patience.0 = WaitPhase::New;
                    return Ok(WaitStep::Ready);
                }
                SpinOutcome::Continue => return Ok(WaitStep::CheckAgain),
                SpinOutcome::Sleep => patience.0 = WaitPhase::Sleeping(spin.start()),
            }
        } else if self.check_ready(wanted, set) {
            if let WaitPhase::Sleeping(since) = std::mem::take(&mut patience.0) {
                idle::record_sleep(clock::ticks().wrapping_sub(since));
            }
            return Ok(WaitStep::Ready);
        }
        if rest == WaitMode::Descriptors && set.is_some_and(ReadSet::is_partly_read) {
            // An edge-triggered runtime may report only newly readable data, not unread data. And
            // the I/O thread may read the unread data before the runtime polls the descriptors.
            return Ok(WaitStep::CheckAgain);
        }
        self.inbox.waker().set_task(Some(waker));
        self.pipes.flush();
        if wanted.write {
            // Asks inproc peers to signal room. Before the barrier in `prepare_park`.
            self.pipes.full_streams();
        }
        let watched = if wanted.write { self.pipes.has_inproc() } else { self.pipes.peers_check_sleep() };
        let parked =
            if watched { self.inbox.prepare_park() } else { self.inbox.prepare_park_without_barrier() };
        // Inproc peers may have acted before they could see that we rest.
        if !parked || self.is_ready(wanted) {
            self.end_sleep();
            patience.0 = WaitPhase::New;
            return Ok(WaitStep::Ready);
        }
        Ok(WaitStep::Sleeping)
    }

    /// Reads the available data. Returns true if the state has changed.
    fn check_ready(&mut self, wanted: PollEvents, set: Option<&ReadSet>) -> bool {
        set.is_some() && self.read_connections(1) || self.inbox.has_pending() || self.is_ready(wanted)
    }

    fn is_ready(&mut self, wanted: PollEvents) -> bool {
        let Socket { pattern, pipes, .. } = self;
        wanted.read && pattern.can_recv(pipes) || wanted.write && pattern.can_send_refused(pipes)
    }

    fn end_sleep(&mut self) {
        self.inbox.finish_park();
        self.inbox.waker().set_task(None);
        self.inbox.waker().clear();
    }

    /// Ends a wait that will not be continued: the I/O thread serves the connections again.
    pub fn stop_waiting(&mut self, patience: WaitState) {
        if !patience.is_sleeping() {
            return;
        }
        self.end_sleep();
        if let Some(set) = &self.set {
            set.acquire();
            set.release();
        }
    }

    /// Writes the bytes that the flush rule has left queued. For a caller that will be silent and
    /// does not wait for this socket.
    pub fn flush(&mut self) {
        self.pipes.flush();
    }

    /// Ends a batch after a [`Socket::cork`], in place of [`Socket::flush`]: writes the messages
    /// sent since. If such batches follow each other quickly, it lets them grow into larger writes,
    /// which leave within microseconds.
    pub fn end_batch(&mut self) {
        self.pipes.end_batch();
    }

    /// Stops the calling thread from writing the messages that it sends by this socket, until the
    /// cork is dropped. The thread still writes if there is much data, or if it waits for the
    /// socket. [`Socket::flush`] or [`Socket::end_batch`] must follow. The I/O thread may still
    /// write messages to subscribers.
    pub fn cork(&self) -> Cork {
        self.pipes.cork()
    }

    /// The type of the socket.
    pub fn socket_type(&self) -> SocketType {
        self.socket_type
    }

    /// The descriptors that a runtime watches for readability for a resting task
    /// ([`WaitMode::Descriptors`]): the wake descriptor and, if there are I/O threads, the set of
    /// all connections. The descriptors are copies, which stay open as long as the caller keeps
    /// them.
    ///
    /// # Errors
    /// Fails if there are no descriptors left.
    pub fn descriptors(&mut self) -> io::Result<Vec<OwnedFd>> {
        // Connections may be added later, and the runtime does not ask again.
        self.open_set()?;
        let mut all = vec![self.inbox.waker().descriptor()?.as_fd().try_clone_to_owned()?];
        if let Some(set) = &self.set {
            all.push(set.watched_fd().try_clone_to_owned()?);
        }
        Ok(all)
    }
}

impl WaitState {
    /// True if the wait has reached the state in which other threads wake the task.
    pub fn is_sleeping(&self) -> bool {
        matches!(self.0, WaitPhase::Sleeping(_))
    }
}

#[cfg(test)]
mod tests;
