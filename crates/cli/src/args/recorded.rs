//! `record` and `replay`.

use std::path::PathBuf;

use clap::Args;

use super::{DirectionArg, Link, RecvType, SendType};

/// record
#[derive(Debug, Clone, Args)]
pub struct Record {
    /// New file with a line of JSON per message
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The endpoints
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// Record the messages of an observed program or one of its sockets, instead of endpoints
    #[arg(long, value_name = "PID[/SOCKET]", conflicts_with_all = ["endpoints", "kind", "subscribe", "bind", "connect"])]
    pub tap: Option<String>,
    /// With --tap: only messages that the program receives, or only those that it sends
    #[arg(long, value_enum, requires = "tap")]
    pub direction: Option<DirectionArg>,
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
    /// File of `taut record`, or output of any command with --out jsonl; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The endpoints; by default those of the recorded socket, or of its peers if it received the
    /// messages
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// Type of the socket; by default PUB, or a type that fits the recorded socket's endpoints
    #[arg(long = "type", value_enum)]
    pub kind: Option<SendType>,
    /// Speed: 2 is twice the recorded speed, max removes all pauses
    #[arg(long, value_name = "N|max", value_parser = speed, default_value = "1")]
    pub speed: f64,
    /// For PUB and XPUB: start after this number of subscriptions
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub wait: u64,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// Parses a speed factor.
fn speed(text: &str) -> Result<f64, String> {
    if text == "max" {
        return Ok(f64::INFINITY);
    }
    let speed: Option<f64> = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed >= 1e-3);
    speed.ok_or_else(|| "a speed is max, or a number of at least 0.001".to_owned())
}
