//! Options by their numbers in `zmq.h`, between Rust types and the form of `zmq_setsockopt(3)`.

use std::fmt::Display;
use std::time::Duration;

use tautline_core as core;

use crate::error::{Error, Result};

pub(crate) const ROUTING_ID: i32 = 5;
pub(crate) const SUBSCRIBE: i32 = 6;
pub(crate) const UNSUBSCRIBE: i32 = 7;
pub(crate) const SNDBUF: i32 = 11;
pub(crate) const RCVBUF: i32 = 12;
pub(crate) const LINGER: i32 = 17;
pub(crate) const RECONNECT_IVL: i32 = 18;
pub(crate) const BACKLOG: i32 = 19;
pub(crate) const RECONNECT_IVL_MAX: i32 = 21;
pub(crate) const MAXMSGSIZE: i32 = 22;
pub(crate) const SNDHWM: i32 = 23;
pub(crate) const RCVHWM: i32 = 24;
pub(crate) const RCVTIMEO: i32 = 27;
pub(crate) const SNDTIMEO: i32 = 28;
pub(crate) const LAST_ENDPOINT: i32 = 32;
pub(crate) const ROUTER_MANDATORY: i32 = 33;
pub(crate) const TCP_KEEPALIVE: i32 = 34;
pub(crate) const TCP_KEEPALIVE_CNT: i32 = 35;
pub(crate) const TCP_KEEPALIVE_IDLE: i32 = 36;
pub(crate) const TCP_KEEPALIVE_INTVL: i32 = 37;
pub(crate) const IMMEDIATE: i32 = 39;
pub(crate) const XPUB_VERBOSE: i32 = 40;
pub(crate) const IPV6: i32 = 42;
pub(crate) const PLAIN_SERVER: i32 = 44;
pub(crate) const PLAIN_USERNAME: i32 = 45;
pub(crate) const PLAIN_PASSWORD: i32 = 46;
pub(crate) const CURVE_SERVER: i32 = 47;
pub(crate) const CURVE_PUBLICKEY: i32 = 48;
pub(crate) const CURVE_SECRETKEY: i32 = 49;
pub(crate) const CURVE_SERVERKEY: i32 = 50;
pub(crate) const PROBE_ROUTER: i32 = 51;
pub(crate) const MECHANISM: i32 = 43;
pub(crate) const REQ_CORRELATE: i32 = 52;
pub(crate) const REQ_RELAXED: i32 = 53;
pub(crate) const CONFLATE: i32 = 54;
pub(crate) const ZAP_DOMAIN: i32 = 55;
pub(crate) const ROUTER_HANDOVER: i32 = 56;
pub(crate) const TOS: i32 = 57;
pub(crate) const HANDSHAKE_IVL: i32 = 66;
pub(crate) const SOCKS_PROXY: i32 = 68;
pub(crate) const XPUB_NODROP: i32 = 69;
pub(crate) const XPUB_MANUAL: i32 = 71;
pub(crate) const XPUB_WELCOME_MSG: i32 = 72;
pub(crate) const INVERT_MATCHING: i32 = 74;
pub(crate) const HEARTBEAT_IVL: i32 = 75;
pub(crate) const HEARTBEAT_TTL: i32 = 76;
pub(crate) const HEARTBEAT_TIMEOUT: i32 = 77;
pub(crate) const XPUB_VERBOSER: i32 = 78;
pub(crate) const CONNECT_TIMEOUT: i32 = 79;
pub(crate) const TCP_MAXRT: i32 = 80;
pub(crate) const USE_FD: i32 = 89;
pub(crate) const BINDTODEVICE: i32 = 92;
pub(crate) const ZAP_ENFORCE_DOMAIN: i32 = 93;
pub(crate) const METADATA: i32 = 95;
pub(crate) const XPUB_MANUAL_LAST_VALUE: i32 = 98;
pub(crate) const SOCKS_USERNAME: i32 = 99;
pub(crate) const SOCKS_PASSWORD: i32 = 100;
pub(crate) const WSS_KEY_PEM: i32 = 103;
pub(crate) const WSS_CERT_PEM: i32 = 104;
pub(crate) const WSS_TRUST_PEM: i32 = 105;
#[cfg(feature = "tls")]
pub(crate) const WSS_HOSTNAME: i32 = 106;
#[cfg(feature = "tls")]
pub(crate) const WSS_TRUST_SYSTEM: i32 = 107;
pub(crate) const ONLY_FIRST_SUBSCRIBE: i32 = 108;
pub(crate) const HELLO_MSG: i32 = 110;
pub(crate) const DISCONNECT_MSG: i32 = 111;
pub(crate) const HICCUP_MSG: i32 = 114;
/// Option of Tautline, not of libzmq.
pub(crate) const MAX_SUBSCRIPTIONS: i32 = 0x5441_0010;

/// Option of Tautline's engine.
pub(crate) const STATISTICS: i32 = 0x5441_0001;
pub(crate) const MAX_MULTIPART_SIZE: i32 = 0x5441_0003;
pub(crate) const LOANS: i32 = 0x5441_0011;

/// Options that a second socket of the same program must not inherit: options of queues, of the
/// pattern, and of one endpoint.
pub(crate) const OF_ONE_SOCKET: &[i32] = &[
    ROUTING_ID,
    SUBSCRIBE,
    UNSUBSCRIBE,
    LINGER,
    SNDHWM,
    RCVHWM,
    RCVTIMEO,
    SNDTIMEO,
    IMMEDIATE,
    XPUB_VERBOSE,
    CONFLATE,
    XPUB_NODROP,
    XPUB_MANUAL,
    XPUB_WELCOME_MSG,
    INVERT_MATCHING,
    XPUB_VERBOSER,
    USE_FD,
    XPUB_MANUAL_LAST_VALUE,
    ONLY_FIRST_SUBSCRIBE,
    HELLO_MSG,
    DISCONNECT_MSG,
    HICCUP_MSG,
    MAX_SUBSCRIPTIONS,
];

/// TLS options for the identity of a socket and the authorities that it trusts.
pub(crate) const CERTIFICATES: &[i32] = &[WSS_KEY_PEM, WSS_CERT_PEM, WSS_TRUST_PEM];

/// Maximum length of a text option that can be read.
const TEXT_MAX: usize = 1024;

pub(crate) fn set_int(socket: &mut core::Socket, number: i32, value: i32) -> Result<()> {
    set(socket, number, &value.to_ne_bytes())
}

pub(crate) fn set(socket: &mut core::Socket, number: i32, value: &[u8]) -> Result<()> {
    socket.set_option(number, value).map_err(|error| Error::option(error, socket, number, value))
}

/// Reads an option into `out` and returns the length of the value.
pub(crate) fn get(socket: &mut core::Socket, number: i32, out: &mut [u8]) -> Result<usize> {
    socket.option(number, out).map_err(|error| match error {
        core::Error::Invalid => Error::invalid(core::option_read_fault(number, out.len())),
        other => other.into(),
    })
}

/// Sets an option in milliseconds, rounded up; `None` as -1.
pub(crate) fn set_duration(socket: &mut core::Socket, number: i32, value: Option<Duration>) -> Result<()> {
    set_int(socket, number, value.map_or(Ok(-1), |time| millis(number, time))?)
}

/// Converts to milliseconds. Rounds up, so that a short time does not become zero.
pub(crate) fn millis(number: i32, time: Duration) -> Result<i32> {
    i32::try_from(time.as_nanos().div_ceil(1_000_000))
        .map_err(|_| above_limit_error(number, format_args!("{} ms", i32::MAX), format_args!("{time:?}")))
}

/// Creates the error for a value above the limit of its form.
#[cold]
pub(crate) fn above_limit_error(number: i32, limit: impl Display, value: impl Display) -> Error {
    let name = core::option_name(number).unwrap_or("the option");
    Error::invalid(format!("{name} takes at most {limit}, not {value}"))
}

/// Returns a text option without its final zero.
pub(crate) fn text(socket: &mut core::Socket, number: i32) -> Result<String> {
    let mut bytes = vec![0; TEXT_MAX];
    let len = get(socket, number, &mut bytes)?;
    bytes.truncate(len.saturating_sub(1));
    String::from_utf8(bytes).map_err(|_| Error::invalid("the text of the option is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_milliseconds_and_never_shorter() {
        assert_eq!(millis(LINGER, Duration::ZERO), Ok(0));
        assert_eq!(millis(LINGER, Duration::from_micros(1)), Ok(1));
        assert_eq!(millis(LINGER, Duration::from_millis(1500)), Ok(1500));
        let error = millis(LINGER, Duration::from_secs(1 << 40)).unwrap_err();
        assert_eq!(error.to_string(), "ZMQ_LINGER takes at most 2147483647 ms, not 1099511627776s");
    }
}
