//! Proxies between two sockets in the calling thread.

use crate::Socket;
use crate::error::Result;
use crate::kind::{Kind, Receives, Sends};

/// Forwards whole messages between two sockets in both directions, until the context ends,
/// `zmq_proxy(3)`.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::thread;
/// use tautline::{Context, Dealer, Error, Router, proxy};
///
/// let context = Context::new();
/// let mut clients = Router::builder(&context).bind("tcp://127.0.0.1:*")?;
/// let mut workers = Dealer::builder(&context).bind("inproc://workers")?;
/// let broker = thread::spawn(move || proxy(&mut clients, &mut workers));
/// // Any number of REQ sockets connect to the ROUTER, and of REP sockets to the DEALER.
/// context.terminate()?;
/// assert_eq!(broker.join().unwrap(), Err(Error::Terminated));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns [`Error::Terminated`](crate::Error::Terminated) when the context ends, or
/// [`Error::Interrupted`](crate::Error::Interrupted).
pub fn proxy<A: Kind, B: Kind>(frontend: &mut Socket<A>, backend: &mut Socket<B>) -> Result<()> {
    Ok(tautline_core::proxy::run(&mut frontend.inner, Some(&mut backend.inner), None, None)?)
}

/// Forwards messages as [`proxy`] does. Also sends a copy of every message to `capture`, and obeys
/// commands from `control` (`PAUSE`, `RESUME`, `STATISTICS`, `TERMINATE`),
/// `zmq_proxy_steerable(3)`. Returns after `TERMINATE`.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::thread;
/// use tautline::{Context, Pair, Pull, Push, kind, proxy_steerable};
///
/// let context = Context::new();
/// let mut jobs = Pull::builder(&context).bind("inproc://jobs")?;
/// let mut workers = Push::builder(&context).bind("inproc://workers")?;
/// let mut steering = Pair::builder(&context).bind("inproc://steering")?;
/// let between = thread::spawn(move || {
///     proxy_steerable::<_, _, kind::Push, _>(&mut jobs, &mut workers, None, Some(&mut steering))
/// });
/// Pair::builder(&context).connect("inproc://steering")?.send("TERMINATE")?;
/// between.join().unwrap()
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`proxy`].
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
