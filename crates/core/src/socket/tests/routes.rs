//! Programs must not notice routes (`pipe/route.rs`). Each test lets a socket follow a route, and
//! then causes an event that the pattern must handle.

use super::*;
use crate::socket::options::{EVENTS, POLLIN, SUBSCRIBE, UNSUBSCRIBE};

const ROUTING_ID: i32 = 5;
const ROUTER_MANDATORY: i32 = 33;
const ROUTER_HANDOVER: i32 = 56;

struct Bench {
    context: Context,
}

impl Bench {
    fn new() -> Self {
        Bench { context: Context::new() }
    }

    /// A bound socket, and another one that is connected to it.
    fn pair(&self, bound: SocketType, connected: SocketType) -> (Socket, Socket) {
        let mut bound = self.context.socket(bound).unwrap();
        bound.bind("inproc://routes").unwrap();
        let connected = self.connect(connected);
        (bound, connected)
    }

    fn connect(&self, kind: SocketType) -> Socket {
        self.connect_as(kind, b"")
    }

    fn connect_as(&self, kind: SocketType, name: &[u8]) -> Socket {
        let mut socket = self.context.socket(kind).unwrap();
        if !name.is_empty() {
            socket.set_option(ROUTING_ID, name).unwrap();
        }
        socket.connect("inproc://routes").unwrap();
        socket
    }
}

fn send(socket: &mut Socket, parts: &[&[u8]]) {
    for (index, part) in parts.iter().enumerate() {
        let more = if index + 1 < parts.len() { Flags::MORE } else { Flags::NONE };
        socket.send(part, Flags(Flags::DONTWAIT.0 | more.0)).unwrap();
    }
}

/// Receives one part, with a `+` behind it if more follow. Empty if there is no part.
fn part(socket: &mut Socket) -> String {
    let mut buffer = [0; 32];
    let Ok(len) = socket.recv(&mut buffer, Flags::DONTWAIT) else { return String::new() };
    let more = if socket.receive_more { "+" } else { "" };
    format!("{}{more}", std::str::from_utf8(&buffer[..len]).unwrap())
}

fn parts(socket: &mut Socket) -> Vec<String> {
    std::iter::from_fn(|| Some(part(socket)).filter(|part| !part.is_empty())).collect()
}

fn events(socket: &mut Socket) -> i32 {
    let mut value = [0; 4];
    socket.option(EVENTS, &mut value).unwrap();
    i32::from_ne_bytes(value)
}

fn goes_by_route(socket: &mut Socket) -> bool {
    socket.pattern.routes.send(&mut socket.pipes, &mut Part::copied(b"routed", false)) == Ok(true)
}

#[test]
fn a_second_peer_has_its_turn() {
    let bench = Bench::new();
    let (mut push, mut first) = bench.pair(SocketType::Push, SocketType::Pull);
    send(&mut push, &[b"a"]);
    assert!(goes_by_route(&mut push));
    let mut second = bench.connect(SocketType::Pull);
    (0..4).for_each(|_| send(&mut push, &[b"x"]));
    assert_eq!((parts(&mut first).len(), parts(&mut second).len()), (4, 2));

    drop(first);
    (0..3).for_each(|_| send(&mut push, &[b"y"]));
    assert_eq!(parts(&mut second), ["y"; 3]);
    assert!(goes_by_route(&mut push), "there is only one again");
}

#[test]
fn second_sender_is_received_fairly() {
    let bench = Bench::new();
    let (mut pull, mut first) = bench.pair(SocketType::Pull, SocketType::Push);
    (0..3).for_each(|_| send(&mut first, &[b"a"]));
    assert_eq!([part(&mut pull), part(&mut pull)], ["a", "a"]);
    let mut second = bench.connect(SocketType::Push);
    (0..2).for_each(|_| send(&mut second, &[b"b"]));
    send(&mut first, &[b"a"]);
    let mut rest = parts(&mut pull);
    assert_eq!(rest.len(), 4);
    assert_ne!(rest[0], rest[1], "they take turns: {rest:?}");
    rest.sort();
    assert_eq!(rest, ["a", "a", "b", "b"]);
}

#[test]
fn the_parts_of_a_message_stay_together() {
    let bench = Bench::new();
    let (mut pull, mut push) = bench.pair(SocketType::Pull, SocketType::Push);
    send(&mut push, &[b"whole"]);
    send(&mut push, &[b"a", b"b", b"c"]);
    send(&mut push, &[b"whole"]);
    assert_eq!(parts(&mut pull), ["whole", "a+", "b+", "c", "whole"]);

    send(&mut push, &[b"a", b"b"]);
    assert_eq!(part(&mut pull), "a+");
    let mut other = bench.connect(SocketType::Push);
    send(&mut other, &[b"x"]);
    drop(push);
    assert_eq!(
        parts(&mut pull),
        ["b", "x"],
        "the rest comes before another's message, and after the end of its sender"
    );
}

#[test]
fn the_high_water_mark_holds() {
    let bench = Bench::new();
    let sockets = [SocketType::Pull, SocketType::Push].map(|kind| {
        let mut socket = bench.context.socket(kind).unwrap();
        MARKS.iter().for_each(|&mark| socket.set_option(mark, &5_i32.to_ne_bytes()).unwrap());
        socket
    });
    let [mut pull, mut push] = sockets;
    pull.bind("inproc://mark").unwrap();
    push.connect("inproc://mark").unwrap();
    let mut taken =
        || std::iter::repeat_with(|| push.send(b"x", Flags::DONTWAIT)).take_while(Result::is_ok).count();
    assert_eq!(taken(), 10);
    assert_eq!(parts(&mut pull).len(), 10);
    assert_eq!(taken(), 10);
}

#[test]
fn router_expects_routing_id_before_each_message() {
    let bench = Bench::new();
    let mut router = bench.context.socket(SocketType::Router).unwrap();
    router.set_option(ROUTER_MANDATORY, &1_i32.to_ne_bytes()).unwrap();
    router.bind("inproc://routes").unwrap();
    let mut dealer = bench.connect_as(SocketType::Dealer, b"peer");
    for _ in 0..3 {
        send(&mut router, &[b"peer", b"body"]);
        send(&mut router, &[b"peer", b"", b"body", b"end"]);
    }
    let unknown = router.send(b"body", Flags::MORE);
    assert_eq!(unknown, Err(Error::HostUnreachable), "it is an address again");
    assert_eq!(parts(&mut dealer), ["body", "+", "body+", "end"].repeat(3));

    for _ in 0..2 {
        send(&mut dealer, &[b"one"]);
        send(&mut dealer, &[b"two", b"three"]);
    }
    assert_eq!(part(&mut router), "peer+");
    assert_eq!(part(&mut router), "one");
    assert_ne!(events(&mut router) & POLLIN, 0);
    assert_eq!(parts(&mut router), ["peer+", "two+", "three", "peer+", "one", "peer+", "two+", "three"]);
    assert_eq!(events(&mut router) & POLLIN, 0, "no message is half received");
}

#[test]
fn routing_id_addresses_its_current_peer() {
    let bench = Bench::new();
    let mut router = bench.context.socket(SocketType::Router).unwrap();
    router.set_option(ROUTER_HANDOVER, &1_i32.to_ne_bytes()).unwrap();
    router.bind("inproc://routes").unwrap();
    for name in ["n", "four", "eight888", "exactly-sixteen!", "longer than sixteen bytes"] {
        let other = format!("{}~", &name[..name.len() - 1]);
        let mut first = bench.connect_as(SocketType::Dealer, name.as_bytes());
        let mut another = bench.connect_as(SocketType::Dealer, other.as_bytes());
        for _ in 0..3 {
            send(&mut router, &[name.as_bytes(), b"a"]);
        }
        send(&mut router, &[other.as_bytes(), b"b"]);
        send(&mut router, &[name.as_bytes(), b"c"]);
        let mut heir = bench.connect_as(SocketType::Dealer, name.as_bytes());
        send(&mut router, &[name.as_bytes(), b"d"]);
        assert_eq!(parts(&mut heir), ["d"], "{name}");
        assert_eq!(
            (parts(&mut first), parts(&mut another)),
            (["a", "a", "a", "c"].map(String::from).to_vec(), vec!["b".into()])
        );
        drop(heir);
        send(&mut router, &[name.as_bytes(), b"e"]);
        assert_eq!(parts(&mut first), ["e"], "it is still there");
        drop(first);
        let before = router.pipes.shared.unroutable();
        send(&mut router, &[name.as_bytes(), b"f"]);
        assert_eq!(router.pipes.shared.unroutable(), before + 1, "nobody has it");
    }
}

/// Names that are distinguished in different ways. The last ones begin and end alike.
const NAMES: [&str; 8] = [
    "a",
    "b",
    "seven77",
    "eight888",
    "exactly-sixteen!",
    "all begin 1 and end alike",
    "all begin 2 and end alike",
    "all begin 3 and end alike",
];

#[test]
fn peers_in_predicted_order_bypass_the_pattern() {
    let bench = Bench::new();
    let mut router = bench.context.socket(SocketType::Router).unwrap();
    router.bind("inproc://routes").unwrap();
    let mut dealers = NAMES.map(|name| bench.connect_as(SocketType::Dealer, name.as_bytes()));
    let whole = |name: &&&str| name.len() <= 16;
    for _ in 0..2 {
        for name in &NAMES {
            send(&mut router, &[name.as_bytes(), b"x"]);
        }
    }
    for name in NAMES.iter().filter(whole) {
        assert!(router.pattern.routes.try_begin_addressed(&mut router.pipes, name.as_bytes()), "{name}");
        send(&mut router, &[b"y"]);
    }
    assert!(
        !router.pattern.routes.try_begin_addressed(&mut router.pipes, NAMES[0].as_bytes()),
        "not the next one"
    );
    assert!(!router.pattern.routes.try_begin_addressed(&mut router.pipes, b""));
    // A router answers the peer that it has just received from.
    send(&mut dealers[2], &[b"question"]);
    assert_eq!(parts(&mut router), ["seven77+", "question"]);
    assert!(router.pattern.routes.try_begin_addressed(&mut router.pipes, NAMES[2].as_bytes()));
    assert!(
        !router.pattern.routes.try_begin_addressed(&mut router.pipes, NAMES[2].as_bytes()),
        "that is a part of the message"
    );
    send(&mut router, &[b"answer"]);
    for (dealer, name) in dealers.iter_mut().zip(&NAMES) {
        let expected = match name.len() {
            7 => &["x", "x", "y", "answer"][..],
            ..=16 => &["x", "x", "y"],
            _ => &["x", "x"],
        };
        assert_eq!(parts(dealer), expected, "{name}");
    }
}

#[test]
fn each_peer_gets_its_messages_in_any_send_order() {
    for seed in 0..20 {
        let mut random = tautline_testkit::XorShift::new(seed);
        let bench = Bench::new();
        let mut router = bench.context.socket(SocketType::Router).unwrap();
        router.set_option(ROUTER_MANDATORY, &1_i32.to_ne_bytes()).unwrap();
        router.set_option(MARKS[0], &3_i32.to_ne_bytes()).unwrap();
        router.bind("inproc://routes").unwrap();
        let connect = |name: &str| {
            let mut dealer = bench.context.socket(SocketType::Dealer).unwrap();
            dealer.set_option(ROUTING_ID, name.as_bytes()).unwrap();
            dealer.set_option(MARKS[1], &3_i32.to_ne_bytes()).unwrap();
            dealer.connect("inproc://routes").unwrap();
            dealer
        };
        let mut dealers = NAMES.map(|name| Some(connect(name)));
        let mut sent = NAMES.map(|_| Vec::new());
        let mut next = 0;
        for number in 0..2000 {
            let step = random.below(40);
            // Mostly in order.
            next = if step < 30 { next + 1 } else { random.below(100) } % NAMES.len();
            let name = NAMES[next].as_bytes();
            match step {
                0 => dealers[next] = None,
                1 if dealers[next].is_none() => {
                    (dealers[next], sent[next]) = (Some(connect(NAMES[next])), Vec::new());
                }
                2..8 => {
                    let Some(dealer) = &mut dealers[next] else { continue };
                    assert_eq!(parts(dealer), std::mem::take(&mut sent[next]));
                }
                8..10 => {
                    let Some(dealer) = &mut dealers[next] else { continue };
                    send(dealer, &[b"question"]);
                    assert_eq!(parts(&mut router), [format!("{}+", NAMES[next]), "question".into()]);
                }
                _ => match router.send(name, Flags(Flags::DONTWAIT.0 | Flags::MORE.0)) {
                    Ok(()) => {
                        let body = format!("{number}");
                        send(&mut router, &[body.as_bytes()]);
                        assert!(dealers[next].is_some());
                        sent[next].push(body);
                    }
                    Err(Error::Again) => assert!(sent[next].len() >= 5, "{} messages wait", sent[next].len()),
                    Err(error) => {
                        assert_eq!((error, dealers[next].is_none()), (Error::HostUnreachable, true));
                    }
                },
            }
        }
    }
}

#[test]
fn router_delivers_routing_id_before_each_message() {
    let bench = Bench::new();
    let mut router = bench.context.socket(SocketType::Router).unwrap();
    router.bind("inproc://routes").unwrap();
    let mut first = bench.connect_as(SocketType::Dealer, b"one");
    (0..3).for_each(|_| send(&mut first, &[b"a"]));
    assert_eq!((0..5).map(|_| part(&mut router)).collect::<Vec<_>>(), ["one+", "a", "one+", "a", "one+"]);
    let mut second = bench.connect_as(SocketType::Dealer, b"two");
    send(&mut second, &[b"b"]);
    assert_eq!(parts(&mut router), ["a", "two+", "b"], "a message that was begun is ended first");
    send(&mut first, &[b"a"]);
    let mut message = Message::new();
    router.recv_message(&mut message, Flags::DONTWAIT).unwrap();
    assert_eq!((message.as_slice(), message.more()), (&b"one"[..], true));
    assert_eq!(parts(&mut router), ["a"]);
    assert_eq!(parts(&mut router).len(), 0);
}

#[test]
fn unfinished_router_message_is_dropped_with_its_peer() {
    let bench = Bench::new();
    let mut router = bench.context.socket(SocketType::Router).unwrap();
    router.bind("inproc://routes").unwrap();
    let dealer = bench.connect_as(SocketType::Dealer, b"gone");
    send(&mut router, &[b"gone", b"a"]);
    router.send(b"gone", Flags::MORE).unwrap();
    drop(dealer);
    send(&mut router, &[b"lost"]);
    assert_eq!(router.pipes.shared.unroutable(), 0, "it had somewhere to go when it was begun");
    send(&mut router, &[b"gone", b"lost"]);
    assert_eq!(router.pipes.shared.unroutable(), 1, "an address again, and nobody's");
}

#[test]
fn changed_filter_applies_to_next_message() {
    let bench = Bench::new();
    let (mut publisher, mut subscriber) = bench.pair(SocketType::Pub, SocketType::Sub);
    subscriber.set_option(SUBSCRIBE, b"").unwrap();
    (0..4).for_each(|_| send(&mut publisher, &[b"a"]));
    assert!(goes_by_route(&mut publisher));
    assert_eq!([part(&mut subscriber), part(&mut subscriber)], ["a", "a"]);
    subscriber.set_option(SUBSCRIBE, b"b").unwrap();
    subscriber.set_option(UNSUBSCRIBE, b"").unwrap();
    assert_eq!(part(&mut subscriber), "", "what is underway is filtered");
    assert!(!goes_by_route(&mut publisher), "the subscriber has something to say");
    send(&mut publisher, &[b"a"]);
    send(&mut publisher, &[b"b"]);
    assert_eq!(parts(&mut subscriber), ["b"]);
}

#[test]
fn a_second_subscriber_gets_everything_too() {
    let bench = Bench::new();
    let (mut publisher, mut first) = bench.pair(SocketType::Pub, SocketType::Sub);
    first.set_option(SUBSCRIBE, b"").unwrap();
    (0..2).for_each(|_| send(&mut publisher, &[b"a"]));
    assert!(goes_by_route(&mut publisher));
    let mut second = bench.connect(SocketType::Sub);
    second.set_option(SUBSCRIBE, b"").unwrap();
    (0..2).for_each(|_| send(&mut publisher, &[b"b"]));
    assert_eq!(parts(&mut first), ["a", "a", "routed", "b", "b"]);
    assert_eq!(parts(&mut second), ["b", "b"]);
}

#[test]
fn large_and_owned_parts_go_by_routes_too() {
    let bench = Bench::new();
    let (mut push, mut pull) = bench.pair(SocketType::Push, SocketType::Pull);
    let bodies: Vec<Vec<u8>> = [0, 1, 255, 256, 5000, 70_000].iter().map(|&len| vec![7; len]).collect();
    for round in 0..3 {
        for body in &bodies {
            let mut message = Message::from_slice(body);
            if round == 0 {
                push.send(body, Flags::DONTWAIT).unwrap();
            } else {
                push.send_message(&mut message, Flags::DONTWAIT).unwrap();
                assert!(message.is_empty());
            }
            let mut got = Message::new();
            if round == 2 {
                let mut buffer = vec![0; body.len() / 2];
                assert_eq!(pull.recv(&mut buffer, Flags::DONTWAIT), Ok(body.len()), "the rest is cut");
                assert_eq!(buffer, body[..body.len() / 2]);
            } else {
                assert_eq!(pull.recv_message(&mut got, Flags::DONTWAIT), Ok(body.len()));
                assert_eq!(got.as_slice(), body);
            }
        }
    }
    let (sent, received) = (push.sent, pull.received);
    assert_eq!((sent, received), (18, 18));
}

#[test]
fn ended_pipe_is_removed_after_its_last_message() {
    for kind in [SocketType::Router, SocketType::Pull] {
        let bench = Bench::new();
        let sender = if kind == SocketType::Router { SocketType::Dealer } else { SocketType::Push };
        let (mut receiver, mut sender) = bench.pair(kind, sender);
        let message = if kind == SocketType::Router { 2 } else { 1 };
        (0..4).for_each(|_| send(&mut sender, &[b"x"]));
        let mut buffer = [0; 16];
        let mut take = |parts: usize| {
            (0..parts).for_each(|_| assert!(receiver.recv(&mut buffer, Flags::DONTWAIT).is_ok()))
        };
        take(message);
        drop(sender);
        take(3 * message);
        assert!(receiver.pipes.all().is_empty(), "{kind:?}");
    }
}

#[test]
fn cancelled_subscription_ends_the_route_in_any_call() {
    type Look = fn(&mut Socket);
    let looks: [Look; 3] = [
        |publisher| assert_eq!(publisher.recv(&mut [0; 8], Flags::DONTWAIT), Ok(1)),
        |publisher| assert_ne!(events(publisher) & POLLIN, 0),
        |_| (),
    ];
    for look in looks {
        let bench = Bench::new();
        // An XSUB does not filter messages.
        let (mut publisher, mut subscriber) = bench.pair(SocketType::XPub, SocketType::XSub);
        send(&mut subscriber, &[&[1]]);
        assert_eq!(publisher.recv(&mut [0; 8], Flags::DONTWAIT), Ok(1));
        (0..3).for_each(|_| send(&mut publisher, &[b"a"]));
        assert!(goes_by_route(&mut publisher));
        send(&mut subscriber, &[&[0]]);
        look(&mut publisher);
        send(&mut publisher, &[b"b"]);
        assert_eq!(parts(&mut subscriber), ["a", "a", "a", "routed"]);
    }
}

/// Sends and notes numbers, until one goes by a route.
fn send_until_routed(publisher: &mut Socket, notes: &mut [&mut Vec<String>]) {
    for number in 0..500 {
        let body = number.to_string();
        let routed = publisher.pattern.routes.try_send_short(&mut publisher.pipes, body.as_bytes(), true);
        if !routed {
            publisher.send(body.as_bytes(), Flags::NONE).unwrap();
            // A subscriber with an empty queue follows.
            publisher.pipes.flush();
        }
        notes.iter_mut().for_each(|notes| notes.push(body.clone()));
        if routed {
            return;
        }
    }
    panic!("500 messages to one group, and each was a matter for the pattern");
}

/// Uses connections, so that the two subscribers are a group, which gets its messages by a
/// broadcast.
#[test]
fn group_route_lasts_until_subscriptions_change() {
    const RCVTIMEO: i32 = 27;
    const XPUB_VERBOSER: i32 = 78;
    let context = Context::new();
    let kinds = [SocketType::XPub, SocketType::XSub, SocketType::XSub];
    let [mut publisher, mut first, mut second] = kinds.map(|kind| context.socket(kind).unwrap());
    publisher.set_option(XPUB_VERBOSER, &1_i32.to_ne_bytes()).unwrap();
    publisher.bind("ipc://*").unwrap();
    for socket in [&mut publisher, &mut first, &mut second] {
        // Fail instead of hanging.
        socket.set_option(RCVTIMEO, &20_000_i32.to_ne_bytes()).unwrap();
    }
    let heard = |publisher: &mut Socket, len| assert_eq!(publisher.recv(&mut [0; 8], Flags::NONE), Ok(len));
    for subscriber in [&mut first, &mut second] {
        subscriber.connect(&publisher.last_endpoint.clone()).unwrap();
        subscriber.send(b"\x01", Flags::NONE).unwrap();
        heard(&mut publisher, 1);
    }
    let (mut to_first, mut to_second) = (Vec::new(), Vec::new());
    send_until_routed(&mut publisher, &mut [&mut to_first, &mut to_second]);

    send(&mut publisher, &[b"two", b"parts"]);
    for notes in [&mut to_first, &mut to_second] {
        notes.extend(["two+", "parts"].map(String::from));
    }
    send_until_routed(&mut publisher, &mut [&mut to_first, &mut to_second]);

    first.send(b"\0", Flags::NONE).unwrap();
    heard(&mut publisher, 1);
    send(&mut publisher, &[b"to the second"]);
    first.send(b"\x01t", Flags::NONE).unwrap();
    heard(&mut publisher, 2);
    send(&mut publisher, &[b"to both"]);
    send(&mut publisher, &[b"not to the first"]);
    to_first.push("to both".into());
    to_second.extend(["to the second", "to both", "not to the first"].map(String::from));

    first.send(b"\0t", Flags::NONE).unwrap();
    heard(&mut publisher, 2);
    first.send(b"\x01", Flags::NONE).unwrap();
    heard(&mut publisher, 1);
    send_until_routed(&mut publisher, &mut [&mut to_first, &mut to_second]);
    for (socket, notes) in [(&mut first, to_first), (&mut second, to_second)] {
        let part = |socket: &mut Socket| {
            let mut buffer = [0; 32];
            let len = socket.recv(&mut buffer, Flags::NONE).unwrap();
            let more = if socket.receive_more { "+" } else { "" };
            format!("{}{more}", std::str::from_utf8(&buffer[..len]).unwrap())
        };
        let got: Vec<String> = notes.iter().map(|_| part(socket)).collect();
        assert_eq!(got, notes);
    }
}
