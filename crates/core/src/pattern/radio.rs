//! RADIO (RFC 48): sends each message to the peers that have joined its group. On the wire, and in the pipes, a message is two frames:
//! the group and the body. A program sees one part that carries the name of its group (`Message::group`).
//!
//! Peers join and leave with commands, which are obeyed as soon as the owner learns of them. Peers over datagrams tell nothing: they
//! get everything and choose themselves.

use std::collections::HashMap;

use super::Pattern;
use super::fan_out::FanOut;
use super::hash::SeededHash;
use super::polled::Polled;
use super::subscriptions::{MOST_HELD, TOPIC_COST};
use crate::error::Error;
use crate::message::{GROUP_MAX, Message};
use crate::pipe::{Body, Part, PipeId, Pipes, Received, Target};
use tautline_proto::{command, frame};

#[cfg(test)]
mod tests;

/// How many frames of one pipe are taken before a message to be sent has its turn.
const BATCH: usize = 1000;

/// The behaviour of a RADIO socket.
#[derive(Debug, Default)]
pub(crate) struct Radio {
    distribution: FanOut,
    /// Who has joined which group; no empty lists.
    groups: HashMap<Vec<u8>, Vec<PipeId>, SeededHash>,
    /// What the groups of each peer take, by the number of its pipe.
    held: Vec<u64>,
    /// Peers that get everything.
    everything: Vec<PipeId>,
    polled: Polled,
    /// The frame in hand.
    frame: Message,
}

impl Radio {
    /// Takes what the pipe has received, at most a batch unless its peer is gone; true if it was read to the end.
    fn take(&mut self, pipes: &mut Pipes, id: PipeId) -> bool {
        let mut taken = 0;
        loop {
            if pipes.has_closing() && pipes.is_closing(id) {
                return true;
            }
            let Some(pipe) = pipes.get(id) else { return true };
            if taken >= BATCH && !pipe.has_ended() {
                return false;
            }
            taken += 1;
            let mut frame = std::mem::take(&mut self.frame);
            let head = pipe.recv_any(&mut frame);
            match head {
                Some(head) if head.flags & frame::COMMAND != 0 => {
                    self.obey(id, frame.as_slice());
                    if self.held.get(id.0 as usize).is_some_and(|&held| held > MOST_HELD) {
                        // It is after our memory.
                        self.detach(pipes, id);
                        pipes.close(id);
                    }
                }
                // Peers have nothing else to say.
                Some(_) => {}
                None => {
                    // Whoever waits for this pipe to be empty hears of it here.
                    pipe.can_recv();
                    return !pipe.sees_more();
                }
            }
            self.frame = frame;
        }
    }

    fn obey(&mut self, id: PipeId, body: &[u8]) {
        if let Some(group) = body.strip_prefix(command::join_prefix()) {
            if group.len() <= GROUP_MAX {
                let members = self.groups.entry(group.to_vec()).or_default();
                if !members.contains(&id) {
                    members.push(id);
                    let number = id.0 as usize;
                    self.held.resize(self.held.len().max(number + 1), 0);
                    self.held[number] += group.len() as u64 + TOPIC_COST;
                }
            }
        } else if let Some(group) = body.strip_prefix(command::leave_prefix())
            && let Some(members) = self.groups.get_mut(group)
        {
            let before = members.len();
            members.retain(|&member| member != id);
            if members.len() < before {
                self.held[id.0 as usize] -= group.len() as u64 + TOPIC_COST;
            }
            if members.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    /// Looks at the pipes that do not announce what they get.
    fn poll(&mut self, pipes: &mut Pipes) {
        let mut index = 0;
        while let Some(id) = self.polled.next(&mut index, pipes) {
            let finished = self.take(pipes, id);
            self.polled.was_read(&mut index, id, finished);
        }
    }

    fn match_group(&mut self, group: &[u8]) {
        self.distribution.begin();
        for &id in self.groups.get(group).into_iter().flatten().chain(&self.everything) {
            self.distribution.mark(id);
        }
    }
}

impl Pattern for Radio {
    fn attach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.distribution.attach(id);
        if let Some(pipe) = pipes.get(id) {
            if pipe.is_datagram() {
                self.everything.push(id);
            } else if !pipe.announces() {
                self.polled.watch(id);
            }
        }
        self.readable(pipes, id);
    }

    fn readable(&mut self, pipes: &mut Pipes, id: PipeId) {
        if !self.take(pipes, id) {
            self.polled.leave_unfinished(id);
        }
    }

    fn detach(&mut self, _pipes: &mut Pipes, id: PipeId) {
        self.groups.retain(|_, members| {
            members.retain(|&member| member != id);
            !members.is_empty()
        });
        if let Some(held) = self.held.get_mut(id.0 as usize) {
            *held = 0;
        }
        self.everything.retain(|&other| other != id);
        self.polled.forget(id);
        self.distribution.detach(id);
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error> {
        if part.more {
            return Err(Error::Invalid);
        }
        if !self.polled.is_empty() {
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
        Ok(())
    }

    fn recv(&mut self, _pipes: &mut Pipes, _target: &mut Target<'_>) -> Result<Received, Error> {
        Err(Error::NotSupported)
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        // What has nowhere to go is dropped. With ZMQ_XPUB_NODROP it depends on the group, which is not known yet.
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
}
