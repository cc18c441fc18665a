//! Async termination of a context.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::Context;
use crate::error::{Error, Result};

/// State that the waiting thread and the task share.
#[derive(Default)]
struct Ending {
    outcome: Option<Result<()>>,
    waker: Option<Waker>,
}

/// Ends a context like [`Context::terminate`] or, with a time limit, like
/// [`Context::terminate_within`]. It does not block the executor, because a separate thread waits.
/// Drop all sockets of the context first, or let other tasks drop them.
///
/// Not cancel safe: after the first poll, the termination continues without the future.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// use std::time::Duration;
/// use tautline::{Context, Pull, aio};
///
/// let context = Context::new();
/// let pull = Pull::builder(&context).bind("inproc://ending")?.into_async();
/// drop(pull);
/// aio::terminate(&context, Duration::from_secs(1)).await
/// # })
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::TimedOut`] if at the deadline a socket is still open or has unsent messages,
/// which are dropped; [`Error::Os`] if the thread cannot be created.
pub async fn terminate(context: &Context, patience: impl Into<Option<Duration>>) -> Result<()> {
    let (context, patience) = (context.clone(), patience.into());
    let ending = Arc::new(Mutex::new(Ending::default()));
    let shared = ending.clone();
    let thread = thread::Builder::new().name("ZMQ/end".into()).spawn(move || {
        let outcome = loop {
            match context.0.terminate_within(patience) {
                Err(tautline_core::Error::Interrupted) => {}
                outcome => break outcome.map_err(Error::for_limit),
            }
        };
        let waker = {
            let mut ending = shared.lock().unwrap_or_else(PoisonError::into_inner);
            ending.outcome = Some(outcome);
            ending.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    });
    thread.map_err(|error| Error::from(tautline_core::Error::from(error)))?;
    poll_fn(|cx| {
        let mut ending = ending.lock().unwrap_or_else(PoisonError::into_inner);
        match ending.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                ending.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}
