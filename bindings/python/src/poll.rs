//! `zmq_poll`: waits for several sockets and descriptors.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};
use tautline_abi::native::{PollEntry, PollFailure, Refusal, Target, poll};
use tautline_core::{Error, fd};

use crate::socket::Socket;
use crate::{enter, errors};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(zmq_poll, module)?)
}

/// Waits up to `timeout` milliseconds, or without limit if negative, for events of `sockets`, a list
/// of pairs: a `Socket`, a descriptor or an object with `fileno()`, and the wanted events. Returns
/// the list of those with events, as pairs of the socket or the descriptor, and the events.
#[pyfunction]
#[pyo3(signature = (sockets, timeout = -1))]
fn zmq_poll<'py>(
    py: Python<'py>,
    sockets: &Bound<'py, PyAny>,
    timeout: c_int,
) -> PyResult<Bound<'py, PyList>> {
    let mut entries = Vec::new();
    let mut objects = Vec::new();
    for pair in sockets.try_iter()? {
        let (object, events): (Bound<'_, PyAny>, c_int) = pair?.extract()?;
        // Bits above those of a poll entry have no meaning.
        let events = events as i16;
        entries.push(PollEntry { target: target(py, &object)?, events, revents: 0 });
        objects.push(object);
    }
    let ready = PyList::empty(py);
    if entries.is_empty() || wait(py, &mut entries, timeout)? == 0 {
        return Ok(ready);
    }
    for (entry, object) in entries.iter().zip(objects) {
        match entry.target {
            _ if entry.revents <= 0 => {}
            Target::Socket(_) => ready.append((object, entry.revents))?,
            Target::Descriptor(number) => ready.append((fd::to_int(number), entry.revents))?,
        }
    }
    Ok(ready)
}

fn target(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Target> {
    if let Ok(socket) = object.cast::<Socket>() {
        return Ok(Target::Socket(socket.get().handle(py)?));
    }
    let number: c_int = if object.is_instance_of::<PyInt>() {
        object.extract()?
    } else if object.hasattr("fileno")? {
        let number = object.call_method0("fileno").and_then(|number| number.extract());
        number.map_err(|_| PyValueError::new_err("fileno() must return a valid integer fd"))?
    } else {
        return Err(PyTypeError::new_err(format!(
            "Socket must be a 0MQ socket, an integer fd or have a fileno() method: {}",
            object.repr()?
        )));
    };
    Ok(Target::Descriptor(fd::from_int(number)))
}

fn is_shared(entry: &PollEntry) -> bool {
    matches!(entry.target, Target::Socket(socket) if socket.is_shared())
}

/// Waits for an event of any entry. Returns the number of entries with events.
fn wait(py: Python<'_>, entries: &mut [PollEntry], timeout: c_int) -> PyResult<usize> {
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    let started = Instant::now();
    // The first attempt keeps the interpreter lock, because it does not wait. A socket for several
    // threads may wait for the lock of the socket.
    let mut first = !entries.iter().any(is_shared);
    let mut left = if first { Some(Duration::ZERO) } else { timeout };
    loop {
        let result = if first { poll(entries, left) } else { py.detach(|| poll(entries, left)) };
        #[cfg(target_os = "linux")]
        if !first {
            for entry in entries.iter() {
                if let Target::Socket(socket) = entry.target {
                    crate::readiness::notify(socket);
                }
            }
        }
        match result {
            Ok(0) if first && timeout != Some(Duration::ZERO) => first = false,
            Ok(ready) => return Ok(ready),
            Err(PollFailure::Error(Error::Interrupted)) => py.check_signals()?,
            Err(PollFailure::Error(error)) => return Err(errors::after_signals(py, error)),
            Err(PollFailure::Refused(handle, Refusal::Busy)) => enter::wait_for_turn(py, handle)?,
            Err(PollFailure::Refused(_, refusal)) => {
                return Err(errors::after_signals(py, errors::of_refusal(refusal)));
            }
        }
        if !first {
            left = timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
        }
    }
}
