//! Requests to the application's ZAP handler (RFC 27), which decides if a peer is admitted.
//!
//! The handler is a REP, ROUTER or SERVER socket that is bound to `inproc://zeromq.zap.01`. A
//! handshake that needs it creates its own inproc pipe, sends one request and waits for one reply,
//! all from the I/O thread. The handler's owner wakes it by a task's waker, so a request needs no
//! descriptor. `tautline_proto::zap` defines the frames.

use crate::conn::inproc::{self, InprocEnd, Keep};
use crate::conn::{News, PeerInfo, SocketInbox, Waker};
use crate::options::type_info::SocketTypeInfo;
use crate::options::{ContextDefaults, Options};
use std::task;
use tautline_io::errno;
use tautline_proto::zap::{self, REPLY_FRAMES, ZapReply};
use tautline_proto::{ProtocolError, SocketType, frame};
use tautline_queue::FrameReader;
use tautline_queue::handoff::inbox::Inbox;
use tautline_queue::message::Message;
use tautline_queue::sync::{Arc, Mutex, lock};

/// The place where the handler of a context is registered.
#[derive(Default)]
pub(crate) struct ZapRegistry {
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
pub(crate) enum RequestError {
    /// No handler is bound.
    Nobody,
    /// The request could not be made.
    Failed(i32),
}

impl ZapRegistry {
    /// Registers a socket that was bound to the handler's name.
    pub(crate) fn open(&self, socket_type: SocketType, inbox: &Arc<SocketInbox>, receive_hwm: u32) {
        *lock(&self.handler) = if SocketTypeInfo::of(socket_type).can_handle_zap {
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
    ) -> Result<ZapRequest, RequestError> {
        let handler = lock(&self.handler);
        let (handler_inbox, receive_hwm) = match &*handler {
            Handler::Nobody => return Err(RequestError::Nobody),
            Handler::Unfit => return Err(RequestError::Failed(errno::EFAULT)),
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
            return Err(RequestError::Failed(errno::EFAULT));
        };
        mine.end.attach(&inbox, 0, 0);
        // The request may contain a password.
        writer.keep_secret();
        let mut frames = frames.peekable();
        while let Some(body) = frames.next() {
            let flags = if frames.peek().is_some() { frame::MORE } else { 0 };
            writer.append(flags, body).map_err(|_| RequestError::Failed(errno::ENOMEM))?;
        }
        writer.publish();
        theirs.end.set_receive_hwm(receive_hwm);
        theirs.end.mark_bound();
        theirs.end.set_inbox(handler_inbox);
        // Still under the lock: the handler cannot leave before it has the request.
        handler_inbox.push(News::Inproc(Box::new(theirs)));
        let mut inquiry = ZapRequest { reader, _writer: writer, _end: mine.end, inbox, waker, gone: false };
        if !inquiry.arm_waker() {
            inquiry.waker.wake_by_ref();
        }
        Ok(inquiry)
    }
}

/// A request that waits for its reply. Dropping it withdraws the request.
pub(crate) struct ZapRequest {
    reader: FrameReader,
    // Dropped before the end, which tells the handler that the request is over.
    _writer: tautline_queue::FrameWriter,
    _end: InprocEnd,
    inbox: Arc<SocketInbox>,
    waker: task::Waker,
    gone: bool,
}

/// Current result of a request.
#[derive(Debug)]
pub(crate) enum ReplyState {
    /// No reply yet: the waker tells when to check again.
    Pending,
    /// The reply, or the error in it.
    Given(Result<ZapReply, ProtocolError>),
    /// The handler has left without a reply.
    Lost,
}

impl ZapRequest {
    /// Makes the next event wake the waker, once. Returns false if an event has already occurred.
    fn arm_waker(&mut self) -> bool {
        self.inbox.waker().set_task(Some(&self.waker));
        self.inbox.prepare_park() && !self.reader.is_ready()
    }

    /// Checks for the reply.
    pub(crate) fn answer(&mut self) -> ReplyState {
        self.inbox.finish_park();
        loop {
            self.gone |= self.inbox.drain().into_iter().any(|news| matches!(news, News::PeerClosed(_)));
            if self.reader.is_ready() {
                return ReplyState::Given(self.read());
            }
            if self.gone {
                return ReplyState::Lost;
            }
            if self.arm_waker() {
                return ReplyState::Pending;
            }
            self.inbox.finish_park();
        }
    }

    fn read(&mut self) -> Result<ZapReply, ProtocolError> {
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
        zap::parse_reply(&bodies)
    }
}

impl Drop for ZapRequest {
    fn drop(&mut self) {
        self.inbox.close();
        // The handler may hold the inbox for a long time.
        self.inbox.waker().set_task(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn withdrawn_requests_do_not_accumulate() {
        let desk = ZapRegistry::default();
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
