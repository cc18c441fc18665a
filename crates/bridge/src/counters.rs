//! Counters of a route, for `--stats` and for the tools that read observed processes.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use tautline::monitor::RouteReport;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of one route. Only `waiting` can decrease.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: Count,)*
        }

        impl Counters {
            /// Returns all counters by name.
            pub fn object(&self, route: &str) -> Value {
                let mut object = Map::new();
                object.insert("route".to_owned(), json!(route));
                $(object.insert(stringify!($name).to_owned(), json!(self.$name.get()));)*
                Value::Object(object)
            }

            /// Returns the counters for the counter file of an observed process.
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
    /// Messages received from the side where the route begins.
    received,
    /// Finished messages: delivered, stored or worked off, as the route promises.
    done,
    /// Messages dropped by a route that may drop them: no connection, or no room.
    dropped,
    /// Messages that the route can never forward: no subject, too large, or malformed.
    refused,
    /// Messages from NATS that no subscriber wanted.
    unwanted,
    /// Attempts after the first: published again, or given to another worker.
    again,
    /// Duplicates: messages that the stream already had and did not store again.
    known,
    /// Messages that are not acknowledged yet, or that a worker is processing.
    waiting,
}

/// One counter.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

// Relaxed: no counter orders another one.
impl Count {
    /// Adds one.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the value, for `waiting`.
    pub fn set(&self, value: usize) {
        self.0.store(value as u64, Ordering::Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
