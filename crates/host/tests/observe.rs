//! Observation of a process from outside, as tools read it.

// A loom model has no sockets.
#![cfg(all(unix, not(loom)))]

mod common;
#[path = "common/observed.rs"]
mod observed;
#[path = "common/writes.rs"]
mod writes;

use common::{bound, connected, recv, set};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use observed::{LIMIT, ROUTING_ID, find, named, observed, own_file, until};
use tautline_core::{Error, Flags, Socket, SocketType};
use tautline_observe::tap::{Direction, Frame, MANY, MessageCopy, Request};
use tautline_observe::{EndpointState, Options, PeerState, Reading, SocketState, processes_in, read};
use tautline_testkit::with_watchdog;
use writes::Writes;

const SUBSCRIBE: i32 = 6;
const RCVMORE: i32 = 13;
const LINGER: i32 = 17;
const SNDHWM: i32 = 23;
const RCVHWM: i32 = 24;
const XPUB_VERBOSE: i32 = 40;
const HEARTBEAT_IVL: i32 = 75;
const HEARTBEAT_TIMEOUT: i32 = 77;
const OBSERVE: i32 = 0x5441_0004;

#[test]
fn traffic_is_seen_at_both_ends_of_each_transport() {
    for (transport, at) in [
        ("tcp", "tcp://127.0.0.1:*".to_owned()),
        ("inproc", "inproc://observed".to_owned()),
        ("ipc", format!("ipc://@observed-{}", std::process::id())),
    ] {
        observed(transport, move |context| {
            let (mut pull, endpoint) = bound(context, SocketType::Pull, &at);
            // A snapshot may still contain the sockets of the previous round, so the names differ.
            let [to, from] = ["to", "from"].map(|end| format!("{end} {endpoint} traffic"));
            named(&mut pull, &to);
            let mut push = context.socket(SocketType::Push).unwrap();
            named(&mut push, &from);
            push.connect(&endpoint).unwrap();
            let sizes = [0, 10, 1000, 100_000];
            for size in sizes {
                push.send(&vec![7; size], Flags::MORE).unwrap();
                push.send(&vec![7; size], Flags::NONE).unwrap();
                assert_eq!(recv(&mut pull).len(), size);
                assert_eq!(recv(&mut pull).len(), size);
            }
            // The receiver has found its queue empty, so its counts are up to date.
            assert_eq!(pull.recv(&mut [], Flags::DONTWAIT), Err(Error::Again));
            let bytes: u64 = sizes.iter().map(|size| 2 * *size as u64).sum();
            until(|reading| {
                let (sender, peers) = find(reading, &from)?;
                let (receiver, others) = find(reading, &to)?;
                let ([to], [from]) = (&peers[..], &others[..]) else { return None };
                let arrived = (to.messages_out, from.messages_in, from.queued_in) == (4, 4, 0);
                (arrived && to.queued_out == 0).then_some(())?;
                for counted in [to.bytes_out, from.bytes_in] {
                    assert!((bytes..=bytes + 8 * 9).contains(&counted), "{counted} of {bytes} bytes");
                }
                assert_eq!((sender.messages_out, receiver.messages_in), (4, 4));
                assert_eq!((&*sender.type_name, &*receiver.type_name), ("PUSH", "PULL"));
                assert_eq!((to.state, from.state), (PeerState::Connected, PeerState::Connected));
                assert!(to.connected_here && !from.connected_here);
                assert!(to.last_out > 0 && from.last_in > 0);
                Some(())
            });
        });
    }
}

#[test]
fn peers_are_described() {
    observed("peers", |context| {
        let (mut router, endpoint) = bound(context, SocketType::Router, "tcp://127.0.0.1:*");
        named(&mut router, "described");
        let mut dealer = context.socket(SocketType::Dealer).unwrap();
        named(&mut dealer, "the dealer");
        set(&mut dealer, HEARTBEAT_IVL, 20);
        // By default, a PONG that takes longer than the interval ends the connection.
        set(&mut dealer, HEARTBEAT_TIMEOUT, 60_000);
        dealer.connect(&endpoint).unwrap();
        dealer.send(b"hello", Flags::NONE).unwrap();
        assert_eq!(recv(&mut router), b"the dealer");
        assert_eq!(recv(&mut router), b"hello");
        until(|reading| {
            let (_, peers) = find(reading, "described")?;
            let (_, servers) = find(reading, "the dealer")?;
            let ([client], [server]) = (&peers[..], &servers[..]) else { return None };
            // A round-trip time shows that the heartbeats were answered.
            (server.round_trip_us > 0 && client.messages_in == 1).then_some(())?;
            assert_eq!(client.routing_id, b"the dealer");
            assert_eq!((&*client.host, &*client.mechanism), ("127.0.0.1", "NULL"));
            assert_eq!(client.local, server.address);
            assert_eq!(client.address, server.local);
            assert_eq!(server.endpoint, endpoint);
            assert!(client.since > 0 && client.since <= reading.process.written);
            Some(())
        });
    });
}

#[test]
fn endpoints_tell_how_far_they_have_come_and_why_not_further() {
    observed("endpoints", |context| {
        // A port without a listener.
        let (vacant, refusing) = bound(context, SocketType::Pull, "tcp://127.0.0.1:*");
        drop(vacant);
        let mut push = context.socket(SocketType::Push).unwrap();
        named(&mut push, "endpoints");
        set(&mut push, LINGER, 0);
        push.connect(&refusing).unwrap();
        let (_pull, listening) = bound(context, SocketType::Pull, "tcp://127.0.0.1:*");
        push.connect(&listening).unwrap();
        until(|reading| {
            let (socket, _) = find(reading, "endpoints")?;
            let state = |name: &str| reading.endpoints_of(socket.id).find(|endpoint| endpoint.name == name);
            let (bad, good) = (state(&refusing)?, state(&listening)?);
            (bad.failures > 0 && good.state == EndpointState::Connected).then_some(())?;
            assert_eq!(bad.reason, "Connection refused");
            assert!(socket.failed_connects > 0 && bad.failing_since > 0 && !bad.bound);
            let event =
                reading.events.iter().find(|event| event.remote == refusing && event.code == 1 << 31)?;
            assert_eq!((&*event.name, &*event.reason), ("connect failed", "Connection refused"));
            Some(())
        });
        push.disconnect(&refusing).unwrap();
        until(|reading| {
            let (socket, _) = find(reading, "endpoints")?;
            (reading.endpoints_of(socket.id).count() == 1).then_some(())
        });
    });
}

#[test]
fn drops_and_full_queues_are_seen_while_the_owner_is_elsewhere() {
    observed("drops", |context| {
        let mut publisher = context.socket(SocketType::XPub).unwrap();
        named(&mut publisher, "dropping");
        set(&mut publisher, SNDHWM, 1);
        publisher.bind("inproc://observed-drops").unwrap();
        let mut subscriber = context.socket(SocketType::XSub).unwrap();
        set(&mut subscriber, RCVHWM, 1);
        subscriber.connect("inproc://observed-drops").unwrap();
        subscriber.send(b"\x01", Flags::NONE).unwrap();
        publisher.recv(&mut [0; 8], Flags::NONE).unwrap();
        for _ in 0..7 {
            publisher.send(b"x", Flags::NONE).unwrap();
        }
        until(|reading| {
            let (socket, peers) = find(reading, "dropping")?;
            (socket.dropped == 5).then_some(())?;
            assert_eq!((socket.messages_out, socket.queued_out, peers[0].dropped), (2, 2, 5));
            assert!(peers[0].full > 0 && peers[0].full_since > 0 && peers[0].limit_out == 2);
            Some(())
        });
        drop(subscriber);
        assert_eq!(publisher.recv(&mut [0; 8], Flags::NONE), Ok(1));
        // Messages lost with the peer stay counted.
        until(|reading| {
            let (socket, peers) = find(reading, "dropping")?;
            peers.is_empty().then_some(())?;
            assert_eq!((socket.dropped, socket.messages_out, socket.lost), (5, 2, 2));
            Some(())
        });

        let mut router = context.socket(SocketType::Router).unwrap();
        named(&mut router, "unroutable");
        router.send(b"nobody", Flags::MORE).unwrap();
        router.send(b"x", Flags::NONE).unwrap();
        until(|reading| {
            let (socket, _) = find(reading, "unroutable")?;
            (socket.unroutable == 1).then_some(())?;
            assert_eq!(socket.astray, b"nobody");
            Some(())
        });
    });
}

/// Calls of a REQ or a REP out of turn are counted.
#[test]
fn calls_out_of_turn_are_counted() {
    observed("turns", |context| {
        let (mut reply, endpoint) = bound(context, SocketType::Rep, "inproc://observed-turns");
        named(&mut reply, "reply");
        let mut request = connected(context, SocketType::Req, &endpoint);
        named(&mut request, "request");
        request.send(b"1", Flags::NONE).unwrap();
        assert_eq!(request.send(b"2", Flags::NONE), Err(Error::State));
        assert_eq!(reply.recv(&mut [0; 8], Flags::NONE), Ok(1));
        assert_eq!(reply.recv(&mut [0; 8], Flags::NONE), Err(Error::State));
        assert_eq!(reply.recv(&mut [0; 8], Flags::NONE), Err(Error::State));
        until(|reading| {
            let refused = |name| Some(find(reading, name)?.0.out_of_turn);
            (refused("request")? == 1 && refused("reply")? == 2).then_some(())
        });
    });
}

/// A message that a ROUTER drops for a slow peer does not count as unroutable.
#[test]
fn a_router_that_drops_for_a_peer_counts_it_there() {
    observed("router", |context| {
        let mut router = context.socket(SocketType::Router).unwrap();
        named(&mut router, "router");
        router.set_option(SNDHWM, &1_i32.to_ne_bytes()).unwrap();
        router.bind("inproc://observed-router").unwrap();
        let mut dealer = context.socket(SocketType::Dealer).unwrap();
        dealer.set_option(RCVHWM, &1_i32.to_ne_bytes()).unwrap();
        dealer.set_option(ROUTING_ID, b"slow").unwrap();
        dealer.connect("inproc://observed-router").unwrap();
        for _ in 0..5 {
            router.send(b"slow", Flags::MORE).unwrap();
            router.send(b"x", Flags::NONE).unwrap();
        }
        until(|reading| {
            let (socket, _) = find(reading, "router")?;
            (socket.dropped == 3).then_some(())?;
            assert_eq!((socket.unroutable, socket.messages_out), (0, 2));
            Some(())
        });
    });
}

/// Fast subscribers read a shared log. Their messages are counted as well.
#[test]
fn messages_through_a_log_are_counted() {
    observed("log", |context| {
        let (mut publisher, endpoint) = bound(context, SocketType::XPub, "tcp://127.0.0.1:*");
        named(&mut publisher, "log");
        set(&mut publisher, XPUB_VERBOSE, 1);
        let mut subscribers: Vec<_> = (0..3)
            .map(|_| {
                let mut subscriber = context.socket(SocketType::Sub).unwrap();
                subscriber.set_option(SUBSCRIBE, b"").unwrap();
                subscriber.connect(&endpoint).unwrap();
                subscriber
            })
            .collect();
        for _ in 0..subscribers.len() {
            publisher.recv(&mut [0; 8], Flags::NONE).unwrap();
        }
        for _ in 0..1000 {
            publisher.send(b"message", Flags::NONE).unwrap();
            for subscriber in &mut subscribers {
                assert_eq!(recv(subscriber), b"message");
            }
        }
        until(|reading| {
            let (_, peers) = find(reading, "log")?;
            assert!(peers.iter().all(|peer| peer.messages_out <= 1000), "{peers:#?}");
            let all = peers.len() == 3 && peers.iter().all(|peer| peer.messages_out == 1000);
            (all && peers.iter().all(|peer| peer.queued_out == 0)).then_some(())
        });
    });
}

/// A tool sees a new peer even if the program makes no calls and has not noticed the peer.
#[test]
fn a_peer_is_seen_before_its_owner_takes_note_of_it() {
    observed("unseen", |context| {
        let (mut pull, endpoint) = bound(context, SocketType::Pull, "tcp://127.0.0.1:*");
        named(&mut pull, "unseen");
        let mut push = connected(context, SocketType::Push, &endpoint);
        push.send(b"one", Flags::NONE).unwrap();
        let first = until(|reading| {
            let (_, peers) = find(reading, "unseen")?;
            let [peer] = &peers[..] else { return None };
            (peer.state == PeerState::Connected && peer.messages_in == 1).then_some(())?;
            assert_eq!((peer.queued_in, &*peer.host), (1, "127.0.0.1"));
            Some(peer.id)
        });
        assert_eq!(recv(&mut pull), b"one");
        until(|reading| {
            let (socket, peers) = find(reading, "unseen")?;
            let [peer] = &peers[..] else { return None };
            (peer.id != first).then_some(())?;
            assert_eq!((peer.messages_in, socket.messages_in), (1, 1));
            Some(())
        });
    });
}

#[test]
fn options_and_subscriptions_are_as_they_are_now() {
    observed("options", |context| {
        let mut socket = context.socket(SocketType::Sub).unwrap();
        named(&mut socket, "options");
        set(&mut socket, LINGER, 250);
        set(&mut socket, RCVHWM, 77);
        set(&mut socket, 39, 1);
        socket.set_option(SUBSCRIBE, b"a").unwrap();
        socket.set_option(SUBSCRIBE, b"b").unwrap();
        until(|reading| {
            let (socket, _) = find(reading, "options")?;
            (socket.subscriptions == 2).then_some(())?;
            assert_eq!((socket.linger_ms, socket.receive_hwm, socket.send_hwm), (250, 77, 1000));
            assert_eq!(socket.options, Options::IMMEDIATE);
            Some(())
        });
    });
}

#[test]
fn lingering_socket_is_visible_until_it_ends() {
    with_watchdog(LIMIT, "linger", || {
        // Another context keeps the file.
        let (keeper, context) = (tautline_host::context(), tautline_host::context());
        keeper.observe().unwrap();
        context.observe().unwrap();
        let (vacant, endpoint) = bound(&context, SocketType::Pull, "tcp://127.0.0.1:*");
        drop(vacant);
        let mut push = context.socket(SocketType::Push).unwrap();
        named(&mut push, "lingering");
        push.connect(&endpoint).unwrap();
        push.send(b"last words", Flags::NONE).unwrap();
        drop(push);
        let end = {
            let context = context.clone();
            std::thread::spawn(move || context.terminate())
        };
        until(|reading| {
            let (socket, peers) = find(reading, "lingering")?;
            let waits = reading.contexts.iter().any(|context| context.terminating > 0);
            (socket.state == SocketState::Lingering && waits).then_some(())?;
            assert_eq!(
                (socket.queued_out, peers[0].state, peers[0].queued_out),
                (1, PeerState::Lingering, 1)
            );
            assert_eq!(peers[0].endpoint, endpoint);
            Some(())
        });
        // A late receiver takes the lingering message.
        let mut pull = keeper.socket(SocketType::Pull).unwrap();
        pull.bind(&endpoint).unwrap();
        assert_eq!(recv(&mut pull), b"last words");
        end.join().unwrap().unwrap();
        until(|reading| find(reading, "lingering").is_none().then_some(()));
        drop(pull);
        keeper.terminate().unwrap();
    });
}

/// Returns a tool that has requested these copies, after the process has accepted the request.
fn tap(request: &Request) -> BufReader<UnixStream> {
    let path = until(|reading| Some(reading.process.tap.clone()));
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(request.to_text().as_bytes()).unwrap();
    let mut tool = BufReader::new(stream);
    let mut answer = String::new();
    tool.read_line(&mut answer).unwrap();
    assert_eq!(answer, "OK\n");
    tool
}

/// Returns the number of the socket with this name.
fn number(name: &str) -> u64 {
    until(|reading| find(reading, name).map(|(socket, _)| socket.id))
}

#[test]
fn tap_copies_messages_of_a_socket() {
    for at in ["tcp://127.0.0.1:*", "inproc://tapped"] {
        observed(at, move |context| {
            let (mut pull, endpoint) = bound(context, SocketType::Pull, at);
            // A snapshot may still contain the sockets of the previous round, so the names differ.
            let [to, from] = ["to", "from"].map(|end| format!("{end} {endpoint}"));
            named(&mut pull, &to);
            let mut push = context.socket(SocketType::Push).unwrap();
            named(&mut push, &from);
            push.connect(&endpoint).unwrap();
            let (to, from) = (number(&to), number(&from));
            let mut go = |body: &[u8], buffer: usize| {
                push.send(b"topic", Flags::MORE).unwrap();
                push.send(body, Flags::NONE).unwrap();
                assert_eq!(recv(&mut pull), b"topic");
                assert_eq!(pull.recv(&mut vec![0; buffer], Flags::NONE), Ok(body.len()));
            };
            go(b"before", 100);
            let mut received = tap(&Request { socket: Some(to), ..Request::default() });
            let mut sent = tap(&Request { socket: Some(from), bytes: 3, ..Request::default() });
            let none = Request { socket: Some(to), prefix: b"other".to_vec(), ..Request::default() };
            let unwanted = tap(&none);
            go(b"first", 100);
            // The program receives only two bytes of this part.
            go(b"second", 2);
            for (tool, socket, direction, second) in [
                (&mut received, to, Direction::In, ["first", "se"]),
                (&mut sent, from, Direction::Out, ["fir", "sec"]),
            ] {
                for (body, length) in second.iter().zip([5, 6]) {
                    let Some(Frame::Copy(copy)) = Frame::read(tool).unwrap() else { panic!("no copy") };
                    assert_eq!((copy.socket, copy.direction, copy.parts.len()), (socket, direction, 2));
                    assert_eq!((copy.parts[0].length, copy.parts[1].length), (5, length));
                    assert_eq!(copy.parts[1].bytes, body.as_bytes());
                }
            }
            // Without tools, messages take the faster path again.
            drop((received, sent, unwanted));
            go(b"after", 100);
        });
    }
}

fn copy(tool: &mut BufReader<UnixStream>) -> MessageCopy {
    match Frame::read(tool).unwrap() {
        Some(Frame::Copy(copy)) => copy,
        other => panic!("no copy: {other:?}"),
    }
}

#[test]
fn a_tap_tells_the_peer_of_each_message() {
    for at in ["tcp://127.0.0.1:*", "inproc://tapped-peers"] {
        observed(at, move |context| {
            let (mut router, endpoint) = bound(context, SocketType::Router, at);
            let name = format!("router {endpoint}");
            named(&mut router, &name);
            let mut dealers: Vec<Socket> = ["one", "two", "three"]
                .map(|name| {
                    let mut dealer = context.socket(SocketType::Dealer).unwrap();
                    named(&mut dealer, name);
                    dealer.connect(&endpoint).unwrap();
                    dealer
                })
                .into();
            let number = number(&name);
            let exchange = |router: &mut Socket, dealer: &mut Socket, name: &str| {
                dealer.send(b"question", Flags::NONE).unwrap();
                assert_eq!((recv(router), recv(router)), (name.as_bytes().to_vec(), b"question".to_vec()));
                router.send(name.as_bytes(), Flags::MORE).unwrap();
                router.send(b"answer", Flags::NONE).unwrap();
                assert_eq!(recv(dealer), b"answer");
            };
            for (dealer, name) in dealers.iter_mut().zip(["one", "two", "three"]) {
                exchange(&mut router, dealer, name);
            }
            let peer = |known_as: &str| {
                until(|reading| {
                    let (_, peers) = find(reading, &name)?;
                    // Until the socket notices the peer, snapshots have another number for it.
                    let named = peers.iter().find(|peer| peer.routing_id == known_as.as_bytes());
                    named.map(|peer| peer.id).filter(|id| *id < 1 << 32)
                })
            };
            let [one, two, three] = ["one", "two", "three"].map(peer);
            let mut all = tap(&Request { socket: Some(number), ..Request::default() });
            let mut only = tap(&Request { socket: Some(number), peer: Some(three), ..Request::default() });
            for (at, name, peer) in [(1, "two", two), (0, "one", one), (2, "three", three), (1, "two", two)] {
                exchange(&mut router, &mut dealers[at], name);
                for direction in [Direction::In, Direction::Out] {
                    let copy = copy(&mut all);
                    assert_eq!((copy.peer, copy.direction, copy.parts.len()), (peer, direction, 2));
                }
            }
            for direction in [Direction::In, Direction::Out] {
                let copy = copy(&mut only);
                assert_eq!((copy.peer, copy.direction), (three, direction));
            }
            // Send to an unknown peer.
            router.send(b"four", Flags::MORE).unwrap();
            router.send(b"answer", Flags::NONE).unwrap();
            assert_eq!(copy(&mut all).peer, MANY);
        });
    }
}

#[test]
fn events_of_a_monitor_are_no_messages_of_the_program() {
    observed("monitored", |context| {
        // These requests copy 200 bytes of each message.
        let begin = || tap(&Request { most: 200, ..Request::default() });
        let mut before = begin();
        let (mut pull, endpoint) = bound(context, SocketType::Pull, "inproc://monitored-pull");
        named(&mut pull, "monitored");
        pull.monitor_in_detail("inproc://events").unwrap();
        let mut events = context.socket(SocketType::Pair).unwrap();
        named(&mut events, "events");
        events.connect("inproc://events").unwrap();
        let mut after = begin();
        let mut of_it = tap(&Request { socket: Some(number("events")), ..Request::default() });
        let mut push = connected(context, SocketType::Push, &endpoint);
        pull.bind("tcp://127.0.0.1:*").unwrap();
        // The event LISTENING.
        let event = recv(&mut events);
        let mut more = 1_i32.to_ne_bytes();
        while more != [0; 4] {
            recv(&mut events);
            events.option(RCVMORE, &mut more).unwrap();
        }
        push.send(b"monitored", Flags::NONE).unwrap();
        assert_eq!(recv(&mut pull), b"monitored");
        assert_eq!(copy(&mut of_it).parts[0].bytes, event);
        let (program, events) = (number("monitored"), number("events"));
        for tool in [&mut before, &mut after] {
            loop {
                let copy = copy(tool);
                // Messages from the library's end of the monitor are not copied either.
                assert!(copy.socket != events && copy.parts[0].bytes != event);
                if copy.socket == program {
                    break;
                }
            }
        }
    });
}

#[test]
fn taps_exclude_zap_requests() {
    observed("zap", |context| {
        let begin = || tap(&Request { most: 200, ..Request::default() });
        let mut before = begin();
        let mut handler = context.socket(SocketType::Rep).unwrap();
        named(&mut handler, "handler");
        handler.bind("inproc://zeromq.zap.01").unwrap();
        let mut asks = context.socket(SocketType::Req).unwrap();
        asks.connect("inproc://zeromq.zap.01").unwrap();
        let mut after = begin();
        let of_it = tap(&Request { socket: Some(number("handler")), ..Request::default() });
        asks.send(b"password", Flags::NONE).unwrap();
        assert_eq!(recv(&mut handler), b"password");
        let (mut pull, endpoint) = bound(context, SocketType::Pull, "inproc://beside-zap");
        let mut push = connected(context, SocketType::Push, &endpoint);
        push.send(b"beside", Flags::NONE).unwrap();
        assert_eq!(recv(&mut pull), b"beside");
        for tool in [&mut before, &mut after] {
            loop {
                let copy = copy(tool);
                assert_ne!(copy.parts[0].bytes, b"password");
                if copy.parts[0].bytes == b"beside" {
                    break;
                }
            }
        }
        drop(of_it);
    });
}

#[test]
fn monitor_sockets_are_marked() {
    observed("marked", |context| {
        let mut early = context.socket(SocketType::Pair).unwrap();
        named(&mut early, "marked-early");
        // This socket connects before the monitor exists.
        early.connect("inproc://marked-events").unwrap();
        let other = tautline_host::context();
        other.observe().unwrap();
        let (mut same_name, _) = bound(&other, SocketType::Pair, "inproc://marked-events");
        named(&mut same_name, "marked-other");
        let mut pull = context.socket(SocketType::Pull).unwrap();
        named(&mut pull, "marked");
        pull.monitor_in_detail("inproc://marked-events").unwrap();
        let to_other = connected(&other, SocketType::Pair, "inproc://marked-events");
        let is_monitor =
            |reading: &Reading, name: &str| find(reading, name).map(|(socket, _)| socket.monitor);
        until(|reading| (is_monitor(reading, "marked-early")?).then_some(()));
        until(|reading| {
            let (marked, _) = find(reading, "marked")?;
            let (early, _) = find(reading, "marked-early")?;
            let bound = |endpoint: &&tautline_observe::Endpoint| {
                let context = reading.socket(endpoint.socket).map(|socket| socket.context);
                endpoint.bound && endpoint.name == "inproc://marked-events" && context == Some(marked.context)
            };
            let own = reading.endpoints.iter().find(bound)?.socket;
            assert!(reading.socket(own)?.monitor && early.monitor && !marked.monitor);
            assert_eq!(is_monitor(reading, "marked-other"), Some(false), "another context");
            let mut program = reading.clone();
            assert!(program.leave_out_monitors() >= 2);
            assert!(program.socket(own).is_none() && program.socket(marked.id).is_some());
            assert!(program.socket(early.id).is_none());
            Some(())
        });
        drop((same_name, to_other));
        other.terminate().unwrap();
        // After the monitor has ended, the program can bind its name.
        pull.monitor_in_detail("inproc://marked-others").unwrap();
        drop(early);
        let (mut pair, _) = bound(context, SocketType::Pair, "inproc://marked-events");
        named(&mut pair, "marked-pair");
        let mut end = connected(context, SocketType::Pair, "inproc://marked-events");
        named(&mut end, "marked-end");
        let both =
            until(|reading| Some([is_monitor(reading, "marked-pair")?, is_monitor(reading, "marked-end")?]));
        assert_eq!(both, [false; 2]);
    });
}

#[test]
fn published_messages_have_no_single_peer() {
    observed("published", |context| {
        let (mut publisher, endpoint) = bound(context, SocketType::XPub, "inproc://published");
        named(&mut publisher, "published");
        let mut subscriber = context.socket(SocketType::Sub).unwrap();
        subscriber.set_option(SUBSCRIBE, b"").unwrap();
        subscriber.connect(&endpoint).unwrap();
        let mut tool = tap(&Request { socket: Some(number("published")), ..Request::default() });
        assert_eq!(recv(&mut publisher), b"\x01");
        let subscription = copy(&mut tool);
        publisher.send(b"news", Flags::NONE).unwrap();
        assert_eq!(recv(&mut subscriber), b"news");
        let news = copy(&mut tool);
        assert_eq!((news.direction, news.peer), (Direction::Out, MANY));
        assert_eq!((subscription.direction, &subscription.parts[0].bytes[..]), (Direction::In, &b"\x01"[..]));
    });
}

#[test]
fn a_tool_that_is_too_slow_misses_and_holds_nothing_up() {
    observed("slow tool", |context| {
        let mut pull = context.socket(SocketType::Pull).unwrap();
        named(&mut pull, "slowly tapped");
        pull.bind("inproc://slowly-tapped").unwrap();
        let mut push = connected(context, SocketType::Push, "inproc://slowly-tapped");
        let mut tool = tap(&Request { socket: Some(number("slowly tapped")), ..Request::default() });
        let body = vec![7; 1_000_000];
        const COUNT: u64 = 40;
        for _ in 0..COUNT {
            push.send(&body, Flags::NONE).unwrap();
            assert_eq!(recv(&mut pull).len(), body.len());
        }
        let (mut copied, mut missed) = (0, 0);
        while copied + missed < COUNT {
            match Frame::read(&mut tool).unwrap().unwrap() {
                Frame::Copy(copy) => {
                    assert_eq!(copy.parts[0].bytes, body);
                    copied += 1;
                }
                Frame::Missed { count, too_large } => {
                    assert_eq!(too_large, 0);
                    missed += count;
                }
            }
        }
        assert_eq!(copied + missed, COUNT);
        assert!(copied > 0 && missed > 0, "{copied} copied, {missed} missed");
    });
}

#[test]
fn a_tap_that_wants_all_bytes_hides_nothing_from_another() {
    observed("two taps", |context| {
        let mut pull = context.socket(SocketType::Pull).unwrap();
        named(&mut pull, "tapped twice");
        pull.bind("inproc://tapped-twice").unwrap();
        let mut push = connected(context, SocketType::Push, "inproc://tapped-twice");
        let socket = Some(number("tapped twice"));
        let mut whole = tap(&Request { socket, ..Request::default() });
        let mut start = tap(&Request { socket, bytes: 20, ..Request::default() });
        let body = vec![7; 5_000_000];
        push.send(&body, Flags::NONE).unwrap();
        assert_eq!(recv(&mut pull).len(), body.len());
        let part = copy(&mut start).parts.remove(0);
        assert_eq!((part.length, &part.bytes[..]), (5_000_000, &body[..20]));
        let missed = Frame::read(&mut whole).unwrap().unwrap();
        assert_eq!(missed, Frame::Missed { count: 1, too_large: 1 });
    });
}

#[test]
fn invalid_requests_fail_and_silent_tools_block_nothing() {
    observed("requests", |_| {
        let path = until(|reading| Some(reading.process.tap.clone()));
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"GET / HTTP/1.1\n\n").unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert_eq!(answer, "ERROR the first line must be TAP 1\n");
        // The context ends although this tool has sent no request.
        std::mem::forget(UnixStream::connect(&path).unwrap());
    });
}

/// Another user can neither read the counters file nor list its folder. The test needs root.
#[test]
fn another_user_gets_nothing() {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    observed("another user", |_| {
        let path = own_file();
        if std::fs::metadata(&path).unwrap().uid() != 0 {
            return;
        }
        let other = 65_534;
        let mut cat = Command::new("cat");
        let output = cat.arg(&path).uid(other).gid(other).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
        let mut list = Command::new("ls");
        let output = list.arg(path.parent().unwrap()).uid(other).gid(other).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    });
}

#[test]
fn context_option_reports_observation() {
    observed("option", |context| {
        assert_eq!(context.get(OBSERVE), Ok(1));
        assert_eq!(context.set(OBSERVE, 1), Ok(()));
        assert_eq!(context.set(OBSERVE, 0), Err(Error::Invalid));
        let other = tautline_host::context();
        assert_eq!(other.get(OBSERVE), Ok(0));
        assert_eq!(other.set(OBSERVE, 0), Ok(()));
        assert_eq!(other.set_bytes(OBSERVE, &1_i32.to_ne_bytes()), Ok(()));
        let mut value = [0; 4];
        assert_eq!(other.get_bytes(OBSERVE, &mut value), Ok(4));
        assert_eq!(value, 1_i32.to_ne_bytes());
        other.terminate().unwrap();
    });
}

// ---- child processes, each with a separate folder

/// Creates a folder for the files of one test.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("observed-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir(&path).unwrap();
    path
}

/// Runs one of the tests marked `ignore` below in a child process.
fn run(child: &str, folder: &Path, observe: Option<&str>) -> std::process::Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", child, "--ignored", "--nocapture"]).env("XDG_RUNTIME_DIR", folder);
    match observe {
        Some(value) => command.env("TAUT_OBSERVE", value),
        None => command.env_remove("TAUT_OBSERVE"),
    };
    command.output().unwrap()
}

fn files(folder: &Path) -> Vec<tautline_observe::ObservedProcess> {
    processes_in(&folder.join("tautline"))
}

#[test]
#[ignore = "a child of other tests"]
fn child_uses_a_socket() {
    let own = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR").unwrap()).join("tautline");
    let context = tautline_host::context();
    let socket = context.socket(SocketType::Pair).unwrap();
    println!("files while it runs: {}", processes_in(&own).len());
    drop(socket);
    context.terminate().unwrap();
}

#[test]
fn the_environment_turns_it_on_and_nothing_is_made_without_it() {
    let folder = folder("environment");
    for observe in [None, Some("0"), Some("")] {
        let output = run("child_uses_a_socket", &folder, observe);
        assert!(output.status.success(), "{output:?}");
        assert!(!folder.join("tautline").exists(), "{observe:?}");
    }
    let output = run("child_uses_a_socket", &folder, Some("1"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("files while it runs: 1"), "{output:?}");
    assert_eq!(files(&folder), [], "it goes with the last context");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
#[ignore = "a child of other tests"]
fn child_crashes() {
    let context = tautline_host::context();
    let mut socket = context.socket(SocketType::Pair).unwrap();
    named(&mut socket, "last seen");
    socket.bind("inproc://crash").unwrap();
    let own = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR").unwrap()).join("tautline");
    let path = processes_in(&own)[0].path.clone();
    let looks = Writes::of(&path);
    while !read(&path).is_ok_and(|reading| find(&reading, "last seen").is_some()) {
        looks.wait();
    }
    std::process::abort();
}

#[test]
fn crashed_process_is_readable_for_a_day() {
    with_watchdog(LIMIT, "crash", || {
        let folder = folder("crash");
        assert!(!run("child_crashes", &folder, Some("1")).status.success());
        let left = files(&folder);
        assert_eq!((left.len(), left[0].is_running), (1, false));
        let reading = read(&left[0].path).unwrap();
        assert_eq!(reading.process.pid, left[0].pid);
        let (socket, _) = find(&reading, "last seen").unwrap();
        assert_eq!(reading.endpoints_of(socket.id).next().unwrap().given, "inproc://crash");
        // The next program keeps the file for a day.
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(25 * 60 * 60);
        for (age, count) in [(None, 1), (Some(long_ago), 0)] {
            if let Some(at) = age {
                let file = std::fs::File::options().write(true).open(&left[0].path).unwrap();
                file.set_modified(at).unwrap();
            }
            assert!(run("child_uses_a_socket", &folder, Some("1")).status.success());
            assert_eq!(files(&folder).len(), count);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "a child of other tests"]
fn child_gets_room_for_its_file() {
    let own = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR").unwrap()).join("tautline");
    let context = tautline_host::context();
    assert!(!processes_in(&own).iter().any(|found| read(&found.path).is_ok()));
    // The parent has seen the report.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let limit = rustix::process::Resource::Fsize;
    let maximum = rustix::process::getrlimit(limit).maximum;
    rustix::process::setrlimit(limit, rustix::process::Rlimit { current: maximum, maximum }).unwrap();
    // The library notices that itself.
    while !processes_in(&own).iter().any(|found| read(&found.path).is_ok()) {
        std::thread::yield_now();
    }
    println!("the file has an image");
    context.terminate().unwrap();
}

/// `ulimit` stands for a full disk: without room for the file, and with room for its beginning.
#[test]
#[cfg(target_os = "linux")]
fn a_file_without_room_is_reported_once_and_written_later() {
    use std::process::Stdio;
    with_watchdog(LIMIT, "no room", || {
        for blocks in ["0", "50"] {
            let folder = folder(&format!("room-{blocks}"));
            let mut command = Command::new("sh");
            let script = "ulimit -S -f $1 && shift && exec \"$@\"";
            command.args(["-c", script, "sh", blocks]).arg(std::env::current_exe().unwrap());
            command.args(["--exact", "child_gets_room_for_its_file", "--ignored", "--nocapture"]);
            command.env("XDG_RUNTIME_DIR", &folder).env("TAUT_OBSERVE", "1");
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            let is_report =
                |line: &String| line.starts_with("tautline: the file of counters cannot be written: ");
            let report = lines.by_ref().map(Result::unwrap).find(is_report).unwrap();
            assert!(
                report.contains("File too large") && report.ends_with("Tries again every 2 s"),
                "{report}"
            );
            child.stdin.take().unwrap().write_all(b"\n").unwrap();
            assert_eq!(lines.map(Result::unwrap).filter(is_report).count(), 0);
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("the file has an image"), "{output:?}");
            assert_eq!(files(&folder), []);
            std::fs::remove_dir_all(&folder).unwrap();
        }
    });
}

#[test]
#[ignore = "a child of other tests"]
fn child_waits_in_its_looks() {
    let context = tautline_host::context();
    let socket = context.socket(SocketType::Pair).unwrap();
    // Each look waits here. The thread uses no processor time for that.
    tautline_host::show_route(&socket, || {
        std::thread::sleep(Duration::from_millis(20));
        tautline_observe::Route::default()
    });
    let [first, last] =
        [1, 3].map(|looks| until(|reading| (reading.process.looks > looks).then(|| reading.process.clone())));
    println!(
        "the interval is short: {}",
        [first, last].iter().all(|process| process.interval_us < 10_000_000)
    );
    drop(socket);
    context.terminate().unwrap();
}

/// On a busy machine, a look is interrupted for long. This must not delay the next look.
#[test]
fn a_look_that_waits_does_not_delay_the_next() {
    with_watchdog(LIMIT, "slow look", || {
        let folder = folder("slow-look");
        let output = run("child_waits_in_its_looks", &folder, Some("1"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("the interval is short: true"), "{output:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

#[test]
#[ignore = "a child of other tests"]
fn child_says_its_name() {
    let context = tautline_host::context();
    println!("its name is {}", until(|reading| Some(reading.process.program.clone())));
    context.terminate().unwrap();
}

#[test]
fn the_environment_gives_a_name() {
    with_watchdog(LIMIT, "name", || {
        let folder = folder("name");
        for (value, name) in [(Some("orders"), "orders"), (Some(" "), "observe-"), (None, "observe-")] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "child_says_its_name", "--ignored", "--nocapture"]);
            command.env("XDG_RUNTIME_DIR", &folder).env("TAUT_OBSERVE", "1").env_remove("TAUT_NAME");
            command.envs(value.map(|value| ("TAUT_NAME", value)));
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(&format!("its name is {name}")), "{output:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

#[test]
fn a_folder_that_is_open_to_others_is_not_used() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder("open");
    let own = folder.join("tautline");
    std::fs::create_dir(&own).unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(run("child_uses_a_socket", &folder, Some("1")).status.success());
    assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0);
    std::fs::remove_dir(&own).unwrap();
    // A folder behind a symbolic link is not used either.
    let elsewhere = folder.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &own).unwrap();
    let output = run("child_uses_a_socket", &folder, Some("1"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    std::fs::remove_dir_all(&folder).unwrap();
}
