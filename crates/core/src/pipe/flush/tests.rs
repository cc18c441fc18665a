use super::*;
use crate::conn::testbed::{MockIoSide, begin_session, open_pipe, unopened_pipe};
use crate::pipe::Pipe;
use tautline_queue::handoff::chore::{self, Chore, Mark};

struct Swept(Arc<Connection>);

impl Chore for Swept {
    fn mark(&self) -> &Mark {
        &self.0.sweep_mark
    }
}

/// The message that sees a hint consumes it. If that message is left to the sweep, the messages
/// after the sweep must still be flushed or watched.
#[test]
fn messages_after_a_sweep_are_covered_despite_a_hint() {
    let (new, _peer) = open_pipe(&Arc::<MockIoSide>::default(), None, |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    // Another thread was writing when the last message came. That thread has now finished.
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
/// that session are flushed or watched.
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

/// A flush before the owner sleeps, without a session, leaves the messages to the next session.
/// Messages after the start of that session are flushed or watched.
#[test]
fn messages_after_sleep_without_session_are_flushed() {
    let new = unopened_pipe(&Arc::<MockIoSide>::default(), |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    pipe.send(&mut Part::copied(b"before it", false)).unwrap();
    pipe.outgoing.flush();
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
    // Delays the next check of the flush rule, as a corked batch does.
    pipe.outgoing.flush.ask_after(8);
    pipe.send(&mut Part::copied(b"behind a PONG", false)).unwrap();
    assert!(connection.has_pending() && !connection.residual_mark.is_set());
    // During this call the pump is locked, as if another thread were writing.
    let written = connection.write_through(0, b"another", None, || {
        pipe.outgoing.flush();
        true
    });
    assert_eq!(written, None);
    assert!(connection.has_pending() && connection.residual_mark.is_set());
}

/// A cork that is dropped while a newer one exists must not be restored by the newer one: its
/// socket may be gone.
#[test]
fn corks_that_end_out_of_order_leave_no_socket_corked() {
    let sockets: [Arc<PipesShared>; 2] = Default::default();
    let cork = |number: usize| Cork::new(&sockets[number]);
    let corked = || sockets.iter().position(|socket| Arc::as_ptr(socket).addr() == CORKED.get());
    let (outer, inner) = (cork(0), cork(1));
    assert_eq!(corked(), Some(1));
    drop(inner);
    assert_eq!(corked(), Some(0));
    let inner = cork(1);
    drop(outer);
    assert_eq!(CORKED.get(), 0);
    let newest = cork(1);
    drop(inner);
    assert_eq!(CORKED.get(), 0);
    drop(newest);
    assert_eq!(CORKED.get(), 0);
}
