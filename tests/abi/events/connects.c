/* Situations with connected endpoints, with a peer and without. */
#include "play.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct watched *client_of(const char *name, int type)
{
    struct watched *client = watch(name, type);
    set(client, ZMQ_RECONNECT_IVL, LONG);
    return client;
}

static void disconnected(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end = meet(server, client, transport);
    do_disconnect(client, end);
    /* libzmq ends the stream in the socket's next call. */
    fence();
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_disconnect(client, end);
    settle();
    do_close(client);
    do_close(server);
}

static void client_closed(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = client_of("client", ZMQ_PUSH);
    meet(server, client, transport);
    do_close(client);
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

static void server_closed(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end = meet(server, client, transport);
    do_close(server);
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_disconnect(client, end);
    settle();
    do_close(client);
}

static void server_unbound(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end = meet(server, client, transport);
    do_unbind(server, end);
    settle();
    do_close(client);
    settle();
    do_close(server);
}

static void found_again(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *again = watch("again", ZMQ_PULL);
    struct watched *client = watch("client", ZMQ_PUSH);
    const char *end;
    set(client, ZMQ_RECONNECT_IVL, 200);
    end = meet(server, client, transport);
    do_close(server);
    until(client, ZMQ_EVENT_DISCONNECTED);
    do_bind(again, end);
    /* The number of attempts depends on the timing. */
    pass(client, ZMQ_EVENT_CONNECTED);
    until(client, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    until(again, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    do_close(client);
    until(again, ZMQ_EVENT_DISCONNECTED);
    do_close(again);
}

/* ---- endpoints without a listener */

static void nobody_there(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end = nobody(transport);
    do_connect(client, end);
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_disconnect(client, end);
    settle();
    do_disconnect(client, end);
    do_close(client);
}

static void nobody_closed(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    do_connect(client, nobody(transport));
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_close(client);
}

static void intervals(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    int count;
    set(client, ZMQ_RECONNECT_IVL, 2);
    set(client, ZMQ_RECONNECT_IVL_MAX, 7);
    do_connect(client, nobody(transport));
    for (count = 0; count < 4; count++)
        until(client, ZMQ_EVENT_CONNECT_RETRIED);
    close_unread(client);
}

static void jitter(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    int count;
    set(client, ZMQ_RECONNECT_IVL, 10);
    do_connect(client, nobody(transport));
    for (count = 0; count < 3; count++)
        until(client, ZMQ_EVENT_CONNECT_RETRIED);
    close_unread(client);
}

static void once(const char *transport, int interval)
{
    struct watched *client = watch("client", ZMQ_PUSH);
    const char *end = nobody(transport);
    set(client, ZMQ_RECONNECT_IVL, interval);
    do_connect(client, end);
    /* Over ipc the attempt ends at once. */
    until(client, ZMQ_EVENT_CLOSED);
    settle();
    do_disconnect(client, end);
    settle();
    do_disconnect(client, end);
    do_close(client);
}

static void once_never(const char *transport)
{
    once(transport, -1);
}

static void once_zero(const char *transport)
{
    once(transport, 0);
}

static void stop_refused(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end = nobody(transport);
    set(client, ZMQ_RECONNECT_STOP, ZMQ_RECONNECT_STOP_CONN_REFUSED);
    do_connect(client, end);
    until(client, ZMQ_EVENT_CLOSED);
    settle();
    do_disconnect(client, end);
    settle();
    do_close(client);
}

static void immediate(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end = nobody(transport);
    set(client, ZMQ_IMMEDIATE, 1);
    do_connect(client, end);
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_disconnect(client, end);
    settle();
    do_close(client);
}

/* The ipc file has lost its listener. */
static void stale(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end;
    close(raw_listen(transport, &end));
    set(client, ZMQ_RECONNECT_STOP, ZMQ_RECONNECT_STOP_CONN_REFUSED);
    do_connect(client, end);
    until(client, ZMQ_EVENT_CLOSED);
    settle();
    do_disconnect(client, end);
    settle();
    do_close(client);
}

/* The system refuses the connection at once. */
static void unreachable(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    (void)transport;
    do_connect(client, "tcp://255.255.255.255:9");
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_close(client);
}

/* Returns an endpoint with a full backlog, where new connections get no answer. */
static const char *full(int *listener, int *guest)
{
    const char *end;
    *listener = raw_listen("tcp", &end);
    if (listen(*listener, 0))
        _exit(3);
    *guest = raw_connect(end);
    return end;
}

static void waiting_disconnected(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    int listener, guest;
    const char *end = full(&listener, &guest);
    (void)transport;
    do_connect(client, end);
    until(client, ZMQ_EVENT_CONNECT_DELAYED);
    do_disconnect(client, end);
    settle();
    do_close(client);
}

static void waiting_closed(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    int listener, guest;
    (void)transport;
    do_connect(client, full(&listener, &guest));
    until(client, ZMQ_EVENT_CONNECT_DELAYED);
    do_close(client);
}

static void timed_out(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    int listener, guest;
    (void)transport;
    set(client, ZMQ_CONNECT_TIMEOUT, 20);
    do_connect(client, full(&listener, &guest));
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_close(client);
}

static void proxy_missing(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *proxy = nobody(transport);
    set_text(client, ZMQ_SOCKS_PROXY, strstr(proxy, "://") + 3);
    do_connect(client, "tcp://127.0.0.1:9");
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_close(client);
}

const struct situation connect_situations[] = {
    {"connect, disconnect", "tcp", disconnected, 1},
    {"connect, disconnect", "ipc", disconnected, 1},
    {"connect, disconnect", "ws", disconnected, 0},
    {"client is closed", "tcp", client_closed, 1},
    {"client is closed", "ipc", client_closed, 1},
    {"client is closed", "ws", client_closed, 0},
    {"server is closed", "tcp", server_closed, 1},
    {"server is closed", "ipc", server_closed, 1},
    {"server is closed", "ws", server_closed, 0},
    {"unbind with a peer", "tcp", server_unbound, 1},
    {"unbind with a peer", "ipc", server_unbound, 1},
    {"unbind with a peer", "ws", server_unbound, 0},
    {"server comes back", "tcp", found_again, 1},
    {"server comes back", "ipc", found_again, 1},
    {"server comes back", "ws", found_again, 0},
    {"nobody there, disconnect", "tcp", nobody_there, 1},
    {"nobody there, disconnect", "ipc", nobody_there, 1},
    {"nobody there, disconnect", "ws", nobody_there, 0},
    {"nobody there, close", "tcp", nobody_closed, 1},
    {"nobody there, close", "ipc", nobody_closed, 1},
    {"nobody there, close", "ws", nobody_closed, 0},
    {"nobody there, longest interval", "tcp", intervals, 1},
    {"nobody there, longest interval", "ipc", intervals, 1},
    {"nobody there, longest interval", "ws", intervals, 0},
    {"nobody there, one interval", "tcp", jitter, 1},
    {"nobody there, one interval", "ipc", jitter, 1},
    {"nobody there, interval -1", "tcp", once_never, 1},
    {"nobody there, interval -1", "ipc", once_never, 1},
    {"nobody there, interval -1", "ws", once_never, 0},
    {"nobody there, interval 0", "tcp", once_zero, 1},
    {"nobody there, interval 0", "ipc", once_zero, 1},
    {"nobody there, stop when refused", "tcp", stop_refused, 0},
    {"nobody there, stop when refused", "ipc", stop_refused, 0},
    {"nobody there, stop when refused", "ws", stop_refused, 0},
    {"stale file, stop when refused", "ipc", stale, 0},
    {"nobody there, immediate", "tcp", immediate, 1},
    {"nobody there, immediate", "ipc", immediate, 1},
    {"connect to what the system refuses", "tcp", unreachable, 1},
    {"connecting, disconnect", "tcp", waiting_disconnected, 1},
    {"connecting, close", "tcp", waiting_closed, 1},
    {"connecting takes too long", "tcp", timed_out, 1},
    {"no proxy there", "tcp", proxy_missing, 1},
    {0},
};
