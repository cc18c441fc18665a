//! What a transport is to do with the connections.

use std::time::Duration;

use super::Builder;
use crate::kind::Kind;
use crate::option;

/// Transports: for what is not said here the system's defaults hold.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::time::Duration;
/// use tautline::{Context, Dealer};
///
/// let dealer = Dealer::builder(&Context::new())
///     .tcp_keepalive(true)
///     .tcp_keepalive_idle(Duration::from_secs(60))
///     .send_buffer(1 << 20)
///     .connect("tcp://127.0.0.1:5555")?;
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// TCP keep-alive on or off; by default as the system has it.
    pub fn tcp_keepalive(self, on: bool) -> Self {
        self.int(option::TCP_KEEPALIVE, on.into())
    }

    /// TCP keep-alive: after how long a silence the first probe is sent, in whole seconds.
    pub fn tcp_keepalive_idle(self, time: Duration) -> Self {
        self.seconds(option::TCP_KEEPALIVE_IDLE, time)
    }

    /// TCP keep-alive: how long after a probe the next one is sent, in whole seconds.
    pub fn tcp_keepalive_interval(self, time: Duration) -> Self {
        self.seconds(option::TCP_KEEPALIVE_INTVL, time)
    }

    /// TCP keep-alive: after how many probes without an answer a connection is lost.
    pub fn tcp_keepalive_count(self, probes: u32) -> Self {
        self.count(option::TCP_KEEPALIVE_CNT, probes)
    }

    /// After how long without an acknowledgement a TCP connection is lost.
    pub fn tcp_max_retransmit(self, time: Duration) -> Self {
        self.time(option::TCP_MAXRT, time)
    }

    /// The size of the kernel's send buffer, in bytes.
    pub fn send_buffer(self, bytes: u32) -> Self {
        self.count(option::SNDBUF, bytes)
    }

    /// The size of the kernel's receive buffer, in bytes.
    pub fn receive_buffer(self, bytes: u32) -> Self {
        self.count(option::RCVBUF, bytes)
    }

    /// The type of service in the headers of IP packets.
    pub fn type_of_service(self, value: u8) -> Self {
        self.int(option::TOS, value.into())
    }

    /// Use this network interface only, `eth0` for example. Needs privileges on some systems.
    pub fn bind_to_device(self, interface: &str) -> Self {
        self.raw_option(option::BINDTODEVICE, interface.as_bytes())
    }

    /// Connect through a SOCKS 5 proxy at `host:port`.
    pub fn socks_proxy(self, address: &str) -> Self {
        self.raw_option(option::SOCKS_PROXY, address.as_bytes())
    }

    /// Name and password for the proxy.
    pub fn socks_credentials(self, username: &str, password: &str) -> Self {
        self.raw_option(option::SOCKS_USERNAME, username.as_bytes())
            .raw_option(option::SOCKS_PASSWORD, password.as_bytes())
    }

    fn seconds(self, number: i32, time: Duration) -> Self {
        let whole = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
        self.count(number, u32::try_from(whole).unwrap_or(u32::MAX))
    }
}

/// `tls+tcp` and `wss`: TLS below ZMTP and WebSocket.
#[cfg(feature = "tls")]
impl<K: Kind> Builder<K> {
    /// Our certificate, with those that lead from it to one the peers trust, and its private key,
    /// as PEM. A server needs them, a client has them to show if the server asks.
    pub fn tls_identity(self, certificates: &str, key: &str) -> Self {
        self.raw_option(option::WSS_CERT_PEM, certificates.as_bytes())
            .raw_option(option::WSS_KEY_PEM, key.as_bytes())
    }

    /// The certificates whose holders are trusted, as PEM. A client trusts such servers, and over
    /// `tls+tcp` those that the system trusts if nothing is said. A server that is told asks its
    /// clients for a certificate, and turns away those that have none; messages of the others have
    /// the name in it as `User-Id`.
    pub fn tls_trust(self, certificates: &str) -> Self {
        self.raw_option(option::WSS_TRUST_PEM, certificates.as_bytes())
    }

    /// Whether a client trusts those that the system trusts, too.
    pub fn tls_trust_system(self, on: bool) -> Self {
        self.int(option::WSS_TRUST_SYSTEM, on.into())
    }

    /// The name that the server's certificate must have, in place of the endpoint's host. Over
    /// `wss` no name is asked for if none is given here, unless the system's certificates are
    /// trusted.
    pub fn tls_hostname(self, name: &str) -> Self {
        self.raw_option(option::WSS_HOSTNAME, name.as_bytes())
    }
}
