//! One end of a connection from the first byte to the first message.
//!
//! The engine's I/O thread creates a session for each stream, feeds it what it reads, writes what
//! [`Session::output`] holds, and drops it when [`Session::established`] yields. A session gathers
//! one item at a time (part of the greeting, identity frame, command), so any split of the input
//! gives the same result, and it never takes a byte beyond the handshake. It keeps at most one
//! item, bounded by the largest handshake command.

mod item;

use std::mem;

use crate::command::{put_error, put_subscribe};
use crate::error::{AuthFailure, Mismatch, ProtocolError};
use crate::frame::{MAX_HEADER, put_header};
use crate::greeting::{self, Version};
use crate::handshake::{self, Peer};
use crate::mechanism::{Entry, Mechanism, MechanismConfig, Progress};
use crate::memory::at_hand;
use crate::metadata::{Metadata, put_property};
use crate::secret::Secret;
use crate::socket_type::SocketType;
use crate::stage::{self, Stage};
use crate::zap::Credentials;
use item::Item;

/// This many times its own length a command takes at most while it is dealt with: properties of one
/// byte each, by themselves and in the set of their names.
const TAKEN_APART: usize = 40;

/// What our end of a connection announces.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Our socket type.
    pub socket_type: SocketType,
    /// Our routing id, at most 255 bytes (more is cut); may be empty.
    pub routing_id: Vec<u8>,
    /// The security mechanism the peer has to use too.
    pub mechanism: MechanismConfig,
    /// Whether the caller judges the peer's credentials: then [`Session::credentials`] yields them,
    /// and the handshake waits for [`Session::admit`]. If not, each peer that keeps to the protocol
    /// is let in, whatever the password.
    pub authenticate: bool,
    /// The largest body of a message to accept, for a stage that has to keep whole ones.
    pub max_msg_size: Option<u64>,
    /// Further metadata for our READY command; invalid names are left out.
    pub properties: Vec<(String, Vec<u8>)>,
}

/// The result of a handshake.
pub struct Established {
    /// The version both ends speak now.
    pub version: Version,
    /// The other end.
    pub peer: Peer,
    /// What stands between the wire and plain 3.1 frames; `None` if they are the same.
    pub stage: Option<Box<dyn Stage>>,
    /// Plain 3.1 frames to be taken as the first ones received: a 1.0 subscriber filters at its own
    /// end and never subscribes, so a subscription to everything is put in for it. Empty otherwise.
    pub inbound: Vec<u8>,
}

/// A handshake in progress. There may be thousands at a time, so what most of them do without is
/// apart, and those that wait for the peer hold no buffers.
pub struct Session {
    socket_type: SocketType,
    authenticate: bool,
    started: bool,
    max_msg_size: Option<u64>,
    routing_id: Vec<u8>,
    properties: Vec<(String, Vec<u8>)>,
    /// `None` is NULL.
    mechanism: Option<Box<MechanismConfig>>,
    state: State,
    /// The item being gathered. Never longer than `wanted`.
    pending: Item,
    /// Length at which `pending` is looked at again.
    wanted: usize,
    /// PLAIN's password passes here and, at the other end, in `pending`.
    out: Secret<Vec<u8>>,
    written: usize,
    refusal: Vec<u8>,
    /// The peer's, until they are fetched.
    credentials: Option<Box<Credentials>>,
}

enum State {
    Signature,
    /// Signature seen, the version octet is next.
    Revision,
    /// The rest of a 2.0 greeting; the version says whether 1.0 or 2.0 frames follow.
    OlderGreeting(Version),
    /// The rest of a 3.x greeting.
    Greeting,
    /// The identity frame of a peer before 3.0, with its socket type if it told.
    Identity(Version, Option<SocketType>),
    Commands(Version, Box<dyn Mechanism>),
    /// `None` once it has been fetched.
    Done(Option<Box<Established>>),
    Failed(ProtocolError),
}

impl Session {
    /// Starts a handshake: the signature is ready to be written.
    pub fn new(config: SessionConfig) -> Self {
        let SessionConfig { mut routing_id, mechanism, .. } = config;
        routing_id.truncate(handshake::MAX_ROUTING_ID);
        let out = greeting::signature(routing_id.len()).to_vec().into();
        Self {
            socket_type: config.socket_type,
            authenticate: config.authenticate,
            started: false,
            max_msg_size: config.max_msg_size,
            routing_id,
            properties: config.properties,
            mechanism: match mechanism {
                MechanismConfig::Null => None,
                other => Some(Box::new(other)),
            },
            state: State::Signature,
            pending: Item::new(),
            wanted: 1,
            out,
            written: 0,
            refusal: Vec::new(),
            credentials: None,
        }
    }

    /// Takes bytes from the peer, split in any way, and returns how many belonged to the handshake.
    ///
    /// Fewer than given means that the handshake is complete and the rest is traffic. After an
    /// error the connection is over and every further call returns the same error; what
    /// [`output`](Self::output) still holds may be written as a courtesy.
    pub fn input(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let mut used = 0;
        loop {
            match self.state {
                State::Failed(error) => return Err(error),
                State::Done(_) => return Ok(used),
                _ => {}
            }
            let take = (self.wanted - self.pending.len()).min(bytes.len() - used);
            let mut step = self.pending.add(&bytes[used..used + take], self.wanted);
            used += take;
            if step.is_ok() {
                if self.pending.len() < self.wanted {
                    return Ok(used);
                }
                step = self.step();
            }
            if let Err(error) = step {
                self.state = State::Failed(error);
                self.pending.clear();
            }
        }
    }

    /// The bytes to write to the peer now.
    pub fn output(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// Drops the first `n` bytes of the output, which have been written.
    pub fn advance_output(&mut self, n: usize) {
        self.written = (self.written + n).min(self.out.len());
        if self.written == self.out.len() {
            self.out = Secret::default();
            self.written = 0;
        }
    }

    /// The result, once, as soon as the handshake is complete. All output must reach the peer
    /// before any frame does.
    pub fn established(&mut self) -> Option<Established> {
        match &mut self.state {
            State::Done(established) => established.take().map(|established| *established),
            _ => None,
        }
    }

    /// What the peer has shown to be let in, once: the caller has it judged and goes on with
    /// [`admit`](Self::admit) or [`refuse`](Self::refuse). Input is still taken meanwhile.
    pub fn credentials(&mut self) -> Option<Credentials> {
        self.credentials.take().map(|credentials| *credentials)
    }

    /// The peer's credentials are good: the handshake goes on.
    ///
    /// # Errors
    /// What is wrong with something that the peer has sent before; the connection is over then, as
    /// after [`input`](Self::input).
    pub fn admit(&mut self) -> Result<(), ProtocolError> {
        let State::Commands(version, mechanism) = &mut self.state else { return Ok(()) };
        let version = *version;
        let progress = mechanism.admit(&mut self.out);
        let result = progress.and_then(|progress| self.follow(version, progress));
        if let Err(error) = result {
            self.state = State::Failed(error);
            self.pending.clear();
        }
        result
    }

    /// The peer's credentials are no good: the connection is over. An ERROR command tells the peer
    /// so, unless `status` is 300, a failure that may pass.
    pub fn refuse(&mut self, status: u16) {
        if status != 300 {
            put_error(&mut self.out, status.to_string().as_bytes());
        }
        self.state = State::Failed(AuthFailure::Denied { status }.into());
        self.pending.clear();
    }

    /// Whether the peer has sent a valid signature, or the start of a 1.0 identity frame: it seems
    /// to speak ZMTP.
    pub fn started(&self) -> bool {
        self.started
    }

    /// The peer's reason, at most 255 bytes, when the handshake ended with [`ProtocolError::Auth`].
    pub fn refusal(&self) -> &[u8] {
        &self.refusal
    }

    /// Judges `pending`, which has reached `wanted`: asks for more of it, or empties it and moves
    /// on.
    fn step(&mut self) -> Result<(), ProtocolError> {
        match &mut self.state {
            State::Signature => self.signature(),
            State::Revision => self.revision(),
            State::OlderGreeting(version) => {
                let version = *version;
                let code = self.pending[greeting::V2_GREETING_LEN - 1];
                let peer_type = handshake::peer_type(self.socket_type, code)?;
                self.await_item(State::Identity(version, Some(peer_type)), 1);
                Ok(())
            }
            State::Greeting => self.greeting(),
            State::Identity(version, peer_type) => {
                let (version, peer_type) = (*version, *peer_type);
                self.identity(version, peer_type)
            }
            State::Commands(..) => self.command(),
            State::Done(_) | State::Failed(_) => Ok(()),
        }
    }

    fn signature(&mut self) -> Result<(), ProtocolError> {
        if self.pending[0] == 0xFF && self.pending.len() < greeting::SIGNATURE_LEN {
            self.wanted = greeting::SIGNATURE_LEN;
        } else if greeting::is_signature(&self.pending) {
            self.started = true;
            self.out.reserve_exact(greeting::GREETING_LEN - greeting::SIGNATURE_LEN);
            self.out.push(greeting::MAJOR);
            self.state = State::Revision;
            self.wanted = greeting::SIGNATURE_LEN + 1;
        } else {
            // A 1.0 peer, and what we have is the start of its identity frame. It takes our
            // signature for the header of ours: only the body is missing.
            self.require_plain()?;
            handshake::identity_v1_len(&self.pending)?;
            self.started = true;
            self.out.extend_from_slice(&self.routing_id);
            self.state = State::Identity(Version::V1, None);
        }
        Ok(())
    }

    fn revision(&mut self) -> Result<(), ProtocolError> {
        let Some(version) = greeting::older_version(self.pending[greeting::SIGNATURE_LEN]) else {
            let entry = self.mechanism();
            greeting::put_rest(&mut self.out, entry.name, entry.as_server);
            self.state = State::Greeting;
            self.wanted = greeting::GREETING_LEN;
            return Ok(());
        };
        self.require_plain()?;
        self.out.push(self.socket_type.older_code());
        let routing_id = &self.routing_id;
        match version {
            Version::V1 => stage::put_v1_header(&mut self.out, 0, routing_id.len() as u64),
            _ => put_header(&mut self.out, 0, routing_id.len() as u64),
        }
        self.out.extend_from_slice(routing_id);
        self.state = State::OlderGreeting(version);
        self.wanted = greeting::V2_GREETING_LEN;
        Ok(())
    }

    fn greeting(&mut self) -> Result<(), ProtocolError> {
        let entry = self.mechanism();
        let Some(bytes) = self.pending.first_chunk() else { return Ok(()) };
        let version = greeting::judge(bytes, entry.name)?;
        let mut mechanism = (entry.start)(self.mechanism_config());
        let progress = mechanism.begin(self.metadata(), &mut self.out)?;
        self.await_item(State::Commands(version, mechanism), 1);
        self.follow(version, progress)
    }

    fn identity(&mut self, version: Version, peer_type: Option<SocketType>) -> Result<(), ProtocolError> {
        let (len, header_len) = match version {
            Version::V1 => (handshake::identity_v1_len(&self.pending)?, 0),
            _ => handshake::identity_v2_len(&self.pending)?,
        };
        if self.pending.len() < len {
            self.wanted = len;
            return Ok(());
        }
        let identity = match version {
            Version::V1 => handshake::identity_v1(&self.pending),
            _ => &self.pending[header_len..],
        };
        self.finish(version, Peer::from_identity(peer_type, identity));
        Ok(())
    }

    fn command(&mut self) -> Result<(), ProtocolError> {
        let State::Commands(version, mechanism) = &mut self.state else { return Ok(()) };
        let limit = mechanism.command_limit();
        let Some(header) = handshake::command_header(&self.pending, limit)? else {
            self.wanted = if self.pending.len() < 2 { 2 } else { MAX_HEADER };
            return Ok(());
        };
        let len = header.header_len + header.body_len as usize;
        if self.pending.len() < len {
            self.wanted = len;
            return Ok(());
        }
        at_hand(TAKEN_APART * len)?;
        let body = &self.pending[header.header_len..];
        let progress = handshake::command(&mut **mechanism, body, &mut self.out, &mut self.refusal)?;
        let version = *version;
        self.pending.clear();
        self.wanted = 1;
        self.follow(version, progress)
    }

    /// Does what a step of the mechanism has led to.
    fn follow(&mut self, version: Version, mut progress: Progress) -> Result<(), ProtocolError> {
        loop {
            match progress {
                Progress::Pending => return Ok(()),
                Progress::Judge(credentials) if self.authenticate => {
                    self.credentials = Some(Box::new(credentials));
                    return Ok(());
                }
                Progress::Judge(_) => {
                    let State::Commands(_, mechanism) = &mut self.state else { return Ok(()) };
                    progress = mechanism.admit(&mut self.out)?;
                }
                Progress::Complete(metadata) => return self.complete(version, metadata),
            }
        }
    }

    fn complete(&mut self, version: Version, metadata: Metadata) -> Result<(), ProtocolError> {
        match Peer::from_metadata(self.socket_type, metadata) {
            Ok(peer) => {
                self.finish(version, peer);
                Ok(())
            }
            Err(error) => {
                if let ProtocolError::PeerIncompatible(_) = error {
                    put_error(&mut self.out, b"Incompatible socket type");
                }
                Err(error)
            }
        }
    }

    fn finish(&mut self, version: Version, peer: Peer) {
        let ours = self.socket_type;
        let mut inbound = Vec::new();
        if version == Version::V1 && peer.socket_type.is_none() && ours.takes_subscriptions() {
            put_subscribe(&mut inbound, b"");
        }
        let sealing = match &mut self.state {
            State::Commands(_, mechanism) => mechanism.stage(self.max_msg_size),
            _ => None,
        };
        let stage = stage::chain(stage::for_peer(version, ours), sealing);
        self.pending.clear();
        self.state = State::Done(Some(Box::new(Established { version, peer, stage, inbound })));
    }

    /// Starts to gather the next item.
    fn await_item(&mut self, state: State, wanted: usize) {
        self.state = state;
        self.pending.clear();
        self.wanted = wanted;
    }

    fn mechanism(&self) -> &'static Entry {
        self.mechanism_config().entry()
    }

    fn mechanism_config(&self) -> &MechanismConfig {
        self.mechanism.as_deref().unwrap_or(&MechanismConfig::Null)
    }

    /// Refuses a peer before 3.0 unless we ask for no protection.
    fn require_plain(&self) -> Result<(), ProtocolError> {
        let unprotected = self.mechanism().allows_older_peers && !self.authenticate;
        if unprotected { Ok(()) } else { Err(Mismatch::Version.into()) }
    }

    fn metadata(&mut self) -> Vec<u8> {
        let mut list = Vec::with_capacity(greeting::GREETING_LEN);
        put_property(&mut list, "Socket-Type", self.socket_type.name().as_bytes());
        if self.socket_type.has_routing_id() {
            put_property(&mut list, "Identity", &self.routing_id);
        }
        for (name, value) in mem::take(&mut self.properties) {
            put_property(&mut list, &name, &value);
        }
        list
    }
}

#[cfg(test)]
mod secure_tests;
#[cfg(test)]
mod tests;
