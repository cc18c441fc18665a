//! `taut doctor`: lists the causes of problems, the worst first, each with its evidence, a remedy
//! and its effects.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tautline_observe::{
    Finding, Level, Namespaces, Observed, ProcessState, Reading, Unacknowledged, diagnose,
};

use super::unacknowledged;
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
    if let Some(process) = args.process {
        // Reports a process that is not observed.
        super::snapshots_of(process, SocketSelection::All)?;
    }
    let (before, _) = super::all(SocketSelection::All);
    // Losses per second need two readings.
    thread::sleep(args.lasting);
    let before: HashMap<PathBuf, Reading> =
        before.into_iter().map(|seen| (seen.found.path, seen.reading)).collect();
    let (seen, faults) = super::all(SocketSelection::All);
    super::report_unreadable(&faults);
    if seen.is_empty() {
        report_none();
        return Err(Failure::new(Code::Trouble, ""));
    }
    let mut all = diagnose_all(&seen, &before, args.lasting);
    if let Some(process) = args.process {
        let is_of = |finding: &Finding| process.is(&seen[finding.process]);
        all.retain(|finding| is_of(finding) || finding.effects.iter().any(is_of));
    }
    let text = if args.json {
        all.iter().map(|finding| format!("{}\n", line(&seen, finding))).collect()
    } else {
        describe(&seen, &all)
    };
    crate::print(&text)?;
    match all.iter().any(|finding| finding.level >= Level::Warning) {
        true => Err(Failure::new(Code::Trouble, "")),
        false => Ok(()),
    }
}

/// Returns the findings about these processes. `before` has their readings from `apart` earlier.
pub fn diagnose_all(
    seen: &[ProcessSnapshot],
    before: &HashMap<PathBuf, Reading>,
    apart: Duration,
) -> Vec<Finding> {
    // The processes of a network namespace have the same table of connections.
    let mut tables: HashMap<Option<u64>, Vec<Unacknowledged>> = HashMap::new();
    let observed = seen.iter().map(|seen| {
        let before = before.get(&seen.found.path);
        let namespaces = namespaces_of(seen);
        let unacknowledged = match has_tcp(seen) {
            true => {
                tables.entry(namespaces.network).or_insert_with(|| unacknowledged::of(seen.found.pid)).clone()
            }
            false => Vec::new(),
        };
        let state = state_of(seen, before, apart);
        Observed { before, state, namespaces, unacknowledged, ..Observed::new(&seen.reading) }
    });
    diagnose(&observed.collect::<Vec<_>>())
}

fn state_of(seen: &ProcessSnapshot, before: Option<&Reading>, apart: Duration) -> ProcessState {
    if !seen.found.is_running {
        let (at, cause) = match seen.found.end {
            Some(end) => (end.at, Some(end.cause)),
            None => (seen.reading.process.written, None),
        };
        return ProcessState::Ended { seconds: now().saturating_sub(at) / 1_000_000, cause };
    }
    standing_still(seen, before, apart).unwrap_or(ProcessState::Running)
}

/// Returns the state of a process that has not updated its counters for too long. `apart` is the
/// time between the two readings.
fn standing_still(seen: &ProcessSnapshot, before: Option<&Reading>, apart: Duration) -> Option<ProcessState> {
    let process = &seen.reading.process;
    let is_same = before.is_some_and(|before| before.process.written == process.written);
    if !is_same || apart < Duration::from_secs(1) {
        return None;
    }
    let age = Duration::from_micros(now().saturating_sub(process.written));
    let state = scheduler_state(seen.found.pid);
    // A process that is not stopped may only be waiting for a busy processor.
    let patience = if matches!(state, Some('T' | 't')) { STOPPED } else { STARVED };
    let interval = Duration::from_micros(process.interval_us);
    let stands = age >= patience && age >= 3 * interval;
    stands.then_some(ProcessState::StandsStill { seconds: age.as_secs(), state })
}

/// Returns the namespaces of a process that runs.
fn namespaces_of(seen: &ProcessSnapshot) -> Namespaces {
    let inode = |kind: &str| Some(fs::metadata(format!("/proc/{}/ns/{kind}", seen.found.pid)).ok()?.ino());
    match seen.found.is_running {
        true => Namespaces { mount: inode("mnt"), network: inode("net") },
        false => Namespaces::default(),
    }
}

/// True if the process runs and has TCP connections.
fn has_tcp(seen: &ProcessSnapshot) -> bool {
    seen.found.is_running && seen.reading.peers.iter().any(|peer| peer.address.starts_with("tcp://"))
}

/// Returns the state of a process: field 3 of `/proc/PID/stat`.
fn scheduler_state(process: u32) -> Option<char> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    line.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Colours of a level, and the end of a colour.
struct Colours {
    trouble: &'static str,
    warning: &'static str,
    note: &'static str,
    plain: &'static str,
}

impl Colours {
    fn of(&self, level: Level) -> &'static str {
        match level {
            Level::Trouble => self.trouble,
            Level::Warning => self.warning,
            _ => self.note,
        }
    }
}

fn describe(seen: &[ProcessSnapshot], all: &[Finding]) -> String {
    let colours = if colours(&std::io::stdout()) {
        Colours { trouble: "\x1b[1;31m", warning: "\x1b[1;33m", note: "\x1b[1m", plain: "\x1b[0m" }
    } else {
        Colours { trouble: "", warning: "", note: "", plain: "" }
    };
    let mut text = String::new();
    for finding in all {
        text += &describe_one(seen, finding, &colours);
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

/// Returns a finding, and its effects below it.
fn describe_one(seen: &[ProcessSnapshot], finding: &Finding, colours: &Colours) -> String {
    let headline = |finding: &Finding| {
        let (colour, plain) = (colours.of(finding.level), colours.plain);
        let (place, what) = (place_of(seen, finding), escaped(finding.what.as_bytes()));
        format!("{colour}{}{plain}  {place}: {what}\n", finding.level)
    };
    let mut text = headline(finding);
    for part in [&finding.evidence, &finding.advice] {
        if !part.is_empty() {
            text += &format!("    {}\n", escaped(part.as_bytes()));
        }
    }
    text += &format!("    next: {}\n", escaped(finding.next.as_bytes()));
    if !finding.effects.is_empty() {
        text += "    this explains:\n";
    }
    for effect in &finding.effects {
        text += &format!("      {}", headline(effect));
        text += &format!("          {}\n", escaped(effect.evidence.as_bytes()));
    }
    text
}

/// Returns the process and socket of a finding: `orders.py (4711/2, id w2)`.
fn place_of(seen: &[ProcessSnapshot], finding: &Finding) -> String {
    let reading = &seen[finding.process].reading;
    let program = escaped(reading.process.program.as_bytes());
    let Some(socket) = reading.socket(finding.socket) else {
        return format!("{program} ({})", reading.name());
    };
    let id = match &*socket.routing_id {
        [] => String::new(),
        id => format!(", id {}", escaped(id)),
    };
    format!("{program} ({}/{}{id})", reading.name(), socket.id)
}

fn line(seen: &[ProcessSnapshot], finding: &Finding) -> Value {
    let of = &seen[finding.process];
    json!({
        "pid": of.found.pid,
        "copy": of.reading.copy,
        "program": of.reading.process.program,
        "socket": finding.socket,
        "peer": finding.peer,
        "level": finding.level.as_str(),
        "rule": finding.rule,
        "what": finding.what,
        "evidence": finding.evidence,
        "advice": finding.advice,
        "next": finding.next,
        "effects": finding.effects.iter().map(|effect| line(seen, effect)).collect::<Vec<_>>(),
    })
}
