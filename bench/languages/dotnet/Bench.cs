using System;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using Tautline;

/// <summary>Shared code of the four programs: arguments, numbered messages, and the line of JSON that the
/// harness reads.</summary>
unsafe struct Bench
{
    public readonly string Endpoint;
    /// <summary>Bytes of each message.</summary>
    public readonly int Size;
    public readonly long Count;
    /// <summary>Number of messages before the measured ones.</summary>
    public readonly long WarmUp;

    /// <summary>True if <see cref="Secure"/> has set keys.</summary>
    static bool encrypted;

    /// <summary>Reads the command line, or ends the program.</summary>
    public Bench(string[] words)
    {
        long size = 0, count = 0, warmUp = 1000;
        if (words.Length < 3 || !long.TryParse(words[1], out size) || !long.TryParse(words[2], out count)
            || words.Length > 3 && !long.TryParse(words[3], out warmUp))
            Fail("arguments: endpoint size count [warm-up]");
        if (size < 8 || count < 2)
            Fail("use at least 2 messages of at least 8 bytes");
        Endpoint = words[0];
        Size = (int)size;
        Count = count;
        WarmUp = warmUp;
    }

    /// <summary>Ends the program unless the message is the one with that number.</summary>
    public void Check(byte[] message, int length, long number)
    {
        if (length != Size || BitConverter.ToInt64(message, 0) != number)
            Fail("message " + number + " is wrong: " + length + " bytes");
    }

    /// <summary>Sets the keys of CURVE, if the environment has some (../curve.sh). A program that knows the key of a
    /// server is a client.</summary>
    public static void Secure(Socket socket)
    {
        string secret = Environment.GetEnvironmentVariable("CURVE_SECRET");
        string server = Environment.GetEnvironmentVariable("CURVE_SERVER");
        if (secret == null)
            return;
        if (server == null)
        {
            socket.CurveServer = true;
        }
        else
        {
            socket.CurveServerKey = server;
            socket.CurvePublicKey = Environment.GetEnvironmentVariable("CURVE_PUBLIC");
        }
        socket.CurveSecretKey = secret;
        encrypted = true;
    }

    /// <summary>Writes the number into the first 8 bytes (the machines that are measured are little-endian).</summary>
    public static void Write(byte[] message, long number)
    {
        fixed (byte* bytes = message)
            *(long*)bytes = number;
    }

    /// <summary>A monotonic clock, in ticks of `Stopwatch.Frequency`.</summary>
    public static long Now()
    {
        return Stopwatch.GetTimestamp();
    }

    /// <summary>Prints the figures of round trips: the total time and the time of each round, in
    /// ticks.</summary>
    public void ReportRounds(long total, long[] times)
    {
        Array.Sort(times);
        int rounds = times.Length;
        Print("{{\"rounds\":{0},\"size\":{1},\"seconds\":{2:F9},\"mean_us\":{3:F4},\"p50_us\":{4:F4},\"p99_us\":{5:F4},\"curve\":{6},\"verified\":true}}",
            rounds, Size, Seconds(total), Half(total) / rounds, Half(times[rounds / 2]), Half(times[rounds * 99L / 100]), Curve());
    }

    /// <summary>Prints the figures of a stream.</summary>
    public void ReportStream(long time)
    {
        Print("{{\"count\":{0},\"size\":{1},\"seconds\":{2:F9},\"messages_per_second\":{3:F1},\"curve\":{4},\"verified\":true}}",
            Count, Size, Seconds(time), (Count - 1) / Seconds(time), Curve());
    }

    static string Curve()
    {
        return encrypted ? "true" : "false";
    }

    static double Seconds(long ticks)
    {
        return ticks / (double)Stopwatch.Frequency;
    }

    static double Half(long ticks)
    {
        return Seconds(ticks) * 1e6 / 2;
    }

    static void Print(string format, params object[] values)
    {
        Console.WriteLine(string.Format(CultureInfo.InvariantCulture, format, values));
    }

    static void Fail(string reason)
    {
        Console.Error.WriteLine(reason);
        Environment.Exit(1);
    }
}
