using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline.Tests
{
    /// <summary>Tests for the statements of migrating.md that other tests do not cover.</summary>
    static class Migrating
    {
        [Test]
        static void ALingerOfZeroForAll()
        {
            using (var context = new Context { Blocky = false })
            using (var push = new PushSocket(context))
            {
                Check.Equal(TimeSpan.Zero, push.Linger);
                push.Connect("tcp://127.0.0.1:1");
                push.Send("for nobody");
            }
        }

        [Test(OnTautlineOnly = true)]
        static void DraftSocketsByNumber()
        {
            foreach (var types in new[] { new[] { 16, 17 }, new[] { 12, 13 }, new[] { 20, 20 } })
            using (var couple = new Couple((SocketType)types[0], (SocketType)types[1]))
            {
                couple.Connected.Send("by number");
                Check.Equal("by number", couple.Bound.ReceiveString());
                Check.Equal((SocketType)types[0], couple.Bound.Type);
                Check.That(couple.Bound.IsThreadSafe, "as all of these");
                // These sockets have no descriptor to watch.
                Check.Throws<ZmqException>(() => couple.Bound.ReceiveBytesAsync().GetAwaiter().GetResult());
            }
        }

        [Test]
        static void OptionsByNumber()
        {
            using (var context = new Context())
            using (var pull = new PullSocket(context))
            using (var push = new PushSocket(context))
            {
                pull.SetOption(38, "127.0.0.1");
                push.Connect(pull.Bind("tcp://127.0.0.1:*"));
                push.Send("let in");
                Check.Equal("let in", pull.ReceiveString());
            }
            if (!Library.Has("draft"))
                return;
            using (var context = new Context())
            using (var router = new RouterSocket(context))
            using (var dealer = new DealerSocket(context))
            {
                dealer.SetOption(110, Encoding.UTF8.GetBytes("hello"));
                dealer.Connect(router.Bind("tcp://127.0.0.1:*"));
                Check.Equal("hello", Encoding.UTF8.GetString(router.ReceiveMultipart()[1]));
            }
        }

        [Test]
        static void KeysOf32Bytes()
        {
            var pair = CurveKeyPair.Generate();
            byte[] secret = Z85.Decode(pair.SecretKey);
            Check.Equal(32, secret.Length);
            Check.Equal(pair.PublicKey, CurveKeyPair.FromSecretKey(Z85.Encode(secret)).PublicKey);
        }

        [Test]
        static void AnActor()
        {
            using (var context = new Context())
            using (var actor = new PairSocket(context))
            {
                string endpoint = actor.Bind("inproc://actor");
                var working = Task.Run(() =>
                {
                    using (var pipe = new PairSocket(context))
                    {
                        pipe.Connect(endpoint);
                        for (string order = pipe.ReceiveString(); order != "end"; order = pipe.ReceiveString())
                            pipe.Send(order.ToUpperInvariant());
                    }
                });
                actor.Send("work");
                Check.Equal("WORK", actor.ReceiveString());
                actor.Send("end");
                working.Wait();
            }
        }

        [Test]
        static void AHandlerSaysWhoMayConnect()
        {
            var server = CurveKeyPair.Generate();
            var friend = CurveKeyPair.Generate();
            var stranger = CurveKeyPair.Generate();
            var allowed = new List<string> { friend.PublicKey };
            using (var context = new Context())
            {
                Handle(context, allowed);
                using (var pull = new PullSocket(context))
                using (var first = new PushSocket(context) { Linger = TimeSpan.Zero })
                using (var second = new PushSocket(context) { Linger = TimeSpan.Zero })
                using (var monitor = new SocketMonitor(context, first, SocketEvents.HandshakeFailedAuthentication))
                {
                    server.ApplyToServer(pull);
                    string endpoint = pull.Bind("tcp://127.0.0.1:*");
                    stranger.ApplyToClient(first, server.PublicKey);
                    first.Connect(endpoint);
                    Check.Equal(400, monitor.Receive().Value);
                    friend.ApplyToClient(second, server.PublicKey);
                    second.Connect(endpoint);
                    second.Send("from a friend");
                    Check.Equal("from a friend", pull.ReceiveString());
                }
            }
        }

        /// <summary>The authentication handler of migrating.md.</summary>
        static void Handle(Context context, List<string> allowed)
        {
            var handler = new ReplySocket(context);
            handler.Bind("inproc://zeromq.zap.01");
            new Thread(() =>
            {
                using (handler)
                {
                    try
                    {
                        for (;;)
                        {
                            var asked = handler.ReceiveMultipart();
                            bool known = asked.Count == 7 && allowed.Contains(Z85.Encode(asked[6]));
                            handler.SendMultipart(asked[0], asked[1], Encoding.UTF8.GetBytes(known ? "200" : "400"),
                                Encoding.UTF8.GetBytes(known ? "OK" : "not known"), new byte[0], new byte[0]);
                        }
                    }
                    catch (ContextTerminatedException)
                    {
                    }
                }
            }).Start();
        }

        [Test]
        static void WithoutAHandlerPlainLetsNobodyIn()
        {
            using (var context = new Context())
            using (var pull = new PullSocket(context) { PlainServer = true })
            using (var push = new PushSocket(context) { Linger = TimeSpan.Zero, PlainUsername = "me", PlainPassword = "secret" })
            using (var monitor = new SocketMonitor(context, pull, SocketEvents.HandshakeFailedProtocol
                | SocketEvents.HandshakeFailedNoDetail | SocketEvents.HandshakeSucceeded))
            {
                push.Connect(pull.Bind("tcp://127.0.0.1:*"));
                Check.That(monitor.Receive().Type != SocketEvents.HandshakeSucceeded, "it was not let in");
            }
        }

#if SPANS
        [Test]
        static void AProactor()
        {
            using (var couple = new Couple(SocketType.Router, SocketType.Dealer))
            using (var source = new CancellationTokenSource())
            {
                var work = Task.Run(async () =>
                {
                    // await foreach (var parts in couple.Bound.ReceiveAllMultipartAsync(source.Token))
                    var steps = couple.Bound.ReceiveAllMultipartAsync(source.Token).GetAsyncEnumerator();
                    while (await steps.MoveNextAsync())
                        couple.Bound.SendMultipart(steps.Current);
                });
                for (int number = 0; number < 100; number++)
                {
                    couple.Connected.Send("echo " + number);
                    Check.Equal("echo " + number, couple.Connected.ReceiveString());
                }
                source.Cancel();
                Check.Throws<OperationCanceledException>(() => work.GetAwaiter().GetResult());
            }
        }
#endif
    }
}
