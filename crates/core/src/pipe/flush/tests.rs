use super::*;
use crate::conn::chore::{self, Chore, Mark};
use crate::conn::testbed::{Asked, begin_session, open_pipe, unopened_pipe};
use crate::pipe::Pipe;

struct Swept(Arc<Connection>);

impl Chore for Swept {
    fn mark(&self) -> &Mark {
        &self.0.swept
    }
}

/// A hint is used up by the message that sees it. If that one is left to the sweep, nothing is
/// decided for those that come after the sweep.
#[test]
fn what_comes_after_the_sweep_is_looked_after_whichever_thread_gave_a_hint_before() {
    let (new, _peer) = open_pipe(&Arc::<Asked>::default(), None, |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    // Another thread was writing when the last message came. Now it has written, and has let go.
    pipe.outgoing.flush.not_written();
    connection.give_hint();
    assert!(connection.swept.set());
    pipe.send(&mut Part::copied(b"left to the sweep", false)).unwrap();
    assert!(connection.has_pending() && !connection.watched.is_set());
    chore::let_go(&[Swept(connection.clone())]);
    assert_eq!(connection.try_flush(), Some(Flushed::Drained));
    pipe.send(&mut Part::copied(b"after it", false)).unwrap();
    assert!(!connection.has_pending() || connection.watched.is_set());
}

/// A flush that finds no session leaves the messages to the session that begins. Those that come
/// after that are written, or looked after.
#[test]
fn what_comes_after_the_first_session_has_begun_does_not_stay_behind() {
    let new = unopened_pipe(&Arc::<Asked>::default(), |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    pipe.send(&mut Part::copied(b"before it", false)).unwrap();
    let _peer = begin_session(&connection, None);
    assert_eq!(connection.try_flush(), Some(Flushed::Drained));
    pipe.send(&mut Part::copied(b"after it", false)).unwrap();
    assert!(!connection.has_pending() || connection.watched.is_set());
}

/// The same before the owner sleeps.
#[test]
fn what_comes_after_a_sleep_without_a_session_does_not_stay_behind() {
    let new = unopened_pipe(&Arc::<Asked>::default(), |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    pipe.send(&mut Part::copied(b"before it", false)).unwrap();
    pipe.outgoing.flush(&pipe.link);
    let _peer = begin_session(&connection, None);
    assert_eq!(connection.try_flush(), Some(Flushed::Drained));
    pipe.send(&mut Part::copied(b"after it", false)).unwrap();
    assert!(!connection.has_pending() || connection.watched.is_set());
}

/// A flush that finds another thread writing leaves to the watch what that one may not have seen.
#[test]
fn what_a_flush_leaves_to_a_thread_that_writes_does_not_stay_behind() {
    let (new, _peer) = open_pipe(&Arc::<Asked>::default(), None, |_| ());
    let connection = new.connection.clone();
    let mut pipe = Pipe::wire(new);
    // As in a corked batch.
    pipe.outgoing.flush.ask_after(8);
    pipe.send(&mut Part::copied(b"behind a PONG", false)).unwrap();
    assert!(connection.has_pending() && !connection.watched.is_set());
    // What is called meanwhile finds the pump locked, as by another thread.
    let written = connection.write_through(0, b"another", None, || {
        pipe.outgoing.flush(&pipe.link);
        true
    });
    assert_eq!(written, None);
    assert!(connection.has_pending() && connection.watched.is_set());
}
