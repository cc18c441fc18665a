//! Socket of any type behind one trait, and the properties of each type that `taut` needs.

use std::collections::HashMap;

use tautline::kind::SocketType;
use tautline::monitor::Monitor;
use tautline::{Context, Error, Message, PeerId, PollItem};

/// Reason why a message was not sent or received.
#[derive(Debug)]
pub enum TransferError {
    /// Not possible now; try again later.
    Later,
    /// Error of the library.
    Socket(Error),
    /// The message does not fit the socket type.
    Unfit(String),
}

impl From<Error> for TransferError {
    fn from(error: Error) -> Self {
        if error.is_temporary() { TransferError::Later } else { TransferError::Socket(error) }
    }
}

/// Socket whose type is chosen at run time. The parts before the body address the peer, as the
/// routing id does for ROUTER: the peer number for SERVER and PEER, the group for RADIO and DISH.
pub trait AnySocket {
    /// Accepts peers at `endpoint`. Returns the endpoint with the port that the system chose.
    fn bind(&mut self, endpoint: &str) -> tautline::Result<String>;
    /// Connects to `endpoint`.
    fn connect(&mut self, endpoint: &str) -> tautline::Result<()>;
    /// Sets an option by its number in `zmq.h`.
    fn set(&mut self, number: i32, value: &[u8]) -> tautline::Result<()>;
    /// Sends a whole message, if possible without waiting.
    fn try_send(&mut self, parts: &[Vec<u8>]) -> Result<(), TransferError>;
    /// Receives a whole message, if one is available.
    fn try_recv(&mut self) -> Result<Vec<Message>, TransferError>;
    /// Returns a poll item for reading, writing or both. The socket type must support the requested
    /// direction.
    fn item(&mut self, read: bool, write: bool) -> Option<PollItem<'_>>;
    /// Subscribes (SUB, XSUB) or joins (DISH).
    fn subscribe(&mut self, topic: &[u8]) -> tautline::Result<()>;
    /// Returns the number of messages in the send queue.
    fn queued(&mut self) -> tautline::Result<u64>;
    /// Returns a monitor, which receives the socket's events from now on.
    fn monitor(&mut self) -> tautline::Result<Monitor>;
}

/// Socket with its known peers, for the types that address peers by number.
struct SocketWithPeers<S> {
    socket: S,
    /// Peers that have sent a message or that we connected to.
    peers: HashMap<u32, PeerId>,
    /// Default peer of messages without an address: for PEER the first peer that we connected to,
    /// for STREAM the first connection.
    first: Option<Vec<u8>>,
}

mod send {
    use tautline::kind::{HasMultipart, Sends};
    use tautline::{Message, Socket};

    use super::{SocketWithPeers, TransferError};

    pub fn many<K: Sends + HasMultipart>(
        held: &mut SocketWithPeers<Socket<K>>,
        parts: &[Vec<u8>],
    ) -> Result<(), TransferError> {
        Ok(held.socket.try_send_multipart(parts)?)
    }

    pub fn one<K: Sends>(
        held: &mut SocketWithPeers<Socket<K>>,
        parts: &[Vec<u8>],
    ) -> Result<(), TransferError> {
        match parts {
            [body] => Ok(held.socket.try_send(body)?),
            _ => Err(TransferError::Unfit(format!(
                "{} messages have one part, not {}",
                K::TYPE.name(),
                parts.len()
            ))),
        }
    }

    pub fn group<K: Sends>(
        held: &mut SocketWithPeers<Socket<K>>,
        parts: &[Vec<u8>],
    ) -> Result<(), TransferError> {
        match parts {
            [group, body] => Ok(held.socket.try_send(Message::from(&body[..]).for_group(group)?)?),
            _ => Err(TransferError::Unfit(
                "a message of RADIO has two parts: the group and the body".to_owned(),
            )),
        }
    }

    pub fn addressed<K: Sends>(
        held: &mut SocketWithPeers<Socket<K>>,
        parts: &[Vec<u8>],
    ) -> Result<(), TransferError> {
        let (id, body) = match (parts, &held.first) {
            ([id, body], _) => (id, body),
            ([body], Some(first)) => (first, body),
            _ => {
                let name = K::TYPE.name();
                let why = format!("a message of {name} has two parts: the peer and the body");
                return Err(TransferError::Unfit(why));
            }
        };
        let id = String::from_utf8_lossy(id);
        let Some(peer) = id.parse().ok().and_then(|id: u32| held.peers.get(&id)) else {
            return Err(TransferError::Unfit(format!("no peer {id} has sent anything yet")));
        };
        Ok(held.socket.try_send(Message::from(&body[..]).for_peer(*peer))?)
    }

    pub fn stream(
        held: &mut SocketWithPeers<tautline::Stream>,
        parts: &[Vec<u8>],
    ) -> Result<(), TransferError> {
        match (parts, &held.first) {
            ([body], Some(first)) => Ok(held.socket.try_send_multipart([first, body])?),
            // A message will report the new connection.
            ([_], None) => Err(TransferError::Later),
            _ => many(held, parts),
        }
    }

    pub fn none<S>(_: &mut SocketWithPeers<S>, _: &[Vec<u8>]) -> Result<(), TransferError> {
        Err(TransferError::Unfit("sockets of this type do not send".to_owned()))
    }
}

mod recv {
    use tautline::kind::{HasMultipart, Receives};
    use tautline::{Message, Socket};

    use super::{SocketWithPeers, TransferError};

    pub fn many<K: Receives + HasMultipart>(
        held: &mut SocketWithPeers<Socket<K>>,
    ) -> Result<Vec<Message>, TransferError> {
        Ok(held.socket.try_recv_multipart()?.into_parts())
    }

    pub fn one<K: Receives>(held: &mut SocketWithPeers<Socket<K>>) -> Result<Vec<Message>, TransferError> {
        Ok(vec![held.socket.try_recv()?])
    }

    pub fn group<K: Receives>(held: &mut SocketWithPeers<Socket<K>>) -> Result<Vec<Message>, TransferError> {
        let body = held.socket.try_recv()?;
        Ok(vec![Message::from(body.group()), body])
    }

    pub fn addressed<K: Receives>(
        held: &mut SocketWithPeers<Socket<K>>,
    ) -> Result<Vec<Message>, TransferError> {
        let body = held.socket.try_recv()?;
        let Some(peer) = body.peer_id() else { return Ok(vec![body]) };
        held.peers.insert(peer.get(), peer);
        Ok(vec![Message::from(peer.get().to_string()), body])
    }

    pub fn stream(held: &mut SocketWithPeers<tautline::Stream>) -> Result<Vec<Message>, TransferError> {
        let parts = many(held)?;
        if held.first.is_none() {
            held.first = parts.first().map(|id| id.to_vec());
        }
        Ok(parts)
    }

    pub fn none<S>(_: &mut SocketWithPeers<S>) -> Result<Vec<Message>, TransferError> {
        Err(TransferError::Unfit("sockets of this type do not receive".to_owned()))
    }
}

mod item {
    use tautline::kind::{Receives, Sends};
    use tautline::{PollItem, Socket};

    use super::SocketWithPeers;

    pub fn both<K: Sends + Receives>(
        held: &mut SocketWithPeers<Socket<K>>,
        read: bool,
        write: bool,
    ) -> Option<PollItem<'_>> {
        match (read, write) {
            (true, true) => Some(PollItem::readable_or_writable(&mut held.socket)),
            (true, false) => Some(PollItem::readable(&mut held.socket)),
            (false, true) => Some(PollItem::writable(&mut held.socket)),
            (false, false) => None,
        }
    }

    pub fn input<K: Receives>(
        held: &mut SocketWithPeers<Socket<K>>,
        read: bool,
        _: bool,
    ) -> Option<PollItem<'_>> {
        read.then(|| PollItem::readable(&mut held.socket))
    }

    pub fn output<K: Sends>(
        held: &mut SocketWithPeers<Socket<K>>,
        _: bool,
        write: bool,
    ) -> Option<PollItem<'_>> {
        write.then(|| PollItem::writable(&mut held.socket))
    }
}

mod connect {
    use tautline::kind::{self, Kind};
    use tautline::{Result, Socket};

    use super::SocketWithPeers;

    pub fn any<K: Kind>(held: &mut SocketWithPeers<Socket<K>>, endpoint: &str) -> Result<()> {
        held.socket.connect(endpoint)
    }

    pub fn known(held: &mut SocketWithPeers<Socket<kind::Peer>>, endpoint: &str) -> Result<()> {
        let peer = held.socket.connect_peer(endpoint)?;
        held.peers.insert(peer.get(), peer);
        held.first.get_or_insert_with(|| peer.get().to_string().into_bytes());
        Ok(())
    }
}

mod subscribe {
    use tautline::kind::{self, Kind, Subscribes};
    use tautline::{Result, Socket};

    use super::SocketWithPeers;

    pub fn topics<K: Subscribes>(held: &mut SocketWithPeers<Socket<K>>, topic: &[u8]) -> Result<()> {
        held.socket.subscribe(topic)
    }

    pub fn groups(held: &mut SocketWithPeers<Socket<kind::Dish>>, group: &[u8]) -> Result<()> {
        held.socket.join(group)
    }

    pub fn nothing<K: Kind>(_: &mut SocketWithPeers<Socket<K>>, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

macro_rules! sockets {
    ($($kind:ident: $send:ident $recv:ident $item:ident $subscribe:ident $connect:ident;)*) => {
        /// Opens a new socket.
        pub fn open(context: &Context, kind: SocketType) -> tautline::Result<Box<dyn AnySocket>> {
            Ok(match kind {
                $(SocketType::$kind => {
                    Box::new(SocketWithPeers { socket: tautline::$kind::new(context)?, peers: HashMap::new(), first: None })
                })*
            })
        }

        $(impl AnySocket for SocketWithPeers<tautline::$kind> {
            fn bind(&mut self, endpoint: &str) -> tautline::Result<String> {
                self.socket.bind(endpoint)
            }
            fn connect(&mut self, endpoint: &str) -> tautline::Result<()> {
                connect::$connect(self, endpoint)
            }
            fn set(&mut self, number: i32, value: &[u8]) -> tautline::Result<()> {
                self.socket.set_raw_option(number, value)
            }
            fn try_send(&mut self, parts: &[Vec<u8>]) -> Result<(), TransferError> {
                send::$send(self, parts)
            }
            fn try_recv(&mut self) -> Result<Vec<Message>, TransferError> {
                recv::$recv(self)
            }
            fn item(&mut self, read: bool, write: bool) -> Option<PollItem<'_>> {
                item::$item(self, read, write)
            }
            fn subscribe(&mut self, topic: &[u8]) -> tautline::Result<()> {
                subscribe::$subscribe(self, topic)
            }
            fn queued(&mut self) -> tautline::Result<u64> {
                Ok(self.socket.statistics()?.queued_out)
            }
            fn monitor(&mut self) -> tautline::Result<Monitor> {
                self.socket.monitor()
            }
        })*
    };
}

sockets! {
    Pair: many many both nothing any;
    Pub: many none output nothing any;
    Sub: none many input topics any;
    XPub: many many both nothing any;
    XSub: many many both topics any;
    Req: many many both nothing any;
    Rep: many many both nothing any;
    Dealer: many many both nothing any;
    Router: many many both nothing any;
    Push: many none output nothing any;
    Pull: none many input nothing any;
    Stream: stream stream both nothing any;
    Client: one one both nothing any;
    Server: addressed addressed both nothing any;
    Radio: group none output nothing any;
    Dish: none group input groups any;
    Scatter: one none output nothing any;
    Gather: none one input nothing any;
    Peer: addressed addressed both nothing known;
    Channel: one one both nothing any;
    Dgram: many many both nothing any;
}

/// True if sockets of this type can send.
pub fn sends(kind: SocketType) -> bool {
    !matches!(kind, SocketType::Sub | SocketType::Pull | SocketType::Dish | SocketType::Gather)
}

/// True if sockets of this type can receive.
pub fn receives(kind: SocketType) -> bool {
    !matches!(kind, SocketType::Pub | SocketType::Push | SocketType::Radio | SocketType::Scatter)
}

/// True if an endpoint without `--bind` or `--connect` is bound. This applies to the stable side of
/// a pattern, and over UDP to receivers.
pub fn binds_by_default(kind: SocketType, endpoint: &str) -> bool {
    use SocketType::*;
    if endpoint.starts_with("udp://") {
        return kind != Radio;
    }
    matches!(kind, Pub | XPub | Pull | Rep | Router | Server | Radio | Gather | Dgram)
}

/// True if sockets of this type can subscribe or join groups.
pub fn subscribes(kind: SocketType) -> bool {
    matches!(kind, SocketType::Sub | SocketType::XSub | SocketType::Dish)
}

/// True if received messages can be answered. False for REQ, which receives replies, and for
/// publishers and subscribers, which do not receive requests.
pub fn answers(kind: SocketType) -> bool {
    use SocketType::*;
    sends(kind) && receives(kind) && !matches!(kind, Req | XPub | XSub)
}

/// True if the first part of each message addresses the peer.
pub fn needs_address(kind: SocketType) -> bool {
    use SocketType::*;
    matches!(kind, Router | Server | Peer | Stream | Dgram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_answers_the_peer_of_a_message() {
        let context = Context::new();
        let mut server = open(&context, SocketType::Server).unwrap();
        let mut client = open(&context, SocketType::Client).unwrap();
        server.bind("inproc://any").unwrap();
        client.connect("inproc://any").unwrap();
        client.try_send(&[b"question".to_vec()]).unwrap();
        server.item(true, false).map(|item| tautline::poll(&mut [item], None).unwrap());
        let parts = server.try_recv().unwrap();
        assert_eq!(parts[1], "question");
        let answer = [parts[0].to_vec(), b"answer".to_vec()];
        server.try_send(&answer).unwrap();
        client.item(true, false).map(|item| tautline::poll(&mut [item], None).unwrap());
        assert_eq!(client.try_recv().unwrap(), ["answer"]);
        assert!(matches!(server.try_send(&[b"0".to_vec(), vec![]]), Err(TransferError::Unfit(_))));
        assert!(matches!(client.try_send(&[]), Err(TransferError::Unfit(_))));
    }
}
