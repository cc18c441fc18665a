//! A publisher and several raw subscribers, compared with a model of the deliveries: topics, groups of equal
//! subscribers, the log that they follow, and slow subscribers.

use crate::abi::*;
use crate::input::Reader;
use crate::live::*;
use crate::meter::Meter;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tautline_proto::frame;

const XPUB: u8 = 9;
const MOST_PEERS: usize = 12;
/// Limit of body bytes in one input.
const MOST_BYTES: usize = 4 << 20;
/// Limit of bytes that a publisher without subscribers may keep of its former subscribers.
const KEPT: usize = 1 << 20;
/// First byte of a peer's marker subscriptions. No topic of the model begins with it.
const MARK: &[u8] = b"\xff\xfe";

struct Publisher {
    socket: Socket,
    address: Address,
    marks: u32,
}

static PUBLISHERS: Mutex<[Option<Publisher>; 2]> = Mutex::new([None, None]);

impl Publisher {
    /// Publishers with a high-water mark, and without.
    fn open(lossless: bool) -> Publisher {
        let socket = Socket::new(XPUB);
        if lossless {
            socket.set_int(23, 0);
        }
        socket.set_int(24, 0);
        // ZMQ_XPUB_VERBOSER: every subscription and unsubscription is reported.
        socket.set_int(78, 1);
        let address = socket.bind("ipc", &format!("publisher-{lossless}"));
        Publisher { socket, address, marks: 0 }
    }
}

/// A subscriber: its subscriptions, and its expected messages.
struct Subscriber {
    peer: Peer,
    topics: Vec<Vec<u8>>,
    heard: Vec<u8>,
    /// Messages, as on the wire.
    due: VecDeque<Vec<u8>>,
}

/// The input selects whether messages may be lost, then actions: an octet each, and its arguments.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let lossless = reader.byte() & 1 == 0;
    let mut publishers = PUBLISHERS.lock().unwrap_or_else(PoisonError::into_inner);
    let publisher = publishers[usize::from(lossless)].get_or_insert_with(|| Publisher::open(lossless));
    // A queue for a reader may have any length. It is freed when the reader disconnects.
    let meter = Meter::begin();
    let mut peers: Vec<Subscriber> = Vec::new();
    let mut bytes = 0;
    while !reader.is_empty() {
        let (what, which) = (reader.byte() % 8, usize::from(reader.byte()));
        let count = peers.len();
        match what {
            0 if count < MOST_PEERS => {
                let mut peer = Peer::connect(&publisher.address);
                peer.write_all(&opening_bytes(XPUB, false), 1000);
                peers.push(Subscriber { peer, topics: Vec::new(), heard: Vec::new(), due: VecDeque::new() });
            }
            1 | 2 if count > 0 => {
                let len = usize::from(reader.byte()) % 24;
                let topic = reader.bytes(len).to_vec();
                if !topic.starts_with(MARK) {
                    let subscriber = &mut peers[which % count];
                    subscriber.subscribe(&topic, what == 1);
                    subscriber.wait_until_processed(publisher);
                }
            }
            3..=5 => {
                let (times, long) = (reader.byte(), reader.byte());
                let len = usize::from(reader.byte()) % 24;
                let subject = reader.bytes(len);
                for _ in 0..if what == 3 { 1 } else { times } {
                    let body =
                        [subject, &vec![7; usize::from(long) * if what == 5 { 128 } else { 1 }]].concat();
                    bytes += body.len();
                    if bytes < MOST_BYTES {
                        publish(publisher, &mut peers, &body, which & 1 != 0);
                    }
                }
            }
            6 if count > 0 => {
                let most = 1 + usize::from(reader.word());
                peers[which % count].hear(most, lossless);
            }
            7 if count > 0 => {
                let gone = peers.swap_remove(which % count);
                gone.peer.finish(|| publisher.socket.drain(usize::MAX));
            }
            _ => {}
        }
    }
    for mut subscriber in peers {
        let mut look = 0;
        while lossless && !subscriber.due.is_empty() {
            if !subscriber.hear(1 << 16, lossless) {
                look += 1;
                assert!(look < MAX_POLLS, "{} messages do not come", subscriber.due.len());
                wait(subscriber.peer.fd(), libc::POLLIN, 1);
            }
            assert!(!subscriber.peer.is_closed, "a subscriber is sent away");
        }
        subscriber.peer.finish(|| publisher.socket.drain(usize::MAX));
    }
    meter.assert_memory_released(KEPT, || publisher.socket.drain(usize::MAX));
}

fn publish(publisher: &Publisher, peers: &mut [Subscriber], body: &[u8], two_parts: bool) {
    if two_parts {
        assert!(publisher.socket.send(body, SNDMORE), "{}", failed());
        assert!(publisher.socket.send(b"and more", 0), "{}", failed());
    } else {
        assert!(publisher.socket.send(body, 0), "{}", failed());
    }
    let mut wire = Vec::new();
    let mut header = [0; frame::MAX_HEADER];
    let n = frame::encode_header(u8::from(two_parts), body.len() as u64, &mut header);
    wire.extend_from_slice(&header[..n]);
    wire.extend_from_slice(body);
    if two_parts {
        wire.extend_from_slice(b"\0\x08and more");
    }
    for subscriber in peers {
        if subscriber.topics.iter().any(|topic| body.starts_with(topic)) {
            subscriber.due.push_back(wire.clone());
        }
    }
}

impl Subscriber {
    fn subscribe(&mut self, topic: &[u8], begins: bool) {
        let name: &[u8] = if begins { b"\x09SUBSCRIBE" } else { b"\x06CANCEL" };
        let len = (name.len() + topic.len()) as u8;
        assert!(self.peer.write_all(&[&[4, len], name, topic].concat(), 60_000));
        self.topics.retain(|other| other != topic);
        if begins {
            self.topics.push(topic.to_vec());
        }
    }

    /// Waits until the publisher has processed all bytes of this subscriber.
    fn wait_until_processed(&mut self, publisher: &mut Publisher) {
        publisher.marks += 1;
        let mark = [MARK, &publisher.marks.to_be_bytes()].concat();
        self.subscribe(&mark, true);
        self.subscribe(&mark, false);
        let mut look = 0;
        loop {
            match publisher.socket.receive(64) {
                Some((part, _)) if part[..] == [&[0], &mark[..]].concat() => return,
                Some(_) => {}
                None => {
                    look += 1;
                    assert!(look < MAX_POLLS, "a subscription does not come");
                    wait(publisher.socket.event_fd(), libc::POLLIN, 1);
                }
            }
        }
    }

    /// Reads at most the given number of bytes, and checks that they are the expected messages, in order.
    /// Returns true if there were any.
    fn hear(&mut self, most: usize, lossless: bool) -> bool {
        let bytes = self.peer.read(most);
        self.heard.extend_from_slice(&bytes);
        // The messages follow the greeting and READY.
        const BEGIN: usize = 64;
        while self.heard.len() > BEGIN + 1 {
            let (flags, first) = (self.heard[BEGIN], usize::from(self.heard[BEGIN + 1]));
            if flags & frame::COMMAND != 0 {
                if self.heard.len() < BEGIN + 2 + first {
                    break;
                }
                self.heard.drain(BEGIN..BEGIN + 2 + first);
                continue;
            }
            let Some(due) = self.due.front() else { panic!("a message for somebody else") };
            let here = (self.heard.len() - BEGIN).min(due.len());
            if self.heard[BEGIN..BEGIN + here] == due[..here] {
                if here < due.len() {
                    break;
                }
                self.heard.drain(BEGIN..BEGIN + here);
                self.due.pop_front();
            } else {
                assert!(!lossless, "a message is lost or torn");
                self.due.pop_front();
            }
        }
        !bytes.is_empty()
    }
}

/// Equal subscribers, different ones, and one that does not read; short messages and long ones.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for lossy in [0, 1] {
        let two = [0, 0, 1, 0, 1, b'a', 0, 0, 1, 1, 1, b'a'];
        seeds.push(
            [&[lossy][..], &two, &[3, 0, 1, 9, 2, b'a', b'b', 6, 0, 9, 9, 7, 0, 3, 1, 1, 0, 1, b'a']]
                .concat(),
        );
        seeds.push(
            [&[lossy][..], &two, &[4, 0, 200, 200, 1, b'a', 6, 1, 99, 9, 4, 0, 99, 9, 1, b'a']].concat(),
        );
        seeds.push(
            [&[lossy][..], &two, &[5, 0, 60, 200, 1, b'a', 2, 0, 1, b'a', 1, 0, 0, 4, 0, 99, 9, 1, b'b']]
                .concat(),
        );
        let mut many = vec![lossy];
        for peer in 0..10 {
            many.extend([0, 0, 1, peer, 0]);
        }
        many.extend([4, 1, 200, 100, 0, 7, 3, 4, 0, 200, 100, 0, 6, 1, 200, 0]);
        seeds.push(many);
        let mut lengths = vec![lossy, 0, 0];
        for len in 1..12 {
            lengths.extend([1, 0, len]);
            lengths.extend((0..len).map(|i| b'a' + i / 3));
        }
        lengths.extend([3, 0, 1, 0, 9, b'a', b'a', b'a', b'b', b'b', b'b', b'c', b'c', b'x']);
        seeds.push(lengths);
    }
    seeds
}
