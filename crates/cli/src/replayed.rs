//! `--replay`: a publisher that keeps its last messages, and a subscriber that requests missed
//! messages. Both implement the common socket trait.

use std::thread;

use tautline::kind::Kind;
use tautline::monitor::Monitor;
use tautline::replay::{Delivery, ReliablePub, ReliableSub, Start};
use tautline::{Builder, Context, Error, Message, PollItem, Pull, Push};
use tautline_proto::Secret;

use crate::exchange::Job;
use crate::failure::{Failure, Result};
use crate::socket::{AnySocket, TransferError};

/// Settings of `--replay`.
pub enum Replay {
    /// Publisher: keep this number of messages in a ring, and serve it at this endpoint.
    Keep { ring: String, messages: usize },
    /// Subscriber: request messages from the ring at this endpoint.
    From { ring: String, start: Start },
}

/// Endpoint between the thread of the subscriber (sender) and the main loop (receiver).
const DELIVERIES: &str = "inproc://deliveries";

/// Opens the socket of a job.
pub fn open(context: &Context, job: &Job, replay: &Replay) -> Result<Box<dyn AnySocket>> {
    match replay {
        Replay::Keep { ring, messages } => {
            let publisher = ReliablePub::builder(context).keep(*messages);
            let mut publisher = publisher.with_socket(|socket| with_options(socket, job)).build()?;
            let bound = publisher.serve(ring)?;
            if bound != *ring && !job.quiet {
                notice!("replay bound to {bound}");
            }
            Ok(Box::new(RingPublisher(publisher)))
        }
        Replay::From { ring, start } => {
            let [publisher] = &job.endpoints[..] else {
                return Err(Failure::usage(
                    "--replay works with one publisher, because each publisher has its own message numbers",
                ));
            };
            if publisher.bind {
                return Err(Failure::usage(
                    "--replay connects to its publisher, so it cannot be combined with --bind",
                ));
            }
            let subscriber = ReliableSub::builder(context).start(*start);
            let mut subscriber = subscriber.with_socket(|socket| with_options(socket, job));
            for topic in &job.topics {
                subscriber = subscriber.subscribe(topic);
            }
            let subscriber = subscriber.connect(&publisher.address, ring)?;
            let mut pull = Pull::new(context)?;
            pull.bind(DELIVERIES)?;
            let push = Push::builder(context).connect(DELIVERIES)?;
            Ok(Box::new(RingSubscriber { waiting: Some((subscriber, push)), pull, quiet: job.quiet }))
        }
    }
}

/// Sets the keys, passwords and other options of the command line. The socket of the ring inherits
/// them.
fn with_options<K: Kind>(mut socket: Builder<K>, job: &Job) -> Builder<K> {
    let mut options: Vec<(i32, Secret<Vec<u8>>)> = Vec::new();
    // Fails only if the closure fails.
    let _ = job.security.options(|number, value| {
        options.push((number, Secret::new(value.to_vec())));
        Ok(())
    });
    for (number, value) in &options {
        socket = socket.raw_option(*number, value);
    }
    for (number, value) in &job.options {
        socket = socket.raw_option(*number, value);
    }
    socket
}

/// Publisher with a ring.
struct RingPublisher(ReliablePub);

impl AnySocket for RingPublisher {
    fn bind(&mut self, endpoint: &str) -> tautline::Result<String> {
        self.0.bind(endpoint)
    }

    fn connect(&mut self, endpoint: &str) -> tautline::Result<()> {
        self.0.connect(endpoint)
    }

    fn set(&mut self, number: i32, value: &[u8]) -> tautline::Result<()> {
        self.0.socket().set_raw_option(number, value)
    }

    fn try_send(&mut self, parts: &[Vec<u8>]) -> std::result::Result<(), TransferError> {
        let [topic, body] = parts else {
            let why = "with --replay a message has two parts, the topic and the body: --to TOPIC, or -D";
            return Err(TransferError::Unfit(why.to_owned()));
        };
        self.0.send(&topic[..], &body[..])?;
        Ok(())
    }

    fn try_recv(&mut self) -> std::result::Result<Vec<Message>, TransferError> {
        Err(TransferError::Later)
    }

    fn item(&mut self, _: bool, write: bool) -> Option<PollItem<'_>> {
        write.then(|| PollItem::writable(self.0.socket()))
    }

    fn subscribe(&mut self, _: &[u8]) -> tautline::Result<()> {
        Ok(())
    }

    fn queued(&mut self) -> tautline::Result<u64> {
        Ok(self.0.socket().statistics()?.queued_out)
    }

    fn monitor(&mut self) -> tautline::Result<Monitor> {
        self.0.socket().monitor()
    }
}

/// Subscriber on its own thread, because it waits for two sockets and a timer. It sends its results
/// over inproc: a message has three parts, a loss has four, and a restart of the publisher has one.
struct RingSubscriber {
    /// Subscriber that starts with the first receive.
    waiting: Option<(ReliableSub, Push)>,
    pull: Pull,
    quiet: bool,
}

impl AnySocket for RingSubscriber {
    fn bind(&mut self, _: &str) -> tautline::Result<String> {
        Ok(String::new())
    }

    /// Does nothing: the socket is already connected.
    fn connect(&mut self, _: &str) -> tautline::Result<()> {
        Ok(())
    }

    fn set(&mut self, _: i32, _: &[u8]) -> tautline::Result<()> {
        Ok(())
    }

    fn try_send(&mut self, _: &[Vec<u8>]) -> std::result::Result<(), TransferError> {
        Err(TransferError::Later)
    }

    fn try_recv(&mut self) -> std::result::Result<Vec<Message>, TransferError> {
        if let Some((subscriber, push)) = self.waiting.take() {
            let started = thread::Builder::new().name("replay".to_owned());
            started.spawn(move || follow(subscriber, push)).map_err(|error| {
                TransferError::Unfit(format!("cannot start the thread for --replay: {error}"))
            })?;
        }
        loop {
            let parts = self.pull.try_recv_multipart()?.into_parts();
            match &parts[..] {
                [_, _, _] => return Ok(parts),
                _ if self.quiet => {}
                [_, first, last, _] => {
                    notice!(
                        "taut: messages {} to {} are lost",
                        first.to_string_lossy(),
                        last.to_string_lossy()
                    );
                }
                _ => notice!("taut: the publisher has restarted"),
            }
        }
    }

    fn item(&mut self, read: bool, _: bool) -> Option<PollItem<'_>> {
        read.then(|| PollItem::readable(&mut self.pull))
    }

    fn subscribe(&mut self, _: &[u8]) -> tautline::Result<()> {
        Ok(())
    }

    fn queued(&mut self) -> tautline::Result<u64> {
        Ok(0)
    }

    fn monitor(&mut self) -> tautline::Result<Monitor> {
        match &mut self.waiting {
            Some((subscriber, _)) => subscriber.socket().monitor(),
            None => self.pull.monitor(),
        }
    }
}

/// Forwards the results of the subscriber until the context ends.
fn follow(mut subscriber: ReliableSub, mut push: Push) {
    loop {
        let parts = match subscriber.recv() {
            Ok(Delivery::Message(update)) => {
                vec![update.topic, update.number.to_string().into(), update.body]
            }
            Ok(Delivery::Lost { first, last }) => {
                vec![Message::new(), first.to_string().into(), last.to_string().into(), Message::new()]
            }
            Ok(_) => vec![Message::new()],
            Err(Error::Interrupted) => continue,
            Err(_) => return,
        };
        if push.send_multipart(parts).is_err() {
            return;
        }
    }
}
