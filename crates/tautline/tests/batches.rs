//! Many messages in one call, by threads and by tasks; and the end of a context with a deadline.

use std::time::Duration;

use tautline::{Context, Error, Message, Pull, Push, aio};
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
        // Messages of several parts are taken whole, however many parts that are.
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
        assert_eq!(push.send_batch(&all[sent..]).unwrap_err(), Error::WouldBlock);
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

#[test]
fn the_end_has_a_deadline() {
    with_watchdog(LIMIT, "the_end_has", || {
        smol::block_on(async {
            let context = Context::new();
            let (push, pull) = pipeline(&context, 1);
            assert_eq!(context.terminate_within(Duration::ZERO), Err(Error::WouldBlock));
            assert_eq!(aio::terminate(&context, Duration::from_millis(1)).await, Err(Error::WouldBlock));
            drop((push, pull));
            assert_eq!(aio::terminate(&context, None).await, Ok(()));
            assert_eq!(context.terminate_within(Duration::ZERO), Ok(()));
        });
    });
}
