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
        Command::Send(args) => match sent_by(args.kind) {
            T::Pub => publish(&args.what, 1),
            kind => sending(kind, &args.what),
        },
        Command::Recv(args) => {
            let kind = received_by(args.kind);
            let args = RecvOnly {
                endpoints: args.endpoints,
                subscribe: args.subscribe,
                receiving: args.receiving,
                link: args.link,
            };
            receiving(kind, &args)
        }
        Command::Record(args) => {
            let (kind, file) = (received_by(args.kind), args.file);
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
        Command::Topics(Topics::Pub(args)) => publish_about(*args),
        Command::Topics(Topics::Sub(args)) => subscribe_to(*args),
        Command::Push(args) => sending(T::Push, &args),
        Command::Pull(args) => receiving(T::Pull, &args),
        Command::Req(args) => both(T::Req, &args),
        Command::Rep(args) => both(T::Rep, &args),
        Command::Dealer(args) => both(T::Dealer, &args),
        Command::Router(args) => both(T::Router, &args),
        Command::Pair(args) => both(T::Pair, &args),
        Command::Xpub(args) => both(T::XPub, &args),
        Command::Xsub(args) => both(T::XSub, &args),
        Command::Stream(args) => both(T::Stream, &args),
        Command::Client(args) => both(T::Client, &args),
        Command::Server(args) => both(T::Server, &args),
        Command::Radio(args) => sending(T::Radio, &args),
        Command::Dish(args) => receiving(T::Dish, &args),
        Command::Scatter(args) => sending(T::Scatter, &args),
        Command::Gather(args) => receiving(T::Gather, &args),
        Command::Peer(args) => both(T::Peer, &args),
        Command::Channel(args) => both(T::Channel, &args),
        Command::Dgram(args) => both(T::Dgram, &args),
        _ => Err(Failure::usage("not a command of a socket")),
    }
}

/// Returns the socket type of a `--type` value. XPUB counts as PUB here, because it is a PUB that
/// sees its subscriptions.
fn sent_by(kind: SendType) -> SocketType {
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

fn received_by(kind: RecvType) -> SocketType {
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
    let (kind, wait) = match sent_by(kind) {
        SocketType::Pub if args.wait > 0 => (SocketType::XPub, args.wait),
        kind => (kind, 0),
    };
    let mut job = Job::new(kind, &endpoints, &args.link, &config)?;
    job.source = Some(Source::Recorded(Recorded::new(file, args.speed)));
    // An XPUB reads its subscriptions.
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

fn publish(args: &SendOnly, wait: u64) -> Result<Job> {
    let (endpoints, messages) = split_words(&args.words.words, &args.link);
    publishing(&endpoints, messages, &args.sending, &args.link, wait)
}

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

/// Returns the job that publishes on a topic of a space.
fn publish_about(mut args: TopicsPub) -> Result<Job> {
    if args.topic.is_empty() || args.topic.contains('*') {
        return Err(Failure::usage(format!(
            "{:?} is not a valid topic: it is empty or contains *",
            args.topic
        )));
    }
    if args.sending.to.replace(args.topic).is_some() {
        return Err(Failure::usage("the first argument is the topic, so --to cannot be used"));
    }
    let endpoints = space(&args.space, &args.link);
    publishing(&endpoints, args.bodies, &args.sending, &args.link, args.wait)
}

/// Returns the endpoint of a space, unless the options give endpoints.
fn space(name: &str, link: &Link) -> Vec<String> {
    match link.bind.is_empty() && link.connect.is_empty() {
        true => vec![topics::endpoint(name)],
        false => Vec::new(),
    }
}

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

/// Returns the job that subscribes to topics of a space.
fn subscribe_to(args: TopicsSub) -> Result<Job> {
    let wrong = |error: tautline::Error| Failure::usage(error.to_string());
    let patterns = args.patterns.iter().map(|text| text.parse::<Pattern>().map_err(wrong));
    let patterns: Vec<Pattern> = patterns.collect::<Result<_>>()?;
    let mut job = subscribe(&Subscribe {
        endpoints: space(&args.space, &args.link),
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
        let watch = Watch::new(sink::colours(&io::stdout()));
        job.sink = Sink::new(Form::Watch(Box::new(watch)), Vec::new(), false)?;
    }
    Ok(job)
}

fn both(kind: SocketType, args: &Exchange) -> Result<Job> {
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
    // XSUB sends only subscriptions, and only on request.
    let listens = kind == SocketType::XSub;
    job.send(&args.sending, messages, &args.link, !answers && !listens)?;
    job.subscribe(&args.subscribe, listens && job.source.is_none())?;
    Ok(job)
}
