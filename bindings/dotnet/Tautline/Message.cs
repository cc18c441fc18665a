using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Tautline
{
    /// <summary>A message, or one part of a message, in the library's memory: a zmq_msg_t.</summary>
    /// <remarks>
    /// Reuse one object for many sends and receives: the runtime then allocates no memory. Sending empties the message. Only one
    /// thread at a time may use it.
    /// </remarks>
    public sealed unsafe class Message : IDisposable
    {
        IntPtr pointer;

        /// <summary>Creates an empty message to receive into.</summary>
        public Message()
        {
            Library.Load();
            pointer = Allocate();
            Native.zmq_msg_init(pointer);
        }

        /// <summary>Creates a message of a given size with uninitialized bytes.</summary>
        /// <param name="size">The size in bytes.</param>
        public Message(int size)
            : this()
        {
            Resize(size);
        }

        /// <summary>Creates a message with a copy of the bytes.</summary>
        /// <param name="data">The bytes.</param>
        public Message(byte[] data)
            : this(Argument.NotNull(data, nameof(data)).Length)
        {
            Marshal.Copy(data, 0, Data, data.Length);
        }

        /// <summary>Creates a message from a text, as UTF-8.</summary>
        /// <param name="text">The text.</param>
        public Message(string text)
            : this(Encoding.UTF8.GetBytes(Argument.NotNull(text, nameof(text))))
        {
        }

        /// <summary>Creates a message of a given size with uninitialized bytes, if possible in memory that <c>ipc</c> peers of the
        /// same user can read in place.</summary>
        /// <remarks>Write the bytes, then send the message: such a peer receives it without a copy. The message has ordinary memory
        /// if <see cref="MoveToLoan"/> would return false.</remarks>
        /// <param name="size">The size in bytes.</param>
        public static Message Loan(int size)
        {
            var message = new Message(size);
            message.MoveToLoan();
            return message;
        }

        /// <summary>Frees the memory of an object that was not disposed.</summary>
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

        /// <summary>True if another part of the same message follows.</summary>
        public bool HasMore
        {
            get
            {
                bool more = Native.zmq_msg_more(Pointer) != 0;
                GC.KeepAlive(this);
                return more;
            }
        }

        /// <summary>True if the message was received without a copy, and its bytes are in the memory of the sender's process.
        /// </summary>
        public bool IsLoan
        {
            get
            {
                bool loan = Native.zmq_msg_get(Pointer, Native.IsLoan) == 1;
                GC.KeepAlive(this);
                return loan;
            }
        }

        /// <summary>Address of the bytes. Valid until the message is received into, sent, resized or disposed.</summary>
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
        /// <summary>The bytes. Valid until the message is received into, sent, resized or disposed; keep a reference to it
        /// until then.</summary>
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

        /// <summary>The byte at an index.</summary>
        /// <param name="index">The index, from 0.</param>
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

        /// <summary>Drops the content and makes room for <c>size</c> uninitialized bytes.</summary>
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

        /// <summary>Moves the bytes to memory that <c>ipc</c> peers of the same user can read in place, with a copy if they are not
        /// there. Call it after <see cref="Resize"/>, before the bytes are written.</summary>
        /// <returns>False if the bytes stay in ordinary memory: loans are off, the message is too short, the memory for loans is
        /// exhausted, or the library is not Tautline.</returns>
        public bool MoveToLoan()
        {
            bool moved = Native.zmq_msg_set(Pointer, Native.Loan, 1) == 0;
            GC.KeepAlive(this);
            return moved;
        }

        /// <summary>Copies the bytes.</summary>
        /// <param name="target">The target array, long enough for all bytes.</param>
        /// <param name="offset">The first position to write to.</param>
        /// <returns>The number of bytes.</returns>
        public int CopyTo(byte[] target, int offset = 0)
        {
            int size = Size;
            Argument.Range(target, offset, size);
            Marshal.Copy(Data, target, offset, size);
            GC.KeepAlive(this);
            return size;
        }

        /// <summary>Copies the bytes into a new array.</summary>
        public byte[] ToArray()
        {
            var copy = new byte[Size];
            CopyTo(copy);
            return copy;
        }

        /// <summary>Returns the bytes as UTF-8 text.</summary>
        public override string ToString()
        {
            int size = Size;
            string text = size == 0 ? "" : Encoding.UTF8.GetString((byte*)Data, size);
            GC.KeepAlive(this);
            return text;
        }

        /// <summary>Creates a second message with the same content. The bytes of a long message are shared, not copied.</summary>
        public Message Clone()
        {
            var copy = new Message();
            ZmqException.Check(Native.zmq_msg_copy(copy.pointer, Pointer));
            GC.KeepAlive(this);
            return copy;
        }

        /// <summary>Returns a property of the peer or its connection: <c>Socket-Type</c>, <c>Peer-Address</c>, <c>User-Id</c>, or a
        /// property that the peer has sent.</summary>
        /// <param name="name">The name of the property.</param>
        /// <returns>The value, or null if there is no such property.</returns>
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

        /// <summary>Copies the bytes into a new array, and frees the library's memory of a long message at once.</summary>
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
