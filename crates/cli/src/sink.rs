//! Destination of received messages: standard output, as a message format, as a user-defined line,
//! or as a table that updates in place.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::failure::{Failure, Result};
use crate::format::{self, Format, Received, encode, escaped};
use crate::hangup;
use crate::origin::Origin;
use crate::template::{Template, now_text, since_epoch};
use crate::watch::Watch;

/// Buffer size that triggers a write.
const FULL: usize = 64 * 1024;

/// Presentation of messages.
pub enum Form {
    /// Prints each message in this format.
    Format(Format),
    /// Prints a line for each message from the user's template.
    Print(Template),
    /// Shows a table with one line per topic.
    Watch(Box<Watch>),
    /// Not printed.
    Nothing,
}

/// Standard output, or the file of a recording.
pub struct Sink {
    form: Form,
    separator: Vec<u8>,
    timestamps: bool,
    buffer: Vec<u8>,
    out: File,
    /// Path of the recording. `None`: standard output.
    path: Option<PathBuf>,
    /// Readable after the last reader is gone.
    gone: Option<UnixStream>,
    /// Origin to write with the first message of a recording.
    origin: Option<Origin>,
}

impl Sink {
    /// Prints messages in this form, with `separator` between parts.
    pub fn new(form: Form, separator: Vec<u8>, timestamps: bool) -> Result<Sink> {
        let failed = |error: io::Error| Failure::failed(format!("cannot write to standard output: {error}"));
        let out = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(failed)?);
        let gone = hangup::hangup_descriptor(&out).map_err(failed)?;
        Ok(Sink { form, separator, timestamps, buffer: Vec::new(), out, path: None, gone, origin: None })
    }

    /// Writes messages to a new file as JSON. The first message carries its origin.
    pub fn record(path: &Path, origin: Option<Origin>) -> Result<Sink> {
        let out = new_file(path)?;
        let form = Form::Format(Format::Jsonl);
        let (separator, buffer) = (Vec::new(), Vec::new());
        let path = Some(path.to_owned());
        Ok(Sink { form, separator, timestamps: false, buffer, out, path, gone: None, origin })
    }

    /// Prints a message, or buffers it for [`flush`](Self::flush).
    pub fn put(&mut self, message: &Received<'_>) -> Result<()> {
        match &mut self.form {
            Form::Nothing => return Ok(()),
            Form::Watch(watch) => {
                watch.put(message.parts);
                return Ok(());
            }
            Form::Format(Format::Jsonl) => {
                let mut line = format::object(message);
                Origin::mark(&mut self.origin, &mut line);
                self.buffer.extend_from_slice(format!("{line}\n").as_bytes());
            }
            Form::Format(format) => {
                if self.timestamps && matches!(format, Format::Text | Format::Hex) {
                    self.buffer.extend_from_slice(now_text().as_bytes());
                    self.buffer.push(b' ');
                }
                encode(*format, &self.separator, message, &mut self.buffer);
            }
            Form::Print(template) => {
                if self.timestamps {
                    self.buffer.extend_from_slice(now_text().as_bytes());
                    self.buffer.push(b' ');
                }
                let separator = &self.separator;
                let line = template.fill(|name, _, out| put_printable(name, message, separator, out));
                self.buffer.extend_from_slice(&line);
                self.buffer.push(b'\n');
            }
        }
        if self.buffer.len() >= FULL { self.flush() } else { Ok(()) }
    }

    /// Writes the buffered messages, or draws the table if it is due.
    pub fn flush(&mut self) -> Result<()> {
        let outcome = match &mut self.form {
            Form::Watch(watch) => watch.draw_if_due(&mut self.out),
            _ => self.out.write_all(&self.buffer),
        };
        self.buffer.clear();
        outcome.map_err(|error| write_failure(self.path.as_deref(), &error))
    }

    /// Writes the buffered messages, or draws the table for the last time.
    pub fn end(&mut self) -> Result<()> {
        match &mut self.form {
            Form::Watch(watch) => watch.end(&mut self.out).map_err(|error| broken(&error)),
            _ => self.flush(),
        }
    }

    /// Becomes readable when the reader of standard output or the terminal is gone.
    pub fn closed_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.gone.as_ref().map(AsFd::as_fd)
    }

    /// Returns the time until [`flush`](Self::flush) must run, even if no message arrives.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        match &self.form {
            Form::Watch(watch) => watch.due(now),
            _ => None,
        }
    }
}

/// Creates a new file that only its owner can read: its messages are stored without the encryption
/// that protected them on the network.
pub fn new_file(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
        let failure = Failure::file(path, &error);
        match error.kind() {
            io::ErrorKind::AlreadyExists => failure.hint("choose another name, or remove it first"),
            _ => failure,
        }
    })
}

/// Converts an error of a write to this file, or to standard output.
pub fn write_failure(path: Option<&Path>, error: &io::Error) -> Failure {
    match path {
        Some(path) => Failure::failed(format!("cannot write to {}: {error}", path.display())),
        None => broken(error),
    }
}

/// Converts an error of standard output.
pub fn broken(error: &io::Error) -> Failure {
    // A lost terminal returns EIO and no longer counts as a terminal.
    let lost_terminal = Errno::from_io_error(error) == Some(Errno::IO) && is_device(&io::stdout());
    if error.kind() == io::ErrorKind::BrokenPipe || lost_terminal {
        return Failure::closed_output();
    }
    Failure::failed(format!("cannot write to standard output: {error}"))
}

/// True if the file is or was a terminal.
pub fn is_device(file: &impl AsFd) -> bool {
    let file = file.as_fd().try_clone_to_owned().map(File::from);
    file.and_then(|file| file.metadata()).is_ok_and(|data| data.file_type().is_char_device())
}

/// True if notices may have colours.
pub fn colours(out: &impl IsTerminal) -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    out.is_terminal() && !plain && !is_dumb()
}

/// True if the terminal understands no control sequences.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|value| value == "dumb")
}

/// True for a placeholder of `--print`.
pub fn is_printable(name: &str) -> bool {
    let known =
        ["topic", "body", "parts", "n", "size", "time", "unix_ms", "peer", "user", "hex", "round_trip"];
    known.contains(&name) || (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()))
}

fn put_printable(name: &str, message: &Received<'_>, separator: &[u8], out: &mut Vec<u8>) {
    let (first, last) = (message.parts.first(), message.parts.last());
    let mut text = |text: &str| out.extend_from_slice(text.as_bytes());
    match name {
        "topic" => text(&escaped(first.map_or(&[], |part| part))),
        "body" => text(&escaped(last.map_or(&[], |part| part))),
        "n" => text(&message.number.to_string()),
        "size" => text(&message.parts.iter().map(|part| part.len()).sum::<usize>().to_string()),
        "time" => text(&now_text()),
        "unix_ms" => text(&since_epoch().as_millis().to_string()),
        "peer" => text(first.and_then(|part| part.peer_address()).unwrap_or_default()),
        "user" => text(&escaped(first.and_then(|part| part.user_id()).unwrap_or_default().as_bytes())),
        "hex" => last.iter().flat_map(|part| part.iter()).for_each(|byte| text(&format!("{byte:02x}"))),
        "round_trip" => text(&message.round_trip.map(|time| format!("{time:?}")).unwrap_or_default()),
        "parts" => {
            encode(Format::Text, separator, message, out);
            out.pop();
        }
        number => {
            let part =
                number.parse().ok().and_then(|number: usize| message.parts.get(number.checked_sub(1)?));
            text(&escaped(part.map_or(&[], |part| part)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tautline::Message;

    use super::*;

    #[test]
    fn a_new_file_is_for_its_owner_alone() {
        let path = std::env::temp_dir().join(format!("taut-new-file-{}", std::process::id()));
        let file = new_file(&path).unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn full_disk_names_the_file_of_the_recording() {
        let path = std::env::temp_dir().join(format!("taut-full-{}", std::process::id()));
        let mut sink = Sink::record(&path, None).unwrap();
        std::fs::remove_file(&path).unwrap();
        sink.out = File::options().write(true).open("/dev/full").unwrap();
        let parts = [Message::from("a")];
        sink.put(&Received { parts: &parts, number: 1, round_trip: None }).unwrap();
        let failure = sink.end().unwrap_err();
        let start = format!("cannot write to {}: No space left on device", path.display());
        assert!(failure.what.starts_with(&start), "{failure}");
    }

    #[test]
    fn a_line_of_the_users_is_filled_in() {
        let parts = [Message::from("weather"), Message::from("6\n")];
        let message = Received { parts: &parts, number: 3, round_trip: None };
        let template = Template::parse("{n} {topic}={body} {2} {3}|{parts} {size} {hex} {no}", is_printable);
        let line = template.fill(|name, _, out| put_printable(name, &message, b"\t", out));
        assert_eq!(String::from_utf8(line).unwrap(), "3 weather=6\\n 6\\n |weather\t6\\n 9 360a {no}");
    }
}
