using System;
using System.Runtime.InteropServices;
using System.Security;

namespace Tautline
{
    /// <summary>A zmq_pollitem_t.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct PollItem
    {
        public IntPtr Socket;
        public int Descriptor;
        public short Events;
        public short Ready;
    }

    /// <summary>The functions of libzmq that the binding calls.</summary>
    /// <remarks>
    /// Every argument is a number or a pointer, so the runtime marshals no arguments: a call costs 4 ns on .NET Core. SetLastError
    /// would add 13 ns to each call. Instead, a caller asks <see cref="zmq_errno"/> after a failure. The runtimes
    /// preserve errno during their work at the end of a call (a test verifies this under constant garbage collection). But compiling
    /// a method for its first call may change errno. Therefore the method that makes a call also reads its error.
    /// </remarks>
    [SuppressUnmanagedCodeSecurity]
    internal static unsafe class Native
    {
        /// <summary>The loader's name for libzmq's ABI. <see cref="Library"/> maps it to the names on other systems.</summary>
        internal const string Name = "libzmq.so.5";

        internal const int DontWait = 1;
        internal const int SendMore = 2;
        internal const int MessageSize = 64;
        internal const int IsLoan = 0x54410012;
        internal const int Loan = 0x54410013;

#if NET5_0_OR_GREATER
        // These calls only read a few words, so a GC transition would cost more than the call.
        [SuppressGCTransition]
#endif
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_errno();

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern IntPtr zmq_strerror(int error);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern void zmq_version(int* major, int* minor, int* patch);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_has(byte* capability);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern IntPtr zmq_ctx_new();

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_ctx_term(IntPtr context);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_ctx_shutdown(IntPtr context);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_ctx_set(IntPtr context, int option, int value);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_ctx_get(IntPtr context, int option);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern IntPtr zmq_socket(IntPtr context, int type);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_close(IntPtr socket);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_setsockopt(IntPtr socket, int option, void* value, UIntPtr length);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_getsockopt(IntPtr socket, int option, void* value, UIntPtr* length);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_bind(IntPtr socket, byte* endpoint);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_connect(IntPtr socket, byte* endpoint);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_unbind(IntPtr socket, byte* endpoint);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_disconnect(IntPtr socket, byte* endpoint);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_send(IntPtr socket, void* data, UIntPtr size, int flags);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_recv(IntPtr socket, void* data, UIntPtr size, int flags);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_msg_init(IntPtr message);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_msg_init_size(IntPtr message, UIntPtr size);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_msg_close(IntPtr message);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_msg_copy(IntPtr to, IntPtr from);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_msg_send(IntPtr message, IntPtr socket, int flags);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_msg_recv(IntPtr message, IntPtr socket, int flags);

#if NET5_0_OR_GREATER
        [SuppressGCTransition]
#endif
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern byte* zmq_msg_data(IntPtr message);

#if NET5_0_OR_GREATER
        [SuppressGCTransition]
#endif
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern UIntPtr zmq_msg_size(IntPtr message);

#if NET5_0_OR_GREATER
        [SuppressGCTransition]
#endif
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_msg_more(IntPtr message);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_msg_get(IntPtr message, int property);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_msg_set(IntPtr message, int property, int value);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern IntPtr zmq_msg_gets(IntPtr message, byte* property);

        /// <summary>The timeout is a C long. Windows reads only its lower half.</summary>
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_poll(PollItem* items, int count, IntPtr timeout);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_proxy(IntPtr frontend, IntPtr backend, IntPtr capture);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_proxy_steerable(IntPtr frontend, IntPtr backend, IntPtr capture, IntPtr control);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_socket_monitor(IntPtr socket, byte* endpoint, int events);

        /// <summary>libzmq exports this function only with its draft interface.</summary>
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_socket_monitor_versioned(IntPtr socket, byte* endpoint, ulong events, int version, int type);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_curve_keypair(byte* publicKey, byte* secretKey);

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int zmq_curve_public(byte* publicKey, byte* secretKey);
    }
}
