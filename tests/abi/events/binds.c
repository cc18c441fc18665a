/* Situations with bound endpoints, and with monitors themselves. */
#include "play.h"

#include <stdio.h>
#include <string.h>

/* Events show the endpoint by its name. The socket closes while it is bound. */
static void bound(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    do_bind(server, fresh(transport));
    endpoint_of(server, "bound");
    settle();
    do_close(server);
}

static void wildcard(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    (void)transport;
    do_bind(server, "ipc://*");
    endpoint_of(server, "bound");
    settle();
    do_unbind(server, endpoint_of(server, NULL));
    settle();
    do_close(server);
}

static void abstract(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    char end[256];
    (void)transport;
    snprintf(end, sizeof end, "ipc://@%s", directory);
    do_bind(server, end);
    settle();
    do_unbind(server, end);
    settle();
    do_close(server);
}

static void unbound(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    const char *end;
    do_bind(server, fresh(transport));
    end = endpoint_of(server, "bound");
    do_unbind(server, end);
    until(server, ZMQ_EVENT_CLOSED);
    do_unbind(server, end);
    do_bind(server, end);
    settle();
    do_close(server);
}

static void twice(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    const char *end;
    do_bind(server, fresh(transport));
    end = endpoint_of(server, "bound");
    do_bind(server, end);
    settle();
    do_close(server);
}

/* Another socket has bound the endpoint. Over ipc the second socket takes over the path. */
static void taken(const char *transport)
{
    struct watched *first = watch("first", ZMQ_PULL);
    struct watched *second = watch("second", ZMQ_PULL);
    do_bind(first, fresh(transport));
    do_bind(second, endpoint_of(first, "bound"));
    settle();
    do_close(first);
    do_close(second);
}

static void not_ours(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    char end[256];
    snprintf(end, sizeof end, "%s://192.0.2.1:5555", transport);
    do_bind(server, end);
    settle();
    do_close(server);
}

/* The port is in use. The address has two forms: the given form, and the system's form. */
static void any_taken(const char *transport)
{
    struct watched *first = watch("first", ZMQ_PULL);
    struct watched *second = watch("second", ZMQ_PULL);
    char end[256];
    snprintf(end, sizeof end, "%s://*:*", transport);
    do_bind(first, end);
    snprintf(end, sizeof end, "%s://*%s", transport, strrchr(endpoint_of(first, "bound"), ':'));
    call(strrchr(end, ':') + 1, "port");
    do_bind(second, end);
    settle();
    do_close(second);
    do_close(first);
}

static void malformed(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    char end[256];
    const char *rest[] = {"127.0.0.1", "127.0.0.1:99999", "127.0.0.1:", ":5555", "[::1:5555", "no..such:5555"};
    size_t index;
    for (index = 0; index < sizeof rest / sizeof *rest; index++) {
        snprintf(end, sizeof end, "%s://%s", transport, rest[index]);
        do_bind(server, end);
    }
    settle();
    do_close(server);
}

static void no_directory(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    char end[512];
    (void)transport;
    snprintf(end, sizeof end, "ipc://%s/none/here", directory);
    do_bind(server, end);
    snprintf(end, sizeof end, "ipc://%s/%0150d", directory, 0);
    do_bind(server, end);
    settle();
    do_close(server);
}

static void refused_calls(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    (void)transport;
    do_bind(server, "tcp");
    do_bind(server, "nosuch://127.0.0.1:*");
    do_bind(server, "udp://127.0.0.1:*");
    do_connect(server, "tcp");
    do_connect(server, "nosuch://127.0.0.1:5555");
    do_unbind(server, "tcp://127.0.0.1:5555");
    do_disconnect(server, "tcp://127.0.0.1:5555");
    settle();
    do_close(server);
}

static void of_a_descriptor(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = watch("client", ZMQ_PUSH);
    const char *end;
    set(server, ZMQ_USE_FD, raw_listen(transport, &end));
    do_bind(server, end);
    do_connect(client, endpoint_of(server, NULL));
    until(server, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    until(client, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    do_close(client);
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

static void within(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = watch("client", ZMQ_PUSH);
    (void)transport;
    do_bind(server, "inproc://here");
    do_bind(server, "inproc://here");
    do_connect(client, "inproc://here");
    do_send(client, "hello");
    do_recv(server, 0);
    settle();
    do_disconnect(client, "inproc://here");
    do_unbind(server, "inproc://here");
    settle();
    do_close(client);
    do_close(server);
}

static void datagrams(const char *transport)
{
    struct watched *dish = watch("dish", ZMQ_DISH);
    struct watched *radio = watch("radio", ZMQ_RADIO);
    (void)transport;
    do_bind(dish, "udp://127.0.0.1:*");
    do_connect(radio, "udp://127.0.0.1:9");
    settle();
    do_close(radio);
    do_close(dish);
}

/* ---- monitors */

static void monitor_stopped(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    do_bind(server, fresh(transport));
    endpoint_of(server, "bound");
    note(server, "stop monitor", zmq_socket_monitor(server->socket, NULL, 0));
    until(server, ZMQ_EVENT_MONITOR_STOPPED);
    note(server, "stop monitor", zmq_socket_monitor(server->socket, NULL, 0));
    do_close(server);
}

static void monitor_replaced(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    do_bind(server, fresh(transport));
    endpoint_of(server, "bound");
    note(server, "monitor", zmq_socket_monitor(server->socket, "inproc://monitor-new", ZMQ_EVENT_LISTENING));
    until(server, ZMQ_EVENT_MONITOR_STOPPED);
    note(server, "monitor", zmq_socket_monitor(server->socket, "tcp://127.0.0.1:*", ZMQ_EVENT_ALL));
    note(server, "monitor", zmq_socket_monitor(server->socket, "monitor", ZMQ_EVENT_ALL));
    note(server, "monitor", zmq_socket_monitor(server->socket, "inproc://monitor-other", 0x10000));
    do_close(server);
}

/* The end of a context also ends its monitors. */
static void shut_down(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    char byte;
    do_bind(server, fresh(transport));
    endpoint_of(server, "bound");
    settle();
    note(server, "shut down", zmq_ctx_shutdown(context));
    note(server, "receive event", zmq_recv(server->monitor, &byte, 1, 0));
    note(server, "bind", zmq_bind(server->socket, fresh(transport)));
    note(server, "monitor", zmq_socket_monitor(server->socket, "inproc://monitor-new", ZMQ_EVENT_ALL));
    close_unread(server);
}

static void stats(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = watch("client", ZMQ_PUSH);
    int count = 0;
    note(client, "pipes stats", zmq_socket_monitor_pipes_stats(client->socket));
    if (strcmp(transport, "inproc")) {
        meet(server, client, transport);
    } else {
        do_bind(server, "inproc://here");
        do_connect(client, "inproc://here");
    }
    note(client, "pipes stats", zmq_socket_monitor_pipes_stats(client->socket));
    for (count = 0; count < 3; count++)
        fence();
    until(client, ZMQ_EVENT_PIPES_STATS);
    note(server, "pipes stats", zmq_socket_monitor_pipes_stats(server->socket));
    fence();
    until(server, ZMQ_EVENT_PIPES_STATS);
    if (!strcmp(transport, "inproc")) {
        /* libzmq's sockets do not finish closing here. */
        close_unread(client);
        close_unread(server);
        return;
    }
    do_close(client);
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

const struct situation bind_situations[] = {
    {"bind", "tcp", bound, 1},
    {"bind", "ipc", bound, 1},
    {"bind", "ws", bound, 0},
    {"bind ipc://*", NULL, wildcard, 1},
    {"bind ipc://@", NULL, abstract, 1},
    {"unbind", "tcp", unbound, 1},
    {"unbind", "ipc", unbound, 1},
    {"unbind", "ws", unbound, 0},
    {"bind twice", "tcp", twice, 1},
    {"bind twice", "ipc", twice, 1},
    {"bind twice", "ws", twice, 0},
    {"bind where another is", "tcp", taken, 1},
    {"bind where another is", "ipc", taken, 1},
    {"bind where another is", "ws", taken, 0},
    {"bind * where another is", "tcp", any_taken, 1},
    {"bind * where another is", "ws", any_taken, 0},
    {"bind a foreign address", "tcp", not_ours, 1},
    {"bind a foreign address", "ws", not_ours, 0},
    {"bind malformed addresses", "tcp", malformed, 1},
    {"bind malformed addresses", "ws", malformed, 0},
    {"bind impossible paths", "ipc", no_directory, 1},
    {"calls that are refused", NULL, refused_calls, 1},
    {"bind with ZMQ_USE_FD", "tcp", of_a_descriptor, 1},
    {"bind with ZMQ_USE_FD", "ipc", of_a_descriptor, 1},
    {"bind and connect", "inproc", within, 1},
    {"bind and connect", "udp", datagrams, 0},
    {"monitor is stopped", "tcp", monitor_stopped, 1},
    {"monitor is replaced", "tcp", monitor_replaced, 1},
    {"context is shut down", "tcp", shut_down, 1},
    {"pipes stats", "tcp", stats, 0},
    {"pipes stats", "ipc", stats, 0},
    {"pipes stats", "ws", stats, 0},
    {"pipes stats", "inproc", stats, 0},
    {0},
};
