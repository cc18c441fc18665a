//! Passes a socket's statistics to the recorder.

use metrics::{Label, Unit};

use crate::kind::Kind;
use crate::monitor::Statistics;
use crate::{Socket, aio};

/// Reports the statistics of a socket to the recorder, from
/// [`Socket::reporter`](crate::Socket::reporter). See [`metrics`](crate::metrics).
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Pull};
///
/// let mut pull = Pull::builder(&Context::new()).bind("inproc://orders")?;
/// let mut reporter = pull.reporter("orders").label("region", "north");
/// // Regularly:
/// reporter.report(&pull.statistics()?);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Reporter {
    labels: Vec<Label>,
    /// Last reported values; `None` before the first report.
    last_reported: Option<Statistics>,
}

impl Reporter {
    fn new(socket: &'static str, name: String) -> Self {
        Reporter { labels: vec![Label::new("socket", socket), Label::new("name", name)], last_reported: None }
    }

    /// Adds a label to all metrics of this reporter. Each of its values creates its own series, so
    /// avoid values that change with each start, such as a random port.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push(Label::new(name.into(), value.into()));
        self
    }

    /// Adds the changes since the last call to the metrics. Pass the statistics of the reporter's
    /// socket.
    pub fn report(&mut self, statistics: &Statistics) {
        if self.last_reported.is_none() {
            METRICS.iter().for_each(Metric::describe);
        }
        let told = self.last_reported.replace(*statistics).unwrap_or_default();
        for metric in &METRICS {
            metric.add(&self.labels, (metric.number)(&told), (metric.number)(statistics));
        }
    }
}

/// Subtracts the socket's queued messages and peers from the gauges.
impl Drop for Reporter {
    fn drop(&mut self) {
        let Some(told) = self.last_reported else { return };
        for metric in METRICS.iter().filter(|metric| metric.kind == MetricKind::Gauge) {
            metric.add(&self.labels, (metric.number)(&told), 0);
        }
    }
}

impl<K: Kind> Socket<K> {
    /// Creates a reporter of the socket's [`statistics`](Self::statistics) under this name. The
    /// program calls [`Reporter::report`]; see [`metrics`](crate::metrics).
    pub fn reporter(&self, name: impl Into<String>) -> Reporter {
        Reporter::new(K::TYPE.name(), name.into())
    }
}

impl<K: Kind> aio::Socket<K> {
    /// See [`crate::Socket::reporter`].
    pub fn reporter(&self, name: impl Into<String>) -> Reporter {
        Reporter::new(K::TYPE.name(), name.into())
    }
}

/// One counter of the statistics as a metric.
struct Metric {
    name: &'static str,
    kind: MetricKind,
    unit: Unit,
    /// Distinguishes the metrics of one name.
    label: Option<(&'static str, &'static str)>,
    number: fn(&Statistics) -> u64,
    text: &'static str,
}

#[derive(PartialEq)]
enum MetricKind {
    Counter,
    Gauge,
}

/// One metric for each counter.
const METRICS: [Metric; size_of::<Statistics>() / size_of::<u64>()] = [
    counter("tautline_sent_messages_total", |all| all.messages_sent, "Messages handed to the peers' queues"),
    bytes("tautline_sent_bytes_total", |all| all.bytes_sent, "Bytes of sent messages, with frame headers"),
    counter(
        "tautline_received_messages_total",
        |all| all.messages_received,
        "Messages the program has received",
    ),
    bytes(
        "tautline_received_bytes_total",
        |all| all.bytes_received,
        "Bytes of received messages, with frame headers",
    ),
    dropped("full", |all| all.dropped_full),
    dropped("unroutable", |all| all.dropped_unroutable),
    dropped("lost", |all| all.lost),
    queued("out", |all| all.queued_out),
    queued("in", |all| all.queued_in),
    gauge("tautline_peers", |all| all.peers, "Peers that are connected or being connected"),
    counter("tautline_reconnects_total", |all| all.reconnects, "Connections lost and restored"),
    counter("tautline_failed_connects_total", |all| all.failed_connects, "Failed connection attempts"),
    counter("tautline_failed_handshakes_total", |all| all.failed_handshakes, "Failed or refused handshakes"),
    counter(
        "tautline_topics_refused_total",
        |all| all.topics_refused,
        "Subscriptions and messages of peers that may not use the topic",
    ),
];

type Number = fn(&Statistics) -> u64;

const fn counter(name: &'static str, number: Number, text: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Counter, unit: Unit::Count, label: None, number, text }
}

const fn bytes(name: &'static str, number: Number, text: &'static str) -> Metric {
    Metric { unit: Unit::Bytes, ..counter(name, number, text) }
}

const fn gauge(name: &'static str, number: Number, text: &'static str) -> Metric {
    Metric { kind: MetricKind::Gauge, ..counter(name, number, text) }
}

const fn dropped(reason: &'static str, number: Number) -> Metric {
    let text =
        "Messages not delivered: the peer was at its high-water mark, unknown, or permanently disconnected";
    Metric { label: Some(("reason", reason)), ..counter("tautline_dropped_messages_total", number, text) }
}

const fn queued(direction: &'static str, number: Number) -> Metric {
    let text = "Messages queued for sending (out), or for the program (in)";
    Metric { label: Some(("direction", direction)), ..gauge("tautline_queued_messages", number, text) }
}

impl Metric {
    fn describe(&self) {
        match self.kind {
            MetricKind::Counter => metrics::describe_counter!(self.name, self.unit, self.text),
            MetricKind::Gauge => metrics::describe_gauge!(self.name, self.unit, self.text),
        }
    }

    /// Reports the change from `before` to `now`. A change of zero is reported as well, so that the
    /// series exists from the start.
    fn add(&self, labels: &[Label], before: u64, now: u64) {
        let own = self.label.map(|(name, value)| Label::from_static_parts(name, value));
        let labels: Vec<Label> = labels.iter().cloned().chain(own).collect();
        match self.kind {
            MetricKind::Counter => {
                metrics::counter!(target: "tautline", self.name, labels)
                    .increment(now.saturating_sub(before));
            }
            MetricKind::Gauge => {
                let gauge = metrics::gauge!(target: "tautline", self.name, labels);
                if now >= before {
                    gauge.increment((now - before) as f64);
                } else {
                    gauge.decrement((before - now) as f64);
                }
            }
        }
    }
}
