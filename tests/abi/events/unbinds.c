/* Situations with peers and their messages after zmq_unbind and zmq_disconnect, and after the endpoint is bound or
 * connected again. The table shows only their calls. Other files have the events of such calls. */
#include "play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct watched *server, *client;
static int server_type, client_type;
static const char *given, *bound;
static int messages;

static int sends(int type)
{
    return type != ZMQ_PULL && type != ZMQ_SUB;
}

static int receives(int type)
{
    return type != ZMQ_PUSH && type != ZMQ_PUB;
}

static void say(struct watched *watched, int type)
{
    char text[16];
    snprintf(text, sizeof text, "%s %d", watched->name, ++messages);
    if (sends(type))
        do_send(watched, text);
}

/* Receives all queued messages, and the EAGAIN after them. */
static void hear(struct watched *watched, int type)
{
    if (receives(type))
        while (do_recv(watched, ZMQ_DONTWAIT) != -1)
            ;
}

/* Sends a message that must arrive, and waits for the connection as long as necessary. */
static void expect(struct watched *from, int from_type, struct watched *to, int to_type)
{
    char text[16];
    int result;
    snprintf(text, sizeof text, "%s %d", from->name, ++messages);
    if (!sends(from_type) || !receives(to_type))
        return;
    result = send_waiting(from, text);
    note(from, "send at last", result);
    if (result == -1)
        return;
    do_recv(to, 0);
}

/* Executes a step, which is one letter. In a pair of letters, the first belongs to the server. */
static void step(char letter)
{
    switch (letter) {
    case 'u': do_unbind(server, bound); break;
    case 'd': do_disconnect(client, bound); break;
    case 'b': do_bind(server, bound); break;
    case 'w':
        do_bind(server, given);
        bound = endpoint_of(server, "bound");
        break;
    case 'c': do_connect(client, bound); break;
    case 's': say(server, server_type); break;
    case 'S': say(client, client_type); break;
    case 'r': hear(server, server_type); break;
    case 'R': hear(client, client_type); break;
    case 'e':
        /* With PUB, the test does not wait for a subscription in transit. */
        if (server_type == ZMQ_PUB)
            break;
        expect(client, client_type, server, server_type);
        expect(server, server_type, client, client_type);
        break;
    case 'x': do_close(client); break;
    case 'f': fence(); break;
    default: abort();
    }
}

static void play(const char *transport, int bound_type, int connected_type, const char *steps)
{
    server_type = bound_type, client_type = connected_type;
    server = unwatched("server", bound_type), client = unwatched("client", connected_type);
    set(client, ZMQ_RECONNECT_IVL, 10);
    if (client_type == ZMQ_SUB)
        set_text(client, ZMQ_SUBSCRIBE, "");
    given = !strcmp(transport, "inproc") ? "inproc://here" : fresh(transport);
    do_bind(server, given);
    bound = endpoint_of(server, "bound");
    do_connect(client, bound);
    step('e');
    fence();
    for (; *steps; steps++)
        step(*steps);
    fence();
}

#define ORDERS(name, bound_type, connected_type)                                                             \
    static void name##_unread(const char *transport)                                                         \
    {                                                                                                        \
        play(transport, bound_type, connected_type, "sSfufrR");                                              \
    }                                                                                                        \
    static void name##_unbind(const char *transport)                                                         \
    {                                                                                                        \
        play(transport, bound_type, connected_type, "ufsSfrRufbe");                                          \
    }                                                                                                        \
    static void name##_rebind(const char *transport)                                             \
    {                                                                                                        \
        play(transport, bound_type, connected_type, "ufbfe");                                                 \
    }                                                                                                        \
    static void name##_wildcard(const char *transport)                                                       \
    {                                                                                                        \
        play(transport, bound_type, connected_type, "udfwcfe");                                                \
    }                                                                                                        \
    static void name##_disconnect_unread(const char *transport)                                              \
    {                                                                                                        \
        play(transport, bound_type, connected_type, "sSfdfrR");                                              \
    }                                                                                                        \
    static void name##_disconnect(const char *transport)                                                     \
    {                                                                                                        \
        play(transport, bound_type, connected_type, "dfsSfrRdcfe");                                          \
    }                                                                                                        \
    static void name##_unbind_disconnect(const char *transport)                                              \
    {                                                                                                        \
        play(transport, bound_type, connected_type, "ufdfsSfbcfe");                                          \
    }                                                                                                        \
    static void name##_disconnect_unbind(const char *transport)                                              \
    {                                                                                                        \
        play(transport, bound_type, connected_type, "dfufsSfcbfe");                                          \
    }                                                                                                        \
    static void name##_unbind_close(const char *transport)                                                   \
    {                                                                                                        \
        play(transport, bound_type, connected_type, "Sfufxfsr");                                              \
    }

ORDERS(push, ZMQ_PUSH, ZMQ_PULL)
ORDERS(pull, ZMQ_PULL, ZMQ_PUSH)
ORDERS(pair, ZMQ_PAIR, ZMQ_PAIR)
ORDERS(dealer, ZMQ_DEALER, ZMQ_DEALER)
ORDERS(pub, ZMQ_PUB, ZMQ_SUB)

#define OVER(transport, versions, what, name)                                                                  \
    {"unread, unbind, " what, transport, name##_unread, versions},                                             \
        {"unbind, bind, " what, transport, name##_unbind, versions},                                           \
        {"unbind, bind before anything is sent, " what, transport, name##_rebind, versions},                    \
        {"unbind and bind with a wildcard, " what, transport, name##_wildcard, versions},                      \
        {"unread, disconnect, " what, transport, name##_disconnect_unread, versions},                          \
        {"disconnect, connect, " what, transport, name##_disconnect, versions},                                \
        {"unbind, disconnect, bind, connect, " what, transport, name##_unbind_disconnect, versions},           \
        {"disconnect, unbind, connect, bind, " what, transport, name##_disconnect_unbind, versions},           \
    {                                                                                                        \
        "unbind, close, " what, transport, name##_unbind_close, versions                                     \
    }

#define ALL(what, name)                                                                                      \
    OVER("tcp", FIRST, what, name), OVER("ipc", FIRST, what, name), OVER("ws", SECOND, what, name), OVER("inproc", FIRST, what, name)

const struct situation unbind_situations[] = {
    ALL("PUSH bound", push), ALL("PULL bound", pull), ALL("PAIR", pair), ALL("DEALER", dealer), ALL("PUB bound", pub), {0},
};
