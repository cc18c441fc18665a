//! Client of the control socket of an observed process. It receives copies of the messages.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tautline_observe::tap::{Frame, LONGEST_FRAME, MessageCopy, OK, Request};
use tautline_observe::{ObservedProcess, Reading};

use super::control_socket;
use crate::failure::{Failure, Result};
use crate::inspect::show::target;
use crate::inspect::{self, ProcessName, ProcessSnapshot, SocketSelection};

/// Maximum length of the answer to a request.
const ANSWER: usize = 4096;
/// Time limit for the answer. A separate thread of the program answers at once, even if the program
/// is busy.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for a process that closed the tap to remove its counters file.
const FAREWELL: Duration = Duration::from_secs(2);
/// Pause between two checks of it.
const PAUSE: Duration = Duration::from_millis(10);
/// Size of a read.
const PIECE: usize = 256 * 1024;

/// Open tap.
pub struct Source {
    found: ObservedProcess,
    /// Reading of the process when the tap began.
    pub reading: Reading,
    /// Requested socket. `None` for all sockets.
    pub socket: Option<u64>,
    stream: UnixStream,
    buffer: Vec<u8>,
    /// Start of the next frame in `buffer`.
    start: usize,
}

/// Next event of a tap.
pub enum TapEvent {
    /// Copy of a message.
    Copy(MessageCopy),
    /// Number of messages that the tap missed, and number of those that were too large to copy.
    Missed { count: u64, too_large: u64 },
    /// The given time was reached.
    Time,
    /// The program has closed the tap.
    Ended,
}

/// Reason why a tapped process closed the tap.
pub enum CloseReason {
    /// The process has terminated its contexts and may still run.
    Closed,
    /// The process was killed, has crashed, or has exited without terminating its contexts.
    Died,
}

impl Source {
    /// Opens a tap for `PID` or `PID/SOCKET`.
    pub fn open(what: &str, request: Request) -> Result<Source> {
        let (process, socket) = target(what)?;
        Source::of(process, Request { socket, ..request })
    }

    /// Opens a tap of this process.
    pub fn of(process: ProcessName, request: Request) -> Result<Source> {
        let socket = request.socket;
        let seen = inspect::snapshots_of(process, SocketSelection::All)?;
        let Some(ProcessSnapshot { found, reading, .. }) =
            seen.into_iter().find(|seen| socket.is_none_or(|socket| seen.reading.socket(socket).is_some()))
        else {
            return Err(Failure::usage(format!(
                "the process {process} has no socket {}",
                socket.unwrap_or(0)
            ))
            .hint(format!("taut show {process} lists them")));
        };
        let path = reading.process.tap.clone();
        if path.is_empty() || !found.is_running {
            return Err(Failure::failed(format!("the process {process} cannot be tapped"))
                .hint("it ended, or could not make its control socket"));
        }
        let failed = |error: io::Error| Failure::failed(format!("{path}: {error}"));
        let mut stream = control_socket::connect(&found, Path::new(&path)).map_err(failed)?;
        stream.write_all(request.to_text().as_bytes()).map_err(failed)?;
        let mut source = Source { found, reading, socket, stream, buffer: Vec::new(), start: 0 };
        let answer = source.answer().map_err(failed)?;
        if answer != OK {
            return Err(Failure::failed(format!("the process {process} refuses the tap: {answer}"))
                .hint("at most eight tools can tap a process at the same time"));
        }
        Ok(source)
    }

    /// Returns the line that answers the request.
    fn answer(&mut self) -> io::Result<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                self.start = end + 1;
                return Ok(String::from_utf8_lossy(&self.buffer[..end]).into_owned());
            }
            if self.buffer.len() > ANSWER || !self.wait(Some(until))? {
                return Err(ErrorKind::TimedOut.into());
            }
            if self.read()? == 0 {
                return Ok("the program closed the connection".to_owned());
            }
        }
    }

    /// Returns the next event, at the latest at this time.
    pub fn next(&mut self, until: Option<Instant>) -> Result<TapEvent> {
        self.try_next(until).map_err(|error| Failure::failed(format!("cannot read from the tap: {error}")))
    }

    fn try_next(&mut self, until: Option<Instant>) -> io::Result<TapEvent> {
        loop {
            match self.frame()? {
                Some(Frame::Copy(copy)) => return Ok(TapEvent::Copy(copy)),
                Some(Frame::Missed { count, too_large }) => {
                    return Ok(TapEvent::Missed { count, too_large });
                }
                None if !self.wait(until)? => return Ok(TapEvent::Time),
                None => {}
            }
            match self.read() {
                Ok(0) => return Ok(TapEvent::Ended),
                // The process was killed while data were unread.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(TapEvent::Ended),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
    }

    /// True if the next event is available at once.
    pub fn has_more(&self) -> bool {
        self.length().is_some_and(|length| self.buffer.len() - self.start >= 4 + length)
            || self.wait(Some(Instant::now())).unwrap_or(false)
    }

    /// Returns the length of the next frame, if its header was read.
    fn length(&self) -> Option<usize> {
        let length = self.buffer[self.start..].first_chunk::<4>()?;
        Some(u32::from_le_bytes(*length) as usize)
    }

    /// Returns the next frame, if it was read completely.
    fn frame(&mut self) -> io::Result<Option<Frame>> {
        while let Some(length) = self.length() {
            if length > LONGEST_FRAME {
                return Err(ErrorKind::InvalidData.into());
            }
            let end = self.start + 4 + length;
            let Some(mut bytes) = self.buffer.get(self.start..end) else { break };
            self.start = end;
            // `None` is a frame of an unknown kind.
            if let Some(frame) = Frame::read(&mut bytes)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Waits until data can be read. Returns false if the time is reached first.
    fn wait(&self, until: Option<Instant>) -> io::Result<bool> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let time = left.map(|left| Timespec {
                tv_sec: left.as_secs().min(1 << 30) as i64,
                tv_nsec: left.subsec_nanos().into(),
            });
            match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], time.as_ref()) {
                Ok(count) => return Ok(count > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let length = self.buffer.len();
        self.buffer.resize(length + PIECE, 0);
        let read = loop {
            match self.stream.read(&mut self.buffer[length..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(length + read.as_ref().copied().unwrap_or(0));
        read
    }

    /// Returns the process with the place of its counters file.
    pub fn process(&self) -> &ObservedProcess {
        &self.found
    }

    /// Returns the reason why the process closed the tap.
    pub fn end(&self) -> CloseReason {
        let until = Instant::now() + FAREWELL;
        // The counters file is removed after the tap. It remains if the process died too early.
        while self.found.path.exists() {
            if !is_alive(self.found.pid) {
                return CloseReason::Died;
            }
            if Instant::now() >= until {
                break;
            }
            thread::sleep(PAUSE);
        }
        CloseReason::Closed
    }
}

/// True if a process with this number exists and is not a zombie.
fn is_alive(pid: u32) -> bool {
    let state = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")));
    // The state follows the name, which may contain any character.
    let state = state.ok().and_then(|text| text.rsplit_once(") ").map(|(_, behind)| behind.to_owned()));
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}
