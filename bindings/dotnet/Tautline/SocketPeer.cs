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

        /// <summary>Gone for good. Messages from the peer may still be received.</summary>
        Gone = 2,

        /// <summary>The socket is closed and still sends queued messages.</summary>
        Lingering = 3,
    }

    /// <summary>A peer of a socket with its traffic counters; see <see cref="Socket.GetPeers"/>.</summary>
    public sealed unsafe class SocketPeer
    {
        /// <summary>A <c>zmq_tautline_peer_t</c>.</summary>
        [StructLayout(LayoutKind.Sequential)]
        internal struct Form
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

        internal SocketPeer(ref Form form)
        {
            Id = (long)form.Id;
            // Ticks of 100 ns.
            Since = form.Since == 0 ? (DateTime?)null : new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc).AddTicks((long)form.Since * 10);
            MessagesSent = (long)form.MessagesSent;
            BytesSent = (long)form.BytesSent;
            MessagesReceived = (long)form.MessagesReceived;
            BytesReceived = (long)form.BytesReceived;
            QueuedOut = (long)form.QueuedOut;
            QueuedOutBytes = (long)form.QueuedOutBytes;
            QueuedIn = (long)form.QueuedIn;
            QueuedInBytes = (long)form.QueuedInBytes;
            Dropped = (long)form.Dropped;
            Full = (long)form.Full;
            Reconnects = (long)form.Reconnects;
            RoundTrip = form.RoundTrip == 0 ? (TimeSpan?)null : TimeSpan.FromTicks((long)form.RoundTrip * 10);
            State = (PeerState)form.State;
            ConnectedHere = (form.Flags & 1) != 0;
            SharedMemory = (form.Flags & 2) != 0;
            fixed (Form* at = &form)
            {
                RoutingId = new byte[Math.Min(form.RoutingIdSize, 256)];
                Marshal.Copy((IntPtr)at->RoutingId, RoutingId, 0, RoutingId.Length);
                Address = Library.Text(at->Address, 128);
                Local = Library.Text(at->Local, 128);
                Endpoint = Library.Text(at->Endpoint, 256);
                UserId = Library.Text(at->UserId, 192);
                Host = Library.Text(at->Host, 64);
                Mechanism = Library.Text(at->Mechanism, 16);
            }
        }

        /// <summary>Identifies the peer within the socket while the peer exists.</summary>
        public long Id { get; }

        /// <summary>Start time of the current connection; null before the first connection, and for inproc.</summary>
        public DateTime? Since { get; }

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
        public long Dropped { get; }

        /// <summary>Number of messages that found the peer's queue full.</summary>
        public long Full { get; }

        /// <summary>Number of reconnects to the peer.</summary>
        public long Reconnects { get; }

        /// <summary>Round-trip time of the last heartbeat; null without heartbeats.</summary>
        public TimeSpan? RoundTrip { get; }

        /// <summary>State of the connection.</summary>
        public PeerState State { get; }

        /// <summary>True if this socket connected to the peer, false if the peer connected to this socket.</summary>
        public bool ConnectedHere { get; }

        /// <summary>True if bytes go through shared memory.</summary>
        public bool SharedMemory { get; }

        /// <summary>Routing id by which ROUTER and other sockets know the peer; may be empty.</summary>
        public byte[] RoutingId { get; }

        /// <summary>The peer's end of the connection; empty for inproc.</summary>
        public string Address { get; }

        /// <summary>Our end of the connection.</summary>
        public string Local { get; }

        /// <summary>The endpoint that was bound or connected on this side.</summary>
        public string Endpoint { get; }

        /// <summary>User id that the authentication handler assigned to the peer.</summary>
        public string UserId { get; }

        /// <summary>The peer's address (<c>Peer-Address</c> of its messages).</summary>
        public string Host { get; }

        /// <summary>The security mechanism: <c>NULL</c>, <c>PLAIN</c>, <c>CURVE</c>; empty for inproc.</summary>
        public string Mechanism { get; }
    }
}
