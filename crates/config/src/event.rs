//! Events of a socket: their numbers, as in `zmq.h`, and their reasons in words.

use std::io;

/// A connect has succeeded.
pub const CONNECTED: u32 = 0x1;
/// A connect is in progress.
pub const CONNECT_DELAYED: u32 = 0x2;
/// The next attempt to connect follows after a pause.
pub const CONNECT_RETRIED: u32 = 0x4;
/// An endpoint is bound.
pub const LISTENING: u32 = 0x8;
/// An endpoint cannot be bound.
pub const BIND_FAILED: u32 = 0x10;
/// A peer has connected.
pub const ACCEPTED: u32 = 0x20;
/// A peer cannot be accepted.
pub const ACCEPT_FAILED: u32 = 0x40;
/// A descriptor is closed.
pub const CLOSED: u32 = 0x80;
const CLOSE_FAILED: u32 = 0x100;
/// A session has ended.
pub const DISCONNECTED: u32 = 0x200;
/// No further events come.
pub const MONITOR_STOPPED: u32 = 0x400;
/// A handshake has failed, with this errno.
pub const HANDSHAKE_FAILED_NO_DETAIL: u32 = 0x800;
/// A handshake has succeeded.
pub const HANDSHAKE_SUCCEEDED: u32 = 0x1000;
/// A handshake has violated a protocol.
pub const HANDSHAKE_FAILED_PROTOCOL: u32 = 0x2000;
/// The authentication handler has refused a peer.
pub const HANDSHAKE_FAILED_AUTH: u32 = 0x4000;
/// Numbers of queued messages.
pub const PIPES_STATS: u32 = 0x10000;
/// Our own, for version 3: a peer may not use a topic.
pub const TOPIC_REFUSED: u32 = 0x1000_0000;
/// Our own, for version 3: the endpoints of a name have changed, or its resolver fails.
pub const NAME: u32 = 0x2000_0000;
/// Our own events.
pub const OWN: u32 = 0x3000_0000;
/// For observers only: an attempt to connect has failed, with this errno.
pub const CONNECT_FAILED: u32 = 1 << 31;
/// For observers only, in place of ZMQ_EVENT_DISCONNECTED: a connection that was in use is lost.
/// The value is an errno, 0 if the peer has closed the connection, or a ZMQ_PROTOCOL_ERROR of
/// `zmq.h` (0x1000_0000 and more).
pub const LOST: u32 = 1 << 30;

/// Returns the reason of an event from its value; empty if the value is not a reason.
pub fn reason(event: u32, value: u64) -> String {
    match event {
        CONNECT_RETRIED => format!("in {value} ms"),
        BIND_FAILED
        | ACCEPT_FAILED
        | CLOSE_FAILED
        | HANDSHAKE_FAILED_NO_DETAIL
        | CONNECT_FAILED
        | TOPIC_REFUSED => system(value),
        NAME if value != 0 => system(value),
        HANDSHAKE_FAILED_PROTOCOL => protocol(value).to_owned(),
        HANDSHAKE_FAILED_AUTH => zap_status_text(value).to_owned(),
        LOST if value == 0 => "the peer closed the connection".to_owned(),
        LOST if value >= 0x1000_0000 => protocol(value).to_owned(),
        LOST => system(value),
        _ => String::new(),
    }
}

/// Returns the system's text for an errno.
fn system(errno: u64) -> String {
    let text = io::Error::from_raw_os_error(errno as u32 as i32).to_string();
    // The number follows the text.
    text.split_once(" (os error").map_or(&*text, |(text, _)| text).to_owned()
}

fn protocol(code: u64) -> &'static str {
    match code {
        0x1000_0003 => "the CURVE key exchange failed",
        0x1000_0018 => "the peer's metadata is invalid",
        0x1100_0001 => "a CURVE key is wrong",
        0x1100_0002 => "the peer uses another security mechanism",
        0x2000_0000..=0x2FFF_FFFF => "the authentication handler sent an invalid reply",
        0x5441_3001 => "the peer does not speak TLS",
        0x5441_3002 => "the two ends have no common TLS version or cipher",
        0x5441_3003 => "the peer's certificate is not trusted",
        0x5441_3004 => "the peer's certificate has expired, or is not valid yet",
        0x5441_3005 => "the peer's certificate is for another name",
        0x5441_3006 => "the peer's certificate is malformed, revoked, or for another purpose",
        0x5441_3007 => "the peer sent no certificate",
        0x5441_3008 => "the peer uses TLS, but this end does not",
        0x5441_312D => "the peer refuses our certificate: it has expired",
        0x5441_3130 => "the peer does not trust our certificate",
        0x5441_3174 => "the peer requires a certificate from us",
        0x5441_3000..=0x5441_31FF => "the peer refuses the TLS handshake, or violated TLS",
        _ => "the peer violated ZMTP",
    }
}

fn zap_status_text(status: u64) -> &'static str {
    match status {
        300 => "refused temporarily",
        400 => "refused",
        _ => "the authentication handler failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_words() {
        assert_eq!(
            reason(HANDSHAKE_FAILED_PROTOCOL, 0x1100_0002),
            "the peer uses another security mechanism"
        );
        assert_eq!(reason(HANDSHAKE_FAILED_AUTH, 400), "refused");
        assert_eq!(reason(LOST, 0), "the peer closed the connection");
        assert_eq!(reason(CONNECTED, 7), "");
        assert_eq!(reason(CONNECT_RETRIED, 250), "in 250 ms");
        #[cfg(target_os = "linux")]
        assert_eq!(reason(CONNECT_FAILED, 111), "Connection refused");
    }
}
