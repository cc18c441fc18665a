//! The last bytes of a stream whose socket is closed, or whose endpoint was given up.

use super::{Phase, Wire};
use crate::conn::{Connection, Flushed, Loss};
use crate::driver::EventLoop;
use crate::driver::closing::{ClosingStream, DiscardOutcome, discard_input};
use crate::driver::origin::Origin;
use std::time::Duration;
use tautline_io::errno;
use tautline_io::reactor::Mode;
use tautline_queue::sync::{Arc, lock};

/// Time after which a lingering stream writes again if the system refuses to report room.
const ROOM_CHECK: Duration = Duration::from_millis(10);

impl Wire {
    /// Sends the queued messages for at most `linger`, after the socket was closed or this endpoint
    /// was given up.
    pub(in crate::driver) fn linger(self: &Arc<Self>, turn: &mut EventLoop, linger: Option<Duration>) {
        if let Some(connection) = self.connection() {
            self.site().remove_from_set(&connection);
        }
        if linger == Some(Duration::ZERO) {
            return self.end(turn, Loss::Closed);
        }
        {
            let mut state = lock(&self.state);
            state.lingering = true;
            if let Some(time) = linger {
                state.linger_timer = turn.set_timer(time, self);
            }
        }
        self.end_drained(turn);
    }

    /// Ends a lingering stream that has sent all queued messages. Otherwise an event or a timer
    /// will call this again.
    pub(super) fn end_drained(self: &Arc<Self>, turn: &mut EventLoop) {
        let connection = match &lock(&self.state).phase {
            Phase::Open(connection) => connection.clone(),
            // This peer arrived too late: no messages are queued for it.
            Phase::Handshake(_) if matches!(self.origin, Origin::Accepted(..)) => {
                return self.end_later(turn);
            }
            _ => return,
        };
        match write_rest(&connection) {
            Some(Flushed::Drained) => {
                self.end(turn, Loss::Closed);
                let patient = lock(&self.state).linger_timer == 0 && self.origin.lingers_for_ever();
                ClosingStream::begin(turn, self.stream.clone(), patient, connection.liveness.arrivals() > 0);
            }
            // Discard the peer's bytes until the stream accepts ours again.
            Some(Flushed::Blocked | Flushed::Partly) => match discard_input(&self.stream) {
                DiscardOutcome::Ended => {}
                DiscardOutcome::More => {
                    let wire = self.clone();
                    turn.driver().post(Box::new(move |turn| wire.end_drained(turn)));
                }
                DiscardOutcome::Waits(interest) => {
                    let registration = lock(&self.state).registration;
                    turn.modify(registration, self.stream.as_fd(), interest, Mode::OneShot);
                }
            },
            // No event will report room.
            None => {
                let key = turn.set_timer(ROOM_CHECK, self);
                lock(&self.state).room_timer = key;
            }
            // The stream has already failed.
            Some(Flushed::NoLink) => self.end(turn, Loss::Stream(errno::EPIPE)),
            // `handle_unwritable` follows.
            Some(Flushed::Lost(_)) => {}
        }
    }
}

/// Writes the last queued bytes after the owner has left. Waits for other threads that write, or
/// that hold the pump's lock for a look. Arms write interest if the kernel is full. Returns `None`
/// if the system refuses that.
fn write_rest(connection: &Arc<Connection>) -> Option<Flushed> {
    loop {
        match connection.try_flush() {
            None => {
                connection.await_others();
            }
            Some(Flushed::Drained) if connection.has_unsent() => {}
            Some(Flushed::Blocked) if !connection.want_write() => return None,
            flushed => return flushed,
        }
    }
}
