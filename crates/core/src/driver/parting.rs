//! The end of a stream whose last words may still be on their way.
//!
//! When everything is written the kernel has it, not the peer. If bytes of the peer's (a PONG, say)
//! lie unread as the stream is closed, or come later, a TCP stack sends a reset and forgets what it
//! had still to send. So a stream that lingered is only half-closed, and what comes is read and
//! forgotten, until the peer's system has confirmed everything or the peer has closed its end. It
//! holds nothing of its socket any more; just the I/O thread does not end before it. That takes
//! [`LONGEST`] at most, unless the program wants to linger for ever and the peer is one that talks:
//! then it may take as long as something is confirmed now and then.

use std::time::{Duration, Instant};

use super::{Source, Turn};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, Mutex, lock};
use std::io::ErrorKind;
use tautline_io::net::Stream;
use tautline_io::reactor::{Event, Interest, Mode, Token};

/// What `zmq_ctx_term` may wait for a peer that confirms nothing. The system itself waits for up to
/// 40 ms with some confirmations.
const LONGEST: Duration = Duration::from_millis(200);
/// Without anything confirmed, for a peer that talks. One that reads slowly lets its system make
/// room in large steps, and on an overloaded machine a peer gets no processor for a long time.
const LONGEST_STALL: Duration = Duration::from_secs(5);
/// The system does not tell when the peer has confirmed something: it is looked at after this time,
/// and then after twice as long each time.
const FIRST_LOOK: Duration = Duration::from_micros(500);
const SLOWEST_LOOK: Duration = Duration::from_millis(20);
/// The end of the stream has to be confirmed, too, and counts as a byte.
const END: usize = 1;
/// How often a peer that goes on talking is read at once.
const READS: usize = 64;

struct State {
    registration: Option<Token>,
    timer: u64,
    look: Duration,
    /// The program waits as long as it takes.
    patient: bool,
    /// How many bytes were not confirmed when they were last fewer than before, and when that was:
    /// at the beginning, if not since.
    unconfirmed: usize,
    since: Instant,
    began: Instant,
}

impl State {
    fn is_vain(&mut self, unconfirmed: usize, heard: bool, now: Instant) -> bool {
        if unconfirmed < self.unconfirmed {
            (self.unconfirmed, self.since) = (unconfirmed, now);
        }
        let until = if self.patient && heard { self.since + LONGEST_STALL } else { self.began + LONGEST };
        unconfirmed <= END || now >= until
    }
}

/// What becomes of a stream that takes nothing just now.
pub(super) enum Meanwhile {
    /// The peer says nothing more.
    Ended,
    /// It goes on at once.
    More,
    /// It waits for this.
    Waits(Interest),
}

/// Nothing receives what comes, and the peer may wait for it to be read before it reads itself:
/// reads and forgets it.
pub(super) fn forget_meanwhile(stream: &Stream) -> Meanwhile {
    match forget(stream) {
        (true, _) => Meanwhile::Ended,
        _ if !stream.listen() => Meanwhile::More,
        // Room in shared memory is told by another descriptor; this one takes bytes all the time.
        _ => Meanwhile::Waits(Interest { writable: !stream.room().1, ..Interest::READ }),
    }
}

/// Reads and forgets what there is: whether the stream has ended, and whether anything came.
fn forget(stream: &Stream) -> (bool, bool) {
    let mut nothing_reads_this = [0; 16 * 1024];
    let mut heard = false;
    for _ in 0..READS {
        match stream.read(&mut nothing_reads_this) {
            Ok(0) => return (true, heard),
            Ok(_) => heard = true,
            Err(error) => return (error.kind() != ErrorKind::WouldBlock, heard),
        }
    }
    (false, heard)
}

/// A stream without a socket.
pub(super) struct Parting {
    stream: Arc<Stream>,
    /// The peer has said something.
    // Relaxed: own, the I/O thread alone.
    heard: AtomicBool,
    state: Mutex<State>,
}

impl Parting {
    /// Looks after `stream`, which was shut down for writing and is out of the reactor, if it has
    /// to be. `patient`: without a limit of its own. `heard`: the peer has said something before.
    pub(super) fn begin(turn: &mut Turn, stream: Arc<Stream>, patient: bool, heard: bool) {
        let (unconfirmed, began) = (stream.unconfirmed(), Instant::now());
        let state = State {
            registration: None,
            timer: 0,
            look: FIRST_LOOK,
            patient,
            unconfirmed,
            since: began,
            began,
        };
        let parting = Arc::new(Parting { stream, heard: AtomicBool::new(heard), state: Mutex::new(state) });
        if parting.is_over() || unconfirmed <= END {
            return;
        }
        // Without a registration it is closed as it is.
        let Ok(token) = turn.register(parting.clone(), parting.stream.as_fd(), Interest::READ, Mode::Level)
        else {
            return;
        };
        turn.partings += 1;
        lock(&parting.state).registration = Some(token);
        parting.look_later(turn);
    }

    /// Reads and forgets what there is; whether that was the end.
    fn is_over(&self) -> bool {
        let (ended, heard) = forget(&self.stream);
        if heard {
            self.heard.store(true, Relaxed);
        }
        ended
    }

    /// Whether there is nothing left to wait for.
    fn is_vain(&self) -> bool {
        let heard = self.heard.load(Relaxed);
        lock(&self.state).is_vain(self.stream.unconfirmed(), heard, Instant::now())
    }

    fn look_later(self: &Arc<Self>, turn: &mut Turn) {
        let mut state = lock(&self.state);
        state.timer = turn.after(state.look, self);
        state.look = (2 * state.look).min(SLOWEST_LOOK);
    }

    fn finish(&self, turn: &mut Turn) {
        if let Some(token) = lock(&self.state).registration.take() {
            turn.unregister(token, self.stream.as_fd());
            turn.partings -= 1;
        }
    }
}

impl Source for Parting {
    fn ready(self: Arc<Self>, turn: &mut Turn, _event: &Event) {
        if self.is_over() {
            self.finish(turn);
        }
    }

    fn timer(self: Arc<Self>, turn: &mut Turn, key: u64) {
        if lock(&self.state).timer != key {
            return;
        }
        if self.is_vain() {
            self.finish(turn);
        } else {
            self.look_later(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Driver, ThreadOptions};
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use tautline_io::net::{Address, StreamOptions};

    #[test]
    fn a_peer_that_talks_has_as_long_as_something_is_confirmed_now_and_then() {
        let began = Instant::now();
        let state = |patient| State {
            registration: None,
            timer: 0,
            look: FIRST_LOOK,
            patient,
            unconfirmed: 1000,
            since: began,
            began,
        };
        let later = |times: u32| began + LONGEST_STALL * times;
        let mut talks = state(true);
        assert!(!talks.is_vain(1000, true, began + 10 * LONGEST));
        for step in 1..100 {
            assert!(!talks.is_vain(1000 - step, true, later(step as u32) - LONGEST));
        }
        assert!(talks.is_vain(901, true, later(100)));
        assert!(state(true).is_vain(END, true, began), "it has everything");
        assert!(state(true).is_vain(999, false, began + LONGEST), "nothing will come that could spoil it");
        assert!(state(false).is_vain(999, true, began + LONGEST), "the program has set a limit");
    }

    /// The peer has said things that were not read, and goes on talking: it gets everything
    /// nevertheless.
    #[test]
    fn a_talkative_peer_gets_the_last_words() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = StreamOptions { send_buffer: Some(1 << 20), ..StreamOptions::default() };
        let address = Address::Inet(listener.local_addr().unwrap());
        let (stream, _) = Stream::connect(&address, None, &options).unwrap();
        let (mut peer, _): (TcpStream, _) = listener.accept().unwrap();
        let mut written = 0;
        while let Ok(n) = stream.write(&[7; 64 * 1024]) {
            written += n;
        }
        if cfg!(any(target_os = "openbsd", target_os = "dragonfly", windows)) {
            return; // They do not tell what the peer has not confirmed.
        }
        // The peer's system has not room for all of it.
        assert!(stream.unconfirmed() > END);
        peer.write_all(b"unread").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();

        let (driver, thread) = Driver::start(ThreadOptions::default()).unwrap();
        let (begun, has_begun) = std::sync::mpsc::channel();
        driver.post(Box::new(move |turn| {
            Parting::begin(turn, Arc::new(stream), true, false);
            assert_eq!(turn.partings, 1);
            begun.send(()).unwrap();
        }));
        has_begun.recv().unwrap();
        peer.write_all(b"more").unwrap();
        driver.stop();
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).unwrap();
        assert_eq!(heard.len(), written);
        drop(peer);
        thread.join().unwrap();
    }
}
