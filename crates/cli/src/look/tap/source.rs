//! The control socket of an observed process: copies of its messages, as they come.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tautline_observe::tap::{Copied, Frame, LONGEST_FRAME, OK, Request};
use tautline_observe::{Found, Reading};

use crate::failure::{Failure, Result};
use crate::look::show::target;
use crate::look::{self, Seen, Which};

/// The longest answer to a request.
const ANSWER: usize = 4096;
/// The answer comes at once, also from a program that is busy: a thread of its own gives it.
const PATIENCE: Duration = Duration::from_secs(10);
/// As long is waited for what is left of a process that closes the tap.
const FAREWELL: Duration = Duration::from_secs(2);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(10);
/// As much is read at once.
const PIECE: usize = 256 * 1024;

/// A tap.
pub struct Source {
    found: Found,
    /// The process, when the tap began.
    pub reading: Reading,
    /// The socket that was asked for; all if none was.
    pub socket: Option<u64>,
    stream: UnixStream,
    buffer: Vec<u8>,
    /// Where the next frame begins in it.
    start: usize,
}

/// What comes next.
pub enum Next {
    /// A message.
    Copy(Copied),
    /// This many messages were missed.
    Missed(u64),
    /// Nothing, until the time that was named.
    Time,
    /// The program has closed the tap.
    Ended,
}

/// How a process ended that was tapped.
pub enum End {
    /// It has ended its contexts, and may run on.
    Closed,
    /// It was killed, has crashed, or has left without ending its contexts.
    Died,
}

impl Source {
    /// Asks the process, or one of its sockets: `PID` or `PID/SOCKET`.
    pub fn open(what: &str, request: Request) -> Result<Source> {
        let (process, socket) = target(what)?;
        Source::of(process, Request { socket, ..request })
    }

    /// Asks this process.
    pub fn of(process: u32, request: Request) -> Result<Source> {
        let socket = request.socket;
        let seen = look::of(process, Which::All)?;
        let Some(Seen { found, reading, .. }) =
            seen.into_iter().find(|seen| socket.is_none_or(|socket| seen.reading.socket(socket).is_some()))
        else {
            return Err(Failure::usage(format!(
                "the process {process} has no socket {}",
                socket.unwrap_or(0)
            ))
            .hint(format!("taut show {process} lists them")));
        };
        let path = reading.process.tap.clone();
        if path.is_empty() || !found.runs {
            return Err(Failure::failed(format!("the process {process} cannot be tapped"))
                .hint("it has ended, or could not make its control socket"));
        }
        let failed = |error: io::Error| Failure::failed(format!("{path}: {error}"));
        let mut stream = UnixStream::connect(&path).map_err(failed)?;
        stream.write_all(request.to_text().as_bytes()).map_err(failed)?;
        let mut source = Source { found, reading, socket, stream, buffer: Vec::new(), start: 0 };
        let answer = source.answer().map_err(failed)?;
        if answer != OK {
            return Err(Failure::failed(format!("the process {process} refuses: {answer}"))
                .hint("eight tools may tap a process at a time"));
        }
        Ok(source)
    }

    /// The line in answer to the request.
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
                return Ok("it has closed the connection".to_owned());
            }
        }
    }

    /// The next thing, until this time.
    pub fn next(&mut self, until: Option<Instant>) -> Result<Next> {
        self.try_next(until).map_err(|error| Failure::failed(format!("the tap: {error}")))
    }

    fn try_next(&mut self, until: Option<Instant>) -> io::Result<Next> {
        loop {
            match self.frame()? {
                Some(Frame::Copy(copy)) => return Ok(Next::Copy(copy)),
                Some(Frame::Missed(count)) => return Ok(Next::Missed(count)),
                None if !self.wait(until)? => return Ok(Next::Time),
                None => {}
            }
            match self.read() {
                Ok(0) => return Ok(Next::Ended),
                // Killed with something unread.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Next::Ended),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
    }

    /// Whether the next thing is at hand.
    pub fn has_more(&self) -> bool {
        self.length().is_some_and(|length| self.buffer.len() - self.start >= 4 + length)
            || self.wait(Some(Instant::now())).unwrap_or(false)
    }

    /// The length of the frame that begins what was read.
    fn length(&self) -> Option<usize> {
        let length = self.buffer[self.start..].first_chunk::<4>()?;
        Some(u32::from_le_bytes(*length) as usize)
    }

    /// The next frame, if it was read.
    fn frame(&mut self) -> io::Result<Option<Frame>> {
        while let Some(length) = self.length() {
            if length > LONGEST_FRAME {
                return Err(ErrorKind::InvalidData.into());
            }
            let end = self.start + 4 + length;
            let Some(mut bytes) = self.buffer.get(self.start..end) else { break };
            self.start = end;
            // `None` is one of a kind that is not known here.
            if let Some(frame) = Frame::read(&mut bytes)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Waits until something can be read; false if nothing could until this time.
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

    /// The file of counters.
    pub fn path(&self) -> &Path {
        &self.found.path
    }

    /// How the process ended that has closed the tap.
    pub fn end(&self) -> End {
        let until = Instant::now() + FAREWELL;
        // The file goes after the tap. It stays if the process had no time to remove it.
        while self.found.path.exists() {
            if !lives(self.found.pid) {
                return End::Died;
            }
            if Instant::now() >= until {
                break;
            }
            thread::sleep(PAUSE);
        }
        End::Closed
    }
}

/// Whether a process of this number is more than what its parent has not yet taken note of.
fn lives(pid: u32) -> bool {
    let state = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")));
    // Behind the name, which may have any letters in it.
    let state = state.ok().and_then(|text| text.rsplit_once(") ").map(|(_, behind)| behind.to_owned()));
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}
