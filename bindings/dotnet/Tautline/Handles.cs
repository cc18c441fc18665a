using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Tautline
{
    /// <summary>A handle that knows whether it is the collector that lets go of it.</summary>
    internal abstract class Handle : SafeHandle
    {
        /// <summary>Whether this thread, the finalizer's, is just letting go of a handle.</summary>
        [ThreadStatic]
        protected static bool Finalizing;

        protected Handle()
            : base(IntPtr.Zero, true)
        {
        }

        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }

        protected override void Dispose(bool disposing)
        {
            bool before = Finalizing;
            Finalizing = before || !disposing;
            try
            {
                base.Dispose(disposing);
            }
            finally
            {
                Finalizing = before;
            }
        }
    }

    /// <summary>A context. Each socket holds a reference: the context ends when the last has gone, in whatever order that is.</summary>
    internal sealed class ContextHandle : Handle
    {
        internal ContextHandle()
        {
            SetHandle(Native.zmq_ctx_new());
            if (IsInvalid)
                throw ZmqException.Of((Errno)Native.zmq_errno());
        }

        protected override bool ReleaseHandle()
        {
            IntPtr context = handle;
            if (!Finalizing)
                return End(context);
            // Ending may wait for messages that linger; the finalizer thread must not.
            try
            {
                new Thread(() => End(context)) { IsBackground = true, Name = "ZMQ end of a context" }.Start();
            }
            catch (Exception)
            {
                // No memory for a thread, or the process is ending, which ends the context too.
                return false;
            }
            return true;
        }

        static bool End(IntPtr context)
        {
            int result;
            do
                result = Native.zmq_ctx_term(context);
            while (result == -1 && Native.zmq_errno() == (int)Errno.Interrupted);
            return result == 0;
        }
    }

    /// <summary>A socket.</summary>
    internal sealed class SocketHandle : Handle
    {
        readonly ContextHandle context;

        internal SocketHandle(ContextHandle context, int type)
        {
            bool held = false;
            context.DangerousAddRef(ref held);
            SetHandle(Native.zmq_socket(context.DangerousGetHandle(), type));
            if (IsInvalid)
            {
                var error = ZmqException.Of((Errno)Native.zmq_errno());
                context.DangerousRelease();
                GC.SuppressFinalize(this);
                throw error;
            }
            this.context = context;
        }

        /// <summary>The pointer. Whoever uses it keeps this object alive.</summary>
        internal IntPtr Pointer
        {
            get { return handle; }
        }

        protected override bool ReleaseHandle()
        {
            bool closed = Native.zmq_close(handle) == 0;
            context.DangerousRelease();
            return closed;
        }
    }
}
