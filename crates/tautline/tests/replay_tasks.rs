//! `replay` in async programs.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tautline::replay::{Delivery, ReliablePub, ReliableSub, Start};
use tautline::{Context, Error, Router, aio};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

/// Runs a scenario on tokio and on smol.
fn everywhere<F: Future<Output = ()>>(name: &str, scenario: impl Fn() -> F) {
    with_watchdog(LIMIT, name, || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(scenario());
        smol::block_on(scenario());
    });
}

/// Returns a publisher, and the endpoints of its messages and of its ring.
fn publisher(context: &Context) -> (ReliablePub<aio::Pub>, String, String) {
    let mut publisher = ReliablePub::new(context).unwrap().into_async();
    let live = publisher.bind("tcp://127.0.0.1:*").unwrap();
    let ring = publisher.serve("tcp://127.0.0.1:*").unwrap();
    (publisher, live, ring)
}

/// Lets the other futures of the task run.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn number_of(delivery: &Delivery) -> u64 {
    let Delivery::Message(update) = delivery else { panic!("{delivery:?}") };
    update.number
}

#[test]
fn late_subscriber_gets_kept_and_live_messages() {
    everywhere("late_subscriber", || async {
        let context = Context::new();
        let (mut publisher, live, ring) = publisher(&context);
        for number in 0..100 {
            assert_eq!(publisher.send("a", number.to_string()).await, Ok(number));
        }
        let builder = ReliableSub::builder(&context).subscribe("a").start(Start::Oldest);
        let mut subscriber = builder.connect(&live, &ring).unwrap().into_async();
        for number in 0..50 {
            assert_eq!(number_of(&subscriber.recv().await.unwrap()), number);
        }
        // The other form of the socket continues with the next message.
        let mut subscriber = subscriber.into_blocking();
        assert_eq!(number_of(&subscriber.recv().unwrap()), 50);
        let mut subscriber = subscriber.into_async();
        for number in 51..100 {
            assert_eq!(number_of(&subscriber.recv().await.unwrap()), number);
        }
        publisher.socket().wait_for_subscriptions(1).await.unwrap();
        let mut publisher = publisher.into_blocking();
        publisher.send("b", "of another topic").unwrap();
        let mut publisher = publisher.into_async();
        publisher.send("a", "live").await.unwrap();
        assert_eq!(number_of(&subscriber.recv().await.unwrap()), 101);
        assert_eq!(subscriber.try_recv(), Ok(None));
        assert_eq!(publisher.kept_messages(), 102);
        context.shutdown();
        assert_eq!(subscriber.recv().await, Err(Error::Terminated));
    });
}

#[test]
fn dropped_receives_lose_no_message() {
    everywhere("dropped_receives", || async {
        const COUNT: u64 = 2000;
        let context = Context::new();
        let (mut publisher, live, ring) = publisher(&context);
        let builder = ReliableSub::builder(&context).subscribe("").start(Start::Oldest);
        let mut subscriber = builder.connect(&live, &ring).unwrap().into_async();
        let publishing = async {
            for number in 0..COUNT {
                publisher.send("a", number.to_string()).await.unwrap();
                yield_once().await;
            }
        };
        let receiving = async {
            let mut next = 0;
            while next < COUNT {
                // Each future is polled once and dropped.
                let polled = {
                    let mut receive = pin!(subscriber.recv());
                    futures_util::poll!(&mut receive)
                };
                match polled {
                    Poll::Ready(delivery) => {
                        assert_eq!(number_of(&delivery.unwrap()), next);
                        next += 1;
                    }
                    Poll::Pending => yield_once().await,
                }
            }
        };
        futures_util::future::join(publishing, receiving).await;
    });
}

#[test]
fn ring_that_does_not_answer_does_not_stop_the_live_messages() {
    everywhere("ring_that_does_not_answer", || async {
        let context = Context::new();
        let (mut publisher, live, _) = publisher(&context);
        let mut silent = Router::new(&context).unwrap();
        let ring = silent.bind("tcp://127.0.0.1:*").unwrap();
        let builder = ReliableSub::builder(&context).subscribe("").start(Start::Oldest);
        let builder = builder.answer_timeout(Duration::from_millis(20));
        let mut subscriber = builder.connect(&live, &ring).unwrap().into_async();
        publisher.socket().wait_for_subscriptions(1).await.unwrap();
        publisher.send("a", "live").await.unwrap();
        assert_eq!(number_of(&subscriber.recv().await.unwrap()), 0);
        assert!(subscriber.statistics().unanswered > 0);
    });
}

#[test]
fn futures_can_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let context = Context::new();
    let (mut publisher, live, ring) = publisher(&context);
    let mut subscriber =
        ReliableSub::builder(&context).subscribe("").connect(&live, &ring).unwrap().into_async();
    is_send(&publisher.send("a", "b"));
    is_send(&subscriber.recv());
    is_send(&publisher.socket().wait_for_peers(1));
}
