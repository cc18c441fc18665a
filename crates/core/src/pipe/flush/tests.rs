use super::*;
use crate::conn::chore::{self, Chore, Mark};
use crate::conn::testbed::{MockIoSide, begin_session, open_pipe, unopened_pipe};
use crate::pipe::Pipe;

struct Swept(Arc<Connection>);

impl Chore for Swept {
    fn mark(&self) -> &Mark {
        &self.0.sweep_mark
    }
}

/// The message that sees a hint consumes it. If this message is left to the sweep, the messages
/// after the sweep need their own decision.
#[test]
fn messages_after_a_sweep_are_covered_despite_a_hint() {
    let (new, _peer) = open_pipe(&Arc::<MockIoSide>::default(), None, |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    // Another thread was writing when the last message arrived. It has finished and unlocked the
    // pump.
    pipe.outgoing.flush.record_no_write();
    connection.give_hint();
    assert!(connection.sweep_mark.set());
    pipe.send(&mut Part::copied(b"left to the sweep", false)).unwrap();
    assert!(connection.has_pending() && !connection.residual_mark.is_set());
    chore::release(&[Swept(connection.clone())]);
    assert_eq!(connection.try_flush(), Some(Flushed::Drained));
    pipe.send(&mut Part::copied(b"after it", false)).unwrap();
    assert!(!connection.has_pending() || connection.residual_mark.is_set());
}

/// A flush without a session leaves the messages to the next session. Messages after the start of
/// that session are written, or covered by the residual watch.
#[test]
fn messages_after_session_start_are_flushed() {
    let new = unopened_pipe(&Arc::<MockIoSide>::default(), |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    pipe.send(&mut Part::copied(b"before it", false)).unwrap();
    let _peer = begin_session(&connection, None);
    assert_eq!(connection.try_flush(), Some(Flushed::Drained));
    pipe.send(&mut Part::copied(b"after it", false)).unwrap();
    assert!(!connection.has_pending() || connection.residual_mark.is_set());
}

/// The same before the owner sleeps.
#[test]
fn messages_after_sleep_without_session_are_flushed() {
    let new = unopened_pipe(&Arc::<MockIoSide>::default(), |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    pipe.send(&mut Part::copied(b"before it", false)).unwrap();
    pipe.outgoing.flush(&pipe.link);
    let _peer = begin_session(&connection, None);
    assert_eq!(connection.try_flush(), Some(Flushed::Drained));
    pipe.send(&mut Part::copied(b"after it", false)).unwrap();
    assert!(!connection.has_pending() || connection.residual_mark.is_set());
}

/// If another thread is writing during a flush, the residual watch covers the messages that this
/// thread may have missed.
#[test]
fn messages_left_to_a_busy_pump_are_covered() {
    let (new, _peer) = open_pipe(&Arc::<MockIoSide>::default(), None, |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    // As in a corked batch.
    pipe.outgoing.flush.ask_after(8);
    pipe.send(&mut Part::copied(b"behind a PONG", false)).unwrap();
    assert!(connection.has_pending() && !connection.residual_mark.is_set());
    // Calls inside this closure find the pump locked, as if another thread were writing.
    let written = connection.write_through(0, b"another", None, || {
        pipe.outgoing.flush(&pipe.link);
        true
    });
    assert_eq!(written, None);
    assert!(connection.has_pending() && connection.residual_mark.is_set());
}
