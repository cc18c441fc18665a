/*
 * The two honest programs of the attacks: a victim, and its good client. harness.py starts them
 * and exchanges lines with them.
 *
 *   victim KEY=VALUE...
 *     type=ROUTER          the type of the socket under attack, in capitals
 *     mode=echo            echo returns each message, and the good client uses this socket;
 *                          receive; send: sends messages of `body` bytes as fast as possible;
 *                          idle: the socket is only used by commands
 *     bind=ENDPOINT        or connect=ENDPOINT, the endpoint of the attacker
 *     security=null        plain, curve, or zap: NULL with a handler that accepts peers from
 *                          127.0.0.2
 *     body=100             bytes of a message
 *     zap=silent           a handler that never answers, so the good client is not served
 *     option=NUMBER:VALUE  a socket option with an int; wide= an int64_t; text= a string
 *
 *   Prints `ready ENDPOINT SERVICE`: its own endpoint, and the endpoint of the good client. In mode
 *   echo both are the same. In other modes SERVICE is a ROUTER of the same context and I/O thread.
 *   For mode=send, `held` prints `held` once the socket has blocked for STALL_MS, or has sent MANY
 *   more messages. For mode=idle, `look N` receives N times without waiting and prints
 *   `looked MESSAGES MICROSECONDS` (of processor time), and `send N` sends N messages and prints `sent MESSAGES MICROSECONDS`. At
 *   the end of the input it closes all sockets, prints `ended` and exits with 0.
 *
 *   victim client=ENDPOINT security=...
 *
 *   `ask N` sends one request over a new connection, and then N requests over the first connection.
 *   `measure SECONDS` sends as many requests as possible in that time. Either prints
 *   `answers N SECONDS MEDIAN WORST NEWCOMER`, the last three in microseconds, or `none` if an
 *   answer does not arrive within a minute. newcomer=no omits the new connection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ZMQ_BUILD_DRAFT_API
#include "zmq.h"

enum { TAUTLINE_OPTIONS = 0x54410000 };
enum { WATCHDOG_MS = 60000, SAMPLES = 1 << 20, LONGEST_BODY = 1 << 20 };
/* Time after which a blocked send counts as held. MANY sent messages count as well, because a publisher never blocks. */
enum { STALL_MS = 400, MANY = 10000 };

/* Keys generated for this test. A good client knows the server's public key and has the client's key pair. */
static const char *server_public = "Ynw{U7yd(=/2mas!aO>ZmsVQ%[m=XtPDWSM9H-r)", *server_secret = "/n2-3lcSoetlsc3zw(O$fLiz1[$p/R/Y.3}a[i:>";
static const char *client_public = "nuvAi^4M<eI)s2WEiyN?=K33NAc$kiym&<!?>[jT", *client_secret = "}h5=3ohXPR}{&c[SNcm>SKM}hEVOPU)6R3qDB%V?";

static void *context;
static const char *security = "null", *mode = "echo";
static int body_size = 100;
static char **arguments;

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "victim: %s: %s\n", what, zmq_strerror(zmq_errno()));
        exit(3);
    }
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

/* Returns the value of `key=value`, or NULL for an argument with another key. */
static const char *value_of(const char *argument, const char *key)
{
    size_t length = strlen(key);
    return strncmp(argument, key, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

static const char *find(const char *key, const char *otherwise)
{
    for (char **argument = arguments; *argument; argument++)
        if (value_of(*argument, key))
            return value_of(*argument, key);
    return otherwise;
}

static int is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static int type_named(const char *name)
{
    static const char *names[] = {"PAIR", "PUB", "SUB", "REQ", "REP", "DEALER", "ROUTER", "PULL", "PUSH", "XPUB", "XSUB", "STREAM",
            "SERVER", "CLIENT", "RADIO", "DISH", "GATHER", "SCATTER", "DGRAM"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (is(name, names[i]))
            return (int) i;
    fprintf(stderr, "victim: no socket type %s\n", name);
    exit(3);
}

static void set(void *socket, int option, int value)
{
    must(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "option");
}

static void set_text(void *socket, int option, const char *value)
{
    must(zmq_setsockopt(socket, option, value, strlen(value)) == 0, "option");
}

/* Sets the options of the command line. */
static void set_all(void *socket)
{
    for (char **argument = arguments; *argument; argument++) {
        const char *value, *colon = strchr(*argument, ':');
        if ((value = value_of(*argument, "option")))
            set(socket, atoi(value), atoi(colon + 1));
        if ((value = value_of(*argument, "text")))
            set_text(socket, atoi(value), colon + 1);
        if ((value = value_of(*argument, "wide"))) {
            int64_t wide = atoll(colon + 1);
            /* A library without this option runs the attack without its limit. */
            if (atoi(value) >= TAUTLINE_OPTIONS && zmq_has("tautline") != 1)
                continue;
            must(zmq_setsockopt(socket, atoi(value), &wide, sizeof wide) == 0, "option");
        }
    }
}

static void secure_server(void *socket)
{
    if (is(security, "plain"))
        set(socket, ZMQ_PLAIN_SERVER, 1);
    if (is(security, "curve")) {
        set(socket, ZMQ_CURVE_SERVER, 1);
        set_text(socket, ZMQ_CURVE_SECRETKEY, server_secret);
    }
    if (!is(security, "null"))
        set_text(socket, ZMQ_ZAP_DOMAIN, "test");
}

static void secure_client(void *socket)
{
    if (is(security, "plain")) {
        set_text(socket, ZMQ_PLAIN_USERNAME, "good");
        set_text(socket, ZMQ_PLAIN_PASSWORD, "good");
    }
    if (is(security, "curve")) {
        set_text(socket, ZMQ_CURVE_SERVERKEY, server_public);
        set_text(socket, ZMQ_CURVE_PUBLICKEY, client_public);
        set_text(socket, ZMQ_CURVE_SECRETKEY, client_secret);
    }
}

/* Receives a message, and keeps at most `most` of its parts. Returns the number of kept parts, or -1. */
static int receive_parts(void *socket, char parts[][256], size_t *lengths, int most)
{
    for (int count = 0;; count++) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, socket, 0) < 0)
            return -1;
        if (count < most) {
            lengths[count] = zmq_msg_size(&part) < 256 ? zmq_msg_size(&part) : 256;
            memcpy(parts[count], zmq_msg_data(&part), lengths[count]);
        }
        int more = zmq_msg_more(&part);
        zmq_msg_close(&part);
        if (!more)
            return count + 1 < most ? count + 1 : most;
    }
}

/* A ZAP handler. RFC 27: version, request id, domain, address, routing id, mechanism, credentials. */
static void *judge(void *socket)
{
    static char parts[8][256];
    size_t lengths[8];
    int count;
    while ((count = receive_parts(socket, parts, lengths, 8)) > 0) {
        int good;
        if (is(security, "zap"))
            good = count > 3 && lengths[3] == 9 && memcmp(parts[3], "127.0.0.2", 9) == 0;
        else if (is(security, "plain"))
            good = count > 6 && lengths[6] == 4 && memcmp(parts[6], "good", 4) == 0;
        else {
            uint8_t key[32];
            good = count > 6 && lengths[6] == 32 && zmq_z85_decode(key, client_public) && memcmp(parts[6], key, 32) == 0;
        }
        const char *reply[] = {"1.0", "", good ? "200" : "400", "", "", ""};
        for (int i = 0; i < 6; i++)
            zmq_send(socket, i == 1 ? parts[1] : reply[i], i == 1 ? lengths[1] : strlen(reply[i]), i < 5 ? ZMQ_SNDMORE : 0);
    }
    zmq_close(socket);
    return NULL;
}

/* Returns each message to its sender until the context ends. */
static void *echo(void *socket)
{
    int more = 1;
    for (;;) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, socket, 0) < 0)
            break;
        more = zmq_msg_more(&part);
        /* A peer that is full or disconnected loses its answer. */
        if (zmq_msg_send(&part, socket, (more ? ZMQ_SNDMORE : 0) | ZMQ_DONTWAIT) < 0)
            zmq_msg_close(&part);
    }
    zmq_close(socket);
    return NULL;
}

static void *receive(void *socket)
{
    zmq_msg_t message;
    zmq_msg_init(&message);
    while (zmq_msg_recv(&message, socket, 0) >= 0)
        ;
    zmq_msg_close(&message);
    zmq_close(socket);
    return NULL;
}

/* Number of times that the sender was held or has sent MANY messages. Negative if the sender has ended. */
static atomic_int held;

static void *send_all(void *socket)
{
    static char body[LONGEST_BODY];
    memset(body, 'x', sizeof body);
    set(socket, ZMQ_SNDTIMEO, STALL_MS);
    for (int sent = 0;;) {
        if (zmq_send(socket, body, (size_t) body_size, 0) >= 0)
            sent++;
        else if (zmq_errno() != EAGAIN)
            break;
        else
            sent = MANY;
        if (sent == MANY) {
            sent = 0;
            held++;
        }
    }
    held = -1;
    zmq_close(socket);
    return NULL;
}

/* Waits until `held` has grown by two, as the first period may have begun before this call. */
static void wait_until_held(void)
{
    for (int before = held; held >= 0 && held < before + 2;)
        sched_yield();
}

static void start(void *(*body) (void *), void *socket, pthread_t *thread)
{
    must(pthread_create(thread, NULL, body, socket) == 0, "thread");
    /* harness.py finds the thread by this name, and may reserve a core for it. */
    if (body == echo)
        pthread_setname_np(*thread, "good");
}

static void endpoint_of(void *socket, char *endpoint, size_t length)
{
    must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length) == 0, "endpoint");
}

static int victim(void)
{
    char endpoint[256] = "-", service[256], line[256];
    pthread_t threads[3];
    int running = 0, type = type_named(find("type", "ROUTER"));
    static char body[LONGEST_BODY];

    body_size = atoi(find("body", "100"));
    if (!is(security, "null")) {
        int silent = is(find("zap", "answer"), "silent");
        void *zap = zmq_socket(context, silent ? ZMQ_ROUTER : ZMQ_REP);
        must(zap && zmq_bind(zap, "inproc://zeromq.zap.01") == 0, "handler");
        start(silent ? receive : judge, zap, &threads[running++]);
    }
    void *socket = zmq_socket(context, type);
    must(socket != NULL, "socket");
    set(socket, ZMQ_LINGER, 0);
    secure_server(socket);
    set_all(socket);
    if (type == ZMQ_SUB)
        set_text(socket, ZMQ_SUBSCRIBE, "");
    if (type == ZMQ_DISH)
        must(zmq_join(socket, "group") == 0, "join");
    if (find("bind", NULL)) {
        if (zmq_bind(socket, find("bind", NULL)) != 0 && zmq_errno() == EPROTONOSUPPORT) {
            puts("unsupported");
            return 0;
        }
        endpoint_of(socket, endpoint, sizeof endpoint);
    } else
        must(zmq_connect(socket, find("connect", "")) == 0, "connect");
    if (is(mode, "echo"))
        strcpy(service, endpoint);
    else {
        void *router = zmq_socket(context, ZMQ_ROUTER);
        must(router != NULL, "socket");
        set(router, ZMQ_LINGER, 0);
        secure_server(router);
        must(zmq_bind(router, "tcp://127.0.0.1:*") == 0, "bind");
        endpoint_of(router, service, sizeof service);
        start(echo, router, &threads[running++]);
    }
    if (!is(mode, "idle"))
        start(is(mode, "echo") ? echo : is(mode, "send") ? send_all : receive, socket, &threads[running++]);
    printf("ready %s %s\n", endpoint, service);
    while (fgets(line, sizeof line, stdin)) {
        int times, done = 0;
        if (is(line, "held\n")) {
            wait_until_held();
            puts("held");
            continue;
        }
        double began = seconds(CLOCK_THREAD_CPUTIME_ID);
        if (sscanf(line, "look %d", &times) == 1)
            for (int i = 0; i < times; i++)
                done += zmq_recv(socket, body, sizeof body, ZMQ_DONTWAIT) >= 0;
        else if (sscanf(line, "send %d", &times) == 1)
            for (int i = 0; i < times; i++)
                done += zmq_send(socket, body, (size_t) body_size, ZMQ_DONTWAIT) >= 0;
        printf("%s %d %.0f\n", *line == 'l' ? "looked" : "sent", done, (seconds(CLOCK_THREAD_CPUTIME_ID) - began) * 1e6);
    }
    must(zmq_ctx_shutdown(context) == 0, "shutdown");
    if (is(mode, "idle"))
        zmq_close(socket);
    while (running > 0)
        pthread_join(threads[--running], NULL);
    must(zmq_ctx_term(context) == 0, "term");
    puts("ended");
    return 0;
}

static void *connected(const char *endpoint)
{
    void *socket = zmq_socket(context, ZMQ_DEALER);
    must(socket != NULL, "socket");
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_RCVTIMEO, WATCHDOG_MS);
    set(socket, ZMQ_SNDTIMEO, WATCHDOG_MS);
    secure_client(socket);
    char from[256];
    if (is(security, "zap"))
        snprintf(from, sizeof from, "tcp://127.0.0.2:0;%s", endpoint + strlen("tcp://"));
    must(zmq_connect(socket, is(security, "zap") ? from : endpoint) == 0, "connect");
    return socket;
}

/* Sends a request. Returns the microseconds until the answer, or -1. */
static double ask(void *socket)
{
    char body[64] = {0};
    double began = seconds(CLOCK_MONOTONIC);
    if (zmq_send(socket, body, sizeof body, 0) < 0 || zmq_recv(socket, body, sizeof body, 0) < 0)
        return -1;
    return (seconds(CLOCK_MONOTONIC) - began) * 1e6;
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;
    return (x > y) - (x < y);
}

static int client(const char *endpoint)
{
    static float times[SAMPLES];
    char line[256];
    void *socket = connected(endpoint);
    puts("ready - -");
    while (fgets(line, sizeof line, stdin)) {
        int most = SAMPLES, count = 0;
        double limit = 1e9, newcomer = 0, last = 0;
        if (sscanf(line, "ask %d", &most) != 1)
            sscanf(line, "measure %lf", &limit);
        if (!is(find("newcomer", "yes"), "no")) {
            void *other = connected(endpoint);
            newcomer = ask(other);
            zmq_close(other);
        }
        double began = seconds(CLOCK_MONOTONIC);
        while (newcomer >= 0 && last >= 0 && count < most && count < SAMPLES && seconds(CLOCK_MONOTONIC) - began < limit) {
            last = ask(socket);
            times[count++] = (float) last;
        }
        if (newcomer < 0 || last < 0) {
            puts("none");
            continue;
        }
        double took = seconds(CLOCK_MONOTONIC) - began;
        qsort(times, (size_t) count, sizeof *times, ascending);
        printf("answers %d %.4f %.0f %.0f %.0f\n", count, took, times[count / 2], times[count - 1], newcomer);
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}

int main(int argc, char **argv)
{
    (void) argc;
    setvbuf(stdout, NULL, _IOLBF, 0);
    arguments = argv + 1;
    security = find("security", "null");
    mode = find("mode", "echo");
    context = zmq_ctx_new();
    must(context != NULL, "context");
    return find("client", NULL) ? client(find("client", NULL)) : victim();
}
