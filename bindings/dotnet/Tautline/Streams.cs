#if SPANS
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>A stream of received items. Every enumeration starts a new receive loop.</summary>
    internal sealed class Stream<T> : IAsyncEnumerable<T>
    {
        readonly Func<CancellationToken, Steps<T>> begin;
        readonly CancellationToken token;

        internal Stream(CancellationToken token, Func<CancellationToken, Steps<T>> begin)
        {
            this.token = token;
            this.begin = begin;
        }

        public IAsyncEnumerator<T> GetAsyncEnumerator(CancellationToken other)
        {
            if (!token.CanBeCanceled || token == other)
                return begin(other);
            if (!other.CanBeCanceled)
                return begin(token);
            var both = CancellationTokenSource.CreateLinkedTokenSource(token, other);
            var steps = begin(both.Token);
            steps.Own(both);
            return steps;
        }
    }

    /// <summary>One enumeration. Each step takes one message without prefetching, so that stopping
    /// early loses no message.</summary>
    internal abstract class Steps<T> : IAsyncEnumerator<T>
    {
        CancellationTokenSource source;
        Task<bool> pending;
        bool ended;

        protected Steps(CancellationToken token)
        {
            Token = token;
        }

        public abstract T Current { get; }

        protected CancellationToken Token { get; private set; }

        bool Waits
        {
            get { return pending != null && !pending.IsCompleted; }
        }

        public ValueTask<bool> MoveNextAsync()
        {
            if (Waits)
                throw new InvalidOperationException("The previous call of MoveNextAsync has not completed.");
            if (ended)
                return new ValueTask<bool>(false);
            if (TryStep())
                return new ValueTask<bool>(true);
            pending = Step();
            return new ValueTask<bool>(pending);
        }

        public ValueTask DisposeAsync()
        {
            // The library may still write to the memory that Dispose would free.
            if (Waits)
                throw new NotSupportedException("The last call of MoveNextAsync has not completed.");
            ended = true;
            source?.Dispose();
            Release();
            return default(ValueTask);
        }

        /// <summary>Takes ownership, and disposes of the source at the end.</summary>
        internal void Own(CancellationTokenSource linked)
        {
            source = linked;
        }

        /// <summary>Tries a step without waiting or allocating. Returns false if that is
        /// impossible.</summary>
        protected virtual bool TryStep()
        {
            return false;
        }

        /// <summary>Makes one step. Returns false at the end.</summary>
        protected abstract Task<bool> Step();

        protected virtual void Release()
        {
        }
    }

    /// <summary>Parts, all received into the same message.</summary>
    internal sealed class PartSteps<T> : Steps<T>
    {
        readonly Socket socket;
        readonly Func<Message, T> read;
        Message message = new Message();
        T current;
        bool known;

        internal PartSteps(Socket socket, Func<Message, T> read, CancellationToken token)
            : base(token)
        {
            this.socket = socket;
            this.read = read;
        }

        public override T Current
        {
            get
            {
                if (!known)
                {
                    current = read(message);
                    known = true;
                }
                return current;
            }
        }

        protected override bool TryStep()
        {
            known = false;
            // The consumer may have disposed of the message.
            if (message.IsDisposed)
                message = new Message();
            return socket.TryPart(message, Token) >= 0;
        }

        protected override Task<bool> Step()
        {
            return socket.PartLater(message, Token);
        }

        protected override void Release()
        {
            message.Dispose();
        }
    }

    /// <summary>Complete messages with all their parts.</summary>
    internal sealed class MultipartSteps : Steps<List<byte[]>>
    {
        readonly Socket socket;
        List<byte[]> current;

        internal MultipartSteps(Socket socket, CancellationToken token)
            : base(token)
        {
            this.socket = socket;
        }

        public override List<byte[]> Current
        {
            get { return current; }
        }

        protected override async Task<bool> Step()
        {
            current = await socket.ReceiveMultipartAsync(Token).ConfigureAwait(false);
            return true;
        }
    }

    /// <summary>Events of a monitor, until it stops.</summary>
    internal sealed class EventSteps : Steps<MonitorEvent>
    {
        readonly SocketMonitor monitor;
        MonitorEvent current;

        internal EventSteps(SocketMonitor monitor, CancellationToken token)
            : base(token)
        {
            this.monitor = monitor;
        }

        public override MonitorEvent Current
        {
            get { return current; }
        }

        protected override async Task<bool> Step()
        {
            if (monitor.HasStopped)
                return false;
            current = await monitor.ReceiveAsync(Token).ConfigureAwait(false);
            return true;
        }
    }
}
#endif
