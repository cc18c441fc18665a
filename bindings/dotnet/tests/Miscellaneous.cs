using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;

namespace Tautline.Tests
{
    static class Miscellaneous
    {
        [Test]
        static void Options()
        {
            using (var context = new Context { IoThreads = 2, MaxSockets = 10 })
            using (var socket = new DealerSocket(context))
            {
                Check.Equal(2, context.IoThreads);
                Check.Equal(10, context.MaxSockets);
                Check.That(context.Blocky && !context.Ipv6, "as it is unless set");
                Check.Equal(SocketType.Dealer, socket.Type);
                Check.Equal(Timeout.InfiniteTimeSpan, socket.Linger);
                socket.Linger = TimeSpan.FromMilliseconds(1.5);
                Check.Equal(TimeSpan.FromMilliseconds(2), socket.Linger);
                socket.SendHighWaterMark = 17;
                Check.Equal(17, socket.SendHighWaterMark);
                socket.MaxMessageSize = 1L << 33;
                Check.Equal(1L << 33, socket.MaxMessageSize);
                socket.Affinity = 3;
                Check.Equal(3UL, socket.Affinity);
                socket.RoutingId = new byte[] { 1, 2, 3 };
                Check.Bytes(new byte[] { 1, 2, 3 }, socket.RoutingId);
                socket.Immediate = true;
                Check.That(socket.Immediate, "it was set");
                socket.ZapDomain = "home";
                Check.Equal("home", socket.ZapDomain);
                socket.PlainUsername = "me";
                socket.PlainPassword = "secret";
                Check.Equal("me", socket.PlainUsername);
                Check.Equal(SecurityMechanism.Plain, socket.Mechanism);
                socket.HeartbeatInterval = TimeSpan.FromSeconds(1);
                Check.Equal(TimeSpan.FromSeconds(1), socket.HeartbeatInterval);
                Check.Throws<ArgumentOutOfRangeException>(() => socket.Linger = TimeSpan.FromDays(1000));
                Check.Throws<ArgumentOutOfRangeException>(() => socket.Linger = TimeSpan.FromMilliseconds(-5));
                Check.Says("option 9999 of a Dealer socket does not take the value 1", () => socket.SetOption(9999, 1));
                Check.Says("RoutingId of a Dealer socket does not take this value of 256 bytes", () => socket.RoutingId = new byte[256]);
                Check.Says("SendHighWaterMark of a Dealer socket does not take the value -5", () => socket.SendHighWaterMark = -5);
                Check.Says("PlainPassword of a Dealer socket does not take this value of 300 bytes",
                    () => socket.PlainPassword = new string('x', 300));
                Check.Says("option 9999 of a Dealer socket", () => socket.GetStringOption(9999));
                Check.Says("option 9999", () => socket.GetIntOption(9999));
                Check.Says("option 1 of a context does not take the value -1", () => context.IoThreads = -1);
                Check.Equal(PollEvents.None, socket.Events);
                Check.That(socket.Descriptor > 0, "there is a descriptor");
                Check.Equal(socket.LastEndpoint, "");
            }
        }

        [Test]
        static void EveryOptionIsUnderstood()
        {
            using (var context = new Context())
            using (var socket = new RouterSocket(context))
            {
                foreach (var option in typeof(Socket).GetProperties())
                {
                    // Skip the options without a getter, and Statistics, which needs Tautline.
                    if (!option.CanRead || option.Name == "Statistics")
                        continue;
                    try
                    {
                        option.GetValue(socket, null);
                    }
                    catch (Exception error)
                    {
                        throw new Exception(option.Name, error);
                    }
                }
                // Set the default values. RouterHandover and similar options can only be set.
                socket.RouterMandatory = socket.RouterHandover = socket.ProbeRouter = false;
                Check.Fails(Errno.HostUnreachable, () =>
                {
                    socket.RouterMandatory = true;
                    socket.SendMultipart(new byte[] { 1 }, new byte[] { 2 });
                });
            }
        }

        [Test]
        static void ErrorsHaveTheirNumbers()
        {
            using (var context = new Context())
            using (var reply = new ReplySocket(context))
            using (var other = new ReplySocket(context))
            using (var pull = new PullSocket(context))
            {
                Check.Fails(Errno.StateMachine, () => reply.Send("too early"));
                Check.Says("Reply must receive a request first", () => reply.Send("too early"));
                Check.Fails(Errno.NotSupported, () => pull.Send("never"));
                Check.Says("Pull sockets do not send", () => pull.Send("never"));
                Check.Fails(Errno.InvalidArgument, () => reply.Bind("nonsense"));
                Check.Fails(Errno.ProtocolNotSupported, () => reply.Bind("nonsense://a"));
                string bound = reply.Bind("tcp://127.0.0.1:*");
                var refused = Check.Throws<ZmqException>(() => other.Bind(bound));
                Check.Equal(Errno.AddressInUse, refused.Error);
                Check.That(refused.Message.EndsWith(": " + bound), "the message names the endpoint");
                Check.Fails(Errno.NotFound, () => reply.Unbind("tcp://127.0.0.1:9"));
                Check.Throws<ArgumentException>(() => reply.Bind("tcp://127.0.0.1\0:*"));
                Check.Throws<ArgumentNullException>(() => reply.Connect(null));
                Check.Fails(Errno.InvalidArgument, () => new Socket(context, (SocketType)99));
                Check.That(new ZmqException(Errno.StateMachine).Message.Contains("StateMachine"), "the message says which");
            }
        }

        [Test]
        static void Polling()
        {
            Polling(null);
        }

        internal static void Polling(Action<Socket> prepare)
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push, "tcp", prepare))
            using (var other = new Couple(SocketType.Pair, SocketType.Pair, "inproc", prepare))
            using (var poller = new Poller())
            {
                int first = poller.Add(couple.Bound, PollEvents.In);
                int second = poller.Add(other.Bound, PollEvents.In | PollEvents.Out);
                int third = poller.Add(couple.Bound.Descriptor, PollEvents.In);
                Check.Throws<ArgumentException>(() => poller.Add(couple.Bound, PollEvents.In));
                Check.That(poller.Wait(TimeSpan.Zero) >= 1, "the pair can send");
                Check.Equal(PollEvents.Out, poller.GetReadyEvents(second));
                Check.Equal(PollEvents.None, poller.GetReadyEvents(first));
                poller.RemoveAt(third);
                poller.SetEvents(second, PollEvents.In);
                Check.Equal(0, poller.Wait(TimeSpan.Zero));
                couple.Connected.Send("x");
                Check.Equal(1, poller.Wait());
                Check.Equal(PollEvents.In, poller.GetReadyEvents(couple.Bound));
                other.Connected.Send("y");
                Check.Equal(2, poller.Wait());
                Check.That(poller.Remove(couple.Bound), "it was there");
                Check.That(!poller.Remove(couple.Bound), "it was removed");
                Check.Equal(1, poller.Count);
                Check.Equal(1, poller.Wait());
                Check.Equal(PollEvents.In, poller.GetReadyEvents(0));
                Check.Throws<ArgumentOutOfRangeException>(() => poller.GetReadyEvents(1));
                Check.Equal("y", other.Bound.ReceiveString());
                Check.That(!other.Bound.Wait(PollEvents.In, TimeSpan.FromMilliseconds(1)), "nothing more comes");
            }
        }

        [Test]
        static void AProxyAndItsEnd()
        {
            using (var context = new Context())
            using (var requests = new RequestSocket(context))
            using (var reply = new ReplySocket(context))
            using (var control = new PairSocket(context))
            {
                var ready = new ManualResetEventSlim();
                string front = null, back = null;
                var proxy = new Thread(() =>
                {
                    using (var frontend = new RouterSocket(context))
                    using (var backend = new DealerSocket(context))
                    using (var steering = new PairSocket(context))
                    {
                        front = frontend.Bind("tcp://127.0.0.1:*");
                        back = backend.Bind("tcp://127.0.0.1:*");
                        steering.Bind("inproc://steering");
                        ready.Set();
                        Proxy.RunSteerable(frontend, backend, null, steering);
                    }
                });
                proxy.Start();
                ready.Wait();
                control.Connect("inproc://steering");
                requests.Connect(front);
                reply.Connect(back);
                for (int round = 0; round < 100; round++)
                {
                    requests.Send("q" + round);
                    Check.Equal("q" + round, reply.ReceiveString());
                    reply.Send("a" + round);
                    Check.Equal("a" + round, requests.ReceiveString());
                }
                control.Send("TERMINATE");
                proxy.Join();
            }
        }

        [Test]
        static void AProxyEndsWithItsContext()
        {
            var context = new Context();
            var ready = new ManualResetEventSlim();
            var proxy = new Thread(() =>
            {
                using (var frontend = new PullSocket(context))
                using (var backend = new PushSocket(context))
                {
                    frontend.Bind("inproc://front");
                    backend.Bind("inproc://back");
                    ready.Set();
                    Proxy.Run(frontend, backend);
                }
            });
            proxy.Start();
            ready.Wait();
            context.Dispose();
            proxy.Join();
        }

        [Test]
        static void AMonitorTells()
        {
            using (var context = new Context())
            using (var bound = new PullSocket(context))
            using (var monitor = new SocketMonitor(context, bound))
            {
                string endpoint = bound.Bind("tcp://127.0.0.1:*");
                var monitorEvent = monitor.Receive();
                Check.Equal(SocketEvents.Listening, monitorEvent.Type);
                Check.Equal(endpoint, monitorEvent.Endpoint);
                using (var connected = new PushSocket(context))
                {
                    connected.Connect(endpoint);
                    Check.Equal(SocketEvents.Accepted, monitor.Receive().Type);
                    Check.Equal(SocketEvents.HandshakeSucceeded, monitor.ReceiveAsync().Result.Type);
                }
                Check.Equal(SocketEvents.Disconnected, monitor.Receive().Type);
                Check.That(!monitor.TryReceive(TimeSpan.FromMilliseconds(1), out monitorEvent), "nothing more");
            }
        }

        [Test]
        static void AMonitorTellsOfThePeer()
        {
            using (var context = new Context())
            using (var bound = new RouterSocket(context))
            using (var monitor = new SocketMonitor(context, bound, SocketEvents.HandshakeSucceeded | SocketEvents.Disconnected))
            {
                string endpoint = bound.Bind("tcp://127.0.0.1:*");
                var connected = new DealerSocket(context) { RoutingId = Encoding.ASCII.GetBytes("joe"), Linger = TimeSpan.Zero };
                connected.Connect(endpoint);
                foreach (var type in new[] { SocketEvents.HandshakeSucceeded, SocketEvents.Disconnected })
                {
                    var monitorEvent = monitor.Receive();
                    connected.Dispose();
                    Check.Equal(type, monitorEvent.Type);
                    Check.Equal(endpoint, monitorEvent.Endpoint);
                    Check.Equal(Runner.OnTautline ? endpoint : "", monitorEvent.Local);
                    Check.Equal(Runner.OnTautline ? "joe" : "", Encoding.ASCII.GetString(monitorEvent.RoutingId));
                    Check.Equal(Runner.OnTautline ? "127.0.0.1" : "", monitorEvent.PeerAddress);
                    Check.Equal(Runner.OnTautline, monitorEvent.Remote.StartsWith("tcp://127.0.0.1:", StringComparison.Ordinal));
                    Check.Equal(Runner.OnTautline && type == SocketEvents.Disconnected, monitorEvent.Reason.Length > 0);
                    Check.That(monitorEvent.Claim == null, "nobody was refused");
                }
            }
        }

        [Test]
        static void AMonitorTellsWhyAPeerWasRefused()
        {
            var server = CurveKeyPair.Generate();
            var client = CurveKeyPair.Generate();
            using (var context = new Context())
            using (var bound = new PullSocket(context))
            using (var connected = new PushSocket(context) { Linger = TimeSpan.Zero })
            using (var monitor = new SocketMonitor(context, bound, SocketEvents.HandshakeFailedProtocol))
            {
                server.ApplyToServer(bound);
                client.ApplyToClient(connected, client.PublicKey);
                connected.Connect(bound.Bind("tcp://127.0.0.1:*"));
                var monitorEvent = monitor.Receive();
                Check.Equal(0x11000001, monitorEvent.Value);
                Check.Equal(Runner.OnTautline ? "a CURVE key is wrong" : "", monitorEvent.Reason);
            }
        }

        [Test]
        static void PeersAreWaitedFor()
        {
            using (var context = new Context())
            using (var bound = new PullSocket(context))
            using (var first = new PushSocket(context) { Linger = TimeSpan.Zero })
            using (var second = new PushSocket(context) { Linger = TimeSpan.Zero })
            {
                string endpoint = bound.Bind("tcp://127.0.0.1:*");
                if (!Runner.OnTautline)
                {
                    Check.Throws<NotSupportedException>(() => bound.WaitForPeers(1));
                    return;
                }
                bound.SendTimeout = TimeSpan.FromSeconds(7);
                Check.That(bound.WaitForPeers(0), "none");
                Check.That(!bound.WaitForPeers(1, TimeSpan.Zero), "nobody is there");
                Check.That(!bound.WaitForPeersAsync(1, TimeSpan.FromMilliseconds(5)).Result, "nobody is there");
                var both = bound.WaitForPeersAsync(2);
                first.Connect(endpoint);
                second.Connect(endpoint);
                Check.That(both.Result, "both");
                Check.That(first.WaitForPeers(1), "the other way");
                Check.Equal(TimeSpan.FromSeconds(7), bound.SendTimeout);
                Check.Throws<ArgumentOutOfRangeException>(() => bound.WaitForPeers(-1));
                using (var source = new CancellationTokenSource())
                {
                    var third = bound.WaitForPeersAsync(3, null, source.Token);
                    source.Cancel();
                    Check.Throws<OperationCanceledException>(() => third.GetAwaiter().GetResult());
                }
            }
        }

        [Test]
        static void SubscriptionsAreWaitedFor()
        {
            using (var context = new Context())
            using (var publisher = new PublisherSocket(context))
            using (var subscriber = new SubscriberSocket(context))
            using (var push = new PushSocket(context))
            {
                if (!Runner.OnTautline)
                {
                    Check.Throws<NotSupportedException>(() => publisher.WaitForSubscriptions(1));
                    return;
                }
                subscriber.Subscribe("news");
                subscriber.Connect(publisher.Bind("tcp://127.0.0.1:*"));
                Check.That(publisher.WaitForSubscriptions(1), "one");
                publisher.Send("news of today");
                Check.Equal("news of today", subscriber.ReceiveString());
                var second = publisher.WaitForSubscriptionsAsync(2);
                subscriber.Subscribe("weather");
                Check.That(second.Result, "two");
                Check.That(!publisher.WaitForSubscriptions(3, TimeSpan.Zero), "and no more");
                Check.Throws<ZmqException>(() => push.WaitForSubscriptions(1));
            }
        }

        [Test]
        static void Curve()
        {
            var server = CurveKeyPair.Generate();
            var client = CurveKeyPair.Generate();
            Check.Equal(server.PublicKey, CurveKeyPair.FromSecretKey(server.SecretKey).PublicKey);
            Check.Throws<ZmqException>(() => CurveKeyPair.FromSecretKey("too short"));
            using (var context = new Context())
            using (var reply = new ReplySocket(context))
            using (var request = new RequestSocket(context))
            using (var stranger = new RequestSocket(context))
            {
                server.ApplyToServer(reply);
                string endpoint = reply.Bind("tcp://127.0.0.1:*");
                client.ApplyToClient(request, server.PublicKey);
                Check.Equal(SecurityMechanism.Curve, request.Mechanism);
                Check.Equal(server.PublicKey, request.CurveServerKey);
                Check.Equal(client.SecretKey, request.CurveSecretKey);
                request.Connect(endpoint);
                request.Send("secret");
                Check.Equal("secret", reply.ReceiveString());
                reply.Send("thanks");
                Check.Equal("thanks", request.ReceiveString());
                // A client with a wrong server key cannot connect.
                using (var monitor = new SocketMonitor(context, stranger, SocketEvents.Disconnected
                    | SocketEvents.HandshakeFailedAuthentication | SocketEvents.HandshakeFailedNoDetail | SocketEvents.HandshakeFailedProtocol))
                {
                    client.ApplyToClient(stranger, client.PublicKey);
                    stranger.Linger = TimeSpan.Zero;
                    stranger.Connect(endpoint);
                    monitor.Receive();
                }
            }
        }

        [Test]
        static void TextOfBytes()
        {
            // Example from RFC 32.
            var data = new byte[] { 0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B };
            Check.Equal("HelloWorld", Z85.Encode(data));
            Check.Bytes(data, Z85.Decode("HelloWorld"));
            Check.Bytes(Check.Pattern(64), Z85.Decode(Z85.Encode(Check.Pattern(64))));
            Check.Throws<FormatException>(() => Z85.Decode("abcd"));
            Check.Throws<FormatException>(() => Z85.Decode("abc d"));
            Check.Throws<FormatException>(() => Z85.Decode("#####"));
            Check.Throws<ArgumentException>(() => Z85.Encode(new byte[3]));
        }

        [Test]
        static void Peers()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            {
                couple.Connected.Send("12345");
                couple.Bound.ReceiveString();
                if (!Runner.OnTautline)
                {
                    Check.Throws<NotSupportedException>(() => couple.Bound.GetPeers());
                    return;
                }
                var from = couple.Bound.GetPeers();
                var to = couple.Connected.GetPeers();
                Check.Equal(1, from.Length);
                Check.Equal(1, to.Length);
                Check.Equal(PeerState.Connected, from[0].State);
                Check.Equal(1L, from[0].MessagesReceived);
                Check.Equal(7L, from[0].BytesReceived);
                Check.Equal(1L, to[0].MessagesSent);
                Check.That(to[0].IsOutgoing && !from[0].IsOutgoing, "which end has connected");
                Check.Equal(from[0].Local, to[0].Remote);
            }
        }

        [Test]
        static void Statistics()
        {
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            {
                for (int number = 0; number < 10; number++)
                {
                    couple.Connected.Send("counted");
                    couple.Bound.ReceiveString();
                }
                if (Runner.OnTautline)
                {
                    Check.Equal(10L, couple.Connected.Statistics.MessagesSent);
                    Check.Equal(10L, couple.Bound.Statistics.MessagesReceived);
                    Check.Equal(1L, couple.Bound.Statistics.Peers);
                    Check.That(couple.Bound.Statistics.ToString().Contains("MessagesReceived=10 "), "the text has the numbers");
                }
                else
                {
                    Check.Throws<NotSupportedException>(() => couple.Bound.Statistics.ToString());
                }
            }
        }
    }
}
