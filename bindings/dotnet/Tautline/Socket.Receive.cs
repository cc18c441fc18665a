using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace Tautline
{
    public unsafe partial class Socket
    {
        /// <summary>Receives one part into a buffer. Waits for at most <see cref="ReceiveTimeout"/>.</summary>
        /// <param name="buffer">The buffer.</param>
        /// <returns>The length of the part. If it exceeds the buffer, the excess bytes are lost.</returns>
        /// <exception cref="ZmqException">With <see cref="Errno.Again"/> after the timeout.</exception>
        public int Receive(byte[] buffer)
        {
            if (buffer == null)
                throw new ArgumentNullException(nameof(buffer));
            fixed (byte* bytes = buffer)
            {
                int length = dispatcher != null ? -1 : Native.zmq_recv(socket, bytes, (UIntPtr)(uint)buffer.Length, 0);
                return length >= 0 ? length : ReceiveLater(Transfer.Kind.Receive, bytes, buffer.Length, Native.zmq_errno());
            }
        }

        /// <summary>Receives one part into a range of a buffer; see <see cref="Receive(byte[])"/>.</summary>
        /// <param name="buffer">The buffer.</param>
        /// <param name="offset">The first position to write to.</param>
        /// <param name="count">The size of the range in bytes.</param>
        /// <returns>The length of the part. If it exceeds the available size, the excess bytes are lost.</returns>
        public int Receive(byte[] buffer, int offset, int count)
        {
            Argument.Range(buffer, offset, count);
            fixed (byte* bytes = buffer)
                return Receive(bytes + offset, count);
        }

        /// <summary>Receives one part to an address; see <see cref="Receive(byte[])"/>.</summary>
        /// <param name="buffer">The buffer.</param>
        /// <param name="size">The available size in bytes.</param>
        /// <returns>The length of the part. If it exceeds the available size, the excess bytes are lost.</returns>
        [CLSCompliant(false)]
        public int Receive(byte* buffer, int size)
        {
            int length = dispatcher != null ? -1 : Native.zmq_recv(socket, buffer, (UIntPtr)(uint)size, 0);
            return length >= 0 ? length : ReceiveLater(Transfer.Kind.Receive, buffer, size, Native.zmq_errno());
        }

        /// <summary>Receives one part into a message, whose old content is freed.</summary>
        /// <param name="message">The target.</param>
        /// <returns>The length of the part.</returns>
        public int Receive(Message message)
        {
            IntPtr pointer = Argument.NotNull(message, nameof(message)).Pointer;
            int length = dispatcher != null ? -1 : Native.zmq_msg_recv(pointer, socket, 0);
            if (length < 0)
                length = ReceiveLater(Transfer.Kind.ReceiveMessage, (void*)pointer, 0, Native.zmq_errno());
            GC.KeepAlive(message);
            return length;
        }

        /// <summary>Receives one part into a new array.</summary>
        public byte[] ReceiveBytes()
        {
            var message = Scratch();
            Receive(message);
            return message.Take();
        }

        /// <summary>Receives one part as UTF-8 text.</summary>
        public string ReceiveString()
        {
            return Encoding.UTF8.GetString(ReceiveBytes());
        }

        /// <summary>Receives all parts of a message.</summary>
        public List<byte[]> ReceiveMultipart()
        {
            var parts = new List<byte[]>();
            var message = Scratch();
            bool more;
            do
            {
                Receive(message);
                more = message.HasMore;
                parts.Add(message.Take());
            }
            while (more);
            return parts;
        }

        /// <summary>Waits for one part, then takes all available parts without waiting for more.</summary>
        /// <param name="batch">The target. Its old content is dropped.</param>
        /// <returns>The number of parts: at least one, and at most the capacity of the batch.</returns>
        public int ReceiveBatch(MessageBatch batch)
        {
            return ReceiveBatch(batch, true);
        }

        /// <summary>Takes all available parts without waiting.</summary>
        /// <param name="batch">The target. Its old content is dropped.</param>
        /// <returns>The number of parts: from 0 to the capacity of the batch.</returns>
        public int TryReceiveBatch(MessageBatch batch)
        {
            return ReceiveBatch(batch, false);
        }

        /// <summary>Receives one part into a buffer if one is available.</summary>
        /// <param name="buffer">The buffer.</param>
        /// <param name="length">The length of the part. If it exceeds the buffer, the excess bytes are lost.</param>
        /// <returns>True if a part was received.</returns>
        public bool TryReceive(byte[] buffer, out int length)
        {
            if (buffer == null)
                throw new ArgumentNullException(nameof(buffer));
            fixed (byte* bytes = buffer)
                length = Try(new Transfer(Transfer.Kind.Receive, bytes, buffer.Length, 0));
            return length >= 0;
        }

        /// <summary>Receives one part into a message if one is available.</summary>
        /// <param name="message">The target.</param>
        /// <returns>True if a part was received.</returns>
        public bool TryReceive(Message message)
        {
            var pointer = (void*)Argument.NotNull(message, nameof(message)).Pointer;
            bool received = Try(new Transfer(Transfer.Kind.ReceiveMessage, pointer, 0, 0)) >= 0;
            GC.KeepAlive(message);
            return received;
        }

        /// <summary>Receives one part if it arrives within the timeout.</summary>
        /// <param name="message">The target.</param>
        /// <param name="timeout">The maximum time to wait.</param>
        /// <returns>True if a part was received.</returns>
        public bool TryReceive(Message message, TimeSpan timeout)
        {
            if (TryReceive(message))
                return true;
            return Wait(PollEvents.In, timeout) && TryReceive(message);
        }

#if SPANS
        /// <summary>Receives one part into a buffer; see <see cref="Receive(byte[])"/>.</summary>
        /// <param name="buffer">The buffer.</param>
        /// <returns>The length of the part. If it exceeds the buffer, the excess bytes are lost.</returns>
        public int Receive(Span<byte> buffer)
        {
            fixed (byte* bytes = &MemoryMarshal.GetReference(buffer))
                return Receive(bytes, buffer.Length);
        }

        /// <summary>Receives one part into a buffer if one is available.</summary>
        /// <param name="buffer">The buffer.</param>
        /// <param name="length">The length of the part. If it exceeds the buffer, the excess bytes are lost.</param>
        /// <returns>True if a part was received.</returns>
        public bool TryReceive(Span<byte> buffer, out int length)
        {
            fixed (byte* bytes = &MemoryMarshal.GetReference(buffer))
                length = Try(new Transfer(Transfer.Kind.Receive, bytes, buffer.Length, 0));
            return length >= 0;
        }
#endif

        /// <summary>Waits until the socket is ready.</summary>
        /// <param name="events">The events to wait for.</param>
        /// <param name="timeout">The maximum time to wait.</param>
        /// <returns>True if the socket is ready.</returns>
        public bool Wait(PollEvents events, TimeSpan timeout)
        {
            return Wait(events, Argument.Milliseconds(timeout));
        }

        bool Wait(PollEvents events, int timeout)
        {
            var item = new PollItem { Socket = socket, Events = (short)events };
            // zmq_poll would take a closed socket (a null pointer) for descriptor 0.
            if (item.Socket == IntPtr.Zero)
                throw ZmqException.Of(Errno.NotASocket);
            bool ready = dispatcher == null ? Poller.Poll(&item, 1, timeout) > 0 : WaitInTurns(&item, events, timeout);
            GC.KeepAlive(this);
            return ready;
        }

        bool WaitInTurns(PollItem* item, PollEvents events, int timeout)
        {
            var deadline = new Deadline(timeout);
            do
            {
                // After the first asynchronous call, other threads may use the socket during the wait.
                if (dispatcher.Shared)
                    return dispatcher.Wait(events, deadline.Left);
                dispatcher.Lend();
                try
                {
                    if (Poller.Poll(item, 1, deadline.Turn) > 0)
                        return true;
                }
                finally
                {
                    dispatcher.Return();
                }
            }
            while (!deadline.Over);
            return false;
        }

        int ReceiveBatch(MessageBatch batch, bool wait)
        {
            Argument.NotNull(batch, nameof(batch)).Clear();
            while (batch.Count < batch.Capacity)
            {
                int length;
                if (batch.Count > 0 || !wait)
                {
                    length = NextPart(batch.Next);
                    if (length < 0)
                        break;
                }
                else
                {
                    length = dispatcher != null ? -1 : Native.zmq_msg_recv(batch.Next, socket, 0);
                    if (length < 0)
                        length = ReceiveLater(Transfer.Kind.ReceiveMessage, (void*)batch.Next, 0, Native.zmq_errno());
                }
                batch.Added(length);
            }
            batch.FreeStale();
            GC.KeepAlive(batch);
            GC.KeepAlive(this);
            return batch.Count;
        }

        int NextPart(IntPtr message)
        {
            int length = dispatcher != null ? -1 : Native.zmq_msg_recv(message, socket, Native.DontWait);
            return length >= 0 ? length : TryLater(message, Native.zmq_errno());
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        int TryLater(IntPtr message, int error)
        {
            var part = new Transfer(Transfer.Kind.ReceiveMessage, (void*)message, 0, Native.DontWait);
            return dispatcher != null ? dispatcher.Try(ref part) : part.Failed(socket, error);
        }

        /// <summary>Slow path: the socket needs a lock, or the call has failed. The reference to `this` here keeps the object alive
        /// during the call. A separate method keeps the fast path short.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        int ReceiveLater(Transfer.Kind kind, void* data, int size, int error)
        {
            var part = new Transfer(kind, data, size, 0);
            int length = dispatcher != null ? Blocking(part) : part.Failed(socket, error);
            if (length < 0)
                throw ZmqException.Of(Errno.Again);
            GC.KeepAlive(this);
            return length;
        }

        /// <summary>Returns a reusable message for receiving. Only the thread that may use the socket may call it.</summary>
        Message Scratch()
        {
            return scratch ?? (scratch = new Message());
        }
    }
}
