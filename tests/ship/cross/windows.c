/* Tests the parts that differ on Windows: sockets in place of descriptors, errno of its C library, missing features. */
#define ZMQ_BUILD_DRAFT_API
#include "../../abi/c/check.h"

#include <stdio.h>

static void wait_for(SOCKET fd)
{
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    CHECK(select(0, &readable, NULL, NULL, NULL) == 1);
}

/* Waits for ZMQ_FD with select, as an event loop does. */
static void descriptor(void *context, const char *endpoint)
{
    void *pull = zmq_socket(context, ZMQ_PULL), *push = zmq_socket(context, ZMQ_PUSH);
    char last[64], buffer[16];
    size_t size = sizeof last;
    SOCKET fd = INVALID_SOCKET;
    int n, got = 0;
    CHECK(zmq_bind(pull, endpoint) == 0 && zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, last, &size) == 0);
    size = sizeof fd;
    CHECK(zmq_getsockopt(pull, ZMQ_FD, &fd, &size) == 0 && size == sizeof fd && fd != INVALID_SOCKET);
    CHECK(zmq_connect(push, last) == 0);
    for (n = 0; n < 100; n++)
        CHECK(zmq_send(push, "hello", 5, 0) == 5);
    while (got < 100) {
        int events = int_option(pull, ZMQ_EVENTS);
        if (!(events & ZMQ_POLLIN)) {
            wait_for(fd);
            continue;
        }
        CHECK(zmq_recv(pull, buffer, sizeof buffer, ZMQ_DONTWAIT) == 5);
        got++;
    }
    CHECK_ERRNO(zmq_recv(pull, buffer, sizeof buffer, ZMQ_DONTWAIT), -1, EAGAIN);
    zmq_close(pull);
    zmq_close(push);
}

/* Waits for the descriptor of a poller. A poller has a descriptor only while it contains a thread-safe socket. */
static void poller_descriptor(void *context)
{
    void *server = zmq_socket(context, ZMQ_SERVER), *client = zmq_socket(context, ZMQ_CLIENT);
    void *pull = zmq_socket(context, ZMQ_PULL), *poller = zmq_poller_new();
    zmq_poller_event_t event;
    char last[64], buffer[16];
    size_t size = sizeof last;
    SOCKET fd = INVALID_SOCKET;
    int n;
    CHECK(zmq_bind(server, "tcp://127.0.0.1:*") == 0 && zmq_getsockopt(server, ZMQ_LAST_ENDPOINT, last, &size) == 0);
    CHECK(zmq_poller_add(poller, pull, NULL, ZMQ_POLLIN) == 0);
    CHECK_ERRNO(zmq_poller_fd(poller, &fd), -1, EINVAL);
    CHECK(zmq_poller_add(poller, server, NULL, ZMQ_POLLIN) == 0);
    CHECK(zmq_poller_fd(poller, &fd) == 0 && fd != INVALID_SOCKET);
    CHECK(zmq_connect(client, last) == 0);
    for (n = 0; n < 100; n++) {
        CHECK(zmq_send(client, "hello", 5, 0) == 5);
        do
            wait_for(fd);
        while (zmq_poller_wait(poller, &event, 0) != 0);
        CHECK(event.socket == server && event.events == ZMQ_POLLIN);
        CHECK(zmq_recv(server, buffer, sizeof buffer, ZMQ_DONTWAIT) == 5);
    }
    CHECK(zmq_poller_remove(poller, server) == 0);
    CHECK_ERRNO(zmq_poller_fd(poller, &fd), -1, EINVAL);
    CHECK(zmq_poller_destroy(&poller) == 0);
    zmq_close(pull);
    zmq_close(client);
    zmq_close(server);
}

/* Polls sockets of Winsock and of ZeroMQ in one call. */
static void polling(void *context)
{
    void *pair[2];
    zmq_pollitem_t items[3];
    struct sockaddr_in address = {0};
    int length = sizeof address;
    SOCKET plain = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
    char buffer[8];
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(plain, (struct sockaddr *) &address, sizeof address) == 0);
    CHECK(getsockname(plain, (struct sockaddr *) &address, &length) == 0);
    make_pair(context, &pair[0], &pair[1]);
    memset(items, 0, sizeof items);
    items[0].socket = pair[0];
    items[1].fd = plain;
    items[2].fd = INVALID_SOCKET;
    items[0].events = items[1].events = items[2].events = ZMQ_POLLIN;
    CHECK(zmq_poll(items, 2, 1) == 0);
    CHECK(sendto(other, "raw", 3, 0, (struct sockaddr *) &address, sizeof address) == 3);
    CHECK(zmq_poll(items, 3, -1) == 1 && items[1].revents == ZMQ_POLLIN && items[0].revents == 0);
    CHECK(recv(plain, buffer, sizeof buffer, 0) == 3);
    CHECK(zmq_send(pair[1], "ours", 4, 0) == 4);
    CHECK(zmq_poll(items, 2, -1) == 1 && items[0].revents == ZMQ_POLLIN && items[1].revents == 0);
    closesocket(plain);
    closesocket(other);
    zmq_close(pair[0]);
    zmq_close(pair[1]);
}

/* A connection that the peer has closed is readable, as with select, and is not an error. */
static void ends(void)
{
    zmq_pollitem_t item = {0};
    struct sockaddr_in address = {0};
    int length = sizeof address;
    SOCKET listener = socket(AF_INET, SOCK_STREAM, 0), ours = socket(AF_INET, SOCK_STREAM, 0), theirs;
    char byte;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(listener, (struct sockaddr *) &address, sizeof address) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *) &address, &length) == 0);
    CHECK(connect(ours, (struct sockaddr *) &address, sizeof address) == 0);
    theirs = accept(listener, NULL, NULL);
    item.fd = ours;
    item.events = ZMQ_POLLIN;
    CHECK(zmq_poll(&item, 1, 0) == 0);
    closesocket(theirs);
    CHECK(zmq_poll(&item, 1, -1) == 1 && item.revents == ZMQ_POLLIN);
    CHECK(recv(ours, &byte, 1, 0) == 0);
    closesocket(ours);
    closesocket(listener);
}

static int read_event(void *monitor, int *value)
{
    unsigned char frame[6], address[128];
    unsigned short event;
    CHECK(zmq_recv(monitor, frame, sizeof frame, 0) == 6);
    memcpy(&event, frame, sizeof event);
    memcpy(value, frame + 2, sizeof *value);
    CHECK(zmq_recv(monitor, address, sizeof address, 0) >= 0);
    return event;
}

/* Error numbers are those of errno.h, also in events. */
static void numbers(void *context)
{
    void *first = zmq_socket(context, ZMQ_REP), *second = zmq_socket(context, ZMQ_REP), *monitor;
    char last[64];
    size_t size = sizeof last;
    int value = 0;
    CHECK(zmq_bind(first, "tcp://127.0.0.1:*") == 0 && zmq_getsockopt(first, ZMQ_LAST_ENDPOINT, last, &size) == 0);
    CHECK(zmq_socket_monitor(second, "inproc://events", ZMQ_EVENT_BIND_FAILED) == 0);
    monitor = zmq_socket(context, ZMQ_PAIR);
    CHECK(zmq_connect(monitor, "inproc://events") == 0);
    CHECK_ERRNO(zmq_bind(second, last), -1, EADDRINUSE);
    CHECK(read_event(monitor, &value) == ZMQ_EVENT_BIND_FAILED && value == EADDRINUSE);
    CHECK_ERRNO(zmq_bind(second, "tcp://192.0.2.1:5555"), -1, EADDRNOTAVAIL);
    CHECK_ERRNO(zmq_bind(second, "tcp://nosuchinterface:5555"), -1, ENODEV);
    CHECK(strcmp(zmq_strerror(EADDRINUSE), "Address in use") == 0);
    CHECK(strcmp(zmq_strerror(ENOTSOCK), "Not a socket") == 0);
    if (!zmq_has("ipc")) {
        CHECK_ERRNO(zmq_bind(second, "ipc://here"), -1, EPROTONOSUPPORT);
        CHECK_ERRNO(zmq_connect(second, "ipc://here"), -1, EPROTONOSUPPORT);
    }
    set_int_option(second, ZMQ_PRIORITY, 5);
    set_int_option(second, ZMQ_BUSY_POLL, 50);
    CHECK(zmq_bind(second, "tcp://127.0.0.1:*") == 0 && zmq_connect(second, last) == 0);
    CHECK(zmq_has("vsock") == 0 && zmq_has("WS") == 1 && zmq_has("curve") == 1);
    zmq_close(monitor);
    zmq_close(first);
    zmq_close(second);
}

static void datagrams(void *context)
{
    void *dish = zmq_socket(context, ZMQ_DGRAM), *other = zmq_socket(context, ZMQ_DGRAM);
    char address[64], buffer[16];
    CHECK(zmq_bind(dish, "udp://127.0.0.1:45671") == 0 && zmq_bind(other, "udp://127.0.0.1:45672") == 0);
    CHECK(zmq_send(other, "127.0.0.1:45671", 15, ZMQ_SNDMORE) == 15 && zmq_send(other, "hello", 5, 0) == 5);
    CHECK(zmq_recv(dish, address, sizeof address, 0) > 0);
    CHECK(zmq_recv(dish, buffer, sizeof buffer, 0) == 5);
    zmq_close(dish);
    zmq_close(other);
}

int main(void)
{
    WSADATA data;
    void *context;
    WSAStartup(MAKEWORD(2, 2), &data);
    context = zmq_ctx_new();
    descriptor(context, "tcp://127.0.0.1:*");
    descriptor(context, "ws://127.0.0.1:*");
    descriptor(context, "inproc://here");
    poller_descriptor(context);
    polling(context);
    ends();
    numbers(context);
    datagrams(context);
    CHECK(zmq_ctx_term(context) == 0);
    printf("%d checks passed, %d failed\n", passed, failed);
    return failed != 0;
}
