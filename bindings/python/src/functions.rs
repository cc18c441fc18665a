//! Functions and constants of the module.

use std::ffi::{CStr, CString, c_char, c_int};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tautline_abi::native::{self, EnteredSocket, Refusal, SocketHandle};
use tautline_abi::{zmq_curve_keypair, zmq_curve_public, zmq_has, zmq_strerror, zmq_version};
use tautline_core::Error;

use crate::socket::{Socket, name};
use crate::{enter, errors};

/// Maximum length of the path of an ipc address: `sun_path` without its NUL.
pub(crate) const IPC_PATH_MAX_LEN: usize =
    if cfg!(any(target_os = "linux", target_os = "android")) { 107 } else { 103 };

/// Length of a key as Z85 text.
const KEY: usize = 40;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("IPC_PATH_MAX_LEN", IPC_PATH_MAX_LEN)?;
    module.add_function(wrap_pyfunction!(zmq_errno, module)?)?;
    module.add_function(wrap_pyfunction!(strerror, module)?)?;
    module.add_function(wrap_pyfunction!(zmq_version_info, module)?)?;
    module.add_function(wrap_pyfunction!(has, module)?)?;
    module.add_function(wrap_pyfunction!(curve_keypair, module)?)?;
    module.add_function(wrap_pyfunction!(curve_public, module)?)?;
    module.add_function(wrap_pyfunction!(proxy, module)?)?;
    module.add_function(wrap_pyfunction!(proxy_steerable, module)?)
}

/// Returns the number of the last error of this thread, zmq_errno(3).
#[pyfunction]
fn zmq_errno() -> c_int {
    tautline_abi::zmq_errno()
}

/// Returns the text of an error number, zmq_strerror(3).
#[pyfunction]
fn strerror(errno: c_int) -> String {
    // SAFETY: `zmq_strerror` returns a terminated text, which only this thread's next call changes.
    unsafe { CStr::from_ptr(zmq_strerror(errno)) }.to_string_lossy().into_owned()
}

/// Returns the version of ZeroMQ that this library implements, zmq_version(3).
#[pyfunction]
fn zmq_version_info() -> (c_int, c_int, c_int) {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three valid places.
    unsafe { zmq_version(&raw mut major, &raw mut minor, &raw mut patch) };
    (major, minor, patch)
}

/// True if the library has a capability, zmq_has(3).
#[pyfunction]
fn has(capability: &str) -> bool {
    let Ok(capability) = CString::new(capability) else { return false };
    // SAFETY: a terminated text.
    unsafe { zmq_has(capability.as_ptr()) != 0 }
}

/// Returns a new pair of keys for CURVE, the public and the secret one, zmq_curve_keypair(3).
#[pyfunction]
fn curve_keypair(py: Python<'_>) -> PyResult<(Bound<'_, PyBytes>, Bound<'_, PyBytes>)> {
    let (mut public, mut secret) = ([0_u8; KEY + 1], [0_u8; KEY + 1]);
    // SAFETY: each place has room for a key and its NUL.
    let status = unsafe {
        zmq_curve_keypair(public.as_mut_ptr().cast::<c_char>(), secret.as_mut_ptr().cast::<c_char>())
    };
    if status < 0 {
        return Err(errors::last(py));
    }
    Ok((PyBytes::new(py, &public[..KEY]), PyBytes::new(py, &secret[..KEY])))
}

/// Returns the public key of a secret one, zmq_curve_public(3).
#[pyfunction]
fn curve_public<'py>(py: Python<'py>, secret_key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let secret = name(secret_key)?;
    if secret.len() != KEY {
        return Err(PyValueError::new_err("secret key must be a 40 byte z85 encoded string"));
    }
    let secret = CString::new(secret)?;
    let mut public = [0_u8; KEY + 1];
    // SAFETY: room for a key and its NUL, and a terminated text.
    let status = unsafe { zmq_curve_public(public.as_mut_ptr().cast::<c_char>(), secret.as_ptr()) };
    if status < 0 { Err(errors::last(py)) } else { Ok(PyBytes::new(py, &public[..KEY])) }
}

/// Forwards messages between two sockets until the context is terminated, and copies them to
/// `capture`, zmq_proxy(3).
#[pyfunction]
#[pyo3(signature = (frontend, backend, capture = None))]
fn proxy(
    py: Python<'_>,
    frontend: &Bound<'_, Socket>,
    backend: &Bound<'_, Socket>,
    capture: Option<&Bound<'_, Socket>>,
) -> PyResult<c_int> {
    proxy_steerable(py, frontend, backend, capture, None)
}

/// Like `proxy`, and obeys commands from `control`, zmq_proxy_steerable(3).
#[pyfunction]
#[pyo3(signature = (frontend, backend, capture = None, control = None))]
fn proxy_steerable(
    py: Python<'_>,
    frontend: &Bound<'_, Socket>,
    backend: &Bound<'_, Socket>,
    capture: Option<&Bound<'_, Socket>>,
    control: Option<&Bound<'_, Socket>>,
) -> PyResult<c_int> {
    let handle =
        |socket: Option<&Bound<'_, Socket>>| socket.map(|socket| socket.get().handle(py)).transpose();
    let frontend = frontend.get().handle(py)?;
    // One socket may be both ends. It is then entered once.
    let backend = Some(backend.get().handle(py)?).filter(|backend| *backend != frontend);
    let all = [Some(frontend), backend, handle(capture)?, handle(control)?];
    for (index, socket) in all.iter().enumerate() {
        if socket.is_some() && all[..index].contains(socket) {
            return Err(errors::exception(py, Error::Invalid));
        }
    }
    loop {
        match py.detach(|| run(&all)) {
            Ok(Ok(())) => return Ok(0),
            Ok(Err(Error::Interrupted)) => py.check_signals()?,
            Ok(Err(error)) => return Err(errors::after_signals(py, error)),
            Err((socket, Refusal::Busy)) => enter::wait_for_turn(py, socket)?,
            Err((_, refusal)) => return Err(errors::exception(py, errors::of_refusal(refusal))),
        }
    }
}

/// Enters all sockets and runs the proxy. Returns the socket that cannot be entered.
fn run(sockets: &[Option<SocketHandle>; 4]) -> Result<Result<(), Error>, (SocketHandle, Refusal)> {
    let mut entered: [Option<EnteredSocket<'_>>; 4] = [const { None }; 4];
    for (place, socket) in entered.iter_mut().zip(sockets) {
        if let Some(socket) = socket {
            *place = Some(socket.enter().map_err(|refusal| (*socket, refusal))?);
        }
    }
    let [Some(frontend), backend, capture, control] = &mut entered else { return Ok(Err(Error::Fault)) };
    Ok(native::join(frontend, backend.as_mut(), capture.as_mut(), control.as_mut()))
}
