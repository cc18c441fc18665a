//! Proxies between sockets of one context, over inproc. Each runs in its own thread until the
//! context ends or a command ends it.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::*;
use crate::context::Context;
use crate::socket::Closer;
use tautline_proto::SocketType;
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);
const SNDHWM: i32 = 23;
const RCVHWM: i32 = 24;
const LINGER: i32 = 17;
const RCVTIMEO: i32 = 27;
const SUBSCRIBE: i32 = 6;

fn socket(context: &Context, socket_type: SocketType, hwm: i32) -> Socket {
    let mut socket = context.socket(socket_type).unwrap();
    for (option, value) in [(LINGER, 0), (SNDHWM, hwm), (RCVHWM, hwm)] {
        socket.set_option(option, &value.to_ne_bytes()).unwrap();
    }
    socket
}

fn bound(context: &Context, socket_type: SocketType, name: &str) -> Socket {
    let mut socket = socket(context, socket_type, 1000);
    socket.bind(&format!("inproc://{name}")).unwrap();
    socket
}

fn connected(context: &Context, socket_type: SocketType, name: &str) -> Socket {
    let mut socket = socket(context, socket_type, 1000);
    socket.connect(&format!("inproc://{name}")).unwrap();
    socket
}

type Joined = JoinHandle<Result<(), Error>>;

fn start(
    mut front: Socket,
    back: Option<Socket>,
    capture: Option<Socket>,
    control: Option<Socket>,
) -> Joined {
    let (mut back, mut capture, mut control) = (back, capture, control);
    thread::spawn(move || run(&mut front, back.as_mut(), capture.as_mut(), control.as_mut()))
}

fn end(context: &Context, proxy: Joined) {
    context.shutdown().unwrap();
    assert_eq!(proxy.join().unwrap(), Err(Error::Terminated));
}

fn send(socket: &mut Socket, parts: &[&[u8]]) {
    for (index, part) in parts.iter().enumerate() {
        let flags = if index + 1 < parts.len() { Flags::MORE } else { Flags::NONE };
        socket.send(part, flags).unwrap();
    }
}

/// `None` if it would block.
fn try_to<T>(outcome: Result<T, Error>) -> Option<T> {
    if matches!(outcome, Err(Error::Again)) { None } else { Some(outcome.unwrap()) }
}

fn receive(socket: &mut Socket) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    loop {
        let mut part = Message::new();
        socket.recv_message(&mut part, Flags::NONE).unwrap();
        parts.push(part.as_slice().to_vec());
        if !part.more() {
            return parts;
        }
    }
}

#[test]
fn whole_messages_pass_both_ways_and_are_captured() {
    with_watchdog(LIMIT, "proxy both ways", || {
        let context = Context::new();
        let proxy = start(
            bound(&context, SocketType::Pair, "front"),
            Some(bound(&context, SocketType::Pair, "back")),
            Some(bound(&context, SocketType::Push, "capture")),
            None,
        );
        let mut left = connected(&context, SocketType::Pair, "front");
        let mut right = connected(&context, SocketType::Pair, "back");
        let mut capture = connected(&context, SocketType::Pull, "capture");
        let large = vec![7; 100_000];
        for parts in [vec![&b"one"[..]], vec![b"", b"two", &large], vec![b""]] {
            send(&mut left, &parts);
            assert_eq!(receive(&mut right), parts);
            assert_eq!(receive(&mut capture), parts);
            send(&mut right, &parts);
            assert_eq!(receive(&mut left), parts);
            assert_eq!(receive(&mut capture), parts);
        }
        end(&context, proxy);
    });
}

#[test]
fn nothing_is_lost_or_reordered_in_a_flood_both_ways() {
    const COUNT: u32 = 20_000;
    with_watchdog(LIMIT, "proxy flood", || {
        let context = Context::new();
        let proxy = start(
            bound(&context, SocketType::Pair, "front"),
            Some(bound(&context, SocketType::Pair, "back")),
            None,
            None,
        );
        let ends = ["front", "back"].map(|name| {
            let mut socket = connected(&context, SocketType::Pair, name);
            thread::spawn(move || {
                let (mut sent, mut received) = (0_u32, 0_u32);
                while sent < COUNT || received < COUNT {
                    if sent < COUNT && try_to(socket.send(&sent.to_ne_bytes(), Flags::DONTWAIT)).is_some() {
                        sent += 1;
                    }
                    // All messages are sent, so this end only has to wait for the rest.
                    let flags = if sent < COUNT { Flags::DONTWAIT } else { Flags::NONE };
                    let mut number = [0; 4];
                    if received < COUNT && try_to(socket.recv(&mut number, flags)).is_some() {
                        assert_eq!(u32::from_ne_bytes(number), received);
                        received += 1;
                    }
                }
                socket
            })
        });
        // Kept open until both ends have all messages.
        let ends = ends.map(|thread| thread.join().unwrap());
        end(&context, proxy);
        drop(ends);
    });
}

#[test]
fn high_water_marks_add_up_through_the_proxy() {
    with_watchdog(LIMIT, "proxy high-water marks", || {
        let context = Context::new();
        let mut front = socket(&context, SocketType::Pull, 2);
        front.bind("inproc://front").unwrap();
        let mut back = socket(&context, SocketType::Push, 2);
        back.bind("inproc://back").unwrap();
        // No peer has connected to the backend yet, so the proxy must not take a message from the
        // frontend.
        let mut source = socket(&context, SocketType::Push, 2);
        source.connect("inproc://front").unwrap();
        let proxy = start(front, Some(back), None, None);
        let mut sent = 0;
        while source.send(b"x", Flags::DONTWAIT).is_ok() {
            sent += 1;
        }
        assert_eq!(sent, 4);

        let mut sink = socket(&context, SocketType::Pull, 2);
        sink.connect("inproc://back").unwrap();
        for _ in 0..sent {
            assert_eq!(receive(&mut sink), [b"x"]);
        }
        source.send(b"y", Flags::NONE).unwrap();
        assert_eq!(receive(&mut sink), [b"y"]);
        end(&context, proxy);
    });
}

#[test]
fn subscriptions_pass_from_the_back_to_the_front() {
    with_watchdog(LIMIT, "proxy subscriptions", || {
        let context = Context::new();
        let proxy = start(
            bound(&context, SocketType::XSub, "front"),
            Some(bound(&context, SocketType::XPub, "back")),
            None,
            None,
        );
        let mut publisher = connected(&context, SocketType::XPub, "front");
        let mut subscriber = connected(&context, SocketType::Sub, "back");
        subscriber.set_option(SUBSCRIBE, b"a").unwrap();
        assert_eq!(receive(&mut publisher), [b"\x01a"]);
        send(&mut publisher, &[b"b", b"not this"]);
        send(&mut publisher, &[b"a", b"this"]);
        assert_eq!(receive(&mut subscriber), [&b"a"[..], b"this"]);
        end(&context, proxy);
    });
}

#[test]
fn one_socket_as_both_ends_echoes() {
    with_watchdog(LIMIT, "proxy echo", || {
        for (near, far) in [(SocketType::Rep, SocketType::Req), (SocketType::Pair, SocketType::Pair)] {
            let context = Context::new();
            let proxy = start(bound(&context, near, "echo"), None, None, None);
            let mut asker = connected(&context, far, "echo");
            for _ in 0..3 {
                send(&mut asker, &[b"there", b"and back"]);
                assert_eq!(receive(&mut asker), [&b"there"[..], b"and back"]);
            }
            end(&context, proxy);
        }
    });
}

/// Sends a command to a REP control socket and returns the reply as numbers.
fn command(control: &mut Socket, text: &[u8]) -> Vec<u64> {
    send(control, &[text]);
    let answer = receive(control);
    if answer == [b""] {
        return Vec::new();
    }
    answer.iter().map(|part| u64::from_ne_bytes(part.as_slice().try_into().unwrap())).collect()
}

#[test]
fn commands_steer_the_proxy() {
    with_watchdog(LIMIT, "proxy commands", || {
        let context = Context::new();
        let proxy = start(
            bound(&context, SocketType::Pull, "front"),
            Some(bound(&context, SocketType::Push, "back")),
            None,
            Some(bound(&context, SocketType::Rep, "control")),
        );
        let mut source = connected(&context, SocketType::Push, "front");
        let mut sink = connected(&context, SocketType::Pull, "back");
        let mut control = connected(&context, SocketType::Req, "control");
        send(&mut source, &[b"abc", b"de"]);
        assert_eq!(receive(&mut sink).len(), 2);
        assert_eq!(command(&mut control, b"STATISTICS"), [2, 5, 0, 0, 0, 0, 2, 5]);

        assert!(command(&mut control, b"PAUSE").is_empty());
        send(&mut source, &[b"later"]);
        // These commands arrive after the proxy has seen that there is a message to forward.
        assert!(command(&mut control, b"unknown").is_empty());
        assert_eq!(command(&mut control, b"STATISTICS"), [2, 5, 0, 0, 0, 0, 2, 5]);
        sink.set_option(RCVTIMEO, &1_i32.to_ne_bytes()).unwrap();
        assert_eq!(sink.recv(&mut [], Flags::NONE), Err(Error::Again));
        sink.set_option(RCVTIMEO, &(-1_i32).to_ne_bytes()).unwrap();

        assert!(command(&mut control, b"RESUME").is_empty());
        assert_eq!(receive(&mut sink), [b"later"]);
        assert!(command(&mut control, b"TERMINATE").is_empty());
        assert_eq!(proxy.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_control_that_need_not_answer_does_not() {
    with_watchdog(LIMIT, "proxy control", || {
        let context = Context::new();
        let proxy = start(
            bound(&context, SocketType::Pull, "front"),
            Some(bound(&context, SocketType::Push, "back")),
            None,
            Some(bound(&context, SocketType::Pair, "control")),
        );
        let mut control = connected(&context, SocketType::Pair, "control");
        send(&mut control, &[b"PAUSE"]);
        send(&mut control, &[b"STATISTICS", b"further parts mean nothing"]);
        assert_eq!(receive(&mut control).len(), 8);
        send(&mut control, &[b"TERMINATE"]);
        assert_eq!(proxy.join().unwrap(), Ok(()));
        assert_eq!(control.recv(&mut [], Flags::DONTWAIT), Err(Error::Again));
    });
}

#[test]
fn a_closed_socket_ends_the_proxy_at_once() {
    with_watchdog(LIMIT, "proxy and closes", || {
        let context = Context::new();
        let types = [SocketType::Pull, SocketType::Push, SocketType::Push, SocketType::Pair];
        for closed in 0..types.len() {
            for pause in [false, true] {
                let [mut front, mut back, mut capture, mut control] =
                    types.map(|socket_type| socket(&context, socket_type, 1));
                control.bind(&format!("inproc://control-{closed}-{pause}")).unwrap();
                let closer = Closer::of([&front, &back, &capture, &control][closed]);
                let mut commander =
                    connected(&context, SocketType::Pair, &format!("control-{closed}-{pause}"));
                if pause {
                    send(&mut commander, &[b"PAUSE"]);
                    send(&mut commander, &[b"STATISTICS"]);
                }
                let proxy = thread::spawn(move || {
                    run(&mut front, Some(&mut back), Some(&mut capture), Some(&mut control))
                });
                if pause {
                    // The reply shows that the proxy has paused.
                    assert_eq!(receive(&mut commander).len(), 8);
                }
                closer.end_calls();
                assert_eq!(proxy.join().unwrap(), Err(Error::NotSocket), "{closed} {pause}");
            }
        }
        context.terminate().unwrap();
    });
}

#[test]
fn a_proxy_that_waits_for_its_capture_socket_notices_a_close() {
    with_watchdog(LIMIT, "proxy and full capture", || {
        let context = Context::new();
        let mut front = socket(&context, SocketType::Pull, 1);
        front.bind("inproc://front").unwrap();
        let mut source = socket(&context, SocketType::Push, 1);
        source.connect("inproc://front").unwrap();
        let closer = Closer::of(&front);
        // Without a peer it accepts no message.
        let capture = socket(&context, SocketType::Push, 1);
        let back = bound(&context, SocketType::Push, "back");
        let sink = connected(&context, SocketType::Pull, "back");
        let proxy = start(front, Some(back), Some(capture), None);
        // There is room for two messages, so the third one is sent after the proxy took the first.
        for _ in 0..3 {
            send(&mut source, &[b"x"]);
        }
        closer.end_calls();
        assert_eq!(proxy.join().unwrap(), Err(Error::NotSocket));
        drop((source, sink));
        context.terminate().unwrap();
    });
}

#[test]
fn a_full_capture_socket_ends_the_proxy_after_its_timeout() {
    const SNDTIMEO: i32 = 28;
    with_watchdog(LIMIT, "proxy and capture with a timeout", || {
        let context = Context::new();
        let mut capture = socket(&context, SocketType::Push, 1);
        capture.set_option(SNDTIMEO, &1_i32.to_ne_bytes()).unwrap();
        let front = bound(&context, SocketType::Pair, "front");
        let mut source = connected(&context, SocketType::Pair, "front");
        let proxy = start(front, None, Some(capture), None);
        send(&mut source, &[b"x"]);
        assert_eq!(proxy.join().unwrap(), Err(Error::Again));
        drop(source);
        context.terminate().unwrap();
    });
}
