//! The messages of a stream, which are asked for again after trouble.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt};

use super::Course;

/// Before a consumer is asked for again.
const AGAIN: Duration = Duration::from_millis(200);

/// The next message; `None` if there was trouble, which has been waited out. Where there are no
/// `messages` yet, `consume` gets them. Dropped before its end, nothing was taken.
pub async fn next<S, M, E>(
    course: &Course,
    messages: &mut Option<S>,
    consume: impl Future<Output = Result<S, async_nats::Error>>,
) -> Option<M>
where
    S: Stream<Item = Result<M, E>> + Unpin,
    E: Display,
{
    let Some(open) = messages else {
        match consume.await {
            Ok(stream) => *messages = Some(stream),
            Err(error) => {
                course.complain(error);
                tokio::time::sleep(AGAIN).await;
            }
        }
        return None;
    };
    match open.next().await {
        Some(Ok(message)) => {
            course.is_well();
            return Some(message);
        }
        Some(Err(error)) => course.complain(error),
        None => {}
    }
    *messages = None;
    tokio::time::sleep(AGAIN).await;
    None
}

/// The next message, if it has come already.
pub fn at_hand<S, M, E>(course: &Course, messages: &mut Option<S>) -> Option<M>
where
    S: Stream<Item = Result<M, E>> + Unpin,
    E: Display,
{
    match messages.as_mut()?.next().now_or_never()? {
        Some(Ok(message)) => return Some(message),
        Some(Err(error)) => course.complain(error),
        None => {}
    }
    *messages = None;
    None
}
