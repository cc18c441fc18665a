//! `taut audit`.

use std::path::PathBuf;

use clap::Args;

/// audit
#[derive(Debug, Args)]
pub struct Audit {
    /// Check only the sockets of these processes
    #[arg(value_name = "PID", conflicts_with = "source")]
    pub processes: Vec<u32>,
    /// Check the source code in this folder or file instead of this machine
    #[arg(long, value_name = "PATH")]
    pub source: Option<PathBuf>,
    /// Print each endpoint or place as a line of JSON
    #[arg(long)]
    pub json: bool,
}
