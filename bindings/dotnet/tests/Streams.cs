#if SPANS
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline.Tests
{
    static class Streams
    {
        static void Run(Func<Task> test)
        {
            Task.Run(test).GetAwaiter().GetResult();
        }

        /// <summary>Does the same as <c>await foreach</c>, which this language version does not have.
        /// The loop ends if the body returns false.</summary>
        static async Task ForEach<T>(IAsyncEnumerable<T> stream, Func<T, bool> body, CancellationToken token = default(CancellationToken))
        {
            var steps = stream.GetAsyncEnumerator(token);
            try
            {
                while (await steps.MoveNextAsync())
                {
                    if (!body(steps.Current))
                        break;
                }
            }
            finally
            {
                await steps.DisposeAsync();
            }
        }

        static async Task<T> Throws<T>(Task task)
            where T : Exception
        {
            try
            {
                await task;
            }
            catch (T error)
            {
                return error;
            }
            throw new Exception("expected a " + typeof(T).Name);
        }

        static void SendNumbers(Socket socket, int first, int count)
        {
            for (int number = first; number < first + count; number++)
                socket.Send(BitConverter.GetBytes(number));
        }

        static int Number(Message message)
        {
            return BitConverter.ToInt32(message.ToArray(), 0);
        }

        [Test]
        static void PartAfterPart()
        {
            Run(async () =>
            {
                const int count = 20000;
                foreach (string transport in new[] { "tcp", "inproc" })
                using (var couple = new Couple(SocketType.Pull, SocketType.Push, transport))
                {
                    var sending = Task.Run(() => SendNumbers(couple.Connected, 0, count));
                    Message only = null;
                    int next = 0;
                    await ForEach(couple.Bound.ReceiveAllAsync(), part =>
                    {
                        Check.That(only == null || only == part, "the same object each time");
                        only = part;
                        Check.Equal(next++, Number(part));
                        return next < count;
                    });
                    await sending;
                    Check.Throws<ObjectDisposedException>(() => only.Size.ToString());
                }
            });
        }

        [Test]
        static void OfEachKind()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    var sizes = new[] { 0, 1, 64, 256, 70000, 3 };
                    foreach (int size in sizes)
                        couple.Connected.Send(Check.Pattern(size, 9));
                    var arrays = new List<byte[]>();
                    await ForEach(couple.Bound.ReceiveAllBytesAsync(), part =>
                    {
                        arrays.Add(part);
                        return arrays.Count < sizes.Length;
                    });
                    for (int at = 0; at < sizes.Length; at++)
                        Check.Bytes(Check.Pattern(sizes[at], 9), arrays[at]);

                    var texts = new[] { "", "äöü", new string('x', 500), "end" };
                    foreach (string text in texts)
                        couple.Connected.Send(text);
                    var found = new List<string>();
                    await ForEach(couple.Bound.ReceiveAllStringsAsync(), text =>
                    {
                        found.Add(text);
                        return text != "end";
                    });
                    Check.That(texts.SequenceEqual(found), "the same texts");

                    var messages = new List<List<byte[]>>();
                    var receiving = ForEach(couple.Bound.ReceiveAllMultipartAsync(), parts =>
                    {
                        messages.Add(parts);
                        return messages.Count < 3;
                    });
                    for (int parts = 1; parts <= 3; parts++)
                        couple.Connected.SendMultipart(Enumerable.Range(0, parts).Select(each => Check.Pattern(each * 1000)).ToArray());
                    await receiving;
                    for (int at = 0; at < 3; at++)
                    {
                        Check.Equal(at + 1, messages[at].Count);
                        Check.Bytes(Check.Pattern(at * 1000), messages[at][at]);
                    }
                }
            });
        }

        [Test]
        static void PartsOfAMessageAreToldApart()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    couple.Connected.SendMultipart(new byte[1], new byte[2], new byte[3]);
                    couple.Connected.Send("alone");
                    var found = "";
                    await ForEach(couple.Bound.ReceiveAllAsync(), part =>
                    {
                        found += part.Size + (part.HasMore ? "+" : ".");
                        return part.Size < 5;
                    });
                    Check.Equal("1+2+3.5.", found);
                }
            });
        }

        [Test]
        static void CurrentIsReadOnce()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    var steps = couple.Bound.ReceiveAllBytesAsync().GetAsyncEnumerator();
                    couple.Connected.Send(Check.Pattern(100000));
                    Check.That(await steps.MoveNextAsync(), "a part");
                    Check.Bytes(Check.Pattern(100000), steps.Current);
                    Check.That(steps.Current == steps.Current, "the same array");
                    await steps.DisposeAsync();
                    await steps.DisposeAsync();
                    Check.That(!await steps.MoveNextAsync(), "it is over");
                }
            });
        }

        [Test]
        static void WhoStopsLosesNothing()
        {
            Run(async () =>
            {
                const int count = 300;
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    SendNumbers(couple.Connected, 0, count);
                    int next = 0;
                    var stream = couple.Bound.ReceiveAllAsync();
                    while (next < count)
                    {
                        int until = next + 7;
                        // A new enumeration continues where the previous enumeration of the stream stopped.
                        await ForEach(stream, part =>
                        {
                            Check.Equal(next++, Number(part));
                            return next < until && next < count;
                        });
                        if (next < count)
                            Check.Equal(next++, BitConverter.ToInt32(await couple.Bound.ReceiveBytesAsync(), 0));
                        if (next < count)
                            Check.Equal(next++, BitConverter.ToInt32(couple.Bound.ReceiveBytes(), 0));
                        // An exception in the loop's body loses no part.
                        if (next < count)
                        {
                            await Throws<InvalidTimeZoneException>(ForEach(stream, part =>
                            {
                                Check.Equal(next++, Number(part));
                                throw new InvalidTimeZoneException();
                            }));
                        }
                    }
                    int length;
                    Check.That(!couple.Bound.TryReceive(new byte[4], out length), "that was all");
                }
            });
        }

        [Test]
        static void Cancelling()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    // Cancel by the method's token, by the loop's token (WithCancellation), or by one of
                    // the two if both are given.
                    for (int way = 0; way < 4; way++)
                    {
                        using (var first = new CancellationTokenSource())
                        using (var second = new CancellationTokenSource())
                        {
                            var mine = way == 1 ? CancellationToken.None : first.Token;
                            var loops = way == 0 ? CancellationToken.None : second.Token;
                            var waiting = ForEach(couple.Bound.ReceiveAllAsync(mine), part => false, loops);
                            Check.That(!waiting.IsCompleted, "nothing was sent");
                            (way == 0 || way == 2 ? first : second).Cancel();
                            await Throws<OperationCanceledException>(waiting);
                            await Throws<OperationCanceledException>(ForEach(couple.Bound.ReceiveAllMultipartAsync(mine), part => false, loops));
                        }
                    }
                    // A stream that is already cancelled does not take available messages.
                    couple.Connected.Send("kept");
                    Check.That(couple.Bound.Wait(PollEvents.In, Timeout.InfiniteTimeSpan), "it was sent");
                    var over = new CancellationToken(true);
                    await Throws<OperationCanceledException>(ForEach(couple.Bound.ReceiveAllAsync(over), part => true));
                    await Throws<OperationCanceledException>(ForEach(couple.Bound.ReceiveAllMultipartAsync(over), part => true));
                    await ForEach(couple.Bound.ReceiveAllStringsAsync(), text =>
                    {
                        Check.Equal("kept", text);
                        return false;
                    });
                }
            });
        }

        [Test]
        static void CancellingWhileMessagesComeLosesNone()
        {
            Run(async () =>
            {
                const int count = 1000;
                using (var couple = new Couple(SocketType.Pull, SocketType.Push, "inproc"))
                using (var received = new SemaphoreSlim(1))
                {
                    int next = 0, cancelled = 0, tried = 0;
                    var sending = Task.Run(async () =>
                    {
                        for (int number = 0; number < count; number++)
                        {
                            // Send one message at a time, so that the receiver usually waits.
                            await received.WaitAsync();
                            couple.Connected.Send(BitConverter.GetBytes(number));
                        }
                    });
                    while (next < count)
                    {
                        using (var source = new CancellationTokenSource())
                        {
                            int rounds = tried++ % 5;
                            var cancelling = Task.Run(async () =>
                            {
                                for (int round = 0; round < rounds; round++)
                                    await Task.Yield();
                                source.Cancel();
                            });
                            try
                            {
                                if (tried % 2 == 0)
                                {
                                    await ForEach(couple.Bound.ReceiveAllBytesAsync(source.Token), part =>
                                    {
                                        Check.Equal(next, BitConverter.ToInt32(part, 0));
                                        received.Release();
                                        return ++next < count;
                                    });
                                }
                                else
                                {
                                    await ForEach(couple.Bound.ReceiveAllMultipartAsync(source.Token), parts =>
                                    {
                                        Check.Equal(next, BitConverter.ToInt32(parts[0], 0));
                                        received.Release();
                                        return ++next < count;
                                    });
                                }
                            }
                            catch (OperationCanceledException)
                            {
                                cancelled++;
                            }
                            await cancelling;
                        }
                    }
                    await sending;
                    Check.That(cancelled > 0, "some were cancelled");
                }
            });
        }

        [Test]
        static void TheEndOfTheSocketIsTold()
        {
            Run(async () =>
            {
                var couple = new Couple(SocketType.Pull, SocketType.Push);
                var parts = ForEach(couple.Bound.ReceiveAllAsync(), part => true);
                var messages = ForEach(couple.Bound.ReceiveAllMultipartAsync(), part => true);
                couple.Dispose();
                await Throws<ObjectDisposedException>(parts);
                await Throws<ObjectDisposedException>(messages);
                await Throws<ObjectDisposedException>(ForEach(couple.Bound.ReceiveAllAsync(), part => true));

                using (couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    parts = ForEach(couple.Bound.ReceiveAllStringsAsync(), part => true);
                    messages = ForEach(couple.Bound.ReceiveAllMultipartAsync(), part => true);
                    couple.Context.Shutdown();
                    await Throws<ContextTerminatedException>(parts);
                    await Throws<ContextTerminatedException>(messages);
                    await Throws<ContextTerminatedException>(ForEach(couple.Bound.ReceiveAllAsync(), part => true));
                }

                using (couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    var refused = await Throws<ZmqException>(ForEach(couple.Connected.ReceiveAllAsync(), part => true));
                    Check.Equal(Errno.NotSupported, refused.Error);
                }
            });
        }

        [Test]
        static void WhoseTheMessageIs()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pair, SocketType.Pair))
                {
                    var kept = new List<Message>();
                    var receiving = ForEach(couple.Bound.ReceiveAllAsync(), part =>
                    {
                        kept.Add(part.Clone());
                        // The loop forwards the message, disposes it or leaves it. The next step uses a
                        // new message or the same one.
                        if (kept.Count % 3 == 0)
                            couple.Bound.Send(part);
                        else if (kept.Count % 3 == 1)
                            part.Dispose();
                        return kept.Count < 30;
                    });
                    for (int number = 1; number <= 30; number++)
                    {
                        couple.Connected.Send(Check.Pattern(number * 100));
                        if (number % 3 == 0)
                            Check.Bytes(Check.Pattern(number * 100), couple.Connected.ReceiveBytes());
                    }
                    await receiving;
                    for (int at = 0; at < 30; at++)
                        Check.Bytes(Check.Pattern((at + 1) * 100), kept[at].ToArray());
                    kept.ForEach(each => each.Dispose());
                }
            });
        }

        [Test]
        static void OneStepAtATime()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    var steps = couple.Bound.ReceiveAllAsync().GetAsyncEnumerator();
                    var waiting = steps.MoveNextAsync().AsTask();
                    Check.Throws<InvalidOperationException>(() => steps.MoveNextAsync());
                    Check.Throws<NotSupportedException>(() => steps.DisposeAsync());
                    couple.Connected.Send("x");
                    Check.That(await waiting, "it was sent");
                    Check.Equal("x", steps.Current.ToString());
                    await steps.DisposeAsync();
                }
            });
        }

        [Test]
        static void SeveralStreamsShareASocket()
        {
            Run(async () =>
            {
                const int count = 2000;
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                using (var source = new CancellationTokenSource())
                {
                    var found = new List<int>();
                    var all = Enumerable.Range(0, 4).Select(each => Task.Run(() => ForEach(couple.Bound.ReceiveAllBytesAsync(source.Token), part =>
                    {
                        lock (found)
                        {
                            found.Add(BitConverter.ToInt32(part, 0));
                            if (found.Count == count)
                                source.Cancel();
                        }
                        return true;
                    }))).ToArray();
                    SendNumbers(couple.Connected, 0, count);
                    foreach (var each in all)
                        await Throws<OperationCanceledException>(each);
                    found.Sort();
                    Check.That(found.SequenceEqual(Enumerable.Range(0, count)), "each message once");
                }
            });
        }

        [Test]
        static void NothingIsAllocatedForAPartThatIsThere()
        {
            const int count = 500;
            using (var couple = new Couple(SocketType.Pull, SocketType.Push, "inproc"))
            {
                var steps = couple.Bound.ReceiveAllAsync().GetAsyncEnumerator();
                Action<int> run = parts =>
                {
                    for (int part = 0; part < parts; part++)
                    {
                        var step = steps.MoveNextAsync();
                        Check.That(step.IsCompletedSuccessfully && step.Result, "it is there");
                        GC.KeepAlive(steps.Current);
                    }
                };
                SendNumbers(couple.Connected, 0, count + 50);
                run(50);
                long before = GC.GetAllocatedBytesForCurrentThread();
                run(count);
                Check.Equal(before, GC.GetAllocatedBytesForCurrentThread());
                steps.DisposeAsync().AsTask().Wait();
            }
        }

        [Test]
        static void EventsUntilTheMonitorStops()
        {
            Run(async () =>
            {
                using (var context = new Context())
                using (var connected = new PushSocket(context))
                {
                    var bound = new PullSocket(context);
                    using (var monitor = new SocketMonitor(context, bound))
                    {
                        var types = new List<SocketEvents>();
                        var listening = new TaskCompletionSource<string>();
                        var ready = new TaskCompletionSource<bool>();
                        var watching = ForEach(monitor.ReceiveAllAsync(), monitorEvent =>
                        {
                            types.Add(monitorEvent.Type);
                            if (monitorEvent.Type == SocketEvents.Listening)
                                listening.TrySetResult(monitorEvent.Endpoint);
                            if (monitorEvent.Type == SocketEvents.HandshakeSucceeded)
                                ready.TrySetResult(true);
                            return true;
                        });
                        string endpoint = bound.Bind("tcp://127.0.0.1:*");
                        Check.Equal(endpoint, await listening.Task);
                        connected.Connect(endpoint);
                        await ready.Task;
                        bound.Dispose();
                        await watching;
                        Check.Equal(SocketEvents.Listening, types[0]);
                        Check.Equal(SocketEvents.Accepted, types[1]);
                        Check.Equal(SocketEvents.HandshakeSucceeded, types[2]);
                        Check.Equal(SocketEvents.MonitorStopped, types.Last());
                        // A second stream of the stopped monitor ends at once.
                        await ForEach(monitor.ReceiveAllAsync(), monitorEvent => true);
                    }
                }
            });
        }

        [Test]
        static void AStreamOfEventsIsCancelledOrDisposedOf()
        {
            Run(async () =>
            {
                using (var context = new Context())
                using (var bound = new PullSocket(context))
                using (var monitor = new SocketMonitor(context, bound, SocketEvents.Listening))
                {
                    using (var source = new CancellationTokenSource())
                    {
                        var waiting = ForEach(monitor.ReceiveAllAsync(source.Token), monitorEvent => true);
                        source.Cancel();
                        await Throws<OperationCanceledException>(waiting);
                    }
                    bound.Bind("tcp://127.0.0.1:*");
                    string second = bound.Bind("tcp://127.0.0.1:*");
                    int found = 0;
                    await ForEach(monitor.ReceiveAllAsync(), monitorEvent => ++found < 1);
                    await ForEach(monitor.ReceiveAllAsync(), monitorEvent =>
                    {
                        Check.Equal(second, monitorEvent.Endpoint);
                        return false;
                    });
                    var ended = ForEach(monitor.ReceiveAllAsync(), monitorEvent => true);
                    monitor.Dispose();
                    await Throws<ObjectDisposedException>(ended);
                }
            });
        }
    }
}
#endif
