//! Buffers of Python objects that the engine sends without a copy.
//!
//! The engine drops such a buffer on any of its threads, in the middle of its work. The buffer then
//! goes to the reaper, a thread that attaches to the interpreter, releases the buffer and sets the
//! event of its `MessageTracker`. After a fork, and when the interpreter has begun to exit, there is
//! no reaper: the buffers leak, because no code of Python may run for them.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use pyo3::prelude::*;
use tautline_core::Message;

use crate::buffer::Buffer;
use crate::exit;

/// The reaper of this process.
static REAPER: Mutex<Option<Reaper>> = Mutex::new(None);

struct Reaper {
    process: u32,
    sender: Sender<Option<Released>>,
    thread: JoinHandle<()>,
}

/// A buffer after the engine has released it.
struct Released {
    buffer: Buffer,
    event: Option<Py<PyAny>>,
}

/// The owner of a message's body, as the engine holds it.
struct Lent {
    released: Released,
    sender: Sender<Option<Released>>,
    process: u32,
}

/// Returns a message whose body is the memory of a Python object. `event.set()` is called when no
/// message refers to the memory any more.
pub(crate) fn lend(py: Python<'_>, buffer: Buffer, event: Option<Py<PyAny>>) -> PyResult<Message> {
    let (sender, process) = reaper(py)?;
    let lent = Box::new(Lent { released: Released { buffer, event }, sender, process });
    let (data, len) = (lent.released.buffer.as_slice().as_ptr(), lent.released.buffer.len());
    // SAFETY: the buffer keeps the bytes allocated until `give_back` has taken the box, which may
    // happen on any thread. The engine does not write them.
    Ok(unsafe {
        let hint = Box::into_raw(lent).cast();
        Message::from_foreign(data.cast_mut(), len, Some(give_back), hint)
    })
}

/// Sends the owner of a body to the reaper. The engine calls it once, on any thread.
///
/// # Safety
/// `hint` is a `Lent` of `lend`.
unsafe extern "C" fn give_back(_data: *mut c_void, hint: *mut c_void) {
    // SAFETY: the box of `lend`, which is taken only here.
    let lent = unsafe { Box::from_raw(hint.cast::<Lent>()) };
    if exit::has_begun() || lent.process != std::process::id() {
        // It leaks with the channel, whose lock may be held for ever in a forked child.
        std::mem::forget(lent);
        return;
    }
    let Lent { released, sender, .. } = *lent;
    if let Err(refused) = sender.send(Some(released)) {
        std::mem::forget(refused);
    }
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
        // The interpreter exits. The remaining buffers leak.
        ends |= reaped.is_none();
    }
}

/// Stops the reaper, because the interpreter would not let its thread attach any more. The calling
/// thread does not hold the interpreter lock.
pub(crate) fn stop() {
    let reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner).take();
    match reaper {
        Some(Reaper { process, sender, thread }) if process == std::process::id() => {
            let _ = sender.send(None);
            let _ = thread.join();
        }
        other => std::mem::forget(other),
    }
}
