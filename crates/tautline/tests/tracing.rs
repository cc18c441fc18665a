//! The feature `tracing`: events that a subscriber receives.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, Once};
use std::time::Duration;

use tautline::curve::KeyPair;
use tautline::zap::{Request, Verdict};
use tautline::{Context, Pull, Push};
use tautline_testkit::with_watchdog;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata};

const LIMIT: Duration = Duration::from_secs(60);

/// An event: its level, its fields as text (including `message`), and the name of its span.
#[derive(Debug, Clone)]
struct RecordedEvent(Level, BTreeMap<&'static str, String>, Option<&'static str>);

impl RecordedEvent {
    fn field(&self, name: &str) -> &str {
        self.1.get(name).map_or("", String::as_str)
    }
}

static HEARD: Mutex<Vec<RecordedEvent>> = Mutex::new(Vec::new());
static MORE: Condvar = Condvar::new();
static SPANS: Mutex<BTreeMap<u64, &'static str>> = Mutex::new(BTreeMap::new());

struct Recorder(AtomicU64);

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl tracing::Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tautline"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.fetch_add(1, Ordering::Relaxed);
        SPANS.lock().unwrap().insert(id, span.metadata().name());
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        let span = event.parent().and_then(|id| SPANS.lock().unwrap().get(&id.into_u64()).copied());
        HEARD.lock().unwrap().push(RecordedEvent(*event.metadata().level(), fields.0, span));
        MORE.notify_all();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// One recorder for all tests, because events of I/O threads only reach the global subscriber.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Recorder(AtomicU64::new(1))).unwrap());
}

/// Waits for the event with this text, on a socket of this kind with `endpoint` as one of its ends.
fn heard(message: &str, socket: &str, endpoint: &str) -> RecordedEvent {
    let fits = |event: &&RecordedEvent| {
        event.field("message") == message
            && event.field("socket") == socket
            && [event.field("local"), event.field("remote")].contains(&endpoint)
    };
    let mut all = HEARD.lock().unwrap();
    loop {
        if let Some(event) = all.iter().find(fits) {
            return event.clone();
        }
        all = MORE.wait(all).unwrap();
    }
}

#[test]
fn connect_and_loss_are_traced() {
    with_watchdog(LIMIT, "connections_are_told", || {
        listen();
        let context = Context::new();
        let mut pull = Pull::new(&context).unwrap();
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        let listening = heard("listening", "PULL", &endpoint);
        assert_eq!((listening.0, listening.2), (Level::DEBUG, Some("socket")));
        assert_eq!((listening.field("local"), listening.field("remote")), (endpoint.as_str(), ""));

        let mut push = Push::builder(&context).connect(&endpoint).unwrap();
        push.send("hello").unwrap();
        assert_eq!(pull.recv().unwrap(), "hello");
        for (message, socket, level) in [
            ("connected", "PUSH", Level::DEBUG),
            ("accepted", "PULL", Level::DEBUG),
            ("peer connected", "PUSH", Level::INFO),
            ("peer connected", "PULL", Level::INFO),
        ] {
            let event = heard(message, socket, &endpoint);
            assert_eq!(event.0, level, "{event:?}");
            assert!(!event.field("local").is_empty() && !event.field("remote").is_empty(), "{event:?}");
        }

        drop(push);
        let lost = heard("connection lost", "PULL", &endpoint);
        assert_eq!((lost.0, lost.field("reason")), (Level::INFO, "the peer closed the connection"));
        pull.unbind(&endpoint).unwrap();
        assert_eq!(heard("closed", "PULL", &endpoint).0, Level::DEBUG);
    });
}

#[test]
fn failed_attempt_is_traced_with_reason() {
    with_watchdog(LIMIT, "attempts_that_fail", || {
        listen();
        let context = Context::new();
        // The port is taken at one address, and no socket listens at the other.
        let mut taken = Pull::new(&context).unwrap();
        let here = taken.bind("tcp://127.0.0.1:*").unwrap();
        let nobody = here.replace("127.0.0.1", "127.0.0.2");
        let push = Push::builder(&context).linger(Duration::ZERO).connect(&nobody).unwrap();
        let failed = heard("connect failed", "PUSH", &nobody);
        assert_eq!(failed.0, Level::DEBUG);
        assert!(failed.field("reason").contains("refused"), "{failed:?}");
        assert!(heard("reconnecting", "PUSH", &nobody).field("after").ends_with("ms"));
        drop(push);

        assert!(Pull::builder(&context).bind(&here).is_err());
        let refused = heard("bind failed", "PULL", here.trim_start_matches("tcp://"));
        assert_eq!(refused.0, Level::WARN);
        assert!(refused.field("reason").contains("in use"), "{refused:?}");
    });
}

#[test]
fn refused_peer_is_traced_by_its_key() {
    with_watchdog(LIMIT, "a_refused_peer", || {
        listen();
        let context = Context::new();
        let (server, client) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        context.authenticate(|_: &Request| Verdict::refuse("not on the list")).unwrap();
        let mut pull =
            Pull::builder(&context).curve_server(&server.secret).zap_domain("shop").build().unwrap();
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        let push = Push::builder(&context)
            .curve_client(&server.public, &client)
            .linger(Duration::ZERO)
            .connect(&endpoint)
            .unwrap();

        let refused = heard("peer refused", "", "127.0.0.1");
        assert_eq!((refused.0, refused.field("mechanism")), (Level::WARN, "CURVE"));
        assert_eq!(refused.field("peer"), client.public.to_string());
        assert_eq!((refused.field("domain"), refused.field("reason")), ("shop", "not on the list"));
        for socket in ["PULL", "PUSH"] {
            let failed = heard("handshake failed", socket, &endpoint);
            assert_eq!((failed.0, failed.field("reason")), (Level::WARN, "refused"), "{failed:?}");
        }
        drop(push);
    });
}
