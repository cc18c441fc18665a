//! PUSH/PULL pairs in parallel in one context. Each end is a thread with its own socket.

use std::sync::Barrier;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use tautline::{Context, Pull, Push};

use crate::support::{Counter, place};

const SIZE: usize = 64;

pub fn run(criterion: &mut Criterion) {
    for transport in ["tcp", "inproc"] {
        let mut group = criterion.benchmark_group(format!("multithreaded/{transport}"));
        for pairs in [1, 2, 4] {
            group.throughput(Throughput::Elements(pairs));
            group.bench_function(BenchmarkId::new("pairs", pairs), |bencher| {
                let context = Context::new();
                let mut ends: Vec<(Push, Counter)> = (0..pairs)
                    .map(|_| {
                        let mut pull = Pull::new(&context).unwrap();
                        let endpoint = pull.bind(&place(transport)).unwrap();
                        let push = Push::builder(&context).connect(&endpoint).unwrap();
                        (push, Counter::thread(pull, SIZE))
                    })
                    .collect();
                bencher.iter_custom(|messages| {
                    let together = Barrier::new(ends.len());
                    let runs = std::thread::scope(|scope| {
                        let threads: Vec<_> = ends
                            .iter_mut()
                            .map(|(push, counter)| {
                                let together = &together;
                                scope.spawn(move || {
                                    counter.expect(messages);
                                    together.wait();
                                    let began = Instant::now();
                                    for _ in 0..messages {
                                        push.send(&[7; SIZE]).unwrap();
                                    }
                                    (began, counter.reached())
                                })
                            })
                            .collect();
                        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
                    });
                    let began = runs.iter().map(|run| run.0).min().unwrap();
                    runs.iter().map(|run| run.1).max().unwrap() - began
                });
            });
        }
    }
}
