//! Behaviour without free memory: a receive returns ENOMEM and loses no message. If there is no memory for a peer's data, its
//! connection ends, and the process continues.
//!
//! The allocator of this process refuses allocations of a thread from a certain size on, while the thread requests this. An
//! allocation whose failure is not handled ends the process, and with it the test.

// A loom model has no sockets.
#![cfg(not(loom))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;
use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};
use tautline_testkit::with_watchdog;

const ROUTING_ID: i32 = 5;
const SUBSCRIBE: i32 = 6;
const RCVMORE: i32 = 13;
const EVENTS: i32 = 15;
const SNDHWM: i32 = 23;
const RCVHWM: i32 = 24;
const CURVE_SERVER: i32 = 47;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;
const XPUB_MANUAL: i32 = 71;
const TOPICS_COUNT: i32 = 116;
const LAST_ENDPOINT: i32 = 32;
const DISCONNECTED: u64 = 0x200;

/// Time limit of the whole test.
const LIMIT: Duration = Duration::from_secs(120);
/// Length of the shortest body that is not stored in the message itself.
const OUTSIDE: usize = 41;
/// Size of the smallest refused allocation. A receive allocates only smaller pieces of state.
const SMALL: usize = 90;

struct FailingAllocator;

thread_local! {
    static FROM: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn refuses(size: usize) -> bool {
    size >= FROM.get()
}

// SAFETY: the system's allocator, or null, which means that there is no memory.
unsafe impl GlobalAlloc for FailingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        if refuses(layout.size()) { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && refuses(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: FailingAllocator = FailingAllocator;

/// Calls `work`. Meanwhile, allocations of at least `from` bytes by this thread fail.
fn refused<R>(from: usize, work: impl FnOnce() -> R) -> R {
    FROM.set(from);
    let result = work();
    FROM.set(usize::MAX);
    result
}

fn number(socket: &mut Socket, code: i32) -> i32 {
    let mut value = [0; 4];
    assert_eq!(socket.option(code, &mut value), Ok(4));
    i32::from_ne_bytes(value)
}

fn set_number(socket: &mut Socket, code: i32, value: i32) {
    socket.set_option(code, &value.to_ne_bytes()).unwrap();
}

fn last_endpoint(socket: &mut Socket) -> String {
    let mut address = [0; 100];
    let len = socket.option(LAST_ENDPOINT, &mut address).unwrap();
    std::str::from_utf8(&address[..len - 1]).unwrap().to_owned()
}

fn body(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (seed * 31 + at * 7 + at / 256) as u8).collect()
}

/// Returns messages with parts of these lengths, whose first parts begin with `first`.
fn messages(lengths: &[&[usize]], first: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let part = |message: usize, (at, len): (usize, &usize)| {
        let mut body = body(message * 10 + at, *len);
        if at == 0 {
            body[..first.len()].copy_from_slice(first);
        }
        body
    };
    let message = |(number, lengths): (usize, &&[usize])| {
        lengths.iter().enumerate().map(|which| part(number, which)).collect()
    };
    lengths.iter().enumerate().map(message).collect()
}

fn send(socket: &mut Socket, before: &[&[u8]], message: &[Vec<u8>], to: u32) {
    for part in before {
        socket.send(part, Flags::MORE).unwrap();
    }
    for (at, part) in message.iter().enumerate() {
        let flags = if at + 1 < message.len() { Flags::MORE } else { Flags::NONE };
        if to == 0 {
            socket.send(part, flags).unwrap();
        } else {
            let mut part = constant(part);
            part.set_routing_id(to);
            socket.send_message(&mut part, flags).unwrap();
        }
    }
}

/// Receives one part, at first without memory for it. Returns the number of failures. Keeps the received parts, so that their
/// memory is not reused.
fn receive(socket: &mut Socket, kept: &mut Vec<Message>) -> usize {
    let mut part = Message::from_slice(b"before");
    let mut times = 0;
    while times < 2 {
        match refused(SMALL, || socket.recv_message(&mut part, Flags::DONTWAIT)) {
            Ok(_) => break,
            Err(error) => assert_eq!(error, Error::NoMemory),
        }
        times += 1;
        assert!(part.is_empty() || part.as_slice() == b"before");
        assert_ne!(number(socket, EVENTS) & 1, 0, "there is something to be received");
    }
    if times == 2 {
        socket.recv_message(&mut part, Flags::DONTWAIT).unwrap();
    }
    kept.push(part);
    times
}

/// Checks that all messages arrive whole and in order, although there is no memory for the first attempts to receive each part.
/// Returns the number of failures.
fn receive_all(socket: &mut Socket, expected: &[Vec<Vec<u8>>]) -> usize {
    let (mut kept, mut times) = (Vec::new(), 0);
    for message in expected {
        for (at, part) in message.iter().enumerate() {
            let refused = receive(socket, &mut kept);
            let more = at + 1 < message.len();
            let received = kept.last().unwrap();
            assert!(received.as_slice() == part, "part {at} of {} bytes", part.len());
            assert_eq!((received.more(), number(socket, RCVMORE) != 0), (more, more));
            assert!(part.len() >= OUTSIDE || refused == 0, "it needs none");
            times += refused;
        }
    }
    let mut part = Message::new();
    assert_eq!(socket.recv_message(&mut part, Flags::DONTWAIT), Err(Error::Again));
    // Freed blocks would serve the next messages from the thread's cache. (Some messages use blocks of former segments.)
    std::mem::forget(kept);
    times
}

/// Returns a message whose memory does not come from the pool of blocks.
fn constant(part: &[u8]) -> Message {
    Message::from_static(part.to_vec().leak())
}

const WHOLE: &[&[usize]] = &[&[50], &[700, 3000, 100], &[15_000], &[60, 41, 0, 41], &[6000, 6000, 9000]];
const SINGLE: &[&[usize]] = &[&[50], &[700], &[15_000], &[9], &[100], &[6000]];

fn pair(context: &Context, from: SocketType, to: SocketType) -> (Socket, Socket) {
    let (mut sender, mut receiver) = (context.socket(from).unwrap(), context.socket(to).unwrap());
    set_number(&mut sender, SNDHWM, 8);
    set_number(&mut receiver, RCVHWM, 8);
    receiver.bind("inproc://memory").unwrap();
    if to == SocketType::Sub {
        receiver.set_option(SUBSCRIBE, b"wanted").unwrap();
    }
    if to == SocketType::Dish {
        receiver.join(b"group").unwrap();
    }
    sender.set_option(ROUTING_ID, &[b'n'; 200]).unwrap();
    sender.connect("inproc://memory").unwrap();
    // The receiver processes the new peer.
    number(&mut receiver, EVENTS);
    if to == SocketType::XSub {
        receiver.send(b"\x01", Flags::NONE).unwrap();
    }
    (sender, receiver)
}

fn exchange(from: SocketType, to: SocketType, lengths: &[&[usize]]) {
    let context = Context::new();
    let (mut sender, mut receiver) = pair(&context, from, to);
    let mut times = 0;
    let first: &[u8] = if to == SocketType::Sub { b"wanted" } else { b"" };
    // Repeat three times: if a failed receive counted messages wrongly, the high-water mark would block the sender.
    for _ in 0..3 {
        let messages = messages(lengths, first);
        for message in &messages {
            if to == SocketType::Sub {
                sender.send(b"unwanted", Flags::NONE).unwrap();
            }
            if from == SocketType::Radio {
                let mut part = constant(&message[0]);
                assert!(part.set_group(b"group"));
                sender.send_message(&mut part, Flags::NONE).unwrap();
            } else {
                send(&mut sender, &[], message, 0);
            }
        }
        let named = |message: &Vec<Vec<u8>>| [vec![vec![b'n'; 200]], message.clone()].concat();
        times += match to {
            SocketType::Router => {
                let named: Vec<_> = messages.iter().map(named).collect();
                receive_all(&mut receiver, &named)
            }
            _ => receive_all(&mut receiver, &messages),
        };
    }
    let bodies = lengths.iter().flat_map(|lengths| *lengths).filter(|&&len| len >= OUTSIDE).count();
    assert!(times >= bodies, "{from:?} to {to:?}: refused {times} times");
}

fn a_receive_without_memory_loses_nothing() {
    use SocketType::*;
    for (from, to) in
        [(Push, Pull), (Pair, Pair), (Dealer, Dealer), (Dealer, Router), (Pub, Sub), (XPub, XSub)]
    {
        exchange(from, to, WHOLE);
    }
    for (from, to) in [(Client, Server), (Radio, Dish), (Scatter, Gather), (Channel, Channel)] {
        exchange(from, to, SINGLE);
    }
}

fn routed_replies_arrive_once_memory_is_available() {
    let context = Context::new();
    let (mut dealer, mut router) = pair(&context, SocketType::Dealer, SocketType::Router);
    let expected = messages(WHOLE, b"");
    for message in &expected {
        send(&mut router, &[&[b'n'; 200]], message, 0);
    }
    assert!(receive_all(&mut dealer, &expected) > 4);
    drop((dealer, router));

    let (mut client, mut server) = pair(&context, SocketType::Client, SocketType::Server);
    client.send(b"hello", Flags::NONE).unwrap();
    let mut hello = Message::new();
    server.recv_message(&mut hello, Flags::NONE).unwrap();
    let expected = messages(SINGLE, b"");
    for message in &expected {
        send(&mut server, &[], message, hello.routing_id());
    }
    assert!(receive_all(&mut client, &expected) > 2);
}

fn requests_and_replies_keep_their_envelopes() {
    let context = Context::new();
    let (mut dealer, mut rep) = pair(&context, SocketType::Dealer, SocketType::Rep);
    for round in 0..5 {
        let labels = [body(round, 300), body(round + 1, 9), body(round + 2, 15_000)];
        let labels: Vec<&[u8]> = labels.iter().map(Vec::as_slice).collect();
        let before = [&labels[..], &[b""]].concat();
        let request = messages(&[&[700, 100 * round + 41]], b"").remove(0);
        send(&mut dealer, &before, &request, 0);
        receive_all_of_rep(&mut rep, &request);
        let reply = messages(&[&[41, 800]], b"").remove(0);
        send(&mut rep, &[], &reply, 0);
        let envelope = before.iter().map(|part| part.to_vec());
        assert!(receive_all(&mut dealer, &[envelope.chain(reply).collect()]) > 0);
    }
    drop((dealer, rep));

    let (mut req, mut rep) = pair(&context, SocketType::Req, SocketType::Rep);
    for _ in 0..3 {
        let request = messages(&[&[700, 41]], b"").remove(0);
        send(&mut req, &[], &request, 0);
        receive_all_of_rep(&mut rep, &request);
        send(&mut rep, &[], &request, 0);
        receive_all_of_rep(&mut req, &request);
    }
}

/// Receives as `receive_all` does, from a socket that may not receive the next message yet.
fn receive_all_of_rep(socket: &mut Socket, request: &[Vec<u8>]) {
    let mut kept = Vec::new();
    let times: usize = request.iter().map(|_| receive(socket, &mut kept)).sum();
    assert!(kept.iter().map(Message::as_slice).eq(request));
    assert!(times > 0);
    std::mem::forget(kept);
}

fn rest_of_message_is_complete_or_dropped() {
    for there_is_memory in [true, false] {
        let context = Context::new();
        let (mut push, mut pull) =
            (context.socket(SocketType::Push).unwrap(), context.socket(SocketType::Pull).unwrap());
        push.bind("inproc://memory").unwrap();
        pull.connect("inproc://memory").unwrap();
        let message = messages(&[&[700, 800, 900]], b"").remove(0);
        send(&mut push, &[], &message, 0);
        let mut part = Message::new();
        pull.recv_message(&mut part, Flags::NONE).unwrap();
        assert!(part.more());
        // Smaller allocations, for the state of the endpoint, succeed.
        let from = if there_is_memory { usize::MAX } else { 800 };
        refused(from, || pull.disconnect("inproc://memory")).unwrap();
        if there_is_memory {
            receive_all(&mut pull, &[message[1..].to_vec()]);
            continue;
        }
        assert_eq!(pull.recv_message(&mut part, Flags::DONTWAIT), Err(Error::NoMemory));
        assert_eq!(number(&mut pull, RCVMORE), 0);
        assert_eq!(pull.recv_message(&mut part, Flags::DONTWAIT), Err(Error::Again));
        pull.bind("inproc://again").unwrap();
        push.connect("inproc://again").unwrap();
        send(&mut push, &[], &message, 0);
        assert!(receive_all(&mut pull, &[message]) > 0);
    }
}

fn subscriber(context: &Context, topic: &[u8]) -> Socket {
    let mut subscriber = context.socket(SocketType::Sub).unwrap();
    subscriber.set_option(SUBSCRIBE, topic).unwrap();
    subscriber.connect("inproc://memory").unwrap();
    subscriber
}

fn subscription_without_memory_disconnects() {
    for (socket_type, manual) in [(SocketType::Pub, 0), (SocketType::XPub, 0), (SocketType::XPub, 1)] {
        let context = Context::new();
        let mut publisher = context.socket(socket_type).unwrap();
        set_number(&mut publisher, XPUB_MANUAL, manual);
        publisher.bind("inproc://memory").unwrap();
        let mut first = subscriber(&context, b"first");
        number(&mut publisher, EVENTS);
        assert_eq!(number(&mut publisher, TOPICS_COUNT), 1 - manual);
        let topic = body(1, 10_000);
        first.set_option(SUBSCRIBE, &topic).unwrap();
        // There is memory for the bytes, but not for the state that they create.
        refused(20_000, || number(&mut publisher, EVENTS));
        assert_eq!(number(&mut publisher, TOPICS_COUNT), 0);
        let mut second = subscriber(&context, &topic);
        let mut part = Message::new();
        while publisher.recv_message(&mut part, Flags::DONTWAIT).is_ok() {
            if manual == 1 && part.as_slice()[0] == 1 {
                publisher.set_option(SUBSCRIBE, &part.as_slice()[1..]).unwrap();
            }
        }
        publisher.send(&topic, Flags::DONTWAIT).unwrap();
        second.recv_message(&mut part, Flags::DONTWAIT).unwrap();
        assert_eq!(part.as_slice(), topic);
        assert_eq!(first.recv_message(&mut part, Flags::DONTWAIT), Err(Error::Again));
    }
}

fn a_subscription_of_the_program_s_own_is_refused() {
    let context = Context::new();
    let mut subscriber = context.socket(SocketType::Sub).unwrap();
    let topic = body(7, 1 << 20);
    let subscribed = refused(1 << 16, || subscriber.set_option(SUBSCRIBE, &topic));
    assert_eq!(subscribed, Err(Error::NoMemory));
    assert_eq!(number(&mut subscriber, TOPICS_COUNT), 0);
    subscriber.set_option(SUBSCRIBE, &topic).unwrap();
    assert_eq!(number(&mut subscriber, TOPICS_COUNT), 1);
    let mut xsub = context.socket(SocketType::XSub).unwrap();
    let mut message = Message::from_slice(&[&b"\x01"[..], &topic].concat());
    assert_eq!(refused(1 << 16, || xsub.send_message(&mut message, Flags::NONE)), Err(Error::NoMemory));
    assert_eq!(message.len(), topic.len() + 1);
    xsub.send_message(&mut message, Flags::NONE).unwrap();
    assert_eq!(number(&mut xsub, TOPICS_COUNT), 1);
}

/// Returns a CURVE server and client that have exchanged a message, and the events of the server.
fn ciphered(context: &Context, transport: &str) -> (Socket, Socket, Socket) {
    let (mut server, mut client) =
        (context.socket(SocketType::Pull).unwrap(), context.socket(SocketType::Push).unwrap());
    set_number(&mut server, CURVE_SERVER, 1);
    server.set_option(CURVE_SECRETKEY, b"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6").unwrap();
    client.set_option(CURVE_SERVERKEY, b"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7").unwrap();
    client.set_option(CURVE_PUBLICKEY, b"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID").unwrap();
    client.set_option(CURVE_SECRETKEY, b"D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs").unwrap();
    server.bind(&format!("{transport}://127.0.0.1:*")).unwrap();
    server.monitor(Some("inproc://ends"), DISCONNECTED, 1, SocketType::Pair).unwrap();
    let mut ends = context.socket(SocketType::Pair).unwrap();
    ends.connect("inproc://ends").unwrap();
    client.connect(&last_endpoint(&mut server)).unwrap();
    client.send(b"first", Flags::NONE).unwrap();
    assert_eq!(server.recv(&mut [], Flags::NONE), Ok(5));
    (server, client, ends)
}

fn encrypted_message_without_memory_disconnects() {
    for transport in ["tcp", "ws"] {
        let context = Context::new();
        let (mut server, mut client, mut ends) = ciphered(&context, transport);
        let mut message = Message::from_slice(&body(1, 300_000));
        // There is memory for the encrypted bytes, but not for the decrypted message.
        refused(80 * 1024, || client.send_message(&mut message, Flags::NONE)).unwrap();
        let mut received = Message::new();
        server.recv_message(&mut received, Flags::NONE).unwrap();
        assert!(received.as_slice() == body(1, 300_000));
        while number(&mut ends, EVENTS) & 1 != 0 {
            ends.recv(&mut [], Flags::NONE).unwrap();
        }
        client.send(&body(2, 300_000), Flags::NONE).unwrap();
        // The I/O thread, for which allocations succeed, may have read the message first.
        let mut came = false;
        while !came && number(&mut ends, EVENTS) & 1 == 0 {
            let got = refused(80 * 1024, || server.recv_message(&mut received, Flags::DONTWAIT));
            if got == Err(Error::NoMemory) {
                server.recv_message(&mut received, Flags::DONTWAIT).unwrap();
            }
            came = got != Err(Error::Again);
            assert!(!came || received.as_slice() == body(2, 300_000));
        }
        // Messages sent before the client notices the end are lost with the connection.
        loop {
            match client.send(&body(3, 300_000), Flags::DONTWAIT) {
                Ok(()) | Err(Error::Again) => {}
                Err(error) => panic!("{error}"),
            }
            if server.recv_message(&mut received, Flags::DONTWAIT).is_ok() {
                break;
            }
            std::thread::yield_now();
        }
        assert!(received.as_slice() == body(3, 300_000));
    }
}

/// The cases run one after the other in one thread, because blocks freed by another thread would serve this one.
#[test]
fn where_memory_has_run_out() {
    with_watchdog(LIMIT, "where_memory_has_run_out", || {
        a_receive_without_memory_loses_nothing();
        routed_replies_arrive_once_memory_is_available();
        requests_and_replies_keep_their_envelopes();
        rest_of_message_is_complete_or_dropped();
        subscription_without_memory_disconnects();
        a_subscription_of_the_program_s_own_is_refused();
        encrypted_message_without_memory_disconnects();
    });
}
