//! The subscriber of async programs. It takes the same steps as that of a thread, none of which
//! waits, and waits in between.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use tautline_core::poller::POLLIN;

use super::{Delivery, ReliableSub};
use crate::aio;
use crate::error::Result;

/// Number of received messages after which a task lets other tasks run.
const STEPS: u32 = 256;

/// For tasks.
impl ReliableSub<aio::Sub> {
    /// Receives the next delivery.
    ///
    /// Cancel safe: if the future is dropped early, no delivery was taken.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # smol::block_on(async {
    /// use tautline::Context;
    /// use tautline::replay::{Delivery, ReliablePub, ReliableSub, Start};
    ///
    /// let context = Context::new();
    /// let mut publisher = ReliablePub::new(&context)?.into_async();
    /// let (live, ring) = (publisher.bind("tcp://127.0.0.1:*")?, publisher.serve("tcp://127.0.0.1:*")?);
    /// publisher.send("prices/gold", "1980").await?;
    ///
    /// let subscriber = ReliableSub::builder(&context).subscribe("prices/").start(Start::Oldest);
    /// let mut subscriber = subscriber.connect(&live, &ring)?.into_async();
    /// assert!(matches!(subscriber.recv().await?, Delivery::Message(_)));
    /// # Ok(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Terminated`](crate::Error::Terminated), or
    /// [`Error::Os`](crate::Error::Os) if the thread for the answer timeout cannot be created.
    pub async fn recv(&mut self) -> Result<Delivery> {
        let mut steps = 0_u32;
        loop {
            if let Some(delivery) = self.ready.pop_front() {
                return Ok(delivery);
            }
            if !self.step(Some(Duration::ZERO))? {
                let wait = WaitGuard(self);
                poll_fn(|cx| wait.0.poll_wait(cx)).await?;
            }
            // Messages of other topics may arrive without end. Other tasks need their turn.
            steps += 1;
            if steps.is_multiple_of(STEPS) {
                yield_once().await;
            }
        }
    }

    /// Returns the next delivery, without waiting. `None` if there is no delivery yet.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`](crate::Error::Terminated).
    pub fn try_recv(&mut self) -> Result<Option<Delivery>> {
        while self.ready.is_empty() && self.step(Some(Duration::ZERO))? {}
        Ok(self.ready.pop_front())
    }

    /// Converts the subscriber for a thread.
    #[must_use]
    pub fn into_blocking(self) -> ReliableSub {
        self.with_other(aio::Sub::into_blocking)
    }

    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match self.repair.is_pending() {
            true => self.repair.poll_part(cx),
            false => self.socket.poll_wait(cx, POLLIN),
        }
    }
}

/// A wait in progress. If it is dropped early, it restores the state before the wait.
struct WaitGuard<'a>(&'a mut ReliableSub<aio::Sub>);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.socket.stop_waiting();
        self.0.repair.stop_waiting();
    }
}

/// Lets the executor run other tasks.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
