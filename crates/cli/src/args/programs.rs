//! The commands about programs that use ZeroMQ.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// run
#[derive(Debug, Args)]
pub struct Run {
    /// Allow taut ps, show, top and doctor to observe the program
    #[arg(long)]
    pub observe: bool,
    /// With --observe: the name that these commands show for the program; by default its file, or
    /// the script of an interpreter
    #[arg(long, value_name = "NAME", requires = "observe")]
    pub name: Option<OsString>,
    /// Policy for its sockets: audit, loopback, strict, a file, or @NAME of a saved policy
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// Path of Tautline's libzmq.so.5, if it is not installed; also set by the variable
    /// TAUT_LIBRARY
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// Print no notices on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Report the ZeroMQ library of every process that the program starts
    #[arg(short, long)]
    pub verbose: bool,
    /// Second step of `taut run`, in the new process: the process id of the first step.
    #[arg(long, value_name = "PID", hide = true, requires = "library")]
    pub parent: Option<i32>,
    /// Program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM [ARGUMENT]"
    )]
    pub program: Vec<OsString>,
}
