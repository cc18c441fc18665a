using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>Something that waits for its socket.</summary>
    internal abstract class Operation
    {
        /// <summary>Tries it. True if it has come to its end, well or not; false if the socket is not ready.</summary>
        internal abstract bool Attempt(IntPtr socket);

        /// <summary>Whether a part of it is done already, so that it cannot be taken back.</summary>
        internal virtual bool Begun
        {
            get { return false; }
        }

        internal abstract void Fail(Exception error);

        internal abstract void Cancel(CancellationToken token);
    }

    /// <summary>Something that waits for its socket, and what comes of it.</summary>
    internal abstract class Operation<T> : Operation
    {
        readonly TaskCompletionSource<T> source = new TaskCompletionSource<T>(TaskCreationOptions.RunContinuationsAsynchronously);

        internal Task<T> Task
        {
            get { return source.Task; }
        }

        /// <summary>Does it without waiting; false if the socket is not ready.</summary>
        protected abstract bool Perform(IntPtr socket, out T result);

        internal override bool Attempt(IntPtr socket)
        {
            try
            {
                T result;
                if (!Perform(socket, out result))
                    return false;
                source.TrySetResult(result);
            }
            catch (Exception error)
            {
                source.TrySetException(error);
            }
            return true;
        }

        internal override void Fail(Exception error)
        {
            source.TrySetException(error);
        }

        internal override void Cancel(CancellationToken token)
        {
            source.TrySetCanceled(token);
        }
    }

    /// <summary>What waits for one socket, in order, and the lock of all calls on a socket that is used asynchronously.</summary>
    /// <remarks>
    /// A socket's descriptor (ZMQ_FD) signals only that something has changed, and any call on the socket may take the change in. So
    /// whoever has called anything lets those that wait try again before giving up the lock: <see cref="Advance"/>. The reactor's thread
    /// does so when the descriptor is readable. It watches a descriptor from the first operation that has to wait until a change
    /// finds nobody waiting, so a loop that awaits message after message does not register each time.
    /// </remarks>
    internal sealed class Dispatch
    {
        readonly object gate = new object();
        readonly LinkedList<Operation> receives = new LinkedList<Operation>();
        readonly LinkedList<Operation> sends = new LinkedList<Operation>();
        readonly SocketHandle handle;
        bool armed;
        bool closed;

        internal Dispatch(SocketHandle handle)
        {
            this.handle = handle;
            Descriptor = Option.GetInt(handle.Pointer, Option.Descriptor);
        }

        /// <summary>ZMQ_FD.</summary>
        internal int Descriptor { get; private set; }

        /// <summary>The lock of all calls on the socket.</summary>
        internal object Gate
        {
            get { return gate; }
        }

        bool Waiting
        {
            get { return receives.Count + sends.Count > 0; }
        }

        /// <summary>Does it now if that is possible and nobody else waits for the same; -1 otherwise.</summary>
        internal int Try(ref Transfer transfer)
        {
            lock (gate)
            {
                Open();
                if ((transfer.Sends ? sends : receives).Count > 0)
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
            var queue = send ? sends : receives;
            LinkedListNode<Operation> node;
            lock (gate)
            {
                Open();
                token.ThrowIfCancellationRequested();
                node = queue.AddLast(operation);
                Advance();
            }
            if (token.CanBeCanceled && !operation.Task.IsCompleted)
            {
                var registration = token.Register(() => Withdraw(node, token));
                operation.Task.ContinueWith(
                    (task, state) => ((CancellationTokenRegistration)state).Dispose(), registration, TaskScheduler.Default);
            }
            return operation.Task;
        }

        /// <summary>Takes an operation back, unless it has come to its end.</summary>
        internal bool Withdraw(LinkedListNode<Operation> node, CancellationToken token)
        {
            lock (gate)
            {
                if (node.List == null || node.Value.Begun)
                    return false;
                node.List.Remove(node);
            }
            node.Value.Cancel(token);
            return true;
        }

        /// <summary>Waits until it is done, or for that time; -1 then.</summary>
        internal int Block(Operation<int> operation, bool send, int timeout)
        {
            LinkedListNode<Operation> node;
            lock (gate)
            {
                Open();
                node = (send ? sends : receives).AddLast(operation);
                Advance();
            }
            if (!((IAsyncResult)operation.Task).AsyncWaitHandle.WaitOne(timeout) && Withdraw(node, CancellationToken.None))
                return -1;
            return operation.Task.GetAwaiter().GetResult();
        }

        /// <summary>Lets those that wait try again.</summary>
        internal void Advance()
        {
            lock (gate)
            {
                bool again = true;
                while (again && Waiting && !closed)
                {
                    int events;
                    try
                    {
                        events = Events();
                    }
                    catch (Exception error)
                    {
                        Fail(error);
                        return;
                    }
                    again = (events & (int)PollEvents.In) != 0 && Run(receives);
                    again |= (events & (int)PollEvents.Out) != 0 && Run(sends);
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

        int Events()
        {
            return Option.GetInt(handle.Pointer, Option.Events);
        }

        bool Run(LinkedList<Operation> queue)
        {
            bool any = false;
            while (queue.Count > 0 && queue.First.Value.Attempt(handle.Pointer))
            {
                queue.RemoveFirst();
                any = true;
            }
            return any;
        }

        void Fail(Exception error)
        {
            foreach (var queue in new[] { receives, sends })
            {
                while (queue.Count > 0)
                {
                    var operation = queue.First.Value;
                    queue.RemoveFirst();
                    operation.Fail(error);
                }
            }
        }
    }
}
