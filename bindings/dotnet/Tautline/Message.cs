using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Tautline
{
    /// <summary>A message, or one part of it, in the library's own memory: a zmq_msg_t.</summary>
    /// <remarks>
    /// Nothing is allocated by the runtime when one object is received into, or sent from, again and again. Sending empties it. One
    /// thread at a time may use it.
    /// </remarks>
    public sealed unsafe class Message : IDisposable
    {
        IntPtr pointer;

        /// <summary>An empty one, to receive into.</summary>
        public Message()
        {
            Library.Load();
            pointer = Allocate();
            Native.zmq_msg_init(pointer);
        }

        /// <summary>One of that size, whose bytes are still to be written.</summary>
        /// <param name="size">The size in bytes.</param>
        public Message(int size)
            : this()
        {
            Resize(size);
        }

        /// <summary>A copy of these bytes.</summary>
        /// <param name="data">The bytes.</param>
        public Message(byte[] data)
            : this(Argument.NotNull(data, nameof(data)).Length)
        {
            Marshal.Copy(data, 0, Data, data.Length);
        }

        /// <summary>A text, as UTF-8.</summary>
        /// <param name="text">The text.</param>
        public Message(string text)
            : this(Encoding.UTF8.GetBytes(Argument.NotNull(text, nameof(text))))
        {
        }

        /// <summary>Frees the memory of one that was forgotten.</summary>
        ~Message()
        {
            Free();
        }

        /// <summary>The size in bytes.</summary>
        public int Size
        {
            get
            {
                ulong size = (ulong)Native.zmq_msg_size(Pointer);
                GC.KeepAlive(this);
                return checked((int)size);
            }
        }

        /// <summary>Whether another part of the same message follows.</summary>
        public bool More
        {
            get
            {
                bool more = Native.zmq_msg_more(Pointer) != 0;
                GC.KeepAlive(this);
                return more;
            }
        }

        /// <summary>Where the bytes are. Valid until the message is received into, sent, resized or disposed.</summary>
        public IntPtr Data
        {
            get
            {
                var data = (IntPtr)Native.zmq_msg_data(Pointer);
                GC.KeepAlive(this);
                return data;
            }
        }

#if SPANS
        /// <summary>The bytes. Valid until the message is received into, sent, resized or disposed; keep it until then.</summary>
        public Span<byte> AsSpan()
        {
            return new Span<byte>((void*)Data, Size);
        }
#endif

        internal bool IsDisposed
        {
            get { return pointer == IntPtr.Zero; }
        }

        internal IntPtr Pointer
        {
            get
            {
                if (pointer == IntPtr.Zero)
                    throw new ObjectDisposedException(nameof(Message));
                return pointer;
            }
        }

        /// <summary>One byte.</summary>
        /// <param name="index">Which, from 0.</param>
        public byte this[int index]
        {
            get
            {
                byte value = *At(index);
                GC.KeepAlive(this);
                return value;
            }
            set
            {
                *At(index) = value;
                GC.KeepAlive(this);
            }
        }

        /// <summary>Throws the content away and makes room for that many bytes, which are still to be written.</summary>
        /// <param name="size">The size in bytes.</param>
        public void Resize(int size)
        {
            if (size < 0)
                throw new ArgumentOutOfRangeException(nameof(size));
            Native.zmq_msg_close(Pointer);
            int result = Native.zmq_msg_init_size(pointer, (UIntPtr)(uint)size);
            if (result != 0)
            {
                var error = ZmqException.Of((Errno)Native.zmq_errno());
                Native.zmq_msg_init(pointer);
                throw error;
            }
            GC.KeepAlive(this);
        }

        /// <summary>Copies the bytes.</summary>
        /// <param name="target">Where to; long enough for all.</param>
        /// <param name="offset">From where on.</param>
        /// <returns>How many.</returns>
        public int CopyTo(byte[] target, int offset = 0)
        {
            int size = Size;
            Argument.Range(target, offset, size);
            Marshal.Copy(Data, target, offset, size);
            GC.KeepAlive(this);
            return size;
        }

        /// <summary>The bytes in an array of their own.</summary>
        public byte[] ToArray()
        {
            var copy = new byte[Size];
            CopyTo(copy);
            return copy;
        }

        /// <summary>The bytes as UTF-8 text.</summary>
        public override string ToString()
        {
            int size = Size;
            string text = size == 0 ? "" : Encoding.UTF8.GetString((byte*)Data, size);
            GC.KeepAlive(this);
            return text;
        }

        /// <summary>A second message with the same content; a long one is shared, not copied.</summary>
        public Message Clone()
        {
            var copy = new Message();
            ZmqException.Check(Native.zmq_msg_copy(copy.pointer, Pointer));
            GC.KeepAlive(this);
            return copy;
        }

        /// <summary>What the peer or its connection is known by: <c>Socket-Type</c>, <c>Peer-Address</c>, <c>User-Id</c> and what
        /// the peer has sent.</summary>
        /// <param name="name">The name of the property.</param>
        /// <returns>The value, or null if there is none of that name.</returns>
        public string GetProperty(string name)
        {
            fixed (byte* text = Library.Text(Argument.NotNull(name, nameof(name))))
            {
                string value = Library.Text(Native.zmq_msg_gets(Pointer, text));
                GC.KeepAlive(this);
                return value;
            }
        }

        /// <summary>Frees the memory.</summary>
        public void Dispose()
        {
            Free();
            GC.SuppressFinalize(this);
        }

        /// <summary>The bytes in an array of their own; of a long message the library's memory is freed at once.</summary>
        internal byte[] Take()
        {
            var copy = ToArray();
            if (copy.Length > 65536)
                Resize(0);
            return copy;
        }

        byte* At(int index)
        {
            if ((uint)index >= (uint)Size)
                throw new ArgumentOutOfRangeException(nameof(index));
            return Native.zmq_msg_data(pointer) + index;
        }

        void Free()
        {
            IntPtr old = pointer;
            pointer = IntPtr.Zero;
            if (old == IntPtr.Zero)
                return;
            Native.zmq_msg_close(old);
            Marshal.FreeHGlobal(old);
        }

        static IntPtr Allocate()
        {
            return Marshal.AllocHGlobal(Native.MessageSize);
        }
    }
}
