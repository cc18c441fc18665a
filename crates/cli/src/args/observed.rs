//! The commands that look at observed programs.

use std::time::Duration;

use clap::Args;

use super::duration;
use crate::look::Order;

/// ps
#[derive(Debug, Args)]
pub struct Ps {
    /// As JSON, a line each
    #[arg(long)]
    pub json: bool,
}

/// show
#[derive(Debug, Args)]
pub struct Show {
    /// The process, or one of its sockets
    #[arg(value_name = "PID[/SOCKET]")]
    pub target: String,
    /// As JSON, with all the fields of docs/observe.md
    #[arg(long)]
    pub json: bool,
}

/// top
#[derive(Debug, Args)]
pub struct Top {
    /// How often to look
    #[arg(short, long, value_name = "TIME", value_parser = pause, default_value = "1")]
    pub interval: Duration,
    /// What the sockets are sorted by
    #[arg(short, long, value_enum, default_value_t = Order::Trouble)]
    pub sort: Order,
    /// Only sockets that have this in their program, process, type, endpoint or trouble
    #[arg(short, long, value_name = "TEXT")]
    pub filter: Option<String>,
}

/// doctor
#[derive(Debug, Args)]
pub struct Doctor {
    /// The process; all if none is named
    #[arg(value_name = "PID")]
    pub process: Option<u32>,
    /// How long to look
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "3")]
    pub lasting: Duration,
    /// As JSON, a line for each finding
    #[arg(long)]
    pub json: bool,
}

/// metrics
#[derive(Debug, Args)]
pub struct Metrics {
    /// Answer HTTP here until ended: ADDRESS:PORT, or a port of this machine. Without it they are
    /// printed once
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Those of each peer as well
    #[arg(long)]
    pub peers: bool,
}

/// web
#[derive(Debug, Args)]
pub struct Web {
    /// Where: ADDRESS:PORT, or a port of this machine; 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: String,
}

/// A time to wait between two looks.
fn pause(text: &str) -> Result<Duration, String> {
    let least = Duration::from_millis(100);
    duration(text).and_then(|time| if time < least { Err("at least 100ms".to_owned()) } else { Ok(time) })
}
