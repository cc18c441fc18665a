//! From the options of each command to its job.

use std::io::{self, IsTerminal};

use tautline::kind::SocketType;

use crate::args::{Command, Exchange, Link, RecvOnly, RecvType, SendOnly, SendType, Sending, Subscribe};
use crate::config::Config;
use crate::exchange::{Answer, Job, split_words};
use crate::failure::{Failure, Result};
use crate::sink::{self, Form, Sink};
use crate::socket;
use crate::watch::Watch;

/// The job of a command that sends or receives.
pub fn job(command: Command) -> Result<Job> {
    use SocketType as T;
    match command {
        Command::Send(args) => match args.kind {
            SendType::Push => sending(T::Push, &args.sending, &args.link),
            SendType::Pub => publish(&args.sending, &args.link, 1),
            SendType::Dealer => sending(T::Dealer, &args.sending, &args.link),
            SendType::Pair => sending(T::Pair, &args.sending, &args.link),
            SendType::Router => sending(T::Router, &args.sending, &args.link),
            SendType::Xpub => publish(&args.sending, &args.link, 1),
            SendType::Radio => sending(T::Radio, &args.sending, &args.link),
            SendType::Scatter => sending(T::Scatter, &args.sending, &args.link),
            SendType::Client => sending(T::Client, &args.sending, &args.link),
            SendType::Channel => sending(T::Channel, &args.sending, &args.link),
        },
        Command::Recv(args) => {
            let kind = match args.kind {
                RecvType::Pull => T::Pull,
                RecvType::Sub => T::Sub,
                RecvType::Dealer => T::Dealer,
                RecvType::Pair => T::Pair,
                RecvType::Router => T::Router,
                RecvType::Xsub => T::XSub,
                RecvType::Dish => T::Dish,
                RecvType::Gather => T::Gather,
                RecvType::Server => T::Server,
                RecvType::Channel => T::Channel,
            };
            let args = RecvOnly {
                endpoints: args.endpoints,
                subscribe: args.subscribe,
                receiving: args.receiving,
                link: args.link,
            };
            receiving(kind, &args)
        }
        Command::Pub(args) => publish(&args.sending, &args.link, args.wait),
        Command::Sub(args) => subscribe(&args),
        Command::Push(args) => send_only(T::Push, &args),
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
        Command::Radio(args) => send_only(T::Radio, &args),
        Command::Dish(args) => receiving(T::Dish, &args),
        Command::Scatter(args) => send_only(T::Scatter, &args),
        Command::Gather(args) => receiving(T::Gather, &args),
        Command::Peer(args) => both(T::Peer, &args),
        Command::Channel(args) => both(T::Channel, &args),
        Command::Dgram(args) => both(T::Dgram, &args),
        _ => Err(Failure::usage("not a command of a socket")),
    }
}

fn send_only(kind: SocketType, args: &SendOnly) -> Result<Job> {
    sending(kind, &args.sending, &args.link)
}

/// Of any type; what comes back is not shown, and the end is that of the messages.
fn sending(kind: SocketType, args: &Sending, link: &Link) -> Result<Job> {
    let config = Config::load()?;
    let (endpoints, messages) = split_words(&args.words, link);
    let mut job = Job::new(kind, &endpoints, link, &config)?;
    job.send(args, messages, link, true)?;
    job.one_way = true;
    Ok(job)
}

fn publish(args: &Sending, link: &Link, wait: u64) -> Result<Job> {
    let config = Config::load()?;
    let (endpoints, messages) = split_words(&args.words, link);
    // XPUB is a PUB that sees its subscriptions, which are waited for.
    let kind = if wait > 0 { SocketType::XPub } else { SocketType::Pub };
    let mut job = Job::new(kind, &endpoints, link, &config)?;
    job.send(args, messages, link, true)?;
    job.wait = wait;
    Ok(job)
}

fn receiving(kind: SocketType, args: &RecvOnly) -> Result<Job> {
    let config = Config::load()?;
    let mut job = Job::new(kind, &args.endpoints, &args.link, &config)?;
    if kind == SocketType::Dish && args.subscribe.is_empty() && job.topics.is_empty() {
        return Err(Failure::usage(
            "a DISH receives what is sent to the groups it has joined: --subscribe GROUP",
        ));
    }
    job.subscribe(&args.subscribe, matches!(kind, SocketType::Sub | SocketType::XSub))?;
    job.receive(&args.receiving, &args.link)?;
    Ok(job)
}

fn subscribe(args: &Subscribe) -> Result<Job> {
    let config = Config::load()?;
    let mut job = Job::new(SocketType::Sub, &args.endpoints, &args.link, &config)?;
    job.subscribe(&args.subscribe, true)?;
    job.receive(&args.receiving, &args.link)?;
    if args.watch {
        if !io::stdout().is_terminal() {
            return Err(Failure::usage("--watch needs a terminal").hint("without it every message is a line"));
        }
        let watch = Watch::new(sink::colours(&io::stdout()));
        job.sink = Sink::new(Form::Watch(Box::new(watch)), Vec::new(), false)?;
    }
    Ok(job)
}

fn both(kind: SocketType, args: &Exchange) -> Result<Job> {
    let config = Config::load()?;
    let (endpoints, messages) = split_words(&args.sending.words, &args.link);
    let mut job = Job::new(kind, &endpoints, &args.link, &config)?;
    job.receive(&args.receiving, &args.link)?;
    if args.echo {
        job.answer = Some(Answer::Echo);
    }
    let given = !messages.is_empty() || !args.sending.literal.is_empty();
    if args.echo && !socket::answers(kind) {
        return Err(Failure::usage(format!(
            "{} sockets do not answer: --echo is for those that do",
            kind.name()
        )));
    }
    if args.echo && given {
        return Err(Failure::usage("--echo answers what comes; there is nothing else to send"));
    }
    let answers = job.answer.is_some() && socket::answers(kind);
    // XSUB sends nothing but subscriptions, and only if told to.
    let listens = kind == SocketType::XSub;
    job.send(&args.sending, messages, &args.link, !answers && !listens)?;
    job.subscribe(&args.subscribe, listens && job.source.is_none())?;
    Ok(job)
}
