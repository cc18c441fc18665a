using System;

namespace Tautline
{
    /// <summary>Numbers of the options that the binding needs, and a function to read an option.</summary>
    internal static unsafe class Option
    {
        internal const int Descriptor = 14;
        internal const int Events = 15;
        internal const int Type = 16;
        internal const int ReceiveTimeout = 27;
        internal const int SendTimeout = 28;
        internal const int Statistics = 0x54410001;
        internal const int TautlineVersion = 0x54410002;
        internal const int Peers = 0x54410005;
        internal const int WaitPeers = 0x54410006;
        internal const int WaitSubscriptions = 0x54410007;

        internal static int GetInt(IntPtr socket, int option)
        {
            int value;
            var length = (UIntPtr)sizeof(int);
            int result;
            do
                result = Native.zmq_getsockopt(socket, option, &value, &length);
            while (result == -1 && Native.zmq_errno() == (int)Errno.Interrupted);
            if (result == -1)
                throw ZmqException.About((Errno)Native.zmq_errno(), "option " + option);
            return value;
        }

        /// <summary>Returns 0 or the error's number. Libraries other than Tautline return
        /// <see cref="Errno.InvalidArgument"/>.</summary>
        internal static Errno TryGetStatistics(IntPtr socket, out SocketStatistics statistics)
        {
            fixed (SocketStatistics* value = &statistics)
            {
                *value = default(SocketStatistics);
                var length = (UIntPtr)sizeof(SocketStatistics);
                int result = Native.zmq_getsockopt(socket, Statistics, value, &length);
                return result == 0 ? 0 : (Errno)Native.zmq_errno();
            }
        }
    }
}
