//! Commands to a running proxy, as named in zmq_proxy_steerable(3): PAUSE, RESUME, TERMINATE,
//! STATISTICS.
//!
//! The control socket may be of any type that receives. If it must reply (REP), it replies to every
//! command: to STATISTICS with eight parts, to all others, even unknown ones, with an empty
//! message.

use super::Count;
use crate::error::Error;
use crate::socket::{Flags, Socket};
use tautline_queue::message::Message;

/// ZMQ_TYPE.
const TYPE: i32 = 16;
/// ZMQ_REP.
const REP: i32 = 4;

/// State of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The proxy forwards messages.
    Active,
    /// The proxy only executes commands.
    Paused,
    /// The proxy has to return.
    Terminated,
}

/// The control socket.
pub(super) struct Control<'a> {
    socket: &'a mut Socket,
    state: State,
}

impl<'a> Control<'a> {
    pub(super) fn new(socket: &'a mut Socket) -> Self {
        Control { socket, state: State::Active }
    }

    pub(super) fn socket(&mut self) -> &mut Socket {
        self.socket
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Receives one command, executes it and replies. `passed` has the counters of both directions.
    pub(super) fn obey(&mut self, passed: [Count; 2]) -> Result<State, Error> {
        let mut command = Message::new();
        match self.socket.recv_message(&mut command, Flags::DONTWAIT) {
            Err(Error::Again) => return Ok(self.state),
            outcome => outcome?,
        };
        let mut more = command.more();
        while more {
            let mut ignored = Message::new();
            self.socket.recv_message(&mut ignored, Flags::NONE)?;
            more = ignored.more();
        }
        match command.as_slice() {
            b"STATISTICS" => {
                self.report(passed)?;
                return Ok(self.state);
            }
            b"PAUSE" => self.state = State::Paused,
            b"RESUME" => self.state = State::Active,
            b"TERMINATE" => self.state = State::Terminated,
            _ => {}
        }
        let mut socket_type = [0; 4];
        self.socket.option(TYPE, &mut socket_type)?;
        if i32::from_ne_bytes(socket_type) == REP {
            self.socket.send(&[], Flags::NONE)?;
        }
        Ok(self.state)
    }

    /// Sends the parts and bytes received and sent by the frontend, then by the backend. The parts
    /// received by one are the parts sent by the other.
    fn report(&mut self, [forth, back]: [Count; 2]) -> Result<(), Error> {
        let numbers = [forth, back, back, forth].into_iter().flat_map(|count| [count.parts, count.bytes]);
        for (index, number) in numbers.enumerate() {
            let flags = if index < 7 { Flags::MORE } else { Flags::NONE };
            self.socket.send(&number.to_ne_bytes(), flags)?;
        }
        Ok(())
    }
}
