//! `Burst`, the quick path of `zmq.asyncio.Socket`: calls that complete at once.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};
use tautline_abi::native::SocketHandle;

use crate::socket::Socket;
use crate::transfer::{self, LARGE};
use crate::turns::{TURN_NANOS, nanos};

/// Calls that complete in one turn of the event loop before the next turn is awaited.
const BURST: u32 = 64;
/// The clock starts at this number of calls, or at the first call if the last burst took a turn.
const FEW: u32 = 4;

/// The calls of one socket that complete at once, since the last turn of the event loop. The rule is
/// that of `_Burst` in `tautline_zmq._asyncio`, which serves pyzmq's own sockets.
///
/// The methods that transfer return the result in a future that is done. They return `None` if the
/// call would block, and `False` if the caller has to decide: the burst is over, or this is no simple
/// case.
#[pyclass(frozen, module = "tautline_zmq._native")]
pub(crate) struct Burst {
    socket: Py<Socket>,
    // Relaxed: own: numbers of one event loop, whose methods run one at a time.
    calls: AtomicU32,
    few: AtomicU32,
    /// Time at which the burst is over, as of [`nanos`].
    until: AtomicU64,
    /// True if the burst has lasted longer than the loop allows.
    long: AtomicBool,
    /// True while the loop is to call `_turn`.
    turning: AtomicBool,
}

impl Burst {
    /// True if the next call has to take a turn of the loop.
    fn is_over(&self) -> bool {
        let calls = self.calls.load(Ordering::Relaxed) + 1;
        let is_few = calls <= self.few.load(Ordering::Relaxed);
        !is_few && (calls > BURST || nanos() > self.until.load(Ordering::Relaxed))
    }

    /// Counts a call. The first one of the calls that are no longer few starts the clock.
    fn count(slf: &Bound<'_, Self>, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let burst = slf.get();
        let calls = burst.calls.load(Ordering::Relaxed) + 1;
        burst.calls.store(calls, Ordering::Relaxed);
        if calls == burst.few.load(Ordering::Relaxed) {
            burst.until.store(nanos() + TURN_NANOS, Ordering::Relaxed);
            let turn = slf.getattr(intern!(slf.py(), "_turn"))?;
            event_loop.call_method1(intern!(slf.py(), "call_soon"), (turn,))?;
            burst.turning.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn complete(
        slf: &Bound<'_, Self>,
        event_loop: &Bound<'_, PyAny>,
        call: impl FnOnce(Python<'_>, SocketHandle) -> PyResult<Option<Py<PyAny>>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let burst = slf.get();
        if event_loop.is_none() || burst.is_over() {
            return undecided(py);
        }
        // Before the transfer, whose message an exception of Python code would lose.
        Self::count(slf, event_loop)?;
        let Some(result) = call(py, burst.socket.get().handle(py)?)? else { return Ok(py.None()) };
        let arguments = PyDict::new(py);
        arguments.set_item(intern!(py, "loop"), event_loop)?;
        let future = future_class(py)?.call((), Some(&arguments))?;
        future.call_method1(intern!(py, "set_result"), (result,))?;
        Ok(future.unbind())
    }
}

/// Returns `False`.
fn undecided(py: Python<'_>) -> PyResult<Py<PyAny>> {
    Ok(false.into_pyobject(py)?.to_owned().into_any().unbind())
}

fn future_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "asyncio", "Future")
}

#[pymethods]
impl Burst {
    #[new]
    fn new(socket: Py<Socket>) -> Burst {
        Burst {
            socket,
            calls: AtomicU32::new(0),
            few: AtomicU32::new(FEW),
            until: AtomicU64::new(0),
            long: AtomicBool::new(false),
            turning: AtomicBool::new(false),
        }
    }

    /// Receives one part as `bytes`.
    fn recv(slf: &Bound<'_, Self>, event_loop: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Self::complete(slf, event_loop, transfer::try_recv)
    }

    /// Receives a message as a list of `bytes`.
    fn recv_multipart(slf: &Bound<'_, Self>, event_loop: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Self::complete(slf, event_loop, transfer::try_recv_multipart)
    }

    /// Sends `data` as a message of one part. Returns `False` unless it is `bytes`, and not large.
    fn send(
        slf: &Bound<'_, Self>,
        event_loop: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        match data.cast_exact::<PyBytes>() {
            Ok(bytes) if bytes.as_bytes().len() <= LARGE => Self::complete(slf, event_loop, |py, handle| {
                Ok(transfer::try_send(py, handle, data, 0)?.then(|| py.None()))
            }),
            _ => undecided(data.py()),
        }
    }

    /// Counts a call that completed elsewhere. Returns true if its `await` is to take a turn of the
    /// loop.
    fn ends(slf: &Bound<'_, Self>, event_loop: &Bound<'_, PyAny>) -> PyResult<bool> {
        let burst = slf.get();
        if burst.is_over() {
            burst.few.store(1, Ordering::Relaxed);
            burst.long.store(true, Ordering::Relaxed);
            return Ok(true);
        }
        Self::count(slf, event_loop).map(|()| false)
    }

    /// Begins a burst.
    fn begin(&self) {
        self.calls.store(0, Ordering::Relaxed);
    }

    /// Number of calls of `_turn` that wait in the loop.
    #[getter]
    fn turns(&self) -> u32 {
        self.turning.load(Ordering::Relaxed).into()
    }

    /// Called in the next turn of the loop after the clock started.
    fn _turn(&self) {
        self.turning.store(false, Ordering::Relaxed);
        self.begin();
        if !self.long.swap(false, Ordering::Relaxed) {
            self.few.store(FEW, Ordering::Relaxed);
        }
    }
}
