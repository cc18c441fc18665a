//! A proxy between two sockets, in a thread of its own.

use napi_derive::napi;
use tautline_core::{self as core, Error, Flags, SocketType};

use crate::context::NativeContext;
use crate::errors::code;
use crate::socket::NativeSocket;

/// Takes both sockets away from JavaScript and joins them until the PAIR bound to `control` says TERMINATE. Then the sockets are closed,
/// and the errno of the end goes to that PAIR, 4 bytes. Returns 0 or an error; then both sockets are as before.
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
    // If there is no thread to be had the sockets are closed with the closure.
    std::thread::Builder::new().name("tautline-proxy".into()).spawn(work).map(drop).map_err(Error::from)
}
