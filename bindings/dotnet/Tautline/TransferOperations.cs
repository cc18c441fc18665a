using System;
using System.Collections.Generic;

namespace Tautline
{
    /// <summary>A transfer for a blocking caller. The caller's stack frame keeps the memory pinned.</summary>
    internal sealed class TransferOperation : Operation<int>
    {
        Transfer transfer;

        internal TransferOperation(Transfer transfer)
        {
            this.transfer = transfer;
        }

        protected override bool Perform(IntPtr socket, out int result)
        {
            result = transfer.Try(socket);
            return result >= 0;
        }
    }

    /// <summary>Waits until the socket is ready, without receiving.</summary>
    internal sealed class WaitOperation : Operation<int>
    {
        readonly PollEvents events;

        internal WaitOperation(PollEvents events)
        {
            this.events = events;
        }

        protected override bool Perform(IntPtr socket, out int result)
        {
            result = Option.GetInt(socket, Option.Events) & (int)events;
            return result != 0;
        }
    }

    internal sealed unsafe class ReceiveOperation : Operation<int>
    {
        readonly byte[] buffer;
        readonly int offset;
        readonly int count;

        internal ReceiveOperation(byte[] buffer, int offset, int count)
        {
            this.buffer = buffer;
            this.offset = offset;
            this.count = count;
        }

        protected override bool Perform(IntPtr socket, out int result)
        {
            fixed (byte* bytes = buffer)
                result = new Transfer(Transfer.Kind.Receive, bytes + offset, count, 0).Try(socket);
            return result >= 0;
        }
    }

    internal sealed unsafe class SendOperation : Operation<int>
    {
        readonly byte[] data;
        readonly int offset;
        readonly int count;
        readonly int flags;

        internal SendOperation(byte[] data, int offset, int count, int flags)
        {
            this.data = data;
            this.offset = offset;
            this.count = count;
            this.flags = flags;
        }

        protected override bool Perform(IntPtr socket, out int result)
        {
            fixed (byte* bytes = data)
                result = new Transfer(Transfer.Kind.Send, bytes + offset, count, flags).Try(socket);
            return result >= 0;
        }
    }

    internal sealed unsafe class MessageOperation : Operation<int>
    {
        readonly Message message;
        readonly bool send;
        readonly bool more;

        internal MessageOperation(Message message, bool send, bool more)
        {
            this.message = message;
            this.send = send;
            this.more = more;
        }

        protected override bool Perform(IntPtr socket, out int result)
        {
            var kind = send ? Transfer.Kind.SendMessage : Transfer.Kind.ReceiveMessage;
            result = new Transfer(kind, (void*)message.Pointer, 0, more ? Native.SendMore : 0).Try(socket);
            GC.KeepAlive(message);
            return result >= 0;
        }
    }

    internal sealed unsafe class BatchOperation : Operation<int>
    {
        readonly MessageBatch batch;

        internal BatchOperation(MessageBatch batch)
        {
            this.batch = batch;
        }

        protected override bool Perform(IntPtr socket, out int result)
        {
            batch.Clear();
            while (batch.Count < batch.Capacity)
            {
                int size = new Transfer(Transfer.Kind.ReceiveMessage, (void*)batch.Next, 0, 0).Try(socket);
                if (size < 0)
                    break;
                batch.Added(size);
            }
            batch.FreeStale();
            result = batch.Count;
            return result > 0;
        }
    }

    /// <summary>Receives all parts of a message. The parts normally arrive together. Otherwise the operation keeps the parts received
    /// so far.</summary>
    internal sealed unsafe class PartsReceiveOperation : Operation<List<byte[]>>
    {
        readonly List<byte[]> parts = new List<byte[]>();

        internal override bool Begun
        {
            get { return parts.Count > 0; }
        }

        protected override bool Perform(IntPtr socket, out List<byte[]> result)
        {
            result = parts;
            using (var part = new Message())
            {
                bool more;
                do
                {
                    if (new Transfer(Transfer.Kind.ReceiveMessage, (void*)part.Pointer, 0, 0).Try(socket) < 0)
                        return false;
                    more = part.HasMore;
                    parts.Add(part.ToArray());
                }
                while (more);
            }
            return true;
        }
    }

    internal sealed unsafe class PartsSendOperation : Operation<int>
    {
        readonly IList<byte[]> parts;
        int next;

        internal PartsSendOperation(IList<byte[]> parts)
        {
            this.parts = parts;
        }

        internal override bool Begun
        {
            get { return next > 0; }
        }

        protected override bool Perform(IntPtr socket, out int result)
        {
            result = 0;
            for (; next < parts.Count; next++)
            {
                var part = parts[next];
                fixed (byte* bytes = part)
                {
                    int flags = next + 1 < parts.Count ? Native.SendMore : 0;
                    if (new Transfer(Transfer.Kind.Send, bytes, part.Length, flags).Try(socket) < 0)
                        return false;
                }
            }
            return true;
        }
    }

#if SPANS
    /// <summary>One step of a stream of parts.</summary>
    internal sealed unsafe class StepOperation : Operation<bool>
    {
        readonly Message message;

        internal StepOperation(Message message)
        {
            this.message = message;
        }

        protected override bool Perform(IntPtr socket, out bool result)
        {
            result = new Transfer(Transfer.Kind.ReceiveMessage, (void*)message.Pointer, 0, 0).Try(socket) >= 0;
            GC.KeepAlive(message);
            return result;
        }
    }

    internal sealed unsafe class MemoryReceiveOperation : Operation<int>
    {
        readonly Memory<byte> buffer;

        internal MemoryReceiveOperation(Memory<byte> buffer)
        {
            this.buffer = buffer;
        }

        protected override bool Perform(IntPtr socket, out int result)
        {
            using (var pin = buffer.Pin())
                result = new Transfer(Transfer.Kind.Receive, pin.Pointer, buffer.Length, 0).Try(socket);
            return result >= 0;
        }
    }

    internal sealed unsafe class MemorySendOperation : Operation<int>
    {
        readonly ReadOnlyMemory<byte> data;
        readonly int flags;

        internal MemorySendOperation(ReadOnlyMemory<byte> data, int flags)
        {
            this.data = data;
            this.flags = flags;
        }

        protected override bool Perform(IntPtr socket, out int result)
        {
            using (var pin = data.Pin())
                result = new Transfer(Transfer.Kind.Send, pin.Pointer, data.Length, flags).Try(socket);
            return result >= 0;
        }
    }
#endif
}
