// JeroMQ as a peer. It executes the commands of ../../peer.py, one a line, and answers each with a line.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;
import org.zeromq.ZMsg;

public class Peer {
    private static final int LIMIT_MS = 20_000;
    private final ZContext context = new ZContext();
    private final Map<String, ZMQ.Socket> sockets = new HashMap<>();
    /** Credentials that the handler accepts. Null before the first PLAIN server. */
    private Map<String, String> credentials;

    public static void main(String[] arguments) throws Exception {
        Peer peer = new Peer();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII), 1 << 20);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        for (String line; (line = in.readLine()) != null; out.flush()) {
            try {
                out.println("ok" + peer.carryOut(line.split(" ")));
            } catch (ZMQException error) {
                out.println("error " + ZMQ.Error.findByCode(error.getErrorCode()));
            } catch (RuntimeException error) {
                out.println("error " + error);
            }
        }
        System.exit(0);
    }

    private String carryOut(String[] words) {
        ZMQ.Socket socket = sockets.get(words[1]);
        switch (words[0]) {
            case "socket":
                socket = context.createSocket(SocketType.valueOf(words[2]));
                socket.setReceiveTimeOut(LIMIT_MS);
                socket.setSendTimeOut(LIMIT_MS);
                socket.setLinger(0);
                sockets.put(words[1], socket);
                return "";
            case "set":
                if (credentials != null && words[2].startsWith("PLAIN_")) {
                    credentials.put(words[2], words[3]);
                } else {
                    set(socket, words[2], words[3]);
                }
                return "";
            case "bind":
                check(socket, socket.bind(words[2]));
                return " " + socket.getLastEndpoint();
            case "connect":
                check(socket, socket.connect(words[2]));
                return "";
            case "send":
                for (int i = 2; i < words.length; i++) {
                    check(socket, socket.send(bytes(words[i]), i + 1 < words.length ? ZMQ.SNDMORE : 0));
                }
                return "";
            case "recv":
                ZMsg message = ZMsg.recvMsg(socket);
                if (message == null) {
                    throw new ZMQException(socket.errno());
                }
                StringBuilder answer = new StringBuilder();
                message.forEach(frame -> answer.append(' ').append(hex(frame.getData())));
                return answer.toString();
            case "readable":
                ZMQ.Poller poller = context.createPoller(1);
                poller.register(socket, ZMQ.Poller.POLLIN);
                int count = poller.poll(Long.parseLong(words[2]));
                poller.close();
                return " " + count;
            case "close":
                context.destroySocket(sockets.remove(words[1]));
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private void set(ZMQ.Socket socket, String option, String value) {
        switch (option) {
            case "ROUTING_ID" -> socket.setIdentity(bytes(value));
            case "SUBSCRIBE" -> check(socket, socket.subscribe(bytes(value)));
            case "UNSUBSCRIBE" -> check(socket, socket.unsubscribe(bytes(value)));
            case "ROUTER_MANDATORY" -> check(socket, socket.setRouterMandatory(!value.equals("0")));
            case "SNDHWM" -> check(socket, socket.setSndHWM(Integer.parseInt(value)));
            case "RCVHWM" -> check(socket, socket.setRcvHWM(Integer.parseInt(value)));
            case "PLAIN_SERVER" -> {
                check(socket, socket.setPlainServer(!value.equals("0")));
                credentials = new ConcurrentHashMap<>();
                ZMQ.Socket handler = context.createSocket(SocketType.REP);
                check(handler, handler.bind("inproc://zeromq.zap.01"));
                Thread thread = new Thread(() -> answer(handler));
                thread.setDaemon(true);
                thread.start();
            }
            case "PLAIN_USERNAME" -> check(socket, socket.setPlainUsername(new String(bytes(value), StandardCharsets.UTF_8)));
            case "PLAIN_PASSWORD" -> check(socket, socket.setPlainPassword(new String(bytes(value), StandardCharsets.UTF_8)));
            case "CURVE_SERVER" -> check(socket, socket.setCurveServer(!value.equals("0")));
            case "CURVE_SERVERKEY" -> check(socket, socket.setCurveServerKey(bytes(value)));
            case "CURVE_PUBLICKEY" -> check(socket, socket.setCurvePublicKey(bytes(value)));
            case "CURVE_SECRETKEY" -> check(socket, socket.setCurveSecretKey(bytes(value)));
            default -> throw new IllegalArgumentException(option);
        }
    }

    /** Answers ZAP requests: version, sequence, domain, address, routing id, mechanism, name, password. */
    private void answer(ZMQ.Socket handler) {
        for (ZMsg request; (request = ZMsg.recvMsg(handler)) != null; ) {
            byte[][] parts = request.stream().map(frame -> frame.getData()).toArray(byte[][]::new);
            boolean good = hex(parts[6]).equals(credentials.get("PLAIN_USERNAME")) && hex(parts[7]).equals(credentials.get("PLAIN_PASSWORD"));
            ZMsg reply = new ZMsg();
            reply.add(parts[0]);
            reply.add(parts[1]);
            reply.add(good ? "200" : "400");
            reply.add(good ? "OK" : "no");
            reply.add("");
            reply.add("");
            reply.send(handler);
        }
    }

    private static void check(ZMQ.Socket socket, boolean done) {
        if (!done) {
            throw new ZMQException(socket.errno());
        }
    }

    private static byte[] bytes(String word) {
        return word.equals("-") ? new byte[0] : HexFormat.of().parseHex(word);
    }

    private static String hex(byte[] bytes) {
        return bytes.length == 0 ? "-" : HexFormat.of().formatHex(bytes);
    }
}
