//! Messages of a stream, with a new request after each error.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt};

use super::RouteContext;

/// Delay before a consumer is requested again.
const AGAIN: Duration = Duration::from_millis(200);

/// Returns the next message. Returns `None` after an error and the delay that follows it. If
/// `messages` is `None`, `consume` creates the stream. Cancel-safe: a cancelled call has taken
/// no message.
pub async fn next<S, M, E>(
    course: &RouteContext,
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
                course.report_problem(error);
                tokio::time::sleep(AGAIN).await;
            }
        }
        return None;
    };
    match open.next().await {
        Some(Ok(message)) => {
            course.report_recovery();
            return Some(message);
        }
        Some(Err(error)) => course.report_problem(error),
        None => {}
    }
    *messages = None;
    tokio::time::sleep(AGAIN).await;
    None
}

/// Returns the next message, if it has already arrived.
pub fn try_next<S, M, E>(course: &RouteContext, messages: &mut Option<S>) -> Option<M>
where
    S: Stream<Item = Result<M, E>> + Unpin,
    E: Display,
{
    match messages.as_mut()?.next().now_or_never()? {
        Some(Ok(message)) => return Some(message),
        Some(Err(error)) => course.report_problem(error),
        None => {}
    }
    *messages = None;
    None
}
