//! Batches in threads and tasks, and termination of a context with a deadline.

use std::time::Duration;

use tautline::{Context, Dealer, Error, Message, Pull, Push, Router, aio};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

fn pipeline(context: &Context, hwm: u32) -> (Push, Pull) {
    let mut pull = Pull::builder(context).receive_hwm(hwm).build().unwrap();
    pull.bind("inproc://batches").unwrap();
    (Push::builder(context).send_hwm(hwm).connect("inproc://batches").unwrap(), pull)
}

#[test]
fn a_batch_is_what_is_there() {
    with_watchdog(LIMIT, "a_batch_is", || {
        let context = Context::new();
        let (mut push, mut pull) = pipeline(&context, 0);
        let mut batch = vec![Message::from("before")];
        assert_eq!(pull.try_recv_batch(&mut batch, 10).unwrap_err(), Error::WouldBlock);
        assert_eq!(pull.recv_batch(&mut batch, 0), Ok(0));
        assert_eq!(push.send_batch((0..5).map(|number| number.to_string())), Ok(5));
        assert_eq!(push.send_batch(Vec::<&str>::new()), Ok(0));
        push.send_multipart(["a", "b"]).unwrap();
        push.send("last").unwrap();
        push.flush();
        assert_eq!(pull.recv_batch(&mut batch, 3), Ok(3));
        assert_eq!(batch, ["before", "0", "1", "2"]);
        batch.clear();
        // Messages of several parts are taken whole: `max` counts messages, not parts.
        assert_eq!(pull.recv_batch(&mut batch, 3), Ok(3));
        assert_eq!(batch, ["3", "4", "a", "b"]);
        assert_eq!(batch.iter().map(Message::has_more).collect::<Vec<_>>(), [false, false, true, false]);
        assert_eq!(pull.recv_batch(&mut batch, 100), Ok(1));
        assert_eq!(batch[4], "last");
    });
}

#[test]
fn a_batch_ends_where_there_is_no_room() {
    with_watchdog(LIMIT, "a_batch_ends", || {
        let context = Context::new();
        let (mut push, mut pull) = pipeline(&context, 2);
        let all = ["0", "1", "2", "3", "4", "5"];
        let sent = push.try_send_batch(all).unwrap();
        assert!((1..6).contains(&sent), "{sent}");
        assert_eq!(push.try_send_batch(&all[sent..]).unwrap_err(), Error::WouldBlock);
        push.set_send_timeout(Some(Duration::from_millis(1))).unwrap();
        assert_eq!(push.send_batch(&all[sent..]).unwrap_err(), Error::TimedOut);
        let mut batch = Vec::new();
        assert_eq!(pull.recv_batch(&mut batch, 100), Ok(sent));
        assert_eq!(batch, all[..sent]);
        context.shutdown();
        assert_eq!(push.send_batch(all).unwrap_err(), Error::Terminated);
        assert_eq!(pull.recv_batch(&mut batch, 1).unwrap_err(), Error::Terminated);
        assert_eq!(batch.len(), sent);
    });
}

#[test]
fn tasks_have_batches_too() {
    with_watchdog(LIMIT, "tasks_have_batches", || {
        smol::block_on(async {
            let context = Context::new();
            let (push, pull) = pipeline(&context, 3);
            let (mut push, mut pull) = (push.into_async(), pull.into_async());
            let sending =
                async { assert_eq!(push.send_batch((0..1000).map(|n| n.to_string())).await, Ok(1000)) };
            let receiving = async {
                let mut batch = Vec::new();
                while batch.len() < 1000 {
                    assert!(pull.recv_batch(&mut batch, 100).await.unwrap() > 0);
                }
                assert!(batch.iter().enumerate().all(|(number, message)| *message == number.to_string()));
            };
            futures_util::future::join(sending, receiving).await;
        });
    });
}

/// Both ends over tcp, in turn, in batches that exceed the high-water mark, in batches that exceed one write, and in small
/// batches.
#[test]
fn batches_go_there_and_back_over_tcp() {
    with_watchdog(LIMIT, "batches_go", || {
        let context = Context::new();
        let mut dealer = Dealer::new(&context).unwrap();
        let endpoint = dealer.bind("tcp://127.0.0.1:*").unwrap();
        let answering = std::thread::spawn({
            let context = context.clone();
            move || {
                let mut router = Router::builder(&context).connect(&endpoint).unwrap();
                let mut parts = Vec::new();
                while let Ok(taken) = router.recv_batch(&mut parts, 100) {
                    assert_eq!(parts.len(), 2 * taken, "an address and a body each");
                    let answers = parts.chunks_exact(2).map(|pair| [pair[0].clone(), pair[1].clone()]);
                    assert_eq!(router.send_multipart_batch(answers), Ok(taken));
                    parts.clear();
                }
            }
        });
        let mut sent = 0_u32;
        for (round, length) in [1, 100, 10, 1500, 1, 1, 20, 1500].into_iter().enumerate() {
            let size = if round % 2 == 0 { 4 } else { 300 };
            let body = |number: u32| {
                let mut body = vec![0; size];
                body[..4].copy_from_slice(&number.to_le_bytes());
                body
            };
            assert_eq!(dealer.send_batch((sent..sent + length).map(body)), Ok(length as usize));
            let mut back = Vec::new();
            while back.len() < length as usize {
                dealer.recv_batch(&mut back, 1000).unwrap();
            }
            assert!(back.iter().zip(sent..).all(|(message, number)| message[..4] == number.to_le_bytes()));
            sent += length;
        }
        context.shutdown();
        answering.join().unwrap();
    });
}

/// A batch is written without a waiting thread.
#[test]
fn batches_without_a_pause_all_arrive() {
    with_watchdog(LIMIT, "batches_without", || {
        let context = Context::new();
        let mut pull = Pull::new(&context).unwrap();
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        let mut push = Push::builder(&context).send_hwm(0).connect(&endpoint).unwrap();
        for (round, batches) in [1_u32, 2, 50, 3].into_iter().enumerate() {
            (0..batches).for_each(|_| assert_eq!(push.send_batch([[round as u8; 8]; 5].iter()), Ok(5)));
            let mut all = Vec::new();
            while all.len() < 5 * batches as usize {
                pull.recv_batch(&mut all, 1000).unwrap();
            }
            assert!(all.iter().all(|message| *message == [round as u8; 8]));
        }
        drop(push);
    });
}

#[test]
fn halves_have_batches_too() {
    with_watchdog(LIMIT, "halves_have", || {
        let context = Context::new();
        let mut near = Dealer::builder(&context).send_hwm(100).build().unwrap();
        let endpoint = near.bind("tcp://127.0.0.1:*").unwrap();
        let far = Dealer::builder(&context).receive_hwm(100).connect(&endpoint).unwrap();
        let (mut to_far, _from_far) = near.split().unwrap();
        let (_to_near, mut from_near) = far.split().unwrap();
        let receiving = std::thread::spawn(move || {
            let mut all = Vec::new();
            assert_eq!(from_near.recv_batch(&mut all, 0), Ok(0));
            while all.len() < 1000 {
                assert!((1..=70).contains(&from_near.recv_batch(&mut all, 70).unwrap()));
            }
            assert!(all.iter().enumerate().all(|(number, message)| *message == number.to_string()));
        });
        assert_eq!(to_far.send_batch((0..1000).map(|number| number.to_string())), Ok(1000));
        receiving.join().unwrap();
    });
}

#[test]
fn tasks_have_batches_of_addressed_messages_and_halves() {
    with_watchdog(LIMIT, "tasks_have_batches_of", || {
        smol::block_on(async {
            let context = Context::new();
            let mut router = Router::builder(&context).build().unwrap().into_async();
            let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
            let dealer = Dealer::builder(&context).connect(&endpoint).unwrap().into_async();
            let (mut to_router, mut from_router) = dealer.split();
            let asking = async { assert_eq!(to_router.send_batch(["a", "b", "c"]).await, Ok(3)) };
            let answering = async {
                let mut parts = Vec::new();
                while parts.len() < 6 {
                    router.recv_batch(&mut parts, 3).await.unwrap();
                }
                let answers = parts.chunks(2).map(<[Message]>::to_vec);
                assert_eq!(router.send_multipart_batch(answers).await, Ok(3));
            };
            futures_util::future::join(asking, answering).await;
            let mut back = Vec::new();
            while back.len() < 3 {
                from_router.recv_batch(&mut back, 3).await.unwrap();
            }
            assert_eq!(back, ["a", "b", "c"]);
        });
    });
}

#[test]
fn the_end_has_a_deadline() {
    with_watchdog(LIMIT, "the_end_has", || {
        smol::block_on(async {
            let context = Context::new();
            let (push, pull) = pipeline(&context, 1);
            assert_eq!(context.terminate_within(Duration::ZERO), Err(Error::TimedOut));
            assert_eq!(aio::terminate(&context, Duration::from_millis(1)).await, Err(Error::TimedOut));
            drop((push, pull));
            assert_eq!(aio::terminate(&context, None).await, Ok(()));
            assert_eq!(context.terminate_within(Duration::ZERO), Ok(()));
        });
    });
}

/// The deadline applies whatever the linger time is, and whichever side connected.
#[test]
fn the_deadline_ends_lingering() {
    with_watchdog(LIMIT, "the_deadline_ends", || {
        let near = Context::new();
        let mut push = Push::builder(&near).connect("tcp://127.0.0.1:1").unwrap();
        push.send("nobody is there").unwrap();
        drop(push);
        assert_eq!(near.terminate_within(Duration::ZERO), Err(Error::TimedOut), "something was dropped");
        assert_eq!(near.terminate(), Ok(()));

        // A connected peer that does not read.
        let (near, far) = (Context::new(), Context::new());
        let mut push = Push::builder(&near).linger(Duration::from_secs(1000)).build().unwrap();
        let endpoint = push.bind("tcp://127.0.0.1:*").unwrap();
        let mut pull = Pull::builder(&far).receive_hwm(1).connect(&endpoint).unwrap();
        push.send("first").unwrap();
        assert_eq!(pull.recv().unwrap(), "first");
        while push.try_send(vec![0; 1 << 20]).is_ok() {}
        drop(push);
        assert_eq!(near.terminate_within(Duration::ZERO), Err(Error::TimedOut));
        assert_eq!(near.terminate(), Ok(()));
    });
}
