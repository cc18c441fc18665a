//! `taut tap`: shows copies of the messages that a running program sends and receives.
//!
//! ```text
//!   Source ──▶ Filter ──▶ View: Lines, Rates, Capture ──▶ standard output, or a file
//!   PID.tap               text, JSON  │       └─ pcapng
//!                                     └─ blocks
//! ```

mod capture;
mod control_socket;
mod filter;
mod lines;
mod pcapng;
mod rates;
mod source;

pub use filter::Filter;
pub use lines::object;
pub use source::{Source, TapEvent};

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use tautline::kind::SocketType;
use tautline_observe::tap::{Direction, MessageCopy, Request};

use crate::args::{DirectionArg, Record, Tap};
use crate::config::expand;
use crate::failure::{Failure, Result};
use crate::format::Format;
use crate::hangup;
use crate::origin::Origin;
use crate::sink::{broken, new_file};
use crate::socket;
use capture::Capture;
use lines::Lines;
use rates::Rates;
use source::CloseReason;

/// Destination of the messages.
trait View {
    /// Shows the message with this number.
    fn show(&mut self, copy: &MessageCopy, number: u64) -> Result<()>;

    /// Called when no further message is available at once.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns the time of the next [`tick`](Self::tick), which happens even if no message arrives.
    fn due(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self) -> Result<()> {
        Ok(())
    }

    /// Called after the last message.
    fn end(&mut self) -> Result<()> {
        self.flush()
    }
}

/// Selection of messages and end of the tap.
struct Limits<'a> {
    filter: Option<&'a Filter>,
    count: Option<u64>,
    lasting: Option<Duration>,
}

/// Runs until the count is reached, the time is over, or the program has ended.
pub fn run(args: &Tap) -> Result<()> {
    let mut source = Source::open(&args.target, request(args))?;
    if !args.quiet {
        notice!("taut: tapping {}", args.target);
    }
    let mut view: Box<dyn View> = match &args.pcapng {
        Some(path) if path != Path::new("-") => {
            let path = expand(path);
            Box::new(Capture::new(&source, new_file(&path)?, Some(path), args.quiet))
        }
        Some(_) => Box::new(Capture::new(&source, standard_output()?, None, args.quiet)),
        None if args.rates => Box::new(Rates::new(&source.reading, standard_output()?)),
        None => Box::new(Lines::new(format(args), args.through.clone(), standard_output()?)),
    };
    let limits = Limits { filter: args.filter.as_ref(), count: args.count, lasting: args.lasting };
    listen(&mut source, &mut *view, &limits)
}

/// Runs `taut record --tap`: writes the messages to a new file for a later replay.
pub fn record(args: &Record) -> Result<()> {
    let target = args.tap.as_deref().unwrap_or_default();
    let request = Request { direction: args.direction.map(DirectionArg::direction), ..Request::default() };
    let mut source = Source::open(target, request)?;
    let mut view = Lines::record(origin(&source, args.direction), expand(&args.file))?;
    if !args.link.quiet {
        notice!("taut: tapping {target}");
    }
    let limits = Limits { filter: None, count: args.link.count, lasting: args.link.lasting };
    listen(&mut source, &mut view, &limits)
}

/// Returns the origin of the messages in this direction, if all come from one socket.
fn origin(source: &Source, direction: Option<DirectionArg>) -> Option<Origin> {
    let mut reading = source.reading.clone();
    reading.leave_out_monitors();
    let socket = match source.socket {
        Some(socket) => reading.socket(socket)?,
        None => match &reading.sockets[..] {
            [socket] => socket,
            _ => return None,
        },
    };
    let kind = SocketType::from_code(u8::try_from(socket.type_code).ok()?)?;
    let direction = direction.or(match (socket::sends(kind), socket::receives(kind)) {
        (true, false) => Some(DirectionArg::Out),
        (false, true) => Some(DirectionArg::In),
        _ => None,
    })?;
    // inproc endpoints exist only within the process.
    let [bind, connect] = [true, false].map(|bound| {
        let ends = reading.endpoints_of(socket.id).filter(|endpoint| endpoint.bound == bound);
        ends.map(|endpoint| endpoint.name.clone()).filter(|name| !name.starts_with("inproc:")).collect()
    });
    Some(Origin { kind: kind.name().to_owned(), direction, bind, connect })
}

fn format(args: &Tap) -> Format {
    match (args.jsonl, args.hex) {
        (true, _) => Format::Jsonl,
        (_, true) => Format::Hex,
        _ => args.format,
    }
}

fn request(args: &Tap) -> Request {
    // Rates count whole messages and do not need their contents.
    let nothing = args.rates && args.filter.is_none();
    Request {
        socket: None,
        peer: args.peer,
        direction: args.direction.map(DirectionArg::direction),
        prefix: args.prefix.clone().unwrap_or_default().into_bytes(),
        least: args.least,
        most: args.most.unwrap_or(u64::MAX),
        every: args.every,
        bytes: args.bytes.unwrap_or(if nothing { 0 } else { u64::MAX }),
    }
}

impl DirectionArg {
    /// Returns the direction as the library names it.
    fn direction(self) -> Direction {
        match self {
            DirectionArg::In => Direction::In,
            DirectionArg::Out => Direction::Out,
        }
    }
}

/// Opens standard output and watches it. Without messages there are no writes, so a closed reader
/// would otherwise go unnoticed.
fn standard_output() -> Result<File> {
    let out = io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(|error| broken(&error))?;
    if let Some(mut gone) = hangup::hangup_descriptor(&out).map_err(|error| broken(&error))? {
        thread::spawn(move || {
            let _ = gone.read(&mut [0]);
            process::exit(0);
        });
    }
    Ok(out)
}

fn listen(source: &mut Source, view: &mut dyn View, limits: &Limits<'_>) -> Result<()> {
    let until = limits.lasting.map(|time| Instant::now() + time);
    let (mut number, mut missed) = (0, 0_u64);
    loop {
        if view.due().is_some_and(|due| due <= Instant::now()) {
            view.tick()?;
        }
        if !source.has_more() {
            view.flush()?;
        }
        let wake = [until, view.due()].into_iter().flatten().min();
        match source.next(wake)? {
            TapEvent::Copy(copy) => {
                if limits.filter.is_none_or(|filter| filter.accepts(&copy)) {
                    number += 1;
                    view.show(&copy, number)?;
                }
            }
            TapEvent::Missed { count, too_large } => {
                missed = missed.saturating_add(count);
                report_missed(count, too_large, missed);
            }
            TapEvent::Time => {}
            TapEvent::Ended => {
                view.end()?;
                return report_end(source, limits.count.is_some_and(|count| number < count));
            }
        }
        if limits.count.is_some_and(|count| number >= count)
            || until.is_some_and(|until| until <= Instant::now())
        {
            return view.end();
        }
    }
}

/// Reports missed messages with the reason. `total` is their number since the tap began.
fn report_missed(count: u64, too_large: u64, total: u64) {
    let say = |number: u64, why: &str| {
        let messages = if number == 1 { "1 message was" } else { &format!("{number} messages were") };
        let total = if total > count { format!(" ({total} in total)") } else { String::new() };
        notice!("taut: {messages} missed{total}, {why}");
    };
    if too_large > 0 {
        let they = if too_large == 1 { "it is" } else { "they are" };
        say(
            too_large,
            &format!("because {they} larger than 4 MiB: --bytes N shows the first N bytes of each part"),
        );
    }
    if count > too_large {
        say(
            count.saturating_sub(too_large),
            "because taut reads more slowly than the program sends and receives",
        );
    }
}

/// Reports that the program has ended, `early` or not.
fn report_end(source: &Source, early: bool) -> Result<()> {
    let process = source.reading.name();
    match source.end() {
        CloseReason::Died => Err(Failure::failed(format!("the process {process} has died"))
            .hint(format!("for its last state, use taut show {process}"))),
        CloseReason::Closed if early => Err(Failure::failed("the program has ended")),
        CloseReason::Closed => {
            notice!("taut: the program has ended");
            Ok(())
        }
    }
}
