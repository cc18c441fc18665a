//! `taut policy`.

use clap::Args;

/// policy
#[derive(Debug, Args)]
pub struct Policy {
    /// `audit`, `loopback`, `strict`, or the path of a file
    #[arg(value_name = "NAME|FILE", env = "TAUT_POLICY")]
    pub policy: String,
    /// Say what happens to a socket that binds this endpoint; may be given several times
    #[arg(short, long, value_name = "ENDPOINT")]
    pub bind: Vec<String>,
    /// Say what happens to a socket that connects to this endpoint; may be given several times
    #[arg(short, long, value_name = "ENDPOINT")]
    pub connect: Vec<String>,
    /// The type of that socket; without it rules that name a type do not fit
    #[arg(short = 'T', long = "type", value_name = "TYPE", default_value = "", hide_default_value = true)]
    pub socket_type: String,
    /// The file name of its program; without it rules that name a program do not fit
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub program: String,
    /// What it has asked for itself
    #[arg(long, value_name = "MECHANISM", default_value = "NULL", value_parser = ["NULL", "PLAIN", "CURVE"])]
    pub mechanism: String,
}
