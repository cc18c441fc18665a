//! PUB and XPUB (RFC 29): distribute each message to the peers with a matching subscription. XPUB
//! shows the subscriptions, and whatever else its peers send, to the program; PUB is an XPUB that
//! hides them.
//!
//! Subscriptions come as SUBSCRIBE and CANCEL commands, or as messages that begin with a byte 1 or
//! 0 (older peers, and XSUB programs that send them within a multi-part message). They are applied
//! as soon as the owner learns of them, in whatever call it is in.

use super::Pattern;
use super::fan_out::FanOut;
use super::greeting::send_first;
use super::notices::{Change, Notices, Origin};
use super::permits::Permits;
use super::polled::{Polled, is_read_to_the_end};
use super::subscriptions::{PeerSubscriptions, Regrouped, Removed, Sole};
use crate::error::{Error, NoMemory};
use crate::message::Message;
use crate::pipe::{Broadcast, Else, Keeper, Part, PipeId, Pipes, Received, Route, Target};
use crate::sync::Arc;
use kept::is_unknown;
use tautline_io::errno;
use tautline_proto::{command, frame, legacy_subscription};

mod kept;
#[cfg(test)]
mod tests;

/// How many frames of one pipe are taken before a message to be sent has its turn.
const BATCH: usize = 1000;

/// The behaviour of a PUB or XPUB socket.
pub(crate) struct Publisher {
    /// PUB: the program never hears of subscriptions.
    hidden: bool,
    distribution: FanOut,
    /// Peers with the same subscriptions may be grouped.
    grouped: bool,
    /// Subscriptions in force: those of the peers, or what the program made of them with
    /// ZMQ_XPUB_MANUAL.
    subscriptions: PeerSubscriptions,
    /// With ZMQ_XPUB_MANUAL: what the peers have asked for.
    requested: PeerSubscriptions,
    /// Which pipe or group gets everything. Forgotten whenever a peer, a subscription or an option
    /// changes.
    sole: Sole,
    /// The pipe whose subscription the program has just received: ZMQ_SUBSCRIBE and ZMQ_UNSUBSCRIBE
    /// apply to it.
    last: Option<PipeId>,
    /// Pipes that are gone, and whose topics have not all been taken out yet.
    leaving: Vec<PipeId>,
    /// There is something to be done by `tidy`.
    untidy: bool,
    /// What waits for the program (XPUB).
    notices: Notices,
    polled: Polled,
    /// Which peers may subscribe to what, if anything says so.
    permits: Option<Box<Permits>>,
    /// The frame in hand.
    frame: Message,
}

impl Publisher {
    /// A PUB (`hidden`) or an XPUB.
    pub(crate) fn new(hidden: bool) -> Self {
        Publisher {
            hidden,
            distribution: FanOut::default(),
            grouped: true,
            subscriptions: PeerSubscriptions::default(),
            requested: PeerSubscriptions::default(),
            sole: Sole::Unknown,
            last: None,
            leaving: Vec::new(),
            untidy: false,
            notices: Notices::default(),
            polled: Polled::default(),
            permits: None,
            frame: Message::new(),
        }
    }

    /// Takes what the pipe has received, but not much more than a batch, unless its peer is gone;
    /// true if it was read to the end.
    fn take(&mut self, pipes: &mut Pipes, id: PipeId) -> bool {
        if self.permits.is_some() && is_unknown(pipes, id) {
            // What it may do is not known. It is looked at again when it is.
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
                    self.part_with(pipes, id, errno::ENOMEM);
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

    /// A SUBSCRIBE or CANCEL; other commands mean nothing here.
    fn take_command(&mut self, pipes: &mut Pipes, id: PipeId, frame: &Message) {
        let body = frame.as_slice();
        if let Some(topic) = body.strip_prefix(command::subscribe_prefix()) {
            self.take_subscription(pipes, id, frame, true, topic);
        } else if let Some(topic) = body.strip_prefix(command::cancel_prefix()) {
            self.take_subscription(pipes, id, frame, false, topic);
        }
    }

    /// A part of a message. `within` is what the parts before it have decided, `None` for the first
    /// one; the result is for the next.
    fn take_part(
        &mut self,
        pipes: &mut Pipes,
        id: PipeId,
        part: &mut Message,
        within: Option<bool>,
    ) -> Option<bool> {
        // Whether parts of this message may be subscriptions.
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
                self.part_with(pipes, id, errno::ENOMEM);
                return None;
            }
            self.notices.put_part(id, std::mem::take(part));
        }
        Some(next)
    }

    /// A peer wants a topic or does not want it any more. `frame` told it.
    fn apply(&mut self, pipes: &mut Pipes, id: PipeId, frame: &Message, subscribe: bool, topic: &[u8]) {
        self.sole = Sole::Unknown;
        if self.make_room(pipes, id, subscribe, topic).is_err() {
            return self.part_with(pipes, id, errno::ENOMEM);
        }
        self.settle(pipes, topic);
        if !pipes.options.xpub_manual {
            self.ungroup(pipes, id, subscribe, topic);
        }
        let options = &pipes.options;
        let topics = if options.xpub_manual { &mut self.requested } else { &mut self.subscriptions };
        let (new, tell, origin);
        if options.xpub_manual {
            new = topics.has(topic, id) != subscribe;
            (tell, origin) = (true, Origin::Manual(Some(id)));
            if subscribe {
                topics.add(topic, id);
            } else {
                topics.remove(topic, id);
            }
        } else {
            origin = Origin::Applied;
            if subscribe {
                new = topics.add(topic, id);
                tell = new || options.xpub_verbose || options.xpub_verboser;
            } else {
                let removed = topics.remove(topic, id);
                new = removed == Removed::Last;
                tell = removed != Removed::Remains || options.xpub_verboser;
            }
        }
        self.untidy |= !topics.is_tidy();
        let held = topics.held(id);
        if subscribe && pipes.most_subscriptions(id).is_some_and(|limit| held > limit) {
            return self.part_with(pipes, id, errno::ENOBUFS);
        }
        if tell && !self.hidden {
            self.notices.put_change(Change { subscribe, topic, new }, frame.metadata(), origin);
        }
    }

    /// The program subscribes the peer that it has heard of last, or ends that (ZMQ_XPUB_MANUAL).
    fn give(&mut self, pipes: &mut Pipes, topic: &[u8], subscribe: bool) -> Result<(), Error> {
        self.sole = Sole::Unknown;
        if let Some(last) = self.last.filter(|_| subscribe) {
            self.subscriptions.make_room(topic, last)?;
        }
        self.settle(pipes, topic);
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

    /// Makes room for what a peer wants, or no longer wants.
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

    /// A peer holds more than it may (ENOBUFS, ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS: it is after our
    /// memory), or than there is memory for (ENOMEM).
    #[cold]
    fn part_with(&mut self, pipes: &mut Pipes, id: PipeId, errno: i32) {
        self.detach(pipes, id);
        pipes.expel(id, errno);
    }

    /// Takes pipes that are gone out of some of their topics, all of them or only this one. Nothing
    /// is told of a subscription that was never told.
    #[cold]
    fn tidy(&mut self, pipes: &mut Pipes, only: Option<PipeId>) {
        if !self.hidden && self.notices.make_room(BATCH, 0).is_err() {
            // Later, then.
            self.untidy = true;
            return;
        }
        let tells = Tells::of(self.hidden, pipes);
        let Publisher { subscriptions, requested, notices, leaving, .. } = self;
        subscriptions.take_some_out(only, |_, topic, last| tells.applied(notices, topic, last));
        requested.take_some_out(only, |id, topic, _| tells.requested(notices, id, topic));
        leaving.retain(|&id| {
            let others = only.is_some_and(|only| only != id);
            if others || subscriptions.is_leaving(id) || requested.is_leaving(id) || !notices.forget_some(id)
            {
                return true;
            }
            pipes.release(id);
            false
        });
        self.untidy = !self.leaving.is_empty() || !self.subscriptions.is_tidy() || !self.requested.is_tidy();
        self.sole = Sole::Unknown;
    }

    /// What is told of this topic, which a peer has something to say about, is told in order.
    fn settle(&mut self, pipes: &Pipes, topic: &[u8]) {
        if self.leaving.is_empty() {
            return;
        }
        let tells = Tells::of(self.hidden, pipes);
        let Publisher { subscriptions, requested, notices, .. } = self;
        subscriptions.settle(topic, |_, topic, last| tells.applied(notices, topic, last));
        requested.settle(topic, |id, topic, _| tells.requested(notices, id, topic));
    }

    /// The topics of a pipe are going to change, unless it has this one already or never had it.
    fn ungroup(&mut self, pipes: &mut Pipes, id: PipeId, subscribe: bool, topic: &[u8]) {
        let Publisher { distribution, subscriptions, .. } = self;
        if subscriptions.has(topic, id) != subscribe {
            subscriptions.ungroup(id, |change| regrouped(distribution, pipes, change));
        }
    }

    /// Joins the peers that get the same messages, unless the options make them differ.
    #[cold]
    fn regroup(&mut self, pipes: &mut Pipes) {
        let Publisher { distribution, subscriptions, grouped, .. } = self;
        *grouped = may_group(pipes);
        if *grouped {
            let mut changes = Vec::new();
            subscriptions
                .regroup(|id| pipes.get(id).is_some_and(Broadcast::takes), |change| changes.push(change));
            for change in changes {
                regrouped(distribution, pipes, change);
            }
        } else {
            subscriptions.ungroup_all(|change| regrouped(distribution, pipes, change));
        }
    }

    /// Looks at the pipes that do not announce what they get, and at those that were left
    /// unfinished.
    #[inline]
    fn poll(&mut self, pipes: &mut Pipes) {
        if self.untidy {
            self.tidy(pipes, None);
        }
        if self.polled.next(&mut 0, pipes).is_some() {
            self.poll_listed(pipes);
        }
    }

    /// One batch of each pipe in the list; true if all were read to the end.
    fn poll_listed(&mut self, pipes: &mut Pipes) -> bool {
        let mut all = true;
        let mut index = 0;
        while let Some(id) = self.polled.next(&mut index, pipes) {
            let finished = self.take(pipes, id);
            all &= finished;
            self.polled.was_read(&mut index, id, finished);
        }
        all
    }

    /// Whether the program can receive something.
    fn has_notices(&mut self, pipes: &mut Pipes) -> Result<bool, NoMemory> {
        // What is left in a pipe is not announced again, so nothing may be left when the caller is
        // going to wait.
        while !self.poll_listed(pipes) && self.notices.is_empty() {}
        if self.untidy {
            self.tidy(pipes, None);
        }
        Ok(!self.notices.is_empty() || self.notices.refill()?)
    }

    /// The message that was just sent went to one pipe or group only: whether all the following
    /// ones will.
    #[inline(never)]
    fn find_sole(&mut self, pipes: &Pipes) {
        let options = &pipes.options;
        if !options.invert_matching && !options.xpub_manual && !self.subscriptions.has_changed() {
            self.sole = self.subscriptions.sole();
        }
    }

    /// Sends a message of one part where everything goes, if that is known and there certainly is
    /// room. `None`: it has not been sent.
    #[inline]
    fn send_to_sole(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Option<Route> {
        let route = match self.sole {
            Sole::Pipe(id) => {
                let pipe = pipes.get(id)?;
                if !pipe.has_room(Else::Ask) {
                    return None;
                }
                pipe.send_or_drop(part);
                if self.polled.is_empty() {
                    Route::pipe(Some(id))
                } else if self.polled.is_only(id) {
                    Route::while_silent(id)
                } else {
                    Route::ASK
                }
            }
            Sole::Group(group) => {
                if !pipes.publish_at_once(group, part.bytes()) {
                    return None;
                }
                part.consume();
                if self.polled.is_empty() { Route::broadcast(group) } else { Route::ASK }
            }
            Sole::Unknown | Sole::Nobody => return None,
        };
        Some(if pipes.looks.listens() || self.untidy { Route::ASK } else { route })
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
        subscriptions.each_match(subject, |subscribers| {
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

/// Whether equal subscriptions mean equal messages.
#[inline]
fn may_group(pipes: &Pipes) -> bool {
    !pipes.options.invert_matching && !pipes.options.xpub_manual_last_value
}

fn regrouped(distribution: &mut FanOut, pipes: &mut Pipes, change: Regrouped) {
    match change {
        Regrouped::Joined(group, pipe) => pipes.with_broadcast(group, |broadcast, _| broadcast.join(pipe)),
        Regrouped::Left(group, pipe) => distribution.leave(pipes, group, pipe),
    }
}

/// Which topics of a pipe that is gone the program hears of.
#[derive(Clone, Copy)]
struct Tells {
    hidden: bool,
    manual: bool,
    verboser: bool,
}

impl Tells {
    fn of(hidden: bool, pipes: &Pipes) -> Self {
        Tells { hidden, manual: pipes.options.xpub_manual, verboser: pipes.options.xpub_verboser }
    }

    /// The pipe was subscribed to `topic`; `last`: no other one is.
    fn applied(self, notices: &mut Notices, topic: &[u8], last: bool) {
        if !self.hidden && !self.manual && (last || self.verboser) {
            notices.put_change(Change { subscribe: false, topic, new: last }, None, Origin::Applied);
        }
    }

    /// The pipe had asked the program for `topic`.
    fn requested(self, notices: &mut Notices, id: PipeId, topic: &[u8]) {
        if !self.hidden && self.manual {
            notices.put_end(id, topic);
        }
    }
}

impl Pattern for Publisher {
    fn attach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.sole = Sole::Unknown;
        self.distribution.attach(id);
        let options = pipes.options.clone();
        let welcome = &options.xpub_welcome_msg;
        if let Some(pipe) = pipes.get(id) {
            if !welcome.is_empty() {
                send_first(pipe, welcome);
            }
            if pipe.is_inproc() {
                self.polled.watch(id);
            }
        }
        self.distribution.wake_together(pipes);
        self.readable(pipes, id);
    }

    fn ready(&mut self, pipes: &mut Pipes, id: PipeId, _reconnected: bool) {
        if self.permits.is_some() {
            self.met_again(pipes, id);
        }
        if pipes.get(id).is_some_and(|pipe| !pipe.is_inproc()) {
            pipes.looks.listen();
        }
    }

    fn readable(&mut self, pipes: &mut Pipes, id: PipeId) {
        if !self.take(pipes, id) {
            self.polled.leave_unfinished(id);
        }
    }

    fn detach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.sole = Sole::Unknown;
        self.polled.forget(id);
        if let Some(permits) = &mut self.permits {
            permits.left(id);
        }
        if self.last == Some(id) {
            self.last = None;
        }
        let Publisher { distribution, subscriptions, .. } = self;
        subscriptions.ungroup(id, |change| regrouped(distribution, pipes, change));
        self.distribution.detach(id);
        let manual = pipes.options.xpub_manual;
        self.subscriptions.leave(id, !self.hidden && !manual);
        self.requested.leave(id, !self.hidden && manual);
        if !self.hidden {
            self.notices.forget(id);
        }
        self.leaving.push(id);
        pipes.hold(id);
        self.tidy(pipes, Some(id));
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Route, Error> {
        if !self.distribution.in_message() {
            self.poll(pipes);
            if !part.more
                && let Some(route) = self.send_to_sole(pipes, part)
            {
                return Ok(route);
            }
            self.match_subject(pipes, part.bytes());
            if pipes.options.xpub_nodrop && !self.distribution.has_room(pipes, part.patient) {
                return Err(Error::Again);
            }
            if pipes.options.xpub_manual_last_value {
                self.last = None;
            }
        }
        self.distribution.send(pipes, part);
        if self.sole == Sole::Unknown
            && (self.distribution.went_to_one() || self.distribution.went_to_one_group())
        {
            self.find_sole(pipes);
        }
        Ok(Route::ASK)
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<(Received, Route), Error> {
        if self.hidden {
            return Err(Error::NotSupported);
        }
        if self.notices.is_empty() && !self.has_notices(pipes)? {
            return Err(Error::Again);
        }
        let (part, origin) = self.notices.take().ok_or(Error::Again)?;
        if let Origin::Manual(pipe) = origin {
            self.last = pipe;
        }
        Ok((target.put_message(part), Route::ASK))
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        // What has nowhere to go is dropped. With ZMQ_XPUB_NODROP it depends on the topic, which is
        // not known yet.
        true
    }

    fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        // The pipes of the refused message are still marked.
        !pipes.options.xpub_nodrop || self.distribution.has_room(pipes, true)
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        // Also what is hidden is taken note of: ZMQ_TOPICS_COUNT counts it. A receive that there is
        // no memory for does not wait either.
        self.has_notices(pipes).unwrap_or(true) && !self.hidden
    }

    fn subscribe(&mut self, pipes: &mut Pipes, topic: &[u8], subscribe: bool) -> Result<(), Error> {
        if self.hidden || !pipes.options.xpub_manual {
            return Err(Error::Invalid);
        }
        if self.permits.is_some() {
            return self.give_granted(pipes, topic, subscribe);
        }
        self.give(pipes, topic, subscribe)
    }

    fn keep_topics(&mut self, keeper: Arc<dyn Keeper>) -> Option<Box<dyn Pattern>> {
        self.permits = Some(Box::new(Permits::new(keeper)));
        None
    }

    fn option_changed(&mut self, _pipes: &mut Pipes, _code: i32) {
        self.sole = Sole::Unknown;
    }

    fn has_more_to_do(&self) -> bool {
        self.untidy
    }

    fn topics_count(&self) -> Option<usize> {
        Some(self.subscriptions.len())
    }
}
