//! Permissions of peers to publish and subscribe to topics: by policy, and by the program.

// A loom model has no sockets.
#![cfg(all(unix, not(loom)))]

mod common;

use common::policy::{Folder, context_with_policy, events, next, socket, text, with_key};
use common::{bind, recv, set, test};
use std::fs;
use std::sync::{Arc, Mutex};

use tautline_core::{
    Context, Error, Flags, Message, Socket, SocketType, TopicAction, authorize_topics, public_key,
};

const SUBSCRIBE: i32 = 6;
const UNSUBSCRIBE: i32 = 7;
const XPUB_MANUAL: i32 = 71;
const INVERT_MATCHING: i32 = 74;
const STATISTICS: i32 = 0x5441_0001;
const TOPICS_REFUSED: usize = 13;
const TOPIC_REFUSED: u64 = 0x1000_0000;
const DISCONNECTED: u64 = 0x200;

/// Writes a policy that wraps bound endpoints, with alice's key 2, bob's key 3 and these topics.
fn policy(folder: &Folder, topics: &str) -> String {
    let (key, _) = folder.key("server.key", 1);
    folder.file("clients/alice.pub", &text(&public_key(&[2; 32])));
    folder.file("clients/bob.pub", &text(&public_key(&[3; 32])));
    let clients = folder.0.join("clients");
    let wrap = format!("[wraps.in]\nkey = \"{key}\"\nclients = \"{}\"\n", clients.display());
    let rule = "[[rules]]\ncall = \"bind\"\naction = \"wrap\"\nwrap = \"in\"\n";
    folder.file("policy.toml", &format!("{wrap}{rule}{topics}"))
}

/// Returns a connected subscriber with this key.
fn subscriber(context: &Context, endpoint: &str, key: u8, topics: &[&str]) -> Socket {
    let mut subscriber = socket(context, SocketType::Sub);
    with_key(&mut subscriber, key);
    for topic in topics {
        subscriber.set_option(SUBSCRIBE, topic.as_bytes()).unwrap();
    }
    subscriber.connect(endpoint).unwrap();
    subscriber
}

fn send(socket: &mut Socket, topics: &[&str]) {
    for topic in topics {
        socket.send(topic.as_bytes(), Flags::NONE).unwrap();
    }
}

/// Receives the expected messages, and compares them.
#[track_caller]
fn receives(socket: &mut Socket, expected: &[&str]) {
    let found: Vec<_> =
        expected.iter().map(|_| String::from_utf8_lossy(&recv(socket)).into_owned()).collect();
    assert_eq!(found, expected);
}

/// Receives as `receives` does, while another socket, whose queue is empty, processes its events.
#[track_caller]
fn receives_from(socket: &mut Socket, other: &mut Socket, expected: &[&str]) {
    let mut found = Vec::new();
    while found.len() < expected.len() {
        expect_no_message(other);
        let mut message = Message::new();
        if socket.recv_message(&mut message, Flags::DONTWAIT).is_ok() {
            found.push(String::from_utf8_lossy(message.as_slice()).into_owned());
        }
    }
    assert_eq!(found, expected);
}

/// Lets the socket process its events. Its queue must be empty.
#[track_caller]
fn expect_no_message(socket: &mut Socket) {
    assert_eq!(socket.recv_message(&mut Message::new(), Flags::DONTWAIT).err(), Some(Error::Again));
}

fn refused(socket: &mut Socket) -> u64 {
    let mut numbers = [0; 14 * 8];
    socket.option(STATISTICS, &mut numbers).unwrap();
    u64::from_ne_bytes(numbers[TOPICS_REFUSED * 8..][..8].try_into().unwrap())
}

const TWO: &str = "[[topics]]\nname = \"alice's\"\nuser_id = \"alice\"\nsubscribe = [\"a/\", \"b/x\"]\n\
                   [[topics]]\nuser_id = \"bob\"\nsubscribe = \"b/\"\n";

#[test]
fn subscribers_get_only_permitted_topics() {
    test("subscribers_get_only_permitted_topics", |context| {
        let folder = Folder::new("topics");
        let ours = context_with_policy(&policy(&folder, TWO));
        let mut publisher = socket(&ours, SocketType::XPub);
        let mut events = events(&ours, &mut publisher);
        let endpoint = bind(&mut publisher, "tcp://127.0.0.1:*");
        let mut alice = subscriber(context, &endpoint, 2, &[""]);
        receives(&mut publisher, &["\u{1}a/", "\u{1}b/x"]);
        let mut bob = subscriber(context, &endpoint, 3, &["b/", "b"]);
        receives(&mut publisher, &["\u{1}b/"]);
        send(&mut publisher, &["a/1", "b/y", "c", "b", "b/x1", "a/end", "b/end"]);
        receives(&mut alice, &["a/1", "b/x1", "a/end"]);
        receives(&mut bob, &["b/y", "b/x1", "b/end"]);
        // A forbidden subscription is neither set nor removed.
        alice.set_option(SUBSCRIBE, b"secret").unwrap();
        alice.set_option(UNSUBSCRIBE, b"secret").unwrap();
        alice.set_option(SUBSCRIBE, b"b/x1").unwrap();
        receives(&mut publisher, &["\u{1}b/x1"]);
        let event = next(&mut events, TOPIC_REFUSED);
        assert_eq!((event.value, event.user_id.as_str()), (13, "alice"));
        let path = folder.0.join("policy.toml");
        let by = format!("it may not subscribe to `secret`, by rule `alice's` of policy {}", path.display());
        assert_eq!(event.reason, format!("Permission denied: {by}"));
        assert_eq!(refused(&mut publisher), 1);
        // Removing the empty topic keeps her other subscriptions.
        alice.set_option(UNSUBSCRIBE, b"").unwrap();
        receives(&mut publisher, &["\0a/", "\0b/x"]);
        send(&mut publisher, &["a/2", "b/x2", "b/x1"]);
        receives(&mut alice, &["b/x1"]);
        drop((publisher, events));
        ours.terminate().unwrap();
    });
}

#[test]
fn a_policy_that_changes_counts_for_those_that_are_there() {
    test("a_policy_that_changes_counts_for_those_that_are_there", |context| {
        let folder = Folder::new("changed-topics");
        let ours = context_with_policy(&policy(&folder, TWO));
        let mut publisher = socket(&ours, SocketType::XPub);
        let mut events = events(&ours, &mut publisher);
        let endpoint = bind(&mut publisher, "tcp://127.0.0.1:*");
        let mut bob = subscriber(context, &endpoint, 3, &[""]);
        receives(&mut publisher, &["\u{1}b/"]);
        let mut alice = subscriber(context, &endpoint, 2, &[""]);
        receives(&mut publisher, &["\u{1}a/", "\u{1}b/x"]);
        policy(&folder, &TWO.replace("\"a/\", ", "\"c/\", "));
        receives_from(&mut publisher, &mut alice, &["\0a/", "\0b/x", "\u{1}b/x", "\u{1}c/"]);
        let event = next(&mut events, DISCONNECTED);
        assert_eq!(event.user_id, "alice", "bob stays");
        assert_eq!(event.reason, "Permission denied: the policy has changed which topics it may use");
        send(&mut publisher, &["a/1", "c/1", "b/x"]);
        receives(&mut alice, &["c/1", "b/x"]);
        receives(&mut bob, &["b/x"]);
        drop((publisher, events));
        ours.terminate().unwrap();
    });
}

#[test]
fn a_program_that_decides_is_bound_by_it() {
    test("a_program_that_decides_is_bound_by_it", |context| {
        let folder = Folder::new("manual-topics");
        let ours = context_with_policy(&policy(&folder, TWO));
        let mut publisher = socket(&ours, SocketType::XPub);
        set(&mut publisher, XPUB_MANUAL, 1);
        let endpoint = bind(&mut publisher, "tcp://127.0.0.1:*");
        let mut alice = subscriber(context, &endpoint, 2, &["b"]);
        receives(&mut publisher, &["\u{1}b/x"]);
        publisher.set_option(SUBSCRIBE, b"").unwrap();
        publisher.set_option(SUBSCRIBE, b"secret").unwrap();
        assert_eq!(refused(&mut publisher), 1);
        // Alice requests more topics. The program receives only the permitted parts of them.
        alice.set_option(SUBSCRIBE, b"a").unwrap();
        receives(&mut publisher, &["\u{1}a/"]);
        alice.set_option(SUBSCRIBE, b"").unwrap();
        receives(&mut publisher, &["\u{1}a/", "\u{1}b/x"]);
        send(&mut publisher, &["secret", "a/1", "b/y", "b/x"]);
        receives(&mut alice, &["a/1", "b/x"]);
        drop(publisher);
        ours.terminate().unwrap();
    });
}

#[test]
fn inverted_matching_does_not_bypass_policy() {
    test("inverted_matching_does_not_bypass_policy", |context| {
        let folder = Folder::new("inverse-topics");
        let ours = context_with_policy(&policy(&folder, TWO));
        let mut publisher = socket(&ours, SocketType::XPub);
        set(&mut publisher, INVERT_MATCHING, 1);
        let endpoint = bind(&mut publisher, "tcp://127.0.0.1:*");
        let mut alice = socket(context, SocketType::Sub);
        set(&mut alice, INVERT_MATCHING, 1);
        with_key(&mut alice, 2);
        alice.set_option(SUBSCRIBE, b"a/1").unwrap();
        alice.connect(&endpoint).unwrap();
        receives(&mut publisher, &["\u{1}a/1"]);
        send(&mut publisher, &["secret", "a/1", "a/2"]);
        receives(&mut alice, &["a/2"]);
        drop(publisher);
        ours.terminate().unwrap();
    });
}

#[test]
fn publishers_reach_only_permitted_topics() {
    test("publishers_reach_only_permitted_topics", |context| {
        let folder = Folder::new("publishers");
        for socket_type in [SocketType::Sub, SocketType::XSub] {
            let topics = "[[topics]]\nuser_id = \"alice\"\npublish = [\"a/\"]\n";
            let ours = context_with_policy(&policy(&folder, topics));
            let mut subscriber = socket(&ours, socket_type);
            let mut events = events(&ours, &mut subscriber);
            match socket_type {
                SocketType::Sub => subscriber.set_option(SUBSCRIBE, b"").unwrap(),
                _ => subscriber.send(b"\x01", Flags::NONE).unwrap(),
            }
            let endpoint = bind(&mut subscriber, "tcp://127.0.0.1:*");
            let publisher = |key, subscriber: &mut Socket| {
                let mut publisher = socket(context, SocketType::XPub);
                with_key(&mut publisher, key);
                publisher.connect(&endpoint).unwrap();
                receives_from(&mut publisher, subscriber, &["\u{1}"]);
                publisher
            };
            let mut alice = publisher(2, &mut subscriber);
            send(&mut alice, &["a/1"]);
            alice.send(b"b", Flags::MORE).unwrap();
            send(&mut alice, &["a/in the midst of it", "b", "a/2"]);
            receives(&mut subscriber, &["a/1", "a/2"]);
            let event = next(&mut events, TOPIC_REFUSED);
            assert_eq!(event.user_id, "alice");
            assert!(event.reason.contains("it may not publish `b`, by rule `topics 1` of"), "{event:?}");
            // A peer that the policy does not name may not publish.
            let mut bob = publisher(3, &mut subscriber);
            send(&mut bob, &["a/bob"]);
            assert_eq!(next_refused(&mut subscriber, &mut events), "bob");
            assert_eq!(refused(&mut subscriber), 3);
            drop((subscriber, events));
            ours.terminate().unwrap();
        }
    });
}

/// Returns the user of the next refusal. The socket processes its input until then.
fn next_refused(subscriber: &mut Socket, events: &mut Socket) -> String {
    let before = refused(subscriber);
    while refused(subscriber) == before {
        expect_no_message(subscriber);
    }
    next(events, TOPIC_REFUSED).user_id
}

#[test]
fn publishers_are_known_by_their_endpoints_and_keys() {
    test("publishers_are_known_by_their_endpoints_and_keys", |context| {
        let folder = Folder::new("servers");
        let server = folder.file("servers/orders.pub", &text(&public_key(&[1; 32])));
        let text = format!(
            "[wraps.out]\nservers = {{ \"tcp://*\" = \"{server}\" }}\n\
             [[rules]]\ncall = \"connect\"\nendpoint = \"tcp://*\"\naction = \"wrap\"\nwrap = \"out\"\n\
             [[topics]]\nuser_id = \"orders\"\npublish = \"orders/\"\n\
             [[topics]]\nendpoint = \"ipc://*/news\"\npublish = \"news/\"\n"
        );
        let theirs = context_with_policy(&folder.file("policy.toml", &text));
        let mut publisher = socket(context, SocketType::XPub);
        set(&mut publisher, 47, 1);
        publisher.set_option(49, &[1; 32]).unwrap();
        let orders = bind(&mut publisher, "tcp://127.0.0.1:*");
        let mut subscriber = socket(&theirs, SocketType::Sub);
        subscriber.set_option(SUBSCRIBE, b"").unwrap();
        subscriber.connect(&orders).unwrap();
        receives(&mut publisher, &["\u{1}"]);
        send(&mut publisher, &["news/1", "orders/1", "orders/2"]);
        receives(&mut subscriber, &["orders/1", "orders/2"]);
        let mut news = socket(context, SocketType::XPub);
        let at = bind(&mut news, &format!("ipc://{}/news", folder.0.display()));
        subscriber.connect(&at).unwrap();
        receives(&mut news, &["\u{1}"]);
        send(&mut news, &["orders/3", "news/2"]);
        receives(&mut subscriber, &["news/2"]);
        // A reloaded policy also applies to existing connections.
        folder.file("policy.toml", &text.replace("\"news/\"", "\"latest/\""));
        receives_from(&mut news, &mut subscriber, &["\0", "\u{1}"]);
        send(&mut news, &["news/3", "latest/1"]);
        receives(&mut subscriber, &["latest/1"]);
        drop(subscriber);
        theirs.terminate().unwrap();
    });
}

#[test]
fn users_of_this_machine_are_known_by_their_numbers() {
    test("users_of_this_machine_are_known_by_their_numbers", |context| {
        let folder = Folder::new("users");
        let own = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&folder.0).unwrap());
        let topics = format!("[[topics]]\nuser = {own}\nsubscribe = \"a\"\n[[topics]]\nsubscribe = []\n");
        context.set_policy(&folder.file("policy.toml", &topics)).unwrap();
        let mut publisher = socket(context, SocketType::XPub);
        let near = bind(&mut publisher, &format!("ipc://{}/socket", folder.0.display()));
        let far = bind(&mut publisher, "tcp://127.0.0.1:*");
        publisher.bind("inproc://own").unwrap();
        let mut neighbour = socket(context, SocketType::Sub);
        neighbour.set_option(SUBSCRIBE, b"").unwrap();
        neighbour.connect(&near).unwrap();
        receives(&mut publisher, &["\u{1}a"]);
        let mut events = events(context, &mut publisher);
        let mut stranger = socket(context, SocketType::Sub);
        stranger.set_option(SUBSCRIBE, b"").unwrap();
        stranger.connect(&far).unwrap();
        while refused(&mut publisher) == 0 {
            expect_no_message(&mut publisher);
        }
        assert!(next(&mut events, TOPIC_REFUSED).reason.contains("may not subscribe to ``"));
        // Peers within this program are not checked.
        let mut own = socket(context, SocketType::Sub);
        own.set_option(SUBSCRIBE, b"").unwrap();
        own.connect("inproc://own").unwrap();
        receives(&mut publisher, &["\u{1}"]);
        send(&mut publisher, &["b", "a"]);
        receives(&mut own, &["b", "a"]);
        receives(&mut neighbour, &["a"]);
    });
}

#[test]
fn a_program_may_decide_itself() {
    test("a_program_may_decide_itself", |context| {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = asked.clone();
        let authorizer = Arc::new(move |request: &tautline_core::TopicRequest<'_>| {
            let topic = String::from_utf8_lossy(request.topic).into_owned();
            noted.lock().unwrap().push((request.socket_type, request.action, topic.clone()));
            assert_ne!(topic, "worst", "a panic is a no");
            topic != "bad"
        });
        let mut publisher = socket(context, SocketType::XPub);
        authorize_topics(&mut publisher, authorizer.clone()).unwrap();
        assert_eq!(authorize_topics(&mut publisher, authorizer.clone()), Err(Error::Invalid), "it has one");
        let endpoint = bind(&mut publisher, "tcp://127.0.0.1:*");
        let mut subscriber = socket(context, SocketType::Sub);
        authorize_topics(&mut subscriber, authorizer.clone()).unwrap();
        for topic in ["bad", "worst", ""] {
            subscriber.set_option(SUBSCRIBE, topic.as_bytes()).unwrap();
        }
        subscriber.connect(&endpoint).unwrap();
        receives(&mut publisher, &["\u{1}"]);
        assert_eq!(refused(&mut publisher), 2);
        send(&mut publisher, &["bad", "good"]);
        receives(&mut subscriber, &["good"]);
        assert_eq!(refused(&mut subscriber), 1);
        let mut asked = asked.lock().unwrap().clone();
        asked.sort_by_key(|(_, _, topic)| topic.clone());
        let of = |kind, action, topic: &str| (kind, action, topic.to_owned());
        let (subscribe, publish) = (TopicAction::Subscribe, TopicAction::Publish);
        for expected in [
            of(SocketType::XPub, subscribe, ""),
            of(SocketType::XPub, subscribe, "bad"),
            of(SocketType::XPub, subscribe, "worst"),
            of(SocketType::Sub, publish, "bad"),
            of(SocketType::Sub, publish, "good"),
        ] {
            assert!(asked.contains(&expected), "{expected:?} {asked:?}");
        }
        let mut other = socket(context, SocketType::Push);
        assert_eq!(authorize_topics(&mut other, authorizer.clone()), Err(Error::NotSupported));
        assert_eq!(authorize_topics(&mut subscriber, authorizer), Err(Error::Invalid), "it is connected");
    });
}
