//! Tautline's Rust API as a peer, with plain `send` and `recv`.
//!
//! Each end has a separate thread. Without a mode, the ends are blocking sockets. The other modes use async
//! sockets: `--mode current` on a single-threaded tokio runtime in each thread, `--mode multi` on one tokio
//! runtime of two workers, `--mode plain` without a runtime, on threads that park.
//!
//! `--mode batches` (`batches-current`, ...) gathers the messages of PUSH, DEALER and ROUTER until the flush,
//! and sends and receives many messages in one call.
#![forbid(unsafe_code)]

#[macro_use]
mod ends;
mod tasks;
mod threads;
mod waiting;

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    let mode = std::env::args().skip_while(|argument| argument != "--mode").nth(1);
    if mode.is_none_or(|mode| mode == "batches") {
        bench_contract::main(version, |_| Ok(threads::Threads::new()));
    } else {
        bench_contract::main(version, |run| {
            tasks::Tasks::new(run.mode.strip_prefix("batches-").unwrap_or(&run.mode))
        });
    }
}
