//! SUB and XSUB (RFC 29): send the wanted topics to every publisher, and receive from all of them
//! fairly. SUB subscribes by option and delivers only matching messages. XSUB subscribes by sending
//! messages, delivers every message, and may send other messages to the publishers.
//!
//! Each pipe gets all subscriptions when it is attached, and again after each reconnect. Equal
//! subscriptions are counted. Each subscription is forwarded, but only the last cancellation (with
//! ZMQ_XSUB_VERBOSE_UNSUBSCRIBE each one).

use super::fan_out::FanOut;
use super::publisher_filter::{PublisherFilter, Restricted, Unrestricted};
use super::rotation::FairQueue;
use super::subscriptions::OwnSubscriptions;
use super::{Pattern, Received, Sent};
use crate::error::{Error, NoMemory};
use crate::pipe::{Part, PipeId, Pipes, Route, Target, TopicAccess};
use tautline_proto::{command, legacy_subscription};
use tautline_queue::message::Message;
use tautline_queue::sync::Arc;

#[cfg(test)]
mod tests;

/// The behaviour of a SUB or XSUB socket.
pub(crate) struct Subscriber<S> {
    /// True for SUB: it also drops messages without a subscription here, and cannot send.
    filters: bool,
    subscriptions: OwnSubscriptions,
    incoming: FairQueue,
    upstream: FanOut,
    /// XSUB: true if later parts of the message being sent may be subscriptions.
    may_subscribe: bool,
    /// A message that has passed the filter, taken from a pipe that does not support peeking
    /// (ZMQ_CONFLATE), and its pipe.
    passed: Option<(Message, Option<PipeId>)>,
    /// Buffer for building a command.
    scratch: Vec<u8>,
    /// Permissions of the publishers.
    publisher_filter: S,
}

impl Subscriber<Unrestricted> {
    /// Creates a SUB (`filters`) or an XSUB.
    pub(crate) fn new(filters: bool) -> Self {
        Subscriber {
            filters,
            subscriptions: OwnSubscriptions::default(),
            incoming: FairQueue::default(),
            upstream: FanOut::default(),
            may_subscribe: false,
            passed: None,
            scratch: Vec::new(),
            publisher_filter: Unrestricted,
        }
    }
}

impl<S: PublisherFilter> Subscriber<S> {
    /// Sends all subscriptions to one pipe.
    fn announce(&mut self, pipes: &mut Pipes, id: PipeId) {
        let Some(pipe) = pipes.get(id) else { return };
        for topic in self.subscriptions.iter() {
            write_command(&mut self.scratch, true, topic);
            pipe.send_command(&self.scratch);
        }
    }

    /// Counts a subscription or cancellation. Returns true if it must be sent to the publishers.
    fn count(&mut self, pipes: &Pipes, topic: &[u8], subscribe: bool) -> Result<bool, NoMemory> {
        let prefix = command::subscribe_prefix().len().max(command::cancel_prefix().len());
        self.scratch.clear();
        self.scratch.try_reserve(prefix + topic.len())?;
        if subscribe {
            self.subscriptions.make_room(topic)?;
            self.subscriptions.add(topic);
            self.show_topics(pipes);
            return Ok(true);
        }
        let was_last = self.subscriptions.remove(topic);
        if was_last {
            self.show_topics(pipes);
        }
        Ok(was_last || pipes.options.xsub_verbose_unsubscribe)
    }

    /// Shows the first topics to tools.
    fn show_topics(&self, pipes: &Pipes) {
        pipes.shared.discards.note_subscriptions(self.subscriptions.iter());
    }

    /// Sends a subscription or cancellation to all publishers.
    fn send_subscription(&mut self, pipes: &mut Pipes, topic: &[u8], subscribe: bool) {
        write_command(&mut self.scratch, subscribe, topic);
        for &id in self.upstream.pipes() {
            if let Some(pipe) = pipes.get(id) {
                pipe.send_command(&self.scratch);
            }
        }
    }

    /// True if messages need no check.
    #[inline]
    fn passes_all(&self, pipes: &Pipes) -> bool {
        !self.publisher_filter.must_check()
            && (!self.filters || (self.subscriptions.match_all() && !pipes.options.invert_matching))
    }

    /// True if a message is wanted. Its first part is `head` followed by `tail`.
    #[inline]
    fn wants(&self, invert: bool, head: &[u8], tail: &[u8]) -> bool {
        // An XSUB wants every message.
        (S::CHECKS_UNFILTERED && !self.filters) || self.subscriptions.matches(head, tail) != invert
    }

    /// Drops unwanted messages. Returns false if there is no wanted one.
    fn find(&mut self, pipes: &mut Pipes) -> Result<bool, NoMemory> {
        let invert = pipes.options.invert_matching;
        while let Some(id) = self.incoming.select(pipes) {
            let Some(pipe) = pipes.get(id) else { return Ok(false) };
            let may = self.publisher_filter.permissions_of(pipe);
            if let Some([head, tail]) = pipe.incoming.peek()? {
                if self.wants(invert, head, tail) {
                    let Some(refused) = self.publisher_filter.refused_topic(&may, head, tail) else {
                        return Ok(true);
                    };
                    self.publisher_filter.report_refusal(pipes, id, &refused);
                }
                self.incoming.skip_message(pipes);
                continue;
            }
            let mut message = Message::new();
            if self.incoming.recv(pipes, &mut Target::Message(&mut message)).is_ok()
                && self.wants(invert, message.as_slice(), b"")
            {
                match self.publisher_filter.refused_topic(&may, message.as_slice(), b"") {
                    Some(refused) => self.publisher_filter.report_refusal(pipes, id, &refused),
                    None => {
                        self.passed = Some((message, Some(id)));
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

fn write_command(out: &mut Vec<u8>, subscribe: bool, topic: &[u8]) {
    out.clear();
    out.extend_from_slice(if subscribe { command::subscribe_prefix() } else { command::cancel_prefix() });
    out.extend_from_slice(topic);
}

impl<S: PublisherFilter> Pattern for Subscriber<S> {
    fn attach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.incoming.attach(id);
        self.upstream.attach(id);
        self.announce(pipes, id);
    }

    fn ready(&mut self, pipes: &mut Pipes, id: PipeId, reconnected: bool) {
        if reconnected {
            self.announce(pipes, id);
        }
        if let Some(pipe) = pipes.get(id) {
            self.publisher_filter.add_peer(id, pipe);
        }
    }

    fn handle_readable(&mut self, _pipes: &mut Pipes, id: PipeId) {
        self.incoming.mark_readable(id);
    }

    fn detach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.incoming.detach(pipes, id);
        self.upstream.detach(id);
        self.publisher_filter.remove_peer(id);
        if let Some((_, from)) = &mut self.passed {
            from.take_if(|from| *from == id);
        }
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        if self.filters {
            return Err(Error::NotSupported);
        }
        let first = !self.upstream.in_message();
        if first {
            self.upstream.begin();
            self.upstream.mark_all();
            self.may_subscribe = true;
        }
        let subscription = if self.may_subscribe { legacy_subscription(part.bytes()) } else { None };
        if first {
            self.may_subscribe = !pipes.options.only_first_subscribe || subscription.is_some();
        }
        if let Some((subscribe, topic)) = subscription {
            let tell = self.count(pipes, topic, subscribe)?;
            if first && !part.more {
                if tell {
                    self.send_subscription(pipes, topic, subscribe);
                }
                part.consume();
                return Ok(Sent::UNADDRESSED);
            }
            // Within a multipart message, a subscription is also sent as a part.
        }
        self.upstream.send(pipes, part);
        Ok(Sent::UNADDRESSED)
    }

    #[inline]
    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if self.passed.is_none() && (pipes.receiving || self.passes_all(pipes)) {
            let received = self.incoming.recv(pipes, target)?;
            let sole = if self.passes_all(pipes) { self.incoming.sole() } else { None };
            return Ok(Received { route: Route::pipe(sole), ..received });
        }
        if self.passed.is_none() && !self.find(pipes)? {
            return Err(Error::Again);
        }
        match self.passed.take() {
            Some((message, from)) => Ok(Received::new(from, target.put_message(message))),
            None => self.incoming.recv(pipes, target),
        }
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        // XSUB: publishers without room miss the message. Sending never waits.
        !self.filters
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        if self.passed.is_some() || pipes.receiving {
            return true;
        }
        if self.passes_all(pipes) {
            self.incoming.can_recv(pipes)
        } else {
            // If there is no memory to check a message, a receive fails at once and does not block.
            self.find(pipes).unwrap_or(true)
        }
    }

    fn subscribe(&mut self, pipes: &mut Pipes, topic: &[u8], subscribe: bool) -> Result<(), Error> {
        if !self.filters {
            return Err(Error::Invalid);
        }
        if self.count(pipes, topic, subscribe)? {
            self.send_subscription(pipes, topic, subscribe);
        }
        Ok(())
    }

    fn restrict_topics(&mut self, keeper: Arc<dyn TopicAccess>) -> Option<Box<dyn Pattern>> {
        Some(Box::new(Subscriber {
            filters: self.filters,
            subscriptions: std::mem::take(&mut self.subscriptions),
            incoming: std::mem::take(&mut self.incoming),
            upstream: std::mem::take(&mut self.upstream),
            may_subscribe: self.may_subscribe,
            passed: self.passed.take(),
            scratch: Vec::new(),
            publisher_filter: Restricted::new(keeper),
        }))
    }

    fn topics_count(&self) -> Option<usize> {
        Some(self.subscriptions.len())
    }
}
