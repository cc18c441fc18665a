//! `taut audit`.

use std::path::PathBuf;

use clap::Args;

/// audit
#[derive(Debug, Args)]
pub struct Audit {
    /// Only what these processes listen on
    #[arg(value_name = "PID", conflicts_with = "source")]
    pub processes: Vec<u32>,
    /// Look through the source code in a folder, or a file, in place of this machine
    #[arg(long, value_name = "PATH")]
    pub source: Option<PathBuf>,
    /// As JSON, a line for each endpoint or place
    #[arg(long)]
    pub json: bool,
}
