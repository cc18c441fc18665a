//! *Replay*: from a place in a stream to PUB, to its end and on with what comes.
//!
//! It begins when the first subscriber comes, goes on while there is one, and begins anew for the
//! next one after that. A subscriber that cannot keep up is waited for.

use std::collections::HashSet;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::{self, OrderedConfig};
use async_nats::jetstream::consumer::{Consumer, DeliverPolicy};
use bytes::Bytes;
use tautline::{Error, Multipart};

use super::{Course, as_parts, incoming, stream};
use crate::config::{Job, Start};
use crate::stop::Stop;
use crate::zmq::Socket;

/// Before a subscriber that has no room is tried again.
const ROOM: Duration = Duration::from_millis(1);

pub async fn run(mut socket: Socket, course: &Course, mut stop: Stop) {
    let Job::Replay { sequence, .. } = course.route.job else { return };
    let mut prefixes = HashSet::new();
    // The last one that was handed over.
    let mut last = 0;
    let mut messages: Option<pull::Ordered> = None;
    let mut ready: Option<Vec<Bytes>> = None;
    loop {
        if prefixes.is_empty() {
            (last, messages, ready) = (0, None, None);
        }
        if let Some(parts) = ready.take() {
            match socket.try_send(as_parts(&parts)) {
                Ok(()) => course.counters.done.add(),
                Err(Error::WouldBlock) => ready = Some(parts),
                Err(error) => course.complain(error),
            }
        }
        let (full, active) = (ready.is_some(), !prefixes.is_empty());
        tokio::select! {
            biased;
            () = stop.asked() => return,
            wish = socket.recv() => match wish {
                Ok(wish) => note(&mut prefixes, &wish),
                Err(error) => if !course.goes_on(&error) { return },
            },
            () = tokio::time::sleep(ROOM), if full => {}
            message = next(course, &mut messages, last), if active && !full => {
                let Some((number, message)) = message else { continue };
                last = number;
                course.counters.received.add();
                match incoming(&course.route.mapping, &message) {
                    Some(parts) => ready = Some(numbered(parts, sequence, number)),
                    None => course.refuse("its parts do not go with its length"),
                }
            }
        }
    }
}

/// With the number behind the topic, as eight bytes, the highest first.
fn numbered(mut parts: Vec<Bytes>, wanted: bool, number: u64) -> Vec<Bytes> {
    if wanted {
        parts.insert(1.min(parts.len()), Bytes::copy_from_slice(&number.to_be_bytes()));
    }
    parts
}

fn note(prefixes: &mut HashSet<Vec<u8>>, wish: &Multipart) {
    match wish.first().map_or(&[][..], |part| part.as_bytes()) {
        [1, prefix @ ..] => {
            prefixes.insert(prefix.to_vec());
        }
        [0, prefix @ ..] => {
            prefixes.remove(prefix);
        }
        _ => {}
    }
}

/// The next message and its number; `None` if there is none just now.
async fn next(
    course: &Course,
    messages: &mut Option<pull::Ordered>,
    last: u64,
) -> Option<(u64, async_nats::Message)> {
    let message = stream::next(course, messages, consume(course, last)).await?;
    let Ok(number) = message.info().map(|info| info.stream_sequence) else {
        // It is asked for again.
        *messages = None;
        return None;
    };
    (number > last).then_some((number, message.message))
}

async fn consume(course: &Course, last: u64) -> Result<pull::Ordered, async_nats::Error> {
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
