//! A route of the configuration file.

use std::time::{Duration, SystemTime};

use tautline::endpoint;
use toml::Spanned;

use super::file::{self, OneOrMore};
use super::{Lines, duration, name};
use crate::fault::BridgeError;
use crate::topic::Mapping;

/// Default number of messages on their way to the stream.
const WINDOW: usize = 256;
/// Largest number of messages on their way to the stream.
const WINDOW_MAX: usize = 65_536;

/// A route. Compare routes with `has_same_settings`, which ignores their lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Name of the route.
    pub name: String,
    /// ZeroMQ side of the route: socket type and endpoints.
    pub link: Link,
    /// Mapping between topics and subjects.
    pub mapping: Mapping,
    /// Task of the route, and its promise.
    pub job: Job,
    /// Line in the file. `has_same_settings` ignores it.
    pub line: usize,
    /// Line of its stream in the file.
    pub stream_line: usize,
}

impl Route {
    /// True if both are equal, apart from their line numbers.
    pub fn has_same_settings(&self, other: &Route) -> bool {
        (&self.name, &self.link, &self.mapping, &self.job)
            == (&other.name, &other.link, &other.mapping, &other.job)
    }
}

/// Socket of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Type of the socket.
    pub socket: SocketType,
    /// Endpoints to bind.
    pub bind: Vec<String>,
    /// Endpoints to connect.
    pub connect: Vec<String>,
    /// Subscriptions of a SUB.
    pub subscribe: Vec<String>,
    /// High-water mark in both directions.
    pub hwm: Option<u32>,
    /// Length limit of a received part, in bytes.
    pub max_message_bytes: Option<u64>,
    /// True if the ROUTER reports disconnected peers.
    pub notify: bool,
    /// True if the PUB waits for slow subscribers.
    pub patient: bool,
}

/// Socket types of routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketType {
    /// Subscribes.
    Sub,
    /// Receives work.
    Pull,
    /// Publishes, and receives the subscriptions of its peers.
    Pub,
    /// Distributes work.
    Push,
    /// Addresses each peer by its routing id.
    Router,
    /// Asks its peers in turn.
    Dealer,
}

/// Place in a stream where a replay begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The first message of the stream.
    First,
    /// The next new message.
    New,
    /// The message with this sequence number.
    Sequence(u64),
    /// The first message at or after this time.
    Time(SystemTime),
}

/// Task of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// *As it comes*, into NATS.
    Publish,
    /// *As it comes*, out of NATS: `group` is the queue group, `queue` the length of the queue,
    /// `subscriptions` the limit of subscriptions.
    Deliver { group: Option<String>, queue: usize, subscriptions: usize },
    /// *Stored*: into a stream.
    Stored { stream: String, window: usize, id_part: Option<usize> },
    /// *Worked off*: out of a stream. A message stays pending until a worker answers.
    WorkedOff {
        stream: String,
        consumer: String,
        window: usize,
        answer_within: Duration,
        attempts: Option<u32>,
    },
    /// *Replay*: out of a stream, from a place in it.
    Replay { stream: String, start: Start, sequence: bool },
}

impl Job {
    /// Returns the name of the promise in the file.
    pub fn promise(&self) -> &'static str {
        match self {
            Job::Publish | Job::Deliver { .. } => "as it comes",
            Job::Stored { .. } => "stored",
            Job::WorkedOff { .. } => "worked off",
            Job::Replay { .. } => "replay",
        }
    }

    /// Returns the stream that the route needs.
    pub fn stream(&self) -> Option<&str> {
        match self {
            Job::Publish | Job::Deliver { .. } => None,
            Job::Stored { stream, .. } | Job::WorkedOff { stream, .. } | Job::Replay { stream, .. } => {
                Some(stream)
            }
        }
    }
}

/// Default limit of the topics that the subscribers of a PUB *as it comes* may request.
const SUBSCRIPTIONS: usize = 10_000;

const PROMISES: &str = "the promises are \"as it comes\", \"stored\", \"worked off\" and \"replay\"";

/// Checks the table of the file.
pub fn check(raw: Spanned<file::Route>, lines: Lines<'_>) -> Result<Route, BridgeError> {
    let table = lines.of(Some(raw.span()));
    let mut raw = raw.into_inner();
    let (line, name) = name(raw.name.clone(), lines)?;
    let (promise_line, promise) = lines.take(raw.promise.clone());
    let (socket_line, socket) = lines.take(raw.socket.clone());
    let fits = |types: &[(&str, SocketType)]| {
        let known = types.iter().find(|(known, _)| *known == socket);
        known.map(|(_, socket)| *socket).ok_or_else(|| {
            let names: Vec<_> = types.iter().map(|(name, _)| *name).collect();
            BridgeError::new(
                socket_line,
                format!("a route {promise:?} cannot use the socket {socket:?}: use {}", names.join(", ")),
            )
        })
    };
    use SocketType as T;
    let socket = match promise.as_str() {
        "as it comes" => fits(&[("SUB", T::Sub), ("PULL", T::Pull), ("PUB", T::Pub), ("PUSH", T::Push)])?,
        "stored" => fits(&[("PULL", T::Pull), ("SUB", T::Sub), ("ROUTER", T::Router)])?,
        "worked off" => fits(&[("DEALER", T::Dealer), ("ROUTER", T::Router)])?,
        "replay" => fits(&[("PUB", T::Pub)])?,
        _ => return Err(BridgeError::new(promise_line, format!("{promise:?} is not a promise: {PROMISES}"))),
    };
    let mapping = mapping(&mut raw, lines)?;
    let stream_line = raw.stream.as_ref().map_or(line, |stream| lines.of(Some(stream.span())));
    let job = match (promise.as_str(), socket) {
        ("as it comes", T::Sub | T::Pull) => Job::Publish,
        ("as it comes", _) => deliver(&mut raw, lines)?,
        ("stored", _) => parse_stored(&mut raw, lines, line)?,
        ("worked off", _) => parse_work_queue(&mut raw, lines, line)?,
        _ => replay(&mut raw, lines, line)?,
    };
    let notify = matches!(job, Job::WorkedOff { .. }) && socket == T::Router;
    let patient = matches!(job, Job::Replay { .. });
    let link = link(&mut raw, socket, lines, line, notify, patient)?;
    if let Some((line, what)) = unused_key(&raw, lines) {
        let what =
            format!("`{what}` is not valid in a route {promise:?} whose socket is {}", raw.socket.get_ref());
        return Err(BridgeError::new(line.max(table), what));
    }
    Ok(Route { name, link, mapping, job, line, stream_line })
}

fn mapping(raw: &mut file::Route, lines: Lines<'_>) -> Result<Mapping, BridgeError> {
    let (line, subject) = lines.take(raw.subject.clone());
    let separator = match raw.separator.take() {
        None => b'.',
        Some(value) => match lines.take(value) {
            (_, text) if text.len() == 1 && text.as_bytes()[0].is_ascii_graphic() => text.as_bytes()[0],
            (line, text) => {
                return Err(BridgeError::new(
                    line,
                    format!("{text:?} is not a separator: use one character, such as \"/\""),
                ));
            }
        },
    };
    let topic = raw.topic.take().map(|topic| lines.take(topic).1).unwrap_or_default();
    let whole_tokens = raw.whole_tokens.take().is_some_and(Spanned::into_inner);
    Mapping::new(&subject, topic.as_bytes(), separator, whole_tokens)
        .map_err(|what| BridgeError::new(line, what))
}

fn link(
    raw: &mut file::Route,
    socket: SocketType,
    lines: Lines<'_>,
    line: usize,
    notify: bool,
    patient: bool,
) -> Result<Link, BridgeError> {
    let list = |value: Option<Spanned<OneOrMore>>| -> Result<Vec<String>, BridgeError> {
        let Some(value) = value else { return Ok(Vec::new()) };
        let (line, value) = lines.take(value);
        let endpoints = value.into_vec();
        for endpoint in &endpoints {
            let known = ["tcp://", "ipc://", "ws://", "wss://", "vsock://"];
            if !known.iter().any(|scheme| endpoint.starts_with(scheme)) {
                return Err(BridgeError::new(
                    line,
                    format!("{endpoint:?} is not a valid endpoint: use {}...", known.join("..., ")),
                ));
            }
            endpoint::check(endpoint)
                .map_err(|error| BridgeError::new(line, format!("{endpoint:?}: {error}")))?;
        }
        Ok(endpoints)
    };
    let (bind, connect) = (list(raw.bind.take())?, list(raw.connect.take())?);
    if bind.is_empty() && connect.is_empty() {
        return Err(BridgeError::new(line, "the route has no endpoint: add `bind` or `connect`"));
    }
    let subscribe = match (socket, raw.subscribe.take()) {
        (SocketType::Sub, None) => vec![String::new()],
        (SocketType::Sub, Some(topics)) => topics.into_inner().into_vec(),
        (_, None) => Vec::new(),
        (_, Some(topics)) => {
            return Err(BridgeError::new(lines.of(Some(topics.span())), "only a SUB can have `subscribe`"));
        }
    };
    let hwm = match raw.hwm.take().map(|hwm| lines.take(hwm)) {
        Some((line, 0)) => return Err(BridgeError::new(line, "`hwm` must be at least 1")),
        hwm => hwm.map(|(_, hwm)| hwm),
    };
    let max_message_bytes = raw.max_message_bytes.take();
    Ok(Link { socket, bind, connect, subscribe, hwm, max_message_bytes, notify, patient })
}

fn deliver(raw: &mut file::Route, lines: Lines<'_>) -> Result<Job, BridgeError> {
    let group = raw.queue_group.take().map(|group| name(group, lines)).transpose()?.map(|(_, group)| group);
    let queue = within(raw.queue.take(), lines, "queue", 1..=1_000_000)?.unwrap_or(1000);
    let subscriptions = within(raw.max_subscriptions.take(), lines, "max_subscriptions", 1..=10_000_000)?;
    Ok(Job::Deliver { group, queue, subscriptions: subscriptions.unwrap_or(SUBSCRIPTIONS) })
}

fn parse_stored(raw: &mut file::Route, lines: Lines<'_>, line: usize) -> Result<Job, BridgeError> {
    let stream = stream(raw, lines, line)?;
    let window = within(raw.window.take(), lines, "window", 1..=WINDOW_MAX)?.unwrap_or(WINDOW);
    let id_part = within(raw.id_part.take(), lines, "id_part", 0..=4095)?;
    Ok(Job::Stored { stream, window, id_part })
}

fn parse_work_queue(raw: &mut file::Route, lines: Lines<'_>, line: usize) -> Result<Job, BridgeError> {
    let stream = stream(raw, lines, line)?;
    let consumer = raw.consumer.take().ok_or_else(|| {
        BridgeError::new(
            line,
            "a route \"worked off\" needs `consumer`, a name under which the stream stores its position",
        )
    })?;
    let (_, consumer) = name(consumer, lines)?;
    let answer_line = raw.answer_within.as_ref().map_or(line, |value| lines.of(Some(value.span())));
    let answer_within = duration(raw.answer_within.take(), lines)?.unwrap_or(Duration::from_secs(30));
    if answer_within < Duration::from_millis(100) {
        return Err(BridgeError::new(answer_line, "`answer_within` must be at least 100ms"));
    }
    let attempts = match raw.attempts.take().map(|attempts| lines.take(attempts)) {
        Some((line, 0)) => return Err(BridgeError::new(line, "`attempts` must be at least 1")),
        attempts => attempts.map(|(_, attempts)| attempts),
    };
    let window = within(raw.window.take(), lines, "window", 1..=WINDOW_MAX)?.unwrap_or(WINDOW);
    Ok(Job::WorkedOff { stream, consumer, window, answer_within, attempts })
}

fn replay(raw: &mut file::Route, lines: Lines<'_>, line: usize) -> Result<Job, BridgeError> {
    let stream = stream(raw, lines, line)?;
    let start = match raw.start.take().map(|start| lines.take(start)) {
        None => Start::First,
        Some((line, value)) => start(&value).ok_or_else(|| {
            let what =
                "`start` must be \"first\", \"new\", the number of a message, or a time: \"2026-11-25T10:00:00Z\"";
            BridgeError::new(line, what)
        })?,
    };
    let sequence = raw.sequence.take().is_some_and(Spanned::into_inner);
    Ok(Job::Replay { stream, start, sequence })
}

fn start(value: &toml::Value) -> Option<Start> {
    match value {
        toml::Value::Integer(number) => {
            u64::try_from(*number).ok().filter(|number| *number > 0).map(Start::Sequence)
        }
        toml::Value::String(text) if text == "first" => Some(Start::First),
        toml::Value::String(text) if text == "new" => Some(Start::New),
        toml::Value::String(text) => humantime::parse_rfc3339(text).ok().map(Start::Time),
        toml::Value::Datetime(time) => humantime::parse_rfc3339(&time.to_string()).ok().map(Start::Time),
        _ => None,
    }
}

fn stream(raw: &mut file::Route, lines: Lines<'_>, line: usize) -> Result<String, BridgeError> {
    let stream = raw.stream.take();
    let stream = stream
        .ok_or_else(|| BridgeError::new(line, "the route needs `stream`, the name of a JetStream stream"))?;
    name(stream, lines).map(|(_, stream)| stream)
}

fn within(
    value: Option<Spanned<usize>>,
    lines: Lines<'_>,
    what: &str,
    range: std::ops::RangeInclusive<usize>,
) -> Result<Option<usize>, BridgeError> {
    match value.map(|value| lines.take(value)) {
        Some((line, value)) if !range.contains(&value) => {
            Err(BridgeError::new(line, format!("`{what}` must be from {} to {}", range.start(), range.end())))
        }
        value => Ok(value.map(|(_, value)| value)),
    }
}

/// Returns a key that the route does not use, with its line.
fn unused_key(raw: &file::Route, lines: Lines<'_>) -> Option<(usize, &'static str)> {
    fn at<T>(value: &Option<Spanned<T>>, lines: Lines<'_>) -> Option<usize> {
        value.as_ref().map(|value| lines.of(Some(value.span())))
    }
    let all = [
        (at(&raw.queue_group, lines), "queue_group"),
        (at(&raw.queue, lines), "queue"),
        (at(&raw.max_subscriptions, lines), "max_subscriptions"),
        (at(&raw.stream, lines), "stream"),
        (at(&raw.window, lines), "window"),
        (at(&raw.id_part, lines), "id_part"),
        (at(&raw.consumer, lines), "consumer"),
        (at(&raw.answer_within, lines), "answer_within"),
        (at(&raw.attempts, lines), "attempts"),
        (at(&raw.start, lines), "start"),
        (at(&raw.sequence, lines), "sequence"),
    ];
    all.into_iter().find_map(|(line, what)| line.map(|line| (line, what)))
}
