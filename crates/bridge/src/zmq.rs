//! The ZeroMQ side of a route: one socket of the type that the file names.

use std::sync::OnceLock;

use tautline::monitor::{EventKind, RouteReport};
use tautline::{Context, Error, Message, Multipart, Result, aio, kind};

use crate::config::{Link, SocketType};
use crate::fault::BridgeError;

// Option numbers from `zmq.h`.
const DISCONNECT_MSG: i32 = 111;
const SUBSCRIBE: i32 = 6;
const RCVHWM: i32 = 24;
const SNDHWM: i32 = 23;
const MAXMSGSIZE: i32 = 22;
const ROUTER_MANDATORY: i32 = 33;
const XPUB_NODROP: i32 = 69;
const LINGER: i32 = 17;
const MAX_SUBSCRIPTIONS: i32 = 0x5441_0010;

/// Time for sending queued messages to peers after the end of a route.
const LINGER_MS: i32 = 2000;

/// Memory limit for the subscriptions of one peer. A peer that exceeds it is disconnected.
const SUBSCRIPTION_BYTES: i64 = 64 << 20;

/// A socket of any type.
#[derive(Debug)]
pub enum Socket {
    /// Subscribes.
    Sub(aio::Sub),
    /// Receives work.
    Pull(aio::Pull),
    /// Publishes, and receives the subscriptions of its peers.
    Pub(aio::XPub),
    /// Distributes work.
    Push(aio::Push),
    /// Addresses each peer by its routing id.
    Router(aio::Router),
    /// Asks its peers in turn. The monitor reports its connections.
    Dealer(aio::Dealer, Box<aio::Monitor>),
}

/// Returns the message that a ROUTER receives when a peer has disconnected. Its content is random
/// and secret, because a peer must not be able to send it. `None` if there are no random numbers.
fn disconnect_message() -> Option<&'static [u8]> {
    static WORD: OnceLock<Option<[u8; 32]>> = OnceLock::new();
    let word = WORD.get_or_init(|| {
        let mut word = [0; 32];
        getrandom::fill(&mut word).is_ok().then_some(word)
    });
    word.as_ref().map(|word| &word[..])
}

/// True if the message reports that its peer has disconnected.
pub fn is_disconnect_message(message: &Multipart) -> bool {
    message.len() == 1 && disconnect_message() == Some(message[0].as_bytes())
}

/// Input of a socket: a message, or a change of its connections.
#[derive(Debug)]
pub enum SocketInput {
    /// A message.
    Message(Multipart),
    /// A peer has connected.
    Connected,
    /// A peer has disconnected.
    Disconnected,
}

/// Applies an expression to each type that receives.
macro_rules! receiving {
    ($socket:expr, $one:ident => $do:expr) => {
        match $socket {
            Socket::Sub($one) => $do,
            Socket::Pull($one) => $do,
            Socket::Pub($one) => $do,
            Socket::Router($one) => $do,
            Socket::Dealer($one, _) => $do,
            // A PUSH never receives.
            Socket::Push(_) => std::future::pending().await,
        }
    };
}

/// Applies an expression to each type that sends.
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
    /// Opens a socket, and binds and connects it as the file says. A fault names `line`.
    pub fn open(context: &Context, link: &Link, line: usize) -> std::result::Result<Socket, BridgeError> {
        let fault = |error: Error| BridgeError::new(line, error.to_string());
        Ok(match link.socket {
            SocketType::Sub => Socket::Sub(open(context, link).map_err(fault)?),
            SocketType::Pull => Socket::Pull(open(context, link).map_err(fault)?),
            SocketType::Pub => Socket::Pub(open(context, link).map_err(fault)?),
            SocketType::Push => Socket::Push(open(context, link).map_err(fault)?),
            SocketType::Router => Socket::Router(open(context, link).map_err(fault)?),
            SocketType::Dealer => {
                let mut socket = build(context, link).map_err(fault)?;
                // Create the monitor before a peer can connect.
                let events = socket.monitor().map_err(fault)?.into_async();
                Socket::Dealer(attach(socket, link).map_err(fault)?, Box::new(events))
            }
        })
    }

    /// Reports the route's counters if the process is observed.
    pub fn set_route_report(&mut self, tell: impl Fn() -> RouteReport + Send + Sync + 'static) {
        match self {
            Socket::Sub(socket) => socket.set_route_report(tell),
            Socket::Pull(socket) => socket.set_route_report(tell),
            Socket::Pub(socket) => socket.set_route_report(tell),
            Socket::Push(socket) => socket.set_route_report(tell),
            Socket::Router(socket) => socket.set_route_report(tell),
            Socket::Dealer(socket, _) => socket.set_route_report(tell),
        }
    }

    /// Receives the next message. Cancel-safe: a cancelled call has taken no message.
    pub async fn recv(&mut self) -> Result<Multipart> {
        receiving!(self, socket => socket.recv_multipart().await)
    }

    /// Returns the next message, if it has already arrived.
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

    /// Returns the next message, or the next connection event of a DEALER. Cancel-safe: a
    /// cancelled call has taken no message.
    pub async fn recv_input(&mut self) -> Result<SocketInput> {
        let Socket::Dealer(socket, events) = self else {
            return self.recv().await.map(SocketInput::Message);
        };
        loop {
            tokio::select! {
                // Messages of a peer come before the event of its disconnection.
                biased;
                message = socket.recv_multipart() => return message.map(SocketInput::Message),
                event = events.recv() => match event?.kind {
                    EventKind::HandshakeSucceeded => return Ok(SocketInput::Connected),
                    EventKind::Disconnected => return Ok(SocketInput::Disconnected),
                    _ => {}
                },
            }
        }
    }

    /// Sends a message. Waits while every peer is at its high-water mark. Cancel-safe: a cancelled
    /// call has sent no message.
    pub async fn send(&mut self, parts: Vec<Message>) -> Result<()> {
        let message = Multipart::from(parts);
        sending!(self, socket => socket.send_multipart(message).await)
    }

    /// Sends a message if there is room.
    pub fn try_send(&mut self, parts: Vec<Message>) -> Result<()> {
        sending!(self, socket => socket.get_mut().try_send_multipart(parts))
    }
}

fn open<K: kind::Kind>(context: &Context, link: &Link) -> Result<aio::Socket<K>> {
    attach(build(context, link)?, link)
}

/// Creates a socket with its options.
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
        // Sending to a disconnected peer becomes an error, which the route handles.
        builder = builder.raw_option(ROUTER_MANDATORY, &int(1));
    }
    if link.notify {
        let word = disconnect_message().ok_or(Error::WouldBlock)?;
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

/// Binds and connects a socket.
fn attach<K: kind::Kind>(mut socket: tautline::Socket<K>, link: &Link) -> Result<aio::Socket<K>> {
    for endpoint in &link.bind {
        socket.bind(endpoint)?;
    }
    for endpoint in &link.connect {
        socket.connect(endpoint)?;
    }
    Ok(socket.into_async())
}
