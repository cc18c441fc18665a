using Tautline;

/// <summary>Receives; the first message after the warm-up starts the clock.</summary>
static class LocalThr
{
    static void Main(string[] words)
    {
        var with = new Bench(words);
        using (var context = new Context())
        using (var socket = new PullSocket(context))
        {
            Bench.Secure(socket);
            socket.Bind(with.Endpoint);
            var message = new byte[with.Size];
            for (long number = 0; number <= with.WarmUp; number++)
            {
                int length = socket.Receive(message);
                with.Check(message, length, number);
            }
            long begin = Bench.Now();
            for (long number = with.WarmUp + 1; number < with.WarmUp + with.Count; number++)
            {
                int length = socket.Receive(message);
                with.Check(message, length, number);
            }
            with.ReportStream(Bench.Now() - begin);
        }
    }
}
