using System;

namespace Tautline
{
    /// <summary>Checks of a caller's arguments.</summary>
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

        /// <summary>Returns a time in whole milliseconds; -1 is infinite.</summary>
        internal static int Milliseconds(TimeSpan time)
        {
            if (time == System.Threading.Timeout.InfiniteTimeSpan)
                return -1;
            double milliseconds = Math.Ceiling(time.TotalMilliseconds);
            if (milliseconds < 0 || milliseconds > int.MaxValue)
                throw new ArgumentOutOfRangeException(nameof(time));
            return (int)milliseconds;
        }

        /// <summary>Returns the time of a number of milliseconds.</summary>
        internal static TimeSpan Time(int milliseconds)
        {
            return milliseconds < 0 ? System.Threading.Timeout.InfiniteTimeSpan : TimeSpan.FromMilliseconds(milliseconds);
        }
    }
}
