#if METERS
using System;

namespace Tautline
{
    public partial class Socket
    {
        MeteredSocket metered;

        /// <summary>Adds the socket to the meter <c>Tautline</c> (System.Diagnostics.Metrics) until
        /// the socket is disposed. The meter reports all of <see cref="Statistics"/> while a
        /// listener is attached. Needs Tautline.</summary>
        /// <remarks>Call it on the thread that may use the socket. Afterwards a lock orders all
        /// calls, as on a socket that is used asynchronously. A call that waits for a message
        /// reads the numbers first.</remarks>
        /// <param name="name">The value of the tag <c>socket.name</c>, unique among the metered
        /// sockets. Null stands for the type and a number: <c>push-1</c>. A second call changes the
        /// name.</param>
        /// <exception cref="ArgumentException">Another metered socket has this name.</exception>
        /// <exception cref="NotSupportedException">The library is not Tautline.</exception>
        public void EnableMetrics(string name = null)
        {
            SocketStatistics now;
            if (!TryGetStatistics(out now))
                throw StatisticsNotSupported();
            metered = SocketMeter.Add(this, metered, name);
            UpdateMeteredEndpoint();
            GetDispatcher().IsMetered = true;
        }

        partial void UpdateMeteredEndpoint()
        {
            if (metered != null)
                metered.Endpoint = LastEndpoint;
        }

        partial void RemoveFromMeter()
        {
            if (metered != null)
                SocketMeter.Remove(metered);
        }
    }
}
#endif
