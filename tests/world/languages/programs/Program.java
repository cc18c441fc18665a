import org.zeromq.ZMQ;

public class Program {
    public static void main(String[] arguments) {
        ZMQ.Context context = ZMQ.context(1);
        ZMQ.Socket push = context.socket(ZMQ.PUSH), pull = context.socket(ZMQ.PULL);
        int port = pull.bindToRandomPort("tcp://127.0.0.1");
        push.connect("tcp://127.0.0.1:" + port);
        for (int number = 0; number < 1000; number++) {
            push.send("x" + number);
            if (!pull.recvStr().equals("x" + number)) throw new Error();
        }
        push.close();
        pull.close();
        context.term();
        System.out.println("ok");
    }
}
