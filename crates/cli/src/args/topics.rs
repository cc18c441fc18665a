//! `taut topics`.

use clap::{Args, Subcommand};

use super::{Link, Receiving, Sending};

/// topics
#[derive(Debug, Subcommand)]
pub enum Topics {
    /// Publish messages about a topic
    Pub(Box<TopicsPub>),
    /// Show what is published about topics
    Sub(Box<TopicsSub>),
}

/// topics pub
#[derive(Debug, Args)]
pub struct TopicsPub {
    /// What the messages are about; . and / divide it into tokens
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// The messages; without any they come from standard input, a line each
    #[arg(value_name = "BODY")]
    pub bodies: Vec<String>,
    /// The space: all that publish and subscribe there find each other. Endpoints given by --bind
    /// and --connect take its place
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub space: String,
    /// Publish only when there are this many subscriptions; 0: at once, and what is published
    /// before the first one is lost
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub wait: u64,
    /// What is sent.
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
    /// The space: all that publish and subscribe there find each other. Endpoints given by --bind
    /// and --connect take its place
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub space: String,
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
