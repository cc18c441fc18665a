//! Code that the benchmarks share: endpoints, runtimes, and counting receivers.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use criterion::Criterion;
use tautline::kind::Receives;
use tautline::{Socket, aio};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Sets about half a minute for each group, instead of ten minutes.
pub fn quick() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .configure_from_args()
}

/// Returns an unused endpoint to bind.
pub fn place(transport: &str) -> String {
    static PLACES: AtomicU64 = AtomicU64::new(0);
    let number = PLACES.fetch_add(1, Ordering::Relaxed);
    match transport {
        "tcp" => "tcp://127.0.0.1:*".to_owned(),
        "ipc" => {
            format!("ipc://{}/tautline-speed-{}-{number}", std::env::temp_dir().display(), std::process::id())
        }
        _ => format!("inproc://speed-{number}"),
    }
}

/// The two usual ways to run tasks.
pub enum Runtimes {
    /// A single-threaded runtime for each end. This field is the runtime of the measuring end.
    Current(Runtime),
    Multi(Runtime),
}

impl Runtimes {
    pub fn named(name: &str) -> Runtimes {
        match name {
            "current" => Runtimes::Current(current()),
            _ => Runtimes::Multi(Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()),
        }
    }

    /// Runs the far end until it finishes.
    pub fn start(&self, far: impl Future<Output = ()> + Send + 'static) {
        match self {
            Runtimes::Current(_) => {
                std::thread::spawn(|| current().block_on(far));
            }
            Runtimes::Multi(runtime) => {
                runtime.spawn(far);
            }
        }
    }

    /// Runs the measuring end as a task.
    pub fn run<T: Send + 'static>(&self, near: impl Future<Output = T> + Send + 'static) -> T {
        match self {
            Runtimes::Current(runtime) => runtime.block_on(near),
            Runtimes::Multi(runtime) => runtime.block_on(runtime.spawn(near)).unwrap(),
        }
    }
}

fn current() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A receiver elsewhere that counts to a given number and reports the time. Dropping this value ends it.
pub struct Counter {
    ask: UnboundedSender<u64>,
    reached: mpsc::Receiver<Instant>,
}

impl Counter {
    fn new() -> (Counter, UnboundedReceiver<u64>, mpsc::Sender<Instant>) {
        let (ask, asked) = unbounded_channel();
        let (reach, reached) = mpsc::channel();
        (Counter { ask, reached }, asked, reach)
    }

    /// Runs the receiver in a thread.
    pub fn thread<K: Receives>(mut socket: Socket<K>, size: usize) -> Counter
    where
        Socket<K>: Send + 'static,
    {
        let (counter, mut asked, reach) = Counter::new();
        std::thread::spawn(move || {
            let mut body = vec![0; size];
            while let Some(messages) = asked.blocking_recv() {
                for _ in 0..messages {
                    assert_eq!(socket.recv_into(&mut body).unwrap(), size);
                }
                let _ = reach.send(Instant::now());
            }
        });
        counter
    }

    /// Runs the receiver in a task.
    pub fn task<K: Receives>(runtimes: &Runtimes, mut socket: aio::Socket<K>, size: usize) -> Counter
    where
        aio::Socket<K>: Send + 'static,
    {
        let (counter, mut asked, reach) = Counter::new();
        runtimes.start(async move {
            let mut body = vec![0; size];
            while let Some(messages) = asked.recv().await {
                for _ in 0..messages {
                    assert_eq!(socket.recv_into(&mut body).await.unwrap(), size);
                }
                let _ = reach.send(Instant::now());
            }
        });
        counter
    }

    pub fn expect(&self, messages: u64) {
        self.ask.send(messages).unwrap();
    }

    /// Returns the time when the last message arrived.
    pub fn reached(&self) -> Instant {
        self.reached.recv().unwrap()
    }
}
