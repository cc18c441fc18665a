using System;

namespace Tautline
{
    /// <summary>The errors that ZeroMQ adds, and the most common system errors, with Linux's numbers.</summary>
    /// <remarks><see cref="ZmqException.Error"/> can also hold any other error number of the system.</remarks>
    public enum Errno
    {
        /// <summary>The caller may not do this.</summary>
        Permission = 1,
        /// <summary>Not found: an unbound inproc endpoint, an unknown file or an unknown endpoint.</summary>
        NotFound = 2,
        /// <summary>A signal interrupted the wait. If possible, the binding resumes the wait.</summary>
        Interrupted = 4,
        /// <summary>The socket is not ready: no message to receive, no peer to send to, or the timeout has passed.</summary>
        Again = 11,
        /// <summary>No memory.</summary>
        NoMemory = 12,
        /// <summary>An invalid pointer.</summary>
        BadAddress = 14,
        /// <summary>The resource is busy.</summary>
        Busy = 16,
        /// <summary>No such device or interface.</summary>
        NoDevice = 19,
        /// <summary>An invalid argument or option.</summary>
        InvalidArgument = 22,
        /// <summary>Too many sockets in the context.</summary>
        TooManyFiles = 24,
        /// <summary>A message that is too long.</summary>
        MessageSize = 90,
        /// <summary>A transport protocol that the library does not support.</summary>
        ProtocolNotSupported = 93,
        /// <summary>The socket's type cannot do this.</summary>
        NotSupported = 95,
        /// <summary>The address is already in use.</summary>
        AddressInUse = 98,
        /// <summary>The address does not belong to this machine.</summary>
        AddressNotAvailable = 99,
        /// <summary>The socket is closed or invalid.</summary>
        NotASocket = 88,
        /// <summary>A mandatory ROUTER does not know the peer.</summary>
        HostUnreachable = 113,
        /// <summary>The socket's pattern does not allow this now, for example a second request before the answer.</summary>
        StateMachine = 156384763,
        /// <summary>The socket's type does not support that protocol.</summary>
        IncompatibleProtocol = 156384764,
        /// <summary>The context has been shut down.</summary>
        Terminated = 156384765,
        /// <summary>There is no suitable I/O thread.</summary>
        NoThread = 156384766,
    }

    /// <summary>An error of the library, with its number.</summary>
    public class ZmqException : Exception
    {
        /// <summary>Creates an exception for an error number.</summary>
        /// <param name="error">The number, as zmq_errno(3) gives it.</param>
        public ZmqException(Errno error)
            : this(error, Describe(error))
        {
        }

        /// <summary>Creates an exception for an error number, with a custom message.</summary>
        /// <param name="error">The number, as zmq_errno(3) gives it.</param>
        /// <param name="message">The message.</param>
        public ZmqException(Errno error, string message)
            : base(message)
        {
            Error = error;
        }

        /// <summary>The error's number.</summary>
        public Errno Error { get; private set; }

        static string Describe(Errno error)
        {
            Library.Load();
            return Library.Text(Native.zmq_strerror((int)error)) + " (" + error + ")";
        }

        internal static Exception Of(Errno error)
        {
            return error == Errno.Terminated ? new ContextTerminatedException() : new ZmqException(error);
        }

        /// <summary>Throws if a call has returned -1.</summary>
        internal static void Check(int result)
        {
            if (result == -1)
                throw Of((Errno)Native.zmq_errno());
        }

        /// <summary>Throws if a call with an endpoint has returned -1, and names it.</summary>
        internal static void Check(int result, string endpoint)
        {
            if (result == -1)
                throw About((Errno)Native.zmq_errno(), endpoint);
        }

        /// <summary>The exception for an error that names what it is about.</summary>
        internal static Exception About(Errno error, string what)
        {
            return error == Errno.Terminated
                ? new ContextTerminatedException() : new ZmqException(error, Describe(error) + ": " + what);
        }

        /// <summary>Creates the exception for a failed send or receive, with the call that the socket's pattern requires.</summary>
        internal static Exception Of(Errno error, IntPtr socket, bool sending)
        {
            if (error != Errno.StateMachine && error != Errno.NotSupported)
                return Of(error);
            var type = (SocketType)Option.GetInt(socket, Option.Type);
            if (error == Errno.NotSupported)
                return About(error, type + " sockets do not " + (sending ? "send" : "receive"));
            switch (type)
            {
                case SocketType.Request:
                    return About(error, sending ? "Request must receive the reply to its last request first"
                        : "Request must send a request first");
                case SocketType.Reply:
                    return About(error, sending ? "Reply must receive a request first" : "Reply must reply to the last request first");
                default:
                    return Of(error);
            }
        }
    }

    /// <summary>The context was shut down or disposed: the socket can only be disposed.</summary>
    public sealed class ContextTerminatedException : ZmqException
    {
        /// <summary>The exception.</summary>
        public ContextTerminatedException()
            : base(Errno.Terminated)
        {
        }
    }
}
