using System;
using System.Collections.Generic;

namespace Tautline
{
    /// <summary>Measured sockets while a call that waits has them to itself.</summary>
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
