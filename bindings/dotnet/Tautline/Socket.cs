using System;

namespace Tautline
{
    /// <summary>A ZeroMQ socket.</summary>
    /// <remarks>
    /// <para>Only one thread at a time may use a socket with blocking or <c>Try</c> methods. Any thread may call the methods whose
    /// names end in <c>Async</c>; from the first such call on, a lock orders all calls.</para>
    /// <para>The garbage collector closes a socket that was not disposed, and never waits for it.</para>
    /// </remarks>
    public partial class Socket : IDisposable
    {
        readonly SocketHandle handle;
        readonly SocketType type;
        // The handle's pointer, null after Dispose: the library then returns ENOTSOCK. Every call keeps `this` alive until it
        // returns.
        IntPtr socket;
        SocketDispatcher dispatcher;
        Message scratch;

        /// <summary>Creates a socket of a given type.</summary>
        /// <param name="context">The context of the socket.</param>
        /// <param name="type">The type.</param>
        public Socket(Context context, SocketType type)
        {
            this.type = type;
            handle = new SocketHandle(Argument.NotNull(context, nameof(context)).Handle, (int)type);
            socket = handle.Pointer;
        }

        /// <summary>Binds the socket to an endpoint: <c>tcp://*:5555</c>, <c>tcp://127.0.0.1:*</c>, <c>ipc:///run/a</c>,
        /// <c>inproc://a</c>, <c>ws://*:8080/a</c>.</summary>
        /// <param name="endpoint">The endpoint.</param>
        /// <returns>The complete endpoint, with the port that the system has chosen for <c>*</c>.</returns>
        public unsafe string Bind(string endpoint)
        {
            At(endpoint, Native.zmq_bind);
            return LastEndpoint;
        }

        /// <summary>Connects to an endpoint. The peer may start later, and a lost connection is reestablished.</summary>
        /// <param name="endpoint">The endpoint.</param>
        public unsafe void Connect(string endpoint)
        {
            At(endpoint, Native.zmq_connect);
        }

        /// <summary>Unbinds the socket from an endpoint.</summary>
        /// <param name="endpoint">The endpoint that <see cref="Bind"/> has returned.</param>
        public unsafe void Unbind(string endpoint)
        {
            At(endpoint, Native.zmq_unbind);
        }

        /// <summary>Ends a connection.</summary>
        /// <param name="endpoint">The endpoint passed to <see cref="Connect"/>.</param>
        public unsafe void Disconnect(string endpoint)
        {
            At(endpoint, Native.zmq_disconnect);
        }

        /// <summary>Closes the socket. Queued messages are sent in the background for up to <see cref="Linger"/>.</summary>
        public void Dispose()
        {
            Dispose(true);
            GC.SuppressFinalize(this);
        }

        /// <summary>Closes the socket.</summary>
        /// <param name="disposing">True if called by <see cref="Dispose()"/>.</param>
        protected virtual void Dispose(bool disposing)
        {
            if (!disposing)
                return;
            RemoveFromMeter();
            var pending = dispatcher;
            if (pending == null)
            {
                socket = IntPtr.Zero;
                handle.Dispose();
            }
            else
            {
                pending.Close(() =>
                {
                    socket = IntPtr.Zero;
                    handle.Dispose();
                });
            }
            scratch?.Dispose();
        }

        internal IntPtr Pointer
        {
            get { return socket; }
        }

        /// <summary>The lock of all calls; null if the socket is neither used asynchronously nor metered.</summary>
        internal SocketDispatcher Dispatcher
        {
            get { return dispatcher; }
        }

        internal bool IsMetered
        {
            get { return dispatcher != null && dispatcher.IsMetered; }
        }

        /// <summary>Called after an endpoint was added or removed.</summary>
        partial void UpdateMeteredEndpoint();

        /// <summary>Called before the socket is closed.</summary>
        partial void RemoveFromMeter();

        unsafe delegate int EndpointCall(IntPtr socket, byte* endpoint);

        unsafe void At(string endpoint, EndpointCall call)
        {
            fixed (byte* text = Library.Text(Argument.NotNull(endpoint, nameof(endpoint))))
            {
                using (Locked())
                {
                    int result;
                    do
                        result = call(socket, text);
                    while (result == -1 && Native.zmq_errno() == (int)Errno.Interrupted);
                    ZmqException.Check(result, endpoint);
                }
            }
            UpdateMeteredEndpoint();
            GC.KeepAlive(this);
        }
    }
}
