//! The commands about programs that use ZeroMQ.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// run
#[derive(Debug, Args)]
pub struct Run {
    /// Let it be looked at while it runs: taut ps, show, top, doctor
    #[arg(long)]
    pub observe: bool,
    /// What its sockets may do: audit, loopback, strict, a file, or @NAME of a saved policy
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// Tautline's libzmq.so.5, if it is not where it is installed; or the variable TAUT_LIBRARY
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// Say nothing on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say it of every process that the program starts
    #[arg(short, long)]
    pub verbose: bool,
    /// The program, and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM [ARGUMENT]"
    )]
    pub program: Vec<OsString>,
}
