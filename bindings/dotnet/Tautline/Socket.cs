using System;

namespace Tautline
{
    /// <summary>A ZeroMQ socket.</summary>
    /// <remarks>
    /// <para>One thread at a time may use a socket by the methods that block or try. The methods whose names end in <c>Async</c> can be
    /// called from any thread; from the first of them on, a lock orders all calls.</para>
    /// <para>A socket that is forgotten is closed by the collector, and never makes it wait.</para>
    /// </remarks>
    public partial class Socket : IDisposable
    {
        readonly SocketHandle handle;
        readonly SocketType type;
        // The handle's pointer, null after Dispose: the library then says ENOTSOCK. Every call keeps `this` alive to its end.
        IntPtr socket;
        Dispatch dispatch;
        Message scratch;

        /// <summary>A socket of that type.</summary>
        /// <param name="context">What it lives in.</param>
        /// <param name="type">Its pattern.</param>
        public Socket(Context context, SocketType type)
        {
            this.type = type;
            handle = new SocketHandle(Argument.NotNull(context, nameof(context)).Handle, (int)type);
            socket = handle.Pointer;
        }

        /// <summary>Waits for peers at an endpoint: <c>tcp://*:5555</c>, <c>tcp://127.0.0.1:*</c>, <c>ipc:///run/a</c>,
        /// <c>inproc://a</c>, <c>ws://*:8080/a</c>.</summary>
        /// <param name="endpoint">Where.</param>
        /// <returns>The endpoint in full, with the port that the system has chosen for <c>*</c>.</returns>
        public unsafe string Bind(string endpoint)
        {
            At(endpoint, Native.zmq_bind);
            return LastEndpoint;
        }

        /// <summary>Connects to an endpoint, whether or not anybody is there yet, and again whenever the connection is lost.</summary>
        /// <param name="endpoint">Where.</param>
        public unsafe void Connect(string endpoint)
        {
            At(endpoint, Native.zmq_connect);
        }

        /// <summary>Does not wait there any more.</summary>
        /// <param name="endpoint">What <see cref="Bind"/> has returned.</param>
        public unsafe void Unbind(string endpoint)
        {
            At(endpoint, Native.zmq_unbind);
        }

        /// <summary>Ends a connection.</summary>
        /// <param name="endpoint">As it was given to <see cref="Connect"/>.</param>
        public unsafe void Disconnect(string endpoint)
        {
            At(endpoint, Native.zmq_disconnect);
        }

        /// <summary>Closes the socket. What it has still to send goes on for <see cref="Linger"/> in the background.</summary>
        public void Dispose()
        {
            Dispose(true);
            GC.SuppressFinalize(this);
        }

        /// <summary>Closes the socket.</summary>
        /// <param name="disposing">Whether by <see cref="Dispose()"/>.</param>
        protected virtual void Dispose(bool disposing)
        {
            if (!disposing)
                return;
            Leave();
            var pending = dispatch;
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

        /// <summary>The lock of all calls; null for a socket that neither is used asynchronously nor measured.</summary>
        internal Dispatch Waits
        {
            get { return dispatch; }
        }

        internal bool IsMeasured
        {
            get { return dispatch != null && dispatch.Counted; }
        }

        /// <summary>An endpoint was added or taken away.</summary>
        partial void Moved();

        /// <summary>The socket is about to be closed.</summary>
        partial void Leave();

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
            Moved();
            GC.KeepAlive(this);
        }
    }
}
