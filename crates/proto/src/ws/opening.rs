//! The opening handshake (RFC 6455, section 4), with ZWS's protocols (RFC 45, "Handshake").
//!
//! Each side gathers one head of at most [`MAX_HEAD`] bytes and judges it as a whole. `Origin`,
//! cookies and extensions are ignored. A server accepts any path and any host, as libzmq's does.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha1::{Digest, Sha1};

use super::Role;
use crate::error::Violation;

/// The largest head of a request or an answer, in bytes.
const MAX_HEAD: usize = 8 * 1024;
/// Maximum number of header lines in a head.
const MAX_HEADERS: usize = 64;
/// Text that RFC 6455 appends to a key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The protocol without a mechanism.
const BARE: &str = "ZWS2.0";

/// Protocol that the two ends have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// `ZWS2.0/` and our mechanism.
    Mechanism,
    /// `ZWS2.0`: NULL without a handshake.
    Bare,
}

/// An opening in progress.
pub(super) struct Opening {
    mechanism: &'static str,
    /// Value that a server must answer; `None` if we are the server.
    accept: Option<String>,
    head: Vec<u8>,
}

impl Opening {
    /// Starts the opening. Appends a client's request to `out`.
    pub(super) fn start(role: &Role, mechanism: &'static str, nonce: [u8; 16], out: &mut Vec<u8>) -> Self {
        let mut accept = None;
        if let Role::Client { host, path } = role {
            let key = BASE64.encode(nonce);
            let bare = if mechanism == "NULL" { ",ZWS2.0" } else { "" };
            out.extend_from_slice(
                format!(
                    "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                     Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: ZWS2.0/{mechanism}{bare}\r\n\
                     Sec-WebSocket-Version: 13\r\n\r\n"
                )
                .as_bytes(),
            );
            accept = Some(accept_of(key.as_bytes()));
        }
        Opening { mechanism, accept, head: Vec::new() }
    }

    pub(super) fn buffered(&self) -> usize {
        self.head.len()
    }

    /// Takes bytes of the peer. Once the head is complete, returns the agreed protocol and the
    /// bytes after the head. Appends a server's answer, or its refusal, to `out`.
    pub(super) fn push(
        &mut self,
        wire: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Protocol, Vec<u8>)>, Violation> {
        const END: &[u8] = b"\r\n\r\n";
        let from = self.head.len().saturating_sub(END.len() - 1);
        let room = MAX_HEAD - self.head.len();
        let taken = wire.len().min(room);
        self.head.extend_from_slice(&wire[..taken]);
        let end = self.head[from..].windows(END.len()).position(|bytes| bytes == END);
        let Some(end) = end.map(|end| from + end + END.len()) else {
            return if self.head.len() < MAX_HEAD {
                Ok(None)
            } else {
                Err(self.refuse(out, "431 Request Header Fields Too Large"))
            };
        };
        let rest = [&self.head[end..], &wire[taken..]].concat();
        self.head.truncate(end);
        let settled = match &self.accept {
            None => self.judge_request(out),
            Some(accept) => judge_answer(&self.head, accept, self.mechanism),
        };
        self.head = Vec::new();
        Ok(Some((settled?, rest)))
    }

    fn judge_request(&self, out: &mut Vec<u8>) -> Result<Protocol, Violation> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        if !matches!(request.parse(&self.head), Ok(httparse::Status::Complete(_))) {
            return Err(self.refuse(out, "400 Bad Request"));
        }
        if request.method != Some("GET") {
            return Err(self.refuse(out, "405 Method Not Allowed\r\nAllow: GET"));
        }
        let head = Head(request.headers);
        if request.version != Some(1)
            || !head.has("Upgrade", "websocket")
            || !head.has("Connection", "upgrade")
        {
            return Err(self.refuse(out, "426 Upgrade Required\r\nUpgrade: websocket"));
        }
        if head.first("Sec-WebSocket-Version") != Some(b"13") {
            return Err(
                self.refuse(out, "426 Upgrade Required\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13")
            );
        }
        let key = head
            .first("Sec-WebSocket-Key")
            .filter(|key| BASE64.decode(key).is_ok_and(|nonce| nonce.len() == 16));
        let protocol =
            head.tokens("Sec-WebSocket-Protocol").find_map(|token| Some((token, self.protocol(token)?)));
        let (Some(key), Some((name, protocol))) = (key, protocol) else {
            return Err(self.refuse(out, "400 Bad Request"));
        };
        out.extend_from_slice(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
        );
        out.extend_from_slice(format!("Sec-WebSocket-Accept: {}\r\n", accept_of(key)).as_bytes());
        out.extend_from_slice(&[b"Sec-WebSocket-Protocol: ", name, b"\r\n\r\n"].concat());
        Ok(protocol)
    }

    fn protocol(&self, token: &[u8]) -> Option<Protocol> {
        protocol(token, self.mechanism)
    }

    fn refuse(&self, out: &mut Vec<u8>, status: &str) -> Violation {
        if self.accept.is_none() {
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            out.extend_from_slice(answer.as_bytes());
        }
        Violation::WebSocketOpening
    }
}

fn judge_answer(head: &[u8], accept: &str, mechanism: &str) -> Result<Protocol, Violation> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    if !matches!(response.parse(head), Ok(httparse::Status::Complete(_))) || response.code != Some(101) {
        return Err(Violation::WebSocketOpening);
    }
    let head = Head(response.headers);
    let good = head.has("Upgrade", "websocket")
        && head.has("Connection", "upgrade")
        && head.first("Sec-WebSocket-Accept") == Some(accept.as_bytes())
        // We have not asked for extensions.
        && head.first("Sec-WebSocket-Extensions").is_none();
    let protocol = head.first("Sec-WebSocket-Protocol").and_then(|name| protocol(name, mechanism));
    protocol.filter(|_| good).ok_or(Violation::WebSocketOpening)
}

/// Returns the meaning of a protocol name for an end with this mechanism.
fn protocol(name: &[u8], mechanism: &str) -> Option<Protocol> {
    match name.strip_prefix(BARE.as_bytes())? {
        b"" if mechanism == "NULL" => Some(Protocol::Bare),
        [b'/', name @ ..] if name == mechanism.as_bytes() => Some(Protocol::Mechanism),
        _ => None,
    }
}

fn accept_of(key: &[u8]) -> String {
    BASE64.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize())
}

struct Head<'h>(&'h [httparse::Header<'h>]);

impl<'h> Head<'h> {
    fn values(&self, name: &'static str) -> impl Iterator<Item = &'h [u8]> + use<'h> {
        let headers = self.0;
        headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    }

    fn first(&self, name: &'static str) -> Option<&'h [u8]> {
        self.values(name).next().map(<[u8]>::trim_ascii)
    }

    /// Returns the parts of a list, which may span several header lines.
    fn tokens(&self, name: &'static str) -> impl Iterator<Item = &'h [u8]> + use<'h> {
        self.values(name).flat_map(|value| value.split(|&byte| byte == b',')).map(<[u8]>::trim_ascii)
    }

    fn has(&self, name: &'static str, token: &str) -> bool {
        self.tokens(name).any(|part| part.eq_ignore_ascii_case(token.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_accept() {
        // This is the worked example of RFC 6455, section 1.3.
        assert_eq!(accept_of(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn protocols_by_mechanism() {
        assert_eq!(protocol(b"ZWS2.0", "NULL"), Some(Protocol::Bare));
        assert_eq!(protocol(b"ZWS2.0/NULL", "NULL"), Some(Protocol::Mechanism));
        assert_eq!(protocol(b"ZWS2.0/CURVE", "CURVE"), Some(Protocol::Mechanism));
        for (name, mechanism) in [
            ("ZWS2.0", "CURVE"),
            ("ZWS2.0/NULL", "PLAIN"),
            ("ZWS2.0/", "NULL"),
            ("ZWS1.0", "NULL"),
            ("zws2.0", "NULL"),
        ] {
            assert_eq!(protocol(name.as_bytes(), mechanism), None, "{name}");
        }
    }
}
