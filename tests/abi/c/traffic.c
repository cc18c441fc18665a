/* Tests buffers, vectors, poll, proxies, monitors, ZMQ_FD, and threads that the end of the context wakes. */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "check.h"

static void buffers(void)
{
    static const char constant[100000] = "constant";
    void *context = zmq_ctx_new();
    void *one, *other;
    char room[16];

    make_pair(context, &one, &other);
    CHECK(zmq_send(one, "hello", 5, 0) == 5);
    memset(room, 0, sizeof room);
    CHECK(zmq_recv(other, room, 2, 0) == 5 && memcmp(room, "he\0", 3) == 0);
    CHECK(zmq_send(one, NULL, 0, 0) == 0);
    CHECK(zmq_recv(other, NULL, 0, 0) == 0);
    CHECK(zmq_send(one, "x", 1, ZMQ_DONTWAIT) == 1);
    CHECK(zmq_recv(other, NULL, 0, ZMQ_DONTWAIT) == 1);
    CHECK(zmq_send_const(one, constant, 8, 0) == 8);
    CHECK(zmq_recv(other, room, sizeof room, 0) == 8 && memcmp(room, "constant", 8) == 0);
    CHECK(zmq_send_const(one, constant, sizeof constant, 0) == (int) sizeof constant);
    CHECK(zmq_recv(other, room, sizeof room, 0) == (int) sizeof constant);
    CHECK(memcmp(room, "constant", 8) == 0);
    CHECK_ERRNO(zmq_recv(other, room, sizeof room, ZMQ_DONTWAIT), -1, EAGAIN);
    set_int_option(other, ZMQ_RCVTIMEO, 1);
    CHECK_ERRNO(zmq_recv(other, room, sizeof room, 0), -1, EAGAIN);
    CHECK(zmq_close(one) == 0 && zmq_close(other) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

static void vectors(void)
{
    void *context = zmq_ctx_new();
    void *one, *other;
    struct iovec out[3], in[4];
    size_t count, i;
    zmq_msg_t message;

    make_pair(context, &one, &other);
    for (i = 0; i < 3; i++) {
        out[i].iov_base = (char *) "abc";
        out[i].iov_len = i + 1;
    }
    CHECK_ERRNO(zmq_sendiov(one, out, 0, 0), -1, EINVAL);
    CHECK_ERRNO(zmq_sendiov(one, NULL, 1, 0), -1, EINVAL);
    CHECK(zmq_sendiov(one, out, 3, ZMQ_SNDMORE) == 3);
    CHECK_ERRNO(zmq_recviov(other, in, NULL, 0), -1, EINVAL);
    count = 0;
    CHECK_ERRNO(zmq_recviov(other, in, &count, 0), -1, EINVAL);
    count = 4;
    CHECK_ERRNO(zmq_recviov(other, NULL, &count, 0), -1, EINVAL);
    CHECK(zmq_recviov(other, in, &count, 0) == 3 && count == 3);
    for (i = 0; i < 3; i++) {
        CHECK(in[i].iov_len == i + 1 && memcmp(in[i].iov_base, "abc", i + 1) == 0);
        free(in[i].iov_base);
    }
    /* If the array has less room than parts, the other parts stay in the queue. */
    CHECK(zmq_sendiov(one, out, 3, ZMQ_SNDMORE) == 3);
    count = 2;
    CHECK(zmq_recviov(other, in, &count, 0) == 2 && count == 2);
    free(in[0].iov_base);
    free(in[1].iov_base);
    CHECK(int_option(other, ZMQ_RCVMORE) == 1);
    CHECK(zmq_recv(other, NULL, 0, 0) == 3 && int_option(other, ZMQ_RCVMORE) == 0);
    /* Without the flag, each part is a separate message. */
    CHECK(zmq_sendiov(one, out, 2, 0) == 2);
    CHECK(zmq_recv(other, NULL, 0, 0) == 1 && int_option(other, ZMQ_RCVMORE) == 0);
    CHECK(zmq_recv(other, NULL, 0, 0) == 2);

    CHECK(zmq_msg_init_size(&message, 2) == 0);
    CHECK(zmq_sendmsg(one, &message, 0) == 2);
    CHECK(zmq_recvmsg(other, &message, 0) == 2);
    CHECK(zmq_msg_close(&message) == 0);
    CHECK(zmq_close(one) == 0 && zmq_close(other) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

static zmq_pollitem_t item(void *socket, int fd, short events)
{
    zmq_pollitem_t made;
    made.socket = socket;
    made.fd = fd;
    made.events = events;
    made.revents = -1;
    return made;
}

static void polling(void)
{
    void *context = zmq_ctx_new();
    void *one, *other;
    zmq_pollitem_t items[40];
    int ends[2], i;

    CHECK_ERRNO(zmq_poll(items, -1, 0), -1, EINVAL);
    CHECK_ERRNO(zmq_poll(NULL, 1, 0), -1, EFAULT);
    CHECK(zmq_poll(NULL, 0, 0) == 0);
    CHECK(zmq_poll(items, 0, 2) == 0);

    make_pair(context, &one, &other);
    CHECK(pipe(ends) == 0);
    items[0] = item(one, -1, ZMQ_POLLIN);
    items[1] = item(one, -1, ZMQ_POLLOUT);
    items[2] = item(NULL, ends[0], ZMQ_POLLIN);
    items[3] = item(one, -1, ZMQ_POLLIN | ZMQ_POLLOUT);
    items[4] = item(other, -1, ZMQ_POLLIN);
    items[5] = item(NULL, ends[1], ZMQ_POLLOUT);
    items[6] = item(one, -1, 0);
    CHECK(zmq_poll(items, 7, 0) == 3);
    CHECK(items[0].revents == 0 && items[1].revents == ZMQ_POLLOUT && items[2].revents == 0);
    CHECK(items[3].revents == ZMQ_POLLOUT && items[4].revents == 0 && items[5].revents == ZMQ_POLLOUT);
    CHECK(items[6].revents == 0);

    items[1] = item(other, ends[1], ZMQ_POLLIN); /* the socket takes precedence */
    CHECK(zmq_poll(items, 3, 1) == 0);
    CHECK(items[0].revents == 0 && items[1].revents == 0 && items[2].revents == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(zmq_poll(items, 3, -1) == 1 && items[2].revents == ZMQ_POLLIN);
    CHECK(zmq_send(other, "x", 1, 0) == 1);
    CHECK(zmq_poll(items, 3, -1) == 2 && items[0].revents == ZMQ_POLLIN && items[1].revents == 0);

    /* More items than usual, and many of them with the same socket. */
    for (i = 0; i < 40; i++)
        items[i] = item(i % 2 ? one : other, -1, ZMQ_POLLIN);
    CHECK(zmq_poll(items, 40, -1) == 20 && items[0].revents == 0 && items[39].revents == ZMQ_POLLIN);

    items[0] = item(NULL, 12345, ZMQ_POLLIN); /* not open */
    CHECK(zmq_poll(items, 1, -1) == 1 && items[0].revents == ZMQ_POLLERR);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);

    /* A refused array leaves its sockets usable. */
    items[0] = item(one, -1, ZMQ_POLLIN);
    items[1] = item(context, -1, ZMQ_POLLIN);
    CHECK_ERRNO(zmq_poll(items, 2, 0), -1, ENOTSOCK);
    CHECK(zmq_recv(one, NULL, 0, 0) == 1);

    CHECK(zmq_ctx_shutdown(context) == 0);
    CHECK_ERRNO(zmq_poll(items, 1, -1), -1, ETERM);
    CHECK(zmq_close(one) == 0 && zmq_close(other) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

/* Sockets that a proxy's thread connects. The thread binds each socket. */
struct joined {
    void *context;
    int kind; /* 0 zmq_proxy, 1 zmq_proxy_steerable, 2 zmq_device */
    int result;
    int number;
};

static void join_sockets(void *argument)
{
    struct joined *joined = argument;
    void *frontend = zmq_socket(joined->context, ZMQ_ROUTER);
    void *backend = zmq_socket(joined->context, ZMQ_DEALER);
    void *capture = zmq_socket(joined->context, ZMQ_PUSH);
    void *control = zmq_socket(joined->context, ZMQ_REP);

    set_int_option(capture, ZMQ_LINGER, 0);
    zmq_bind(frontend, "inproc://front");
    zmq_bind(backend, "inproc://back");
    zmq_connect(capture, "inproc://capture");
    zmq_bind(control, "inproc://control");
    if (joined->kind == 0)
        joined->result = zmq_proxy(frontend, backend, capture);
    else if (joined->kind == 1)
        joined->result = zmq_proxy_steerable(frontend, backend, capture, control);
    else
        joined->result = zmq_device(ZMQ_QUEUE, frontend, backend);
    joined->number = zmq_errno();
    CHECK(zmq_close(frontend) == 0 && zmq_close(backend) == 0);
    CHECK(zmq_close(capture) == 0 && zmq_close(control) == 0);
}

static void expect(void *socket, const char *body)
{
    char room[32];
    int size = zmq_recv(socket, room, sizeof room, 0);
    CHECK(size == (int) strlen(body) && memcmp(room, body, strlen(body)) == 0);
}

static void command(void *control, const char *text)
{
    CHECK(zmq_send(control, text, strlen(text), 0) >= 0);
    CHECK(zmq_recv(control, NULL, 0, 0) == 0);
}

static void statistics(void *control, const uint64_t *expected)
{
    uint64_t number;
    int i;
    CHECK(zmq_send(control, "STATISTICS", 10, 0) == 10);
    for (i = 0; i < 8; i++) {
        CHECK(zmq_recv(control, &number, sizeof number, 0) == sizeof number && number == expected[i]);
        CHECK(int_option(control, ZMQ_RCVMORE) == (i < 7));
    }
}

static void round_trip(void *request, void *reply, void *capture)
{
    CHECK(zmq_send(request, "ping", 4, ZMQ_SNDMORE) == 4 && zmq_send(request, "!", 1, 0) == 1);
    expect(reply, "ping");
    expect(reply, "!");
    CHECK(zmq_send(reply, "answer", 6, 0) == 6);
    expect(request, "answer");
    if (capture) {
        CHECK(zmq_recv(capture, NULL, 0, 0) == 5 && int_option(capture, ZMQ_RCVMORE) == 1);
        expect(capture, "");
        expect(capture, "ping");
        CHECK(int_option(capture, ZMQ_RCVMORE) == 1);
        expect(capture, "!");
        CHECK(int_option(capture, ZMQ_RCVMORE) == 0);
        CHECK(zmq_recv(capture, NULL, 0, 0) == 5);
        expect(capture, "");
        expect(capture, "answer");
    }
}

static void proxy(int kind)
{
    static const uint64_t none[8] = {0};
    /* Numbers of parts and bytes. A routing id of 5 bytes and an empty part precede the body. */
    static const uint64_t one_each[8] = {4, 10, 3, 11, 3, 11, 4, 10};
    struct joined joined;
    void *context = zmq_ctx_new();
    void *request = zmq_socket(context, ZMQ_REQ);
    void *reply = zmq_socket(context, ZMQ_REP);
    void *capture = zmq_socket(context, ZMQ_PULL);
    void *control = zmq_socket(context, ZMQ_REQ);
    void *thread;

    set_int_option(request, ZMQ_LINGER, 0);
    CHECK(zmq_bind(capture, "inproc://capture") == 0);
    CHECK(zmq_connect(control, "inproc://control") == 0);
    CHECK(zmq_setsockopt(request, ZMQ_ROUTING_ID, "asker", 5) == 0);
    CHECK(zmq_connect(request, "inproc://front") == 0);
    CHECK(zmq_connect(reply, "inproc://back") == 0);
    joined.context = context;
    joined.kind = kind;
    thread = zmq_threadstart(join_sockets, &joined);
    if (kind == 1) {
        statistics(control, none);
        command(control, "PAUSE");
        CHECK(zmq_send(request, "ping", 4, ZMQ_SNDMORE) == 4 && zmq_send(request, "!", 1, 0) == 1);
        CHECK_ERRNO(zmq_recv(reply, NULL, 0, ZMQ_DONTWAIT), -1, EAGAIN);
        command(control, "no such command");
        statistics(control, none);
        command(control, "RESUME");
        expect(reply, "ping");
        expect(reply, "!");
        CHECK(zmq_send(reply, "answer", 6, 0) == 6);
        expect(request, "answer");
        statistics(control, one_each);
        command(control, "TERMINATE");
        zmq_threadclose(thread);
        CHECK(joined.result == 0);
    } else {
        round_trip(request, reply, kind == 0 ? capture : NULL);
        CHECK(zmq_ctx_shutdown(context) == 0);
        zmq_threadclose(thread);
        CHECK(joined.result == -1 && joined.number == ETERM);
    }
    CHECK(zmq_close(request) == 0 && zmq_close(reply) == 0);
    CHECK(zmq_close(capture) == 0 && zmq_close(control) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

static void no_proxy(void)
{
    void *context = zmq_ctx_new();
    void *one, *other;
    make_pair(context, &one, &other);
    CHECK_ERRNO(zmq_proxy(NULL, one, NULL), -1, EFAULT);
    CHECK_ERRNO(zmq_proxy(one, NULL, NULL), -1, EFAULT);
    if (strict) {
        CHECK_ERRNO(zmq_device(ZMQ_QUEUE, NULL, NULL), -1, EFAULT);
        CHECK_ERRNO(zmq_proxy_steerable(NULL, NULL, NULL, NULL), -1, EFAULT);
        CHECK_ERRNO(zmq_proxy(one, context, NULL), -1, ENOTSOCK);
        CHECK_ERRNO(zmq_proxy(one, other, context), -1, ENOTSOCK);
        CHECK_ERRNO(zmq_proxy(one, other, one), -1, EINVAL);
        CHECK_ERRNO(zmq_proxy_steerable(one, other, NULL, other), -1, EINVAL);
    }
    /* A proxy with one socket as both ends echoes messages. */
    CHECK(zmq_send(other, "echo", 4, 0) == 4);
    CHECK(zmq_ctx_shutdown(context) == 0);
    CHECK_ERRNO(zmq_proxy(one, one, NULL), -1, ETERM);
    CHECK(zmq_close(one) == 0 && zmq_close(other) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

static void echo(void *socket)
{
    CHECK_ERRNO(zmq_proxy(socket, socket, NULL), -1, ETERM);
    CHECK(zmq_close(socket) == 0);
}

static void echoing(void)
{
    void *context = zmq_ctx_new();
    void *one, *other, *thread;
    make_pair(context, &one, &other);
    thread = zmq_threadstart(echo, one);
    CHECK(zmq_send(other, "to", 2, ZMQ_SNDMORE) == 2 && zmq_send(other, "and fro", 7, 0) == 7);
    expect(other, "to");
    CHECK(int_option(other, ZMQ_RCVMORE) == 1);
    expect(other, "and fro");
    CHECK(zmq_ctx_shutdown(context) == 0);
    zmq_threadclose(thread);
    CHECK(zmq_close(other) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

static int next_event(void *monitor, char *endpoint)
{
    uint8_t event[6];
    uint16_t number;
    int size;
    CHECK(zmq_recv(monitor, event, sizeof event, 0) == 6 && int_option(monitor, ZMQ_RCVMORE) == 1);
    size = zmq_recv(monitor, endpoint, 63, 0);
    CHECK(size >= 0 && size < 64);
    endpoint[size < 0 ? 0 : size] = 0;
    memcpy(&number, event, sizeof number);
    return number;
}

static void monitoring(void)
{
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_PULL);
    void *monitor = zmq_socket(context, ZMQ_PAIR);
    char bound[64], endpoint[64];
    size_t size = sizeof bound;

    CHECK_ERRNO(zmq_socket_monitor(socket, "tcp://127.0.0.1:*", ZMQ_EVENT_ALL), -1, EPROTONOSUPPORT);
    CHECK_ERRNO(zmq_socket_monitor(socket, "no endpoint", ZMQ_EVENT_ALL), -1, EINVAL);
    CHECK(zmq_socket_monitor(socket, "inproc://monitor", ZMQ_EVENT_ALL) == 0);
    CHECK(zmq_connect(monitor, "inproc://monitor") == 0);
    CHECK(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &size) == 0);
    CHECK(next_event(monitor, endpoint) == ZMQ_EVENT_LISTENING && strcmp(endpoint, bound) == 0);
    CHECK(zmq_socket_monitor(socket, NULL, 0) == 0);
    CHECK(next_event(monitor, endpoint) == ZMQ_EVENT_MONITOR_STOPPED);
    CHECK(zmq_close(socket) == 0 && zmq_close(monitor) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

/* If a sender waits on ZMQ_FD for room, it is signalled when the receiver makes room. */
static void descriptors(void)
{
    static const char *endpoints[] = {"inproc://room", "tcp://127.0.0.1:*"};
    size_t kind;

    for (kind = 0; kind < sizeof endpoints / sizeof *endpoints; kind++) {
        void *context = zmq_ctx_new();
        void *push = zmq_socket(context, ZMQ_PUSH), *pull = zmq_socket(context, ZMQ_PULL);
        char endpoint[256], body[2048];
        size_t size = sizeof endpoint;
        int round;
        struct pollfd item;

        memset(body, 0, sizeof body);
        set_int_option(push, ZMQ_SNDHWM, 1);
        set_int_option(pull, ZMQ_RCVHWM, 1);
        set_int_option(push, ZMQ_SNDBUF, 4096);
        set_int_option(pull, ZMQ_RCVBUF, 4096);
        CHECK(zmq_bind(pull, endpoints[kind]) == 0);
        CHECK(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
        CHECK(zmq_connect(push, endpoint) == 0);
        item.fd = int_option(push, ZMQ_FD);
        item.events = POLLIN;
        for (round = 0; round < 3; round++) {
            do {
                while (zmq_send(push, body, sizeof body, ZMQ_DONTWAIT) >= 0)
                    continue;
            } while (int_option(push, ZMQ_EVENTS) & ZMQ_POLLOUT);
            while (poll(&item, 1, 0) == 0) {
                while (zmq_recv(pull, body, sizeof body, ZMQ_DONTWAIT) >= 0)
                    continue;
            }
            while (!(int_option(push, ZMQ_EVENTS) & ZMQ_POLLOUT))
                zmq_recv(pull, body, sizeof body, ZMQ_DONTWAIT);
        }
        set_int_option(push, ZMQ_LINGER, 0);
        CHECK(zmq_close(push) == 0 && zmq_close(pull) == 0);
        CHECK(zmq_ctx_term(context) == 0);
    }
}

/* An event loop with one socket: after ZMQ_FD has signalled, level- or edge-triggered, the program reads ZMQ_EVENTS and then
 * sends or receives. */
struct loop {
    void *socket;
    int edges, single, count, size;
    int wrong; /* messages that arrived out of order */
};

static void event_loop(void *argument)
{
    struct loop *loop = argument;
    int sends = int_option(loop->socket, ZMQ_TYPE) == ZMQ_PUSH, wanted = sends ? ZMQ_POLLOUT : ZMQ_POLLIN;
    int set = epoll_create1(0), next = 0, got = -1, number;
    char body[4096];
    struct epoll_event event;

    memset(&event, 0, sizeof event);
    memset(body, 0, sizeof body);
    event.events = loop->edges ? EPOLLIN | EPOLLET : EPOLLIN;
    if (epoll_ctl(set, EPOLL_CTL_ADD, int_option(loop->socket, ZMQ_FD), &event) != 0)
        loop->wrong = loop->count;
    while (next < loop->count && loop->wrong == 0) {
        /* Handles one message for each read of ZMQ_EVENTS, as some bindings do, or all queued messages. */
        while (next < loop->count && int_option(loop->socket, ZMQ_EVENTS) & wanted) {
            do {
                number = next;
                memcpy(body, &number, sizeof number);
                got = sends ? zmq_send(loop->socket, body, (size_t) loop->size, ZMQ_DONTWAIT)
                            : zmq_recv(loop->socket, body, sizeof body, ZMQ_DONTWAIT);
                memcpy(&number, body, sizeof number);
                loop->wrong += got >= 0 && (number != next || got != loop->size);
                next += got >= 0;
            } while (got >= 0 && next < loop->count && !loop->single);
        }
        if (next < loop->count)
            epoll_wait(set, &event, 1, -1);
    }
    close(set);
}

static void event_loops(void)
{
    static const char *endpoints[] = {"tcp://127.0.0.1:*", "ipc://*", "inproc://loops"};
    static const int sizes[] = {64, 3000};
    int way;

    for (way = 0; way < 24; way++) {
        void *context = zmq_ctx_new();
        void *push = zmq_socket(context, ZMQ_PUSH), *pull = zmq_socket(context, ZMQ_PULL), *thread;
        char endpoint[256];
        size_t size = sizeof endpoint;
        struct loop sender = {NULL, 0, 0, 0, 0, 0}, receiver;

        sender.edges = way & 1;
        sender.single = way >> 1 & 1;
        sender.size = sizes[way >> 2 & 1];
        sender.count = 8000;
        receiver = sender;
        sender.socket = push;
        receiver.socket = pull;
        set_int_option(push, ZMQ_SNDHWM, 100);
        set_int_option(pull, ZMQ_RCVHWM, 100);
        CHECK(zmq_bind(pull, endpoints[way >> 3]) == 0);
        CHECK(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
        CHECK(zmq_connect(push, endpoint) == 0);
        thread = zmq_threadstart(event_loop, &sender);
        event_loop(&receiver);
        zmq_threadclose(thread);
        CHECK(sender.wrong == 0 && receiver.wrong == 0);
        CHECK(zmq_close(push) == 0 && zmq_close(pull) == 0);
        CHECK(zmq_ctx_term(context) == 0);
    }
}

static void blocked_receiver(void *socket)
{
    char byte;
    CHECK_ERRNO(zmq_recv(socket, &byte, 1, 0), -1, ETERM);
    CHECK(zmq_close(socket) == 0);
}

/* The end of the context wakes the receiver, and waits until the receiver has closed its socket. */
static void termination(void)
{
    void *context = zmq_ctx_new();
    void *thread = zmq_threadstart(blocked_receiver, zmq_socket(context, ZMQ_PULL));
    CHECK(zmq_ctx_term(context) == 0);
    zmq_threadclose(thread);
}

void traffic(void)
{
    buffers();
    vectors();
    polling();
    no_proxy();
    proxy(0);
    if (strict)
        proxy(1); /* libzmq 4.3.5 continues to forward while paused, and stops forwarding replies after RESUME */
    proxy(2);
    echoing();
    monitoring();
    descriptors();
    event_loops();
    termination();
}
