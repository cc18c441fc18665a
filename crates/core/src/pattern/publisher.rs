//! PUB and XPUB (RFC 29): distribute each message to the peers with a matching subscription. XPUB
//! delivers the subscriptions, and all other messages of its peers, to the program. PUB is an XPUB
//! that hides them.
//!
//! Subscriptions arrive as SUBSCRIBE and CANCEL commands, or as messages that begin with a byte 1
//! or 0 (from older peers, and from XSUB programs that send them within a multipart message).
//! Subscriptions take effect as soon as the owner reads them, in any of its calls.

use super::fan_out::FanOut;
use super::greeting::send_first;
use super::notices::{NoticeOrigin, SubscriptionChange, SubscriptionNotices};
use super::polled_pipes::{PolledPipes, is_read_to_the_end};
use super::subscription_permissions::SubscriptionPermissions;
use super::subscriptions::{Membership, PeerSubscriptions, Removal, SoleTarget};
use super::{Pattern, Received, Sent};
use crate::error::{Error, NoMemory};
use crate::pipe::{Broadcast, OnFull, Part, PipeId, Pipes, Route, Target, TopicAccess};
use notice_rules::NoticeRules;
use restricted::awaits_handshake;
use tautline_io::errno;
use tautline_proto::{command, frame, legacy_subscription};
use tautline_queue::message::Message;
use tautline_queue::sync::Arc;

mod notice_rules;
mod restricted;
#[cfg(test)]
mod tests;

/// Maximum number of frames that are read from one pipe before a message to be sent has its turn.
const BATCH: usize = 1000;

/// The behaviour of a PUB or XPUB socket.
pub(crate) struct Publisher {
    /// True for PUB: the program never sees subscriptions.
    hidden: bool,
    distribution: FanOut,
    /// True if peers with the same subscriptions may be grouped.
    grouped: bool,
    /// Subscriptions in force: those of the peers, or those that the program sets with
    /// ZMQ_XPUB_MANUAL.
    subscriptions: PeerSubscriptions,
    /// With ZMQ_XPUB_MANUAL: the subscriptions that the peers have asked for.
    requested: PeerSubscriptions,
    /// The pipe or group that gets all messages, if only one pipe or group gets messages. Reset
    /// when a peer, a subscription or an option changes.
    sole: SoleTarget,
    /// The pipe whose subscription the program has received last. ZMQ_SUBSCRIBE and ZMQ_UNSUBSCRIBE
    /// apply to it.
    last: Option<PipeId>,
    /// Pipes that are gone but still have topics to be removed.
    leaving: Vec<PipeId>,
    /// True if `clean_up_step` has work to do.
    needs_clean_up: bool,
    /// The receive queue of the program (XPUB).
    notices: SubscriptionNotices,
    polled: PolledPipes,
    /// Subscription permissions of the peers, if a policy or the program limits them.
    permits: Option<Box<SubscriptionPermissions>>,
    /// The frame being processed.
    frame: Message,
}

impl Publisher {
    /// Creates a PUB (`hidden`) or an XPUB.
    pub(crate) fn new(hidden: bool) -> Self {
        Publisher {
            hidden,
            distribution: FanOut::default(),
            grouped: true,
            subscriptions: PeerSubscriptions::default(),
            requested: PeerSubscriptions::default(),
            sole: SoleTarget::Unknown,
            last: None,
            leaving: Vec::new(),
            needs_clean_up: false,
            notices: SubscriptionNotices::default(),
            polled: PolledPipes::default(),
            permits: None,
            frame: Message::new(),
        }
    }

    /// Reads the pipe's received frames. Stops after about one batch, unless its peer is gone.
    /// Returns true if the pipe was read to the end.
    fn take(&mut self, pipes: &mut Pipes, id: PipeId) -> bool {
        if self.permits.is_some() && awaits_handshake(pipes, id) {
            // The permissions of this peer are not known yet. The pipe is read again when they are.
            return true;
        }
        let mut within = None;
        let mut taken = 0;
        let limit = pipes.options.receive_hwm;
        loop {
            if !self.distribution.contains(id) {
                return true;
            }
            let Some(pipe) = pipes.get(id) else { return true };
            if within.is_none() && (taken >= BATCH || self.notices.is_full(id, limit)) && !pipe.has_ended() {
                return false;
            }
            taken += 1;
            let mut frame = std::mem::take(&mut self.frame);
            let head = match pipes.recv_any(id, &mut frame) {
                Ok(Some(head)) => head,
                Ok(None) => return pipes.get(id).is_none_or(is_read_to_the_end),
                Err(NoMemory) => {
                    self.evict(pipes, id, errno::ENOMEM);
                    return true;
                }
            };
            if head.flags & frame::COMMAND != 0 {
                self.take_command(pipes, id, &frame);
            } else {
                within = self.take_part(pipes, id, &mut frame, within);
                if head.flags & frame::MORE == 0 {
                    within = None;
                }
            }
            self.frame = frame;
        }
    }

    /// Handles a SUBSCRIBE or CANCEL. Other commands are ignored.
    fn take_command(&mut self, pipes: &mut Pipes, id: PipeId, frame: &Message) {
        let body = frame.as_slice();
        if let Some(topic) = body.strip_prefix(command::subscribe_prefix()) {
            self.take_subscription(pipes, id, frame, true, topic);
        } else if let Some(topic) = body.strip_prefix(command::cancel_prefix()) {
            self.take_subscription(pipes, id, frame, false, topic);
        }
    }

    /// Handles a part of a message. `within` is `None` for the first part; for later parts, it is
    /// true if the earlier parts allow this part to be a subscription. Returns `within` for the
    /// next part.
    fn take_part(
        &mut self,
        pipes: &mut Pipes,
        id: PipeId,
        part: &mut Message,
        within: Option<bool>,
    ) -> Option<bool> {
        // True if parts of this message may be subscriptions.
        let may_subscribe = within.unwrap_or(true);
        let subscription = if may_subscribe { legacy_subscription(part.as_slice()) } else { None };
        let next = match within {
            None => !pipes.options.only_first_subscribe || subscription.is_some(),
            Some(decided) => decided,
        };
        if let Some((subscribe, topic)) = subscription {
            self.take_subscription(pipes, id, part, subscribe, topic);
        } else if !self.hidden {
            if self.notices.make_room(1, 0).is_err() {
                self.evict(pipes, id, errno::ENOMEM);
                return None;
            }
            self.notices.put_part(id, std::mem::take(part));
        }
        Some(next)
    }

    /// Applies a peer's subscription or cancellation, which arrived in `frame`.
    fn apply(&mut self, pipes: &mut Pipes, id: PipeId, frame: &Message, subscribe: bool, topic: &[u8]) {
        self.sole = SoleTarget::Unknown;
        if self.make_room(pipes, id, subscribe, topic).is_err() {
            return self.evict(pipes, id, errno::ENOMEM);
        }
        self.remove_leaving_from(pipes, topic);
        if !pipes.options.xpub_manual {
            self.ungroup(pipes, id, subscribe, topic);
        }
        let options = &pipes.options;
        let topics = if options.xpub_manual { &mut self.requested } else { &mut self.subscriptions };
        let (new, tell, origin);
        if options.xpub_manual {
            new = topics.has(topic, id) != subscribe;
            (tell, origin) = (true, NoticeOrigin::Manual(Some(id)));
            if subscribe {
                topics.add(topic, id);
            } else {
                topics.remove(topic, id);
            }
        } else {
            origin = NoticeOrigin::Applied(Some(id));
            if subscribe {
                new = topics.add(topic, id);
                tell = new || options.xpub_verbose || options.xpub_verboser;
            } else {
                let removed = topics.remove(topic, id);
                new = removed == Removal::Last;
                tell = removed != Removal::StillSubscribed || options.xpub_verboser;
            }
        }
        self.needs_clean_up |= !topics.is_clean();
        let held = topics.memory_of(id);
        if subscribe && pipes.most_subscriptions(id).is_some_and(|limit| held > limit) {
            return self.evict(pipes, id, errno::ENOBUFS);
        }
        if tell && !self.hidden {
            self.notices.put_change(SubscriptionChange { subscribe, topic, new }, frame.metadata(), origin);
        }
    }

    /// Subscribes or unsubscribes the peer that the program has heard of last (ZMQ_XPUB_MANUAL).
    fn apply_manual(&mut self, pipes: &mut Pipes, topic: &[u8], subscribe: bool) -> Result<(), Error> {
        self.sole = SoleTarget::Unknown;
        if let Some(last) = self.last.filter(|_| subscribe) {
            self.subscriptions.make_room(topic, last)?;
        }
        self.remove_leaving_from(pipes, topic);
        if let Some(last) = self.last {
            self.ungroup(pipes, last, subscribe, topic);
            if subscribe {
                self.subscriptions.add(topic, last);
            } else {
                self.subscriptions.remove(topic, last);
            }
        }
        Ok(())
    }

    /// Makes room for a peer's subscription or cancellation.
    fn make_room(
        &mut self,
        pipes: &Pipes,
        id: PipeId,
        subscribe: bool,
        topic: &[u8],
    ) -> Result<(), NoMemory> {
        let manual = pipes.options.xpub_manual;
        let topics = if manual { &mut self.requested } else { &mut self.subscriptions };
        if subscribe {
            topics.make_room(topic, id)?;
        }
        if self.hidden { Ok(()) } else { self.notices.make_room(1, topic.len()) }
    }

    /// Expels a peer that holds more topics than allowed (ENOBUFS, ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS:
    /// it may try to exhaust our memory), or more than there is memory for (ENOMEM).
    #[cold]
    fn evict(&mut self, pipes: &mut Pipes, id: PipeId, errno: i32) {
        self.detach(pipes, id);
        pipes.evict(id, errno);
    }

    /// Removes some topics of the pipes that have ended: of all such pipes, or only of this one. If
    /// the program was not notified of a subscription, it is not notified of its end.
    #[cold]
    fn clean_up_step(&mut self, pipes: &mut Pipes, only: Option<PipeId>) {
        if !self.hidden && self.notices.make_room(BATCH, 0).is_err() {
            // There is no memory; try again later.
            self.needs_clean_up = true;
            return;
        }
        let tells = NoticeRules::of(self.hidden, pipes);
        let Publisher { subscriptions, requested, notices, leaving, .. } = self;
        subscriptions
            .remove_some_leaving(only, |_, topic, last| tells.report_unsubscription(notices, topic, last));
        requested.remove_some_leaving(only, |id, topic, _| tells.report_request_end(notices, id, topic));
        leaving.retain(|&id| {
            let others = only.is_some_and(|only| only != id);
            if others
                || subscriptions.is_leaving(id)
                || requested.is_leaving(id)
                || !notices.queue_some_deferred(id)
            {
                return true;
            }
            pipes.release_id(id);
            false
        });
        self.needs_clean_up =
            !self.leaving.is_empty() || !self.subscriptions.is_clean() || !self.requested.is_clean();
        self.sole = SoleTarget::Unknown;
    }

    /// Sends the pending notices for this topic in order, because a peer is about to change it.
    fn remove_leaving_from(&mut self, pipes: &Pipes, topic: &[u8]) {
        if self.leaving.is_empty() {
            return;
        }
        let tells = NoticeRules::of(self.hidden, pipes);
        let Publisher { subscriptions, requested, notices, .. } = self;
        subscriptions
            .remove_leaving_from(topic, |_, topic, last| tells.report_unsubscription(notices, topic, last));
        requested.remove_leaving_from(topic, |id, topic, _| tells.report_request_end(notices, id, topic));
    }

    /// Takes the pipe out of its group before its topics change, unless they stay the same.
    fn ungroup(&mut self, pipes: &mut Pipes, id: PipeId, subscribe: bool, topic: &[u8]) {
        let Publisher { distribution, subscriptions, .. } = self;
        if subscriptions.has(topic, id) != subscribe {
            subscriptions.ungroup(id, |change| apply_membership(distribution, pipes, change));
        }
    }

    /// Groups the peers that get the same messages, unless the options make their messages differ.
    #[cold]
    fn regroup(&mut self, pipes: &mut Pipes) {
        let Publisher { distribution, subscriptions, grouped, .. } = self;
        *grouped = may_group(pipes);
        if *grouped {
            let mut changes = Vec::new();
            subscriptions
                .regroup(|id| pipes.get(id).is_some_and(Broadcast::can_join), |change| changes.push(change));
            for change in changes {
                apply_membership(distribution, pipes, change);
            }
        } else {
            subscriptions.ungroup_all(|change| apply_membership(distribution, pipes, change));
        }
    }

    /// Polls the pipes that do not announce new messages, and the pipes that were not read to the
    /// end.
    #[inline]
    fn poll(&mut self, pipes: &mut Pipes) {
        if self.needs_clean_up {
            self.clean_up_step(pipes, None);
        }
        if self.polled.next(&mut 0, pipes).is_some() {
            self.poll_listed(pipes);
        }
    }

    /// Reads one batch from each pipe in the list. Returns true if all were read to the end.
    fn poll_listed(&mut self, pipes: &mut Pipes) -> bool {
        let mut all = true;
        let mut index = 0;
        while let Some(id) = self.polled.next(&mut index, pipes) {
            let finished = self.take(pipes, id);
            all &= finished;
            self.polled.record_read(&mut index, id, finished);
        }
        all
    }

    /// True if the program can receive a notice.
    fn has_notices(&mut self, pipes: &mut Pipes) -> Result<bool, NoMemory> {
        // Frames left in a pipe are not announced again, so all must be read before the caller
        // waits.
        while !self.poll_listed(pipes) && self.notices.is_empty() {}
        if self.needs_clean_up {
            self.clean_up_step(pipes, None);
        }
        Ok(!self.notices.is_empty() || self.notices.refill()?)
    }

    /// Sets `sole` if the last message and all following ones go to one pipe or group only.
    #[inline(never)]
    fn find_sole(&mut self, pipes: &Pipes) {
        let options = &pipes.options;
        if !options.invert_matching && !options.xpub_manual && !self.subscriptions.has_changed() {
            self.sole = self.subscriptions.sole();
        }
    }

    /// Sends a message of one part to the sole destination, if it is known and certainly has room.
    /// Returns `None` if the message was not sent.
    #[inline]
    fn send_to_sole(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Option<Route> {
        let route = match self.sole {
            SoleTarget::Pipe(id) => {
                let pipe = pipes.get(id)?;
                if !pipe.outgoing.has_room(OnFull::SlowPath) {
                    return None;
                }
                pipe.send_or_drop(part);
                if self.polled.is_empty() {
                    Route::pipe(Some(id))
                } else if self.polled.is_only(id) {
                    Route::pipe_until_input(id)
                } else {
                    Route::NONE
                }
            }
            SoleTarget::Group(group) => {
                if !pipes.try_publish_fast(group, part.bytes()) {
                    return None;
                }
                part.consume();
                if self.polled.is_empty() { Route::broadcast(group) } else { Route::NONE }
            }
            SoleTarget::Unknown | SoleTarget::Nobody => return None,
        };
        Some(if pipes.expects_input() || self.needs_clean_up { Route::NONE } else { route })
    }

    /// Marks the pipes that a new message goes to.
    #[inline]
    fn match_subject(&mut self, pipes: &mut Pipes, subject: &[u8]) {
        if self.grouped != may_group(pipes) || self.grouped && self.subscriptions.has_changed() {
            self.regroup(pipes);
        }
        let Publisher { distribution, subscriptions, .. } = self;
        let options = &pipes.options;
        distribution.begin();
        let only = if options.xpub_manual && options.xpub_manual_last_value { self.last } else { None };
        subscriptions.for_each_match(subject, |subscribers| {
            subscribers.groups().iter().for_each(|&group| distribution.mark_group(group));
            for &id in subscribers.single() {
                if only.is_none_or(|only| only == id) {
                    distribution.mark(id);
                }
            }
        });
        if options.invert_matching {
            distribution.invert();
            if let Some(permits) = &self.permits {
                distribution.retain(|id| permits.may_see(id, subject));
            }
        }
    }
}

/// True if equal subscriptions mean equal messages.
#[inline]
fn may_group(pipes: &Pipes) -> bool {
    !pipes.options.invert_matching && !pipes.options.xpub_manual_last_value
}

fn apply_membership(distribution: &mut FanOut, pipes: &mut Pipes, change: Membership) {
    match change {
        Membership::Joined(group, pipe) => pipes.with_broadcast(group, |broadcast, _| broadcast.join(pipe)),
        Membership::Left(group, pipe) => distribution.leave(pipes, group, pipe),
    }
}

impl Pattern for Publisher {
    fn attach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.sole = SoleTarget::Unknown;
        self.distribution.attach(id);
        let options = pipes.options.clone();
        let welcome = &options.xpub_welcome_msg;
        if let Some(pipe) = pipes.get(id) {
            if !welcome.is_empty() {
                send_first(pipe, welcome);
            }
            if pipe.is_inproc() {
                self.polled.add(id);
            }
        }
        self.distribution.wake_together(pipes);
        self.handle_readable(pipes, id);
    }

    fn ready(&mut self, pipes: &mut Pipes, id: PipeId, _reconnected: bool) {
        if self.permits.is_some() {
            self.update_permissions(pipes, id);
        }
        if pipes.get(id).is_some_and(|pipe| !pipe.is_inproc()) {
            pipes.expect_input();
        }
    }

    fn handle_readable(&mut self, pipes: &mut Pipes, id: PipeId) {
        if !self.take(pipes, id) {
            self.polled.leave_unfinished(id);
        }
    }

    fn detach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.sole = SoleTarget::Unknown;
        self.polled.forget(id);
        if let Some(permits) = &mut self.permits {
            permits.remove_peer(id);
        }
        if self.last == Some(id) {
            self.last = None;
        }
        let Publisher { distribution, subscriptions, .. } = self;
        subscriptions.ungroup(id, |change| apply_membership(distribution, pipes, change));
        self.distribution.detach(id);
        let manual = pipes.options.xpub_manual;
        self.subscriptions.leave(id, !self.hidden && !manual);
        self.requested.leave(id, !self.hidden && manual);
        if !self.hidden {
            self.notices.forget(id);
        }
        self.leaving.push(id);
        pipes.reserve_id(id);
        self.clean_up_step(pipes, Some(id));
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        if !self.distribution.in_message() {
            self.poll(pipes);
            if !part.more
                && let Some(route) = self.send_to_sole(pipes, part)
            {
                return Ok(Sent { to: None, route });
            }
            self.match_subject(pipes, part.bytes());
            if pipes.shared.discards.wants_topic() {
                pipes.shared.discards.note_topic(part.bytes(), self.subscriptions.len());
            }
            if self.distribution.is_for_nobody() {
                pipes.shared.discards.count_unmatched(part.bytes());
            }
            if pipes.options.xpub_nodrop && !self.distribution.has_room(pipes, part.patient) {
                return Err(Error::Again);
            }
            if pipes.options.xpub_manual_last_value {
                self.last = None;
            }
        }
        self.distribution.send(pipes, part);
        if self.sole == SoleTarget::Unknown
            && (self.distribution.went_to_one() || self.distribution.went_to_one_group())
        {
            self.find_sole(pipes);
        }
        Ok(Sent::UNADDRESSED)
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if self.hidden {
            return Err(Error::NotSupported);
        }
        if self.notices.is_empty() && !self.has_notices(pipes)? {
            return Err(Error::Again);
        }
        let (part, origin) = self.notices.take().ok_or(Error::Again)?;
        if let NoticeOrigin::Manual(pipe) = origin {
            self.last = pipe;
        }
        Ok(Received::new(origin.pipe(), target.put_message(part)))
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        // A message without a destination is dropped. With ZMQ_XPUB_NODROP the answer depends on
        // the topic, which is not known yet.
        true
    }

    fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        // The pipes of the refused message are still marked.
        !pipes.options.xpub_nodrop || self.distribution.has_room(pipes, true)
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        // Read hidden subscriptions too: ZMQ_TOPICS_COUNT counts them. If memory is short, a
        // receive fails at once and does not block.
        self.has_notices(pipes).unwrap_or(true) && !self.hidden
    }

    fn subscribe(&mut self, pipes: &mut Pipes, topic: &[u8], subscribe: bool) -> Result<(), Error> {
        if self.hidden || !pipes.options.xpub_manual {
            return Err(Error::Invalid);
        }
        if self.permits.is_some() {
            return self.apply_manual_granted(pipes, topic, subscribe);
        }
        self.apply_manual(pipes, topic, subscribe)
    }

    fn restrict_topics(&mut self, keeper: Arc<dyn TopicAccess>) -> Option<Box<dyn Pattern>> {
        self.permits = Some(Box::new(SubscriptionPermissions::new(keeper)));
        None
    }

    fn option_changed(&mut self, _pipes: &mut Pipes, _code: i32) {
        self.sole = SoleTarget::Unknown;
    }

    fn has_more_to_do(&self) -> bool {
        self.needs_clean_up
    }

    fn request_topic(&mut self) {
        self.sole = SoleTarget::Unknown;
    }

    fn topics_count(&self) -> Option<usize> {
        Some(self.subscriptions.len())
    }
}
