//! Speed of the sockets on this machine: `cargo bench -p tautline --all-features`.
//!
//! The whole run takes some minutes. `-- latency` (or another group, or a part of a name) runs a part. Criterion writes its
//! report to `target/criterion/report/index.html`, and `cargo run -p xtask -- benches` prints the results as a table.
//!
//! Both ends are on this machine, each in its own thread or task. `blocking` uses threads. `current` is async, with a
//! single-threaded tokio runtime for each end. `multi` is async, with one runtime of two workers for both ends. Without the
//! crate's feature `tokio`, the engine's I/O thread wakes the tasks, as on any other executor.

mod latency;
mod multithreaded;
mod patterns;
mod pipelined;
mod support;
mod throughput;

criterion::criterion_group! {
    name = all;
    config = support::quick();
    targets = latency::run, throughput::run, pipelined::run, patterns::run, multithreaded::run
}
criterion::criterion_main!(all);
