//! `taut topics`.

use clap::{Args, Subcommand};

use super::{Link, Receiving, Sending};

/// topics
#[derive(Debug, Subcommand)]
pub enum Topics {
    /// Publish messages about a topic
    Pub(Box<TopicsPub>),
    /// Show the messages of topics
    Sub(Box<TopicsSub>),
}

/// topics pub
#[derive(Debug, Args)]
pub struct TopicsPub {
    /// Topic of the messages; . and / divide it into tokens
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Messages; without any, each line of standard input is one
    #[arg(value_name = "BODY")]
    pub bodies: Vec<String>,
    /// Space: publishers and subscribers in the same space find each other. --bind and --connect
    /// give endpoints instead
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub space: String,
    /// Start publishing after this number of subscriptions; 0: at once, and messages before the
    /// first subscription are lost
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub wait: u64,
    /// Messages to send.
    #[command(flatten)]
    pub sending: Sending,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// topics sub
#[derive(Debug, Args)]
pub struct TopicsSub {
    /// Topics, in which * stands for one token, and ** at either end for any number of tokens
    #[arg(value_name = "PATTERN", required = true)]
    pub patterns: Vec<String>,
    /// Space: publishers and subscribers in the same space find each other. --bind and --connect
    /// give endpoints instead
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub space: String,
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
