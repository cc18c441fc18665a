//! Topics by name and pattern: in one process and between contexts, with plain PUB and SUB at the other end.

use std::time::Duration;

use tautline::topics::{Subscriber, Topics, TopicsBuilder, Update};
use tautline::{Context, Error, Pub, Sub};
use tautline_testkit::with_watchdog;

/// Long enough for a busy machine.
fn within(name: &str, body: impl FnOnce()) {
    with_watchdog(Duration::from_secs(240), name, body);
}

const ANY: &str = "tcp://127.0.0.1:*";

fn build(builder: TopicsBuilder) -> Topics {
    builder.build().unwrap()
}

/// Returns a bound publisher and its endpoint.
fn bound(builder: TopicsBuilder) -> (Topics, String) {
    let mut topics = build(builder.bind(ANY));
    let endpoint = topics.publisher().socket().last_endpoint().unwrap();
    (topics, endpoint)
}

fn text(update: &Update) -> (String, String) {
    (update.topic.to_string_lossy().into_owned(), update.body.to_string_lossy().into_owned())
}

/// Returns the topics of received messages, up to the topic `end`.
fn until(topics: &mut Topics, end: &str) -> Vec<String> {
    let mut got = Vec::new();
    loop {
        let (topic, _) = text(&topics.recv().unwrap());
        if topic == end {
            return got;
        }
        got.push(topic);
    }
}

#[test]
fn several_patterns_receive_a_message_once() {
    within("several_patterns_receive_a_message_once", || {
        let context = Context::new();
        let (mut source, endpoint) = bound(Topics::builder(&context));
        let mut sink = build(Topics::builder(&context).connect(endpoint));
        for pattern in ["a.*", "a.b", "a.**", "a.**", "end"] {
            sink.subscribe(pattern).unwrap();
        }
        assert_eq!(sink.subscriber().patterns().len(), 4);
        // "a.", "a.b", "a" and "end".
        assert!(source.wait_for_subscriptions(4, None).unwrap());
        for topic in ["a.b", "a", "ab", "b", "a.b.c", "end"] {
            source.publish(topic, topic.to_uppercase()).unwrap();
        }
        assert_eq!(until(&mut sink, "end"), ["a.b", "a", "a.b.c"]);
        let counted = sink.statistics().unwrap();
        assert_eq!((counted.received, counted.filtered, counted.malformed), (4, 1, 0));
        assert_eq!(source.statistics().unwrap().published, 6);
        assert_eq!(sink.try_recv().unwrap(), None);
    });
}

#[test]
fn patterns_come_and_go() {
    within("patterns_come_and_go", || {
        let context = Context::new();
        let (mut source, endpoint) = bound(Topics::builder(&context));
        let mut sink = build(Topics::builder(&context).connect(endpoint));
        sink.subscribe("a.*").unwrap();
        sink.subscribe("a.x").unwrap();
        sink.subscribe("end").unwrap();
        source.wait_for_subscriptions(3, None).unwrap();
        ["a.x", "a.y", "end"].into_iter().for_each(|topic| source.publish(topic, "").unwrap());
        // Also skips messages that were published before the unsubscription.
        sink.unsubscribe("a.*").unwrap();
        assert_eq!(until(&mut sink, "end"), ["a.x"]);
        assert!(matches!(sink.unsubscribe("a.*"), Err(Error::Invalid(_))));
        sink.subscribe("b/**").unwrap();
        source.wait_for_subscriptions(3, None).unwrap();
        ["b/1", "a.y", "b/2/3", "end"].into_iter().for_each(|topic| source.publish(topic, "").unwrap());
        assert_eq!(until(&mut sink, "end"), ["b/1", "b/2/3"]);
    });
}

#[test]
fn own_messages_are_received_if_they_are_asked_for() {
    within("own_messages_are_received_if_they_are_asked_for", || {
        for endpoint in [ANY, "inproc://own"] {
            let context = Context::new();
            let mut topics = build(Topics::builder(&context).bind(endpoint).receive_own(true));
            topics.subscribe("a").unwrap();
            topics.wait_for_subscriptions(1, None).unwrap();
            topics.publish("a", "own").unwrap();
            assert_eq!(text(&topics.recv().unwrap()), ("a".to_owned(), "own".to_owned()), "{endpoint}");
        }
    });
}

#[test]
fn own_messages_are_skipped_where_one_is_connected_to_itself() {
    within("own_messages_are_skipped_where_one_is_connected_to_itself", || {
        for endpoint in [ANY, "inproc://own"] {
            let context = Context::new();
            let mut one = build(Topics::builder(&context).bind(endpoint));
            let at = one.publisher().socket().last_endpoint().unwrap();
            one.subscriber().socket().connect(&at).unwrap();
            let mut other = build(Topics::builder(&context).bind("inproc://other"));
            one.subscriber().socket().connect("inproc://other").unwrap();
            one.subscribe("**").unwrap();
            one.wait_for_subscriptions(1, None).unwrap();
            other.wait_for_subscriptions(1, None).unwrap();
            one.publish("a", "own").unwrap();
            while one.statistics().unwrap().own == 0 {
                assert_eq!(one.recv_within(Duration::from_millis(1)).unwrap(), None);
            }
            other.publish("a", "other").unwrap();
            assert_eq!(text(&one.recv().unwrap()).1, "other", "{endpoint}");
        }
    });
}

#[test]
fn all_hear_all() {
    within("all_hear_all", || {
        // Like three processes.
        let contexts = [Context::new(), Context::new(), Context::new()];
        let mut all: Vec<(Topics, String)> =
            contexts.iter().map(|context| bound(Topics::builder(context))).collect();
        let endpoints: Vec<String> = all.iter().map(|(_, endpoint)| endpoint.clone()).collect();
        for (at, (topics, _)) in all.iter_mut().enumerate() {
            for (_, endpoint) in endpoints.iter().enumerate().filter(|(other, _)| *other != at) {
                topics.subscriber().socket().connect(endpoint).unwrap();
            }
            topics.subscribe(&format!("to.{at}")).unwrap();
        }
        for (at, (topics, _)) in all.iter_mut().enumerate() {
            topics.wait_for_subscriptions(2, None).unwrap();
            (0..3).for_each(|to| topics.publish(&format!("to.{to}"), at.to_string()).unwrap());
        }
        for (at, (topics, _)) in all.iter_mut().enumerate() {
            let mut from: Vec<String> = (0..2).map(|_| text(&topics.recv().unwrap()).1).collect();
            from.sort();
            let others = (0..3).filter(|other| *other != at).map(|other| other.to_string());
            assert_eq!(from, others.collect::<Vec<_>>());
        }
    });
}

/// Two programs in one process, and a third one with its own context, like another process.
#[cfg(feature = "names")]
#[test]
fn members_of_a_space_find_each_other() {
    within("members_of_a_space_find_each_other", || {
        let folder = tautline_testkit::endpoint::TempDir::new();
        let names = folder.path().join("names.toml");
        std::fs::write(&names, format!("[folder]\npath = {:?}\n", folder.path().join("f"))).unwrap();
        let contexts = [Context::new(), Context::new()];
        contexts.iter().for_each(|context| context.set_names(&names).unwrap());
        let mut all =
            [&contexts[0], &contexts[0], &contexts[1]].map(|context| Topics::join(context, "all").unwrap());
        for (at, topics) in all.iter_mut().enumerate() {
            topics.subscribe(&format!("to.{at}")).unwrap();
        }
        // Including its own subscription. Over inproc, a subscriber connects to a publisher only within one of its calls.
        for at in 0..3 {
            while !all[at].wait_for_subscriptions(3, Duration::from_millis(1)).unwrap() {
                all.iter_mut().for_each(|topics| assert_eq!(topics.try_recv().unwrap(), None));
            }
        }
        for (at, topics) in all.iter_mut().enumerate() {
            (0..3).for_each(|to| topics.publish(&format!("to.{to}"), at.to_string()).unwrap());
        }
        for (at, topics) in all.iter_mut().enumerate() {
            let mut from: Vec<String> = (0..2).map(|_| text(&topics.recv().unwrap()).1).collect();
            from.sort();
            let others = (0..3).filter(|other| *other != at).map(|other| other.to_string());
            assert_eq!(from, others.collect::<Vec<_>>());
            while topics.statistics().unwrap().own == 0 {
                assert_eq!(topics.recv_within(Duration::from_millis(1)).unwrap(), None);
            }
        }
    });
}

#[test]
fn plain_sockets_are_at_the_other_end() {
    within("plain_sockets_are_at_the_other_end", || {
        let context = Context::new();
        let (mut source, endpoint) = bound(Topics::builder(&context));
        let mut plain = Sub::builder(&context).subscribe("a.").connect(&endpoint).unwrap();
        source.wait_for_subscriptions(1, None).unwrap();
        source.publish("a.b", "body").unwrap();
        assert_eq!(plain.recv_multipart().unwrap(), tautline::Multipart::from(["a.b", "body"]));

        let mut plain = Pub::new(&context).unwrap();
        let endpoint = plain.bind(ANY).unwrap();
        let mut sink = build(Topics::builder(&context).connect(endpoint));
        sink.subscribe("*.b").unwrap();
        plain.wait_for_subscriptions(1, None).unwrap();
        plain.send("one part").unwrap();
        plain.send_multipart(["a.b", "1", "2"]).unwrap();
        plain.send_multipart([&b"\xff.b"[..], b"body"]).unwrap();
        let update = sink.recv().unwrap();
        assert_eq!((update.topic.as_bytes(), update.body.as_bytes()), (&b"\xff.b"[..], &b"body"[..]));
        assert_eq!(sink.statistics().unwrap().malformed, 2);
    });
}

#[test]
fn drops_for_a_slow_subscriber_are_counted() {
    within("drops_for_a_slow_subscriber_are_counted", || {
        let context = Context::new();
        let mut source =
            build(Topics::builder(&context).bind("inproc://slow").publish_with(|socket| socket.send_hwm(2)));
        let mut sink = build(
            Topics::builder(&context).connect("inproc://slow").subscribe_with(|socket| socket.receive_hwm(3)),
        );
        sink.subscribe("n.*").unwrap();
        source.wait_for_subscriptions(1, None).unwrap();
        (0..20).for_each(|n| source.publish(&format!("n.{n}"), "").unwrap());
        let mut received = 0;
        while sink.try_recv().unwrap().is_some() {
            received += 1;
        }
        let counted = source.statistics().unwrap();
        assert_eq!((received, counted.published, counted.dropped), (5, 20, 15));
    });
}

#[test]
fn halves_live_in_threads_of_their_own() {
    within("halves_live_in_threads_of_their_own", || {
        let context = Context::new();
        let (mut publisher, mut subscriber) =
            build(Topics::builder(&context).bind("inproc://halves").receive_own(true)).split();
        subscriber.subscribe("n.*").unwrap();
        let hears = std::thread::spawn(move || {
            let sum = (0..100).map(|_| text(&subscriber.recv().unwrap()).1.parse::<u32>().unwrap()).sum();
            (sum, subscriber)
        });
        publisher.wait_for_subscriptions(1, None).unwrap();
        (0..100_u32).for_each(|n| publisher.publish("n.x", n.to_string()).unwrap());
        let (sum, subscriber): (u32, _) = hears.join().unwrap();
        assert_eq!((sum, subscriber.statistics().received), (4950, 100));
    });
}

#[test]
fn malformed_topics_and_patterns_are_refused() {
    within("malformed_topics_and_patterns_are_refused", || {
        let context = Context::new();
        let mut topics = build(Topics::builder(&context).bind("inproc://wrong"));
        for topic in ["", "a.*", "*"] {
            assert!(matches!(topics.publish(topic, ""), Err(Error::Invalid(_))), "{topic}");
        }
        assert!(matches!(topics.subscribe("a.**.b"), Err(Error::Invalid(_))));
        assert_eq!(topics.subscriber().patterns(), []);
        context.shutdown();
        assert_eq!(topics.recv().unwrap_err(), Error::Terminated);
        assert_eq!(topics.recv_within(Duration::MAX).unwrap_err(), Error::Terminated);
    });
}

#[test]
fn a_task_receives_what_a_thread_would() {
    within("a_task_receives_what_a_thread_would", || {
        let context = Context::new();
        let (mut source, endpoint) = bound(Topics::builder(&context));
        let sink = Topics::builder(&context).connect(endpoint).subscriber().unwrap();
        let mut sink = sink.into_async();
        for pattern in ["a.*", "b.**", "end"] {
            sink.subscribe(pattern).unwrap();
        }
        assert!(matches!(sink.subscribe("a*b"), Err(Error::Invalid(_))));
        assert!(source.wait_for_subscriptions(3, None).unwrap());
        // No message has arrived, and none was lost.
        assert!(smol::block_on(smol::future::poll_once(sink.recv())).is_none());
        let publish = |source: &mut Topics| {
            for topic in ["a.b", "a.b.c", "b.x.y", "c", "end"] {
                source.publish(topic, topic.to_uppercase()).unwrap();
            }
        };
        publish(&mut source);
        let all = |sink: &mut Subscriber<tautline::aio::Sub>| {
            let mut got = Vec::new();
            while got.last().is_none_or(|topic: &String| topic != "end") {
                got.push(text(&smol::block_on(sink.recv()).unwrap()).0);
            }
            got
        };
        assert_eq!(all(&mut sink), ["a.b", "b.x.y", "end"]);
        sink.unsubscribe("b.**").unwrap();
        assert!(matches!(sink.unsubscribe("b.**"), Err(Error::Invalid(_))));
        publish(&mut source);
        assert_eq!(all(&mut sink), ["a.b", "end"]);
        assert_eq!(sink.patterns().len(), 2);
        let counted = sink.into_blocking().statistics();
        assert_eq!((counted.received, counted.malformed), (5, 0));
    });
}
