#if METERS
using System;
using System.Collections.Generic;
using System.Diagnostics.Metrics;

namespace Tautline
{
    /// <summary>A socket that the meter reports. This entry does not prevent garbage collection of
    /// the socket.</summary>
    internal sealed class MeteredSocket
    {
        readonly WeakReference<Socket> socket;

        internal MeteredSocket(Socket socket, string name)
        {
            this.socket = new WeakReference<Socket>(socket);
            Type = socket.Type;
            Name = name;
        }

        internal SocketType Type { get; private set; }

        internal string Name { get; private set; }

        /// <summary>The last bound or connected endpoint; empty before the first bind or
        /// connect.</summary>
        internal string Endpoint { get; set; }

        internal bool IsAlive
        {
            get
            {
                Socket alive;
                return socket.TryGetTarget(out alive);
            }
        }

        /// <summary>Reads the counters. Returns false if they are unavailable because the socket runs in
        /// a proxy or is closed.</summary>
        internal bool TryCount(out SocketStatistics numbers)
        {
            Socket alive;
            numbers = default(SocketStatistics);
            bool known = socket.TryGetTarget(out alive) && alive.Dispatcher != null && alive.Dispatcher.TryCount(out numbers);
            GC.KeepAlive(alive);
            return known;
        }

        /// <summary>Returns a number with the socket's tags, and with <c>tag</c> unless it is null.</summary>
        internal Measurement<long> Measurement(long number, string tag, string value)
        {
            var tags = new List<KeyValuePair<string, object>>
            {
                new KeyValuePair<string, object>("socket.type", Type.ToString()),
                new KeyValuePair<string, object>("socket.name", Name),
            };
            if (!string.IsNullOrEmpty(Endpoint))
                tags.Add(new KeyValuePair<string, object>("socket.endpoint", Endpoint));
            if (tag != null)
                tags.Add(new KeyValuePair<string, object>(tag, value));
            return new Measurement<long>(number, tags);
        }
    }

    /// <summary>The meter, created with the first metered socket, and the sockets that it
    /// reports.</summary>
    /// <remarks>All its instruments are observable: they read the sockets only while a listener is
    /// attached.</remarks>
    internal static class SocketMeter
    {
        static readonly object Gate = new object();
        static readonly List<MeteredSocket> Sockets = new List<MeteredSocket>();
        static readonly Dictionary<SocketType, int> Numbers = new Dictionary<SocketType, int>();
        static Meter meter;

        /// <summary>Adds a socket, or replaces its existing entry.</summary>
        internal static MeteredSocket Add(Socket socket, MeteredSocket before, string name)
        {
            lock (Gate)
            {
                Sockets.RemoveAll(each => !each.IsAlive);
                name = name ?? Unused(socket.Type);
                if (Sockets.Exists(each => each != before && each.Name == name))
                    throw new ArgumentException("Another meter already has the name " + name + ".", nameof(name));
                if (meter == null)
                    Begin();
                var added = new MeteredSocket(socket, name);
                Sockets.Remove(before);
                Sockets.Add(added);
                return added;
            }
        }

        internal static void Remove(MeteredSocket socket)
        {
            lock (Gate)
                Sockets.Remove(socket);
        }

        static string Unused(SocketType type)
        {
            int number;
            string name;
            Numbers.TryGetValue(type, out number);
            do
                name = type.ToString().ToLowerInvariant() + "-" + ++number;
            while (Sockets.Exists(each => each.Name == name));
            Numbers[type] = number;
            return name;
        }

        static void Begin()
        {
            meter = new Meter("Tautline", Library.TautlineVersion.ToString());
            Counter("tautline.messages.sent", "{message}", "Messages handed to the peers' queues.", Each(all => all.MessagesSent));
            Counter("tautline.messages.received", "{message}", "Messages received by the program.", Each(all => all.MessagesReceived));
            Counter("tautline.bytes.sent", "By", "Bytes of the messages sent, with the frames' headers.", Each(all => all.BytesSent));
            Counter("tautline.bytes.received", "By", "Bytes of the messages received, with the frames' headers.", Each(all => all.BytesReceived));
            Counter("tautline.messages.dropped", "{message}",
                "Messages not sent: a peer was at its high-water mark (full), no peer had the routing id (unroutable), the peer went for good (lost).",
                Each("reason", "full", all => all.DroppedFull),
                Each("reason", "unroutable", all => all.DroppedUnroutable),
                Each("reason", "lost", all => all.LostMessages));
            Level("tautline.messages.queued", "{message}", "Messages now waiting to be sent (out), or for the program (in).",
                Each("direction", "out", all => all.QueuedOut),
                Each("direction", "in", all => all.QueuedIn));
            Level("tautline.peers", "{peer}", "Peers that are connected, or being connected to.", Each(all => all.Peers));
            Counter("tautline.reconnects", "{reconnect}", "Connections lost and restored.", Each(all => all.Reconnects));
            Counter("tautline.connects.failed", "{connect}", "Failed connection attempts.", Each(all => all.FailedConnects));
            Counter("tautline.handshakes.failed", "{handshake}", "Peers that broke off, or were not let in.", Each(all => all.FailedHandshakes));
        }

        /// <summary>Creates a counter that only grows.</summary>
        static void Counter(string name, string unit, string description, params Number[] numbers)
        {
            meter.CreateObservableCounter(name, () => Tell(numbers), unit, description);
        }

        /// <summary>Creates a gauge that rises and falls.</summary>
        static void Level(string name, string unit, string description, params Number[] numbers)
        {
            meter.CreateObservableUpDownCounter(name, () => Tell(numbers), unit, description);
        }

        static Number Each(Func<SocketStatistics, long> read)
        {
            return new Number { Read = read };
        }

        static Number Each(string tag, string value, Func<SocketStatistics, long> read)
        {
            return new Number { Read = read, Tag = tag, Value = value };
        }

        /// <summary>Returns the numbers of every socket whose counters are available.</summary>
        static IEnumerable<Measurement<long>> Tell(Number[] numbers)
        {
            MeteredSocket[] sockets;
            // Do not hold this lock while reading a socket, because that takes the socket's lock.
            lock (Gate)
                sockets = Sockets.ToArray();
            foreach (var socket in sockets)
            {
                SocketStatistics all;
                if (!socket.TryCount(out all))
                    continue;
                foreach (var number in numbers)
                    yield return socket.Measurement(number.Read(all), number.Tag, number.Value);
            }
        }

        /// <summary>A number of a socket, with an additional tag unless the tag is null.</summary>
        struct Number
        {
            internal Func<SocketStatistics, long> Read;
            internal string Tag;
            internal string Value;
        }
    }
}
#endif
