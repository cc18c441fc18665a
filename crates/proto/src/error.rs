//! Faults of a peer, as one small `Copy` value.
//!
//! Every parser of this crate returns this type, and the engine turns it into a monitor event. It
//! builds no strings and allocates no memory: a peer that misbehaves on purpose must stay cheap.
//! Each variant names one clause of an RFC, so that a test can assert exactly which clause was
//! broken.

use std::fmt;

use crate::SocketType;

mod tls;

pub use tls::TlsFault;

/// Reason why a connection cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The peer broke a rule of the protocol.
    PeerMisbehaved(Violation),
    /// The peer kept the rules, but the two ends are incompatible.
    PeerIncompatible(Mismatch),
    /// A frame announces more bytes than are allowed here.
    TooLarge {
        /// The announced body size in bytes.
        size: u64,
        /// The largest body accepted in this place.
        limit: u64,
    },
    /// One of the two ends refused the other.
    Auth(AuthFailure),
    /// The authenticator on our side violates its protocol.
    Zap(ZapFault),
    /// TLS, which carries ZMTP here, has failed.
    Tls(TlsFault),
    /// The system has no random bytes for keys.
    NoRandomness,
    /// The system has no memory for the peer's data.
    NoMemory,
}

/// Protocol rule that a peer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// A reserved bit of a frame's flags octet is set.
    ReservedFlags,
    /// A command frame announces a further frame.
    CommandWithMore,
    /// A frame's length does not fit 63 bits.
    FrameLength,
    /// The mechanism field of the greeting is not a null-padded name.
    MechanismName,
    /// A routing id is longer than 255 bytes.
    IdentityLength,
    /// The identity frame of an older peer is not a single frame.
    IdentityFrame,
    /// A message frame arrived before the handshake was complete.
    UnexpectedMessage,
    /// A command is not allowed at this point of the handshake.
    UnexpectedCommand,
    /// A command's name is missing, cut off or not made of letters.
    CommandName,
    /// An ERROR command whose reason is cut off or followed by more.
    MalformedError,
    /// A PING without a time-to-live or with a context of more than 16 bytes.
    MalformedPing,
    /// A PONG with a context of more than 16 bytes.
    MalformedPong,
    /// A metadata property's name is empty or has a character that is not allowed.
    PropertyName,
    /// A metadata property ends before its announced length.
    PropertyTruncated,
    /// A metadata property's length does not fit 31 bits.
    PropertyLength,
    /// A metadata property occurs twice.
    PropertyDuplicate,
    /// A HELLO does not have the parts that its mechanism requires.
    MalformedHello,
    /// A WELCOME does not have the parts that its mechanism requires.
    MalformedWelcome,
    /// An INITIATE does not have the parts that its mechanism requires.
    MalformedInitiate,
    /// A READY of CURVE is too short for its parts.
    MalformedReady,
    /// A MESSAGE of CURVE is too short for its parts.
    MalformedMessage,
    /// A box does not open, or a public key is invalid.
    Cryptographic,
    /// A client's vouch does not match this connection.
    KeyExchange,
    /// A nonce is not greater than the previous one.
    NonceOrder,
    /// The first bytes of a WebSocket are not an opening handshake of RFC 6455, or not one for ZWS
    /// 2.0.
    WebSocketOpening,
    /// A WebSocket frame violates RFC 6455 or RFC 45.
    WebSocketFrame,
    /// A message to a REQ does not have the form of a reply.
    MalformedReply,
}

/// Incompatibility between the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mismatch {
    /// The peer announces a different security mechanism.
    Mechanism,
    /// The peer's version cannot carry our security mechanism.
    Version,
    /// The peer's socket type is unknown.
    UnknownSocketType,
    /// The socket types may not talk to each other.
    SocketType {
        /// Our socket type.
        ours: SocketType,
        /// Socket type that the peer announced.
        theirs: SocketType,
    },
}

/// Way in which authentication failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthFailure {
    /// The peer ended the handshake with an ERROR command. The text is in
    /// [`Session::refusal`](crate::Session::refusal).
    Refused {
        /// The reason as a ZAP status (300, 400 or 500), if it is one.
        status: Option<u16>,
    },
    /// Our own authenticator refused the peer.
    Denied {
        /// Status of the refusal: 300, 400 or 500.
        status: u16,
    },
}

/// Fault in the reply of an authenticator (RFC 27).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZapFault {
    /// The reply does not have seven frames, the delimiter included.
    FrameCount,
    /// The delimiter is not empty.
    Delimiter,
    /// The version is not 1.0.
    Version,
    /// The request id differs from that of the request.
    RequestId,
    /// The status is not 200, 300, 400 or 500.
    StatusCode,
    /// The metadata is malformed.
    Metadata,
}

// The ZMQ_PROTOCOL_ERROR_ZMTP_* numbers of the public header.
const UNSPECIFIED: u32 = 0x1000_0000;
const UNEXPECTED_COMMAND: u32 = 0x1000_0001;
const MALFORMED_COMMAND: u32 = 0x1000_0011;
const INVALID_SEQUENCE: u32 = 0x1000_0002;
const KEY_EXCHANGE: u32 = 0x1000_0003;
const MALFORMED_COMMAND_MESSAGE: u32 = 0x1000_0012;
const MALFORMED_COMMAND_HELLO: u32 = 0x1000_0013;
const MALFORMED_COMMAND_INITIATE: u32 = 0x1000_0014;
const MALFORMED_COMMAND_ERROR: u32 = 0x1000_0015;
const MALFORMED_COMMAND_READY: u32 = 0x1000_0016;
const MALFORMED_COMMAND_WELCOME: u32 = 0x1000_0017;
const INVALID_METADATA: u32 = 0x1000_0018;
const CRYPTOGRAPHIC: u32 = 0x1100_0001;
const MECHANISM_MISMATCH: u32 = 0x1100_0002;
// The ZMQ_PROTOCOL_ERROR_ZAP_* numbers.
const ZAP_UNSPECIFIED: u32 = 0x2000_0000;
const ZAP_MALFORMED_REPLY: u32 = 0x2000_0001;
const ZAP_BAD_REQUEST_ID: u32 = 0x2000_0002;
const ZAP_BAD_VERSION: u32 = 0x2000_0003;
const ZAP_INVALID_STATUS_CODE: u32 = 0x2000_0004;
const ZAP_INVALID_METADATA: u32 = 0x2000_0005;
const WS_UNSPECIFIED: u32 = 0x3000_0000;

impl ProtocolError {
    /// Returns the `ZMQ_PROTOCOL_ERROR_*` number that a monitor event `HANDSHAKE_FAILED_PROTOCOL`
    /// carries.
    ///
    /// An [`Auth`](ProtocolError::Auth) failure with a status is reported by the event
    /// `HANDSHAKE_FAILED_AUTH` with that status. Without a status, this method returns the
    /// unspecified ZMTP error.
    pub fn zmq_code(&self) -> u32 {
        match self {
            Self::PeerMisbehaved(clause) => clause.zmq_code(),
            Self::PeerIncompatible(Mismatch::Mechanism | Mismatch::Version) => MECHANISM_MISMATCH,
            Self::PeerIncompatible(Mismatch::UnknownSocketType | Mismatch::SocketType { .. }) => {
                INVALID_METADATA
            }
            Self::Zap(fault) => fault.zmq_code(),
            Self::Tls(fault) => fault.code(),
            Self::TooLarge { .. } | Self::Auth(_) | Self::NoRandomness | Self::NoMemory => UNSPECIFIED,
        }
    }
}

impl ProtocolError {
    /// True if a retry may succeed. A carrier may have intermediaries, and one of them may have no
    /// server behind it for a moment; a certificate may be renewed. This side may have memory
    /// again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::PeerMisbehaved(Violation::WebSocketOpening) | Self::Tls(_) | Self::NoMemory)
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerMisbehaved(clause) => write!(f, "peer broke the protocol: {}", clause.text()),
            Self::PeerIncompatible(mismatch) => write!(f, "peer is incompatible: {mismatch}"),
            Self::TooLarge { size, limit } => {
                write!(f, "frame of {size} bytes, at most {limit} are accepted")
            }
            Self::Auth(AuthFailure::Refused { status: Some(status) }) => {
                write!(f, "peer refused the handshake with status {status}")
            }
            Self::Auth(AuthFailure::Refused { status: None }) => f.write_str("peer refused the handshake"),
            Self::Auth(AuthFailure::Denied { status }) => {
                write!(f, "the authentication handler refused the peer with status {status}")
            }
            Self::Zap(fault) => write!(f, "reply of the authentication handler: {}", fault.text()),
            Self::Tls(fault) => write!(f, "TLS: {fault}"),
            Self::NoRandomness => f.write_str("the system has no random bytes"),
            Self::NoMemory => f.write_str("the system has no memory"),
        }
    }
}

impl std::error::Error for ProtocolError {}

impl Violation {
    fn zmq_code(self) -> u32 {
        match self {
            Self::ReservedFlags
            | Self::CommandWithMore
            | Self::FrameLength
            | Self::IdentityFrame
            | Self::MalformedReply => UNSPECIFIED,
            Self::WebSocketOpening | Self::WebSocketFrame => WS_UNSPECIFIED,
            Self::MechanismName => MECHANISM_MISMATCH,
            Self::UnexpectedMessage | Self::UnexpectedCommand => UNEXPECTED_COMMAND,
            Self::CommandName | Self::MalformedPing | Self::MalformedPong => MALFORMED_COMMAND,
            Self::MalformedError => MALFORMED_COMMAND_ERROR,
            Self::IdentityLength
            | Self::PropertyName
            | Self::PropertyTruncated
            | Self::PropertyLength
            | Self::PropertyDuplicate => INVALID_METADATA,
            Self::MalformedHello => MALFORMED_COMMAND_HELLO,
            Self::MalformedWelcome => MALFORMED_COMMAND_WELCOME,
            Self::MalformedInitiate => MALFORMED_COMMAND_INITIATE,
            Self::MalformedReady => MALFORMED_COMMAND_READY,
            Self::MalformedMessage => MALFORMED_COMMAND_MESSAGE,
            Self::Cryptographic => CRYPTOGRAPHIC,
            Self::KeyExchange => KEY_EXCHANGE,
            Self::NonceOrder => INVALID_SEQUENCE,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::ReservedFlags => "reserved frame flags are set",
            Self::CommandWithMore => "command frame announces a further frame",
            Self::FrameLength => "frame length exceeds 63 bits",
            Self::MechanismName => "mechanism field is not a null-padded name",
            Self::IdentityLength => "routing id is longer than 255 bytes",
            Self::IdentityFrame => "identity is not a single frame",
            Self::UnexpectedMessage => "message before the end of the handshake",
            Self::UnexpectedCommand => "command out of order",
            Self::CommandName => "command name is malformed",
            Self::MalformedError => "ERROR command is malformed",
            Self::MalformedPing => "PING command is malformed",
            Self::MalformedPong => "PONG command is malformed",
            Self::PropertyName => "metadata name is malformed",
            Self::PropertyTruncated => "metadata is cut off",
            Self::PropertyLength => "metadata value length exceeds 31 bits",
            Self::PropertyDuplicate => "metadata property occurs twice",
            Self::MalformedHello => "HELLO command is malformed",
            Self::MalformedWelcome => "WELCOME command is malformed",
            Self::MalformedInitiate => "INITIATE command is malformed",
            Self::MalformedReady => "READY command is malformed",
            Self::MalformedMessage => "MESSAGE command is malformed",
            Self::Cryptographic => "a CURVE box cannot be decrypted",
            Self::KeyExchange => "the vouch belongs to another connection",
            Self::NonceOrder => "nonce is not greater than the previous one",
            Self::WebSocketOpening => "not an opening handshake of ZWS 2.0",
            Self::WebSocketFrame => "malformed WebSocket frame",
            Self::MalformedReply => "a reply has no delimiter",
        }
    }

    /// True if the error concerns the cipher of a connection. libzmq reports such errors as
    /// failures of the handshake, even after the handshake.
    pub fn is_decryption_error(self) -> bool {
        matches!(self, Self::MalformedMessage | Self::Cryptographic | Self::NonceOrder)
    }
}

impl ZapFault {
    fn zmq_code(self) -> u32 {
        match self {
            Self::FrameCount => ZAP_MALFORMED_REPLY,
            Self::Delimiter => ZAP_UNSPECIFIED,
            Self::Version => ZAP_BAD_VERSION,
            Self::RequestId => ZAP_BAD_REQUEST_ID,
            Self::StatusCode => ZAP_INVALID_STATUS_CODE,
            Self::Metadata => ZAP_INVALID_METADATA,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::FrameCount => "it does not have seven frames",
            Self::Delimiter => "the delimiter is not empty",
            Self::Version => "the version is not 1.0",
            Self::RequestId => "the request id differs from that of the request",
            Self::StatusCode => "the status is unknown",
            Self::Metadata => "the metadata is malformed",
        }
    }
}

impl From<Violation> for ProtocolError {
    fn from(clause: Violation) -> Self {
        Self::PeerMisbehaved(clause)
    }
}

impl From<AuthFailure> for ProtocolError {
    fn from(failure: AuthFailure) -> Self {
        Self::Auth(failure)
    }
}

impl From<ZapFault> for ProtocolError {
    fn from(fault: ZapFault) -> Self {
        Self::Zap(fault)
    }
}

impl From<TlsFault> for ProtocolError {
    fn from(fault: TlsFault) -> Self {
        Self::Tls(fault)
    }
}

impl From<Mismatch> for ProtocolError {
    fn from(mismatch: Mismatch) -> Self {
        Self::PeerIncompatible(mismatch)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mechanism => f.write_str("it uses another security mechanism"),
            Self::Version => f.write_str("its version has no security mechanisms"),
            Self::UnknownSocketType => f.write_str("unknown socket type"),
            Self::SocketType { ours, theirs } => {
                write!(f, "{} does not talk to {}", ours.name(), theirs.name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_public_header() {
        let code = |clause: Violation| ProtocolError::from(clause).zmq_code();
        assert_eq!(code(Violation::UnexpectedCommand), 0x1000_0001);
        assert_eq!(code(Violation::UnexpectedMessage), 0x1000_0001);
        assert_eq!(code(Violation::MalformedError), 0x1000_0015);
        assert_eq!(code(Violation::PropertyTruncated), 0x1000_0018);
        assert_eq!(code(Violation::CommandName), 0x1000_0011);
        assert_eq!(code(Violation::ReservedFlags), 0x1000_0000);
        assert_eq!(code(Violation::MechanismName), 0x1100_0002);
        assert_eq!(code(Violation::NonceOrder), 0x1000_0002);
        assert_eq!(code(Violation::KeyExchange), 0x1000_0003);
        assert_eq!(code(Violation::MalformedMessage), 0x1000_0012);
        assert_eq!(code(Violation::MalformedHello), 0x1000_0013);
        assert_eq!(code(Violation::MalformedInitiate), 0x1000_0014);
        assert_eq!(code(Violation::MalformedReady), 0x1000_0016);
        assert_eq!(code(Violation::MalformedWelcome), 0x1000_0017);
        assert_eq!(code(Violation::Cryptographic), 0x1100_0001);
        let zap = |fault: ZapFault| ProtocolError::from(fault).zmq_code();
        assert_eq!(zap(ZapFault::Delimiter), 0x2000_0000);
        assert_eq!(zap(ZapFault::FrameCount), 0x2000_0001);
        assert_eq!(zap(ZapFault::RequestId), 0x2000_0002);
        assert_eq!(zap(ZapFault::Version), 0x2000_0003);
        assert_eq!(zap(ZapFault::StatusCode), 0x2000_0004);
        assert_eq!(zap(ZapFault::Metadata), 0x2000_0005);
        assert_eq!(ProtocolError::from(Mismatch::Mechanism).zmq_code(), 0x1100_0002);
        assert_eq!(ProtocolError::from(Mismatch::UnknownSocketType).zmq_code(), 0x1000_0018);
        assert_eq!(ProtocolError::TooLarge { size: 2, limit: 1 }.zmq_code(), 0x1000_0000);
    }

    #[test]
    fn errors_read_as_sentences() {
        let mismatch = Mismatch::SocketType { ours: SocketType::Pull, theirs: SocketType::Sub };
        assert_eq!(
            ProtocolError::from(mismatch).to_string(),
            "peer is incompatible: PULL does not talk to SUB"
        );
        assert_eq!(
            ProtocolError::TooLarge { size: 9, limit: 8 }.to_string(),
            "frame of 9 bytes, at most 8 are accepted"
        );
        let refused = ProtocolError::Auth(AuthFailure::Refused { status: Some(400) });
        assert_eq!(refused.to_string(), "peer refused the handshake with status 400");
        assert_eq!(
            ProtocolError::from(Violation::FrameLength).to_string(),
            "peer broke the protocol: frame length exceeds 63 bits"
        );
    }

    #[test]
    fn an_error_stays_small() {
        assert!(size_of::<ProtocolError>() <= 24);
    }
}
