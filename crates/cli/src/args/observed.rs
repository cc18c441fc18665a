//! The commands that show observed programs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::duration;
use crate::format::Format;
use crate::inspect::{Filter, Order, ProcessName};

/// ps
#[derive(Debug, Args)]
pub struct Ps {
    /// Include the sockets that carry monitor events
    #[arg(short, long)]
    pub all: bool,
    /// Print each process as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// show
#[derive(Debug, Args)]
pub struct Show {
    /// The process, or one of its sockets
    #[arg(value_name = "PID[/SOCKET]")]
    pub target: String,
    /// Include the sockets that carry monitor events
    #[arg(short, long)]
    pub all: bool,
    /// Print JSON with all the fields of docs/reference/counters-file.md
    #[arg(long)]
    pub json: bool,
}

/// top
#[derive(Debug, Args)]
pub struct Top {
    /// Include the sockets that carry monitor events
    #[arg(short, long)]
    pub all: bool,
    /// Time between updates
    #[arg(short, long, value_name = "TIME", value_parser = pause, default_value = "1")]
    pub interval: Duration,
    /// Sort order of the sockets
    #[arg(short, long, value_enum, default_value_t = Order::Trouble)]
    pub sort: Order,
    /// Show only sockets with this text in their program, process, type, endpoint or trouble
    #[arg(short, long, value_name = "TEXT")]
    pub filter: Option<String>,
}

/// doctor
#[derive(Debug, Args)]
pub struct Doctor {
    /// Process to check; by default all
    #[arg(value_name = "PID")]
    pub process: Option<ProcessName>,
    /// Time between the two readings
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "3")]
    pub lasting: Duration,
    /// Print each finding as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// metrics
#[derive(Debug, Args)]
pub struct Metrics {
    /// Serve the metrics over HTTP at ADDRESS:PORT or a port of this machine. Without this option,
    /// print them once
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Send the metrics periodically to an OpenTelemetry collector: http://HOST (default port 4318,
    /// default path /v1/metrics) or https://HOST
    #[arg(long, value_name = "URL", conflicts_with = "listen")]
    pub otlp: Option<String>,
    /// With --otlp: a header of each request, such as authorization=Bearer ...; may be given
    /// several times. Other users can see the command line: put secrets in the variable
    /// OTEL_EXPORTER_OTLP_HEADERS instead
    #[arg(long, value_name = "NAME=VALUE", requires = "otlp")]
    pub otlp_header: Vec<String>,
    /// With --otlp https://...: trust servers whose certificates lead to one in this PEM file, by
    /// default those that the system trusts
    #[arg(long, value_name = "FILE", requires = "otlp")]
    pub otlp_trust: Option<PathBuf>,
    /// With --otlp: time between requests
    #[arg(short, long, value_name = "TIME", value_parser = pause, default_value = "10", requires = "otlp")]
    pub interval: Duration,
    /// With --otlp: end after this number of requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "otlp")]
    pub count: Option<u64>,
    /// Include the sockets that carry monitor events
    #[arg(short, long)]
    pub all: bool,
    /// Include the metrics of each peer
    #[arg(long)]
    pub peers: bool,
}

/// tap
#[derive(Debug, Args)]
pub struct Tap {
    /// The process, or one of its sockets
    #[arg(value_name = "PID[/SOCKET]")]
    pub target: String,
    /// Only messages that the program receives, or only those that it sends; by default both
    #[arg(short, long, value_enum)]
    pub direction: Option<DirectionArg>,
    /// Only messages to or from this peer; taut show PID/SOCKET prints the numbers of the peers
    #[arg(long, value_name = "PEER")]
    pub peer: Option<u64>,
    /// Only messages that start with this text
    #[arg(short, long, value_name = "TOPIC")]
    pub prefix: Option<String>,
    /// Only messages of at least this many bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub least: u64,
    /// Only messages of at most this many bytes
    #[arg(long, value_name = "BYTES")]
    pub most: Option<u64>,
    /// Show only one of every N messages
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub every: u64,
    /// Show only the first N bytes of each part
    #[arg(long, value_name = "N")]
    pub bytes: Option<u64>,
    /// Only messages that fulfil this condition: a text that some part contains, or comparisons
    /// such as topic = a, body ~ REGEX or size > 100, joined by and, or, not and parentheses
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse)]
    pub filter: Option<Filter>,
    /// Format of messages
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Same as --format jsonl
    #[arg(long, conflicts_with = "format")]
    pub jsonl: bool,
    /// Same as --format hex
    #[arg(long, conflicts_with_all = ["format", "jsonl"])]
    pub hex: bool,
    /// Run this command for each message. It reads the last part from standard input, and its
    /// output replaces that part
    #[arg(long, value_name = "CMD")]
    pub through: Option<String>,
    /// Show message rates per second, socket and direction instead of messages
    #[arg(long, conflicts_with_all = ["format", "jsonl", "hex", "through"])]
    pub rates: bool,
    /// Write a new file for Wireshark, as if tcp had carried all messages; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "jsonl", "hex", "through", "rates"])]
    pub pcapng: Option<PathBuf>,
    /// End after this number of messages
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End successfully after this time
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub lasting: Option<Duration>,
    /// Print no notices on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// Direction of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectionArg {
    /// Received by the program
    In,
    /// Sent by the program
    Out,
}

/// web
#[derive(Debug, Args)]
pub struct Web {
    /// Include the sockets that carry monitor events
    #[arg(short, long)]
    pub all: bool,
    /// Address to serve at: ADDRESS:PORT, or a port of this machine; 0 is any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: String,
}

/// Parses a time between two updates.
fn pause(text: &str) -> Result<Duration, String> {
    let least = Duration::from_millis(100);
    duration(text).and_then(|time| {
        if time < least { Err("the time must be at least 100ms".to_owned()) } else { Ok(time) }
    })
}
