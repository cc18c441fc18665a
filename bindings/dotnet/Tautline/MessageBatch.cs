using System;
using System.Runtime.InteropServices;

namespace Tautline
{
    /// <summary>A reusable buffer for receiving many messages at once: see
    /// <see cref="Socket.ReceiveBatch(MessageBatch)"/>.</summary>
    /// <remarks>The messages stay in the library's memory; reading copies only the requested bytes. For one thread at a
    /// time.</remarks>
    public sealed unsafe class MessageBatch : IDisposable
    {
        readonly int[] sizes;
        IntPtr messages;
        // Number of messages that may have content; all later ones are empty.
        int used;

        /// <summary>Creates a batch with a given capacity.</summary>
        /// <param name="capacity">Maximum number of messages, or parts of messages.</param>
        public MessageBatch(int capacity = 256)
        {
            if (capacity < 1 || capacity > int.MaxValue / Native.MessageSize)
                throw new ArgumentOutOfRangeException(nameof(capacity));
            Library.Load();
            sizes = new int[capacity];
            messages = Marshal.AllocHGlobal(capacity * Native.MessageSize);
            for (int at = 0; at < capacity; at++)
                Native.zmq_msg_init(messages + at * Native.MessageSize);
        }

        /// <summary>Frees the memory of an object that was not disposed.</summary>
        ~MessageBatch()
        {
            Free();
        }

        /// <summary>Maximum number of messages in the batch.</summary>
        public int Capacity
        {
            get { return sizes.Length; }
        }

        /// <summary>Number of messages in the batch.</summary>
        public int Count { get; private set; }

        /// <summary>Returns the size of a message.</summary>
        /// <param name="index">The index, from 0.</param>
        public int GetSize(int index)
        {
            Check(index);
            return sizes[index];
        }

        /// <summary>Returns true if another part of the same message follows, possibly in the next batch.</summary>
        /// <param name="index">The index, from 0.</param>
        public bool HasMore(int index)
        {
            bool more = Native.zmq_msg_more(Pointer(index)) != 0;
            GC.KeepAlive(this);
            return more;
        }

        /// <summary>Returns the address of a message's bytes, valid until the next batch is received or this object is disposed.</summary>
        /// <param name="index">The index, from 0.</param>
        public IntPtr GetData(int index)
        {
            var data = (IntPtr)Native.zmq_msg_data(Pointer(index));
            GC.KeepAlive(this);
            return data;
        }

        /// <summary>Copies a message.</summary>
        /// <param name="index">The index, from 0.</param>
        /// <param name="target">The target array, long enough for the whole message.</param>
        /// <param name="offset">The first position to write to.</param>
        /// <returns>The size of the message.</returns>
        public int CopyTo(int index, byte[] target, int offset = 0)
        {
            int size = GetSize(index);
            Argument.Range(target, offset, size);
            Marshal.Copy(GetData(index), target, offset, size);
            GC.KeepAlive(this);
            return size;
        }

        /// <summary>Copies a message into a new array.</summary>
        /// <param name="index">The index, from 0.</param>
        public byte[] ToArray(int index)
        {
            var copy = new byte[GetSize(index)];
            CopyTo(index, copy);
            return copy;
        }

#if SPANS
        /// <summary>The bytes of a message. Valid until the next batch is received or this object is disposed; keep a reference
        /// to it until then.</summary>
        /// <param name="index">The index, from 0.</param>
        public ReadOnlySpan<byte> AsSpan(int index)
        {
            return new ReadOnlySpan<byte>((void*)GetData(index), GetSize(index));
        }
#endif

        /// <summary>Frees all messages.</summary>
        public void Dispose()
        {
            Free();
            GC.SuppressFinalize(this);
        }

        /// <summary>Address for the next message.</summary>
        internal IntPtr Next
        {
            get { return messages + Count * Native.MessageSize; }
        }

        internal void Added(int size)
        {
            sizes[Count++] = size;
        }

        /// <summary>Frees messages of earlier batches that lie behind the end of this one.</summary>
        internal void FreeStale()
        {
            for (int at = Count; at < used; at++)
            {
                Native.zmq_msg_close(messages + at * Native.MessageSize);
                Native.zmq_msg_init(messages + at * Native.MessageSize);
            }
            used = Count;
        }

        /// <summary>Resets the count. Old messages are freed when new ones replace them.</summary>
        internal void Clear()
        {
            if (messages == IntPtr.Zero)
                throw new ObjectDisposedException(nameof(MessageBatch));
            used = Math.Max(used, Count);
            Count = 0;
        }

        void Check(int index)
        {
            if ((uint)index >= (uint)Count)
                throw new ArgumentOutOfRangeException(nameof(index));
        }

        IntPtr Pointer(int index)
        {
            Check(index);
            return messages + index * Native.MessageSize;
        }

        void Free()
        {
            IntPtr old = messages;
            messages = IntPtr.Zero;
            int held = Math.Max(used, Count);
            Count = 0;
            if (old == IntPtr.Zero)
                return;
            for (int at = 0; at < held; at++)
                Native.zmq_msg_close(old + at * Native.MessageSize);
            Marshal.FreeHGlobal(old);
        }
    }
}
