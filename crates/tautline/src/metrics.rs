//! Socket statistics as metrics of the crate `metrics`: the feature `metrics`.
//!
//! The thread that owns the socket reads its statistics, so no background work is needed. The
//! program creates a `Reporter` by `Socket::reporter` or `aio::Socket::reporter`. It regularly
//! passes the socket's [`Statistics`](crate::monitor::Statistics) to it, for example every ten
//! seconds. Install the program's recorder first, such as `metrics-exporter-prometheus`. Messages
//! have no extra cost.
//!
//! | metric | kind | unit | source |
//! |---|---|---|---|
//! | `tautline_sent_messages_total` | counter | count | `messages_sent` |
//! | `tautline_sent_bytes_total` | counter | bytes | `bytes_sent`: with frame headers |
//! | `tautline_received_messages_total` | counter | count | `messages_received` |
//! | `tautline_received_bytes_total` | counter | bytes | `bytes_received`: with frame headers |
//! | `tautline_dropped_messages_total{reason="full"}` | counter | count | `dropped_full` |
//! | `tautline_dropped_messages_total{reason="unroutable"}` | counter | count | `dropped_unroutable` |
//! | `tautline_dropped_messages_total{reason="lost"}` | counter | count | `lost` |
//! | `tautline_queued_messages{direction="out"}` | gauge | count | `queued_out` |
//! | `tautline_queued_messages{direction="in"}` | gauge | count | `queued_in` |
//! | `tautline_peers` | gauge | count | `peers` |
//! | `tautline_reconnects_total` | counter | count | `reconnects` |
//! | `tautline_failed_connects_total` | counter | count | `failed_connects` |
//! | `tautline_failed_handshakes_total` | counter | count | `failed_handshakes` |
//! | `tautline_topics_refused_total` | counter | count | `topics_refused` |
//!
//! All metrics have the labels `socket`, the type of the socket (`PULL`), and `name`, which the
//! program chooses. The program can add labels, for example the endpoint. The values of sockets
//! with equal labels are added, so a pool of workers can share one name. When a reporter is
//! dropped, its share of the gauges is subtracted.
//!
//! ```
//! # #[cfg(feature = "metrics")]
//! # fn main() -> tautline::Result<()> {
//! use std::time::{Duration, Instant};
//! use tautline::{Context, Error, Pull, Push};
//!
//! let context = Context::new();
//! // In a program: metrics_exporter_prometheus::PrometheusBuilder::new().install().unwrap();
//! let mut pull = Pull::builder(&context).receive_timeout(Duration::from_secs(1)).build()?;
//! let endpoint = pull.bind("tcp://127.0.0.1:*")?;
//! let mut reporter = pull.reporter("orders").label("endpoint", &endpoint);
//! # let mut push = Push::builder(&context).connect(&endpoint)?;
//! # push.send("one")?;
//!
//! let mut reported = Instant::now();
//! loop {
//!     match pull.recv() {
//!         Ok(order) => println!("{order:?}"),
//!         // No message arrived for a second.
//!         Err(Error::TimedOut) => {}
//!         Err(error) => return Err(error),
//!     }
//!     if reported.elapsed() > Duration::from_secs(10) {
//!         reporter.report(&pull.statistics()?);
//!         reported = Instant::now();
//!     }
//! #   reporter.report(&pull.statistics()?);
//! #   return Ok(());
//! }
//! # }
//! # #[cfg(not(feature = "metrics"))]
//! # fn main() {}
//! ```

#[cfg(feature = "metrics")]
mod reporter;
#[cfg(feature = "metrics")]
pub use reporter::Reporter;
