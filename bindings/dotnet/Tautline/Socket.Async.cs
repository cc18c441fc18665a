using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    public partial class Socket
    {
        static readonly Task Done = Task.FromResult(0);
        Task<int> lastLength;

        /// <summary>Receives one part into a buffer, as soon as one is available.</summary>
        /// <param name="buffer">The buffer. Do not touch it until the task completes.</param>
        /// <param name="token">Cancels the operation.</param>
        /// <returns>The length of the part. If it exceeds the buffer, the excess bytes are lost.</returns>
        public unsafe Task<int> ReceiveAsync(byte[] buffer, CancellationToken token = default(CancellationToken))
        {
            Argument.NotNull(buffer, nameof(buffer));
            var dispatcher = GetSharedDispatcher();
            token.ThrowIfCancellationRequested();
            int length;
            fixed (byte* bytes = buffer)
            {
                var now = new Transfer(Transfer.Kind.Receive, bytes, buffer.Length, 0);
                length = dispatcher.Try(ref now);
            }
            return length >= 0 ? Finished(length) : dispatcher.Start(new ReceiveOperation(buffer, 0, buffer.Length), false, token);
        }

        /// <summary>Receives one part into a message, as soon as one is available.</summary>
        /// <param name="message">The target. Do not touch it until the task completes.</param>
        /// <param name="token">Cancels the operation.</param>
        /// <returns>The length of the part.</returns>
        public Task<int> ReceiveAsync(Message message, CancellationToken token = default(CancellationToken))
        {
            int length = TryPart(Argument.NotNull(message, nameof(message)), token);
            return length >= 0 ? Finished(length) : dispatcher.Start(new MessageOperation(message, false, false), false, token);
        }

        /// <summary>Receives one part into a new array, as soon as one is available.</summary>
        /// <param name="token">Cancels the operation.</param>
        public Task<byte[]> ReceiveBytesAsync(CancellationToken token = default(CancellationToken))
        {
            return AsyncHelpers.Bytes(this, token);
        }

        /// <summary>Receives one part as UTF-8 text, as soon as one is available.</summary>
        /// <param name="token">Cancels the operation.</param>
        public Task<string> ReceiveStringAsync(CancellationToken token = default(CancellationToken))
        {
            return AsyncHelpers.Text(this, token);
        }

        /// <summary>Receives all parts of a message, as soon as one is available.</summary>
        /// <param name="token">Cancels the operation.</param>
        public Task<List<byte[]>> ReceiveMultipartAsync(CancellationToken token = default(CancellationToken))
        {
            return GetSharedDispatcher().Start(new PartsReceiveOperation(), false, token);
        }

        /// <summary>Waits for one part, then takes all available parts.</summary>
        /// <param name="batch">The target. Do not touch it until the task completes.</param>
        /// <param name="token">Cancels the operation.</param>
        /// <returns>The number of parts: at least one, and at most the capacity of the batch.</returns>
        public Task<int> ReceiveBatchAsync(MessageBatch batch, CancellationToken token = default(CancellationToken))
        {
            Argument.NotNull(batch, nameof(batch)).Clear();
            return GetSharedDispatcher().Start(new BatchOperation(batch), false, token);
        }

        /// <summary>Sends a copy of the bytes, as soon as a peer can take them.</summary>
        /// <param name="data">The bytes. Do not change them until the task completes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        /// <param name="token">Cancels the operation.</param>
        public unsafe Task SendAsync(byte[] data, bool more = false, CancellationToken token = default(CancellationToken))
        {
            Argument.NotNull(data, nameof(data));
            var dispatcher = GetSharedDispatcher();
            token.ThrowIfCancellationRequested();
            int flags = more ? Native.SendMore : 0;
            int sent;
            fixed (byte* bytes = data)
            {
                var now = new Transfer(Transfer.Kind.Send, bytes, data.Length, flags);
                sent = dispatcher.Try(ref now);
            }
            return sent >= 0 ? Done : dispatcher.Start(new SendOperation(data, 0, data.Length, flags), true, token);
        }

        /// <summary>Sends a message and empties it, as soon as a peer can take it.</summary>
        /// <param name="message">The message. Do not touch it until the task completes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        /// <param name="token">Cancels the operation.</param>
        public unsafe Task SendAsync(Message message, bool more = false, CancellationToken token = default(CancellationToken))
        {
            var pointer = (void*)Argument.NotNull(message, nameof(message)).Pointer;
            var dispatcher = GetSharedDispatcher();
            token.ThrowIfCancellationRequested();
            var now = new Transfer(Transfer.Kind.SendMessage, pointer, 0, more ? Native.SendMore : 0);
            int sent = dispatcher.Try(ref now);
            GC.KeepAlive(message);
            return sent >= 0 ? Done : dispatcher.Start(new MessageOperation(message, true, more), true, token);
        }

        /// <summary>Sends a text as UTF-8, as soon as a peer can take it.</summary>
        /// <param name="text">The text.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        /// <param name="token">Cancels the operation.</param>
        public Task SendAsync(string text, bool more = false, CancellationToken token = default(CancellationToken))
        {
            return SendAsync(System.Text.Encoding.UTF8.GetBytes(Argument.NotNull(text, nameof(text))), more, token);
        }

        /// <summary>Sends a message of several parts, as soon as a peer can take it.</summary>
        /// <param name="parts">The parts, at least one. Do not change them until the task completes.</param>
        /// <param name="token">Cancels the operation.</param>
        public Task SendMultipartAsync(IList<byte[]> parts, CancellationToken token = default(CancellationToken))
        {
            CheckParts(parts);
            return GetSharedDispatcher().Start(new PartsSendOperation(parts), true, token);
        }

#if SPANS
        /// <summary>Receives one part into a buffer, as soon as one is available. Allocates no memory if a part is already
        /// there.</summary>
        /// <param name="buffer">The buffer. Do not touch it until the task completes.</param>
        /// <param name="token">Cancels the operation.</param>
        /// <returns>The length of the part. If it exceeds the buffer, the excess bytes are lost.</returns>
        public unsafe ValueTask<int> ReceiveAsync(Memory<byte> buffer, CancellationToken token = default(CancellationToken))
        {
            var dispatcher = GetSharedDispatcher();
            token.ThrowIfCancellationRequested();
            using (var pin = buffer.Pin())
            {
                var now = new Transfer(Transfer.Kind.Receive, pin.Pointer, buffer.Length, 0);
                int length = dispatcher.Try(ref now);
                if (length >= 0)
                    return new ValueTask<int>(length);
            }
            return new ValueTask<int>(dispatcher.Start(new MemoryReceiveOperation(buffer), false, token));
        }

        /// <summary>Sends a copy of the bytes, as soon as a peer can take them. Allocates no memory if a peer can take them
        /// now.</summary>
        /// <param name="data">The bytes. Do not change them until the task completes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        /// <param name="token">Cancels the operation.</param>
        public unsafe ValueTask SendAsync(ReadOnlyMemory<byte> data, bool more = false, CancellationToken token = default(CancellationToken))
        {
            var dispatcher = GetSharedDispatcher();
            token.ThrowIfCancellationRequested();
            int flags = more ? Native.SendMore : 0;
            using (var pin = data.Pin())
            {
                var now = new Transfer(Transfer.Kind.Send, pin.Pointer, data.Length, flags);
                if (dispatcher.Try(ref now) >= 0)
                    return default(ValueTask);
            }
            return new ValueTask(dispatcher.Start(new MemorySendOperation(data, flags), true, token));
        }
#endif

        /// <summary>Receives one part if one is available and no other operation waits for it. Otherwise returns -1.</summary>
        internal unsafe int TryPart(Message message, CancellationToken token)
        {
            var pointer = (void*)message.Pointer;
            var dispatcher = GetSharedDispatcher();
            token.ThrowIfCancellationRequested();
            var now = new Transfer(Transfer.Kind.ReceiveMessage, pointer, 0, 0);
            int length = dispatcher.Try(ref now);
            GC.KeepAlive(message);
            return length;
        }

        /// <summary>Returns the dispatcher of a socket that is used asynchronously.</summary>
        SocketDispatcher GetSharedDispatcher()
        {
            var shared = dispatcher ?? GetDispatcher();
            if (!shared.Shared)
                shared.Shared = true;
            return shared;
        }

        /// <summary>Returns the dispatcher, and creates it if there is none. From then on, its lock orders all calls.</summary>
        SocketDispatcher GetDispatcher()
        {
            if (socket == IntPtr.Zero)
                throw new ObjectDisposedException(nameof(Socket));
            lock (handle)
            {
                if (dispatcher == null)
                    dispatcher = new SocketDispatcher(handle);
                return dispatcher;
            }
        }

        /// <summary>Returns a completed task, reused for messages of the same length.</summary>
        Task<int> Finished(int length)
        {
            var last = lastLength;
            return last != null && last.Result == length ? last : lastLength = Task.FromResult(length);
        }

        int Try(Transfer transfer)
        {
            int result = dispatcher == null ? transfer.Try(socket) : dispatcher.Try(ref transfer);
            GC.KeepAlive(this);
            return result;
        }

        /// <summary>Makes a blocking call on a metered socket, or on one used asynchronously, where it queues behind other
        /// operations.</summary>
        int Blocking(Transfer transfer)
        {
            int result = dispatcher.Try(ref transfer);
            if (result < 0)
            {
                int timeout = GetIntOption(transfer.Sends ? Option.SendTimeout : Option.ReceiveTimeout);
                // A socket that is ready for sending does not say for which peer. Only the operation itself can find out.
                if (transfer.Sends || dispatcher.Shared)
                    return dispatcher.Block(new TransferOperation(transfer), transfer.Sends, timeout);
                var deadline = new Deadline(timeout);
                while (result < 0 && Wait(PollEvents.In, deadline.Left))
                    result = dispatcher.Try(ref transfer);
            }
            GC.KeepAlive(this);
            return result;
        }

        /// <summary>Takes the lock for all other calls on a socket that is used asynchronously or metered.</summary>
        internal Lock Locked()
        {
            return new Lock(dispatcher);
        }

        internal struct Lock : IDisposable
        {
            readonly SocketDispatcher dispatcher;

            internal Lock(SocketDispatcher dispatcher)
            {
                this.dispatcher = dispatcher;
                if (dispatcher != null)
                    Monitor.Enter(dispatcher.Gate);
            }

            public void Dispose()
            {
                if (dispatcher == null)
                    return;
                dispatcher.RetryOperations();
                Monitor.Exit(dispatcher.Gate);
            }
        }
    }
}
