//! Connection events as events of the crate `tracing`: the feature `tracing`.
//!
//! The program makes no calls. With the feature, every socket reports to `tracing`, and the
//! program's subscriber prints or stores the events. They have the target `tautline`. Each event
//! belongs to the span `socket` of its socket. The parent of this span is the span in which the
//! socket was created.
//!
//! | level | events | fields beside `socket` (its kind), `local` and `remote` (the ends, as far as they are known) |
//! |---|---|---|
//! | WARN | `bind failed`, `accept failed`, `handshake failed`, `peer refused` | `reason`; of a refused peer `mechanism`, `peer` (key or name), `domain` |
//! | INFO | `peer connected`, `connection lost` | `reason` of the loss |
//! | DEBUG | `listening`, `accepted`, `connected`, `connect failed`, `reconnecting`, `closed` | `reason`, `after` |
//! | TRACE | `connecting` | |
//!
//! `peer connected` follows the handshake: messages can flow. The reason of a `handshake failed` is
//! only a number at a client, and at a server whose [`zap`](crate::zap) handler refused. ZMTP
//! transmits no more. `peer refused` comes from the handler's side, with the handler's text.
//!
//! Messages have no extra cost: events only occur when connections change. The I/O threads report
//! them while they hold locks. So a subscriber must not wait, and must not use a socket of this
//! crate itself. It can pass the event to a thread that does.
//!
//! ```
//! # #[cfg(feature = "tracing")] {
//! # use tracing::span::{Attributes, Id, Record};
//! # use tracing::{Event, Metadata};
//! # struct Stderr;
//! # impl tracing::Subscriber for Stderr {
//! #     fn enabled(&self, metadata: &Metadata<'_>) -> bool { metadata.target() == "tautline" }
//! #     fn new_span(&self, _: &Attributes<'_>) -> Id { Id::from_u64(1) }
//! #     fn record(&self, _: &Id, _: &Record<'_>) {}
//! #     fn record_follows_from(&self, _: &Id, _: &Id) {}
//! #     fn event(&self, event: &Event<'_>) { eprintln!("{event:?}") }
//! #     fn enter(&self, _: &Id) {}
//! #     fn exit(&self, _: &Id) {}
//! # }
//! // In a program: tracing_subscriber::fmt().init();
//! tracing::subscriber::set_global_default(Stderr).unwrap();
//! let mut pull = tautline::Pull::new(&tautline::Context::new()).unwrap();
//! pull.bind("tcp://127.0.0.1:*").unwrap(); // DEBUG tautline: listening socket=PULL local=tcp://127.0.0.1:40001
//! # }
//! ```

#[cfg(feature = "tracing")]
mod events;
#[cfg(feature = "tracing")]
pub(crate) use events::{report_events, report_refusal};
