//! Processes of one program that end again and again.

use std::collections::BTreeMap;

use super::finding;
use crate::diagnosis::graph::{Graph, SocketKey};
use crate::diagnosis::{Finding, Level, ProcessState};
use crate::{EndCause, Reading};

/// Age in seconds from which the end of a process is no news.
const LATELY: u64 = 600;

/// Processes of a program.
#[derive(Default)]
struct Program {
    /// Ages of those that crashed lately, in seconds.
    ended: Vec<u64>,
    /// The running process, or the one that ended last.
    place: Option<(bool, u64, usize)>,
}

/// Processes that have ended without terminating their contexts.
pub(super) fn ended(graph: &Graph<'_>) -> Vec<Finding> {
    let found = graph.processes.iter().enumerate().filter_map(|(place, observed)| {
        let ProcessState::Ended { seconds, cause } = observed.state else { return None };
        let reading = observed.reading;
        let time = match seconds {
            0..600 => format!("{seconds} s"),
            600..7200 => format!("{} min", seconds / 60),
            _ => format!("{} h", seconds / 3600),
        };
        let how = match cause {
            Some(cause) => format!("ended {time} ago: {cause}"),
            None => format!("ended {time} ago: it crashed, was killed, or did not terminate its contexts"),
        };
        let successor = graph.same_program(place).find(|other| {
            let other = &graph.processes[*other];
            other.state == ProcessState::Running && other.reading.process.since >= reading.process.written
        });
        let again = match successor {
            Some(successor) => format!("; {} runs since", graph.program(successor)),
            None => String::new(),
        };
        let is_news = seconds < LATELY && successor.is_none() && !cause.is_some_and(is_request);
        Some(Finding {
            what: format!("The process {how}"),
            evidence: format!("{}{again}", last_event(reading)),
            advice:
                "Its standard error, the journal of its service or its core file (coredumpctl) may tell the \
                     reason. This entry goes after a day."
                    .to_owned(),
            ..finding(
                SocketKey { process: place, socket: 0 },
                if is_news { Level::Warning } else { Level::Note },
                "ended",
                0,
            )
        })
    });
    found.collect()
}

/// True if the process was asked to end: SIGHUP, SIGINT or SIGTERM.
fn is_request(cause: EndCause) -> bool {
    matches!(cause, EndCause::Exited(0) | EndCause::Killed(1 | 2 | 15))
}

/// Returns the last event of a process, in words.
fn last_event(reading: &Reading) -> String {
    let Some(event) = reading.events.last() else { return "no event was recorded".to_owned() };
    let before = reading.process.written.saturating_sub(event.at) / 1_000_000;
    let reason = if event.reason.is_empty() { String::new() } else { format!(", {}", event.reason) };
    let type_name = reading.socket(event.socket).map_or("a closed socket", |socket| &socket.type_name);
    format!("the last event was {} at {type_name}{reason}, {before} s before its last reading", event.name)
}

/// Programs that crashed several times.
pub(super) fn crashes(graph: &Graph<'_>) -> Vec<Finding> {
    let mut programs: BTreeMap<&str, Program> = BTreeMap::new();
    for (place, observed) in graph.processes.iter().enumerate() {
        let process = &observed.reading.process;
        let program = programs.entry(&process.program).or_default();
        match observed.state {
            ProcessState::Ended { seconds, cause } if seconds < LATELY && !cause.is_some_and(is_request) => {
                program.ended.push(seconds);
            }
            ProcessState::Ended { .. } => continue,
            _ => {}
        }
        let is_running = !matches!(observed.state, ProcessState::Ended { .. });
        program.place = program.place.max(Some((is_running, process.since, place)));
    }
    let found = programs.into_iter().filter_map(|(name, program)| {
        let (is_running, _, place) = program.place?;
        let (latest, earliest) = (program.ended.iter().min()?, program.ended.iter().max()?);
        if program.ended.len() < 2 {
            return None;
        }
        let again = if is_running { ", and runs again" } else { "" };
        Some(Finding {
            what: format!("{name} crashed {} times in {earliest} s{again}", program.ended.len()),
            evidence: format!("the last time {latest} s ago"),
            advice: "Look at its standard error, the journal of its service, or its core file (coredumpctl). If each \
                     one ends soon after it received a message, the same message may be the reason each time."
                .to_owned(),
            ..finding(SocketKey { process: place, socket: 0 }, Level::Trouble, "crashes", program.ended.len() as u64)
        })
    });
    found.collect()
}
