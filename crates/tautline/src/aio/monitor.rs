//! A socket's events for async programs.

use super::Pair;
use crate::error::{Error, Result};
use crate::monitor::{Event, EventKind};

/// Events of one socket for async programs; see [`monitor`](crate::monitor). With the feature
/// `futures` it is a `Stream` of [`Event`]s, which ends like the iterator.
#[derive(Debug)]
pub struct Monitor {
    socket: Pair,
    is_finished: bool,
}

impl Monitor {
    pub(crate) fn new(socket: Pair, over: bool) -> Self {
        Monitor { socket, is_finished: over }
    }

    /// Returns the next event.
    ///
    /// Cancel safe: a future that is dropped early has not taken an event.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`], also after [`EventKind::Stopped`].
    pub async fn recv(&mut self) -> Result<Event> {
        loop {
            if self.is_finished {
                return Err(Error::Terminated);
            }
            if let Some(event) = Event::read(&self.socket.recv_multipart().await?) {
                self.is_finished = event.kind == EventKind::Stopped;
                return Ok(event);
            }
        }
    }
}

#[cfg(feature = "futures")]
impl futures_core::Stream for Monitor {
    type Item = Event;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Event>> {
        use std::task::{Poll, ready};
        let this = self.get_mut();
        while !this.is_finished {
            match ready!(std::pin::Pin::new(&mut this.socket).poll_next(cx)) {
                Some(Ok(parts)) => {
                    let Some(event) = Event::read(&parts) else { continue };
                    this.is_finished = event.kind == EventKind::Stopped;
                    return Poll::Ready(Some(event));
                }
                _ => this.is_finished = true,
            }
        }
        Poll::Ready(None)
    }
}
