//! Runtimes that stand still, are busy, or use tasks in unusual ways: waiting for a socket works in all of them.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{self, Poll, Wake};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::poll_immediate;
use tautline::{Context, Pull, Push, aio};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Returns two connected sockets.
fn pair(context: &Context, endpoint: &str) -> (Push, aio::Pull) {
    let mut pull = Pull::new(context).unwrap();
    let endpoint = pull.bind(endpoint).unwrap();
    let mut push = Push::builder(context).send_hwm(5).connect(&endpoint).unwrap();
    push.send("first").unwrap();
    assert_eq!(pull.recv().unwrap(), "first");
    (push, pull.into_async())
}

/// A waker between a wait and its task.
struct Spy {
    task: task::Waker,
    woken: AtomicBool,
}

impl Wake for Spy {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, SeqCst);
        self.task.wake_by_ref();
    }
}

/// Polls `wait` once. True if it now sleeps: a spinning wait wakes its task before it returns.
fn turn<T>(wait: Pin<&mut impl Future<Output = T>>, cx: &mut task::Context<'_>) -> (Poll<T>, bool) {
    let spy = Arc::new(Spy { task: cx.waker().clone(), woken: AtomicBool::new(false) });
    let polled = wait.poll(&mut task::Context::from_waker(&spy.clone().into()));
    let rests = polled.is_pending() && !spy.woken.load(SeqCst);
    (polled, rests)
}

/// Polls `wait` until it ends or sleeps. `None` if it sleeps.
async fn ready_or_asleep<T>(wait: impl Future<Output = T>) -> Option<T> {
    let mut wait = pin!(wait);
    poll_fn(|cx| match turn(wait.as_mut(), cx) {
        (Poll::Ready(value), _) => Poll::Ready(Some(value)),
        (Poll::Pending, true) => Poll::Ready(None),
        (Poll::Pending, false) => Poll::Pending,
    })
    .await
}

/// Waits until the end, and sends to `rests` whenever `wait` sleeps.
async fn with_notice<T>(wait: impl Future<Output = T>, rests: &mpsc::Sender<()>) -> T {
    let mut wait = pin!(wait);
    poll_fn(|cx| {
        let (polled, is_resting) = turn(wait.as_mut(), cx);
        if is_resting {
            rests.send(()).unwrap();
        }
        polled
    })
    .await
}

#[test]
fn message_in_pieces_is_read_whole() {
    with_watchdog(LIMIT, "in pieces", || {
        for (endpoint, parts) in [("ipc://*", 190), ("ipc://*", 2000), ("tcp://127.0.0.1:*", 400)] {
            let context = Context::new();
            let (mut push, mut pull) = pair(&context, endpoint);
            let (go, going) = mpsc::channel();
            let sender = thread::spawn(move || {
                going.recv().unwrap();
                push.send_multipart(vec![vec![7; 1000]; parts]).unwrap();
                push
            });
            runtime().block_on(async {
                let mut receiving = pin!(pull.recv_multipart());
                assert!(ready_or_asleep(receiving.as_mut()).await.is_none());
                go.send(()).unwrap();
                // This test is about time: the runtime is idle while parts arrive. The result is correct after any time, which
                // only decides how many parts are found at once.
                thread::sleep(Duration::from_millis(100));
                assert_eq!(receiving.await.unwrap().len(), parts);
            });
            sender.join().unwrap();
        }
    });
}

#[test]
fn socket_wakes_after_a_change_of_runtime() {
    with_watchdog(LIMIT, "left", || {
        let context = Context::new();
        let (mut push, mut pull) = pair(&context, "tcp://127.0.0.1:*");
        let former = runtime();
        assert!(former.block_on(ready_or_asleep(pull.recv())).is_none());
        let (rests, notices) = mpsc::channel();
        let sender = thread::spawn(move || {
            for () in notices {
                push.send("next").unwrap();
            }
        });
        assert_eq!(smol::block_on(with_notice(pull.recv(), &rests)).unwrap(), "next");
        assert_eq!(runtime().block_on(with_notice(pull.recv(), &rests)).unwrap(), "next");
        // Inside of a runtime that is blocked during the wait.
        former.block_on(async {
            assert_eq!(smol::block_on(with_notice(pull.recv(), &rests)).unwrap(), "next");
        });
        drop(rests);
        sender.join().unwrap();
    });
}

#[test]
fn abandoned_stream_wait_reads_ahead() {
    with_watchdog(LIMIT, "given up", || {
        let context = Context::new();
        let (mut push, mut pull) = pair(&context, "tcp://127.0.0.1:*");
        runtime().block_on(async {
            assert!(ready_or_asleep(pull.next()).await.is_none());
            // More data than the kernel buffers, sent by the same thread that has to read it.
            for _ in 0..100 {
                push.send(vec![1; 100_000]).unwrap();
            }
            for _ in 0..100 {
                assert_eq!(pull.next().await.unwrap().unwrap()[0].len(), 100_000);
            }
        });
    });
}

#[test]
fn the_halves_of_a_socket_may_live_in_different_runtimes() {
    with_watchdog(LIMIT, "halves", || {
        let context = Context::new();
        let mut far = tautline::Dealer::builder(&context).bind("tcp://127.0.0.1:*").unwrap();
        let endpoint = far.last_endpoint().unwrap();
        let near = tautline::Dealer::builder(&context).send_hwm(1).connect(&endpoint).unwrap();
        let (mut sending, mut receiving) = near.into_async().split();
        let receiver = thread::spawn(move || runtime().block_on(async { receiving.recv().await.unwrap() }));
        let other = runtime();
        other.block_on(async {
            while let Some(sent) = ready_or_asleep(sending.send(vec![1; 100_000])).await {
                sent.unwrap();
            }
        });
        far.send("for the half that still waits").unwrap();
        assert_eq!(receiver.join().unwrap(), "for the half that still waits");
    });
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task that lives in its waker. When it is woken, it acts as the test says.
struct Task {
    work: Mutex<Option<Work>>,
    rests: AtomicBool,
    /// True if it has requested another poll.
    asks: AtomicBool,
    woken: fn(Arc<Task>),
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        // While the wait spins, the task itself requests its next poll.
        if self.rests.load(SeqCst) {
            (self.woken)(self);
        } else {
            self.asks.store(true, SeqCst);
        }
    }
}

impl Task {
    fn poll(self: &Arc<Self>) -> bool {
        let mut work = self.work.lock().unwrap();
        let waker = self.clone().into();
        let polled = work.as_mut().map(|work| work.as_mut().poll(&mut task::Context::from_waker(&waker)));
        polled == Some(Poll::Ready(()))
    }
}

/// A task that sleeps in `recv` until `woken` wakes it. The I/O thread that wakes it continues.
fn wakes(name: &'static str, woken: fn(Arc<Task>)) {
    with_watchdog(LIMIT, name, move || {
        let context = Context::new();
        let (mut push, mut pull) = pair(&context, "tcp://127.0.0.1:*");
        let (done, ended) = mpsc::channel::<()>();
        let work: Work = Box::pin(async move {
            // Notifies the other end when the work is done or dropped.
            let _done = done;
            assert_eq!(pull.recv().await.unwrap(), "wake");
        });
        let (rests, asks) = (AtomicBool::new(false), AtomicBool::new(true));
        let task = Arc::new(Task { work: Mutex::new(Some(work)), rests, asks, woken });
        while task.asks.swap(false, SeqCst) {
            assert!(!task.poll());
        }
        task.rests.store(true, SeqCst);
        drop(task);
        push.send("wake").unwrap();
        assert!(ended.recv().is_err());
        drop(push);
        let (mut push, pull) = pair(&context, "tcp://127.0.0.1:*");
        push.send("the I/O thread is there").unwrap();
        assert_eq!(pull.into_blocking().recv().unwrap(), "the I/O thread is there");
        drop(push);
        context.terminate().unwrap();
    });
}

#[test]
fn a_waker_may_drop_the_task_and_its_socket() {
    wakes("drops", drop);
}

#[test]
fn a_waker_may_run_the_task() {
    wakes("runs", |task| assert!(task.poll()));
}

#[test]
fn a_waker_may_panic() {
    wakes("panics", |_| panic!("a waker that panics, as the test wants it"));
}

#[test]
fn messages_sent_before_a_panic_are_flushed() {
    with_watchdog(LIMIT, "panic", || {
        let context = Context::new();
        let (mut push, mut pull) = pair(&context, "tcp://127.0.0.1:*");
        for corked in [false, true] {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let mut bodies = (0..5_u8).map(|number| {
                    assert!(number < 3, "a panic, as the test wants it");
                    vec![number; 100]
                });
                if corked {
                    push.with_cork(|push| bodies.try_for_each(|body| push.send(body))).unwrap();
                } else {
                    push.send_batch(bodies).unwrap();
                }
            }));
            assert!(outcome.is_err());
            smol::block_on(async {
                for number in 0..3 {
                    assert_eq!(pull.recv().await.unwrap(), vec![number; 100]);
                }
                assert!(poll_immediate(pull.recv()).await.is_none());
            });
        }
    });
}
