//! Heartbeats of one session: our PINGs, the peer's silence, and the time to live that the peer's
//! PINGs grant (RFC 37).
//!
//! Any byte that arrives is a sign of life. While reading is stopped at the receive high-water
//! mark, no byte can arrive, so silence does not count against the peer then.

use std::time::Duration;

use super::EventLoop;
use super::wire::Wire;
use crate::conn::{Connection, Loss, Silence};
use crate::options::Options;
use tautline_io::clock;
use tautline_proto::command;
use tautline_queue::sync::Arc;

/// The timers of one session. 0 means no timer.
#[derive(Default)]
pub(super) struct Heartbeat {
    ping_timer: u64,
    silence_timer: u64,
    unanswered: Unanswered,
    ttl_timer: u64,
    /// Start of the silence that the time to live limits, if no byte has arrived since.
    ttl_from: Duration,
}

/// The first PING after which no byte arrived: the peer's silence counts from its time. If the
/// timeout is longer than the interval, we send more PINGs before it ends.
#[derive(Default)]
struct Unanswered {
    sent_at: Duration,
    /// Value of `Liveness::arrivals` when that PING was sent.
    arrivals: u32,
}

impl Unanswered {
    /// Notes that a PING is sent. `first`: no earlier PING waits for an answer.
    fn record_ping(&mut self, now: Duration, arrivals: u32, first: bool) {
        if first || arrivals != self.arrivals {
            *self = Unanswered { sent_at: now, arrivals };
        }
    }
}

impl Heartbeat {
    /// Starts the PING timer of an open session.
    pub(super) fn begin(&mut self, turn: &mut EventLoop, wire: &Arc<Wire>) {
        if let Some(interval) = wire.options().heartbeat_interval {
            self.ping_timer = turn.set_timer(interval, wire);
        }
    }

    /// Starts the timer for the time to live that the peer has granted.
    pub(super) fn watch_ttl(&mut self, turn: &mut EventLoop, wire: &Arc<Wire>, ttl: Duration) {
        self.ttl_from = now();
        self.ttl_timer = turn.set_timer(ttl, wire);
    }

    /// Handles an expired timer. Returns a reason if the session must end.
    pub(super) fn handle_expiry(
        &mut self,
        turn: &mut EventLoop,
        wire: &Arc<Wire>,
        connection: &Arc<Connection>,
        key: u64,
    ) -> Option<Loss> {
        let arrivals = connection.liveness.arrivals();
        if key == self.ping_timer {
            self.begin(turn, wire);
            let mut ping = Vec::new();
            command::put_ping(&mut ping, ttl_ds(wire.options()), &[]);
            connection.liveness.note_ping();
            connection.send_control(|frames| frames.ping = ping);
            let first = self.silence_timer == 0;
            self.unanswered.record_ping(now(), arrivals, first);
            if let (true, Some(timeout)) = (first, timeout(wire.options())) {
                self.silence_timer = turn.set_timer(timeout, wire);
            }
        } else if key == self.silence_timer {
            self.silence_timer = 0;
            // If bytes have arrived since, the next PING starts a new measurement.
            if arrivals == self.unanswered.arrivals && !connection.is_paused() {
                let timeout = timeout(wire.options()).unwrap_or_default();
                let Some(left) = remaining(now(), self.unanswered.sent_at, timeout) else {
                    return Some(Loss::Silent(Silence::Heartbeat));
                };
                self.silence_timer = turn.set_timer(left, wire);
            }
        } else if key == self.ttl_timer {
            if connection.is_paused() {
                self.ttl_from = now();
            }
            let heard_at = connection.liveness.heard_at().max(self.ttl_from);
            let Some(left) = remaining(now(), heard_at, connection.liveness.granted_ttl()) else {
                return Some(Loss::Silent(Silence::TimeToLive));
            };
            self.ttl_timer = turn.set_timer(left, wire);
        }
        None
    }
}

/// The current time on the clock of the ticks.
fn now() -> Duration {
    Duration::from_nanos(clock::ticks_to_nanos(clock::ticks()))
}

/// Returns the remaining part of `limit` for a silence that began at `since`, or `None` if the
/// limit is reached.
fn remaining(now: Duration, since: Duration, limit: Duration) -> Option<Duration> {
    (since + limit).checked_sub(now).filter(|left| !left.is_zero())
}

/// Length of the silence after a PING that ends the session: -1 means the interval, 0 means never.
pub(super) fn timeout(options: &Options) -> Option<Duration> {
    options.heartbeat_timeout.or(options.heartbeat_interval).filter(|timeout| !timeout.is_zero())
}

/// Length of the silence after which the peer closes the session, in deciseconds. 0 means never.
fn ttl_ds(options: &Options) -> u16 {
    options.heartbeat_ttl.map_or(0, |ttl| (ttl.as_millis() / 100).min(u16::MAX.into()) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn silence_begins_with_the_first_ping_that_nothing_has_followed() {
        let mut unanswered = Unanswered::default();
        // Time of a PING, number of arrivals until then, and the expected start of the silence.
        for (now, arrivals, sent_at) in [(10, 0, 10), (20, 1, 20), (30, 1, 20), (40, 1, 20), (50, 4, 50)] {
            unanswered.record_ping(ms(now), arrivals, now == 10);
            assert_eq!((unanswered.sent_at, unanswered.arrivals), (ms(sent_at), arrivals));
        }
        unanswered.record_ping(ms(60), 4, true);
        assert_eq!(unanswered.sent_at, ms(60), "nothing waited for an answer");
    }

    #[test]
    fn expired_limit_has_no_remaining_time() {
        assert_eq!(remaining(ms(15), ms(10), ms(20)), Some(ms(15)));
        assert_eq!(remaining(ms(30), ms(10), ms(20)), None);
        assert_eq!(remaining(ms(90), ms(10), ms(20)), None);
    }
}
