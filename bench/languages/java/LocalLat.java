import org.zeromq.ZMQ;

/** Answers each request with itself. */
public final class LocalLat {
    public static void main(String[] arguments) {
        Bench bench = new Bench(arguments);
        ZMQ.Context context = ZMQ.context(1);
        ZMQ.Socket socket = context.socket(ZMQ.REP);
        socket.bind(bench.endpoint);
        for (int number = 0; number < bench.warmUp + bench.count; number++) {
            byte[] message = socket.recv(0);
            bench.check(message, number);
            socket.send(message, 0);
        }
        socket.close();
        context.term();
    }
}
