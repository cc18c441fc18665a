using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>Events of a socket's connections.</summary>
    [Flags]
    public enum SocketEvents
    {
        /// <summary>A connection was made. The value is its descriptor.</summary>
        Connected = 0x1,
        /// <summary>A connect attempt is in progress.</summary>
        ConnectDelayed = 0x2,
        /// <summary>A connect attempt failed and will be retried. The value is the wait in milliseconds.</summary>
        ConnectRetried = 0x4,
        /// <summary>The socket is bound and listens.</summary>
        Listening = 0x8,
        /// <summary>The socket could not be bound. The value is the error.</summary>
        BindFailed = 0x10,
        /// <summary>A peer has connected. The value is the connection's descriptor.</summary>
        Accepted = 0x20,
        /// <summary>A connection could not be accepted. The value is the error.</summary>
        AcceptFailed = 0x40,
        /// <summary>A connection was closed from this side.</summary>
        Closed = 0x80,
        /// <summary>A connection could not be closed. The value is the error.</summary>
        CloseFailed = 0x100,
        /// <summary>A connection was lost.</summary>
        Disconnected = 0x200,
        /// <summary>The monitor has stopped. This is the last event.</summary>
        MonitorStopped = 0x400,
        /// <summary>A handshake failed. The value is the error.</summary>
        HandshakeFailedNoDetail = 0x800,
        /// <summary>A handshake succeeded.</summary>
        HandshakeSucceeded = 0x1000,
        /// <summary>A peer violated the protocol. The value is the kind of violation.</summary>
        HandshakeFailedProtocol = 0x2000,
        /// <summary>A peer was refused. The value is the ZAP status.</summary>
        HandshakeFailedAuthentication = 0x4000,
        /// <summary>All events.</summary>
        All = 0xffff,
    }

    /// <summary>An event of a socket's connections.</summary>
    public sealed class MonitorEvent
    {
        internal MonitorEvent(SocketEvents type, int value, string endpoint)
        {
            Type = type;
            Value = value;
            Endpoint = endpoint;
            Local = Remote = PeerAddress = UserId = Reason = RefusalReason = "";
            RoutingId = new byte[0];
        }

        /// <summary>The kind of event.</summary>
        public SocketEvents Type { get; private set; }

        /// <summary>The value of the event; see <see cref="SocketEvents"/>.</summary>
        public int Value { get; private set; }

        /// <summary>The bound or connected endpoint.</summary>
        public string Endpoint { get; private set; }

        /// <summary>Our end of the connection; may be empty. This and the following properties need Tautline.</summary>
        public string Local { get; internal set; }

        /// <summary>The peer's end of the connection; may be empty.</summary>
        public string Remote { get; internal set; }

        /// <summary>The routing id that the peer has set for itself, in <see cref="SocketEvents.HandshakeSucceeded"/> and
        /// <see cref="SocketEvents.Disconnected"/>; otherwise empty.</summary>
        public byte[] RoutingId { get; internal set; }

        /// <summary>The peer's address (<c>Peer-Address</c> of its messages), in the same events.</summary>
        public string PeerAddress { get; internal set; }

        /// <summary>The user id that the authentication handler assigned to the peer, in the same events.</summary>
        public string UserId { get; internal set; }

        /// <summary>The reason in words; may be empty.</summary>
        public string Reason { get; internal set; }

        /// <summary>The credentials of a peer whose handshake has failed; null if the peer did not present any.</summary>
        public PeerClaim Claim { get; internal set; }

        /// <summary>The answer of the authentication handler that refused the peer; may be empty.</summary>
        public string RefusalReason { get; internal set; }

        /// <summary>Returns all properties as text.</summary>
        public override string ToString()
        {
            return Type + " " + Value + " " + Endpoint;
        }
    }

    /// <summary>The credentials of a peer whose handshake has failed.</summary>
    public sealed class PeerClaim
    {
        internal PeerClaim(string mechanism, byte[] credential)
        {
            Mechanism = mechanism;
            Credential = credential;
        }

        /// <summary>The mechanism: <c>PLAIN</c>, <c>CURVE</c>.</summary>
        public string Mechanism { get; private set; }

        /// <summary>The public key or the user name of the peer.</summary>
        public byte[] Credential { get; private set; }
    }

    /// <summary>Reports the events of a socket's connections. Any thread may use it, one at a time.</summary>
    public sealed class SocketMonitor : IDisposable
    {
        static int number;

        /// <summary>Events of a bound endpoint. All others can concern bound or connected endpoints.</summary>
        const SocketEvents AtBoundEnd = SocketEvents.Listening | SocketEvents.BindFailed | SocketEvents.Accepted | SocketEvents.AcceptFailed;

        readonly Socket watched;
        readonly Socket pair;
        readonly SocketEvents wanted;
        /// <summary>The bound endpoints.</summary>
        readonly List<string> bound = new List<string>();

        /// <summary>Starts to monitor a socket. A socket has at most one monitor.</summary>
        /// <param name="context">The socket's context.</param>
        /// <param name="socket">The socket.</param>
        /// <param name="events">The events to report.</param>
        public unsafe SocketMonitor(Context context, Socket socket, SocketEvents events = SocketEvents.All)
        {
            watched = Argument.NotNull(socket, nameof(socket));
            string endpoint = "inproc://tautline-monitor-" + Interlocked.Increment(ref number);
            wanted = events;
            bound.Add(socket.LastEndpoint);
            fixed (byte* text = Library.Text(endpoint))
            using (socket.Locked())
                ZmqException.Check(Library.IsTautline
                    ? Native.zmq_socket_monitor_versioned(socket.Pointer, text, (ulong)(events | SocketEvents.Listening | SocketEvents.Accepted), 3, (int)SocketType.Pair)
                    : Native.zmq_socket_monitor(socket.Pointer, text, (int)events));
            GC.KeepAlive(socket);
            pair = new Socket(context, SocketType.Pair);
            pair.Connect(endpoint);
        }

        /// <summary>True if the last event has been received.</summary>
        internal bool HasStopped { get; private set; }

        /// <summary>Waits for the next event. <see cref="SocketEvents.MonitorStopped"/> is the last one.</summary>
        public MonitorEvent Receive()
        {
            for (;;)
            {
                var monitorEvent = Parse(pair.ReceiveMultipart());
                if (monitorEvent != null)
                    return monitorEvent;
            }
        }

        /// <summary>Waits for the next event, up to a timeout.</summary>
        /// <param name="timeout">The maximum time to wait.</param>
        /// <param name="monitorEvent">The event.</param>
        /// <returns>True if an event was received.</returns>
        public bool TryReceive(TimeSpan timeout, out MonitorEvent monitorEvent)
        {
            var watch = Stopwatch.StartNew();
            monitorEvent = null;
            for (var left = timeout; monitorEvent == null && pair.Wait(PollEvents.In, left);)
            {
                monitorEvent = Parse(pair.ReceiveMultipart());
                if (timeout >= TimeSpan.Zero)
                    left = watch.Elapsed < timeout ? timeout - watch.Elapsed : TimeSpan.Zero;
            }
            return monitorEvent != null;
        }

        /// <summary>Waits for the next event without blocking a thread.</summary>
        /// <param name="token">Cancels the operation.</param>
        public async Task<MonitorEvent> ReceiveAsync(CancellationToken token = default(CancellationToken))
        {
            for (;;)
            {
                var monitorEvent = Parse(await pair.ReceiveMultipartAsync(token).ConfigureAwait(false));
                if (monitorEvent != null)
                    return monitorEvent;
            }
        }

#if SPANS
        /// <summary>Waits for event after event, for <c>await foreach</c>. The stream ends after
        /// <see cref="SocketEvents.MonitorStopped"/>, which arrives when the socket is disposed, if it is among the reported
        /// events.</summary>
        /// <param name="token">Ends the stream with an <see cref="OperationCanceledException"/>. No event is lost.</param>
        /// <exception cref="ObjectDisposedException">The monitor is disposed during the wait.</exception>
        public IAsyncEnumerable<MonitorEvent> ReceiveAllAsync(CancellationToken token = default(CancellationToken))
        {
            return new Stream<MonitorEvent>(token, either => new EventSteps(this, either));
        }
#endif

        /// <summary>Stops monitoring. Call it on the thread that may use the socket.</summary>
        public unsafe void Dispose()
        {
            using (watched.Locked())
            {
                if (watched.Pointer != IntPtr.Zero)
                    Native.zmq_socket_monitor(watched.Pointer, null, 0);
            }
            GC.KeepAlive(watched);
            pair.Dispose();
        }

        /// <summary>Parses an event. Returns null for an event that serves only to track the bound endpoints.</summary>
        MonitorEvent Parse(List<byte[]> parts)
        {
            var monitorEvent = Library.IsTautline ? ParseVersion3(parts) : ParseVersion1(parts);
            HasStopped |= monitorEvent.Type == SocketEvents.MonitorStopped;
            return (monitorEvent.Type & wanted) != 0 ? monitorEvent : null;
        }

        /// <summary>Parses an event of version 1.</summary>
        static MonitorEvent ParseVersion1(List<byte[]> parts)
        {
            if (parts.Count != 2 || parts[0].Length != 6)
                throw NoEvent();
            return new MonitorEvent((SocketEvents)BitConverter.ToUInt16(parts[0], 0), BitConverter.ToInt32(parts[0], 2), Text(parts[1]));
        }

        /// <summary>Parses an event of version 3: number, count of values, the values, and texts.</summary>
        MonitorEvent ParseVersion3(List<byte[]> parts)
        {
            if (parts.Count < 2 || parts[0].Length != 8 || parts[1].Length != 8)
                throw NoEvent();
            int at = 2 + (int)BitConverter.ToInt64(parts[1], 0);
            if (at < 2 || parts.Count < at + 6)
                throw NoEvent();
            var type = (SocketEvents)BitConverter.ToInt64(parts[0], 0);
            int value = at > 2 ? (int)BitConverter.ToInt64(parts[2], 0) : 0;
            string local = Text(parts[at]), remote = Text(parts[at + 1]);
            return new MonitorEvent(type, value, GetEndpoint(type, local, remote))
            {
                Local = local,
                Remote = remote,
                RoutingId = parts[at + 2],
                PeerAddress = Text(parts[at + 3]),
                UserId = Text(parts[at + 4]),
                Reason = Text(parts[at + 5]),
                Claim = parts.Count < at + 9 ? null : new PeerClaim(Text(parts[at + 6]), parts[at + 7]),
                RefusalReason = parts.Count < at + 9 ? "" : Text(parts[at + 8]),
            };
        }

        /// <summary>Returns the endpoint that the program has bound or connected.</summary>
        string GetEndpoint(SocketEvents type, string local, string remote)
        {
            bool isBound = bound.Contains(local);
            if (!isBound && (type & AtBoundEnd) != 0)
            {
                bound.Add(local);
                isBound = true;
            }
            return isBound || remote.Length == 0 ? local : remote;
        }

        static string Text(byte[] part)
        {
            return System.Text.Encoding.UTF8.GetString(part);
        }

        static FormatException NoEvent()
        {
            return new FormatException("The message is not an event of a monitor.");
        }
    }
}
