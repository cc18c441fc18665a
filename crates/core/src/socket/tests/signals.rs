//! Signals of ZMQ_FD that belong to another part of the program than the calling one.

use super::*;
use crate::poller::{self, Item, POLLIN, PollTarget};
use crate::socket::options::EVENTS;
use std::sync::mpsc;
use tautline_io::fd::AsRawFd;
use tautline_io::poll::{self as system, PollFd};
use tautline_testkit::with_watchdog;

const NOW: Option<Duration> = Some(Duration::ZERO);

fn watched(body: impl FnOnce()) {
    with_watchdog(Duration::from_secs(60), "a signal of ZMQ_FD", body);
}

fn expose(socket: &mut Socket) {
    socket.option(FD, &mut [0; 8]).unwrap();
}

/// Returns ZMQ_EVENTS, which resets the signal.
fn events(socket: &mut Socket) -> i32 {
    let mut value = [0; 4];
    socket.option(EVENTS, &mut value).unwrap();
    i32::from_ne_bytes(value)
}

/// True if ZMQ_FD is readable now.
fn is_signalled(socket: &Socket) -> bool {
    let made = socket.inbox.waker().descriptor().unwrap();
    system::poll(&mut [PollFd::new(made.as_fd().as_raw_fd(), PollFd::IN)], NOW).unwrap() > 0
}

/// Polls a socket for messages. Returns true if there is one.
fn poll(socket: &mut Socket, timeout: Option<Duration>) -> bool {
    let mut items = [Item { watched: PollTarget::Socket(socket), events: POLLIN, revents: 0 }];
    poller::poll(&mut items, timeout).unwrap() > 0
}

/// A PULL with ZMQ_FD, its PUSH in another context, and the stopped I/O thread of the PULL. While
/// the I/O thread stands still, only the owner reads. The thread continues when the `Sender` is
/// dropped. The signal is reset.
fn with_stopped_io_thread(endpoint: &str) -> (Socket, Socket, mpsc::Sender<()>) {
    let [mut pull, mut push] =
        [SocketType::Pull, SocketType::Push].map(|kind| Context::new().socket(kind).unwrap());
    pull.bind(endpoint).unwrap();
    push.connect(&pull.last_endpoint.clone()).unwrap();
    expose(&mut pull);
    push.send(b"first", Flags::NONE).unwrap();
    pull.recv(&mut [0; 8], Flags::NONE).unwrap();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (stops, stopped) = mpsc::channel();
    pull.site.as_ref().unwrap().driver.post(Box::new(move |_| {
        stops.send(()).unwrap();
        let _ = goes_on.recv();
    }));
    stopped.recv().unwrap();
    assert_eq!(events(&mut pull), 0);
    assert!(!is_signalled(&pull));
    (pull, push, go_on)
}

const ENDPOINTS: [&str; 2] = ["tcp://127.0.0.1:*", "ipc://*"];

/// A task of an event loop waits for ZMQ_FD. A poll of another task reads the message before the
/// I/O thread does, so the I/O thread has no reason to signal.
#[test]
fn a_message_that_a_poll_without_a_wait_reads_is_signalled() {
    watched(|| {
        for endpoint in ENDPOINTS {
            let (mut pull, mut push, _go_on) = with_stopped_io_thread(endpoint);
            push.send(b"second", Flags::NONE).unwrap();
            while !poll(&mut pull, NOW) {
                assert!(!is_signalled(&pull), "{endpoint}: there was no event yet");
            }
            assert!(is_signalled(&pull), "{endpoint}");
            assert_eq!(events(&mut pull), i32::from(POLLIN));
            assert!(!is_signalled(&pull), "{endpoint}: ZMQ_EVENTS resets the signal");
        }
    });
}

#[test]
fn a_message_that_a_poll_reads_while_it_waits_is_signalled() {
    watched(|| {
        for endpoint in ENDPOINTS {
            let (mut pull, mut push, _go_on) = with_stopped_io_thread(endpoint);
            push.send(b"second", Flags::NONE).unwrap();
            assert!(poll(&mut pull, None));
            assert!(is_signalled(&pull), "{endpoint}");
        }
    });
}

#[test]
fn a_message_that_a_poll_of_many_sockets_reads_is_signalled() {
    watched(|| {
        let (mut pull, mut push, _go_on) = with_stopped_io_thread("tcp://127.0.0.1:*");
        let mut others: Vec<_> =
            (0..wait::MANY).map(|_| Context::new().socket(SocketType::Pull).unwrap()).collect();
        push.send(b"second", Flags::NONE).unwrap();
        loop {
            let mut items: Vec<_> = std::iter::once(&mut pull)
                .chain(&mut others)
                .map(|socket| Item { watched: PollTarget::Socket(socket), events: POLLIN, revents: 0 })
                .collect();
            if poller::poll(&mut items, NOW).unwrap() > 0 {
                break;
            }
        }
        assert!(is_signalled(&pull));
    });
}

/// A program that looks with a poll at each signal must be able to sleep again.
#[test]
fn a_poll_does_not_signal_a_message_again_or_a_signal_without_a_message() {
    watched(|| {
        let (mut pull, mut push, _go_on) = with_stopped_io_thread("tcp://127.0.0.1:*");
        pull.inbox.wake_if_parked();
        assert!(is_signalled(&pull));
        assert!(!poll(&mut pull, NOW));
        assert!(!is_signalled(&pull), "there is no message");
        push.send(b"second", Flags::NONE).unwrap();
        while events(&mut pull) == 0 {}
        assert!(poll(&mut pull, NOW));
        assert!(!is_signalled(&pull), "ZMQ_EVENTS has reported the message");
    });
}

/// A poll for messages resets the signal for room, for which another task waits.
#[test]
fn a_poll_for_messages_keeps_the_signal_for_room() {
    let context = Context::new();
    let [mut dealer, mut peer] = [(); 2].map(|()| context.socket(SocketType::Dealer).unwrap());
    for socket in [&mut dealer, &mut peer] {
        for code in MARKS {
            socket.set_option(code, &4_i32.to_ne_bytes()).unwrap();
        }
    }
    peer.bind("inproc://signals").unwrap();
    dealer.connect("inproc://signals").unwrap();
    expose(&mut dealer);
    for refused_by_events in [false, true] {
        while dealer.send(b"x", Flags::DONTWAIT).is_ok() {}
        if refused_by_events {
            assert_eq!(events(&mut dealer), 0);
        }
        assert!(!is_signalled(&dealer));
        while peer.recv(&mut [0; 1], Flags::DONTWAIT).is_ok() {}
        assert!(is_signalled(&dealer));
        assert!(!poll(&mut dealer, NOW));
        assert!(is_signalled(&dealer), "by ZMQ_EVENTS: {refused_by_events}");
        assert!(!poll(&mut dealer, NOW));
        assert!(!is_signalled(&dealer), "once");
    }
}

/// A wait for peers reports no room.
#[test]
fn a_wait_for_peers_keeps_the_signal() {
    watched(|| {
        let mut push = Context::new().socket(SocketType::Push).unwrap();
        push.bind("tcp://127.0.0.1:*").unwrap();
        expose(&mut push);
        assert_eq!(events(&mut push), 0);
        let mut pull = Context::new().socket(SocketType::Pull).unwrap();
        pull.connect(&push.last_endpoint.clone()).unwrap();
        push.wait_for_peers(1, None).unwrap();
        assert!(is_signalled(&push));
    });
}

/// The first call that fails resets the signal. Otherwise an event loop that has not closed the
/// socket yet would call its task without a pause.
#[test]
fn the_end_of_a_context_is_signalled_once() {
    let context = Context::new();
    let mut pull = context.socket(SocketType::Pull).unwrap();
    expose(&mut pull);
    assert_eq!(events(&mut pull), 0);
    assert!(!is_signalled(&pull));
    context.shutdown().unwrap();
    assert!(is_signalled(&pull));
    for _ in 0..2 {
        assert_eq!(pull.option(EVENTS, &mut [0; 4]), Err(Error::Terminated));
        assert!(!is_signalled(&pull));
        assert_eq!(pull.recv(&mut [0; 1], Flags::DONTWAIT), Err(Error::Terminated));
        assert!(!is_signalled(&pull));
    }
}
