//! *Stored*: from PULL, SUB or ROUTER into a stream, with acknowledgements by the stream.
//!
//! At most `window` messages are in flight. Each message is published again under the same id
//! until the stream acknowledges it, so that the stream keeps it once. While the window is full,
//! the route does not read, and its senders block.
//!
//! If the stream will never accept a message, the route refuses it at once and continues with the
//! others. A ROUTER answers its REQ or DEALER peers: `stored` and the sequence number in the
//! stream, or `refused` and the reason. Each peer gets its answers in the order of its messages,
//! and waits for no other peer. After the answer `stored`, a message survives a crash of the
//! bridge.

mod attempts;
mod ordered_results;

use std::error::Error as _;
use std::sync::Arc;

use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::{self, ErrorCode};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tautline::{Message, Multipart};

use super::{AT_ONCE, Outgoing, RouteContext};
use crate::config::Job;
use crate::envelope::PARTS;
use crate::stop::Stop;
use crate::topic::{filter_matches, header_value, name_value};
use crate::zmq::Socket;
use attempts::Attempts;
use ordered_results::OrderedResults;

/// Length limit of a part that is an id, because a stream keeps ids in memory.
const ID_MAX: usize = 1024;
/// Limit of answers, of all peers, that wait for the answer to an earlier message of the same
/// peer.
const ANSWERS_MAX: usize = 65_536;

/// Outcome of a message.
struct PublishResult {
    /// Envelope of the message, if its sender waits for an answer.
    envelope: Option<Vec<Message>>,
    /// Position among the messages of its sender.
    ticket: u64,
    /// The stream's acknowledgement, or the reason for the refusal.
    outcome: Result<PublishAck, String>,
}

pub async fn run(mut socket: Socket, course: &Arc<RouteContext>, mut stop: Stop) -> Socket {
    let Job::Stored { window, id_part, stream } = &course.route.job else { return socket };
    let mut sender = Sender {
        course: course.clone(),
        stream: stream.clone(),
        id_part: *id_part,
        asked: matches!(socket, Socket::Router(_)),
        // Unique, like the names of inboxes.
        run: course.nats.client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned(),
        number: 0,
    };
    let mut flights: FuturesUnordered<BoxFuture<'static, PublishResult>> = FuturesUnordered::new();
    let mut lanes = OrderedResults::default();
    let mut stopping = false;
    loop {
        course.counters.waiting.set(flights.len());
        tokio::select! {
            biased;
            Some(landed) = flights.next() => {
                finish_publication(&mut socket, course, &mut lanes, landed);
                for _ in 1..AT_ONCE {
                    let Some(Some(landed)) = flights.next().now_or_never() else { break };
                    finish_publication(&mut socket, course, &mut lanes, landed);
                }
            }
            () = stop.wait_requested(), if !stopping => stopping = true,
            message = socket.recv(), if !stopping && flights.len() < *window && lanes.len() < ANSWERS_MAX => match message {
                Ok(message) => {
                    let flight = sender.send(message, &mut lanes).await;
                    flights.push(flight);
                    for _ in 1..AT_ONCE.min(*window - flights.len() + 1) {
                        let Ok(message) = socket.try_recv() else { break };
                        let flight = sender.send(message, &mut lanes).await;
                        flights.push(flight);
                    }
                }
                Err(error) => stopping = !course.handle_recv_error(&error),
            },
            else => return socket,
        }
    }
}

/// Answers the peer, if it waits for an answer, and updates the counters. An answer waits for the
/// answers to earlier messages of its peer.
fn finish_publication(
    socket: &mut Socket,
    course: &RouteContext,
    lanes: &mut OrderedResults<PublishResult>,
    landed: PublishResult,
) {
    match landed.envelope.as_deref().map(peer_of) {
        None => send_result(socket, course, landed),
        Some(peer) => {
            for landed in lanes.complete(&peer, landed.ticket, landed) {
                send_result(socket, course, landed);
            }
        }
    }
}

fn send_result(socket: &mut Socket, course: &RouteContext, landed: PublishResult) {
    let answer = match landed.outcome {
        Ok(ack) => {
            course.counters.done.add();
            if ack.duplicate {
                course.counters.known.add();
            }
            course.report_recovery();
            ["stored".to_owned(), ack.sequence.to_string()]
        }
        Err(what) => {
            course.refuse(&what);
            ["refused".to_owned(), what]
        }
    };
    if let Some(mut parts) = landed.envelope {
        parts.extend(answer.map(Message::from));
        // If the peer is gone or does not read, drop its answer.
        if socket.try_send(parts).is_err() {
            course.counters.dropped.add();
        }
    }
}

/// Publishes messages, and returns a future for each outcome.
struct Sender {
    course: Arc<RouteContext>,
    stream: String,
    id_part: Option<usize>,
    /// True if peers wait for an answer.
    asked: bool,
    /// Id of this run of the route.
    run: String,
    number: u64,
}

impl Sender {
    async fn send(
        &mut self,
        mut message: Multipart,
        lanes: &mut OrderedResults<PublishResult>,
    ) -> BoxFuture<'static, PublishResult> {
        self.course.counters.received.add();
        let envelope = self.asked.then(|| envelope(&mut message));
        let ticket = envelope.as_deref().map_or(0, |envelope| lanes.enter(&peer_of(envelope)));
        let outgoing = match self.prepare(message) {
            Ok(outgoing) => outgoing,
            Err(what) => {
                let landed = PublishResult { envelope, ticket, outcome: Err(what.to_owned()) };
                return Box::pin(std::future::ready(landed));
            }
        };
        // Publish in the order of arrival.
        let first = publish(&self.course, &outgoing).await;
        let (course, stream, has_id) = (self.course.clone(), self.stream.clone(), self.id_part.is_some());
        Box::pin(async move {
            let mut outcome = publish_until_stored(&course, &stream, &outgoing, first).await;
            if let Ok(ack) = &outcome
                && ack.duplicate
                && has_id
                && is_another(&course, &stream, ack.sequence, &outgoing).await
            {
                outcome = Err("the stream has another message with its id".to_owned());
            }
            PublishResult { envelope, ticket, outcome }
        })
    }

    fn prepare(&mut self, message: Multipart) -> Result<Outgoing, &'static str> {
        let name = &self.course.route.name;
        let id = match self.id_part {
            Some(at) => {
                let part = message.get(at).ok_or("it has no part with its id")?;
                if part.len() > ID_MAX {
                    return Err("its id is longer than 1024 bytes");
                }
                // Add the user to the id, so that a user cannot use the ids of another user.
                let user = part.user_id().filter(|user| !user.is_empty());
                let user = user.map(|user| format!("{}:", name_value(user.as_bytes()))).unwrap_or_default();
                format!("{name}:{user}{}", header_value(part.as_bytes()))
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

/// Returns the routing id in an envelope.
fn peer_of(envelope: &[Message]) -> Vec<u8> {
    envelope.first().map_or_else(Vec::new, |id| id.as_bytes().to_vec())
}

/// Removes and returns the envelope: the peer's routing id, and the empty part of a REQ.
fn envelope(message: &mut Multipart) -> Vec<Message> {
    let mut envelope = Vec::new();
    envelope.extend(message.pop_front());
    if message.first().is_some_and(|part| part.is_empty()) {
        envelope.extend(message.pop_front());
    }
    envelope
}

async fn publish(course: &RouteContext, message: &Outgoing) -> Result<PublishAckFuture, PublishError> {
    let publication =
        PublishMessage::build().payload(message.payload.clone()).headers(message.headers.clone());
    course.nats.streams.send_publish(message.subject.clone(), publication).await
}

/// Publishes a message until the stream acknowledges it.
async fn publish_until_stored(
    course: &RouteContext,
    stream: &str,
    message: &Outgoing,
    first: Result<PublishAckFuture, PublishError>,
) -> Result<PublishAck, String> {
    let mut attempt = first;
    let mut attempts = Attempts::default();
    loop {
        let stored_before = course.counters.done.get();
        let mut connection = course.nats.connection();
        let answer = match attempt {
            Err(error) => Err(error),
            Ok(acknowledgement) => tokio::select! {
                answer = acknowledgement.into_future() => answer,
                // A request on the previous connection gets no answer.
                () = connection.wait_for_reconnect() => Err(PublishError::new(PublishErrorKind::BrokenPipe)),
            },
        };
        match answer {
            Ok(ack) => return Ok(ack),
            Err(error) if is_final(&error) => return Err(error_text(&error)),
            Err(error) => {
                let others_are_stored = course.counters.done.get() > stored_before;
                if attempts.record_failure(error.kind() == PublishErrorKind::TimedOut && others_are_stored) {
                    let subject = &message.subject;
                    return Err(format!(
                        "NATS does not reply for the subject {subject}: check that the bridge may publish to it"
                    ));
                }
                if error.kind() == PublishErrorKind::StreamNotFound
                    && let Some(what) = missing_subject_reason(course, stream, &message.subject).await
                {
                    return Err(what);
                }
                if error.kind() != PublishErrorKind::BrokenPipe {
                    course.report_problem(format_args!("not stored yet: {}", error_text(&error)));
                }
            }
        }
        course.counters.again.add();
        let mut connection = course.nats.connection();
        if !course.nats.is_connected() {
            connection.wait_for_reconnect().await;
        } else {
            tokio::time::sleep(attempts.next_wait()).await;
        }
        attempt = publish(course, message).await;
    }
}

/// True if the stream will never accept this message.
fn is_final(error: &PublishError) -> bool {
    error.kind() == PublishErrorKind::MaxPayloadExceeded || refusal(error).is_some_and(is_permanent)
}

/// True if JetStream refuses the message itself. If the stream is full or a server has no room,
/// the route retries. If only the subject is full, the route refuses, because only messages of
/// that subject would wait.
fn is_permanent(refusal: &jetstream::Error) -> bool {
    match refusal.error_code() {
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM
        | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM
        // The subject belongs to another stream.
        | ErrorCode::STREAM_NOT_MATCH
        | ErrorCode::STREAM_SEALED => true,
        ErrorCode::STREAM_STORE_FAILED => refusal.to_string().contains("per subject"),
        _ => false,
    }
}

/// Returns the reason if no stream will accept the subject: the stream exists and does not have
/// this subject.
async fn missing_subject_reason(course: &RouteContext, stream: &str, subject: &str) -> Option<String> {
    let found = course.nats.streams.get_stream(stream).await.ok()?;
    let subjects = &found.cached_info().config.subjects;
    let has = subjects.iter().any(|filter| filter_matches(filter, subject));
    (!has).then(|| format!("the stream {stream} does not include the subject {subject}"))
}

/// True if the stored message with this number differs from the published one. A message that was
/// deleted or cannot be read counts as the same.
async fn is_another(course: &RouteContext, stream: &str, number: u64, published: &Outgoing) -> bool {
    let Ok(stream) = course.nats.streams.get_stream_no_info(stream).await else { return false };
    let Ok(stored) = stream.get_raw_message(number).await else { return false };
    let parts = |headers: &async_nats::HeaderMap| headers.get(PARTS).map(|value| value.as_str().to_owned());
    stored.payload != published.payload || parts(&stored.headers) != parts(&published.headers)
}

fn refusal(error: &PublishError) -> Option<&jetstream::Error> {
    error.source().and_then(|source| source.downcast_ref::<jetstream::Error>())
}

/// Returns the error text, with JetStream's reason.
fn error_text(error: &PublishError) -> String {
    refusal(error).map_or_else(|| error.to_string(), |refusal| format!("JetStream: {refusal}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u64, status: usize, description: &str) -> PublishError {
        let text = format!(r#"{{"code":{status},"err_code":{code},"description":"{description}"}}"#);
        let refusal: jetstream::Error = serde_json::from_str(&text).unwrap();
        PublishError::with_source(PublishErrorKind::Other, refusal)
    }

    #[test]
    fn refusals_of_the_message_itself_are_final() {
        for (code, status, description) in [
            (10054, 400, "message size exceeds maximum allowed"),
            (10060, 400, "expected stream does not match"),
            (10097, 400, "header size exceeds maximum allowed of 64k"),
            (10109, 400, "invalid operation on sealed stream"),
            (10077, 503, "maximum messages per subject exceeded"),
        ] {
            assert!(is_final(&refused(code, status, description)), "{description}");
        }
        for (code, status, description) in [
            (10077, 503, "maximum bytes exceeded"),
            (10077, 503, "maximum messages exceeded"),
            (10023, 503, "insufficient resources"),
            (10008, 503, "JetStream system temporarily unavailable"),
            (10002, 400, "resource limits exceeded for account"),
        ] {
            assert!(!is_final(&refused(code, status, description)), "{description}");
        }
        assert!(is_final(&PublishError::new(PublishErrorKind::MaxPayloadExceeded)));
        for kind in
            [PublishErrorKind::TimedOut, PublishErrorKind::BrokenPipe, PublishErrorKind::StreamNotFound]
        {
            assert!(!is_final(&PublishError::new(kind)));
        }
    }
}
