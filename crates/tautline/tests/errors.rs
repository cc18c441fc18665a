//! Errors name the object that they concern.

use tautline::endpoint::EndpointError;
use tautline::error::ExpectedStep;
use tautline::{Context, Error, Peer, Pull, Push, Rep, Req, kind};

#[test]
fn errors_of_endpoints_name_them() {
    let context = Context::new();
    let _taken = Pull::builder(&context).bind("inproc://taken").unwrap();
    let mut push = Push::new(&context).unwrap();
    let long = format!("ipc:///{}", "p".repeat(200));
    let no_such = "this socket has no such endpoint, or the file or directory does not exist";
    let errors = [
        ("inproc://taken", push.bind("inproc://taken").map(drop), "the address is in use"),
        (
            "tcp://localhost",
            push.connect("tcp://localhost"),
            "the endpoint has no port: the address is host:port",
        ),
        (
            "pigeon://x",
            push.connect("pigeon://x"),
            "the transport is not known, or not built in (wss and tls+tcp need the feature tls)",
        ),
        (
            "name://orders",
            push.connect("name://orders"),
            match cfg!(feature = "names") {
                true => "no names file is set: set TAUT_NAMES to the path of one",
                false => "the library was built without names (feature names)",
            },
        ),
        (
            "tcp://nosuch0:1",
            push.bind("tcp://nosuch0:1").map(drop),
            "there is no network interface or host of this name",
        ),
        (
            "tcp://192.0.2.1:1",
            push.bind("tcp://192.0.2.1:1").map(drop),
            "the address does not belong to this machine",
        ),
        (
            "udp://127.0.0.1:1",
            push.connect("udp://127.0.0.1:1"),
            "PUSH sockets do not support this transport",
        ),
        ("tcp://127.0.0.1:1", push.disconnect("tcp://127.0.0.1:1"), no_such),
        ("tcp://127.0.0.1:1", push.unbind("tcp://127.0.0.1:1"), no_such),
        (&long, push.bind(&long).map(drop), "the path or address is too long"),
    ];
    for (endpoint, outcome, text) in errors {
        let error = outcome.unwrap_err();
        assert_eq!(error.to_string(), format!("{endpoint}: {text}"));
        assert_eq!(error.endpoint(), Some(endpoint));
    }
    // The builder, tasks and the calls of PEER name it as well.
    let error = Pull::builder(&context).bind("inproc://taken").unwrap_err();
    assert_eq!(
        (error.endpoint(), error.errno()),
        (Some("inproc://taken"), push.bind("inproc://taken").unwrap_err().errno())
    );
    let error = push.into_async().bind("inproc://taken").unwrap_err();
    assert!(matches!(error, Error::AddressInUse(_)), "{error:?}");
    let error = Peer::new(&context).unwrap().connect_peer("tcp://x").unwrap_err();
    assert!(matches!(error, Error::MalformedEndpoint(EndpointError::NoPort, _)), "{error:?}");
    assert_eq!(format!("{error:?}"), r#"MalformedEndpoint(NoPort, "tcp://x")"#);
}

#[test]
fn a_file_that_cannot_be_made_is_named_by_its_endpoint() {
    let mut pull = Pull::new(&Context::new()).unwrap();
    let error = pull.bind("ipc:///nowhere/at/all").unwrap_err();
    assert_eq!(error.endpoint(), Some("ipc:///nowhere/at/all"));
    let error = std::io::Error::from(error);
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().starts_with("ipc:///nowhere/at/all: "), "{error}");
}

/// Result of each REQ and REP call out of turn, for one part, several parts, a batch and a buffer.
#[test]
fn wrong_state_names_the_expected_step() {
    fn sends<K: kind::Sends + kind::HasMultipart>(socket: &mut tautline::Socket<K>, turn: ExpectedStep) {
        let refused = Err(Error::WrongState(turn));
        assert_eq!(socket.send("a"), refused);
        assert_eq!(socket.try_send(vec![1]), refused);
        assert_eq!(socket.send_multipart(["a", "b"]), refused);
        assert_eq!(socket.send_batch(["a"]).map(drop), refused);
    }
    fn receives<K: kind::Receives + kind::HasMultipart>(
        socket: &mut tautline::Socket<K>,
        turn: ExpectedStep,
    ) {
        let refused = Err(Error::WrongState(turn));
        assert_eq!(socket.recv().map(drop), refused);
        assert_eq!(socket.try_recv().map(drop), refused);
        assert_eq!(socket.recv_into(&mut [0]).map(drop), refused);
        assert_eq!(socket.recv_multipart().map(drop), refused);
        assert_eq!(socket.recv_batch(&mut Vec::new(), 1).map(drop), refused);
    }
    let context = Context::new();
    let mut rep = Rep::builder(&context).bind("inproc://turns").unwrap();
    let mut req = Req::builder(&context).connect("inproc://turns").unwrap();
    receives(&mut req, ExpectedStep::SendQuestion);
    sends(&mut rep, ExpectedStep::ReceiveQuestion);
    req.send("question").unwrap();
    sends(&mut req, ExpectedStep::ReceiveAnswer);
    rep.recv().unwrap();
    receives(&mut rep, ExpectedStep::SendAnswer);
    assert_eq!(rep.recv().unwrap_err().to_string(), "REP must reply to the last request first");
}

#[test]
#[cfg(feature = "tls")]
fn fault_of_a_certificate_is_named() {
    use tautline_testkit::certificates as with;
    let [key_pem, cert_pem, trust_pem] = [103, 104, 105];
    let context = Context::new();
    let of = |options: &[(i32, &str)], endpoint: &str, connects: bool| {
        let mut builder = Push::builder(&context);
        for (number, pem) in options {
            builder = builder.raw_option(*number, pem.as_bytes());
        }
        let mut push = builder.build().unwrap();
        let outcome = if connects { push.connect(endpoint) } else { push.bind(endpoint).map(drop) };
        let error = outcome.unwrap_err();
        assert_eq!(error.endpoint(), Some(endpoint));
        error.to_string()
    };
    for [bound, connected] in
        [["tls+tcp://127.0.0.1:*", "tls+tcp://127.0.0.1:1"], ["wss://127.0.0.1:*", "wss://127.0.0.1:1"]]
    {
        let text = of(&[(cert_pem, with::SERVER), (key_pem, with::ENCRYPTED_KEY)], bound, false);
        assert!(text.starts_with(&format!("{bound}: the key is encrypted")), "{text}");
        let text = of(&[(trust_pem, with::P521_CA)], connected, true);
        assert!(text.starts_with(&format!("{connected}: the key of a trusted certificate")), "{text}");
    }
}
