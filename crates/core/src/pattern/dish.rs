//! DISH (RFC 48): joins groups and receives their messages from all RADIOs fairly. Messages of
//! other groups are dropped here: they arrive in datagrams, or were sent before a `leave` arrived.
//!
//! Each pipe gets all groups when it is attached, and again after each reconnect.

use std::collections::HashMap;
use std::ffi::CString;

use super::hash::SeededHash;
use super::rotation::FairQueue;
use super::{Pattern, Received, Sent};
use crate::error::Error;
use crate::pipe::{Part, PipeId, Pipes, Target};
use tautline_proto::command;
use tautline_queue::message::{GROUP_MAX, Message};
use tautline_queue::sync::Arc;

#[cfg(test)]
mod tests;

/// The behaviour of a DISH socket.
#[derive(Debug, Default)]
pub(crate) struct Dish {
    incoming: FairQueue,
    pipes: Vec<PipeId>,
    /// The groups joined, in the form that messages carry.
    groups: HashMap<Vec<u8>, Arc<CString>, SeededHash>,
    /// A whole message of a joined group, which `can_recv` has found, and its pipe.
    found: Option<(Message, Option<PipeId>)>,
    /// The group of a message whose body is the next part to receive. Set if there was no memory
    /// for the body.
    opened: Option<Arc<CString>>,
    /// Buffer for building a command.
    scratch: Vec<u8>,
}

impl Dish {
    /// Drops messages of other groups, and takes the first frame of the next message: its group.
    fn select(&mut self, pipes: &mut Pipes) -> Result<Arc<CString>, Error> {
        loop {
            let mut name = [0; GROUP_MAX];
            let received = self.incoming.recv(pipes, &mut Target::Buffer(&mut name))?;
            if !received.more {
                // A RADIO never sends a group alone.
                continue;
            }
            if let Some(group) = name.get(..received.len).and_then(|name| self.groups.get(name)) {
                return Ok(group.clone());
            }
            self.incoming.skip_message(pipes);
        }
    }

    fn take(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        loop {
            let group = match self.opened.take() {
                Some(group) => group,
                None => self.select(pipes)?,
            };
            let received = match self.incoming.recv(pipes, target) {
                Err(Error::NoMemory) if pipes.receiving => {
                    self.opened = Some(group);
                    return Err(Error::NoMemory);
                }
                received => received?,
            };
            if received.more {
                // A RADIO never sends a third frame.
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

    fn handle_readable(&mut self, _pipes: &mut Pipes, id: PipeId) {
        self.incoming.mark_readable(id);
    }

    fn detach(&mut self, pipes: &mut Pipes, id: PipeId) {
        self.incoming.detach(pipes, id);
        self.pipes.retain(|&other| other != id);
        if let Some((_, from)) = &mut self.found {
            from.take_if(|from| *from == id);
        }
    }

    fn send(&mut self, _pipes: &mut Pipes, _part: &mut Part<'_>) -> Result<Sent, Error> {
        Err(Error::NotSupported)
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        match self.found.take() {
            Some((message, from)) => Ok(Received::new(from, target.put_message(message))),
            None => self.take(pipes, target),
        }
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        false
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        if self.found.is_none() {
            let mut message = Message::new();
            match self.take(pipes, &mut Target::Message(&mut message)) {
                Ok(received) => self.found = Some((message, received.from)),
                // If memory is short, a receive fails at once and does not block.
                Err(error) => return error == Error::NoMemory,
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
            if self.found.as_ref().is_some_and(|(message, _)| message.group().to_bytes() == group) {
                self.found = None;
            }
            if self.opened.take_if(|opened| opened.to_bytes() == group).is_some() {
                self.incoming.skip_message(pipes);
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
