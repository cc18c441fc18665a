using System;

namespace Tautline
{
    /// <summary>Forwards messages between two sockets in both directions.</summary>
    public static class Proxy
    {
        /// <summary>Runs until the context is shut down.</summary>
        /// <param name="frontend">The first socket.</param>
        /// <param name="backend">The second socket.</param>
        /// <param name="capture">Receives a copy of every message, if it is not null.</param>
        public static void Run(Socket frontend, Socket backend, Socket capture = null)
        {
            Argument.NotNull(frontend, nameof(frontend));
            Argument.NotNull(backend, nameof(backend));
            IntPtr third = capture == null ? IntPtr.Zero : capture.Pointer;
            using (new ExclusiveAccess(new[] { frontend, backend, capture }, true))
                Ended(() => Native.zmq_proxy(frontend.Pointer, backend.Pointer, third));
            GC.KeepAlive(frontend);
            GC.KeepAlive(backend);
            GC.KeepAlive(capture);
        }

        /// <summary>Runs until the context is shut down or <c>TERMINATE</c> arrives.</summary>
        /// <param name="frontend">The first socket.</param>
        /// <param name="backend">The second socket.</param>
        /// <param name="capture">Receives a copy of every message, if it is not null.</param>
        /// <param name="control">Socket that receives <c>PAUSE</c>, <c>RESUME</c>, <c>STATISTICS</c> and <c>TERMINATE</c>:
        /// PAIR, REP, PULL or SUB.</param>
        public static void RunSteerable(Socket frontend, Socket backend, Socket capture, Socket control)
        {
            Argument.NotNull(frontend, nameof(frontend));
            Argument.NotNull(backend, nameof(backend));
            Argument.NotNull(control, nameof(control));
            IntPtr third = capture == null ? IntPtr.Zero : capture.Pointer;
            using (new ExclusiveAccess(new[] { frontend, backend, capture, control }, true))
                Ended(() => Native.zmq_proxy_steerable(frontend.Pointer, backend.Pointer, third, control.Pointer));
            GC.KeepAlive(frontend);
            GC.KeepAlive(backend);
            GC.KeepAlive(capture);
            GC.KeepAlive(control);
        }

        static void Ended(Func<int> run)
        {
            while (run() == -1)
            {
                var error = (Errno)Native.zmq_errno();
                if (error == Errno.Terminated)
                    return;
                if (error != Errno.Interrupted)
                    throw ZmqException.Of(error);
            }
        }
    }
}
