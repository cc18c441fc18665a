//! The end of a stream whose final bytes may still be unconfirmed.
//!
//! After our last write the bytes are in the kernel, not at the peer. If bytes of the peer (a PONG,
//! say) are unread when the stream is closed, or arrive later, a TCP stack sends a reset and
//! discards its unsent bytes. So a stream that lingered is only half-closed. We read and discard
//! the peer's bytes until the peer's system has confirmed everything, or until the peer has closed
//! its end. A parting stream no longer references its socket, but the I/O thread waits for it
//! before exiting. The parting takes [`LONGEST`] at most, with one exception: if the program
//! lingers for ever and the peer sends bytes, it takes as long as the peer confirms bytes from time
//! to time.

use std::time::{Duration, Instant};

use super::{EventLoop, EventSource};
use std::io::ErrorKind;
use tautline_io::net::Stream;
use tautline_io::reactor::{Event, Interest, Mode, Token};
use tautline_queue::sync::atomic::AtomicBool;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Maximum time that `zmq_ctx_term` waits for a peer that confirms nothing. Some systems delay
/// confirmations by up to 40 ms.
const LONGEST: Duration = Duration::from_millis(200);
/// Maximum time without a confirmation, for a peer that sends bytes. A slow reader's system makes
/// room in large steps, and on an overloaded machine a peer gets no processor for a long time.
const LONGEST_STALL: Duration = Duration::from_secs(5);
/// The system does not report confirmations, so we poll: first after this time, then after twice as
/// long each time.
const FIRST_LOOK: Duration = Duration::from_micros(500);
const SLOWEST_LOOK: Duration = Duration::from_millis(20);
/// The FIN of TCP must be confirmed too, and counts as one unconfirmed byte.
const END: usize = 1;
/// Maximum number of reads before other sources get their turn, for a peer that continues to send.
const READS: usize = 64;

struct ClosingState {
    registration: Option<Token>,
    timer: u64,
    look: Duration,
    /// True if the program lingers without a limit.
    patient: bool,
    /// Lowest number of unconfirmed bytes so far, the time when it was reached, and the start of
    /// the parting.
    unconfirmed: usize,
    since: Instant,
    began: Instant,
}

impl ClosingState {
    fn should_give_up(&mut self, unconfirmed: usize, heard: bool, now: Instant) -> bool {
        if unconfirmed < self.unconfirmed {
            (self.unconfirmed, self.since) = (unconfirmed, now);
        }
        let until = if self.patient && heard { self.since + LONGEST_STALL } else { self.began + LONGEST };
        unconfirmed <= END || now >= until
    }
}

/// State of a stream that accepts no bytes at the moment.
pub(super) enum DiscardOutcome {
    /// The peer has ended its side.
    Ended,
    /// There may be more to read at once.
    More,
    /// The stream waits for this event.
    Waits(Interest),
}

/// Reads and discards incoming bytes, because no socket receives them any longer. The peer may not
/// read until its own bytes are read.
pub(super) fn discard_input(stream: &Stream) -> DiscardOutcome {
    match forget(stream) {
        (true, _) => DiscardOutcome::Ended,
        _ if !stream.request_wakeup() => DiscardOutcome::More,
        // Another descriptor reports room in shared memory. This descriptor is always writable.
        _ => DiscardOutcome::Waits(Interest { writable: !stream.space_fd().1, ..Interest::READ }),
    }
}

/// Reads and discards the available bytes. Returns two booleans: true if the stream has ended, and
/// true if bytes arrived.
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
pub(super) struct ClosingStream {
    stream: Arc<Stream>,
    /// True if the peer has sent bytes.
    // Relaxed: own, only the I/O thread uses it.
    heard: AtomicBool,
    state: Mutex<ClosingState>,
}

impl ClosingStream {
    /// Takes over `stream` if it has unconfirmed bytes. The stream was shut down for writing and is
    /// out of the reactor. `patient`: lingering has no limit. `heard`: the peer has sent bytes
    /// before.
    pub(super) fn begin(turn: &mut EventLoop, stream: Arc<Stream>, patient: bool, heard: bool) {
        let (unconfirmed, began) = (stream.unconfirmed(), Instant::now());
        let state = ClosingState {
            registration: None,
            timer: 0,
            look: FIRST_LOOK,
            patient,
            unconfirmed,
            since: began,
            began,
        };
        let parting =
            Arc::new(ClosingStream { stream, heard: AtomicBool::new(heard), state: Mutex::new(state) });
        if parting.is_over() || unconfirmed <= END {
            return;
        }
        // If it cannot be registered, the stream is closed now.
        let Ok(token) = turn.register(parting.clone(), parting.stream.as_fd(), Interest::READ, Mode::Level)
        else {
            return;
        };
        turn.closing_streams += 1;
        lock(&parting.state).registration = Some(token);
        parting.look_later(turn);
    }

    /// Reads and discards the available bytes. Returns true if the stream has ended.
    fn is_over(&self) -> bool {
        let (ended, heard) = forget(&self.stream);
        if heard {
            self.heard.store(true, Relaxed);
        }
        ended
    }

    /// True if there is no reason to wait longer.
    fn should_give_up(&self) -> bool {
        let heard = self.heard.load(Relaxed);
        lock(&self.state).should_give_up(self.stream.unconfirmed(), heard, Instant::now())
    }

    fn look_later(self: &Arc<Self>, turn: &mut EventLoop) {
        let mut state = lock(&self.state);
        state.timer = turn.set_timer(state.look, self);
        state.look = (2 * state.look).min(SLOWEST_LOOK);
    }

    fn finish(&self, turn: &mut EventLoop) {
        if let Some(token) = lock(&self.state).registration.take() {
            turn.unregister(token, self.stream.as_fd());
            turn.closing_streams -= 1;
        }
    }
}

impl EventSource for ClosingStream {
    fn on_ready(self: Arc<Self>, turn: &mut EventLoop, _event: &Event) {
        if self.is_over() {
            self.finish(turn);
        }
    }

    fn on_timer(self: Arc<Self>, turn: &mut EventLoop, key: u64) {
        if lock(&self.state).timer != key {
            return;
        }
        if self.should_give_up() {
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
    fn sending_peer_may_confirm_slowly() {
        let began = Instant::now();
        let state = |patient| ClosingState {
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
        assert!(!talks.should_give_up(1000, true, began + 10 * LONGEST));
        for step in 1..100 {
            assert!(!talks.should_give_up(1000 - step, true, later(step as u32) - LONGEST));
        }
        assert!(talks.should_give_up(901, true, later(100)));
        assert!(state(true).should_give_up(END, true, began), "it has everything");
        assert!(
            state(true).should_give_up(999, false, began + LONGEST),
            "nothing will come that could spoil it"
        );
        assert!(state(false).should_give_up(999, true, began + LONGEST), "the program has set a limit");
    }

    /// The peer has sent bytes that were not read, and keeps sending. The peer still receives
    /// everything.
    #[test]
    fn sending_peer_receives_final_bytes() {
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
            return; // These systems do not report unconfirmed bytes.
        }
        // The peer's system does not have room for all bytes.
        assert!(stream.unconfirmed() > END);
        peer.write_all(b"unread").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();

        let (driver, thread) = Driver::start(ThreadOptions::default()).unwrap();
        let (begun, has_begun) = std::sync::mpsc::channel();
        driver.post(Box::new(move |turn| {
            ClosingStream::begin(turn, Arc::new(stream), true, false);
            assert_eq!(turn.closing_streams, 1);
            begun.send(()).unwrap();
        }));
        has_begun.recv().unwrap();
        peer.write_all(b"more").unwrap();
        driver.stop();
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).unwrap();
        assert_eq!(heard.len(), written);
        drop(peer);
        thread.join();
    }
}
