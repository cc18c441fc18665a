using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace Tautline
{
    public unsafe partial class Socket
    {
        /// <summary>Sends a copy of the bytes. Waits for a peer that can take them, for at most
        /// <see cref="SendTimeout"/>.</summary>
        /// <param name="data">The bytes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        /// <exception cref="ZmqException">With <see cref="Errno.Again"/> after the timeout.</exception>
        public void Send(byte[] data, bool more = false)
        {
            if (data == null)
                throw new ArgumentNullException(nameof(data));
            fixed (byte* bytes = data)
            {
                int flags = more ? Native.SendMore : 0;
                if (dispatcher != null || Native.zmq_send(socket, bytes, (UIntPtr)(uint)data.Length, flags) < 0)
                    SendLater(Transfer.Kind.Send, bytes, data.Length, flags, Native.zmq_errno());
            }
        }

        /// <summary>Sends a copy of a range of the bytes; see <see cref="Send(byte[], bool)"/>.</summary>
        /// <param name="data">The bytes.</param>
        /// <param name="offset">The start of the range.</param>
        /// <param name="count">The number of bytes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        public void Send(byte[] data, int offset, int count, bool more = false)
        {
            Argument.Range(data, offset, count);
            fixed (byte* bytes = data)
                Send(bytes + offset, count, more);
        }

        /// <summary>Sends a copy of the bytes at an address; see <see cref="Send(byte[], bool)"/>.</summary>
        /// <param name="data">The address of the bytes.</param>
        /// <param name="size">The number of bytes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        [CLSCompliant(false)]
        public void Send(byte* data, int size, bool more = false)
        {
            int flags = more ? Native.SendMore : 0;
            if (dispatcher != null || Native.zmq_send(socket, data, (UIntPtr)(uint)size, flags) < 0)
                SendLater(Transfer.Kind.Send, data, size, flags, Native.zmq_errno());
        }

        /// <summary>Sends a message and empties it.</summary>
        /// <param name="message">The message; unchanged if this fails.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        public void Send(Message message, bool more = false)
        {
            IntPtr pointer = Argument.NotNull(message, nameof(message)).Pointer;
            int flags = more ? Native.SendMore : 0;
            if (dispatcher != null || Native.zmq_msg_send(pointer, socket, flags) < 0)
                SendLater(Transfer.Kind.SendMessage, (void*)pointer, 0, flags, Native.zmq_errno());
            GC.KeepAlive(message);
        }

        /// <summary>Sends a text as UTF-8.</summary>
        /// <param name="text">The text.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        public void Send(string text, bool more = false)
        {
            Send(Encoding.UTF8.GetBytes(Argument.NotNull(text, nameof(text))), more);
        }

        /// <summary>Sends a message of several parts.</summary>
        /// <param name="parts">The parts, at least one.</param>
        public void SendMultipart(IList<byte[]> parts)
        {
            CheckParts(parts);
            for (int at = 0; at < parts.Count; at++)
                Send(parts[at], at + 1 < parts.Count);
        }

        /// <summary>Sends a message of several parts.</summary>
        /// <param name="parts">The parts, at least one.</param>
        public void SendMultipart(params byte[][] parts)
        {
            SendMultipart((IList<byte[]>)parts);
        }

        /// <summary>Sends a copy of the bytes if a peer can take them now.</summary>
        /// <param name="data">The bytes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        /// <returns>True if the bytes were sent.</returns>
        public bool TrySend(byte[] data, bool more = false)
        {
            return TrySend(data, 0, Argument.NotNull(data, nameof(data)).Length, more);
        }

        /// <summary>Sends a copy of a range of the bytes if a peer can take them now.</summary>
        /// <param name="data">The bytes.</param>
        /// <param name="offset">The start of the range.</param>
        /// <param name="count">The number of bytes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        /// <returns>True if the bytes were sent.</returns>
        public bool TrySend(byte[] data, int offset, int count, bool more = false)
        {
            Argument.Range(data, offset, count);
            fixed (byte* bytes = data)
                return Try(new Transfer(Transfer.Kind.Send, bytes + offset, count, more ? Native.SendMore : 0)) >= 0;
        }

        /// <summary>Sends a message if a peer can take it now, and then empties it.</summary>
        /// <param name="message">The message.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        /// <returns>True if the message was sent.</returns>
        public bool TrySend(Message message, bool more = false)
        {
            var pointer = (void*)Argument.NotNull(message, nameof(message)).Pointer;
            bool sent = Try(new Transfer(Transfer.Kind.SendMessage, pointer, 0, more ? Native.SendMore : 0)) >= 0;
            GC.KeepAlive(message);
            return sent;
        }

#if SPANS
        /// <summary>Sends a copy of the bytes; see <see cref="Send(byte[], bool)"/>.</summary>
        /// <param name="data">The bytes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        public void Send(ReadOnlySpan<byte> data, bool more = false)
        {
            fixed (byte* bytes = &MemoryMarshal.GetReference(data))
                Send(bytes, data.Length, more);
        }

        /// <summary>Sends a copy of the bytes if a peer can take them now.</summary>
        /// <param name="data">The bytes.</param>
        /// <param name="more">True if another part of the same message follows.</param>
        /// <returns>True if the bytes were sent.</returns>
        public bool TrySend(ReadOnlySpan<byte> data, bool more = false)
        {
            fixed (byte* bytes = &MemoryMarshal.GetReference(data))
                return Try(new Transfer(Transfer.Kind.Send, bytes, data.Length, more ? Native.SendMore : 0)) >= 0;
        }
#endif

        /// <summary>Slow path of sending, like `ReceiveLater`.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        void SendLater(Transfer.Kind kind, void* data, int size, int flags, int error)
        {
            var part = new Transfer(kind, data, size, flags);
            if ((dispatcher != null ? Blocking(part) : part.Failed(socket, error)) < 0)
                throw ZmqException.Of(Errno.Again);
            GC.KeepAlive(this);
        }

        static void CheckParts(IList<byte[]> parts)
        {
            Argument.NotNull(parts, nameof(parts));
            if (parts.Count == 0)
                throw new ArgumentException("A message must have at least one part.", nameof(parts));
            // Check all parts before sending the first, because a partly sent message cannot be cancelled.
            foreach (var part in parts)
                Argument.NotNull(part, nameof(parts));
        }
    }
}
