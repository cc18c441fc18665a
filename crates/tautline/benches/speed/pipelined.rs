//! DEALER to ROUTER and back, in batches of 100: the whole batch there, then the whole batch back.

use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use tautline::{Context, Dealer, Router};

use crate::support::{Runtimes, place};

const BATCH: usize = 100;

pub fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipelined/tcp");
    group.throughput(Throughput::Elements(BATCH as u64));
    for size in [64, 1024, 16_384] {
        group.bench_function(BenchmarkId::new("blocking", size), |bencher| {
            let (context, mut dealer, mut router) = ends();
            let server = std::thread::spawn(move || {
                while let Ok(message) = router.recv_multipart() {
                    router.send_multipart(&message).unwrap();
                }
            });
            let mut body = vec![7; size];
            bencher.iter(|| {
                for _ in 0..BATCH {
                    dealer.send(&body).unwrap();
                }
                for _ in 0..BATCH {
                    dealer.recv_into(&mut body).unwrap();
                }
            });
            drop(dealer);
            context.terminate().unwrap();
            server.join().unwrap();
        });
        group.bench_function(BenchmarkId::new("current", size), |bencher| {
            let runtimes = Runtimes::named("current");
            let (context, dealer, router) = ends();
            let mut router = router.into_async();
            runtimes.start(async move {
                while let Ok(message) = router.recv_multipart().await {
                    router.send_multipart(message).await.unwrap();
                }
            });
            let mut dealer = Some(dealer.into_async());
            bencher.iter_custom(|batches| {
                let mut socket = dealer.take().unwrap();
                let (socket, took) = runtimes.run(async move {
                    let mut body = vec![7; size];
                    let began = Instant::now();
                    for _ in 0..batches {
                        for _ in 0..BATCH {
                            socket.send(&body).await.unwrap();
                        }
                        for _ in 0..BATCH {
                            socket.recv_into(&mut body).await.unwrap();
                        }
                    }
                    (socket, began.elapsed())
                });
                dealer = Some(socket);
                took
            });
            drop(dealer);
            context.terminate().unwrap();
        });
    }
}

fn ends() -> (Context, Dealer, Router) {
    let context = Context::new();
    let mut router = Router::new(&context).unwrap();
    let endpoint = router.bind(&place("tcp")).unwrap();
    let dealer = Dealer::builder(&context).connect(&endpoint).unwrap();
    (context, dealer, router)
}
