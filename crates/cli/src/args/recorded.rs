//! `record` and `replay`.

use std::path::PathBuf;

use clap::Args;

use super::{Link, RecvType, SendType, Way};

/// record
#[derive(Debug, Clone, Args)]
pub struct Record {
    /// The new file: JSON, a line a message
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The endpoints
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// What an observed program, or one of its sockets, sends and receives, in place of what comes
    /// from endpoints
    #[arg(long, value_name = "PID[/SOCKET]", conflicts_with_all = ["endpoints", "kind", "subscribe", "bind", "connect"])]
    pub tap: Option<String>,
    /// With --tap: only what the program receives, or what it sends
    #[arg(long, value_enum, requires = "tap")]
    pub direction: Option<Way>,
    /// The type of the socket
    #[arg(long = "type", value_enum, default_value_t = RecvType::Sub)]
    pub kind: RecvType,
    /// Topics (SUB) or groups (DISH)
    #[arg(short, long, value_name = "TOPIC")]
    pub subscribe: Vec<String>,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// replay
#[derive(Debug, Clone, Args)]
pub struct Replay {
    /// What `taut record` has written, or any command with --out jsonl; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The endpoints; without any, those of the recorded socket, or their other ends if it has
    /// received
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// The type of the socket; without it PUB, or what goes to the recorded socket's endpoints
    #[arg(long = "type", value_enum)]
    pub kind: Option<SendType>,
    /// The pace: 2 is twice as fast as it was, max all at once
    #[arg(long, value_name = "N|max", value_parser = speed, default_value = "1")]
    pub speed: f64,
    /// Of PUB and XPUB: begin when there are this many subscriptions
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub wait: u64,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// How many times as fast.
fn speed(text: &str) -> Result<f64, String> {
    if text == "max" {
        return Ok(f64::INFINITY);
    }
    let speed: Option<f64> = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed >= 1e-3);
    speed.ok_or_else(|| "a speed is a number from 0.001 on, or max".to_owned())
}
