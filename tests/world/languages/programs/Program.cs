using System;
using Tautline;

public static class Program
{
    public static void Main()
    {
        using (var context = new Context())
        using (var push = new PushSocket(context))
        using (var pull = new PullSocket(context))
        {
            push.Connect(pull.Bind("tcp://127.0.0.1:*"));
            for (int number = 0; number < 1000; number++)
            {
                push.Send("x" + number);
                if (pull.ReceiveString() != "x" + number) throw new Exception();
            }
        }
        Console.WriteLine("ok");
    }
}
