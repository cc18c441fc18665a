//! `taut run`: starts an existing program with Tautline in the place of libzmq.
//!
//! ```text
//!   program   which file the system will start, and whether a library can take libzmq's place there
//!   library   where Tautline's libzmq.so.5 is
//!   policy    what its sockets may do
//!   proof     which ZeroMQ the program and its children really run on, as the system sees them
//! ```
//!
//! The library is put before all others (`LD_PRELOAD`), so that whatever calls libzmq by way of the
//! dynamic linker calls Tautline: a program that is linked with libzmq.so.5, the one in a wheel of
//! pyzmq, the one in a Node.js addon. Its folder comes first where libraries are looked for
//! (`LD_LIBRARY_PATH`), for what loads libzmq by name: JNA, .NET, ctypes.

mod library;
mod policy;
mod program;
mod proof;

use std::env;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{self, Child, Command};
use std::thread;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::args::Run;
use crate::failure::{Failure, Result};
use library::Library;
use proof::Proof;

/// Passed on to the program. What is typed at a terminal comes to it anyway.
const PASSED_ON: [i32; 6] = [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT];

/// Starts the program, and ends as it does.
pub fn run(args: &Run) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Err(Failure::usage("taut run is for Linux").hint("link the program with Tautline's library"));
    }
    let [name, arguments @ ..] = args.program.as_slice() else {
        return Err(Failure::usage("there is no program"));
    };
    let path = program::find(name)?;
    let library = Library::find(args.library.as_deref())?;
    program::check(&path, &library)?;
    let mut command = Command::new(&path);
    command.args(arguments);
    for (variable, value) in variables(&library) {
        command.env(variable, value);
    }
    if args.observe {
        command.env("TAUT_OBSERVE", "1");
    }
    if let Some(named) = &args.policy {
        command.env("TAUT_POLICY", policy::value(named)?);
    }
    let signals = Signals::new(PASSED_ON).map_err(|error| Failure::failed(format!("signals: {error}")))?;
    let child = command.spawn().map_err(|error| Failure::file(&path, &error))?;
    let pid = Pid::from_child(&child);
    thread::spawn(move || pass_on(signals, pid));
    let proof = Proof::begin(child.id(), &library, args.quiet, args.verbose);
    end(child, &path, &proof, args)
}

/// What is set for the program, before what is there already.
fn variables(library: &Library) -> [(&'static str, OsString); 2] {
    let folder = library.path.parent().unwrap_or(Path::new("/"));
    [("LD_PRELOAD", library.path.as_os_str()), ("LD_LIBRARY_PATH", folder.as_os_str())].map(
        |(variable, first)| {
            let mut value = first.to_owned();
            if let Some(former) = env::var_os(variable).filter(|former| !former.is_empty()) {
                value.push(":");
                value.push(former);
            }
            (variable, value)
        },
    )
}

fn end(mut child: Child, path: &Path, proof: &Proof, args: &Run) -> Result<()> {
    let status = child.wait().map_err(|error| Failure::file(path, &error))?;
    if !proof.is_there() && !args.quiet {
        notice!(
            "taut: {} has ended, and was not seen to use ZeroMQ: it did not, or not for long enough",
            path.display()
        );
    }
    process::exit(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1));
}

/// Sends the signals on that come to us.
fn pass_on(mut signals: Signals, child: Pid) {
    for number in signals.forever() {
        let typed = matches!(number, SIGINT | SIGQUIT) && is_in_foreground();
        if let Some(signal) = Signal::from_named_raw(number).filter(|_| !typed) {
            // A program that has ended needs none.
            let _ = kill_process(child, signal);
        }
    }
}

/// Whether what is typed at the terminal goes to us, and so to the program.
fn is_in_foreground() -> bool {
    [rustix::stdio::stdin(), rustix::stdio::stderr()]
        .into_iter()
        .any(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}
