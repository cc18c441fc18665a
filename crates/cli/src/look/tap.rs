//! `taut tap`: copies of the messages of a running program, as it sends and receives them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};
use tautline::Message;
use tautline_observe::tap::{Copied, Direction, Frame, OK, Request};

use super::show::target;
use crate::args::{Tap, Way};
use crate::failure::{Failure, Result};
use crate::format::{Format, Received, encode, part_value};
use crate::outlook;
use crate::sink::broken;
use crate::through;

/// The longest answer to a request.
const ANSWER: u64 = 4096;

/// Until the count is reached, the time has passed, or the program has ended.
pub fn run(args: &Tap) -> Result<()> {
    let (process, socket) = target(&args.target)?;
    let seen = super::of(process)?;
    let with_socket = seen
        .iter()
        .find(|seen| socket.is_none_or(|socket| seen.reading.socket(socket).is_some()))
        .ok_or_else(|| {
            Failure::usage(format!("the process {process} has no socket {}", socket.unwrap_or(0)))
        })?;
    let path = &with_socket.reading.process.tap;
    if path.is_empty() || !with_socket.found.runs {
        return Err(Failure::failed(format!("the process {process} cannot be tapped"))
            .hint("it has ended, or could not make its control socket"));
    }
    let failed = |error: io::Error| Failure::failed(format!("{path}: {error}"));
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    stream.write_all(request(args, socket).to_text().as_bytes()).map_err(failed)?;
    let mut stream = BufReader::new(stream);
    let mut answer = String::new();
    stream.by_ref().take(ANSWER).read_line(&mut answer).map_err(failed)?;
    if answer.trim_end() != OK {
        return Err(Failure::failed(format!("the process {process} refuses: {}", answer.trim_end()))
            .hint("eight tools may tap a process at a time"));
    }
    end_with_the_reader()?;
    if !args.quiet {
        notice!("taut: tapping {}", args.target);
    }
    listen(args, stream)
}

fn request(args: &Tap, socket: Option<u64>) -> Request {
    Request {
        socket,
        direction: args.direction.map(|way| match way {
            Way::In => Direction::In,
            Way::Out => Direction::Out,
        }),
        prefix: args.prefix.clone().unwrap_or_default().into_bytes(),
        least: args.least,
        most: args.most.unwrap_or(u64::MAX),
        every: args.every,
        bytes: args.bytes.unwrap_or(u64::MAX),
    }
}

/// Where nothing comes, nothing is written, and so a reader that has gone would not be noticed.
fn end_with_the_reader() -> Result<()> {
    let out = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let gone = out.and_then(|out| outlook::watch(&out)).map_err(|error| broken(&error))?;
    if let Some(mut gone) = gone {
        thread::spawn(move || {
            let _ = gone.read(&mut [0]);
            process::exit(0);
        });
    }
    Ok(())
}

fn listen(args: &Tap, mut stream: BufReader<UnixStream>) -> Result<()> {
    let until = args.lasting.map(|time| Instant::now() + time);
    let mut number = 0;
    let mut out = io::BufWriter::new(io::stdout().lock());
    loop {
        if let Some(until) = until {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || stream.get_ref().set_read_timeout(Some(left)).is_err() {
                break;
            }
        }
        match Frame::read(&mut stream) {
            Ok(Some(Frame::Copy(copy))) => {
                number += 1;
                out.write_all(&line(args, &copy, number)?).map_err(|error| broken(&error))?;
            }
            Ok(Some(Frame::Missed(count))) => notice!("taut: {count} messages were missed: this is too slow"),
            Ok(None) => {
                out.flush().map_err(|error| broken(&error))?;
                notice!("taut: the program has ended");
                let unfinished = args.count.is_some_and(|count| number < count);
                return if unfinished { Err(Failure::failed("")) } else { Ok(()) };
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => return Err(Failure::failed(format!("the tap: {error}"))),
        }
        if args.count.is_some_and(|count| number >= count) {
            break;
        }
        // What comes at once is written at once.
        if stream.buffer().is_empty() {
            out.flush().map_err(|error| broken(&error))?;
        }
    }
    out.flush().map_err(|error| broken(&error))
}

/// A copy as it is shown.
fn line(args: &Tap, copy: &Copied, number: u64) -> Result<Vec<u8>> {
    let mut parts: Vec<Message> = copy.parts.iter().map(|part| Message::from(&part.bytes[..])).collect();
    if let Some(command) = args.through.as_ref().filter(|_| !parts.is_empty()) {
        let (made, success) = through::run(command, &parts)?;
        if !success {
            notice!("taut: --through {command}: the command failed");
        }
        parts = made.into_iter().map(Message::from).collect();
    }
    let time = humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_micros(copy.at)).to_string();
    let way = if copy.direction == Direction::In { "in" } else { "out" };
    let cut = copy.parts.iter().any(|part| (part.bytes.len() as u64) < part.length);
    let mut line = Vec::new();
    match args.format {
        Format::Jsonl => {
            let parts: Vec<Value> = parts.iter().map(|part| part_value(part)).collect();
            let mut object =
                json!({ "time": time, "n": number, "socket": copy.socket, "direction": way, "parts": parts });
            if cut {
                object["lengths"] = copy.parts.iter().map(|part| part.length).collect();
            }
            line.extend_from_slice(format!("{object}\n").as_bytes());
        }
        format => {
            if matches!(format, Format::Text | Format::Hex) {
                line.extend_from_slice(format!("{time} {} {way:<3} ", copy.socket).as_bytes());
            }
            encode(format, b"\t", &Received { parts: &parts, number, round_trip: None }, &mut line);
            if cut && matches!(format, Format::Text | Format::Hex) {
                line.pop();
                let lengths: Vec<String> = copy.parts.iter().map(|part| part.length.to_string()).collect();
                line.extend_from_slice(format!("… (of {} bytes)\n", lengths.join(" + ")).as_bytes());
            }
        }
    }
    Ok(line)
}
