//! Job of a command, assembled from its options.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use tautline::kind::SocketType;
use tautline::topics::Pattern;

use crate::args::{Link, Receiving, Sending};
use crate::config::{Config, Saved};
use crate::endpoint::{self, Endpoint, has_transport};
use crate::failure::{Failure, Result};
use crate::format::{Decoder, unescape};
use crate::replayed::Replay;
use crate::security::Security;
use crate::sink::{self, Form, Sink};
use crate::socket;
use crate::source::{Files, Source};
use crate::template::{self, Template};
use crate::tls;

/// Answers to received messages, or changes to them.
pub enum Answer {
    /// Echoes the message.
    Echo,
    /// Uses the output of this command.
    Through(String),
}

/// Complete task of a command.
pub struct Job {
    /// Type of the socket.
    pub kind: SocketType,
    /// Endpoints, at least one.
    pub endpoints: Vec<Endpoint>,
    /// Keys and passwords.
    pub security: Security,
    /// Further options, by their numbers in `zmq.h`.
    pub options: Vec<(i32, Vec<u8>)>,
    /// Topics to subscribe to, or groups to join.
    pub topics: Vec<Vec<u8>>,
    /// Ring of a publisher, or the ring that a subscriber reads.
    pub replay: Option<Replay>,
    /// Topic patterns to print. A message matches by its first part. Empty: print all.
    pub patterns: Vec<Pattern>,
    /// Source of the messages to send, if any.
    pub source: Option<Source>,
    /// Destination of the received messages.
    pub sink: Sink,
    /// Answers to received messages, if any.
    pub answer: Option<Answer>,
    /// Delay before the first message.
    pub delay: Duration,
    /// Pause between messages.
    pub interval: Option<Duration>,
    /// Message limit, as in [`Link`].
    pub count: Option<u64>,
    /// Maximum time between two messages (`--timeout`).
    pub timeout: Option<Duration>,
    /// Time after which the job ends (`--for`).
    pub lasting: Option<Duration>,
    /// Number of subscriptions to wait for.
    pub wait: u64,
    /// True if received messages are ignored.
    pub one_way: bool,
    /// True if no notices are printed on standard error (`--quiet`).
    pub quiet: bool,
    /// True if connections are reported on standard error (`--verbose`).
    pub verbose: bool,
}

// The numbers in `zmq.h`.
const ROUTING_ID: i32 = 5;
const MAXMSGSIZE: i32 = 22;
const SNDHWM: i32 = 23;
const RCVHWM: i32 = 24;
const ROUTER_MANDATORY: i32 = 33;
const XPUB_VERBOSE: i32 = 40;

/// Splits the arguments into endpoints and messages. Leading arguments with a transport are
/// endpoints. If no option gives an endpoint, the first argument is always one.
pub fn split_words(words: &[String], link: &Link) -> (Vec<String>, Vec<String>) {
    let named = !link.bind.is_empty() || !link.connect.is_empty();
    let first = usize::from(!named && !words.is_empty());
    let more = words[first..].iter().take_while(|word| has_transport(word)).count();
    let (endpoints, messages) = words.split_at(first + more);
    (endpoints.to_vec(), messages.to_vec())
}

impl Job {
    /// Creates a job that neither sends nor prints.
    pub fn new(kind: SocketType, endpoints: &[String], link: &Link, config: &Config) -> Result<Job> {
        let mut all = Vec::new();
        let mut saved: Option<&Saved> = None;
        let typed = endpoints.iter().map(|text| (text, socket::binds_by_default(kind, text)));
        let bound = link.bind.iter().map(|text| (text, true));
        let connected = link.connect.iter().map(|text| (text, false));
        for (text, bind) in typed.chain(bound).chain(connected) {
            let (found, context) = endpoint::resolve(text, bind, config)?;
            all.extend(found);
            saved = saved.or(context);
        }
        if all.is_empty() {
            return Err(Failure::usage("the endpoint is missing").hint(
                "for example tcp://127.0.0.1:5555, ipc:///tmp/name, :5555, or @NAME of a saved context",
            ));
        }
        let mut options = Vec::new();
        let mut set = |number: i32, value: i32| options.push((number, value.to_ne_bytes().to_vec()));
        if kind == SocketType::Router {
            set(ROUTER_MANDATORY, 1);
        }
        if kind == SocketType::XPub {
            set(XPUB_VERBOSE, 1);
        }
        if let Some(messages) = link.hwm {
            let messages = i32::try_from(messages).map_err(|_| Failure::usage("--hwm is too large"))?;
            set(SNDHWM, messages);
            set(RCVHWM, messages);
        }
        if let Some(bytes) = link.max_size {
            let bytes = i64::try_from(bytes).map_err(|_| Failure::usage("--max-size is too large"))?;
            options.push((MAXMSGSIZE, bytes.to_ne_bytes().to_vec()));
        }
        if let Some(id) = &link.identity {
            if id.is_empty() || id.len() > 255 {
                return Err(Failure::usage("--identity has 1 to 255 bytes"));
            }
            options.push((ROUTING_ID, id.as_bytes().to_vec()));
        }
        options.extend(tls::options(&link.security.tls, &all)?);
        let topics =
            saved.map(|saved| saved.subscribe.iter().map(|topic| topic.as_bytes().to_vec()).collect());
        Ok(Job {
            kind,
            endpoints: all,
            security: Security::new(&link.security, saved, config)?,
            options,
            topics: topics.unwrap_or_default(),
            replay: None,
            patterns: Vec::new(),
            source: None,
            sink: Sink::new(Form::Nothing, Vec::new(), false)?,
            answer: None,
            delay: Duration::ZERO,
            interval: None,
            count: link.count,
            timeout: link.timeout,
            lasting: link.lasting,
            wait: 0,
            one_way: false,
            quiet: link.quiet,
            verbose: link.verbose,
        })
    }

    /// Sets the topics. Subscribes to everything if `topics` is empty and `all` is set.
    pub fn subscribe(&mut self, topics: &[String], all: bool) -> Result<()> {
        if !topics.is_empty() {
            if !socket::subscribes(self.kind) {
                return Err(Failure::usage(format!("{} sockets do not subscribe", self.kind.name()))
                    .hint("use --subscribe with sub, xsub or dish"));
            }
            self.topics = topics.iter().map(|topic| topic.as_bytes().to_vec()).collect();
        }
        if self.topics.is_empty() && all {
            self.topics.push(Vec::new());
        }
        Ok(())
    }

    /// Sets the source. Reads standard input if there are no messages and `stdin` is set.
    pub fn send(&mut self, args: &Sending, messages: Vec<String>, link: &Link, stdin: bool) -> Result<()> {
        let given = [messages.as_slice(), &args.literal, &args.message].concat();
        let separator = separator(link, self.kind)?;
        let escapes = args.escapes || socket::needs_address(self.kind);
        let interval = args.interval.or(args.rate);
        (self.delay, self.interval) = (args.delay, interval);
        let part = |text: &str| -> Result<Template> {
            if args.as_is && !escapes {
                return Ok(Template::literal(text.as_bytes()));
            }
            let bytes = if escapes {
                unescape(text.as_bytes()).map_err(|why| Failure::usage(format!("{text:?}: {why}")))?
            } else {
                text.as_bytes().to_vec()
            };
            Ok(match std::str::from_utf8(&bytes) {
                Ok(text) if !args.as_is => Template::parse(text, template::is_sendable),
                _ => Template::literal(&bytes),
            })
        };
        let prefix = args.to.as_deref().map(&part).transpose()?;
        let whole = |parts: Vec<Template>| prefix.iter().cloned().chain(parts).collect::<Vec<_>>();
        let mut all = Vec::new();
        for message in &given {
            let parts = crate::format::split(message.as_bytes(), separator.as_deref());
            let parts = parts.into_iter().map(|bytes| part(&String::from_utf8_lossy(bytes)));
            all.push(whole(parts.collect::<Result<_>>()?));
        }
        if !args.part.is_empty() {
            all.push(whole(args.part.iter().map(|text| part(text)).collect::<Result<_>>()?));
        }
        if !all.is_empty() && !args.file.is_empty() {
            return Err(Failure::usage("messages come either from the command line or from --file"));
        }
        all.iter().try_for_each(|parts| check_sizes(parts))?;
        prefix.iter().map(std::slice::from_ref).try_for_each(check_sizes)?;
        let endless = interval.is_some() || self.count.is_some() || self.kind == SocketType::Rep;
        if !all.is_empty() {
            self.source = Some(Source::Given { messages: all, next: 0, endless });
            return Ok(());
        }
        let mut files = args.file.clone();
        if files.is_empty() {
            if !stdin {
                return Ok(());
            }
            files.push(PathBuf::from("-"));
            if !self.quiet && io::stdin().is_terminal() && io::stderr().is_terminal() {
                notice!("taut: messages from the terminal, one per line; Ctrl-D ends the input");
            }
        }
        let format = args.input.unwrap_or(link.format);
        let decoder = move |name: &str| Decoder::new(format, separator.clone(), escapes, name);
        let prefix = prefix
            .map(|part| part.fill(|name, argument, out| template::put_sendable(name, argument, 0, out)));
        self.source = Some(Source::Files(Files::new(files, prefix, decoder)));
        Ok(())
    }

    /// Sets the destination of received messages.
    pub fn receive(&mut self, args: &Receiving, link: &Link) -> Result<()> {
        let form = match &args.print {
            Some(text) => {
                let text =
                    unescape(text.as_bytes()).map_err(|why| Failure::usage(format!("--print: {why}")))?;
                Form::Print(Template::parse(&String::from_utf8_lossy(&text), sink::is_printable))
            }
            None => Form::Format(args.output.unwrap_or(link.format)),
        };
        let separator = separator(link, self.kind)?.unwrap_or_else(|| b"\t".to_vec());
        self.sink = Sink::new(form, separator, args.timestamp)?;
        if let Some(command) = &args.through {
            self.answer = Some(Answer::Through(command.clone()));
        }
        Ok(())
    }
}

/// Fails if the `{size:N}` of a message are malformed or too large.
fn check_sizes(parts: &[Template]) -> Result<()> {
    let limit = format!("a message has at most {} bytes of {{size:N}} (1 GiB)", template::LONGEST);
    let sizes = parts.iter().map(Template::sizes).collect::<std::result::Result<Vec<u64>, String>>();
    let sizes = sizes.map_err(|wrong| Failure::usage(format!("{wrong}: N must be a number, and {limit}")))?;
    match sizes.into_iter().fold(0, u64::saturating_add) {
        0..=template::LONGEST => Ok(()),
        total => Err(Failure::usage(format!("{limit}, not {total}"))),
    }
}

/// Returns the separator of parts with its escapes decoded. The default is a tab, in input and
/// output, if a message needs an address.
fn separator(link: &Link, kind: SocketType) -> Result<Option<Vec<u8>>> {
    match &link.separator {
        Some(text) => {
            let bytes =
                unescape(text.as_bytes()).map_err(|why| Failure::usage(format!("--separator: {why}")))?;
            Ok(Some(bytes))
        }
        None if socket::needs_address(kind) || kind == SocketType::Radio => Ok(Some(b"\t".to_vec())),
        None => Ok(None),
    }
}
