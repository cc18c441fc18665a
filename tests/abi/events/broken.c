/* Invalid handshakes to the binding side and to the connecting side. */
#include "play.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The bytes of a peer: bytes in place of a greeting, or a mechanism and a frame. */
struct speech {
    const char *bytes;
    size_t length;
    const char *mechanism;
    int as_server;
    int flags;
    const char *frame;
    size_t frame_length;
};

#define BYTES(text) {.bytes = text, .length = sizeof text - 1}
#define COMMAND(mech, server, text)                                                                          \
    {.mechanism = mech, .as_server = server, .flags = 4, .frame = text, .frame_length = sizeof text - 1}

static void speak(int fd, const struct speech *speech)
{
    if (speech->bytes) {
        raw_write(fd, speech->bytes, speech->length);
        return;
    }
    raw_greet(fd, speech->mechanism, speech->as_server);
    if (speech->frame)
        raw_frame(fd, speech->flags, speech->frame, speech->frame_length);
}

static void to_server(const char *transport, const struct speech *speech)
{
    struct watched *server = watch("server", ZMQ_PULL);
    int guest;
    if (speech->mechanism && !strcmp(speech->mechanism, "PLAIN"))
        set(server, ZMQ_PLAIN_SERVER, 1);
    if (speech->mechanism && !strcmp(speech->mechanism, "CURVE")) {
        set(server, ZMQ_CURVE_SERVER, 1);
        set_text(server, ZMQ_CURVE_SECRETKEY, "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6");
    }
    do_bind(server, fresh(transport));
    guest = raw_connect(endpoint_of(server, "bound"));
    speak(guest, speech);
    settle();
    close(guest);
    settle();
    do_close(server);
}

static void to_client(const char *transport, const struct speech *speech)
{
    struct watched *client = watch("client", ZMQ_PUSH);
    const char *end;
    int host = raw_listen(transport, &end);
    set(client, ZMQ_RECONNECT_IVL, LONG);
    if (speech->mechanism && !strcmp(speech->mechanism, "PLAIN"))
        set_text(client, ZMQ_PLAIN_USERNAME, "name");
    if (speech->mechanism && !strcmp(speech->mechanism, "CURVE")) {
        set_text(client, ZMQ_CURVE_PUBLICKEY, "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
        set_text(client, ZMQ_CURVE_SECRETKEY, "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs");
        set_text(client, ZMQ_CURVE_SERVERKEY, "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7");
    }
    do_connect(client, end);
    host = raw_accept(host);
    speak(host, speech);
    settle();
    close(host);
    settle();
    do_disconnect(client, end);
    settle();
    do_disconnect(client, end);
    do_close(client);
}

#define BOTH(name, ...)                                                                                      \
    static void server_##name(const char *transport)                                                         \
    {                                                                                                        \
        const struct speech speech = __VA_ARGS__;                                                            \
        to_server(transport, &speech);                                                                       \
    }                                                                                                        \
    static void client_##name(const char *transport)                                                         \
    {                                                                                                        \
        const struct speech speech = __VA_ARGS__;                                                            \
        to_client(transport, &speech);                                                                       \
    }

/* The greeting of an old peer is a length and a name. These bytes are longer than any such greeting. */
BOTH(html, BYTES("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
BOTH(mechanism, COMMAND("NOSUCH", 0, "\5READY"))
BOTH(empty_mechanism, COMMAND("", 0, "\5READY"))
BOTH(message, {.mechanism = "NULL", .flags = 0, .frame = "hello", .frame_length = 5})
BOTH(unknown, COMMAND("NULL", 0, "\5HELLO"))
BOTH(empty, COMMAND("NULL", 0, ""))
BOTH(ready_cut, COMMAND("NULL", 0, "\5READY\13Socket-Type\0\0\0\24PULL"))
BOTH(ready_bare, COMMAND("NULL", 0, "\5READY"))
BOTH(ready_type, COMMAND("NULL", 0, "\5READY\13Socket-Type\0\0\0\4NONE"))
BOTH(error, COMMAND("NULL", 0, "\5ERROR\3" "400"))
BOTH(error_empty, COMMAND("NULL", 0, "\5ERROR\0"))
BOTH(error_cut, COMMAND("NULL", 0, "\5ERROR\7" "400"))
BOTH(error_other, COMMAND("NULL", 0, "\5ERROR\3abc"))
BOTH(plain_ready, COMMAND("PLAIN", 0, "\5READY"))
BOTH(plain_cut, COMMAND("PLAIN", 0, "\5HELLO\7name"))
BOTH(plain_welcome, COMMAND("PLAIN", 1, "\7WELCOMEx"))
BOTH(plain_error, COMMAND("PLAIN", 1, "\5ERROR\3" "400"))
BOTH(plain_empty, COMMAND("PLAIN", 0, ""))
BOTH(plain_unnamed, COMMAND("PLAIN", 0, "\11READY"))
BOTH(null_unnamed, COMMAND("NULL", 0, "\11READY"))
BOTH(curve_empty, COMMAND("CURVE", 0, ""))
BOTH(curve_ready, COMMAND("CURVE", 0, "\5READY"))
BOTH(curve_hello, COMMAND("CURVE", 0, "\5HELLO\1\0"))
BOTH(curve_welcome, COMMAND("CURVE", 1, "\7WELCOMEx"))
BOTH(curve_error, COMMAND("CURVE", 1, "\5ERROR\3" "400"))

/* A HELLO of the right length without valid contents. */
BOTH(curve_noise,
     {.mechanism = "CURVE", .flags = 4, .frame_length = 200, .frame = "\5HELLO\1\0"
      "0123456789012345678901234567890123456789012345678901234567890123456789"
      "0123456789012345678901234567890123456789012345678901234567890123456789"
      "012345678901234567890123456789012345678901234567890123"})

#define TWO(what, function)                                                                                  \
    {"server hears " what, "tcp", server_##function, 1}, {"client hears " what, "tcp", client_##function, 1}

const struct situation broken_situations[] = {
    {"server hears HTTP", "tcp", server_html, 1},
    {"server hears HTTP", "ipc", server_html, 1},
    {"server hears HTTP", "ws", server_html, 0},
    {"client hears HTTP", "tcp", client_html, 1},
    {"client hears HTTP", "ipc", client_html, 1},
    {"client hears HTTP", "ws", client_html, 0},
    TWO("an unknown mechanism", mechanism),
    TWO("no mechanism", empty_mechanism),
    TWO("a message for READY", message),
    TWO("an unknown command for READY", unknown),
    TWO("an empty command for READY", empty),
    TWO("READY cut short", ready_cut),
    TWO("READY without a type", ready_bare),
    TWO("READY of an unknown type", ready_type),
    TWO("ERROR 400", error),
    TWO("ERROR without a reason", error_empty),
    TWO("ERROR cut short", error_cut),
    TWO("ERROR abc", error_other),
    TWO("READY in PLAIN", plain_ready),
    TWO("PLAIN HELLO cut short", plain_cut),
    TWO("PLAIN WELCOME too long", plain_welcome),
    TWO("ERROR 400 in PLAIN", plain_error),
    TWO("an empty command in PLAIN", plain_empty),
    TWO("a name cut short in NULL", null_unnamed),
    TWO("a name cut short in PLAIN", plain_unnamed),
    TWO("an empty command in CURVE", curve_empty),
    TWO("READY in CURVE", curve_ready),
    TWO("CURVE HELLO cut short", curve_hello),
    TWO("CURVE HELLO of noise", curve_noise),
    TWO("CURVE WELCOME of noise", curve_welcome),
    TWO("ERROR 400 in CURVE", curve_error),
    {0},
};
