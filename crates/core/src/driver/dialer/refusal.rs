//! An endpoint whose peer has refused the connection for good: it is given up, but its pipe stays
//! for a moment.
//!
//! In libzmq a refused session ends in two steps. It asks the socket, which agrees in its next
//! call, whatever that is; a later call finds the pipe gone. So the first message after a refusal
//! is always taken, however late it comes, and so are those that follow at once, because a socket
//! that sends looks for commands only now and then. A program that sends a greeting to a server
//! with another mechanism, and goes on without an answer, would block for ever in that call if the
//! pipe ended as soon as the refusal is known.

use std::time::Duration;

use super::{Dialer, Phase};
use crate::conn::News;
use crate::driver::Turn;
use crate::sync::{Arc, lock};

/// From the socket's first call after the refusal until the pipe ends. A libzmq socket that sends
/// looks for commands once in 3,000,000 ticks of the processor's clock, which is 1.5 ms at 2 GHz,
/// and meets the end with its second look after the refusal.
const UNNOTICED: Duration = Duration::from_millis(3);

impl Dialer {
    /// The peer refuses, now and later.
    pub(super) fn refused(self: &Arc<Self>, turn: &mut Turn) {
        let connection = {
            let mut state = lock(&self.state);
            match &state.connection {
                // To an endpoint or socket that was closed nothing more is sent.
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
        connection.push_news(News::Refused(connection.clone()));
    }

    /// The socket has taken note of the refusal.
    pub(in crate::driver) fn refusal_noted(self: &Arc<Self>, turn: &mut Turn) {
        let key = turn.after(UNNOTICED, self);
        let mut state = lock(&self.state);
        if state.phase == Phase::Refused {
            state.way.get_or_insert_default().retry_timer = key;
        }
    }
}
