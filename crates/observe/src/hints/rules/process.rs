//! Rules about faults that hold up the whole process.

use super::{LATELY, PATIENCE, hint};
use crate::event_text::errno;
use crate::hints::{Hint, Level, RuleInput, format_count};
use crate::{Socket, SocketState};

pub(super) fn too_many_files(scene: &RuleInput<'_>) -> Option<Hint> {
    let failed = |event: &&crate::Event| event.code == 0x40 && errno::TOO_MANY_FILES.contains(&event.value);
    let count = scene.reading.events.iter().filter(failed).count() as u64;
    let last = scene.reading.events.iter().rfind(failed)?;
    let (socket, seconds) = (scene.socket(last.socket).cloned().unwrap_or_default(), scene.seconds(last.at));
    if seconds >= LATELY {
        return None;
    }
    hint(&socket, Level::Trouble, "too-many-files", count).with_text(
        format!("{} cannot accept peers: {}", scene.name_of(&socket), last.reason),
        format!("{} among the last events, the latest {seconds} s ago", format_count(count, "failure")),
        format!(
            "Raise the limit of open files (ulimit -n, LimitNOFILE= of the service), or close unused sockets and files. \
             `lsof -p {}` lists them.",
            scene.reading.process.pid
        ),
    )
}

pub(super) fn ends_with_open(scene: &RuleInput<'_>) -> Option<Hint> {
    let context = scene.reading.contexts.iter().find(|context| context.terminating > 0)?;
    let seconds = scene.seconds(context.terminating);
    let open: Vec<&Socket> = scene
        .reading
        .sockets
        .iter()
        .filter(|socket| socket.context == context.id && socket.state == SocketState::Open)
        .collect();
    let first = open.first().filter(|_| seconds >= PATIENCE)?;
    let are = if open.len() == 1 { "1 socket is".to_owned() } else { format!("{} sockets are", open.len()) };
    hint(first, Level::Trouble, "open-at-exit", seconds).with_text(
        format!("The program cannot exit, because {are} still open"),
        format!("zmq_ctx_term waits for {seconds} s; the first one is {}", scene.name_of(first)),
        format!(
            "Close every socket before zmq_ctx_term, including the sockets of other threads. `taut show {}` lists them.",
            scene.reading.name()
        ),
    )
}

pub(super) fn left_out(scene: &RuleInput<'_>) -> Option<Hint> {
    let omitted = scene.reading.process.omitted;
    if omitted == 0 {
        return None;
    }
    hint(&Socket::default(), Level::Note, "left-out", omitted).with_text(
        "Some sockets and peers are missing from the counters".to_owned(),
        format!("{omitted} had no room in the file of counters"),
        "This report may be incomplete. Close unused sockets to make room.",
    )
}

/// Returns the hint about a process whose file was not written for so long that it cannot be
/// running. Its reading is out of date. `state` is field 3 of `/proc/PID/stat`, if known.
pub fn stalled_process(seconds: u64, state: Option<char>) -> Hint {
    let (why, advice) = match state {
        Some('T') => (
            "stopped by a signal",
            "Continue it with SIGCONT (`kill -CONT` and its pid, or `fg` in its shell).",
        ),
        Some('t') => ("stopped by a debugger", "Continue it in the debugger, or end the debugger."),
        Some('D') => (
            "waiting for a device",
            "A disk or a network file system does not respond: see the kernel log (dmesg).",
        ),
        _ => (
            "not running",
            "It gets no processor time: check the limits and the freezer of its control group, and the load of the machine. \
             If its counters cannot be written, its standard error says so.",
        ),
    };
    Hint {
        what: format!("The process stands still: it is {why}"),
        evidence: format!(
            "its counters have not changed for {seconds} s; all messages queued in it and for it wait"
        ),
        advice: advice.to_owned(),
        ..hint(&Socket::default(), Level::Trouble, "stands-still", u64::MAX)
    }
}

/// Returns the hint about a process that has ended without removing its file, `seconds` ago. Hints
/// about its last state would be about the past. `name` is that of the process, as in
/// [`Reading::name`](crate::Reading::name).
pub fn ended_process(name: &str, seconds: u64) -> Hint {
    let time = match seconds {
        0..600 => format!("{seconds} s"),
        600..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    };
    Hint {
        what: format!(
            "The process ended {time} ago: it crashed, was killed, or did not terminate its contexts"
        ),
        evidence: format!("`taut show {name}` shows its last state"),
        advice: "The next observed program of this user removes this entry.".to_owned(),
        ..hint(&Socket::default(), Level::Note, "ended", 0)
    }
}
