//! ZAP (RFC 27): requests to an authenticator and its replies, as frames.
//!
//! A session returns [`Credentials`] when a handler has to judge its peer. The engine sends
//! [`request`] to the handler of its context and passes the reply to [`parse_reply`]. The handler
//! belongs to the application, but its replies are checked like the input of a peer.

use crate::error::{ProtocolError, ZapFault};
use crate::metadata::Metadata;
use crate::secret::Secret;

/// The inproc name at which a handler binds.
pub const HANDLER: &str = "zeromq.zap.01";

/// Frames of a reply, the delimiter included.
pub const REPLY_FRAMES: usize = 7;

const VERSION: &[u8] = b"1.0";
/// Each handshake has one request on its own pipe, so the number need not be unique.
const REQUEST_ID: &[u8] = b"1";

/// Credentials that a peer has sent.
#[derive(Debug)]
pub struct Credentials {
    /// Name of the mechanism.
    pub mechanism: &'static str,
    /// Empty (NULL), user name and password (PLAIN), or the public key (CURVE).
    pub frames: Vec<Secret<Vec<u8>>>,
}

impl Credentials {
    /// Returns the public part of the credentials, which identifies the peer: its user name or its
    /// key; empty for NULL.
    pub fn name(&self) -> &[u8] {
        self.frames.first().map_or(&[], |frame| frame.as_slice())
    }
}

/// Reply of a handler.
#[derive(Debug, PartialEq, Eq)]
pub struct ZapReply {
    /// 200 accepts the peer; 300 is a temporary failure, 400 a refusal, 500 a fault of the handler.
    pub status: u16,
    /// Reason in the handler's words.
    pub text: Vec<u8>,
    /// Name that the handler gives the peer.
    pub user_id: Vec<u8>,
    /// Further properties for the messages of this peer.
    pub properties: Vec<(String, Vec<u8>)>,
}

/// Returns all frames of a request, the delimiter included.
pub fn request<'a>(
    domain: &'a [u8],
    address: &'a [u8],
    routing_id: &'a [u8],
    credentials: &'a Credentials,
) -> impl Iterator<Item = &'a [u8]> {
    let fixed: [&[u8]; 7] =
        [b"", VERSION, REQUEST_ID, domain, address, routing_id, credentials.mechanism.as_bytes()];
    fixed.into_iter().chain(credentials.frames.iter().map(|frame| frame.as_slice()))
}

/// Judges a whole reply, the delimiter included.
///
/// # Errors
/// Returns the fault in the reply as [`ProtocolError::Zap`].
pub fn parse_reply(frames: &[&[u8]]) -> Result<ZapReply, ProtocolError> {
    let [delimiter, version, request_id, status, text, user_id, metadata] = *frames else {
        return Err(ZapFault::FrameCount.into());
    };
    if !delimiter.is_empty() {
        return Err(ZapFault::Delimiter.into());
    }
    if version != VERSION {
        return Err(ZapFault::Version.into());
    }
    if request_id != REQUEST_ID {
        return Err(ZapFault::RequestId.into());
    }
    let [digit @ b'2'..=b'5', b'0', b'0'] = *status else { return Err(ZapFault::StatusCode.into()) };
    let properties = Metadata::collect(metadata).map_err(|_| ZapFault::Metadata)?.0;
    Ok(ZapReply {
        status: u16::from(digit - b'0') * 100,
        text: text.to_vec(),
        user_id: user_id.to_vec(),
        properties,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_frames_of_the_rfc() {
        let frames = vec![Secret::new(b"admin".to_vec()), Secret::new(b"secret".to_vec())];
        let credentials = Credentials { mechanism: "PLAIN", frames };
        assert_eq!(credentials.name(), b"admin");
        assert_eq!(Credentials { mechanism: "NULL", frames: Vec::new() }.name(), b"");
        let frames: Vec<&[u8]> = request(b"test", b"127.0.0.1", b"id", &credentials).collect();
        let expected: [&[u8]; 9] =
            [b"", b"1.0", b"1", b"test", b"127.0.0.1", b"id", b"PLAIN", b"admin", b"secret"];
        assert_eq!(frames, expected);
        assert!(!format!("{credentials:?}").contains("115"), "no password in a debug print");
    }

    const GOOD: [&[u8]; 7] = [b"", b"1.0", b"1", b"200", b"OK", b"joe", b"\x05Hello\0\0\0\x05World"];

    #[test]
    fn a_good_reply() {
        let verdict = parse_reply(&GOOD).unwrap();
        assert_eq!((verdict.status, verdict.text), (200, b"OK".to_vec()));
        assert_eq!(verdict.user_id, b"joe");
        assert_eq!(verdict.properties, [("Hello".to_owned(), b"World".to_vec())]);
        for (status, number) in [(b"300", 300), (b"400", 400), (b"500", 500)] {
            let mut frames = GOOD;
            frames[3] = status;
            assert_eq!(parse_reply(&frames).unwrap().status, number);
        }
    }

    #[test]
    fn every_part_is_checked() {
        let fault = |index: usize, frame: &'static [u8]| {
            let mut frames = GOOD;
            frames[index] = frame;
            parse_reply(&frames).unwrap_err()
        };
        assert_eq!(fault(0, b"x"), ZapFault::Delimiter.into());
        for version in [&b""[..], b"1.1", b"1.0 "] {
            assert_eq!(fault(1, version), ZapFault::Version.into());
        }
        for id in [&b""[..], b"2", b"11"] {
            assert_eq!(fault(2, id), ZapFault::RequestId.into());
        }
        for status in [&b""[..], b"100", b"600", b"201", b"20", b"2000", b"invalid"] {
            assert_eq!(fault(3, status), ZapFault::StatusCode.into());
        }
        for metadata in [&b"\0"[..], b"\x05Hello", b"\x05Hello\0\0\0\x06World", b"\x01a\0\0\0\0\x01A\0\0\0\0"]
        {
            assert_eq!(fault(6, metadata), ZapFault::Metadata.into());
        }
        assert_eq!(parse_reply(&GOOD[..6]), Err(ZapFault::FrameCount.into()));
        let mut longer = GOOD.to_vec();
        longer.push(b"");
        assert_eq!(parse_reply(&longer), Err(ZapFault::FrameCount.into()));
        assert_eq!(parse_reply(&[]), Err(ZapFault::FrameCount.into()));
    }
}
