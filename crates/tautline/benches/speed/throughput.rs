//! PUSH to PULL, one message each: over tcp, ipc and inproc.

use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use tautline::{Context, Pull, Push};

use crate::support::{Counter, Runtimes, place};

const SIZES: [usize; 5] = [64, 256, 1024, 4096, 16_384];

pub fn run(criterion: &mut Criterion) {
    for transport in ["tcp", "ipc", "inproc"] {
        let mut group = criterion.benchmark_group(format!("throughput/{transport}"));
        group.throughput(Throughput::Elements(1));
        for size in SIZES {
            group.bench_function(BenchmarkId::new("blocking", size), |bencher| {
                let (mut push, pull) = ends(transport);
                let counter = Counter::thread(pull, size);
                let body = vec![7; size];
                bencher.iter_custom(|messages| {
                    counter.expect(messages);
                    let began = Instant::now();
                    for _ in 0..messages {
                        push.send(&body).unwrap();
                    }
                    counter.reached() - began
                });
            });
        }
        for runtime in ["current", "multi"] {
            for size in [64, 1024] {
                group.bench_function(BenchmarkId::new(runtime, size), |bencher| {
                    let runtimes = Runtimes::named(runtime);
                    let (push, pull) = ends(transport);
                    let counter = Counter::task(&runtimes, pull.into_async(), size);
                    let mut push = Some(push.into_async());
                    bencher.iter_custom(|messages| {
                        counter.expect(messages);
                        let (mut socket, body) = (push.take().unwrap(), vec![7; size]);
                        let (socket, began) = runtimes.run(async move {
                            let began = Instant::now();
                            for _ in 0..messages {
                                socket.send(&body).await.unwrap();
                            }
                            (socket, began)
                        });
                        push = Some(socket);
                        counter.reached() - began
                    });
                });
            }
        }
    }
}

fn ends(transport: &str) -> (Push, Pull) {
    let context = Context::new();
    let mut pull = Pull::new(&context).unwrap();
    let endpoint = pull.bind(&place(transport)).unwrap();
    (Push::builder(&context).connect(&endpoint).unwrap(), pull)
}
