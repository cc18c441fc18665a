//! Configuration of a socket as plain Rust fields, and the ZMQ_* option numbers for them.
//!
//! The owner of a socket holds one `Options`. A connection shares the options as they are when it
//! is made. So if the man page says that an option takes effect for later binds and connects only,
//! this is guaranteed by construction. The numbers, sizes and ranges of zmq_setsockopt(3) and
//! zmq_getsockopt(3) are in `options/table.rs`, with one row per option.
//!
//! C conventions are decoded on input: `-1` (or `0`) for "no limit" or "the system's default" is
//! `None`, milliseconds are `Duration`, flags are `bool`. Options that depend on live state (FD,
//! EVENTS, RCVMORE, LAST_ENDPOINT, TYPE, THREAD_SAFE, TOPICS_COUNT, SUBSCRIBE, UNSUBSCRIBE) have no
//! row. The socket answers them, and forwards all other options to this module.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use tautline_proto::{Secret, SocketType};

use crate::error::Error;
use std::sync::Arc;

mod explain;
mod filter;
mod row;
pub mod socket_codes;
mod table;
#[cfg(test)]
mod tests;
pub mod type_info;
mod value;

pub use explain::{option_fault, option_name, option_read_fault};
pub use filter::AcceptFilter;
use type_info::SocketTypeInfo;

/// Settings of an endpoint that a policy can make, but an option cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PolicySettings {
    /// Permissions of the file of a bound ipc socket.
    pub ipc_mode: Option<u32>,
    /// Maximum number of bytes for the subscriptions of one peer. If ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS
    /// is smaller, that option applies.
    pub most_subscriptions: Option<u64>,
    /// Maximum number of bytes from a peer that the program has not received yet.
    pub most_unread: Option<u64>,
    /// ipc: true if the connect was allowed because only our user can be at the other end. Each
    /// stream must lead to a process of our user.
    pub own_user_only: bool,
}

/// Settings that a new socket takes from its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextDefaults {
    /// ZMQ_IPV6 of the context: initial value of the socket's ZMQ_IPV6.
    pub ipv6: bool,
    /// ZMQ_BLOCKY of the context: if off, sockets start with a linger time of zero.
    pub blocky: bool,
}

impl Default for ContextDefaults {
    fn default() -> Self {
        ContextDefaults { ipv6: false, blocky: true }
    }
}

/// The security mechanism that the options ask for. A connection must refuse any other mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Mechanism {
    /// No authentication, no encryption.
    Null = 0,
    /// User name and password in clear text.
    Plain = 1,
    /// Elliptic-curve authentication and encryption.
    Curve = 2,
    /// Kerberos through GSSAPI.
    Gssapi = 3,
}

impl Mechanism {
    /// The name as ZMTP writes it.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Null => "NULL",
            Mechanism::Plain => "PLAIN",
            Mechanism::Curve => "CURVE",
            Mechanism::Gssapi => "GSSAPI",
        }
    }

    /// True if this build supports the mechanism.
    pub fn is_supported(self) -> bool {
        self != Mechanism::Gssapi
    }

    /// True if the mechanism encrypts the messages.
    pub fn encrypts(self) -> bool {
        matches!(self, Mechanism::Curve | Mechanism::Gssapi)
    }

    /// True if peers show credentials.
    pub fn has_credentials(self) -> bool {
        self != Mechanism::Null
    }
}

/// Every option of a socket that is a value. See the module documentation for the conventions.
///
/// This struct has the options that are read with each message, and the options that often differ
/// between sockets. All others are in [`CommonOptions`], and are accessed in the same way.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The type of the socket: decides which options exist on it.
    pub socket_type: SocketType,
    /// ZMQ_SNDHWM: maximum number of messages queued to a peer; 0 is unlimited.
    pub send_hwm: u32,
    /// ZMQ_RCVHWM: maximum number of messages queued from a peer; 0 is unlimited.
    pub receive_hwm: u32,
    /// ZMQ_ROUTING_ID: the name of this socket for ROUTER peers; empty lets them choose.
    pub routing_id: Vec<u8>,
    /// ZMQ_CONNECT_ROUTING_ID: the name of the next connect's peer.
    #[allow(clippy::box_collection)] // Few have one, and thousands of sockets keep their options.
    pub connect_routing_id: Option<Box<Vec<u8>>>,
    /// ZMQ_ROUTER_MANDATORY: an unroutable message is an error.
    pub router_mandatory: bool,
    /// ZMQ_ROUTER_HANDOVER: a peer with a known routing id takes it over.
    pub router_handover: bool,
    /// ZMQ_ROUTER_RAW: connect to peers that do not use ZMTP.
    pub router_raw: bool,
    /// ZMQ_ROUTER_NOTIFY: set of ZMQ_NOTIFY_CONNECT (1) and ZMQ_NOTIFY_DISCONNECT (2).
    pub router_notify: i32,
    /// ZMQ_PROBE_ROUTER: greet every peer with an empty message.
    pub probe_router: bool,
    /// ZMQ_REQ_CORRELATE: match replies with requests by an id.
    pub req_correlate: bool,
    /// ZMQ_REQ_RELAXED: allow a new request before the reply.
    pub req_relaxed: bool,
    /// ZMQ_XPUB_VERBOSE and ZMQ_XPUB_VERBOSER (the last one set applies): deliver duplicate
    /// subscriptions to the program.
    pub xpub_verbose: bool,
    /// ZMQ_XPUB_VERBOSER: also deliver duplicate unsubscriptions.
    pub xpub_verboser: bool,
    /// ZMQ_XPUB_MANUAL and ZMQ_XPUB_MANUAL_LAST_VALUE: the program decides about each subscription.
    pub xpub_manual: bool,
    /// ZMQ_XPUB_MANUAL_LAST_VALUE: the next message goes to the last subscriber only.
    pub xpub_manual_last_value: bool,
    /// ZMQ_XPUB_NODROP: send fails with EAGAIN at the high-water mark and does not drop.
    pub xpub_nodrop: bool,
    /// ZMQ_ONLY_FIRST_SUBSCRIBE: only the first part of a message may be a subscription.
    pub only_first_subscribe: bool,
    /// ZMQ_XSUB_VERBOSE_UNSUBSCRIBE: forward every unsubscription.
    pub xsub_verbose_unsubscribe: bool,
    /// ZMQ_INVERT_MATCHING: subscribers get the messages that do not match.
    pub invert_matching: bool,
    /// ZMQ_STREAM_NOTIFY: connects and disconnects arrive as empty messages.
    pub stream_notify: bool,
    /// All other options.
    pub common: Arc<CommonOptions>,
}

/// Options that many sockets set to the same values, a kilobyte. Such sockets share them
/// (`Context::share_options`).
#[derive(Debug, Clone, PartialEq)]
pub struct CommonOptions {
    // Queues and blocking.
    /// ZMQ_SNDTIMEO: maximum time that send waits; `None` is for ever.
    pub send_timeout: Option<Duration>,
    /// ZMQ_RCVTIMEO: maximum time that receive waits; `None` is for ever.
    pub receive_timeout: Option<Duration>,
    /// ZMQ_LINGER: time that unsent messages are kept after the close; `None` is for ever.
    pub linger: Option<Duration>,
    /// ZMQ_IMMEDIATE: queue only to completed connections.
    pub immediate: bool,
    /// ZMQ_CONFLATE: keep only the last message.
    pub conflate: bool,
    /// ZMQ_MAXMSGSIZE: largest message part accepted from a peer; `None` is any.
    pub max_msg_size: Option<u64>,
    /// ZMQ_TAUTLINE_MAXMULTIPARTSIZE: maximum number of bytes of a message from a peer, all parts
    /// with their headers. With `None`, [`Options::longest_message`] decides.
    pub(crate) max_multipart_size: Option<u64>,
    /// ZMQ_TAUTLINE_LOANS: received bodies may stay in the memory of the process that sent them.
    pub adopts_loans: bool,
    /// ZMQ_AFFINITY: bit n allows I/O thread n; 0 allows all.
    pub affinity: u64,
    /// ZMQ_PRIORITY: SO_PRIORITY of the connections; 0 leaves the system's default.
    pub priority: u32,
    /// ZMQ_BUSY_POLL: SO_BUSY_POLL of the connections in microseconds; 0 leaves the system's
    /// default.
    pub busy_poll: u32,
    /// ZMQ_IN_BATCH_SIZE: maximum number of bytes of one read; `None` lets the intake decide.
    pub in_batch_size: Option<u32>,
    /// ZMQ_OUT_BATCH_SIZE: maximum number of bytes of one write; `None` lets the pump decide.
    pub out_batch_size: Option<u32>,

    // Connections.
    /// ZMQ_RECONNECT_IVL: first pause before a reconnect; `None` never reconnects.
    pub reconnect_interval: Option<Duration>,
    /// ZMQ_RECONNECT_IVL_MAX: the pause doubles up to this; `None` keeps it constant.
    pub reconnect_interval_max: Option<Duration>,
    /// ZMQ_RECONNECT_STOP: set of `RECONNECT_STOP_*`.
    pub reconnect_stop: u32,
    /// ZMQ_CONNECT_TIMEOUT: time limit of connect(2); `None` is the system's limit.
    pub connect_timeout: Option<Duration>,
    /// ZMQ_HANDSHAKE_IVL: time limit of the ZMTP handshake; `None` is for ever.
    pub handshake_interval: Option<Duration>,
    /// ZMQ_HEARTBEAT_IVL: pause between PINGs; `None` sends no PINGs.
    pub heartbeat_interval: Option<Duration>,
    /// ZMQ_HEARTBEAT_TIMEOUT: length of the silence after a PING that ends a connection; `None` is
    /// the interval, zero is never.
    pub heartbeat_timeout: Option<Duration>,
    /// ZMQ_HEARTBEAT_TTL: length of the silence after which the peer closes the connection; in
    /// whole deciseconds.
    pub heartbeat_ttl: Option<Duration>,
    /// ZMQ_BACKLOG: length of the queue of listen(2).
    pub backlog: i32,
    /// ZMQ_USE_FD: a bound, listening descriptor. A successful bind takes it over and closes it
    /// with the endpoint. After a failed bind it still belongs to the program.
    pub use_fd: Option<i32>,
    /// ZMQ_METADATA: properties announced to the peers, each name starting with `X-`.
    pub metadata: Vec<(String, Vec<u8>)>,

    // TCP and IPC.
    /// ZMQ_IPV6 (and, inverted, ZMQ_IPV4ONLY): IPv6 addresses are allowed.
    pub ipv6: bool,
    /// ZMQ_SNDBUF: SO_SNDBUF in bytes; `None` is the system's default.
    pub send_buffer: Option<u32>,
    /// ZMQ_RCVBUF: SO_RCVBUF in bytes; `None` is the system's default.
    pub receive_buffer: Option<u32>,
    /// ZMQ_TOS: type of service of the IP header.
    pub tos: u32,
    /// ZMQ_TCP_KEEPALIVE: `None` is the system's default.
    pub tcp_keepalive: Option<bool>,
    /// ZMQ_TCP_KEEPALIVE_CNT: probes; `None` is the system's default.
    pub tcp_keepalive_count: Option<u32>,
    /// ZMQ_TCP_KEEPALIVE_IDLE: seconds; `None` is the system's default.
    pub tcp_keepalive_idle: Option<u32>,
    /// ZMQ_TCP_KEEPALIVE_INTVL: seconds; `None` is the system's default.
    pub tcp_keepalive_interval: Option<u32>,
    /// ZMQ_TCP_MAXRT: TCP_USER_TIMEOUT; `None` is the system's default.
    pub tcp_max_retransmit: Option<Duration>,
    /// ZMQ_BINDTODEVICE: the only interface for packets; `None` is any.
    pub bind_to_device: Option<String>,
    /// ZMQ_TCP_ACCEPT_FILTER: networks to accept from; empty is any.
    pub tcp_accept_filters: Vec<AcceptFilter>,
    /// ZMQ_IPC_FILTER_PID: processes to accept from.
    pub ipc_filter_pids: Vec<i32>,
    /// ZMQ_IPC_FILTER_UID: users to accept from.
    pub ipc_filter_uids: Vec<u32>,
    /// ZMQ_IPC_FILTER_GID: groups to accept from.
    pub ipc_filter_gids: Vec<u32>,
    /// ZMQ_SOCKS_PROXY: `host:port` of a SOCKS5 proxy.
    pub socks_proxy: Option<String>,
    /// ZMQ_SOCKS_USERNAME: empty for no authentication.
    pub socks_username: Vec<u8>,
    /// ZMQ_SOCKS_PASSWORD.
    pub socks_password: Secret<Vec<u8>>,
    /// ZMQ_LOOPBACK_FASTPATH: a Windows hint, stored and ignored on other systems.
    pub(crate) loopback_fastpath: bool,

    // Multicast.
    /// ZMQ_RATE in kilobits per second.
    pub(crate) rate: u32,
    /// ZMQ_RECOVERY_IVL.
    pub(crate) recovery_interval: Duration,
    /// ZMQ_MULTICAST_HOPS.
    pub multicast_hops: u32,
    /// ZMQ_MULTICAST_MAXTPDU in bytes.
    pub(crate) multicast_max_tpdu: u32,
    /// ZMQ_MULTICAST_LOOP.
    pub multicast_loop: bool,

    // Patterns.
    /// ZMQ_XPUB_WELCOME_MSG: sent to each new subscriber; empty for no message.
    pub xpub_welcome_msg: Vec<u8>,
    /// ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS: maximum number of bytes for the subscriptions of one peer;
    /// `None` is any.
    pub max_subscriptions: Option<u64>,
    /// ZMQ_HELLO_MSG: sent to each new peer; empty for no message.
    pub(crate) hello_msg: Vec<u8>,
    /// ZMQ_DISCONNECT_MSG: received when a peer is lost; empty for no message.
    pub(crate) disconnect_msg: Vec<u8>,
    /// ZMQ_HICCUP_MSG: received when a connecting socket loses its peer; empty for no message.
    pub(crate) hiccup_msg: Vec<u8>,

    // Security.
    /// ZMQ_MECHANISM: derived from the PLAIN, CURVE and GSSAPI options; the last one set applies.
    pub mechanism: Mechanism,
    /// ZMQ_PLAIN_SERVER, ZMQ_CURVE_SERVER and ZMQ_GSSAPI_SERVER: this end is the server of the
    /// mechanism.
    pub as_server: bool,
    /// ZMQ_PLAIN_USERNAME.
    pub plain_username: Vec<u8>,
    /// ZMQ_PLAIN_PASSWORD.
    pub plain_password: Secret<Vec<u8>>,
    /// ZMQ_CURVE_PUBLICKEY: ours.
    pub curve_public_key: [u8; 32],
    /// ZMQ_CURVE_SECRETKEY: ours.
    pub curve_secret_key: Arc<Secret<[u8; 32]>>,
    /// ZMQ_CURVE_SERVERKEY: the public key of the server that a client accepts.
    pub curve_server_key: [u8; 32],
    /// ZMQ_GSSAPI_PRINCIPAL: ours.
    pub(crate) gssapi_principal: Vec<u8>,
    /// ZMQ_GSSAPI_SERVICE_PRINCIPAL: the server's.
    pub(crate) gssapi_service_principal: Vec<u8>,
    /// ZMQ_GSSAPI_PLAINTEXT: authenticate only.
    pub(crate) gssapi_plaintext: bool,
    /// ZMQ_GSSAPI_PRINCIPAL_NAMETYPE: a ZMQ_GSSAPI_NT_* number.
    pub(crate) gssapi_principal_nametype: i32,
    /// ZMQ_GSSAPI_SERVICE_PRINCIPAL_NAMETYPE: a ZMQ_GSSAPI_NT_* number.
    pub(crate) gssapi_service_principal_nametype: i32,
    /// ZMQ_ZAP_DOMAIN: the domain in requests to the authenticator. If empty, the authenticator is
    /// not asked (NULL mechanism).
    pub zap_domain: Vec<u8>,
    /// ZMQ_ZAP_ENFORCE_DOMAIN: a server without a domain refuses to start.
    pub zap_enforce_domain: bool,
    /// Settings of the endpoint by the policy.
    pub policy_settings: PolicySettings,
    /// ZMQ_WSS_KEY_PEM.
    pub wss_key_pem: Secret<Vec<u8>>,
    /// ZMQ_WSS_CERT_PEM.
    pub wss_cert_pem: Vec<u8>,
    /// ZMQ_WSS_TRUST_PEM.
    pub wss_trust_pem: Vec<u8>,
    /// ZMQ_WSS_HOSTNAME.
    pub wss_hostname: Vec<u8>,
    /// ZMQ_WSS_TRUST_SYSTEM.
    pub wss_trust_system: bool,
}

impl Deref for Options {
    type Target = CommonOptions;

    #[inline]
    fn deref(&self) -> &CommonOptions {
        &self.common
    }
}

impl DerefMut for Options {
    // Options change rarely: one copy of this function is enough.
    #[inline(never)]
    fn deref_mut(&mut self) -> &mut CommonOptions {
        Arc::make_mut(&mut self.common)
    }
}

/// Default of ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS: 512 MiB, one to four million topics. libzmq has no
/// limit. A peer beyond this limit tries to exhaust our memory rather than to get our messages.
const MAX_SUBSCRIPTIONS: u64 = 512 << 20;
/// Flag of ZMQ_RECONNECT_STOP: give up if the peer refuses the connection.
pub const RECONNECT_STOP_CONN_REFUSED: u32 = 1;
/// Flag of ZMQ_RECONNECT_STOP: give up if the handshake fails.
pub const RECONNECT_STOP_HANDSHAKE_FAILED: u32 = 2;
/// Flag of ZMQ_RECONNECT_STOP: do not reconnect to a lost peer after the program has disconnected,
/// even if messages are queued.
pub const RECONNECT_STOP_AFTER_DISCONNECT: u32 = 4;

/// Number of parts of maximum size in the longest message, if only ZMQ_MAXMSGSIZE is set.
const PARTS_OF_LONGEST: u64 = 1024;
/// Lower limit of the longest message in bytes, for small maximum sizes.
const LEAST_LONGEST: u64 = 64 * 1024 * 1024;

impl Options {
    /// Facts about the socket's type.
    #[inline]
    pub fn type_info(&self) -> &'static SocketTypeInfo {
        SocketTypeInfo::of(self.socket_type)
    }

    /// True if ZMQ_CONFLATE applies to outgoing messages.
    #[inline]
    pub fn conflates_outgoing(&self) -> bool {
        self.conflate && self.type_info().conflates_outgoing
    }

    /// True if ZMQ_CONFLATE applies to incoming messages.
    #[inline]
    pub fn conflates_incoming(&self) -> bool {
        self.conflate && self.type_info().conflates_incoming
    }

    /// Maximum number of bytes of a message from a peer, all parts with their headers. If a program
    /// limits the size of the parts, but not their number, the limit is higher than any sensible
    /// message.
    pub fn longest_message(&self) -> u64 {
        let by_parts = |size: u64| size.saturating_mul(PARTS_OF_LONGEST).max(LEAST_LONGEST);
        self.max_multipart_size.unwrap_or_else(|| self.max_msg_size.map_or(u64::MAX, by_parts))
    }

    /// ZMQ_HELLO_MSG, for the types that have it; empty for no message.
    pub fn effective_hello_msg(&self) -> &[u8] {
        if self.type_info().has_hello_msg && !self.router_raw { &self.hello_msg } else { &[] }
    }

    /// ZMQ_DISCONNECT_MSG, for the types that have it; empty for no message.
    pub fn effective_disconnect_msg(&self) -> &[u8] {
        if self.type_info().has_disconnect_msg { &self.disconnect_msg } else { &[] }
    }

    /// True if the program is told of each peer that connects or disconnects, even if it sends no
    /// message.
    pub fn reports_every_peer(&self) -> bool {
        if self.type_info().raw {
            self.stream_notify
        } else {
            self.router_notify != 0 || !self.effective_disconnect_msg().is_empty()
        }
    }

    /// ZMQ_HICCUP_MSG, for the types that have it; empty for no message.
    pub fn effective_hiccup_msg(&self) -> &[u8] {
        if self.type_info().has_hiccup_msg { &self.hiccup_msg } else { &[] }
    }

    /// The options of a new socket of this type.
    pub fn new(socket_type: SocketType, context: &ContextDefaults) -> Self {
        let lingers = !SocketTypeInfo::of(socket_type).has_zero_linger;
        Options {
            socket_type,
            send_hwm: 1000,
            receive_hwm: 1000,
            routing_id: Vec::new(),
            connect_routing_id: None,
            router_mandatory: false,
            router_handover: false,
            router_raw: false,
            router_notify: 0,
            probe_router: false,
            req_correlate: false,
            req_relaxed: false,
            xpub_verbose: false,
            xpub_verboser: false,
            xpub_manual: false,
            xpub_manual_last_value: false,
            xpub_nodrop: false,
            only_first_subscribe: false,
            xsub_verbose_unsubscribe: false,
            invert_matching: false,
            stream_notify: true,
            common: Arc::new(CommonOptions {
                send_timeout: None,
                receive_timeout: None,
                linger: if context.blocky && lingers { None } else { Some(Duration::ZERO) },
                immediate: false,
                conflate: false,
                max_msg_size: None,
                max_multipart_size: None,
                affinity: 0,
                priority: 0,
                busy_poll: 0,
                in_batch_size: None,
                adopts_loans: true,
                out_batch_size: None,
                reconnect_interval: Some(Duration::from_millis(100)),
                reconnect_interval_max: None,
                reconnect_stop: 0,
                connect_timeout: None,
                handshake_interval: Some(Duration::from_secs(30)),
                heartbeat_interval: None,
                heartbeat_timeout: None,
                heartbeat_ttl: None,
                backlog: 100,
                use_fd: None,
                metadata: Vec::new(),
                ipv6: context.ipv6,
                send_buffer: None,
                receive_buffer: None,
                tos: 0,
                tcp_keepalive: None,
                tcp_keepalive_count: None,
                tcp_keepalive_idle: None,
                tcp_keepalive_interval: None,
                tcp_max_retransmit: None,
                bind_to_device: None,
                tcp_accept_filters: Vec::new(),
                ipc_filter_pids: Vec::new(),
                ipc_filter_uids: Vec::new(),
                ipc_filter_gids: Vec::new(),
                socks_proxy: None,
                socks_username: Vec::new(),
                socks_password: Secret::default(),
                loopback_fastpath: false,
                rate: 100,
                recovery_interval: Duration::from_secs(10),
                multicast_hops: 1,
                multicast_max_tpdu: 1500,
                multicast_loop: true,
                xpub_welcome_msg: Vec::new(),
                max_subscriptions: Some(MAX_SUBSCRIPTIONS),
                hello_msg: Vec::new(),
                disconnect_msg: Vec::new(),
                hiccup_msg: Vec::new(),
                mechanism: Mechanism::Null,
                as_server: false,
                plain_username: Vec::new(),
                plain_password: Secret::default(),
                curve_public_key: [0; 32],
                curve_secret_key: Arc::default(),
                curve_server_key: [0; 32],
                gssapi_principal: Vec::new(),
                gssapi_service_principal: Vec::new(),
                gssapi_plaintext: false,
                gssapi_principal_nametype: 0,
                gssapi_service_principal_nametype: 0,
                zap_domain: Vec::new(),
                zap_enforce_domain: false,
                policy_settings: PolicySettings::default(),
                wss_key_pem: Secret::default(),
                wss_cert_pem: Vec::new(),
                wss_trust_pem: Vec::new(),
                wss_hostname: Vec::new(),
                wss_trust_system: false,
            }),
        }
    }

    /// zmq_setsockopt: returns `Error::Invalid` for an unknown code, a wrong size, a value out of
    /// range, a read-only option, or an option that this socket type does not have. The options are
    /// unchanged then.
    pub fn set(&mut self, code: i32, value: &[u8]) -> Result<(), Error> {
        table::find(code).ok_or(Error::Invalid)?.set(self, value)
    }

    /// zmq_setsockopt with a NULL value of size 0: resets a string, a message or a list of filters.
    /// Returns `Error::Invalid` for an option that does not support this. (A non-NULL value of size
    /// 0 is `set` with an empty slice.)
    pub fn set_null(&mut self, code: i32) -> Result<(), Error> {
        table::find(code).ok_or(Error::Invalid)?.set_null(self)
    }

    /// zmq_getsockopt: writes the value to the front of `out` and returns its size. Returns
    /// `Error::Invalid` for an unknown code, a buffer of the wrong size, or a write-only option.
    pub fn get(&self, code: i32, out: &mut [u8]) -> Result<usize, Error> {
        table::find(code).ok_or(Error::Invalid)?.get(self, out)
    }
}
