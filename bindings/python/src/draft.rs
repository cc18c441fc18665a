//! ZMQ_FD of the draft sockets, which several threads may use at once (CLIENT, SERVER and similar
//! types). They have no descriptor of their own. As in pyzmq, the descriptor of a poller that
//! watches the socket takes its place. Calls of the poller may wait for the socket's lock, so they
//! release the interpreter lock.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use pyo3::prelude::*;
use tautline_abi::native::SocketHandle;
use tautline_abi::{
    PollerEvent, zmq_poller_add, zmq_poller_destroy, zmq_poller_fd, zmq_poller_new, zmq_poller_wait_all,
};
use tautline_core::{fd, poller};

use crate::errors;

/// ZMQ_FD.
pub(crate) const FD: c_int = 14;
/// ZMQ_EVENTS.
pub(crate) const EVENTS: c_int = 15;

/// A poller with one socket.
pub(crate) struct DraftPoller(*mut c_void);

// SAFETY: a poller locks itself, so any thread may use it. Only `drop` destroys it.
unsafe impl Send for DraftPoller {}
// SAFETY: as above.
unsafe impl Sync for DraftPoller {}

impl DraftPoller {
    /// Makes a poller for a socket, and warns as pyzmq does that this is experimental.
    pub(crate) fn new(py: Python<'_>, socket: SocketHandle) -> PyResult<DraftPoller> {
        let warning = py.import("zmq.error")?.getattr("DraftFDWarning")?.call0()?;
        py.import("warnings")?.call_method1("warn", (warning, py.None(), 2))?;
        let poller = DraftPoller(zmq_poller_new());
        let added = py.detach(|| poller.add(socket));
        if added { Ok(poller) } else { Err(errors::last(py)) }
    }

    fn add(&self, socket: SocketHandle) -> bool {
        let socket = std::ptr::with_exposed_provenance_mut(socket.address());
        let events = poller::POLLIN | poller::POLLOUT;
        // SAFETY: a poller or null, and a socket's handle, which stays readable for ever.
        unsafe { zmq_poller_add(self.0, socket, null_mut(), events) >= 0 }
    }

    /// Returns the descriptor of the poller.
    pub(crate) fn fd(&self, py: Python<'_>) -> PyResult<c_int> {
        let mut number = fd::NONE;
        // SAFETY: a poller, and a place for the descriptor.
        let status = unsafe { zmq_poller_fd(self.0, &raw mut number) };
        if status < 0 { Err(errors::last(py)) } else { Ok(fd::to_int(number)) }
    }

    /// Makes the descriptor unreadable until the next event.
    pub(crate) fn drain(&self, py: Python<'_>) {
        py.detach(|| {
            let mut event = MaybeUninit::<PollerEvent>::uninit();
            // SAFETY: a poller, and room for one event. The call waits only for the socket's lock.
            unsafe { zmq_poller_wait_all(self.0, event.as_mut_ptr(), 1, 0) };
        });
    }
}

impl Drop for DraftPoller {
    fn drop(&mut self) {
        let address = self.0.expose_provenance();
        let destroy = || {
            let mut poller = std::ptr::with_exposed_provenance_mut::<c_void>(address);
            // SAFETY: null, or a poller, whose last user is this value.
            unsafe { zmq_poller_destroy(&raw mut poller) };
        };
        // The call may wait for the socket's lock, so it releases the interpreter lock. After the
        // exit of the interpreter, no thread holds the socket's lock for long.
        if Python::try_attach(|py| py.detach(destroy)).is_none() {
            destroy();
        }
    }
}
