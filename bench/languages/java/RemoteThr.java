import org.zeromq.ZMQ;

/** Sends numbered messages as fast as the socket takes them. */
public final class RemoteThr {
    public static void main(String[] arguments) {
        Bench bench = new Bench(arguments);
        ZMQ.Context context = ZMQ.context(1);
        ZMQ.Socket socket = context.socket(ZMQ.PUSH);
        socket.connect(bench.endpoint);
        // JeroMQ keeps the array that it is given until it is sent: each message needs its own.
        for (int number = 0; number < bench.warmUp + bench.count; number++) {
            byte[] message = new byte[bench.size];
            Bench.number(message, number);
            socket.send(message, 0);
        }
        socket.close();
        context.term();
    }
}
