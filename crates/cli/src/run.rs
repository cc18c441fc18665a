//! `taut run`: starts an existing program with Tautline in place of libzmq.
//!
//! ```text
//!   program   finds the file to start, and checks that a library can replace libzmq in it
//!   library   finds Tautline's libzmq.so.5
//!   policy    restricts its sockets
//!   proof     finds out which ZeroMQ the program and its children actually use
//! ```
//!
//! `LD_PRELOAD` puts the library before all others. Every call to libzmq through the dynamic linker
//! then calls Tautline: from a program linked with libzmq.so.5, from the libzmq in a pyzmq wheel,
//! and from the libzmq in a Node.js addon. `LD_LIBRARY_PATH` starts with its folder, for programs
//! that load libzmq by name: JNA, .NET, ctypes.
//!
//! The program must not outlive `taut`, even if SIGKILL ends `taut`. The kernel can do that, but
//! only a process itself can request it. So `taut` starts a second `taut`, which makes the request
//! and then becomes the program by `exec`.
//!
//! After a crash, `taut` records the exit status or the signal in the file of counters that the
//! program has left, so that `taut ps` and `taut doctor` can show it.

mod library;
mod library_check;
mod policy;
mod program;

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{self, Child, Command, ExitStatus};
use std::thread;

use rustix::process::{Pid, Signal, getpgrp, getppid, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tautline_observe::{EndCause, ProcessEnd};

use crate::args::Run;
use crate::failure::{Failure, Result};
use crate::inspect::describe_cause;
use crate::inspect::units::now;
use library::Library;
use library_check::LibraryCheck;

/// Signals forwarded to the program. The program receives terminal input without our help.
const PASSED_ON: [i32; 6] = [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT];

/// Starts the program and exits with its status.
pub fn run(args: &Run) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Err(
            Failure::usage("taut run works only on Linux").hint("link the program with Tautline's library")
        );
    }
    let [name, arguments @ ..] = args.program.as_slice() else {
        return Err(Failure::usage("the program to run is missing"));
    };
    if let (Some(parent), Some(library)) = (args.parent, &args.library) {
        return become_program(parent, library, Path::new(name), arguments);
    }
    let path = program::find(name)?;
    let library = Library::find(args.library.as_deref())?;
    program::check(&path, &library)?;
    // This name works even if the file of `taut` was replaced.
    let mut command = Command::new("/proc/self/exe");
    command.args(["run", "--parent", &process::id().to_string(), "--library"]).arg(&library.path);
    command.arg("--").arg(&path).args(arguments);
    if args.observe {
        command.env("TAUT_OBSERVE", "1");
        command.envs(args.name.as_ref().map(|name| ("TAUT_NAME", name)));
    }
    if let Some(named) = &args.policy {
        command.env("TAUT_POLICY", policy::value(named)?);
    }
    let signals = Signals::new(PASSED_ON)
        .map_err(|error| Failure::failed(format!("cannot handle signals: {error}")))?;
    // The main thread, because the kernel ties the process to the thread that starts it.
    let child = command.spawn().map_err(|error| {
        Failure::failed(format!("{}: cannot start it by /proc/self/exe: {error}", path.display()))
    })?;
    let pid = Pid::from_child(&child);
    let start_ticks = tautline_observe::start_ticks(child.id());
    thread::spawn(move || forward_signals(signals, pid));
    let proof = LibraryCheck::begin(child.id(), &library, args.quiet, args.verbose);
    end(child, start_ticks, &path, &proof, args)
}

/// Becomes the program. The kernel kills it as soon as the process `parent` has ended.
fn become_program(parent: i32, library: &Path, path: &Path, arguments: &[OsString]) -> Result<()> {
    tie_to_parent().map_err(|error| Failure::failed(format!("cannot watch the parent process: {error}")))?;
    // The request has no effect if the parent has ended before it.
    if getppid().map(Pid::as_raw_pid) != Some(parent) {
        return Err(Failure::failed("taut run has ended, so the program was not started"));
    }
    let mut command = Command::new(path);
    command.args(arguments).envs(variables(library));
    Err(Failure::file(path, &command.exec()))
}

#[cfg(target_os = "linux")]
fn tie_to_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

#[cfg(not(target_os = "linux"))]
fn tie_to_parent() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the variables for the program. Their existing values follow the new ones.
fn variables(library: &Path) -> [(&'static str, OsString); 2] {
    let folder = library.parent().unwrap_or(Path::new("/"));
    [("LD_PRELOAD", library.as_os_str()), ("LD_LIBRARY_PATH", folder.as_os_str())].map(|(variable, first)| {
        let mut value = first.to_owned();
        if let Some(former) = env::var_os(variable).filter(|former| !former.is_empty()) {
            value.push(":");
            value.push(former);
        }
        (variable, value)
    })
}

fn end(
    mut child: Child,
    start_ticks: Option<u64>,
    path: &Path,
    proof: &LibraryCheck,
    args: &Run,
) -> Result<()> {
    let status = child.wait().map_err(|error| Failure::file(path, &error))?;
    if let (Some(cause), Some(start_ticks)) = (cause_of(status), start_ticks) {
        tautline_observe::record_end(child.id(), start_ticks, ProcessEnd { at: now(), cause });
    }
    if !proof.has_seen_zeromq() && !args.quiet {
        notice!(
            "taut: {} ended without a visible use of ZeroMQ: it did not load libzmq, or only for a moment",
            path.display()
        );
    }
    if let Some(signal) = status.signal().filter(|signal| !PASSED_ON.contains(signal)) {
        let core = if status.core_dumped() { ", with a core dump" } else { "" };
        let cause = describe_cause(EndCause::Killed(signal.unsigned_abs()));
        notice!("taut: {} ({}) crashed or was killed: {cause}{core}", path.display(), child.id());
    }
    process::exit(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1));
}

/// Returns the cause of an end for the counters file, which a crash leaves.
fn cause_of(status: ExitStatus) -> Option<EndCause> {
    let exited = status.code().map(|code| EndCause::Exited(code.unsigned_abs()));
    exited.or_else(|| status.signal().map(|signal| EndCause::Killed(signal.unsigned_abs())))
}

/// Forwards received signals to the program.
fn forward_signals(mut signals: Signals, child: Pid) {
    for number in signals.forever() {
        let typed = matches!(number, SIGINT | SIGQUIT) && is_in_foreground();
        if let Some(signal) = Signal::from_named_raw(number).filter(|_| !typed) {
            // The error of a program that has ended does not matter.
            let _ = kill_process(child, signal);
        }
    }
}

/// True if signals typed at the terminal reach us, and so the program.
fn is_in_foreground() -> bool {
    [rustix::stdio::stdin(), rustix::stdio::stderr()]
        .into_iter()
        .any(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}
