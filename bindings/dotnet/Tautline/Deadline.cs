using System;
using System.Diagnostics;

namespace Tautline
{
    /// <summary>When a wait is over.</summary>
    internal struct Deadline
    {
        /// <summary>What a meter tells of a socket is as old as this at most, whoever waits for
        /// it.</summary>
        const int TurnMilliseconds = 1000;

        readonly bool never;
        readonly long end;

        /// <summary>In so many milliseconds; never if that is less than 0.</summary>
        internal Deadline(int timeout)
        {
            never = timeout < 0;
            end = Stopwatch.GetTimestamp() + timeout * Stopwatch.Frequency / 1000;
        }

        internal bool Over
        {
            get { return Left == 0; }
        }

        /// <summary>The milliseconds that are left, at least 0; -1 if there is no end.</summary>
        internal int Left
        {
            get
            {
                long left = end - Stopwatch.GetTimestamp();
                return never ? -1 : left <= 0 ? 0 : (int)Math.Ceiling(left * 1000.0 / Stopwatch.Frequency);
            }
        }

        /// <summary>How long to wait until the numbers of measured sockets are to be renewed, or to
        /// the end.</summary>
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
