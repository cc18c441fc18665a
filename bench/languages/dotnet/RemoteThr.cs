using Tautline;

/// <summary>Sends numbered messages as fast as the socket accepts them.</summary>
static class RemoteThr
{
    static void Main(string[] words)
    {
        var with = new Bench(words);
        using (var context = new Context())
        using (var socket = new PushSocket(context))
        {
            Bench.Secure(socket);
            socket.Connect(with.Endpoint);
            var message = new byte[with.Size];
            for (long number = 0; number < with.WarmUp + with.Count; number++)
            {
                Bench.Write(message, number);
                socket.Send(message);
            }
        }
    }
}
