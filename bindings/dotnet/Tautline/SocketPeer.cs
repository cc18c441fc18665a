using System;
using System.Runtime.InteropServices;

namespace Tautline
{
    /// <summary>What there is between a socket and a peer.</summary>
    public enum PeerState
    {
        /// <summary>Not reached yet, or lost and perhaps coming back. What is sent is queued.</summary>
        Connecting = 0,

        /// <summary>Messages flow.</summary>
        Connected = 1,

        /// <summary>Gone for good; something that it has sent may still be received.</summary>
        Gone = 2,

        /// <summary>The socket is closed, and something is still to be sent.</summary>
        Lingering = 3,
    }

    /// <summary>A peer of a socket, and what has gone to it and come from it; see <see cref="Socket.GetPeers"/>.</summary>
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

        /// <summary>Names it in the socket, as long as it is there.</summary>
        public long Id { get; }

        /// <summary>Since when the present connection is there; null before the first one, and for inproc.</summary>
        public DateTime? Since { get; }

        /// <summary>Messages handed to its queue.</summary>
        public long MessagesSent { get; }

        /// <summary>Their bytes, with the frames' headers.</summary>
        public long BytesSent { get; }

        /// <summary>Messages received from it.</summary>
        public long MessagesReceived { get; }

        /// <summary>Their bytes, with the frames' headers.</summary>
        public long BytesReceived { get; }

        /// <summary>Messages that wait to be sent to it.</summary>
        public long QueuedOut { get; }

        /// <summary>Their bytes.</summary>
        public long QueuedOutBytes { get; }

        /// <summary>Messages from it that wait for the program.</summary>
        public long QueuedIn { get; }

        /// <summary>Their bytes.</summary>
        public long QueuedInBytes { get; }

        /// <summary>Messages not sent because it was at its high-water mark.</summary>
        public long Dropped { get; }

        /// <summary>How often a message has found the queue to it full.</summary>
        public long Full { get; }

        /// <summary>How often it was lost and found again.</summary>
        public long Reconnects { get; }

        /// <summary>How long the last heartbeat took there and back; null if there was none.</summary>
        public TimeSpan? RoundTrip { get; }

        /// <summary>What there is between the socket and it.</summary>
        public PeerState State { get; }

        /// <summary>Whether this socket has connected to it; else it has come.</summary>
        public bool ConnectedHere { get; }

        /// <summary>Whether bytes go through shared memory.</summary>
        public bool SharedMemory { get; }

        /// <summary>By which ROUTER and others know it; may be empty.</summary>
        public byte[] RoutingId { get; }

        /// <summary>Its end of the connection; empty for inproc.</summary>
        public string Address { get; }

        /// <summary>Our end.</summary>
        public string Local { get; }

        /// <summary>What was bound or connected here.</summary>
        public string Endpoint { get; }

        /// <summary>What the authentication handler has said it is.</summary>
        public string UserId { get; }

        /// <summary>Its address as messages show it.</summary>
        public string Host { get; }

        /// <summary>The security mechanism: <c>NULL</c>, <c>PLAIN</c>, <c>CURVE</c>; empty for inproc.</summary>
        public string Mechanism { get; }
    }
}
