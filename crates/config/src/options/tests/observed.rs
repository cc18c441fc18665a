//! Values that libzmq 4.3.5 accepts, as data. Observed by setting every option to every probe on
//! every socket type, with the draft options of a draft build and the GSSAPI options of a build
//! with GSSAPI.

/// The default value of an option, and the form in which it is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Initial {
    /// An `int`.
    Int(i32),
    /// An `int64_t` or `uint64_t`.
    Long(i64),
    /// An empty string with its NUL.
    Text,
    /// No bytes.
    Empty,
    /// A CURVE key of zeros.
    Key,
    /// The option cannot be read.
    Unreadable,
}

use Initial::*;

/// One option: its number, its name, the socket types on which it can be set (a bit for each), the
/// [`PROBES`] that it accepts there (a bit for each), and its default.
pub(super) struct Observed(
    pub(super) i32,
    pub(super) &'static str,
    pub(super) u32,
    pub(super) u64,
    pub(super) Initial,
);

/// A value to set.
pub(super) enum Probe {
    /// An `int`.
    I(i32),
    /// An `int64_t`.
    Q(i64),
    /// Bytes.
    B(&'static [u8]),
}

use Probe::*;

/// The values that were set, bit 0 first.
pub(super) static PROBES: &[Probe] = &[
    I(-2),
    I(-1),
    I(0),
    I(1),
    I(2),
    I(3),
    I(7),
    I(8),
    I(99),
    I(100),
    I(255),
    I(256),
    I(65535),
    I(65536),
    I(6553599),
    I(6553600),
    I(i32::MAX),
    I(i32::MIN),
    Q(-2),
    Q(-1),
    Q(0),
    Q(5),
    Q(i64::MAX),
    B(b""),
    B(b"a"),
    B(b"\0"),
    B(b"abc"),
    B(b"abcde"),
    B(b"\0abcde"),
    B(&[b'k'; 32]),
    B(&[b'a'; 40]),
    B(b"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"),
    B(b"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7\0"),
    B(b"~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\0"),
    B(&[b'b'; 255]),
    B(&[b'b'; 256]),
    B(&[b'b'; 300]),
];

const ALL: u32 = 0x1f_ffff;

/// Every option that can be set by a probe or that can be read.
pub(super) static OBSERVED: &[Observed] = &[
    Observed(4, "ZMQ_AFFINITY", ALL, 0x00007c0000, Long(0)),
    Observed(5, "ZMQ_ROUTING_ID", ALL, 0x07ff7fffff, Empty),
    Observed(8, "ZMQ_RATE", ALL, 0x000001fff8, Int(100)),
    Observed(9, "ZMQ_RECOVERY_IVL", ALL, 0x000001fffc, Int(10000)),
    Observed(11, "ZMQ_SNDBUF", ALL, 0x000001fffe, Int(-1)),
    Observed(12, "ZMQ_RCVBUF", ALL, 0x000001fffe, Int(-1)),
    Observed(17, "ZMQ_LINGER", ALL, 0x000001fffe, Int(-1)),
    Observed(18, "ZMQ_RECONNECT_IVL", ALL, 0x000001fffe, Int(100)),
    Observed(19, "ZMQ_BACKLOG", ALL, 0x000001fffc, Int(100)),
    Observed(21, "ZMQ_RECONNECT_IVL_MAX", ALL, 0x000001fffc, Int(0)),
    Observed(22, "ZMQ_MAXMSGSIZE", ALL, 0x00007c0000, Long(-1)),
    Observed(23, "ZMQ_SNDHWM", ALL, 0x000001fffc, Int(1000)),
    Observed(24, "ZMQ_RCVHWM", ALL, 0x000001fffc, Int(1000)),
    Observed(25, "ZMQ_MULTICAST_HOPS", ALL, 0x000001fff8, Int(1)),
    Observed(27, "ZMQ_RCVTIMEO", ALL, 0x000001fffe, Int(-1)),
    Observed(28, "ZMQ_SNDTIMEO", ALL, 0x000001fffe, Int(-1)),
    Observed(31, "ZMQ_IPV4ONLY", ALL, 0x000000000c, Int(1)),
    Observed(33, "ZMQ_ROUTER_MANDATORY", 0x000050, 0x000001fffc, Unreadable),
    Observed(34, "ZMQ_TCP_KEEPALIVE", ALL, 0x000000000e, Int(-1)),
    Observed(35, "ZMQ_TCP_KEEPALIVE_CNT", ALL, 0x000001fffe, Int(-1)),
    Observed(36, "ZMQ_TCP_KEEPALIVE_IDLE", ALL, 0x000001fffe, Int(-1)),
    Observed(37, "ZMQ_TCP_KEEPALIVE_INTVL", ALL, 0x000001fffe, Int(-1)),
    Observed(39, "ZMQ_IMMEDIATE", ALL, 0x000000000c, Int(0)),
    Observed(40, "ZMQ_XPUB_VERBOSE", 0x000202, 0x000001fffc, Unreadable),
    Observed(41, "ZMQ_ROUTER_RAW", 0x000050, 0x000001fffc, Unreadable),
    Observed(42, "ZMQ_IPV6", ALL, 0x000000000c, Int(0)),
    Observed(43, "ZMQ_MECHANISM", 0x000000, 0x0000000000, Int(0)),
    Observed(44, "ZMQ_PLAIN_SERVER", ALL, 0x000000000c, Int(0)),
    Observed(45, "ZMQ_PLAIN_USERNAME", ALL, 0x07ff7fffff, Text),
    Observed(46, "ZMQ_PLAIN_PASSWORD", ALL, 0x07ff7fffff, Text),
    Observed(47, "ZMQ_CURVE_SERVER", ALL, 0x000000000c, Int(0)),
    Observed(48, "ZMQ_CURVE_PUBLICKEY", ALL, 0x01e0000000, Key),
    Observed(49, "ZMQ_CURVE_SECRETKEY", ALL, 0x01e0000000, Key),
    Observed(50, "ZMQ_CURVE_SERVERKEY", ALL, 0x01e0000000, Key),
    Observed(51, "ZMQ_PROBE_ROUTER", 0x000078, 0x000001fffc, Unreadable),
    Observed(52, "ZMQ_REQ_CORRELATE", 0x000008, 0x000001fffc, Unreadable),
    Observed(53, "ZMQ_REQ_RELAXED", 0x000008, 0x000001fffc, Unreadable),
    Observed(54, "ZMQ_CONFLATE", ALL, 0x000000000c, Int(0)),
    Observed(55, "ZMQ_ZAP_DOMAIN", ALL, 0x07ff7fffff, Text),
    Observed(56, "ZMQ_ROUTER_HANDOVER", 0x000050, 0x000001fffc, Unreadable),
    Observed(57, "ZMQ_TOS", ALL, 0x000001fffc, Int(0)),
    Observed(58, "ZMQ_IPC_FILTER_PID", ALL, 0x000003ffff, Unreadable),
    Observed(59, "ZMQ_IPC_FILTER_UID", ALL, 0x000003ffff, Unreadable),
    Observed(60, "ZMQ_IPC_FILTER_GID", ALL, 0x000003ffff, Unreadable),
    Observed(61, "ZMQ_CONNECT_ROUTING_ID", 0x000850, 0x1fff7fffff, Unreadable),
    Observed(62, "ZMQ_GSSAPI_SERVER", ALL, 0x000000000c, Int(0)),
    Observed(63, "ZMQ_GSSAPI_PRINCIPAL", ALL, 0x07ff7fffff, Text),
    Observed(64, "ZMQ_GSSAPI_SERVICE_PRINCIPAL", ALL, 0x07ff7fffff, Text),
    Observed(65, "ZMQ_GSSAPI_PLAINTEXT", ALL, 0x000000000c, Int(0)),
    Observed(66, "ZMQ_HANDSHAKE_IVL", ALL, 0x000001fffc, Int(30000)),
    Observed(68, "ZMQ_SOCKS_PROXY", ALL, 0x1fff32abfc, Text),
    Observed(69, "ZMQ_XPUB_NODROP", 0x004202, 0x000001fffc, Unreadable),
    Observed(71, "ZMQ_XPUB_MANUAL", 0x000202, 0x000001fffc, Unreadable),
    Observed(72, "ZMQ_XPUB_WELCOME_MSG", 0x000202, 0x1fffffffff, Unreadable),
    Observed(73, "ZMQ_STREAM_NOTIFY", 0x000800, 0x000000000c, Unreadable),
    Observed(74, "ZMQ_INVERT_MATCHING", ALL, 0x000003ffff, Int(0)),
    Observed(75, "ZMQ_HEARTBEAT_IVL", ALL, 0x000001fffc, Int(0)),
    Observed(76, "ZMQ_HEARTBEAT_TTL", ALL, 0x0000007fff, Int(0)),
    Observed(77, "ZMQ_HEARTBEAT_TIMEOUT", ALL, 0x000001fffc, Int(-1)),
    Observed(78, "ZMQ_XPUB_VERBOSER", 0x000202, 0x000001fffc, Unreadable),
    Observed(79, "ZMQ_CONNECT_TIMEOUT", ALL, 0x000001fffc, Int(0)),
    Observed(80, "ZMQ_TCP_MAXRT", ALL, 0x000001fffc, Int(0)),
    Observed(84, "ZMQ_MULTICAST_MAXTPDU", ALL, 0x000001fff8, Int(1500)),
    Observed(89, "ZMQ_USE_FD", ALL, 0x000001fffe, Int(-1)),
    Observed(90, "ZMQ_GSSAPI_PRINCIPAL_NAMETYPE", ALL, 0x000000001c, Int(0)),
    Observed(91, "ZMQ_GSSAPI_SERVICE_PRINCIPAL_NAMETYPE", ALL, 0x000000001c, Int(0)),
    Observed(92, "ZMQ_BINDTODEVICE", ALL, 0x001f32abfc, Text),
    Observed(93, "ZMQ_ZAP_ENFORCE_DOMAIN", ALL, 0x000003ffff, Int(0)),
    Observed(94, "ZMQ_LOOPBACK_FASTPATH", ALL, 0x000003ffff, Int(0)),
    Observed(96, "ZMQ_MULTICAST_LOOP", ALL, 0x000003ffff, Int(1)),
    Observed(97, "ZMQ_ROUTER_NOTIFY", 0x000050, 0x000000003c, Int(0)),
    Observed(98, "ZMQ_XPUB_MANUAL_LAST_VALUE", 0x000202, 0x000001fffc, Unreadable),
    Observed(99, "ZMQ_SOCKS_USERNAME", ALL, 0x07ffffffff, Text),
    Observed(100, "ZMQ_SOCKS_PASSWORD", ALL, 0x07ffffffff, Text),
    Observed(101, "ZMQ_IN_BATCH_SIZE", ALL, 0x000001fff8, Int(8192)),
    Observed(102, "ZMQ_OUT_BATCH_SIZE", ALL, 0x000001fff8, Int(8192)),
    Observed(103, "ZMQ_WSS_KEY_PEM", ALL, 0x1fffffffff, Unreadable),
    Observed(104, "ZMQ_WSS_CERT_PEM", ALL, 0x1fffffffff, Unreadable),
    Observed(105, "ZMQ_WSS_TRUST_PEM", ALL, 0x1fffffffff, Unreadable),
    Observed(106, "ZMQ_WSS_HOSTNAME", ALL, 0x1fffffffff, Unreadable),
    Observed(107, "ZMQ_WSS_TRUST_SYSTEM", ALL, 0x000000000c, Unreadable),
    Observed(108, "ZMQ_ONLY_FIRST_SUBSCRIBE", 0x000602, 0x000001fffc, Unreadable),
    Observed(109, "ZMQ_RECONNECT_STOP", ALL, 0x000003ffff, Int(0)),
    Observed(110, "ZMQ_HELLO_MSG", ALL, 0x1fffffffff, Unreadable),
    Observed(111, "ZMQ_DISCONNECT_MSG", ALL, 0x1fffffffff, Unreadable),
    Observed(112, "ZMQ_PRIORITY", ALL, 0x000001fffc, Int(0)),
    Observed(113, "ZMQ_BUSY_POLL", ALL, 0x000003ffff, Unreadable),
    Observed(114, "ZMQ_HICCUP_MSG", ALL, 0x1fffffffff, Unreadable),
    Observed(115, "ZMQ_XSUB_VERBOSE_UNSUBSCRIBE", 0x000400, 0x000003ffff, Unreadable),
];
