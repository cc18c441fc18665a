//! What a publisher has heard when it sends.

use super::*;

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
