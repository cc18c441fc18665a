using System;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text;

namespace Tautline
{
    /// <summary>The native library: Tautline's <c>libzmq.so.5</c>, or libzmq itself.</summary>
    public static unsafe class Library
    {
        static readonly object Gate = new object();
        static volatile bool loaded;

        /// <summary>The version of the ZeroMQ interface that the library implements, for example 4.3.5.</summary>
        public static Version Version
        {
            get
            {
                Load();
                int major, minor, patch;
                Native.zmq_version(&major, &minor, &patch);
                return new Version(major, minor, patch);
            }
        }

        /// <summary>True if the loaded library is Tautline. Only Tautline has <see cref="Socket.Statistics"/>.</summary>
        public static bool IsTautline
        {
            get { return Has("tautline"); }
        }

        /// <summary>Version of Tautline, for example 0.1.0; null on another library.</summary>
        public static Version TautlineVersion
        {
            get
            {
                if (!IsTautline)
                    return null;
                using (var context = new Context())
                {
                    int number = context.GetOption(Option.TautlineVersion);
                    return new Version(number / 10000, number / 100 % 100, number % 100);
                }
            }
        }

        /// <summary>Returns true if the library has a capability: <c>"curve"</c>, <c>"ipc"</c>, <c>"ws"</c>, <c>"draft"</c> and
        /// others.</summary>
        /// <param name="capability">The name, as listed in zmq_has(3).</param>
        public static bool Has(string capability)
        {
            if (capability == null)
                throw new ArgumentNullException(nameof(capability));
            Load();
            fixed (byte* name = Text(capability))
                return Native.zmq_has(name) == 1;
        }

        /// <summary>Loads the library once, before the first call into it.</summary>
        internal static void Load()
        {
            if (loaded)
                return;
            lock (Gate)
            {
                if (loaded)
                    return;
#if SPANS
                NativeLibrary.SetDllImportResolver(typeof(Native).Assembly, Find);
#endif
                try
                {
                    // On the first call of a function, the loader and the JIT compiler would overwrite errno. So call it once here.
                    Native.zmq_errno();
                    ZmqException.Check(0);
                    ZmqException.Check(0, null);
                }
                catch (DllNotFoundException cause)
                {
                    throw new DllNotFoundException("The loader does not find " + Native.Name + ": install Tautline, put the "
                        + "library beside the program, or name its folder in LD_LIBRARY_PATH. " + cause.Message, cause);
                }
                loaded = true;
            }
        }

        /// <summary>Returns a string as NUL-terminated UTF-8 bytes.</summary>
        internal static byte[] Text(string text)
        {
            if (text.IndexOf('\0') >= 0)
                throw new ArgumentException("The text contains a NUL character.");
            var bytes = new byte[Encoding.UTF8.GetMaxByteCount(text.Length) + 1];
            Encoding.UTF8.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        /// <summary>Reads a C string that the library owns.</summary>
        internal static string Text(IntPtr text)
        {
            return text == IntPtr.Zero ? null : Text((byte*)text, int.MaxValue);
        }

        /// <summary>Reads a C string in a buffer of <c>limit</c> bytes.</summary>
        internal static string Text(byte* text, int limit)
        {
            int length = 0;
            while (length < limit && text[length] != 0)
                length++;
            return length == 0 ? "" : Encoding.UTF8.GetString(text, length);
        }

#if SPANS
        static IntPtr Find(string name, Assembly assembly, DllImportSearchPath? path)
        {
            IntPtr library;
            if (name == Native.Name && !RuntimeInformation.IsOSPlatform(OSPlatform.Linux))
            {
                string other = RuntimeInformation.IsOSPlatform(OSPlatform.OSX) ? "libzmq.5.dylib" : "libzmq";
                if (NativeLibrary.TryLoad(other, assembly, path, out library))
                    return library;
            }
            return IntPtr.Zero;
        }
#endif
    }
}
