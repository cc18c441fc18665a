using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    /// <summary>Helpers that await. The socket's methods use pointers and therefore cannot await.</summary>
    internal static class AsyncHelpers
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
