using System;
using System.Text;

namespace Tautline
{
    /// <summary>How peers make sure of each other.</summary>
    public enum SecurityMechanism
    {
        /// <summary>Not at all.</summary>
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
        /// <summary>Which I/O threads serve new connections, one bit each; 0 is all.</summary>
        [CLSCompliant(false)]
        public ulong Affinity
        {
            get { return (ulong)GetLong(4); }
            set { Put(4, (long)value); }
        }

        /// <summary>The name by which a ROUTER knows this socket: at most 255 bytes, the first not 0.</summary>
        public byte[] RoutingId
        {
            get { return GetBytes(5); }
            set { Put(5, value); }
        }

        /// <summary>Multicast: kilobits a second.</summary>
        public int Rate
        {
            get { return GetInt(8); }
            set { Put(8, value); }
        }

        /// <summary>Multicast: for how long a receiver that was away can catch up.</summary>
        public TimeSpan RecoveryInterval
        {
            get { return Argument.Time(GetInt(9)); }
            set { Put(9, Argument.Milliseconds(value)); }
        }

        /// <summary>The kernel's send buffer in bytes; -1 leaves it as it is.</summary>
        public int SendBuffer
        {
            get { return GetInt(11); }
            set { Put(11, value); }
        }

        /// <summary>The kernel's receive buffer in bytes; -1 leaves it as it is.</summary>
        public int ReceiveBuffer
        {
            get { return GetInt(12); }
            set { Put(12, value); }
        }

        /// <summary>Whether another part follows the one received last.</summary>
        public bool HasMore
        {
            get { return GetInt(13) != 0; }
        }

        /// <summary>A descriptor that becomes readable when <see cref="Events"/> may have changed.</summary>
        public int Descriptor
        {
            get { return GetInt(14); }
        }

        /// <summary>What the socket is ready for.</summary>
        public PollEvents Events
        {
            get { return (PollEvents)GetInt(15); }
        }

        /// <summary>The pattern.</summary>
        public SocketType Type
        {
            get { return (SocketType)GetInt(16); }
        }

        /// <summary>For how long a closed socket goes on sending what it still has; infinite unless set.</summary>
        public TimeSpan Linger
        {
            get { return Argument.Time(GetInt(17)); }
            set { Put(17, Argument.Milliseconds(value)); }
        }

        /// <summary>How long to wait before connecting again; infinite is never.</summary>
        public TimeSpan ReconnectInterval
        {
            get { return Argument.Time(GetInt(18)); }
            set { Put(18, Argument.Milliseconds(value)); }
        }

        /// <summary>How many connections may wait to be accepted.</summary>
        public int Backlog
        {
            get { return GetInt(19); }
            set { Put(19, value); }
        }

        /// <summary>Up to where that wait doubles; zero does not double it.</summary>
        public TimeSpan ReconnectIntervalMax
        {
            get { return Argument.Time(GetInt(21)); }
            set { Put(21, Argument.Milliseconds(value)); }
        }

        /// <summary>A peer that sends a longer message is disconnected; -1 allows any.</summary>
        public long MaxMessageSize
        {
            get { return GetLong(22); }
            set { Put(22, value); }
        }

        /// <summary>How many messages wait for one peer at most; 0 is no limit.</summary>
        public int SendHighWaterMark
        {
            get { return GetInt(23); }
            set { Put(23, value); }
        }

        /// <summary>How many messages of one peer wait for the program at most; 0 is no limit.</summary>
        public int ReceiveHighWaterMark
        {
            get { return GetInt(24); }
            set { Put(24, value); }
        }

        /// <summary>Multicast: over how many routers.</summary>
        public int MulticastHops
        {
            get { return GetInt(25); }
            set { Put(25, value); }
        }

        /// <summary>How long receiving waits; infinite unless set.</summary>
        public TimeSpan ReceiveTimeout
        {
            get { return Argument.Time(GetInt(27)); }
            set { Put(27, Argument.Milliseconds(value)); }
        }

        /// <summary>How long sending waits; infinite unless set.</summary>
        public TimeSpan SendTimeout
        {
            get { return Argument.Time(GetInt(28)); }
            set { Put(28, Argument.Milliseconds(value)); }
        }

        /// <summary>The endpoint that was bound or connected last, in full.</summary>
        public string LastEndpoint
        {
            get { return GetString(32); }
        }

        /// <summary>ROUTER: sending to an unknown peer fails instead of dropping the message.</summary>
        public bool RouterMandatory
        {
            set { Put(33, value ? 1 : 0); }
        }

        /// <summary>TCP keep-alive: 1 on, 0 off, -1 as the system has it.</summary>
        public int TcpKeepAlive
        {
            get { return GetInt(34); }
            set { Put(34, value); }
        }

        /// <summary>Probes until the connection is given up; -1 as the system has it.</summary>
        public int TcpKeepAliveCount
        {
            get { return GetInt(35); }
            set { Put(35, value); }
        }

        /// <summary>Seconds of silence before the first probe; -1 as the system has it.</summary>
        public int TcpKeepAliveIdle
        {
            get { return GetInt(36); }
            set { Put(36, value); }
        }

        /// <summary>Seconds between the probes; -1 as the system has it.</summary>
        public int TcpKeepAliveInterval
        {
            get { return GetInt(37); }
            set { Put(37, value); }
        }

        /// <summary>Queue messages only for connections that are established.</summary>
        public bool Immediate
        {
            get { return GetInt(39) != 0; }
            set { Put(39, value ? 1 : 0); }
        }

        /// <summary>XPUB: pass on every subscription, not only new ones.</summary>
        public bool XPublisherVerbose
        {
            set { Put(40, value ? 1 : 0); }
        }

        /// <summary>Use IPv6 as well.</summary>
        public bool Ipv6
        {
            get { return GetInt(42) != 0; }
            set { Put(42, value ? 1 : 0); }
        }

        /// <summary>The security mechanism that the options have chosen.</summary>
        public SecurityMechanism Mechanism
        {
            get { return (SecurityMechanism)GetInt(43); }
        }

        /// <summary>PLAIN: this side asks for the name and the password.</summary>
        public bool PlainServer
        {
            get { return GetInt(44) != 0; }
            set { Put(44, value ? 1 : 0); }
        }

        /// <summary>PLAIN: the name to give.</summary>
        public string PlainUsername
        {
            get { return GetString(45); }
            set { Put(45, value); }
        }

        /// <summary>PLAIN: the password to give.</summary>
        public string PlainPassword
        {
            get { return GetString(46); }
            set { Put(46, value); }
        }

        /// <summary>CURVE: this side is the server, which has a <see cref="CurveSecretKey"/>.</summary>
        public bool CurveServer
        {
            get { return GetInt(47) != 0; }
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

        /// <summary>Send an empty message on each new connection, so that a ROUTER gets to know this socket.</summary>
        public bool ProbeRouter
        {
            set { Put(51, value ? 1 : 0); }
        }

        /// <summary>REQ: take only the answer to the request.</summary>
        public bool RequestCorrelate
        {
            set { Put(52, value ? 1 : 0); }
        }

        /// <summary>REQ: allow another request before the answer.</summary>
        public bool RequestRelaxed
        {
            set { Put(53, value ? 1 : 0); }
        }

        /// <summary>Keep only the newest message.</summary>
        public bool Conflate
        {
            set { Put(54, value ? 1 : 0); }
        }

        /// <summary>The domain that the ZAP handler is asked with.</summary>
        public string ZapDomain
        {
            get { return GetString(55); }
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
            get { return GetInt(57); }
            set { Put(57, value); }
        }

        /// <summary>ROUTER, STREAM: the name of the peer that is connected to next.</summary>
        public byte[] ConnectRoutingId
        {
            set { Put(61, value); }
        }

        /// <summary>How long a handshake may take; zero is no limit.</summary>
        public TimeSpan HandshakeInterval
        {
            get { return Argument.Time(GetInt(66)); }
            set { Put(66, Argument.Milliseconds(value)); }
        }

        /// <summary>A SOCKS5 proxy, <c>host:port</c>, to connect through; empty is none.</summary>
        public string SocksProxy
        {
            get { return GetString(68); }
            set { Put(68, value); }
        }

        /// <summary>PUB, XPUB: wait, or fail, at the high-water mark instead of dropping.</summary>
        public bool XPublisherNoDrop
        {
            set { Put(69, value ? 1 : 0); }
        }

        /// <summary>XPUB: the program decides on subscriptions.</summary>
        public bool XPublisherManual
        {
            set { Put(71, value ? 1 : 0); }
        }

        /// <summary>XPUB: the first message to each new subscriber; empty is none.</summary>
        public byte[] XPublisherWelcomeMessage
        {
            set { Put(72, value); }
        }

        /// <summary>STREAM: an empty message for each connection made and lost.</summary>
        public bool StreamNotify
        {
            set { Put(73, value ? 1 : 0); }
        }

        /// <summary>PUB, SUB: deliver what does not match instead.</summary>
        public bool InvertMatching
        {
            get { return GetInt(74) != 0; }
            set { Put(74, value ? 1 : 0); }
        }

        /// <summary>How often to ping the peers; zero is never.</summary>
        public TimeSpan HeartbeatInterval
        {
            get { return Argument.Time(GetInt(75)); }
            set { Put(75, Argument.Milliseconds(value)); }
        }

        /// <summary>After how long without a ping the peer shall give this side up.</summary>
        public TimeSpan HeartbeatTimeToLive
        {
            get { return Argument.Time(GetInt(76)); }
            set { Put(76, Argument.Milliseconds(value)); }
        }

        /// <summary>How long to wait for an answer to a ping; infinite is the interval.</summary>
        public TimeSpan HeartbeatTimeout
        {
            get { return Argument.Time(GetInt(77)); }
            set { Put(77, Argument.Milliseconds(value)); }
        }

        /// <summary>XPUB: pass on every subscription and every end of one.</summary>
        public bool XPublisherVerboser
        {
            set { Put(78, value ? 1 : 0); }
        }

        /// <summary>How long one attempt to connect may take; zero is the system's time.</summary>
        public TimeSpan ConnectTimeout
        {
            get { return Argument.Time(GetInt(79)); }
            set { Put(79, Argument.Milliseconds(value)); }
        }

        /// <summary>TCP: after how long without acknowledgement the connection is lost; zero is the system's time.</summary>
        public TimeSpan TcpMaxRetransmit
        {
            get { return Argument.Time(GetInt(80)); }
            set { Put(80, Argument.Milliseconds(value)); }
        }

        /// <summary>Whether the socket's type allows several threads.</summary>
        public bool IsThreadSafe
        {
            get { return GetInt(81) != 0; }
        }

        /// <summary>The network interface to use; empty is any.</summary>
        public string BindToDevice
        {
            get { return GetString(92); }
            set { Put(92, value); }
        }
    }
}
