//! RADIO (RFC 48): sends each message to the peers that have joined its group. On the wire, and in
//! the pipes, a message is two frames: the group and the body. A program sees one part that carries
//! the name of its group (`Message::group`).
//!
//! Peers join and leave with commands, which take effect as soon as the owner reads them. Peers
//! over datagrams send no commands: they get all messages and filter them.

use super::fan_out::FanOut;
use super::polled_pipes::{PolledPipes, is_read_to_the_end};
use super::subscriptions::PeerSubscriptions;
use super::{Pattern, Received, Sent};
use crate::conn::inproc::InprocEnd;
use crate::error::{Error, NoMemory};
use crate::pipe::{Body, Part, PipeId, Pipes, Target};
use tautline_io::errno;
use tautline_proto::{command, frame};
use tautline_queue::message::{GROUP_MAX, Message};

#[cfg(test)]
mod tests;

/// Maximum number of frames that are read from one pipe before a message to be sent has its turn.
const BATCH: usize = 1000;

/// The behaviour of a RADIO socket.
#[derive(Debug)]
pub(crate) struct Radio {
    distribution: FanOut,
    /// The groups that each peer has joined.
    groups: PeerSubscriptions,
    /// Pipes that are gone but still have groups to be removed.
    leaving: Vec<PipeId>,
    /// Peers that get all messages, because they send no joins (datagram endpoints).
    everything: Vec<PipeId>,
    polled: PolledPipes,
    /// The frame being processed.
    frame: Message,
}

impl Default for Radio {
    fn default() -> Self {
        Radio {
            distribution: FanOut::default(),
            groups: PeerSubscriptions::exact(),
            leaving: Vec::new(),
            everything: Vec::new(),
            polled: PolledPipes::default(),
            frame: Message::new(),
        }
    }
}

impl Radio {
    /// Reads the pipe's received frames, at most a batch unless its peer is gone. Returns true if
    /// the pipe was read to the end.
    fn take(&mut self, pipes: &mut Pipes, id: PipeId) -> bool {
        let mut taken = 0;
        loop {
            if !self.distribution.contains(id) {
                return true;
            }
            let limit = pipes.most_subscriptions(id);
            let Some(pipe) = pipes.get(id) else { return true };
            if taken >= BATCH && !pipe.has_ended() {
                return false;
            }
            taken += 1;
            let mut frame = std::mem::take(&mut self.frame);
            let head = pipes.recv_any(id, &mut frame);
            match head {
                Ok(Some(head)) if head.flags & frame::COMMAND != 0 => {
                    if self.apply_command(id, frame.as_slice()).is_err() {
                        self.evict(pipes, id, errno::ENOMEM);
                    } else if limit.is_some_and(|limit| self.groups.memory_of(id) > limit) {
                        // The peer may try to exhaust our memory.
                        self.evict(pipes, id, errno::ENOBUFS);
                    }
                }
                // Peers send no other frames.
                Ok(Some(_)) => {}
                Err(NoMemory) => self.evict(pipes, id, errno::ENOMEM),
                Ok(None) => return pipes.get(id).is_none_or(is_read_to_the_end),
            }
            self.frame = frame;
        }
    }

    fn apply_command(&mut self, id: PipeId, body: &[u8]) -> Result<(), NoMemory> {
        if let Some(group) = body.strip_prefix(command::join_prefix()) {
            if group.len() <= GROUP_MAX {
                self.groups.make_room(group, id)?;
                self.groups.add(group, id);
            }
        } else if let Some(group) = body.strip_prefix(command::leave_prefix()) {
            self.groups.remove(group, id);
        }
        Ok(())
    }

    #[cold]
    fn evict(&mut self, pipes: &mut Pipes, id: PipeId, errno: i32) {
        self.detach(pipes, id);
        pipes.evict(id, errno);
    }

    /// Removes some groups of the pipes that have ended: of all such pipes, or only of this one.
    #[cold]
    fn clean_up_step(&mut self, pipes: &mut Pipes, only: Option<PipeId>) {
        self.groups.remove_some_leaving(only, |_, _, _| ());
        self.leaving.retain(|&id| {
            let leaving = self.groups.is_leaving(id);
            if !leaving {
                pipes.release_id(id);
            }
            leaving
        });
    }

    /// Polls the pipes that do not announce new messages.
    fn poll(&mut self, pipes: &mut Pipes) {
        if !self.leaving.is_empty() {
            self.clean_up_step(pipes, None);
        }
        let mut index = 0;
        while let Some(id) = self.polled.next(&mut index, pipes) {
            let finished = self.take(pipes, id);
            self.polled.record_read(&mut index, id, finished);
        }
    }

    fn match_group(&mut self, group: &[u8]) {
        self.distribution.begin();
        for &id in self.groups.exact_subscribers(group).iter().chain(&self.everything) {
            self.distribution.mark(id);
        }
    }
}

impl Pattern for Radio {
    fn attach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.distribution.attach(id);
        if let Some(pipe) = pipes.get(id) {
            if pipe.inproc_end().is_some_and(InprocEnd::is_device) {
                self.everything.push(id);
            } else if pipe.is_inproc() {
                self.polled.add(id);
            }
        }
        self.handle_readable(pipes, id);
    }

    fn handle_readable(&mut self, pipes: &mut Pipes, id: PipeId) {
        if !self.take(pipes, id) {
            self.polled.leave_unfinished(id);
        }
    }

    fn detach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.everything.retain(|&other| other != id);
        self.polled.forget(id);
        self.distribution.detach(id);
        self.groups.leave(id, false);
        self.leaving.push(id);
        pipes.reserve_id(id);
        self.clean_up_step(pipes, Some(id));
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        if part.more {
            return Err(Error::Invalid);
        }
        if !self.polled.is_empty() || !self.leaving.is_empty() {
            self.poll(pipes);
        }
        let mut name = [0; GROUP_MAX];
        let group = match &part.body {
            Body::Owned(message) => message.group().to_bytes(),
            Body::Borrowed(_) => b"",
        };
        self.match_group(group);
        if pipes.options.xpub_nodrop && !self.distribution.has_room(pipes, part.patient) {
            return Err(Error::Again);
        }
        let group = {
            let copy = &mut name[..group.len()];
            copy.copy_from_slice(group);
            &*copy
        };
        self.distribution.send(pipes, &mut Part::copied(group, true));
        self.distribution.send(pipes, part);
        Ok(Sent::UNADDRESSED)
    }

    fn recv(&mut self, _pipes: &mut Pipes, _target: &mut Target<'_>) -> Result<Received, Error> {
        Err(Error::NotSupported)
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        // A message without a destination is dropped. With ZMQ_XPUB_NODROP the answer depends on
        // the group, which is not known yet.
        true
    }

    fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        // The pipes of the refused message are still marked.
        !pipes.options.xpub_nodrop || self.distribution.has_room(pipes, true)
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        self.poll(pipes);
        false
    }

    fn has_more_to_do(&self) -> bool {
        !self.leaving.is_empty()
    }
}
