//! One message to many pipes: the distribution of PUB and XPUB, and the upstream messages of XSUB
//! (RFC 29).
//!
//! For each message the pattern marks the destination pipes, then passes the parts. A pipe at its
//! high-water mark, or gone, misses the whole message; the other pipes are not delayed. Sending
//! never waits for a pipe.
//!
//! Pipes that always get the same messages may be joined to a group. The pattern marks the group
//! instead of its pipes, and the group stores each message once for all of them
//! (`pipe::Broadcast`).

use crate::pipe::{Body, LARGE, OnFull, Part, PipeId, Pipes, WakeRule};
use tautline_io::lending::may_lend;
use tautline_proto::frame;
use tautline_queue::message::Message;
use tautline_timing::rules::{Rule, is_disabled};

#[cfg(test)]
mod tests;

/// Bodies of this size or more are shared between the pipes, not copied for each.
const SHARE_FROM: usize = LARGE;

/// The mark of a pipe that is not, or no longer, in this fan-out. Subscriptions may still name such
/// a pipe.
const GONE: u32 = u32::MAX;

/// All pipes, and the destinations of the current message.
#[derive(Debug, Default)]
pub(crate) struct FanOut {
    pipes: Vec<PipeId>,
    /// The pipes of the current message, each once.
    matched: Vec<PipeId>,
    /// Number of the message for which each pipe was last marked, or `GONE`. Indexed by the number
    /// of the pipe.
    marks: Vec<u32>,
    /// Number of the current message, for `marks`.
    message: u32,
    /// True if the current message is not finished.
    in_message: bool,
    /// The groups of the current message, each once.
    matched_groups: Vec<u32>,
    /// True if `Broadcast::prepare` was called for the groups of the current message.
    prepared: bool,
    /// The parts of the unfinished message to a group that were already passed, encoded.
    parts: Vec<u8>,
    /// Wakes the inproc receivers, if there are several.
    wake_rule: Option<WakeRule>,
}

impl FanOut {
    /// Adds a pipe. Its first message is the next one.
    pub(crate) fn attach(&mut self, pipe: PipeId) {
        if !self.contains(pipe) {
            let number = pipe.0 as usize;
            if number >= self.marks.len() {
                self.marks.resize(number + 1, GONE);
            }
            self.marks[number] = 0;
            self.pipes.push(pipe);
        }
    }

    /// If there are several pipes, makes their inproc receivers wake up together, by the wake rule.
    pub(crate) fn wake_together(&mut self, pipes: &mut Pipes) {
        let Some(io) = &pipes.io else { return };
        let io = io.clone();
        let inproc = |pipes: &mut Pipes, id| pipes.get(id).is_some_and(|pipe| pipe.is_inproc());
        if !is_disabled(Rule::Bells) && self.pipes.iter().filter(|&&id| inproc(pipes, id)).count() > 1 {
            let bells = self.wake_rule.get_or_insert_with(|| WakeRule::new(io));
            for &id in &self.pipes {
                if let Some(pipe) = pipes.get(id) {
                    bells.add(pipe);
                }
            }
        }
    }

    /// Takes a pipe out of its group: it gets its messages individually again. If a message to the
    /// group is unfinished and the pipe followed the broadcast, it gets the earlier parts now, and
    /// so receives the whole message.
    pub(crate) fn leave(&mut self, pipes: &mut Pipes, group: u32, pipe: PipeId) {
        let within = self.in_message && self.matched_groups.contains(&group);
        let followed = pipes.with_broadcast(group, |broadcast, pipes| {
            let followed = broadcast.is_follower(pipe);
            broadcast.leave(pipes, pipe);
            followed
        });
        if within && followed && pipes.continue_in_queue(pipe, &self.parts) {
            self.matched.push(pipe);
        }
    }

    /// Removes a pipe, which is in no group, also from the current message.
    pub(crate) fn detach(&mut self, pipe: PipeId) {
        self.pipes.retain(|&id| id != pipe);
        self.matched.retain(|&id| id != pipe);
        if let Some(mark) = self.marks.get_mut(pipe.0 as usize) {
            *mark = GONE;
        }
    }

    /// True if the pipe is in this fan-out.
    pub(crate) fn contains(&self, pipe: PipeId) -> bool {
        self.marks.get(pipe.0 as usize).is_some_and(|&mark| mark != GONE)
    }

    /// All pipes.
    pub(crate) fn pipes(&self) -> &[PipeId] {
        &self.pipes
    }

    /// True if parts of an unfinished message have been sent.
    #[inline]
    pub(crate) fn in_message(&self) -> bool {
        self.in_message
    }

    /// True if the message has no destination.
    #[inline]
    pub(crate) fn is_for_nobody(&self) -> bool {
        self.matched.is_empty() && self.matched_groups.is_empty()
    }

    /// True if the last message went to one pipe, which is in no group and is woken individually.
    #[inline]
    pub(crate) fn went_to_one(&self) -> bool {
        self.matched.len() == 1 && self.matched_groups.is_empty() && self.wake_rule.is_none()
    }

    /// True if the last message went to one group, and no wake rule delays the wake-ups of
    /// receivers.
    #[inline]
    pub(crate) fn went_to_one_group(&self) -> bool {
        self.matched.is_empty() && self.matched_groups.len() == 1 && self.wake_rule.is_none()
    }

    /// Starts a new message, without destinations.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.matched.clear();
        self.matched_groups.clear();
        self.prepared = false;
        self.message += 1;
        if self.message == GONE {
            self.marks.iter_mut().filter(|mark| **mark != GONE).for_each(|mark| *mark = 0);
            self.message = 1;
        }
    }

    /// Adds this pipe to the destinations of the message, if it is in this fan-out.
    #[inline]
    pub(crate) fn mark(&mut self, pipe: PipeId) {
        if let Some(mark) = self.marks.get_mut(pipe.0 as usize)
            && *mark < self.message
        {
            *mark = self.message;
            self.matched.push(pipe);
        }
    }

    /// Adds this group to the destinations of the message.
    #[inline]
    pub(crate) fn mark_group(&mut self, group: u32) {
        if !self.matched_groups.contains(&group) {
            self.matched_groups.push(group);
        }
    }

    /// Makes all pipes destinations of the message. No pipe may be in a group.
    pub(crate) fn mark_all(&mut self) {
        self.matched.clone_from(&self.pipes);
    }

    /// Inverts the destinations of the message. No pipe may be in a group.
    pub(crate) fn invert(&mut self) {
        let FanOut { pipes, matched, marks, message, .. } = self;
        matched.clear();
        matched.extend(pipes.iter().filter(|id| marks[id.0 as usize] != *message));
    }

    /// Keeps only the destinations that `may` allows. No pipe may be in a group.
    pub(crate) fn retain(&mut self, may: impl Fn(PipeId) -> bool) {
        self.matched.retain(|&id| may(id));
    }

    /// True if every destination of this message has room. Used if messages must not be dropped
    /// (see `OnFull::Refuse`).
    pub(crate) fn has_room(&mut self, pipes: &mut Pipes, patient: bool) -> bool {
        let mut room = true;
        self.prepared = true;
        for &group in &self.matched_groups {
            room &= pipes.with_broadcast(group, |broadcast, pipes| {
                let followers = broadcast.prepare(pipes, true, patient);
                followers
                    & broadcast.queued_members().iter().all(|&id| has_room_or_refuses(pipes, id, patient))
            });
        }
        room && self.matched.iter().all(|&id| has_room_or_refuses(pipes, id, patient))
    }

    /// Sends one part of the message to its destinations. The body is consumed.
    #[inline]
    pub(crate) fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) {
        if self.in_message || part.more || part.bytes().len() >= SHARE_FROM {
            self.send_part(pipes, part);
        } else if !self.matched_groups.is_empty() {
            self.send_to_groups(pipes, part.bytes());
        } else if let &[id] = &self.matched[..] {
            if let Some(pipe) = pipes.get(id)
                && pipe.outgoing.has_room(OnFull::Drop)
            {
                pipe.send_or_drop(part);
            }
        } else {
            send_copies(pipes, &self.matched, part.bytes());
        }
        part.consume();
        if let Some(bells) = &mut self.wake_rule {
            bells.record_send();
        }
    }

    /// Sends a message of one small part.
    #[inline(never)]
    fn send_to_groups(&mut self, pipes: &mut Pipes, body: &[u8]) {
        for &group in &self.matched_groups {
            pipes.with_broadcast(group, |broadcast, pipes| {
                if !self.prepared {
                    broadcast.prepare(pipes, false, true);
                }
                let others = broadcast.queued_members().len();
                if broadcast.has_followers() {
                    broadcast.send(pipes, body);
                }
                let (others, parted) = broadcast.queued_members().split_at(others);
                send_copies(pipes, others, body);
                for &id in parted {
                    if let Some(pipe) = pipes.get(id).filter(|pipe| !pipe.has_ended()) {
                        pipe.send_or_drop(&mut Part::copied(body, false));
                    }
                }
            });
        }
        send_copies(pipes, &self.matched, body);
    }

    /// Sends a part of a multipart message, or a long body. Checks for room once, before the first
    /// part.
    #[inline(never)]
    fn send_part(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) {
        if !self.in_message {
            self.begin_parts(pipes);
        }
        self.in_message = part.more;
        if !self.matched_groups.is_empty() {
            self.part_to_groups(pipes, part);
        }
        if part.bytes().len() >= SHARE_FROM && self.matched.len() > 1 {
            return self.send_shared(pipes, part);
        }
        let alone = self.matched.len() == 1;
        self.matched.retain(|&id| {
            pipes.get_begun(id).is_some_and(|pipe| {
                // With one destination the body is sent without a copy.
                if alone {
                    pipe.send_or_drop(part)
                } else {
                    pipe.send_or_drop(&mut Part::copied(part.bytes(), part.more))
                }
            })
        });
    }

    /// Begins a multipart message: pipes without room miss it. Adds to `matched` the group members
    /// that do not follow the broadcast.
    fn begin_parts(&mut self, pipes: &mut Pipes) {
        let FanOut { matched_groups, matched, parts, prepared, .. } = self;
        parts.clear();
        matched_groups.retain(|&group| {
            pipes.with_broadcast(group, |broadcast, pipes| {
                if !*prepared {
                    broadcast.prepare(pipes, false, true);
                }
                matched.extend_from_slice(broadcast.queued_members());
                broadcast.has_followers()
            })
        });
        let alone = matched.len() == 1;
        matched.retain(|&id| takes_or_misses(pipes, id, alone));
    }

    /// Adds a part for the members that follow the broadcast. The part is kept until the message is
    /// complete, unless the message becomes a large one.
    fn part_to_groups(&mut self, pipes: &mut Pipes, part: &Part<'_>) {
        let FanOut { matched_groups, matched, parts, .. } = self;
        let body = part.bytes();
        let len = parts.len() + body.len() + frame::MAX_HEADER;
        let large = len > LARGE;
        if !large {
            if !part.more {
                // A member that leaves the broadcast now gets the last part too, behind the parts
                // that are here already.
                for &group in &*matched_groups {
                    pipes.with_broadcast(group, |broadcast, pipes| {
                        broadcast.make_room(pipes, len, |pipes, id| {
                            if pipes.continue_in_queue(id, parts) {
                                matched.push(id);
                            }
                        });
                    });
                }
            }
            let mut header = [0; frame::MAX_HEADER];
            let flags = if part.more { frame::MORE } else { 0 };
            let n = frame::encode_header(flags, body.len() as u64, &mut header);
            parts.extend_from_slice(&header[..n]);
            parts.extend_from_slice(body);
            if part.more {
                return;
            }
        }
        for group in matched_groups.drain(..) {
            pipes.with_broadcast(group, |broadcast, pipes| {
                if large {
                    // This part and the following ones go to each member individually, behind the
                    // parts that are here already.
                    broadcast.detach_all(pipes, |pipes, id| {
                        if pipes.continue_in_queue(id, parts) {
                            matched.push(id);
                        }
                    });
                } else if broadcast.has_followers() {
                    broadcast.send_encoded(parts);
                }
            });
        }
    }

    /// Sends a long body to several pipes as references to one copy. Peers that take loans share a
    /// body that they can read in place.
    fn send_shared(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) {
        let mut copy;
        let body = match &mut part.body {
            Body::Owned(message) => Some(&mut **message),
            Body::Borrowed(bytes) => {
                copy = Message::try_from_slice(bytes);
                copy.as_mut()
            }
        };
        let Some(body) = body else {
            // There is no memory for the copy, so all pipes miss the message.
            for id in self.matched.drain(..) {
                if let Some(pipe) = pipes.get(id) {
                    pipe.outgoing.drop_message();
                }
            }
            return;
        };
        let mut lendable = None;
        self.matched.retain(|&id| {
            pipes.get_begun(id).is_some_and(|pipe| {
                let lends = may_lend(body.len()) && pipe.outgoing.lends();
                let copy =
                    lends.then(|| lendable.get_or_insert_with(|| Message::lendable_copy(body.as_slice())));
                let body = copy.and_then(Option::as_mut).unwrap_or(&mut *body);
                let body = Body::Owned(&mut body.share());
                pipe.send_or_drop(&mut Part { body, more: part.more, patient: false })
            })
        });
    }
}

fn has_room_or_refuses(pipes: &mut Pipes, id: PipeId, patient: bool) -> bool {
    pipes.get(id).is_none_or(|pipe| pipe.outgoing.has_room(OnFull::Refuse { patient }))
}

fn takes_or_misses(pipes: &mut Pipes, id: PipeId, alone: bool) -> bool {
    pipes.get(id).is_some_and(|pipe| match alone {
        true => pipe.outgoing.has_room(OnFull::Drop),
        false => pipe.outgoing.has_room(OnFull::Miss),
    })
}

/// Sends a message of one part to each of these pipes that has room.
#[inline]
fn send_copies(pipes: &mut Pipes, ids: &[PipeId], body: &[u8]) {
    for &id in ids {
        if let Some(pipe) = pipes.get(id)
            && pipe.outgoing.has_room(OnFull::Miss)
        {
            pipe.send_or_drop(&mut Part::copied(body, false));
        }
    }
}
