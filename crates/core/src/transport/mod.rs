//! The transports: how an endpoint becomes a listener or a stream.
//!
//! One row of [`REGISTRY`] and one file per byte-stream transport. (Beside the rows, `endpoint`
//! knows `inproc` and `udp`, and [`connect`] has tcp's options and ipc's shared memory.) Framing,
//! handshakes and reconnection are the same for all of them and live in `proto` and `driver`; where
//! another protocol carries ZMTP, the transport supplies that. `inproc` has no streams: it joins
//! two sockets of a context directly.

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

pub(crate) use local::{Answer, Question};

use crate::endpoint::{Endpoint, Host, IpcEndpoint, TcpEndpoint, UdpEndpoint, VsockEndpoint, WsEndpoint};
use crate::error::Error;
use crate::monitor::Ends;
use crate::options::Options;
use crate::sync::Arc;
use tautline_io::fd::RawFd;
use tautline_io::net::{self, Address, Family as StreamFamily, Listener, SocketFile, Stream};
use tautline_io::resolve::Family;
use tautline_proto::{Carrier, socks};

/// A listener, and the endpoint as it has come out (`tcp://127.0.0.1:40123`).
pub(crate) struct Bound {
    pub(crate) listener: Listener,
    pub(crate) endpoint: String,
    /// Removed when the endpoint is unbound.
    pub(crate) unlink: Option<Leftover>,
    /// How its streams carry ZMTP, unless as it is.
    pub(crate) carrying: Option<Carrying>,
}

/// Why there is no listener.
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// The descriptor that it was tried with, which is closed by now.
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

/// Makes what carries ZMTP over one stream.
pub(crate) type Carrying = Arc<dyn Fn() -> std::io::Result<Box<dyn Carrier>> + Send + Sync>;

/// What `ipc://*` has made in the file system.
pub(crate) struct Leftover {
    /// The socket's file.
    pub(crate) file: SocketFile,
    /// The directory that was made for it.
    pub(crate) directory: PathBuf,
}

impl Leftover {
    /// Removes it, while the socket is open. What is no longer the socket's own file stays, and so
    /// does a directory with anything in it.
    pub(crate) fn remove(&self) {
        self.file.remove();
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// How to reach an endpoint.
pub(crate) struct Route {
    /// The local address to connect from.
    pub(crate) source: Option<SocketAddr>,
    /// Where to connect to.
    pub(crate) hop: Hop,
    /// It is a proxy there, and this is to be asked of it.
    pub(crate) beyond: Option<socks::Request>,
}

/// Where to connect to.
pub(crate) enum Hop {
    /// This address.
    Direct(Address),
    /// The addresses that the resolver knows for a name.
    Resolve { host: String, port: u16, family: Family },
}

/// A byte-stream transport.
struct Entry {
    /// What stands before `://`.
    scheme: &'static str,
    /// What stands behind the address of a peer that has come, in events.
    peer_path: &'static str,
    /// Reads an address.
    read: fn(&'static str, &str) -> Result<Endpoint, Error>,
    /// Listens at an endpoint of this transport, whose host's address is given if the resolver was
    /// asked for it; `None` if it belongs to another one.
    listen: fn(&Endpoint, Answer, &Options) -> Option<Result<Bound, Failed>>,
    /// What the resolver is to be asked before a listener can be there.
    question: fn(&Endpoint, &Options) -> Option<Question>,
    /// The name that a listener at an endpoint of this transport will have, if it is known before
    /// there is one.
    local_name: fn(&Endpoint, Answer, &Options) -> Option<String>,
    /// The way to an endpoint of this transport.
    route: fn(&Endpoint, &Options) -> Option<Result<Route, Error>>,
    /// How streams to an endpoint of this transport carry ZMTP; `None`: as it is, or the endpoint
    /// belongs to another one.
    carrying: fn(&Endpoint, &Options) -> Option<Result<Carrying, Error>>,
    /// Whether a peer that has come may stay; sets the stream's options. `None`: not a stream of
    /// this transport.
    admit: fn(&Stream, StreamFamily, &Options) -> Option<bool>,
}

static REGISTRY: &[Entry] = &[
    Entry {
        scheme: "tcp",
        peer_path: "",
        read: Endpoint::stream::<TcpEndpoint>,
        listen: tcp::listen,
        question: tcp::question,
        local_name: tcp::local_name,
        route: tcp::route,
        carrying: |_, _| None,
        admit: tcp::admit,
    },
    Entry {
        scheme: "ipc",
        peer_path: "",
        read: Endpoint::stream::<IpcEndpoint>,
        listen: |endpoint, _, options| ipc::listen(endpoint, options),
        question: |_, _| None,
        local_name: |_, _, _| None,
        route: ipc::route,
        carrying: |_, _| None,
        admit: ipc::admit,
    },
    Entry {
        scheme: "vsock",
        peer_path: "",
        read: Endpoint::stream::<VsockEndpoint>,
        listen: |endpoint, _, options| vsock::listen(endpoint, options),
        question: |_, _| None,
        local_name: |endpoint, _, options| vsock::local_name(endpoint, options),
        route: vsock::route,
        carrying: |_, _| None,
        admit: vsock::admit,
    },
    Entry {
        scheme: "ws",
        peer_path: "/",
        read: Endpoint::stream::<WsEndpoint>,
        listen: ws::listen,
        question: ws::question,
        local_name: ws::local_name,
        route: ws::route,
        carrying: ws::carrying,
        // TCP's.
        admit: |_, _, _| None,
    },
    #[cfg(feature = "tls")]
    Entry {
        scheme: tls::SCHEME,
        peer_path: "",
        read: Endpoint::stream::<TcpEndpoint>,
        listen: tls::listen,
        question: tls::question,
        local_name: tls::local_name,
        route: tls::route,
        carrying: tls::carrying,
        // TCP's.
        admit: |_, _, _| None,
    },
    #[cfg(feature = "tls")]
    Entry {
        scheme: wss::SCHEME,
        peer_path: "/",
        read: Endpoint::stream::<WsEndpoint>,
        listen: wss::listen,
        question: wss::question,
        local_name: wss::local_name,
        route: wss::route,
        carrying: wss::carrying,
        admit: |_, _, _| None,
    },
];

/// Reads an endpoint. `Error::Invalid` without `://`, with an empty scheme or address, or when no
/// reading of the address makes sense; `Error::ProtocolNotSupported` for a transport that is not
/// there, whether known or not; `Error::NameTooLong` for a path beyond the system's limit.
pub(crate) fn parse(text: &str) -> Result<Endpoint, Error> {
    let (scheme, address) = Endpoint::split(text)?;
    match REGISTRY.iter().find(|entry| entry.scheme == scheme) {
        Some(entry) => (entry.read)(entry.scheme, address),
        None => Endpoint::other(scheme, address),
    }
}

/// What stands behind `://`, if the transport is one of streams.
pub(crate) fn stream_address(text: &str) -> Option<&str> {
    let (scheme, address) = text.split_once("://")?;
    REGISTRY.iter().any(|entry| entry.scheme == scheme).then_some(address)
}

/// What events call a listener that could not be had at `endpoint`, which was given as `text`. As
/// in libzmq, a path is its name, and an address is none yet.
pub(crate) fn unheard_name<'t>(endpoint: &Endpoint, text: &'t str) -> &'t str {
    if endpoint.address::<IpcEndpoint>().is_some() { text } else { "" }
}

/// What the resolver is to be asked before `endpoint` can be bound, if its host is neither a number
/// nor an interface.
pub(crate) fn question(endpoint: &Endpoint, options: &Options) -> Option<Question> {
    if let Endpoint::Datagram(address) = endpoint {
        return udp::question(address, options);
    }
    REGISTRY.iter().find_map(|entry| (entry.question)(endpoint, options))
}

/// Listens at `endpoint`; `at` is the answer to its [`question`].
pub(crate) fn listen(endpoint: &Endpoint, at: Answer, options: &Options) -> Result<Bound, Failed> {
    REGISTRY
        .iter()
        .find_map(|entry| (entry.listen)(endpoint, at, options))
        .unwrap_or(Err(Error::ProtocolNotSupported.into()))
}

/// The address that is bound or connected to, where there is one and it is known. `at` is the
/// answer to the [`question`] about a host that is bound.
pub(crate) fn reach(endpoint: &Endpoint, at: Answer, binds: bool, options: &Options) -> Option<IpAddr> {
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

/// The name that a listener at `endpoint` has, if it is known before there is one (not with a
/// wildcard port). `at` is the answer to its [`question`]; without one, the name of a host stands
/// for no address.
pub(crate) fn local_name(endpoint: &Endpoint, at: Answer, options: &Options) -> Option<String> {
    REGISTRY.iter().find_map(|entry| (entry.local_name)(endpoint, at, options))
}

/// The way to `endpoint`. Does not ask the network.
pub(crate) fn route(endpoint: &Endpoint, options: &Options) -> Result<Route, Error> {
    REGISTRY
        .iter()
        .find_map(|entry| (entry.route)(endpoint, options))
        .unwrap_or(Err(Error::ProtocolNotSupported))
}

/// How streams to `endpoint` carry ZMTP, unless as it is.
pub(crate) fn carrying(endpoint: &Endpoint, options: &Options) -> Result<Option<Carrying>, Error> {
    REGISTRY.iter().find_map(|entry| (entry.carrying)(endpoint, options)).transpose()
}

/// Starts to connect; true if it is done already.
pub(crate) fn connect(
    address: &Address,
    source: Option<&SocketAddr>,
    options: &Options,
) -> Result<(Stream, bool), net::Failure> {
    let connected = Stream::connect(address, source, &tcp::stream_options(options))?;
    ipc::prepare_sharing(&connected.0, options);
    Ok(connected)
}

/// The peer has shaken hands, so it may be given more than bytes, and give more.
pub(crate) fn begin_sharing(stream: &Stream) {
    ipc::begin_sharing(stream);
}

/// Reads the environment, which a program may change later, when another thread must not look at
/// it.
pub(crate) fn read_environment() {
    ipc::peers_with_memory();
}

/// Whether a peer that has come may stay, by the socket's filters; sets the stream's options.
pub(crate) fn admit(stream: &Stream, options: &Options) -> bool {
    REGISTRY.iter().find_map(|entry| (entry.admit)(stream, stream.family(), options)).unwrap_or(false)
}

/// The two ends of a stream of the endpoint `name`, which was bound or else connected here.
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
    // Copied: it has grown piece by piece, into more memory than it needs.
    Arc::new(named.with_other(&*other))
}

/// The peer's address as messages show it ("Peer-Address"): without the port; of a local socket,
/// the user, group and process behind it.
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
