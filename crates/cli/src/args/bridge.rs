//! `taut bridge`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

/// bridge
#[derive(Debug, Args)]
pub struct Bridge {
    /// File with the routes, described in docs/reference/bridge-file.md
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// Only check the file, without connecting
    #[arg(long, conflicts_with = "stats")]
    pub check: bool,
    /// Print the counters of each route at this interval, as a line of JSON
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stats: Option<Duration>,
}
