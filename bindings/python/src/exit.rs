//! The exit of the interpreter.
//!
//! Before Python 3.14, a thread that wants the interpreter lock while the interpreter exits ends with
//! `pthread_exit`. That unwinds its stack, which a Rust function on the stack turns into an abort of
//! the process. PyO3 stops such a thread in time if it comes back from a wait. But Python code that
//! this module calls, for example the constructor of an exception, takes the lock out of PyO3's sight.
//!
//! Therefore a thread marks the time during which this module calls Python code. At exit, `atexit`
//! waits until no thread is inside. From then on, every thread except the exiting one pauses before
//! it calls Python code. Usually the interpreter exits during the pause, and the thread never returns
//! from it. The pause is limited, because another function of `atexit` may wait for a lock of Python
//! that the thread holds.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::reaper;

/// Limit of both waits.
const LIMIT: Duration = Duration::from_secs(1);

/// True from the exit of the interpreter on.
// SeqCst: store `EXITING`, then load `INSIDE`; pairs with the opposite order in `PythonCode::enter`.
static EXITING: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicIsize = AtomicIsize::new(0);
static EXITING_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// True if the interpreter has begun to exit.
pub(crate) fn has_begun() -> bool {
    EXITING.load(Ordering::SeqCst)
}

/// Marks the time during which a function calls Python code.
pub(crate) struct PythonCode(());

impl PythonCode {
    pub(crate) fn enter(py: Python<'_>) -> PythonCode {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let inside = PythonCode(());
        if has_begun() && EXITING_THREAD.get() != Some(&thread::current().id()) {
            drop(inside);
            py.detach(|| thread::sleep(LIMIT));
            INSIDE.fetch_add(1, Ordering::SeqCst);
            return PythonCode(());
        }
        inside
    }
}

impl Drop for PythonCode {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Called by `atexit`.
#[pyfunction]
fn _on_exit(py: Python<'_>) {
    let _ = EXITING_THREAD.set(thread::current().id());
    EXITING.store(true, Ordering::SeqCst);
    py.detach(|| {
        reaper::stop();
        let started = Instant::now();
        while INSIDE.load(Ordering::SeqCst) > 0 && started.elapsed() < LIMIT {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Called in a forked child, in which only this thread goes on.
#[pyfunction]
fn _on_fork() {
    INSIDE.store(0, Ordering::SeqCst);
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(_on_exit, module)?,))?;
    let arguments = pyo3::types::PyDict::new(py);
    arguments.set_item("after_in_child", wrap_pyfunction!(_on_fork, module)?)?;
    if let Ok(register) = py.import("os")?.getattr("register_at_fork") {
        register.call((), Some(&arguments))?;
    }
    Ok(())
}
