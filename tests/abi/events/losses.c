/* Situations with peers that disconnect, stop answering or are refused, in a handshake and after it. */
#include "play.h"

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

/* Metadata of a PUSH without a mechanism. */
static const char READY[] = "\5READY\13Socket-Type\0\0\0\4PUSH";
static const char READY_PULL[] = "\5READY\13Socket-Type\0\0\0\4PULL";

/* Returns a peer of this PULL with a completed handshake. */
static int guest_of(struct watched *server, const char *transport)
{
    int guest;
    do_bind(server, fresh(transport));
    guest = raw_connect(endpoint_of(server, "bound"));
    raw_greet(guest, "NULL", 0);
    raw_frame(guest, 4, READY, sizeof READY - 1);
    until(server, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    return guest;
}

static void peer_ends(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    int guest = guest_of(server, transport);
    close(guest);
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

static void peer_resets(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct linger at_once = {.l_onoff = 1};
    int guest = guest_of(server, transport);
    setsockopt(guest, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(guest);
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

static void peer_half_closes(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    int guest = guest_of(server, transport);
    shutdown(guest, SHUT_WR);
    until(server, ZMQ_EVENT_DISCONNECTED);
    raw_drain(guest);
    do_close(server);
}

/* The peer does not answer with a PONG. */
static void no_pong(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    set(server, ZMQ_HEARTBEAT_IVL, 50);
    guest_of(server, transport);
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

/* The peer sends a PING with a time to live of 0.1 seconds, and then stops sending. */
static void no_ping(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    int guest = guest_of(server, transport);
    raw_frame(guest, 4, "\4PING\0\1", 7);
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

static void no_pong_for_client(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end;
    int listener = raw_listen(transport, &end), host;
    set(client, ZMQ_HEARTBEAT_IVL, 50);
    do_connect(client, end);
    host = raw_accept(listener);
    raw_greet(host, "NULL", 0);
    raw_frame(host, 4, READY_PULL, sizeof READY_PULL - 1);
    until(client, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_close(client);
}

/* ---- frames that are invalid after the handshake */

static void sent_afterwards(const char *transport, int flags, const char *body, size_t length)
{
    struct watched *server = watch("server", ZMQ_PULL);
    int guest;
    set(server, ZMQ_RCVHWM, 10);
    if (!flags) {
        int64_t limit = 64;
        zmq_setsockopt(server->socket, ZMQ_MAXMSGSIZE, &limit, sizeof limit);
    }
    guest = guest_of(server, transport);
    raw_frame(guest, flags, body, length);
    /* libzmq keeps the connection after an unknown command. */
    if (flags == 4)
        settle();
    else
        until(server, ZMQ_EVENT_DISCONNECTED);
    close(guest);
    if (flags == 4)
        until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

static void too_long(const char *transport)
{
    char body[65] = {0};
    sent_afterwards(transport, 0, body, sizeof body);
}

static void unknown_command(const char *transport)
{
    sent_afterwards(transport, 4, "\4NONE", 5);
}

/* ---- in the handshake */

static void ends_early(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    do_bind(server, fresh(transport));
    /* Closing a stream with unread data would reset it, so this shuts down only one direction. */
    shutdown(raw_connect(endpoint_of(server, "bound")), SHUT_WR);
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

static void ends_after_greeting(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    int guest;
    do_bind(server, fresh(transport));
    guest = raw_connect(endpoint_of(server, "bound"));
    raw_greet(guest, "NULL", 0);
    shutdown(guest, SHUT_WR);
    until(server, ZMQ_EVENT_DISCONNECTED);
    close(guest);
    do_close(server);
}

static void host_ends(const char *transport, int stop)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end;
    int listener = raw_listen(transport, &end), host;
    if (stop)
        set(client, ZMQ_RECONNECT_STOP, stop);
    do_connect(client, end);
    host = raw_accept(listener);
    shutdown(host, SHUT_WR);
    raw_drain(host);
    close(host);
    if (!stop)
        until(client, ZMQ_EVENT_CONNECT_RETRIED);
    else
        until(client, ZMQ_EVENT_DISCONNECTED);
    settle();
    do_disconnect(client, end);
    settle();
    do_close(client);
}

static void host_ends_early(const char *transport)
{
    host_ends(transport, 0);
}

static void host_ends_and_stop(const char *transport)
{
    host_ends(transport, ZMQ_RECONNECT_STOP_HANDSHAKE_FAILED);
}

static void guest_is_silent(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    set(server, ZMQ_HANDSHAKE_IVL, 50);
    do_bind(server, fresh(transport));
    raw_connect(endpoint_of(server, "bound"));
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

static void host_is_silent(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end;
    raw_listen(transport, &end);
    set(client, ZMQ_HANDSHAKE_IVL, 50);
    do_connect(client, end);
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_close(client);
}

static void disconnected_shaking(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end;
    int host = raw_listen(transport, &end);
    do_connect(client, end);
    host = raw_accept(host);
    until(client, ZMQ_EVENT_CONNECTED);
    do_disconnect(client, end);
    fence();
    raw_drain(host);
    settle();
    do_close(client);
}

static void closed_shaking(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end;
    raw_listen(transport, &end);
    do_connect(client, end);
    until(client, ZMQ_EVENT_CONNECTED);
    do_close(client);
}

static void unbound_shaking(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    const char *end;
    int guest;
    do_bind(server, fresh(transport));
    end = endpoint_of(server, "bound");
    guest = raw_connect(end);
    until(server, ZMQ_EVENT_ACCEPTED);
    do_unbind(server, end);
    raw_drain(guest);
    settle();
    do_close(server);
}

/* ---- endpoints that the library gives up */

static void lost_once(const char *transport, int interval)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = watch("client", ZMQ_PUSH);
    const char *end;
    set(client, ZMQ_RECONNECT_IVL, interval);
    end = meet(server, client, transport);
    do_close(server);
    until(client, ZMQ_EVENT_DISCONNECTED);
    settle();
    do_disconnect(client, end);
    settle();
    do_close(client);
}

static void lost_for_good(const char *transport)
{
    lost_once(transport, -1);
}

static void stop_after_disconnect(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end;
    set(client, ZMQ_RECONNECT_STOP, ZMQ_RECONNECT_STOP_AFTER_DISCONNECT);
    end = meet(server, client, transport);
    do_disconnect(client, end);
    fence();
    until(server, ZMQ_EVENT_DISCONNECTED);
    settle();
    do_close(client);
    do_close(server);
}

static void server_closed_and_stop(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    struct watched *client = client_of("client", ZMQ_PUSH);
    const char *end;
    set(client, ZMQ_RECONNECT_STOP, ZMQ_RECONNECT_STOP_AFTER_DISCONNECT);
    end = meet(server, client, transport);
    do_close(server);
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_disconnect(client, end);
    settle();
    do_close(client);
}

/* ---- refused peers */

static void filtered(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PULL);
    int guest;
    uid_t nobody_here = 54321;
    if (strcmp(transport, "ipc"))
        set_text(server, ZMQ_TCP_ACCEPT_FILTER, "192.0.2.0/24");
    else if (zmq_setsockopt(server->socket, ZMQ_IPC_FILTER_UID, &nobody_here, sizeof nobody_here))
        _exit(3);
    do_bind(server, fresh(transport));
    guest = raw_connect(endpoint_of(server, "bound"));
    raw_drain(guest);
    settle();
    do_close(server);
}

static void second_of_pair(const char *transport)
{
    struct watched *server = watch("server", ZMQ_PAIR);
    struct watched *first = client_of("first", ZMQ_PAIR);
    struct watched *second = client_of("second", ZMQ_PAIR);
    const char *end = meet(server, first, transport);
    settle();
    do_connect(second, end);
    until(second, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    until(server, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    settle();
    close_unread(second);
    close_unread(first);
    close_unread(server);
}

static void same_name(const char *transport, int handover)
{
    struct watched *server = watch("server", ZMQ_ROUTER);
    struct watched *first = client_of("first", ZMQ_DEALER);
    struct watched *second = client_of("second", ZMQ_DEALER);
    const char *end;
    set(server, ZMQ_ROUTER_HANDOVER, handover);
    set_text(first, ZMQ_ROUTING_ID, "name");
    set_text(second, ZMQ_ROUTING_ID, "name");
    end = meet(server, first, transport);
    settle();
    do_connect(second, end);
    until(second, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    until(server, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    settle();
    close_unread(second);
    close_unread(first);
    close_unread(server);
}

static void name_taken(const char *transport)
{
    same_name(transport, 0);
}

static void name_taken_over(const char *transport)
{
    same_name(transport, 1);
}

/* ---- ZMQ_STREAM */

static void stream_bound(const char *transport)
{
    struct watched *server = watch("server", ZMQ_STREAM);
    int guest;
    do_bind(server, fresh(transport));
    guest = raw_connect(endpoint_of(server, "bound"));
    until(server, ZMQ_EVENT_ACCEPTED);
    settle();
    close(guest);
    until(server, ZMQ_EVENT_DISCONNECTED);
    do_close(server);
}

static void stream_connected(const char *transport)
{
    struct watched *client = client_of("client", ZMQ_STREAM);
    const char *end;
    int host = raw_listen(transport, &end);
    do_connect(client, end);
    host = raw_accept(host);
    until(client, ZMQ_EVENT_CONNECTED);
    settle();
    close(host);
    until(client, ZMQ_EVENT_CONNECT_RETRIED);
    do_close(client);
}

const struct situation loss_situations[] = {
    {"peer ends", "tcp", peer_ends, 1},
    {"peer ends", "ipc", peer_ends, 1},
    {"peer resets", "tcp", peer_resets, 1},
    {"peer ends one direction", "tcp", peer_half_closes, 1},
    {"peer ends one direction", "ipc", peer_half_closes, 1},
    {"no PONG", "tcp", no_pong, 1},
    {"no PONG", "ipc", no_pong, 1},
    {"no PING", "tcp", no_ping, 1},
    {"no PONG for the client", "tcp", no_pong_for_client, 1},
    {"message too long", "tcp", too_long, 1},
    {"message too long", "ipc", too_long, 1},
    {"unknown command", "tcp", unknown_command, 1},
    {"guest ends at once", "tcp", ends_early, 1},
    {"guest ends at once", "ipc", ends_early, 1},
    {"guest ends at once", "ws", ends_early, 0},
    {"guest ends after its greeting", "tcp", ends_after_greeting, 1},
    {"host ends at once", "tcp", host_ends_early, 1},
    {"host ends at once", "ipc", host_ends_early, 1},
    {"host ends at once", "ws", host_ends_early, 0},
    {"host ends at once, stop when a handshake fails", "tcp", host_ends_and_stop, 0},
    {"host ends at once, stop when a handshake fails", "ipc", host_ends_and_stop, 0},
    {"guest is silent", "tcp", guest_is_silent, 1},
    {"guest is silent", "ipc", guest_is_silent, 1},
    {"host is silent", "tcp", host_is_silent, 1},
    {"host is silent", "ipc", host_is_silent, 1},
    {"shaking hands, disconnect", "tcp", disconnected_shaking, 1},
    {"shaking hands, disconnect", "ipc", disconnected_shaking, 1},
    {"shaking hands, close", "tcp", closed_shaking, 1},
    {"shaking hands, close", "ipc", closed_shaking, 1},
    {"shaking hands, unbind", "tcp", unbound_shaking, 1},
    {"shaking hands, unbind", "ipc", unbound_shaking, 1},
    {"lost, interval -1", "tcp", lost_for_good, 1},
    {"lost, interval -1", "ipc", lost_for_good, 1},
    {"stop after disconnect", "tcp", stop_after_disconnect, 0},
    {"server is closed, stop after disconnect", "tcp", server_closed_and_stop, 0},
    {"guest is filtered", "tcp", filtered, 1},
    {"guest is filtered", "ipc", filtered, 1},
    {"second peer of a PAIR", "tcp", second_of_pair, 1},
    {"second peer of a name", "tcp", name_taken, 1},
    {"second peer of a name takes over", "tcp", name_taken_over, 1},
    {"STREAM bound", "tcp", stream_bound, 1},
    {"STREAM connected", "tcp", stream_connected, 1},
    {0},
};
