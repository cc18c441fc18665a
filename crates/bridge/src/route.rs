//! Tasks of the routes. Each task owns its ZeroMQ socket, and runs until it is asked to stop.

mod deliver;
mod publish;
mod replay;
mod stored;
mod stream;
mod worked;

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::HeaderMap;
use bytes::Bytes;
use tautline::{Error, Message, Multipart};

use crate::config::{Job, Route};
use crate::counters::Counters;
use crate::envelope::{self, PARTS, PEER, USER_ID};
use crate::nats::Nats;
use crate::stop::Stop;
use crate::topic::{Mapping, header_value};
use crate::zmq::Socket;

/// Limit of messages that a task handles after one wake-up. The batch shares the cost of a
/// `select!`, and the limit lets the other events run.
const AT_ONCE: usize = 64;

/// Limit of the headers of a message, in bytes. JetStream accepts 64 KiB, including the id and the
/// name of the stream.
const HEADERS_MAX: usize = 48 * 1024;
const TOO_MANY_PARTS: &str = "it has more than 4096 parts";

/// Context of a route's task.
#[derive(Debug)]
pub struct RouteContext {
    /// Configuration of the route.
    pub route: Route,
    /// The NATS side.
    pub nats: Nats,
    /// Counters of the route.
    pub counters: Arc<Counters>,
    /// Last complaint that was reported.
    trouble: Mutex<Option<String>>,
}

impl RouteContext {
    /// Creates the context of a route that is about to start.
    pub fn new(route: Route, nats: Nats, counters: Arc<Counters>) -> Self {
        RouteContext { route, nats, counters, trouble: Mutex::new(None) }
    }

    /// Runs until it is asked to stop. Returns the socket if it may hold unread messages.
    pub async fn run(self, socket: Socket, stop: Stop) -> Option<Socket> {
        let course = Arc::new(self);
        match &course.route.job {
            Job::Publish => Some(publish::run(socket, &course, stop).await),
            Job::Stored { .. } => Some(stored::run(socket, &course, stop).await),
            Job::Deliver { .. } => {
                deliver::run(socket, &course, stop).await;
                None
            }
            Job::WorkedOff { .. } => {
                worked::run(socket, &course, stop).await;
                None
            }
            Job::Replay { .. } => {
                replay::run(socket, &course, stop).await;
                None
            }
        }
    }

    /// Reports a fault. The same fault is reported once, until another one occurs or the route
    /// recovers.
    fn report_problem(&self, what: impl Display) {
        let what = what.to_string();
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.as_ref() != Some(&what) {
            notice!("route {}: {what}", self.route.name);
            *trouble = Some(what);
        }
    }

    /// Reports that the route has recovered.
    fn report_recovery(&self) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.take().is_some() {
            notice!("route {}: recovered", self.route.name);
        }
    }

    /// Counts and reports a message that the route cannot forward.
    fn refuse(&self, what: impl Display) {
        self.counters.refused.add();
        self.report_problem(format_args!("refused a message: {what}"));
    }

    /// Handles the error of a receive. Returns `false` if the socket will never have a message
    /// again.
    fn handle_recv_error(&self, error: &Error) -> bool {
        match error {
            Error::Terminated => false,
            error if error.is_temporary() => true,
            error => {
                self.report_problem(error);
                true
            }
        }
    }
}

/// Returns the size of the headers in a message.
fn header_bytes(headers: &HeaderMap) -> usize {
    let of_name = |(name, values): (&async_nats::HeaderName, &Vec<async_nats::HeaderValue>)| {
        values.iter().map(|value| name.to_string().len() + value.as_str().len() + 4).sum::<usize>()
    };
    headers.iter().map(of_name).sum()
}

/// A message for NATS.
#[derive(Debug, Clone)]
struct Outgoing {
    subject: String,
    headers: HeaderMap,
    payload: Bytes,
}

impl Outgoing {
    /// Converts a message of a socket, after its envelope was removed.
    fn new(mapping: &Mapping, message: Multipart) -> Result<Self, &'static str> {
        let mut headers = HeaderMap::new();
        if let Some(first) = message.first() {
            if let Some(user) = first.user_id().filter(|user| !user.is_empty()) {
                headers.insert(USER_ID, header_value(user.as_bytes()).as_str());
            }
            if let Some(peer) = first.peer_address() {
                headers.insert(PEER, header_value(peer.as_bytes()).as_str());
            }
        }
        let mut message = message;
        let topic = if mapping.is_open() { message.pop_front() } else { None };
        let topic = topic.as_ref().map_or(&[][..], Message::as_bytes);
        let subject =
            mapping.subject(topic).ok_or("the mapping of the route has no subject for its topic")?;
        let (payload, parts) = envelope::pack(message.into_parts()).ok_or(TOO_MANY_PARTS)?;
        if let Some(parts) = parts {
            headers.insert(PARTS, parts.as_str());
        }
        if header_bytes(&headers) > HEADERS_MAX {
            return Err("its headers are too long");
        }
        Ok(Outgoing { subject, headers, payload })
    }
}

/// Returns the parts of a NATS message, for a socket.
fn incoming(mapping: &Mapping, message: &async_nats::Message) -> Option<Vec<Bytes>> {
    let topic = mapping.topic(&message.subject)?;
    let lengths = message.headers.as_ref().and_then(|headers| headers.get(PARTS)).map(|value| value.as_str());
    let mut parts = envelope::unpack(message.payload.clone(), lengths)?;
    if mapping.is_open() {
        parts.insert(0, Bytes::from(topic));
    }
    (!parts.is_empty()).then_some(parts)
}

/// Converts the parts to ZeroMQ messages.
fn as_parts(parts: &[Bytes]) -> Vec<Message> {
    parts.iter().map(|part| Message::from(part.clone())).collect()
}
