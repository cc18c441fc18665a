using System.Runtime.InteropServices;

namespace Tautline
{
    /// <summary>What a socket has done so far; see <see cref="Socket.Statistics"/>.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct SocketStatistics
    {
        readonly ulong messagesSent, bytesSent, messagesReceived, bytesReceived, droppedFull, droppedUnroutable, lost, queuedOut,
            queuedIn, peers, reconnects, failedConnects, failedHandshakes;

        /// <summary>Messages handed to the peers' queues.</summary>
        public long MessagesSent { get { return (long)messagesSent; } }

        /// <summary>Their bytes, with the frames' headers.</summary>
        public long BytesSent { get { return (long)bytesSent; } }

        /// <summary>Messages received by the program.</summary>
        public long MessagesReceived { get { return (long)messagesReceived; } }

        /// <summary>Their bytes, with the frames' headers.</summary>
        public long BytesReceived { get { return (long)bytesReceived; } }

        /// <summary>Not sent because a peer was at its high-water mark (publishers, routers).</summary>
        public long DroppedFull { get { return (long)droppedFull; } }

        /// <summary>Not sent because no peer has that routing id (ROUTER).</summary>
        public long DroppedUnroutable { get { return (long)droppedUnroutable; } }

        /// <summary>Queued for peers that have gone for good.</summary>
        public long Lost { get { return (long)lost; } }

        /// <summary>Messages now waiting to be sent.</summary>
        public long QueuedOut { get { return (long)queuedOut; } }

        /// <summary>Messages now waiting for the program.</summary>
        public long QueuedIn { get { return (long)queuedIn; } }

        /// <summary>Peers that are connected, or being connected to.</summary>
        public long Peers { get { return (long)peers; } }

        /// <summary>Peers lost and found again.</summary>
        public long Reconnects { get { return (long)reconnects; } }

        /// <summary>Attempts to connect that came to nothing.</summary>
        public long FailedConnects { get { return (long)failedConnects; } }

        /// <summary>Peers that broke off, or were not let in.</summary>
        public long FailedHandshakes { get { return (long)failedHandshakes; } }

        /// <summary>All of them by name, for a log.</summary>
        public override string ToString()
        {
            return "MessagesSent=" + MessagesSent + " BytesSent=" + BytesSent + " MessagesReceived=" + MessagesReceived
                + " BytesReceived=" + BytesReceived + " DroppedFull=" + DroppedFull + " DroppedUnroutable=" + DroppedUnroutable
                + " Lost=" + Lost + " QueuedOut=" + QueuedOut + " QueuedIn=" + QueuedIn + " Peers=" + Peers
                + " Reconnects=" + Reconnects + " FailedConnects=" + FailedConnects + " FailedHandshakes=" + FailedHandshakes;
        }
    }
}
