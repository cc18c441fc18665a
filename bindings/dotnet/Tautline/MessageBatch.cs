using System;
using System.Runtime.InteropServices;

namespace Tautline
{
    /// <summary>Room for many messages received at once, used again and again: see <see cref="Socket.ReceiveBatch(MessageBatch)"/>.</summary>
    /// <remarks>The messages stay in the library's memory; reading them copies only what is asked for. One thread at a time.</remarks>
    public sealed unsafe class MessageBatch : IDisposable
    {
        readonly int[] sizes;
        IntPtr messages;
        // How many may hold something: those beyond are empty.
        int used;

        /// <summary>Room for that many.</summary>
        /// <param name="capacity">How many messages, or parts of messages.</param>
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

        /// <summary>Frees the memory of one that was forgotten.</summary>
        ~MessageBatch()
        {
            Free();
        }

        /// <summary>How many it has room for.</summary>
        public int Capacity
        {
            get { return sizes.Length; }
        }

        /// <summary>How many it holds.</summary>
        public int Count { get; private set; }

        /// <summary>The size of one.</summary>
        /// <param name="index">Which, from 0.</param>
        public int Size(int index)
        {
            Check(index);
            return sizes[index];
        }

        /// <summary>Whether another part of the same message follows this one, perhaps in the next batch only.</summary>
        /// <param name="index">Which, from 0.</param>
        public bool More(int index)
        {
            bool more = Native.zmq_msg_more(Pointer(index)) != 0;
            GC.KeepAlive(this);
            return more;
        }

        /// <summary>Where the bytes of one are, until the next batch is received or this is disposed.</summary>
        /// <param name="index">Which, from 0.</param>
        public IntPtr Data(int index)
        {
            var data = (IntPtr)Native.zmq_msg_data(Pointer(index));
            GC.KeepAlive(this);
            return data;
        }

        /// <summary>Copies one.</summary>
        /// <param name="index">Which, from 0.</param>
        /// <param name="target">Where to; long enough for all of it.</param>
        /// <param name="offset">From where on.</param>
        /// <returns>Its size.</returns>
        public int CopyTo(int index, byte[] target, int offset = 0)
        {
            int size = Size(index);
            Argument.Range(target, offset, size);
            Marshal.Copy(Data(index), target, offset, size);
            GC.KeepAlive(this);
            return size;
        }

        /// <summary>One in an array of its own.</summary>
        /// <param name="index">Which, from 0.</param>
        public byte[] ToArray(int index)
        {
            var copy = new byte[Size(index)];
            CopyTo(index, copy);
            return copy;
        }

#if SPANS
        /// <summary>The bytes of one, until the next batch is received or this is disposed; keep it until then.</summary>
        /// <param name="index">Which, from 0.</param>
        public ReadOnlySpan<byte> AsSpan(int index)
        {
            return new ReadOnlySpan<byte>((void*)Data(index), Size(index));
        }
#endif

        /// <summary>Frees all messages.</summary>
        public void Dispose()
        {
            Free();
            GC.SuppressFinalize(this);
        }

        /// <summary>Where the next one goes to.</summary>
        internal IntPtr Next
        {
            get { return messages + Count * Native.MessageSize; }
        }

        internal void Took(int size)
        {
            sizes[Count++] = size;
        }

        /// <summary>Frees what earlier batches have left behind the end of this one.</summary>
        internal void Settle()
        {
            for (int at = Count; at < used; at++)
            {
                Native.zmq_msg_close(messages + at * Native.MessageSize);
                Native.zmq_msg_init(messages + at * Native.MessageSize);
            }
            used = Count;
        }

        /// <summary>Begins anew. What is there is freed when something else takes its place.</summary>
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
