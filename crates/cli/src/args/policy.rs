//! `taut policy`.

use clap::Args;

/// policy
#[derive(Debug, Args)]
pub struct Policy {
    /// `audit`, `loopback`, `strict`, or the path of a policy file
    #[arg(value_name = "NAME|FILE", env = "TAUT_POLICY")]
    pub policy: String,
    /// Show the effect on a socket that binds this endpoint; may be given several times
    #[arg(short, long, value_name = "ENDPOINT")]
    pub bind: Vec<String>,
    /// Show the effect on a socket that connects to this endpoint; may be given several times
    #[arg(short, long, value_name = "ENDPOINT")]
    pub connect: Vec<String>,
    /// Type of that socket; without it, rules that name a type do not match
    #[arg(short = 'T', long = "type", value_name = "TYPE", default_value = "", hide_default_value = true)]
    pub socket_type: String,
    /// File name of its program; without it, rules that name a program do not match
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub program: String,
    /// Security mechanism that the socket itself uses
    #[arg(long, value_name = "MECHANISM", default_value = "NULL", value_parser = ["NULL", "PLAIN", "CURVE"])]
    pub mechanism: String,
}
