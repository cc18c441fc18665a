//! Heartbeats of one session: our PINGs, the peer's silence, and the time to live that the peer's
//! PINGs grant (RFC 37).
//!
//! Anything that arrives is a sign of life. While reading is stopped at the receive high-water mark
//! nothing can arrive, so silence is not held against the peer then.

use std::time::Duration;

use super::Turn;
use super::wire::Wire;
use crate::conn::{Connection, Loss};
use crate::options::Options;
use crate::sync::Arc;
use crate::sync::atomic::Ordering::Relaxed;
use tautline_proto::command;

/// The timers of one session; 0 is no timer.
#[derive(Default)]
pub(super) struct Heartbeat {
    ping_timer: u64,
    silence_timer: u64,
    /// What `Connection::arrivals` was when `silence_timer` was set.
    heard: u32,
    ttl_timer: u64,
    ttl_heard: u32,
}

impl Heartbeat {
    /// The session is open.
    pub(super) fn begin(&mut self, turn: &mut Turn, wire: &Arc<Wire>) {
        if let Some(interval) = wire.options().heartbeat_interval {
            self.ping_timer = turn.after(interval, wire);
        }
    }

    /// The peer has granted a time to live.
    pub(super) fn watch_ttl(&mut self, turn: &mut Turn, wire: &Arc<Wire>, connection: &Arc<Connection>) {
        let ttl_ds = connection.granted_ttl_ds.load(Relaxed);
        self.ttl_heard = connection.arrivals.load(Relaxed);
        self.ttl_timer = turn.after(Duration::from_millis(u64::from(ttl_ds) * 100), wire);
    }

    /// A timer has run out; the reason to end the session, if it is one.
    pub(super) fn expired(
        &mut self,
        turn: &mut Turn,
        wire: &Arc<Wire>,
        connection: &Arc<Connection>,
        key: u64,
    ) -> Option<Loss> {
        let arrivals = connection.arrivals.load(Relaxed);
        let silent = |since: u32| arrivals == since && !connection.is_paused();
        if key == self.ping_timer {
            self.begin(turn, wire);
            let mut ping = Vec::new();
            command::put_ping(&mut ping, ttl_ds(wire.options()), &[]);
            connection.note_ping();
            connection.send_ping(ping);
            let timeout = wire.options().heartbeat_timeout.or(wire.options().heartbeat_interval);
            if let (0, Some(timeout)) = (self.silence_timer, timeout) {
                self.heard = arrivals;
                self.silence_timer = turn.after(timeout, wire);
            }
        } else if key == self.silence_timer {
            self.silence_timer = 0;
            return silent(self.heard).then_some(Loss::Silent);
        } else if key == self.ttl_timer {
            if silent(self.ttl_heard) {
                return Some(Loss::Silent);
            }
            self.watch_ttl(turn, wire, connection);
        }
        None
    }
}

/// The silence after which the peer shall give us up, in deciseconds; 0 is for ever.
fn ttl_ds(options: &Options) -> u16 {
    options.heartbeat_ttl.map_or(0, |ttl| (ttl.as_millis() / 100).min(u16::MAX.into()) as u16)
}
