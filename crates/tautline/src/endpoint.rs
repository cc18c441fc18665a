//! Checks of endpoints: at compile time by [`endpoint!`](crate::endpoint!), and at run time by
//! [`bind`](crate::Socket::bind) and [`connect`](crate::Socket::connect).

use std::fmt;

/// Reason why an endpoint is invalid.
///
/// ```
/// use tautline::endpoint::{self, EndpointError};
///
/// assert_eq!(endpoint::check("tcp://127.0.0.1:5555"), Ok(()));
/// assert_eq!(endpoint::check("127.0.0.1:5555"), Err(EndpointError::NoTransport));
/// assert_eq!(endpoint::check("tcp://localhost"), Err(EndpointError::NoPort));
/// assert_eq!(endpoint::check("tcp://localhost:99999"), Err(EndpointError::Port));
/// ```
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
    /// Returns the text for compile-time messages.
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

/// Makes a `&'static str` from an endpoint that is [checked](crate::endpoint::check) at compile
/// time.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Pub, endpoint};
///
/// let mut publisher = Pub::new(&Context::new())?;
/// publisher.bind(endpoint!("tcp://127.0.0.1:*"))?;
/// # Ok(()) }
/// ```
///
/// ```compile_fail
/// let endpoint = tautline::endpoint!("tcp:/127.0.0.1:5555");
/// ```
#[macro_export]
macro_rules! endpoint {
    ($text:expr) => {{
        const TEXT: &str = $text;
        const _: () = $crate::endpoint::assert(TEXT);
        TEXT
    }};
}

#[doc(hidden)]
pub const fn assert(text: &str) {
    if let Err(error) = check(text) {
        panic!("{}", error.text());
    }
}

/// Checks only the form of an endpoint, and looks nothing up. Stricter than `bind`, which ignores
/// extra characters around a port.
///
/// # Errors
/// Returns the reason why the endpoint is invalid.
pub const fn check(text: &str) -> Result<(), EndpointError> {
    let bytes = text.as_bytes();
    let Some(colon) = find(bytes, b':', 0) else { return Err(EndpointError::NoTransport) };
    if colon == 0 || colon + 2 >= bytes.len() || bytes[colon + 1] != b'/' || bytes[colon + 2] != b'/' {
        return Err(EndpointError::NoTransport);
    }
    let (scheme, rest) = bytes.split_at(colon);
    let (_, address) = rest.split_at(3);
    if address.is_empty() {
        return Err(EndpointError::NoAddress);
    }
    match scheme {
        b"inproc" => Ok(()),
        b"ipc" => check_ipc(address),
        b"tcp" | b"tls+tcp" => check_tcp(address),
        b"udp" => check_host_port(address),
        b"ws" | b"wss" => match find(address, b'/', 0) {
            Some(slash) => check_tcp(address.split_at(slash).0),
            None => check_tcp(address),
        },
        b"vsock" => check_vsock(address),
        b"name" => check_name(address),
        _ => Err(EndpointError::UnknownTransport),
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

/// Maximum path length in bytes in the address of a Unix domain socket.
const PATH_MAX: usize =
    if cfg!(any(target_os = "linux", target_os = "android", windows)) { 107 } else { 103 };

const fn check_ipc(address: &[u8]) -> Result<(), EndpointError> {
    match address {
        [b'*', ..] => Ok(()),
        [b'@'] => Err(EndpointError::Address),
        _ if address.len() > PATH_MAX => Err(EndpointError::PathTooLong),
        _ => Ok(()),
    }
}

/// Checks `host:port`, or `source:port;host:port`.
const fn check_tcp(address: &[u8]) -> Result<(), EndpointError> {
    let Some(semicolon) = find(address, b';', 0) else { return check_host_port(address) };
    let (source, target) = address.split_at(semicolon);
    if let Err(error) = check_host_port(source) {
        return Err(error);
    }
    check_host_port(target.split_at(1).1)
}

const fn check_host_port(address: &[u8]) -> Result<(), EndpointError> {
    let Some(colon) = find_last(address, b':') else { return Err(EndpointError::NoPort) };
    let (host, port) = address.split_at(colon);
    match (host, port) {
        ([], _) | ([b'[', b']'], _) => Err(EndpointError::NoHost),
        (_, [_]) => Err(EndpointError::NoPort),
        // An IPv6 address without a port.
        (_, [.., b']']) => Err(EndpointError::NoPort),
        (_, [_, b'*'] | [_, b'0']) => Ok(()),
        (_, [_, digits @ ..]) => match number(digits) {
            Some(1..=65535) => Ok(()),
            _ => Err(EndpointError::Port),
        },
        _ => Err(EndpointError::NoPort),
    }
}

const fn check_vsock(address: &[u8]) -> Result<(), EndpointError> {
    let Some(colon) = find_last(address, b':') else { return Err(EndpointError::NoPort) };
    let (cid, port) = address.split_at(colon);
    match port.split_at(1).1 {
        b"*" | b"-1" => {}
        digits if number(digits).is_some() => {}
        _ => return Err(EndpointError::Port),
    }
    match cid {
        b"*" | b"-1" | b"@" => Ok(()),
        digits if number(digits).is_some() => Ok(()),
        _ => Err(EndpointError::Address),
    }
}

/// Parses a decimal number of 32 bits.
const fn number(digits: &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    let mut rest = digits;
    if rest.is_empty() {
        return None;
    }
    while let [digit @ b'0'..=b'9', tail @ ..] = rest {
        let Some(shifted) = value.checked_mul(10) else { return None };
        let Some(sum) = shifted.checked_add((*digit - b'0') as u32) else { return None };
        value = sum;
        rest = tail;
    }
    if rest.is_empty() { Some(value) } else { None }
}

const fn find(bytes: &[u8], wanted: u8, from: usize) -> Option<usize> {
    let mut at = from;
    while at < bytes.len() {
        if bytes[at] == wanted {
            return Some(at);
        }
        at += 1;
    }
    None
}

const fn find_last(bytes: &[u8], wanted: u8) -> Option<usize> {
    let mut at = bytes.len();
    while at > 0 {
        at -= 1;
        if bytes[at] == wanted {
            return Some(at);
        }
    }
    None
}

/// Returns the reason why the engine refused an endpoint as invalid; `None` if the endpoint itself
/// is valid.
pub(crate) fn reason(text: &str, connecting: bool) -> Option<EndpointError> {
    match check(text) {
        Err(reason) => Some(reason),
        Ok(()) if connecting && (text.contains('*') || text.ends_with(":0")) => {
            Some(EndpointError::NotConnectable)
        }
        Ok(()) if connecting => Some(EndpointError::Address),
        Ok(()) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(check(&format!("ipc:///{}", "p".repeat(PATH_MAX))), Err(PathTooLong));
    }

    #[test]
    fn bind_only_endpoint_cannot_be_connected() {
        for (text, wrong) in [
            ("tcp://*:5555", EndpointError::NotConnectable),
            ("tcp://127.0.0.1:*", EndpointError::NotConnectable),
            ("tcp://127.0.0.1:0", EndpointError::NotConnectable),
            ("tcp://host name:1", EndpointError::Address),
        ] {
            assert_eq!(reason(text, true), Some(wrong), "{text}");
        }
        assert_eq!(reason("tcp://127.0.0.1:0", false), None);
    }

    #[test]
    fn valid_endpoints_pass() {
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
        }
        assert_eq!(crate::endpoint!("tcp://127.0.0.1:*"), "tcp://127.0.0.1:*");
    }
}
