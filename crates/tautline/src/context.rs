//! The context: state that all sockets of a program share.

use std::thread;
use std::time::Duration;

use tautline_core as core;

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::zap::{self, Authenticate};
use crate::{Builder, Rep, Socket};

// Option of zmq_ctx_set(3).
const IO_THREADS: i32 = 1;
const MAX_SOCKETS: i32 = 2;

/// Endpoint at which the engine expects the handler of RFC 27.
const HANDLER: &str = "inproc://zeromq.zap.01";

/// Owns the I/O threads and the `inproc` names that sockets share, `zmq_ctx_new(3)`. A program
/// needs one context. Clones refer to the same context.
///
/// The threads start with the first socket. Dropping the last clone has no effect: sockets stay
/// usable. To be sure that all messages have been sent, close the sockets and call
/// [`Context::terminate`].
#[derive(Debug, Clone, Default)]
pub struct Context(pub(crate) core::Context);

impl Context {
    /// Creates a context.
    pub fn new() -> Self {
        Context(tautline_host::context())
    }

    /// Refers to a context of the engine, for bindings of other languages.
    #[doc(hidden)]
    pub fn from_engine(context: core::Context) -> Self {
        Context(context)
    }

    /// Creates a socket of the kind that the caller names, or that type inference finds.
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
    /// Returns [`Error::TooManyOpen`] or [`Error::Terminated`].
    pub fn socket<K: Kind>(&self) -> Result<Socket<K>> {
        Socket::new(self)
    }

    /// Returns a builder, to set options before the socket is created.
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

    /// Installs `handler`. It decides which peers may connect to sockets that require keys or
    /// passwords; see [`zap`]. It runs on its own thread until the context ends. Call this before
    /// you bind the sockets.
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
    /// Returns [`Error::AddressInUse`] if the context already has a handler,
    /// [`Error::TooManyOpen`], [`Error::Terminated`], or [`Error::Os`] if the thread cannot be
    /// created.
    pub fn authenticate(&self, handler: impl Authenticate) -> Result<()> {
        let mut socket = Rep::builder(self).linger(Duration::ZERO).build()?;
        socket.bind(HANDLER)?;
        let thread = thread::Builder::new().name("ZMQ/ZAP".into());
        let spawned = thread.spawn(move || zap::serve(socket, handler));
        spawned.map(drop).map_err(|error| Error::from(core::Error::from(error)))
    }

    /// Makes this context, and all sockets that are created from now on, visible to external tools.
    /// The tools read sockets, endpoints, peers, counters and events from a file, but no messages,
    /// keys or passwords. The file is deleted when the last observed context has ended.
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
    /// Returns [`Error::Os`] if the file cannot be created, or [`Error::NotSupported`] on systems
    /// without this feature (Windows).
    pub fn observe(&self) -> Result<()> {
        Ok(self.0.observe()?)
    }

    /// Applies a policy to every endpoint that the sockets of this context bind or connect from now
    /// on. `named` is a policy of the library (`audit`, `loopback`, `strict`) or the path of a
    /// file. `TAUT_POLICY` in the environment does the same for all contexts, without a change of
    /// the program.
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
    /// Returns [`Error::Invalid`] if the policy does not exist, if it is faulty (standard error has
    /// the details), or if the context already has a policy.
    pub fn set_policy(&self, named: &str) -> Result<()> {
        Ok(self.0.set_policy(named)?)
    }

    /// Loads a names file. It maps names (`name://orders`) to endpoints, for every bind and connect
    /// from now on. `TAUT_NAMES` in the environment does the same for all contexts. The
    /// repository's `docs/use/names.md` describes the file. The cargo feature is `names`.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the file is unreadable or faulty (standard error has the
    /// details), or if the context already has a names file; [`Error::NotSupported`] without the
    /// feature.
    pub fn set_names(&self, file: impl AsRef<std::path::Path>) -> Result<()> {
        Ok(self.0.set_names(file.as_ref())?)
    }

    /// Sets the number of I/O threads (1). A program with very many connections may need more.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// let context = tautline::Context::new();
    /// context.set_io_threads(2)?;
    /// context.set_max_sockets(10_000)?;
    /// # Ok(()) }
    /// ```
    ///
    /// Only takes effect before the first socket.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the number exceeds the maximum.
    pub fn set_io_threads(&self, threads: u32) -> Result<()> {
        self.set("ZMQ_IO_THREADS", IO_THREADS, threads)
    }

    /// Sets the maximum number of open sockets (1023). Only takes effect before the first socket.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the number exceeds the maximum.
    pub fn set_max_sockets(&self, sockets: u32) -> Result<()> {
        self.set("ZMQ_MAX_SOCKETS", MAX_SOCKETS, sockets)
    }

    fn set(&self, name: &str, number: i32, value: u32) -> Result<()> {
        self.0.set(number, i32::try_from(value).unwrap_or(-1)).map_err(|error| match error {
            core::Error::Invalid => Error::invalid(format!("{name} does not take the value {value}")),
            other => other.into(),
        })
    }

    /// Ends every waiting call in any socket of this context with [`Error::Terminated`], now and in
    /// future, `zmq_ctx_shutdown(3)`. The sockets must still be dropped.
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
    /// First does the work of [`Context::shutdown`]. Then waits until all sockets are dropped and
    /// their queued messages are sent, each for at most its [`linger`](crate::Builder::linger)
    /// time, `zmq_ctx_term(3)`.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] on a signal: call again.
    pub fn terminate(&self) -> Result<()> {
        Ok(self.0.terminate()?)
    }

    /// Ends the context, as [`terminate`](Self::terminate) does, but waits for at most `patience`,
    /// regardless of the sockets' [`linger`](crate::Builder::linger) times. Messages of dropped
    /// sockets that are unsent at the deadline are dropped. If all sockets are dropped, the context
    /// has ended, with or without this error. Otherwise the call can be repeated. Async programs
    /// use [`aio::terminate`](crate::aio::terminate).
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
    /// assert_eq!(context.terminate_within(Duration::from_millis(10)), Err(Error::TimedOut));
    /// assert_eq!(context.terminate(), Ok(()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::TimedOut`] if a socket is still open or messages were dropped, or
    /// [`Error::Interrupted`] on a signal: call again.
    pub fn terminate_within(&self, patience: Duration) -> Result<()> {
        self.0.terminate_within(Some(patience)).map_err(Error::for_limit)
    }
}
