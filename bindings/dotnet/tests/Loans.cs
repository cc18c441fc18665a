using System;
using System.Runtime.InteropServices;

namespace Tautline.Tests
{
    /// <summary>Messages whose bytes ipc peers read in place.</summary>
    static class Loans
    {
        const int Size = 1 << 20;

        /// <summary>Number of messages until loans have certainly begun: the ends share memory, and know the memory for loans.
        /// </summary>
        const int Many = 3000;

        /// <summary>True if this system can lend bytes: Linux since 5.14.</summary>
        static bool IsPossible
        {
            get
            {
                var version = Environment.OSVersion.Version;
                bool isOn = Environment.GetEnvironmentVariable("TAUT_IPC_LOANS") != "0";
                return isOn && Environment.OSVersion.Platform == PlatformID.Unix && version >= new Version(5, 14);
            }
        }

        [Test(OnTautlineOnly = true)]
        static void AnIpcPeerReceivesBytesWithoutACopy()
        {
            using (var context = new Context())
            using (var near = new PullSocket(context))
            using (var far = new PushSocket(context))
            using (var received = new Message())
            {
                far.Connect(near.Bind("ipc://*"));
                int lent = 0, wanted = IsPossible ? 50 : 0;
                for (int number = 0; number < 50 || (lent < wanted && number < Many); number++)
                {
                    var bytes = Check.Pattern(Size, number);
                    using (var message = Message.Loan(Size))
                    {
                        Check.Equal(wanted > 0, message.MoveToLoan());
                        Check.That(!message.IsLoan, "our own memory");
                        Fill(message, bytes);
                        far.Send(message);
                        Check.Equal(0, message.Size);
                    }
                    near.Receive(received);
                    Check.Bytes(bytes, received.ToArray());
                    lent += received.IsLoan ? 1 : 0;
                }
                Check.That(lent >= wanted, lent + " messages were received without a copy");
            }
        }

        [Test(OnTautlineOnly = true)]
        static void BytesMoveToMemoryForLoans()
        {
            using (var message = new Message(Check.Pattern(Size)))
            {
                Check.Equal(IsPossible, message.MoveToLoan());
                Check.Bytes(Check.Pattern(Size), message.ToArray());
                message.Resize(100);
                Check.That(!message.MoveToLoan(), "too short");
            }
        }

        [Test]
        static void OrdinaryMemoryWhereNothingIsLent()
        {
            foreach (int size in new[] { 0, 10, Size })
            using (var couple = new Couple(SocketType.Pull, SocketType.Push))
            using (var message = Message.Loan(size))
            {
                Check.Equal(size, message.Size);
                Fill(message, Check.Pattern(size));
                couple.Connected.Send(message);
                couple.Bound.Receive(message);
                Check.Bytes(Check.Pattern(size), message.ToArray());
                Check.That(!message.IsLoan, "over tcp");
            }
            Check.Throws<ArgumentOutOfRangeException>(() => Message.Loan(-1));
            var disposed = new Message();
            disposed.Dispose();
            Check.Throws<ObjectDisposedException>(() => disposed.MoveToLoan());
            Check.Throws<ObjectDisposedException>(() => Check.That(disposed.IsLoan, "disposed"));
        }

        static void Fill(Message message, byte[] bytes)
        {
#if SPANS
            bytes.AsSpan().CopyTo(message.AsSpan());
#else
            Marshal.Copy(bytes, 0, message.Data, bytes.Length);
#endif
        }
    }
}
