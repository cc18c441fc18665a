/* Situations with handshakes of ZeroMQ sockets that do not match: mechanisms, keys, ZAP. */
#include "play.h"

#include <string.h>

/* Keys of the manual's examples. */
#define SERVER_PUBLIC "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define SERVER_SECRET "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"
#define CLIENT_PUBLIC "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define CLIENT_SECRET "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"

enum mechanism { NOTHING, PLAIN, PLAIN_SERVER, CURVE, CURVE_SERVER, CURVE_WRONG };

static void secure(struct watched *watched, enum mechanism mechanism)
{
    switch (mechanism) {
    case NOTHING: break;
    case PLAIN_SERVER: set(watched, ZMQ_PLAIN_SERVER, 1); break;
    case PLAIN:
        set_text(watched, ZMQ_PLAIN_USERNAME, "name");
        set_text(watched, ZMQ_PLAIN_PASSWORD, "secret");
        break;
    case CURVE_SERVER:
        set(watched, ZMQ_CURVE_SERVER, 1);
        set_text(watched, ZMQ_CURVE_SECRETKEY, SERVER_SECRET);
        break;
    case CURVE:
    case CURVE_WRONG:
        set_text(watched, ZMQ_CURVE_PUBLICKEY, CLIENT_PUBLIC);
        set_text(watched, ZMQ_CURVE_SECRETKEY, CLIENT_SECRET);
        set_text(watched, ZMQ_CURVE_SERVERKEY, mechanism == CURVE ? SERVER_PUBLIC : CLIENT_PUBLIC);
        break;
    }
}

/* Expected events. */
enum outcome {
    SUCCESS,
    /* Both ends disconnect. */
    FAILURE,
    /* Both ends disconnect. A race decides whether libzmq's client retries. */
    REFUSAL,
    /* Both wait until the client gives up. */
    SILENCE,
    /* The server reports the failure. A race decides whether libzmq then ends the stream or waits for ZMQ_HANDSHAKE_IVL. */
    REPORT_AUTH,
    REPORT_PROTOCOL
};

/* Connects both ends with their mechanisms. Reads the events of the client first, and then the events of the server. */
static void shake(const char *transport, enum mechanism mine, enum mechanism yours, int status, enum outcome outcome,
                  int stop)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = watch("client", ZMQ_PUSH);
    const char *end;
    if (status)
        zap_start(status);
    set(client, ZMQ_RECONNECT_IVL, LONG);
    if (stop)
        set(client, ZMQ_RECONNECT_STOP, stop);
    if (outcome == SILENCE)
        set(client, ZMQ_HANDSHAKE_IVL, 100);
    secure(server, mine);
    secure(client, yours);
    if (status)
        set_text(server, ZMQ_ZAP_DOMAIN, "domain");
    do_bind(server, fresh(transport));
    end = endpoint_of(server, "bound");
    do_connect(client, end);
    switch (outcome) {
    case SUCCESS:
        until(client, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
        until(server, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
        do_disconnect(client, end);
        fence();
        until(server, ZMQ_EVENT_DISCONNECTED);
        break;
    case FAILURE:
    case SILENCE:
        until(client, ZMQ_EVENT_DISCONNECTED);
        until(server, ZMQ_EVENT_DISCONNECTED);
        settle();
        do_disconnect(client, end);
        settle();
        do_disconnect(client, end);
        break;
    case REFUSAL:
        until(client, ZMQ_EVENT_DISCONNECTED);
        until(server, ZMQ_EVENT_DISCONNECTED);
        do_disconnect(client, end);
        close_unread(client);
        /* libzmq's socket does not always finish closing here. */
        close_unread(server);
        return;
    case REPORT_AUTH:
    case REPORT_PROTOCOL:
        until(server, outcome == REPORT_AUTH ? ZMQ_EVENT_HANDSHAKE_FAILED_AUTH : ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
        close_unread(client);
        close_unread(server);
        return;
    }
    do_close(client);
    do_close(server);
}

#define SHAKE(name, mine, yours, status, outcome)                                                                   \
    static void name(const char *transport)                                                                  \
    {                                                                                                        \
        shake(transport, mine, yours, status, outcome, 0);                                                          \
    }

SHAKE(plain_for_null, PLAIN_SERVER, NOTHING, 0, FAILURE)
SHAKE(curve_for_null, CURVE_SERVER, NOTHING, 0, FAILURE)
SHAKE(null_for_plain, NOTHING, PLAIN, 0, FAILURE)
SHAKE(curve_for_plain, CURVE_SERVER, PLAIN, 0, FAILURE)
SHAKE(null_for_curve, NOTHING, CURVE, 0, FAILURE)
SHAKE(plain_for_curve, PLAIN_SERVER, CURVE, 0, FAILURE)
SHAKE(plain_clients, PLAIN, PLAIN, 0, FAILURE)
SHAKE(plain_servers, PLAIN_SERVER, PLAIN_SERVER, 0, SILENCE)
SHAKE(curve_clients, CURVE, CURVE, 0, FAILURE)
SHAKE(curve_servers, CURVE_SERVER, CURVE_SERVER, 0, SILENCE)
SHAKE(curve_wrong_key, CURVE_SERVER, CURVE_WRONG, 0, FAILURE)
SHAKE(plain_no_handler, PLAIN_SERVER, PLAIN, 0, FAILURE)
SHAKE(curve_no_handler, CURVE_SERVER, CURVE, 0, SUCCESS)
SHAKE(null_200, NOTHING, NOTHING, 200, SUCCESS)
SHAKE(null_300, NOTHING, NOTHING, 300, REPORT_AUTH)
SHAKE(null_400, NOTHING, NOTHING, 400, REFUSAL)
SHAKE(null_500, NOTHING, NOTHING, 500, REFUSAL)
SHAKE(plain_200, PLAIN_SERVER, PLAIN, 200, SUCCESS)
SHAKE(plain_300, PLAIN_SERVER, PLAIN, 300, REPORT_AUTH)
SHAKE(plain_400, PLAIN_SERVER, PLAIN, 400, REFUSAL)
SHAKE(plain_500, PLAIN_SERVER, PLAIN, 500, REFUSAL)
SHAKE(curve_200, CURVE_SERVER, CURVE, 200, SUCCESS)
SHAKE(curve_300, CURVE_SERVER, CURVE, 300, REPORT_AUTH)
SHAKE(curve_400, CURVE_SERVER, CURVE, 400, REFUSAL)
SHAKE(curve_500, CURVE_SERVER, CURVE, 500, REFUSAL)
SHAKE(null_600, NOTHING, NOTHING, 600, REPORT_PROTOCOL)
SHAKE(null_version, NOTHING, NOTHING, ZAP_BAD_VERSION, REPORT_PROTOCOL)
SHAKE(null_id, NOTHING, NOTHING, ZAP_BAD_ID, REPORT_PROTOCOL)
SHAKE(null_short, NOTHING, NOTHING, ZAP_SHORT, REPORT_PROTOCOL)
SHAKE(curve_600, CURVE_SERVER, CURVE, 600, REPORT_PROTOCOL)

static void mismatch_and_stop(const char *transport)
{
    shake(transport, CURVE_SERVER, NOTHING, 0, FAILURE, ZMQ_RECONNECT_STOP_HANDSHAKE_FAILED);
}

static void refused_and_stop(const char *transport)
{
    shake(transport, NOTHING, NOTHING, 400, REFUSAL, ZMQ_RECONNECT_STOP_HANDSHAKE_FAILED);
}

/* The server has a ZAP domain, but no handler. */
static void no_handler(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = watch("client", ZMQ_PUSH);
    const char *end;
    set(client, ZMQ_RECONNECT_IVL, LONG);
    set_text(server, ZMQ_ZAP_DOMAIN, "domain");
    do_bind(server, fresh(transport));
    end = endpoint_of(server, "bound");
    do_connect(client, end);
    until(client, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    until(server, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    do_disconnect(client, end);
    fence();
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(client);
    do_close(server);
}

/* The socket types are incompatible. */
static void types(const char *transport)
{
    struct watched *server = watch("server", ZMQ_REP);
    struct watched *client = watch("client", ZMQ_PUSH);
    const char *end;
    set(client, ZMQ_RECONNECT_IVL, LONG);
    do_bind(server, fresh(transport));
    end = endpoint_of(server, "bound");
    do_connect(client, end);
    until(client, ZMQ_EVENT_DISCONNECTED);
    until(server, ZMQ_EVENT_DISCONNECTED);
    settle();
    do_disconnect(client, end);
    settle();
    do_close(client);
    do_close(server);
}

#define ALL(name, function)                                                                                  \
    {name, "tcp", function, 1}, {name, "ipc", function, 1}, {name, "ws", function, 0}

const struct situation refusal_situations[] = {
    ALL("PLAIN server, NULL client", plain_for_null),
    ALL("CURVE server, NULL client", curve_for_null),
    ALL("NULL server, PLAIN client", null_for_plain),
    ALL("CURVE server, PLAIN client", curve_for_plain),
    ALL("NULL server, CURVE client", null_for_curve),
    ALL("PLAIN server, CURVE client", plain_for_curve),
    {"two PLAIN clients", "tcp", plain_clients, 1},
    {"two PLAIN servers", "tcp", plain_servers, 1},
    {"two CURVE clients", "tcp", curve_clients, 1},
    {"two CURVE servers", "tcp", curve_servers, 1},
    ALL("CURVE, wrong server key", curve_wrong_key),
    {"PLAIN, no handler", "tcp", plain_no_handler, 1},
    {"CURVE, no handler", "tcp", curve_no_handler, 1},
    {"NULL with a domain, no handler", "tcp", no_handler, 1},
    ALL("NULL, ZAP 200", null_200),
    ALL("NULL, ZAP 300", null_300),
    ALL("NULL, ZAP 400", null_400),
    ALL("NULL, ZAP 500", null_500),
    ALL("PLAIN, ZAP 200", plain_200),
    ALL("PLAIN, ZAP 300", plain_300),
    ALL("PLAIN, ZAP 400", plain_400),
    ALL("PLAIN, ZAP 500", plain_500),
    ALL("CURVE, ZAP 200", curve_200),
    ALL("CURVE, ZAP 300", curve_300),
    ALL("CURVE, ZAP 400", curve_400),
    ALL("CURVE, ZAP 500", curve_500),
    {"NULL, ZAP 600", "tcp", null_600, 1},
    {"NULL, ZAP of another version", "tcp", null_version, 1},
    {"NULL, ZAP for another request", "tcp", null_id, 1},
    {"NULL, ZAP too short", "tcp", null_short, 1},
    {"CURVE, ZAP 600", "tcp", curve_600, 1},
    {"CURVE server, NULL client, stop when a handshake fails", "tcp", mismatch_and_stop, 0},
    {"NULL, ZAP 400, stop when a handshake fails", "tcp", refused_and_stop, 0},
    ALL("socket types that do not fit", types),
    {0},
};
