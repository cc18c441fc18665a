//! Options of the transports.

use std::time::Duration;

use super::Builder;
use crate::kind::Kind;
use crate::option;

/// Options for transports. Unset options keep the system's defaults.
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
    /// Turns TCP keep-alive on or off. Default: the system's setting.
    pub fn tcp_keepalive(self, on: bool) -> Self {
        self.int(option::TCP_KEEPALIVE, on.into())
    }

    /// Sets the silence before the first TCP keep-alive probe, in whole seconds.
    pub fn tcp_keepalive_idle(self, time: Duration) -> Self {
        self.seconds(option::TCP_KEEPALIVE_IDLE, time)
    }

    /// Sets the interval between TCP keep-alive probes, in whole seconds.
    pub fn tcp_keepalive_interval(self, time: Duration) -> Self {
        self.seconds(option::TCP_KEEPALIVE_INTVL, time)
    }

    /// Sets the number of unanswered TCP keep-alive probes after which a connection is closed.
    pub fn tcp_keepalive_count(self, probes: u32) -> Self {
        self.count(option::TCP_KEEPALIVE_CNT, probes)
    }

    /// Sets how long data may stay unacknowledged before a TCP connection is closed.
    pub fn tcp_max_retransmit(self, time: Duration) -> Self {
        self.time(option::TCP_MAXRT, time)
    }

    /// Sets the size of the kernel's send buffer, in bytes.
    pub fn send_buffer(self, bytes: u32) -> Self {
        self.count(option::SNDBUF, bytes)
    }

    /// Sets the size of the kernel's receive buffer, in bytes.
    pub fn receive_buffer(self, bytes: u32) -> Self {
        self.count(option::RCVBUF, bytes)
    }

    /// Sets the type of service in the headers of IP packets.
    pub fn type_of_service(self, value: u8) -> Self {
        self.int(option::TOS, value.into())
    }

    /// Uses only this network interface, for example `eth0`. Needs privileges on some systems.
    pub fn bind_to_device(self, interface: &str) -> Self {
        self.raw_option(option::BINDTODEVICE, interface.as_bytes())
    }

    /// Connects through a SOCKS 5 proxy at `host:port`.
    pub fn socks_proxy(self, address: &str) -> Self {
        self.raw_option(option::SOCKS_PROXY, address.as_bytes())
    }

    /// Sets name and password for the proxy.
    pub fn socks_credentials(self, username: &str, password: &str) -> Self {
        self.raw_option(option::SOCKS_USERNAME, username.as_bytes())
            .raw_option(option::SOCKS_PASSWORD, password.as_bytes())
    }

    fn seconds(self, number: i32, time: Duration) -> Self {
        let whole = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
        self.count(number, u32::try_from(whole).unwrap_or(u32::MAX))
    }
}

/// Options for `tls+tcp` and `wss`: TLS below ZMTP and WebSocket.
#[cfg(feature = "tls")]
impl<K: Kind> Builder<K> {
    /// Sets our certificate, the intermediate certificates and the private key, as PEM. A server
    /// needs them. A client sends the certificate if the server asks for it.
    pub fn tls_identity(self, certificates: &str, key: &str) -> Self {
        self.raw_option(option::WSS_CERT_PEM, certificates.as_bytes())
            .raw_option(option::WSS_KEY_PEM, key.as_bytes())
    }

    /// Sets the trusted certificates, as PEM. A client trusts servers with such a certificate.
    /// Without this option, a `tls+tcp` client trusts the system's certificates. With this option,
    /// a server requires a client certificate and refuses clients without one. Messages of accepted
    /// clients carry the name in the certificate as `User-Id`.
    pub fn tls_trust(self, certificates: &str) -> Self {
        self.raw_option(option::WSS_TRUST_PEM, certificates.as_bytes())
    }

    /// Makes a client also trust the system's certificates.
    pub fn tls_trust_system(self, on: bool) -> Self {
        self.int(option::WSS_TRUST_SYSTEM, on.into())
    }

    /// Sets the name that the server's certificate must have, instead of the endpoint's host. If no
    /// name is set, `wss` checks a name only if the system's certificates are trusted.
    pub fn tls_hostname(self, name: &str) -> Self {
        self.raw_option(option::WSS_HOSTNAME, name.as_bytes())
    }
}
