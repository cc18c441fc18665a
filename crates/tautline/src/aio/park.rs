//! How a task sleeps: either the engine's I/O thread wakes it, or tokio, which watches the socket's
//! descriptors.

use std::task::{Context, Poll};

use tautline_core::{self as core, WaitMode, WaitState, WaitStep};

/// Result of a wait in the engine.
type Waited = std::result::Result<(), core::Error>;

/// Place where the tasks of one socket wait.
#[derive(Debug, Default)]
pub(super) struct Park {
    /// Progress of the current wait.
    patience: WaitState,
    #[cfg(all(feature = "tokio", unix))]
    reactor: tokio_reactor::ReactorFds,
}

impl Park {
    /// Waits until an operation that needs `events` may succeed.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut core::Socket,
        events: i16,
    ) -> Poll<Waited> {
        #[cfg(all(feature = "tokio", unix))]
        if self.reactor.register_with_runtime(socket) {
            return self.poll_reactor(cx, socket, events);
        }
        let step = socket.poll_ready(events, &mut self.patience, WaitMode::IoThread, cx.waker())?;
        finish_poll(cx, step)
    }

    #[cfg(all(feature = "tokio", unix))]
    fn poll_reactor(&mut self, cx: &mut Context<'_>, socket: &mut core::Socket, events: i16) -> Poll<Waited> {
        loop {
            let step = socket.poll_ready(events, &mut self.patience, WaitMode::Descriptors, cx.waker())?;
            // Clear the readiness before the socket checks again, so that no event in between is
            // missed.
            if step != WaitStep::Sleeping || !self.reactor.poll_clear(cx) {
                return finish_poll(cx, step);
            }
        }
    }

    /// True if a wait is in progress and has not been abandoned.
    #[cfg(feature = "futures")]
    pub(super) fn is_waiting(&self) -> bool {
        self.patience.is_sleeping()
    }

    /// Abandons the current wait.
    pub(super) fn cancel_wait(&mut self, socket: &mut core::Socket) {
        socket.stop_waiting(std::mem::take(&mut self.patience));
    }
}

/// Converts the step of a wait to the result of a future. The runtime polls a future again only
/// after a wake-up.
fn finish_poll(cx: &mut Context<'_>, step: WaitStep) -> Poll<Waited> {
    match step {
        WaitStep::Ready => Poll::Ready(Ok(())),
        WaitStep::CheckAgain => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        WaitStep::Sleeping => Poll::Pending,
    }
}

#[cfg(all(feature = "tokio", unix))]
mod tokio_reactor {
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll};

    use tautline_core as core;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::runtime::{Handle, Id};

    /// The socket's descriptors in tokio's reactor.
    #[derive(Debug, Default)]
    pub(super) struct ReactorFds {
        fds: Vec<AsyncFd<OwnedFd>>,
        /// Runtime of that reactor.
        runtime: Option<Id>,
    }

    // The function is deprecated because it accepts descriptors that may be closed while they are
    // registered. An `OwnedFd` rules that out. Its successor is unsafe to call, and newer than the
    // tokio version that this crate requires.
    #[allow(deprecated)]
    fn register(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::with_interest(fd, Interest::READABLE)
    }

    impl ReactorFds {
        /// Registers the descriptors with the current runtime, if necessary. False outside of
        /// tokio, or if the system has no descriptors left.
        pub(super) fn register_with_runtime(&mut self, socket: &mut core::Socket) -> bool {
            let Ok(handle) = Handle::try_current() else { return false };
            let runtime = Some(handle.id());
            if self.fds.is_empty() || self.runtime != runtime {
                // The runtime that the task has left may not run any more.
                self.fds.clear();
                let registered = socket.descriptors().and_then(|all| all.into_iter().map(register).collect());
                self.fds = registered.unwrap_or_default();
                self.runtime = runtime;
            }
            !self.fds.is_empty()
        }

        /// True if a descriptor has become readable; its readiness is cleared. Otherwise the task
        /// is woken when a descriptor becomes readable.
        pub(super) fn poll_clear(&mut self, cx: &mut Context<'_>) -> bool {
            let mut any = false;
            let mut lost = false;
            for fd in &self.fds {
                match fd.poll_read_ready(cx) {
                    Poll::Ready(Ok(mut guard)) => {
                        guard.clear_ready();
                        any = true;
                    }
                    Poll::Ready(Err(_)) => lost = true,
                    Poll::Pending => {}
                }
            }
            if lost {
                // That runtime has ended: the next call registers with the current runtime.
                self.fds.clear();
                cx.waker().wake_by_ref();
            }
            any && !lost
        }
    }
}
