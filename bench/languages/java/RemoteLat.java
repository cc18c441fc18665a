import java.util.Arrays;
import java.util.Locale;
import org.zeromq.ZMQ;

/** Asks and waits for the answer, one request at a time. */
public final class RemoteLat {
    public static void main(String[] arguments) {
        Bench bench = new Bench(arguments);
        int rounds = bench.count;
        ZMQ.Context context = ZMQ.context(1);
        ZMQ.Socket socket = context.socket(ZMQ.REQ);
        socket.connect(bench.endpoint);
        byte[] request = new byte[bench.size];
        long[] times = new long[rounds];
        long begin = System.nanoTime();
        long last = begin;
        for (int number = 0; number < bench.warmUp + rounds; number++) {
            if (number == bench.warmUp) {
                begin = System.nanoTime();
                last = begin;
            }
            Bench.number(request, number);
            socket.send(request, 0);
            bench.check(socket.recv(0), number);
            if (number >= bench.warmUp) {
                long now = System.nanoTime();
                times[number - bench.warmUp] = now - last;
                last = now;
            }
        }
        long total = last - begin;
        Arrays.sort(times);
        System.out.printf(Locale.ROOT,
                "{\"rounds\":%d,\"size\":%d,\"seconds\":%.9f,\"mean_us\":%.4f,\"p50_us\":%.4f,\"p99_us\":%.4f,\"verified\":true}%n",
                rounds, bench.size, total / 1e9, total / 2e3 / rounds,
                times[rounds / 2] / 2e3, times[(int) (rounds * 99L / 100)] / 2e3);
        socket.close();
        context.term();
    }
}
