//! Split sockets in threads and tasks.

use std::future::Future;
use std::thread;
use std::time::Duration;

use tautline::{Context, Dealer, Error, Message, Multipart, Pair, Router, aio};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);
const ENDPOINTS: [&str; 3] = ["tcp://127.0.0.1:*", "ipc://*", "inproc://split"];

/// Runs a scenario on a multi-threaded tokio, a single-threaded tokio, and smol.
fn everywhere<F: Future<Output = ()>>(name: &str, scenario: impl Fn() -> F) {
    with_watchdog(LIMIT, name, || {
        let mut single = tokio::runtime::Builder::new_current_thread();
        single.enable_all().build().unwrap().block_on(scenario());
        let mut several = tokio::runtime::Builder::new_multi_thread();
        several.worker_threads(2).enable_all().build().unwrap().block_on(scenario());
        smol::block_on(scenario());
    });
}

/// Small high-water marks, so that both directions wait frequently.
fn pair(context: &Context, endpoint: &str) -> (Pair, Pair) {
    let mut here = Pair::builder(context).send_hwm(2).receive_hwm(2).build().unwrap();
    let endpoint = here.bind(endpoint).unwrap();
    (here, Pair::builder(context).send_hwm(2).receive_hwm(2).connect(&endpoint).unwrap())
}

fn message(number: u32) -> Multipart {
    Multipart::from([vec![number as u8; 30_000], number.to_ne_bytes().to_vec()])
}

#[test]
fn four_threads_stream_both_ways() {
    with_watchdog(LIMIT, "four_threads", || {
        for endpoint in ENDPOINTS {
            let context = Context::new();
            let (one, other) = pair(&context, endpoint);
            let mut threads = Vec::new();
            for socket in [one, other] {
                let (mut sender, mut receiver) = socket.split().unwrap();
                threads.push(thread::spawn(move || {
                    (0..300).for_each(|number| sender.send_multipart(message(number)).unwrap())
                }));
                threads.push(thread::spawn(move || {
                    (0..300)
                        .for_each(|number| assert_eq!(receiver.recv_multipart().unwrap(), message(number)));
                }));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    });
}

#[test]
fn halves_behave_like_the_socket() {
    with_watchdog(LIMIT, "halves_have", || {
        let context = Context::new();
        let mut bound = Pair::builder(&context).bind("inproc://manners").unwrap();
        let socket = Pair::builder(&context)
            .receive_timeout(Duration::from_millis(1))
            .connect("inproc://manners")
            .unwrap();
        let (mut sender, mut receiver) = socket.split().unwrap();
        assert_eq!(receiver.recv().unwrap_err(), Error::TimedOut);
        assert_eq!(receiver.try_recv().unwrap_err(), Error::WouldBlock);
        assert!(matches!(sender.send_multipart(Vec::<&str>::new()), Err(Error::Invalid(_))));
        sender.send("there").unwrap();
        sender.try_send(Message::from(vec![1; 100])).unwrap();
        sender.try_send_multipart(["a", "b"]).unwrap();
        sender.flush();
        assert_eq!(bound.recv().unwrap(), "there");
        assert_eq!(bound.recv().unwrap(), [1; 100]);
        assert_eq!(bound.recv_multipart().unwrap(), Multipart::from(["a", "b"]));
        bound.send("back").unwrap();
        let mut buffer = [0; 8];
        assert_eq!(receiver.recv_into(&mut buffer), Ok(4));
        // The socket exists until both halves are dropped.
        drop(receiver);
        sender.send("last").unwrap();
        assert_eq!(bound.recv().unwrap(), "last");
        drop(sender);
        assert_eq!(bound.try_send("nobody"), Err(Error::WouldBlock));
    });
}

#[test]
fn the_end_of_the_context_wakes_both_halves() {
    with_watchdog(LIMIT, "the_end_wakes", || {
        let context = Context::new();
        let (mut sender, mut receiver) = Pair::new(&context).unwrap().split().unwrap();
        let sending = thread::spawn(move || sender.send("to nobody"));
        let receiving = thread::spawn(move || receiver.recv().map(drop));
        context.terminate().unwrap();
        assert_eq!(sending.join().unwrap(), Err(Error::Terminated));
        assert_eq!(receiving.join().unwrap(), Err(Error::Terminated));
    });
}

#[test]
fn tasks_stream_both_ways() {
    for endpoint in ENDPOINTS {
        everywhere("tasks_stream", || async move {
            let context = Context::new();
            let (one, other) = pair(&context, endpoint);
            let both = [one, other].map(|socket| {
                let (mut sender, mut receiver) = socket.into_async().split();
                let sending = async move {
                    for number in 0..300 {
                        sender.send_multipart(message(number)).await.unwrap();
                    }
                };
                let receiving = async move {
                    for number in 0..300 {
                        assert_eq!(receiver.recv_multipart().await.unwrap(), message(number));
                    }
                };
                futures_util::future::join(sending, receiving)
            });
            futures_util::future::join_all(both).await;
        });
    }
}

#[test]
fn halves_in_tasks_of_their_own() {
    with_watchdog(LIMIT, "halves_in_tasks", || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build().unwrap().block_on(async {
            let context = Context::new();
            let mut router = Router::new(&context).unwrap().into_async();
            let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
            let echo = tokio::spawn(async move {
                while let Ok((peer, message)) = router.recv_from().await {
                    router.send_multipart_to(&peer, message).await.unwrap();
                }
            });
            let (mut asking, mut receiving) =
                Dealer::builder(&context).connect(&endpoint).unwrap().into_async().split();
            let sender = tokio::spawn(async move {
                for number in 0..2000_u32 {
                    asking.send(&number.to_ne_bytes()).await.unwrap();
                }
            });
            for number in 0..2000_u32 {
                assert_eq!(receiving.recv().await.unwrap(), number.to_ne_bytes());
            }
            sender.await.unwrap();
            context.shutdown();
            assert_eq!(receiving.recv().await.unwrap_err(), Error::Terminated);
            echo.await.unwrap();
            drop(receiving);
            aio::terminate(&context, None).await.unwrap();
        });
    });
}

#[test]
fn a_dropped_wait_of_one_half_leaves_the_others() {
    everywhere("a_dropped_wait", || async {
        let context = Context::new();
        let (one, other) = pair(&context, "tcp://127.0.0.1:*");
        let (mut one, (mut sender, mut receiver)) = (one.into_async(), other.into_async().split());
        for number in 0..50_u32 {
            {
                let receive = std::pin::pin!(receiver.recv());
                assert!(futures_util::poll!(receive).is_pending());
            }
            let receiving = async { assert_eq!(receiver.recv().await.unwrap(), number.to_ne_bytes()) };
            let sending = async {
                sender.send("go").await.unwrap();
                assert_eq!(one.recv().await.unwrap(), "go");
                one.send(&number.to_ne_bytes()).await.unwrap();
            };
            futures_util::future::join(receiving, sending).await;
        }
    });
}
