using System;
using System.Runtime.InteropServices;

namespace Tautline
{
    /// <summary>State of the connection between a socket and a peer.</summary>
    public enum PeerState
    {
        /// <summary>Not connected yet, or lost and possibly reconnecting. Sent messages are queued.</summary>
        Connecting = 0,

        /// <summary>Messages flow.</summary>
        Connected = 1,

        /// <summary>The peer will not reconnect. Its messages may still be received.</summary>
        Closed = 2,

        /// <summary>The socket is closed and still sends queued messages.</summary>
        Lingering = 3,
    }

    /// <summary>A peer of a socket with its traffic counters; see <see cref="Socket.GetPeers"/>.</summary>
    public sealed unsafe class SocketPeer
    {
        /// <summary>A <c>zmq_tautline_peer_t</c>.</summary>
        [StructLayout(LayoutKind.Sequential)]
        internal struct NativePeer
        {
            internal ulong Id, Since, MessagesSent, BytesSent, MessagesReceived, BytesReceived, QueuedOut, QueuedOutBytes, QueuedIn,
                QueuedInBytes, Dropped, Full, Reconnects, RoundTrip;

            internal uint State, Flags, RoutingIdSize, Reserved;
            internal fixed byte RoutingId[256];
            internal fixed byte Address[128];
            internal fixed byte Local[128];
            internal fixed byte Endpoint[256];
            internal fixed byte UserId[192];
            internal fixed byte Host[64];
            internal fixed byte Mechanism[16];
        }

        internal SocketPeer(ref NativePeer native)
        {
            Id = (long)native.Id;
            // Ticks of 100 ns.
            ConnectedSince = native.Since == 0 ? (DateTime?)null : new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc).AddTicks((long)native.Since * 10);
            MessagesSent = (long)native.MessagesSent;
            BytesSent = (long)native.BytesSent;
            MessagesReceived = (long)native.MessagesReceived;
            BytesReceived = (long)native.BytesReceived;
            QueuedOut = (long)native.QueuedOut;
            QueuedOutBytes = (long)native.QueuedOutBytes;
            QueuedIn = (long)native.QueuedIn;
            QueuedInBytes = (long)native.QueuedInBytes;
            DroppedFull = (long)native.Dropped;
            QueueFullCount = (long)native.Full;
            Reconnects = (long)native.Reconnects;
            RoundTrip = native.RoundTrip == 0 ? (TimeSpan?)null : TimeSpan.FromTicks((long)native.RoundTrip * 10);
            State = (PeerState)native.State;
            IsOutgoing = (native.Flags & 1) != 0;
            UsesSharedMemory = (native.Flags & 2) != 0;
            fixed (NativePeer* at = &native)
            {
                RoutingId = new byte[Math.Min(native.RoutingIdSize, 256)];
                Marshal.Copy((IntPtr)at->RoutingId, RoutingId, 0, RoutingId.Length);
                Remote = Library.Text(at->Address, 128);
                Local = Library.Text(at->Local, 128);
                Endpoint = Library.Text(at->Endpoint, 256);
                UserId = Library.Text(at->UserId, 192);
                PeerAddress = Library.Text(at->Host, 64);
                Mechanism = Library.Text(at->Mechanism, 16);
            }
        }

        /// <summary>Identifies the peer within the socket while the peer exists.</summary>
        public long Id { get; }

        /// <summary>Start time of the current connection; null before the first connection, and for inproc.</summary>
        public DateTime? ConnectedSince { get; }

        /// <summary>Messages put into the peer's queue.</summary>
        public long MessagesSent { get; }

        /// <summary>Bytes of these messages, including frame headers.</summary>
        public long BytesSent { get; }

        /// <summary>Messages received from the peer.</summary>
        public long MessagesReceived { get; }

        /// <summary>Bytes of these messages, including frame headers.</summary>
        public long BytesReceived { get; }

        /// <summary>Messages that wait to be sent to the peer.</summary>
        public long QueuedOut { get; }

        /// <summary>Bytes of these messages.</summary>
        public long QueuedOutBytes { get; }

        /// <summary>Messages from the peer that the program has not received yet.</summary>
        public long QueuedIn { get; }

        /// <summary>Bytes of these messages.</summary>
        public long QueuedInBytes { get; }

        /// <summary>Messages dropped because the peer was at its high-water mark.</summary>
        public long DroppedFull { get; }

        /// <summary>Number of messages that found the peer's queue full.</summary>
        public long QueueFullCount { get; }

        /// <summary>Number of reconnects to the peer.</summary>
        public long Reconnects { get; }

        /// <summary>Round-trip time of the last heartbeat; null without heartbeats.</summary>
        public TimeSpan? RoundTrip { get; }

        /// <summary>State of the connection.</summary>
        public PeerState State { get; }

        /// <summary>True if this socket connected to the peer, false if the peer connected to this socket.</summary>
        public bool IsOutgoing { get; }

        /// <summary>True if bytes go through shared memory.</summary>
        public bool UsesSharedMemory { get; }

        /// <summary>Routing id by which ROUTER and other sockets know the peer; may be empty.</summary>
        public byte[] RoutingId { get; }

        /// <summary>The peer's end of the connection; empty for inproc.</summary>
        public string Remote { get; }

        /// <summary>Our end of the connection.</summary>
        public string Local { get; }

        /// <summary>The endpoint that was bound or connected on this side.</summary>
        public string Endpoint { get; }

        /// <summary>User id that the authentication handler assigned to the peer.</summary>
        public string UserId { get; }

        /// <summary>The peer's address (<c>Peer-Address</c> of its messages).</summary>
        public string PeerAddress { get; }

        /// <summary>The security mechanism: <c>NULL</c>, <c>PLAIN</c>, <c>CURVE</c>; empty for inproc.</summary>
        public string Mechanism { get; }
    }
}
