//! The transports: create a listener or a stream from an endpoint.
//!
//! There is one row of [`REGISTRY`] and one file per byte-stream transport. (Outside the rows,
//! `endpoint` parses all addresses, and [`connect`] has tcp's options and ipc's shared memory.)
//! Framing, handshakes and reconnects are common to all transports and are in `proto` and `driver`.
//! If another protocol carries ZMTP, the transport supplies the carrier. `inproc` has no streams:
//! it joins two sockets of a context directly.

mod ipc;
mod local;
mod tcp;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod udp;
mod vsock;
mod ws;
#[cfg(feature = "tls")]
mod wss;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

pub(crate) use local::{AddressQuery, ResolvedAddress};

use crate::endpoint::{Endpoint, Host, IpcEndpoint, TcpEndpoint, UdpEndpoint, WsEndpoint};
use crate::error::Error;
use crate::monitor::Ends;
use crate::options::Options;
use tautline_io::fd::RawFd;
use tautline_io::lending;
use tautline_io::net::{self, Address, Family as StreamFamily, Listener, SocketFile, Stream};
use tautline_io::resolve::AcceptedFamily;
use tautline_proto::{Carrier, socks};
use tautline_queue::sync::Arc;

/// A listener, and its resolved endpoint (`tcp://127.0.0.1:40123`).
pub(crate) struct Bound {
    pub(crate) listener: Listener,
    pub(crate) endpoint: String,
    /// Files to remove when the endpoint is unbound.
    pub(crate) unlink: Option<Leftover>,
    /// WebSocket or TLS wrapper of its streams. `None` for plain ZMTP.
    pub(crate) carrying: Option<CarrierFactory>,
}

/// Failure to create a listener.
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// The descriptor of the attempt. The descriptor is closed already.
    pub(crate) fd: Option<RawFd>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed { error, fd: None }
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Failed { error: error.into(), fd: None }
    }
}

impl From<net::Failure> for Failed {
    fn from(failure: net::Failure) -> Self {
        Failed { error: failure.error.into(), fd: failure.fd }
    }
}

/// Makes the carrier of ZMTP for one stream.
pub(crate) type CarrierFactory = Arc<dyn Fn() -> std::io::Result<Box<dyn Carrier>> + Send + Sync>;

/// Files that `ipc://*` has created.
pub(crate) struct Leftover {
    /// The socket's file.
    pub(crate) file: SocketFile,
    /// The directory that was created for it.
    pub(crate) directory: PathBuf,
}

impl Leftover {
    /// Removes them, while the socket is open. A file that is no longer the socket's own stays, and
    /// so does a directory that is not empty.
    pub(crate) fn remove(&self) {
        self.file.remove();
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// Route to an endpoint.
pub(crate) struct ConnectRoute {
    /// The local address to connect from.
    pub(crate) source: Option<SocketAddr>,
    /// The address to connect to.
    pub(crate) hop: Hop,
    /// If the address is a proxy: the request to it.
    pub(crate) beyond: Option<socks::Request>,
}

/// The address to connect to.
pub(crate) enum Hop {
    /// This address.
    Direct(Address),
    /// The addresses that the resolver returns for a name.
    Resolve { host: String, port: u16, family: AcceptedFamily },
}

/// An endpoint to connect to. The text is parsed once for a connect; only a retry parses it again.
pub(crate) struct ConnectTarget {
    pub(crate) endpoint: Endpoint,
    /// The route. `None` if it is not known yet: the network interface may appear later.
    pub(crate) route: Option<ConnectRoute>,
    /// WebSocket or TLS wrapper of the streams. `None` for plain ZMTP.
    pub(crate) carrying: Result<Option<CarrierFactory>, Error>,
}

impl ConnectTarget {
    /// Returns the errors of `connect` that are known at once, without the network.
    pub(crate) fn new(endpoint: Endpoint, options: &Options) -> Result<Self, Error> {
        endpoint.check_connect()?;
        let carrying = carrying(&endpoint, options)?;
        let route = match route(&endpoint, options) {
            Ok(route) => Some(route),
            Err(Error::NoDevice) => None,
            Err(error) => return Err(error),
        };
        Ok(ConnectTarget { endpoint, route, carrying: Ok(carrying) })
    }

    /// Applies the answer of the policy: the options in force, if they are not those of
    /// [`ConnectTarget::new`], and its wrapper.
    pub(crate) fn apply_policy(&mut self, options: Option<&Options>, wrapper: Option<CarrierFactory>) {
        if let Some(options) = options {
            // If this fails, the first attempt fails in the same way.
            self.route = route(&self.endpoint, options).ok();
        }
        match (wrapper, options) {
            (Some(wrapper), _) => self.carrying = Ok(Some(wrapper)),
            (None, Some(options)) => self.carrying = carrying(&self.endpoint, options),
            (None, None) => {}
        }
    }
}

/// A byte-stream transport.
struct Transport {
    /// The scheme, before `://`.
    scheme: &'static str,
    /// Suffix of the address of an accepted peer, in events.
    peer_path: &'static str,
    /// Listens at an endpoint of this transport. If the resolver was asked for the host, its
    /// address is given. Returns `None` if the endpoint belongs to another transport.
    listen: fn(&Endpoint, ResolvedAddress, &Options) -> Option<Result<Bound, Failed>>,
    /// Returns the question for the resolver that must be answered before listening.
    question: fn(&Endpoint, &Options) -> Option<AddressQuery>,
    /// The name of a future listener at an endpoint of this transport, if it can be known in
    /// advance.
    local_name: fn(&Endpoint, ResolvedAddress, &Options) -> Option<String>,
    /// The route to an endpoint of this transport.
    route: fn(&Endpoint, &Options) -> Option<Result<ConnectRoute, Error>>,
    /// The carrier of ZMTP for an endpoint of this transport. `None` for plain ZMTP, or if the
    /// endpoint belongs to another transport.
    carrying: fn(&Endpoint, &Options) -> Option<Result<CarrierFactory, Error>>,
    /// Returns true if an accepted peer may stay, and sets the stream's options. `None` if the
    /// stream does not belong to this transport.
    admit: fn(&Stream, StreamFamily, &Options) -> Option<bool>,
}

static REGISTRY: &[Transport] = &[
    Transport {
        scheme: "tcp",
        peer_path: "",
        listen: tcp::listen,
        question: tcp::question,
        local_name: tcp::local_name,
        route: tcp::route,
        carrying: |_, _| None,
        admit: tcp::admit,
    },
    Transport {
        scheme: "ipc",
        peer_path: "",
        listen: |endpoint, _, options| ipc::listen(endpoint, options),
        question: |_, _| None,
        local_name: |_, _, _| None,
        route: ipc::route,
        carrying: |_, _| None,
        admit: ipc::admit,
    },
    Transport {
        scheme: "vsock",
        peer_path: "",
        listen: |endpoint, _, options| vsock::listen(endpoint, options),
        question: |_, _| None,
        local_name: |endpoint, _, options| vsock::local_name(endpoint, options),
        route: vsock::route,
        carrying: |_, _| None,
        admit: vsock::admit,
    },
    Transport {
        scheme: "ws",
        peer_path: "/",
        listen: ws::listen,
        question: ws::question,
        local_name: ws::local_name,
        route: ws::route,
        carrying: ws::carrying,
        // Handled by the row of TCP.
        admit: |_, _, _| None,
    },
    #[cfg(feature = "tls")]
    Transport {
        scheme: tls::SCHEME,
        peer_path: "",
        listen: tls::listen,
        question: tls::question,
        local_name: tls::local_name,
        route: tls::route,
        carrying: tls::carrying,
        // Handled by the row of TCP.
        admit: |_, _, _| None,
    },
    #[cfg(feature = "tls")]
    Transport {
        scheme: wss::SCHEME,
        peer_path: "/",
        listen: wss::listen,
        question: wss::question,
        local_name: wss::local_name,
        route: wss::route,
        carrying: wss::carrying,
        admit: |_, _, _| None,
    },
];

/// The part after `://`, if the transport is a byte-stream transport.
pub(crate) fn stream_address(text: &str) -> Option<&str> {
    let (scheme, address) = text.split_once("://")?;
    REGISTRY.iter().any(|entry| entry.scheme == scheme).then_some(address)
}

/// The name in events of a listener that could not be created at `endpoint`, which was given as
/// `text`. As in libzmq, it is the path for ipc, and empty for other addresses.
pub(crate) fn failed_listener_name<'t>(endpoint: &Endpoint, text: &'t str) -> &'t str {
    if endpoint.address::<IpcEndpoint>().is_some() { text } else { "" }
}

/// Returns the question for the resolver that must be answered before `endpoint` can be bound.
/// `None` if its host is a number or an interface.
pub(crate) fn question(endpoint: &Endpoint, options: &Options) -> Option<AddressQuery> {
    if let Endpoint::Datagram(address) = endpoint {
        return udp::question(address, options);
    }
    REGISTRY.iter().find_map(|entry| (entry.question)(endpoint, options))
}

/// Listens at `endpoint`. `at` is the answer to its [`question`].
pub(crate) fn listen(endpoint: &Endpoint, at: ResolvedAddress, options: &Options) -> Result<Bound, Failed> {
    REGISTRY
        .iter()
        .find_map(|entry| (entry.listen)(endpoint, at, options))
        .unwrap_or(Err(Error::ProtocolNotSupported.into()))
}

/// The address to bind or connect to, if there is one and it is known. `at` is the answer to the
/// [`question`] about a host to bind.
pub(crate) fn known_ip(
    endpoint: &Endpoint,
    at: ResolvedAddress,
    binds: bool,
    options: &Options,
) -> Option<IpAddr> {
    if let Some(address) = at {
        return Some(address.ip().to_canonical());
    }
    let datagram = match endpoint {
        Endpoint::Datagram(address) => UdpEndpoint::parse(address).ok(),
        _ => None,
    };
    let tcp = endpoint.address::<TcpEndpoint>();
    let ws = endpoint.address::<WsEndpoint>().map(|ws| &ws.tcp);
    let host = match (tcp.or(ws), &datagram) {
        (Some(tcp), _) => &tcp.host,
        (None, Some(udp)) => &udp.target.host,
        (None, None) => return None,
    };
    match host {
        Host::Literal(address, _) => Some(address.to_canonical()),
        Host::Name(name) if name == "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        host if binds => local::local_address(host, 0, options.ipv6).ok().map(|address| address.ip()),
        _ => None,
    }
}

/// The path of the file of an ipc socket.
pub(crate) fn socket_path(endpoint: &Endpoint) -> Option<&Path> {
    match endpoint.address::<IpcEndpoint>()? {
        IpcEndpoint::Path(path) => Some(Path::new(path)),
        _ => None,
    }
}

/// The name of a future listener at `endpoint`, if it can be known in advance (not with a wildcard
/// port). `at` is the answer to its [`question`]; without it, a host name has no address.
pub(crate) fn local_name(endpoint: &Endpoint, at: ResolvedAddress, options: &Options) -> Option<String> {
    REGISTRY.iter().find_map(|entry| (entry.local_name)(endpoint, at, options))
}

/// The route to `endpoint`. Does not use the network.
pub(crate) fn route(endpoint: &Endpoint, options: &Options) -> Result<ConnectRoute, Error> {
    REGISTRY
        .iter()
        .find_map(|entry| (entry.route)(endpoint, options))
        .unwrap_or(Err(Error::ProtocolNotSupported))
}

/// The carrier of ZMTP for streams to `endpoint`. `None` for plain ZMTP.
pub(crate) fn carrying(endpoint: &Endpoint, options: &Options) -> Result<Option<CarrierFactory>, Error> {
    REGISTRY.iter().find_map(|entry| (entry.carrying)(endpoint, options)).transpose()
}

/// Starts to connect. Returns true if the stream is connected already.
pub(crate) fn connect(
    address: &Address,
    source: Option<&SocketAddr>,
    options: &Options,
) -> Result<(Stream, bool), net::Failure> {
    let connected = Stream::connect(address, source, &tcp::stream_options(options))?;
    ipc::prepare_sharing(&connected.0, options);
    Ok(connected)
}

/// Turns loans off for the process if these options encrypt: a reader of a slab sees all bodies in
/// it, also those that a connection beside encrypts.
pub(crate) fn forbid_loans_of_encrypted(options: &Options) {
    let has_certificates = !options.wss_key_pem.is_empty()
        || !options.wss_cert_pem.is_empty()
        || !options.wss_trust_pem.is_empty();
    if options.mechanism.encrypts() || has_certificates {
        lending::forbid_beside_encryption();
    }
}

/// Starts to share memory with a peer that has completed its handshake.
pub(crate) fn begin_sharing(stream: &Stream) {
    ipc::begin_sharing(stream);
}

/// Reads the environment now. A program may change it later, when another thread must not read it.
pub(crate) fn read_environment() {
    ipc::peers_with_memory();
}

/// True if an accepted peer passes the socket's filters. Sets the stream's options.
pub(crate) fn admit(stream: &Stream, options: &Options) -> bool {
    REGISTRY.iter().find_map(|entry| (entry.admit)(stream, stream.family(), options)).unwrap_or(false)
}

/// The two ends of a stream of the endpoint `name`, which was bound or connected here.
pub(crate) fn ends(stream: &Stream, name: &std::sync::Arc<str>, bound: bool) -> Arc<Ends> {
    let scheme = name.split_once("://").map_or("", |(scheme, _)| scheme);
    let (other, path) = if bound {
        let entry = REGISTRY.iter().find(|entry| entry.scheme == scheme);
        (stream.peer_address(), entry.map_or("", |entry| entry.peer_path))
    } else {
        (stream.local_address(), "")
    };
    let other = other.map_or_else(|_| String::new(), |address| format!("{scheme}://{address}{path}"));
    let named = if bound { Ends::bound(name.clone()) } else { Ends::connected(name.clone()) };
    // Copy the text, because it was built piece by piece and has spare capacity.
    Arc::new(named.with_other(&*other))
}

/// The peer's address as messages show it ("Peer-Address"): without the port. For a local socket:
/// the user, group and process at the other end.
pub(crate) fn peer_name(stream: &Stream) -> String {
    match stream.peer_address() {
        Ok(Address::Inet(address)) => match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(_) => net::host_of(&address),
        },
        Ok(Address::Vsock { cid, .. }) => cid.to_string(),
        Ok(Address::Unix { .. } | Address::Abstract(_)) => match stream.peer_credentials() {
            Ok(who) => format!("localhost:{}:{}:{}", who.uid, who.gid, who.pid),
            Err(_) => "localhost".into(),
        },
        Err(_) => String::new(),
    }
}
