//! `taut pub` and `taut sub`.

use clap::Args;
use tautline::replay::Start;

use super::{Link, Receiving, SendOnly};

/// PUB
#[derive(Debug, Clone, Args)]
pub struct Publish {
    /// Publish only when there are this many subscriptions; 0: at once, and what is published
    /// before the first one is lost
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub wait: u64,
    /// Number the messages, keep the last ones, and send them again from this endpoint to those
    /// that have missed them. A message has two parts, the topic (--to) and the body. No subscriber
    /// is waited for, and the end is that of --for or a signal
    #[arg(long, value_name = "ENDPOINT", conflicts_with = "wait")]
    pub replay: Option<String>,
    /// How many messages are kept
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "replay")]
    pub keep: usize,
    /// What is sent, and where.
    #[command(flatten)]
    pub what: SendOnly,
}

/// SUB
#[derive(Debug, Clone, Args)]
pub struct Subscribe {
    /// The endpoints
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// Only messages that begin with this; may be given several times. Without it all messages
    #[arg(short, long, value_name = "TOPIC")]
    pub subscribe: Vec<String>,
    /// Look at the numbers of a publisher with --replay, and get what is missing from this
    /// endpoint. Each message is shown with its number as the second part; what cannot be had any
    /// more is told
    #[arg(long, value_name = "ENDPOINT")]
    pub replay: Option<String>,
    /// With which message to begin: live (the next one), oldest (that is kept), last (of each
    /// topic), or a number
    #[arg(long, value_name = "WHICH", default_value = "live", value_parser = start, requires = "replay")]
    pub from: Start,
    /// One line a topic, in place; needs a terminal
    #[arg(long, conflicts_with_all = ["print", "output", "timestamp", "through"])]
    pub watch: bool,
    /// What is received.
    #[command(flatten)]
    pub receiving: Receiving,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// `live`, `oldest`, `last`, or a number.
fn start(text: &str) -> Result<Start, String> {
    match text {
        "live" => Ok(Start::Live),
        "oldest" => Ok(Start::Oldest),
        "last" => Ok(Start::LastOfEachTopic),
        number => {
            number.parse().map(Start::Number).map_err(|_| "it is live, oldest, last or a number".to_owned())
        }
    }
}
