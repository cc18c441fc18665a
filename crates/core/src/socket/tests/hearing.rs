//! What a publisher has heard when it sends.

use super::*;
use crate::conn::News;

const RCVTIMEO: i32 = 27;

/// Takes note of news, and of nothing else, until it is so.
fn await_news(socket: &mut Socket, mut so: impl FnMut(&mut Socket) -> bool) {
    while !so(socket) {
        if socket.inbox.pending() {
            socket.process_news().unwrap();
        }
        std::thread::yield_now();
    }
}

/// The I/O thread may or may not have read it yet: the owner must know of it, whoever has the reading.
#[test]
fn a_new_peers_subscription_that_is_in_the_kernel_counts() {
    for kept in [false, true] {
        let context = Context::new();
        let [mut publisher, mut subscriber] =
            [SocketType::Pub, SocketType::XSub].map(|kind| context.socket(kind).unwrap());
        publisher.bind("ipc://*").unwrap();
        // Instead of hanging.
        subscriber.set_option(RCVTIMEO, &20_000_i32.to_ne_bytes()).unwrap();
        subscriber.connect(&publisher.last_endpoint.clone()).unwrap();
        await_news(&mut publisher, |publisher| publisher.pipes.listens());
        let met = |socket: &mut Socket| socket.pipes.get(PipeId(0)).is_some_and(|pipe| pipe.peer().is_some());
        await_news(&mut subscriber, met);
        if kept {
            publisher.refresh(Wanted { read: true, write: true }, true).unwrap();
            publisher.pull().unwrap();
        }
        subscriber.send(b"\x01", Flags::NONE).unwrap();
        await_news(&mut subscriber, |socket| {
            socket.pipes.get(PipeId(0)).is_some_and(|pipe| pipe.is_written())
        });
        publisher.send(b"first", Flags::NONE).unwrap();
        assert_eq!(subscriber.recv(&mut [0; 8], Flags::NONE), Ok(5), "kept: {kept}");
    }
}

/// What the owner reads from a peer whose coming it has not taken note of yet waits behind that.
#[test]
fn what_a_peer_says_comes_after_the_news_of_it() {
    let context = Context::new();
    let mut socket = context.socket(SocketType::Pull).unwrap();
    socket.arrived = vec![0];
    socket.note_arrived();
    assert!(!socket.inbox.pending(), "taken note of at once");
    socket.inbox.push(News::Knock);
    socket.arrived = vec![7, 8];
    socket.note_arrived();
    assert!(socket.arrived.is_empty());
    let news: Vec<_> = socket.inbox.drain().into_iter().collect();
    assert!(matches!(news[..], [News::Knock, News::Readable(7), News::Readable(8)]));
}
