using System;
using System.Runtime.CompilerServices;
using System.Text;

namespace Tautline
{
    public unsafe partial class Socket
    {
        /// <summary>Counters of the socket. Needs Tautline.</summary>
        /// <exception cref="NotSupportedException">The library is not Tautline.</exception>
        public SocketStatistics Statistics
        {
            get
            {
                SocketStatistics statistics;
                if (!TryGetStatistics(out statistics))
                    throw StatisticsNotSupported();
                return statistics;
            }
        }

        /// <summary>Returns the current peers with their traffic counters, including peers that are still being connected
        /// to. Needs Tautline.</summary>
        /// <exception cref="NotSupportedException">The library is not Tautline.</exception>
        public SocketPeer[] GetPeers()
        {
            // More peers may connect before the second call.
            var natives = new SocketPeer.NativePeer[Statistics.Peers + 16];
            int length;
            fixed (SocketPeer.NativePeer* value = natives)
                length = ReadOption(Option.Peers, value, natives.Length * sizeof(SocketPeer.NativePeer));
            var peers = new SocketPeer[length / sizeof(SocketPeer.NativePeer)];
            for (int place = 0; place < peers.Length; place++)
                peers[place] = new SocketPeer(ref natives[place]);
            return peers;
        }

        /// <summary>Subscribes to messages that begin with these bytes. An empty prefix matches every message.</summary>
        /// <param name="prefix">The prefix.</param>
        public void Subscribe(byte[] prefix)
        {
            SetOption(6, Argument.NotNull(prefix, nameof(prefix)));
        }

        /// <summary>Subscribes to messages that begin with this text. An empty prefix matches every message.</summary>
        /// <param name="prefix">The prefix.</param>
        public void Subscribe(string prefix)
        {
            Subscribe(Encoding.UTF8.GetBytes(Argument.NotNull(prefix, nameof(prefix))));
        }

        /// <summary>Ends a subscription.</summary>
        /// <param name="prefix">The prefix passed to <see cref="Subscribe(byte[])"/>.</param>
        public void Unsubscribe(byte[] prefix)
        {
            SetOption(7, Argument.NotNull(prefix, nameof(prefix)));
        }

        /// <summary>Ends a subscription.</summary>
        /// <param name="prefix">The prefix passed to <see cref="Subscribe(string)"/>.</param>
        public void Unsubscribe(string prefix)
        {
            Unsubscribe(Encoding.UTF8.GetBytes(Argument.NotNull(prefix, nameof(prefix))));
        }

        /// <summary>Reads an option that is an int, by its number.</summary>
        /// <param name="option">The number.</param>
        public int GetIntOption(int option)
        {
            using (Locked())
            {
                int value = Option.GetInt(socket, option);
                GC.KeepAlive(this);
                return value;
            }
        }

        /// <summary>Reads an option that is 64 bits long, by its number.</summary>
        /// <param name="option">The number.</param>
        public long GetLongOption(int option)
        {
            long value;
            ReadOption(option, &value, sizeof(long));
            return value;
        }

        /// <summary>Reads an option that is bytes, by its number.</summary>
        /// <param name="option">The number.</param>
        public byte[] GetBytesOption(int option)
        {
            const int room = 1024;
            byte* value = stackalloc byte[room];
            int length = ReadOption(option, value, room);
            var bytes = new byte[length];
            for (int at = 0; at < length; at++)
                bytes[at] = value[at];
            return bytes;
        }

        /// <summary>Reads an option that is text, by its number.</summary>
        /// <param name="option">The number.</param>
        public string GetStringOption(int option)
        {
            const int room = 4096;
            byte* value = stackalloc byte[room];
            int length = ReadOption(option, value, room);
            return Library.Text(value, length);
        }

        /// <summary>Sets an option that is an int, by its number.</summary>
        /// <param name="option">The number.</param>
        /// <param name="value">The value.</param>
        public void SetOption(int option, int value)
        {
            Put(option, value, null);
        }

        /// <summary>Sets an option that is 64 bits long, by its number.</summary>
        /// <param name="option">The number.</param>
        /// <param name="value">The value.</param>
        public void SetOption(int option, long value)
        {
            Put(option, value, null);
        }

        /// <summary>Sets an option that is bytes, by its number.</summary>
        /// <param name="option">The number.</param>
        /// <param name="value">The value; null clears the option.</param>
        public void SetOption(int option, byte[] value)
        {
            Put(option, value, null);
        }

        /// <summary>Sets an option that is text, by its number.</summary>
        /// <param name="option">The number.</param>
        /// <param name="value">The value; null clears the option.</param>
        public void SetOption(int option, string value)
        {
            Put(option, value, null);
        }

        // For properties: the error for an invalid value names the property. The error shows only numbers, because texts may be secrets.

        void Put(int option, int value, [CallerMemberName] string name = null)
        {
            if (!TrySet(option, &value, sizeof(int)))
                throw Refused(option, name, "the value " + value);
        }

        void Put(int option, long value, [CallerMemberName] string name = null)
        {
            if (!TrySet(option, &value, sizeof(long)))
                throw Refused(option, name, "the value " + value);
        }

        void Put(int option, byte[] value, [CallerMemberName] string name = null)
        {
            int length = value == null ? 0 : value.Length;
            fixed (byte* bytes = value)
            {
                if (!TrySet(option, bytes, length))
                    throw Refused(option, name, "this value of " + length + " bytes");
            }
        }

        void Put(int option, string value, [CallerMemberName] string name = null)
        {
            Put(option, value == null ? null : Encoding.UTF8.GetBytes(value), name);
        }

        Exception Refused(int option, string name, string value)
        {
            name = name ?? "option " + option;
            return ZmqException.About(Errno.InvalidArgument, name + " of a " + type + " socket does not take " + value);
        }

        static Exception StatisticsNotSupported()
        {
            return new NotSupportedException("The loaded libzmq has no counters: use Tautline.");
        }

        internal bool TryGetStatistics(out SocketStatistics statistics)
        {
            using (Locked())
            {
                var error = Option.TryGetStatistics(socket, out statistics);
                GC.KeepAlive(this);
                if (error != 0 && error != Errno.InvalidArgument)
                    throw ZmqException.Of(error);
                return error == 0;
            }
        }

        /// <summary>Reads a CURVE key as text. If there is room, the library writes 40 characters and a NUL.</summary>
        string GetKey(int option)
        {
            const int room = 41;
            byte* value = stackalloc byte[room];
            int length = ReadOption(option, value, room);
            return Library.Text(value, length);
        }

        int ReadOption(int option, void* value, int room)
        {
            var length = (UIntPtr)(uint)room;
            using (Locked())
            {
                int result;
                do
                    result = Native.zmq_getsockopt(socket, option, value, &length);
                while (result == -1 && Native.zmq_errno() == (int)Errno.Interrupted);
                if (result == -1)
                    throw ZmqException.About((Errno)Native.zmq_errno(), "option " + option + " of a " + type + " socket");
            }
            GC.KeepAlive(this);
            return (int)(uint)length;
        }

        /// <summary>Sets an option. Returns false if the value is not allowed, and throws on other errors.</summary>
        bool TrySet(int option, void* value, int length)
        {
            using (Locked())
            {
                int result;
                do
                    result = Native.zmq_setsockopt(socket, option, value, (UIntPtr)(uint)length);
                while (result == -1 && Native.zmq_errno() == (int)Errno.Interrupted);
                GC.KeepAlive(this);
                if (result == -1 && Native.zmq_errno() == (int)Errno.InvalidArgument)
                    return false;
                ZmqException.Check(result);
            }
            return true;
        }
    }
}
