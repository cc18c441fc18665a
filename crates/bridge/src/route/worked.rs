//! *Worked off*: from a stream to workers. A message is acknowledged when its worker has
//! answered.
//!
//! JetStream redelivers a message that is not answered within the route's time, so each message is
//! processed at least once. The workers are REP sockets behind a DEALER ([`dealer_workers`]), or
//! REQ sockets in front of a ROUTER ([`router_workers`]).

mod dealer_workers;
mod roster;
mod router_workers;
mod tickets;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{AckPolicy, Consumer};
use async_nats::jetstream::{self, AckKind};
use tautline::Message;
use tokio::time::Instant;

use super::{AT_ONCE, RouteContext, as_parts, incoming, stream};
use crate::config::Job;
use crate::stop::Stop;
use crate::zmq::{Socket, SocketInput};

/// Heartbeat interval of the server.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Fraction (1/20) of the time for the answer that may pass before a worker gets the message.
const BARELY: u32 = 20;
/// Lifetime of a request for messages.
const EXPIRES: Duration = Duration::from_secs(10);

/// Messages that no worker has yet.
type Queue = VecDeque<QueuedMessage>;

/// A message, and the time from which JetStream counts the time for the answer.
struct QueuedMessage {
    message: jetstream::Message,
    since: Instant,
}

impl QueuedMessage {
    fn new(message: jetstream::Message) -> Self {
        QueuedMessage { message, since: Instant::now() }
    }

    /// Restarts the time for the answer if too much of it has passed before a worker gets the
    /// message.
    async fn begin(self, course: &RouteContext, answer_within: Duration) -> jetstream::Message {
        if self.since.elapsed() > answer_within / BARELY {
            answer(course, &self.message, AckKind::Progress).await;
        }
        self.message
    }
}

/// Workers of either kind.
enum Workers {
    Asked(dealer_workers::DealerWorkers),
    Asking(router_workers::RouterWorkers),
}

impl Workers {
    /// Returns the number of messages that the workers have.
    fn holds(&self) -> usize {
        match self {
            Workers::Asked(crew) => crew.holds(),
            Workers::Asking(crew) => crew.holds(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Workers::Asked(crew) => crew.is_empty(),
            Workers::Asking(crew) => crew.is_empty(),
        }
    }

    /// Handles a message or an event. Adds the message of a disconnected worker to `returned`.
    async fn handle_input(&mut self, heard: SocketInput, returned: &mut Vec<jetstream::Message>) {
        match self {
            Workers::Asked(crew) => crew.handle_input(heard).await,
            Workers::Asking(crew) => returned.extend(crew.handle_input(heard).await),
        }
    }

    async fn hand_out(&mut self, socket: &mut Socket, queue: &mut Queue) {
        match self {
            Workers::Asked(crew) => crew.hand_out(socket, queue).await,
            Workers::Asking(crew) => crew.hand_out(socket, queue).await,
        }
    }
}

pub async fn run(mut socket: Socket, course: &Arc<RouteContext>, mut stop: Stop) {
    let Job::WorkedOff { answer_within, .. } = course.route.job else { return };
    let mut crew = match socket {
        Socket::Dealer(..) => {
            Workers::Asked(dealer_workers::DealerWorkers::new(course.clone(), answer_within))
        }
        _ => Workers::Asking(router_workers::RouterWorkers::new(course.clone(), answer_within)),
    };
    let (mut queue, mut returned) = (Queue::new(), Vec::new());
    let mut messages: Option<pull::Stream> = None;
    let mut progress = tokio::time::interval(answer_within / 3);
    let mut stopping = false;
    while !(stopping && crew.holds() == 0) {
        if stopping || crew.is_empty() {
            // Other bridges may have workers.
            end_request(course, &mut messages, &mut queue, &mut returned);
        }
        give_back(course, &mut returned).await;
        crew.hand_out(&mut socket, &mut queue).await;
        course.counters.waiting.set(queue.len() + crew.holds());
        let wanted = !stopping && !crew.is_empty();
        tokio::select! {
            biased;
            () = stop.wait_requested(), if !stopping => stopping = true,
            heard = socket.recv_input() => match heard {
                Ok(heard) => {
                    crew.handle_input(heard, &mut returned).await;
                    for _ in 1..AT_ONCE {
                        let Ok(message) = socket.try_recv() else { break };
                        crew.handle_input(SocketInput::Message(message), &mut returned).await;
                    }
                }
                Err(error) => if !course.handle_recv_error(&error) { return },
            },
            message = stream::next(course, &mut messages, consume(course)), if wanted => {
                queue.extend(message.map(QueuedMessage::new));
                for _ in 1..AT_ONCE {
                    let Some(message) = stream::try_next(course, &mut messages) else { break };
                    queue.push_back(QueuedMessage::new(message));
                }
            }
            _ = progress.tick() => for waiting in &mut queue {
                // Restart the time for the answer: it does not include the wait for a worker.
                let _ = waiting.message.ack_with(AckKind::Progress).await;
                waiting.since = Instant::now();
            },
        }
    }
    end_request(course, &mut messages, &mut queue, &mut returned);
    give_back(course, &mut returned).await;
    course.nats.flush().await;
}

async fn consume(course: &RouteContext) -> Result<pull::Stream, async_nats::Error> {
    let Job::WorkedOff { stream, consumer, window, answer_within, attempts } = &course.route.job else {
        return Err("not a route of this kind".into());
    };
    let config = pull::Config {
        durable_name: Some(consumer.clone()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: *answer_within,
        max_deliver: attempts.map_or(-1, i64::from),
        max_ack_pending: i64::try_from(*window).unwrap_or(i64::MAX),
        filter_subject: course.route.mapping.filter(),
        ..pull::Config::default()
    };
    let consumer: Consumer<pull::Config> =
        course.nats.streams.create_consumer_on_stream(config, stream).await?;
    let messages = consumer.stream().max_messages_per_batch(*window).expires(EXPIRES).heartbeat(HEARTBEAT);
    Ok(messages.messages().await?)
}

/// Ends the request for messages, and adds those that no worker has seen to `returned`. The request
/// must end before they go back: otherwise, the server would send them to this bridge again.
fn end_request(
    course: &RouteContext,
    messages: &mut Option<pull::Stream>,
    queue: &mut Queue,
    returned: &mut Vec<jetstream::Message>,
) {
    returned.extend(queue.drain(..).map(|waiting| waiting.message));
    while let Some(message) = stream::try_next(course, messages) {
        returned.push(message);
    }
    *messages = None;
}

/// Returns messages to the server, so that other workers get them.
async fn give_back(course: &RouteContext, returned: &mut Vec<jetstream::Message>) {
    for message in returned.drain(..) {
        answer(course, &message, AckKind::Nak(None)).await;
    }
}

/// Reports the outcome of a message to JetStream. Without a report, JetStream redelivers the
/// message.
async fn answer(course: &RouteContext, message: &jetstream::Message, kind: AckKind) {
    if let Err(error) = message.ack_with(kind).await {
        course.report_problem(error);
    }
}

/// Returns a message for a worker, after its envelope. Terminates a malformed message and
/// returns `None`.
async fn addressed(course: &RouteContext, message: &jetstream::Message, to: Vec<u8>) -> Option<Vec<Message>> {
    let Some(parts) = incoming(&course.route.mapping, message) else {
        course.refuse("its part lengths do not match its payload");
        answer(course, message, AckKind::Term).await;
        return None;
    };
    let mut addressed = vec![Message::from(to), Message::from(Vec::new())];
    addressed.extend(as_parts(&parts));
    Some(addressed)
}
