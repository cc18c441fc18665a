//! `ReliablePub` and `ReliableSub`: the native parts of the classes of `tautline_zmq.replay`.

use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tautline::Message;
use tautline::replay::{self, Delivery, Start};

use crate::buffer::Buffer;
use crate::context::Context;
use crate::owned::{self, Options, Owned};

/// Numbers of the items that `recv` returns, in `tautline_zmq.replay`.
const MESSAGE: u8 = 0;
const LOST: u8 = 1;
const RESTARTED: u8 = 2;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ReliablePub>()?;
    module.add_class::<ReliableSub>()
}

/// See `tautline_zmq.replay.ReliablePub`.
#[pyclass(frozen, weakref, module = "tautline_zmq._native")]
pub(crate) struct ReliablePub(Owned<replay::ReliablePub>);

#[pymethods]
impl ReliablePub {
    #[new]
    fn new(
        py: Python<'_>,
        context: &Bound<'_, Context>,
        keep: i64,
        keep_bytes: i64,
        options: Options,
        ring_options: Options,
    ) -> PyResult<Self> {
        let builder = replay::ReliablePub::builder(&owned::context(py, context)?)
            .keep(owned::count("keep", keep)?)
            .keep_bytes(owned::count("keep_bytes", keep_bytes)?)
            .with_socket(|socket| owned::with_options(socket, &options))
            .with_ring(|ring| owned::with_options(ring, &ring_options));
        builder
            .build()
            .map(|made| ReliablePub(Owned::new(made)))
            .map_err(|error| owned::exception(py, &error))
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    fn bind(&self, py: Python<'_>, endpoint: &str) -> PyResult<String> {
        self.0.call(py, |publisher| publisher.bind(endpoint))
    }

    fn connect(&self, py: Python<'_>, endpoint: &str) -> PyResult<()> {
        self.0.call(py, |publisher| publisher.connect(endpoint))
    }

    fn serve(&self, py: Python<'_>, endpoint: &str) -> PyResult<String> {
        self.0.call(py, |publisher| publisher.serve(endpoint))
    }

    fn send(&self, py: Python<'_>, topic: &Bound<'_, PyAny>, body: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (mut topic, mut body) = (message(topic)?, message(body)?);
        self.0.call(py, |publisher| publisher.send(topic.share(), body.share()))
    }

    fn wait_for_subscriptions(&self, py: Python<'_>, count: i64, timeout: Option<i64>) -> PyResult<bool> {
        let count = owned::count("count", count)?;
        let waited = self.0.wait(py, owned::deadline(timeout), |publisher, slice| {
            Ok(publisher.socket().wait_for_subscriptions(count, slice)?.then_some(()))
        })?;
        Ok(waited.is_some())
    }

    /// Returns the number of the next message and the number of kept messages.
    fn numbers(&self, py: Python<'_>) -> PyResult<(u64, usize)> {
        self.0.call(py, |publisher| Ok((publisher.next_number(), publisher.kept_messages())))
    }

    #[pyo3(signature = (linger, wait))]
    fn close(&self, py: Python<'_>, linger: Option<i64>, wait: bool) {
        self.0.close(py, wait, |publisher| owned::set_linger(publisher.socket(), linger));
    }
}

/// See `tautline_zmq.replay.ReliableSub`.
#[pyclass(frozen, weakref, module = "tautline_zmq._native")]
pub(crate) struct ReliableSub(Owned<replay::ReliableSub>);

#[pymethods]
impl ReliableSub {
    /// `start` is -1 for live messages, -2 for the oldest one, -3 for the last of each topic, or a
    /// number.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "Python passes them by position")]
    fn new(
        py: Python<'_>,
        context: &Bound<'_, Context>,
        publisher: &str,
        ring: &str,
        prefixes: Vec<Vec<u8>>,
        start: i128,
        answer_timeout: u64,
        options: Options,
        ring_options: Options,
    ) -> PyResult<Self> {
        let start = match start {
            -1 => Start::Live,
            -2 => Start::Oldest,
            -3 => Start::LastOfEachTopic,
            number => Start::Number(u64::try_from(number).unwrap_or(u64::MAX)),
        };
        let builder = replay::ReliableSub::builder(&owned::context(py, context)?)
            .start(start)
            .answer_timeout(Duration::from_millis(answer_timeout))
            .with_socket(|socket| owned::with_options(socket, &options))
            .with_ring(|socket| owned::with_options(socket, &ring_options));
        let builder = prefixes.iter().fold(builder, |builder, prefix| builder.subscribe(prefix));
        let made = builder.connect(publisher, ring);
        made.map(|made| ReliableSub(Owned::new(made))).map_err(|error| owned::exception(py, &error))
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits for a delivery, takes up to `max` deliveries that are ready, and returns them. The list
    /// is empty after `timeout` milliseconds.
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<i64>, max: usize) -> PyResult<Bound<'py, PyList>> {
        let deliveries = self.0.wait(py, owned::deadline(timeout), |subscriber, slice| {
            let Some(first) = subscriber.recv_within(slice)? else { return Ok(None) };
            let mut deliveries = vec![first];
            while deliveries.len() < max {
                match subscriber.try_recv() {
                    Ok(Some(delivery)) => deliveries.push(delivery),
                    // The next call meets the error again.
                    Ok(None) | Err(_) => break,
                }
            }
            Ok(Some(deliveries))
        })?;
        let list = PyList::empty(py);
        for delivery in deliveries.into_iter().flatten() {
            list.append(item(py, delivery)?)?;
        }
        Ok(list)
    }

    /// Returns the counters by name.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.0.call(py, |subscriber| Ok(subscriber.statistics()))?;
        let counters = [
            ("live", counters.live),
            ("repaired", counters.repaired),
            ("lost", counters.lost),
            ("restarts", counters.restarts),
            ("requests", counters.requests),
            ("unanswered", counters.unanswered),
            ("malformed", counters.malformed),
            ("outdated", counters.outdated),
        ];
        let named = PyDict::new(py);
        for (name, counter) in counters {
            named.set_item(name, counter)?;
        }
        Ok(named)
    }

    fn close(&self, py: Python<'_>, wait: bool) {
        self.0.close(py, wait, |_| {});
    }
}

/// Returns a delivery as a tuple that begins with its kind.
fn item(py: Python<'_>, delivery: Delivery) -> PyResult<Py<PyAny>> {
    match delivery {
        Delivery::Message(update) => {
            let (topic, body) = (PyBytes::new(py, &update.topic), PyBytes::new(py, &update.body));
            (MESSAGE, topic, update.number, body, update.replayed).into_py_any(py)
        }
        Delivery::Lost { first, last } => (LOST, first, last).into_py_any(py),
        _ => (RESTARTED,).into_py_any(py),
    }
}

/// Copies the memory of an object.
pub(crate) fn message(object: &Bound<'_, PyAny>) -> PyResult<Message> {
    Ok(match object.cast_exact::<PyBytes>() {
        Ok(bytes) => Message::from(bytes.as_bytes()),
        Err(_) => Message::from(Buffer::of(object)?.as_slice()),
    })
}
