//! Subscriptions that a publisher knows when it sends.

use super::*;
use crate::conn::{News, testbed};
use std::sync::mpsc;
use std::thread;

const RCVTIMEO: i32 = 27;

/// Processes news, and does no other work, until `so` is true.
fn await_news(socket: &mut Socket, mut so: impl FnMut(&mut Socket) -> bool) {
    while !so(socket) {
        if socket.inbox.has_pending() {
            socket.process_news().unwrap();
        }
        thread::yield_now();
    }
}

/// The I/O thread may or may not have read the subscription yet. The owner must know it in both
/// cases.
#[test]
fn subscription_in_kernel_buffer_applies_to_next_send() {
    for kept in [false, true] {
        let context = Context::new();
        let [mut publisher, mut subscriber] =
            [SocketType::Pub, SocketType::XSub].map(|kind| context.socket(kind).unwrap());
        publisher.bind("ipc://*").unwrap();
        // Fail instead of hanging.
        subscriber.set_option(RCVTIMEO, &20_000_i32.to_ne_bytes()).unwrap();
        subscriber.connect(&publisher.last_endpoint.clone()).unwrap();
        await_news(&mut publisher, |publisher| publisher.pipes.expects_input());
        let met =
            |socket: &mut Socket| socket.pipes.get(PipeId(0)).is_some_and(|pipe| pipe.peer.info().is_some());
        await_news(&mut subscriber, met);
        if kept {
            publisher.refresh(PollEvents { read: true, write: true }, true).unwrap();
            publisher.read_available().unwrap();
        }
        subscriber.send(b"\x01", Flags::NONE).unwrap();
        await_news(&mut subscriber, |socket| {
            socket.pipes.get(PipeId(0)).is_some_and(|pipe| !pipe.connection().unwrap().has_pending())
        });
        publisher.send(b"first", Flags::NONE).unwrap();
        assert_eq!(subscriber.recv(&mut [0; 8], Flags::NONE), Ok(5), "kept: {kept}");
    }
}

/// An I/O thread that is about to read a subscription may lose its processor before it does.
#[test]
fn subscription_unread_by_io_thread_applies_to_next_send() {
    let [mut publisher, mut subscriber] =
        [SocketType::Pub, SocketType::XSub].map(|kind| Context::new().socket(kind).unwrap());
    publisher.bind("tcp://127.0.0.1:*").unwrap();
    // Fail instead of hanging.
    subscriber.set_option(RCVTIMEO, &20_000_i32.to_ne_bytes()).unwrap();
    subscriber.connect(&publisher.last_endpoint.clone()).unwrap();
    await_news(&mut publisher, |publisher| publisher.pipes.expects_input());

    // The set is not read while a connection is being admitted. This connection has ended, so it is
    // not added.
    let set = publisher.set.clone().unwrap();
    let (ended, ..) = testbed::open(&Arc::default(), |_| ());
    ended.close();
    let (admitting, is_admitting) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let interruption = thread::spawn({
        let set = set.clone();
        move || {
            set.admit(ended.clone(), || {
                admitting.send(()).unwrap();
                goes_on.recv().unwrap();
            })
        }
    });
    is_admitting.recv().unwrap();
    subscriber.send(b"\x01", Flags::NONE).unwrap();
    while !set.io_reads() {
        thread::yield_now();
    }
    let sender = thread::spawn(move || {
        publisher.send(b"first", Flags::NONE).unwrap();
        publisher
    });
    while !(set.io_wanted() || sender.is_finished()) {
        thread::yield_now();
    }
    go_on.send(()).unwrap();
    interruption.join().unwrap().unwrap();
    let _publisher = sender.join().unwrap();
    assert_eq!(subscriber.recv(&mut [0; 8], Flags::NONE), Ok(5));
}

/// If the owner reads from a peer whose connect is still in the inbox, the data waits behind that
/// news.
#[test]
fn peer_data_is_processed_after_its_attach_news() {
    let context = Context::new();
    let mut socket = context.socket(SocketType::Pull).unwrap();
    socket.found.arrived = vec![0];
    socket.note_arrived();
    assert!(!socket.inbox.has_pending(), "taken note of at once");
    socket.inbox.push(News::LockRequested);
    socket.found.arrived = vec![7, 8];
    socket.note_arrived();
    assert!(socket.found.arrived.is_empty());
    let news: Vec<_> = socket.inbox.drain().into_iter().collect();
    assert!(matches!(news[..], [News::LockRequested, News::Readable(7), News::Readable(8)]));
}
