//! How a task rests: woken by the engine's I/O thread, or by tokio, which watches the socket's
//! descriptors.

use std::task::{Context, Poll};

use tautline_core::{self as core, Patience, Rest};

/// What a wait of the engine has come to.
type Waited = std::result::Result<(), core::Error>;

/// The place where the tasks of one socket wait.
#[derive(Debug, Default)]
pub(super) struct Park {
    /// How far the current wait has come.
    patience: Patience,
    #[cfg(all(feature = "tokio", unix))]
    watch: tokio_watch::Watch,
}

impl Park {
    /// Waits until the operation that `events` stands for may succeed.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut core::Socket,
        events: i16,
    ) -> Poll<Waited> {
        #[cfg(all(feature = "tokio", unix))]
        if self.watch.is_ready_for(socket) {
            return self.poll_watching(cx, socket, events);
        }
        let polled = socket.poll_ready(events, &mut self.patience, Rest::IoThread, cx.waker());
        self.after(polled)
    }

    #[cfg(all(feature = "tokio", unix))]
    fn poll_watching(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut core::Socket,
        events: i16,
    ) -> Poll<Waited> {
        loop {
            let polled = socket.poll_ready(events, &mut self.patience, Rest::Descriptors, cx.waker());
            // What was readable is cleared before the socket looks once more, so nothing is missed
            // in between.
            if polled.is_ready() || !self.patience.is_resting() || !self.watch.poll_clear(cx) {
                return self.after(polled);
            }
        }
    }

    /// A wait that is over leaves nothing behind for the next one.
    fn after(&mut self, polled: Poll<Waited>) -> Poll<Waited> {
        if polled.is_ready() {
            self.patience = Patience::default();
        }
        polled
    }

    /// Whether a wait is under way that has not been given up.
    #[cfg(feature = "futures")]
    pub(super) fn is_resting(&self) -> bool {
        self.patience.is_resting()
    }

    /// The wait is not going to be continued.
    pub(super) fn leave(&mut self, socket: &mut core::Socket) {
        socket.stop_waiting(std::mem::take(&mut self.patience));
    }
}

#[cfg(all(feature = "tokio", unix))]
mod tokio_watch {
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll};

    use tautline_core as core;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::runtime::{Handle, Id};

    /// The socket's descriptors in tokio's reactor.
    #[derive(Debug, Default)]
    pub(super) struct Watch {
        fds: Vec<AsyncFd<OwnedFd>>,
        /// Whose reactor that is.
        runtime: Option<Id>,
    }

    // Deprecated because it accepts descriptors that may be closed while they are registered; an
    // `OwnedFd` cannot. Its successor is unsafe to call, and newer than the tokio that this crate
    // asks for.
    #[allow(deprecated)]
    fn register(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::with_interest(fd, Interest::READABLE)
    }

    impl Watch {
        /// Registers the descriptors with the present runtime if that has not been done. False
        /// outside of tokio, or if the system has no descriptors left.
        pub(super) fn is_ready_for(&mut self, socket: &mut core::Socket) -> bool {
            let Ok(handle) = Handle::try_current() else { return false };
            let runtime = Some(handle.id());
            if self.fds.is_empty() || self.runtime != runtime {
                // A runtime that the task has left may stand still.
                self.fds.clear();
                let registered = socket.descriptors().and_then(|all| all.into_iter().map(register).collect());
                self.fds = registered.unwrap_or_default();
                self.runtime = runtime;
            }
            !self.fds.is_empty()
        }

        /// Whether one of them has become readable; that is cleared. If not, the task is woken when
        /// one does.
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
                // That runtime is gone: the next turn registers with the present one.
                self.fds.clear();
                cx.waker().wake_by_ref();
            }
            any && !lost
        }
    }
}
