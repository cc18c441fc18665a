using System;
using System.Collections.Generic;

namespace Tautline
{
    /// <summary>Metered sockets that are lent to a waiting call for exclusive use.</summary>
    internal struct ExclusiveAccess : IDisposable
    {
        readonly List<SocketDispatcher> lent;

        internal ExclusiveAccess(IEnumerable<Socket> sockets, bool withhold = false)
        {
            lent = new List<SocketDispatcher>();
            foreach (var socket in sockets)
            {
                if (socket == null || !socket.IsMetered)
                    continue;
                socket.Dispatcher.Lend(withhold);
                lent.Add(socket.Dispatcher);
            }
        }

        public void Dispose()
        {
            foreach (var dispatcher in lent)
                dispatcher.Return();
        }
    }
}
