//! Buffers of Python objects that the engine sends without a copy.
//!
//! The engine drops such a buffer on any of its threads, in the middle of its work. The buffer then
//! goes to the reaper, a thread that attaches to the interpreter, releases the buffer and sets the
//! event of its `MessageTracker`. After a fork, and when the interpreter has begun to exit, there is
//! no reaper: the buffers leak, because no code of Python may run for them.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use pyo3::prelude::*;
use tautline_core::Message;

use crate::buffer::Buffer;

/// True from the exit of the interpreter on.
// Relaxed: the reaper ends at its own request, `None` in the channel. A buffer that is dropped
// meanwhile either reaches a reaper or leaks.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// The reaper of this process.
static REAPER: Mutex<Option<Reaper>> = Mutex::new(None);

struct Reaper {
    process: u32,
    sender: Sender<Option<Released>>,
    thread: JoinHandle<()>,
}

/// What the engine has released.
struct Released {
    buffer: Buffer,
    event: Option<Py<PyAny>>,
}

/// The body of a message, as the engine holds it.
struct Lent {
    released: ManuallyDrop<Released>,
    /// Leaks with the buffer in a forked child, where its lock may be held for ever.
    sender: ManuallyDrop<Sender<Option<Released>>>,
    process: u32,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.released.buffer.as_slice()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if STOPPED.load(Ordering::Relaxed) || self.process != std::process::id() {
            return;
        }
        // SAFETY: this is the only place that takes the fields, and it runs once.
        let (sender, released) =
            unsafe { (ManuallyDrop::take(&mut self.sender), ManuallyDrop::take(&mut self.released)) };
        if let Err(refused) = sender.send(Some(released)) {
            std::mem::forget(refused);
        }
    }
}

/// Returns a message whose body is the memory of a Python object. `event.set()` is called when no
/// message refers to the memory any more.
pub(crate) fn lend(py: Python<'_>, buffer: Buffer, event: Option<Py<PyAny>>) -> PyResult<Message> {
    let (sender, process) = reaper(py)?;
    Ok(Message::from_owner(Lent {
        released: ManuallyDrop::new(Released { buffer, event }),
        sender: ManuallyDrop::new(sender),
        process,
    }))
}

/// Returns the way to the reaper of this process, and starts it if necessary.
fn reaper(_py: Python<'_>) -> PyResult<(Sender<Option<Released>>, u32)> {
    let process = std::process::id();
    let mut place = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(reaper) = place.as_ref().filter(|reaper| reaper.process == process) {
        return Ok((reaper.sender.clone(), process));
    }
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("tautline-reaper".into()).spawn(|| reap(receiver))?;
    let parents = place.replace(Reaper { process, sender: sender.clone(), thread });
    // Its thread exists only in the parent of this process.
    std::mem::forget(parents);
    Ok((sender, process))
}

/// The reaper's thread.
fn reap(receiver: Receiver<Option<Released>>) {
    let mut ends = false;
    while !ends {
        let Ok(Some(first)) = receiver.recv() else { return };
        let mut all = vec![first];
        for next in receiver.try_iter() {
            match next {
                Some(released) => all.push(released),
                None => ends = true,
            }
        }
        let mut all = ManuallyDrop::new(all);
        let reaped = Python::try_attach(|py| {
            for Released { buffer, event } in std::mem::take(&mut *all) {
                drop(buffer);
                if let Some(event) = event
                    && let Err(error) = event.call_method0(py, "set")
                {
                    error.write_unraisable(py, Some(event.bind(py)));
                }
            }
        });
        // The interpreter ends. What is left leaks.
        ends |= reaped.is_none();
    }
}

/// Stops the reaper. Called by `atexit`: later the interpreter would not let its thread attach.
#[pyfunction]
fn _stop_reaper(py: Python<'_>) {
    STOPPED.store(true, Ordering::Relaxed);
    let reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner).take();
    match reaper {
        Some(Reaper { process, sender, thread }) if process == std::process::id() => py.detach(|| {
            let _ = sender.send(None);
            let _ = thread.join();
        }),
        other => std::mem::forget(other),
    }
}

/// Makes the reaper stop at the exit of the interpreter.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let stop = wrap_pyfunction!(_stop_reaper, module)?;
    module.py().import("atexit")?.call_method1("register", (stop,))?;
    Ok(())
}
