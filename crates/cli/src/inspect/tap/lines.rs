//! Prints tapped messages in the common formats, with their times, sockets, peers and directions.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use tautline::Message;
use tautline_observe::tap::{MANY, MessageCopy};

use super::View;
use super::filter::way;
use crate::failure::Result;
use crate::format::{Format, Received, encode, part_value};
use crate::origin::Origin;
use crate::sink::{new_file, write_failure};
use crate::through;

/// Buffer size that triggers a write.
const FULL: usize = 64 * 1024;

/// Printer of messages in a format.
pub struct Lines {
    format: Format,
    through: Option<String>,
    out: File,
    /// Path of the recording. `None`: standard output.
    path: Option<PathBuf>,
    buffer: Vec<u8>,
    /// Origin to write with the first message of a recording.
    origin: Option<Origin>,
}

impl Lines {
    /// Creates a printer for this file. Each message passes through the command.
    pub fn new(format: Format, through: Option<String>, out: File) -> Lines {
        Lines { format, through, out, path: None, buffer: Vec::new(), origin: None }
    }

    /// Creates a writer of recordings to a new file. The first message carries the origin.
    pub fn record(origin: Option<Origin>, path: PathBuf) -> Result<Lines> {
        let out = new_file(&path)?;
        Ok(Lines { origin, path: Some(path), ..Lines::new(Format::Jsonl, None, out) })
    }
}

impl View for Lines {
    fn show(&mut self, copy: &MessageCopy, number: u64) -> Result<()> {
        let parts = copy.parts.iter().map(|part| Message::from(&part.bytes[..]));
        let mut parts: Vec<Message> = parts.collect();
        if let Some(command) = self.through.as_ref().filter(|_| !parts.is_empty()) {
            let (made, success) = through::run(command, &parts)?;
            if !success {
                notice!("taut: --through {command}: the command failed");
            }
            parts = made.into_iter().map(Message::from).collect();
        }
        if self.format == Format::Jsonl {
            let mut line = object(copy, &parts, number);
            Origin::mark(&mut self.origin, &mut line);
            self.buffer.extend_from_slice(format!("{line}\n").as_bytes());
        } else {
            put(self.format, copy, &parts, number, &mut self.buffer);
        }
        if self.buffer.len() >= FULL { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.buffer);
        written.map_err(|error| write_failure(self.path.as_deref(), &error))?;
        self.buffer.clear();
        Ok(())
    }
}

/// Formats the time of a message.
pub fn time(copy: &MessageCopy) -> String {
    // A time beyond the year 9999 can only come from a faulty program.
    let latest = Duration::from_secs(253_402_300_799);
    let at = Duration::from_micros(copy.at).min(latest);
    humantime::format_rfc3339_micros(UNIX_EPOCH + at).to_string()
}

/// Returns a message with these parts as JSON.
pub fn object(copy: &MessageCopy, parts: &[Message], number: u64) -> Value {
    let mut object = json!({
        "time": time(copy), "n": number, "socket": copy.socket, "direction": way(copy.direction),
        "parts": parts.iter().map(|part| part_value(part)).collect::<Vec<_>>(),
    });
    if copy.peer != MANY {
        object["peer"] = copy.peer.into();
    }
    if is_cut(copy) {
        object["lengths"] = copy.parts.iter().map(|part| part.length).collect();
    }
    object
}

fn is_cut(copy: &MessageCopy) -> bool {
    copy.parts.iter().any(|part| (part.bytes.len() as u64) < part.length)
}

fn put(format: Format, copy: &MessageCopy, parts: &[Message], number: u64, out: &mut Vec<u8>) {
    let is_line = matches!(format, Format::Text | Format::Hex);
    if is_line {
        let peer = if copy.peer == MANY { String::new() } else { format!("/{}", copy.peer) };
        let head = format!("{} {}{peer} {:<3} ", time(copy), copy.socket, way(copy.direction));
        out.extend_from_slice(head.as_bytes());
    }
    encode(format, b"\t", &Received { parts, number, round_trip: None }, out);
    if is_line && is_cut(copy) {
        out.pop();
        let lengths: Vec<String> = copy.parts.iter().map(|part| part.length.to_string()).collect();
        out.extend_from_slice(format!("… (of {} bytes)\n", lengths.join(" + ")).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_names_the_file() {
        let path = std::env::temp_dir().join(format!("taut-tap-full-{}", std::process::id()));
        let mut lines = Lines::record(None, path.clone()).unwrap();
        std::fs::remove_file(&path).unwrap();
        lines.out = File::options().write(true).open("/dev/full").unwrap();
        lines.buffer.push(b'\n');
        let failure = lines.flush().unwrap_err();
        let start = format!("cannot write to {}: No space left on device", path.display());
        assert!(failure.what.starts_with(&start), "{failure}");
    }
}
