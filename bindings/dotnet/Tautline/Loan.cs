using System;
using System.Collections.Generic;

namespace Tautline
{
    /// <summary>Measured sockets that are lent to a waiting call for exclusive use.</summary>
    internal struct Loan : IDisposable
    {
        readonly List<Dispatch> lent;

        internal Loan(IEnumerable<Socket> sockets, bool withhold = false)
        {
            lent = new List<Dispatch>();
            foreach (var socket in sockets)
            {
                if (socket == null || !socket.IsMeasured)
                    continue;
                socket.Waits.Lend(withhold);
                lent.Add(socket.Waits);
            }
        }

        public void Dispose()
        {
            foreach (var waits in lent)
                waits.Return();
        }
    }
}
