//! PUB and XPUB with many subscribers, end to end. A message to several subscribers is stored once, but each subscriber receives
//! it as if it were alone.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{last_endpoint, recv};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType, public_key};
use tautline_testkit::{XorShift, with_watchdog};

const SUBSCRIBE: i32 = 6;
const UNSUBSCRIBE: i32 = 7;
const SEND_BUFFER: i32 = 11;
const SEND_HWM: i32 = 23;
const RECEIVE_HWM: i32 = 24;
const XPUB_VERBOSER: i32 = 78;
const XPUB_NODROP: i32 = 69;
const INVERT_MATCHING: i32 = 74;
const STATISTICS: i32 = 0x5441_0001;

fn int(value: i32) -> [u8; 4] {
    value.to_ne_bytes()
}

/// Returns a bound XPUB that reports every subscription and every unsubscription.
fn publisher(context: &Context, endpoint: &str) -> (Socket, String) {
    let mut publisher = context.socket(SocketType::XPub).unwrap();
    publisher.set_option(XPUB_VERBOSER, &int(1)).unwrap();
    publisher.bind(endpoint).unwrap();
    let endpoint = last_endpoint(&mut publisher);
    (publisher, endpoint)
}

/// Returns a SUB without a high-water mark, so that only the publisher can drop messages.
fn subscriber(context: &Context, endpoint: &str) -> Socket {
    let mut subscriber = context.socket(SocketType::Sub).unwrap();
    subscriber.set_option(RECEIVE_HWM, &int(0)).unwrap();
    subscriber.connect(endpoint).unwrap();
    subscriber
}

fn subscribe(publisher: &mut Socket, subscriber: &mut Socket, topic: &[u8]) {
    subscriber.set_option(SUBSCRIBE, topic).unwrap();
    assert_eq!(recv(publisher), [b"\x01", topic].concat());
}

fn unsubscribe(publisher: &mut Socket, subscriber: &mut Socket, topic: &[u8]) {
    subscriber.set_option(UNSUBSCRIBE, topic).unwrap();
    assert_eq!(recv(publisher), [b"\x00", topic].concat());
}

fn recv_parts(socket: &mut Socket) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut message = Message::new();
    loop {
        socket.recv_message(&mut message, Flags::NONE).unwrap();
        parts.push(message.as_slice().to_vec());
        if !message.more() {
            return parts;
        }
    }
}

fn send_parts(socket: &mut Socket, parts: &[Vec<u8>]) {
    for (index, part) in parts.iter().enumerate() {
        let flags = if index + 1 < parts.len() { Flags::MORE } else { Flags::NONE };
        socket.send(part, flags).unwrap();
    }
}

fn each_count(
    name: &str,
    transports: &'static [&str],
    test: impl Fn(&Context, &str, usize) + Send + Sync + 'static,
) {
    with_watchdog(Duration::from_secs(600), name, move || {
        for endpoint in transports {
            // For few subscribers, the publisher itself writes. For many, the I/O thread writes.
            for count in [1, 2, 8, 20] {
                let context = Context::new();
                test(&context, endpoint, count);
                context.terminate().unwrap();
            }
        }
    });
}

#[test]
fn a_stream_reaches_every_subscriber_whole_and_in_order() {
    each_count("stream", &["tcp://127.0.0.1:*", "ipc://*", "inproc://stream"], |context, endpoint, count| {
        let (mut publisher, endpoint) = publisher(context, endpoint);
        publisher.set_option(XPUB_NODROP, &int(1)).unwrap();
        let receivers: Vec<_> = (0..count)
            .map(|_| {
                let mut subscriber = subscriber(context, &endpoint);
                subscribe(&mut publisher, &mut subscriber, b"");
                std::thread::spawn(move || {
                    for n in 0..20_000u32 {
                        assert_eq!(recv(&mut subscriber), n.to_le_bytes());
                    }
                })
            })
            .collect();
        for n in 0..20_000u32 {
            publisher.send(&n.to_le_bytes(), Flags::NONE).unwrap();
        }
        receivers.into_iter().for_each(|receiver| receiver.join().unwrap());
    });
}

/// Messages of all sizes and numbers of parts, to subscribers whose subscriptions come and go.
#[test]
fn any_message_reaches_exactly_its_subscribers() {
    each_count("any_message", &["tcp://127.0.0.1:*", "ipc://*"], |context, endpoint, count| {
        let mut random = XorShift::new(count as u64);
        let (mut publisher, endpoint) = publisher(context, endpoint);
        publisher.set_option(SEND_HWM, &int(0)).unwrap();
        let mut subscribers: Vec<_> =
            (0..count).map(|_| (subscriber(context, &endpoint), Vec::new())).collect();
        let topics: [&[u8]; 5] = [b"", b"a", b"ab", b"b", b"c"];
        for _ in 0..60 {
            for (subscriber, subscribed) in &mut subscribers {
                let topic = topics[random.below(topics.len())];
                if let Some(index) = subscribed.iter().position(|&other| other == topic) {
                    unsubscribe(&mut publisher, subscriber, topic);
                    subscribed.swap_remove(index);
                } else if random.one_in(2) {
                    subscribe(&mut publisher, subscriber, topic);
                    subscribed.push(topic);
                }
            }
            let invert = random.one_in(8);
            publisher.set_option(INVERT_MATCHING, &int(invert.into())).unwrap();
            for (subscriber, _) in &mut subscribers {
                subscriber.set_option(INVERT_MATCHING, &int(invert.into())).unwrap();
            }
            let messages: Vec<Vec<Vec<u8>>> = (0..random.below(40))
                .map(|_| {
                    let longest = [20, 300, 5000, 60_000][random.below(4)];
                    let mut parts: Vec<Vec<u8>> = (0..1 + random.below(4) / 3 * random.below(4))
                        .map(|_| {
                            let len = random.below(longest);
                            random.bytes(len)
                        })
                        .collect();
                    parts[0]
                        .splice(..0, [b"", &b"a"[..], b"ab", b"abc", b"b", b"d"][random.below(6)].to_vec());
                    parts
                })
                .collect();
            messages.iter().for_each(|parts| send_parts(&mut publisher, parts));
            for (subscriber, subscribed) in &mut subscribers {
                for parts in &messages {
                    if subscribed.iter().any(|topic| parts[0].starts_with(topic)) != invert {
                        assert!(recv_parts(subscriber) == *parts);
                    }
                }
            }
        }
        for (subscriber, _) in &mut subscribers {
            assert_eq!(subscriber.recv(&mut [], Flags::DONTWAIT), Err(Error::Again));
        }
    });
}

/// A subscriber over a plain socket that subscribes to all topics. It reads only if the test calls it.
struct RawSubscriber<S>(S);

impl RawSubscriber<TcpStream> {
    fn connect(publisher: &mut Socket, endpoint: &str) -> RawSubscriber<TcpStream> {
        let stream = TcpStream::connect(endpoint.trim_start_matches("tcp://")).unwrap();
        RawSubscriber::over(publisher, stream)
    }
}

impl<S: Read + Write> RawSubscriber<S> {
    fn over(publisher: &mut Socket, mut stream: S) -> RawSubscriber<S> {
        let mut greeting = [0; 64];
        greeting[..16].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL");
        stream.write_all(&greeting).unwrap();
        stream.read_exact(&mut greeting).unwrap();
        stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB").unwrap();
        let mut head = [0; 2];
        stream.read_exact(&mut head).unwrap();
        stream.read_exact(&mut vec![0; head[1].into()]).unwrap();
        stream.write_all(b"\x04\x0a\x09SUBSCRIBE").unwrap();
        assert_eq!(recv(publisher), b"\x01");
        RawSubscriber(stream)
    }

    /// Receives the next message, which is shorter than 256 bytes.
    fn recv(&mut self) -> Vec<u8> {
        let mut parts = self.recv_parts();
        assert_eq!(parts.len(), 1);
        parts.swap_remove(0)
    }

    /// Receives the next message, which must have this body of at least 256 bytes.
    fn recv_large(&mut self, body: &[u8]) {
        let mut frame = vec![0; 9 + body.len()];
        self.0.read_exact(&mut frame).unwrap();
        assert_eq!((frame[0], &frame[1..9]), (2, &(body.len() as u64).to_be_bytes()[..]));
        assert!(frame[9..] == *body);
    }

    /// Receives the next message, whose parts are shorter than 256 bytes.
    fn recv_parts(&mut self) -> Vec<Vec<u8>> {
        let mut parts = Vec::new();
        loop {
            let mut head = [0; 2];
            self.0.read_exact(&mut head).unwrap();
            assert!(head[0] < 2);
            let mut body = vec![0; head[1].into()];
            self.0.read_exact(&mut body).unwrap();
            parts.push(body);
            if head[0] == 0 {
                return parts;
            }
        }
    }
}

/// A subscriber that reads no bytes misses some messages. It receives the remaining ones whole and in order, and the other
/// subscribers receive all.
#[test]
fn a_stuck_subscriber_holds_up_no_other() {
    each_count("stuck", &["tcp://127.0.0.1:*"], |context, endpoint, count| {
        let (mut publisher, endpoint) = publisher(context, endpoint);
        publisher.set_option(SEND_HWM, &int(50)).unwrap();
        let mut stuck = RawSubscriber::connect(&mut publisher, &endpoint);
        let mut others: Vec<_> = (0..count).map(|_| subscriber(context, &endpoint)).collect();
        others.iter_mut().for_each(|other| subscribe(&mut publisher, other, b""));
        // These messages exceed the kernel's buffers.
        let total = 60_000u32;
        let mut body = [0; 250];
        for n in 0..total {
            body[..4].copy_from_slice(&n.to_le_bytes());
            publisher.send(&body, Flags::NONE).unwrap();
            if n % 40 == 39 || n + 1 == total {
                let first = n - n % 40;
                for other in &mut others {
                    (first..=n).for_each(|n| assert_eq!(recv(other)[..4], n.to_le_bytes()));
                }
            }
        }
        // The subscriber reads again. It has missed messages, and receives the new ones.
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            loop {
                let body = stuck.recv();
                if body == b"end" {
                    return received;
                }
                received.push(u32::from_le_bytes(body[..4].try_into().unwrap()));
            }
        });
        while !reader.is_finished() {
            publisher.send(b"end", Flags::NONE).unwrap();
            std::thread::yield_now();
        }
        let received = reader.join().unwrap();
        assert!(received.len() < total as usize, "nothing was dropped");
        assert!(received.is_sorted_by(|a, b| a < b));
        assert_eq!(received[0], 0);
    });
}

/// The log may become full while a subscriber that reads no bytes has received only a part of a message. Without a high-water
/// mark, it still receives every message.
#[test]
fn without_a_mark_a_stuck_subscriber_misses_nothing() {
    each_count("stuck_without_a_mark", &["tcp://127.0.0.1:*"], |context, endpoint, count| {
        let mut publisher = context.socket(SocketType::XPub).unwrap();
        publisher.set_option(XPUB_VERBOSER, &int(1)).unwrap();
        publisher.set_option(SEND_HWM, &int(0)).unwrap();
        publisher.bind(endpoint).unwrap();
        let endpoint = last_endpoint(&mut publisher);
        let mut stuck = RawSubscriber::connect(&mut publisher, &endpoint);
        let mut others: Vec<_> = (0..count).map(|_| subscriber(context, &endpoint)).collect();
        others.iter_mut().for_each(|other| subscribe(&mut publisher, other, b""));
        // These messages exceed the kernel's buffers and the log.
        let total = 60_000u32;
        let body = [0; 230];
        for n in 0..total {
            publisher.send(&n.to_le_bytes(), Flags::MORE).unwrap();
            publisher.send(&body, Flags::NONE).unwrap();
        }
        for n in 0..total {
            let message = [n.to_le_bytes().to_vec(), body.to_vec()];
            others.iter_mut().for_each(|other| assert!(recv_parts(other) == message));
            assert!(stuck.recv_parts() == message, "{n} is missing");
        }
    });
}

/// The remaining room of a subscriber that reads the log also counts for a large message, which does not use the log.
#[test]
fn a_large_message_that_is_taken_near_the_mark_is_not_dropped() {
    with_watchdog(Duration::from_secs(600), "large_near_the_mark", || {
        let context = Context::new();
        let mut publisher = context.socket(SocketType::XPub).unwrap();
        publisher.set_option(XPUB_VERBOSER, &int(1)).unwrap();
        publisher.set_option(SEND_HWM, &int(1000)).unwrap();
        publisher.set_option(XPUB_NODROP, &int(1)).unwrap();
        // The kernel then takes few messages before the queue fills. Over TCP, it takes megabytes if the machine is busy.
        publisher.set_option(SEND_BUFFER, &int(212_992)).unwrap();
        publisher.bind("ipc://*").unwrap();
        let endpoint = last_endpoint(&mut publisher);
        let stream = UnixStream::connect(endpoint.trim_start_matches("ipc://")).unwrap();
        let mut stuck = RawSubscriber::over(&mut publisher, stream);
        let mut other = subscriber(&context, &endpoint);
        subscribe(&mut publisher, &mut other, b"");
        let queued = |publisher: &mut Socket| {
            let mut numbers = [0; 13 * 8];
            publisher.option(STATISTICS, &mut numbers).unwrap();
            u64::from_ne_bytes(numbers[7 * 8..8 * 8].try_into().unwrap())
        };
        // Messages shortly after a large message use the subscriber's own queue, which gains credit from them.
        let large = [1; 20_000];
        publisher.send(&large, Flags::NONE).unwrap();
        assert_eq!(recv(&mut other), large);
        // The other subscriber has received all, so only this one is behind.
        let mut sent = 0u32;
        while queued(&mut publisher) < 999 {
            publisher.send(&sent.to_le_bytes(), Flags::NONE).unwrap();
            assert_eq!(recv(&mut other), sent.to_le_bytes());
            sent += 1;
        }
        assert!(sent > 1200, "the stuck subscriber has not read the log");
        publisher.send(&large, Flags::NONE).unwrap();
        assert_eq!(recv(&mut other), large);
        stuck.recv_large(&large);
        (0..sent).for_each(|n| assert_eq!(stuck.recv(), n.to_le_bytes()));
        stuck.recv_large(&large);
        drop((publisher, stuck, other));
        context.terminate().unwrap();
    });
}

#[test]
fn subscribers_come_and_go() {
    with_watchdog(Duration::from_secs(600), "come_and_go", || {
        let context = Context::new();
        let (mut publisher, endpoint) = publisher(&context, "tcp://127.0.0.1:*");
        publisher.set_option(SEND_HWM, &int(0)).unwrap();
        let mut random = XorShift::new(7);
        let mut subscribers: Vec<(Socket, u32)> = Vec::new();
        for n in 0..3000u32 {
            if subscribers.len() < 15 && random.one_in(20) {
                let mut new = subscriber(&context, &endpoint);
                subscribe(&mut publisher, &mut new, b"");
                subscribers.push((new, n));
            }
            publisher.send(&n.to_le_bytes(), Flags::NONE).unwrap();
            if random.one_in(10) && !subscribers.is_empty() {
                let index = random.below(subscribers.len());
                let (mut gone, first) = subscribers.swap_remove(index);
                (first..=n).for_each(|n| assert_eq!(recv(&mut gone), n.to_le_bytes()));
                drop(gone);
                assert_eq!(recv(&mut publisher), b"\x00");
            }
        }
        drop(publisher);
        for (mut last, first) in subscribers {
            (first..3000).for_each(|n| assert_eq!(recv(&mut last), n.to_le_bytes()));
        }
        context.terminate().unwrap();
    });
}

/// A publisher that connects to its peers loses a peer within a stream of messages, and reconnects.
#[test]
fn a_lost_connection_goes_on_with_a_whole_message() {
    with_watchdog(Duration::from_secs(600), "lost_connection", || {
        let context = Context::new();
        let mut publisher = context.socket(SocketType::XPub).unwrap();
        publisher.set_option(XPUB_VERBOSER, &int(1)).unwrap();
        let listeners = [0; 3].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        for listener in &listeners {
            publisher.connect(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
        }
        let accept = |publisher: &mut Socket, listener: &TcpListener| {
            RawSubscriber::over(publisher, listener.accept().unwrap().0)
        };
        let [first, second, third] = &listeners;
        let mut lost = accept(&mut publisher, first);
        let mut kept = [accept(&mut publisher, second), accept(&mut publisher, third)];
        let mut n = 0u32;
        for _ in 0..20 {
            for _ in 0..100 {
                publisher.send(&n.to_le_bytes(), Flags::NONE).unwrap();
                n += 1;
            }
            for kept in &mut kept {
                (n - 100..n).for_each(|n| assert_eq!(kept.recv(), n.to_le_bytes()));
            }
            // The subscriber disconnects in the middle of a message.
            let last = lost.recv();
            // The subscriber subscribes again with every connection, but receives each message once.
            assert_eq!(last, (n - 100).to_le_bytes());
            lost.0.read_exact(&mut [0; 3]).unwrap();
            drop(lost);
            lost = accept(&mut publisher, first);
            publisher.send(&n.to_le_bytes(), Flags::NONE).unwrap();
            n += 1;
            for kept in &mut kept {
                assert_eq!(kept.recv(), (n - 1).to_le_bytes());
            }
            let mut before = u32::from_le_bytes(last.try_into().unwrap());
            while before != n - 1 {
                let next = u32::from_le_bytes(lost.recv().try_into().unwrap());
                assert!(next > before && next < n, "{next} after {before} of {n}");
                before = next;
            }
        }
        drop((publisher, lost, kept));
        context.terminate().unwrap();
    });
}

/// The publisher makes no call after a burst, but sleeping subscribers wake up, over any transport.
#[test]
fn a_burst_reaches_sleeping_subscribers_without_another_call() {
    each_count("burst", &["inproc://burst", "tcp://127.0.0.1:*", "ipc://*"], |context, endpoint, count| {
        let (mut publisher, endpoint) = publisher(context, endpoint);
        let (done, all_done) = std::sync::mpsc::channel();
        let mut random = XorShift::new(3);
        let bursts: Vec<u32> = (0..150).map(|_| 1 + random.below(60) as u32).collect();
        let total: u32 = bursts.iter().sum();
        let receivers: Vec<_> = (0..count)
            .map(|_| {
                let mut subscriber = subscriber(context, &endpoint);
                subscribe(&mut publisher, &mut subscriber, b"");
                let done = done.clone();
                std::thread::spawn(move || {
                    for n in 0..total {
                        assert_eq!(recv(&mut subscriber), n.to_le_bytes());
                        done.send(()).unwrap();
                    }
                })
            })
            .collect();
        let mut n = 0u32;
        for burst in bursts {
            for _ in 0..burst {
                publisher.send(&n.to_le_bytes(), Flags::NONE).unwrap();
                n += 1;
            }
            (0..burst as usize * count).for_each(|_| all_done.recv().unwrap());
        }
        receivers.into_iter().for_each(|receiver| receiver.join().unwrap());
    });
}

/// Messages from the log are encrypted for each subscriber with its own keys.
#[test]
fn a_stream_reaches_every_subscriber_of_a_curve_server() {
    const SECRETS: [[u8; 32]; 2] = [[0x51; 32], [0xC1; 32]];
    each_count("curve", &["tcp://127.0.0.1:*"], |context, endpoint, count| {
        let [server, client] = SECRETS.map(|secret| public_key(&secret));
        let mut publisher = context.socket(SocketType::XPub).unwrap();
        publisher.set_option(XPUB_VERBOSER, &int(1)).unwrap();
        publisher.set_option(XPUB_NODROP, &int(1)).unwrap();
        publisher.set_option(47, &int(1)).unwrap();
        publisher.set_option(49, &SECRETS[0]).unwrap();
        publisher.bind(endpoint).unwrap();
        let endpoint = last_endpoint(&mut publisher);
        let receivers: Vec<_> = (0..count)
            .map(|_| {
                let mut subscriber = context.socket(SocketType::Sub).unwrap();
                subscriber.set_option(48, &client).unwrap();
                subscriber.set_option(49, &SECRETS[1]).unwrap();
                subscriber.set_option(50, &server).unwrap();
                subscriber.connect(&endpoint).unwrap();
                subscribe(&mut publisher, &mut subscriber, b"");
                std::thread::spawn(move || {
                    for n in 0..2_000u32 {
                        assert_eq!(
                            recv_parts(&mut subscriber),
                            [n.to_le_bytes().to_vec(), vec![n as u8; 30]]
                        );
                    }
                })
            })
            .collect();
        for n in 0..2_000u32 {
            send_parts(&mut publisher, &[n.to_le_bytes().to_vec(), vec![n as u8; 30]]);
        }
        receivers.into_iter().for_each(|receiver| receiver.join().unwrap());
    });
}

#[test]
fn messages_count_once_per_subscriber_on_every_path() {
    each_count("counted", &["tcp://127.0.0.1:*", "inproc://counted"], |context, endpoint, count| {
        let (mut publisher, endpoint) = publisher(context, endpoint);
        let mut subscribers: Vec<_> = (0..count).map(|_| subscriber(context, &endpoint)).collect();
        subscribers.iter_mut().for_each(|subscriber| subscribe(&mut publisher, subscriber, b""));
        let sent = |publisher: &mut Socket| {
            let mut numbers = [0; 13 * 8];
            publisher.option(0x5441_0001, &mut numbers).unwrap();
            u64::from_ne_bytes(numbers[..8].try_into().unwrap())
        };
        let mut expected = 0;
        // Send small messages, a large one, and small ones again until the log is in use again.
        for (size, messages) in [(10, 10), (50_000, 1), (10, 150)] {
            for _ in 0..messages {
                publisher.send(&vec![0; size], Flags::NONE).unwrap();
                expected += count as u64;
                assert_eq!(sent(&mut publisher), expected);
                subscribers.iter_mut().for_each(|subscriber| assert_eq!(recv(subscriber).len(), size));
            }
        }
        unsubscribe(&mut publisher, &mut subscribers[0], b"");
        assert_eq!(sent(&mut publisher), expected);
    });
}
