//! Events and statistics in programs.

use std::time::Duration;

use tautline::monitor::EventKind;
use tautline::{Context, Error, Pull, Push, Router, Sub, XPub};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn events_come_in_order_until_the_socket_is_closed() {
    with_watchdog(LIMIT, "events_come_in_order", || {
        let context = Context::new();
        let mut pull = Pull::new(&context).unwrap();
        let mut events = pull.monitor().unwrap();
        assert_eq!(events.try_recv().unwrap_err(), Error::WouldBlock);
        assert_eq!(events.recv_timeout(Duration::from_millis(1)).unwrap_err(), Error::TimedOut);
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        let push = Push::builder(&context).connect(&endpoint).unwrap();
        for expected in [EventKind::Listening, EventKind::Accepted, EventKind::HandshakeSucceeded] {
            let event = events.next().unwrap();
            assert_eq!((event.kind, event.local), (expected, endpoint.clone()));
        }
        drop(push);
        let event = events.next().unwrap();
        assert!(
            event.kind == EventKind::Disconnected && event.remote.starts_with("tcp://127.0.0.1:"),
            "{event}"
        );
        drop(pull);
        assert_eq!(events.by_ref().last().map(|event| event.kind), Some(EventKind::Stopped));
        assert_eq!((events.next(), events.recv()), (None, Err(Error::Terminated)));
    });
}

#[test]
fn a_peer_that_subscribes_beyond_the_limit_is_disconnected() {
    with_watchdog(LIMIT, "a_peer_that_subscribes_beyond", || {
        let context = Context::new();
        let mut publisher = XPub::builder(&context).max_subscriptions(64 << 10).build().unwrap();
        let mut events = publisher.monitor().unwrap();
        let endpoint = publisher.bind("tcp://127.0.0.1:*").unwrap();
        let mut modest = Sub::builder(&context).connect(&endpoint).unwrap();
        modest.subscribe("news").unwrap();
        assert_eq!(publisher.recv().unwrap(), b"\x01news");
        let mut greedy = Sub::builder(&context).connect(&endpoint).unwrap();
        for number in 0..1_000_u32 {
            greedy.subscribe(number.to_be_bytes()).unwrap();
        }
        let disconnected = loop {
            match events.try_recv() {
                Ok(event) if event.kind == EventKind::Disconnected => break event,
                Ok(_) => {}
                Err(Error::WouldBlock) => {
                    let _ = publisher.try_recv();
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(disconnected.local, endpoint);
        publisher.send("news of today").unwrap();
        assert_eq!(modest.recv().unwrap(), b"news of today");
    });
}

#[test]
fn another_monitor_ends_the_first() {
    with_watchdog(LIMIT, "another_monitor", || {
        let context = Context::new();
        let mut pull = Pull::new(&context).unwrap();
        let first = pull.monitor().unwrap();
        let mut second = pull.monitor().unwrap();
        assert_eq!(first.map(|event| event.kind).collect::<Vec<_>>(), [EventKind::Stopped]);
        assert!(matches!(pull.bind("tcp://256.0.0.1:1"), Err(Error::NoSuchDevice(_))));
        assert!(matches!(second.recv().unwrap().kind, EventKind::BindFailed(_)));
        context.shutdown();
        assert_eq!(second.recv().unwrap_err(), Error::Terminated);
    });
}

#[test]
fn tasks_wait_for_events_too() {
    with_watchdog(LIMIT, "tasks_wait_for_events", || {
        smol::block_on(async {
            let context = Context::new();
            let mut pull = Pull::new(&context).unwrap().into_async();
            let mut events = pull.monitor().unwrap();
            let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
            assert_eq!(events.recv().await.unwrap().kind, EventKind::Listening);
            let mut push = Push::builder(&context).connect(&endpoint).unwrap().into_async();
            assert_eq!(events.recv().await.unwrap().kind, EventKind::Accepted);
            push.send("one").await.unwrap();
            pull.recv().await.unwrap();
            assert_eq!(pull.statistics().unwrap().messages_received, 1);
            drop(pull);
            while let Ok(event) = events.recv().await {
                assert_ne!(event.kind, EventKind::Listening);
            }
        });
    });
}

#[cfg(feature = "futures")]
#[test]
fn events_are_a_stream() {
    use futures_util::StreamExt;
    with_watchdog(LIMIT, "events_are_a_stream", || {
        smol::block_on(async {
            let context = Context::new();
            let mut pull = Pull::new(&context).unwrap();
            let events = pull.monitor().unwrap().into_async();
            pull.bind("tcp://127.0.0.1:*").unwrap();
            drop(pull);
            let kinds: Vec<_> = events.map(|event| event.kind).collect().await;
            assert_eq!(kinds, [EventKind::Listening, EventKind::Closed, EventKind::Stopped]);
        });
    });
}

#[test]
fn unroutable_messages_are_counted() {
    with_watchdog(LIMIT, "what_goes_wrong", || {
        let context = Context::new();
        let mut router = Router::builder(&context).bind("inproc://counted").unwrap();
        router.send_multipart(["nobody", "x"]).unwrap();
        let numbers = router.statistics().unwrap();
        assert_eq!((numbers.dropped_unroutable, numbers.peers), (1, 0));
        context.shutdown();
        assert_eq!(router.statistics().unwrap_err(), Error::Terminated);
    });
}
