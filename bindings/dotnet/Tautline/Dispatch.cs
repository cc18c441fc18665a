using System;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>What waits for one socket, in order, and the lock of all calls on a socket that is
    /// used asynchronously or measured.</summary>
    /// <remarks>
    /// A socket's descriptor (ZMQ_FD) signals only that something has changed, and any call on the
    /// socket may take the change in. So whoever has called anything lets those that wait try again
    /// before giving up the lock: <see cref="Advance"/>. The reactor's thread does so when the
    /// descriptor is readable. It watches a descriptor from the first operation that has to wait
    /// until a change finds nobody waiting, so a loop that awaits message after message does not
    /// register each time. A measured socket is lent to calls that keep it to themselves while they
    /// wait, without the lock: <see cref="Lend"/>.
    /// </remarks>
    internal sealed class Dispatch
    {
        readonly object gate = new object();
        readonly OperationQueue receives = new OperationQueue();
        readonly OperationQueue sends = new OperationQueue();
        readonly OperationQueue waits = new OperationQueue();
        readonly SocketHandle handle;
        bool armed;
        bool closed;
        // By how many calls the socket is lent, and whether one of them is without end.
        int lent;
        bool withheld;
        SocketStatistics numbers;

        internal Dispatch(SocketHandle handle)
        {
            this.handle = handle;
            Descriptor = -1;
        }

        /// <summary>ZMQ_FD, from the first operation on that has to wait.</summary>
        internal int Descriptor { get; private set; }

        /// <summary>Whether a meter tells what the socket has done.</summary>
        internal bool Counted { get; set; }

        /// <summary>Whether the socket is used asynchronously, so that any thread may call it at
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

        /// <summary>Does it now if that is possible and nobody else waits for the same; -1
        /// otherwise.</summary>
        internal int Try(ref Transfer transfer)
        {
            lock (gate)
            {
                Open();
                if (lent > 0 || (transfer.Sends ? sends : receives).First != null)
                    return -1;
                int result = transfer.Try(handle.Pointer);
                // What a peer's reading has made room for is only found by looking at the events.
                if (result < 0 && transfer.Sends && (Events() & (int)PollEvents.Out) != 0)
                    result = transfer.Try(handle.Pointer);
                Advance();
                return result;
            }
        }

        /// <summary>Does it as soon as that is possible.</summary>
        internal Task<T> Start<T>(Operation<T> operation, bool send, CancellationToken token)
        {
            lock (gate)
            {
                Open();
                token.ThrowIfCancellationRequested();
                (send ? sends : receives).Add(operation);
                Advance();
            }
            if (token.CanBeCanceled && !operation.Task.IsCompleted)
            {
                var registration = token.Register(() => Withdraw(operation, token));
                operation.Task.ContinueWith(
                    (task, state) => ((CancellationTokenRegistration)state).Dispose(), registration, TaskScheduler.Default);
            }
            return operation.Task;
        }

        /// <summary>Takes an operation back, unless it has come to its end.</summary>
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

        /// <summary>Waits until it is done, or for that time; -1 then.</summary>
        internal int Block(Operation<int> operation, bool send, int timeout)
        {
            return Block(operation, send ? sends : receives, timeout);
        }

        /// <summary>Waits until the socket is ready, while others may use it; false if the time is
        /// over.</summary>
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
                Advance();
            }
            if (!((IAsyncResult)operation.Task).AsyncWaitHandle.WaitOne(timeout) && Withdraw(operation, CancellationToken.None))
                return -1;
            return operation.Task.GetAwaiter().GetResult();
        }

        /// <summary>A call that waits gets the socket to itself, until <see cref="Return"/>.
        /// Operations wait, the meter tells what was so before.</summary>
        /// <param name="withhold">Whether the call has no end, so that the meter had better tell
        /// nothing.</param>
        internal void Lend(bool withhold = false)
        {
            lock (gate)
            {
                if (Counted && !closed && lent == 0)
                    Count();
                lent++;
                withheld |= withhold;
            }
        }

        /// <summary>The call has come to its end.</summary>
        internal void Return()
        {
            lock (gate)
            {
                lent--;
                withheld &= lent > 0;
                Advance();
            }
        }

        /// <summary>What the socket has done until now, or until it was lent; false if that is not
        /// known.</summary>
        internal bool TryCount(out SocketStatistics result)
        {
            lock (gate)
            {
                bool known = !closed && !withheld && (lent > 0 || Count());
                // Asking may have taken a change in.
                if (known)
                    Advance();
                result = numbers;
                return known;
            }
        }

        /// <summary>Lets those that wait try again.</summary>
        internal void Advance()
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
                        // The descriptor first: it tells only what changes after that.
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

        /// <summary>The descriptor was readable. Returns whether to go on watching it.</summary>
        internal bool Signalled()
        {
            lock (gate)
            {
                if (closed || !Waiting)
                {
                    armed = false;
                    return false;
                }
                Advance();
                return true;
            }
        }

        /// <summary>A while has passed. Returns whether to go on watching.</summary>
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

        /// <summary>Tells those that wait for the socket to be ready, if it is when all operations
        /// have had their turn.</summary>
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
