//! Shuts down a socket: queued messages are still sent until a timeout or a signal stops this.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use tautline::{Context, Error, PollItem};

use crate::failure::{Code, Failure, Result};
use crate::signals::Signals;
use crate::socket::AnySocket;
use crate::socket_events::SocketEvents;

/// Time after which a notice explains the delay.
const NOTICE: Duration = Duration::from_secs(2);
/// Maximum pause between two checks of the queues: there is no event for an empty queue.
const LOOK: Duration = Duration::from_millis(20);

/// Time limit for the delivery of queued messages.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Time of the option that set the limit, for the error.
    pub time: Duration,
    /// End of that time.
    pub at: Instant,
}

impl Limit {
    fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Returns the failure if the time has passed. `what` was not delivered in it.
    fn check(self, what: &str, observed: &SocketEvents) -> Result<()> {
        if !self.left().is_zero() {
            return Ok(());
        }
        let text = format!("{what} delivered within {}", humantime::format_duration(self.time));
        Err(Failure::new(Code::Timeout, text).hint(observed.reason()))
    }
}

/// Waits until the queue of the socket is empty. The socket stays open, so that its events are
/// still observed.
pub fn drain(
    socket: &mut dyn AnySocket,
    limit: Option<Limit>,
    signals: &mut Signals,
    observed: &SocketEvents,
    quiet: bool,
) -> Result<()> {
    let start = Instant::now();
    let mut told = quiet || !io::stderr().is_terminal();
    let mut pause = Duration::from_micros(100);
    loop {
        let queued = socket.queued()?;
        if queued == 0 {
            return Ok(());
        }
        signals.check()?;
        limit.map_or(Ok(()), |limit| limit.check(&format!("{queued} not"), observed))?;
        if !told && start.elapsed() >= NOTICE {
            told = true;
            notice!("taut: {queued} not delivered yet: {}", observed.reason());
        }
        let mut items = [PollItem::descriptor(signals.descriptor())];
        match tautline::poll(&mut items, limit.map_or(pause, |limit| pause.min(limit.left()))) {
            Ok(_) | Err(Error::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
        pause = (pause * 2).min(LOOK);
    }
}

/// Terminates the context after its sockets were dropped. Waits until their queued messages are
/// sent.
pub fn end(
    context: Context,
    limit: Option<Limit>,
    signals: &mut Signals,
    observed: &SocketEvents,
) -> Result<()> {
    let failed = |error: io::Error| Failure::failed(error.to_string());
    let (done, sign) = UnixStream::pair().map_err(failed)?;
    let ending = thread::Builder::new().name("ending".to_owned()).spawn(move || {
        while context.terminate() == Err(Error::Interrupted) {}
        // Signals the other end of the pair.
        drop(sign);
    });
    ending.map_err(failed)?;
    // The signal that ended the job must not discard queued messages.
    let asked = signals.stop().is_some();
    loop {
        if !asked {
            signals.check()?;
        }
        limit.map_or(Ok(()), |limit| limit.check("not all messages were", observed))?;
        let mut items = [PollItem::descriptor(done.as_fd()), PollItem::descriptor(signals.descriptor())];
        match tautline::poll(&mut items, limit.map(Limit::left)) {
            Ok(_) | Err(Error::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
        if items[0].is_readable() || items[0].has_error() {
            return Ok(());
        }
    }
}
