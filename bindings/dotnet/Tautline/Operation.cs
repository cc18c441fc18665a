using System;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>An operation that waits for its socket.</summary>
    internal abstract class Operation
    {
        /// <summary>The queue that holds this operation; null before and after.</summary>
        internal OperationQueue Queue;
        internal Operation Before;
        internal Operation After;

        /// <summary>Tries the operation. Returns true if it has completed or failed, and false if the
        /// socket is not ready.</summary>
        internal abstract bool Attempt(IntPtr socket);

        /// <summary>True if the operation is partly done, so that it can no longer be
        /// cancelled.</summary>
        internal virtual bool Begun
        {
            get { return false; }
        }

        internal abstract void Fail(Exception error);

        internal abstract void Cancel(CancellationToken token);
    }

    /// <summary>An operation that waits for its socket, with its result.</summary>
    internal abstract class Operation<T> : Operation
    {
        readonly TaskCompletionSource<T> source = new TaskCompletionSource<T>(TaskCreationOptions.RunContinuationsAsynchronously);

        internal Task<T> Task
        {
            get { return source.Task; }
        }

        /// <summary>Performs the operation without waiting. Returns false if the socket is not ready.</summary>
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

    /// <summary>Operations in order of arrival. An operation is in at most one
    /// queue.</summary>
    internal sealed class OperationQueue
    {
        Operation last;

        /// <summary>The next operation; null if the queue is empty.</summary>
        internal Operation First { get; private set; }

        internal void Add(Operation operation)
        {
            operation.Queue = this;
            operation.Before = last;
            if (last == null)
                First = operation;
            else
                last.After = operation;
            last = operation;
        }

        internal void Remove(Operation operation)
        {
            if (operation.Before == null)
                First = operation.After;
            else
                operation.Before.After = operation.After;
            if (operation.After == null)
                last = operation.Before;
            else
                operation.After.Before = operation.Before;
            operation.Queue = null;
            operation.Before = operation.After = null;
        }
    }
}
