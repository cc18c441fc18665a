//! PUB/SUB with replay: late joiners, lost connections, full rings, restarted publishers, and peers that implement the protocol
//! by hand, like other programs.

use std::collections::VecDeque;
use std::time::Duration;

use tautline::curve::KeyPair;
use tautline::monitor::EventKind;
use tautline::replay::{Delivery, ReliablePub, ReliableSub, Start, Update};
use tautline::zap::AllowList;
use tautline::{Context, Dealer, Error, Message, Pub, Router, Sub, XPub};
use tautline_testkit::with_watchdog;

/// Long enough for a busy machine.
fn within(name: &str, body: impl FnOnce()) {
    with_watchdog(Duration::from_secs(240), name, body);
}

const ANY: &str = "tcp://127.0.0.1:*";

fn publisher(context: &Context, keep: usize) -> (ReliablePub, String, String) {
    let mut publisher = ReliablePub::builder(context).keep(keep).build().unwrap();
    let live = publisher.bind(ANY).unwrap();
    let ring = publisher.serve(ANY).unwrap();
    (publisher, live, ring)
}

fn subscriber(context: &Context, start: Start, live: &str, ring: &str) -> ReliableSub {
    // No message is late in these tests: if one is missing, the watchdog fails the test.
    let patience = Duration::from_secs(600);
    ReliableSub::builder(context)
        .subscribe("")
        .start(start)
        .answer_timeout(patience)
        .connect(live, ring)
        .unwrap()
}

fn next(subscriber: &mut ReliableSub) -> Update {
    match subscriber.recv().unwrap() {
        Delivery::Message(update) => update,
        other => panic!("{other:?}"),
    }
}

fn numbers(subscriber: &mut ReliableSub, count: usize) -> Vec<u64> {
    (0..count).map(|_| next(subscriber).number).collect()
}

/// Publishes until the subscriber has its first live message. Returns all deliveries so far.
fn join(publisher: &mut ReliablePub, subscriber: &mut ReliableSub) -> Vec<Delivery> {
    let mut got = Vec::new();
    loop {
        publisher.send("join", "").unwrap();
        while let Some(delivery) = subscriber.recv_within(Duration::from_millis(5)).unwrap() {
            got.push(delivery);
        }
        if subscriber.statistics().live > 0 {
            return got;
        }
    }
}

#[test]
fn late_subscriber_starts_with_oldest_kept_message() {
    within("late_subscriber_starts_with_oldest_kept_message", || {
        let context = Context::new();
        let (mut publisher, live, ring) = publisher(&context, 5);
        (0..8).for_each(|i| assert_eq!(publisher.send("t", vec![i]).unwrap(), u64::from(i)));
        assert_eq!((publisher.next_number(), publisher.kept_messages()), (8, 5));
        let mut late = subscriber(&context, Start::Oldest, &live, &ring);
        let first = next(&mut late);
        assert_eq!((first.number, first.body.as_bytes(), first.replayed), (3, &[3_u8][..], true));
        assert_eq!(numbers(&mut late, 4), [4, 5, 6, 7]);
        join(&mut publisher, &mut late);
        let from = publisher.send("t", "live").unwrap();
        assert_eq!(next(&mut late).number, from);
        assert_eq!(late.statistics().lost, 0);
    });
}

#[test]
fn the_last_of_each_topic_comes_first() {
    within("the_last_of_each_topic_comes_first", || {
        let context = Context::new();
        let (mut publisher, live, ring) = publisher(&context, 100);
        for (topic, body) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", "5")] {
            publisher.send(topic, body).unwrap();
        }
        let mut late = ReliableSub::builder(&context)
            .subscribe("a")
            .subscribe("b")
            .start(Start::LastOfEachTopic)
            .connect(&live, &ring)
            .unwrap();
        let (a, b) = (next(&mut late), next(&mut late));
        assert_eq!((a.topic.as_bytes(), a.number), (&b"a"[..], 2));
        assert_eq!((b.topic.as_bytes(), b.number), (&b"b"[..], 4));
    });
}

/// Binds again at the endpoint of a closed publisher.
fn publisher_at(context: &Context, live: &str, ring: &str) -> ReliablePub {
    loop {
        let mut publisher = ReliablePub::new(context).unwrap();
        // The system needs a moment to release the port.
        if publisher.bind(live).is_ok() && publisher.serve(ring).is_ok() {
            return publisher;
        }
        std::thread::yield_now();
    }
}

/// Publishes until the subscriber has seen the restart and all messages up to that moment. Checks that their numbers start at 0
/// without a gap.
fn expect_restart(publisher: &mut ReliablePub, subscriber: &mut ReliableSub) {
    let mut restarted = false;
    let mut next_number = 0;
    while !restarted || next_number < 15 {
        publisher.send("t", "new").unwrap();
        while let Some(delivery) = subscriber.recv_within(Duration::from_millis(5)).unwrap() {
            match delivery {
                Delivery::Restarted if !restarted => restarted = true,
                Delivery::Message(update) if restarted => {
                    assert_eq!((update.number, update.body.as_bytes()), (next_number, &b"new"[..]));
                    next_number += 1;
                }
                other => panic!("{other:?}, with {next_number} messages since the restart"),
            }
        }
    }
}

#[test]
fn restart_after_a_replay_is_reported_and_loses_nothing() {
    within("restart_after_a_replay_is_reported_and_loses_nothing", || {
        for start in [Start::Oldest, Start::LastOfEachTopic, Start::Number(0), Start::Number(7)] {
            let context = Context::new();
            let (mut first, live, ring) = publisher(&context, 1000);
            (0..10).for_each(|i| assert_eq!(first.send("t", "old").unwrap(), i));
            let mut late = subscriber(&context, start, &live, &ring);
            while next(&mut late).number != 9 {}
            drop(first);
            let mut second = publisher_at(&context, &live, &ring);
            expect_restart(&mut second, &mut late);
        }
    });
}

#[test]
fn restart_after_live_messages_is_reported_and_loses_nothing() {
    within("restart_after_live_messages_is_reported_and_loses_nothing", || {
        let context = Context::new();
        let (mut first, live, ring) = publisher(&context, 1000);
        let mut late = subscriber(&context, Start::Live, &live, &ring);
        join(&mut first, &mut late);
        drop(first);
        let mut second = publisher_at(&context, &live, &ring);
        // The first number that the subscriber sees is the expected one.
        for number in 0..late.statistics().live {
            assert_eq!(second.send("t", "new").unwrap(), number);
        }
        expect_restart(&mut second, &mut late);
    });
}

#[test]
fn lower_number_means_a_restart() {
    within("lower_number_means_a_restart", || {
        let context = Context::new();
        let (mut publisher, live, ring) = publisher(&context, 1000);
        let mut late = subscriber(&context, Start::Number(1 << 40), &live, &ring);
        expect_restart(&mut publisher, &mut late);
    });
}

/// A publisher and a ring like those of other programs, controlled by the test.
struct ScriptedPublisher {
    live: XPub,
    ring: Router,
    subscriber: ReliableSub,
    /// Deliveries while a request was awaited.
    early: VecDeque<Delivery>,
}

impl ScriptedPublisher {
    fn new(context: &Context, start: Start) -> Self {
        Self::with_live(XPub::new(context).unwrap(), context, start)
    }

    /// Creates a publisher with this epoch.
    fn showing(context: &Context, start: Start, epoch: u64) -> Self {
        let shown = format!("{epoch:016x}");
        Self::with_live(
            XPub::builder(context).property("X-Taut-Epoch", &shown).build().unwrap(),
            context,
            start,
        )
    }

    fn with_live(mut live: XPub, context: &Context, start: Start) -> Self {
        let mut ring = Router::new(context).unwrap();
        let (at, ring_at) = (live.bind(ANY).unwrap(), ring.bind(ANY).unwrap());
        let subscriber = subscriber(context, start, &at, &ring_at);
        assert_eq!(live.recv().unwrap().as_bytes(), [1], "it subscribes to everything");
        ScriptedPublisher { live, ring, subscriber, early: VecDeque::new() }
    }

    fn recv(&mut self) -> Delivery {
        self.early.pop_front().unwrap_or_else(|| self.subscriber.recv().unwrap())
    }

    fn numbers(&mut self, count: usize) -> Vec<u64> {
        let number = |delivery| match delivery {
            Delivery::Message(update) => update.number,
            other => panic!("{other:?}"),
        };
        (0..count).map(|_| number(self.recv())).collect()
    }

    fn publish(&mut self, number: u64) {
        self.live.send_multipart([&b"t"[..], &number.to_be_bytes(), b"live"]).unwrap();
    }

    /// Takes a request for the messages from `from` on, and answers it with messages of these numbers.
    fn answer(&mut self, from: u64, numbers: &[u64], epoch: &[u8]) {
        while !self.ring.wait_readable(Duration::from_millis(1)).unwrap() {
            self.early.extend(self.subscriber.try_recv().unwrap());
        }
        let [peer, delimiter, asked] = self.ring.recv_multipart().unwrap().try_into().unwrap();
        assert!(delimiter.is_empty());
        assert_eq!(u64::from_be_bytes(asked.as_bytes().try_into().unwrap()), from);
        let peer = peer.as_bytes();
        for number in numbers {
            self.ring.send_multipart([peer, b"", b"t", &number.to_be_bytes(), b"kept"]).unwrap();
        }
        self.ring.send_multipart([peer, b"", epoch, &u64::MAX.to_be_bytes(), b""]).unwrap();
    }
}

const NOTHING: u64 = u64::MAX - 1;

#[test]
fn low_number_after_a_replay_is_a_restart_if_the_epoch_differs() {
    within("low_number_after_a_replay_is_a_restart_if_the_epoch_differs", || {
        let mut all = ScriptedPublisher::new(&Context::new(), Start::Oldest);
        all.answer(0, &[0, 1, 2, 3, 4, 5], b"life one");
        // These messages repeat messages from the ring. The ring is asked once.
        all.publish(2);
        all.publish(3);
        all.answer(NOTHING, &[], b"life one");
        assert_eq!(all.numbers(6), [0, 1, 2, 3, 4, 5]);
        // In the same epoch this message would be a repetition.
        all.publish(5);
        all.answer(NOTHING, &[], b"life two");
        all.answer(0, &[0, 1, 2, 3, 4, 5], b"life two");
        all.publish(6);
        assert_eq!(all.recv(), Delivery::Restarted);
        assert_eq!(all.numbers(7), [0, 1, 2, 3, 4, 5, 6]);
        let counts = all.subscriber.statistics();
        assert_eq!((counts.restarts, counts.lost, counts.outdated), (1, 0, 0));
    });
}

#[test]
fn low_number_after_a_replay_is_a_restart_if_the_ring_has_less_than_before() {
    within("low_number_after_a_replay_is_a_restart_if_the_ring_has_less_than_before", || {
        let mut all = ScriptedPublisher::new(&Context::new(), Start::Oldest);
        all.answer(0, &[0, 1, 2, 3, 4, 5], b"");
        all.publish(3);
        all.answer(5, &[5, 6], b"");
        all.publish(4);
        all.publish(5);
        all.publish(6);
        assert_eq!(all.numbers(7), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(all.subscriber.statistics().restarts, 0);

        let mut anew = ScriptedPublisher::new(&Context::new(), Start::Oldest);
        anew.answer(0, &[0, 1, 2, 3, 4, 5], b"");
        anew.publish(1);
        anew.answer(5, &[], b"");
        anew.answer(0, &[0, 1], b"");
        assert_eq!(anew.numbers(6), [0, 1, 2, 3, 4, 5]);
        assert_eq!(anew.recv(), Delivery::Restarted);
        assert_eq!(anew.numbers(2), [0, 1]);
    });
}

#[test]
fn messages_published_after_an_empty_ring_has_answered_are_not_missed() {
    within("messages_published_after_an_empty_ring_has_answered_are_not_missed", || {
        for start in [Start::Oldest, Start::LastOfEachTopic] {
            let mut all = ScriptedPublisher::new(&Context::new(), start);
            all.answer(0, &[], b"");
            all.publish(3);
            all.answer(0, &[0, 1, 2], b"");
            assert_eq!(all.numbers(4), [0, 1, 2, 3]);
        }
    });
}

#[test]
fn messages_of_a_former_epoch_do_not_count_for_the_new_one() {
    within("messages_of_a_former_epoch_do_not_count_for_the_new_one", || {
        let (former, new) = (1_u64, 2_u64.to_be_bytes());
        let mut all = ScriptedPublisher::showing(&Context::new(), Start::Live, former);
        all.answer(NOTHING, &[], &former.to_be_bytes());
        all.publish(1);
        all.publish(5);
        // Still unread when the ring has the new epoch.
        all.publish(6);
        all.answer(NOTHING, &[], &new);
        all.answer(0, &[0, 1], &new);
        all.answer(NOTHING, &[], &new);
        assert_eq!(all.numbers(1), [1]);
        assert_eq!(all.recv(), Delivery::Lost { first: 2, last: 4 });
        assert_eq!(all.numbers(1), [5]);
        assert_eq!(all.recv(), Delivery::Restarted);
        assert_eq!(all.numbers(2), [0, 1]);
        while all.subscriber.statistics().outdated < 1 {
            assert_eq!(all.subscriber.recv_within(Duration::from_millis(1)).unwrap(), None);
        }
        assert_eq!(all.subscriber.statistics().restarts, 1);
    });
}

#[test]
fn missing_messages_are_repaired_in_order() {
    within("missing_messages_are_repaired_in_order", || {
        let mut all = ScriptedPublisher::new(&Context::new(), Start::Live);
        all.answer(NOTHING, &[], b"");
        all.publish(7);
        assert_eq!(all.numbers(1), [7]);
        all.publish(11);
        // The ring is ahead of the live messages.
        all.answer(8, &[8, 9, 10, 11, 12], b"");
        all.publish(12);
        assert_eq!(all.numbers(5), [8, 9, 10, 11, 12]);
        all.publish(20);
        all.answer(13, &[16, 17, 19], b"");
        let mut got = Vec::new();
        while got.len() < 6 {
            got.push(match all.recv() {
                Delivery::Message(update) => (update.number, update.replayed),
                Delivery::Lost { first, last } => (first * 100 + last, false),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(got, [(1315, false), (16, true), (17, true), (1818, false), (19, true), (20, false)]);
        let counts = all.subscriber.statistics();
        assert_eq!((counts.lost, counts.repaired, counts.requests, counts.restarts), (4, 6, 3, 0));
    });
}

#[test]
fn publisher_restart_is_reported() {
    within("publisher_restart_is_reported", || {
        let context = Context::new();
        let mut all = ScriptedPublisher::new(&context, Start::Live);
        all.answer(NOTHING, &[], b"life one");
        all.publish(100);
        assert_eq!(all.numbers(1), [100]);
        all.publish(2);
        all.answer(0, &[0, 1, 2], b"life two");
        assert_eq!(all.recv(), Delivery::Restarted);
        assert_eq!(all.numbers(3), [0, 1, 2]);
        // A new epoch is detected even if its numbers are higher.
        all.publish(9);
        all.answer(NOTHING, &[], b"life tre");
        all.answer(0, &[6, 7, 8], b"life tre");
        assert_eq!(all.recv(), Delivery::Restarted);
        assert_eq!(all.recv(), Delivery::Lost { first: 0, last: 5 });
        assert_eq!(all.numbers(4), [6, 7, 8, 9]);
        assert_eq!(all.subscriber.statistics().restarts, 2);
    });
}

#[test]
fn resumed_subscriber_gets_each_message_once() {
    within("resumed_subscriber_gets_each_message_once", || {
        let context = Context::new();
        let mut all = ScriptedPublisher::new(&context, Start::Number(5));
        // These messages arrive live before the ring has answered.
        all.publish(6);
        all.publish(7);
        all.answer(5, &[5, 6, 7], b"");
        // Message 6 is either a repetition or of another epoch.
        all.answer(7, &[7], b"");
        all.publish(8);
        assert_eq!(all.numbers(4), [5, 6, 7, 8]);
        let mut gone = ScriptedPublisher::new(&context, Start::Number(50));
        gone.answer(50, &[], b"");
        gone.publish(3);
        gone.answer(0, &[0, 1, 2], b"");
        assert_eq!(gone.recv(), Delivery::Restarted);
        assert_eq!(gone.numbers(4), [0, 1, 2, 3]);
    });
}

#[test]
fn silent_ring_loses_the_missing_messages() {
    within("silent_ring_loses_the_missing_messages", || {
        let context = Context::new();
        let mut live = XPub::new(&context).unwrap();
        let at = live.bind(ANY).unwrap();
        let mut silent = Router::new(&context).unwrap();
        let ring = silent.bind(ANY).unwrap();
        let patience = Duration::from_millis(20);
        let mut subscriber = ReliableSub::builder(&context)
            .subscribe("")
            .answer_timeout(patience)
            .connect(&at, &ring)
            .unwrap();
        live.recv().unwrap();
        for number in [4_u64, 9] {
            live.send_multipart([&b"t"[..], &number.to_be_bytes(), b"x"]).unwrap();
        }
        assert_eq!(next(&mut subscriber).number, 4);
        assert_eq!(subscriber.recv().unwrap(), Delivery::Lost { first: 5, last: 8 });
        assert_eq!(next(&mut subscriber).number, 9);
        assert!(subscriber.statistics().unanswered >= 2);
    });
}

#[test]
fn foreign_messages_and_requests_are_skipped() {
    within("foreign_messages_and_requests_are_skipped", || {
        let context = Context::new();
        let mut all = ScriptedPublisher::new(&context, Start::Live);
        all.answer(NOTHING, &[], b"");
        for parts in [
            &[&b"t"[..]][..],
            &[b"t", b"short", b"x"],
            &[b"t", &[255; 8], b"x"],
            &[b"t", &[0; 8], b"x", b"y"],
        ] {
            all.live.send_multipart(parts.iter().copied()).unwrap();
        }
        all.publish(1);
        assert_eq!(all.numbers(1), [1]);
        assert_eq!(all.subscriber.statistics().malformed, 4);

        let (mut publisher, _, ring) = publisher(&context, 10);
        publisher.send("t", "kept").unwrap();
        let mut dealer = Dealer::builder(&context).connect(&ring).unwrap();
        for parts in [&[&b""[..]][..], &[b"", b"short"], &[b"x", &[0; 8]], &[b"", &[0; 8], b"more"]] {
            dealer.send_multipart(parts.iter().copied()).unwrap();
        }
        dealer.send_multipart([&[][..], &[0; 8]]).unwrap();
        let kept = dealer.recv_multipart().unwrap();
        assert_eq!(kept.into_parts(), [&b""[..], b"t", &[0; 8], b"kept"]);
        let [delimiter, epoch, end, body]: [Message; 4] =
            dealer.recv_multipart().unwrap().try_into().unwrap();
        assert!(delimiter.is_empty() && body.is_empty() && epoch.len() == 8 && end == [255; 8]);
    });
}

#[test]
fn a_plain_sub_reads_topic_number_and_body() {
    within("a_plain_sub_reads_topic_number_and_body", || {
        let context = Context::new();
        let (mut publisher, live, _) = publisher(&context, 10);
        let mut plain = Sub::builder(&context).subscribe("a").connect(&live).unwrap();
        let got = loop {
            publisher.send("a", "x").unwrap();
            if plain.wait_readable(Duration::from_millis(5)).unwrap() {
                break plain.recv_multipart().unwrap();
            }
        };
        assert_eq!(
            (got.len(), got[0].as_bytes(), got[1].len(), got[2].as_bytes()),
            (3, &b"a"[..], 8, &b"x"[..])
        );
    });
}

#[test]
fn ring_beyond_the_hwm_arrives_whole() {
    within("ring_beyond_the_hwm_arrives_whole", || {
        let context = Context::new();
        let (mut publisher, live, ring) = publisher(&context, 20_000);
        let body = Message::from(vec![7; 300]);
        (0..20_000).for_each(|_| assert!(publisher.send("t", body.clone()).is_ok()));
        let mut late: Vec<ReliableSub> =
            (0..4).map(|_| subscriber(&context, Start::Oldest, &live, &ring)).collect();
        // A peer that sends requests but does not read delays no other peer.
        let mut stuck = Dealer::builder(&context).connect(&ring).unwrap();
        stuck.send_multipart([&[][..], &[0; 8]]).unwrap();
        for late in &mut late {
            for number in 0..20_000 {
                assert_eq!(next(late).number, number);
            }
        }
    });
}

#[test]
fn a_subscriber_that_is_too_slow_gets_everything_from_the_ring() {
    within("a_subscriber_that_is_too_slow_gets_everything_from_the_ring", || {
        let context = Context::new();
        let mut publisher = ReliablePub::builder(&context)
            .keep(100_000)
            .with_socket(|socket| socket.send_hwm(10))
            .build()
            .unwrap();
        let (live, ring) = (publisher.bind(ANY).unwrap(), publisher.serve(ANY).unwrap());
        let mut slow = ReliableSub::builder(&context)
            .subscribe("")
            .answer_timeout(Duration::from_secs(600))
            .with_socket(|socket| socket.receive_hwm(10))
            .connect(&live, &ring)
            .unwrap();
        let joined = join(&mut publisher, &mut slow);
        let Some(Delivery::Message(first)) = joined.first() else { panic!("{joined:?}") };
        let expected = joined.len() as u64 + first.number;
        let body = Message::from(vec![7; 10_000]);
        (0..5000).for_each(|_| assert!(publisher.send("t", body.clone()).is_ok()));
        let end = publisher.next_number();
        // The last messages may be lost if no later message reveals the loss.
        let mut next_number = expected;
        while next_number < end {
            publisher.send("end", "").unwrap();
            while let Some(delivery) = slow.recv_within(Duration::from_millis(5)).unwrap() {
                let Delivery::Message(update) = delivery else { panic!("{delivery:?}") };
                assert_eq!(update.number, next_number);
                next_number += 1;
            }
        }
        assert!(slow.statistics().repaired > 0, "{:?}", slow.statistics());
        assert_eq!(slow.statistics().lost, 0);
    });
}

#[test]
fn a_ring_is_served_at_several_endpoints() {
    within("a_ring_is_served_at_several_endpoints", || {
        let context = Context::new();
        let (mut publisher, live, ring) = publisher(&context, 10);
        let other = publisher.serve(ANY).unwrap();
        publisher.send("t", "kept").unwrap();
        for ring in [ring, other] {
            let mut late = subscriber(&context, Start::Oldest, &live, &ring);
            assert_eq!(next(&mut late).number, 0);
        }
    });
}

#[test]
fn dropping_a_publisher_ends_its_thread_and_frees_its_endpoints() {
    within("dropping_a_publisher_ends_its_thread_and_frees_its_endpoints", || {
        let context = Context::new();
        let (first, live, ring) = publisher(&context, 10);
        drop(first);
        for endpoint in [live, ring] {
            // The system needs a moment to release the port.
            while Pub::builder(&context).bind(&endpoint).is_err() {
                std::thread::yield_now();
            }
        }
        let (_second, _, _) = publisher(&context, 10);
        context.shutdown();
    });
}

/// Returns the messages that a DEALER with these options gets from a ring.
fn from_ring(
    ring: &str,
    options: impl FnOnce(tautline::Builder<tautline::kind::Dealer>) -> tautline::Builder<tautline::kind::Dealer>,
) -> Option<Message> {
    let elsewhere = Context::new();
    let mut dealer = options(Dealer::builder(&elsewhere)).connect(ring).unwrap();
    let mut events = dealer.monitor().unwrap();
    dealer.send_multipart([&[][..], &[0; 8]]).unwrap();
    loop {
        if dealer.wait_readable(Duration::from_millis(1)).unwrap() {
            return dealer.recv_multipart().unwrap().into_parts().pop();
        }
        while let Ok(event) = events.try_recv() {
            if matches!(event.kind, EventKind::HandshakeFailed(_) | EventKind::Disconnected) {
                return None;
            }
        }
    }
}

#[test]
fn ring_of_a_protected_publisher_is_as_protected() {
    within("ring_of_a_protected_publisher_is_as_protected", || {
        let context = Context::new();
        let (server, alice, mallory) =
            (KeyPair::generate().unwrap(), KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        context.authenticate(AllowList::new().key(alice.public, "alice")).unwrap();
        let publisher =
            ReliablePub::builder(&context).with_socket(|socket| socket.curve_server(&server.secret));
        let mut publisher = publisher.build().unwrap();
        let (live, ring) = (publisher.bind(ANY).unwrap(), publisher.serve(ANY).unwrap());
        publisher.send("salaries", "1,000,000").unwrap();
        assert_eq!(from_ring(&ring, |dealer| dealer), None);
        assert_eq!(from_ring(&ring, |dealer| dealer.curve_client(&server.public, &mallory)), None);
        let kept = from_ring(&ring, |dealer| dealer.curve_client(&server.public, &alice)).unwrap();
        assert_eq!(kept, "1,000,000");
        let mut late = ReliableSub::builder(&context)
            .with_socket(|socket| socket.curve_client(&server.public, &alice))
            .subscribe("")
            .start(Start::Oldest)
            .connect(&live, &ring)
            .unwrap();
        assert_eq!(next(&mut late).body, "1,000,000");
    });
}

#[test]
fn ring_that_is_less_protected_than_the_live_socket_is_refused() {
    within("ring_that_is_less_protected_than_the_live_socket_is_refused", || {
        let context = Context::new();
        let (server, alice) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let refused = |publisher: &mut ReliablePub, ring: &str| {
            let error = publisher.serve(ring).unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{error:?}");
            error.to_string()
        };
        // Keys that were only set on the PUB.
        let mut publisher = ReliablePub::new(&context).unwrap();
        publisher.socket().set_raw_option(47, &1_i32.to_ne_bytes()).unwrap();
        publisher.socket().set_raw_option(49, server.secret.expose_bytes()).unwrap();
        assert!(refused(&mut publisher, ANY).contains("less protected"));
        // A mechanism without encryption instead of CURVE.
        let builder =
            ReliablePub::builder(&context).with_socket(|socket| socket.curve_server(&server.secret));
        let mut publisher = builder.with_ring(|ring| ring.plain_server()).build().unwrap();
        assert!(refused(&mut publisher, ANY).contains("less protected"));
        // A client of a proxy that serves its own subscribers.
        let client = || {
            ReliablePub::builder(&context).with_socket(|socket| socket.curve_client(&server.public, &alice))
        };
        assert!(refused(&mut client().build().unwrap(), ANY).contains("make it a server"));
        let mut publisher = client().with_ring(|ring| ring.curve_server(&alice.secret)).build().unwrap();
        publisher.serve(ANY).unwrap();
        // A domain whose peers the handler checks.
        let mut publisher = ReliablePub::new(&context).unwrap();
        publisher.socket().set_raw_option(55, b"shop").unwrap();
        publisher.socket().set_raw_option(93, &1_i32.to_ne_bytes()).unwrap();
        assert!(refused(&mut publisher, ANY).contains("less protected"));

        let subscriber = ReliableSub::builder(&context)
            .with_socket(|socket| socket.curve_client(&server.public, &alice))
            .with_ring(|ring| ring.plain_client("alice", "secret"));
        let error = subscriber.connect("tcp://127.0.0.1:1", "tcp://127.0.0.1:2").unwrap_err();
        assert!(error.to_string().contains("less protected"), "{error}");
        let error = ReliableSub::builder(&context).connect("tls+tcp://127.0.0.1:1", "tcp://127.0.0.1:2");
        assert!(error.unwrap_err().to_string().contains("TLS protects the live messages"));
    });
}
