using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>What can happen to a socket's connections.</summary>
    [Flags]
    public enum SocketEvents
    {
        /// <summary>A connection was made. The value is its descriptor.</summary>
        Connected = 0x1,
        /// <summary>Connecting takes a while.</summary>
        ConnectDelayed = 0x2,
        /// <summary>Connecting failed and will be tried again. The value is the wait in milliseconds.</summary>
        ConnectRetried = 0x4,
        /// <summary>The socket waits for peers.</summary>
        Listening = 0x8,
        /// <summary>It cannot wait for peers there. The value is the error.</summary>
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
        /// <summary>Nothing follows any more.</summary>
        MonitorStopped = 0x400,
        /// <summary>A handshake failed. The value is the error.</summary>
        HandshakeFailedNoDetail = 0x800,
        /// <summary>A peer is ready.</summary>
        HandshakeSucceeded = 0x1000,
        /// <summary>A peer broke the protocol. The value says how.</summary>
        HandshakeFailedProtocol = 0x2000,
        /// <summary>A peer was not let in. The value is the ZAP status.</summary>
        HandshakeFailedAuthentication = 0x4000,
        /// <summary>Everything.</summary>
        All = 0xffff,
    }

    /// <summary>Something that has happened.</summary>
    public sealed class MonitorEvent
    {
        internal MonitorEvent(SocketEvents type, int value, string endpoint)
        {
            Type = type;
            Value = value;
            Endpoint = endpoint;
            Local = Remote = Host = UserId = Reason = "";
            RoutingId = new byte[0];
        }

        /// <summary>What.</summary>
        public SocketEvents Type { get; private set; }

        /// <summary>More about it; see <see cref="SocketEvents"/>.</summary>
        public int Value { get; private set; }

        /// <summary>Where: what was bound or connected.</summary>
        public string Endpoint { get; private set; }

        /// <summary>Our end of the connection; may be empty. This and what follows only Tautline tells.</summary>
        public string Local { get; internal set; }

        /// <summary>The peer's end of the connection; may be empty.</summary>
        public string Remote { get; internal set; }

        /// <summary>The routing id that the peer has given itself, of <see cref="SocketEvents.HandshakeSucceeded"/> and
        /// <see cref="SocketEvents.Disconnected"/>; else empty.</summary>
        public byte[] RoutingId { get; internal set; }

        /// <summary>The peer's address as messages show it, of the same events.</summary>
        public string Host { get; internal set; }

        /// <summary>What the authentication handler has said the peer is, of the same events.</summary>
        public string UserId { get; internal set; }

        /// <summary>Why, in words; may be empty.</summary>
        public string Reason { get; internal set; }

        /// <summary>What a peer has shown whose handshake has failed, if it has come so far; else null.</summary>
        public PeerClaim Claim { get; internal set; }

        /// <summary>All of it.</summary>
        public override string ToString()
        {
            return Type + " " + Value + " " + Endpoint;
        }
    }

    /// <summary>What a peer has shown whose handshake has failed, and what the authentication handler has said of it.</summary>
    public sealed class PeerClaim
    {
        internal PeerClaim(string mechanism, byte[] name, string reason)
        {
            Mechanism = mechanism;
            Name = name;
            Reason = reason;
        }

        /// <summary>The mechanism: <c>PLAIN</c>, <c>CURVE</c>.</summary>
        public string Mechanism { get; private set; }

        /// <summary>Its public key, or its user name.</summary>
        public byte[] Name { get; private set; }

        /// <summary>What the handler has said of it; may be empty.</summary>
        public string Reason { get; private set; }
    }

    /// <summary>Tells what happens to a socket's connections. Any thread may have it, one at a time.</summary>
    public sealed class SocketMonitor : IDisposable
    {
        static int number;

        /// <summary>Events of the bound end. Others may be of either.</summary>
        const SocketEvents AtBoundEnd = SocketEvents.Listening | SocketEvents.BindFailed | SocketEvents.Accepted | SocketEvents.AcceptFailed;

        readonly Socket watched;
        readonly Socket events;
        readonly SocketEvents wanted;
        /// <summary>What was bound.</summary>
        readonly List<string> bound = new List<string>();

        /// <summary>Begins to watch. A socket has one monitor at a time.</summary>
        /// <param name="context">The socket's context.</param>
        /// <param name="socket">The socket.</param>
        /// <param name="which">What to tell.</param>
        public unsafe SocketMonitor(Context context, Socket socket, SocketEvents which = SocketEvents.All)
        {
            watched = Argument.NotNull(socket, nameof(socket));
            string endpoint = "inproc://tautline-monitor-" + Interlocked.Increment(ref number);
            wanted = which;
            bound.Add(socket.LastEndpoint);
            fixed (byte* text = Library.Text(endpoint))
            using (socket.Locked())
                ZmqException.Check(Library.IsTautline
                    ? Native.zmq_socket_monitor_versioned(socket.Pointer, text, (ulong)(which | SocketEvents.Listening | SocketEvents.Accepted), 3, (int)SocketType.Pair)
                    : Native.zmq_socket_monitor(socket.Pointer, text, (int)which));
            GC.KeepAlive(socket);
            events = new Socket(context, SocketType.Pair);
            events.Connect(endpoint);
        }

        /// <summary>Whether the last event there is has been received.</summary>
        internal bool HasStopped { get; private set; }

        /// <summary>Waits for the next event. After <see cref="SocketEvents.MonitorStopped"/> there is none.</summary>
        public MonitorEvent Receive()
        {
            for (;;)
            {
                var happened = Parse(events.ReceiveMultipart());
                if (happened != null)
                    return happened;
            }
        }

        /// <summary>Waits for the next event for a while.</summary>
        /// <param name="timeout">How long at most.</param>
        /// <param name="happened">The event.</param>
        /// <returns>Whether there was one.</returns>
        public bool TryReceive(TimeSpan timeout, out MonitorEvent happened)
        {
            var watch = Stopwatch.StartNew();
            happened = null;
            for (var left = timeout; happened == null && events.Wait(PollEvents.In, left);)
            {
                happened = Parse(events.ReceiveMultipart());
                if (timeout >= TimeSpan.Zero)
                    left = watch.Elapsed < timeout ? timeout - watch.Elapsed : TimeSpan.Zero;
            }
            return happened != null;
        }

        /// <summary>Waits for the next event without holding up a thread.</summary>
        /// <param name="token">Takes the wish back.</param>
        public async Task<MonitorEvent> ReceiveAsync(CancellationToken token = default(CancellationToken))
        {
            for (;;)
            {
                var happened = Parse(await events.ReceiveMultipartAsync(token).ConfigureAwait(false));
                if (happened != null)
                    return happened;
            }
        }

#if SPANS
        /// <summary>Waits for event after event, for <c>await foreach</c>. The stream ends after
        /// <see cref="SocketEvents.MonitorStopped"/>, which comes when the socket is disposed, if it is among the events to tell.</summary>
        /// <param name="token">Ends the stream with an <see cref="OperationCanceledException"/>. No event is lost by it.</param>
        /// <exception cref="ObjectDisposedException">While it waits, if the monitor is disposed.</exception>
        public IAsyncEnumerable<MonitorEvent> ReceiveAllAsync(CancellationToken token = default(CancellationToken))
        {
            return new Stream<MonitorEvent>(token, either => new EventSteps(this, either));
        }
#endif

        /// <summary>Stops watching. To be called by the thread that may use the socket.</summary>
        public unsafe void Dispose()
        {
            using (watched.Locked())
            {
                if (watched.Pointer != IntPtr.Zero)
                    Native.zmq_socket_monitor(watched.Pointer, null, 0);
            }
            GC.KeepAlive(watched);
            events.Dispose();
        }

        /// <summary>An event, or null if it is one that was only asked for to know what is bound.</summary>
        MonitorEvent Parse(List<byte[]> parts)
        {
            var happened = Library.IsTautline ? Detailed(parts) : Plain(parts);
            HasStopped |= happened.Type == SocketEvents.MonitorStopped;
            return (happened.Type & wanted) != 0 ? happened : null;
        }

        /// <summary>Of version 1.</summary>
        static MonitorEvent Plain(List<byte[]> parts)
        {
            if (parts.Count != 2 || parts[0].Length != 6)
                throw NoEvent();
            return new MonitorEvent((SocketEvents)BitConverter.ToUInt16(parts[0], 0), BitConverter.ToInt32(parts[0], 2), Text(parts[1]));
        }

        /// <summary>Of version 3: number, count of values, the values, and texts.</summary>
        MonitorEvent Detailed(List<byte[]> parts)
        {
            if (parts.Count < 2 || parts[0].Length != 8 || parts[1].Length != 8)
                throw NoEvent();
            int at = 2 + (int)BitConverter.ToInt64(parts[1], 0);
            if (at < 2 || parts.Count < at + 6)
                throw NoEvent();
            var type = (SocketEvents)BitConverter.ToInt64(parts[0], 0);
            int value = at > 2 ? (int)BitConverter.ToInt64(parts[2], 0) : 0;
            string local = Text(parts[at]), remote = Text(parts[at + 1]);
            return new MonitorEvent(type, value, Given(type, local, remote))
            {
                Local = local,
                Remote = remote,
                RoutingId = parts[at + 2],
                Host = Text(parts[at + 3]),
                UserId = Text(parts[at + 4]),
                Reason = Text(parts[at + 5]),
                Claim = parts.Count < at + 9 ? null : new PeerClaim(Text(parts[at + 6]), parts[at + 7], Text(parts[at + 8])),
            };
        }

        /// <summary>The end that the program has bound or connected.</summary>
        string Given(SocketEvents type, string local, string remote)
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
            return new FormatException("Not an event of a monitor.");
        }
    }
}
