using System;

namespace Tautline
{
    /// <summary>Checks of what a caller has passed.</summary>
    internal static class Argument
    {
        internal static T NotNull<T>(T value, string name)
            where T : class
        {
            if (value == null)
                throw new ArgumentNullException(name);
            return value;
        }

        /// <summary>Throws unless the range lies within the array.</summary>
        internal static void Range(byte[] array, int offset, int count)
        {
            if (array == null)
                throw new ArgumentNullException(nameof(array));
            if ((uint)offset > (uint)array.Length || (uint)count > (uint)(array.Length - offset))
                throw new ArgumentOutOfRangeException(nameof(count), "The range does not lie within the array.");
        }

        /// <summary>A time in whole milliseconds, -1 for ever.</summary>
        internal static int Milliseconds(TimeSpan time)
        {
            if (time == System.Threading.Timeout.InfiniteTimeSpan)
                return -1;
            double milliseconds = Math.Ceiling(time.TotalMilliseconds);
            if (milliseconds < 0 || milliseconds > int.MaxValue)
                throw new ArgumentOutOfRangeException(nameof(time));
            return (int)milliseconds;
        }

        /// <summary>The time of so many milliseconds.</summary>
        internal static TimeSpan Time(int milliseconds)
        {
            return milliseconds < 0 ? System.Threading.Timeout.InfiniteTimeSpan : TimeSpan.FromMilliseconds(milliseconds);
        }
    }
}
