//! The contract between the harness and a peer written in Rust (bench/README.md, "A new peer").
//!
//! A peer says how one end sends and receives; this crate parses the command line, runs both ends in threads of their
//! own, stamps and checks every message, and prints the one line of JSON. An end is used by one thread only.
#![forbid(unsafe_code)]
mod crowd;
mod flow;
mod memory;
mod outcome;
mod run;
mod trips;

use std::future::Future;

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Run {
    /// Given before the contract's options by the peer's file, for a program with several modes.
    pub mode: String,
    pub pattern: String,
    pub transport: String,
    pub size: usize,
    pub count: u64,
    /// `buffers` or `messages`, for a library that receives in both ways.
    pub api: String,
    /// Round trips under way at a time.
    pub window: u64,
    /// How many `Subscribe` the one `Publish` has.
    pub subscribers: u64,
    /// PUSH/PULL pairs side by side.
    pub pairs: u64,
    /// Of a hundred messages, how many a subscriber wants.
    pub matching: u64,
    pub connections: u64,
    /// What a `Subscribe` subscribes to; the first bytes of the messages it wants.
    pub topic: Vec<u8>,
    pub timeout_s: u64,
    /// Where the binding end binds: `tcp://127.0.0.1:PORT`, `ipc:///tmp/...` or `inproc://...`.
    pub endpoint: String,
}

/// What an end is. The second of each pair binds, the first connects; of `Publish` and `Subscribe` the first.
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

/// Why there is no result.
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

/// One end of a connection. A `Router` remembers from whom it received last and sends there.
#[allow(async_fn_in_trait)]
pub trait End {
    async fn send(&mut self, body: &[u8]) -> Result<(), Trouble>;
    /// Receives one message into `body`, in place of what was there.
    async fn receive(&mut self, body: &mut Vec<u8>) -> Result<(), Trouble>;
    /// Sends what a mode that gathers has gathered; nothing elsewhere.
    async fn flush(&mut self) -> Result<(), Trouble> {
        Ok(())
    }
}

/// A messaging library.
#[allow(async_fn_in_trait)]
pub trait Peer: Sync {
    type End: End;
    /// Runs one end's whole life on the calling thread.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T;
    /// Opens an end. One that binds calls `bound` as soon as the other may connect.
    async fn open(&self, role: Role, run: &Run, bound: &dyn Fn()) -> Result<Self::End, Trouble>;
}

/// The `main` of a peer: its name and version, and how to make it for a run.
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
            r#"{"ok":false,"unsupported":true,"error":"the library has no such thing"}"#.to_owned()
        }
        Err(Trouble::Failed(why)) => format!(r#"{{"ok":false,"error":{:?}}}"#, why),
    };
    if let Some(path) = run.endpoint.strip_prefix("ipc://") {
        let _ = std::fs::remove_file(path);
    }
    println!("{line}");
    // Whatever runtimes still run need not be taken down in order.
    std::process::exit(0);
}
