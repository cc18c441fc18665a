//! Admission of calls and of peers by the policy of a host.
//!
//! ```text
//!  bind, connect ─ CallRequest ─▶ Admission ─▶ Permission: the options and the wrapper of the endpoint
//!                                                  │
//!  Acceptor ◀── Gate ◀── BindPermit ◀──────────────┘
//! ```

use std::any::Any;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use super::{AllowedTopics, Proof};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::options::{ContextDefaults, Mechanism, Options};
use crate::transport::{self, CarrierFactory, ResolvedAddress};
use tautline_io::net::{Address, Stream};
use tautline_proto::SocketType;
#[cfg(feature = "tls")]
use tautline_proto::tls::TlsConfig;
use tautline_queue::sync::Arc;

/// The policy of a host.
pub trait Admission: Send + Sync {
    /// Asks if a socket may bind or connect, and with which options.
    ///
    /// # Errors
    /// EACCES if a rule refuses it or cannot be applied, [`Error::Invalid`] if the policy cannot be
    /// read.
    fn ask(self: Arc<Self>, call: &CallRequest<'_>) -> Result<Permission, Denied>;

    /// True if the policy may limit topics of peers, now or later.
    fn may_know_topics(&self) -> bool;

    /// True if the topics of peers may change.
    fn may_change_topics(&self) -> bool;

    /// Returns the topics that a peer may use to which a socket has connected. `None` means all
    /// topics.
    fn topics_of_server(&self, server: &Server<'_>) -> Option<AllowedTopics>;

    /// Returns the name of a limit that has most likely ended a session, for events. `None` if the
    /// policy does not set this limit.
    fn limit_name(&self, limit: SessionLimit) -> Option<String>;

    /// Returns the name of a rule, for events.
    fn rule_name(&self, rule: &str) -> String;

    /// Reports that another user is at an endpoint that may only be connected to our own user.
    fn report_stranger(&self, endpoint: &str, peer: &str);

    /// Reports that a rule does not allow a peer to use a topic, once for each rule and endpoint.
    /// `does` is the refused action, `first` describes the peer.
    fn report_topic(&self, rule: &str, does: &str, endpoint: &str, first: &str);
}

/// The permission for a bind, at the host.
pub trait BindPermit: Send {
    /// Asks if a bound endpoint may stay.
    ///
    /// # Errors
    /// EACCES if a rule refuses the endpoint as it is.
    fn check(&self, bound: &BoundEndpoint<'_>) -> Result<(), Denied>;

    /// Creates the gate of the bound endpoint. `mechanism` and `is_secure` describe the endpoint
    /// with its wrapper.
    fn gate(self: Box<Self>, mechanism: &'static str, is_secure: bool) -> Arc<dyn Gate>;
}

/// Checks each peer that connects to a bound endpoint.
pub trait Gate: Send + Sync {
    /// Returns the time until the next peer may be accepted, by the limit of handshakes.
    fn pause(&self) -> Option<Duration>;

    /// Checks if a newly connected peer may start a handshake. The peer counts until the value is
    /// dropped.
    ///
    /// # Errors
    /// The rule or limit that refuses the peer.
    fn admit(self: Arc<Self>, peer: ConnectedPeer<'_>) -> Result<AdmittedPeer, Refusal>;

    /// Reports a peer that exceeds this limit. Returns the refusal for events.
    fn refuse_over_limit(&self, limit: &str, peer: &str) -> Refusal;

    /// Maximum number of parallel handshakes.
    fn most_handshakes(&self) -> Option<u64>;

    /// Maximum number of bytes of one handshake.
    fn handshake_bytes(&self) -> Option<u64>;

    /// Maximum number of bytes that may be queued for a peer.
    fn most_unread(&self) -> Option<u64>;

    /// Returns the user id of a client that has shown this key. `None` if there is no list of
    /// clients.
    ///
    /// # Errors
    /// The key is not on the list.
    fn owner(&self, key: &[u8]) -> Result<Option<Arc<str>>, Refusal>;

    /// Checks that the lists of clients match their files, so that a new peer can be checked
    /// against them.
    ///
    /// # Errors
    /// A list has changed and could not be read for some seconds.
    fn check_lists(&self) -> Result<(), Refusal>;

    /// Checks that the whole proof of a client is trusted.
    ///
    /// # Errors
    /// The part that is not trusted.
    fn check_proof(&self, proof: Option<&mut Proof>) -> Result<(), Refusal>;

    /// Checks if a peer may stay, after the ZAP handler has named its user or the policy has
    /// changed.
    ///
    /// # Errors
    /// The rule that refuses the peer.
    fn check_peer(&self, peer: ConnectedPeer<'_>, user_id: &str) -> Result<(), Refusal>;

    /// Returns the topics that a peer may use. `None` means all topics.
    fn topics(&self, peer: ConnectedPeer<'_>, user_id: &str) -> Option<AllowedTopics>;

    /// True if a connected peer may lose its permission later.
    fn may_change(&self) -> bool;
}

/// Keeps an admitted peer counted until it is dropped.
pub type AdmittedPeer = Box<dyn Any + Send + Sync>;

/// A refused call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Error for the caller.
    pub error: Error,
    /// Rule or reason of the refusal, for events.
    pub why: String,
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        denied.error
    }
}

/// Refusal of a peer, at its connect or later, with the rule or reason for events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

/// A limit that ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionLimit {
    /// Bytes of a message.
    MessageBytes,
    /// Bytes of the subscriptions of a peer.
    SubscriptionBytes,
}

/// A call to ask about.
#[derive(Clone, Copy)]
pub struct CallRequest<'a> {
    call: Call,
    endpoint: &'a str,
    parsed: &'a Endpoint,
    address: Option<IpAddr>,
    options: &'a Options,
}

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Bind,
    Connect,
}

impl<'a> CallRequest<'a> {
    /// `at` is the resolved address of a host to bind.
    pub(crate) fn new(
        call: Call,
        endpoint: &'a str,
        parsed: &'a Endpoint,
        at: ResolvedAddress,
        options: &'a Options,
    ) -> Self {
        let address = transport::known_ip(parsed, at, call == Call::Bind, options);
        CallRequest { call, endpoint, parsed, address, options }
    }

    /// True for a bind, false for a connect.
    pub fn is_bind(&self) -> bool {
        self.call == Call::Bind
    }

    /// The endpoint, as the program gave it.
    pub fn endpoint(&self) -> &'a str {
        self.endpoint
    }

    /// The address to bind or connect to, if there is one and it is known.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The path of the socket's file, for ipc.
    pub fn path(&self) -> Option<&'a Path> {
        transport::socket_path(self.parsed)
    }

    /// The host to connect to, in the form of its certificate.
    #[cfg(feature = "tls")]
    pub fn host(&self) -> Option<String> {
        transport::tls::host(self.parsed)
    }

    /// The name of the socket's type.
    pub fn socket_type(&self) -> &'static str {
        self.options.socket_type.name()
    }

    /// The name of the socket's mechanism.
    pub fn mechanism(&self) -> &'static str {
        self.options.mechanism.name()
    }

    /// True if the peers show credentials to this mechanism.
    pub fn has_credentials(&self) -> bool {
        self.options.mechanism.has_credentials()
    }

    /// True if CURVE or TLS protects the connections.
    pub fn is_secure(&self) -> bool {
        is_secure(self.options, self.endpoint)
    }

    /// True if the streams do not use ZMTP, so that there is no mechanism.
    pub fn is_raw(&self) -> bool {
        is_raw(self.options)
    }

    /// True if the endpoint is for datagrams, which no mechanism protects.
    pub fn is_datagram(&self) -> bool {
        is_datagram(self.endpoint)
    }

    /// Returns a permission with the options of the socket.
    pub fn permit(&self) -> Permission {
        Permission { options: self.options.clone(), carrying: None, bind: None }
    }
}

/// A call of a socket that does not exist, to predict the answer to it.
pub struct PlannedCall<'a> {
    call: Call,
    endpoint: &'a str,
    parsed: Endpoint,
    at: ResolvedAddress,
    options: Options,
}

impl<'a> PlannedCall<'a> {
    /// Plans a bind or a connect. Asks the resolver about a host to bind.
    ///
    /// # Errors
    /// Returns the errors with which the call fails on any host.
    pub fn new(is_bind: bool, endpoint: &'a str, socket_type: SocketType) -> Result<Self, Error> {
        let options = Options::new(socket_type, &ContextDefaults::default());
        let parsed = Endpoint::parse(endpoint)?;
        let (call, at) = if is_bind {
            parsed.check_bind()?;
            let at = transport::question(&parsed, &options).map(|question| question.ask()).transpose()?;
            (Call::Bind, at)
        } else {
            parsed.check_connect()?;
            (Call::Connect, None)
        };
        Ok(PlannedCall { call, endpoint, parsed, at, options })
    }

    /// Sets the mechanism that the program asks for: `NULL`, `PLAIN` or `CURVE`.
    pub fn set_mechanism(&mut self, mechanism: &str) {
        self.options.mechanism = match mechanism {
            "PLAIN" => Mechanism::Plain,
            "CURVE" => Mechanism::Curve,
            _ => Mechanism::Null,
        };
    }

    /// Sets an option of the socket.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value out of range.
    pub fn set_option(&mut self, option: i32, value: &[u8]) -> Result<(), Error> {
        self.options.set(option, value)
    }

    /// Returns the call to ask about.
    pub fn request(&self) -> CallRequest<'_> {
        CallRequest::new(self.call, self.endpoint, &self.parsed, self.at, &self.options)
    }
}

/// Permission for a bind or a connect: the options and the wrapper of the endpoint.
pub struct Permission {
    options: Options,
    carrying: Option<CarrierFactory>,
    bind: Option<Box<dyn BindPermit>>,
}

/// Rules for an endpoint that options of a program cannot express.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndpointRules {
    /// Permissions of the file of a bound ipc socket.
    pub ipc_mode: Option<u32>,
    /// True if each stream must lead to a process of our own user.
    pub own_user_only: bool,
    /// Maximum number of bytes of a message.
    pub message_bytes: Option<u64>,
    /// Maximum number of bytes for the subscriptions of one peer.
    pub subscription_bytes: Option<u64>,
    /// Maximum number of bytes from a peer that the program has not received yet.
    pub unread_bytes: Option<u64>,
}

impl Permission {
    /// Puts the endpoint under these rules. If an option of the program is stricter, it applies.
    pub fn restrict(&mut self, rules: &EndpointRules) {
        let own = &mut self.options;
        own.max_msg_size = match (own.max_msg_size, rules.message_bytes) {
            (Some(own), Some(limit)) => Some(own.min(limit)),
            (own, limit) => own.or(limit),
        };
        own.policy_settings.ipc_mode = rules.ipc_mode;
        own.policy_settings.own_user_only = rules.own_user_only;
        own.policy_settings.most_subscriptions = rules.subscription_bytes;
        own.policy_settings.most_unread = rules.unread_bytes;
    }

    /// Sets an option of the endpoint.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value out of range.
    pub fn set_option(&mut self, option: i32, value: &[u8]) -> Result<(), Error> {
        self.options.set(option, value)
    }

    /// Wraps the endpoint of `call` in TLS. Each stream uses the configuration at its start.
    ///
    /// # Errors
    /// [`Error::IncompatibleProtocol`] if the streams do not use ZMTP.
    #[cfg(feature = "tls")]
    pub fn wrap_in_tls(
        &mut self,
        call: &CallRequest<'_>,
        config: Arc<dyn Fn() -> TlsConfig + Send + Sync>,
    ) -> Result<(), Error> {
        let wrapper = transport::tls::around(call.parsed, call.is_bind(), &self.options, config)?;
        self.carrying = Some(wrapper);
        Ok(())
    }

    /// True if the endpoint is wrapped in TLS.
    pub fn is_wrapped_in_tls(&self) -> bool {
        self.carrying.is_some()
    }

    /// The name of the endpoint's mechanism.
    pub fn mechanism(&self) -> &'static str {
        self.options.mechanism.name()
    }

    /// Adds the host's side of a bind.
    pub fn set_bind_permit(&mut self, permit: Box<dyn BindPermit>) {
        self.bind = Some(permit);
    }

    /// Returns the changes that the endpoint of a socket with these options needs.
    pub(crate) fn against(self, options: &Options) -> Allowed {
        let Permission { options: own, carrying, bind } = self;
        Allowed { options: (own != *options).then(|| Arc::new(own)), carrying, bind }
    }
}

/// The changes that a permission makes to an endpoint.
#[derive(Default)]
pub(crate) struct Allowed {
    /// The options of the endpoint, if they differ from those of the socket.
    pub(crate) options: Option<Arc<Options>>,
    /// TLS wrapper of the endpoint.
    pub(crate) carrying: Option<CarrierFactory>,
    /// For a bind: the permission at the host.
    pub(crate) bind: Option<Box<dyn BindPermit>>,
}

/// A bound endpoint.
pub struct BoundEndpoint<'a> {
    /// The resolved endpoint.
    pub endpoint: &'a str,
    /// The address of the socket, if the system knows it.
    pub address: Option<Address>,
    /// True if the program has bound the socket itself (ZMQ_USE_FD). The endpoint's text may say
    /// something else then.
    pub is_foreign: bool,
}

/// A peer to which a socket has connected.
pub struct Server<'a> {
    /// The peer.
    pub peer: ConnectedPeer<'a>,
    /// The connected endpoint.
    pub endpoint: &'a str,
    /// The name of the socket's type.
    pub socket_type: &'static str,
    /// The name of the mechanism.
    pub mechanism: &'static str,
    /// The key that the peer has shown, if the mechanism is CURVE.
    pub key: Option<&'a [u8; 32]>,
}

/// The other end of a stream, as the system knows it.
#[derive(Clone, Copy)]
pub struct ConnectedPeer<'a>(pub(crate) &'a Stream);

impl ConnectedPeer<'_> {
    /// The address of the peer.
    pub fn address(self) -> Option<IpAddr> {
        match self.0.peer_address() {
            Ok(Address::Inet(address)) => Some(address.ip().to_canonical()),
            _ => None,
        }
    }

    /// The user of the peer, for ipc.
    pub fn user(self) -> Option<u32> {
        self.0.peer_credentials().ok().map(|who| who.uid)
    }

    /// True if the peer is a process of our own user, for ipc.
    pub fn is_own_user(self) -> bool {
        self.0.is_peer_own_user()
    }

    /// The name of the peer, for reports.
    pub fn name(self) -> String {
        transport::peer_name(self.0)
    }
}

/// True if CURVE or TLS protects a connection with these options.
pub(crate) fn is_secure(options: &Options, endpoint: &str) -> bool {
    is_in_tls(endpoint) || options.mechanism.encrypts() && !is_raw(options) && !is_datagram(endpoint)
}

/// True if the transport of an endpoint is TLS.
fn is_in_tls(endpoint: &str) -> bool {
    endpoint.starts_with("wss://") || endpoint.starts_with("tls+tcp://")
}

/// True if the streams do not use ZMTP. Without ZMTP there is no mechanism, whatever the options
/// say.
fn is_raw(options: &Options) -> bool {
    options.type_info().raw || options.router_raw
}

fn is_datagram(endpoint: &str) -> bool {
    endpoint.starts_with("udp://")
}
