//! The feature `metrics`: values that a recorder receives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::atomics::AtomicU64;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder,
};
use tautline::kind::Kind;
use tautline::metrics::Reporter;
use tautline::monitor::Statistics;
use tautline::{Context, Pull, Push, Router, Socket};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

/// Kind, unit and description of a metric.
type Described = (&'static str, Option<Unit>, String);

/// Stores the values by `name{label="value"}`, and the descriptions by name.
#[derive(Default)]
struct TestRecorder {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    described: Mutex<BTreeMap<String, Described>>,
}

fn shown(key: &Key) -> String {
    let labels: Vec<_> = key.labels().map(|label| format!("{}={:?}", label.key(), label.value())).collect();
    format!("{}{{{}}}", key.name(), labels.join(","))
}

impl TestRecorder {
    fn describe(&self, name: &KeyName, kind: &'static str, unit: Option<Unit>, text: &SharedString) {
        let described = (kind, unit, text.to_string());
        self.described.lock().unwrap().insert(name.as_str().to_owned(), described);
    }

    fn counter(&self, key: &str) -> u64 {
        self.counters.lock().unwrap()[key].load(Ordering::Relaxed)
    }

    fn gauge(&self, key: &str) -> f64 {
        f64::from_bits(self.gauges.lock().unwrap()[key].load(Ordering::Relaxed))
    }
}

impl Recorder for TestRecorder {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&name, "counter", unit, &text);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&name, "gauge", unit, &text);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("{name:?}");
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        assert_eq!(metadata.target(), "tautline");
        Counter::from_arc(self.counters.lock().unwrap().entry(shown(key)).or_default().clone())
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        assert_eq!(metadata.target(), "tautline");
        Gauge::from_arc(self.gauges.lock().unwrap().entry(shown(key)).or_default().clone())
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("{key:?}");
    }
}

fn report<K: Kind>(recorder: &TestRecorder, reporter: &mut Reporter, socket: &mut Socket<K>) -> Statistics {
    let statistics = socket.statistics().unwrap();
    with_local_recorder(recorder, || reporter.report(&statistics));
    statistics
}

fn each_with_another_number() -> (Statistics, BTreeMap<&'static str, u64>) {
    let (mut statistics, mut numbers) = (Statistics::default(), BTreeMap::new());
    macro_rules! number {
        ($($field:ident),*) => {$(
            statistics.$field = numbers.len() as u64 + 1;
            numbers.insert(stringify!($field), statistics.$field);
        )*};
    }
    number!(messages_sent, bytes_sent, messages_received, bytes_received, dropped_full, dropped_unroutable);
    number!(
        lost,
        queued_out,
        queued_in,
        peers,
        reconnects,
        failed_connects,
        failed_handshakes,
        topics_refused
    );
    (statistics, numbers)
}

#[test]
fn every_number_is_reported_as_documented() {
    let recorder = TestRecorder::default();
    let context = Context::new();
    let pull = Pull::new(&context).unwrap();
    let mut reporter = pull.reporter("orders");
    let (statistics, numbers) = each_with_another_number();
    with_local_recorder(&recorder, || reporter.report(&statistics));

    // | `name{label="value"}` | kind | unit | `field` and more |
    let text = include_str!("../src/metrics.rs");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("//! | `tautline_"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), numbers.len());
    let (mut names, mut fields) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let (metric, field) = (row[1].trim_matches('`'), row[4].split('`').nth(1).unwrap());
        let (name, label) = metric.split_once('{').unwrap_or((metric, "}"));
        let comma = if label == "}" { "" } else { "," };
        let key = format!(r#"{name}{{socket="PULL",name="orders"{comma}{label}"#);
        let unit = if row[3] == "bytes" { Unit::Bytes } else { Unit::Count };
        let described = recorder.described.lock().unwrap()[name].clone();
        assert_eq!((described.0, described.1), (row[2], Some(unit)), "{name}");
        assert!(!described.2.is_empty(), "{name}");
        let value = if row[2] == "gauge" { recorder.gauge(&key) as u64 } else { recorder.counter(&key) };
        assert_eq!(value, numbers[field], "{key}");
        names.insert(name);
        fields.insert(field);
    }
    assert_eq!(fields.len(), numbers.len());
    let described = recorder.described.lock().unwrap();
    assert!(described.keys().map(String::as_str).eq(names), "nothing but what is documented");
    let told = recorder.counters.lock().unwrap().len() + recorder.gauges.lock().unwrap().len();
    assert_eq!(told, numbers.len());
}

#[test]
fn counters_grow_and_gauges_go_up_and_down() {
    with_watchdog(LIMIT, "counters_grow", || {
        let recorder = TestRecorder::default();
        let context = Context::new();
        let mut pull = Pull::builder(&context).bind("inproc://jobs").unwrap();
        let mut push = Push::builder(&context).connect("inproc://jobs").unwrap();
        let mut incoming = pull.reporter("jobs").label("endpoint", "inproc://jobs");
        let labels = r#"{socket="PULL",name="jobs",endpoint="inproc://jobs"}"#;
        let received = format!("tautline_received_messages_total{labels}");
        let bytes = format!("tautline_received_bytes_total{labels}");
        let waiting = format!("tautline_queued_messages{},direction=\"in\"}}", &labels[..labels.len() - 1]);
        let peers = format!("tautline_peers{labels}");

        report(&recorder, &mut incoming, &mut pull);
        assert_eq!((recorder.counter(&received), recorder.gauge(&waiting)), (0, 0.0), "there from the start");

        for message in ["one", "two", "three"] {
            push.send(message).unwrap();
        }
        pull.recv().unwrap();
        report(&recorder, &mut incoming, &mut pull);
        assert_eq!((recorder.counter(&received), recorder.gauge(&waiting)), (1, 2.0));
        assert_eq!(recorder.gauge(&peers), 1.0);
        report(&recorder, &mut incoming, &mut pull);
        assert_eq!(recorder.counter(&received), 1, "nothing is counted twice");

        pull.recv().unwrap();
        pull.recv().unwrap();
        let statistics = report(&recorder, &mut incoming, &mut pull);
        assert_eq!((recorder.counter(&received), recorder.gauge(&waiting)), (3, 0.0));
        assert_eq!(recorder.counter(&bytes), statistics.bytes_received);

        let mut outgoing = push.reporter("jobs");
        report(&recorder, &mut outgoing, &mut push);
        assert_eq!(recorder.counter(r#"tautline_sent_messages_total{socket="PUSH",name="jobs"}"#), 3);
        assert_eq!(recorder.counter(&received), 3, "another kind is another series");
    });
}

#[test]
fn sockets_of_one_name_are_summed_while_open() {
    with_watchdog(LIMIT, "sockets_of_one_name", || {
        let recorder = TestRecorder::default();
        let context = Context::new();
        let mut workers: Vec<(Pull, Push, Reporter)> = (0..3)
            .map(|number| {
                let endpoint = format!("inproc://worker{number}");
                let pull = Pull::builder(&context).bind(&endpoint).unwrap();
                let reporter = pull.reporter("worker");
                (pull, Push::builder(&context).connect(&endpoint).unwrap(), reporter)
            })
            .collect();
        for (pull, push, reporter) in &mut workers {
            push.send("one").unwrap();
            push.send("two").unwrap();
            pull.recv().unwrap();
            report(&recorder, reporter, pull);
        }
        let received = r#"tautline_received_messages_total{socket="PULL",name="worker"}"#;
        let waiting = r#"tautline_queued_messages{socket="PULL",name="worker",direction="in"}"#;
        let peers = r#"tautline_peers{socket="PULL",name="worker"}"#;
        assert_eq!((recorder.counter(received), recorder.gauge(waiting)), (3, 3.0));
        assert_eq!(recorder.gauge(peers), 3.0);
        with_local_recorder(&recorder, || drop(workers.pop()));
        assert_eq!((recorder.counter(received), recorder.gauge(waiting)), (3, 2.0));
        with_local_recorder(&recorder, || drop(workers));
        assert_eq!((recorder.counter(received), recorder.gauge(waiting)), (3, 0.0));
        assert_eq!(recorder.gauge(peers), 0.0);
    });
}

#[test]
fn dropped_messages_have_a_reason_label() {
    let recorder = TestRecorder::default();
    let context = Context::new();
    let mut router = Router::builder(&context).bind("inproc://routes").unwrap();
    router.send_multipart(["nobody", "x"]).unwrap();
    let mut reporter = router.reporter("routes");
    report(&recorder, &mut reporter, &mut router);
    let dropped = |reason| {
        recorder.counter(&format!(
            r#"tautline_dropped_messages_total{{socket="ROUTER",name="routes",reason="{reason}"}}"#
        ))
    };
    assert_eq!((dropped("unroutable"), dropped("full"), dropped("lost")), (1, 0, 0));
}

#[test]
fn without_a_recorder_nothing_happens() {
    let recorder = TestRecorder::default();
    let mut pull = Pull::new(&Context::new()).unwrap();
    let mut reporter = pull.reporter("unheard");
    // A reporter without any report subtracts zero.
    with_local_recorder(&recorder, || drop(pull.reporter("silent")));
    assert!(recorder.gauges.lock().unwrap().is_empty());
    reporter.report(&pull.statistics().unwrap());
}

#[test]
fn a_task_reports_its_socket() {
    with_watchdog(LIMIT, "a_task_reports", || {
        let recorder = TestRecorder::default();
        smol::block_on(async {
            let context = Context::new();
            let mut pull = Pull::builder(&context).bind("inproc://tasks").unwrap().into_async();
            let mut push = Push::builder(&context).connect("inproc://tasks").unwrap().into_async();
            let mut reporter = pull.reporter("tasks");
            push.send("one").await.unwrap();
            pull.recv().await.unwrap();
            let statistics = pull.statistics().unwrap();
            with_local_recorder(&recorder, || reporter.report(&statistics));
        });
        assert_eq!(recorder.counter(r#"tautline_received_messages_total{socket="PULL",name="tasks"}"#), 1);
    });
}
