//! Conformance tests, run for every reactor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tautline_testkit::with_watchdog;

use super::*;
use crate::fd::{AsFd, AsRawFd};
use crate::libc;
use crate::net::Stream;
use crate::poll::{PollFd, poll};
use crate::wake::WakeFd;

const LIMIT: Duration = Duration::from_secs(60);
const NOW: Option<Duration> = Some(Duration::ZERO);

fn wait(reactor: &dyn Reactor, timeout: Option<Duration>) -> Vec<Event> {
    // A wait must remove old contents.
    let mut events =
        vec![Event { token: Token(99), readable: true, writable: true, closed: true, ended: true }];
    reactor.wait(&mut events, timeout).unwrap();
    events.sort_by_key(|event| event.token);
    events
}

fn readable(token: u64) -> Event {
    Event { token: Token(token), readable: true, writable: false, closed: false, ended: false }
}

fn writable(token: u64) -> Event {
    Event { token: Token(token), readable: false, writable: true, closed: false, ended: false }
}

/// Level-triggered readiness repeats, and ends with its cause.
fn level(reactor: &dyn Reactor) {
    let wake = WakeFd::new().unwrap();
    reactor.add(wake.as_fd(), Token(7), Interest::READ, Mode::Level).unwrap();
    assert_eq!(wait(reactor, NOW), []);
    wake.wake();
    assert_eq!(wait(reactor, None), [readable(7)]);
    assert_eq!(wait(reactor, NOW), [readable(7)]);
    wake.drain();
    assert_eq!(wait(reactor, NOW), []);
    reactor.remove(wake.as_fd()).unwrap();
}

/// One-shot readiness is reported once, until it is armed again.
fn one_shot(reactor: &dyn Reactor) {
    let wake = WakeFd::new().unwrap();
    reactor.add(wake.as_fd(), Token(1), Interest::READ, Mode::OneShot).unwrap();
    wake.wake();
    assert_eq!(wait(reactor, None), [readable(1)]);
    assert_eq!(wait(reactor, NOW), []);
    reactor.modify(wake.as_fd(), Token(2), Interest::READ, Mode::OneShot).unwrap();
    assert_eq!(wait(reactor, NOW), [readable(2)]);
    assert_eq!(wait(reactor, NOW), []);
    wake.drain();
    wake.wake();
    assert_eq!(wait(reactor, NOW), [], "a new cause does not arm it");
    reactor.remove(wake.as_fd()).unwrap();
}

/// Modify changes interest, token and mode. Muting silences a ready descriptor.
fn modify(reactor: &dyn Reactor) {
    let (near, far) = Stream::pair().unwrap();
    reactor.add(near.as_fd(), Token(1), Interest::NONE, Mode::Level).unwrap();
    far.write(b"data").unwrap();
    assert_eq!(wait(reactor, NOW), []);
    reactor.modify(near.as_fd(), Token(2), Interest::WRITE, Mode::Level).unwrap();
    assert_eq!(wait(reactor, NOW), [writable(2)]);
    reactor.modify(near.as_fd(), Token(3), Interest::BOTH, Mode::OneShot).unwrap();
    assert_eq!(wait(reactor, NOW), [Event { writable: true, ..readable(3) }]);
    reactor.modify(near.as_fd(), Token(4), Interest::READ, Mode::Level).unwrap();
    assert_eq!(wait(reactor, NOW), [readable(4)]);
    reactor.modify(near.as_fd(), Token(5), Interest::NONE, Mode::Level).unwrap();
    assert_eq!(wait(reactor, NOW), []);
    reactor.remove(near.as_fd()).unwrap();
}

/// Writability ends when the buffer is full, and returns when it is drained.
fn full_and_drained(reactor: &dyn Reactor) {
    let (near, far) = Stream::pair().unwrap();
    reactor.add(near.as_fd(), Token(1), Interest::WRITE, Mode::Level).unwrap();
    assert_eq!(wait(reactor, NOW), [writable(1)]);
    let chunk = [0_u8; 4096];
    while near.write(&chunk).is_ok() {}
    assert_eq!(wait(reactor, NOW), []);
    let mut buffer = [0_u8; 4096];
    while far.read(&mut buffer).is_ok() {}
    assert_eq!(wait(reactor, NOW), [writable(1)]);
    reactor.remove(near.as_fd()).unwrap();
}

/// A removed descriptor is silent; wrong registrations are errors.
fn remove(reactor: &dyn Reactor) {
    let (wake, other) = (WakeFd::new().unwrap(), WakeFd::new().unwrap());
    reactor.add(wake.as_fd(), Token(1), Interest::READ, Mode::Level).unwrap();
    reactor.add(other.as_fd(), Token(2), Interest::READ, Mode::Level).unwrap();
    wake.wake();
    other.wake();
    assert_eq!(wait(reactor, NOW), [readable(1), readable(2)]);
    reactor.remove(wake.as_fd()).unwrap();
    assert_eq!(wait(reactor, NOW), [readable(2)]);

    let number = |outcome: io::Result<()>| outcome.unwrap_err().raw_os_error();
    assert_eq!(number(reactor.remove(wake.as_fd())), Some(libc::ENOENT));
    let again = reactor.modify(wake.as_fd(), Token(1), Interest::READ, Mode::Level);
    assert_eq!(number(again), Some(libc::ENOENT));
    let twice = reactor.add(other.as_fd(), Token(3), Interest::READ, Mode::Level);
    assert_eq!(number(twice), Some(libc::EEXIST));

    reactor.add(wake.as_fd(), Token(4), Interest::READ, Mode::Level).unwrap();
    assert_eq!(wait(reactor, NOW), [readable(2), readable(4)]);
    reactor.remove(wake.as_fd()).unwrap();
    reactor.remove(other.as_fd()).unwrap();
}

/// A hang-up is reported with the remaining data, and muted after the first report.
fn hang_up(reactor: &dyn Reactor) {
    if cfg!(windows) {
        return; // A pair over TCP only ends.
    }
    let (near, far) = Stream::pair().unwrap();
    reactor.add(near.as_fd(), Token(1), Interest::READ, Mode::Level).unwrap();
    far.write(b"last words").unwrap();
    drop(far);
    let events = wait(reactor, None);
    assert_eq!(events.len(), 1);
    assert!(events[0].readable && events[0].closed);
    reactor.modify(near.as_fd(), Token(2), Interest::NONE, Mode::Level).unwrap();
    assert_eq!(wait(reactor, NOW), [Event { readable: false, closed: true, ..readable(2) }]);
    assert_eq!(wait(reactor, NOW), []);
    reactor.modify(near.as_fd(), Token(3), Interest::NONE, Mode::OneShot).unwrap();
    assert_eq!(wait(reactor, NOW), [Event { readable: false, closed: true, ..readable(3) }]);
    assert_eq!(wait(reactor, NOW), []);
    reactor.remove(near.as_fd()).unwrap();
}

/// The end of the other end's data is reported to a registration that asks for it, with or without
/// unread data, if the reactor supports it.
fn end(reactor: &dyn Reactor, tells: bool) {
    let (near, far) = Stream::pair().unwrap();
    if !tells {
        reactor.add(near.as_fd(), Token(1), Interest::END, Mode::OneShot).unwrap();
        far.shutdown(std::net::Shutdown::Write).unwrap();
        // Winsock reports a hang-up here.
        assert!(cfg!(windows) || wait(reactor, NOW).is_empty());
        return reactor.remove(near.as_fd()).unwrap();
    }
    reactor.add(near.as_fd(), Token(1), Interest::END, Mode::OneShot).unwrap();
    far.write(b"last words").unwrap();
    assert_eq!(wait(reactor, NOW), []);
    far.shutdown(std::net::Shutdown::Write).unwrap();
    let ended =
        |token| Event { token: Token(token), readable: false, writable: false, closed: false, ended: true };
    assert_eq!(wait(reactor, None), [ended(1)]);
    assert_eq!(wait(reactor, NOW), []);
    reactor
        .modify(near.as_fd(), Token(2), Interest { ended: true, ..Interest::WRITE }, Mode::OneShot)
        .unwrap();
    assert_eq!(wait(reactor, NOW), [Event { writable: true, ..ended(2) }]);
    reactor.modify(near.as_fd(), Token(3), Interest::WRITE, Mode::OneShot).unwrap();
    assert_eq!(wait(reactor, NOW), [writable(3)]);
    reactor.remove(near.as_fd()).unwrap();
}

/// The end is reported by every wait for as long as it lasts, if the registration asked for that.
fn end_by_every_wait(reactor: &dyn Reactor, tells: bool) {
    if !tells {
        return;
    }
    let (near, far) = Stream::pair().unwrap();
    reactor.add(near.as_fd(), Token(1), Interest::END, Mode::Level).unwrap();
    far.write(b"last words").unwrap();
    assert_eq!(wait(reactor, NOW), []);
    far.shutdown(std::net::Shutdown::Write).unwrap();
    for _ in 0..3 {
        assert_eq!(wait(reactor, None), [Event { readable: false, ended: true, ..readable(1) }]);
    }
    reactor.remove(near.as_fd()).unwrap();
}

/// A one-time report does not repeat for the same descriptor, and does not make the set readable.
fn both_once(reactor: &dyn Reactor) {
    let (near, far) = Stream::pair().unwrap();
    reactor.add(near.as_fd(), Token(1), Interest::BOTH, Mode::Level).unwrap();
    assert_eq!(wait(reactor, NOW), [writable(1)]);
    reactor.modify(near.as_fd(), Token(2), Interest::BOTH, Mode::OneShot).unwrap();
    assert_eq!(wait(reactor, NOW), [writable(2)]);
    far.write(b"data").unwrap();
    if let Some(set) = reactor.as_pollable() {
        let mut fds = [PollFd::new(set.as_raw_fd(), PollFd::IN)];
        assert_eq!(poll(&mut fds, NOW).unwrap(), 0);
    }
    assert_eq!(wait(reactor, NOW), []);
    reactor.modify(near.as_fd(), Token(3), Interest::BOTH, Mode::Level).unwrap();
    for _ in 0..2 {
        assert_eq!(wait(reactor, NOW), [Event { writable: true, ..readable(3) }]);
    }
    reactor.remove(near.as_fd()).unwrap();
}

/// A new registration inherits no state from an earlier one of the same descriptor, or of another
/// one with the same number.
fn numbers_come_again(reactor: &dyn Reactor) {
    for token in 0..4 {
        let wake = WakeFd::new().unwrap();
        let (interest, mode) =
            if token % 2 == 0 { (Interest::BOTH, Mode::Level) } else { (Interest::READ, Mode::OneShot) };
        wake.wake();
        reactor.add(wake.as_fd(), Token(token), interest, mode).unwrap();
        let events = wait(reactor, NOW);
        assert_eq!(events, [Event { writable: interest.writable, ..readable(token) }]);
        reactor.remove(wake.as_fd()).unwrap();
        assert_eq!(wait(reactor, NOW), []);
    }
}

/// Add and modify by another thread take effect during a wait.
fn changed_while_waiting(reactor: Arc<dyn Reactor>) {
    let wake = Arc::new(WakeFd::new().unwrap());
    wake.wake();
    let (other_reactor, other_wake) = (reactor.clone(), wake.clone());
    let thread = std::thread::spawn(move || {
        other_reactor.add(other_wake.as_fd(), Token(1), Interest::READ, Mode::OneShot).unwrap();
    });
    assert_eq!(wait(&*reactor, None), [readable(1)]);
    thread.join().unwrap();
    let (other_reactor, other_wake) = (reactor.clone(), wake.clone());
    let thread = std::thread::spawn(move || {
        other_reactor.modify(other_wake.as_fd(), Token(2), Interest::READ, Mode::OneShot).unwrap();
    });
    assert_eq!(wait(&*reactor, None), [readable(2)]);
    thread.join().unwrap();
    reactor.remove(wake.as_fd()).unwrap();
}

/// Timeouts do not end early, even below a millisecond.
fn timeout(reactor: &dyn Reactor) {
    for timeout in [Duration::ZERO, Duration::from_micros(250), Duration::from_millis(2)] {
        let start = Instant::now();
        assert_eq!(wait(reactor, Some(timeout)), []);
        assert!(start.elapsed() >= timeout);
    }
}

/// If more descriptors are ready than one wait reports, later waits report the others.
fn many(reactor: &dyn Reactor) {
    let wakes: Vec<WakeFd> = (0..300).map(|_| WakeFd::new().unwrap()).collect();
    for (index, wake) in wakes.iter().enumerate() {
        reactor.add(wake.as_fd(), Token(index as u64), Interest::READ, Mode::OneShot).unwrap();
        wake.wake();
    }
    let mut seen = vec![];
    while seen.len() < wakes.len() {
        let events = wait(reactor, NOW);
        assert!(!events.is_empty(), "{} of {} reported", seen.len(), wakes.len());
        seen.extend(events.iter().map(|event| event.token.0));
    }
    seen.sort_unstable();
    assert!(seen.iter().copied().eq(0..300));
    for wake in &wakes {
        reactor.remove(wake.as_fd()).unwrap();
    }
}

/// A nested set is readable while a member is ready, and silent while its registration is muted.
fn nested(inner: &dyn Reactor, outer: &dyn Reactor) {
    let Some(pollable) = inner.as_pollable() else { return };
    let wake = WakeFd::new().unwrap();
    inner.add(wake.as_fd(), Token(1), Interest::READ, Mode::Level).unwrap();
    outer.add(pollable, Token(2), Interest::READ, Mode::OneShot).unwrap();
    assert_eq!(wait(outer, NOW), []);
    wake.wake();
    assert_eq!(wait(outer, None), [readable(2)]);
    assert_eq!(wait(outer, NOW), []);
    assert_eq!(wait(inner, NOW), [readable(1)]);
    outer.modify(pollable, Token(3), Interest::NONE, Mode::OneShot).unwrap();
    assert_eq!(wait(outer, NOW), []);
    outer.modify(pollable, Token(4), Interest::READ, Mode::OneShot).unwrap();
    assert_eq!(wait(outer, NOW), [readable(4)]);
    wake.drain();
    outer.modify(pollable, Token(5), Interest::READ, Mode::OneShot).unwrap();
    assert_eq!(wait(outer, NOW), []);
    outer.remove(pollable).unwrap();
    inner.remove(wake.as_fd()).unwrap();
}

macro_rules! conformance {
    ($name:ident, $reactor:ident, $tells_of_the_end:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn conforms() {
                with_watchdog(LIMIT, stringify!($name), || {
                    let reactor = $reactor::new().unwrap();
                    level(&reactor);
                    one_shot(&reactor);
                    modify(&reactor);
                    full_and_drained(&reactor);
                    remove(&reactor);
                    hang_up(&reactor);
                    end(&reactor, $tells_of_the_end);
                    end_by_every_wait(&reactor, $tells_of_the_end);
                    both_once(&reactor);
                    numbers_come_again(&reactor);
                    timeout(&reactor);
                    many(&reactor);
                    nested(&$reactor::new().unwrap(), &reactor);
                    changed_while_waiting(Arc::new(reactor));
                });
            }
        }
    };
}

// wine does not report an end that follows unread data.
conformance!(system, SystemReactor, cfg!(unix));
conformance!(poll, PollReactor, crate::poll::PollFd::ENDED != 0);

/// The system drops a closed descriptor, and the set must drop it as well.
#[cfg(unix)]
#[test]
fn reused_descriptor_number_is_a_new_member() {
    // A number that parallel tests do not get.
    let duplicate = |stream: &Stream| {
        // SAFETY: an open descriptor and an integer; the result is ours alone.
        unsafe {
            let raw = libc::fcntl(stream.as_fd().as_raw_fd(), libc::F_DUPFD_CLOEXEC, 900);
            <crate::fd::OwnedFd as crate::fd::FromRawFd>::from_raw_fd(raw)
        }
    };
    let reactor = SystemReactor::new().unwrap();
    let (near, far) = Stream::pair().unwrap();
    for (interest, mode) in [(Interest::READ, Mode::Level), (Interest::END, Mode::OneShot)] {
        // The stream behind the descriptor closes with it.
        let (first, _) = Stream::pair().unwrap();
        let fd = duplicate(&first);
        drop(first);
        reactor.add(fd.as_fd(), Token(1), interest, mode).unwrap();
        let number = fd.as_raw_fd();
        drop(fd);
        let fd = duplicate(&near);
        assert_eq!(fd.as_raw_fd(), number);
        reactor.add(fd.as_fd(), Token(2), Interest::READ, Mode::Level).unwrap();
        assert_eq!(wait(&reactor, NOW), []);
        far.write(b"data").unwrap();
        assert_eq!(wait(&reactor, NOW), [readable(2)]);
        assert!(near.read(&mut [0; 10]).is_ok());
        reactor.remove(fd.as_fd()).unwrap();
    }
}

#[test]
fn the_systems_set_in_a_poll_reactor() {
    nested(&SystemReactor::new().unwrap(), &PollReactor::new().unwrap());
    assert!(SystemReactor::new().unwrap().as_fd().try_clone_to_owned().is_ok());
}

#[test]
fn poll_reactor_is_not_pollable() {
    assert!(PollReactor::new().unwrap().as_pollable().is_none());
    let wake = WakeFd::new().unwrap();
    // The trait's form of the descriptor is the inherent one.
    fn take(fd: impl AsFd) -> bool {
        fd.as_fd().try_clone_to_owned().is_ok()
    }
    assert!(take(&wake));
}
