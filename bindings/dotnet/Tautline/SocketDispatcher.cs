using System;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>The queues of waiting operations of one socket, and the lock for all calls on a
    /// socket that is used asynchronously or metered.</summary>
    /// <remarks>
    /// A socket's descriptor (ZMQ_FD) signals only that something has changed, and any call on the
    /// socket may consume that signal. Therefore every caller retries the waiting operations before
    /// it releases the lock: <see cref="RetryOperations"/>. The reactor's thread does the same when the
    /// descriptor is readable. The thread watches a descriptor from the first operation that has to wait
    /// until a signal arrives while no operation waits. So a loop that awaits message after message
    /// does not register each time. A call that waits without the lock borrows a metered socket
    /// for exclusive use: <see cref="Lend"/>.
    /// </remarks>
    internal sealed class SocketDispatcher
    {
        readonly object gate = new object();
        readonly OperationQueue receives = new OperationQueue();
        readonly OperationQueue sends = new OperationQueue();
        readonly OperationQueue waits = new OperationQueue();
        readonly SocketHandle handle;
        bool armed;
        bool closed;
        // Number of calls that have borrowed the socket, and whether one of them has no time limit.
        int lent;
        bool withheld;
        SocketStatistics numbers;

        internal SocketDispatcher(SocketHandle handle)
        {
            this.handle = handle;
            Descriptor = -1;
        }

        /// <summary>ZMQ_FD, set by the first operation that has to wait.</summary>
        internal int Descriptor { get; private set; }

        /// <summary>True if a meter reports the socket's counters.</summary>
        internal bool IsMetered { get; set; }

        /// <summary>True if the socket is used asynchronously, so that any thread may call it at
        /// any time.</summary>
        internal bool Shared { get; set; }

        /// <summary>The lock of all calls on the socket.</summary>
        internal object Gate
        {
            get { return gate; }
        }

        bool Waiting
        {
            get { return receives.First != null || sends.First != null || waits.First != null; }
        }

        /// <summary>Performs the transfer if it is possible now and no other operation waits for the
        /// same direction. Otherwise returns -1.</summary>
        internal int Try(ref Transfer transfer)
        {
            lock (gate)
            {
                Open();
                if (lent > 0 || (transfer.Sends ? sends : receives).First != null)
                    return -1;
                int result = transfer.Try(handle.Pointer);
                // Reading the events is necessary to notice room that a peer's reads have made.
                if (result < 0 && transfer.Sends && (Events() & (int)PollEvents.Out) != 0)
                    result = transfer.Try(handle.Pointer);
                RetryOperations();
                return result;
            }
        }

        /// <summary>Starts an operation and performs it as soon as possible.</summary>
        internal Task<T> Start<T>(Operation<T> operation, bool send, CancellationToken token)
        {
            lock (gate)
            {
                Open();
                token.ThrowIfCancellationRequested();
                (send ? sends : receives).Add(operation);
                RetryOperations();
            }
            if (token.CanBeCanceled && !operation.Task.IsCompleted)
            {
                var registration = token.Register(() => Withdraw(operation, token));
                operation.Task.ContinueWith(
                    (task, state) => ((CancellationTokenRegistration)state).Dispose(), registration, TaskScheduler.Default);
            }
            return operation.Task;
        }

        /// <summary>Cancels an operation that has not completed.</summary>
        internal bool Withdraw(Operation operation, CancellationToken token)
        {
            lock (gate)
            {
                if (operation.Queue == null || operation.Begun)
                    return false;
                operation.Queue.Remove(operation);
            }
            operation.Cancel(token);
            return true;
        }

        /// <summary>Waits until the operation is complete. Returns -1 after the timeout.</summary>
        internal int Block(Operation<int> operation, bool send, int timeout)
        {
            return Block(operation, send ? sends : receives, timeout);
        }

        /// <summary>Waits until the socket is ready, while other threads may use it. Returns false after
        /// the timeout.</summary>
        internal bool Wait(PollEvents events, int timeout)
        {
            return Block(new WaitOperation(events), waits, timeout) >= 0;
        }

        int Block(Operation<int> operation, OperationQueue queue, int timeout)
        {
            lock (gate)
            {
                Open();
                queue.Add(operation);
                RetryOperations();
            }
            if (!((IAsyncResult)operation.Task).AsyncWaitHandle.WaitOne(timeout) && Withdraw(operation, CancellationToken.None))
                return -1;
            return operation.Task.GetAwaiter().GetResult();
        }

        /// <summary>Lends the socket to a waiting call for exclusive use until <see cref="Return"/>.
        /// Until then operations wait, and the meter reports the numbers from before the loan.</summary>
        /// <param name="withhold">True if the call has no time limit, so that the meter should skip
        /// the socket.</param>
        internal void Lend(bool withhold = false)
        {
            lock (gate)
            {
                if (IsMetered && !closed && lent == 0)
                    Count();
                lent++;
                withheld |= withhold;
            }
        }

        /// <summary>Ends the loan of a call.</summary>
        internal void Return()
        {
            lock (gate)
            {
                lent--;
                withheld &= lent > 0;
                RetryOperations();
            }
        }

        /// <summary>Reads the socket's counters as they are now, or as they were when the socket was
        /// lent. Returns false if they are unknown.</summary>
        internal bool TryCount(out SocketStatistics result)
        {
            lock (gate)
            {
                bool known = !closed && !withheld && (lent > 0 || Count());
                // Reading the statistics may have consumed a signal.
                if (known)
                    RetryOperations();
                result = numbers;
                return known;
            }
        }

        /// <summary>Retries the waiting operations.</summary>
        internal void RetryOperations()
        {
            lock (gate)
            {
                if (lent > 0)
                    return;
                bool again = true;
                while (again && Waiting && !closed)
                {
                    int events;
                    try
                    {
                        // Get the descriptor first: it signals only later changes.
                        if (Descriptor < 0)
                            Descriptor = Option.GetInt(handle.Pointer, Option.Descriptor);
                        events = Events();
                    }
                    catch (Exception error)
                    {
                        Fail(error);
                        return;
                    }
                    again = (events & (int)PollEvents.In) != 0 && Run(receives);
                    again |= (events & (int)PollEvents.Out) != 0 && Run(sends);
                    Tell();
                }
                if (Waiting && !armed)
                {
                    armed = true;
                    Reactor.Arm(this);
                }
            }
        }

        /// <summary>Handles a readable descriptor. Returns true if the reactor must keep watching it.</summary>
        internal bool Signalled()
        {
            lock (gate)
            {
                if (closed || !Waiting)
                {
                    armed = false;
                    return false;
                }
                RetryOperations();
                return true;
            }
        }

        /// <summary>Handles an idle period. Returns true if the reactor must keep watching.</summary>
        internal bool Idle()
        {
            lock (gate)
                armed &= Waiting;
            return armed;
        }

        internal void Close(Action close)
        {
            lock (gate)
            {
                if (closed)
                    return;
                closed = true;
                Fail(new ObjectDisposedException(nameof(Socket)));
                if (armed)
                    Reactor.Disarm(this);
                close();
            }
        }

        void Open()
        {
            if (closed)
                throw new ObjectDisposedException(nameof(Socket));
        }

        bool Count()
        {
            return Option.TryGetStatistics(handle.Pointer, out numbers) == 0;
        }

        int Events()
        {
            return Option.GetInt(handle.Pointer, Option.Events);
        }

        bool Run(OperationQueue queue)
        {
            bool any = false;
            while (queue.First != null && queue.First.Attempt(handle.Pointer))
            {
                queue.Remove(queue.First);
                any = true;
            }
            return any;
        }

        /// <summary>Notifies the callers that wait for readiness, if the socket is still ready after all
        /// operations have been retried.</summary>
        void Tell()
        {
            Operation next;
            for (var each = waits.First; each != null; each = next)
            {
                next = each.After;
                if (each.Attempt(handle.Pointer))
                    waits.Remove(each);
            }
        }

        void Fail(Exception error)
        {
            foreach (var queue in new[] { receives, sends, waits })
            {
                while (queue.First != null)
                {
                    var operation = queue.First;
                    queue.Remove(operation);
                    operation.Fail(error);
                }
            }
        }
    }
}
