/* Answers of a sending socket in each state of its connection: zmq_send, ZMQ_EVENTS, zmq_poll and zmq_recv, each as the first
 * call in the state. The last answers are its events and a send after the socket has processed all commands.
 *
 *   states TABLE...       compares the answers with the tables; a later table overrides an earlier one
 *   states --racy TABLE   compares libzmq, whose answers in some states depend on a race of two threads
 *   states --record       prints the table of the linked library
 *   CASES=WORD ...        only cases with WORD in their name (STATE IMMEDIATE TYPE); PROGRESS=1 prints each name at its start
 *
 * The peer is a TCP socket of this program that speaks the part of ZMTP that the states need. The test waits for events and not for a
 * time: a state is reached when the monitor has reported its event and the I/O thread has finished its earlier work.
 */
#define _GNU_SOURCE
#define ZMQ_BUILD_DRAFT_API
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zmq.h"

/* A call that must not fail, because the answer depends on it. */
#define MUST(call)                                                                                           \
    do {                                                                                                     \
        if ((call) < 0) {                                                                                    \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, zmq_strerror(errno));              \
            exit(2);                                                                                         \
        }                                                                                                    \
    } while (0)

struct type {
    const char *name;
    int number;
    /* Socket type that a valid peer announces, and a type that is never valid for it. */
    const char *peer, *stranger;
};

static const struct type types[] = {
    {"PUSH", ZMQ_PUSH, "PULL", "PAIR"},         {"DEALER", ZMQ_DEALER, "ROUTER", "PAIR"},
    {"REQ", ZMQ_REQ, "REP", "PAIR"},            {"PAIR", ZMQ_PAIR, "PAIR", "PULL"},
    {"PUB", ZMQ_PUB, "SUB", "PAIR"},            {"XPUB", ZMQ_XPUB, "SUB", "PAIR"},
    {"ROUTER", ZMQ_ROUTER, "DEALER", "PAIR"},   {"ROUTER-NOTIFY", ZMQ_ROUTER, "DEALER", "PAIR"},
    {"STREAM", ZMQ_STREAM, NULL, NULL},
    {"CLIENT", ZMQ_CLIENT, "SERVER", "PAIR"},   {"PEER", ZMQ_PEER, "PEER", "PAIR"},
    {"CHANNEL", ZMQ_CHANNEL, "CHANNEL", "PAIR"}, {"SCATTER", ZMQ_SCATTER, "GATHER", "PAIR"},
    {"RADIO", ZMQ_RADIO, "DISH", "PAIR"},
};

/* Actions of the peer. */
enum conduct {
    NOBODY,     /* refuses the connection */
    NAMELESS,   /* its name is unknown to the resolver */
    SILENT,     /* accepts the connection and stays silent */
    CLOSES,     /* accepts the connection and closes it */
    HTTP,       /* speaks HTTP, and closes */
    GREETS,     /* greets with the mechanism of `says` */
    MALFORMED,  /* greets, then sends a command that cannot be read */
    ERRORS,     /* greets with the mechanism of `says`, then sends an ERROR command with `status` */
    HANGS_UP,   /* greets with the mechanism of `says`, and closes when it has the first command */
    STRANGER,   /* is of a type that does not fit */
    UP,         /* finishes the handshake */
    LEAVES,     /* finishes the handshake and closes for good */
    RETURNS,    /* finishes the handshake, closes, and finishes another handshake */
    BREAKS      /* finishes the handshake, then breaks the protocol */
};

/* The options of the socket. */
enum {
    ONCE = 1,            /* ZMQ_RECONNECT_IVL -1 */
    STOP_REFUSED = 2,    /* ZMQ_RECONNECT_STOP with each of its flags */
    STOP_HANDSHAKE = 4,
    STOP_DISCONNECT = 8,
    IMPATIENT = 16,      /* a short ZMQ_HANDSHAKE_IVL */
    PLAIN = 32,          /* a client of this mechanism */
    CURVE = 64
};

struct state {
    const char *name;
    enum conduct conduct;
    int options;
    const char *says;
    const char *status;
    /* The event that reports the state. */
    int event;
};

static const struct state states[] = {
    {"nobody", NOBODY, 0, NULL, NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"nobody,once", NOBODY, ONCE, NULL, NULL, ZMQ_EVENT_CLOSED},
    {"nobody,stop-refused", NOBODY, STOP_REFUSED, NULL, NULL, ZMQ_EVENT_CLOSED},
    {"nobody,stop-handshake", NOBODY, STOP_HANDSHAKE, NULL, NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"nameless", NAMELESS, 0, NULL, NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"silent", SILENT, 0, NULL, NULL, ZMQ_EVENT_CONNECTED},
    {"silent,too-long", SILENT, IMPATIENT, NULL, NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"silent,too-long,once", SILENT, IMPATIENT | ONCE, NULL, NULL, ZMQ_EVENT_DISCONNECTED},
    {"silent,too-long,stop-handshake", SILENT, IMPATIENT | STOP_HANDSHAKE, NULL, NULL, ZMQ_EVENT_DISCONNECTED},
    {"closes", CLOSES, 0, NULL, NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"closes,once", CLOSES, ONCE, NULL, NULL, ZMQ_EVENT_DISCONNECTED},
    {"closes,stop-handshake", CLOSES, STOP_HANDSHAKE, NULL, NULL, ZMQ_EVENT_DISCONNECTED},
    {"closes,stop-refused", CLOSES, STOP_REFUSED, NULL, NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"http", HTTP, 0, NULL, NULL, ZMQ_EVENT_DISCONNECTED},
    {"malformed", MALFORMED, 0, "NULL", NULL, ZMQ_EVENT_DISCONNECTED},
    {"null-to-other", GREETS, 0, "OTHER", NULL, ZMQ_EVENT_DISCONNECTED},
    {"null-to-plain", GREETS, 0, "PLAIN", NULL, ZMQ_EVENT_DISCONNECTED},
    {"null-to-curve", GREETS, 0, "CURVE", NULL, ZMQ_EVENT_DISCONNECTED},
    {"null-to-curve,once", GREETS, ONCE, "CURVE", NULL, ZMQ_EVENT_DISCONNECTED},
    {"plain-to-null", GREETS, PLAIN, "NULL", NULL, ZMQ_EVENT_DISCONNECTED},
    {"curve-to-null", GREETS, CURVE, "NULL", NULL, ZMQ_EVENT_DISCONNECTED},
    {"null-zap-300", ERRORS, 0, "NULL", "300", ZMQ_EVENT_DISCONNECTED},
    {"null-zap-400", ERRORS, 0, "NULL", "400", ZMQ_EVENT_DISCONNECTED},
    {"null-zap-500", ERRORS, 0, "NULL", "500", ZMQ_EVENT_DISCONNECTED},
    {"plain-zap-400", ERRORS, PLAIN, "PLAIN", "400", ZMQ_EVENT_DISCONNECTED},
    {"curve-zap-400", ERRORS, CURVE, "CURVE", "400", ZMQ_EVENT_DISCONNECTED},
    {"plain-hangs-up", HANGS_UP, PLAIN, "PLAIN", NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"curve-wrong-key", HANGS_UP, CURVE, "CURVE", NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"curve-wrong-key,once", HANGS_UP, CURVE | ONCE, "CURVE", NULL, ZMQ_EVENT_DISCONNECTED},
    {"curve-wrong-key,stop-handshake", HANGS_UP, CURVE | STOP_HANDSHAKE, "CURVE", NULL, ZMQ_EVENT_DISCONNECTED},
    {"other-type", STRANGER, 0, "NULL", NULL, ZMQ_EVENT_DISCONNECTED},
    {"up", UP, 0, "NULL", NULL, ZMQ_EVENT_HANDSHAKE_SUCCEEDED},
    {"leaves", LEAVES, 0, "NULL", NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"leaves,once", LEAVES, ONCE, "NULL", NULL, ZMQ_EVENT_DISCONNECTED},
    {"leaves,stop-refused", LEAVES, STOP_REFUSED, "NULL", NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"leaves,stop-handshake", LEAVES, STOP_HANDSHAKE, "NULL", NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"leaves,stop-disconnect", LEAVES, STOP_DISCONNECT, "NULL", NULL, ZMQ_EVENT_CONNECT_RETRIED},
    {"returns", RETURNS, 0, "NULL", NULL, ZMQ_EVENT_HANDSHAKE_SUCCEEDED},
    {"breaks", BREAKS, 0, "NULL", NULL, ZMQ_EVENT_DISCONNECTED},
};

/* The first call in a state. `REST` sends the last part of a message after the first part and a wait. `LATER` stands for the final
 * answers: the events and a send. */
enum question { SEND, SEND_WAITING, REST, EVENTS, POLL, RECEIVE, LATER, QUESTIONS };
static const char *const questions[] = {"send", "send with a timeout", "rest", "events", "poll", "receive", "later"};

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define ANSWER 32

static void *context;
static char public_key[41], secret_key[41];

/* ---- the peer */

static int listener(struct sockaddr_in *address, int backlog) {
    socklen_t size = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    MUST(fd);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(fd, (struct sockaddr *)address, sizeof *address));
    MUST(getsockname(fd, (struct sockaddr *)address, &size));
    /* A bound port without a listener refuses all connections, and no other process gets it. */
    if (backlog > 0) MUST(listen(fd, backlog));
    return fd;
}

static void say(int fd, const void *bytes, size_t size) {
    MUST(send(fd, bytes, size, MSG_NOSIGNAL));
}

static void hear(int fd, void *bytes, size_t size) {
    MUST(recv(fd, bytes, size, MSG_WAITALL) == (ssize_t)size ? 0 : -1);
}

static void greet(int fd, const char *mechanism) {
    unsigned char greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0};
    memcpy(greeting + 12, mechanism, strlen(mechanism));
    greeting[32] = strcmp(mechanism, "NULL") != 0; /* a server */
    say(fd, greeting, sizeof greeting);
}

static void hear_greeting(int fd) {
    char greeting[64];
    hear(fd, greeting, sizeof greeting);
}

static void hear_command(int fd) {
    unsigned char head[2];
    char body[255];
    hear(fd, head, 2);
    hear(fd, body, head[1]);
}

static void say_ready(int fd, const char *type) {
    unsigned char ready[64] = "\004\000\005READY\013Socket-Type\000\000\000";
    size_t length = strlen(type);
    ready[23] = (unsigned char)length;
    memcpy(ready + 24, type, length);
    ready[1] = (unsigned char)(22 + length);
    say(fd, ready, 24 + length);
}

static void say_error(int fd, const char *mechanism, const char *status) {
    unsigned char error[16] = "\004\012\005ERROR\003";
    if (strcmp(mechanism, "PLAIN") == 0) { /* the spelling of libzmq's servers */
        memcpy(error, "\004\011^RROR\003", 8);
        memcpy(error + 8, status, 3);
        say(fd, error, 11);
    } else {
        memcpy(error + 9, status, 3);
        say(fd, error, 12);
    }
}

static void shake_hands(int fd, const char *type) {
    greet(fd, "NULL");
    hear_greeting(fd);
    hear_command(fd);
    say_ready(fd, type);
}

/* ---- waiting */

static void *monitor(void *socket, int number) {
    char address[64];
    void *listening = zmq_socket(context, ZMQ_PAIR);
    sprintf(address, "inproc://monitor-%d", number);
    MUST(zmq_socket_monitor(socket, address, ZMQ_EVENT_ALL));
    MUST(zmq_connect(listening, address));
    return listening;
}

static void await(void *monitoring, int wanted) {
    uint16_t event = 0;
    while (event != wanted) {
        unsigned char frame[6];
        char address[256];
        MUST(zmq_recv(monitoring, frame, sizeof frame, 0));
        memcpy(&event, frame, 2);
        MUST(zmq_recv(monitoring, address, sizeof address, 0));
    }
}

static int serial;

static void end(void *socket, void *monitoring) {
    MUST(zmq_socket_monitor(socket, NULL, 0));
    MUST(zmq_close(monitoring));
    MUST(zmq_close(socket));
}

/* Closes without leaving the port in TIME_WAIT, because the test needs more connections a minute than there are ports. */
static void reset(int fd) {
    struct linger none = {1, 0};
    MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
    close(fd);
}

/* Waits until the I/O thread has processed all earlier commands. It works in order, so the visible effect of a new command is enough. */
static void barrier(void) {
    static struct sockaddr_in address;
    static int listening = -1;
    char text[64];
    int fd, linger = 0, once = -1;
    void *socket = zmq_socket(context, ZMQ_DEALER), *monitoring = monitor(socket, ++serial);
    if (listening < 0) listening = listener(&address, 4);
    MUST(zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger));
    MUST(zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &once, sizeof once));
    sprintf(text, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
    MUST(zmq_connect(socket, text));
    MUST(fd = accept(listening, NULL, NULL));
    await(monitoring, ZMQ_EVENT_CONNECTED);
    reset(fd);
    end(socket, monitoring);
}

/* ---- the socket's answers */

static const char *name_of(int error) {
    switch (error) {
        case EAGAIN: return "EAGAIN";
        case EHOSTUNREACH: return "EHOSTUNREACH";
        case EFSM: return "EFSM";
        default: return zmq_strerror(error);
    }
}

static const char *answer_of(int result) {
    return result >= 0 ? "ok" : name_of(errno);
}

static const char *try_send(void *socket, int type, uint32_t peer, int flags) {
    if (type == ZMQ_ROUTER || type == ZMQ_STREAM) {
        if (zmq_send(socket, "peer", 4, flags | ZMQ_SNDMORE) < 0) return answer_of(-1);
        return answer_of(zmq_send(socket, "x", 1, flags));
    }
    zmq_msg_t message;
    MUST(zmq_msg_init_size(&message, 1));
    memcpy(zmq_msg_data(&message), "x", 1);
    if (type == ZMQ_PEER) MUST(zmq_msg_set_routing_id(&message, peer));
    if (type == ZMQ_RADIO) MUST(zmq_msg_set_group(&message, "x"));
    const char *answer = answer_of(zmq_msg_send(&message, socket, flags));
    MUST(zmq_msg_close(&message));
    return answer;
}

/* A type that can never receive reports an empty queue with a different error. */
static const char *try_receive(void *socket, int type) {
    char byte;
    int only_sends = type == ZMQ_PUSH || type == ZMQ_PUB || type == ZMQ_SCATTER || type == ZMQ_RADIO;
    if (zmq_recv(socket, &byte, 1, ZMQ_DONTWAIT) >= 0) return "ok";
    return errno == (only_sends ? ENOTSUP : type == ZMQ_REQ ? EFSM : EAGAIN) ? "none" : name_of(errno);
}

static const char *bits(int events) {
    static const char *const names[] = {"-", "in", "out", "inout"};
    return names[events & 3];
}

static const char *events(void *socket) {
    int value;
    size_t size = sizeof value;
    if (zmq_getsockopt(socket, ZMQ_EVENTS, &value, &size) < 0) return answer_of(-1);
    return bits(value);
}

static const char *polled(void *socket) {
    zmq_pollitem_t item = {socket, 0, ZMQ_POLLIN | ZMQ_POLLOUT, 0};
    if (zmq_poll(&item, 1, 0) < 0) return answer_of(-1);
    return bits(item.revents);
}

/* Sends a message in two parts. Between the parts the socket processes all commands. Skips types without multipart messages. */
static const char *try_parts(void *socket, int type, uint32_t peer) {
    if (type == ZMQ_STREAM || type == ZMQ_RADIO || type == ZMQ_CLIENT || type == ZMQ_PEER || type == ZMQ_CHANNEL ||
        type == ZMQ_SCATTER)
        return try_send(socket, type, peer, ZMQ_DONTWAIT);
    if (type == ZMQ_ROUTER && zmq_send(socket, "peer", 4, ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) return answer_of(-1);
    if (type == ZMQ_ROUTER) type = ZMQ_DEALER;
    const char *first = try_send(socket, type, peer, ZMQ_DONTWAIT | ZMQ_SNDMORE);
    if (strcmp(first, "ok") != 0) return first;
    for (int round = 0; round < 20; round++) {
        barrier();
        events(socket);
    }
    return try_send(socket, type, peer, ZMQ_DONTWAIT);
}

static const char *ask(void *socket, int type, uint32_t peer, enum question question) {
    switch (question) {
        case SEND: return try_send(socket, type, peer, ZMQ_DONTWAIT);
        case SEND_WAITING: return try_send(socket, type, peer, 0);
        case REST: return try_parts(socket, type, peer);
        case EVENTS: return events(socket);
        case POLL: return polled(socket);
        default: return try_receive(socket, type);
    }
}

/* ---- one case */

static void set(void *socket, int option, int value) {
    MUST(zmq_setsockopt(socket, option, &value, sizeof value));
}

static void *open_socket(const struct type *type, const struct state *state, int immediate) {
    void *socket = zmq_socket(context, type->number);
    if (socket == NULL) return NULL;
    set(socket, ZMQ_LINGER, 0);
    /* With this timeout a blocking send returns, and its error shows that it waited. */
    set(socket, ZMQ_SNDTIMEO, 10);
    set(socket, ZMQ_IMMEDIATE, immediate);
    set(socket, ZMQ_RECONNECT_IVL, state->options & ONCE ? -1 : 60000);
    if (state->conduct == RETURNS) set(socket, ZMQ_RECONNECT_IVL, 1);
    int stop = (state->options & STOP_REFUSED ? ZMQ_RECONNECT_STOP_CONN_REFUSED : 0) |
               (state->options & STOP_HANDSHAKE ? ZMQ_RECONNECT_STOP_HANDSHAKE_FAILED : 0) |
               (state->options & STOP_DISCONNECT ? ZMQ_RECONNECT_STOP_AFTER_DISCONNECT : 0);
    if (stop != 0) set(socket, ZMQ_RECONNECT_STOP, stop);
    if (state->options & IMPATIENT) set(socket, ZMQ_HANDSHAKE_IVL, 20);
    if (state->options & PLAIN) {
        MUST(zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, "user", 4));
        MUST(zmq_setsockopt(socket, ZMQ_PLAIN_PASSWORD, "wrong", 5));
    }
    if (state->options & CURVE) {
        MUST(zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, public_key, 41));
        MUST(zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public_key, 41));
        MUST(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret_key, 41));
    }
    if (type->number == ZMQ_ROUTER) set(socket, ZMQ_ROUTER_MANDATORY, 1);
    if (strcmp(type->name, "ROUTER-NOTIFY") == 0)
        set(socket, ZMQ_ROUTER_NOTIFY, ZMQ_NOTIFY_CONNECT | ZMQ_NOTIFY_DISCONNECT);
    if (type->number == ZMQ_ROUTER || type->number == ZMQ_STREAM)
        MUST(zmq_setsockopt(socket, ZMQ_CONNECT_ROUTING_ID, "peer", 4));
    return socket;
}

/* Brings the connection into the state. */
static void reach(const struct type *type, const struct state *state, int *listening, int *fd, void *monitoring) {
    if (state->conduct != NOBODY && state->conduct != NAMELESS) MUST(*fd = accept(*listening, NULL, NULL));
    switch (state->conduct) {
        case CLOSES: close(*fd), *fd = -1; break;
        case HTTP:
            say(*fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
            MUST(shutdown(*fd, SHUT_WR));
            break;
        case GREETS: greet(*fd, state->says); break;
        case MALFORMED:
            greet(*fd, "NULL");
            say(*fd, "\004\002\005R", 4);
            break;
        case ERRORS:
        case HANGS_UP:
            greet(*fd, state->says);
            hear_greeting(*fd);
            hear_command(*fd);
            if (state->conduct == ERRORS)
                say_error(*fd, state->says, state->status);
            else
                close(*fd), *fd = -1;
            break;
        case STRANGER: shake_hands(*fd, type->stranger); break;
        case UP:
        case LEAVES:
        case RETURNS:
        case BREAKS:
            if (type->number != ZMQ_STREAM) {
                shake_hands(*fd, type->peer);
                if (state->conduct != UP) await(monitoring, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
            } else {
                await(monitoring, ZMQ_EVENT_CONNECTED);
            }
            if (state->conduct == LEAVES || state->conduct == RETURNS) {
                if (state->conduct == LEAVES) close(*listening), *listening = -1;
                close(*fd), *fd = -1;
            }
            if (state->conduct == RETURNS) {
                MUST(*fd = accept(*listening, NULL, NULL));
                shake_hands(*fd, type->peer);
            }
            if (state->conduct == BREAKS) say(*fd, "\002\377\377\377\377\377\377\377\377", 9);
            break;
        default: break;
    }
    if (type->number == ZMQ_STREAM && state->conduct == UP) return;
    await(monitoring, state->event);
}

/* Answers after the socket has processed all commands. The socket and the I/O thread may answer each other several times, so
 * they get more turns until the expected answer arrives. */
static void settle(void *socket, const struct type *type, uint32_t peer, char *later, const char *expected) {
    for (int round = 0; round < 2000; round++) {
        barrier();
        const char *now = events(socket);
        if (round < 5) continue;
        if (expected != NULL && strncmp(expected, now, strlen(now)) != 0) {
            snprintf(later, ANSWER, "%s,?", now);
            continue;
        }
        snprintf(later, ANSWER, "%s,%s", now, try_send(socket, type->number, peer, ZMQ_DONTWAIT));
        /* A REQ that has sent cannot send again. */
        if (expected == NULL || strcmp(later, expected) == 0 || type->number == ZMQ_REQ) break;
    }
}

static void examine(const struct type *type, const struct state *state, int immediate, enum question question, char *answer,
                    const char *expected) {
    struct sockaddr_in address;
    char text[128];
    uint32_t peer = 0;
    int listening = listener(&address, state->conduct == NOBODY || state->conduct == NAMELESS ? 0 : 4), fd = -1;
    void *socket = open_socket(type, state, immediate), *monitoring = monitor(socket, ++serial);
    sprintf(text, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
    /* A label must not be longer than 63 letters, so the resolver rejects this name without a query. */
    if (state->conduct == NAMELESS) sprintf(text, "tcp://%0100d.invalid:5555", 0);
    if (type->number == ZMQ_PEER)
        MUST((peer = zmq_connect_peer(socket, text)) == 0 ? -1 : 0);
    else
        MUST(zmq_connect(socket, text));
    reach(type, state, &listening, &fd, monitoring);
    barrier();
    if (question == LATER)
        settle(socket, type, peer, answer, expected);
    else
        snprintf(answer, ANSWER, "%s", ask(socket, type->number, peer, question));
    if (fd >= 0) reset(fd);
    end(socket, monitoring);
    if (listening >= 0) close(listening);
}

/* ---- the table */

struct row {
    char answers[QUESTIONS][ANSWER];
};

/* Indexed by state, ZMQ_IMMEDIATE and type. */
static struct row table[COUNT(states)][2][COUNT(types)];
static int known[COUNT(states)][2][COUNT(types)];

/* True if this type can be in this state. */
static int applies(const struct type *type, const struct state *state, int immediate) {
    if (type->number == ZMQ_STREAM)
        return !(state->options & STOP_HANDSHAKE) && (state->conduct == NOBODY || state->conduct == NAMELESS ||
                                                      state->conduct == UP || state->conduct == LEAVES);
    /* With ZMQ_IMMEDIATE zmq_connect_peer has no peer to name. */
    return !(type->number == ZMQ_PEER && immediate);
}

static void read_table(const char *path) {
    char line[512];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[3 + QUESTIONS], *rest = line;
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#' || line[0] == 0) continue;
        for (int i = 0; i < 3 + QUESTIONS; i++)
            if ((fields[i] = strsep(&rest, "\t")) == NULL) {
                fprintf(stderr, "%s: a line with %d fields\n", path, i);
                exit(2);
            }
        size_t s = 0;
        while (s < COUNT(states) && strcmp(states[s].name, fields[0]) != 0) s++;
        for (char *name; s < COUNT(states) && (name = strsep(&fields[2], ",")) != NULL;)
            for (size_t t = 0; t < COUNT(types); t++)
                if (strcmp(types[t].name, name) == 0) {
                    int immediate = fields[1][0] == '1';
                    known[s][immediate][t] = 1;
                    for (int q = 0; q < QUESTIONS; q++)
                        snprintf(table[s][immediate][t].answers[q], ANSWER, "%s", fields[3 + q]);
                }
    }
    fclose(file);
}

/* Types with the same answers share a line. */
static void print_table(void) {
    puts("# state\tZMQ_IMMEDIATE\ttypes\tsend\tsend with a timeout\trest of a message\tevents\tpoll\treceive\tlater: events,send");
    for (size_t s = 0; s < COUNT(states); s++)
        for (int immediate = 0; immediate < 2; immediate++)
            for (size_t t = 0; t < COUNT(types); t++) {
                const struct row *row = &table[s][immediate][t];
                if (!known[s][immediate][t]) continue;
                printf("%s\t%d\t%s", states[s].name, immediate, types[t].name);
                for (size_t other = t + 1; other < COUNT(types); other++)
                    if (known[s][immediate][other] && memcmp(row, &table[s][immediate][other], sizeof *row) == 0) {
                        known[s][immediate][other] = 0;
                        printf(",%s", types[other].name);
                    }
                for (int q = 0; q < QUESTIONS; q++) printf("\t%s", row->answers[q]);
                putchar('\n');
            }
}

static int is_open(const char *answer) {
    return strstr(answer, "ok") != NULL || strstr(answer, "out") != NULL;
}

/* If two threads race, records the answer of the previous state, which programs mostly see. */
static void record(size_t s, int immediate, size_t t) {
    struct row *row = &table[s][immediate][t];
    for (int q = 0; q < QUESTIONS; q++) {
        examine(&types[t], &states[s], immediate, (enum question)q, row->answers[q], NULL);
        for (int i = 0; i < 20 && q != LATER && !is_open(row->answers[q]); i++) {
            char answer[ANSWER] = "";
            examine(&types[t], &states[s], immediate, (enum question)q, answer, NULL);
            if (is_open(answer)) memcpy(row->answers[q], answer, ANSWER);
        }
    }
    known[s][immediate][t] = 1;
}

/* True if libzmq may give this answer. Its socket and I/O thread end a connection in several steps, and a call may come between them. */
static int may_be(const struct row *row, int question, const char *answer) {
    const char *later = row->answers[LATER], *send = strchr(later, ',');
    if (question == LATER || send == NULL) return 0;
    if (question == EVENTS || question == POLL)
        return strlen(answer) == (size_t)(send - later) && strncmp(answer, later, strlen(answer)) == 0;
    return strcmp(answer, "EAGAIN") == 0 || strcmp(answer, send + 1) == 0;
}

static int compare(size_t s, int immediate, size_t t, int racy, const char *name) {
    const struct row *row = &table[s][immediate][t];
    int right = 1;
    for (int q = 0; q < QUESTIONS; q++) {
        char answer[ANSWER] = "";
        examine(&types[t], &states[s], immediate, (enum question)q, answer, row->answers[q]);
        if (strcmp(answer, row->answers[q]) == 0 || (racy && may_be(row, q, answer))) continue;
        printf("FAILED %s, %s: %s, not %s\n", name, questions[q], answer, row->answers[q]);
        right = 0;
    }
    return right;
}

int main(int argc, char **argv) {
    const char *only = getenv("CASES");
    int recording = argc == 2 && strcmp(argv[1], "--record") == 0, racy = argc > 1 && strcmp(argv[1], "--racy") == 0;
    int passed = 0, failed = 0, skipped = 0;
    if (argc < 2 + racy) {
        fprintf(stderr, "usage: states [--racy] TABLE... | --record\n");
        return 2;
    }
    for (int i = 1 + racy; i < argc && !recording; i++) read_table(argv[i]);
    signal(SIGPIPE, SIG_IGN);
    MUST(zmq_curve_keypair(public_key, secret_key));
    for (size_t s = 0; s < COUNT(states); s++)
        for (int immediate = 0; immediate < 2; immediate++) {
            /* Use a new context each time, because its end waits for thousands of closed sockets. */
            context = zmq_ctx_new();
            MUST(zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 60000));
            for (size_t t = 0; t < COUNT(types); t++) {
                char name[96];
                snprintf(name, sizeof name, "%s %d %s", states[s].name, immediate, types[t].name);
                if (!applies(&types[t], &states[s], immediate) || (only != NULL && strstr(name, only) == NULL)) continue;
                if (getenv("PROGRESS") != NULL) fprintf(stderr, "%s\n", name);
                /* The watchdog of each case. */
                alarm(120);
                if (recording) {
                    record(s, immediate, t);
                } else if (!known[s][immediate][t]) {
                    printf("skipped %s: not in the table\n", name);
                    skipped++;
                } else if (compare(s, immediate, t, racy, name)) {
                    passed++;
                } else {
                    failed++;
                }
            }
            alarm(120);
            MUST(zmq_ctx_term(context));
        }
    if (recording)
        print_table();
    else
        printf("states: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0;
}
