//! Events of a socket: their numbers, as in `zmq.h`, and their names and reasons in words.

use std::io;

/// Declares events: number, and name in words.
macro_rules! events {
    ($( $(#[$about:meta])* $event:ident = $number:literal $name:literal, )*) => {
        $( $(#[$about])* pub const $event: u32 = $number; )*

        /// Returns the name of an event in words.
        pub fn name(event: u32) -> &'static str {
            match event {
                $( $event => $name, )*
                _ => "event",
            }
        }
    };
}

events! {
    /// A connect has succeeded.
    CONNECTED = 0x1 "connected",
    /// A connect is in progress.
    CONNECT_DELAYED = 0x2 "connecting",
    /// The next attempt to connect follows after a pause.
    CONNECT_RETRIED = 0x4 "reconnecting",
    /// An endpoint is bound.
    LISTENING = 0x8 "listening",
    /// An endpoint cannot be bound.
    BIND_FAILED = 0x10 "bind failed",
    /// A peer has connected.
    ACCEPTED = 0x20 "accepted",
    /// A peer cannot be accepted.
    ACCEPT_FAILED = 0x40 "accept failed",
    /// A descriptor is closed.
    CLOSED = 0x80 "closed",
    /// A descriptor cannot be closed. We never emit this event.
    CLOSE_FAILED = 0x100 "close failed",
    /// A session has ended.
    DISCONNECTED = 0x200 "disconnected",
    /// No further events come.
    MONITOR_STOPPED = 0x400 "monitoring stopped",
    /// A handshake has failed, with this errno.
    HANDSHAKE_FAILED_NO_DETAIL = 0x800 "handshake failed",
    /// A handshake has succeeded.
    HANDSHAKE_SUCCEEDED = 0x1000 "handshake succeeded",
    /// A handshake has violated a protocol.
    HANDSHAKE_FAILED_PROTOCOL = 0x2000 "handshake failed",
    /// The authentication handler has refused a peer.
    HANDSHAKE_FAILED_AUTH = 0x4000 "handshake failed",
    /// Numbers of queued messages.
    PIPES_STATS = 0x1_0000 "queues",
    /// Our own, for version 3: a peer may not use a topic.
    TOPIC_REFUSED = 0x1000_0000 "topic refused",
    /// Our own, for version 3: the endpoints of a name have changed, or its resolver fails.
    NAME = 0x2000_0000 "name",
    /// For observers only, in place of ZMQ_EVENT_DISCONNECTED: a connection in use is lost. The
    /// value is an errno, 0 if the peer has closed the connection, or a ZMQ_PROTOCOL_ERROR of
    /// `zmq.h` (0x1000_0000 and more).
    LOST = 0x4000_0000 "lost",
    /// For observers only: an attempt to connect has failed, with this errno.
    CONNECT_FAILED = 0x8000_0000 "connect failed",
}

/// Our own events of a monitor.
pub const OWN: u32 = TOPIC_REFUSED | NAME;

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
