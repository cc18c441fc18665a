//! Runs a proxy between two sockets in a separate thread.

use napi_derive::napi;
use tautline_core::{self as core, Error, Flags, SocketType};

use crate::context::NativeContext;
use crate::errors::code;
use crate::socket::NativeSocket;

/// Takes both sockets away from JavaScript and forwards messages between them, until the PAIR bound to `control` sends TERMINATE or a
/// socket fails. Then the thread closes the sockets and sends an errno to that PAIR as 4 bytes, 0 after TERMINATE.
///
/// Returns 0 or an error. JavaScript keeps both sockets after an error, unless the thread could not be created: then both are closed.
#[napi(catch_unwind)]
pub fn start_proxy(
    front: &NativeSocket,
    back: &NativeSocket,
    context: &NativeContext,
    control: String,
) -> i32 {
    start(front, back, &context.0, &control).map_or_else(code, |()| 0)
}

fn start(
    front: &NativeSocket,
    back: &NativeSocket,
    context: &core::Context,
    control: &str,
) -> Result<(), Error> {
    let mut steering = context.socket(SocketType::Pair)?;
    steering.connect(control)?;
    let mut frontend = front.take().ok_or(Error::NotSocket)?;
    let Some(mut backend) = back.take() else {
        front.put_back(frontend);
        return Err(Error::NotSocket);
    };
    let work = move || {
        let outcome = core::proxy::run(&mut frontend, Some(&mut backend), None, Some(&mut steering));
        drop((frontend, backend));
        let errno = outcome.map_or_else(core::Error::errno, |()| 0);
        // If the peer has closed its PAIR, the result is not needed.
        let _ = steering.send(&errno.to_ne_bytes(), Flags::DONTWAIT);
    };
    // If the thread cannot be created, dropping the closure closes the sockets.
    std::thread::Builder::new().name("tautline-proxy".into()).spawn(work).map(drop).map_err(Error::from)
}
