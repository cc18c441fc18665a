//! `Publisher` and `Subscriber`: the native parts of the classes of `tautline_zmq.topics`.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tautline::topics;

use crate::context::Context;
use crate::owned::{self, Options, Owned};
use crate::replay::message;

/// Interval at which a publisher that waits serves the subscriber of the same space.
const SERVE_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TopicPublisher>()?;
    module.add_class::<TopicSubscriber>()?;
    module.add_function(wrap_pyfunction!(open_topics, module)?)?;
    module.add_function(wrap_pyfunction!(topic_matches, module)?)?;
    module.add_function(wrap_pyfunction!(topic_endpoint, module)?)
}

/// The publishing half of a space.
#[pyclass(frozen, weakref, module = "tautline_zmq._native")]
pub(crate) struct TopicPublisher(Owned<topics::Publisher>);

/// The subscribing half of a space.
#[pyclass(frozen, weakref, module = "tautline_zmq._native")]
pub(crate) struct TopicSubscriber(Owned<topics::Subscriber>);

/// Binds a PUB and connects a SUB, and returns both halves.
#[pyfunction]
fn open_topics(
    py: Python<'_>,
    context: &Bound<'_, Context>,
    bind: Vec<String>,
    connect: Vec<String>,
    receive_own: bool,
    publish_options: Options,
    subscribe_options: Options,
) -> PyResult<(TopicPublisher, TopicSubscriber)> {
    let builder = topics::Topics::builder(&owned::context(py, context)?)
        .receive_own(receive_own)
        .publish_with(|socket| owned::with_options(socket, &publish_options))
        .subscribe_with(|socket| owned::with_options(socket, &subscribe_options));
    let builder = bind.into_iter().fold(builder, topics::TopicsBuilder::bind);
    let builder = connect.into_iter().fold(builder, topics::TopicsBuilder::connect);
    let made = py.detach(|| builder.build()).map_err(|error| owned::exception(py, &error))?;
    let (publisher, subscriber) = made.split();
    Ok((TopicPublisher(Owned::new(publisher)), TopicSubscriber(Owned::new(subscriber))))
}

/// True if a pattern matches a topic.
#[pyfunction]
fn topic_matches(py: Python<'_>, pattern: &str, topic: &str) -> PyResult<bool> {
    match pattern.parse::<topics::Pattern>() {
        Ok(pattern) => Ok(pattern.matches(topic)),
        Err(error) => Err(owned::exception(py, &error)),
    }
}

/// Returns the endpoint of a space.
#[pyfunction]
fn topic_endpoint(space: &str) -> String {
    topics::endpoint(space)
}

#[pymethods]
impl TopicPublisher {
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    fn publish(&self, py: Python<'_>, topic: &str, body: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut body = message(body)?;
        self.0.call(py, |publisher| publisher.publish(topic, body.share()))
    }

    /// Waits for `count` subscriptions. During the wait, `subscriber` connects to new members.
    fn wait_for_subscriptions(
        &self,
        py: Python<'_>,
        subscriber: &TopicSubscriber,
        count: i64,
        timeout: Option<i64>,
    ) -> PyResult<bool> {
        let (count, deadline) = (owned::count("count", count)?, owned::deadline(timeout));
        loop {
            // If another thread is inside, that thread serves the subscriber.
            let now = Some(Instant::now());
            subscriber
                .0
                .wait(py, now, |subscriber, _| subscriber.socket().wait_readable(Duration::ZERO).map(Some))?;
            let waited = self.0.wait(py, now, |publisher, _| {
                let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
                let interval = left.map_or(SERVE_INTERVAL, |left| left.min(SERVE_INTERVAL));
                publisher.wait_for_subscriptions(count, interval).map(Some)
            })?;
            if waited == Some(true) {
                return Ok(true);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(false);
            }
        }
    }

    /// Returns the bound endpoint.
    fn last_endpoint(&self, py: Python<'_>) -> PyResult<String> {
        self.0.call(py, |publisher| publisher.socket().last_endpoint())
    }

    /// Returns the numbers of published and of dropped messages.
    fn statistics(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.0.call(py, |publisher| {
            publisher.statistics().map(|counters| (counters.published, counters.dropped))
        })
    }

    fn close(&self, py: Python<'_>, linger: Option<i64>, wait: bool) {
        self.0.close(py, wait, |publisher| owned::set_linger(publisher.socket(), linger));
    }
}

#[pymethods]
impl TopicSubscriber {
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    fn subscribe(&self, py: Python<'_>, pattern: &str) -> PyResult<()> {
        self.0.call(py, |subscriber| subscriber.subscribe(pattern))
    }

    fn unsubscribe(&self, py: Python<'_>, pattern: &str) -> PyResult<()> {
        self.0.call(py, |subscriber| subscriber.unsubscribe(pattern))
    }

    fn patterns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.0.call(py, |subscriber| {
            Ok(subscriber.patterns().iter().map(|one| one.as_str().to_owned()).collect())
        })
    }

    /// Waits for a message, takes up to `max` messages that have arrived, and returns them as pairs.
    /// The list is empty after `timeout` milliseconds.
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<i64>, max: usize) -> PyResult<Bound<'py, PyList>> {
        let updates = self.0.wait(py, owned::deadline(timeout), |subscriber, slice| {
            let Some(first) = subscriber.recv_within(slice)? else { return Ok(None) };
            let mut updates = vec![first];
            while updates.len() < max {
                match subscriber.try_recv() {
                    Ok(Some(update)) => updates.push(update),
                    // The next call meets the error again.
                    Ok(None) | Err(_) => break,
                }
            }
            Ok(Some(updates))
        })?;
        let list = PyList::empty(py);
        for update in updates.into_iter().flatten() {
            let topic = update.topic.to_string_lossy();
            list.append((topic, PyBytes::new(py, &update.body)))?;
        }
        Ok(list)
    }

    /// Returns the counters by name.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.0.call(py, |subscriber| Ok(subscriber.statistics()))?;
        let named = PyDict::new(py);
        named.set_item("received", counters.received)?;
        named.set_item("filtered", counters.filtered)?;
        named.set_item("own", counters.own)?;
        named.set_item("malformed", counters.malformed)?;
        Ok(named)
    }

    fn close(&self, py: Python<'_>, wait: bool) {
        self.0.close(py, wait, |_| {});
    }
}
