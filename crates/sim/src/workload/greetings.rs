//! Messages that sockets send about themselves and their peers: ZMQ_HELLO_MSG, ZMQ_DISCONNECT_MSG,
//! ZMQ_HICCUP_MSG, ZMQ_ROUTER_NOTIFY and ZMQ_PROBE_ROUTER.

use std::collections::BTreeMap;
use std::time::Duration;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};

use super::peer::{LINGER, RCVTIMEO, ROUTING_ID, SNDHWM, receive, trace};
use super::traffic::{MessageProfile, Parts};
use super::{Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const PROBE_ROUTER: i32 = 51;
const HEARTBEAT_IVL: i32 = 75;
const ROUTER_NOTIFY: i32 = 97;
const HELLO_MSG: i32 = 110;
const DISCONNECT_MSG: i32 = 111;
const HICCUP_MSG: i32 = 114;
const WELCOME: &[u8] = b"welcome";
const HELLO: &[u8] = b"hello from a client";
const GONE: &[u8] = b"gone";
const HICCUP: &[u8] = b"hiccup";
/// Longest wait of a call for a message.
const PATIENCE: Duration = Duration::from_secs(10);

/// Clients and a server that greet each other. Some clients disconnect, and the server is notified.
/// Then the server closes, and the remaining clients are notified.
pub(super) fn greetings(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let kind = stage.kind.of_one_part();
    let types = *rng.pick(&[
        (SocketType::Router, SocketType::Dealer),
        (SocketType::Server, SocketType::Client),
        (SocketType::Peer, SocketType::Peer),
    ]);
    world::with(|world| world.kernel.faults.stop_losses());
    let mut server = open(&stage.context(rng), types.0, rng);
    server.set_option(HELLO_MSG, WELCOME).unwrap();
    server.set_option(DISCONNECT_MSG, GONE).unwrap();
    // Over inproc a ROUTER sends no notifications.
    let notifies = types.0 == SocketType::Router && stage.transport() != "inproc";
    let notify = if notifies { rng.between(0, 3) as i32 } else { 0 };
    if notify != 0 {
        set(&mut server, ROUTER_NOTIFY, notify);
    }
    server.bind(&endpoint).unwrap();
    let probes = types.0 == SocketType::Router && rng.chance(2);
    // Over inproc a client is not notified when the server closes.
    let may_stay = stage.transport() != "inproc";
    let clients: Vec<(u32, u32, bool)> = (0..rng.between(1, 5) as u32)
        .map(|at| (at, kind.count(rng, 20), may_stay && rng.chance(2)))
        .collect();
    let mut handles = Vec::new();
    for (client, count, stays) in clients.iter().copied() {
        let (context, mut rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        handles.push(spawn("client", move || {
            let mut socket = open(&context, types.1, &mut rng);
            socket.set_option(HELLO_MSG, HELLO).unwrap();
            socket.set_option(HICCUP_MSG, HICCUP).unwrap();
            if types.1 == SocketType::Dealer {
                socket.set_option(ROUTING_ID, format!("client {client}").as_bytes()).unwrap();
                set(&mut socket, PROBE_ROUTER, probes.into());
            }
            // PEER: the server's number among the client's peers.
            let way = match types.1 {
                SocketType::Peer => socket.connect_peer(&endpoint).unwrap(),
                _ => socket.connect(&endpoint).map(|()| 0).unwrap(),
            };
            let greeted = rng.chance(2);
            if greeted {
                assert_eq!(recv_message(&mut socket, false).1, [WELCOME], "the first that a client hears");
            }
            for number in 0..count {
                let mut message = Message::from_vec(kind.message(client, number).remove(0));
                message.set_routing_id(way);
                send(&mut socket, &mut message);
            }
            if !greeted {
                assert_eq!(recv_message(&mut socket, false).1, [WELCOME], "the first that a client hears");
            }
            if stays {
                expect_server_close(&mut socket);
            }
        }));
    }
    let mut heard: BTreeMap<Vec<u8>, ReceivedFromClient> = BTreeMap::new();
    let going = clients.iter().filter(|(.., stays)| !stays).count();
    let is_done = |heard: &BTreeMap<Vec<u8>, ReceivedFromClient>| {
        let all =
            heard.values().filter(|one| one.count > 0 && Some(one.count) == one.total(&clients)).count();
        let gone = heard.values().filter(|one| one.gone).count();
        all == clients.len() && gone == going
    };
    let mut quiet = 0;
    while !is_done(&heard) || quiet == 0 {
        match recv_message_timeout(&mut server, types.0 == SocketType::Router) {
            Ok((peer, parts)) => {
                // More messages may follow; wait until the socket stays quiet for a while.
                quiet = 0;
                trace(|| format!("heard {} bytes of {peer:?}", parts.concat().len()));
                heard.entry(peer).or_default().take(kind, &parts, notify);
            }
            Err(error) => {
                assert_eq!(error, Error::Again);
                quiet += 1;
                assert!(quiet < 100, "of {clients:?}, of whom those go that do not stay: {heard:?}");
            }
        }
    }
    for one in heard.values() {
        let (_, count, stays) = clients[one.sender.expect("a sender") as usize];
        assert!((one.count, one.gone) == (count, !stays) && one.hello, "{one:?} of {clients:?}");
        let tells_of_end = notify & 2 != 0 && !stays;
        assert!(
            one.empty == usize::from(notify & 1 != 0) + usize::from(tells_of_end) + usize::from(probes),
            "{one:?}, ZMQ_ROUTER_NOTIFY {notify}, ZMQ_PROBE_ROUTER {probes}"
        );
    }
    if rng.chance(2) {
        std::thread::sleep(Duration::from_micros(rng.spread(10, 1_000_000)));
    }
    drop(server);
    join(handles);
}

/// Waits until the server closes. It must send no message before.
fn expect_server_close(socket: &mut Socket) {
    loop {
        match recv_message_timeout(socket, false) {
            Ok((_, parts)) => return assert_eq!(parts, [HICCUP]),
            Err(error) => assert_eq!(error, Error::Again),
        }
    }
}

/// Messages that the server received from one client.
#[derive(Debug, Default)]
struct ReceivedFromClient {
    hello: bool,
    sender: Option<u32>,
    count: u32,
    gone: bool,
    /// Messages of ZMQ_ROUTER_NOTIFY and ZMQ_PROBE_ROUTER.
    empty: usize,
}

impl ReceivedFromClient {
    fn total(&self, clients: &[(u32, u32, bool)]) -> Option<u32> {
        self.sender.map(|sender| clients[sender as usize].1)
    }

    fn take(&mut self, kind: MessageProfile, parts: &Parts, notify: i32) {
        let body = &parts[0];
        match body.as_slice() {
            b"" => {
                assert!(!self.gone || notify & 2 != 0, "an empty message behind the end");
                self.empty += 1;
            }
            GONE => {
                assert!(self.hello && !self.gone, "the end comes without a beginning, or again: {self:?}");
                self.gone = true;
            }
            HELLO => {
                assert!(!self.hello && self.count == 0 && !self.gone, "a greeting is late: {self:?}");
                self.hello = true;
            }
            _ => {
                assert!(
                    self.hello && !self.gone,
                    "a message before the greeting, or behind the end: {self:?}"
                );
                let [sender, number] =
                    [0, 4].map(|at| u32::from_be_bytes(*body[at..].first_chunk().expect("a head")));
                assert!(self.sender.is_none_or(|before| before == sender), "another client: {self:?}");
                self.sender = Some(sender);
                assert_eq!(number, self.count, "the next message of {sender}");
                assert!(*parts == kind.message(sender, number), "message {number} of {sender} is another");
                self.count += 1;
            }
        }
    }
}

fn open(context: &Context, socket_type: SocketType, rng: &mut Rng) -> Socket {
    let mut socket = context.socket(socket_type).unwrap();
    for option in [SNDHWM, super::peer::RCVHWM] {
        set(&mut socket, option, *rng.pick(&[0, 1000]));
    }
    set(&mut socket, LINGER, 60_000);
    set(&mut socket, RCVTIMEO, PATIENCE.as_millis() as i32);
    if rng.chance(4) {
        set(&mut socket, HEARTBEAT_IVL, rng.spread(10, 500) as i32);
        set(&mut socket, super::peer::HEARTBEAT_TIMEOUT, 1_000_000);
    }
    socket
}

fn set(socket: &mut Socket, option: i32, value: i32) {
    socket.set_option(option, &value.to_ne_bytes()).unwrap();
}

fn send(socket: &mut Socket, message: &mut Message) {
    while let Err(error) = socket.send_message(message, Flags::NONE) {
        assert_eq!(error, Error::Interrupted);
    }
    world::progress();
}

/// Returns the next message, and the peer that sent it.
fn recv_message(socket: &mut Socket, named: bool) -> (Vec<u8>, Parts) {
    loop {
        match recv_message_timeout(socket, named) {
            Ok(heard) => return heard,
            Err(error) => assert_eq!(error, Error::Again),
        }
    }
}

/// Returns the next message and its peer, within some seconds.
fn recv_message_timeout(socket: &mut Socket, named: bool) -> Result<(Vec<u8>, Parts), Error> {
    let mut parts = Vec::new();
    let mut message = Message::new();
    loop {
        receive(socket, &mut message, PATIENCE)?;
        parts.push(message.as_slice().to_vec());
        if !message.more() {
            let peer = match named {
                true => parts.remove(0),
                false => message.routing_id().to_be_bytes().to_vec(),
            };
            return Ok((peer, parts));
        }
    }
}
