//! `taut doctor`: lists problems, the worst first, each with its evidence and a remedy.

use std::collections::HashMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tautline_observe::{Hint, Level, Reading, ended_process, hints, stalled_process};

use super::units::{many, now};
use super::{ProcessSnapshot, SocketSelection, report_none};
use crate::args::Doctor;
use crate::failure::{Code, Failure, Result};
use crate::format::escaped;
use crate::sink::colours;

/// Age of the last update after which a stopped process counts as stalled.
const STOPPED: Duration = Duration::from_secs(2);
/// Age of the last update after which a process that runs according to the system counts as
/// stalled.
const STARVED: Duration = Duration::from_secs(15);

/// Reads the counters twice and reports the problems.
pub fn run(args: &Doctor) -> Result<()> {
    let look = || match args.process {
        Some(process) => super::snapshots_of(process, SocketSelection::All).map(|seen| (seen, Vec::new())),
        None => Ok(super::all(SocketSelection::All)),
    };
    let (before, _) = look()?;
    if args.process.is_none() && before.is_empty() {
        let (_, faults) = look()?;
        super::report_unreadable(&faults);
        report_none();
        return Ok(());
    }
    // Losses per second need two readings.
    thread::sleep(args.lasting);
    let before: HashMap<PathBuf, Reading> =
        before.into_iter().map(|seen| (seen.found.path, seen.reading)).collect();
    let (seen, faults) = look()?;
    super::report_unreadable(&faults);
    let mut all = findings(&seen, &before, args.lasting);
    all.sort_by_key(|(_, hint)| std::cmp::Reverse(hint.rank()));
    let text = if args.json { all.iter().map(line).collect() } else { describe(&seen, &all) };
    crate::print(&text)?;
    match all.iter().any(|(_, hint)| hint.level >= Level::Warning) {
        true => Err(Failure::new(Code::Trouble, "")),
        false => Ok(()),
    }
}

fn findings<'a>(
    seen: &'a [ProcessSnapshot],
    before: &HashMap<PathBuf, Reading>,
    apart: Duration,
) -> Vec<(&'a ProcessSnapshot, Hint)> {
    let each = |seen: &'a ProcessSnapshot| {
        let before = before.get(&seen.found.path);
        // Ignore the readings of an ended or stalled process, because they are outdated.
        let hints = ended(seen)
            .or_else(|| standing_still(seen, before, apart))
            .map_or_else(|| hints(&seen.reading, before), |hint| vec![hint]);
        hints.into_iter().map(move |hint| (seen, hint))
    };
    seen.iter().flat_map(each).collect()
}

/// Returns a hint if the process has ended without removing its file.
pub fn ended(seen: &ProcessSnapshot) -> Option<Hint> {
    let seconds = now().saturating_sub(seen.reading.process.written) / 1_000_000;
    (!seen.found.is_running).then(|| ended_process(&seen.reading.name(), seconds))
}

/// Returns a hint if the process has not updated its counters for too long. `apart` is the time
/// between the two readings.
fn standing_still(seen: &ProcessSnapshot, before: Option<&Reading>, apart: Duration) -> Option<Hint> {
    let process = &seen.reading.process;
    let is_same = before.is_some_and(|before| before.process.written == process.written);
    if !seen.found.is_running || !is_same || apart < Duration::from_secs(1) {
        return None;
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let age = now.saturating_sub(Duration::from_micros(process.written));
    let state = state_of(seen.found.pid);
    // A process that is not stopped may only be waiting for a busy processor.
    let patience = if matches!(state, Some('T' | 't')) { STOPPED } else { STARVED };
    let interval = Duration::from_micros(process.interval_us);
    (age >= patience && age >= 3 * interval).then(|| stalled_process(age.as_secs(), state))
}

/// Returns the state of a process: field 3 of `/proc/PID/stat`.
fn state_of(process: u32) -> Option<char> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    line.rsplit_once(')')?.1.trim_start().chars().next()
}

fn describe(seen: &[ProcessSnapshot], all: &[(&ProcessSnapshot, Hint)]) -> String {
    let (bold, red, yellow, plain) = if colours(&std::io::stdout()) {
        ("\x1b[1m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[0m")
    } else {
        ("", "", "", "")
    };
    let mut text = String::new();
    for (seen, hint) in all {
        let colour = match hint.level {
            Level::Trouble => red,
            Level::Warning => yellow,
            _ => bold,
        };
        let program = escaped(seen.reading.process.program.as_bytes());
        let at = match hint.socket {
            0 => format!("{program} ({})", seen.reading.name()),
            socket => format!("{program} ({}/{socket})", seen.reading.name()),
        };
        text += &format!("{colour}{}{plain}  {at}: {}\n", hint.level, escaped(hint.what.as_bytes()));
        for part in [&hint.evidence, &hint.advice] {
            if !part.is_empty() {
                text += &format!("    {}\n", escaped(part.as_bytes()));
            }
        }
    }
    let processes = many(seen.len(), "process");
    let ended = match seen.iter().filter(|seen| !seen.found.is_running).count() {
        0 => String::new(),
        ended => format!(" ({ended} ended)"),
    };
    let of_program =
        |seen: &ProcessSnapshot| seen.reading.sockets.iter().filter(|socket| !socket.monitor).count();
    let running = seen.iter().filter(|seen| seen.found.is_running);
    let sockets = many(running.map(of_program).sum(), "socket");
    let found = if all.is_empty() { "no problems found".to_owned() } else { many(all.len(), "finding") };
    text + &format!("{processes}{ended}, {sockets}: {found}\n")
}

fn line((seen, hint): &(&ProcessSnapshot, Hint)) -> String {
    let object = json!({
        "pid": seen.found.pid,
        "copy": seen.reading.copy,
        "program": seen.reading.process.program,
        "socket": hint.socket,
        "peer": hint.peer,
        "level": hint.level.as_str(),
        "rule": hint.rule,
        "what": hint.what,
        "evidence": hint.evidence,
        "advice": hint.advice,
    });
    format!("{object}\n")
}
