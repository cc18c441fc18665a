//! DISH (RFC 48): joins groups and receives their messages from all RADIOs fairly. Messages of
//! other groups, which come over datagrams and from before a `leave` has arrived, are dropped here.
//!
//! Each pipe gets all groups when it is attached, and again when its connection was lost and is
//! there again.

use std::collections::HashMap;
use std::ffi::CString;

use super::Pattern;
use super::hash::SeededHash;
use super::rotation::FairQueue;
use crate::error::Error;
use crate::message::{GROUP_MAX, Message};
use crate::pipe::{Part, PipeId, Pipes, Received, Target};
use crate::sync::Arc;
use tautline_proto::{command, frame};

#[cfg(test)]
mod tests;

/// The behaviour of a DISH socket.
#[derive(Debug, Default)]
pub(crate) struct Dish {
    incoming: FairQueue,
    pipes: Vec<PipeId>,
    /// The groups joined, as messages carry them.
    groups: HashMap<Vec<u8>, Arc<CString>, SeededHash>,
    /// A message that `can_recv` has found to be wanted and whole.
    found: Option<Message>,
    /// Room to build a command.
    scratch: Vec<u8>,
}

impl Dish {
    /// Drops what is not wanted; the group of the next message, whose frame is still to be read.
    fn select(&mut self, pipes: &mut Pipes) -> Option<Arc<CString>> {
        while let Some(id) = self.incoming.select(pipes) {
            let pipe = pipes.get(id)?;
            if let Some((head, group, rest)) = pipe.peek()
                && head.flags & frame::MORE != 0
            {
                let group = if rest.is_empty() {
                    self.groups.get(group)
                } else {
                    self.groups.get(&[group, rest].concat())
                };
                if let Some(group) = group {
                    return Some(group.clone());
                }
            }
            self.incoming.skip_message(pipes);
        }
        None
    }

    fn take(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        loop {
            let group = self.select(pipes).ok_or(Error::Again)?;
            self.incoming.recv(pipes, &mut Target::Buffer(&mut []))?;
            let received = self.incoming.recv(pipes, target)?;
            if received.more {
                // No RADIO sends a third frame.
                self.incoming.skip_message(pipes);
                continue;
            }
            if let Target::Message(message) = target {
                message.share_group(group);
            }
            return Ok(received);
        }
    }

    fn command(&mut self, joins: bool, group: &[u8]) {
        self.scratch.clear();
        self.scratch.extend_from_slice(if joins { command::join_prefix() } else { command::leave_prefix() });
        self.scratch.extend_from_slice(group);
    }

    fn announce(&mut self, pipes: &mut Pipes, id: PipeId) {
        let groups: Vec<Vec<u8>> = self.groups.keys().cloned().collect();
        for group in groups {
            self.command(true, &group);
            if let Some(pipe) = pipes.get(id) {
                pipe.send_command(&self.scratch);
            }
        }
    }
}

impl Pattern for Dish {
    fn attach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.incoming.attach(id);
        self.pipes.push(id);
        self.announce(pipes, id);
    }

    fn ready(&mut self, pipes: &mut Pipes, id: PipeId, reconnected: bool) {
        if reconnected {
            self.announce(pipes, id);
        }
    }

    fn readable(&mut self, _pipes: &mut Pipes, id: PipeId) {
        self.incoming.readable(id);
    }

    fn detach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.incoming.detach(pipes, id);
        self.pipes.retain(|&other| other != id);
    }

    fn send(&mut self, _pipes: &mut Pipes, _part: &mut Part<'_>) -> Result<(), Error> {
        Err(Error::NotSupported)
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        match self.found.take() {
            Some(message) => Ok(target.put_message(message)),
            None => self.take(pipes, target),
        }
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        false
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        if self.found.is_none() {
            let mut message = Message::new();
            if self.take(pipes, &mut Target::Message(&mut message)).is_ok() {
                self.found = Some(message);
            }
        }
        self.found.is_some()
    }

    fn join(&mut self, pipes: &mut Pipes, group: &[u8], joins: bool) -> Result<(), Error> {
        if group.len() > GROUP_MAX || self.groups.contains_key(group) == joins {
            return Err(Error::Invalid);
        }
        if joins {
            let name = CString::new(group).map_err(|_| Error::Invalid)?;
            self.groups.insert(group.to_vec(), Arc::new(name));
        } else {
            self.groups.remove(group);
            if self.found.as_ref().is_some_and(|message| message.group().to_bytes() == group) {
                self.found = None;
            }
        }
        self.command(joins, group);
        for &id in &self.pipes {
            if let Some(pipe) = pipes.get(id) {
                pipe.send_command(&self.scratch);
            }
        }
        Ok(())
    }
}
