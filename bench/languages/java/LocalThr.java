import java.util.Locale;
import org.zeromq.ZMQ;

/** Receives; the first message after the warm-up starts the clock. */
public final class LocalThr {
    public static void main(String[] arguments) {
        Bench bench = new Bench(arguments);
        ZMQ.Context context = ZMQ.context(1);
        ZMQ.Socket socket = context.socket(ZMQ.PULL);
        socket.bind(bench.endpoint);
        for (int number = 0; number < bench.warmUp + 1; number++) {
            bench.check(socket.recv(0), number);
        }
        long begin = System.nanoTime();
        for (int number = bench.warmUp + 1; number < bench.warmUp + bench.count; number++) {
            bench.check(socket.recv(0), number);
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        System.out.printf(Locale.ROOT,
                "{\"count\":%d,\"size\":%d,\"seconds\":%.9f,\"messages_per_second\":%.1f,\"verified\":true}%n",
                bench.count, bench.size, seconds, (bench.count - 1) / seconds);
        socket.close();
        context.term();
    }
}
