using System;

namespace Tautline
{
    /// <summary>A context: the I/O threads and the inproc endpoints that its sockets share.</summary>
    /// <remarks>Any thread may use a context. Most programs need only one.</remarks>
    public sealed class Context : IDisposable
    {
        const int IoThreadsOption = 1, MaxSocketsOption = 2, MaxSocketsLimitOption = 3, MaxMessageSizeOption = 5, Ipv6Option = 42,
            BlockyOption = 70;

        readonly ContextHandle handle;

        /// <summary>Creates a context.</summary>
        public Context()
        {
            Library.Load();
            handle = new ContextHandle();
        }

        /// <summary>Number of I/O threads, 1 by default. Set it before you create the first socket.</summary>
        public int IoThreads
        {
            get { return GetOption(IoThreadsOption); }
            set { SetOption(IoThreadsOption, value); }
        }

        /// <summary>Maximum number of open sockets, 1023 by default. Set it before you create the first socket.</summary>
        public int MaxSockets
        {
            get { return GetOption(MaxSocketsOption); }
            set { SetOption(MaxSocketsOption, value); }
        }

        /// <summary>Upper limit for <see cref="MaxSockets"/>.</summary>
        public int MaxSocketsLimit
        {
            get { return GetOption(MaxSocketsLimitOption); }
        }

        /// <summary>Maximum size of a message that can be sent.</summary>
        public int MaxMessageSize
        {
            get { return GetOption(MaxMessageSizeOption); }
            set { SetOption(MaxMessageSizeOption, value); }
        }

        /// <summary>True if new sockets also use IPv6.</summary>
        public bool Ipv6
        {
            get { return GetOption(Ipv6Option) != 0; }
            set { SetOption(Ipv6Option, value ? 1 : 0); }
        }

        /// <summary>True (the default) if new sockets linger without limit. If false, they do not linger.</summary>
        public bool Blocky
        {
            get { return GetOption(BlockyOption) != 0; }
            set { SetOption(BlockyOption, value ? 1 : 0); }
        }

        internal ContextHandle Handle
        {
            get { return handle; }
        }

        /// <summary>Reads a number by the option's number; see zmq_ctx_get(3).</summary>
        /// <param name="option">The number of the option.</param>
        public int GetOption(int option)
        {
            return With(pointer => Native.zmq_ctx_get(pointer, option));
        }

        /// <summary>Sets a number by the option's number; see zmq_ctx_set(3).</summary>
        /// <param name="option">The number of the option.</param>
        /// <param name="value">The value.</param>
        public void SetOption(int option, int value)
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

        /// <summary>Makes every call on the context's sockets fail with <see cref="ContextTerminatedException"/>, including
        /// calls that are waiting now. Afterwards sockets can only be disposed.</summary>
        public void Shutdown()
        {
            With(pointer => Native.zmq_ctx_shutdown(pointer));
        }

        /// <summary>Shuts the context down, and terminates it if all its sockets are closed. Waits until closed sockets have sent
        /// their queued messages (<see cref="Socket.Linger"/>).</summary>
        /// <remarks>Sockets that are still open can only be disposed. Disposing the last one terminates the context, and that call
        /// waits instead.</remarks>
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
