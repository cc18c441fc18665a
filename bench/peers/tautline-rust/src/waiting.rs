//! Executor of an end's future.

use bench_contract::Trouble;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use tokio::runtime::{Builder, Runtime};

pub enum Executor {
    /// A tokio runtime for each thread.
    Current,
    /// One tokio runtime. The threads of the ends run their futures, its workers the I/O.
    Multi(Runtime),
    /// The thread polls the future and parks, without a runtime.
    Plain,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Executor {
    pub fn named(mode: &str) -> Result<Self, Trouble> {
        Ok(match mode {
            "current" => Executor::Current,
            "multi" => Executor::Multi(Builder::new_multi_thread().worker_threads(2).enable_all().build()?),
            "plain" => Executor::Plain,
            other => return Err(Trouble::Failed(format!("no mode {other}"))),
        })
    }

    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        match self {
            Executor::Current => {
                let runtime = Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(future)
            }
            Executor::Multi(runtime) => runtime.handle().block_on(future),
            Executor::Plain => {
                let mut future = std::pin::pin!(future);
                let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
                let mut context = Context::from_waker(&waker);
                loop {
                    if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                        return value;
                    }
                    std::thread::park();
                }
            }
        }
    }
}
