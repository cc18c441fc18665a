//! The commands that look at observed programs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::duration;
use crate::format::Format;
use crate::look::{Filter, Order};

/// ps
#[derive(Debug, Args)]
pub struct Ps {
    /// Also the sockets that carry the events of monitors
    #[arg(short, long)]
    pub all: bool,
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
    /// Also the sockets that carry the events of monitors
    #[arg(short, long)]
    pub all: bool,
    /// As JSON, with all the fields of docs/reference/counters-file.md
    #[arg(long)]
    pub json: bool,
}

/// top
#[derive(Debug, Args)]
pub struct Top {
    /// Also the sockets that carry the events of monitors
    #[arg(short, long)]
    pub all: bool,
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
    /// Send them to an OpenTelemetry collector, again and again: http://HOST, of which the port is
    /// 4318 and the path /v1/metrics if it names no others, or https://HOST
    #[arg(long, value_name = "URL", conflicts_with = "listen")]
    pub otlp: Option<String>,
    /// With --otlp: a header of each request, such as authorization=Bearer ..., any number of
    /// times. As others can see the command line, a secret rather stands in the variable
    /// OTEL_EXPORTER_OTLP_HEADERS
    #[arg(long, value_name = "NAME=VALUE", requires = "otlp")]
    pub otlp_header: Vec<String>,
    /// With --otlp https://...: trust servers whose certificates lead to one of these, in PEM;
    /// without it those that the system trusts
    #[arg(long, value_name = "FILE", requires = "otlp")]
    pub otlp_trust: Option<PathBuf>,
    /// With --otlp: how often
    #[arg(short, long, value_name = "TIME", value_parser = pause, default_value = "10", requires = "otlp")]
    pub interval: Duration,
    /// With --otlp: end after this number of times
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "otlp")]
    pub count: Option<u64>,
    /// Also of the sockets that carry the events of monitors
    #[arg(short, long)]
    pub all: bool,
    /// Those of each peer as well
    #[arg(long)]
    pub peers: bool,
}

/// tap
#[derive(Debug, Args)]
pub struct Tap {
    /// The process, or one of its sockets
    #[arg(value_name = "PID[/SOCKET]")]
    pub target: String,
    /// What the program receives, or what it sends; without it both
    #[arg(short, long, value_enum)]
    pub direction: Option<Way>,
    /// Only messages to or from this peer, by its number in taut show PID/SOCKET
    #[arg(long, value_name = "PEER")]
    pub peer: Option<u64>,
    /// Only messages that begin with this
    #[arg(short, long, value_name = "TOPIC")]
    pub prefix: Option<String>,
    /// Only messages of at least this many bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub least: u64,
    /// Only messages of at most this many bytes
    #[arg(long, value_name = "BYTES")]
    pub most: Option<u64>,
    /// One of this many messages
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub every: u64,
    /// The first bytes of each part only
    #[arg(long, value_name = "N")]
    pub bytes: Option<u64>,
    /// Only messages of which this is true: text that some part has in it, or conditions like
    /// topic = a, body ~ REGEX, size > 100, joined by and, or, not and parentheses
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse)]
    pub filter: Option<Filter>,
    /// How messages look
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// As --format jsonl
    #[arg(long, conflicts_with = "format")]
    pub jsonl: bool,
    /// As --format hex
    #[arg(long, conflicts_with_all = ["format", "jsonl"])]
    pub hex: bool,
    /// Run this command for each message: the last part is its standard input, what it prints takes
    /// that part's place
    #[arg(long, value_name = "CMD")]
    pub through: Option<String>,
    /// Not the messages but how many go by, each second, of each socket and direction
    #[arg(long, conflicts_with_all = ["format", "jsonl", "hex", "through"])]
    pub rates: bool,
    /// Write a new file for Wireshark, as if all had gone over tcp; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "jsonl", "hex", "through", "rates"])]
    pub pcapng: Option<PathBuf>,
    /// End after this number of messages
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time, as done
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub lasting: Option<Duration>,
    /// No notices on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// Which way messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Received by the program
    In,
    /// Sent by the program
    Out,
}

/// web
#[derive(Debug, Args)]
pub struct Web {
    /// Also the sockets that carry the events of monitors
    #[arg(short, long)]
    pub all: bool,
    /// Where: ADDRESS:PORT, or a port of this machine; 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: String,
}

/// A time to wait between two looks.
fn pause(text: &str) -> Result<Duration, String> {
    let least = Duration::from_millis(100);
    duration(text).and_then(|time| if time < least { Err("at least 100ms".to_owned()) } else { Ok(time) })
}
