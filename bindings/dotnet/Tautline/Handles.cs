using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Tautline
{
    /// <summary>A handle that knows whether the garbage collector releases it.</summary>
    internal abstract class Handle : SafeHandle
    {
        /// <summary>True while this thread is the finalizer thread and releases a handle.</summary>
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

    /// <summary>A context. Each socket holds a reference. The context ends when the last reference is released, in any
    /// order.</summary>
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
            // Terminating may wait for lingering messages; the finalizer thread must not wait.
            try
            {
                new Thread(() => End(context)) { IsBackground = true, Name = "ZMQ end of a context" }.Start();
            }
            catch (Exception)
            {
                // There is no memory for a thread, or the process is exiting, which also ends the context.
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

        /// <summary>The pointer. The caller must keep this object alive while it uses the pointer.</summary>
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
