using System;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    public unsafe partial class Socket
    {
        /// <summary>Longest wait in the library: then a disposed context or socket is noticed, and other threads have their
        /// turn.</summary>
        const int SliceMilliseconds = 100;

        /// <summary>Between two looks that do not hold up a thread.</summary>
        const int LookMilliseconds = 10;

        /// <summary>Waits until at least this many peers are connected. Only Tautline tells.</summary>
        /// <param name="count">How many.</param>
        /// <param name="timeout">How long at most; null is for ever.</param>
        /// <returns>Whether they are.</returns>
        /// <exception cref="NotSupportedException">On another library.</exception>
        public bool WaitForPeers(int count, TimeSpan? timeout = null)
        {
            return WaitFor(Option.WaitPeers, count, timeout);
        }

        /// <summary>Waits until the peers of a publisher have subscribed to at least this many different topics: what is published then
        /// reaches them. Only Tautline tells.</summary>
        /// <param name="count">How many.</param>
        /// <param name="timeout">How long at most; null is for ever.</param>
        /// <returns>Whether they have.</returns>
        /// <exception cref="NotSupportedException">On another library.</exception>
        public bool WaitForSubscriptions(int count, TimeSpan? timeout = null)
        {
            return WaitFor(Option.WaitSubscriptions, count, timeout);
        }

        /// <summary>As <see cref="WaitForPeers"/>, without holding up a thread.</summary>
        /// <param name="count">How many.</param>
        /// <param name="timeout">How long at most; null is for ever.</param>
        /// <param name="token">Takes the wish back.</param>
        public Task<bool> WaitForPeersAsync(int count, TimeSpan? timeout = null, CancellationToken token = default(CancellationToken))
        {
            return WaitForAsync(Option.WaitPeers, count, timeout, token);
        }

        /// <summary>As <see cref="WaitForSubscriptions"/>, without holding up a thread.</summary>
        /// <param name="count">How many.</param>
        /// <param name="timeout">How long at most; null is for ever.</param>
        /// <param name="token">Takes the wish back.</param>
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
                if (IsSo(option, count, left < 0 ? SliceMilliseconds : Math.Min(left, SliceMilliseconds)))
                    return true;
                if (deadline.Over)
                    return false;
            }
        }

        Task<bool> WaitForAsync(int option, int count, TimeSpan? timeout, CancellationToken token)
        {
            var deadline = new Deadline(Milliseconds(count, timeout));
            return Looks.UntilAsync(() => IsSo(option, count, 1), deadline, LookMilliseconds, token);
        }

        static int Milliseconds(int count, TimeSpan? timeout)
        {
            if (!Library.IsTautline)
                throw new NotSupportedException("The library that was loaded does not tell.");
            if (count < 0)
                throw new ArgumentOutOfRangeException(nameof(count));
            return timeout == null ? -1 : (int)Math.Max(0, Math.Min(int.MaxValue, timeout.Value.TotalMilliseconds));
        }

        /// <summary>Waits for so many milliseconds. The option goes by the time limit for sending, which is put back.</summary>
        bool IsSo(int option, int count, int milliseconds)
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

    /// <summary>Waits that hold up no thread, for what nothing announces.</summary>
    internal static class Looks
    {
        /// <summary>Looks now and then until it is so, or the deadline has passed.</summary>
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
