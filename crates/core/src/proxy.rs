//! The built-in proxy: joins two sockets in the calling thread, as described in zmq_proxy(3) and
//! zmq_proxy_steerable(3).
//!
//! The C ABI and the Rust API call it with sockets that no other thread uses during the call,
//! except to close them. Whole messages are forwarded, unchanged, in both directions. Invariants:
//!
//! * With a backend, a message is taken from one side only when the other can accept it. So the
//!   proxy has no queue of its own, and the high-water marks of both sockets add up.
//! * A direction delays the other direction and the control socket for at most `BURST` messages.
//!
//! A send can delay everything in two cases: the capture socket is full, or there is no backend and
//! the frontend is full. The delay ends at the send timeout of the full socket, if it has one, and
//! the proxy then returns `Again`.

use crate::error::Error;
use crate::poller::{self, Item, POLLIN as IN, POLLOUT as OUT, PollTarget};
use crate::socket::{Flags, PollEvents, Socket};
use std::time::{Duration, Instant};
use tautline_queue::message::Message;

mod steering;
#[cfg(test)]
mod tests;
use steering::{Control, State};

/// Number of messages forwarded in one direction before the other direction gets its turn.
const BURST: usize = 1000;

/// Forwards messages between `frontend` and `backend`, or from `frontend` back to itself if there
/// is no `backend`.
///
/// Every part is also sent to `capture`. Commands from `control` are executed. Returns `Ok` after
/// the command TERMINATE, `Terminated` when the context ends, or any other error of a socket.
pub fn run(
    frontend: &mut Socket,
    backend: Option<&mut Socket>,
    capture: Option<&mut Socket>,
    control: Option<&mut Socket>,
) -> Result<(), Error> {
    let control = control.map(Control::new);
    let mut proxy =
        Proxy { frontend, backend, capture, control, blocked: [false; 2], passed: Default::default() };
    loop {
        let ready = proxy.wait()?;
        if ready.control && proxy.command()? == State::Terminated {
            return Ok(());
        }
        for direction in [FORTH, BACK] {
            if ready.directions[direction] {
                proxy.forward(direction)?;
            }
        }
    }
}

/// From the frontend to the backend.
const FORTH: usize = 0;
/// From the backend to the frontend.
const BACK: usize = 1;

/// Indexes in the arguments and results of [`Proxy::poll`], after those of the frontend and the
/// backend.
const CONTROL: usize = 2;
const CAPTURE: usize = 3;

const WRITE: PollEvents = PollEvents { read: false, write: true };

/// Counters of a direction.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// Message parts, which libzmq counts as messages.
    parts: u64,
    bytes: u64,
}

struct Proxy<'a> {
    frontend: &'a mut Socket,
    /// `None`: the frontend is both ends, and only FORTH exists.
    backend: Option<&'a mut Socket>,
    capture: Option<&'a mut Socket>,
    control: Option<Control<'a>>,
    /// For each direction: true if the receiving end was full at the last check, so that we wait
    /// for room there.
    blocked: [bool; 2],
    /// Counters of each direction.
    passed: [Count; 2],
}

/// Directions and commands that are ready.
struct Ready {
    directions: [bool; 2],
    control: bool,
}

impl Proxy<'_> {
    /// The socket that a direction reads.
    fn source(&mut self, direction: usize) -> &mut Socket {
        match &mut self.backend {
            Some(backend) if direction == BACK => backend,
            _ => self.frontend,
        }
    }

    /// The socket that a direction writes.
    fn target(&mut self, direction: usize) -> &mut Socket {
        match &mut self.backend {
            Some(backend) if direction == FORTH => backend,
            _ => self.frontend,
        }
    }

    /// Waits until a direction can continue or a command has arrived.
    fn wait(&mut self) -> Result<Ready, Error> {
        let directions = match (&self.control, &self.backend) {
            (Some(control), _) if control.state() == State::Paused => 0..0,
            (_, None) => FORTH..BACK,
            _ => FORTH..BACK + 1,
        };
        // A direction waits at its source for a message. If its target was full at the last check,
        // it waits at its target for room instead. `place` is the index of the socket where it
        // waits.
        let blocked = self.blocked;
        let place = |direction: usize| direction ^ usize::from(blocked[direction]);
        let awaited = |direction: usize| if blocked[direction] { OUT } else { IN };

        let mut events = [0, 0, IN, 0];
        for direction in directions.clone() {
            events[place(direction)] |= awaited(direction);
        }
        let revents = self.poll(events, None)?;
        let mut ready = Ready { directions: [false; 2], control: revents[CONTROL] & IN != 0 };
        for direction in directions {
            ready.directions[direction] = revents[place(direction)] & awaited(direction) != 0;
        }
        Ok(ready)
    }

    /// Forwards up to a burst of messages, while there are messages and the other end has room.
    fn forward(&mut self, direction: usize) -> Result<(), Error> {
        for _ in 0..BURST {
            self.blocked[direction] = !self.has_room(direction)?;
            if self.blocked[direction] || !self.pass(direction)? {
                break;
            }
        }
        Ok(())
    }

    /// True if the direction's target accepts a message now. A socket that is both ends is not
    /// asked, because it may accept a message only after it has delivered one (REP).
    fn has_room(&mut self, direction: usize) -> Result<bool, Error> {
        if self.backend.is_none() {
            return Ok(true);
        }
        Ok(self.target(direction).refresh(WRITE, true)?.write)
    }

    /// Forwards one message. Returns false if no message is available.
    fn pass(&mut self, direction: usize) -> Result<bool, Error> {
        let mut message = Message::new();
        let mut bytes = match self.source(direction).recv_message(&mut message, Flags::DONTWAIT) {
            Err(Error::Again) => return Ok(false),
            outcome => outcome?,
        };
        // A socket that is both ends must be read to the end of the message before it can be
        // written (REP).
        let mut held = Vec::new();
        loop {
            let more = message.more();
            self.copy_to_capture(&mut message.share(), forward_flags(more))?;
            self.passed[direction].parts += 1;
            self.passed[direction].bytes += bytes as u64;
            if self.backend.is_none() {
                held.push(std::mem::take(&mut message));
            } else {
                self.target(direction).send_message(&mut message, forward_flags(more))?;
            }
            if !more {
                break;
            }
            bytes = self.source(direction).recv_message(&mut message, Flags::NONE)?;
        }
        for mut part in held {
            let more = part.more();
            self.target(direction).send_message(&mut part, forward_flags(more))?;
        }
        Ok(true)
    }

    /// Sends a part to the capture socket, if there is one. Waits for room there if necessary.
    fn copy_to_capture(&mut self, part: &mut Message, flags: Flags) -> Result<(), Error> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        if !capture.refresh(WRITE, false)?.write {
            // A socket type that cannot send returns its error here.
            match capture.send_message(part, Flags(flags.0 | Flags::DONTWAIT.0)) {
                Err(Error::Again) => {}
                outcome => return outcome,
            }
            let deadline = capture.deadline_for(WRITE);
            let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if self.poll([0, 0, 0, OUT], timeout)?[CAPTURE] == 0 {
                return Err(Error::Again);
            }
        }
        match &mut self.capture {
            Some(capture) => capture.send_message(part, flags),
            None => Ok(()),
        }
    }

    /// Waits for events of the frontend, the backend, the control and the capture socket. Watches
    /// all of them, even those without a wanted event: if another thread closes one, the proxy
    /// ends.
    fn poll(&mut self, events: [i16; 4], timeout: Option<Duration>) -> Result<[i16; 4], Error> {
        let sockets = [
            Some(&mut *self.frontend),
            self.backend.as_deref_mut(),
            self.control.as_mut().map(Control::socket),
            self.capture.as_deref_mut(),
        ];
        let mut items = Vec::with_capacity(sockets.len());
        let mut places = [None; 4];
        for ((socket, events), place) in sockets.into_iter().zip(events).zip(&mut places) {
            if let Some(socket) = socket {
                *place = Some(items.len());
                items.push(Item { watched: PollTarget::Socket(socket), events, revents: 0 });
            }
        }
        poller::poll(&mut items, timeout)?;
        Ok(places.map(|place| place.map_or(0, |place: usize| items[place].revents)))
    }

    /// Executes one command.
    fn command(&mut self) -> Result<State, Error> {
        match &mut self.control {
            Some(control) => control.obey(self.passed),
            None => Ok(State::Active),
        }
    }
}

/// Returns the flags for sending a received part: MORE if more parts of its message follow.
fn forward_flags(more: bool) -> Flags {
    if more { Flags::MORE } else { Flags::NONE }
}
