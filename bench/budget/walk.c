/* walk: makes the calls whose paths through the engine `cargo xtask walk` counts.
 *
 * walk peer                 the other process: binds a PULL and a PUSH socket, prints both
 *                           endpoints, and sends a message for each `s` of its input
 * walk CASE PULL PUSH       makes the calls of a case between walk_begin and walk_end:
 *   first_send              the first message, which is written at once
 *   steady_send             one of many messages, each written at once
 *   empty_recv              no message, ZMQ_DONTWAIT
 *   waiting_recv            the message arrives while the call waits for it
 *   steady_recv             one of many messages that have arrived
 *   connect                 up to the first byte of the greeting
 *
 * The calls run under Valgrind's tool lackey, the peer runs without it. The standard output
 * of the calls is the peer's input. The addresses that a reader of the trace needs are
 * written to standard error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define SIZE 64
#define WARM 100 /* messages before a steady walk */
#define STEADY 50 /* walks of a steady case */

static char body[SIZE];
static const char *const syscalls[] = {"send", "sendto", "sendmsg", "write", "writev", "recv", "recvfrom", "recvmsg", "read", "readv", "connect"};

static void check(int good)
{
    if (!good) {
        fprintf(stderr, "walk: %s\n", zmq_strerror(zmq_errno()));
        exit(1);
    }
}

__attribute__((noinline)) void walk_begin(void) { __asm__ volatile("" ::: "memory"); }

__attribute__((noinline)) void walk_end(void) { __asm__ volatile("" ::: "memory"); }

static void print_addresses(void)
{
    Dl_info library;
    int on_stack;

    check(dladdr(dlsym(RTLD_DEFAULT, "zmq_send"), &library));
    dprintf(2, "walk: library %zx\n", (size_t) library.dli_fbase);
    dprintf(2, "walk: begin %zx\n", (size_t) walk_begin);
    dprintf(2, "walk: end %zx\n", (size_t) walk_end);
    dprintf(2, "walk: stack %zx\n", (size_t) &on_stack);
    dprintf(2, "walk: buffer %zx\n", (size_t) body);
    for (size_t i = 0; i < sizeof syscalls / sizeof *syscalls; i++)
        dprintf(2, "walk: syscall %zx\n", (size_t) dlsym(RTLD_DEFAULT, syscalls[i]));
}

static void *socket_of(void *context, int type)
{
    const int nothing = 0;
    void *socket = zmq_socket(context, type);

    check(socket != NULL && zmq_setsockopt(socket, ZMQ_LINGER, &nothing, sizeof nothing) == 0);
    return socket;
}

static int peer(void *context)
{
    void *sockets[2] = {socket_of(context, ZMQ_PULL), socket_of(context, ZMQ_PUSH)};
    char endpoint[256], order;

    for (int i = 0; i < 2; i++) {
        size_t length = sizeof endpoint;
        check(zmq_bind(sockets[i], "tcp://127.0.0.1:*") == 0);
        check(zmq_getsockopt(sockets[i], ZMQ_LAST_ENDPOINT, endpoint, &length) == 0);
        puts(endpoint);
    }
    fflush(stdout);
    for (;;) {
        zmq_pollitem_t items[2] = {{NULL, 0, ZMQ_POLLIN, 0}, {sockets[0], 0, ZMQ_POLLIN, 0}};
        check(zmq_poll(items, 2, -1) >= 0);
        if (items[1].revents != 0)
            while (zmq_recv(sockets[0], body, sizeof body, ZMQ_DONTWAIT) >= 0) {}
        if (items[0].revents != 0) {
            if (read(0, &order, 1) != 1)
                return 0;
            if (order == 's')
                check(zmq_send(sockets[1], body, SIZE, 0) == SIZE);
            else
                usleep(50 * 1000);
        }
    }
}

/* Connects a PUSH socket and waits until it knows its peer. Without ZMQ_IMMEDIATE it could
 * send earlier. */
static void await_peer(void *socket, const char *endpoint)
{
    const int immediate = 1;
    int events = 0;
    size_t length = sizeof events;

    check(zmq_setsockopt(socket, ZMQ_IMMEDIATE, &immediate, sizeof immediate) == 0 && zmq_connect(socket, endpoint) == 0);
    while ((events & ZMQ_POLLOUT) == 0) {
        usleep(20 * 1000);
        check(zmq_getsockopt(socket, ZMQ_EVENTS, &events, &length) == 0);
    }
    usleep(100 * 1000);
    check(zmq_getsockopt(socket, ZMQ_EVENTS, &events, &length) == 0);
}

static void order(const char *what)
{
    check(write(1, what, strlen(what)) == (ssize_t) strlen(what));
}

int main(int argc, char **argv)
{
    void *context = zmq_ctx_new(), *socket;

    if (argc == 2 && strcmp(argv[1], "peer") == 0)
        return peer(context);
    if (argc != 4)
        return 2;
    const char *name = argv[1], *pull = argv[2], *push = argv[3];
    print_addresses();
    if (strcmp(name, "connect") == 0) {
        socket = socket_of(context, ZMQ_PUSH);
        usleep(100 * 1000);
        walk_begin();
        int connected = zmq_connect(socket, pull);
        walk_end();
        check(connected == 0);
        usleep(300 * 1000);
    } else if (strstr(name, "send") != NULL) {
        const int first = strcmp(name, "first_send") == 0, walks = first ? 1 : STEADY;
        socket = socket_of(context, ZMQ_PUSH);
        await_peer(socket, pull);
        for (int i = 0; !first && i < WARM; i++)
            check(zmq_send(socket, body, SIZE, 0) == SIZE);
        for (int i = 0; i < walks; i++) {
            walk_begin();
            int sent = zmq_send(socket, body, SIZE, 0);
            walk_end();
            check(sent == SIZE);
        }
    } else {
        socket = socket_of(context, ZMQ_PULL);
        check(zmq_connect(socket, push) == 0);
        order("s");
        check(zmq_recv(socket, body, SIZE, 0) == SIZE);
        const int steady = strcmp(name, "steady_recv") == 0, waits = strcmp(name, "waiting_recv") == 0;
        for (int i = 0; steady && i < WARM + STEADY; i++)
            order("s");
        usleep(300 * 1000);
        for (int i = 0; steady && i < WARM; i++)
            check(zmq_recv(socket, body, SIZE, 0) == SIZE);
        if (waits)
            order("ws");
        for (int i = 0; i < (steady ? STEADY : 1); i++) {
            walk_begin();
            int received = zmq_recv(socket, body, SIZE, steady || waits ? 0 : ZMQ_DONTWAIT);
            walk_end();
            check(received == (steady || waits ? SIZE : -1));
        }
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
