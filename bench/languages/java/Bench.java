import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Shared code of the four programs: arguments, numbered messages, and the line of JSON that the harness reads. */
final class Bench {
    final String endpoint;
    final int size;
    final int count;
    final int warmUp;

    Bench(String[] arguments) {
        endpoint = arguments[0];
        size = Integer.parseInt(arguments[1]);
        count = Integer.parseInt(arguments[2]);
        warmUp = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 1000;
        if (size < 8 || count < 2) {
            throw new IllegalArgumentException("use at least 2 messages of at least 8 bytes");
        }
    }

    static void number(byte[] message, long number) {
        ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN).putLong(0, number);
    }

    /** Ends the program unless the message is the one with that number. */
    void check(byte[] message, long number) {
        if (message == null || message.length != size
                || ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN).getLong(0) != number) {
            System.err.println("message " + number + " is wrong");
            System.exit(1);
        }
    }
}
