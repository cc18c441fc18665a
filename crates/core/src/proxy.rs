//! The built-in proxy: joins two sockets in the calling thread, as zmq_proxy(3) and
//! zmq_proxy_steerable(3) say.
//!
//! Called by the C ABI and the Rust API with sockets that no other thread uses meanwhile. Whole
//! messages are forwarded, unchanged, in both directions. Invariants: a message is taken from one
//! side only when the other can take it, so that high-water marks add up through the proxy; neither
//! direction can starve the other or the control socket for longer than a burst.

use crate::error::Error;
use crate::message::Message;
use crate::poller::{self, Item, POLLIN as IN, POLLOUT as OUT, Watched};
use crate::socket::{Flags, Socket, Wanted};
use std::time::{Duration, Instant};

mod steering;
#[cfg(test)]
mod tests;
use steering::{Control, State};

/// Messages passed on in one direction before the other gets its turn.
const BURST: usize = 1000;

/// Forwards messages between `frontend` and `backend`, or from `frontend` back to itself if there
/// is no `backend`.
///
/// Every part is also sent to `capture`. Commands are obeyed from `control`. Returns after the
/// command TERMINATE, with `Terminated` when the context ends, or with whatever else a socket fails
/// with.
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

/// Places in what [`Proxy::poll`] takes and returns, after those of the frontend and the backend.
const CONTROL: usize = 2;
const CAPTURE: usize = 3;

const WRITE: Wanted = Wanted { read: false, write: true };

/// What a direction has passed on.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// Message parts: what libzmq counts as messages.
    parts: u64,
    bytes: u64,
}

struct Proxy<'a> {
    frontend: &'a mut Socket,
    /// `None`: the frontend is both ends, and only FORTH exists.
    backend: Option<&'a mut Socket>,
    capture: Option<&'a mut Socket>,
    control: Option<Control<'a>>,
    /// By direction: the receiving end was full when last looked at, so room there is what to wait
    /// for.
    blocked: [bool; 2],
    /// By direction.
    passed: [Count; 2],
}

/// What there is to do.
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

    /// Waits until a direction can go on or a command is there.
    fn wait(&mut self) -> Result<Ready, Error> {
        let directions = match (&self.control, &self.backend) {
            (Some(control), _) if control.state() == State::Paused => 0..0,
            (_, None) => FORTH..BACK,
            _ => FORTH..BACK + 1,
        };
        // A direction waits at its source for a message, and once it knows of one, at its target
        // for room.
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

    /// Passes on up to a burst of messages, as long as there are some and the other end has room.
    fn forward(&mut self, direction: usize) -> Result<(), Error> {
        for _ in 0..BURST {
            self.blocked[direction] = !self.has_room(direction)?;
            if self.blocked[direction] || !self.pass(direction)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether the direction's target takes a message now. A socket that is both ends may take one
    /// only when it has given one (REP), so that one is not asked.
    fn has_room(&mut self, direction: usize) -> Result<bool, Error> {
        if self.backend.is_none() {
            return Ok(true);
        }
        Ok(self.target(direction).refresh(WRITE, true)?.write)
    }

    /// Passes on one message; false if there is none.
    fn pass(&mut self, direction: usize) -> Result<bool, Error> {
        let mut message = Message::new();
        let mut bytes = match self.source(direction).recv_message(&mut message, Flags::DONTWAIT) {
            Err(Error::Again) => return Ok(false),
            outcome => outcome?,
        };
        // A socket that is both ends must have been read to the end of the message before it can be
        // written (REP).
        let mut held = Vec::new();
        loop {
            let more = message.more();
            self.copy_to_capture(&mut message.share(), onward(more))?;
            self.passed[direction].parts += 1;
            self.passed[direction].bytes += bytes as u64;
            if self.backend.is_none() {
                held.push(std::mem::take(&mut message));
            } else {
                self.target(direction).send_message(&mut message, onward(more))?;
            }
            if !more {
                break;
            }
            bytes = self.source(direction).recv_message(&mut message, Flags::NONE)?;
        }
        for mut part in held {
            let more = part.more();
            self.target(direction).send_message(&mut part, onward(more))?;
        }
        Ok(true)
    }

    /// Sends a part to the capture socket, if there is one. Waits for room there if need be.
    fn copy_to_capture(&mut self, part: &mut Message, flags: Flags) -> Result<(), Error> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        if !capture.refresh(WRITE, false)?.write {
            // A socket that cannot send at all says so here.
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
    /// all of them, also for no event: a close of any by another thread ends the proxy.
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
                items.push(Item { watched: Watched::Socket(socket), events, revents: 0 });
            }
        }
        poller::poll(&mut items, timeout)?;
        Ok(places.map(|place| place.map_or(0, |place: usize| items[place].revents)))
    }

    /// Obeys one command.
    fn command(&mut self) -> Result<State, Error> {
        match &mut self.control {
            Some(control) => control.obey(self.passed),
            None => Ok(State::Active),
        }
    }
}

/// How to send a part that had been received with `more` to follow.
fn onward(more: bool) -> Flags {
    if more { Flags::MORE } else { Flags::NONE }
}
