//! A socket of any type behind one trait, and what `taut` has to know of each type.

use std::collections::HashMap;

use tautline::kind::SocketType;
use tautline::monitor::Monitor;
use tautline::{Context, Error, Message, PeerId, PollItem};

/// Why a message was not sent or received.
#[derive(Debug)]
pub enum Trouble {
    /// Not now.
    Later,
    /// The library says why.
    Socket(Error),
    /// The message does not go with the type of the socket.
    Unfit(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        if error.is_temporary() { Trouble::Later } else { Trouble::Socket(error) }
    }
}

/// A socket whose type is known when `taut` runs. Parts that tell the peer (of SERVER and PEER its
/// number, of RADIO and DISH the group) stand before the body, as the routing id does for ROUTER.
pub trait AnySocket {
    /// As [`tautline::Socket::bind`].
    fn bind(&mut self, endpoint: &str) -> tautline::Result<String>;
    /// As [`tautline::Socket::connect`].
    fn connect(&mut self, endpoint: &str) -> tautline::Result<()>;
    /// As [`tautline::Socket::set_raw_option`].
    fn set(&mut self, number: i32, value: &[u8]) -> tautline::Result<()>;
    /// Sends a whole message, if that is possible now.
    fn try_send(&mut self, parts: &[Vec<u8>]) -> Result<(), Trouble>;
    /// Receives a whole message, if there is one.
    fn try_recv(&mut self) -> Result<Vec<Message>, Trouble>;
    /// To wait for it: readable, writable or both. The type must be able to do what is asked for.
    fn item(&mut self, read: bool, write: bool) -> Option<PollItem<'_>>;
    /// Subscribes (SUB, XSUB) or joins (DISH).
    fn subscribe(&mut self, topic: &[u8]) -> tautline::Result<()>;
    /// Messages that wait to be sent.
    fn queued(&mut self) -> tautline::Result<u64>;
    /// As [`tautline::Socket::monitor`].
    fn monitor(&mut self) -> tautline::Result<Monitor>;
}

/// A socket, and the peers that have sent something, for the types that address peers by number.
struct Held<S> {
    socket: S,
    peers: HashMap<u32, PeerId>,
}

mod send {
    use tautline::kind::{ManyParts, Sends};
    use tautline::{Message, Socket};

    use super::{Held, Trouble};

    pub fn many<K: Sends + ManyParts>(held: &mut Held<Socket<K>>, parts: &[Vec<u8>]) -> Result<(), Trouble> {
        Ok(held.socket.try_send_multipart(parts)?)
    }

    pub fn one<K: Sends>(held: &mut Held<Socket<K>>, parts: &[Vec<u8>]) -> Result<(), Trouble> {
        match parts {
            [body] => Ok(held.socket.try_send(body)?),
            _ => {
                Err(Trouble::Unfit(format!("{} messages have one part, not {}", K::TYPE.name(), parts.len())))
            }
        }
    }

    pub fn group<K: Sends>(held: &mut Held<Socket<K>>, parts: &[Vec<u8>]) -> Result<(), Trouble> {
        match parts {
            [group, body] => Ok(held.socket.try_send(Message::from(&body[..]).for_group(group)?)?),
            _ => Err(Trouble::Unfit("a message of RADIO has two parts: the group and the body".to_owned())),
        }
    }

    pub fn addressed<K: Sends>(held: &mut Held<Socket<K>>, parts: &[Vec<u8>]) -> Result<(), Trouble> {
        let [id, body] = parts else {
            let name = K::TYPE.name();
            return Err(Trouble::Unfit(format!("a message of {name} has two parts: the peer and the body")));
        };
        let id = String::from_utf8_lossy(id);
        let Some(peer) = id.parse().ok().and_then(|id: u32| held.peers.get(&id)) else {
            return Err(Trouble::Unfit(format!("no peer {id} has sent anything yet")));
        };
        Ok(held.socket.try_send(Message::from(&body[..]).for_peer(*peer))?)
    }

    pub fn none<S>(_: &mut Held<S>, _: &[Vec<u8>]) -> Result<(), Trouble> {
        Err(Trouble::Unfit("sockets of this type do not send".to_owned()))
    }
}

mod recv {
    use tautline::kind::{ManyParts, Receives};
    use tautline::{Message, Socket};

    use super::{Held, Trouble};

    pub fn many<K: Receives + ManyParts>(held: &mut Held<Socket<K>>) -> Result<Vec<Message>, Trouble> {
        Ok(held.socket.try_recv_multipart()?.into_parts())
    }

    pub fn one<K: Receives>(held: &mut Held<Socket<K>>) -> Result<Vec<Message>, Trouble> {
        Ok(vec![held.socket.try_recv()?])
    }

    pub fn group<K: Receives>(held: &mut Held<Socket<K>>) -> Result<Vec<Message>, Trouble> {
        let body = held.socket.try_recv()?;
        Ok(vec![Message::from(body.group()), body])
    }

    pub fn addressed<K: Receives>(held: &mut Held<Socket<K>>) -> Result<Vec<Message>, Trouble> {
        let body = held.socket.try_recv()?;
        let Some(peer) = body.peer_id() else { return Ok(vec![body]) };
        held.peers.insert(peer.get(), peer);
        Ok(vec![Message::from(peer.get().to_string()), body])
    }

    pub fn none<S>(_: &mut Held<S>) -> Result<Vec<Message>, Trouble> {
        Err(Trouble::Unfit("sockets of this type do not receive".to_owned()))
    }
}

mod item {
    use tautline::kind::{Receives, Sends};
    use tautline::{PollItem, Socket};

    use super::Held;

    pub fn both<K: Sends + Receives>(
        held: &mut Held<Socket<K>>,
        read: bool,
        write: bool,
    ) -> Option<PollItem<'_>> {
        match (read, write) {
            (true, true) => Some(PollItem::either(&mut held.socket)),
            (true, false) => Some(PollItem::readable(&mut held.socket)),
            (false, true) => Some(PollItem::writable(&mut held.socket)),
            (false, false) => None,
        }
    }

    pub fn input<K: Receives>(held: &mut Held<Socket<K>>, read: bool, _: bool) -> Option<PollItem<'_>> {
        read.then(|| PollItem::readable(&mut held.socket))
    }

    pub fn output<K: Sends>(held: &mut Held<Socket<K>>, _: bool, write: bool) -> Option<PollItem<'_>> {
        write.then(|| PollItem::writable(&mut held.socket))
    }
}

mod subscribe {
    use tautline::kind::{self, Kind, Subscribes};
    use tautline::{Result, Socket};

    use super::Held;

    pub fn topics<K: Subscribes>(held: &mut Held<Socket<K>>, topic: &[u8]) -> Result<()> {
        held.socket.subscribe(topic)
    }

    pub fn groups(held: &mut Held<Socket<kind::Dish>>, group: &[u8]) -> Result<()> {
        held.socket.join(group)
    }

    pub fn nothing<K: Kind>(_: &mut Held<Socket<K>>, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

macro_rules! sockets {
    ($($kind:ident: $send:ident $recv:ident $item:ident $subscribe:ident;)*) => {
        /// A new socket.
        pub fn open(context: &Context, kind: SocketType) -> tautline::Result<Box<dyn AnySocket>> {
            Ok(match kind {
                $(SocketType::$kind => {
                    Box::new(Held { socket: tautline::$kind::new(context)?, peers: HashMap::new() })
                })*
            })
        }

        $(impl AnySocket for Held<tautline::$kind> {
            fn bind(&mut self, endpoint: &str) -> tautline::Result<String> {
                self.socket.bind(endpoint)
            }
            fn connect(&mut self, endpoint: &str) -> tautline::Result<()> {
                self.socket.connect(endpoint)
            }
            fn set(&mut self, number: i32, value: &[u8]) -> tautline::Result<()> {
                self.socket.set_raw_option(number, value)
            }
            fn try_send(&mut self, parts: &[Vec<u8>]) -> Result<(), Trouble> {
                send::$send(self, parts)
            }
            fn try_recv(&mut self) -> Result<Vec<Message>, Trouble> {
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
    Pair: many many both nothing;
    Pub: many none output nothing;
    Sub: none many input topics;
    XPub: many many both nothing;
    XSub: many many both topics;
    Req: many many both nothing;
    Rep: many many both nothing;
    Dealer: many many both nothing;
    Router: many many both nothing;
    Push: many none output nothing;
    Pull: none many input nothing;
    Stream: many many both nothing;
    Client: one one both nothing;
    Server: addressed addressed both nothing;
    Radio: group none output nothing;
    Dish: none group input groups;
    Scatter: one none output nothing;
    Gather: none one input nothing;
    Peer: addressed addressed both nothing;
    Channel: one one both nothing;
    Dgram: many many both nothing;
}

/// Whether sockets of this type send.
pub fn sends(kind: SocketType) -> bool {
    !matches!(kind, SocketType::Sub | SocketType::Pull | SocketType::Dish | SocketType::Gather)
}

/// Whether sockets of this type receive.
pub fn receives(kind: SocketType) -> bool {
    !matches!(kind, SocketType::Pub | SocketType::Push | SocketType::Radio | SocketType::Scatter)
}

/// Whether an endpoint without `--bind` or `--connect` is bound: the ends that stay where they are.
pub fn binds(kind: SocketType) -> bool {
    use SocketType::*;
    matches!(kind, Pub | XPub | Pull | Rep | Router | Server | Radio | Gather)
}

/// Whether sockets of this type subscribe, or join groups.
pub fn subscribes(kind: SocketType) -> bool {
    matches!(kind, SocketType::Sub | SocketType::XSub | SocketType::Dish)
}

/// Whether what is received can be answered: REQ has asked itself, and what publishers and
/// subscribers get from each other are no questions.
pub fn answers(kind: SocketType) -> bool {
    use SocketType::*;
    sends(kind) && receives(kind) && !matches!(kind, Req | XPub | XSub)
}

/// Whether the first part of each message tells the peer.
pub fn addresses(kind: SocketType) -> bool {
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
        assert!(matches!(server.try_send(&[b"0".to_vec(), vec![]]), Err(Trouble::Unfit(_))));
        assert!(matches!(client.try_send(&[]), Err(Trouble::Unfit(_))));
    }
}
