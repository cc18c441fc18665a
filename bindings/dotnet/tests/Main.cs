using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Reflection;
using System.Threading;

namespace Tautline.Tests
{
    /// <summary>Marks a test: a static method without arguments that throws if something is wrong.</summary>
    [AttributeUsage(AttributeTargets.Method)]
    sealed class TestAttribute : Attribute
    {
        /// <summary>True if the test needs a feature that libzmq does not have. On libzmq it is skipped.</summary>
        public bool OnTautlineOnly { get; set; }
    }

    /// <summary>Runs all tests, or those whose names contain the second argument: Tests tautline|libzmq [PART].</summary>
    static class Runner
    {
        const int WatchdogMilliseconds = 120000;

        /// <summary>True if the tests expect Tautline as the native library.</summary>
        internal static bool OnTautline;

        static int Main(string[] arguments)
        {
            OnTautline = arguments.Length > 0 && arguments[0] == "tautline";
            string part = arguments.Length > 1 ? arguments[1] : "";
            int passed = 0, failed = 0;
            foreach (var test in Tests().Where(each => Name(each).Contains(part)))
            {
                using (new Timer(state => Hung(Name(test)), null, WatchdogMilliseconds, Timeout.Infinite))
                {
                    try
                    {
                        test.Invoke(null, null);
                        passed++;
                        Console.WriteLine("ok " + Name(test));
                    }
                    catch (Exception error)
                    {
                        failed++;
                        Console.WriteLine("not ok " + Name(test) + ": " + (error.InnerException ?? error));
                    }
                }
            }
            Console.WriteLine("dotnet: {0} passed, {1} failed, 0 skipped", passed, failed);
            return failed == 0 ? 0 : 1;
        }

        static IEnumerable<MethodInfo> Tests()
        {
            return from type in typeof(Runner).Assembly.GetTypes()
                   from method in type.GetMethods(BindingFlags.Static | BindingFlags.NonPublic | BindingFlags.Public)
                   from TestAttribute test in method.GetCustomAttributes(typeof(TestAttribute), false)
                   where OnTautline || !test.OnTautlineOnly
                   orderby type.Name, method.Name
                   select method;
        }

        static string Name(MethodInfo test)
        {
            return test.DeclaringType.Name + "." + test.Name;
        }

        static void Hung(string name)
        {
            Console.WriteLine("not ok " + name + ": hangs");
            Console.WriteLine("dotnet: 0 passed, 1 failed, 0 skipped");
            Console.Out.Flush();
            Process.GetCurrentProcess().Kill();
        }
    }

    /// <summary>Assertions and helpers of the tests.</summary>
    static class Check
    {
        internal static void That(bool condition, string what)
        {
            if (!condition)
                throw new Exception("not so: " + what);
        }

        internal static void Equal<T>(T expected, T found)
        {
            if (!EqualityComparer<T>.Default.Equals(expected, found))
                throw new Exception("expected " + expected + ", found " + found);
        }

        internal static void Bytes(byte[] expected, byte[] found)
        {
            That(expected.SequenceEqual(found), "the same bytes (" + expected.Length + ", " + found.Length + ")");
        }

        internal static T Throws<T>(Action action)
            where T : Exception
        {
            try
            {
                action();
            }
            catch (T error)
            {
                return error;
            }
            throw new Exception("expected a " + typeof(T).Name);
        }

        internal static void Fails(Errno expected, Action action)
        {
            Equal(expected, Throws<ZmqException>(action).Error);
        }

        /// <summary>Asserts that the error's message ends with the expected text, after the library's own text.</summary>
        internal static void Says(string expected, Action action)
        {
            string message = Throws<ZmqException>(action).Message;
            That(message.EndsWith("): " + expected), message);
        }

        /// <summary>Returns bytes that depend on their position and the seed.</summary>
        internal static byte[] Pattern(int size, int seed = 0)
        {
            var bytes = new byte[size];
            for (int at = 0; at < size; at++)
                bytes[at] = (byte)(at * 7 + at / 251 + seed);
            return bytes;
        }
    }

    /// <summary>Two connected sockets.</summary>
    sealed class Couple : IDisposable
    {
        static int number;

        internal readonly Context Context = new Context();
        internal readonly Socket Bound;
        internal readonly Socket Connected;
        internal readonly string Endpoint;

        internal Couple(SocketType bound, SocketType connected, string transport = "tcp", Action<Socket> prepare = null)
        {
            Bound = new Socket(Context, bound);
            Connected = new Socket(Context, connected);
            if (prepare != null)
            {
                prepare(Bound);
                prepare(Connected);
            }
            Endpoint = Bound.Bind(transport == "tcp" ? "tcp://127.0.0.1:*" : "inproc://couple-" + Interlocked.Increment(ref number));
            Connected.Connect(Endpoint);
        }

        public void Dispose()
        {
            Connected.Dispose();
            Bound.Dispose();
            Context.Dispose();
        }
    }
}
