using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;

namespace Tautline.Tests
{
    static class Exchange
    {
        static readonly int[] Sizes = { 0, 1, 33, 64, 255, 256, 1500, 65536, 1 << 20 };

        [Test]
        static void TheLibraryIsTheOneAskedFor()
        {
            Check.That(Library.Version >= new Version(4, 3, 4), "a libzmq of today");
            Check.Equal(Runner.OnTautline, Library.IsTautline);
            Check.Equal(Runner.OnTautline, Library.TautlineVersion != null);
            Check.That(!Runner.OnTautline || Library.TautlineVersion >= new Version(0, 1, 0), "it knows its own version");
            Check.That(Library.Has("curve"), "it has CURVE");
            Check.That(!Library.Has("nonsense"), "it has no nonsense");
        }

        [Test]
        static void BytesArriveAsTheyWere()
        {
            foreach (string transport in new[] { "tcp", "inproc" })
            using (var couple = new Couple(SocketType.Pull, SocketType.Push, transport))
            {
                var buffer = new byte[1 << 20];
                foreach (int size in Sizes)
                {
                    couple.Connected.Send(Check.Pattern(size, 3));
                    Check.Equal(size, couple.Bound.Receive(buffer));
                    Check.Bytes(Check.Pattern(size, 3), buffer.Take(size).ToArray());
                    couple.Connected.Send(Check.Pattern(size, 5));
                    Check.Bytes(Check.Pattern(size, 5), couple.Bound.ReceiveBytes());
                }
            }
        }

        [Test]
        static void APartOfAnArray()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            {
                couple.Connected.Send(new byte[] { 1, 2, 3, 4 }, 1, 2);
                var buffer = new byte[] { 9, 9, 9, 9 };
                Check.Equal(2, couple.Bound.Receive(buffer, 1, 3));
                Check.Bytes(new byte[] { 9, 2, 3, 9 }, buffer);
                couple.Connected.Send(new byte[4], 4, 0);
                Check.Equal(0, couple.Bound.Receive(buffer, 4, 0));
                Check.Throws<ArgumentOutOfRangeException>(() => couple.Connected.Send(buffer, 3, 2));
                Check.Throws<ArgumentOutOfRangeException>(() => couple.Connected.Send(buffer, -1, 2));
                Check.Throws<ArgumentOutOfRangeException>(() => couple.Bound.Receive(buffer, 5, 0));
                Check.Throws<ArgumentNullException>(() => couple.Bound.Receive((byte[])null));
                Check.Throws<ArgumentNullException>(() => couple.Connected.Send((byte[])null));
            }
        }

        [Test]
        static void ALongMessageIsCutAndItsLengthIsKnown()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            {
                couple.Connected.Send(Check.Pattern(100));
                var buffer = new byte[10];
                Check.Equal(100, couple.Bound.Receive(buffer));
                Check.Bytes(Check.Pattern(10), buffer);
            }
        }

        [Test]
        static void ARequestAndItsAnswer()
        {
            using (var couple = new Couple(SocketType.Reply, SocketType.Request))
            {
                for (int round = 0; round < 100; round++)
                {
                    couple.Connected.Send("Frage äöü " + round);
                    Check.Equal("Frage äöü " + round, couple.Bound.ReceiveString());
                    couple.Bound.Send("Antwort " + round);
                    Check.Equal("Antwort " + round, couple.Connected.ReceiveString());
                }
            }
        }

        [Test]
        static void PartsStayTogether()
        {
            using (var couple = new Couple(SocketType.Router, SocketType.Dealer))
            {
                couple.Connected.SendMultipart(new byte[0], Check.Pattern(70), Check.Pattern(100000));
                var parts = couple.Bound.ReceiveMultipart();
                Check.Equal(4, parts.Count);
                Check.Bytes(Check.Pattern(100000), parts[3]);
                Check.That(!couple.Bound.HasMore, "that was the last part");
                couple.Bound.SendMultipart(parts);
                couple.Connected.Receive(new byte[10]);
                Check.That(couple.Connected.HasMore, "parts follow");
                Check.Equal(2, couple.Connected.ReceiveMultipart().Count);
                Check.Throws<ArgumentException>(() => couple.Bound.SendMultipart(new List<byte[]>()));
                Check.Throws<ArgumentNullException>(() => couple.Bound.SendMultipart(new byte[1], null));
            }
        }

        [Test]
        static void OnlyWhatWasSubscribedTo()
        {
            using (var context = new Context())
            using (var publisher = new XPublisherSocket(context))
            using (var subscriber = new SubscriberSocket(context))
            {
                subscriber.Connect(publisher.Bind("tcp://127.0.0.1:*"));
                subscriber.Subscribe("b");
                Check.Bytes(new byte[] { 1, (byte)'b' }, publisher.ReceiveBytes());
                publisher.Send("a1");
                publisher.Send("b1");
                Check.Equal("b1", subscriber.ReceiveString());
                subscriber.Unsubscribe("b");
                Check.Bytes(new byte[] { 0, (byte)'b' }, publisher.ReceiveBytes());
            }
        }

        [Test]
        static void AMessageObject()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            using (var message = new Message(Check.Pattern(500)))
            using (var received = new Message("old"))
            {
                Check.Equal(3, received.Size);
                message[7] = 99;
                var copy = message.Clone();
                couple.Connected.Send(message);
                Check.Equal(0, message.Size);
                Check.Equal(500, couple.Bound.Receive(received));
                Check.Bytes(copy.ToArray(), received.ToArray());
                Check.Equal((byte)99, received[7]);
                Check.Throws<ArgumentOutOfRangeException>(() => received[500] = 1);
                Check.Throws<ArgumentOutOfRangeException>(() => received[-1].ToString());
                Check.Equal("127.0.0.1", received.GetProperty("Peer-Address"));
                Check.Equal("PUSH", received.GetProperty("Socket-Type"));
                Check.Equal(null, received.GetProperty("Nothing"));
                Check.That(!received.HasMore, "it is the only part");
                received.Resize(1000000);
                Check.Equal(1000000, received.Size);
                copy.Dispose();
                copy.Dispose();
                Check.Throws<ObjectDisposedException>(() => copy.Size.ToString());
                Check.Throws<ObjectDisposedException>(() => couple.Connected.Send(copy));
            }
        }

        [Test]
        static void WithoutWaiting()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push, "inproc", each =>
            {
                each.SendHighWaterMark = 2;
                each.ReceiveHighWaterMark = 2;
            }))
            using (var message = new Message())
            {
                int length;
                Check.That(!couple.Bound.TryReceive(new byte[1], out length), "nothing there");
                Check.That(!couple.Bound.TryReceive(message), "nothing there");
                Check.That(!couple.Bound.TryReceive(message, TimeSpan.FromMilliseconds(1)), "nothing comes");
                int sent = 0;
                while (couple.Connected.TrySend(new byte[] { (byte)sent }))
                    sent++;
                Check.Equal(4, sent);
                couple.Connected.SendTimeout = TimeSpan.FromMilliseconds(1);
                Check.Fails(Errno.Again, () => couple.Connected.Send(new byte[1]));
                for (int at = 0; at < sent; at++)
                {
                    Check.That(couple.Bound.TryReceive(message, Timeout.InfiniteTimeSpan), "it was sent");
                    Check.Equal((byte)at, message[0]);
                }
                couple.Bound.ReceiveTimeout = TimeSpan.FromMilliseconds(1);
                Check.Fails(Errno.Again, () => couple.Bound.Receive(new byte[1]));
                Check.Fails(Errno.Again, () => couple.Bound.Receive(message));
            }
        }

        [Test]
        static void ManyAtOnce()
        {
            const int count = 10000;
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            using (var batch = new MessageBatch(100))
            {
                var sender = new Thread(() =>
                {
                    for (int number = 0; number < count; number++)
                        couple.Connected.Send(Check.Pattern(number % 300, number));
                });
                sender.Start();
                int next = 0;
                while (next < count)
                {
                    int received = couple.Bound.ReceiveBatch(batch);
                    Check.That(received >= 1 && received <= 100 && received == batch.Count, "a batch of 1 to 100");
                    for (int at = 0; at < received; at++, next++)
                    {
                        Check.Equal(next % 300, batch.GetSize(at));
                        Check.Bytes(Check.Pattern(next % 300, next), batch.ToArray(at));
                        Check.That(!batch.HasMore(at), "one part each");
                    }
                    Check.Throws<ArgumentOutOfRangeException>(() => batch.GetSize(received));
                }
                sender.Join();
                Check.Equal(0, couple.Bound.TryReceiveBatch(batch));
            }
        }

#if SPANS
        [Test]
        static void Spans()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            using (var message = new Message())
            using (var batch = new MessageBatch())
            {
                ReadOnlySpan<byte> data = Check.Pattern(100);
                couple.Connected.Send(data.Slice(10, 20));
                Span<byte> buffer = new byte[50];
                Check.Equal(20, couple.Bound.Receive(buffer));
                Check.That(data.Slice(10, 20).SequenceEqual(buffer.Slice(0, 20)), "the same bytes");
                couple.Connected.Send(ReadOnlySpan<byte>.Empty);
                Check.Equal(0, couple.Bound.Receive(Span<byte>.Empty));
                int length;
                Check.That(!couple.Bound.TryReceive(buffer, out length), "nothing there");
                Check.That(couple.Connected.TrySend(data), "there is room");
                couple.Bound.Receive(message);
                Check.That(data.SequenceEqual(message.AsSpan()), "the same bytes");
                Check.That(couple.Connected.TrySend(data), "there is room");
                Check.Equal(1, couple.Bound.ReceiveBatch(batch));
                Check.That(data.SequenceEqual(batch.AsSpan(0)), "the same bytes");
            }
        }
#endif

        [Test]
        static void NothingIsAllocatedForAMessage()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push, "inproc"))
            using (var message = new Message())
            using (var batch = new MessageBatch(16))
            {
                var data = Check.Pattern(64);
                Action<int> run = count =>
                {
                    for (int number = 0; number < count; number++)
                    {
                        couple.Connected.Send(data);
                        couple.Bound.Receive(data);
                        couple.Connected.Send(data, 0, 10);
                        couple.Bound.Receive(message);
                        couple.Connected.Send(message);
                        couple.Bound.ReceiveBatch(batch);
                        int length;
                        couple.Bound.TryReceive(data, out length);
                    }
                };
                run(100);
#if SPANS
                long before = GC.GetAllocatedBytesForCurrentThread();
                run(1000);
                Check.Equal(before, GC.GetAllocatedBytesForCurrentThread());
#else
                int collections = GC.CollectionCount(0);
                run(100000);
                Check.Equal(collections, GC.CollectionCount(0));
#endif
            }
        }
    }
}
