//! One end of a connection from the first byte to the first message.
//!
//! The engine's I/O thread creates a session for each stream, feeds it the received bytes, writes
//! the bytes of [`Session::output`], and drops it when [`Session::take_established`] returns a
//! result. A session gathers one item at a time (part of the greeting, identity frame, command), so
//! any split of the input gives the same result. It never takes a byte beyond the handshake. It
//! keeps at most one item, whose size is bounded by the largest handshake command.

mod item;

use std::mem;

use crate::command::{put_error, put_subscribe};
use crate::error::{AuthFailure, Mismatch, ProtocolError};
use crate::frame::{MAX_HEADER, append_header};
use crate::greeting::{self, Version};
use crate::handshake::{self, Peer};
use crate::mechanism::{Mechanism, MechanismConfig, MechanismInfo, Progress};
use crate::memory::check_available;
use crate::metadata::{Metadata, put_property};
use crate::secret::Secret;
use crate::socket_type::SocketType;
use crate::stage::{self, Stage};
use crate::zap::Credentials;
use item::HandshakeBuffer;

/// Worst-case memory for parsing a command, as a multiple of its length. The worst case is many
/// properties of one byte each, which are stored in the list and in the set of names.
const PARSE_MEMORY_FACTOR: usize = 40;

/// Configuration of our end of a connection.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Our socket type.
    pub socket_type: SocketType,
    /// Our routing id, at most 255 bytes (more is cut); may be empty.
    pub routing_id: Vec<u8>,
    /// Security mechanism that the peer must use too.
    pub mechanism: MechanismConfig,
    /// True if the caller judges the peer's credentials. [`Session::take_credentials`] then returns
    /// them, and the handshake waits for [`Session::admit`]. If false, every peer that keeps to the
    /// protocol is accepted with any password.
    pub authenticate: bool,
    /// Largest body of a message to accept. Used by stages that have to keep whole messages.
    pub max_msg_size: Option<u64>,
    /// Further metadata for our READY command. Invalid names are left out.
    pub properties: Vec<(String, Vec<u8>)>,
}

/// The result of a handshake.
pub struct Established {
    /// Version that both ends speak from now on.
    pub version: Version,
    /// Facts about the other end.
    pub peer: Peer,
    /// Stage between the wire and plain 3.1 frames; `None` if they are the same.
    pub stage: Option<Box<dyn Stage>>,
    /// Plain 3.1 frames to process as the first received ones. A 1.0 subscriber filters at its own
    /// end and never subscribes, so we insert a subscription to everything for it. Otherwise empty.
    pub inbound: Vec<u8>,
}

/// A handshake in progress. There may be thousands at a time, so rarely needed parts are boxed, and
/// handshakes that wait for the peer hold no buffers.
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
    /// Item being gathered. Never longer than `wanted`.
    pending: HandshakeBuffer,
    /// Length at which `pending` is judged again.
    wanted: usize,
    /// The password of PLAIN passes through this buffer and, at the other end, through `pending`.
    out: Secret<Vec<u8>>,
    written: usize,
    refusal: Vec<u8>,
    /// The peer's credentials, until the caller fetches them.
    credentials: Option<Box<Credentials>>,
}

enum State {
    Signature,
    /// The signature has arrived; the version octet is next.
    Revision,
    /// Remaining octets of a 2.0 greeting. The version tells whether 1.0 or 2.0 frames follow.
    OlderGreeting(Version),
    /// Remaining octets of a 3.x greeting.
    Greeting,
    /// The identity frame of a peer before 3.0, with its socket type if the peer announced it.
    Identity(Version, Option<SocketType>),
    Commands(Version, Box<dyn Mechanism>),
    /// `None` after the result has been fetched.
    Done(Option<Box<Established>>),
    Failed(ProtocolError),
}

impl Session {
    /// Starts a handshake. The signature is ready to be written.
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
            pending: HandshakeBuffer::new(),
            wanted: 1,
            out,
            written: 0,
            refusal: Vec::new(),
            credentials: None,
        }
    }

    /// Takes bytes from the peer, split in any way. Returns the number of bytes that belong to the
    /// handshake.
    ///
    /// A number below the length of `bytes` means that the handshake is complete and the other
    /// bytes are traffic. After an error the connection is over and every further call returns the
    /// same error. The caller may still write the bytes in [`output`](Self::output), to inform the
    /// peer.
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

    /// Returns the bytes to write to the peer now.
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

    /// Returns the result once, as soon as the handshake is complete. All output must reach the
    /// peer before any frame does.
    pub fn take_established(&mut self) -> Option<Established> {
        match &mut self.state {
            State::Done(established) => established.take().map(|established| *established),
            _ => None,
        }
    }

    /// Returns the peer's credentials once. The caller has them judged, and continues with
    /// [`admit`](Self::admit) or [`refuse`](Self::refuse). The session still takes input in
    /// between.
    pub fn take_credentials(&mut self) -> Option<Credentials> {
        self.credentials.take().map(|credentials| *credentials)
    }

    /// Accepts the peer's credentials and continues the handshake.
    ///
    /// # Errors
    /// Returns the fault in bytes that the peer sent earlier. The connection is then over, as after
    /// an error of [`input`](Self::input).
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

    /// Refuses the peer's credentials and ends the connection. Tells the peer with an ERROR
    /// command, unless `status` is 300, a temporary failure.
    pub fn refuse(&mut self, status: u16) {
        if status != 300 {
            put_error(&mut self.out, status.to_string().as_bytes());
        }
        self.state = State::Failed(AuthFailure::Denied { status }.into());
        self.pending.clear();
    }

    /// True if the peer has sent a valid signature, or the start of a 1.0 identity frame, and
    /// therefore seems to speak ZMTP.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Returns the peer's reason, at most 255 bytes, if the handshake ended with
    /// [`ProtocolError::Auth`].
    pub fn refusal(&self) -> &[u8] {
        &self.refusal
    }

    /// Judges `pending`, which has reached `wanted`. Either asks for more bytes of the item, or
    /// empties `pending` and moves on.
    fn step(&mut self) -> Result<(), ProtocolError> {
        match &mut self.state {
            State::Signature => self.read_signature(),
            State::Revision => self.read_revision(),
            State::OlderGreeting(version) => {
                let version = *version;
                let code = self.pending[greeting::V2_GREETING_LEN - 1];
                let peer_type = handshake::peer_type(self.socket_type, code)?;
                self.await_item(State::Identity(version, Some(peer_type)), 1);
                Ok(())
            }
            State::Greeting => self.read_greeting(),
            State::Identity(version, peer_type) => {
                let (version, peer_type) = (*version, *peer_type);
                self.read_identity(version, peer_type)
            }
            State::Commands(..) => self.command(),
            State::Done(_) | State::Failed(_) => Ok(()),
        }
    }

    fn read_signature(&mut self) -> Result<(), ProtocolError> {
        if self.pending[0] == 0xFF && self.pending.len() < greeting::SIGNATURE_LEN {
            self.wanted = greeting::SIGNATURE_LEN;
        } else if greeting::is_signature(&self.pending) {
            self.started = true;
            self.out.reserve_exact(greeting::GREETING_LEN - greeting::SIGNATURE_LEN);
            self.out.push(greeting::MAJOR);
            self.state = State::Revision;
            self.wanted = greeting::SIGNATURE_LEN + 1;
        } else {
            // This is a 1.0 peer, and `pending` holds the start of its identity frame. The peer
            // reads our signature as the header of our identity frame, so only the body is missing.
            self.require_plain()?;
            handshake::identity_v1_len(&self.pending)?;
            self.started = true;
            self.out.extend_from_slice(&self.routing_id);
            self.state = State::Identity(Version::V1, None);
        }
        Ok(())
    }

    fn read_revision(&mut self) -> Result<(), ProtocolError> {
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
            _ => append_header(&mut self.out, 0, routing_id.len() as u64),
        }
        self.out.extend_from_slice(routing_id);
        self.state = State::OlderGreeting(version);
        self.wanted = greeting::V2_GREETING_LEN;
        Ok(())
    }

    fn read_greeting(&mut self) -> Result<(), ProtocolError> {
        let entry = self.mechanism();
        let Some(bytes) = self.pending.first_chunk() else { return Ok(()) };
        let version = greeting::judge(bytes, entry.name)?;
        let mut mechanism = (entry.start)(self.mechanism_config());
        let progress = mechanism.begin(self.metadata(), &mut self.out)?;
        self.await_item(State::Commands(version, mechanism), 1);
        self.follow(version, progress)
    }

    fn read_identity(
        &mut self,
        version: Version,
        peer_type: Option<SocketType>,
    ) -> Result<(), ProtocolError> {
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
        check_available(PARSE_MEMORY_FACTOR * len)?;
        let body = &self.pending[header.header_len..];
        let progress = handshake::command(&mut **mechanism, body, &mut self.out, &mut self.refusal)?;
        let version = *version;
        self.pending.clear();
        self.wanted = 1;
        self.follow(version, progress)
    }

    /// Continues after a step of the mechanism.
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

    fn mechanism(&self) -> &'static MechanismInfo {
        self.mechanism_config().entry()
    }

    fn mechanism_config(&self) -> &MechanismConfig {
        self.mechanism.as_deref().unwrap_or(&MechanismConfig::Null)
    }

    /// Refuses a peer before 3.0, unless we require no protection.
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
