using System;
using System.Text;

namespace Tautline
{
    /// <summary>How peers authenticate each other.</summary>
    public enum SecurityMechanism
    {
        /// <summary>No authentication.</summary>
        Null = 0,
        /// <summary>By name and password, unencrypted.</summary>
        Plain = 1,
        /// <summary>By keys, encrypted.</summary>
        Curve = 2,
        /// <summary>By GSSAPI.</summary>
        Gssapi = 3,
    }

    // Most options have to be set before the socket is bound or connected; zmq_setsockopt(3) says more about each.
    public partial class Socket
    {
        /// <summary>Bit mask of the I/O threads that serve new connections; 0 is all threads.</summary>
        [CLSCompliant(false)]
        public ulong Affinity
        {
            get { return (ulong)GetLongOption(4); }
            set { Put(4, (long)value); }
        }

        /// <summary>The name by which a ROUTER knows this socket: at most 255 bytes, the first not 0.</summary>
        public byte[] RoutingId
        {
            get { return GetBytesOption(5); }
            set { Put(5, value); }
        }

        /// <summary>Multicast: kilobits a second.</summary>
        public int Rate
        {
            get { return GetIntOption(8); }
            set { Put(8, value); }
        }

        /// <summary>Multicast: the time during which a disconnected receiver can catch up.</summary>
        public TimeSpan RecoveryInterval
        {
            get { return Argument.Time(GetIntOption(9)); }
            set { Put(9, Argument.Milliseconds(value)); }
        }

        /// <summary>The kernel's send buffer in bytes; -1 keeps the system's value.</summary>
        public int SendBuffer
        {
            get { return GetIntOption(11); }
            set { Put(11, value); }
        }

        /// <summary>The kernel's receive buffer in bytes; -1 keeps the system's value.</summary>
        public int ReceiveBuffer
        {
            get { return GetIntOption(12); }
            set { Put(12, value); }
        }

        /// <summary>True if another part follows the last received part.</summary>
        public bool HasMore
        {
            get { return GetIntOption(13) != 0; }
        }

        /// <summary>A descriptor that becomes readable when <see cref="Events"/> may have changed.</summary>
        public int Descriptor
        {
            get { return GetIntOption(14); }
        }

        /// <summary>The events that the socket is ready for.</summary>
        public PollEvents Events
        {
            get { return (PollEvents)GetIntOption(15); }
        }

        /// <summary>The socket type.</summary>
        public SocketType Type
        {
            get { return (SocketType)GetIntOption(16); }
        }

        /// <summary>Time for which a closed socket keeps sending its queued messages; infinite by default.</summary>
        public TimeSpan Linger
        {
            get { return Argument.Time(GetIntOption(17)); }
            set { Put(17, Argument.Milliseconds(value)); }
        }

        /// <summary>Wait before a reconnect; infinite disables reconnecting.</summary>
        public TimeSpan ReconnectInterval
        {
            get { return Argument.Time(GetIntOption(18)); }
            set { Put(18, Argument.Milliseconds(value)); }
        }

        /// <summary>Maximum number of connections that wait to be accepted.</summary>
        public int Backlog
        {
            get { return GetIntOption(19); }
            set { Put(19, value); }
        }

        /// <summary>Upper limit for the reconnect interval, which doubles with each attempt; zero disables doubling.</summary>
        public TimeSpan ReconnectIntervalMax
        {
            get { return Argument.Time(GetIntOption(21)); }
            set { Put(21, Argument.Milliseconds(value)); }
        }

        /// <summary>A peer that sends a longer message is disconnected; -1 allows any.</summary>
        public long MaxMessageSize
        {
            get { return GetLongOption(22); }
            set { Put(22, value); }
        }

        /// <summary>Maximum number of queued messages to one peer; 0 is unlimited.</summary>
        public int SendHighWaterMark
        {
            get { return GetIntOption(23); }
            set { Put(23, value); }
        }

        /// <summary>Maximum number of queued messages from one peer; 0 is unlimited.</summary>
        public int ReceiveHighWaterMark
        {
            get { return GetIntOption(24); }
            set { Put(24, value); }
        }

        /// <summary>Multicast: maximum number of router hops.</summary>
        public int MulticastHops
        {
            get { return GetIntOption(25); }
            set { Put(25, value); }
        }

        /// <summary>Time limit for receiving; infinite by default.</summary>
        public TimeSpan ReceiveTimeout
        {
            get { return Argument.Time(GetIntOption(27)); }
            set { Put(27, Argument.Milliseconds(value)); }
        }

        /// <summary>Time limit for sending; infinite by default.</summary>
        public TimeSpan SendTimeout
        {
            get { return Argument.Time(GetIntOption(28)); }
            set { Put(28, Argument.Milliseconds(value)); }
        }

        /// <summary>The last bound or connected endpoint, complete.</summary>
        public string LastEndpoint
        {
            get { return GetStringOption(32); }
        }

        /// <summary>ROUTER: sending to an unknown peer fails instead of dropping the message.</summary>
        public bool RouterMandatory
        {
            set { Put(33, value ? 1 : 0); }
        }

        /// <summary>TCP keep-alive: 1 on, 0 off, -1 is the system's default.</summary>
        public int TcpKeepAlive
        {
            get { return GetIntOption(34); }
            set { Put(34, value); }
        }

        /// <summary>Number of unanswered probes before the connection is closed; -1 is the system's default.</summary>
        public int TcpKeepAliveCount
        {
            get { return GetIntOption(35); }
            set { Put(35, value); }
        }

        /// <summary>Seconds of silence before the first probe; -1 is the system's default.</summary>
        public int TcpKeepAliveIdle
        {
            get { return GetIntOption(36); }
            set { Put(36, value); }
        }

        /// <summary>Seconds between the probes; -1 is the system's default.</summary>
        public int TcpKeepAliveInterval
        {
            get { return GetIntOption(37); }
            set { Put(37, value); }
        }

        /// <summary>Queue messages only for connections that are established.</summary>
        public bool Immediate
        {
            get { return GetIntOption(39) != 0; }
            set { Put(39, value ? 1 : 0); }
        }

        /// <summary>XPUB: report every subscription, not only new ones.</summary>
        public bool XPublisherVerbose
        {
            set { Put(40, value ? 1 : 0); }
        }

        /// <summary>Also use IPv6.</summary>
        public bool Ipv6
        {
            get { return GetIntOption(42) != 0; }
            set { Put(42, value ? 1 : 0); }
        }

        /// <summary>The security mechanism selected by the options.</summary>
        public SecurityMechanism Mechanism
        {
            get { return (SecurityMechanism)GetIntOption(43); }
        }

        /// <summary>PLAIN: this side is the server, which asks for the name and the password.</summary>
        public bool PlainServer
        {
            get { return GetIntOption(44) != 0; }
            set { Put(44, value ? 1 : 0); }
        }

        /// <summary>PLAIN: the user name of a client.</summary>
        public string PlainUsername
        {
            get { return GetStringOption(45); }
            set { Put(45, value); }
        }

        /// <summary>PLAIN: the password of a client.</summary>
        public string PlainPassword
        {
            get { return GetStringOption(46); }
            set { Put(46, value); }
        }

        /// <summary>CURVE: this side is the server, which has a <see cref="CurveSecretKey"/>.</summary>
        public bool CurveServer
        {
            get { return GetIntOption(47) != 0; }
            set { Put(47, value ? 1 : 0); }
        }

        /// <summary>CURVE: this side's public key, in Z85.</summary>
        public string CurvePublicKey
        {
            get { return GetKey(48); }
            set { Put(48, Argument.NotNull(value, nameof(value))); }
        }

        /// <summary>CURVE: this side's secret key, in Z85.</summary>
        public string CurveSecretKey
        {
            get { return GetKey(49); }
            set { Put(49, Argument.NotNull(value, nameof(value))); }
        }

        /// <summary>CURVE: the server's public key, in Z85, for a client.</summary>
        public string CurveServerKey
        {
            get { return GetKey(50); }
            set { Put(50, Argument.NotNull(value, nameof(value))); }
        }

        /// <summary>Send an empty message on each new connection, so that a ROUTER learns the identity of this socket.</summary>
        public bool ProbeRouter
        {
            set { Put(51, value ? 1 : 0); }
        }

        /// <summary>REQ: accept only replies to the current request.</summary>
        public bool RequestCorrelate
        {
            set { Put(52, value ? 1 : 0); }
        }

        /// <summary>REQ: allow another request before the reply.</summary>
        public bool RequestRelaxed
        {
            set { Put(53, value ? 1 : 0); }
        }

        /// <summary>Keep only the newest message.</summary>
        public bool Conflate
        {
            set { Put(54, value ? 1 : 0); }
        }

        /// <summary>The domain in requests to the ZAP handler.</summary>
        public string ZapDomain
        {
            get { return GetStringOption(55); }
            set { Put(55, value); }
        }

        /// <summary>ROUTER: a new peer takes over the routing id of an old one.</summary>
        public bool RouterHandover
        {
            set { Put(56, value ? 1 : 0); }
        }

        /// <summary>The type of service in the IP header.</summary>
        public int TypeOfService
        {
            get { return GetIntOption(57); }
            set { Put(57, value); }
        }

        /// <summary>ROUTER, STREAM: the routing id for the peer of the next connect.</summary>
        public byte[] ConnectRoutingId
        {
            set { Put(61, value); }
        }

        /// <summary>Time limit for a handshake; zero is unlimited.</summary>
        public TimeSpan HandshakeInterval
        {
            get { return Argument.Time(GetIntOption(66)); }
            set { Put(66, Argument.Milliseconds(value)); }
        }

        /// <summary>A SOCKS5 proxy, <c>host:port</c>, to connect through. Empty for a direct connection.</summary>
        public string SocksProxy
        {
            get { return GetStringOption(68); }
            set { Put(68, value); }
        }

        /// <summary>PUB, XPUB: wait, or fail, at the high-water mark instead of dropping.</summary>
        public bool XPublisherNoDrop
        {
            set { Put(69, value ? 1 : 0); }
        }

        /// <summary>XPUB: the program accepts subscriptions itself.</summary>
        public bool XPublisherManual
        {
            set { Put(71, value ? 1 : 0); }
        }

        /// <summary>XPUB: the first message to each new subscriber. Empty to disable.</summary>
        public byte[] XPublisherWelcomeMessage
        {
            set { Put(72, value); }
        }

        /// <summary>STREAM: receive an empty message when a connection opens or closes.</summary>
        public bool StreamNotify
        {
            set { Put(73, value ? 1 : 0); }
        }

        /// <summary>PUB, SUB: deliver the messages that do not match.</summary>
        public bool InvertMatching
        {
            get { return GetIntOption(74) != 0; }
            set { Put(74, value ? 1 : 0); }
        }

        /// <summary>Interval between pings to a peer; zero disables them.</summary>
        public TimeSpan HeartbeatInterval
        {
            get { return Argument.Time(GetIntOption(75)); }
            set { Put(75, Argument.Milliseconds(value)); }
        }

        /// <summary>Time without a ping after which the peer should close the connection.</summary>
        public TimeSpan HeartbeatTimeToLive
        {
            get { return Argument.Time(GetIntOption(76)); }
            set { Put(76, Argument.Milliseconds(value)); }
        }

        /// <summary>Time limit for the answer to a ping; infinite stands for the heartbeat interval.</summary>
        public TimeSpan HeartbeatTimeout
        {
            get { return Argument.Time(GetIntOption(77)); }
            set { Put(77, Argument.Milliseconds(value)); }
        }

        /// <summary>XPUB: report every subscription and every unsubscription.</summary>
        public bool XPublisherVerboser
        {
            set { Put(78, value ? 1 : 0); }
        }

        /// <summary>Time limit for one connect attempt; zero is the system's limit.</summary>
        public TimeSpan ConnectTimeout
        {
            get { return Argument.Time(GetIntOption(79)); }
            set { Put(79, Argument.Milliseconds(value)); }
        }

        /// <summary>TCP: time without acknowledgement after which the connection is lost; zero is the system's value.</summary>
        public TimeSpan TcpMaxRetransmit
        {
            get { return Argument.Time(GetIntOption(80)); }
            set { Put(80, Argument.Milliseconds(value)); }
        }

        /// <summary>True if sockets of this type are thread-safe.</summary>
        public bool IsThreadSafe
        {
            get { return GetIntOption(81) != 0; }
        }

        /// <summary>The network interface to use; empty is any.</summary>
        public string BindToDevice
        {
            get { return GetStringOption(92); }
            set { Put(92, value); }
        }
    }
}
