//! Sources of messages to send: the command line, files, standard input.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use rustix::io::Errno;

use crate::failure::{Failure, Result};
use crate::format::{Decoder, Format};
use crate::sink::is_device;
use crate::template::{Template, put_sendable};

/// Parts of a message.
pub type Parts = Vec<Vec<u8>>;

/// Sequence of messages.
pub enum Source {
    /// Messages from the command line, repeated if `endless`.
    Given { messages: Vec<Vec<Template>>, next: usize, endless: bool },
    /// Messages from files.
    Files(Files),
    /// Messages from a recording, at the recorded times.
    Recorded(Recorded),
}

/// Result of a request for the next message.
pub enum NextMessage {
    /// Next message.
    Message(Parts),
    /// More input is needed. [`Source::descriptor`] becomes readable then.
    Wait,
    /// The next message is due at this time.
    Until(Instant),
    /// End of the messages.
    End,
}

impl Source {
    /// Returns the next message, which will have the number `n`.
    pub fn next(&mut self, n: u64) -> Result<NextMessage> {
        match self {
            Source::Given { messages, next, endless } => {
                if *next == messages.len() {
                    if !*endless {
                        return Ok(NextMessage::End);
                    }
                    *next = 0;
                }
                let Some(message) = messages.get(*next) else { return Ok(NextMessage::End) };
                *next += 1;
                let fill =
                    |part: &Template| part.fill(|name, argument, out| put_sendable(name, argument, n, out));
                Ok(NextMessage::Message(message.iter().map(fill).collect()))
            }
            Source::Files(files) => files.next(),
            Source::Recorded(recorded) => recorded.next(),
        }
    }

    /// Returns a descriptor that becomes readable when there is more input.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Source::Files(files) | Source::Recorded(Recorded { files, .. }) => {
                files.current.as_ref().map(|(file, _)| file.as_fd())
            }
            Source::Given { .. } => None,
        }
    }

    /// Reads once. Call it when the descriptor is readable.
    pub fn read(&mut self) -> Result<()> {
        match self {
            Source::Files(files) | Source::Recorded(Recorded { files, .. }) => files.read(),
            Source::Given { .. } => Ok(()),
        }
    }

    /// True for a list with an end.
    pub fn is_finite(&self) -> bool {
        matches!(self, Source::Given { endless: false, .. })
    }
}

/// Sequence of files.
pub struct Files {
    waiting: VecDeque<PathBuf>,
    current: Option<(File, Decoder)>,
    /// Part to put before each message.
    prefix: Option<Vec<u8>>,
    decoder: Box<dyn Fn(&str) -> Decoder>,
}

impl Files {
    /// Creates a source from these files. `-` is standard input.
    pub fn new(
        paths: Vec<PathBuf>,
        prefix: Option<Vec<u8>>,
        decoder: impl Fn(&str) -> Decoder + 'static,
    ) -> Files {
        Files { waiting: paths.into(), current: None, prefix, decoder: Box::new(decoder) }
    }

    fn next(&mut self) -> Result<NextMessage> {
        loop {
            let Some((_, decoder)) = &mut self.current else {
                let Some(path) = self.waiting.pop_front() else { return Ok(NextMessage::End) };
                self.current = Some(if path.as_os_str() == "-" {
                    let file = io::stdin().as_fd().try_clone_to_owned();
                    let file = file
                        .map_err(|error| Failure::failed(format!("cannot read standard input: {error}")))?;
                    (file.into(), (self.decoder)("standard input"))
                } else {
                    let file = File::open(&path).map_err(|error| Failure::file(&path, &error))?;
                    (file, (self.decoder)(&path.display().to_string()))
                });
                continue;
            };
            if let Some(message) = decoder.next_message()? {
                return Ok(NextMessage::Message(self.prefix.iter().cloned().chain(message).collect()));
            }
            if !decoder.is_done() {
                return Ok(NextMessage::Wait);
            }
            self.current = None;
        }
    }

    fn read(&mut self) -> Result<()> {
        let Some((file, decoder)) = &mut self.current else { return Ok(()) };
        let mut bytes = [0; 64 * 1024];
        match file.read(&mut bytes) {
            Ok(0) => decoder.end(),
            Ok(len) => decoder.push(&bytes[..len]),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            // The terminal is gone.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) && is_device(file) => decoder.end(),
            Err(error) => return Err(Failure::failed(format!("{}: {error}", decoder.name()))),
        }
        Ok(())
    }
}

/// Replay of a recording.
pub struct Recorded {
    files: Files,
    /// Speed factor.
    speed: f64,
    /// Time when the first message was returned, and its recorded receive time.
    start: Option<(Instant, SystemTime)>,
    held: Option<(Instant, Parts)>,
}

impl Recorded {
    /// Creates a replay of a JSON lines file. An infinite speed removes all pauses.
    pub fn new(path: PathBuf, speed: f64) -> Recorded {
        let decoder = |name: &str| Decoder::new(Format::Jsonl, None, false, name);
        Recorded { files: Files::new(vec![path], None, decoder), speed, start: None, held: None }
    }

    fn next(&mut self) -> Result<NextMessage> {
        let (due, parts) = match self.held.take() {
            Some(held) => held,
            None => match self.files.next()? {
                NextMessage::Message(parts) => (self.due(), parts),
                other => return Ok(other),
            },
        };
        if due <= Instant::now() {
            return Ok(NextMessage::Message(parts));
        }
        self.held = Some((due, parts));
        Ok(NextMessage::Until(due))
    }

    /// Returns the send time of the last read message. A message without a time is due at once.
    fn due(&mut self) -> Instant {
        let now = Instant::now();
        let decoder = self.files.current.as_ref().map(|(_, decoder)| decoder);
        let Some(time) = decoder.and_then(Decoder::time) else { return now };
        let (start, first) = *self.start.get_or_insert((now, time));
        let after = time.duration_since(first).unwrap_or_default().as_secs_f64() / self.speed;
        Duration::try_from_secs_f64(after).ok().and_then(|after| start.checked_add(after)).unwrap_or(now)
    }
}
