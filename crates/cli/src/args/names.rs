//! `taut names`.

use std::path::PathBuf;

use clap::Args;

/// names
#[derive(Debug, Args)]
pub struct Names {
    /// Names file, described in docs/use/names.md
    #[arg(long, value_name = "FILE", env = "TAUT_NAMES")]
    pub file: PathBuf,
    /// Run until a signal, and exchange the names bound here with other hosts through NATS
    #[arg(long, conflicts_with = "names")]
    pub serve: bool,
    /// Names to show, by default all in the file and its folder
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}
