//! Check of the form of an endpoint at compile time, with the reason if the endpoint is invalid.
//!
//! [`Endpoint::parse`] cannot run at compile time, because it allocates, and because the standard
//! library parses IP addresses only at run time. Both parse by the functions of `grammar`. The
//! check is stricter: it refuses characters around a port.
//!
//! [`Endpoint::parse`]: super::Endpoint::parse

use std::fmt;

use super::grammar::{SUN_PATH, decimal, split_path, split_port, split_scheme, split_source};

/// Reason why an endpoint is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum EndpointError {
    /// There is no `transport://` before the address.
    NoTransport,
    /// There is no address behind `://`.
    NoAddress,
    /// The transport is not `tcp`, `ipc`, `inproc`, `ws`, `wss`, `tls+tcp`, `udp`, `vsock` or
    /// `name`.
    UnknownTransport,
    /// There is no `:` and port after the host.
    NoPort,
    /// The port is neither a number from 1 to 65535 nor `*`.
    Port,
    /// There is no host before the port. Use `*` for any local host.
    NoHost,
    /// The endpoint cannot be connected: `*` as host or port, and port 0, only work for binding.
    NotConnectable,
    /// The path of an `ipc` endpoint is too long for the system.
    PathTooLong,
    /// The address does not fit the transport.
    Address,
}

impl EndpointError {
    /// Returns the text for messages, also at compile time.
    const fn text(self) -> &'static str {
        match self {
            EndpointError::NoTransport => {
                "the endpoint has no transport: it must begin with tcp://, ipc://, inproc:// or the like"
            }
            EndpointError::NoAddress => "the endpoint has no address after ://",
            EndpointError::UnknownTransport => {
                "the transport of the endpoint is not tcp, ipc, inproc, ws, wss, tls+tcp, udp, vsock or name"
            }
            EndpointError::NoPort => "the endpoint has no port: the address is host:port",
            EndpointError::Port => "the port of the endpoint is neither a number from 1 to 65535 nor *",
            EndpointError::NoHost => "the endpoint has no host before its port; use * for any local host",
            EndpointError::NotConnectable => {
                "the endpoint cannot be connected to: * and port 0 are for binding"
            }
            EndpointError::PathTooLong => "the path of the endpoint is too long",
            EndpointError::Address => "the address of the endpoint does not fit its transport",
        }
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for EndpointError {}

/// Checks only the form of an endpoint, without a system call. Stricter than `bind`, which ignores
/// extra characters around a port.
///
/// # Errors
/// Returns the reason why the endpoint is invalid.
pub const fn check(text: &str) -> Result<(), EndpointError> {
    let Some((scheme, address)) = split_scheme(text) else { return Err(EndpointError::NoTransport) };
    if address.is_empty() {
        return Err(EndpointError::NoAddress);
    }
    match scheme.as_bytes() {
        b"" => Err(EndpointError::NoTransport),
        b"inproc" => Ok(()),
        b"ipc" => check_ipc(address),
        b"tcp" | b"tls+tcp" => check_tcp(address),
        b"udp" => check_host_port(address),
        b"ws" | b"wss" => check_tcp(split_path(address).0),
        b"vsock" => check_vsock(address),
        b"name" => check_name(address.as_bytes()),
        _ => Err(EndpointError::UnknownTransport),
    }
}

/// Stops the compilation if the endpoint is invalid.
pub const fn assert_valid(text: &str) {
    if let Err(error) = check(text) {
        panic!("{}", error.text());
    }
}

/// Checks a name: letters, digits, `-`, `_`, and dots between them; at most 200 bytes.
const fn check_name(name: &[u8]) -> Result<(), EndpointError> {
    let mut before = b'.';
    let mut index = 0;
    while index < name.len() {
        let byte = name[index];
        let fits = match byte {
            b'.' => before != b'.',
            _ => byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_',
        };
        if !fits {
            return Err(EndpointError::Address);
        }
        before = byte;
        index += 1;
    }
    if before == b'.' || name.len() > 200 { Err(EndpointError::Address) } else { Ok(()) }
}

const fn check_ipc(address: &str) -> Result<(), EndpointError> {
    match address.as_bytes() {
        [b'*', ..] => Ok(()),
        [b'@'] => Err(EndpointError::Address),
        _ if address.len() >= SUN_PATH => Err(EndpointError::PathTooLong),
        _ => Ok(()),
    }
}

/// Checks `host:port`, or `source:port;host:port`.
const fn check_tcp(address: &str) -> Result<(), EndpointError> {
    let Some((source, target)) = split_source(address) else { return check_host_port(address) };
    if let Err(error) = check_host_port(source) {
        return Err(error);
    }
    check_host_port(target)
}

const fn check_host_port(address: &str) -> Result<(), EndpointError> {
    let Some((host, port)) = split_port(address) else { return Err(EndpointError::NoPort) };
    match (host.as_bytes(), port.as_bytes()) {
        ([] | [b'[', b']'], _) => Err(EndpointError::NoHost),
        // The second is an IPv6 address without a port.
        (_, [] | [.., b']']) => Err(EndpointError::NoPort),
        (_, b"*" | b"0") => Ok(()),
        _ => match decimal(port) {
            Some(1..=65535) => Ok(()),
            _ => Err(EndpointError::Port),
        },
    }
}

const fn check_vsock(address: &str) -> Result<(), EndpointError> {
    let Some((cid, port)) = split_port(address) else { return Err(EndpointError::NoPort) };
    match (cid.as_bytes(), port.as_bytes()) {
        (_, b"*" | b"-1") => {}
        _ if decimal(port).is_some() => {}
        _ => return Err(EndpointError::Port),
    }
    match cid.as_bytes() {
        b"*" | b"-1" | b"@" => Ok(()),
        _ if decimal(cid).is_some() => Ok(()),
        _ => Err(EndpointError::Address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;
    use crate::error::Error;

    #[test]
    fn malformed_endpoint_has_a_reason() {
        use EndpointError::*;
        for (text, error) in [
            ("", NoTransport),
            ("tcp", NoTransport),
            ("tcp:", NoTransport),
            ("tcp:/x:1", NoTransport),
            ("://x", NoTransport),
            ("tcp://", NoAddress),
            ("inproc://", NoAddress),
            ("pigeon://x", UnknownTransport),
            ("TCP://x:1", UnknownTransport),
            ("tcp://localhost", NoPort),
            ("tcp://localhost:", NoPort),
            ("tcp://[::1]", NoPort),
            ("tcp://:5555", NoHost),
            ("tcp://[]:5555", NoHost),
            ("tcp://localhost:65536", Port),
            ("tcp://localhost:99999999999", Port),
            ("tcp://localhost:http", Port),
            ("tcp://localhost:-1", Port),
            ("tcp://lo;localhost:1", NoPort),
            ("ws://localhost/path", NoPort),
            ("udp://239.0.0.1", NoPort),
            ("ipc://@", Address),
            ("vsock://1", NoPort),
            ("vsock://1:x", Port),
            ("vsock://x:1", Address),
            ("name://a b", Address),
            ("name://a..b", Address),
            ("name://a.", Address),
        ] {
            assert_eq!(check(text), Err(error), "{text}");
        }
        assert_eq!(check(&format!("ipc://{}", "p".repeat(SUN_PATH))), Err(PathTooLong));
    }

    #[test]
    fn valid_endpoints_pass_and_can_be_bound() {
        for text in [
            "tcp://127.0.0.1:5555",
            "tcp://*:*",
            "tcp://eth0:0",
            "tcp://[fe80::1%lo]:65535",
            "tcp://lo:*;127.0.0.1:5555",
            "ipc:///tmp/x",
            "ipc://@abstract",
            "ipc://*",
            "inproc://any thing",
            "ws://localhost:80/path:x",
            "wss://*:*",
            "tls+tcp://localhost:5555",
            "udp://239.0.0.1:5555",
            "vsock://@:*",
            "vsock://2:5555",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
            match Endpoint::parse(text) {
                Ok(endpoint) => assert_eq!(endpoint.check_bind(), Ok(()), "{text}"),
                // A feature that this build does not have.
                Err(error) => assert_eq!(error, Error::ProtocolNotSupported, "{text}"),
            }
        }
    }
}
