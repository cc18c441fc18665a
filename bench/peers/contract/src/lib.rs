//! The contract between the harness and a peer written in Rust (bench/README.md, "A new peer").
//!
//! A peer defines how one end sends and receives. This crate parses the command line, runs each end in a
//! separate thread, stamps and checks every message, and prints the one line of JSON. Only one thread
//! uses an end.
#![forbid(unsafe_code)]
mod crowd;
mod flow;
mod memory;
mod outcome;
mod run;
mod trips;

use std::future::Future;

/// Options of the command line.
#[derive(Clone, Debug)]
pub struct Run {
    /// Mode of a program that has several. The peer's file puts it before the contract's options.
    pub mode: String,
    pub pattern: String,
    pub transport: String,
    pub size: usize,
    pub count: u64,
    /// `buffers` or `messages`, for a library that can receive in both ways.
    pub api: String,
    /// Round trips in flight.
    pub window: u64,
    /// Number of `Subscribe` for the one `Publish`.
    pub subscribers: u64,
    /// Number of parallel PUSH/PULL pairs.
    pub pairs: u64,
    /// Percentage of the messages that a subscriber wants.
    pub matching: u64,
    pub connections: u64,
    /// Subscription of a `Subscribe`: the first bytes of the messages that it wants.
    pub topic: Vec<u8>,
    pub timeout_s: u64,
    /// Endpoint of the binding end: `tcp://127.0.0.1:PORT`, `ipc:///tmp/...` or `inproc://...`.
    pub endpoint: String,
}

/// Role of an end. The second of each pair binds, and the first connects. `Publish` binds, and `Subscribe`
/// connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Push,
    Pull,
    Publish,
    Subscribe,
    Request,
    Reply,
    Dealer,
    Router,
}

impl Role {
    pub fn binds(self) -> bool {
        matches!(self, Role::Pull | Role::Publish | Role::Reply | Role::Router)
    }
}

/// Reason for a missing result.
#[derive(Debug)]
pub enum Trouble {
    /// The library has no such socket or transport.
    Unsupported,
    Failed(String),
}

impl<E: std::fmt::Display> From<E> for Trouble {
    fn from(error: E) -> Self {
        Trouble::Failed(error.to_string())
    }
}

/// One end of a connection. A `Router` remembers the sender of the last message and sends to it.
#[allow(async_fn_in_trait)]
pub trait End {
    async fn send(&mut self, body: &[u8]) -> Result<(), Trouble>;
    /// Receives one message into `body`, replacing its content.
    async fn receive(&mut self, body: &mut Vec<u8>) -> Result<(), Trouble>;
    /// Sends the messages that a batching mode has gathered. No effect in the other modes.
    async fn flush(&mut self) -> Result<(), Trouble> {
        Ok(())
    }
}

/// A messaging library.
#[allow(async_fn_in_trait)]
pub trait Peer: Sync {
    type End: End;
    /// Runs one end from start to finish on the calling thread.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T;
    /// Opens an end. A binding end calls `bound` as soon as the other end may connect.
    async fn open(&self, role: Role, run: &Run, bound: &dyn Fn()) -> Result<Self::End, Trouble>;
}

/// `main` of a peer, with its name and version, and a function that creates it for a run.
pub fn main<P: Peer>(version: &str, make: impl FnOnce(&Run) -> Result<P, Trouble>) {
    let run = match run::parse() {
        Ok(run) => run,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    run::watchdog(run.timeout_s);
    let line = match make(&run).and_then(|peer| run::go(&peer, &run)) {
        Ok(outcome) => outcome.json(&run, version),
        Err(Trouble::Unsupported) => {
            r#"{"ok":false,"unsupported":true,"error":"the library does not support this"}"#.to_owned()
        }
        Err(Trouble::Failed(why)) => format!(r#"{{"ok":false,"error":{:?}}}"#, why),
    };
    if let Some(path) = run.endpoint.strip_prefix("ipc://") {
        let _ = std::fs::remove_file(path);
    }
    println!("{line}");
    // Running runtimes need no orderly shutdown.
    std::process::exit(0);
}
