#if METERS
using System;
using System.Collections.Generic;
using System.Diagnostics.Metrics;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline.Tests
{
    /// <summary>A listener of the meter. Keeps one number for each instrument and its
    /// tags.</summary>
    sealed class Heard : IDisposable
    {
        readonly MeterListener listener = new MeterListener();
        readonly Dictionary<string, long> numbers = new Dictionary<string, long>();
        internal readonly Dictionary<string, Instrument> Instruments = new Dictionary<string, Instrument>();

        internal Heard()
        {
            listener.InstrumentPublished = (instrument, listening) =>
            {
                if (instrument.Meter.Name != "Tautline")
                    return;
                Instruments[instrument.Name] = instrument;
                listening.EnableMeasurementEvents(instrument, null);
            };
            listener.SetMeasurementEventCallback<long>((instrument, value, tags, state) =>
            {
                string key = instrument.Name;
                foreach (var tag in tags)
                    key += " " + tag.Key + "=" + tag.Value;
                Check.That(!numbers.ContainsKey(key), "one number each: " + key);
                numbers[key] = value;
            });
            listener.Start();
        }

        internal string[] Keys
        {
            get { return numbers.Keys.ToArray(); }
        }

        internal Heard Listen()
        {
            numbers.Clear();
            listener.RecordObservableInstruments();
            return this;
        }

        internal bool Knows(string name)
        {
            return numbers.Keys.Any(each => each.Contains(" socket.name=" + name + " ") || each.EndsWith(" socket.name=" + name));
        }

        /// <summary>Returns the number of the socket. If given, <c>kind</c> selects by the last tag.</summary>
        internal long Of(string instrument, string name, string kind = null)
        {
            return numbers.Single(each => each.Key.StartsWith(instrument + " ") && each.Key.Contains(" socket.name=" + name + " ")
                && (kind == null || each.Key.EndsWith(" " + kind))).Value;
        }

        public void Dispose()
        {
            listener.Dispose();
        }
    }

    static class Meters
    {
        [Test(OnTautlineOnly = true)]
        static void NumbersOfASocket()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            using (var heard = new Heard())
            {
                couple.Bound.EnableMetrics("sink");
                couple.Connected.EnableMetrics("source");
                for (int number = 0; number < 10; number++)
                    couple.Connected.Send("counted");
                for (int number = 0; number < 7; number++)
                    Check.Equal("counted", couple.Bound.ReceiveString());
                while (heard.Listen().Of("tautline.messages.queued", "sink", "direction=in") < 3)
                    Thread.Yield();
                Check.Equal(10L, heard.Of("tautline.messages.sent", "source"));
                Check.Equal(0L, heard.Of("tautline.messages.received", "source"));
                Check.Equal(couple.Connected.Statistics.BytesSent, heard.Of("tautline.bytes.sent", "source"));
                Check.Equal(7L, heard.Of("tautline.messages.received", "sink"));
                Check.Equal(couple.Bound.Statistics.BytesReceived, heard.Of("tautline.bytes.received", "sink"));
                Check.Equal(1L, heard.Of("tautline.peers", "sink"));
                Check.Equal(0L, heard.Of("tautline.messages.queued", "source", "direction=in"));
                Check.Equal(0L, heard.Of("tautline.messages.dropped", "source", "reason=full"));
                Check.Equal(0L, heard.Of("tautline.messages.dropped", "source", "reason=unroutable"));
                Check.Equal(0L, heard.Of("tautline.messages.dropped", "source", "reason=lost"));
                Check.That(heard.Keys.Contains(
                    "tautline.messages.sent socket.type=Push socket.name=source socket.endpoint=" + couple.Endpoint), "the tags");
                Check.Equal(2 * 13, heard.Keys.Length);
            }
        }

        [Test(OnTautlineOnly = true)]
        static void TheInstruments()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            using (var heard = new Heard())
            {
                couple.Bound.EnableMetrics();
                Check.Equal(
                    "tautline.bytes.received By,tautline.bytes.sent By,tautline.connects.failed {connect},tautline.handshakes.failed {handshake},"
                        + "tautline.messages.dropped {message},tautline.messages.queued {message},tautline.messages.received {message},"
                        + "tautline.messages.sent {message},tautline.peers {peer},tautline.reconnects {reconnect}",
                    string.Join(",", heard.Instruments.Values.OrderBy(each => each.Name, StringComparer.Ordinal)
                        .Select(each => each.Name + " " + each.Unit).ToArray()));
                Check.That(heard.Instruments.Values.All(each => each.IsObservable && each.Description.EndsWith(".")), "each is described");
                Check.Equal(Library.TautlineVersion.ToString(), heard.Instruments["tautline.peers"].Meter.Version);
            }
        }

        [Test(OnTautlineOnly = true)]
        static void WhatWentWrong()
        {
            using (var context = new Context())
            using (var publisher = new PublisherSocket(context) { SendHighWaterMark = 1 })
            using (var subscriber = new SubscriberSocket(context) { ReceiveHighWaterMark = 1 })
            using (var router = new RouterSocket(context))
            using (var nobody = new PushSocket(context) { ReconnectInterval = TimeSpan.FromMilliseconds(1) })
            using (var heard = new Heard())
            {
                foreach (var socket in new Socket[] { publisher, router, nobody })
                    socket.EnableMetrics(socket.Type.ToString());
                subscriber.Subscribe("");
                subscriber.Connect(publisher.Bind("inproc://news"));
                for (int number = 0; number < 10; number++)
                    publisher.Send("x");
                router.SendMultipart(new byte[] { 1 }, new byte[] { 2 });
                // This port is free after the unbind, so connecting to it fails.
                string free = router.Bind("tcp://127.0.0.1:*");
                router.Unbind(free);
                nobody.Connect(free);
                while (heard.Listen().Of("tautline.connects.failed", "Push") == 0)
                    Thread.Yield();
                Check.Equal(8L, heard.Of("tautline.messages.dropped", "Publisher", "reason=full"));
                Check.Equal(1L, heard.Of("tautline.messages.dropped", "Router", "reason=unroutable"));
            }
        }

        [Test(OnTautlineOnly = true)]
        static void WhatIsGoneVanishes()
        {
            using (var heard = new Heard())
            {
                var couple = new Couple(SocketType.Pull, SocketType.Push);
                couple.Bound.EnableMetrics("bound");
                couple.Connected.EnableMetrics("connected");
                heard.Listen();
                Check.That(heard.Knows("bound") && heard.Knows("connected"), "both are there");
                couple.Bound.Dispose();
                heard.Listen();
                Check.That(!heard.Knows("bound") && heard.Knows("connected"), "one is there");
                couple.Context.Shutdown();
                Check.Equal(0, heard.Listen().Keys.Length);
                couple.Dispose();
                Check.Equal(0, heard.Listen().Keys.Length);

                for (int round = 0; round < 20; round++)
                    Forget("forgotten " + round);
                for (int round = 0; round < 3; round++)
                {
                    GC.Collect();
                    GC.WaitForPendingFinalizers();
                }
                heard.Listen();
                // A conservative collector may mistake a value on the stack for a reference.
                Check.That(Enumerable.Range(0, 20).Count(each => heard.Knows("forgotten " + each)) < 10, "most are gone");
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Forget(string name)
        {
            var socket = new PullSocket(new Context());
            socket.Bind("inproc://" + name);
            socket.EnableMetrics(name);
        }

        [Test(OnTautlineOnly = true)]
        static void Names()
        {
            using (var context = new Context())
            using (var first = new PullSocket(context))
            using (var second = new PullSocket(context))
            using (var heard = new Heard())
            {
                first.EnableMetrics("one");
                Check.Throws<ArgumentException>(() => second.EnableMetrics("one"));
                first.EnableMetrics("one");
                second.EnableMetrics("two");
                Check.Throws<ArgumentException>(() => second.EnableMetrics("one"));
                first.EnableMetrics("three");
                second.EnableMetrics("one");
                heard.Listen();
                Check.That(heard.Knows("one") && !heard.Knows("two") && heard.Knows("three"), "the names they have now");
                Check.Equal(2 * 13, heard.Keys.Length);
                first.Dispose();
                second.EnableMetrics("three");
                // First there is no endpoint tag, then the tag has the newest endpoint.
                Check.That(heard.Listen().Keys.Contains("tautline.peers socket.type=Pull socket.name=three"), "no endpoint");
                second.Bind("inproc://first");
                second.Bind("inproc://second");
                Check.That(heard.Listen().Keys.Contains(
                    "tautline.peers socket.type=Pull socket.name=three socket.endpoint=inproc://second"), "the endpoint");
                using (var third = new PullSocket(context))
                using (var fourth = new PullSocket(context))
                {
                    third.EnableMetrics();
                    fourth.EnableMetrics();
                    var names = heard.Listen().Keys.Where(each => each.StartsWith("tautline.peers socket.type=Pull socket.name=pull-")).ToArray();
                    Check.Equal(2, names.Distinct().Count());
                }
                Check.Fails(Errno.NotASocket, () => first.EnableMetrics());
            }
        }

        [Test]
        static void AnotherLibraryDoesNotCount()
        {
            if (Runner.OnTautline)
                return;
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            {
                Check.Throws<NotSupportedException>(() => couple.Bound.EnableMetrics());
                couple.Connected.Send("x");
                Check.Equal("x", couple.Bound.ReceiveString());
            }
        }

        [Test(OnTautlineOnly = true)]
        static void WhileSomebodyWaits()
        {
            var waits = new Dictionary<string, Action<Socket>>
            {
                { "receive", socket => socket.ReceiveString() },
                { "batch", socket => socket.ReceiveBatch(new MessageBatch()) },
                { "wait", socket => socket.Wait(PollEvents.In, Timeout.InfiniteTimeSpan) },
                { "poller", socket =>
                    {
                        using (var poller = new Poller())
                        {
                            poller.Add(socket, PollEvents.In);
                            poller.Wait();
                        }
                    }
                },
                { "async", socket => socket.ReceiveStringAsync().Wait() },
            };
            using (var heard = new Heard())
            {
                foreach (var each in waits)
                using (var context = new Context())
                using (var pull = new PullSocket(context))
                using (var push = new PushSocket(context))
                {
                    pull.EnableMetrics(each.Key);
                    string endpoint = pull.Bind("tcp://127.0.0.1:*");
                    var waiting = new Thread(() => each.Value(pull));
                    waiting.Start();
                    Check.Equal(0L, heard.Listen().Of("tautline.peers", each.Key));
                    push.Connect(endpoint);
                    // The waiting call refreshes the numbers periodically.
                    while (heard.Listen().Of("tautline.peers", each.Key) == 0)
                        Thread.Sleep(1);
                    Check.That(waiting.IsAlive, "it waits");
                    push.Send("at last");
                    waiting.Join();
                    long received = each.Key == "wait" || each.Key == "poller" ? 0 : 1;
                    Check.Equal(received, heard.Listen().Of("tautline.messages.received", each.Key));
                }
            }
        }

        [Test(OnTautlineOnly = true)]
        static void AProxyKeepsItsSocketsToItself()
        {
            using (var context = new Context())
            using (var frontend = new PullSocket(context))
            using (var backend = new PushSocket(context))
            using (var steering = new PairSocket(context))
            using (var control = new PairSocket(context))
            using (var push = new PushSocket(context))
            using (var pull = new PullSocket(context))
            using (var heard = new Heard())
            {
                push.Connect(frontend.Bind("tcp://127.0.0.1:*"));
                pull.Connect(backend.Bind("tcp://127.0.0.1:*"));
                control.Connect(steering.Bind("inproc://steering"));
                frontend.EnableMetrics("front");
                push.EnableMetrics("other");
                var proxy = new Thread(() => Proxy.RunSteerable(frontend, backend, null, steering));
                proxy.Start();
                for (int number = 0; number < 10; number++)
                {
                    push.Send("through");
                    Check.Equal("through", pull.ReceiveString());
                }
                heard.Listen();
                Check.That(!heard.Knows("front") && heard.Knows("other"), "only what is not in the proxy");
                control.Send("TERMINATE");
                proxy.Join();
                Check.Equal(10L, heard.Listen().Of("tautline.messages.received", "front"));
            }
        }

        [Test(OnTautlineOnly = true)]
        static void ManyThreadsAndSomebodyWhoListensAllTheWhile()
        {
            const int count = 5000;
            using (var heard = new Heard())
            using (var blocking = new Couple(SocketType.Pull, SocketType.Push))
            using (var asynchronous = new Couple(SocketType.Dealer, SocketType.Dealer))
            using (var questions = new Couple(SocketType.Reply, SocketType.Request))
            {
                int number = 0;
                foreach (var couple in new[] { blocking, asynchronous, questions })
                {
                    couple.Bound.EnableMetrics("bound " + ++number);
                    couple.Connected.EnableMetrics("connected " + number);
                }
                var tasks = new List<Task>();
                var start = new Action<Action>(work => tasks.Add(Task.Factory.StartNew(work, TaskCreationOptions.LongRunning)));
                start(() =>
                {
                    for (int at = 0; at < count; at++)
                        blocking.Connected.Send(BitConverter.GetBytes(at));
                });
                start(() =>
                {
                    for (int at = 0; at < count; at++)
                        Check.Equal(at, BitConverter.ToInt32(blocking.Bound.ReceiveBytes(), 0));
                });
                start(() =>
                {
                    for (int at = 0; at < count / 10; at++)
                    {
                        Check.Equal("q" + at, questions.Bound.ReceiveString());
                        questions.Bound.Send("a" + at);
                    }
                });
                start(() =>
                {
                    for (int at = 0; at < count / 10; at++)
                    {
                        questions.Connected.Send("q" + at);
                        Check.Equal("a" + at, questions.Connected.ReceiveString());
                    }
                });
                foreach (var each in new[] { asynchronous.Bound, asynchronous.Connected })
                {
                    var socket = each;
                    tasks.Add(Task.Run(async () =>
                    {
                        for (int at = 0; at < count; at++)
                            await socket.SendAsync(BitConverter.GetBytes(at));
                    }));
                    tasks.Add(Task.Run(async () =>
                    {
                        for (int at = 0; at < count; at++)
                            Check.Equal(at, BitConverter.ToInt32(await socket.ReceiveBytesAsync(), 0));
                    }));
                }
                var all = Task.WhenAll(tasks.ToArray());
                long before = 0;
                while (!all.IsCompleted)
                {
                    long received = heard.Listen().Of("tautline.messages.received", "bound 1");
                    Check.That(received >= before && received <= count, "it only grows");
                    before = received;
                }
                all.Wait();
                heard.Listen();
                Check.Equal((long)count, heard.Of("tautline.messages.received", "bound 1"));
                Check.Equal((long)count, heard.Of("tautline.messages.sent", "connected 2"));
                Check.Equal((long)count, heard.Of("tautline.messages.received", "connected 2"));
                Check.Equal((long)count / 10, heard.Of("tautline.messages.received", "connected 3"));
            }
        }

        [Test(OnTautlineOnly = true)]
        static void AMeteredSocketDoesAllThatOthersDo()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push, "inproc", each =>
            {
                each.EnableMetrics();
                each.SendHighWaterMark = 2;
                each.ReceiveHighWaterMark = 2;
            }))
            using (var message = new Message())
            {
                int length;
                couple.Bound.ReceiveTimeout = TimeSpan.FromMilliseconds(1);
                couple.Connected.SendTimeout = TimeSpan.FromMilliseconds(1);
                Check.Fails(Errno.Again, () => couple.Bound.Receive(new byte[1]));
                Check.Fails(Errno.Again, () => couple.Bound.ReceiveMultipart());
                Check.That(!couple.Bound.TryReceive(new byte[1], out length), "nothing there");
                Check.That(!couple.Bound.TryReceive(message, TimeSpan.FromMilliseconds(1)), "nothing comes");
                Check.That(!couple.Bound.Wait(PollEvents.In, TimeSpan.FromMilliseconds(1)), "nothing comes");
                for (int sent = 0; sent < 4; sent++)
                    couple.Connected.Send(new[] { (byte)sent });
                Check.Fails(Errno.Again, () => couple.Connected.Send(new byte[1]));
                couple.Connected.SendTimeout = Timeout.InfiniteTimeSpan;
                var sending = Task.Run(() =>
                {
                    for (int sent = 4; sent < 100; sent++)
                        couple.Connected.Send(new[] { (byte)sent });
                });
                couple.Bound.ReceiveTimeout = Timeout.InfiniteTimeSpan;
                for (int received = 0; received < 100; received++)
                    Check.Equal((byte)received, couple.Bound.ReceiveBytes()[0]);
                sending.Wait();

                // Another thread makes an asynchronous call during a wait.
                var waiting = Task.Run(() => couple.Bound.Wait(PollEvents.In, Timeout.InfiniteTimeSpan));
                var receiving = couple.Bound.ReceiveStringAsync();
                couple.Connected.Send("for one of them");
                Check.Equal("for one of them", receiving.Result);
                couple.Connected.Send("for the other");
                Check.That(waiting.Result, "it came");
                couple.Context.Shutdown();
                Check.Throws<ContextTerminatedException>(() => couple.Bound.Receive(message));
                Check.Throws<ContextTerminatedException>(() => couple.Bound.Wait(PollEvents.In, Timeout.InfiniteTimeSpan));
            }
        }

        [Test(OnTautlineOnly = true)]
        static void NothingIsAllocatedForAMessageOfAMeteredSocket()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push, "inproc", each => each.EnableMetrics()))
            using (var message = new Message())
            {
                var data = Check.Pattern(64);
                Action<int> run = count =>
                {
                    for (int number = 0; number < count; number++)
                    {
                        couple.Connected.Send(data);
                        couple.Bound.Receive(data);
                        couple.Connected.Send(data);
                        couple.Bound.Receive(message);
                        int length;
                        couple.Bound.TryReceive(data, out length);
                        couple.Bound.TryReceive(message, TimeSpan.Zero);
                    }
                };
                run(100);
                long before = GC.GetAllocatedBytesForCurrentThread();
                run(1000);
                Check.Equal(before, GC.GetAllocatedBytesForCurrentThread());
            }
        }

        [Test(OnTautlineOnly = true)]
        static void PollingMeteredSockets()
        {
            Miscellaneous.Polling(each => each.EnableMetrics());
        }
    }
}
#endif
