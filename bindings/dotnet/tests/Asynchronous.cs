using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline.Tests
{
    static class Asynchronous
    {
        static void Run(Func<Task> test)
        {
            Task.Run(test).GetAwaiter().GetResult();
        }

        [Test]
        static void ReceivingWaitsForSending()
        {
            Run(async () =>
            {
                foreach (string transport in new[] { "tcp", "inproc" })
                using (var couple = new Couple(SocketType.Pull, SocketType.Push, transport))
                {
                    var buffer = new byte[100];
                    var first = couple.Bound.ReceiveAsync(buffer);
                    var second = couple.Bound.ReceiveStringAsync();
                    var third = couple.Bound.ReceiveMultipartAsync();
                    var fourth = couple.Bound.ReceiveBytesAsync();
                    Check.That(!first.IsCompleted && !fourth.IsCompleted, "nothing was sent");
                    couple.Connected.Send(Check.Pattern(60));
                    Check.Equal(60, await first);
                    Check.Bytes(Check.Pattern(60), buffer.Take(60).ToArray());
                    await couple.Connected.SendAsync("two");
                    Check.Equal("two", await second);
                    await couple.Connected.SendMultipartAsync(new[] { Check.Pattern(1), Check.Pattern(2) });
                    Check.Equal(2, (await third).Count);
                    await couple.Connected.SendAsync(new Message("four"));
                    Check.Equal(4, (await fourth).Length);
                }
            });
        }

        [Test]
        static void PingPong()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Reply, SocketType.Request))
                {
                    const int rounds = 2000;
                    var answering = Task.Run(async () =>
                    {
                        var buffer = new byte[16];
                        for (int round = 0; round < rounds; round++)
                        {
                            Check.Equal(16, await couple.Bound.ReceiveAsync(buffer));
                            await couple.Bound.SendAsync(buffer);
                        }
                    });
                    var answer = new byte[16];
                    for (int round = 0; round < rounds; round++)
                    {
                        await couple.Connected.SendAsync(Check.Pattern(16, round));
                        Check.Equal(16, await couple.Connected.ReceiveAsync(answer));
                        Check.Bytes(Check.Pattern(16, round), answer);
                    }
                    await answering;
                }
            });
        }

        [Test]
        static void AStreamInOrder()
        {
            Run(async () =>
            {
                const int count = 50000;
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                using (var batch = new MessageBatch())
                {
                    var sending = Task.Run(async () =>
                    {
                        for (int number = 0; number < count; number++)
                            await couple.Connected.SendAsync(BitConverter.GetBytes(number));
                    });
                    var buffer = new byte[4];
                    int next = 0;
                    while (next < count / 2)
                    {
                        Check.Equal(4, await couple.Bound.ReceiveAsync(buffer));
                        Check.Equal(next++, BitConverter.ToInt32(buffer, 0));
                    }
                    while (next < count)
                    {
                        int received = await couple.Bound.ReceiveBatchAsync(batch);
                        for (int at = 0; at < received; at++)
                            Check.Equal(next++, BitConverter.ToInt32(batch.ToArray(at), 0));
                    }
                    await sending;
                }
            });
        }

        [Test]
        static void SendingWaitsForRoom()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push, "inproc", each =>
                {
                    each.SendHighWaterMark = 1;
                    each.ReceiveHighWaterMark = 1;
                }))
                {
                    var sent = Enumerable.Range(0, 100).Select(each => couple.Connected.SendAsync(new[] { (byte)each })).ToArray();
                    Check.That(!sent[99].IsCompleted, "there is room for two");
                    for (int number = 0; number < 100; number++)
                        Check.Equal((byte)number, (await couple.Bound.ReceiveBytesAsync())[0]);
                    await Task.WhenAll(sent);
                }
            });
        }

        [Test]
        static void BothWaysAtOnceOnOneSocket()
        {
            Run(async () =>
            {
                const int count = 5000;
                using (var couple = new Couple(SocketType.Dealer, SocketType.Dealer))
                {
                    var all = new List<Task>();
                    foreach (var each in new[] { couple.Bound, couple.Connected })
                    {
                        var socket = each;
                        all.Add(Task.Run(async () =>
                        {
                            for (int number = 0; number < count; number++)
                                await socket.SendAsync(BitConverter.GetBytes(number));
                        }));
                        all.Add(Task.Run(async () =>
                        {
                            var buffer = new byte[4];
                            for (int number = 0; number < count; number++)
                            {
                                await socket.ReceiveAsync(buffer);
                                Check.Equal(number, BitConverter.ToInt32(buffer, 0));
                            }
                        }));
                    }
                    await Task.WhenAll(all);
                }
            });
        }

        [Test]
        static void BlockingCallsBesidesOnesThatWait()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pair, SocketType.Pair))
                {
                    for (int round = 0; round < 500; round++)
                    {
                        var receiving = couple.Bound.ReceiveStringAsync();
                        couple.Bound.Send("there " + round);
                        Check.Equal("there " + round, couple.Connected.ReceiveString());
                        couple.Bound.GetIntOption(15);
                        couple.Connected.Send("and back " + round);
                        Check.Equal("and back " + round, await receiving);
                    }
                    couple.Bound.ReceiveTimeout = TimeSpan.FromMilliseconds(1);
                    Check.Fails(Errno.Again, () => couple.Bound.Receive(new byte[1]));
                    couple.Connected.Send("more");
                    couple.Bound.ReceiveTimeout = Timeout.InfiniteTimeSpan;
                    Check.Equal("more", couple.Bound.ReceiveString());
                }
            });
        }

        [Test]
        static void WaitingBesidesOnesThatSendAndReceive()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Dealer, SocketType.Dealer))
                {
                    await couple.Connected.SendAsync("first");
                    Check.Equal("first", await couple.Bound.ReceiveStringAsync());
                    for (int round = 0; round < 200; round++)
                    {
                        // The answer arrives only after another task has sent the question on the same socket.
                        var waiting = Task.Run(() => couple.Connected.Wait(PollEvents.In, Timeout.InfiniteTimeSpan));
                        if (round % 2 == 0)
                            await Task.Yield();
                        await couple.Connected.SendAsync("question " + round);
                        Check.Equal("question " + round, await couple.Bound.ReceiveStringAsync());
                        couple.Bound.Send("answer " + round);
                        Check.That(await waiting, "it came");
                        Check.Equal("answer " + round, couple.Connected.ReceiveString());
                    }
                    Check.That(!couple.Connected.Wait(PollEvents.In, TimeSpan.Zero), "nothing there");
                    Check.That(!couple.Connected.Wait(PollEvents.In, TimeSpan.FromMilliseconds(2)), "nothing comes");
                    Check.That(couple.Connected.Wait(PollEvents.In | PollEvents.Out, Timeout.InfiniteTimeSpan), "it can send");
                    var last = Task.Run(() => couple.Connected.Wait(PollEvents.In, Timeout.InfiniteTimeSpan));
                    await Task.Yield();
                    couple.Context.Shutdown();
                    try
                    {
                        await last;
                        throw new Exception("it was not ended");
                    }
                    catch (ContextTerminatedException)
                    {
                    }
                }
            });
        }

        [Test]
        static void AWishTakenBack()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                using (var source = new CancellationTokenSource())
                {
                    var first = couple.Bound.ReceiveAsync(new byte[1], source.Token);
                    var second = couple.Bound.ReceiveStringAsync();
                    source.Cancel();
                    await Cancelled(first);
                    await Cancelled(Task.Run(() => couple.Bound.ReceiveAsync(new byte[1], source.Token)));
                    couple.Connected.Send("for the second");
                    Check.Equal("for the second", await second);
                }
            });
        }

        static async Task Cancelled(Task task)
        {
            try
            {
                await task;
            }
            catch (OperationCanceledException)
            {
                return;
            }
            throw new Exception("it was not cancelled");
        }

        [Test]
        static void ClosingEndsTheWait()
        {
            Run(async () =>
            {
                var couple = new Couple(SocketType.Pull, SocketType.Push);
                var waiting = couple.Bound.ReceiveAsync(new byte[1]);
                couple.Dispose();
                try
                {
                    await waiting;
                    throw new Exception("it was not ended");
                }
                catch (ObjectDisposedException)
                {
                }
            });
        }

        [Test]
        static void AShutdownEndsTheWait()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    var waiting = couple.Bound.ReceiveAsync(new byte[1]);
                    couple.Context.Shutdown();
                    try
                    {
                        await waiting;
                        throw new Exception("it was not ended");
                    }
                    catch (ContextTerminatedException)
                    {
                    }
                }
            });
        }

        [Test]
        static void ManySockets()
        {
            Run(async () =>
            {
                var couples = new List<Couple>(Enumerable.Range(0, 30).Select(each => new Couple(SocketType.Pull, SocketType.Push)));
                for (int round = 0; round < 20; round++)
                {
                    var waiting = couples.Select(each => each.Bound.ReceiveStringAsync()).ToArray();
                    foreach (var each in couples)
                        await each.Connected.SendAsync("round " + round);
                    foreach (string each in await Task.WhenAll(waiting))
                        Check.Equal("round " + round, each);
                }
                couples.ForEach(each => each.Dispose());
            });
        }

#if SPANS
        [Test]
        static void Memory()
        {
            Run(async () =>
            {
                using (var couple = new Couple(SocketType.Pull, SocketType.Push))
                {
                    Memory<byte> buffer = new byte[100];
                    var waiting = couple.Bound.ReceiveAsync(buffer.Slice(10, 50));
                    await couple.Connected.SendAsync(new ReadOnlyMemory<byte>(Check.Pattern(50)));
                    Check.Equal(50, await waiting);
                    Check.Bytes(Check.Pattern(50), buffer.Slice(10, 50).ToArray());
                }
            });
        }
#endif
    }
}
