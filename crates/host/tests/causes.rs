//! Facts in the counters file that show why messages do not arrive.

// A loom model has no sockets.
#![cfg(all(unix, not(loom)))]

mod common;
#[path = "common/observed.rs"]
mod observed;
#[path = "common/writes.rs"]
mod writes;

use common::{bind, bound, connected, handshake, recv, set};
use observed::{ROUTING_ID, find, named, observed, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use tautline_core::{Context, Error, Flags, Socket, SocketType};
use tautline_observe::{DiscardReason, Endpoint, Options, Reading, Topic};

const TCP: &str = "tcp://127.0.0.1:*";
const SUBSCRIBE: i32 = 6;
const LINGER: i32 = 17;
const RECONNECT_IVL: i32 = 18;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;
const REQ_CORRELATE: i32 = 52;
const REQ_RELAXED: i32 = 53;
const CONFLATE: i32 = 54;
const ROUTER_HANDOVER: i32 = 56;
const HEARTBEAT_IVL: i32 = 75;
const HEARTBEAT_TTL: i32 = 76;
const HEARTBEAT_TIMEOUT: i32 = 77;

/// Creates a socket with a name, by which the test finds it.
fn socket(context: &Context, kind: SocketType, name: &str) -> Socket {
    let mut socket = context.socket(kind).unwrap();
    named(&mut socket, name);
    set(&mut socket, LINGER, 0);
    socket
}

/// Returns the socket with this name.
fn record<'a>(reading: &'a Reading, name: &str) -> Option<&'a tautline_observe::Socket> {
    find(reading, name).map(|(socket, _)| socket)
}

/// Returns the only endpoint of the socket with this name.
fn endpoint<'a>(reading: &'a Reading, name: &str) -> Option<&'a Endpoint> {
    reading.endpoints_of(record(reading, name)?.id).next()
}

/// Accepts a connection, and shakes hands as a PULL. Later, it sends nothing.
fn accept_as_pull(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&handshake("PULL")).unwrap();
    // The greeting and the READY of a PUSH.
    stream.read_exact(&mut [0; 64 + 28]).unwrap();
    stream
}

#[test]
fn peers_that_do_not_fit_are_named() {
    observed("types", |context| {
        let mut rep = socket(context, SocketType::Rep, "types rep");
        let at = bind(&mut rep, TCP);
        let mut sub = socket(context, SocketType::Sub, "types sub");
        sub.connect(&at).unwrap();
        until(|reading| {
            let (ours, theirs) = (endpoint(reading, "types sub")?, endpoint(reading, "types rep")?);
            (ours.failures > 0 && theirs.failures > 0).then_some(())?;
            assert_eq!((&*ours.peer_type, &*theirs.peer_type), ("REP", "SUB"));
            assert_eq!(ours.reason, "the peer is a REP, and this is a SUB");
            assert_eq!(theirs.reason, "the peer is a SUB, and this is a REP");
            assert!(ours.failed_at > 0);
            Some(())
        });
    });
}

#[test]
fn types_of_peers_are_known_on_each_transport() {
    for at in [TCP, "inproc://causes-types", &format!("ipc://@causes-types-{}", std::process::id())] {
        let at = at.to_owned();
        observed("peer types", move |context| {
            let names = ["to", "from"].map(|end| format!("{end} {at} types"));
            let mut router = socket(context, SocketType::Router, &names[0]);
            let place = bind(&mut router, &at);
            let mut req = socket(context, SocketType::Req, &names[1]);
            req.connect(&place).unwrap();
            req.send(b"hello", Flags::NONE).unwrap();
            recv(&mut router);
            until(|reading| {
                let types = names.each_ref().map(|name| find(reading, name).map(|(_, peers)| peers));
                let [Some(router), Some(req)] = types else { return None };
                let types = [router.first()?, req.first()?].map(|peer| &*peer.socket_type);
                (types == ["REQ", "ROUTER"]).then_some(())
            });
        });
    }
}

#[test]
fn topics_are_shown_at_both_ends() {
    observed("topics", |context| {
        let mut publisher = socket(context, SocketType::XPub, "topics pub");
        let at = bind(&mut publisher, TCP);
        let mut subscriber = socket(context, SocketType::Sub, "topics sub");
        let long = [b'x'; 100];
        subscriber.set_option(SUBSCRIBE, b"orders").unwrap();
        subscriber.set_option(SUBSCRIBE, &long).unwrap();
        subscriber.connect(&at).unwrap();
        // XPUB: both subscriptions have arrived.
        recv(&mut publisher);
        recv(&mut publisher);
        publisher.send(b"order", Flags::MORE).unwrap();
        publisher.send(b"1", Flags::NONE).unwrap();
        publisher.send(b"orders.eu", Flags::NONE).unwrap();
        assert_eq!(recv(&mut subscriber), b"orders.eu");
        let topics = |reading: &Reading, name: &str, published: bool| -> Option<Vec<Topic>> {
            let topics = reading.topics_of(record(reading, name)?.id);
            Some(topics.filter(|topic| topic.published == published).cloned().collect())
        };
        until(|reading| {
            let (sender, receiver) = (record(reading, "topics pub")?, record(reading, "topics sub")?);
            let mut subscribed = topics(reading, "topics sub", false)?;
            let published = topics(reading, "topics pub", true)?;
            (sender.unmatched == 1 && subscribed.len() == 2 && !published.is_empty()).then_some(())?;
            subscribed.sort_by_key(|topic| topic.length);
            assert_eq!((&subscribed[0].prefix[..], subscribed[0].length), (&b"orders"[..], 6));
            assert_eq!((&subscribed[1].prefix[..], subscribed[1].length), (&long[..64], 100));
            assert_eq!(sender.unmatched_topic, b"order");
            assert_eq!((sender.subscribed, receiver.subscriptions), (2, 2));
            assert!(published[0].at > 0);
            Some(())
        });
        // The snapshots ask for further topics.
        until(|reading| {
            publisher.send(b"orders.us", Flags::NONE).unwrap();
            let published = topics(reading, "topics pub", true)?;
            published.iter().any(|topic| topic.prefix == b"orders.us").then_some(())
        });
    });
}

#[test]
fn discarded_requests_and_replies_are_counted() {
    observed("requests", |context| {
        let mut rep = socket(context, SocketType::Rep, "requests rep");
        let mut dealer = connected(context, SocketType::Dealer, &bind(&mut rep, TCP));
        dealer.send(b"no delimiter", Flags::NONE).unwrap();
        dealer.send(b"", Flags::MORE).unwrap();
        dealer.send(b"request", Flags::NONE).unwrap();
        assert_eq!(recv(&mut rep), b"request");
        let mut router = socket(context, SocketType::Router, "requests router");
        let at = bind(&mut router, TCP);
        let mut req = socket(context, SocketType::Req, "requests req");
        set(&mut req, REQ_CORRELATE, 1);
        set(&mut req, REQ_RELAXED, 1);
        req.connect(&at).unwrap();
        let mut envelopes = Vec::new();
        for request in [b"1", b"2"] {
            req.send(request, Flags::NONE).unwrap();
            let envelope = [0; 3].map(|_| recv(&mut router));
            assert_eq!(recv(&mut router), request);
            envelopes.push(envelope);
        }
        // The first reply is stale.
        for envelope in envelopes {
            envelope.iter().for_each(|part| router.send(part, Flags::MORE).unwrap());
            router.send(b"reply", Flags::NONE).unwrap();
        }
        assert_eq!(recv(&mut req), b"reply");
        until(|reading| {
            let (rep, req) = (record(reading, "requests rep")?, record(reading, "requests req")?);
            (rep.discarded == 1 && req.discarded == 1).then_some(())?;
            assert_eq!(rep.discarded_by, DiscardReason::NoDelimiter);
            assert_eq!(req.discarded_by, DiscardReason::StaleReply);
            Some(())
        });
    });
}

#[test]
fn parts_that_conflate_splits_are_counted() {
    observed("conflate", |context| {
        let mut pull = socket(context, SocketType::Pull, "conflate pull");
        set(&mut pull, CONFLATE, 1);
        let mut push = connected(context, SocketType::Push, &bind(&mut pull, TCP));
        push.send(b"topic", Flags::MORE).unwrap();
        push.send(b"body", Flags::NONE).unwrap();
        until(|reading| {
            let pull = record(reading, "conflate pull")?;
            (pull.discarded == 1).then_some(())?;
            assert_eq!(pull.discarded_by, DiscardReason::SeveralParts);
            Some(())
        });
    });
}

#[test]
fn duplicate_routing_ids_are_counted() {
    for handover in [false, true] {
        observed("duplicates", move |context| {
            let name = format!("duplicates {handover}");
            let mut router = socket(context, SocketType::Router, &name);
            set(&mut router, ROUTER_HANDOVER, handover.into());
            let at = bind(&mut router, TCP);
            let dealer = || {
                let mut dealer = context.socket(SocketType::Dealer).unwrap();
                dealer.set_option(ROUTING_ID, b"worker-1").unwrap();
                set(&mut dealer, LINGER, 0);
                dealer.connect(&at).unwrap();
                dealer.send(b"ready", Flags::NONE).unwrap();
                dealer
            };
            let first = dealer();
            assert_eq!([0; 2].map(|_| recv(&mut router)), [&b"worker-1"[..], b"ready"]);
            let second = dealer();
            until(|reading| {
                // The owner handles the new peer in its calls.
                let mut part = [0; 8];
                let _ = router.recv(&mut part, Flags::DONTWAIT);
                let seen = record(reading, &name)?;
                let expected = if handover { (0, 1) } else { (1, 0) };
                ((seen.duplicates, seen.taken_over) == expected).then_some(())?;
                assert_eq!(seen.duplicate_id, b"worker-1");
                (handover || (seen.discarded, seen.discarded_by) == (1, DiscardReason::RefusedPeer))
                    .then_some(())
            });
            drop((first, second));
        });
    }
}

#[test]
fn key_pairs_that_do_not_fit_are_found() {
    observed("keys", |context| {
        let (vacant, at) = bound(context, SocketType::Pull, TCP);
        drop(vacant);
        let secret = [7; 32];
        let public = tautline_proto::public_key(&secret);
        for (name, public) in [("keys good", public), ("keys bad", [9; 32])] {
            let mut push = socket(context, SocketType::Push, name);
            push.set_option(CURVE_SERVERKEY, &public).unwrap();
            push.set_option(CURVE_PUBLICKEY, &public).unwrap();
            push.set_option(CURVE_SECRETKEY, &secret).unwrap();
            push.connect(&at).unwrap();
            // The options stay as they are after another one is set.
            set(&mut push, RECONNECT_IVL, 1000);
            until(|reading| {
                let seen = record(reading, name)?;
                (reading.endpoints_of(seen.id).count() == 1).then_some(())?;
                assert_eq!(seen.options & Options::KEY_PAIR_MISMATCH != 0, name == "keys bad");
                Some(())
            });
        }
    });
}

#[test]
fn resolved_addresses_are_shown() {
    observed("resolved", |context| {
        let mut pull = socket(context, SocketType::Pull, "resolved pull");
        let at = bind(&mut pull, TCP);
        let port = at.rsplit(':').next().unwrap();
        let mut push = socket(context, SocketType::Push, "resolved push");
        push.connect(&format!("tcp://localhost:{port}")).unwrap();
        until(|reading| {
            let resolved = &endpoint(reading, "resolved push")?.resolved;
            (*resolved == at).then_some(())
        });
    });
}

#[test]
fn closed_sockets_are_counted_with_their_unsent_messages() {
    observed("closed", |context| {
        let (vacant, refusing) = bound(context, SocketType::Pull, TCP);
        drop(vacant);
        let mut pull = socket(context, SocketType::Pull, "closed pull");
        let at = bind(&mut pull, TCP);
        for _ in 0..3 {
            let mut push = socket(context, SocketType::Push, "closed push");
            push.connect(&refusing).unwrap();
            push.send(b"event", Flags::NONE).unwrap();
            push.send(b"event", Flags::NONE).unwrap();
        }
        until(|reading| {
            let context = reading.contexts.iter().find(|context| context.closed_discarding == 3)?;
            assert_eq!((&*context.closed_type, &context.closed_endpoint), ("PUSH", &refusing));
            Some(())
        });
        // This one sends its message before it ends.
        let mut push = connected(context, SocketType::Push, &at);
        set(&mut push, LINGER, -1);
        push.send(b"event", Flags::NONE).unwrap();
        drop(push);
        recv(&mut pull);
        let mut publisher = socket(context, SocketType::Pub, "closed pub");
        publisher.bind(TCP).unwrap();
        publisher.send(b"news", Flags::NONE).unwrap();
        drop(publisher);
        until(|reading| {
            let context = reading.contexts.iter().find(|context| context.closed_sockets == 6)?;
            assert_eq!(context.closed_unmatched, 1);
            assert_eq!((context.closed_discarding, context.closed_discarded), (3, 6));
            assert_eq!((&*context.closed_type, &*context.closed_endpoint), ("PUB", TCP));
            assert_eq!(context.closed_linger_ms, 0);
            assert!(context.closed_last > 0);
            Some(())
        });
    });
}

#[test]
fn lost_connections_are_counted_by_their_reason() {
    observed("lost", |context| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("tcp://{}", listener.local_addr().unwrap());
        let mut push = socket(context, SocketType::Push, "lost push");
        set(&mut push, HEARTBEAT_IVL, 50);
        set(&mut push, HEARTBEAT_TIMEOUT, 200);
        set(&mut push, HEARTBEAT_TTL, 5000);
        set(&mut push, RECONNECT_IVL, 60_000);
        push.connect(&at).unwrap();
        let silent = accept_as_pull(&listener);
        until(|reading| {
            let (seen, endpoint) = (record(reading, "lost push")?, endpoint(reading, "lost push")?);
            (seen.lost_silent == 1).then_some(())?;
            assert_eq!((seen.heartbeat_timeout_ms, seen.heartbeat_ttl_ms), (200, 5000));
            assert_eq!(endpoint.reason, "no answer to a heartbeat for 200 ms");
            assert_eq!((endpoint.lost_silent, endpoint.lost_closed), (1, 0));
            Some(())
        });
        drop(silent);
        let mut other = socket(context, SocketType::Push, "closed by peer");
        set(&mut other, RECONNECT_IVL, 60_000);
        other.connect(&at).unwrap();
        drop(accept_as_pull(&listener));
        until(|reading| {
            let seen = record(reading, "closed by peer")?;
            (seen.lost_closed == 1).then_some(())?;
            assert_eq!(seen.lost_silent, 0);
            Some(())
        });
        // A stranger that leaves before its handshake.
        let mut pull = socket(context, SocketType::Pull, "brief pull");
        let place = bind(&mut pull, TCP);
        drop(TcpStream::connect(place.strip_prefix("tcp://").unwrap()).unwrap());
        until(|reading| (record(reading, "brief pull")?.brief == 1).then_some(()));
    });
}

#[test]
fn waits_of_messages_and_replies_are_measured() {
    observed("waits", |context| {
        let mut pull = socket(context, SocketType::Pull, "waits pull");
        let mut push = connected(context, SocketType::Push, &bind(&mut pull, TCP));
        let mut rep = socket(context, SocketType::Rep, "waits rep");
        let mut req = connected(context, SocketType::Req, &bind(&mut rep, TCP));
        req.send(b"request", Flags::NONE).unwrap();
        recv(&mut rep);
        let mut sent = 0;
        until(|reading| {
            // Each snapshot finds more messages.
            push.send(b"work", Flags::NONE).unwrap();
            sent += 1;
            let (_, peers) = find(reading, "waits pull")?;
            let (_, clients) = find(reading, "waits rep")?;
            let (from, client) = (peers.first()?, clients.first()?);
            (from.idle_since > 0 && client.reply_since > 0).then_some(())?;
            assert_eq!((from.longest_idle_us, client.longest_reply_us), (0, 0));
            (from.growing_in_since > 0).then_some(())?;
            assert!(from.growing_in_since <= from.last_in);
            Some(())
        });
        rep.send(b"reply", Flags::NONE).unwrap();
        recv(&mut req);
        (0..sent).for_each(|_| assert_eq!(recv(&mut pull), b"work"));
        assert_eq!(pull.recv(&mut [], Flags::DONTWAIT), Err(Error::Again));
        until(|reading| {
            let (_, peers) = find(reading, "waits pull")?;
            let (_, clients) = find(reading, "waits rep")?;
            let (from, client) = (peers.first()?, clients.first()?);
            (from.longest_idle_us > 0 && client.longest_reply_us > 0).then_some(())?;
            assert_eq!((from.idle_since, client.reply_since, from.growing_in_since), (0, 0, 0));
            assert_eq!(from.messages_in, sent);
            Some(())
        });
    });
}
