//! The async API on several executors.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{self, Poll, Wake};
use std::thread;
use std::time::Duration;

use tautline::{
    Context, Dealer, Error, Message, Multipart, Pair, Pub, Pull, Push, Rep, Req, Router, Sub, aio, kind,
};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

/// Runs a scenario on every executor: a multi-threaded tokio, a single-threaded tokio, smol, and a plain `block_on`.
fn everywhere<F: Future<Output = ()>>(name: &str, scenario: impl Fn() -> F) {
    with_watchdog(LIMIT, name, || {
        let single = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        single().block_on(scenario());
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
            .block_on(scenario());
        smol::block_on(scenario());
        block_on(scenario());
    });
}

/// A minimal executor: one thread, which sleeps until it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut task::Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

fn pipeline(context: &Context) -> (aio::Push, aio::Pull) {
    let mut pull = Pull::builder(context).receive_hwm(1).build().unwrap();
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let push = Push::builder(context).send_hwm(1).connect(&endpoint).unwrap();
    (push.into_async(), pull.into_async())
}

#[test]
fn both_ends_in_one_task_of_joined_futures() {
    everywhere("both_ends", || async {
        let context = Context::new();
        let (mut push, mut pull) = pipeline(&context);
        let sending = async {
            for number in 0..100_u8 {
                // More data than the kernel's buffers hold: the sender must wait for the receiver.
                push.send(vec![number; 100_000]).await.unwrap();
            }
        };
        let receiving = async {
            for number in 0..100_u8 {
                assert_eq!(pull.recv().await.unwrap(), vec![number; 100_000]);
            }
        };
        futures_util::future::join(sending, receiving).await;
    });
}

#[test]
fn request_and_reply_in_two_tasks() {
    with_watchdog(LIMIT, "request_and_reply", || {
        for threads in [1, 2] {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(threads)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let context = Context::new();
                let mut rep = Rep::new(&context).unwrap().into_async();
                let endpoint = rep.bind("tcp://127.0.0.1:*").unwrap();
                let service = tokio::spawn(async move {
                    loop {
                        match rep.recv_multipart().await {
                            Ok(question) => rep.send_multipart(question).await.unwrap(),
                            Err(error) => return error,
                        }
                    }
                });
                let mut req = Req::builder(&context).connect(&endpoint).unwrap().into_async();
                for number in 0..200_u32 {
                    req.send_multipart([number.to_string(), "x".into()]).await.unwrap();
                    let answer = req.recv_multipart().await.unwrap();
                    assert_eq!(answer, Multipart::from([number.to_string(), "x".into()]));
                }
                context.shutdown();
                assert_eq!(service.await.unwrap(), Error::Terminated);
            });
        }
    });
}

#[test]
fn a_dropped_receive_takes_nothing() {
    everywhere("a_dropped_receive", || async {
        let context = Context::new();
        let (mut push, mut pull) = pipeline(&context);
        for number in 0..50_u32 {
            // The future is polled a few times, then dropped.
            for _ in 0..3 {
                let receive = pin!(pull.recv());
                assert!(futures_util::poll!(receive).is_pending());
            }
            push.send(&number.to_ne_bytes()).await.unwrap();
            assert_eq!(pull.recv().await.unwrap(), number.to_ne_bytes());
        }
    });
}

#[test]
fn a_task_chooses_between_sockets() {
    everywhere("a_task_chooses", || async {
        let context = Context::new();
        let (mut push, mut work) = pipeline(&context);
        let mut here = Pair::builder(&context).bind("inproc://stop").unwrap().into_async();
        let mut stop: aio::Pair = Pair::builder(&context).connect("inproc://stop").unwrap().into_async();
        let mut done = 0;
        push.send("1").await.unwrap();
        loop {
            let (item, stopped) = (std::pin::pin!(work.recv()), std::pin::pin!(stop.recv()));
            match futures_util::future::select(item, stopped).await {
                futures_util::future::Either::Left((item, _)) => {
                    item.unwrap();
                    done += 1;
                    if done == 3 {
                        here.send("stop").await.unwrap();
                    } else {
                        push.send("next").await.unwrap();
                    }
                }
                futures_util::future::Either::Right((stopped, _)) => {
                    assert_eq!(stopped.unwrap(), "stop");
                    break;
                }
            }
        }
        assert_eq!(done, 3);
    });
}

#[test]
fn a_socket_goes_from_a_thread_to_a_task_and_back() {
    everywhere("a_socket_goes", || async {
        let context = Context::new();
        let (push, pull) = pipeline(&context);
        let (mut push, mut pull) = (push.into_blocking(), pull.into_blocking());
        push.send("by thread").unwrap();
        assert_eq!(pull.recv().unwrap(), "by thread");
        let (mut push, mut pull) = (push.into_async(), pull.into_async());
        push.send("by task").await.unwrap();
        assert_eq!(pull.recv().await.unwrap(), "by task");
        assert_eq!(pull.get_mut().try_recv().unwrap_err(), Error::WouldBlock);
    });
}

#[test]
fn futures_may_change_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let context = Context::new();
    let mut socket = is_send(context.socket::<kind::Dealer>().unwrap().into_async());
    drop(is_send(socket.recv()));
    drop(is_send(socket.send("x")));
    drop(is_send(socket.send_multipart(["x"])));
}

#[test]
fn waits_for_peers_leave_the_thread_to_other_tasks() {
    everywhere("waits_for_peers", || async {
        let context = Context::new();
        let mut publisher = Pub::new(&context).unwrap().into_async();
        let endpoint = publisher.bind("tcp://127.0.0.1:*").unwrap();
        let mut pull = Pull::new(&context).unwrap().into_async();
        assert!(matches!(pull.wait_for_subscriptions(1).await, Err(Error::NotSupported(_))));
        assert_eq!(publisher.wait_for_peers(0).await, Ok(()));
        // A wait that is dropped early leaves the socket unchanged.
        {
            let mut wait = pin!(publisher.wait_for_peers(1));
            assert!(futures_util::poll!(&mut wait).is_pending());
        }
        {
            let mut wait = pin!(publisher.wait_for_subscriptions(1));
            assert!(futures_util::poll!(&mut wait).is_pending());
        }
        // The other task runs only after the waits have begun, on the same thread.
        let subscribing = async {
            let mut subscriber = Sub::new(&context).unwrap().into_async();
            subscriber.connect(&endpoint).unwrap();
            subscriber.subscribe("a").unwrap();
            subscriber.subscribe("b").unwrap();
            subscriber.recv().await.unwrap()
        };
        let publishing = async {
            publisher.wait_for_peers(1).await.unwrap();
            publisher.wait_for_subscriptions(2).await.unwrap();
            publisher.send("a message").await.unwrap();
        };
        let ((), received) = futures_util::future::join(publishing, subscribing).await;
        assert_eq!(received, "a message");
        context.shutdown();
        assert_eq!(publisher.wait_for_peers(9).await, Err(Error::Terminated));
    });
}

#[test]
fn context_that_ends_during_a_wait_ends_the_wait() {
    everywhere("context_that_ends", || async {
        let context = Context::new();
        let mut publisher = Pub::new(&context).unwrap().into_async();
        let ending = async { context.shutdown() };
        let (waited, ()) = futures_util::future::join(publisher.wait_for_subscriptions(1), ending).await;
        assert_eq!(waited, Err(Error::Terminated));
    });
}

#[test]
fn send_to_takes_what_send_takes() {
    everywhere("send_to_takes", || async {
        let context = Context::new();
        let mut router = Router::builder(&context).bind("inproc://send-to").unwrap().into_async();
        let mut dealer = Dealer::builder(&context).connect("inproc://send-to").unwrap().into_async();
        dealer.send("question").await.unwrap();
        let (client, question) = router.recv_from().await.unwrap();
        let none: [&str; 0] = [];
        router.send_to(&client, "text").await.unwrap();
        router.send_to(&client, String::from("text")).await.unwrap();
        router.send_to(&client, b"text").await.unwrap();
        router.send_to(&client, vec![b't', b'e', b'x', b't']).await.unwrap();
        router.send_to(&client, Message::from("text")).await.unwrap();
        router.send_multipart_to(&client, ["a", "b"]).await.unwrap();
        router.send_multipart_to(&client, vec![String::from("a"), String::from("b")]).await.unwrap();
        router.send_multipart_to(&client, &question).await.unwrap();
        assert!(matches!(router.send_multipart_to(&client, none).await, Err(Error::Invalid(_))));
        let mut router = router.into_blocking();
        router.send_to(&client, "text").unwrap();
        router.send_to(&client, String::from("text")).unwrap();
        router.send_to(&client, b"text").unwrap();
        router.send_to(&client, vec![b't', b'e', b'x', b't']).unwrap();
        router.send_to(&client, Message::from("text")).unwrap();
        router.send_multipart_to(&client, ["a", "b"]).unwrap();
        router.send_multipart_to(&client, vec![String::from("a"), String::from("b")]).unwrap();
        router.send_multipart_to(&client, &question).unwrap();
        assert!(matches!(router.send_multipart_to(&client, none), Err(Error::Invalid(_))));
        for _ in 0..2 {
            for _ in 0..5 {
                assert_eq!(dealer.recv_multipart().await.unwrap(), Multipart::from(["text"]));
            }
            assert_eq!(dealer.recv_multipart().await.unwrap(), Multipart::from(["a", "b"]));
            assert_eq!(dealer.recv_multipart().await.unwrap(), Multipart::from(["a", "b"]));
            assert_eq!(dealer.recv_multipart().await.unwrap(), question);
        }
    });
}
