//! The way into a socket: one caller at a time, and without the interpreter lock during a wait.
//!
//! A thread that finds another thread inside releases the lock while it waits for its turn. So a
//! blocked `recv` of one thread never stops the interpreter, whatever other threads do with the
//! socket. The same holds for the lock of a socket for several threads.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use tautline_abi::native::{EnteredSocket, Refusal, SocketHandle};
use tautline_core::{Error, Flags};

use crate::errors;

/// Time after which a thread that waits for its turn lets signal handlers run.
const TURN: Duration = Duration::from_millis(50);

/// ZMQ_DONTWAIT.
pub(crate) const DONTWAIT: i32 = Flags::DONTWAIT.0;
/// ZMQ_SNDMORE.
pub(crate) const SNDMORE: i32 = Flags::MORE.0;

/// Direction of an operation. The numbers are those of Python.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// Ends after ZMQ_RCVTIMEO.
    Receive = 0,
    /// Ends after ZMQ_SNDTIMEO.
    Send = 1,
}

/// Calls `call` inside of a socket, with the interpreter lock. `call` must not wait. If another
/// thread is inside, waits for its turn without the interpreter lock.
#[inline(always)]
pub(crate) fn at_once<T>(
    py: Python<'_>,
    handle: SocketHandle,
    mut call: impl FnMut(&mut EnteredSocket<'_>) -> T,
) -> PyResult<T> {
    match handle.at_once(&mut call) {
        Ok(result) => Ok(result),
        Err(refusal) => at_once_later(py, handle, refusal, &mut call),
    }
}

#[cold]
fn at_once_later<T>(
    py: Python<'_>,
    handle: SocketHandle,
    mut refusal: Refusal,
    call: &mut dyn FnMut(&mut EnteredSocket<'_>) -> T,
) -> PyResult<T> {
    loop {
        if refusal != Refusal::Busy {
            return Err(errors::after_signals(py, errors::of_refusal(refusal)));
        }
        wait_for_turn(py, handle)?;
        match handle.at_once(&mut *call) {
            Ok(result) => return Ok(result),
            Err(again) => refusal = again,
        }
    }
}

/// Waits without the interpreter lock until no caller is inside, or for a moment.
pub(crate) fn wait_for_turn(py: Python<'_>, handle: SocketHandle) -> PyResult<()> {
    py.detach(|| handle.wait_until_free(TURN));
    py.check_signals()
}

/// Calls the socket behind a handle. A call that a signal has interrupted is repeated after Python's
/// signal handlers have run.
pub(crate) fn call<T>(
    py: Python<'_>,
    handle: SocketHandle,
    mut call: impl FnMut(&mut EnteredSocket<'_>) -> Result<T, Error>,
) -> PyResult<T> {
    loop {
        match at_once(py, handle, &mut call)? {
            Ok(value) => return Ok(value),
            Err(Error::Interrupted) => py.check_signals()?,
            Err(error) => return Err(errors::after_signals(py, error)),
        }
    }
}

/// Like [`call`], without the interpreter lock: for calls that may take long. The time limit of
/// `direction` counts from the first attempt.
pub(crate) fn call_detached<T: Send>(
    py: Python<'_>,
    handle: SocketHandle,
    direction: Direction,
    call: impl FnMut(&mut EnteredSocket<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    attempt_detached(py, handle, direction, call)?.map_err(|error| errors::after_signals(py, error))
}

/// Like [`call_detached`], but returns the error of the engine, unless it is an interruption.
pub(crate) fn attempt_detached<T: Send>(
    py: Python<'_>,
    handle: SocketHandle,
    direction: Direction,
    mut call: impl FnMut(&mut EnteredSocket<'_>) -> Result<T, Error> + Send,
) -> PyResult<Result<T, Error>> {
    let mut started = None;
    // `None` until the first interruption: the socket's options apply.
    let mut deadline = None;
    loop {
        let (call, started, end) = (&mut call, &mut started, &mut deadline);
        let result = py.detach(move || {
            // The socket is left before this thread waits for the interpreter lock: the thread that
            // holds the lock may wait for the socket.
            let mut entered = handle.enter()?;
            let started = *started.get_or_insert_with(Instant::now);
            let result = entered.repeat(*end, |entered| call(entered));
            if matches!(result, Err(Error::Interrupted)) && end.is_none() {
                let receives = matches!(direction, Direction::Receive);
                // If the socket is closed, the next attempt reports it.
                *end = entered.deadline_since(started, receives).unwrap_or(None);
            }
            Ok(result)
        });
        #[cfg(target_os = "linux")]
        crate::readiness::notify(handle);
        match result {
            Ok(Err(Error::Interrupted)) => py.check_signals()?,
            Ok(result) => return Ok(result),
            Err(Refusal::Busy) => wait_for_turn(py, handle)?,
            Err(refusal) => return Err(errors::after_signals(py, errors::of_refusal(refusal))),
        }
    }
}

/// Sends or receives: calls `transfer` with DONTWAIT first, and waits without the interpreter lock
/// if `flags` allow it. After an interruption, `transfer` is called again.
#[inline(always)]
pub(crate) fn transfer<T: Send>(
    py: Python<'_>,
    handle: SocketHandle,
    direction: Direction,
    flags: i32,
    mut transfer: impl FnMut(&mut EnteredSocket<'_>, Flags) -> Result<T, Error> + Send,
) -> PyResult<T> {
    match at_once(py, handle, |entered| transfer(entered, Flags(flags | DONTWAIT)))? {
        Ok(value) => Ok(value),
        Err(error) => transfer_later(py, handle, direction, flags, error, transfer),
    }
}

#[cold]
fn transfer_later<T: Send>(
    py: Python<'_>,
    handle: SocketHandle,
    direction: Direction,
    flags: i32,
    first: Error,
    mut transfer: impl FnMut(&mut EnteredSocket<'_>, Flags) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let waits = flags & DONTWAIT == 0;
    match first {
        Error::Again if waits => {}
        Error::Interrupted => py.check_signals()?,
        error => return Err(errors::after_signals(py, error)),
    }
    call_detached(py, handle, direction, |entered| transfer(entered, Flags(flags)))
}
