using System;
using System.Diagnostics;

namespace Tautline
{
    /// <summary>One send or receive, with the retries after a signal or when the socket was not ready.</summary>
    internal unsafe struct Transfer
    {
        internal enum Kind
        {
            Send,
            Receive,
            SendMessage,
            ReceiveMessage,
        }

        readonly Kind kind;
        readonly void* data;
        readonly UIntPtr size;
        readonly int flags;

        internal Transfer(Kind kind, void* data, int size, int flags)
        {
            this.kind = kind;
            this.data = data;
            this.size = (UIntPtr)(uint)size;
            this.flags = flags;
        }

        internal bool Sends
        {
            get { return kind == Kind.Send || kind == Kind.SendMessage; }
        }

        bool Waits
        {
            get { return (flags & Native.DontWait) == 0; }
        }

        /// <summary>Makes the call, without waiting if `more` is DontWait.</summary>
        int Call(IntPtr socket, int more)
        {
            switch (kind)
            {
                case Kind.Send: return Native.zmq_send(socket, data, size, flags | more);
                case Kind.Receive: return Native.zmq_recv(socket, data, size, flags | more);
                case Kind.SendMessage: return Native.zmq_msg_send((IntPtr)data, socket, flags | more);
                default: return Native.zmq_msg_recv((IntPtr)data, socket, flags | more);
            }
        }

        /// <summary>Tries without waiting. Returns -1 if the socket is not ready.</summary>
        internal int Try(IntPtr socket)
        {
            int result = Call(socket, Native.DontWait);
            return result >= 0 ? result : new Transfer(kind, data, (int)size, flags | Native.DontWait).Failed(socket, Native.zmq_errno());
        }

        /// <summary>Handles a call that has returned -1.</summary>
        /// <param name="socket">The socket.</param>
        /// <param name="number">The value of zmq_errno, read by the method that made the call: see <see cref="Native"/>.</param>
        /// <returns>The final result; -1 means that the socket was not ready in time. Throws on other errors.</returns>
        internal int Failed(IntPtr socket, int number)
        {
            int result = -1;
            int timeout = -2;
            Stopwatch clock = null;
            while (result == -1)
            {
                var error = (Errno)number;
                if (error == Errno.Again && (timeout < 0 || clock.ElapsedMilliseconds >= timeout))
                    return -1;
                if (error != Errno.Interrupted && error != Errno.Again)
                    throw ZmqException.Of(error, socket, Sends);
                if (!Waits)
                {
                    result = Call(socket, 0);
                    number = Native.zmq_errno();
                    continue;
                }
                if (timeout == -2)
                {
                    // The time before the signal is unknown. We add it only once, so later signals do not prolong the wait.
                    int option;
                    UIntPtr length = (UIntPtr)sizeof(int);
                    ZmqException.Check(Native.zmq_getsockopt(socket, Sends ? Option.SendTimeout : Option.ReceiveTimeout, &option, &length));
                    timeout = option;
                    clock = Stopwatch.StartNew();
                }
                if (timeout < 0)
                {
                    result = Call(socket, 0);
                    number = Native.zmq_errno();
                    continue;
                }
                long left = timeout - clock.ElapsedMilliseconds;
                var item = new PollItem { Socket = socket, Events = (short)(Sends ? PollEvents.Out : PollEvents.In) };
                if (left <= 0 || Native.zmq_poll(&item, 1, (IntPtr)left) != -1)
                    result = Call(socket, Native.DontWait);
                number = Native.zmq_errno();
            }
            return result;
        }
    }
}
