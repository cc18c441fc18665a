using System;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    public unsafe partial class Socket
    {
        /// <summary>Longest single wait in the library. Afterwards we notice a disposed context or socket, and other threads
        /// can use the socket.</summary>
        const int SliceMilliseconds = 100;

        /// <summary>Interval between two polls that do not block a thread.</summary>
        const int PollMilliseconds = 10;

        /// <summary>Waits until at least <c>count</c> peers are connected. Needs Tautline.</summary>
        /// <param name="count">The required number.</param>
        /// <param name="timeout">The maximum time to wait; null is unlimited.</param>
        /// <returns>True if so many peers are connected, false after the timeout.</returns>
        /// <exception cref="NotSupportedException">The library is not Tautline.</exception>
        public bool WaitForPeers(int count, TimeSpan? timeout = null)
        {
            return WaitFor(Option.WaitPeers, count, timeout);
        }

        /// <summary>Waits until the peers of a publisher have subscribed to at least <c>count</c> different topics. Messages
        /// published afterwards reach these peers. Needs Tautline.</summary>
        /// <param name="count">The required number.</param>
        /// <param name="timeout">The maximum time to wait; null is unlimited.</param>
        /// <returns>True if there are so many subscriptions, false after the timeout.</returns>
        /// <exception cref="NotSupportedException">The library is not Tautline.</exception>
        public bool WaitForSubscriptions(int count, TimeSpan? timeout = null)
        {
            return WaitFor(Option.WaitSubscriptions, count, timeout);
        }

        /// <summary>Like <see cref="WaitForPeers"/>, without blocking a thread.</summary>
        /// <param name="count">The required number.</param>
        /// <param name="timeout">The maximum time to wait; null is unlimited.</param>
        /// <param name="token">Cancels the operation.</param>
        public Task<bool> WaitForPeersAsync(int count, TimeSpan? timeout = null, CancellationToken token = default(CancellationToken))
        {
            return WaitForAsync(Option.WaitPeers, count, timeout, token);
        }

        /// <summary>Like <see cref="WaitForSubscriptions"/>, without blocking a thread.</summary>
        /// <param name="count">The required number.</param>
        /// <param name="timeout">The maximum time to wait; null is unlimited.</param>
        /// <param name="token">Cancels the operation.</param>
        public Task<bool> WaitForSubscriptionsAsync(int count, TimeSpan? timeout = null, CancellationToken token = default(CancellationToken))
        {
            return WaitForAsync(Option.WaitSubscriptions, count, timeout, token);
        }

        bool WaitFor(int option, int count, TimeSpan? timeout)
        {
            var deadline = new Deadline(Milliseconds(count, timeout));
            for (;;)
            {
                int left = deadline.Left;
                if (TryWait(option, count, left < 0 ? SliceMilliseconds : Math.Min(left, SliceMilliseconds)))
                    return true;
                if (deadline.Over)
                    return false;
            }
        }

        Task<bool> WaitForAsync(int option, int count, TimeSpan? timeout, CancellationToken token)
        {
            var deadline = new Deadline(Milliseconds(count, timeout));
            return Polling.UntilAsync(() => TryWait(option, count, 1), deadline, PollMilliseconds, token);
        }

        static int Milliseconds(int count, TimeSpan? timeout)
        {
            if (!Library.IsTautline)
                throw new NotSupportedException("The loaded libzmq does not support this: use Tautline.");
            if (count < 0)
                throw new ArgumentOutOfRangeException(nameof(count));
            return timeout == null ? -1 : (int)Math.Max(0, Math.Min(int.MaxValue, timeout.Value.TotalMilliseconds));
        }

        /// <summary>Waits for a number of milliseconds. The option obeys the send timeout, which is set here and restored
        /// afterwards.</summary>
        bool TryWait(int option, int count, int milliseconds)
        {
            using (Locked())
            {
                int before = Option.GetInt(socket, Option.SendTimeout);
                SetTimeout(milliseconds);
                int result = Native.zmq_setsockopt(socket, option, &count, (UIntPtr)sizeof(int));
                var error = result == 0 ? 0 : (Errno)Native.zmq_errno();
                SetTimeout(before);
                GC.KeepAlive(this);
                if (error != 0 && error != Errno.Again && error != Errno.Interrupted)
                    throw ZmqException.Of(error);
                return error == 0;
            }
        }

        void SetTimeout(int milliseconds)
        {
            ZmqException.Check(Native.zmq_setsockopt(socket, Option.SendTimeout, &milliseconds, (UIntPtr)sizeof(int)));
        }
    }

    /// <summary>Non-blocking waits for conditions that the library does not signal.</summary>
    internal static class Polling
    {
        /// <summary>Polls until the condition is true or the deadline has passed.</summary>
        internal static async Task<bool> UntilAsync(Func<bool> look, Deadline deadline, int pause, CancellationToken token)
        {
            for (;;)
            {
                token.ThrowIfCancellationRequested();
                if (look())
                    return true;
                if (deadline.Over)
                    return false;
                await Task.Delay(pause, token).ConfigureAwait(false);
            }
        }
    }
}
