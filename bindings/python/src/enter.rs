//! The way into a socket: one caller at a time, and without the interpreter lock during a wait.
//!
//! A thread that finds another thread inside releases the lock while it waits for its turn. So a
//! blocked `recv` of one thread never stops the interpreter, whatever other threads do with the
//! socket.

use std::time::Duration;

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

/// Enters a socket, and waits for its turn if necessary.
#[inline(always)]
pub(crate) fn enter(py: Python<'_>, handle: SocketHandle) -> PyResult<EnteredSocket> {
    match handle.enter() {
        Ok(entered) => Ok(entered),
        Err(refusal) => enter_later(py, handle, refusal),
    }
}

#[cold]
fn enter_later(py: Python<'_>, handle: SocketHandle, mut refusal: Refusal) -> PyResult<EnteredSocket> {
    loop {
        if refusal != Refusal::Busy {
            return Err(errors::after_signals(py, errors::of_refusal(refusal)));
        }
        wait_for_turn(py, handle)?;
        match handle.enter() {
            Ok(entered) => return Ok(entered),
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
    mut call: impl FnMut(&mut EnteredSocket) -> Result<T, Error>,
) -> PyResult<T> {
    loop {
        let mut entered = enter(py, handle)?;
        let result = call(&mut entered);
        drop(entered);
        match result {
            Ok(value) => return Ok(value),
            Err(Error::Interrupted) => py.check_signals()?,
            Err(error) => return Err(errors::after_signals(py, error)),
        }
    }
}

/// Like [`call`], without the interpreter lock: for calls that may take long.
pub(crate) fn call_detached<T: Send>(
    py: Python<'_>,
    handle: SocketHandle,
    call: impl FnMut(&mut EnteredSocket) -> Result<T, Error> + Send,
) -> PyResult<T> {
    attempt_detached(py, handle, call)?.map_err(|error| errors::after_signals(py, error))
}

/// Like [`call_detached`], but returns the error of the engine, unless it is an interruption.
pub(crate) fn attempt_detached<T: Send>(
    py: Python<'_>,
    handle: SocketHandle,
    mut call: impl FnMut(&mut EnteredSocket) -> Result<T, Error> + Send,
) -> PyResult<Result<T, Error>> {
    loop {
        let mut entered = enter(py, handle)?;
        // The socket is left before this thread waits for the interpreter lock: the thread that
        // holds the lock may wait for the socket.
        let call = &mut call;
        let result = py.detach(move || {
            let result = call(&mut entered);
            drop(entered);
            result
        });
        #[cfg(target_os = "linux")]
        crate::readiness::notify(handle);
        match result {
            Err(Error::Interrupted) => py.check_signals()?,
            result => return Ok(result),
        }
    }
}

/// Sends or receives: calls `transfer` with DONTWAIT first, and waits without the interpreter lock
/// if `flags` allow it. After an interruption, `transfer` is called again.
#[inline(always)]
pub(crate) fn transfer<T: Send>(
    py: Python<'_>,
    handle: SocketHandle,
    flags: i32,
    mut transfer: impl FnMut(&mut EnteredSocket, Flags) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let mut entered = enter(py, handle)?;
    match transfer(&mut entered, Flags(flags | DONTWAIT)) {
        Ok(value) => Ok(value),
        Err(error) => {
            drop(entered);
            transfer_later(py, handle, flags, error, transfer)
        }
    }
}

#[cold]
fn transfer_later<T: Send>(
    py: Python<'_>,
    handle: SocketHandle,
    flags: i32,
    first: Error,
    mut transfer: impl FnMut(&mut EnteredSocket, Flags) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let waits = flags & DONTWAIT == 0;
    match first {
        Error::Again if waits => {}
        Error::Interrupted => py.check_signals()?,
        error => return Err(errors::after_signals(py, error)),
    }
    call_detached(py, handle, |entered| transfer(entered, Flags(flags)))
}
