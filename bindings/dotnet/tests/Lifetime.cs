using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Tautline.Tests
{
    static class Lifetime
    {
        [Test]
        static void DisposingInTheWrongOrder()
        {
            var context = new Context();
            var socket = new PullSocket(context);
            context.Dispose();
            context.Dispose();
            Check.Throws<ContextTerminatedException>(() => socket.Receive(new byte[1]));
            socket.Dispose();
            socket.Dispose();
            Check.Throws<ObjectDisposedException>(() => new PullSocket(context));
        }

        [Test]
        static void AClosedSocketSaysSo()
        {
            using (var context = new Context())
            {
                var socket = new PushSocket(context);
                socket.Dispose();
                Check.Fails(Errno.NotASocket, () => socket.Send(new byte[1]));
                Check.Fails(Errno.NotASocket, () => socket.Bind("inproc://a"));
                Check.Fails(Errno.NotASocket, () => socket.Linger = TimeSpan.Zero);
                Check.Fails(Errno.NotASocket, () => socket.Wait(PollEvents.In, TimeSpan.Zero));
                Check.Throws<ObjectDisposedException>(() => socket.SendAsync(new byte[1]));
                using (var poller = new Poller())
                {
                    poller.Add(socket, PollEvents.Out);
                    Check.Fails(Errno.NotASocket, () => poller.Wait(TimeSpan.Zero));
                }
            }
        }

        [Test]
        static void AShutdownWakesWhoWaits()
        {
            var context = new Context();
            var entered = new ManualResetEventSlim();
            Exception found = null;
            var waiting = new Thread(() =>
            {
                using (var socket = new PullSocket(context))
                {
                    entered.Set();
                    found = Check.Throws<ContextTerminatedException>(() => socket.Receive(new byte[1]));
                }
            });
            waiting.Start();
            entered.Wait();
            context.Dispose();
            waiting.Join();
            Check.That(found != null, "the waiting call failed");
        }

        [Test]
        static void WhatWasSentArrivesAfterDispose()
        {
            using (var context = new Context())
            using (var pull = new PullSocket(context))
            {
                string endpoint = pull.Bind("tcp://127.0.0.1:*");
                using (var other = new Context())
                using (var push = new PushSocket(other))
                {
                    push.Connect(endpoint);
                    for (int number = 0; number < 500; number++)
                        push.Send(new[] { (byte)number });
                }
                for (int number = 0; number < 500; number++)
                    Check.Equal((byte)number, pull.ReceiveBytes()[0]);
            }
        }

        [Test]
        static void WhatIsForgottenIsClosedAndNobodyWaits()
        {
            // The peer of the queued messages never connects and linger has no limit. The finalizer must not wait for them.
            var sockets = new List<WeakReference>();
            for (int round = 0; round < 20; round++)
                Forget(sockets);
            for (int round = 0; round < 3; round++)
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }
            int left = 0;
            foreach (var each in sockets)
                left += each.IsAlive ? 1 : 0;
            // A conservative collector may mistake a value on the stack for a reference.
            Check.That(left < 10, "most are gone, " + left + " are not");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Forget(List<WeakReference> sockets)
        {
            var context = new Context();
            var socket = new PushSocket(context);
            socket.Connect("tcp://127.0.0.1:1");
            socket.Send(new byte[100]);
            new Message(100).ToString();
            new MessageBatch().ToString();
            sockets.Add(new WeakReference(socket));
        }

        [Test]
        static void ErrorsKeepTheirNumberWhileGarbageIsCollected()
        {
            bool stop = false;
            var collector = new Thread(() =>
            {
                while (!Volatile.Read(ref stop))
                {
                    GC.Collect(0);
                    // A collection stops all threads. Without a pause, .NET Core sometimes runs only collections.
                    Thread.Sleep(0);
                }
            });
            collector.Start();
            try
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    int length;
                    var buffer = new byte[8];
                    for (int round = 0; round < 5000; round++)
                    {
                        // TryReceive would throw on any error except EAGAIN.
                        Check.That(!couple.Bound.TryReceive(buffer, out length), "nothing there");
                        buffer = new byte[8];
                    }
                }
            }
            finally
            {
                Volatile.Write(ref stop, true);
                collector.Join();
            }
        }

        [DllImport("libc.so.6")]
        static extern IntPtr dlsym(IntPtr library, string name);

        [DllImport("libc.so.6")]
        static extern IntPtr signal(int number, IntPtr handler);

        [DllImport("libc.so.6")]
        static extern IntPtr pthread_self();

        [DllImport("libc.so.6")]
        static extern int pthread_kill(IntPtr thread, int number);

        [Test]
        static void SignalsDoNotEndAWait()
        {
            const int urgent = 23;
            // Any function without side effects can serve as the handler.
            IntPtr before = signal(urgent, dlsym(IntPtr.Zero, "abs"));
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            {
                IntPtr thread = IntPtr.Zero;
                var entered = new ManualResetEventSlim();
                string found = null;
                Exception timeout = null;
                bool done = false;
                var waiting = new Thread(() =>
                {
                    thread = pthread_self();
                    entered.Set();
                    found = couple.Bound.ReceiveString();
                    couple.Bound.ReceiveTimeout = TimeSpan.FromMilliseconds(50);
                    timeout = Check.Throws<ZmqException>(() => couple.Bound.ReceiveString());
                    Volatile.Write(ref done, true);
                });
                waiting.Start();
                entered.Wait();
                for (int round = 0; round < 100; round++)
                {
                    pthread_kill(thread, urgent);
                    Thread.Yield();
                }
                couple.Connected.Send("at last");
                // The wait must time out although signals continue.
                while (!waiting.Join(1))
                {
                    if (!Volatile.Read(ref done))
                        pthread_kill(thread, urgent);
                }
                Check.Equal("at last", found);
                Check.Equal(Errno.Again, ((ZmqException)timeout).Error);
            }
            signal(urgent, before);
        }
    }
}
