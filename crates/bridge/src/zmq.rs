//! The ZeroMQ side of a route: one socket of the type that its file names.

use std::sync::OnceLock;

use tautline::monitor::{EventKind, RouteReport};
use tautline::{Context, Error, Message, Multipart, Result, aio, kind};

use crate::config::{Link, SocketType};
use crate::fault::Fault;

// The numbers in `zmq.h`.
const DISCONNECT_MSG: i32 = 111;
const SUBSCRIBE: i32 = 6;
const RCVHWM: i32 = 24;
const SNDHWM: i32 = 23;
const MAXMSGSIZE: i32 = 22;
const ROUTER_MANDATORY: i32 = 33;
const XPUB_NODROP: i32 = 69;
const LINGER: i32 = 17;
const MAX_SUBSCRIPTIONS: i32 = 0x5441_0010;

/// What may still be sent to peers after the end of a route.
const LINGER_MS: i32 = 2000;

/// Bytes that the subscriptions of one peer may take. A peer that wants more is disconnected.
const SUBSCRIPTION_BYTES: i64 = 64 << 20;

/// A socket, whatever its type.
#[derive(Debug)]
pub enum Socket {
    /// Subscribes.
    Sub(aio::Sub),
    /// Takes work.
    Pull(aio::Pull),
    /// Publishes, and sees its subscriptions.
    Pub(aio::XPub),
    /// Hands out work.
    Push(aio::Push),
    /// Knows its peers.
    Router(aio::Router),
    /// Asks its peers in turn; and what happens to its connections.
    Dealer(aio::Dealer, Box<aio::Monitor>),
}

/// The message that a ROUTER receives when a peer has disconnected. It is secret, so that no peer
/// can send it itself. `None` if there are no random numbers.
fn farewell() -> Option<&'static [u8]> {
    static WORD: OnceLock<Option<[u8; 32]>> = OnceLock::new();
    let word = WORD.get_or_init(|| {
        let mut word = [0; 32];
        getrandom::fill(&mut word).is_ok().then_some(word)
    });
    word.as_ref().map(|word| &word[..])
}

/// Whether a message says that its peer has gone.
pub fn is_farewell(message: &Multipart) -> bool {
    message.len() == 1 && farewell() == Some(message[0].as_bytes())
}

/// What a socket has to say.
#[derive(Debug)]
pub enum Heard {
    /// A message.
    Message(Multipart),
    /// A peer is there.
    Came,
    /// A peer has gone.
    Gone,
}

/// Does the same with each type that receives.
macro_rules! receiving {
    ($socket:expr, $one:ident => $do:expr) => {
        match $socket {
            Socket::Sub($one) => $do,
            Socket::Pull($one) => $do,
            Socket::Pub($one) => $do,
            Socket::Router($one) => $do,
            Socket::Dealer($one, _) => $do,
            // Nothing comes to a PUSH.
            Socket::Push(_) => std::future::pending().await,
        }
    };
}

/// Does the same with each type that sends.
macro_rules! sending {
    ($socket:expr, $one:ident => $do:expr) => {
        match $socket {
            Socket::Pub($one) => $do,
            Socket::Push($one) => $do,
            Socket::Router($one) => $do,
            Socket::Dealer($one, _) => $do,
            Socket::Sub(_) | Socket::Pull(_) => Err(Error::WouldBlock),
        }
    };
}

impl Socket {
    /// Bound and connected as the file says, whose line is for the fault.
    pub fn open(context: &Context, link: &Link, line: usize) -> std::result::Result<Socket, Fault> {
        let fault = |error: Error| Fault::new(line, error.to_string());
        Ok(match link.socket {
            SocketType::Sub => Socket::Sub(open(context, link).map_err(fault)?),
            SocketType::Pull => Socket::Pull(open(context, link).map_err(fault)?),
            SocketType::Pub => Socket::Pub(open(context, link).map_err(fault)?),
            SocketType::Push => Socket::Push(open(context, link).map_err(fault)?),
            SocketType::Router => Socket::Router(open(context, link).map_err(fault)?),
            SocketType::Dealer => {
                let mut socket = build(context, link).map_err(fault)?;
                // Before any peer can come.
                let events = socket.monitor().map_err(fault)?.into_async();
                Socket::Dealer(attach(socket, link).map_err(fault)?, Box::new(events))
            }
        })
    }

    /// Shows what the route has done with its messages, where the process is observed.
    pub fn show(&mut self, tell: impl Fn() -> RouteReport + Send + Sync + 'static) {
        match self {
            Socket::Sub(socket) => socket.show_route(tell),
            Socket::Pull(socket) => socket.show_route(tell),
            Socket::Pub(socket) => socket.show_route(tell),
            Socket::Push(socket) => socket.show_route(tell),
            Socket::Router(socket) => socket.show_route(tell),
            Socket::Dealer(socket, _) => socket.show_route(tell),
        }
    }

    /// The next message. Dropped before its end, nothing was taken.
    pub async fn recv(&mut self) -> Result<Multipart> {
        receiving!(self, socket => socket.recv_multipart().await)
    }

    /// The next message, if it has come already.
    pub fn try_recv(&mut self) -> Result<Multipart> {
        match self {
            Socket::Sub(socket) => socket.get_mut().try_recv_multipart(),
            Socket::Pull(socket) => socket.get_mut().try_recv_multipart(),
            Socket::Pub(socket) => socket.get_mut().try_recv_multipart(),
            Socket::Router(socket) => socket.get_mut().try_recv_multipart(),
            Socket::Dealer(socket, _) => socket.get_mut().try_recv_multipart(),
            Socket::Push(_) => Err(Error::WouldBlock),
        }
    }

    /// The next message, or what is next to tell about a peer of a DEALER. Dropped before its end,
    /// nothing was taken.
    pub async fn hear(&mut self) -> Result<Heard> {
        let Socket::Dealer(socket, events) = self else {
            return self.recv().await.map(Heard::Message);
        };
        loop {
            tokio::select! {
                // What a peer has said before it went counts.
                biased;
                message = socket.recv_multipart() => return message.map(Heard::Message),
                event = events.recv() => match event?.kind {
                    EventKind::HandshakeSucceeded => return Ok(Heard::Came),
                    EventKind::Disconnected => return Ok(Heard::Gone),
                    _ => {}
                },
            }
        }
    }

    /// Sends; waits while every peer is at its high-water mark. Dropped before its end, nothing
    /// was sent.
    pub async fn send(&mut self, parts: Vec<Message>) -> Result<()> {
        let message = Multipart::from(parts);
        sending!(self, socket => socket.send_multipart(message).await)
    }

    /// Sends if there is room.
    pub fn try_send(&mut self, parts: Vec<Message>) -> Result<()> {
        sending!(self, socket => socket.get_mut().try_send_multipart(parts))
    }
}

fn open<K: kind::Kind>(context: &Context, link: &Link) -> Result<aio::Socket<K>> {
    attach(build(context, link)?, link)
}

/// With its options.
fn build<K: kind::Kind>(context: &Context, link: &Link) -> Result<tautline::Socket<K>> {
    let mut builder = context.builder::<K>();
    let int = |value: i32| value.to_ne_bytes();
    builder = builder.raw_option(LINGER, &int(LINGER_MS));
    if let Some(hwm) = link.hwm.and_then(|hwm| i32::try_from(hwm).ok()) {
        builder = builder.raw_option(RCVHWM, &int(hwm)).raw_option(SNDHWM, &int(hwm));
    }
    if let Some(bytes) = link.max_message_bytes.and_then(|bytes| i64::try_from(bytes).ok()) {
        builder = builder.raw_option(MAXMSGSIZE, &bytes.to_ne_bytes());
    }
    if link.socket == SocketType::Router {
        // A peer that has gone is an error, which the route sees.
        builder = builder.raw_option(ROUTER_MANDATORY, &int(1));
    }
    if link.notify {
        let word = farewell().ok_or(Error::WouldBlock)?;
        builder = builder.raw_option(DISCONNECT_MSG, word);
    }
    if link.socket == SocketType::Pub {
        builder = builder.raw_option(MAX_SUBSCRIPTIONS, &SUBSCRIPTION_BYTES.to_ne_bytes());
    }
    if link.patient {
        builder = builder.raw_option(XPUB_NODROP, &int(1));
    }
    let mut socket = builder.build()?;
    for topic in &link.subscribe {
        socket.set_raw_option(SUBSCRIBE, topic.as_bytes())?;
    }
    Ok(socket)
}

/// Bound and connected.
fn attach<K: kind::Kind>(mut socket: tautline::Socket<K>, link: &Link) -> Result<aio::Socket<K>> {
    for endpoint in &link.bind {
        socket.bind(endpoint)?;
    }
    for endpoint in &link.connect {
        socket.connect(endpoint)?;
    }
    Ok(socket.into_async())
}
