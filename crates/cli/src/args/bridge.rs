//! `taut bridge`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

/// bridge
#[derive(Debug, Args)]
pub struct Bridge {
    /// The file with the routes: docs/reference/bridge-file.md describes it
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// Only check the file, without a connection
    #[arg(long, conflicts_with = "stats")]
    pub check: bool,
    /// Show the counters of each route this often, a line of JSON each
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stats: Option<Duration>,
}
