using Tautline;

/// <summary>Sends a request and waits for the answer, one at a time.</summary>
static class RemoteLat
{
    static void Main(string[] words)
    {
        var with = new Bench(words);
        using (var context = new Context())
        using (var socket = new RequestSocket(context))
        {
            Bench.Secure(socket);
            socket.Connect(with.Endpoint);
            var request = new byte[with.Size];
            var answer = new byte[with.Size];
            var times = new long[with.Count];
            long begin = Bench.Now(), last = begin;
            for (long number = 0; number < with.WarmUp + with.Count; number++)
            {
                if (number == with.WarmUp)
                    begin = last = Bench.Now();
                Bench.Write(request, number);
                socket.Send(request);
                int length = socket.Receive(answer);
                with.Check(answer, length, number);
                if (number >= with.WarmUp)
                {
                    long now = Bench.Now();
                    times[number - with.WarmUp] = now - last;
                    last = now;
                }
            }
            with.ReportRounds(last - begin, times);
        }
    }
}
