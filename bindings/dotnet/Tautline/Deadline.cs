using System;
using System.Diagnostics;

namespace Tautline
{
    /// <summary>The time at which a wait ends.</summary>
    internal struct Deadline
    {
        /// <summary>Maximum age of the numbers that a meter reports while a call waits on the
        /// socket.</summary>
        const int TurnMilliseconds = 1000;

        readonly bool never;
        readonly long end;

        /// <summary>Creates a deadline in <c>timeout</c> milliseconds. A negative timeout never ends.</summary>
        internal Deadline(int timeout)
        {
            never = timeout < 0;
            end = Stopwatch.GetTimestamp() + timeout * Stopwatch.Frequency / 1000;
        }

        internal bool Over
        {
            get { return Left == 0; }
        }

        /// <summary>Remaining milliseconds, at least 0; -1 without a deadline.</summary>
        internal int Left
        {
            get
            {
                long left = end - Stopwatch.GetTimestamp();
                return never ? -1 : left <= 0 ? 0 : (int)Math.Ceiling(left * 1000.0 / Stopwatch.Frequency);
            }
        }

        /// <summary>Milliseconds to wait until the numbers of metered sockets must be refreshed, or
        /// until the deadline.</summary>
        internal int Turn
        {
            get
            {
                int left = Left;
                return left < 0 || left > TurnMilliseconds ? TurnMilliseconds : left;
            }
        }
    }
}
