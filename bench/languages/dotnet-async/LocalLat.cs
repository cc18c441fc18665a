using System;
using System.Threading.Tasks;
using Tautline;

/// <summary>Sends each request back as its answer.</summary>
static class LocalLat
{
    static void Main(string[] words)
    {
        Run(words).GetAwaiter().GetResult();
    }

    static async Task Run(string[] words)
    {
        var with = new Bench(words);
        using (var context = new Context())
        using (var socket = new ReplySocket(context))
        {
            socket.Bind(with.Endpoint);
            var message = new byte[with.Size];
            for (long number = 0; number < with.WarmUp + with.Count; number++)
            {
                int length = await socket.ReceiveAsync(new Memory<byte>(message));
                with.Check(message, length, number);
                await socket.SendAsync(new ReadOnlyMemory<byte>(message));
            }
        }
    }
}
