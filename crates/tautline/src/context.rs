//! The context: what all sockets of a program share.

use std::thread;
use std::time::Duration;

use tautline_core as core;

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::zap::{self, Authenticate};
use crate::{Builder, Rep, Socket};

// zmq_ctx_set(3).
const IO_THREADS: i32 = 1;
const MAX_SOCKETS: i32 = 2;

/// Where the engine looks for the handler of RFC 27.
const HANDLER: &str = "inproc://zeromq.zap.01";

/// The I/O threads and the `inproc` names that sockets share, `zmq_ctx_new(3)`. A program needs
/// one. Clones are the same context.
///
/// Threads start with the first socket. Nothing happens when the last clone is dropped: sockets
/// live on. To be sure that everything has been sent, close the sockets and call
/// [`Context::terminate`].
#[derive(Debug, Clone, Default)]
pub struct Context(pub(crate) core::Context);

impl Context {
    /// A new context.
    pub fn new() -> Self {
        Context(core::Context::new())
    }

    /// A new socket of the kind that the caller names or uses.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::{Context, Pull, kind};
    ///
    /// let context = Context::new();
    /// let mut pull: Pull = context.socket()?;
    /// let mut publisher = context.socket::<kind::Pub>()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::TooMany`], [`Error::Terminated`].
    pub fn socket<K: Kind>(&self) -> Result<Socket<K>> {
        Socket::new(self)
    }

    /// A socket whose options are to be set first.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::{Context, Pull};
    ///
    /// let pull: Pull = Context::new().builder().receive_hwm(10).bind("tcp://127.0.0.1:*")?;
    /// # Ok(()) }
    /// ```
    pub fn builder<K: Kind>(&self) -> Builder<K> {
        Builder::new(self)
    }

    /// From now on `handler` judges which peers may connect to sockets that ask for keys or
    /// passwords; see [`zap`]. It runs on a thread of its own, until the context ends. To be called
    /// before the sockets are bound.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::zap::{Request, Verdict};
    /// use tautline::{Context, zap::AllowList};
    ///
    /// let (one, other) = (Context::new(), Context::new());
    /// one.authenticate(AllowList::new().password("joe", "swordfish"))?;
    /// other.authenticate(|request: &Request| match request.address() {
    ///     "127.0.0.1" => Verdict::admit("neighbour"),
    ///     _ => Verdict::refuse("not from here"),
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::AddressInUse`] if there is a handler already, [`Error::TooMany`],
    /// [`Error::Terminated`], [`Error::Os`] without a thread.
    pub fn authenticate(&self, handler: impl Authenticate) -> Result<()> {
        let mut socket = Rep::builder(self).linger(Duration::ZERO).build()?;
        socket.bind(HANDLER)?;
        let thread = thread::Builder::new().name("ZMQ/ZAP".into());
        let spawned = thread.spawn(move || zap::serve(socket, handler));
        spawned.map(drop).map_err(|error| Error::from(core::Error::from(error)))
    }

    /// Shows this context, and the sockets that are made from now on, to tools that look at the
    /// process from outside. They see sockets, endpoints, peers, counters and events in a file that
    /// goes when the last observed context has ended; no messages, keys or passwords.
    /// `TAUT_OBSERVE=1` in the environment does the same for all contexts, without a change of the
    /// program.
    ///
    /// ```
    /// let context = tautline::Context::new();
    /// if let Err(error) = context.observe() {
    ///     eprintln!("not observed: {error}");
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Os`] if the file cannot be made, [`Error::NotSupported`] on systems without it
    /// (Windows).
    pub fn observe(&self) -> Result<()> {
        Ok(self.0.observe()?)
    }

    /// Puts the sockets of this context under a policy, for what is bound and connected from now
    /// on: one that comes with the library (`audit`, `loopback`, `strict`), or the path of a file.
    /// `TAUT_POLICY` in the environment does the same for all contexts, without a change of the
    /// program.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// let context = tautline::Context::new();
    /// context.set_policy("loopback")?;
    /// let mut publisher = tautline::Pub::new(&context)?;
    /// assert!(publisher.bind("tcp://*:*").is_err());
    /// publisher.bind("tcp://127.0.0.1:*")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such policy or it has a fault, which is told on standard
    /// error, and if the context has one already.
    pub fn set_policy(&self, named: &str) -> Result<()> {
        Ok(self.0.set_policy(named)?)
    }

    /// Reads from a names file what names (`name://orders`) stand for, for what is bound and
    /// connected from now on. `TAUT_NAMES` in the environment does the same for all contexts. The
    /// repository's `docs/use/names.md` describes the file; the cargo feature is `names`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file cannot be read or has a fault, which is told on standard
    /// error, and if the context has one already; [`Error::NotSupported`] without the feature.
    pub fn set_names(&self, file: impl AsRef<std::path::Path>) -> Result<()> {
        Ok(self.0.set_names(file.as_ref())?)
    }

    /// How many I/O threads there are to be (1); a program with very many connections may want
    /// more.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// let context = tautline::Context::new();
    /// context.set_io_threads(2)?;
    /// context.set_max_sockets(10_000)?;
    /// # Ok(()) }
    /// ```
    ///
    /// Takes effect before the first socket only.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is more than can be.
    pub fn set_io_threads(&self, threads: u32) -> Result<()> {
        self.set("ZMQ_IO_THREADS", IO_THREADS, threads)
    }

    /// How many sockets there may be at once (1023). Takes effect before the first socket only.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is more than can be.
    pub fn set_max_sockets(&self, sockets: u32) -> Result<()> {
        self.set("ZMQ_MAX_SOCKETS", MAX_SOCKETS, sockets)
    }

    fn set(&self, name: &str, number: i32, value: u32) -> Result<()> {
        self.0.set(number, i32::try_from(value).unwrap_or(-1)).map_err(|error| match error {
            core::Error::Invalid => Error::invalid(format!("{name} does not take the value {value}")),
            other => other.into(),
        })
    }

    /// Ends every call that waits in any socket of this context with [`Error::Terminated`], now and
    /// from now on, `zmq_ctx_shutdown(3)`. Sockets still must be dropped.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use std::thread;
    /// use tautline::{Context, Error, Pull};
    ///
    /// let context = Context::new();
    /// let mut pull = Pull::new(&context)?;
    /// let waiting = thread::spawn(move || pull.recv());
    /// context.shutdown();
    /// assert_eq!(waiting.join().unwrap().unwrap_err(), Error::Terminated);
    /// # Ok(()) }
    /// ```
    pub fn shutdown(&self) {
        // Fails only if it was called before.
        let _ = self.0.shutdown();
    }

    /// Ends the context.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::{Context, Pull};
    ///
    /// let context = Context::new();
    /// let pull = Pull::new(&context)?;
    /// drop(pull);
    /// context.terminate()?;
    /// assert_eq!(Pull::new(&context).err(), Some(tautline::Error::Terminated));
    /// # Ok(()) }
    /// ```
    ///
    /// As [`Context::shutdown`], then waits until all sockets are dropped and what they had queued
    /// is sent, each for at most its [`linger`](crate::Builder::linger) time, `zmq_ctx_term(3)`.
    ///
    /// # Errors
    /// [`Error::Interrupted`] by a signal: call again.
    pub fn terminate(&self) -> Result<()> {
        Ok(self.0.terminate()?)
    }

    /// As [`terminate`](Self::terminate), but waits for at most `patience`, whatever the sockets'
    /// [`linger`](crate::Builder::linger) times are. What dropped sockets then still have to send
    /// is dropped. If all are dropped, the context has ended, with this error or without; if not,
    /// the call may be repeated. Async programs have [`aio::terminate`](crate::aio::terminate).
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use std::time::Duration;
    /// use tautline::{Context, Error, Push};
    ///
    /// let context = Context::new();
    /// let mut push = Push::builder(&context).connect("tcp://127.0.0.1:1")?;
    /// push.send("nobody is there")?;
    /// drop(push); // lingers
    /// assert_eq!(context.terminate_within(Duration::from_millis(10)), Err(Error::WouldBlock));
    /// assert_eq!(context.terminate(), Ok(()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if a socket is still open, or something was dropped;
    /// [`Error::Interrupted`] by a signal: call again.
    pub fn terminate_within(&self, patience: Duration) -> Result<()> {
        Ok(self.0.terminate_within(Some(patience))?)
    }
}
