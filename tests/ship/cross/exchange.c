/* One end of an exchange over tcp. The peer is the same program, linked with another library.
 *
 *   exchange CASE bind              binds to any port, prints the endpoint, and answers or receives
 *   exchange CASE connect ENDPOINT  asks or sends
 *
 * CASE: see `cases` at the end. Exit code 0: every message arrived as expected. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum { MESSAGES = 400, WATCHDOG = 300 };

/* Keys of libzmq's manual. */
static const char server_public[] = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
static const char server_secret[] = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
static const char client_public[] = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
static const char client_secret[] = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";

/* Sizes around the limits of short frames, buffers and segments. */
static const size_t sizes[] = { 0, 1, 7, 29, 30, 33, 34, 63, 64, 255, 256, 257, 4095, 8192, 65279, 65536, 300000 };

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(1);
}

static size_t size_of(int n)
{
    return sizes[(size_t)n % (sizeof sizes / sizeof *sizes)];
}

static unsigned char byte_of(int n, size_t at)
{
    return (unsigned char)((size_t)n * 31 + at * 7 + (at >> 8));
}

static void send_one(void *socket, int n, int flags)
{
    zmq_msg_t message;
    size_t at, size = size_of(n);
    if (zmq_msg_init_size(&message, size))
        fail("zmq_msg_init_size");
    for (at = 0; at < size; at++)
        ((unsigned char *)zmq_msg_data(&message))[at] = byte_of(n, at);
    if (zmq_msg_send(&message, socket, flags) < 0)
        fail("zmq_msg_send");
}

static void check_one(zmq_msg_t *message, int n)
{
    size_t at, size = size_of(n);
    if (zmq_msg_size(message) != size)
        fail("another size");
    for (at = 0; at < size; at++)
        if (((unsigned char *)zmq_msg_data(message))[at] != byte_of(n, at))
            fail("other bytes");
}

static void receive_one(void *socket, int n, int more)
{
    zmq_msg_t message;
    zmq_msg_init(&message);
    if (zmq_msg_recv(&message, socket, 0) < 0)
        fail("zmq_msg_recv");
    check_one(&message, n);
    if (zmq_msg_more(&message) != more)
        fail("more");
    zmq_msg_close(&message);
}

static void send_all(void *socket)
{
    int n;
    for (n = 0; n < MESSAGES; n++)
        send_one(socket, n, 0);
}

static void receive_all(void *socket)
{
    int n;
    for (n = 0; n < MESSAGES; n++)
        receive_one(socket, n, 0);
}

static void both(void *socket)
{
    send_all(socket);
    receive_all(socket);
}

static void ask(void *socket)
{
    int n;
    for (n = 0; n < MESSAGES; n++) {
        send_one(socket, n, ZMQ_SNDMORE);
        send_one(socket, n + 1, 0);
        receive_one(socket, n, 1);
        receive_one(socket, n + 1, 0);
    }
}

/* Sends every message back after its last part has arrived. */
static void echo(void *socket, int messages)
{
    zmq_msg_t parts[4];
    while (messages-- > 0) {
        int at, count = 0, more = 1;
        while (more) {
            if (count == sizeof parts / sizeof *parts)
                fail("too many parts");
            zmq_msg_init(&parts[count]);
            if (zmq_msg_recv(&parts[count], socket, 0) < 0)
                fail("zmq_msg_recv");
            more = zmq_msg_more(&parts[count++]);
        }
        for (at = 0; at < count; at++)
            if (zmq_msg_send(&parts[at], socket, at + 1 < count ? ZMQ_SNDMORE : 0) < 0)
                fail("zmq_msg_send");
    }
}

static void echo_all(void *socket)
{
    echo(socket, MESSAGES);
}

/* Sends messages of a subscribed topic and of another topic, then waits for the end of the subscription. */
static void publish(void *socket)
{
    char event[2];
    int n;
    if (zmq_recv(socket, event, sizeof event, 0) != 2 || memcmp(event, "\1a", 2) != 0)
        fail("the subscription");
    for (n = 0; n < MESSAGES; n++) {
        zmq_send(socket, n % 2 ? "ab" : "ba", 2, ZMQ_SNDMORE);
        send_one(socket, n, 0);
    }
    if (zmq_recv(socket, event, sizeof event, 0) != 2 || memcmp(event, "\0a", 2) != 0)
        fail("its end");
}

static void subscribe(void *socket)
{
    int n;
    if (zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "a", 1))
        fail("ZMQ_SUBSCRIBE");
    for (n = 1; n < MESSAGES; n += 2) {
        char topic[2];
        if (zmq_recv(socket, topic, sizeof topic, 0) != 2 || memcmp(topic, "ab", 2) != 0)
            fail("the topic");
        receive_one(socket, n, 0);
    }
    zmq_setsockopt(socket, ZMQ_UNSUBSCRIBE, "a", 1);
}

struct end { int type; void (*run)(void *socket); };

static const struct { const char *name; int curve; struct end bind, connect; } cases[] = {
    { "push", 0, { ZMQ_PULL, receive_all }, { ZMQ_PUSH, send_all } },
    { "pull", 0, { ZMQ_PUSH, send_all }, { ZMQ_PULL, receive_all } },
    { "req", 0, { ZMQ_REP, echo_all }, { ZMQ_REQ, ask } },
    { "dealer", 0, { ZMQ_ROUTER, echo_all }, { ZMQ_DEALER, both } },
    { "sub", 0, { ZMQ_XPUB, publish }, { ZMQ_SUB, subscribe } },
    { "curve", 1, { ZMQ_ROUTER, echo_all }, { ZMQ_DEALER, both } },
};

int main(int argc, char **argv)
{
    void *context, *socket;
    const struct end *end;
    int at = 0, binds, unlimited = 0, yes = 1;
    const int count = sizeof cases / sizeof *cases;
    while (argc > 2 && at < count && strcmp(argv[1], cases[at].name) != 0)
        at++;
    if (argc < 3 || at == count)
        return fprintf(stderr, "usage: exchange CASE bind|connect [ENDPOINT]\n"), 2;
#ifndef _WIN32
    alarm(WATCHDOG);
#endif
    binds = strcmp(argv[2], "bind") == 0;
    end = binds ? &cases[at].bind : &cases[at].connect;
    context = zmq_ctx_new();
    socket = zmq_socket(context, end->type);
    if (!socket)
        fail("zmq_socket");
    /* Both ends send all messages before they receive. */
    zmq_setsockopt(socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
    if (cases[at].curve && binds) {
        zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof yes);
        if (zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, server_secret, 40))
            fail("ZMQ_CURVE_SECRETKEY");
    } else if (cases[at].curve) {
        zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, client_public, 40);
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, client_secret, 40);
        if (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server_public, 40))
            fail("ZMQ_CURVE_SERVERKEY");
    }
    if (binds) {
        char endpoint[64];
        size_t size = sizeof endpoint;
        if (zmq_bind(socket, "tcp://127.0.0.1:*") || zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size))
            fail("zmq_bind");
        puts(endpoint);
        fflush(stdout);
    } else if (argc < 4 || zmq_connect(socket, argv[3])) {
        fail("zmq_connect");
    }
    end->run(socket);
    zmq_close(socket);
    return zmq_ctx_term(context) != 0;
}
