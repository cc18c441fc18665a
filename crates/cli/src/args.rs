//! The command line.

mod audit;
mod bridge;
mod names;
mod observed;
mod policy;
mod programs;
mod published;
mod recorded;
mod topics;

pub use audit::Audit;
pub use bridge::Bridge;
pub use names::Names;
pub use observed::{DirectionArg, Doctor, Metrics, Ps, Show, Tap, Top, Web};
pub use policy::Policy;
pub use programs::Run;
pub use published::{Publish, Subscribe};
pub use recorded::{Record, Replay};
pub use topics::{Topics, TopicsPub, TopicsSub};

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::format::Format;
use crate::security::{BackSecurityArgs, SecurityArgs};

/// ZeroMQ on the command line: send, receive, request, reply, forward, measure
///
/// ENDPOINT is tcp://HOST:PORT, ipc:///PATH, ws://HOST:PORT, or shorter HOST:PORT, :PORT (of this
/// machine), /PATH, or @NAME of a saved context. PUB, PULL, REP, ROUTER and similar types bind it,
/// and all others connect to it. Override this with --bind or --connect, or with @ or > before the
/// endpoint.
#[derive(Debug, Parser)]
#[command(name = "taut", version, max_term_width = 100, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed; 2 wrong usage; 3 the time of --timeout passed; 4 doctor or audit found a problem; \
129, 130, 143 stopped by SIGHUP, SIGINT, SIGTERM before the end.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send messages with a PUSH socket, or another type (--type)
    Send(Box<TypedSend>),
    /// Receive messages with a PULL socket, or another type (--type)
    Recv(Box<TypedRecv>),
    /// Publish messages
    Pub(Box<Publish>),
    /// Subscribe and show the messages
    Sub(Box<Subscribe>),
    /// Publish and subscribe by topic name, with automatic discovery of the endpoints
    #[command(subcommand)]
    Topics(Topics),
    /// Send messages, each to one of the peers
    Push(Box<SendOnly>),
    /// Receive messages of PUSH sockets
    Pull(Box<RecvOnly>),
    /// Send requests and show the replies; round trip times go to standard error
    Req(Box<Exchange>),
    /// Reply to requests: --echo, --through CMD, replies from arguments or standard input
    Rep(Box<Exchange>),
    /// Send to and receive from any of the peers
    Dealer(Box<Exchange>),
    /// Send and receive; the first part of each message is the routing id of the peer
    Router(Box<Exchange>),
    /// Send and receive with one peer
    Pair(Box<Exchange>),
    /// Publish messages and show the subscriptions
    Xpub(Box<Exchange>),
    /// Subscribe by sending messages, and show the received messages
    Xsub(Box<Exchange>),
    /// Raw TCP; the first part of each message is the id of the connection
    Stream(Box<Exchange>),
    /// Send requests to SERVERs (draft)
    Client(Box<Exchange>),
    /// Reply to CLIENTs; the first part of each message is the number of the peer (draft)
    Server(Box<Exchange>),
    /// Send to groups; the first part of each message is the group (draft)
    Radio(Box<SendOnly>),
    /// Receive messages of groups: --subscribe GROUP (draft)
    Dish(Box<RecvOnly>),
    /// Send messages of one part, each to one of the peers (draft)
    Scatter(Box<SendOnly>),
    /// Receive messages of SCATTER sockets (draft)
    Gather(Box<RecvOnly>),
    /// Peer to peer; the first part of each message is the number of the peer (draft)
    Peer(Box<Exchange>),
    /// Send and receive with one peer, messages of one part (draft)
    Channel(Box<Exchange>),
    /// UDP datagrams; the first part of each message is the address (draft)
    Dgram(Box<Exchange>),
    /// Write received messages to a file, with their times
    Record(Box<Record>),
    /// Send recorded messages again, at the original or another speed
    Replay(Box<Replay>),
    /// Forward messages between two endpoints
    Proxy(Box<Proxy>),
    /// Forward messages between ZeroMQ sockets and NATS, and store them in NATS streams
    Bridge(Bridge),
    /// Show the endpoints of names (`name://`), or share names with other hosts through NATS
    Names(Names),
    /// Run an existing, unchanged program on Tautline
    Run(Run),
    /// List the observed processes of this user
    Ps(Ps),
    /// Show an observed process or one of its sockets in detail
    Show(Show),
    /// Watch sockets and peers live, with sockets in trouble first
    Top(Top),
    /// Show the messages of a running program as it sends and receives them
    Tap(Box<Tap>),
    /// List problems, the worst first, with evidence and a remedy; exit code 4 if there are any
    Doctor(Doctor),
    /// Print the counters of all observed processes for Prometheus, or serve them
    Metrics(Metrics),
    /// Serve a web page of all observed processes: graph, problems, rates
    Web(Web),
    /// Find ZeroMQ sockets that others can reach, here or in source code; exit code 4 if any
    Audit(Audit),
    /// Check a policy, and show its effect on a bind or a connect
    Policy(Policy),
    /// Make a CURVE key pair, or certificates for TLS tests
    Keygen(Keygen),
    /// Measure rate and round trip over endpoints
    Bench(Box<Bench>),
    /// Connect to an endpoint, make the handshake, and describe the peer
    Ping(Box<Ping>),
    /// Show the saved contexts (named endpoints with their settings), or save one
    Contexts(Contexts),
    /// Print the completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write the pages of all commands to a folder
    Man(Man),
}

/// Endpoints and limits
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Endpoints and limits")]
pub struct Link {
    /// Bind this endpoint; may be given several times
    #[arg(short, long, value_name = "ENDPOINT")]
    pub bind: Vec<String>,
    /// Connect to this endpoint; may be given several times
    #[arg(short, long, value_name = "ENDPOINT")]
    pub connect: Vec<String>,
    /// End after this number of messages, or of exchanges for REQ and REP
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Fail (exit code 3) if no message can be sent or received for this time
    #[arg(short = 'w', long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// End after this time. Fails (exit code 3) if given messages are not sent and delivered then
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub lasting: Option<Duration>,
    /// Format of messages, for input and output
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Separator of the parts in a line. \t is a tab, which is the default for output
    #[arg(short = 'D', long, value_name = "TEXT")]
    pub separator: Option<String>,
    /// Our routing id, which identifies us to ROUTERs
    #[arg(long, value_name = "ID")]
    pub identity: Option<String>,
    /// Maximum number of queued messages per peer and direction; 0: unlimited
    #[arg(long, value_name = "N")]
    pub hwm: Option<u32>,
    /// Disconnect peers that send a longer message part
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<u64>,
    /// Print no notices on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Report connection events on standard error
    #[arg(short, long)]
    pub verbose: bool,
    /// Keys and passwords.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// Endpoints and messages of a command
#[derive(Debug, Clone, Args)]
pub struct Words {
    /// The endpoints, then the messages; without messages, each line of standard input is one
    #[arg(value_name = "ENDPOINT [MESSAGE]")]
    pub words: Vec<String>,
}

/// Messages to send
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sending")]
pub struct Sending {
    /// Messages, even if they look like endpoints or options
    #[arg(last = true, value_name = "MESSAGE")]
    pub literal: Vec<String>,
    /// Send this message; may be given several times
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// Send one message with this part; repeat the option for each further part
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with_all = ["message", "literal", "file"])]
    pub part: Vec<String>,
    /// Send messages from a file; - is standard input. With --in raw, the whole file is one message
    #[arg(short = 'F', long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Format of files and standard input, if it differs from --format
    #[arg(long = "in", value_enum, value_name = "FORMAT")]
    pub input: Option<Format>,
    /// Put this part before each message: topic, group, or routing id of the peer
    #[arg(long, value_name = "PART", visible_aliases = ["topic", "group"])]
    pub to: Option<String>,
    /// Replace \n, \r, \t, \\ and \xNN in messages with their bytes
    #[arg(short, long)]
    pub escapes: bool,
    /// Do not fill in placeholders in braces. Without this option: n (the number; n:6 with leading
    /// zeros), time, unix_ms, unix_ns, random, size:N (N bytes), pid, env:NAME
    #[arg(long)]
    pub as_is: bool,
    /// Pause between messages; messages from arguments repeat until --count
    #[arg(short, long, value_name = "TIME", value_parser = duration, conflicts_with = "rate")]
    pub interval: Option<Duration>,
    /// Send this number of messages per second; messages from arguments repeat until --count
    #[arg(short, long, value_name = "N", value_parser = rate)]
    pub rate: Option<Duration>,
    /// Wait this time before the first message
    #[arg(short, long, value_name = "TIME", value_parser = duration, default_value = "0")]
    pub delay: Duration,
}

/// Output of received messages
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Receiving")]
pub struct Receiving {
    /// Format of received messages, if it differs from --format
    #[arg(long = "out", value_enum, value_name = "FORMAT")]
    pub output: Option<Format>,
    /// Print each message in this form, e.g. '{topic} is {body}'. Placeholders: topic (first part),
    /// body (last part), 1, 2 ... (any part), parts (all), n (the number), size, time, unix_ms,
    /// peer, user, hex, round_trip
    #[arg(long, value_name = "TEXT", conflicts_with = "output")]
    pub print: Option<String>,
    /// Print the time before each line
    #[arg(short, long)]
    pub timestamp: bool,
    /// Run this command for each message. It reads the last part from standard input, and its
    /// output replaces that part
    #[arg(long, value_name = "CMD")]
    pub through: Option<String>,
}

/// A type that only sends
#[derive(Debug, Clone, Args)]
pub struct SendOnly {
    /// The endpoints and the messages.
    #[command(flatten)]
    pub words: Words,
    /// Messages to send.
    #[command(flatten)]
    pub sending: Sending,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// A type that only receives
#[derive(Debug, Clone, Args)]
pub struct RecvOnly {
    /// The endpoints
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// The group to join (DISH); may be given several times
    #[arg(short, long, value_name = "GROUP", hide = true)]
    pub subscribe: Vec<String>,
    /// Output of received messages.
    #[command(flatten)]
    pub receiving: Receiving,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// A type that sends and receives
#[derive(Debug, Clone, Args)]
pub struct Exchange {
    /// Reply to each message with the same message
    #[arg(long, conflicts_with_all = ["through", "message", "part", "file"])]
    pub echo: bool,
    /// Topics to subscribe to (XSUB)
    #[arg(short, long, value_name = "TOPIC", hide = true)]
    pub subscribe: Vec<String>,
    /// The endpoints and the messages.
    #[command(flatten)]
    pub words: Words,
    /// Messages to send.
    #[command(flatten)]
    pub sending: Sending,
    /// Output of received messages.
    #[command(flatten)]
    pub receiving: Receiving,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// send
#[derive(Debug, Clone, Args)]
pub struct TypedSend {
    /// The type of the socket
    #[arg(long = "type", value_enum, default_value_t = SendType::Push)]
    pub kind: SendType,
    /// Messages to send, and the endpoints.
    #[command(flatten)]
    pub what: SendOnly,
}

/// recv
#[derive(Debug, Clone, Args)]
pub struct TypedRecv {
    /// The type of the socket
    #[arg(long = "type", value_enum, default_value_t = RecvType::Pull)]
    pub kind: RecvType,
    /// The endpoints
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// Topics (SUB) or groups (DISH)
    #[arg(short, long, value_name = "TOPIC")]
    pub subscribe: Vec<String>,
    /// Output of received messages.
    #[command(flatten)]
    pub receiving: Receiving,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// The types of `taut send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum SendType {
    Push,
    Pub,
    Dealer,
    Pair,
    Router,
    Xpub,
    Radio,
    Scatter,
    Client,
    Channel,
}

/// The types of `taut recv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum RecvType {
    Pull,
    Sub,
    Dealer,
    Pair,
    Router,
    Xsub,
    Dish,
    Gather,
    Server,
    Channel,
}

/// proxy
#[derive(Debug, Args)]
pub struct Proxy {
    /// Endpoint for the clients, publishers or producers
    #[arg(value_name = "FRONT")]
    pub front: String,
    /// Endpoint for the services, subscribers or workers
    #[arg(value_name = "BACK")]
    pub back: String,
    /// Pattern to forward: queue (ROUTER to DEALER), forwarder (XSUB to XPUB), streamer (PULL to
    /// PUSH)
    #[arg(long = "type", value_enum, default_value_t = ProxyType::Queue)]
    pub kind: ProxyType,
    /// Publish a copy of each message at this endpoint; - prints the copies
    #[arg(long, value_name = "ENDPOINT|-")]
    pub capture: Option<String>,
    /// Format of printed copies
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print no notices on standard error
    #[arg(short, long)]
    pub quiet: bool,
    /// Keys and passwords of the front.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// Keys and passwords of the back.
    #[command(flatten)]
    pub back_security: BackSecurityArgs,
}

/// Pattern that a proxy forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProxyType {
    /// Requests and replies: ROUTER in front, DEALER at the back
    Queue,
    /// Published messages: XSUB in front, XPUB at the back
    Forwarder,
    /// Work: PULL in front, PUSH at the back
    Streamer,
}

/// keygen
#[derive(Debug, Args)]
pub struct Keygen {
    /// Write the pair to this new file, which only you can read, and print the public key
    #[arg(short, long, value_name = "FILE", conflicts_with = "ca")]
    pub out: Option<PathBuf>,
    /// Write certificates for TLS tests to this folder instead of a CURVE pair: an authority, and
    /// certificates of a server and of clients that it signs
    #[arg(long, value_name = "FOLDER")]
    pub ca: Option<PathBuf>,
    /// Name or address of the server, by default localhost, 127.0.0.1 and ::1
    #[arg(long, value_name = "NAME", requires = "ca")]
    pub host: Vec<String>,
    /// Name of a client: it identifies the client's messages and its files
    #[arg(long, value_name = "NAME", requires = "ca", default_value = "client")]
    pub client: Vec<String>,
    /// Validity in days
    #[arg(long, value_name = "DAYS", requires = "ca", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: u32,
    /// Keep the existing authority, and replace the other certificates
    #[arg(long, requires = "ca", conflicts_with = "force")]
    pub renew: bool,
    /// Replace existing files
    #[arg(long, requires = "ca")]
    pub force: bool,
}

/// bench
#[derive(Debug, Args)]
pub struct Bench {
    /// Endpoints to measure, one after the other; by default tcp://127.0.0.1:*
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// Ends to run in this process; a missing end is a second `taut bench` or another program
    #[arg(long, value_enum, default_value_t = BenchEnd::Both)]
    pub end: BenchEnd,
    /// Bytes of a message
    #[arg(short, long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub size: u32,
    /// Number of messages to send
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(2..))]
    pub count: u64,
    /// Number of round trips
    #[arg(short, long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub round_trips: u64,
    /// Bind the endpoint
    #[arg(long, conflicts_with = "connect")]
    pub bind: bool,
    /// Connect to the endpoint
    #[arg(long)]
    pub connect: bool,
    /// Encrypt with new keys; only with both ends in this process
    #[arg(long)]
    pub curve: bool,
    /// Print each result as a line of JSON
    #[arg(long)]
    pub json: bool,
    /// Fail (exit code 3) if no message arrives for this time
    #[arg(short = 'w', long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Keys and passwords.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// The ends of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchEnd {
    /// Both ends, in this process: rate, then round trip
    Both,
    /// PUSH: sends --count messages
    Send,
    /// PULL: receives --count messages and prints the rate
    Receive,
    /// REQ: sends --round-trips requests and prints the round trip
    Ask,
    /// REP: replies until a signal stops it
    Answer,
}

/// ping
#[derive(Debug, Args)]
pub struct Ping {
    /// Endpoint: tcp, tls+tcp or ipc
    #[arg(value_name = "ENDPOINT")]
    pub endpoint: String,
    /// Number of round trips
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Pause between round trips
    #[arg(short, long, value_name = "TIME", value_parser = duration, default_value = "1")]
    pub interval: Duration,
    /// Time limit for the connection, for the handshake, and for each reply
    #[arg(short = 'w', long, value_name = "TIME", value_parser = duration, default_value = "5")]
    pub timeout: Duration,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Keys and passwords.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// contexts
#[derive(Debug, Args)]
pub struct Contexts {
    /// Name of a context, by default all
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Save this endpoint under a new NAME; may be given several times. Add keys and topics with an
    /// editor
    #[arg(long, value_name = "ENDPOINT", requires = "name", conflicts_with = "path")]
    pub save: Vec<String>,
    /// Print only the path of the file
    #[arg(long)]
    pub path: bool,
}

/// completions
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// man
#[derive(Debug, Args)]
pub struct Man {
    /// Write all pages into this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

/// Maximum time of ten years: practically unlimited, and sums with a clock cannot overflow.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Parses a time: `250ms`, `1.5s`, `2m`. A number without a unit means seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text);
    let fraction = seconds.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    fraction.or_else(|| humantime::parse_duration(text).ok()).filter(|time| *time <= LONGEST).ok_or_else(
        || "use a time such as 250ms, 1.5s, 2m or 1h; a number without a unit is seconds".to_owned(),
    )
}

/// Parses a rate in messages per second, and returns the pause between messages.
fn rate(text: &str) -> Result<Duration, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| *rate > 0.0);
    rate.and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok())
        .filter(|time| *time <= LONGEST)
        .ok_or_else(|| "the rate must be a number above 0".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_and_rates_are_read() {
        for (text, millis) in
            [("2", 2000), ("0", 0), ("1.5", 1500), ("1.5s", 1500), ("250ms", 250), ("2m", 120_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "x", "-1", "1 week of", "inf", "NaN", "1e18"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(rate("200"), Ok(Duration::from_millis(5)));
        assert!(rate("0").is_err() && rate("-1").is_err() && rate("x").is_err());
    }
}
