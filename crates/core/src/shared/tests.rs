use std::thread;
use std::time::Duration;

use super::*;
use crate::{Context, SocketType};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(120);

fn shared(context: &Context, socket_type: SocketType) -> Arc<SharedSocket> {
    SharedSocket::new(context.socket(socket_type).unwrap()).unwrap()
}

/// The endpoint that a SERVER is bound to.
fn serve(server: &SharedSocket, endpoint: &str) -> String {
    server
        .with(|socket| {
            socket.bind(endpoint)?;
            let mut text = [0; 256];
            let len = socket.option(32, &mut text)?;
            Ok(String::from_utf8_lossy(&text[..len - 1]).into_owned())
        })
        .unwrap()
}

/// Several threads send requests and several receive the replies, all on one CLIENT; several
/// threads serve, all on one SERVER.
fn many_on_both_ends(endpoint: &str) {
    const ASKERS: u32 = 3;
    const QUESTIONS: u32 = 400;
    let context = Context::new();
    let server = shared(&context, SocketType::Server);
    let client = shared(&context, SocketType::Client);
    let endpoint = serve(&server, endpoint);
    client.with(|socket| socket.connect(&endpoint)).unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let mut message = Message::new();
                while server.recv_message(&mut message, Flags::NONE).is_ok() {
                    let mut answer = Message::from_slice(message.as_slice());
                    answer.set_routing_id(message.routing_id());
                    server.send_message(&mut answer, Flags::NONE).unwrap();
                }
            });
        }
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let client = &client;
                scope.spawn(move || {
                    let mut sum = 0_u64;
                    let mut buffer = [0; 4];
                    while let Ok(4) = client.recv(&mut buffer, Flags::NONE) {
                        let number = u32::from_ne_bytes(buffer);
                        if number == u32::MAX {
                            break;
                        }
                        sum += u64::from(number);
                    }
                    sum
                })
            })
            .collect();
        let askers: Vec<_> = (0..ASKERS)
            .map(|asker| {
                let client = &client;
                scope.spawn(move || {
                    for question in 1..=QUESTIONS {
                        // Start at 1: a reply that adds 0 to the sum could still be on its way when
                        // the sum is complete.
                        client.send(&(asker * QUESTIONS + question).to_ne_bytes(), Flags::NONE).unwrap();
                    }
                })
            })
            .collect();
        askers.into_iter().for_each(|asker| asker.join().unwrap());
        // Two threads serve, so the replies have no order: only the sum counts. The last requests
        // end the receiving threads.
        for _ in 0..2 {
            client.send(&u32::MAX.to_ne_bytes(), Flags::NONE).unwrap();
        }
        let all = u64::from(ASKERS * QUESTIONS);
        let mut sum: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        // Replies that the final messages have overtaken.
        let mut buffer = [0; 4];
        while sum < all * (all + 1) / 2 {
            client.recv(&mut buffer, Flags::NONE).unwrap();
            sum += u64::from(u32::from_ne_bytes(buffer));
        }
        assert_eq!(sum, all * (all + 1) / 2);
        // Serving threads are blocked in the socket.
        server.close().unwrap();
    });
    assert_eq!(server.recv(&mut [], Flags::DONTWAIT), Err(Error::NotSocket));
}

#[test]
fn many_threads_on_both_ends_inproc() {
    with_watchdog(LIMIT, "many threads inproc", || many_on_both_ends("inproc://shared"));
}

#[test]
fn many_threads_on_both_ends_tcp() {
    with_watchdog(LIMIT, "many threads tcp", || many_on_both_ends("tcp://127.0.0.1:*"));
}

#[test]
fn senders_wait_for_room_and_each_other() {
    with_watchdog(LIMIT, "senders", || {
        let context = Context::new();
        let gather = shared(&context, SocketType::Gather);
        let scatter = shared(&context, SocketType::Scatter);
        for socket in [&gather, &scatter] {
            for option in [23, 24] {
                socket.with(|socket| socket.set_option(option, &1_i32.to_ne_bytes())).unwrap();
            }
        }
        let endpoint = serve(&gather, "inproc://room");
        scatter.with(|socket| socket.connect(&endpoint)).unwrap();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..200).for_each(|_| scatter.send(b"x", Flags::NONE).unwrap()));
            }
            for _ in 0..600 {
                assert_eq!(gather.recv(&mut [0; 8], Flags::NONE), Ok(1));
            }
        });
        assert_eq!(gather.recv(&mut [0; 8], Flags::DONTWAIT), Err(Error::Again));
    });
}

#[test]
fn a_blocked_receiver_does_not_hold_off_others() {
    with_watchdog(LIMIT, "blocked receiver", || {
        let context = Context::new();
        let one = shared(&context, SocketType::Channel);
        let other = shared(&context, SocketType::Channel);
        let endpoint = serve(&one, "tcp://127.0.0.1:*");
        other.with(|socket| socket.connect(&endpoint)).unwrap();
        thread::scope(|scope| {
            let receiver = scope.spawn(|| one.recv(&mut [0; 8], Flags::NONE));
            // These calls run while the receiver waits, or before it begins: both cases must work.
            one.with(|socket| socket.set_option(17, &0_i32.to_ne_bytes())).unwrap();
            one.send(b"out", Flags::NONE).unwrap();
            assert_eq!(other.recv(&mut [0; 8], Flags::NONE), Ok(3));
            other.send(b"in", Flags::NONE).unwrap();
            assert_eq!(receiver.join().unwrap(), Ok(2));
        });
    });
}

#[test]
fn waiting_ends_with_time_context_and_close() {
    with_watchdog(LIMIT, "ends of waiting", || {
        let context = Context::new();
        let timed = shared(&context, SocketType::Gather);
        timed.with(|socket| socket.set_option(27, &10_i32.to_ne_bytes())).unwrap();
        thread::scope(|scope| {
            let receivers = [0; 3].map(|_| scope.spawn(|| timed.recv(&mut [], Flags::NONE)));
            receivers
                .into_iter()
                .for_each(|receiver| assert_eq!(receiver.join().unwrap(), Err(Error::Again)));
        });
        timed.close().unwrap();
        assert_eq!(timed.close(), Err(Error::NotSocket));
        let ended = shared(&context, SocketType::Gather);
        thread::scope(|scope| {
            let receivers = [0; 3].map(|_| scope.spawn(|| ended.recv(&mut [], Flags::NONE)));
            context.shutdown().unwrap();
            receivers
                .into_iter()
                .for_each(|receiver| assert_eq!(receiver.join().unwrap(), Err(Error::Terminated)));
        });
    });
}

#[test]
fn pollers_and_receivers_share_a_socket() {
    use crate::poller::{Item, POLLIN, PollTarget, poll};
    with_watchdog(LIMIT, "pollers", || {
        let context = Context::new();
        let gather = shared(&context, SocketType::Gather);
        let scatter = shared(&context, SocketType::Scatter);
        let endpoint = serve(&gather, "tcp://127.0.0.1:*");
        scatter.with(|socket| socket.connect(&endpoint)).unwrap();
        let taken = AtomicU32::new(0);
        thread::scope(|scope| {
            for polls in [true, true, false] {
                let (gather, taken) = (&gather, &taken);
                scope.spawn(move || {
                    loop {
                        if polls {
                            let mut items =
                                [Item { watched: PollTarget::Shared(gather), events: POLLIN, revents: 0 }];
                            if poll(&mut items, None).is_err() {
                                return;
                            }
                        }
                        let flags = if polls { Flags::DONTWAIT } else { Flags::NONE };
                        match gather.recv(&mut [0; 8], flags) {
                            Ok(_) => drop(taken.fetch_add(1, SeqCst)),
                            Err(Error::Again) => {}
                            Err(_) => return,
                        }
                    }
                });
            }
            for _ in 0..1000 {
                scatter.send(b"x", Flags::NONE).unwrap();
            }
            while taken.load(SeqCst) < 1000 {
                thread::yield_now();
            }
            context.shutdown().unwrap();
        });
    });
}

/// A program that waits on descriptors (zmq_poller_fd) gets a signal when an inproc peer makes
/// room, after a refused send and also after a check.
#[test]
fn room_shows_on_the_descriptor_of_a_poller() {
    with_watchdog(LIMIT, "room for pollers", || {
        let context = Context::new();
        let gather = shared(&context, SocketType::Gather);
        let scatter = shared(&context, SocketType::Scatter);
        for socket in [&gather, &scatter] {
            for option in [23, 24] {
                socket.with(|socket| socket.set_option(option, &2_i32.to_ne_bytes())).unwrap();
            }
        }
        let endpoint = serve(&gather, "inproc://room-for-pollers");
        scatter.with(|socket| socket.connect(&endpoint)).unwrap();
        let watcher = Arc::new(WakeFd::new().unwrap());
        let told = scatter.watch(&watcher, 2).unwrap();
        for looks in [false, true, false, true] {
            while scatter.send(b"x", Flags::DONTWAIT).is_ok() {}
            if looks {
                watcher.drain();
                assert!(!scatter.refresh(WRITE).unwrap().write);
            }
            while gather.recv(&mut [0; 8], Flags::DONTWAIT).is_ok() {}
            let mut fds = [watcher.as_fd(), told.as_fd()].map(|fd| PollFd::new(fd.as_raw_fd(), PollFd::IN));
            poll::poll(&mut fds, None).unwrap();
            assert!(scatter.refresh(WRITE).unwrap().write);
        }
        scatter.unwatch(&watcher);
    });
}

/// A poller that waits for room gets a signal even if other threads have used up the room of the
/// previous signal.
#[test]
fn room_that_others_use_up_is_asked_for_again() {
    with_watchdog(LIMIT, "room used up", || {
        let context = Context::new();
        let gather = shared(&context, SocketType::Gather);
        let scatter = shared(&context, SocketType::Scatter);
        let endpoint = serve(&gather, "inproc://room-used-up");
        for socket in [&gather, &scatter] {
            for option in [23, 24] {
                socket.with(|socket| socket.set_option(option, &2_i32.to_ne_bytes())).unwrap();
            }
        }
        scatter.with(|socket| socket.connect(&endpoint)).unwrap();
        let watcher = Arc::new(WakeFd::new().unwrap());
        let told = scatter.watch(&watcher, 2).unwrap();
        let room = (0..).take_while(|_| scatter.send(b"x", Flags::DONTWAIT).is_ok()).count();
        let take_all = || (0..room).for_each(|_| assert_eq!(gather.recv(&mut [0; 8], Flags::NONE), Ok(1)));
        take_all();
        // Another thread, which also got a signal, uses all the room.
        scatter.refresh(READ).unwrap();
        (0..room).for_each(|_| scatter.send(b"x", Flags::DONTWAIT).unwrap());
        watcher.drain();
        take_all();
        let mut fds = [watcher.as_fd(), told.as_fd()].map(|fd| PollFd::new(fd.as_raw_fd(), PollFd::IN));
        assert_ne!(poll::poll(&mut fds, Some(Duration::ZERO)).unwrap(), 0, "it is told of room");
        scatter.unwatch(&watcher);
    });
}

#[test]
fn a_close_ends_a_call_that_keeps_the_socket_to_itself() {
    with_watchdog(LIMIT, "close beside a proxy", || {
        let context = Context::new();
        let socket = shared(&context, SocketType::Gather);
        let (inside, is_inside) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let proxy = scope.spawn(|| {
                socket.with(|socket| {
                    inside.send(()).unwrap();
                    crate::proxy::run(socket, None, None, None)
                })
            });
            is_inside.recv().unwrap();
            socket.close().unwrap();
            assert_eq!(proxy.join().unwrap(), Err(Error::NotSocket));
        });
        context.terminate().unwrap();
    });
}
