//! Buffers of Python objects that the engine sends without a copy.
//!
//! The engine drops such a buffer on any of its threads, in the middle of its work. The buffer then
//! goes to the reaper, a thread that attaches to the interpreter, releases the buffer and sets the
//! event of its `MessageTracker`. The thread ends when no buffer arrives any more, because a process
//! ends only after its last thread if it was forked in a thread. Buffers leak after a fork, which
//! copies them, and when the interpreter exits, because no code of Python may run for them.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::ffi;
use pyo3::prelude::*;
use tautline_core::Message;

use crate::buffer::Buffer;

/// Time without a released buffer after which the thread ends. A thread that starts for each buffer
/// would cost more than the buffer's copy.
const LINGER: Duration = Duration::from_millis(100);

/// The reaper of this process. The thread that locks it is attached to the interpreter and runs no
/// Python code meanwhile. A fork waits for such a thread, so a child finds it unlocked.
static REAPER: Mutex<Option<Arc<Reaper>>> = Mutex::new(None);

struct Reaper {
    process: u32,
    queue: Mutex<Queue>,
    /// Signals an addition to the queue.
    arrived: Condvar,
    /// True if the interpreter has begun to exit. The thread holds the lock while it attaches.
    exiting: Mutex<bool>,
}

#[derive(Default)]
struct Queue {
    released: Vec<Released>,
    /// True if a thread takes the buffers.
    running: bool,
}

/// A buffer after the engine has released it.
struct Released {
    buffer: Buffer,
    event: Option<Py<PyAny>>,
}

/// The owner of a message's body, as the engine holds it.
struct Lent {
    released: Released,
    reaper: Arc<Reaper>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a message whose body is the memory of a Python object. `event.set()` is called when no
/// message refers to the memory any more.
pub(crate) fn lend(py: Python<'_>, buffer: Buffer, event: Option<Py<PyAny>>) -> Message {
    let lent = Box::new(Lent { released: Released { buffer, event }, reaper: Reaper::current(py) });
    let (data, len) = (lent.released.buffer.as_slice().as_ptr(), lent.released.buffer.len());
    // SAFETY: the buffer keeps the bytes allocated until `give_back` has taken the box, which may
    // happen on any thread. The engine does not write them.
    unsafe {
        let hint = Box::into_raw(lent).cast();
        Message::from_foreign(data.cast_mut(), len, Some(give_back), hint)
    }
}

/// Sends the owner of a body to the reaper. The engine calls it once, on any thread.
///
/// # Safety
/// `hint` is a `Lent` of `lend`.
unsafe extern "C" fn give_back(_data: *mut c_void, hint: *mut c_void) {
    // SAFETY: the box of `lend`, which is taken only here.
    let lent = unsafe { Box::from_raw(hint.cast::<Lent>()) };
    if lent.reaper.process != std::process::id() {
        // The locks of the parent's reaper may be held for ever.
        std::mem::forget(lent);
        return;
    }
    let Lent { released, reaper } = *lent;
    reaper.add(released);
}

impl Reaper {
    /// Returns the reaper of this process.
    fn current(_py: Python<'_>) -> Arc<Reaper> {
        let process = std::process::id();
        let mut place = lock(&REAPER);
        if let Some(reaper) = place.as_ref().filter(|reaper| reaper.process == process) {
            return Arc::clone(reaper);
        }
        let reaper = Arc::new(Reaper {
            process,
            queue: Mutex::default(),
            arrived: Condvar::new(),
            exiting: Mutex::new(false),
        });
        // The parent's buffers are not released here.
        std::mem::forget(place.replace(Arc::clone(&reaper)));
        reaper
    }

    /// Adds a buffer to the queue, and starts the thread if necessary. Without memory for a thread,
    /// the next buffer starts it.
    fn add(self: Arc<Self>, released: Released) {
        let mut queue = lock(&self.queue);
        queue.released.push(released);
        if queue.running {
            self.arrived.notify_one();
            return;
        }
        let reaper = Arc::clone(&self);
        let started = std::thread::Builder::new().name("tautline-reaper".into()).spawn(move || reaper.run());
        queue.running = started.is_ok();
    }

    /// The reaper's thread.
    fn run(&self) {
        while let Some(released) = self.next() {
            let mut released = ManuallyDrop::new(released);
            let exiting = lock(&self.exiting);
            if *exiting {
                return;
            }
            Python::try_attach(|py| {
                drop(exiting);
                for Released { buffer, event } in std::mem::take(&mut *released) {
                    drop(buffer);
                    if let Some(event) = event
                        && let Err(error) = event.call_method0(py, "set")
                    {
                        error.write_unraisable(py, Some(event.bind(py)));
                    }
                }
            });
        }
    }

    /// Waits for buffers. Returns `None` if the thread ends.
    fn next(&self) -> Option<Vec<Released>> {
        let waited =
            self.arrived.wait_timeout_while(lock(&self.queue), LINGER, |queue| queue.released.is_empty());
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.running = !queue.released.is_empty();
        queue.running.then(|| std::mem::take(&mut queue.released))
    }
}

/// Called by `atexit`. From now on no thread attaches: it might find the interpreter finalized. A
/// thread that attaches at this moment only needs the interpreter lock.
#[pyfunction]
fn _on_exit(py: Python<'_>) {
    let reaper = Reaper::current(py);
    py.detach(|| *lock(&reaper.exiting) = true);
}

/// Called in a forked child. If the child's only Python thread ends, it takes the last thread state
/// of the interpreter along, and CPython aborts the process when the reaper attaches. The additional
/// thread state prevents this.
#[pyfunction]
fn _on_fork() {
    // SAFETY: this thread holds the lock of the interpreter.
    unsafe { ffi::PyThreadState_New(ffi::PyInterpreterState_Get()) };
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
