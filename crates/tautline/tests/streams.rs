//! Sockets as `Stream` and `Sink`.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt, TryStreamExt, stream};
use tautline::{Context, Multipart, Pull, Push};
use tautline_testkit::with_watchdog;

#[test]
fn a_stream_flows_into_a_sink() {
    with_watchdog(Duration::from_secs(60), "a_stream_flows", || {
        smol::block_on(async {
            let context = Context::new();
            let mut pull = Pull::builder(&context).receive_hwm(1).build().unwrap();
            let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
            let mut push = Push::builder(&context).send_hwm(1).connect(&endpoint).unwrap().into_async();
            let message = |number: u8| Multipart::from([vec![number; 100_000], vec![]]);
            let mut messages = stream::iter(0..100).map(|number| Ok(message(number)));
            let sending = push.send_all(&mut messages);
            let receiving = pull.into_async().take(100).try_collect::<Vec<_>>();
            let (sent, received) = futures_util::future::join(sending, receiving).await;
            sent.unwrap();
            assert_eq!(received.unwrap(), (0..100).map(message).collect::<Vec<_>>());
        });
    });
}

#[test]
fn a_stream_ends_with_its_context() {
    with_watchdog(Duration::from_secs(60), "a_stream_ends", || {
        smol::block_on(async {
            let context = Context::new();
            let mut pull = Pull::new(&context).unwrap();
            pull.bind("inproc://ends").unwrap();
            context.shutdown();
            assert!(pull.into_async().next().await.is_none());
        });
    });
}
