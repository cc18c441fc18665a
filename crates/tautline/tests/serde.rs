//! The feature `serde`: the JSON of every value equals the documentation of `tautline::serde`.

use std::fmt::Debug;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tautline::curve::{KeyError, KeyPair, PublicKey, SecretKey};
use tautline::endpoint::EndpointError;
use tautline::error::{ErrorSubject, ExpectedStep};
use tautline::kind::{self, Kind, SocketType};
use tautline::monitor::{Claim, Event, EventKind, HandshakeError, Statistics};
use tautline::zap::{Request, Verdict};
use tautline::{Client, Context, Error, Message, Multipart, Pull, Push, Req, RoutingId, Server};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);
const KEY: &str = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";

/// Returns the JSON in the table with this heading.
fn documented(heading: &str) -> Vec<&'static str> {
    let text = include_str!("../src/serde.rs");
    let heading = format!("//! | {heading} | JSON |");
    let rows = text.lines().skip_while(|line| *line != heading).skip(2);
    let rows = rows.take_while(|line| line.starts_with("//! |"));
    let rows: Vec<_> = rows.map(|row| row.split('`').rev().nth(1).unwrap()).collect();
    assert!(!rows.is_empty(), "{heading}");
    rows
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// Checks that a value is serialized as documented, and deserialized again.
fn both_ways<T: Serialize + DeserializeOwned + PartialEq + Debug>(values: &[T], documented: &[&str]) {
    for (value, json) in values.iter().zip(documented) {
        assert_eq!(written(value), *json);
        assert_eq!(serde_json::from_str::<T>(json).unwrap(), *value);
        let mut cbor = Vec::new();
        ciborium::into_writer(value, &mut cbor).unwrap();
        assert_eq!(ciborium::from_reader::<T, _>(&cbor[..]).unwrap(), *value);
    }
    assert_eq!(values.len(), documented.len());
}

fn claims() -> [Claim; 2] {
    [Claim::Plain { username: "joe".to_owned() }, Claim::Curve { public_key: KEY.parse().unwrap() }]
}

#[test]
fn events() {
    let [plain, curve] = claims();
    let failed = EventKind::HandshakeFailed;
    let kinds = [
        EventKind::Connected,
        EventKind::ConnectDelayed,
        EventKind::ConnectRetried { after: Duration::from_millis(250) },
        EventKind::Listening,
        EventKind::BindFailed(98),
        EventKind::Accepted,
        EventKind::AcceptFailed(24),
        EventKind::Closed,
        EventKind::CloseFailed(9),
        EventKind::Disconnected,
        EventKind::HandshakeSucceeded,
        failed(HandshakeError::Io(32)),
        failed(HandshakeError::Protocol(0x1100_0002)),
        failed(HandshakeError::Refused(400)),
        failed(HandshakeError::Refused(300)),
        EventKind::TopicRefused,
        EventKind::NameChanged,
        EventKind::ResolverFailed(113),
        EventKind::Stopped,
        EventKind::Other { number: 0x10000, values: vec![5, 6] },
    ];
    // Only the library and deserialization can create an event.
    let read = |json| serde_json::from_str::<Event>(json).unwrap();
    let events: Vec<Event> = documented("kind").into_iter().map(read).collect();
    both_ways(&events, &documented("kind"));
    assert_eq!(events.iter().map(|event| event.kind.clone()).collect::<Vec<_>>(), kinds);

    let connected = &events[0];
    assert_eq!(
        (connected.local.as_str(), connected.remote.as_str()),
        ("tcp://10.0.0.1:40000", "tcp://10.0.0.2:5555")
    );
    assert_eq!((connected.claim.as_ref(), connected.reason.as_str()), (None, ""));
    let refused = events.iter().filter(|event| event.claim.is_some());
    let refused: Vec<_> =
        refused.map(|event| (event.claim.clone().unwrap(), event.reason.as_str())).collect();
    assert_eq!(refused, [(curve, "unknown key"), (plain, "closed on Sundays")]);
}

#[test]
fn events_of_a_socket() {
    with_watchdog(LIMIT, "events_of_a_socket", || {
        let context = Context::new();
        let mut pull = Pull::new(&context).unwrap();
        let mut events = pull.monitor().unwrap();
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        let event = events.recv().unwrap();
        let json = written(&event);
        assert_eq!(json, format!(r#"{{"event":"listening","local":"{endpoint}","remote":""}}"#));
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    });
}

#[test]
fn unknown_field_is_ignored_unknown_event_fails() {
    let later = r#"{"event":"closed","at":"10:15","local":"a","remote":"b"}"#;
    assert_eq!(
        serde_json::from_str::<Event>(later).unwrap().kind,
        EventKind::Closed,
        "a field is overlooked"
    );
    for json in [
        r#"{"event":"exploded","local":"","remote":""}"#,
        r#"{"event":"connect_retried","local":"","remote":""}"#,
        r#"{"event":"handshake_failed","error":"boredom","local":"","remote":""}"#,
        r#"{"event":"closed"}"#,
    ] {
        assert!(serde_json::from_str::<Event>(json).is_err(), "{json}");
    }
}

#[test]
fn statistics() {
    let [json] = documented("numbers")[..] else { panic!() };
    let numbers: Statistics = serde_json::from_str(json).unwrap();
    both_ways(&[numbers], &[json]);
    assert_eq!((numbers.messages_sent, numbers.queued_in, numbers.failed_handshakes), (1, 9, 13));
    assert!(serde_json::from_str::<Statistics>(&json.replace("lost", "list")).is_err(), "none is made up");

    let context = Context::new();
    let mut pull = Pull::builder(&context).bind("inproc://numbers").unwrap();
    let mut push = Push::builder(&context).connect("inproc://numbers").unwrap();
    push.send("one").unwrap();
    pull.recv().unwrap();
    let numbers = pull.statistics().unwrap();
    let map: serde_json::Value = serde_json::from_str(&written(&numbers)).unwrap();
    assert_eq!((&map["messages_received"], &map["messages_sent"]), (&1.into(), &0.into()));
    assert_eq!(serde_json::from_value::<Statistics>(map).unwrap(), numbers);
}

/// The numbers depend on the system.
#[cfg(target_os = "linux")]
#[test]
fn errors() {
    let context = Context::new();
    let mut pull = Pull::new(&context).unwrap();
    pull.bind("inproc://work").unwrap();
    let mut bind = |endpoint| pull.bind(endpoint).unwrap_err();
    let errors = [
        Error::WouldBlock,
        Error::TimedOut,
        Error::Terminated,
        Error::Interrupted,
        Req::new(&context).unwrap().try_recv().unwrap_err(),
        Error::Unroutable,
        RoutingId::new("").unwrap_err(),
        bind("tcp://localhost"),
        Error::MalformedKey(KeyError::Length(5)),
        bind("pigeon://x"),
        bind("udp://127.0.0.1:5555"),
        Error::NotSupported(ErrorSubject::default()),
        bind("inproc://work"),
        Error::AddressNotAvailable(ErrorSubject::default()),
        Error::NoSuchDevice(ErrorSubject::default()),
        Error::ConnectionRefused(ErrorSubject::default()),
        Error::NotFound(ErrorSubject::default()),
        Error::TooManyOpen,
        Error::MessageTooLong,
        Error::NameTooLong(ErrorSubject::default()),
        Error::OutOfMemory,
        Error::Os(13, ErrorSubject::default()),
    ];
    assert_eq!(errors.iter().map(written).collect::<Vec<_>>(), documented("error"));
    let other = written(&Error::MalformedKey(KeyError::NotZ85));
    assert_eq!(
        other,
        r#"{"error":"malformed_key","reason":"not_z85","errno":22,"message":"the text of a key is not Z85"}"#
    );
}

#[test]
fn parts_of_errors_have_the_documented_form() {
    use EndpointError::*;
    let parts = documented("part of an error");
    let (turns, rest) = parts.split_at(5);
    let (endpoints, rest) = rest.split_at(9);
    let (keys, handshakes) = rest.split_at(2);
    let all = [
        ExpectedStep::ReceiveAnswer,
        ExpectedStep::SendQuestion,
        ExpectedStep::ReceiveQuestion,
        ExpectedStep::SendAnswer,
        ExpectedStep::Other,
    ];
    both_ways(&all, turns);
    let all = [
        NoTransport,
        NoAddress,
        UnknownTransport,
        NoPort,
        Port,
        NoHost,
        NotConnectable,
        PathTooLong,
        Address,
    ];
    both_ways(&all, endpoints);
    both_ways(&[KeyError::Length(5), KeyError::NotZ85], keys);
    let all = [HandshakeError::Io(32), HandshakeError::Protocol(0x1100_0002), HandshakeError::Refused(400)];
    both_ways(&all, handshakes);
}

#[test]
fn keys_and_verdicts() {
    let all = documented("key or peer");
    both_ways(&[KEY.parse::<PublicKey>().unwrap()], &all[..1]);
    both_ways(&claims(), &all[1..3]);
    let verdicts = [
        Verdict::admit("alice").property("Role", "admin"),
        Verdict::defer("closed on Sundays"),
        Verdict::refuse("unknown key"),
    ];
    both_ways(&verdicts, &all[6..]);
    for json in ["{}", r#"{"verdict":"perhaps"}"#, r#"{"user_id":"alice"}"#] {
        assert!(serde_json::from_str::<Verdict>(json).is_err(), "{json}");
    }
}

#[test]
fn a_secret_key_is_read_and_not_repeated() {
    let pair = KeyPair::generate().unwrap();
    let json = written(&pair.secret.expose_z85());
    assert_eq!(serde_json::from_str::<SecretKey>(&json).unwrap(), pair.secret);
    for json in [r#""JTKVSB%%)wK0E""#, r#""JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh\"""#] {
        let error = serde_json::from_str::<SecretKey>(json).unwrap_err().to_string();
        assert!(!error.contains("JTKV"), "{error}");
        assert_eq!(serde_json::from_str::<PublicKey>(json).unwrap_err().to_string(), error);
    }
    let error = serde_json::from_str::<SecretKey>("7").unwrap_err().to_string();
    assert!(error.contains("a key in Z85, of 40 characters"), "{error}");
}

/// Returns the request that a handler receives for a peer with these credentials.
fn asked(
    server: impl FnOnce(&Context) -> tautline::Builder<kind::Pull>,
    client: impl FnOnce(&Context) -> tautline::Builder<kind::Push>,
) -> String {
    let context = Context::new();
    let (told, heard) = std::sync::mpsc::channel();
    let handler = move |request: &Request| {
        told.send(written(request)).unwrap();
        Verdict::refuse("no")
    };
    context.authenticate(handler).unwrap();
    let mut pull = server(&context).zap_domain("shop").build().unwrap();
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let _push = client(&context).linger(Duration::ZERO).connect(&endpoint).unwrap();
    heard.recv().unwrap()
}

#[test]
fn requests_without_their_passwords() {
    with_watchdog(LIMIT, "requests_without_their_passwords", || {
        let (server, client) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let requests = [
            asked(Pull::builder, Push::builder),
            asked(
                |context| Pull::builder(context).plain_server(),
                |context| Push::builder(context).plain_client("joe", "swordfish"),
            ),
            asked(
                |context| Pull::builder(context).curve_server(&server.secret).routing_id("id"),
                |context| Push::builder(context).curve_client(&server.public, &client),
            )
            .replace(&client.public.to_string(), KEY),
        ];
        assert_eq!(requests, documented("key or peer")[3..6]);
    });
}

#[test]
fn messages_and_names() {
    let all = documented("message or name");
    both_ways(&[Message::from("hi")], &all[..1]);
    both_ways(&[Multipart::from(["to", "", "hi"])], &all[1..2]);
    both_ways(&[RoutingId::new("id").unwrap()], &all[2..3]);
    both_ways(&[kind::Pull::TYPE], &all[3..4]);
    assert_eq!(all.len(), 4);

    let id = |json: &str| serde_json::from_str::<RoutingId>(json);
    assert_eq!(id(r#""worker-1""#).unwrap(), RoutingId::new("worker-1").unwrap(), "text is taken");
    assert_eq!(id("[]").unwrap_err().to_string(), "a routing id has 1 to 255 bytes, not 0");
    assert_eq!(
        id(&written(&vec![1; 256])).unwrap_err().to_string(),
        "a routing id has 1 to 255 bytes, not 256"
    );
    assert!(id("[256]").is_err() && id("7").is_err());
}

#[test]
fn every_socket_type_by_its_name() {
    for code in 0..=20 {
        let kind = SocketType::from_code(code).unwrap();
        both_ways(&[kind], &[&format!("\"{}\"", kind.name())]);
    }
    for json in [r#""pull""#, r#""TELEPORT""#, "7"] {
        assert!(serde_json::from_str::<SocketType>(json).is_err(), "{json}");
    }
}

#[test]
fn a_peer_id_is_its_number() {
    let context = Context::new();
    let mut server = Server::builder(&context).bind("inproc://server").unwrap();
    let mut client = Client::builder(&context).connect("inproc://server").unwrap();
    client.send("question").unwrap();
    let question = server.recv().unwrap();
    let peer = question.peer_id().unwrap();
    assert_eq!(written(&peer), peer.get().to_string());
    // The properties of the sender are not serialized.
    let again: Message = serde_json::from_str(&written(&question)).unwrap();
    assert_eq!((again.as_str(), again.peer_id()), (Ok("question"), None));
}
