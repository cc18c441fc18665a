using System;
using System.Collections.Generic;
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
        }

        /// <summary>What.</summary>
        public SocketEvents Type { get; private set; }

        /// <summary>More about it; see <see cref="SocketEvents"/>.</summary>
        public int Value { get; private set; }

        /// <summary>Where.</summary>
        public string Endpoint { get; private set; }

        /// <summary>All of it.</summary>
        public override string ToString()
        {
            return Type + " " + Value + " " + Endpoint;
        }
    }

    /// <summary>Tells what happens to a socket's connections. Any thread may have it, one at a time.</summary>
    public sealed class SocketMonitor : IDisposable
    {
        static int number;

        readonly Socket watched;
        readonly Socket events;

        /// <summary>Begins to watch. A socket has one monitor at a time.</summary>
        /// <param name="context">The socket's context.</param>
        /// <param name="socket">The socket.</param>
        /// <param name="which">What to tell.</param>
        public unsafe SocketMonitor(Context context, Socket socket, SocketEvents which = SocketEvents.All)
        {
            watched = Argument.NotNull(socket, nameof(socket));
            string endpoint = "inproc://tautline-monitor-" + Interlocked.Increment(ref number);
            fixed (byte* text = Library.Text(endpoint))
            using (socket.Locked())
                ZmqException.Check(Native.zmq_socket_monitor(socket.Pointer, text, (int)which));
            GC.KeepAlive(socket);
            events = new Socket(context, SocketType.Pair);
            events.Connect(endpoint);
        }

        /// <summary>Whether the last event there is has been received.</summary>
        internal bool HasStopped { get; private set; }

        /// <summary>Waits for the next event. After <see cref="SocketEvents.MonitorStopped"/> there is none.</summary>
        public MonitorEvent Receive()
        {
            return Parse(events.ReceiveMultipart());
        }

        /// <summary>Waits for the next event for a while.</summary>
        /// <param name="timeout">How long at most.</param>
        /// <param name="happened">The event.</param>
        /// <returns>Whether there was one.</returns>
        public bool TryReceive(TimeSpan timeout, out MonitorEvent happened)
        {
            happened = events.Wait(PollEvents.In, timeout) ? Receive() : null;
            return happened != null;
        }

        /// <summary>Waits for the next event without holding up a thread.</summary>
        /// <param name="token">Takes the wish back.</param>
        public async Task<MonitorEvent> ReceiveAsync(CancellationToken token = default(CancellationToken))
        {
            return Parse(await events.ReceiveMultipartAsync(token).ConfigureAwait(false));
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

        MonitorEvent Parse(List<byte[]> parts)
        {
            if (parts.Count != 2 || parts[0].Length != 6)
                throw new FormatException("Not an event of a monitor.");
            var happened = new MonitorEvent(
                (SocketEvents)BitConverter.ToUInt16(parts[0], 0),
                BitConverter.ToInt32(parts[0], 2),
                System.Text.Encoding.UTF8.GetString(parts[1]));
            HasStopped |= happened.Type == SocketEvents.MonitorStopped;
            return happened;
        }
    }
}
