//! Requests to the application's ZAP handler (RFC 27), which decides if a peer is admitted.
//!
//! The handler is a REP, ROUTER or SERVER socket that is bound to `inproc://zeromq.zap.01`. A
//! handshake that needs it creates its own inproc pipe, sends one request and waits for one reply,
//! all from the I/O thread. The handler's owner wakes it by a task's waker, so a request needs no
//! descriptor. `tautline_proto::zap` defines the frames.

use crate::conn::inproc::{self, InprocEnd, Keep};
use crate::conn::{News, PeerInfo, SocketInbox, Waker};
use crate::message::Message;
use crate::options::facts::Facts;
use crate::options::{ContextDefaults, Options};
use crate::queue::{FrameReader, Inbox};
use crate::sync::{Arc, Mutex, lock};
use std::task;
use tautline_io::errno;
use tautline_proto::zap::{self, REPLY_FRAMES, Verdict};
use tautline_proto::{ProtocolError, SocketType, frame};

/// The place where the handler of a context is registered.
#[derive(Default)]
pub(crate) struct Desk {
    handler: Mutex<Handler>,
}

#[derive(Default)]
enum Handler {
    #[default]
    Nobody,
    Bound {
        inbox: Arc<SocketInbox>,
        receive_hwm: u32,
    },
    /// A socket that cannot reply.
    Unfit,
}

/// Reason why no handler was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// No handler is bound.
    Nobody,
    /// The request could not be made.
    Failed(i32),
}

impl Desk {
    /// Registers a socket that was bound to the handler's name.
    pub(crate) fn open(&self, socket_type: SocketType, inbox: &Arc<SocketInbox>, receive_hwm: u32) {
        *lock(&self.handler) = if Facts::of(socket_type).answers {
            Handler::Bound { inbox: inbox.clone(), receive_hwm }
        } else {
            Handler::Unfit
        };
    }

    /// Removes the handler, because no socket is bound to the name any longer.
    pub(crate) fn shut(&self) {
        *lock(&self.handler) = Handler::Nobody;
    }

    /// Sends a request of these frames, including the delimiter. `waker` is woken when the reply
    /// may have arrived.
    pub(crate) fn ask<'a>(
        &self,
        frames: impl Iterator<Item = &'a [u8]>,
        waker: task::Waker,
    ) -> Result<Inquiry, Unasked> {
        let handler = lock(&self.handler);
        let (handler_inbox, receive_hwm) = match &*handler {
            Handler::Nobody => return Err(Unasked::Nobody),
            Handler::Unfit => return Err(Unasked::Failed(errno::EFAULT)),
            Handler::Bound { inbox, receive_hwm } => (inbox, *receive_hwm),
        };
        let inbox = Arc::new(Inbox::new(Waker::new()));
        let options = Options::new(SocketType::Req, &ContextDefaults::default());
        let nobody = Box::new(PeerInfo::default());
        let (mine, mut theirs) = inproc::pair(&options, [nobody.clone(), nobody]);
        // If a peer has left or timed out, its reply is useless. Any peer that can connect can
        // cause any number of such requests.
        theirs.keep = Keep::Nothing;
        let (Ok(mut writer), Ok(reader)) = (mine.outgoing, mine.incoming) else {
            return Err(Unasked::Failed(errno::EFAULT));
        };
        mine.end.attach(&inbox, 0, 0);
        // The request may contain a password.
        writer.keep_secret();
        let mut frames = frames.peekable();
        while let Some(body) = frames.next() {
            let flags = if frames.peek().is_some() { frame::MORE } else { 0 };
            writer.append(flags, body).map_err(|_| Unasked::Failed(errno::ENOMEM))?;
        }
        writer.publish();
        theirs.end.set_receive_hwm(receive_hwm);
        theirs.end.meet();
        theirs.end.lies_in(handler_inbox);
        // Still under the lock: the handler cannot leave before it has the request.
        handler_inbox.push(News::Inproc(Box::new(theirs)));
        let mut inquiry = Inquiry { reader, _writer: writer, _end: mine.end, inbox, waker, gone: false };
        if !inquiry.waits() {
            inquiry.waker.wake_by_ref();
        }
        Ok(inquiry)
    }
}

/// A request that waits for its reply. Dropping it withdraws the request.
pub(crate) struct Inquiry {
    reader: FrameReader,
    // Dropped before the end, which tells the handler that the request is over.
    _writer: crate::queue::FrameWriter,
    _end: InprocEnd,
    inbox: Arc<SocketInbox>,
    waker: task::Waker,
    gone: bool,
}

/// Current result of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// No reply yet: the waker tells when to check again.
    Pending,
    /// The reply, or the error in it.
    Given(Result<Verdict, ProtocolError>),
    /// The handler has left without a reply.
    Lost,
}

impl Inquiry {
    /// Makes the next event wake the waker, once. Returns false if an event has already occurred.
    fn waits(&mut self) -> bool {
        self.inbox.waker().set_task(Some(&self.waker));
        self.inbox.prepare_park() && !self.reader.ready()
    }

    /// Checks for the reply.
    pub(crate) fn answer(&mut self) -> Answer {
        self.inbox.finish_park();
        loop {
            self.gone |= self.inbox.drain().into_iter().any(|news| matches!(news, News::Left(_)));
            if self.reader.ready() {
                return Answer::Given(self.read());
            }
            if self.gone {
                return Answer::Lost;
            }
            if self.waits() {
                return Answer::Pending;
            }
            self.inbox.finish_park();
        }
    }

    fn read(&mut self) -> Result<Verdict, ProtocolError> {
        let mut frames = Vec::new();
        loop {
            let mut message = Message::new();
            // If there is no memory for the whole reply, the frames read so far are not a valid
            // reply.
            let Ok(Some(head)) = self.reader.read_message(&mut message) else { break };
            // One frame too many is enough to detect an invalid reply.
            if frames.len() <= REPLY_FRAMES {
                frames.push(message);
            }
            if head.flags & frame::MORE == 0 {
                break;
            }
        }
        let bodies: Vec<&[u8]> = frames.iter().map(Message::as_slice).collect();
        zap::judge(&bodies)
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        self.inbox.close();
        // The handler may hold the inbox for a long time.
        self.inbox.waker().set_task(None);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn requests_that_were_taken_back_do_not_pile_up() {
        let desk = Desk::default();
        let inbox = Arc::new(Inbox::new(Waker::new()));
        desk.open(SocketType::Rep, &inbox, 1000);
        let ask = || {
            let frames = [&b"1.0"[..], b"1"].into_iter();
            desk.ask(frames, task::Waker::noop().clone()).unwrap_or_else(|_| panic!("there is a handler"))
        };
        let kept = ask();
        for _ in 0..100 {
            drop(ask());
            assert!(inbox.len() <= 2, "{}", inbox.len());
        }
        let requests = inbox.drain().into_iter();
        let waiting = requests.filter(|news| matches!(news, News::Inproc(offer) if !offer.end.is_closed()));
        assert_eq!(waiting.count(), 1);
        drop(kept);
    }
}
