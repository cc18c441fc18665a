using System;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>Something that waits for its socket.</summary>
    internal abstract class Operation
    {
        /// <summary>Where it stands in line: null before and after.</summary>
        internal OperationQueue Queue;
        internal Operation Before;
        internal Operation After;

        /// <summary>Tries it. True if it has come to its end, well or not; false if the socket is
        /// not ready.</summary>
        internal abstract bool Attempt(IntPtr socket);

        /// <summary>Whether a part of it is done already, so that it cannot be taken
        /// back.</summary>
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

    /// <summary>Operations in the order in which they came. An operation is in one queue at
    /// most.</summary>
    internal sealed class OperationQueue
    {
        Operation last;

        /// <summary>Whose turn it is; null if nobody waits.</summary>
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
