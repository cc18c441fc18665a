using System;
using System.Collections.Generic;
using System.Threading;

namespace Tautline
{
    /// <summary>The single thread that watches the descriptors of all sockets with a waiting operation.</summary>
    internal static unsafe class Reactor
    {
        /// <summary>Idle time after which the reactor drops sockets without waiting operations, so that they can be
        /// collected.</summary>
        const int IdleMilliseconds = 1000;

        static readonly object Gate = new object();
        static readonly List<SocketDispatcher> Watched = new List<SocketDispatcher>();
        static readonly byte[] Bell = new byte[1];
        static Socket bell;
        static bool changed;

        internal static void Arm(SocketDispatcher dispatcher)
        {
            lock (Gate)
            {
                if (bell == null)
                    Begin();
                Watched.Add(dispatcher);
                Ring();
            }
        }

        internal static void Disarm(SocketDispatcher dispatcher)
        {
            lock (Gate)
            {
                if (Watched.Remove(dispatcher))
                    Ring();
            }
        }

        static void Ring()
        {
            // Wake the thread once; it resets the flag when it looks.
            if (!changed)
                bell.Send(Bell);
            changed = true;
        }

        static void Begin()
        {
            // inproc needs no I/O thread. The context lives as long as the process.
            var context = new Context { IoThreads = 0 };
            var heard = new Socket(context, SocketType.Pair);
            heard.Bind("inproc://reactor");
            var rings = new Socket(context, SocketType.Pair);
            rings.Connect("inproc://reactor");
            new Thread(() => Watch(context, heard)) { IsBackground = true, Name = "ZMQ reactor" }.Start();
            bell = rings;
        }

        static void Watch(Context context, Socket heard)
        {
            var watched = new SocketDispatcher[0];
            var items = new PollItem[1];
            for (;;)
            {
                lock (Gate)
                {
                    if (changed)
                    {
                        changed = false;
                        int length;
                        while (heard.TryReceive(Bell, out length))
                            continue;
                        watched = Watched.ToArray();
                        items = new PollItem[watched.Length + 1];
                        for (int at = 0; at < watched.Length; at++)
                            items[at + 1] = new PollItem { Descriptor = watched[at].Descriptor, Events = (short)PollEvents.In };
                        items[0] = new PollItem { Socket = heard.Pointer, Events = (short)PollEvents.In };
                    }
                }
                int ready;
                fixed (PollItem* first = items)
                    ready = Native.zmq_poll(first, items.Length, (IntPtr)(watched.Length > 0 ? IdleMilliseconds : -1));
                if (ready == -1 && Native.zmq_errno() == (int)Errno.Interrupted)
                    continue;
                for (int at = 0; at < watched.Length; at++)
                {
                    // After an error (a descriptor was closed during the wait), ask every socket.
                    bool keep = ready == 0 ? watched[at].Idle()
                        : ready > 0 && items[at + 1].Ready == 0 || watched[at].Signalled();
                    if (!keep)
                        Forget(watched[at]);
                }
                GC.KeepAlive(context);
            }
        }

        static void Forget(SocketDispatcher dispatcher)
        {
            lock (Gate)
            {
                // If another thread has armed it again, the socket is listed twice and one entry remains.
                if (Watched.Remove(dispatcher))
                    Ring();
            }
        }
    }
}
