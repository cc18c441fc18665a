using System;

namespace Tautline
{
    /// <summary>What sockets live in: the I/O threads, and the names of inproc endpoints.</summary>
    /// <remarks>Any thread may use a context. Most programs have one.</remarks>
    public sealed class Context : IDisposable
    {
        const int IoThreadsOption = 1, MaxSocketsOption = 2, SocketLimitOption = 3, MaxMessageSizeOption = 5, Ipv6Option = 42,
            BlockyOption = 70;

        readonly ContextHandle handle;

        /// <summary>A context of its own.</summary>
        public Context()
        {
            Library.Load();
            handle = new ContextHandle();
        }

        /// <summary>How many threads do the work of connections: 1. To be set before the first socket.</summary>
        public int IoThreads
        {
            get { return Get(IoThreadsOption); }
            set { Set(IoThreadsOption, value); }
        }

        /// <summary>How many sockets there can be at once: 1023. To be set before the first socket.</summary>
        public int MaxSockets
        {
            get { return Get(MaxSocketsOption); }
            set { Set(MaxSocketsOption, value); }
        }

        /// <summary>The most that <see cref="MaxSockets"/> can be set to.</summary>
        public int SocketLimit
        {
            get { return Get(SocketLimitOption); }
        }

        /// <summary>The longest message that can be sent.</summary>
        public int MaxMessageSize
        {
            get { return Get(MaxMessageSizeOption); }
            set { Set(MaxMessageSizeOption, value); }
        }

        /// <summary>Whether new sockets use IPv6 as well.</summary>
        public bool Ipv6
        {
            get { return Get(Ipv6Option) != 0; }
            set { Set(Ipv6Option, value ? 1 : 0); }
        }

        /// <summary>Whether sockets linger without limit unless told otherwise: true. With false they do not linger.</summary>
        public bool Blocky
        {
            get { return Get(BlockyOption) != 0; }
            set { Set(BlockyOption, value ? 1 : 0); }
        }

        internal ContextHandle Handle
        {
            get { return handle; }
        }

        /// <summary>Reads a number by the option's number; see zmq_ctx_get(3).</summary>
        /// <param name="option">The number of the option.</param>
        public int Get(int option)
        {
            return With(pointer => Native.zmq_ctx_get(pointer, option));
        }

        /// <summary>Sets a number by the option's number; see zmq_ctx_set(3).</summary>
        /// <param name="option">The number of the option.</param>
        /// <param name="value">The value.</param>
        public void Set(int option, int value)
        {
            try
            {
                With(pointer => Native.zmq_ctx_set(pointer, option, value));
            }
            catch (ZmqException exception) when (exception.Error == Errno.InvalidArgument)
            {
                throw ZmqException.About(exception.Error, "option " + option + " of a context does not take the value " + value);
            }
        }

        /// <summary>Makes every call on the context's sockets fail with <see cref="ContextTerminatedException"/>, those too that
        /// are waiting now. Sockets can then only be disposed.</summary>
        public void Shutdown()
        {
            With(pointer => Native.zmq_ctx_shutdown(pointer));
        }

        /// <summary>Shuts the context down, and ends it if no socket is open any more. Waits for what closed sockets have still to
        /// send (<see cref="Socket.Linger"/>).</summary>
        /// <remarks>Sockets that are still open can only be disposed. The last one to be so ends the context, and waits in its stead.
        /// </remarks>
        public void Dispose()
        {
            if (handle.IsClosed)
                return;
            Shutdown();
            handle.Dispose();
        }

        int With(Func<IntPtr, int> call)
        {
            bool held = false;
            try
            {
                handle.DangerousAddRef(ref held);
                int result = call(handle.DangerousGetHandle());
                ZmqException.Check(result);
                return result;
            }
            finally
            {
                if (held)
                    handle.DangerousRelease();
            }
        }
    }
}
