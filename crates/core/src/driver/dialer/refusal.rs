//! An endpoint whose peer has refused the connection for good: it is given up, but its pipe stays
//! for a moment.
//!
//! In libzmq a refused session ends in two steps. The session asks the socket, which agrees in its
//! next call of any kind; a later call finds the pipe gone. So the first message after a refusal is
//! always accepted, however late it comes. Messages that follow at once are accepted too, because a
//! sending socket checks for commands only from time to time. Consider a program that sends a
//! greeting to a server with another mechanism, and continues without an answer. If the pipe ended
//! as soon as the refusal is known, that program would block for ever in the send call.

use std::time::Duration;

use super::{Dialer, Phase};
use crate::conn::News;
use crate::driver::EventLoop;
use tautline_queue::sync::{Arc, lock};

/// Time from the socket's first call after the refusal until the pipe ends. A sending libzmq socket
/// checks for commands once in 3,000,000 ticks of the processor's clock, which is 1.5 ms at 2 GHz.
/// The socket finds the end in its second check after the refusal.
const UNNOTICED: Duration = Duration::from_millis(3);

impl Dialer {
    /// Handles a peer that refuses the connection for good.
    pub(super) fn handle_refusal(self: &Arc<Self>, turn: &mut EventLoop) {
        let connection = {
            let mut state = lock(&self.state);
            match &state.connection {
                // A closed endpoint or socket sends no more messages, so its pipe need not stay.
                Some(connection) if !state.lingering && !self.site.is_closed() => {
                    let connection = connection.clone();
                    state.phase = Phase::Refused;
                    connection
                }
                _ => {
                    drop(state);
                    return self.stop(turn);
                }
            }
        };
        connection.inbox.push(News::Refused(connection.clone()));
    }

    /// Handles the socket's notice that it has seen the refusal.
    pub(in crate::driver) fn handle_refusal_notice(self: &Arc<Self>, turn: &mut EventLoop) {
        let key = turn.set_timer(UNNOTICED, self);
        let mut state = lock(&self.state);
        if state.phase == Phase::Refused {
            state.attempts.get_or_insert_default().retry_timer = key;
        }
    }
}
