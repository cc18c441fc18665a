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
pub use observed::{Doctor, Metrics, Ps, Show, Tap, Top, Way, Web};
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

/// ZeroMQ on the command line: send, receive, ask, answer, forward, measure
///
/// ENDPOINT is tcp://HOST:PORT, ipc:///PATH, ws://HOST:PORT, or shorter HOST:PORT, :PORT (of this
/// machine), /PATH, or @NAME of a saved context. PUB, PULL, REP, ROUTER and their like bind it and
/// all others connect to it, unless --bind or --connect (or @ or > before it) say otherwise.
#[derive(Debug, Parser)]
#[command(name = "taut", version, max_term_width = 100, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed; 2 wrong usage; 3 the time of --timeout has passed; 4 doctor or audit has found something; \
129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM before all was done.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send messages, by PUSH or what --type says
    Send(Box<TypedSend>),
    /// Receive messages, by PULL or what --type says
    Recv(Box<TypedRecv>),
    /// Publish messages
    Pub(Box<Publish>),
    /// Subscribe and show what comes
    Sub(Box<Subscribe>),
    /// Publish and subscribe by the names of topics, wherever the others are
    #[command(subcommand)]
    Topics(Topics),
    /// Send messages, each to one of the peers
    Push(Box<SendOnly>),
    /// Receive messages of PUSH sockets
    Pull(Box<RecvOnly>),
    /// Ask and show the answer; the round trip goes to standard error
    Req(Box<Exchange>),
    /// Answer questions: --echo, --through CMD, answers from arguments or standard input
    Rep(Box<Exchange>),
    /// Send and receive, to and from any of the peers
    Dealer(Box<Exchange>),
    /// Send and receive; the first part of each message is the routing id of the peer
    Router(Box<Exchange>),
    /// Send and receive with one peer
    Pair(Box<Exchange>),
    /// Publish messages and show the subscriptions
    Xpub(Box<Exchange>),
    /// Subscribe by messages and show what comes
    Xsub(Box<Exchange>),
    /// Raw TCP; the first part of each message is the id of the connection
    Stream(Box<Exchange>),
    /// Ask SERVERs (draft)
    Client(Box<Exchange>),
    /// Answer CLIENTs; the first part of each message is the number of the peer (draft)
    Server(Box<Exchange>),
    /// Send to groups; the first part of each message is the group (draft)
    Radio(Box<SendOnly>),
    /// Receive what is sent to groups: --subscribe GROUP (draft)
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
    /// Write the messages that come into a file, with their times
    Record(Box<Record>),
    /// Send what was recorded again, at the same pace or another
    Replay(Box<Replay>),
    /// Forward messages between two endpoints
    Proxy(Box<Proxy>),
    /// Forward messages between ZeroMQ sockets and NATS, and keep them in its streams
    Bridge(Bridge),
    /// Show what names (`name://`) stand for, and tell other hosts through NATS
    Names(Names),
    /// Run an existing program on Tautline, without changing it
    Run(Run),
    /// List the observed processes of this user
    Ps(Ps),
    /// Show an observed process, or one of its sockets, with all of it
    Show(Show),
    /// Watch sockets and peers, the ones in trouble first
    Top(Top),
    /// Show the messages of a running program as it sends and receives them
    Tap(Box<Tap>),
    /// Say what is wrong, the worst first, with what shows it and what to do (exit code 4)
    Doctor(Doctor),
    /// Print the counters of all observed processes in OpenMetrics, or serve them
    Metrics(Metrics),
    /// Serve a page of all observed processes: the graph, what is wrong, rates
    Web(Web),
    /// Find sockets of ZeroMQ that others can reach, here or in source code (exit code 4)
    Audit(Audit),
    /// Read a policy: what is wrong with it, and what it does to a bind or a connect
    Policy(Policy),
    /// Make a CURVE key pair
    Keygen(Keygen),
    /// Measure rate and round trip over endpoints
    Bench(Box<Bench>),
    /// Connect, shake hands, and tell what is there
    Ping(Box<Ping>),
    /// Show the saved contexts, or save one
    Contexts(Contexts),
    /// Print the completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write those of all commands into a folder
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
    /// End after this number of messages; of REQ and REP after this number of exchanges
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Fail (exit code 3) when nothing can be sent or comes for this time
    #[arg(short = 'w', long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// End after this time, as done
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub lasting: Option<Duration>,
    /// How messages look, in both directions
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// What divides the parts of a message in lines (\t is a tab, which is what divides them when
    /// they are shown)
    #[arg(short = 'D', long, value_name = "TEXT")]
    pub separator: Option<String>,
    /// Our routing id, by which ROUTERs know us
    #[arg(long, value_name = "ID")]
    pub identity: Option<String>,
    /// How many messages may wait for each peer, in each direction; 0: any number
    #[arg(long, value_name = "N")]
    pub hwm: Option<u32>,
    /// Disconnect peers that send a longer message part
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<u64>,
    /// No notices on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Tell what happens to connections
    #[arg(short, long)]
    pub verbose: bool,
    /// Keys and passwords.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// What is sent where
#[derive(Debug, Clone, Args)]
pub struct Words {
    /// The endpoints, then the messages; without messages they come from standard input, a line
    /// each
    #[arg(value_name = "ENDPOINT [MESSAGE]")]
    pub words: Vec<String>,
}

/// What is sent
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sending")]
pub struct Sending {
    /// Messages, whatever they look like
    #[arg(last = true, value_name = "MESSAGE")]
    pub literal: Vec<String>,
    /// A message; may be given several times
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// A part of the message; given several times, all are one message
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with_all = ["message", "literal", "file"])]
    pub part: Vec<String>,
    /// Messages from a file; - is standard input. With --in raw the whole file is one message
    #[arg(short = 'F', long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// How the messages of files and standard input look, if not as --format says
    #[arg(long = "in", value_enum, value_name = "FORMAT")]
    pub input: Option<Format>,
    /// Put this part before each message: the topic, group, or routing id of the peer
    #[arg(long, value_name = "PART", visible_aliases = ["topic", "group"])]
    pub to: Option<String>,
    /// \n, \t, \\ and \xNN in messages stand for bytes
    #[arg(short, long)]
    pub escapes: bool,
    /// Take what stands in braces as it is. Otherwise filled in: n (the number; n:6 with zeros),
    /// time, unix_ms, unix_ns, random, size:N (N bytes), pid, env:NAME
    #[arg(long)]
    pub as_is: bool,
    /// Send a message every so often; those of arguments again and again, until --count
    #[arg(short, long, value_name = "TIME", value_parser = duration, conflicts_with = "rate")]
    pub interval: Option<Duration>,
    /// Send this number of messages a second; those of arguments again and again, until --count
    #[arg(short, long, value_name = "N", value_parser = rate)]
    pub rate: Option<Duration>,
    /// Wait this time before the first message
    #[arg(short, long, value_name = "TIME", value_parser = duration, default_value = "0")]
    pub delay: Duration,
}

/// What is received
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Receiving")]
pub struct Receiving {
    /// How messages are shown, if not as --format says
    #[arg(long = "out", value_enum, value_name = "FORMAT")]
    pub output: Option<Format>,
    /// Show each message so, e.g. '{topic} is {body}'. In braces: topic (the first part), body (the
    /// last one), 1, 2 ... (any part), parts (all), n (the number), size, time, unix_ms, peer,
    /// user, hex, round_trip
    #[arg(long, value_name = "TEXT", conflicts_with = "output")]
    pub print: Option<String>,
    /// Put the time before each line
    #[arg(short, long)]
    pub timestamp: bool,
    /// Run this command for each message: the last part is its standard input, what it prints takes
    /// that part's place
    #[arg(long, value_name = "CMD")]
    pub through: Option<String>,
}

/// A type that only sends
#[derive(Debug, Clone, Args)]
pub struct SendOnly {
    /// The endpoints and the messages.
    #[command(flatten)]
    pub words: Words,
    /// What is sent.
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
    /// What is received.
    #[command(flatten)]
    pub receiving: Receiving,
    /// Endpoints and limits.
    #[command(flatten)]
    pub link: Link,
}

/// A type that sends and receives
#[derive(Debug, Clone, Args)]
pub struct Exchange {
    /// Answer each message with itself
    #[arg(long, conflicts_with_all = ["through", "message", "part", "file"])]
    pub echo: bool,
    /// Topics to subscribe to (XSUB)
    #[arg(short, long, value_name = "TOPIC", hide = true)]
    pub subscribe: Vec<String>,
    /// The endpoints and the messages.
    #[command(flatten)]
    pub words: Words,
    /// What is sent.
    #[command(flatten)]
    pub sending: Sending,
    /// What is received.
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
    /// What is sent, and where.
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
    /// What is received.
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
    /// Where the clients, publishers or producers are
    #[arg(value_name = "FRONT")]
    pub front: String,
    /// Where the services, subscribers or workers are
    #[arg(value_name = "BACK")]
    pub back: String,
    /// What is forwarded: queue (ROUTER to DEALER), forwarder (XSUB to XPUB), streamer (PULL to
    /// PUSH)
    #[arg(long = "type", value_enum, default_value_t = ProxyType::Queue)]
    pub kind: ProxyType,
    /// Publish a copy of each message here; - prints them
    #[arg(long, value_name = "ENDPOINT|-")]
    pub capture: Option<String>,
    /// How captured messages are printed
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// No notices on standard error
    #[arg(short, long)]
    pub quiet: bool,
    /// Keys and passwords of the front.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// And of the back.
    #[command(flatten)]
    pub back_security: BackSecurityArgs,
}

/// What a proxy forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProxyType {
    /// Questions and answers: ROUTER in front, DEALER behind
    Queue,
    /// What is published: XSUB in front, XPUB behind
    Forwarder,
    /// Work: PULL in front, PUSH behind
    Streamer,
}

/// keygen
#[derive(Debug, Args)]
pub struct Keygen {
    /// Write the pair into this new file, readable by you only, and print the public key
    #[arg(short, long, value_name = "FILE", conflicts_with = "ca")]
    pub out: Option<PathBuf>,
    /// Make certificates for tests of TLS in place of a CURVE pair, into this folder: an authority,
    /// and by it a server's and a client's
    #[arg(long, value_name = "FOLDER")]
    pub ca: Option<PathBuf>,
    /// A name or address of the server; localhost, 127.0.0.1 and ::1 if none is given
    #[arg(long, value_name = "NAME", requires = "ca")]
    pub host: Vec<String>,
    /// A client's name: its messages bear it, and its files are called so
    #[arg(long, value_name = "NAME", requires = "ca", default_value = "client")]
    pub client: Vec<String>,
    /// How long they are good
    #[arg(long, value_name = "DAYS", requires = "ca", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: u32,
    /// Keep the authority that is there, and replace the other certificates
    #[arg(long, requires = "ca", conflicts_with = "force")]
    pub renew: bool,
    /// Replace what is there
    #[arg(long, requires = "ca")]
    pub force: bool,
}

/// bench
#[derive(Debug, Args)]
pub struct Bench {
    /// One after the other; tcp://127.0.0.1:* if none is given
    #[arg(value_name = "ENDPOINT")]
    pub endpoints: Vec<String>,
    /// Which end this is; the other one is a second `taut bench`, or any ZeroMQ
    #[arg(long, value_enum, default_value_t = BenchEnd::Both)]
    pub end: BenchEnd,
    /// Bytes of a message
    #[arg(short, long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub size: u32,
    /// Messages to send, of the ends that send
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(2..))]
    pub count: u64,
    /// Round trips to make
    #[arg(short, long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub round_trips: u64,
    /// Bind the endpoint
    #[arg(long, conflicts_with = "connect")]
    pub bind: bool,
    /// Connect to the endpoint
    #[arg(long)]
    pub connect: bool,
    /// Encrypt, with keys made up; of both ends in this process
    #[arg(long)]
    pub curve: bool,
    /// The results as JSON, a line each
    #[arg(long)]
    pub json: bool,
    /// Fail (exit code 3) when nothing comes for this time
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
    /// PULL: receives --count messages and tells the rate
    Receive,
    /// REQ: asks --round-trips times and tells the round trip
    Ask,
    /// REP: answers until it is ended
    Answer,
}

/// ping
#[derive(Debug, Args)]
pub struct Ping {
    /// tcp or ipc
    #[arg(value_name = "ENDPOINT")]
    pub endpoint: String,
    /// This many round trips
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// The pause between them
    #[arg(short, long, value_name = "TIME", value_parser = duration, default_value = "1")]
    pub interval: Duration,
    /// How long to wait for the connection, for the handshake, for each answer
    #[arg(short = 'w', long, value_name = "TIME", value_parser = duration, default_value = "5")]
    pub timeout: Duration,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
    /// Keys and passwords.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// contexts
#[derive(Debug, Args)]
pub struct Contexts {
    /// One of them; all if none is named
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Save this endpoint under a new NAME; may be given several times. Keys and topics are added
    /// with an editor
    #[arg(long, value_name = "ENDPOINT", requires = "name", conflicts_with = "path")]
    pub save: Vec<String>,
    /// Print where they are saved, and nothing else
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

/// Ten years: as long as for ever, and no sum with a clock overflows.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// `250ms`, `1.5s`, `2m`; a number alone is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text);
    let fraction = seconds.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    fraction
        .or_else(|| humantime::parse_duration(text).ok())
        .filter(|time| *time <= LONGEST)
        .ok_or_else(|| "a time is 250ms, 1.5s, 2m or 1h; a number alone is seconds".to_owned())
}

/// Messages a second, as the time between them.
fn rate(text: &str) -> Result<Duration, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| *rate > 0.0);
    rate.and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok())
        .filter(|time| *time <= LONGEST)
        .ok_or_else(|| "a rate is a number above 0".to_owned())
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
