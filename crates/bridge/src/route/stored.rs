//! *Stored*: from PULL, SUB or ROUTER into a stream, acknowledged by it.
//!
//! At most `window` messages are on their way. Each is published again until the stream has
//! acknowledged it, under the same id, so that the stream keeps it once. While the window is full
//! nothing is read, and senders feel it.
//!
//! A ROUTER answers its REQ or DEALER peers, in the order of their messages: `stored` and the
//! number in the stream, or `refused` and the reason. What was answered with `stored` is kept,
//! whatever happens to the bridge.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::{self, ErrorCode};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use tautline::{Message, Multipart};

use super::{AT_ONCE, Course, Outgoing};
use crate::config::Job;
use crate::stop::Stop;
use crate::topic::header_value;
use crate::zmq::Socket;

/// Before the second attempt; twice as long before each one after.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What came of a message.
struct Landed {
    /// What stood before the message, if its sender waits for an answer.
    envelope: Option<Vec<Message>>,
    /// The stream's answer, or why it will not have it.
    outcome: Result<PublishAck, String>,
}

pub async fn run(mut socket: Socket, course: &Arc<Course>, mut stop: Stop) -> Socket {
    let Job::Stored { window, id_part, stream } = &course.route.job else { return socket };
    let mut sender = Sender {
        course: course.clone(),
        stream: stream.clone(),
        id_part: *id_part,
        asked: matches!(socket, Socket::Router(_)),
        // Unique, as are the names of inboxes.
        run: course.nats.client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned(),
        number: 0,
    };
    let mut flights: FuturesOrdered<BoxFuture<'static, Landed>> = FuturesOrdered::new();
    let mut stopping = false;
    loop {
        course.counters.waiting.set(flights.len());
        tokio::select! {
            biased;
            Some(landed) = flights.next() => {
                land(&mut socket, course, landed);
                for _ in 1..AT_ONCE {
                    let Some(Some(landed)) = flights.next().now_or_never() else { break };
                    land(&mut socket, course, landed);
                }
            }
            () = stop.asked(), if !stopping => stopping = true,
            message = socket.recv(), if !stopping && flights.len() < *window => match message {
                Ok(message) => {
                    flights.extend(sender.send(message).await);
                    for _ in 1..AT_ONCE.min(*window - flights.len() + 1) {
                        let Ok(message) = socket.try_recv() else { break };
                        flights.extend(sender.send(message).await);
                    }
                }
                Err(error) => stopping = !course.goes_on(&error),
            },
            else => return socket,
        }
    }
}

/// Tells the peer, if it waits for that, and the counters.
fn land(socket: &mut Socket, course: &Course, landed: Landed) {
    let answer = match landed.outcome {
        Ok(ack) => {
            course.counters.done.add();
            if ack.duplicate {
                course.counters.known.add();
            }
            course.is_well();
            ["stored".to_owned(), ack.sequence.to_string()]
        }
        Err(what) => {
            course.refuse(&what);
            ["refused".to_owned(), what]
        }
    };
    if let Some(mut parts) = landed.envelope {
        parts.extend(answer.map(Message::from));
        // A peer that has gone, or does not read, is not waited for.
        if socket.try_send(parts).is_err() {
            course.counters.dropped.add();
        }
    }
}

/// From messages to their flights.
struct Sender {
    course: Arc<Course>,
    stream: String,
    id_part: Option<usize>,
    /// Peers wait for an answer.
    asked: bool,
    /// Which run of this route it is.
    run: String,
    number: u64,
}

impl Sender {
    async fn send(&mut self, mut message: Multipart) -> Option<BoxFuture<'static, Landed>> {
        self.course.counters.received.add();
        let envelope = self.asked.then(|| envelope(&mut message));
        let outgoing = match self.prepare(message) {
            Ok(outgoing) => outgoing,
            Err(what) => {
                let landed = Landed { envelope, outcome: Err(what.to_owned()) };
                return Some(Box::pin(std::future::ready(landed)));
            }
        };
        // In the order in which they came.
        let first = publish(&self.course, &outgoing).await;
        let course = self.course.clone();
        Some(Box::pin(async move { Landed { envelope, outcome: fly(&course, &outgoing, first).await } }))
    }

    fn prepare(&mut self, message: Multipart) -> Result<Outgoing, &'static str> {
        let name = &self.course.route.name;
        let id = match self.id_part {
            Some(at) => {
                let part = message.get(at).ok_or("it has no part with its id")?;
                format!("{name}:{}", header_value(part.as_bytes()))
            }
            None => {
                self.number += 1;
                format!("{name}:{}:{}", self.run, self.number)
            }
        };
        let mut outgoing = Outgoing::new(&self.course.route.mapping, message)?;
        outgoing.headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
        outgoing.headers.insert(async_nats::header::NATS_EXPECTED_STREAM, self.stream.as_str());
        Ok(outgoing)
    }
}

/// Takes off what stands before the message: the peer's routing id, and the empty part of a REQ.
fn envelope(message: &mut Multipart) -> Vec<Message> {
    let mut envelope = Vec::new();
    envelope.extend(message.pop_front());
    if message.first().is_some_and(|part| part.is_empty()) {
        envelope.extend(message.pop_front());
    }
    envelope
}

async fn publish(course: &Course, message: &Outgoing) -> Result<PublishAckFuture, PublishError> {
    let publication =
        PublishMessage::build().payload(message.payload.clone()).headers(message.headers.clone());
    course.nats.streams.send_publish(message.subject.clone(), publication).await
}

/// Publishes until the stream has acknowledged it.
async fn fly(
    course: &Course,
    message: &Outgoing,
    first: Result<PublishAckFuture, PublishError>,
) -> Result<PublishAck, String> {
    let mut attempt = first;
    let mut wait = FIRST_WAIT;
    loop {
        let mut connection = course.nats.connection();
        let answer = match attempt {
            Err(error) => Err(error),
            Ok(acknowledgement) => tokio::select! {
                answer = acknowledgement.into_future() => answer,
                // What was asked over the connection before is not answered any more.
                () = connection.renewed() => Err(PublishError::new(PublishErrorKind::BrokenPipe)),
            },
        };
        match answer {
            Ok(ack) => return Ok(ack),
            Err(error) if is_final(&error) => return Err(words(&error)),
            Err(error) => {
                if error.kind() != PublishErrorKind::BrokenPipe {
                    course.complain(format_args!("not stored yet: {}", words(&error)));
                }
            }
        }
        course.counters.again.add();
        let mut connection = course.nats.connection();
        if !course.nats.is_connected() {
            connection.renewed().await;
        } else {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        attempt = publish(course, message).await;
    }
}

/// Whether the same message will never be taken.
fn is_final(error: &PublishError) -> bool {
    let too_large = [ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM];
    error.kind() == PublishErrorKind::MaxPayloadExceeded
        || refusal(error).is_some_and(|refusal| too_large.contains(&refusal.error_code()))
}

fn refusal(error: &PublishError) -> Option<&jetstream::Error> {
    error.source().and_then(|source| source.downcast_ref::<jetstream::Error>())
}

/// With what JetStream says.
fn words(error: &PublishError) -> String {
    refusal(error).map_or_else(|| error.to_string(), |refusal| format!("JetStream: {refusal}"))
}
