//! PLAIN, CURVE and the ZAP handler in programs.

use std::sync::mpsc;
use std::time::Duration;

use tautline::curve::KeyPair;
use tautline::monitor::{Claim, Event, EventKind, HandshakeError, Monitor};
use tautline::zap::{AllowList, Credentials, Request, Verdict};
use tautline::{Builder, Context, Error, Pull, Push, kind};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

/// Returns the result of the next peer's handshake.
fn outcome(events: &mut Monitor) -> Result<(), HandshakeError> {
    for event in events {
        match event.kind {
            EventKind::HandshakeSucceeded => return Ok(()),
            EventKind::HandshakeFailed(reason) => return Err(reason),
            _ => {}
        }
    }
    panic!("the monitor ended");
}

struct Server {
    sink: Pull,
    events: Monitor,
    endpoint: String,
}

impl Server {
    fn new(builder: Builder<kind::Pull>) -> Server {
        let mut sink = builder.build().unwrap();
        let events = sink.monitor().unwrap();
        let endpoint = sink.bind("tcp://127.0.0.1:*").unwrap();
        Server { sink, events, endpoint }
    }

    /// Checks that a client is accepted. Returns its user id from a message.
    fn admits(&mut self, client: Builder<kind::Push>) -> Option<String> {
        let mut push = client.linger(Duration::ZERO).connect(&self.endpoint).unwrap();
        assert_eq!(outcome(&mut self.events), Ok(()));
        push.send("secret").unwrap();
        let message = self.sink.recv().unwrap();
        assert_eq!(message, "secret");
        assert_eq!(message.peer_address(), Some("127.0.0.1"));
        message.user_id().map(str::to_owned)
    }

    fn refuses(&mut self, client: Builder<kind::Push>) -> HandshakeError {
        match self.failure(client).kind {
            EventKind::HandshakeFailed(error) => error,
            other => panic!("{other:?}"),
        }
    }

    /// Connects a client, and returns the event that ends its handshake.
    fn failure(&mut self, client: Builder<kind::Push>) -> Event {
        let client = client.linger(Duration::ZERO).reconnect_interval(None);
        let _push = client.connect(&self.endpoint).unwrap();
        let ends = |event: &Event| {
            matches!(event.kind, EventKind::HandshakeSucceeded | EventKind::HandshakeFailed(_))
        };
        self.events.find(ends).unwrap()
    }
}

#[test]
fn keys_on_the_list_come_in() {
    with_watchdog(LIMIT, "keys_on_the_list", || {
        let [server, alice, bob] = [(); 3].map(|()| KeyPair::generate().unwrap());
        let context = Context::new();
        let list = AllowList::new().key(alice.public, "alice");
        context.authenticate(list.clone()).unwrap();
        let error = context.authenticate(list.clone()).unwrap_err();
        assert_eq!(error.to_string(), "inproc://zeromq.zap.01: the address is in use");
        let client = |own| Push::builder(&context).curve_client(&server.public, own);
        let mut gate = Server::new(Pull::builder(&context).curve_server(&server.secret));
        assert_eq!(gate.admits(client(&alice)).as_deref(), Some("alice"));
        assert_eq!(gate.refuses(client(&bob)), HandshakeError::Refused(400));
        list.add_key(bob.public, "bob");
        assert_eq!(gate.admits(client(&bob)).as_deref(), Some("bob"));
        assert!(list.remove_key(&alice.public) && !list.remove_key(&alice.public));
        assert_eq!(gate.refuses(client(&alice)), HandshakeError::Refused(400));
        assert!(matches!(gate.refuses(Push::builder(&context)), HandshakeError::Protocol(_)));
    });
}

#[test]
fn without_a_handler_the_servers_key_is_enough() {
    with_watchdog(LIMIT, "without_a_handler", || {
        let [server, client] = [(); 2].map(|()| KeyPair::generate().unwrap());
        let context = Context::new();
        let mut gate = Server::new(Pull::builder(&context).curve_server(&server.secret));
        let knows = Push::builder(&context).curve_client(&server.public, &client);
        assert_eq!(gate.admits(knows), None);
        let mut strict =
            Server::new(Pull::builder(&context).curve_server(&server.secret).zap_domain("strict"));
        strict.refuses(Push::builder(&context).curve_client(&server.public, &client));
    });
}

#[test]
fn passwords_on_the_list_come_in() {
    with_watchdog(LIMIT, "passwords_on_the_list", || {
        let context = Context::new();
        let list = AllowList::new().password("joe", "swordfish");
        context.authenticate(list.clone()).unwrap();
        let client = |password| Push::builder(&context).plain_client("joe", password);
        let mut gate = Server::new(Pull::builder(&context).plain_server());
        assert_eq!(gate.admits(client("swordfish")).as_deref(), Some("joe"));
        assert_eq!(gate.refuses(client("sardine")), HandshakeError::Refused(400));
        list.remove_password("joe");
        assert_eq!(gate.refuses(client("swordfish")), HandshakeError::Refused(400));
    });
}

#[test]
fn plain_without_a_handler_lets_no_peer_in() {
    with_watchdog(LIMIT, "plain_without_a_handler", || {
        let context = Context::new();
        let mut gate = Server::new(Pull::builder(&context).plain_server());
        gate.refuses(Push::builder(&context).plain_client("joe", "swordfish"));
    });
}

#[test]
fn a_closure_judges() {
    with_watchdog(LIMIT, "a_closure_judges", || {
        let context = Context::new();
        let (seen, requests) = mpsc::channel();
        let handler = move |request: &Request| {
            seen.send((request.domain().to_owned(), request.address().to_owned())).unwrap();
            match request.credentials() {
                Credentials::Null => Verdict::admit("somebody").property("Colour", "green"),
                Credentials::Plain { username, .. } if username == "late" => Verdict::defer("tomorrow"),
                Credentials::Plain { .. } => panic!("on purpose"),
                _ => Verdict::refuse("no"),
            }
        };
        context.authenticate(handler).unwrap();
        let mut open = Server::new(Pull::builder(&context).zap_domain("open"));
        assert_eq!(open.admits(Push::builder(&context)).as_deref(), Some("somebody"));
        assert_eq!(requests.recv().unwrap(), ("open".to_owned(), "127.0.0.1".to_owned()));
        let mut gate = Server::new(Pull::builder(&context).plain_server());
        let client = |name| Push::builder(&context).plain_client(name, "x");
        assert_eq!(gate.refuses(client("late")), HandshakeError::Refused(300));
        // A handler that panics refuses the peer and stays in use.
        assert_eq!(gate.refuses(client("joe")), HandshakeError::Refused(500));
        assert_eq!(gate.refuses(client("late")), HandshakeError::Refused(300));
    });
}

#[test]
fn event_has_the_claim_of_a_refused_peer() {
    with_watchdog(LIMIT, "what_a_refused_peer_has_shown", || {
        let context = Context::new();
        let (server, client) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let with_key = || Push::builder(&context).curve_client(&server.public, &client);
        let with_name = || Push::builder(&context).plain_client("joe", "swordfish");
        let joe = Claim::Plain { username: "joe".to_owned() };

        // Without a handler, PLAIN accepts no peer. This does not count as a refusal by a handler.
        let mut plain = Server::new(Pull::builder(&context).plain_server());
        let event = plain.failure(with_name());
        assert!(matches!(event.kind, EventKind::HandshakeFailed(HandshakeError::Io(_))), "{event}");
        assert_eq!((event.claim.as_ref(), event.reason.as_str()), (Some(&joe), ""));

        context.authenticate(|_: &Request| Verdict::refuse("closed on Sundays")).unwrap();
        let event = plain.failure(with_name());
        assert_eq!(event.kind, EventKind::HandshakeFailed(HandshakeError::Refused(400)));
        assert_eq!((event.claim, event.reason.as_str()), (Some(joe), "closed on Sundays"));

        let mut curve = Server::new(Pull::builder(&context).curve_server(&server.secret));
        let event = curve.failure(with_key());
        assert_eq!(event.kind, EventKind::HandshakeFailed(HandshakeError::Refused(400)));
        let (local, remote) = (event.local.as_str(), event.remote.as_str());
        assert_eq!(local, curve.endpoint);
        assert!(remote.starts_with("tcp://127.0.0.1:"), "{event}");
        assert_eq!(
            event.to_string(),
            format!(
                "handshake failed: refused, key {}, \"closed on Sundays\" ({local} - {remote})",
                client.public
            )
        );
        assert_eq!(event.claim, Some(Claim::Curve { public_key: client.public }));

        // A peer without credentials, and a peer with another mechanism: both have no claim.
        let mut open = Server::new(Pull::builder(&context).zap_domain("open"));
        let event = open.failure(Push::builder(&context));
        assert_eq!((event.claim, event.reason.as_str()), (None, "closed on Sundays"));
        let event = curve.failure(Push::builder(&context));
        assert!(matches!(event.kind, EventKind::HandshakeFailed(HandshakeError::Protocol(_))), "{event}");
        assert_eq!((event.claim, event.reason.as_str()), (None, ""));

        // The peer itself only receives a number.
        let mut push = with_key().linger(Duration::ZERO).reconnect_interval(None).build().unwrap();
        let mut events = push.monitor().unwrap();
        push.connect(&curve.endpoint).unwrap();
        let event = events.find(|event| matches!(event.kind, EventKind::HandshakeFailed(_))).unwrap();
        assert_eq!(event.kind, EventKind::HandshakeFailed(HandshakeError::Refused(400)));
        assert_eq!((event.claim, event.reason.as_str()), (None, ""));
    });
}

#[test]
fn claim_is_reported_if_the_verdict_is_too_late() {
    with_watchdog(LIMIT, "before_the_verdict", || {
        let context = Context::new();
        let (asked, asking) = mpsc::channel();
        let (over, ended) = mpsc::channel::<()>();
        context
            .authenticate(move |_: &Request| {
                asked.send(()).unwrap();
                let _ = ended.recv();
                Verdict::refuse("too late")
            })
            .unwrap();
        let patience = Duration::from_millis(50);
        let mut gate = Server::new(Pull::builder(&context).plain_server().handshake_interval(patience));
        let push = Push::builder(&context).linger(Duration::ZERO).plain_client("joe", "x");
        let push = push.connect(&gate.endpoint).unwrap();
        asking.recv().unwrap();
        let failed = |event: &Event| matches!(event.kind, EventKind::HandshakeFailed(_));
        let event = gate.events.find(failed).unwrap();
        assert!(matches!(event.kind, EventKind::HandshakeFailed(HandshakeError::Io(_))), "{event}");
        assert_eq!(event.claim, Some(Claim::Plain { username: "joe".to_owned() }));
        assert_eq!(event.reason, "");
        drop((push, over));
    });
}

#[test]
fn the_handler_ends_with_its_context() {
    with_watchdog(LIMIT, "the_handler_ends", || {
        let context = Context::new();
        context.authenticate(AllowList::new()).unwrap();
        context.terminate().unwrap();
        assert_eq!(context.authenticate(AllowList::new()).unwrap_err(), Error::Terminated);
    });
}
