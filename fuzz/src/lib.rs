//! Code that a hostile peer, a careless caller or a damaged file can reach, as functions of bytes.
//!
//! A target takes any bytes, feeds them to one part of the library, and panics if the part breaks a promise:
//! the cuts of a stream have no effect, memory is bounded, and encoded data decodes to the same data. libFuzzer
//! runs the targets (`make fuzz`). `cargo test` runs them over their seeds and some thousand mutations of the
//! seeds.

pub mod abi;
pub mod failure;
pub mod format;
pub mod input;
pub mod live;
pub mod meter;
pub mod smoke;
mod stream_parser;
pub mod targets;

/// One target.
pub struct Target {
    /// Name of the target, of its program and of its folder in `corpus/`.
    pub name: &'static str,
    /// Runs the target on one input.
    pub run: fn(&[u8]),
    /// Seed inputs, made by our own encoders or taken from the RFCs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Number of mutations that the test tries. It is smaller if an input costs system calls.
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
            dns: 50_000,
            names: 20_000,
            policy: 20_000,
            recording: 20_000,
            counters: 5_000,
            tap: 20_000,
        }
    };
}

/// Calls a macro with the targets that use live sockets. They measure the memory of the process, so only one
/// of them runs at a time, and no other target runs beside it.
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

/// Targets that call functions.
pub static PURE_TARGETS: &[Target] = calls!(table);
/// Targets that use live sockets.
pub static SYSTEM_TARGETS: &[Target] = talks!(table);

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    PURE_TARGETS.iter().chain(SYSTEM_TARGETS)
}
