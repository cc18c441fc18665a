//! Joining two sockets in the calling thread.

use crate::Socket;
use crate::error::Result;
use crate::kind::{Kind, Receives, Sends};

/// Forwards whole messages between two sockets in both directions, until the context ends, `zmq_proxy(3)`.
///
/// # Errors
/// [`Error::Terminated`](crate::Error::Terminated) when the context ends, [`Error::Interrupted`](crate::Error::Interrupted).
pub fn proxy<A: Kind, B: Kind>(frontend: &mut Socket<A>, backend: &mut Socket<B>) -> Result<()> {
    Ok(tautline_core::proxy::run(&mut frontend.inner, Some(&mut backend.inner), None, None)?)
}

/// As [`proxy`], with a copy of every message to `capture`, and commands from `control` (`PAUSE`, `RESUME`, `STATISTICS`, `TERMINATE`),
/// `zmq_proxy_steerable(3)`. Returns after `TERMINATE`.
///
/// # Errors
/// As [`proxy`].
pub fn proxy_steerable<A: Kind, B: Kind, C: Sends, D: Receives>(
    frontend: &mut Socket<A>,
    backend: &mut Socket<B>,
    capture: Option<&mut Socket<C>>,
    control: Option<&mut Socket<D>>,
) -> Result<()> {
    Ok(tautline_core::proxy::run(
        &mut frontend.inner,
        Some(&mut backend.inner),
        capture.map(|socket| &mut socket.inner),
        control.map(|socket| &mut socket.inner),
    )?)
}
