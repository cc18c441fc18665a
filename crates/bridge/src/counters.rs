//! What a route has done, as `--stats` shows it, and the tools that look at observed processes.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use tautline::monitor::RouteReport;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The numbers of one route. They only grow, but for `waiting`.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: Count,)*
        }

        impl Counters {
            /// All of them by name.
            pub fn object(&self, route: &str) -> Value {
                let mut object = Map::new();
                object.insert("route".to_owned(), json!(route));
                $(object.insert(stringify!($name).to_owned(), json!(self.$name.get()));)*
                Value::Object(object)
            }

            /// The same for the file of counters.
            pub fn report(&self, route: &str, promise: &str) -> RouteReport {
                let mut report = RouteReport::default();
                (report.name, report.promise) = (route.to_owned(), promise.to_owned());
                $(report.$name = self.$name.get();)*
                report
            }
        }
    };
}

counters! {
    /// Messages that have come, from the side where the route begins.
    received,
    /// Messages that are done: handed over, stored or worked off, as the route promises.
    done,
    /// Messages that the route lets go of where it promises nothing: no connection, or no room.
    dropped,
    /// Messages that cannot go this way at all: without a subject, too large, malformed.
    refused,
    /// Messages that have come from NATS, and no subscriber wanted them.
    unwanted,
    /// Attempts after the first: published again, or given to another worker.
    again,
    /// Messages that the stream had already, and did not store a second time.
    known,
    /// Messages in the hands of the bridge: not acknowledged, or with a worker.
    waiting,
}

/// One number.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

// Relaxed: the numbers say nothing about each other.
impl Count {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// As many as that, for `waiting`.
    pub fn set(&self, value: usize) {
        self.0.store(value as u64, Ordering::Relaxed);
    }

    /// How many.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
