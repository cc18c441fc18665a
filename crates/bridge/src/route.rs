//! What routes do. Each is a task that owns its ZeroMQ socket, and runs until it is asked to stop.

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

/// The most messages that are taken one after another once one has come. They share what it costs
/// to wait for several things at once; then those have their turn.
const AT_ONCE: usize = 64;

/// Limit of the headers of a message, in bytes. JetStream takes 64 KiB, including the id and the
/// name of the stream.
const HEADERS_MAX: usize = 48 * 1024;
const TOO_MANY_PARTS: &str = "it has more than 4096 parts";

/// What the task of a route works with.
#[derive(Debug)]
pub struct Course {
    /// What the file says.
    pub route: Route,
    /// The other side.
    pub nats: Nats,
    /// What it has done.
    pub counters: Arc<Counters>,
    /// What it has complained of last.
    trouble: Mutex<Option<String>>,
}

impl Course {
    /// For a route that is about to start.
    pub fn new(route: Route, nats: Nats, counters: Arc<Counters>) -> Self {
        Course { route, nats, counters, trouble: Mutex::new(None) }
    }

    /// Until it is asked to stop. The socket comes back if what lies in it is worth keeping.
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

    /// Says what is wrong, once until something else is, or all is well again.
    fn complain(&self, what: impl Display) {
        let what = what.to_string();
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.as_ref() != Some(&what) {
            notice!("route {}: {what}", self.route.name);
            *trouble = Some(what);
        }
    }

    /// All is well.
    fn is_well(&self) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.take().is_some() {
            notice!("route {}: goes on", self.route.name);
        }
    }

    /// A message that cannot go this way.
    fn refuse(&self, what: impl Display) {
        self.counters.refused.add();
        self.complain(format_args!("a message is refused: {what}"));
    }

    /// What a socket says when it has no message. `false` if it never will have one again.
    fn goes_on(&self, error: &Error) -> bool {
        match error {
            Error::Terminated => false,
            Error::WouldBlock | Error::Interrupted => true,
            error => {
                self.complain(error);
                true
            }
        }
    }
}

/// What headers take in a message.
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
    /// From a message of a socket, without what came before it in an envelope.
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
        let subject = mapping.subject(topic).ok_or("its topic has no subject here")?;
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

/// The parts of a message of NATS, for a socket.
fn incoming(mapping: &Mapping, message: &async_nats::Message) -> Option<Vec<Bytes>> {
    let topic = mapping.topic(&message.subject)?;
    let lengths = message.headers.as_ref().and_then(|headers| headers.get(PARTS)).map(|value| value.as_str());
    let mut parts = envelope::unpack(message.payload.clone(), lengths)?;
    if mapping.is_open() {
        parts.insert(0, Bytes::from(topic));
    }
    (!parts.is_empty()).then_some(parts)
}

/// The same as parts of ZeroMQ.
fn as_parts(parts: &[Bytes]) -> Vec<Message> {
    parts.iter().map(|part| Message::from(part.clone())).collect()
}
