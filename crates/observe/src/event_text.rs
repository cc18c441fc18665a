//! Names of events and their reasons. The numbers are those of `zmq.h`.

use std::io;

/// An attempt to connect has failed: an event of Tautline's own.
pub const CONNECT_FAILED: u32 = 1 << 31;
/// A connection that was in use is lost: an event of Tautline's own.
pub const LOST: u32 = 1 << 30;

/// A peer may not use a topic: an event of Tautline's own.
const TOPIC_REFUSED: u32 = 1 << 28;
/// The addresses of a name have changed, or it cannot be resolved: an event of Tautline's own.
const NAME: u32 = 1 << 29;

/// Error numbers of the system that hints are about.
#[cfg(unix)]
pub(crate) mod errno {
    pub(crate) const REFUSED: u64 = libc::ECONNREFUSED as u64;
    pub(crate) const NO_ENTRY: u64 = libc::ENOENT as u64;
    pub(crate) const NO_ACCESS: u64 = libc::EACCES as u64;
    pub(crate) const TOO_MANY_FILES: [u64; 2] = [libc::EMFILE as u64, libc::ENFILE as u64];
}

/// Error numbers for systems without observation: those of Linux.
#[cfg(not(unix))]
pub(crate) mod errno {
    pub(crate) const REFUSED: u64 = 111;
    pub(crate) const NO_ENTRY: u64 = 2;
    pub(crate) const NO_ACCESS: u64 = 13;
    pub(crate) const TOO_MANY_FILES: [u64; 2] = [24, 23];
}

/// Returns the name of an event.
pub fn event_name(event: u32) -> &'static str {
    match event {
        0x1 => "connected",
        0x2 => "connecting",
        0x4 => "reconnecting",
        0x8 => "listening",
        0x10 => "bind failed",
        0x20 => "accepted",
        0x40 => "accept failed",
        0x80 => "closed",
        0x100 => "close failed",
        0x200 => "disconnected",
        0x400 => "monitoring stopped",
        0x800 | 0x2000 | 0x4000 => "handshake failed",
        0x1000 => "handshake succeeded",
        0x10000 => "queues",
        CONNECT_FAILED => "connect failed",
        LOST => "lost",
        TOPIC_REFUSED => "topic refused",
        NAME => "name",
        _ => "event",
    }
}

/// Returns the reason of an event from its value; empty if the value is not a reason.
pub fn event_reason(event: u32, value: u64) -> String {
    match event {
        0x4 => format!("in {value} ms"),
        0x10 | 0x40 | 0x100 | 0x800 | CONNECT_FAILED | TOPIC_REFUSED => system(value),
        NAME if value != 0 => system(value),
        0x2000 => protocol(value).to_owned(),
        0x4000 => zap_status_text(value).to_owned(),
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
        assert_eq!(event_reason(0x2000, 0x1100_0002), "the peer uses another security mechanism");
        assert_eq!(event_reason(0x4000, 400), "refused");
        assert_eq!(event_reason(LOST, 0), "the peer closed the connection");
        assert_eq!(event_reason(0x1, 7), "");
        assert_eq!(event_reason(0x4, 250), "in 250 ms");
        #[cfg(target_os = "linux")]
        assert_eq!(event_reason(CONNECT_FAILED, 111), "Connection refused");
    }
}
