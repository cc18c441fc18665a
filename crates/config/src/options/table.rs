//! The option table: one row per option, in the order of the numbers in zmq.h.
//!
//! A new option needs a field of [`Options`], its default in `Options::new`, and a row here. A row
//! has, in this order: the number, the name, the socket types on which the option can be set, the
//! closure that reads the field, and the closure that checks and writes it. The C form of the
//! value, and with it the size rules, is in the name of the function that makes the row.

use std::sync::Arc;

use tautline_proto::SocketType::{Dealer, Pub, Radio, Rep, Req, Router, Stream, XPub, XSub};

use super::row::{
    Row, Types, binary, int_on, int_row, int64, int64_on, key, read_int, text, uint64, write_binary,
    write_int, write_text,
};
use super::value::{
    count, flag, int, int_or_default, ms, name, or_default, positive, property, sized, span, strict, ttl,
    wait,
};
use super::{AcceptFilter, Mechanism, Options};
use crate::error::Error;

/// Value of ZMQ_IN_BATCH_SIZE and ZMQ_OUT_BATCH_SIZE while they are not set.
const BATCH_SIZE: u32 = 8192;
const ALL: Types = Types::ALL;
const ROUTERS: Types = Types::of(&[Router, Rep]);
const PROBERS: Types = Types::of(&[Router, Rep, Dealer, Req]);
const NAMED_CONNECT: Types = Types::of(&[Router, Rep, Stream]);
const REQ: Types = Types::of(&[Req]);
const PUBLISHERS: Types = Types::of(&[Pub, XPub]);
const DROPPERS: Types = Types::of(&[Pub, XPub, Radio]);
const SUBSCRIPTIONS: Types = Types::of(&[Pub, XPub, XSub]);
const XSUB: Types = Types::of(&[XSub]);
const STREAM: Types = Types::of(&[Stream]);

static TABLE: &[Row] = &[
    uint64(4, "ZMQ_AFFINITY", |o| o.affinity, |o, v| set(&mut o.affinity, v)),
    binary(5, "ZMQ_ROUTING_ID", |o| &o.routing_id, |o, v| sized(v, 1..=255).map(|v| o.routing_id = v)),
    int_row(8, "ZMQ_RATE", |o| int(o.rate), |o, v| positive(v).map(|v| o.rate = v)),
    int_row(
        9,
        "ZMQ_RECOVERY_IVL",
        |o| ms(Some(o.recovery_interval), 0),
        |o, v| span(v).map(|v| o.recovery_interval = v.unwrap_or_default()),
    ),
    int_row(
        11,
        "ZMQ_SNDBUF",
        |o| int_or_default(o.send_buffer),
        |o, v| or_default(v).map(|v| o.send_buffer = v),
    ),
    int_row(
        12,
        "ZMQ_RCVBUF",
        |o| int_or_default(o.receive_buffer),
        |o, v| or_default(v).map(|v| o.receive_buffer = v),
    ),
    int_row(17, "ZMQ_LINGER", |o| ms(o.linger, -1), |o, v| wait(v).map(|v| o.linger = v)),
    int_row(
        18,
        "ZMQ_RECONNECT_IVL",
        |o| ms(o.reconnect_interval, -1),
        |o, v| wait(v).map(|v| o.reconnect_interval = v),
    ),
    int_row(19, "ZMQ_BACKLOG", |o| o.backlog, |o, v| count(v).map(|_| o.backlog = v)),
    int_row(
        21,
        "ZMQ_RECONNECT_IVL_MAX",
        |o| ms(o.reconnect_interval_max, 0),
        |o, v| span(v).map(|v| o.reconnect_interval_max = v),
    ),
    int64(
        22,
        "ZMQ_MAXMSGSIZE",
        |o| o.max_msg_size.map_or(-1, |size| i64::try_from(size).unwrap_or(i64::MAX)),
        |o, v| set(&mut o.max_msg_size, u64::try_from(v).ok()),
    ),
    int_row(23, "ZMQ_SNDHWM", |o| int(o.send_hwm), |o, v| count(v).map(|v| o.send_hwm = v)),
    int_row(24, "ZMQ_RCVHWM", |o| int(o.receive_hwm), |o, v| count(v).map(|v| o.receive_hwm = v)),
    int_row(
        25,
        "ZMQ_MULTICAST_HOPS",
        |o| int(o.multicast_hops),
        |o, v| positive(v).map(|v| o.multicast_hops = v),
    ),
    int_row(27, "ZMQ_RCVTIMEO", |o| ms(o.receive_timeout, -1), |o, v| wait(v).map(|v| o.receive_timeout = v)),
    int_row(28, "ZMQ_SNDTIMEO", |o| ms(o.send_timeout, -1), |o, v| wait(v).map(|v| o.send_timeout = v)),
    int_row(31, "ZMQ_IPV4ONLY", |o| i32::from(!o.ipv6), |o, v| strict(v).map(|v| o.ipv6 = !v)),
    write_int(33, "ZMQ_ROUTER_MANDATORY", ROUTERS, |o, v| flag(v).map(|v| o.router_mandatory = v)),
    int_row(
        34,
        "ZMQ_TCP_KEEPALIVE",
        |o| o.tcp_keepalive.map_or(-1, i32::from),
        |o, v| {
            if v == -1 {
                set(&mut o.tcp_keepalive, None)
            } else {
                strict(v).map(|v| o.tcp_keepalive = Some(v))
            }
        },
    ),
    int_row(
        35,
        "ZMQ_TCP_KEEPALIVE_CNT",
        |o| int_or_default(o.tcp_keepalive_count),
        |o, v| or_default(v).map(|v| o.tcp_keepalive_count = v),
    ),
    int_row(
        36,
        "ZMQ_TCP_KEEPALIVE_IDLE",
        |o| int_or_default(o.tcp_keepalive_idle),
        |o, v| or_default(v).map(|v| o.tcp_keepalive_idle = v),
    ),
    int_row(
        37,
        "ZMQ_TCP_KEEPALIVE_INTVL",
        |o| int_or_default(o.tcp_keepalive_interval),
        |o, v| or_default(v).map(|v| o.tcp_keepalive_interval = v),
    ),
    write_binary(38, "ZMQ_TCP_ACCEPT_FILTER", ALL, |o, v| {
        AcceptFilter::parse(v, o.ipv6).map(|v| o.tcp_accept_filters.push(v))
    })
    .or_null(|o| o.tcp_accept_filters.clear()),
    int_row(39, "ZMQ_IMMEDIATE", |o| i32::from(o.immediate), |o, v| strict(v).map(|v| o.immediate = v)),
    write_int(40, "ZMQ_XPUB_VERBOSE", PUBLISHERS, |o, v| {
        flag(v).map(|v| (o.xpub_verbose, o.xpub_verboser) = (v, false))
    }),
    write_int(41, "ZMQ_ROUTER_RAW", ROUTERS, |o, v| flag(v).map(|v| o.router_raw = v)),
    int_row(42, "ZMQ_IPV6", |o| i32::from(o.ipv6), |o, v| strict(v).map(|v| o.ipv6 = v)),
    read_int(43, "ZMQ_MECHANISM", |o| o.mechanism as i32),
    int_row(
        44,
        "ZMQ_PLAIN_SERVER",
        |o| i32::from(o.mechanism == Mechanism::Plain && o.as_server),
        |o, v| strict(v).map(|v| set_server(o, Mechanism::Plain, v)),
    ),
    text(
        45,
        "ZMQ_PLAIN_USERNAME",
        |o| &o.plain_username,
        |o, v| {
            o.plain_username = sized(v, 1..=255)?;
            be_client(o, Mechanism::Plain)
        },
    )
    .or_null(|o| o.mechanism = Mechanism::Null),
    text(
        46,
        "ZMQ_PLAIN_PASSWORD",
        |o| &o.plain_password,
        |o, v| {
            o.plain_password = sized(v, 1..=255)?.into();
            be_client(o, Mechanism::Plain)
        },
    )
    .or_null(|o| o.mechanism = Mechanism::Null),
    int_row(
        47,
        "ZMQ_CURVE_SERVER",
        |o| i32::from(o.mechanism == Mechanism::Curve && o.as_server),
        |o, v| strict(v).map(|v| set_server(o, Mechanism::Curve, v)),
    ),
    key(
        48,
        "ZMQ_CURVE_PUBLICKEY",
        |o| &o.curve_public_key,
        |o, v| {
            o.curve_public_key = v;
            set(&mut o.mechanism, Mechanism::Curve)
        },
    ),
    key(
        49,
        "ZMQ_CURVE_SECRETKEY",
        |o| &o.curve_secret_key,
        |o, v| {
            o.curve_secret_key = Arc::new(v.into());
            set(&mut o.mechanism, Mechanism::Curve)
        },
    ),
    key(
        50,
        "ZMQ_CURVE_SERVERKEY",
        |o| &o.curve_server_key,
        |o, v| {
            o.curve_server_key = v;
            be_client(o, Mechanism::Curve)
        },
    ),
    write_int(51, "ZMQ_PROBE_ROUTER", PROBERS, |o, v| flag(v).map(|v| o.probe_router = v)),
    write_int(52, "ZMQ_REQ_CORRELATE", REQ, |o, v| flag(v).map(|v| o.req_correlate = v)),
    write_int(53, "ZMQ_REQ_RELAXED", REQ, |o, v| flag(v).map(|v| o.req_relaxed = v)),
    int_row(54, "ZMQ_CONFLATE", |o| i32::from(o.conflate), |o, v| strict(v).map(|v| o.conflate = v)),
    text(55, "ZMQ_ZAP_DOMAIN", |o| &o.zap_domain, |o, v| sized(v, 1..=255).map(|v| o.zap_domain = v)),
    write_int(56, "ZMQ_ROUTER_HANDOVER", ROUTERS, |o, v| flag(v).map(|v| o.router_handover = v)),
    int_row(57, "ZMQ_TOS", |o| int(o.tos), |o, v| count(v).map(|v| o.tos = v)),
    write_int(58, "ZMQ_IPC_FILTER_PID", ALL, |o, v| add(&mut o.ipc_filter_pids, v))
        .or_null(|o| o.ipc_filter_pids.clear()),
    write_int(59, "ZMQ_IPC_FILTER_UID", ALL, |o, v| add(&mut o.ipc_filter_uids, v.cast_unsigned()))
        .or_null(|o| o.ipc_filter_uids.clear()),
    write_int(60, "ZMQ_IPC_FILTER_GID", ALL, |o, v| add(&mut o.ipc_filter_gids, v.cast_unsigned()))
        .or_null(|o| o.ipc_filter_gids.clear()),
    write_binary(61, "ZMQ_CONNECT_ROUTING_ID", NAMED_CONNECT, |o, v| {
        sized(v, 1..=usize::MAX).map(|v| o.connect_routing_id = Some(Box::new(v)))
    }),
    int_row(
        62,
        "ZMQ_GSSAPI_SERVER",
        |o| i32::from(o.mechanism == Mechanism::Gssapi && o.as_server),
        |o, v| strict(v).map(|v| (o.mechanism, o.as_server) = (Mechanism::Gssapi, v)),
    ),
    text(
        63,
        "ZMQ_GSSAPI_PRINCIPAL",
        |o| &o.gssapi_principal,
        |o, v| {
            o.gssapi_principal = sized(v, 1..=255)?;
            set(&mut o.mechanism, Mechanism::Gssapi)
        },
    ),
    text(
        64,
        "ZMQ_GSSAPI_SERVICE_PRINCIPAL",
        |o| &o.gssapi_service_principal,
        |o, v| {
            o.gssapi_service_principal = sized(v, 1..=255)?;
            be_client(o, Mechanism::Gssapi)
        },
    ),
    int_row(
        65,
        "ZMQ_GSSAPI_PLAINTEXT",
        |o| i32::from(o.gssapi_plaintext),
        |o, v| strict(v).map(|v| o.gssapi_plaintext = v),
    ),
    int_row(
        66,
        "ZMQ_HANDSHAKE_IVL",
        |o| ms(o.handshake_interval, 0),
        |o, v| span(v).map(|v| o.handshake_interval = v),
    ),
    text(
        68,
        "ZMQ_SOCKS_PROXY",
        |o| o.socks_proxy.as_deref().unwrap_or_default().as_bytes(),
        |o, v| name(v, 1..=usize::MAX).map(|v| o.socks_proxy = v),
    )
    .or_null(|o| o.socks_proxy = None),
    write_int(69, "ZMQ_XPUB_NODROP", DROPPERS, |o, v| flag(v).map(|v| o.xpub_nodrop = v)),
    write_int(71, "ZMQ_XPUB_MANUAL", PUBLISHERS, |o, v| flag(v).map(|v| o.xpub_manual = v)),
    write_binary(72, "ZMQ_XPUB_WELCOME_MSG", PUBLISHERS, |o, v| set(&mut o.xpub_welcome_msg, v.to_vec()))
        .or_null(|o| o.xpub_welcome_msg.clear()),
    write_int(73, "ZMQ_STREAM_NOTIFY", STREAM, |o, v| strict(v).map(|v| o.stream_notify = v)),
    int_row(
        74,
        "ZMQ_INVERT_MATCHING",
        |o| i32::from(o.invert_matching),
        |o, v| set(&mut o.invert_matching, v != 0),
    ),
    int_row(
        75,
        "ZMQ_HEARTBEAT_IVL",
        |o| ms(o.heartbeat_interval, 0),
        |o, v| span(v).map(|v| o.heartbeat_interval = v),
    ),
    int_row(76, "ZMQ_HEARTBEAT_TTL", |o| ms(o.heartbeat_ttl, 0), |o, v| ttl(v).map(|v| o.heartbeat_ttl = v)),
    int_row(
        77,
        "ZMQ_HEARTBEAT_TIMEOUT",
        |o| ms(o.heartbeat_timeout, -1),
        |o, v| span(v).map(|v| o.heartbeat_timeout = Some(v.unwrap_or_default())),
    ),
    write_int(78, "ZMQ_XPUB_VERBOSER", PUBLISHERS, |o, v| {
        flag(v).map(|v| (o.xpub_verbose, o.xpub_verboser) = (v, v))
    }),
    int_row(
        79,
        "ZMQ_CONNECT_TIMEOUT",
        |o| ms(o.connect_timeout, 0),
        |o, v| span(v).map(|v| o.connect_timeout = v),
    ),
    int_row(
        80,
        "ZMQ_TCP_MAXRT",
        |o| ms(o.tcp_max_retransmit, 0),
        |o, v| span(v).map(|v| o.tcp_max_retransmit = v),
    ),
    int_row(
        84,
        "ZMQ_MULTICAST_MAXTPDU",
        |o| int(o.multicast_max_tpdu),
        |o, v| positive(v).map(|v| o.multicast_max_tpdu = v),
    ),
    int_row(
        89,
        "ZMQ_USE_FD",
        |o| o.use_fd.unwrap_or(-1),
        |o, v| or_default(v).map(|fd| o.use_fd = fd.map(|_| v)),
    ),
    int_row(
        90,
        "ZMQ_GSSAPI_PRINCIPAL_NAMETYPE",
        |o| o.gssapi_principal_nametype,
        |o, v| in_range(v, 0..=2).map(|v| o.gssapi_principal_nametype = v),
    ),
    int_row(
        91,
        "ZMQ_GSSAPI_SERVICE_PRINCIPAL_NAMETYPE",
        |o| o.gssapi_service_principal_nametype,
        |o, v| in_range(v, 0..=2).map(|v| o.gssapi_service_principal_nametype = v),
    ),
    text(
        92,
        "ZMQ_BINDTODEVICE",
        |o| o.bind_to_device.as_deref().unwrap_or_default().as_bytes(),
        |o, v| name(v, 1..=16).map(|v| o.bind_to_device = v),
    )
    .or_null(|o| o.bind_to_device = None),
    int_row(
        93,
        "ZMQ_ZAP_ENFORCE_DOMAIN",
        |o| i32::from(o.zap_enforce_domain),
        |o, v| set(&mut o.zap_enforce_domain, v != 0),
    ),
    int_row(
        94,
        "ZMQ_LOOPBACK_FASTPATH",
        |o| i32::from(o.loopback_fastpath),
        |o, v| set(&mut o.loopback_fastpath, v != 0),
    ),
    write_binary(95, "ZMQ_METADATA", ALL, |o, v| property(v).map(|(name, value)| announce(o, name, value))),
    int_row(
        96,
        "ZMQ_MULTICAST_LOOP",
        |o| i32::from(o.multicast_loop),
        |o, v| set(&mut o.multicast_loop, v != 0),
    ),
    int_on(
        97,
        "ZMQ_ROUTER_NOTIFY",
        ROUTERS,
        |o| o.router_notify,
        |o, v| in_range(v, 0..=3).map(|v| o.router_notify = v),
    ),
    write_int(98, "ZMQ_XPUB_MANUAL_LAST_VALUE", PUBLISHERS, |o, v| {
        flag(v).map(|v| (o.xpub_manual, o.xpub_manual_last_value) = (v, v))
    }),
    text(
        99,
        "ZMQ_SOCKS_USERNAME",
        |o| &o.socks_username,
        |o, v| sized(v, 0..=255).map(|v| o.socks_username = v),
    )
    .or_null(|o| o.socks_username.clear()),
    text(
        100,
        "ZMQ_SOCKS_PASSWORD",
        |o| &o.socks_password,
        |o, v| sized(v, 0..=255).map(|v| o.socks_password = v.into()),
    )
    .or_null(|o| o.socks_password.clear()),
    int_row(
        101,
        "ZMQ_IN_BATCH_SIZE",
        |o| int(o.in_batch_size.unwrap_or(BATCH_SIZE)),
        |o, v| positive(v).map(|v| o.in_batch_size = Some(v)),
    ),
    int_row(
        102,
        "ZMQ_OUT_BATCH_SIZE",
        |o| int(o.out_batch_size.unwrap_or(BATCH_SIZE)),
        |o, v| positive(v).map(|v| o.out_batch_size = Some(v)),
    ),
    write_text(103, "ZMQ_WSS_KEY_PEM", |o, v| set(&mut o.wss_key_pem, v.to_vec().into())),
    write_text(104, "ZMQ_WSS_CERT_PEM", |o, v| set(&mut o.wss_cert_pem, v.to_vec())),
    write_text(105, "ZMQ_WSS_TRUST_PEM", |o, v| set(&mut o.wss_trust_pem, v.to_vec())),
    write_text(106, "ZMQ_WSS_HOSTNAME", |o, v| set(&mut o.wss_hostname, v.to_vec())),
    write_int(107, "ZMQ_WSS_TRUST_SYSTEM", ALL, |o, v| strict(v).map(|v| o.wss_trust_system = v)),
    write_int(108, "ZMQ_ONLY_FIRST_SUBSCRIBE", SUBSCRIPTIONS, |o, v| {
        flag(v).map(|v| o.only_first_subscribe = v)
    }),
    int_row(
        109,
        "ZMQ_RECONNECT_STOP",
        |o| o.reconnect_stop.cast_signed(),
        |o, v| set(&mut o.reconnect_stop, v.cast_unsigned()),
    ),
    write_binary(110, "ZMQ_HELLO_MSG", ALL, |o, v| set(&mut o.hello_msg, v.to_vec()))
        .or_null(|o| o.hello_msg.clear()),
    write_binary(111, "ZMQ_DISCONNECT_MSG", ALL, |o, v| set(&mut o.disconnect_msg, v.to_vec()))
        .or_null(|o| o.disconnect_msg.clear()),
    int_row(112, "ZMQ_PRIORITY", |o| int(o.priority), |o, v| count(v).map(|v| o.priority = v)),
    write_int(113, "ZMQ_BUSY_POLL", ALL, |o, v| set(&mut o.busy_poll, count(v).unwrap_or(0))),
    write_binary(114, "ZMQ_HICCUP_MSG", ALL, |o, v| set(&mut o.hiccup_msg, v.to_vec()))
        .or_null(|o| o.hiccup_msg.clear()),
    write_int(115, "ZMQ_XSUB_VERBOSE_UNSUBSCRIBE", XSUB, |o, v| set(&mut o.xsub_verbose_unsubscribe, v != 0)),
];

/// Our own options, far from libzmq's numbers.
static OWN: &[Row] = &[
    int64(
        0x5441_0003,
        "ZMQ_TAUTLINE_MAXMULTIPARTSIZE",
        |o| o.max_multipart_size.map_or(-1, |size| i64::try_from(size).unwrap_or(i64::MAX)),
        |o, v| set(&mut o.max_multipart_size, u64::try_from(v).ok()),
    ),
    int64_on(
        0x5441_0010,
        "ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS",
        DROPPERS,
        |o| o.max_subscriptions.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
        |o, v| match v {
            -1 => set(&mut o.max_subscriptions, None),
            1.. => set(&mut o.max_subscriptions, u64::try_from(v).ok()),
            _ => Err(Error::Invalid),
        },
    ),
    int_row(
        0x5441_0011,
        "ZMQ_TAUTLINE_LOANS",
        |o| i32::from(o.adopts_loans),
        |o, v| strict(v).map(|v| o.adopts_loans = v),
    ),
];

/// One more than the largest number in the table.
const CODES: usize = 128;

/// Position of each number's row in the table plus one; 0 for a number without a row.
static POSITIONS: [u8; CODES] = positions();

const fn positions() -> [u8; CODES] {
    let mut positions = [0; CODES];
    let mut next = 0;
    while next < TABLE.len() {
        positions[TABLE[next].code as usize] = next as u8 + 1;
        next += 1;
    }
    positions
}

/// The row of an option number, if it has one.
pub(super) fn find(code: i32) -> Option<&'static Row> {
    let Some(&position) = POSITIONS.get(usize::try_from(code).ok()?) else {
        return OWN.iter().find(|row| row.code == code);
    };
    TABLE.get(usize::from(position).checked_sub(1)?)
}

/// Every row.
#[cfg(test)]
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().chain(OWN)
}

/// Writes a field that accepts every value.
fn set<T>(field: &mut T, value: T) -> Result<(), Error> {
    *field = value;
    Ok(())
}

/// Adds to a field that collects values.
fn add<T>(field: &mut Vec<T>, value: T) -> Result<(), Error> {
    field.push(value);
    Ok(())
}

/// A number in this range.
fn in_range(value: i32, range: std::ops::RangeInclusive<i32>) -> Result<i32, Error> {
    if range.contains(&value) { Ok(value) } else { Err(Error::Invalid) }
}

/// ZMQ_PLAIN_SERVER and ZMQ_CURVE_SERVER: on makes the socket a server of that mechanism, off
/// resets the mechanism to NULL.
fn set_server(options: &mut Options, mechanism: Mechanism, on: bool) {
    options.as_server = on;
    options.mechanism = if on { mechanism } else { Mechanism::Null };
}

/// Makes the socket a client of this mechanism, because client credentials were set.
fn be_client(options: &mut Options, mechanism: Mechanism) -> Result<(), Error> {
    options.as_server = false;
    options.mechanism = mechanism;
    Ok(())
}

/// ZMQ_METADATA: the first value of a name stays.
fn announce(options: &mut Options, name: String, value: Vec<u8>) {
    if options.metadata.iter().all(|(known, _)| *known != name) {
        options.metadata.push((name, value));
    }
}
