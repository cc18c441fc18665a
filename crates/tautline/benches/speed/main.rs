//! How fast the sockets are on this machine: `cargo bench -p tautline --all-features`.
//!
//! All of it takes some minutes; `-- latency` (or another group, or a part of a name) runs a part. Criterion writes its report to
//! `target/criterion/report/index.html`, and `cargo run -p xtask -- benches` prints the results as a table.
//!
//! Both ends are on this machine, each in a thread or task of its own. `blocking` stands for threads; `current` is async with a
//! single-threaded tokio runtime for each end, `multi` async with one runtime of two workers for both. Without the crate's feature
//! `tokio` these are woken by the engine's I/O thread, as they are on any other executor.

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
