//! Turns the options of each command into a job.

use std::io::{self, IsTerminal};

use tautline::kind::SocketType;
use tautline::replay::Start;
use tautline::topics::{self, Pattern};

use crate::args::{
    self, Command, DirectionArg, Exchange, Link, Receiving, RecvOnly, RecvType, SendOnly, SendType, Sending,
    Subscribe, Topics, TopicsPub, TopicsSub,
};
use crate::config::{Config, expand};
use crate::endpoint;
use crate::exchange::{Answer, Job, split_words};
use crate::failure::{Failure, Result};
use crate::origin::Origin;
use crate::replayed::Replay;
use crate::sink::{self, Form, Sink};
use crate::socket;
use crate::source::{Recorded, Source};
use crate::watch::Watch;

/// Returns the job of a command that sends or receives.
pub fn job(command: Command) -> Result<Job> {
    use SocketType as T;
    match command {
        Command::Send(args) => match sender_type(args.kind) {
            T::Pub => publish(&args.what, 1),
            kind => sending(kind, &args.what),
        },
        Command::Recv(args) => {
            let kind = receiver_type(args.kind);
            let args = RecvOnly {
                endpoints: args.endpoints,
                subscribe: args.subscribe,
                receiving: args.receiving,
                link: args.link,
            };
            receiving(kind, &args)
        }
        Command::Record(args) => {
            let (kind, file) = (receiver_type(args.kind), args.file);
            let args = RecvOnly {
                endpoints: args.endpoints,
                subscribe: args.subscribe,
                receiving: Receiving::default(),
                link: args.link,
            };
            let mut job = receiving(kind, &args)?;
            job.sink = Sink::record(&expand(&file), Some(origin(&job)))?;
            Ok(job)
        }
        Command::Replay(args) => replay(&args),
        Command::Pub(args) => match &args.replay {
            None => publish(&args.what, args.wait),
            Some(ring) => {
                let mut job = publish(&args.what, 0)?;
                let ring = endpoint::one(ring, true)?.address;
                job.replay = Some(Replay::Keep { ring, messages: args.keep });
                Ok(job)
            }
        },
        Command::Sub(args) => subscribe(&args),
        Command::Topics(Topics::Pub(args)) => publish_topic(*args),
        Command::Topics(Topics::Sub(args)) => subscribe_topics(*args),
        Command::Push(args) => sending(T::Push, &args),
        Command::Pull(args) => receiving(T::Pull, &args),
        Command::Req(args) => exchanging(T::Req, &args),
        Command::Rep(args) => exchanging(T::Rep, &args),
        Command::Dealer(args) => exchanging(T::Dealer, &args),
        Command::Router(args) => exchanging(T::Router, &args),
        Command::Pair(args) => exchanging(T::Pair, &args),
        Command::Xpub(args) => exchanging(T::XPub, &args),
        Command::Xsub(args) => exchanging(T::XSub, &args),
        Command::Stream(args) => exchanging(T::Stream, &args),
        Command::Client(args) => exchanging(T::Client, &args),
        Command::Server(args) => exchanging(T::Server, &args),
        Command::Radio(args) => sending(T::Radio, &args),
        Command::Dish(args) => receiving(T::Dish, &args),
        Command::Scatter(args) => sending(T::Scatter, &args),
        Command::Gather(args) => receiving(T::Gather, &args),
        Command::Peer(args) => exchanging(T::Peer, &args),
        Command::Channel(args) => exchanging(T::Channel, &args),
        Command::Dgram(args) => exchanging(T::Dgram, &args),
        _ => Err(Failure::usage("not a command of a socket")),
    }
}

/// Returns the socket type for a `--type` of a sender. XPUB becomes PUB here. `publishing` and
/// `replay` select XPUB again if the command waits for subscriptions.
fn sender_type(kind: SendType) -> SocketType {
    match kind {
        SendType::Push => SocketType::Push,
        SendType::Pub | SendType::Xpub => SocketType::Pub,
        SendType::Dealer => SocketType::Dealer,
        SendType::Pair => SocketType::Pair,
        SendType::Router => SocketType::Router,
        SendType::Radio => SocketType::Radio,
        SendType::Scatter => SocketType::Scatter,
        SendType::Client => SocketType::Client,
        SendType::Channel => SocketType::Channel,
    }
}

/// Returns the socket type for a `--type` of a receiver.
fn receiver_type(kind: RecvType) -> SocketType {
    match kind {
        RecvType::Pull => SocketType::Pull,
        RecvType::Sub => SocketType::Sub,
        RecvType::Dealer => SocketType::Dealer,
        RecvType::Pair => SocketType::Pair,
        RecvType::Router => SocketType::Router,
        RecvType::Xsub => SocketType::XSub,
        RecvType::Dish => SocketType::Dish,
        RecvType::Gather => SocketType::Gather,
        RecvType::Server => SocketType::Server,
        RecvType::Channel => SocketType::Channel,
    }
}

/// Describes the recording socket.
fn origin(job: &Job) -> Origin {
    let [bind, connect] = [true, false].map(|bound| {
        let ends = job.endpoints.iter().filter(|endpoint| endpoint.bind == bound);
        // The port that the system will choose is not known yet.
        ends.map(|endpoint| endpoint.address.clone()).filter(|address| !address.ends_with(":*")).collect()
    });
    Origin { kind: job.kind.name().to_owned(), direction: DirectionArg::In, bind, connect }
}

/// Returns the job that replays a recording through a socket that can send. Without endpoints, it
/// uses the endpoints in the recording.
fn replay(args: &args::Replay) -> Result<Job> {
    let config = Config::load()?;
    let file = expand(&args.file);
    let named = [&args.endpoints, &args.link.bind, &args.link.connect];
    let (kind, endpoints) = if named.iter().all(|endpoints| endpoints.is_empty()) {
        let player = Origin::read(&file)?.and_then(|origin| origin.player());
        let (kind, endpoints) = player.ok_or_else(|| {
            Failure::usage(format!(
                "{}: the file contains no endpoint to send its messages to",
                file.display()
            ))
            .hint("name an endpoint, for example tcp://127.0.0.1:5555, and a --type")
        })?;
        (args.kind.unwrap_or(kind), endpoints)
    } else {
        (args.kind.unwrap_or(SendType::Pub), args.endpoints.clone())
    };
    let (kind, wait) = match sender_type(kind) {
        SocketType::Pub if args.wait > 0 => (SocketType::XPub, args.wait),
        kind => (kind, 0),
    };
    let mut job = Job::new(kind, &endpoints, &args.link, &config)?;
    job.source = Some(Source::Recorded(Recorded::new(file, args.speed)));
    // An XPUB must read its subscriptions, so it is not one-way.
    (job.wait, job.one_way) = (wait, kind != SocketType::XPub);
    Ok(job)
}

/// Returns the job of a sender of any type. It discards received messages and ends with its last
/// message.
fn sending(kind: SocketType, args: &SendOnly) -> Result<Job> {
    let config = Config::load()?;
    let (endpoints, messages) = split_words(&args.words.words, &args.link);
    let mut job = Job::new(kind, &endpoints, &args.link, &config)?;
    job.send(&args.sending, messages, &args.link, true)?;
    job.one_way = true;
    Ok(job)
}

/// Returns the job that publishes the messages in the arguments, after `wait` subscriptions.
fn publish(args: &SendOnly, wait: u64) -> Result<Job> {
    let (endpoints, messages) = split_words(&args.words.words, &args.link);
    publishing(&endpoints, messages, &args.sending, &args.link, wait)
}

/// Returns the job that publishes `messages` at `endpoints`, after `wait` subscriptions.
fn publishing(
    endpoints: &[String],
    messages: Vec<String>,
    args: &Sending,
    link: &Link,
    wait: u64,
) -> Result<Job> {
    let config = Config::load()?;
    // Use XPUB to wait for subscriptions: it sends like PUB and receives the subscriptions.
    let kind = if wait > 0 { SocketType::XPub } else { SocketType::Pub };
    let mut job = Job::new(kind, endpoints, link, &config)?;
    job.send(args, messages, link, true)?;
    job.wait = wait;
    Ok(job)
}

/// Returns the job of `taut topics pub`: publishes on a topic in a space (a named set of publishers
/// and subscribers, see [`topics`]).
fn publish_topic(mut args: TopicsPub) -> Result<Job> {
    if args.topic.is_empty() || args.topic.contains('*') {
        return Err(Failure::usage(format!(
            "{:?} is not a valid topic: it is empty or contains *",
            args.topic
        )));
    }
    if args.sending.to.replace(args.topic).is_some() {
        return Err(Failure::usage("the first argument is the topic, so --to cannot be used"));
    }
    let endpoints = space_endpoints(&args.space, &args.link);
    publishing(&endpoints, args.bodies, &args.sending, &args.link, args.wait)
}

/// Returns the endpoint of a space, or an empty list if `--bind` or `--connect` gives endpoints.
fn space_endpoints(name: &str, link: &Link) -> Vec<String> {
    match link.bind.is_empty() && link.connect.is_empty() {
        true => vec![topics::endpoint(name)],
        false => Vec::new(),
    }
}

/// Returns the job of a socket that receives.
fn receiving(kind: SocketType, args: &RecvOnly) -> Result<Job> {
    let config = Config::load()?;
    let mut job = Job::new(kind, &args.endpoints, &args.link, &config)?;
    if kind == SocketType::Dish && args.subscribe.is_empty() && job.topics.is_empty() {
        return Err(Failure::usage("a DISH receives only messages of its groups: give --subscribe GROUP"));
    }
    job.subscribe(&args.subscribe, matches!(kind, SocketType::Sub | SocketType::XSub))?;
    job.receive(&args.receiving, &args.link)?;
    Ok(job)
}

/// Returns the job of `taut topics sub`: subscribes to topics in a space.
fn subscribe_topics(args: TopicsSub) -> Result<Job> {
    let wrong = |error: tautline::Error| Failure::usage(error.to_string());
    let patterns = args.patterns.iter().map(|text| text.parse::<Pattern>().map_err(wrong));
    let patterns: Vec<Pattern> = patterns.collect::<Result<_>>()?;
    let mut job = subscribe(&Subscribe {
        endpoints: space_endpoints(&args.space, &args.link),
        subscribe: patterns.iter().map(|pattern| pattern.prefix().to_owned()).collect(),
        replay: None,
        from: Start::Live,
        watch: args.watch,
        receiving: args.receiving,
        link: args.link,
    })?;
    job.patterns = patterns;
    Ok(job)
}

fn subscribe(args: &Subscribe) -> Result<Job> {
    let config = Config::load()?;
    let mut job = Job::new(SocketType::Sub, &args.endpoints, &args.link, &config)?;
    job.subscribe(&args.subscribe, true)?;
    job.receive(&args.receiving, &args.link)?;
    if let Some(ring) = &args.replay {
        job.replay = Some(Replay::From { ring: endpoint::one(ring, false)?.address, start: args.from });
    }
    if args.watch {
        if !io::stdout().is_terminal() {
            return Err(Failure::usage("--watch needs a terminal")
                .hint("without --watch, each message is printed on its own line"));
        }
        if sink::is_dumb() {
            return Err(Failure::usage(
                "--watch needs a terminal that can move its cursor, but TERM is dumb",
            )
            .hint("without --watch, each message is printed on its own line"));
        }
        let watch = Watch::new(sink::colours(&io::stdout()));
        job.sink = Sink::new(Form::Watch(Box::new(watch)), Vec::new(), false)?;
    }
    Ok(job)
}

/// Returns the job of a socket that sends and receives.
fn exchanging(kind: SocketType, args: &Exchange) -> Result<Job> {
    let config = Config::load()?;
    let (endpoints, messages) = split_words(&args.words.words, &args.link);
    let mut job = Job::new(kind, &endpoints, &args.link, &config)?;
    job.receive(&args.receiving, &args.link)?;
    if args.echo {
        job.answer = Some(Answer::Echo);
    }
    let given = !messages.is_empty() || !args.sending.literal.is_empty();
    if args.echo && !socket::answers(kind) {
        return Err(Failure::usage(format!(
            "{} sockets do not reply, so --echo cannot be used",
            kind.name()
        )));
    }
    if args.echo && given {
        return Err(Failure::usage(
            "--echo sends back each received message, so other messages cannot be given",
        ));
    }
    let answers = job.answer.is_some() && socket::answers(kind);
    // Subscriptions are the only messages that most XSUBs send. So an XSUB does not read standard
    // input: it sends only the messages in the arguments.
    let listens = kind == SocketType::XSub;
    job.send(&args.sending, messages, &args.link, !answers && !listens)?;
    job.subscribe(&args.subscribe, listens && job.source.is_none())?;
    Ok(job)
}
