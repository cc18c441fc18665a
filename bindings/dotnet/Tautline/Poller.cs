using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.InteropServices;

namespace Tautline
{
    /// <summary>Events to wait for, or events that have occurred.</summary>
    [Flags]
    public enum PollEvents
    {
        /// <summary>No event.</summary>
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
    /// <remarks>For one thread at a time. The sockets in the poller belong to that thread.</remarks>
    public sealed unsafe class Poller : IDisposable
    {
        readonly List<Socket> sockets = new List<Socket>();
        PollItem* items;
        int room;

        /// <summary>Number of sockets and descriptors.</summary>
        public int Count
        {
            get { return sockets.Count; }
        }

        /// <summary>Adds a socket.</summary>
        /// <param name="socket">The socket. Add it only once.</param>
        /// <param name="events">The events to wait for.</param>
        /// <returns>The index, which stays valid until an entry is removed.</returns>
        public int Add(Socket socket, PollEvents events)
        {
            Argument.NotNull(socket, nameof(socket));
            if (sockets.Contains(socket))
                throw new ArgumentException("The poller already contains this socket.", nameof(socket));
            return Add(socket, 0, events);
        }

        /// <summary>Adds a file descriptor.</summary>
        /// <param name="descriptor">The descriptor.</param>
        /// <param name="events">The events to wait for.</param>
        /// <returns>The index.</returns>
        public int Add(int descriptor, PollEvents events)
        {
            return Add(null, descriptor, events);
        }

        /// <summary>Sets the events to wait for.</summary>
        /// <param name="index">The index of the entry.</param>
        /// <param name="events">The new events to wait for.</param>
        public void SetEvents(int index, PollEvents events)
        {
            Check(index);
            items[index].Events = (short)events;
        }

        /// <summary>Removes an entry. The indexes of later entries decrease by one.</summary>
        /// <param name="index">The index of the entry.</param>
        public void RemoveAt(int index)
        {
            Check(index);
            sockets.RemoveAt(index);
            for (int at = index; at < sockets.Count; at++)
                items[at] = items[at + 1];
        }

        /// <summary>Removes a socket. The indexes of later entries decrease by one.</summary>
        /// <param name="socket">The socket.</param>
        /// <returns>True if the socket was in the poller.</returns>
        public bool Remove(Socket socket)
        {
            int index = sockets.IndexOf(Argument.NotNull(socket, nameof(socket)));
            if (index >= 0)
                RemoveAt(index);
            return index >= 0;
        }

        /// <summary>Waits until at least one entry is ready.</summary>
        /// <param name="timeout">The maximum time to wait.</param>
        /// <returns>The number of ready entries.</returns>
        public int Wait(TimeSpan timeout)
        {
            bool counted = false;
            for (int at = 0; at < sockets.Count; at++)
            {
                var socket = sockets[at];
                if (socket == null)
                    continue;
                items[at].Socket = socket.Pointer;
                // zmq_poll would take a closed socket (a null pointer) for descriptor 0.
                if (items[at].Socket == IntPtr.Zero)
                    throw ZmqException.Of(Errno.NotASocket);
                counted |= socket.IsMetered;
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
                using (new ExclusiveAccess(sockets))
                    ready = Poll(items, sockets.Count, deadline.Turn);
            }
            while (ready == 0 && !deadline.Over);
            return ready;
        }

        /// <summary>Waits without limit until at least one entry is ready.</summary>
        /// <returns>The number of ready entries.</returns>
        public int Wait()
        {
            return Wait(System.Threading.Timeout.InfiniteTimeSpan);
        }

        /// <summary>Returns the events of an entry at the end of the last wait.</summary>
        /// <param name="index">The index of the entry.</param>
        public PollEvents GetReadyEvents(int index)
        {
            Check(index);
            return (PollEvents)items[index].Ready;
        }

        /// <summary>Returns the events of a socket at the end of the last wait.</summary>
        /// <param name="socket">The socket; it must have been added.</param>
        public PollEvents GetReadyEvents(Socket socket)
        {
            return GetReadyEvents(sockets.IndexOf(Argument.NotNull(socket, nameof(socket))));
        }

        /// <summary>Frees the memory.</summary>
        public void Dispose()
        {
            Free();
            GC.SuppressFinalize(this);
        }

        /// <summary>Frees the memory of an object that was not disposed.</summary>
        ~Poller()
        {
            Free();
        }

        /// <summary>Calls zmq_poll, and resumes after a signal for the remaining time.</summary>
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
