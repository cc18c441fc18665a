//! The blocking API in programs.

use std::thread;
use std::time::Duration;

use tautline::error::ExpectedStep;
use tautline::{
    Context, Dealer, Error, Message, Pair, PollItem, Pub, Pull, Push, Rep, Req, Router, Sub, XPub, XSub,
    kind, poll, proxy,
};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);
const ENDPOINTS: [&str; 3] = ["tcp://127.0.0.1:*", "ipc://*", "inproc://test"];

#[test]
fn messages_of_every_form_arrive() {
    with_watchdog(LIMIT, "messages_of_every_form", || {
        for endpoint in ENDPOINTS {
            let context = Context::new();
            let mut pull = Pull::new(&context).unwrap();
            let endpoint = pull.bind(endpoint).unwrap();
            let mut push = Push::builder(&context).connect(&endpoint).unwrap();
            push.send("text").unwrap();
            push.send(b"bytes").unwrap();
            push.send(&b"slice"[..]).unwrap();
            push.send(String::from("string")).unwrap();
            push.send(vec![9; 200_000]).unwrap();
            push.send(Message::from("message")).unwrap();
            push.send_multipart(["one", "two", "three"]).unwrap();
            for expected in ["text", "bytes", "slice", "string"] {
                assert_eq!(pull.recv().unwrap(), expected);
            }
            assert_eq!(pull.recv().unwrap(), vec![9; 200_000]);
            let mut buffer = [0; 3];
            assert_eq!(pull.recv_into(&mut buffer), Ok(7));
            assert_eq!(&buffer, b"mes");
            let parts = pull.recv_multipart().unwrap();
            assert_eq!(
                parts.iter().map(|part| part.as_str().unwrap()).collect::<Vec<_>>(),
                ["one", "two", "three"]
            );
            assert_eq!(pull.try_recv().unwrap_err(), Error::WouldBlock);
        }
    });
}

/// Over ipc, the receiver may have a body in the memory of the sender.
#[test]
fn change_after_the_send_does_not_reach_the_receiver() {
    with_watchdog(LIMIT, "change_after_the_send", || {
        for endpoint in ENDPOINTS {
            let (context, other) = (Context::new(), Context::new());
            let to = if endpoint.starts_with("inproc") { &context } else { &other };
            let mut pull = Pull::new(to).unwrap();
            let endpoint = pull.bind(endpoint).unwrap();
            let mut push = Push::builder(&context).connect(&endpoint).unwrap();
            for round in 0..=255 {
                let mut own = Message::from(&vec![round; 140_000][..]);
                push.send(own.share()).unwrap();
                let received = pull.recv().unwrap();
                own.as_mut_bytes().fill(!round);
                assert!(received.as_bytes().iter().all(|byte| *byte == round), "{endpoint}, round {round}");
                assert_eq!(own.as_bytes()[0], !round);
            }
        }
    });
}

#[test]
fn a_router_answers_by_routing_id() {
    with_watchdog(LIMIT, "a_router_answers", || {
        let context = Context::new();
        let mut router: Router = Router::builder(&context).router_mandatory(true).build().unwrap();
        let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
        let mut dealer = Dealer::builder(&context).routing_id("me").connect(&endpoint).unwrap();
        dealer.send("question").unwrap();
        let [from, question] = router.recv_multipart().unwrap().try_into().unwrap();
        assert_eq!((from.as_str(), question.as_str()), (Ok("me"), Ok("question")));
        router.send_multipart([from, Message::from("answer")]).unwrap();
        assert_eq!(dealer.recv().unwrap(), "answer");
        assert_eq!(router.send_multipart(["nobody", "x"]), Err(Error::Unroutable));
    });
}

#[test]
fn only_subscribed_messages_arrive() {
    with_watchdog(LIMIT, "only_what_was_subscribed", || {
        let context = Context::new();
        let mut publisher = XPub::new(&context).unwrap();
        let endpoint = publisher.bind("tcp://127.0.0.1:*").unwrap();
        let mut sub = Sub::builder(&context).connect(&endpoint).unwrap();
        sub.subscribe("a").unwrap();
        let mut xsub = XSub::builder(&context).connect(&endpoint).unwrap();
        xsub.subscribe("b").unwrap();
        let mut seen = [publisher.recv().unwrap(), publisher.recv().unwrap()].map(Vec::from);
        seen.sort();
        assert_eq!(seen, [b"\x01a".to_vec(), b"\x01b".to_vec()]);
        for topic in ["c", "b1", "a1"] {
            publisher.send(topic).unwrap();
        }
        assert_eq!((sub.recv().unwrap(), xsub.recv().unwrap()), ("a1".into(), "b1".into()));
        sub.unsubscribe("a").unwrap();
        assert_eq!(publisher.recv().unwrap(), b"\x00a");
    });
}

#[test]
fn a_request_waits_for_its_answer() {
    with_watchdog(LIMIT, "a_request_waits", || {
        let context = Context::new();
        let mut rep = Rep::new(&context).unwrap();
        let endpoint = rep.bind("inproc://rep").unwrap();
        let mut req = Req::builder(&context).correlate(true).relaxed(true).connect(&endpoint).unwrap();
        assert_eq!(rep.send("early").unwrap_err(), Error::WrongState(ExpectedStep::ReceiveQuestion));
        req.send("one").unwrap();
        req.send("two").unwrap();
        for expected in ["one", "two"] {
            assert_eq!(rep.recv().unwrap(), expected);
            rep.send(expected).unwrap();
        }
        assert_eq!(req.recv().unwrap(), "two");
    });
}

#[test]
fn polling_tells_which_socket_is_ready() {
    with_watchdog(LIMIT, "polling_tells", || {
        let context = Context::new();
        let mut pulls: Vec<Pull> = (0..2).map(|_| context.socket().unwrap()).collect();
        let endpoints: Vec<_> =
            pulls.iter_mut().map(|pull| pull.bind("tcp://127.0.0.1:*").unwrap()).collect();
        let mut push = Push::builder(&context).connect(&endpoints[1]).unwrap();
        let mut items: Vec<_> = pulls.iter_mut().map(PollItem::readable).collect();
        assert_eq!(poll(&mut items, Some(Duration::ZERO)), Ok(0));
        push.send("x").unwrap();
        assert_eq!(poll(&mut items, None), Ok(1));
        assert_eq!(items.iter().map(PollItem::is_readable).collect::<Vec<_>>(), [false, true]);
        drop(items);
        assert!(pulls[1].wait_readable(None).unwrap() && push.wait_writable(None).unwrap());
    });
}

#[test]
fn timeouts_and_high_water_marks_end_a_wait() {
    with_watchdog(LIMIT, "timeouts", || {
        let context = Context::new();
        let mut pull =
            Pull::builder(&context).receive_timeout(Duration::from_millis(1)).receive_hwm(1).build().unwrap();
        pull.bind("inproc://timeout").unwrap();
        assert_eq!(pull.recv().unwrap_err(), Error::TimedOut);
        let mut push = Push::builder(&context).send_hwm(1).connect("inproc://timeout").unwrap();
        push.try_send("1").unwrap();
        push.try_send("2").unwrap();
        assert_eq!(push.try_send("3"), Err(Error::WouldBlock));
        push.set_send_timeout(Some(Duration::from_millis(1))).unwrap();
        assert_eq!(push.send("3"), Err(Error::TimedOut));
    });
}

#[test]
fn the_end_of_the_context_ends_every_wait() {
    with_watchdog(LIMIT, "the_end_of_the_context", || {
        let context = Context::new();
        let mut pair = Pair::new(&context).unwrap();
        let waiting = thread::spawn(move || pair.recv().map(|_| ()));
        context.terminate().unwrap();
        assert_eq!(waiting.join().unwrap(), Err(Error::Terminated));
        assert_eq!(context.socket::<kind::Pub>().unwrap_err(), Error::Terminated);
    });
}

#[test]
fn terminate_sends_queued_messages() {
    with_watchdog(LIMIT, "what_is_queued_is_sent", || {
        let (here, there) = (Context::new(), Context::new());
        let mut pull = Pull::new(&there).unwrap();
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        let mut push = Push::builder(&here).linger(None).connect(&endpoint).unwrap();
        for number in 0..500_u32 {
            push.send(&number.to_ne_bytes()).unwrap();
        }
        push.close();
        here.terminate().unwrap();
        for number in 0..500_u32 {
            assert_eq!(pull.recv().unwrap(), number.to_ne_bytes());
        }
    });
}

#[test]
fn a_proxy_passes_messages_both_ways() {
    with_watchdog(LIMIT, "a_proxy", || {
        let context = Context::new();
        let mut frontend = Router::new(&context).unwrap();
        let front = frontend.bind("tcp://127.0.0.1:*").unwrap();
        let mut backend = Dealer::new(&context).unwrap();
        let back = backend.bind("tcp://127.0.0.1:*").unwrap();
        let between = thread::spawn(move || proxy(&mut frontend, &mut backend));
        let mut rep = Rep::builder(&context).connect(&back).unwrap();
        let mut req = Req::builder(&context).connect(&front).unwrap();
        req.send("there").unwrap();
        assert_eq!(rep.recv().unwrap(), "there");
        rep.send("back").unwrap();
        assert_eq!(req.recv().unwrap(), "back");
        drop((req, rep));
        context.shutdown();
        assert_eq!(between.join().unwrap(), Err(Error::Terminated));
    });
}

#[test]
fn a_publisher_without_subscribers_drops() {
    let context = Context::new();
    let mut publisher = Pub::new(&context).unwrap();
    publisher.bind("inproc://pub").unwrap();
    publisher.send("to nobody").unwrap();
}
