//! Rules about faults that hold up the whole process.

use super::{LATELY, PATIENCE, finding};
use crate::diagnosis::text::{format_count, format_short};
use crate::diagnosis::{Finding, Level, RuleInput};
use crate::event_text::errno;
use crate::{Socket, SocketState};

pub(super) fn too_many_files(scene: &RuleInput<'_>) -> Option<Finding> {
    let failed = |event: &&crate::Event| event.code == 0x40 && errno::TOO_MANY_FILES.contains(&event.value);
    let count = scene.reading.events.iter().filter(failed).count() as u64;
    let last = scene.reading.events.iter().rfind(failed)?;
    let (socket, seconds) = (scene.socket(last.socket).cloned().unwrap_or_default(), scene.seconds(last.at));
    if seconds >= LATELY {
        return None;
    }
    finding(&socket, Level::Trouble, "too-many-files", count).with_text(
        format!("{} cannot accept peers: {}", scene.name_of(&socket), last.reason),
        format!("{} among the last events, the latest {seconds} s ago", format_count(count, "failure")),
        format!(
            "Raise the limit of open files (ulimit -n, LimitNOFILE= of the service), or close unused sockets and files. \
             `lsof -p {}` lists them.",
            scene.reading.process.pid
        ),
    )
}

pub(super) fn ends_with_open(scene: &RuleInput<'_>) -> Option<Finding> {
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
    finding(first, Level::Trouble, "open-at-exit", seconds).with_text(
        format!("The program cannot exit, because {are} still open"),
        format!("zmq_ctx_term waits for {seconds} s; the first one is {}", scene.name_of(first)),
        format!(
            "Close every socket before zmq_ctx_term, including the sockets of other threads. `taut show {}` lists them.",
            scene.reading.name()
        ),
    )
}

pub(super) fn left_out(scene: &RuleInput<'_>) -> Option<Finding> {
    let omitted = scene.reading.process.omitted;
    if omitted == 0 {
        return None;
    }
    finding(&Socket::default(), Level::Note, "left-out", omitted).with_text(
        "Some sockets and peers are missing from the counters".to_owned(),
        format!("{omitted} had no room in the file of counters"),
        "This report may be incomplete. Close unused sockets to make room.",
    )
}

/// Returns the finding about a process whose file was not written for so long that it cannot be
/// running. Its reading is out of date. `state` is field 3 of `/proc/PID/stat`, if known.
pub(in crate::diagnosis) fn stalled_process(seconds: u64, state: Option<char>) -> Finding {
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
    Finding {
        what: format!("The process stands still: it is {why}"),
        evidence: format!(
            "its counters have not changed for {seconds} s; all messages queued in it and for it wait"
        ),
        advice: advice.to_owned(),
        ..finding(&Socket::default(), Level::Trouble, "stands-still", u64::MAX)
    }
}

/// Reports sockets that are closed before their messages are sent, one after the other.
pub(super) fn closes_too_early(scene: &RuleInput<'_>) -> Option<Finding> {
    let process = &scene.reading.contexts;
    let context = process
        .iter()
        .filter(|context| context.closed_discarded > 0)
        .max_by_key(|context| context.closed_last)?;
    let seconds = scene.seconds(context.closed_last);
    if seconds >= LATELY {
        return None;
    }
    let linger = match context.closed_linger_ms {
        0 => "ZMQ_LINGER is 0, so closing a socket discards what is not sent yet".to_owned(),
        ms => format!("ZMQ_LINGER gives them {ms} ms"),
    };
    finding(&Socket::default(), Level::Warning, "closed-too-early", context.closed_discarded).with_text(
        format!(
            "The program closes {} sockets to {} before their messages are sent",
            context.closed_type, context.closed_endpoint
        ),
        format!(
            "{} of {} discarded {}, the latest {seconds} s ago; {linger}",
            format_short(context.closed_discarding),
            format_count(context.closed_sockets, "closed socket"),
            format_count(context.closed_discarded, "message"),
        ),
        "Keep one socket open for all messages. If it must be closed, set ZMQ_LINGER to the milliseconds that sending \
         may take, or wait for a reply.",
    )
}

/// Reports a forked child that uses sockets of its parent.
pub(super) fn forked(scene: &RuleInput<'_>) -> Option<Finding> {
    let calls = scene.reading.forked_calls;
    if calls == 0 {
        return None;
    }
    finding(&Socket::default(), Level::Trouble, "forked", calls).with_text(
        "A forked child of the program uses sockets of its parent, and each of its calls fails with EINTR".to_owned(),
        format!("at least {} refused", format_count(calls, "call")),
        "Make a new context after fork(2), in the child. In Python, use the start method `spawn`, or create the context \
         in the child.",
    )
}
