//! Tautline's Rust API as a peer, with plain `send` and `recv`.
//!
//! Without a mode the ends are blocking sockets in threads of their own. `--mode current` is async sockets, each on a
//! single-threaded tokio runtime in its thread; `--mode multi` async sockets on one tokio runtime of two workers, each end
//! driven by a thread of its own; `--mode plain` async sockets without any runtime, on a thread that parks.
//!
//! `--mode batches` (`batches-current`, ...) gathers what PUSH, DEALER and ROUTER send until the flush, and sends and receives many
//! messages in one call.
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
