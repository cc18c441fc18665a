//! `Stream` and `Sink` of whole messages, for one task at a time. If one task receives and another
//! one sends, use the halves of [`Socket::split`]. The halves of `StreamExt::split` would steal
//! each other's wake-ups.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;
use tautline_core::poller::{POLLIN, POLLOUT};

use super::Socket;
use crate::error::{Error, Result};
use crate::kind::{HasMultipart, Receives, Sends};
use crate::message::Multipart;

/// Yields received messages until the context ends. Only one task may use it; two tasks need the
/// halves of [`Socket::split`], not of `StreamExt::split`.
impl<K: Receives + HasMultipart> Stream for Socket<K> {
    type Item = Result<Multipart>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_waiting() {
            // Report the end of a wait, so that the socket learns how long waits take.
            match ready!(this.poll_wait(cx, POLLIN)) {
                Err(Error::Terminated) | Ok(()) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        loop {
            match this.get_mut().try_recv_multipart() {
                Err(Error::WouldBlock) => match ready!(this.poll_wait(cx, POLLIN)) {
                    Err(Error::Terminated) => return Poll::Ready(None),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                    Ok(()) => {}
                },
                Err(Error::Terminated) => return Poll::Ready(None),
                outcome => return Poll::Ready(Some(outcome)),
            }
        }
    }
}

/// Sends messages. At most one message waits inside for room in the peers' queues. Flush before you
/// call `send` or [`Socket::into_blocking`]: `send` would overtake this message, and
/// `into_blocking` would drop it.
impl<K: Sends + HasMultipart> Sink<Multipart> for Socket<K> {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        while let Some(message) = &this.unsent_message {
            match this.socket.try_send_multipart(message) {
                Err(Error::WouldBlock) => ready!(this.poll_wait(cx, POLLOUT))?,
                outcome => {
                    this.unsent_message = None;
                    return Poll::Ready(outcome);
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, message: Multipart) -> Result<()> {
        let this = self.get_mut();
        match this.socket.try_send_multipart(&message) {
            Err(Error::WouldBlock) => {
                this.unsent_message = Some(message);
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_ready(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_ready(cx)
    }
}
