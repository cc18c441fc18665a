//! `taut pub` and `taut sub`.

use clap::Args;
use tautline::replay::Start;

use super::{Link, Receiving, SendOnly};

/// PUB
#[derive(Debug, Clone, Args)]
pub struct Publish {
    /// Start publishing after this number of subscriptions; 0: at once, and messages before the
    /// first subscription are lost
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub wait: u64,
    /// Number the messages, keep the last ones, and resend missed messages from this endpoint. A
    /// message has two parts, the topic (--to) and the body. The publisher does not wait for
    /// subscribers, and runs until --for or a signal ends it
    #[arg(long, value_name = "ENDPOINT", conflicts_with = "wait")]
    pub replay: Option<String>,
    /// Number of messages to keep
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "replay")]
    pub keep: usize,
    /// Messages to send, and the endpoints.
    #[command(flatten)]
    pub what: SendOnly,
}

/// SUB
#[derive(Debug, Clone, Args)]
pub struct Subscribe {
    /// The endpoints
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// Only messages that start with this text; may be given several times. Default: all messages
    #[arg(short, long, value_name = "TOPIC")]
    pub subscribe: Vec<String>,
    /// Check the message numbers of a publisher with --replay, and request missed messages from
    /// this endpoint. The number is shown as the second part of each message. Messages that cannot
    /// be recovered are reported
    #[arg(long, value_name = "ENDPOINT")]
    pub replay: Option<String>,
    /// First message: live (the next one), oldest (that is kept), last (of each topic), or a number
    #[arg(long, value_name = "WHICH", default_value = "live", value_parser = start, requires = "replay")]
    pub from: Start,
    /// Show one line per topic and update it in place; needs a terminal
    #[arg(long, conflicts_with_all = ["print", "output", "timestamp", "through"])]
    pub watch: bool,
    /// Output of received messages.
    #[command(flatten)]
    pub receiving: Receiving,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// Parses `live`, `oldest`, `last`, or a number.
fn start(text: &str) -> Result<Start, String> {
    match text {
        "live" => Ok(Start::Live),
        "oldest" => Ok(Start::Oldest),
        "last" => Ok(Start::LastOfEachTopic),
        number => {
            number.parse().map(Start::Number).map_err(|_| "use live, oldest, last or a number".to_owned())
        }
    }
}
