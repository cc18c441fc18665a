//! Tautline's Rust API as a peer, with plain `send` and `recv`, nothing gathered by hand.
//!
//! Without a mode the ends are blocking sockets in threads of their own. `--mode current` is async sockets, each on a
//! single-threaded tokio runtime in its thread; `--mode multi` async sockets on one tokio runtime of two workers, each end
//! driven by a thread of its own; `--mode plain` async sockets without any runtime, on a thread that parks.
#![forbid(unsafe_code)]

#[macro_use]
mod ends;
mod tasks;
mod threads;
mod waiting;

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    if std::env::args().any(|argument| argument == "--mode") {
        bench_contract::main(version, |run| tasks::Tasks::new(&run.mode));
    } else {
        bench_contract::main(version, |_| Ok(threads::Threads::new()));
    }
}
