//! *Replay*: from a place in a stream to PUB, up to its end, and then on with new messages.
//!
//! The replay begins with the first subscriber and runs while there is a subscriber. The next
//! subscriber after that starts it from the beginning. The route waits for slow subscribers.

use std::collections::HashSet;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::pull::{self, OrderedConfig};
use async_nats::jetstream::consumer::{Consumer, DeliverPolicy};
use bytes::Bytes;
use tautline::{Error, Multipart};

use super::{AT_ONCE, RouteContext, as_parts, incoming, stream};
use crate::config::{Job, Start};
use crate::stop::Stop;
use crate::zmq::Socket;

/// Limit of remembered subscriptions.
const PREFIXES_MAX: usize = 10_000;
/// Delay before the next send to a subscriber that had no room.
const ROOM: Duration = Duration::from_millis(1);

pub async fn run(mut socket: Socket, course: &RouteContext, mut stop: Stop) {
    let mut prefixes = HashSet::new();
    let mut tape = ReplayState::default();
    loop {
        if prefixes.is_empty() {
            tape = ReplayState::default();
        }
        tape.hand_over(&mut socket, course);
        let (full, active) = (tape.ready.is_some(), !prefixes.is_empty());
        tokio::select! {
            biased;
            () = stop.wait_requested() => return,
            wish = socket.recv() => match wish {
                Ok(wish) => note(&mut prefixes, &wish),
                Err(error) => if !course.handle_recv_error(&error) { return },
            },
            () = tokio::time::sleep(ROOM), if full => {}
            message = tape.next(course), if active && !full => {
                tape.take(course, message);
                for _ in 1..AT_ONCE {
                    tape.hand_over(&mut socket, course);
                    if tape.ready.is_some() {
                        break;
                    }
                    let Some(message) = stream::try_next(course, &mut tape.messages) else { break };
                    tape.take(course, Some(message));
                }
            }
        }
    }
}

/// State of the replay.
#[derive(Default)]
struct ReplayState {
    messages: Option<pull::Ordered>,
    /// Sequence number of the last message taken.
    last: u64,
    /// Next message to send.
    ready: Option<Vec<Bytes>>,
}

impl ReplayState {
    /// Returns the next message, or `None` if the stream has no further message now.
    async fn next(&mut self, course: &RouteContext) -> Option<jetstream::Message> {
        stream::next(course, &mut self.messages, consume(course, self.last)).await
    }

    /// Prepares a message for sending.
    fn take(&mut self, course: &RouteContext, message: Option<jetstream::Message>) {
        let (Some(message), Job::Replay { sequence, .. }) = (message, &course.route.job) else { return };
        let Ok(number) = message.info().map(|info| info.stream_sequence) else {
            // Request the messages again.
            self.messages = None;
            return;
        };
        if number <= self.last {
            return;
        }
        self.last = number;
        course.counters.received.add();
        match incoming(&course.route.mapping, &message) {
            Some(parts) => self.ready = Some(numbered(parts, *sequence, number)),
            None => course.refuse("its part lengths do not match its payload"),
        }
    }

    /// Sends the prepared message, if there is room.
    fn hand_over(&mut self, socket: &mut Socket, course: &RouteContext) {
        let Some(parts) = self.ready.take() else { return };
        match socket.try_send(as_parts(&parts)) {
            Ok(()) => course.counters.done.add(),
            Err(Error::WouldBlock) => self.ready = Some(parts),
            Err(error) => course.report_problem(error),
        }
    }
}

/// Inserts the sequence number after the topic, as eight bytes, big-endian.
fn numbered(mut parts: Vec<Bytes>, wanted: bool, number: u64) -> Vec<Bytes> {
    if wanted {
        parts.insert(1.min(parts.len()), Bytes::copy_from_slice(&number.to_be_bytes()));
    }
    parts
}

fn note(prefixes: &mut HashSet<Vec<u8>>, wish: &Multipart) {
    match wish.first().map_or(&[][..], |part| part.as_bytes()) {
        // Only the existence of subscriptions matters.
        [1, prefix @ ..] if prefixes.len() < PREFIXES_MAX => {
            prefixes.insert(prefix.to_vec());
        }
        [0, prefix @ ..] => {
            prefixes.remove(prefix);
        }
        _ => {}
    }
}

async fn consume(course: &RouteContext, last: u64) -> Result<pull::Ordered, async_nats::Error> {
    let Job::Replay { stream, start, .. } = &course.route.job else {
        return Err("not a route of this kind".into());
    };
    let deliver_policy = match start {
        _ if last > 0 => DeliverPolicy::ByStartSequence { start_sequence: last + 1 },
        Start::First => DeliverPolicy::All,
        Start::New => DeliverPolicy::New,
        Start::Sequence(number) => DeliverPolicy::ByStartSequence { start_sequence: *number },
        Start::Time(time) => DeliverPolicy::ByStartTime { start_time: (*time).into() },
    };
    let config = OrderedConfig {
        deliver_policy,
        filter_subject: course.route.mapping.filter(),
        ..OrderedConfig::default()
    };
    let consumer: Consumer<OrderedConfig> =
        course.nats.streams.get_stream_no_info(stream).await?.create_consumer(config).await?;
    Ok(consumer.messages().await?)
}
