using System.Runtime.InteropServices;

namespace Tautline
{
    /// <summary>Counters of a socket; see <see cref="Socket.Statistics"/>.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct SocketStatistics
    {
        readonly ulong messagesSent, bytesSent, messagesReceived, bytesReceived, droppedFull, droppedUnroutable, lostMessages, queuedOut,
            queuedIn, peers, reconnects, failedConnects, failedHandshakes;

        /// <summary>Messages put into the peers' queues.</summary>
        public long MessagesSent { get { return (long)messagesSent; } }

        /// <summary>Bytes of these messages, including frame headers.</summary>
        public long BytesSent { get { return (long)bytesSent; } }

        /// <summary>Messages received by the program.</summary>
        public long MessagesReceived { get { return (long)messagesReceived; } }

        /// <summary>Bytes of these messages, including frame headers.</summary>
        public long BytesReceived { get { return (long)bytesReceived; } }

        /// <summary>Messages dropped because a peer was at its high-water mark (publishers, routers).</summary>
        public long DroppedFull { get { return (long)droppedFull; } }

        /// <summary>Messages dropped because no peer has that routing id (ROUTER).</summary>
        public long DroppedUnroutable { get { return (long)droppedUnroutable; } }

        /// <summary>Messages that were queued for peers that will not reconnect.</summary>
        public long LostMessages { get { return (long)lostMessages; } }

        /// <summary>Messages now waiting to be sent.</summary>
        public long QueuedOut { get { return (long)queuedOut; } }

        /// <summary>Messages now waiting for the program.</summary>
        public long QueuedIn { get { return (long)queuedIn; } }

        /// <summary>Peers that are connected or being connected to.</summary>
        public long Peers { get { return (long)peers; } }

        /// <summary>Number of reconnects.</summary>
        public long Reconnects { get { return (long)reconnects; } }

        /// <summary>Failed connect attempts.</summary>
        public long FailedConnects { get { return (long)failedConnects; } }

        /// <summary>Handshakes that the peer aborted or that were refused.</summary>
        public long FailedHandshakes { get { return (long)failedHandshakes; } }

        /// <summary>Returns all counters with their names, for a log.</summary>
        public override string ToString()
        {
            return "MessagesSent=" + MessagesSent + " BytesSent=" + BytesSent + " MessagesReceived=" + MessagesReceived
                + " BytesReceived=" + BytesReceived + " DroppedFull=" + DroppedFull + " DroppedUnroutable=" + DroppedUnroutable
                + " LostMessages=" + LostMessages + " QueuedOut=" + QueuedOut + " QueuedIn=" + QueuedIn + " Peers=" + Peers
                + " Reconnects=" + Reconnects + " FailedConnects=" + FailedConnects + " FailedHandshakes=" + FailedHandshakes;
        }
    }
}
