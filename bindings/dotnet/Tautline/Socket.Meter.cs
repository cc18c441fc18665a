#if METERS
using System;

namespace Tautline
{
    public partial class Socket
    {
        MeteredSocket metered;

        /// <summary>From now on the meter <c>Tautline</c> (System.Diagnostics.Metrics) tells what
        /// the socket does, until it is disposed: all of <see cref="Statistics"/>, whenever
        /// somebody listens. Only Tautline counts.</summary>
        /// <remarks>To be called by the thread that may use the socket. A lock orders all calls
        /// from then on, as on a socket that is used asynchronously, and waiting for a message asks
        /// for the numbers first.</remarks>
        /// <param name="name">The value of the tag <c>socket.name</c>; none other that is measured
        /// has it. Null is the type and a number: <c>push-1</c>. A second call changes the
        /// name.</param>
        /// <exception cref="ArgumentException">Another socket is measured by that name.</exception>
        /// <exception cref="NotSupportedException">On another library.</exception>
        public void Measure(string name = null)
        {
            SocketStatistics now;
            if (!TryGetStatistics(out now))
                throw DoesNotCount();
            metered = SocketMeter.Add(this, metered, name);
            Moved();
            Ordered().Counted = true;
        }

        partial void Moved()
        {
            if (metered != null)
                metered.Endpoint = LastEndpoint;
        }

        partial void Leave()
        {
            if (metered != null)
                SocketMeter.Remove(metered);
        }
    }
}
#endif
