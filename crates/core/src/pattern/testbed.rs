//! Test bed for one pattern without a socket: the pattern, its pipes, and the far end of each pipe,
//! which the test controls.

use super::{Routed, entry};
use crate::conn::PeerInfo;
use crate::conn::inproc;
use crate::error::Error;
use crate::options::{ContextDefaults, Options};
use crate::pipe::{Body, Delivered, OnFull, Part, Pipe, PipeId, SocketPipes, Target};
use std::collections::BTreeMap;
use tautline_proto::{SocketType, command, frame};
use tautline_queue::message::{Message, Metadata};
use tautline_queue::sync::Arc;

/// The parts of a message.
pub(super) type Parts = Vec<Vec<u8>>;

/// Copies parts, for comparisons.
pub(super) fn parts<const N: usize>(bodies: [&[u8]; N]) -> Parts {
    bodies.iter().map(|body| body.to_vec()).collect()
}

/// Creates both ends of an inproc pipe between sockets with these options, each with the other as
/// its peer.
fn pair(ours: &Options, theirs: &Options) -> (Pipe, Pipe) {
    let peers = [theirs, ours].map(|options| {
        Box::new(PeerInfo {
            since: 0,
            routing_id: options.routing_id.clone(),
            metadata: Arc::new(Metadata::new([("Socket-Type", "PAIR")], None)),
            ..PeerInfo::default()
        })
    });
    let (here, there) = inproc::pair(ours, peers);
    here.end.mark_bound();
    here.end.set_receive_hwm(ours.receive_hwm);
    there.end.set_receive_hwm(theirs.receive_hwm);
    let pipe = |offer: inproc::Offer, options: &Options| {
        let peer = offer.peer.clone();
        let mut pipe = Pipe::inproc(offer, options.send_hwm);
        pipe.peer.connected_here = false;
        pipe.set_peer(peer);
        pipe
    };
    (pipe(here, ours), pipe(there, theirs))
}

/// A pattern under test.
pub(super) struct TestBed {
    pub(super) pattern: Routed,
    pub(super) pipes: SocketPipes,
    /// True if routes are followed, as a socket does.
    pub(super) follows: bool,
    /// Number of parts that went by a route.
    pub(super) followed: usize,
    peers: BTreeMap<PipeId, Pipe>,
}

impl TestBed {
    pub(super) fn new(socket_type: SocketType) -> TestBed {
        TestBed::with(socket_type, |_| {})
    }

    /// Creates a bed with options that are set first.
    pub(super) fn with(socket_type: SocketType, set: impl FnOnce(&mut Options)) -> TestBed {
        let mut options = Options::new(socket_type, &ContextDefaults::default());
        set(&mut options);
        let pattern = Routed::new((entry(socket_type).unwrap().create)());
        TestBed {
            pattern,
            pipes: SocketPipes::new(options.into()),
            follows: false,
            followed: 0,
            peers: BTreeMap::new(),
        }
    }

    /// Adds a peer.
    pub(super) fn join(&mut self) -> PipeId {
        self.join_as(b"")
    }

    /// Adds a peer with this routing id.
    pub(super) fn join_as(&mut self, routing_id: &[u8]) -> PipeId {
        let id = self.insert(routing_id, b"");
        self.pattern.pattern_mut().attach(&mut self.pipes, id);
        self.pattern.pattern_mut().ready(&mut self.pipes, id, false);
        id
    }

    /// Connects, after naming the peer with ZMQ_CONNECT_ROUTING_ID. The peer is not `ready` yet.
    pub(super) fn connect(&mut self, chosen: &[u8]) -> PipeId {
        let id = self.insert(b"", chosen);
        self.pattern.pattern_mut().attach(&mut self.pipes, id);
        id
    }

    /// Adds a pipe that the pattern does not know.
    pub(super) fn insert(&mut self, routing_id: &[u8], chosen: &[u8]) -> PipeId {
        let mut theirs = Options::clone(&self.pipes.options);
        theirs.routing_id = routing_id.to_vec();
        let (mut here, there) = pair(&self.pipes.options, &theirs);
        here.peer.routing_id = chosen.to_vec();
        let id = self.pipes.insert(here);
        self.peers.insert(id, there);
        id
    }

    /// Ends the peer; its messages can still be read.
    pub(super) fn end_peer(&mut self, id: PipeId) {
        self.peers.remove(&id);
        self.pipes.end(id);
    }

    /// Removes the pipe.
    pub(super) fn detach(&mut self, id: PipeId) {
        self.pattern.pattern_mut().detach(&mut self.pipes, id);
        self.pipes.remove(id);
        self.peers.remove(&id);
    }

    /// Ends the peer after all its messages were read.
    pub(super) fn leave(&mut self, id: PipeId) {
        self.end_peer(id);
        self.detach(id);
    }

    /// Removes and returns the pipes that the pattern has closed since the last call.
    pub(super) fn closed(&mut self) -> Vec<PipeId> {
        let closed = self.pipes.take_closing();
        for &id in &closed {
            self.pipes.remove(id);
            self.peers.remove(&id);
        }
        closed
    }

    pub(super) fn peer(&mut self, id: PipeId) -> &mut Pipe {
        self.peers.get_mut(&id).unwrap()
    }

    /// Sends a message from the peer.
    pub(super) fn peer_sends<const N: usize>(&mut self, id: PipeId, bodies: [&[u8]; N]) {
        let peer = self.peer(id);
        for (index, body) in bodies.iter().enumerate() {
            peer.send(&mut Part::copied(body, index + 1 < N)).unwrap();
        }
        self.pattern.pattern_mut().handle_readable(&mut self.pipes, id);
    }

    /// Sends SUBSCRIBE or CANCEL from the peer.
    pub(super) fn peer_subscribes(&mut self, id: PipeId, topic: &[u8], subscribe: bool) {
        let prefix = if subscribe { command::subscribe_prefix() } else { command::cancel_prefix() };
        self.peer(id).send_command(&[prefix, topic].concat());
        self.pattern.pattern_mut().handle_readable(&mut self.pipes, id);
    }

    /// The next message that has arrived at the peer.
    pub(super) fn peer_receives(&mut self, id: PipeId) -> Option<Parts> {
        let mut bodies = Parts::new();
        let mut part = Message::new();
        while let Some(received) = self.peer(id).recv(&mut Target::Message(&mut part)).unwrap() {
            bodies.push(part.as_slice().to_vec());
            assert_eq!((received.len, received.more), (part.len(), part.more()));
            if !received.more {
                return Some(bodies);
            }
        }
        assert!(bodies.is_empty(), "a message without an end");
        None
    }

    /// The subscriptions (`true`) and cancellations that have arrived at the peer as commands, up
    /// to the first message part.
    pub(super) fn peer_commands(&mut self, id: PipeId) -> Vec<(bool, Vec<u8>)> {
        let mut commands = Vec::new();
        let mut frame = Message::new();
        while let Some(head) = self.peer(id).recv_any(&mut frame).unwrap() {
            if head.flags & frame::COMMAND == 0 {
                break;
            }
            let body = frame.as_slice();
            match body.strip_prefix(command::subscribe_prefix()) {
                Some(topic) => commands.push((true, topic.to_vec())),
                None => commands.push((false, body.strip_prefix(command::cancel_prefix()).unwrap().to_vec())),
            }
        }
        commands
    }

    pub(super) fn send_part(&mut self, body: &[u8], more: bool) -> Result<(), Error> {
        if self.follows && self.sends_by_route(body, more) {
            self.followed += 1;
            return Ok(());
        }
        self.pattern.send(&mut self.pipes, &mut Part::copied(body, more)).map(|_| ())
    }

    fn sends_by_route(&mut self, body: &[u8], more: bool) -> bool {
        let TestBed { pattern: Routed { routes, .. }, pipes, .. } = self;
        if more {
            return routes.try_begin_addressed(pipes, body);
        }
        routes.try_send_short(pipes, body, false)
            || routes.send(pipes, &mut Part::copied(body, false)) == Ok(true)
    }

    /// Sends a message. Stops at the first part that is refused.
    pub(super) fn send<const N: usize>(&mut self, bodies: [&[u8]; N]) -> Result<(), Error> {
        for (index, body) in bodies.iter().enumerate() {
            self.send_part(body, index + 1 < N)?;
        }
        Ok(())
    }

    /// Sends one part as an owned message, which must be empty afterwards if it was accepted.
    pub(super) fn send_owned(&mut self, body: &[u8], more: bool) -> Result<(), Error> {
        let mut message = Message::from_slice(body);
        self.pattern
            .send(&mut self.pipes, &mut Part { body: Body::Owned(&mut message), more, patient: false })
            .map(|_| ())
    }

    pub(super) fn recv_part(&mut self) -> Result<(Vec<u8>, bool), Error> {
        let can_recv = self.pattern.can_recv(&mut self.pipes);
        let mut part = Message::new();
        let by_route = if self.follows { self.receives_by_route(&mut part) } else { None };
        self.followed += usize::from(by_route.is_some());
        let result = match by_route {
            Some(received) => Ok(received),
            None => self
                .pattern
                .recv(&mut self.pipes, &mut Target::Message(&mut part))
                .map(|received| Delivered { len: received.len, more: received.more }),
        };
        assert_eq!(can_recv, result.is_ok(), "can_recv must tell what recv does");
        let received = result?;
        assert_eq!((received.len, received.more), (part.len(), part.more()));
        Ok((part.as_slice().to_vec(), received.more))
    }

    fn receives_by_route(&mut self, part: &mut Message) -> Option<Delivered> {
        let TestBed { pattern: Routed { routes, .. }, pipes, .. } = self;
        match routes.recv(pipes, |pipe| pipe.recv_last_message(part)) {
            Some(len) => Some(Delivered { len, more: false }),
            None => routes.recv_name(pipes, &mut Target::Message(part)),
        }
    }

    pub(super) fn recv(&mut self) -> Result<Parts, Error> {
        let mut bodies = Parts::new();
        loop {
            let (body, more) = self.recv_part()?;
            bodies.push(body);
            if !more {
                return Ok(bodies);
            }
        }
    }

    /// The next message, received into buffers that are too short.
    pub(super) fn recv_cut(&mut self) -> Vec<(usize, bool)> {
        let mut lengths = Vec::new();
        loop {
            let mut buffer = [0; 1];
            let received = self.pattern.recv(&mut self.pipes, &mut Target::Buffer(&mut buffer)).unwrap();
            lengths.push((received.len, received.more));
            if !received.more {
                return lengths;
            }
        }
    }

    pub(super) fn can_send(&mut self) -> bool {
        self.pattern.can_send(&mut self.pipes)
    }

    pub(super) fn can_recv(&mut self) -> bool {
        self.pattern.can_recv(&mut self.pipes)
    }

    /// Sends filler messages from here until the pipe is at its high-water mark, without the
    /// pattern. Returns their number.
    pub(super) fn fill(&mut self, id: PipeId) -> usize {
        let pipe = self.pipes.get(id).unwrap();
        let mut sent = 0;
        while pipe.outgoing.has_room(OnFull::Wait) {
            pipe.send(&mut Part::copied(b"filler", false)).unwrap();
            sent += 1;
        }
        sent
    }

    /// Receives all messages at the peer. Returns their number.
    pub(super) fn empty(&mut self, id: PipeId) -> usize {
        let mut received = 0;
        while self.peer_receives(id).is_some() {
            received += 1;
        }
        received
    }
}
