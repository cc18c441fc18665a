using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.InteropServices;

namespace Tautline
{
    /// <summary>What to wait for, and what has come.</summary>
    [Flags]
    public enum PollEvents
    {
        /// <summary>Nothing.</summary>
        None = 0,
        /// <summary>At least one message can be received.</summary>
        In = 1,
        /// <summary>At least one message can be sent.</summary>
        Out = 2,
        /// <summary>An error on a descriptor.</summary>
        Error = 4,
        /// <summary>Urgent data on a descriptor.</summary>
        Priority = 8,
    }

    /// <summary>Waits for several sockets and descriptors at once.</summary>
    /// <remarks>One thread at a time; the sockets in it belong to that thread.</remarks>
    public sealed unsafe class Poller : IDisposable
    {
        readonly List<Socket> sockets = new List<Socket>();
        PollItem* items;
        int room;

        /// <summary>How many sockets and descriptors there are.</summary>
        public int Count
        {
            get { return sockets.Count; }
        }

        /// <summary>Adds a socket.</summary>
        /// <param name="socket">The socket, once.</param>
        /// <param name="events">What to wait for.</param>
        /// <returns>Its index. Those of others do not change unless one is removed.</returns>
        public int Add(Socket socket, PollEvents events)
        {
            Argument.NotNull(socket, nameof(socket));
            if (sockets.Contains(socket))
                throw new ArgumentException("The socket is there already.", nameof(socket));
            return Add(socket, 0, events);
        }

        /// <summary>Adds a descriptor of the system.</summary>
        /// <param name="descriptor">The descriptor.</param>
        /// <param name="events">What to wait for.</param>
        /// <returns>Its index.</returns>
        public int Add(int descriptor, PollEvents events)
        {
            return Add(null, descriptor, events);
        }

        /// <summary>Changes what to wait for.</summary>
        /// <param name="index">Of what.</param>
        /// <param name="events">What to wait for from now on.</param>
        public void Change(int index, PollEvents events)
        {
            Check(index);
            items[index].Events = (short)events;
        }

        /// <summary>Removes one. The indexes after it move up.</summary>
        /// <param name="index">Which.</param>
        public void RemoveAt(int index)
        {
            Check(index);
            sockets.RemoveAt(index);
            for (int at = index; at < sockets.Count; at++)
                items[at] = items[at + 1];
        }

        /// <summary>Removes a socket. The indexes after it move up.</summary>
        /// <param name="socket">The socket.</param>
        /// <returns>Whether it was there.</returns>
        public bool Remove(Socket socket)
        {
            int index = sockets.IndexOf(Argument.NotNull(socket, nameof(socket)));
            if (index >= 0)
                RemoveAt(index);
            return index >= 0;
        }

        /// <summary>Waits until something is ready.</summary>
        /// <param name="timeout">How long at most.</param>
        /// <returns>How many are ready.</returns>
        public int Wait(TimeSpan timeout)
        {
            bool counted = false;
            for (int at = 0; at < sockets.Count; at++)
            {
                var socket = sockets[at];
                if (socket == null)
                    continue;
                items[at].Socket = socket.Pointer;
                // A closed socket must not be taken for descriptor 0.
                if (items[at].Socket == IntPtr.Zero)
                    throw ZmqException.Of(Errno.NotASocket);
                counted |= socket.IsMeasured;
            }
            int milliseconds = Argument.Milliseconds(timeout);
            int ready = counted ? PollInTurns(milliseconds) : Poll(items, sockets.Count, milliseconds);
            GC.KeepAlive(this);
            return ready;
        }

        int PollInTurns(int timeout)
        {
            var deadline = new Deadline(timeout);
            int ready;
            do
            {
                using (new Loan(sockets))
                    ready = Poll(items, sockets.Count, deadline.Turn);
            }
            while (ready == 0 && !deadline.Over);
            return ready;
        }

        /// <summary>Waits until something is ready, however long it takes.</summary>
        /// <returns>How many are ready.</returns>
        public int Wait()
        {
            return Wait(System.Threading.Timeout.InfiniteTimeSpan);
        }

        /// <summary>What one was ready for when the last wait ended.</summary>
        /// <param name="index">Which.</param>
        public PollEvents Ready(int index)
        {
            Check(index);
            return (PollEvents)items[index].Ready;
        }

        /// <summary>What a socket was ready for when the last wait ended.</summary>
        /// <param name="socket">The socket; it must have been added.</param>
        public PollEvents Ready(Socket socket)
        {
            return Ready(sockets.IndexOf(Argument.NotNull(socket, nameof(socket))));
        }

        /// <summary>Frees the memory.</summary>
        public void Dispose()
        {
            Free();
            GC.SuppressFinalize(this);
        }

        /// <summary>Frees the memory of one that was forgotten.</summary>
        ~Poller()
        {
            Free();
        }

        /// <summary>zmq_poll, which goes on after a signal for the time that is left.</summary>
        internal static int Poll(PollItem* items, int count, int timeout)
        {
            int ready = Native.zmq_poll(items, count, (IntPtr)timeout);
            if (ready >= 0)
                return ready;
            var clock = Stopwatch.StartNew();
            while (ready < 0)
            {
                var error = (Errno)Native.zmq_errno();
                if (error != Errno.Interrupted)
                    throw ZmqException.Of(error);
                long left = timeout < 0 ? -1 : Math.Max(0, timeout - clock.ElapsedMilliseconds);
                ready = Native.zmq_poll(items, count, (IntPtr)left);
            }
            return ready;
        }

        int Add(Socket socket, int descriptor, PollEvents events)
        {
            if (sockets.Count == room)
            {
                int more = Math.Max(8, room * 2);
                var larger = (PollItem*)Marshal.AllocHGlobal(more * sizeof(PollItem));
                for (int at = 0; at < sockets.Count; at++)
                    larger[at] = items[at];
                Free();
                items = larger;
                room = more;
            }
            sockets.Add(socket);
            items[sockets.Count - 1] = new PollItem { Descriptor = descriptor, Events = (short)events };
            return sockets.Count - 1;
        }

        void Check(int index)
        {
            if ((uint)index >= (uint)sockets.Count)
                throw new ArgumentOutOfRangeException(nameof(index));
        }

        void Free()
        {
            Marshal.FreeHGlobal((IntPtr)items);
            items = null;
            room = 0;
        }
    }
}
