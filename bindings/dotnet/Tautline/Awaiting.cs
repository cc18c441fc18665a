using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>What awaits; the socket's own methods cannot, because they use pointers.</summary>
    internal static class Awaiting
    {
        internal static async Task<byte[]> Bytes(Socket socket, CancellationToken token)
        {
            using (var message = new Message())
            {
                await socket.ReceiveAsync(message, token).ConfigureAwait(false);
                return message.ToArray();
            }
        }

        internal static async Task<string> Text(Socket socket, CancellationToken token)
        {
            using (var message = new Message())
            {
                await socket.ReceiveAsync(message, token).ConfigureAwait(false);
                return message.ToString();
            }
        }
    }
}
