using Tautline;

/// <summary>Sends each request back as its answer.</summary>
static class LocalLat
{
    static void Main(string[] words)
    {
        var with = new Bench(words);
        using (var context = new Context())
        using (var socket = new ReplySocket(context))
        {
            Bench.Secure(socket);
            socket.Bind(with.Endpoint);
            var message = new byte[with.Size];
            for (long number = 0; number < with.WarmUp + with.Count; number++)
            {
                int length = socket.Receive(message);
                with.Check(message, length, number);
                socket.Send(message);
            }
        }
    }
}
