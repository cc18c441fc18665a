//! REQ to REP and back, one message at a time.

use std::time::Instant;

use criterion::{BenchmarkId, Criterion};
use tautline::{Context, Error, Rep, Req};

use crate::support::{Runtimes, place};

pub fn run(criterion: &mut Criterion) {
    for transport in ["tcp", "ipc", "inproc"] {
        let mut group = criterion.benchmark_group(format!("latency/{transport}"));
        for size in [64, 256, 1024] {
            group.bench_function(BenchmarkId::new("blocking", size), |bencher| {
                let (context, mut req, mut rep) = ends(transport);
                let server = std::thread::spawn(move || {
                    let mut body = vec![0; size];
                    // Runs until the context ends.
                    while let Ok(length) = rep.recv_into(&mut body) {
                        rep.send(&body[..length]).unwrap();
                    }
                });
                let mut body = vec![7; size];
                bencher.iter(|| {
                    req.send(&body).unwrap();
                    req.recv_into(&mut body).unwrap()
                });
                drop(req);
                context.terminate().unwrap();
                server.join().unwrap();
            });
            for runtime in ["current", "multi"] {
                group.bench_function(BenchmarkId::new(runtime, size), |bencher| {
                    let runtimes = Runtimes::named(runtime);
                    let (context, req, rep) = ends(transport);
                    let mut rep = rep.into_async();
                    runtimes.start(async move {
                        let mut body = vec![0; size];
                        loop {
                            match rep.recv_into(&mut body).await {
                                Ok(length) => rep.send(&body[..length]).await.unwrap(),
                                Err(error) => break assert!(matches!(error, Error::Terminated), "{error}"),
                            }
                        }
                    });
                    let mut req = Some(req.into_async());
                    bencher.iter_custom(|trips| {
                        let mut socket = req.take().unwrap();
                        let (socket, took) = runtimes.run(async move {
                            let mut body = vec![7; size];
                            let began = Instant::now();
                            for _ in 0..trips {
                                socket.send(&body).await.unwrap();
                                socket.recv_into(&mut body).await.unwrap();
                            }
                            (socket, began.elapsed())
                        });
                        req = Some(socket);
                        took
                    });
                    drop(req);
                    context.terminate().unwrap();
                });
            }
        }
    }
}

fn ends(transport: &str) -> (Context, Req, Rep) {
    let context = Context::new();
    let mut rep = Rep::new(&context).unwrap();
    let endpoint = rep.bind(&place(transport)).unwrap();
    let req = Req::builder(&context).connect(&endpoint).unwrap();
    (context, req, rep)
}
