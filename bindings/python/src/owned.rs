//! A value of the crate `tautline` that Python owns: one caller at a time, waits without the
//! interpreter lock, and no use in a forked child.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tautline_core::Error as EngineError;

use crate::context;
use crate::errors;

/// Time after which a waiting caller lets signal handlers run, and callers of other threads enter.
const SLICE: Duration = Duration::from_millis(50);
/// Interval at which a caller checks if another caller has left.
const TURN: Duration = Duration::from_millis(1);
/// Time that a waiting caller stays outside if others want to enter. Longer than [`TURN`].
const GIVE_WAY: Duration = Duration::from_millis(3);

/// A value, until `close`.
pub(crate) struct Owned<T> {
    value: Mutex<Option<T>>,
    closed: AtomicBool,
    /// Number of callers that wait for another caller to leave. Relaxed: only a hint.
    waiting: AtomicUsize,
    process: u32,
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // A forked child has no copy of the value's threads, so the value must not wait for them.
        if self.process != std::process::id()
            && let Some(value) = self.value.get_mut().unwrap_or_else(|poison| poison.into_inner()).take()
        {
            std::mem::forget(value);
        }
    }
}

impl<T: Send> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Owned {
            value: Mutex::new(Some(value)),
            closed: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            process: std::process::id(),
        }
    }

    /// True after `close`, and in a forked child.
    pub(crate) fn is_closed(&self) -> bool {
        // Pairs with `close`, which stores the flag and then tries to lock.
        self.closed.load(Ordering::SeqCst) || self.process != std::process::id()
    }

    /// Calls `call`, which does not wait for long.
    pub(crate) fn call<R: Send>(
        &self,
        py: Python<'_>,
        mut call: impl FnMut(&mut T) -> tautline::Result<R> + Send,
    ) -> PyResult<R> {
        loop {
            let called = self.attempt(py, None, |value, _| call(value))?;
            if let Some(result) = called {
                return Ok(result);
            }
            // A signal has interrupted the call.
        }
    }

    /// Calls `call` with a time limit again and again, until it returns a value or `deadline` has
    /// passed. `None` after the deadline.
    pub(crate) fn wait<R: Send>(
        &self,
        py: Python<'_>,
        deadline: Option<Instant>,
        mut call: impl FnMut(&mut T, Duration) -> tautline::Result<Option<R>> + Send,
    ) -> PyResult<Option<R>> {
        loop {
            let called = self.attempt(py, deadline, |value, slice| call(value, slice))?;
            if let Some(Some(result)) = called {
                return Ok(Some(result));
            }
            py.check_signals()?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(None);
            }
            if self.waiting.load(Ordering::Relaxed) > 0 {
                py.detach(|| std::thread::sleep(GIVE_WAY));
            }
        }
    }

    /// Calls `call` once. `None` if a signal has interrupted it, and after the deadline if another
    /// caller was inside.
    fn attempt<R: Send>(
        &self,
        py: Python<'_>,
        deadline: Option<Instant>,
        call: impl FnOnce(&mut T, Duration) -> tautline::Result<R> + Send,
    ) -> PyResult<Option<R>> {
        let Some(result) = self.enter_and_call(py, deadline, call)? else { return Ok(None) };
        match result {
            // An exception of a signal handler would lose the result.
            Ok(result) => Ok(Some(result)),
            Err(tautline::Error::Interrupted) => {
                py.check_signals()?;
                Ok(None)
            }
            Err(error) => Err(exception(py, &error)),
        }
    }

    fn enter_and_call<R: Send>(
        &self,
        py: Python<'_>,
        deadline: Option<Instant>,
        call: impl FnOnce(&mut T, Duration) -> tautline::Result<R> + Send,
    ) -> PyResult<Option<tautline::Result<R>>> {
        let mut call = Some(call);
        let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        loop {
            if self.is_closed() {
                return Err(closed(py));
            }
            let result = py.detach(|| {
                let mut value = self.try_lock()?;
                let slice = left().map_or(SLICE, |left| left.min(SLICE));
                let result = call.take().and_then(|call| Some(call(value.as_mut()?, slice)));
                drop(value);
                self.release_if_closed();
                Some(result)
            });
            match result {
                Some(Some(result)) => return Ok(Some(result)),
                Some(None) => return Err(closed(py)),
                None => {}
            }
            // Another caller is inside.
            if left().is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            self.waiting.fetch_add(1, Ordering::Relaxed);
            py.detach(|| std::thread::sleep(TURN));
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            py.check_signals()?;
        }
    }

    /// Closes the value. If `wait` is false and a caller is inside, that caller drops the value when
    /// it leaves, within [`SLICE`].
    pub(crate) fn close(&self, py: Python<'_>, wait: bool, prepare: impl Fn(&mut T) + Send + Sync) {
        if self.is_closed() {
            return;
        }
        py.detach(|| {
            if let Some(mut value) = self.try_lock()
                && let Some(value) = value.as_mut()
            {
                prepare(value);
            }
            self.closed.store(true, Ordering::SeqCst);
            loop {
                self.release_if_closed();
                match self.try_lock() {
                    Some(value) if value.is_none() => return,
                    _ if !wait => return,
                    _ => std::thread::sleep(TURN),
                }
            }
        });
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<T>>> {
        match self.value.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poison)) => Some(poison.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Drops the value after `close`, unless another caller is inside, which drops it itself.
    fn release_if_closed(&self) {
        // Orders the unlock before the load, and in `close` the store before the lock. So either
        // the closing caller locks, or the leaving one sees the flag.
        fence(Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) {
            let value = self.try_lock().and_then(|mut value| value.take());
            drop(value);
        }
    }
}

/// Returns the exception of `tautline_zmq.errors` for an error of the crate.
pub(crate) fn exception(py: Python<'_>, error: &tautline::Error) -> PyErr {
    raised(py, error.errno(), &error.to_string())
}

fn closed(py: Python<'_>) -> PyErr {
    raised(py, EngineError::NotSocket.errno(), "it is closed")
}

/// Returns the exception that `tautline_zmq._beyond.made` makes.
#[cold]
fn raised(py: Python<'_>, number: i32, text: &str) -> PyErr {
    static MADE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = MADE
        .get_or_try_init(py, || py.import("tautline_zmq._beyond")?.getattr("made").map(Bound::unbind))
        .and_then(|made| made.bind(py).call1((number, text)));
    made.map_or_else(|fault| fault, PyErr::from_value)
}

/// Returns the context of the crate behind a context of the module.
pub(crate) fn context(py: Python<'_>, context: &Bound<'_, context::Context>) -> PyResult<tautline::Context> {
    let Ok(handle) = context.get().open_handle() else {
        return Err(raised(py, EngineError::Terminated.errno(), "the context was terminated"));
    };
    // SAFETY: a handle that `zmq_ctx_new` has returned.
    match unsafe { tautline_abi::native::engine_context(handle) } {
        Ok(context) => Ok(tautline::Context::from_engine(context)),
        // Its process is the parent of this one.
        Err(EngineError::Interrupted) => Err(closed(py)),
        Err(error) => Err(errors::exception(py, error)),
    }
}

/// Returns the deadline for a timeout in milliseconds; `None` or a negative one has no limit.
pub(crate) fn deadline(timeout: Option<i64>) -> Option<Instant> {
    let timeout = u64::try_from(timeout?).ok()?;
    Instant::now().checked_add(Duration::from_millis(timeout))
}

/// Options of a socket: numbers of `zmq.h`, and values as zmq_setsockopt(3) takes them.
pub(crate) type Options = Vec<(i32, Vec<u8>)>;

/// Sets options of a socket that is built later.
pub(crate) fn with_options<K: tautline::kind::Kind>(
    builder: tautline::Builder<K>,
    options: &Options,
) -> tautline::Builder<K> {
    options.iter().fold(builder, |builder, (number, value)| builder.raw_option(*number, value))
}

/// Sets the linger time of a socket in milliseconds, before it is closed.
pub(crate) fn set_linger<K: tautline::kind::Kind>(socket: &mut tautline::Socket<K>, linger: Option<i64>) {
    if let Some(linger) = linger {
        // Fails only after the context has ended.
        let _ = socket.set_linger(u64::try_from(linger).ok().map(Duration::from_millis));
    }
}

/// Returns a count as `usize`. ValueError if it is negative.
pub(crate) fn count(name: &str, value: i64) -> PyResult<usize> {
    usize::try_from(value).map_err(|_| PyValueError::new_err(format!("{name}={value} must not be negative")))
}
