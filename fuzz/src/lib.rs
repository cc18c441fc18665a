//! What a hostile peer or a careless caller can reach, as functions of bytes.
//!
//! A target takes any bytes, plays them to one part of the library, and panics if the part breaks a promise: that a cut of the stream
//! changes nothing, that what is kept is bounded, that what was written reads back. The same targets run under libFuzzer
//! (`make fuzz`) and, over their seeds and some thousand mutations of them, in `cargo test`.

pub mod abi;
pub mod live;
pub mod meter;
mod parts;
pub mod pieces;
pub mod smoke;
pub mod targets;

/// One target.
pub struct Target {
    /// Its name: that of its program and of its folder in `corpus/`.
    pub name: &'static str,
    /// Takes one input.
    pub run: fn(&[u8]),
    /// Inputs to begin with, made by our own encoders or taken from the RFCs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many mutations the test tries: fewer where an input costs system calls.
    pub mutations: usize,
}

/// Calls a macro with the targets that call functions, each with its number of mutations.
#[macro_export]
macro_rules! calls {
    ($then:ident) => {
        $then! {
            frame: 200_000,
            command: 50_000,
            greeting: 20_000,
            null: 10_000,
            plain: 10_000,
            curve: 1_000,
            older: 10_000,
            websocket: 10_000,
            socks: 20_000,
            zap: 20_000,
            endpoint: 20_000,
            options: 2_000,
            messages: 5_000,
            keys: 2_000,
            memory: 5_000,
            subscriptions: 50_000,
        }
    };
}

/// The same with the targets that talk to living sockets. They count what the process takes, so
/// only one of them runs at a time, and nothing beside it.
#[macro_export]
macro_rules! talks {
    ($then:ident) => {
        $then! {
            connection: 1_000,
            peers: 300,
            admission: 300,
            dialer: 300,
            datagram: 1_000,
            publisher: 300,
            descriptors: 1_000,
            wss: 300,
        }
    };
}

macro_rules! table {
    ($($name:ident: $mutations:literal,)*) => {
        &[$(Target {
            name: stringify!($name),
            run: targets::$name::run,
            seeds: targets::$name::seeds,
            mutations: $mutations,
        }),*]
    };
}

/// The targets that call functions.
pub static CALLS: &[Target] = calls!(table);
/// The targets that talk to living sockets.
pub static TALKS: &[Target] = talks!(table);

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    CALLS.iter().chain(TALKS)
}
