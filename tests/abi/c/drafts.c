/*
 * Tests the draft interface from C: thread-safe sockets, pollers, single peers, groups, monitors of version 2 and context
 * options as bytes. Also tests the statistics of a socket.
 */
#define _POSIX_C_SOURCE 200809L
#define ZMQ_BUILD_DRAFT_API
#include <poll.h>
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { MESSAGES = 2000, SENDERS = 3 };

static void *context;

/* Creates a bound socket, and a socket that is connected to it. */
static void pair_of(int bound_type, void **bound, int connected_type, void **connected, const char *at)
{
    char endpoint[256];
    size_t len = sizeof endpoint;
    *bound = zmq_socket(context, bound_type);
    *connected = zmq_socket(context, connected_type);
    CHECK(zmq_bind(*bound, at) == 0);
    CHECK(zmq_getsockopt(*bound, ZMQ_LAST_ENDPOINT, endpoint, &len) == 0);
    CHECK(zmq_connect(*connected, endpoint) == 0);
}

static void *send_many(void *socket)
{
    int i;
    for (i = 0; i < MESSAGES; i++)
        if (zmq_send(socket, &i, sizeof i, 0) != sizeof i)
            return NULL;
    return socket;
}

static void *receive_until_closed(void *socket)
{
    int got = 0;
    char data[16];
    while (zmq_recv(socket, data, sizeof data, 0) >= 0)
        got++;
    return errno == ENOTSOCK ? (void *) (intptr_t) got : NULL;
}

static void threads(void)
{
    void *gather, *scatter, *result;
    pthread_t senders[SENDERS], receiver;
    zmq_tautline_statistics_t told;
    size_t len = sizeof told;
    int i, status = -1;
    pid_t child;

    pair_of(ZMQ_GATHER, &gather, ZMQ_SCATTER, &scatter, "tcp://127.0.0.1:*");
    CHECK(int_option(gather, ZMQ_THREAD_SAFE) == 1);
    CHECK(pthread_create(&receiver, NULL, receive_until_closed, gather) == 0);
    for (i = 0; i < SENDERS; i++)
        CHECK(pthread_create(&senders[i], NULL, send_many, scatter) == 0);
    /* A child closes its copies, although threads of the parent were using them during the fork. */
    child = fork();
    if (child == 0)
        _exit(zmq_close(gather) == 0 && zmq_close(scatter) == 0 && zmq_ctx_term(context) == 0 ? 0 : 1);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (i = 0; i < SENDERS; i++)
        CHECK(pthread_join(senders[i], &result) == 0 && result == scatter);
    /* The receiver takes all messages and waits for more, until the socket is closed. */
    do
        CHECK(zmq_getsockopt(gather, ZMQ_TAUTLINE_STATISTICS, &told, &len) == 0);
    while (told.messages_received < SENDERS * MESSAGES);
    CHECK(zmq_close(gather) == 0);
    CHECK(pthread_join(receiver, &result) == 0);
    CHECK((intptr_t) result == SENDERS * MESSAGES);
    CHECK(zmq_close(scatter) == 0);
    CHECK_ERRNO(zmq_close(scatter), -1, ENOTSOCK);
}

static void pollers(void)
{
    void *server, *client, *pull, *poller = zmq_poller_new();
    zmq_poller_event_t events[3];
    zmq_pollitem_t item;
    struct pollfd raw;
    int pipes[2], fd = -1, first;
    zmq_msg_t message;

    pair_of(ZMQ_SERVER, &server, ZMQ_CLIENT, &client, "tcp://127.0.0.1:*");
    pull = zmq_socket(context, ZMQ_PULL);
    CHECK(pipe(pipes) == 0);
    CHECK(zmq_poller_add(poller, pull, NULL, ZMQ_POLLIN) == 0);
    CHECK_ERRNO(zmq_poller_fd(poller, &fd), -1, EINVAL);
    CHECK(zmq_poller_add(poller, server, &server, ZMQ_POLLIN) == 0);
    CHECK_ERRNO(zmq_poller_add(poller, server, NULL, ZMQ_POLLIN), -1, EINVAL);
    CHECK(zmq_poller_add_fd(poller, pipes[0], &pipes, ZMQ_POLLIN) == 0);
    CHECK(zmq_poller_size(poller) == 3);
    CHECK_ERRNO(zmq_poller_wait_all(poller, events, 3, 0), -1, EAGAIN);
    CHECK(zmq_poller_fd(poller, &fd) == 0);

    /* The poller's descriptor becomes readable for the message. */
    CHECK(zmq_send(client, "hello", 5, 0) == 5);
    do {
        raw.fd = fd;
        raw.events = POLLIN;
        CHECK(poll(&raw, 1, -1) == 1);
    } while (zmq_poller_wait(poller, events, 0) != 0);
    CHECK(events[0].socket == server && events[0].user_data == &server && events[0].events == ZMQ_POLLIN);

    /* With room for one event, each item gets its turn. */
    CHECK(write(pipes[1], "x", 1) == 1);
    CHECK(zmq_poller_wait_all(poller, events, 3, -1) == 2);
    CHECK(zmq_poller_wait(poller, &events[0], -1) == 0);
    first = events[0].socket == server;
    CHECK(zmq_poller_wait(poller, &events[0], -1) == 0);
    CHECK((events[0].socket == server) != first);

    item.socket = server;
    item.fd = 0;
    item.events = ZMQ_POLLIN | ZMQ_POLLOUT;
    CHECK(zmq_ppoll(&item, 1, -1, NULL) == 1 && item.revents == (ZMQ_POLLIN | ZMQ_POLLOUT));
    zmq_msg_init(&message);
    CHECK(zmq_msg_recv(&message, server, 0) == 5 && zmq_msg_routing_id(&message) != 0);
    CHECK(zmq_disconnect_peer(server, zmq_msg_routing_id(&message)) == 0);
    CHECK_ERRNO(zmq_disconnect_peer(server, zmq_msg_routing_id(&message)), -1, EHOSTUNREACH);
    CHECK_ERRNO(zmq_disconnect_peer(pull, 1), -1, ENOTSUP);
    CHECK_ERRNO(zmq_msg_send(&message, server, 0), -1, EHOSTUNREACH);
    CHECK_ERRNO(zmq_msg_set_routing_id(&message, 0), -1, EINVAL);
    zmq_msg_close(&message);

    CHECK(zmq_poller_modify(poller, server, 0) == 0);
    CHECK(zmq_poller_remove(poller, server) == 0);
    CHECK_ERRNO(zmq_poller_remove(poller, server), -1, EINVAL);
    CHECK(zmq_poller_remove_fd(poller, pipes[0]) == 0);
    CHECK_ERRNO(zmq_poller_fd(poller, &fd), -1, EINVAL);
    CHECK(zmq_poller_destroy(&poller) == 0 && poller == NULL);
    CHECK_ERRNO(zmq_poller_destroy(&poller), -1, EFAULT);
    close(pipes[0]);
    close(pipes[1]);
    CHECK(zmq_close(server) == 0 && zmq_close(client) == 0 && zmq_close(pull) == 0);
}

static void groups(void)
{
    void *radio, *dish;
    zmq_msg_t message;
    char name[300];

    pair_of(ZMQ_DISH, &dish, ZMQ_RADIO, &radio, "udp://127.0.0.1:*");
    CHECK(zmq_join(dish, "TV") == 0);
    CHECK_ERRNO(zmq_join(dish, "TV"), -1, EINVAL);
    CHECK_ERRNO(zmq_leave(dish, "Movies"), -1, EINVAL);
    CHECK_ERRNO(zmq_join(radio, "TV"), -1, ENOTSUP);
    CHECK(zmq_msg_init_buffer(&message, "Friends", 7) == 0);
    CHECK(zmq_msg_set_group(&message, "TV") == 0 && strcmp(zmq_msg_group(&message), "TV") == 0);
    CHECK(zmq_msg_send(&message, radio, 0) == 7);
    CHECK(zmq_msg_recv(&message, dish, 0) == 7 && strcmp(zmq_msg_group(&message), "TV") == 0);
    memset(name, 'g', sizeof name);
    name[256] = 0;
    CHECK_ERRNO(zmq_msg_set_group(&message, name), -1, EINVAL);
    CHECK_ERRNO(zmq_join(dish, name), -1, EINVAL);
    zmq_msg_close(&message);
    CHECK(zmq_close(radio) == 0 && zmq_close(dish) == 0);
}

static void peers(void)
{
    void *one = zmq_socket(context, ZMQ_PEER), *other = zmq_socket(context, ZMQ_PEER);
    void *router = zmq_socket(context, ZMQ_ROUTER);
    uint32_t id;
    CHECK(zmq_bind(one, "inproc://peer") == 0);
    CHECK_ERRNO(zmq_connect_peer(router, "inproc://peer"), 0, ENOTSUP);
    CHECK_ERRNO(zmq_connect_peer(other, "nonsense"), 0, EINVAL);
    id = zmq_connect_peer(other, "inproc://peer");
    CHECK(id != 0);
    set_int_option(other, ZMQ_IMMEDIATE, 1);
    CHECK_ERRNO(zmq_connect_peer(other, "inproc://peer"), 0, EFAULT);
    CHECK_ERRNO(zmq_socket_get_peer_state(router, "nobody", 6), -1, EHOSTUNREACH);
    CHECK_ERRNO(zmq_socket_get_peer_state(one, "nobody", 6), -1, ENOTSUP);
    CHECK(zmq_close(one) == 0 && zmq_close(other) == 0 && zmq_close(router) == 0);
}

static uint64_t number(void *socket)
{
    uint64_t value = 0;
    CHECK(zmq_recv(socket, &value, sizeof value, 0) == sizeof value);
    return value;
}

static void monitors(void)
{
    void *pull = zmq_socket(context, ZMQ_PULL), *events = zmq_socket(context, ZMQ_PULL);
    char endpoint[256], told[256];
    size_t len = sizeof endpoint;
    int n;
    CHECK_ERRNO(zmq_socket_monitor_versioned(pull, "inproc://events", ZMQ_EVENT_ALL_V2, 4, ZMQ_PUSH), -1, EINVAL);
    CHECK_ERRNO(zmq_socket_monitor_versioned(pull, "inproc://events", ZMQ_EVENT_ALL_V2, 1, ZMQ_PAIR), -1, EINVAL);
    CHECK_ERRNO(zmq_socket_monitor_versioned(pull, "inproc://events", ZMQ_EVENT_ALL_V2, 2, ZMQ_REP), -1, EINVAL);
    CHECK_ERRNO(zmq_socket_monitor_pipes_stats(pull), -1, EINVAL);
    CHECK(zmq_socket_monitor_versioned(pull, "inproc://events", ZMQ_EVENT_ALL_V2, 2, ZMQ_PUSH) == 0);
    CHECK_ERRNO(zmq_socket_monitor_pipes_stats(pull), -1, EAGAIN);
    CHECK(zmq_connect(events, "inproc://events") == 0);
    CHECK(zmq_bind(pull, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &len) == 0);
    CHECK(number(events) == ZMQ_EVENT_LISTENING && number(events) == 1);
    number(events);
    n = zmq_recv(events, told, sizeof told, 0);
    CHECK(n == (int) strlen(endpoint) && memcmp(told, endpoint, strlen(endpoint)) == 0);
    CHECK(zmq_recv(events, told, sizeof told, 0) == 0 && int_option(events, ZMQ_RCVMORE) == 0);
    CHECK(zmq_close(pull) == 0 && zmq_close(events) == 0);
}

/* Reads the statistics of a socket one by one, as uint64_t and as int. `push` has sent two messages with 14 bytes. */
static void one_by_one(void *push)
{
    zmq_tautline_statistics_t told;
    uint64_t number = 0;
    int low = -1, high = -1, n;
    const int numbers = (int) (sizeof told / sizeof number);
    size_t len = sizeof told;
    CHECK(zmq_getsockopt(push, ZMQ_TAUTLINE_STATISTICS, &told, &len) == 0);
    for (n = 0; n < numbers; ++n)
    {
        len = sizeof number;
        CHECK(zmq_getsockopt(push, ZMQ_TAUTLINE_STATISTIC + n, &number, &len) == 0 && len == sizeof number);
        CHECK(memcmp((char *) &told + n * sizeof number, &number, sizeof number) == 0);
        len = sizeof low;
        CHECK(zmq_getsockopt(push, ZMQ_TAUTLINE_STATISTIC + n, &low, &len) == 0 && len == sizeof low);
        CHECK(zmq_getsockopt(push, ZMQ_TAUTLINE_STATISTIC_HIGH + n, &high, &len) == 0 && len == sizeof high);
        CHECK(low >= 0 && (uint64_t) low == number && high == 0);
    }
    len = sizeof number;
    CHECK_ERRNO(zmq_getsockopt(push, ZMQ_TAUTLINE_STATISTIC + numbers, &number, &len), -1, EINVAL);
    CHECK(len == sizeof number && zmq_getsockopt(push, ZMQ_TAUTLINE_STATISTIC_HIGH, &number, &len) == 0 && len == sizeof high);
    len = sizeof told;
    CHECK(zmq_getsockopt(push, ZMQ_TAUTLINE_STATISTIC, &told, &len) == 0 && len == sizeof number && told.messages_sent == 2);
    len = 3;
    CHECK_ERRNO(zmq_getsockopt(push, ZMQ_TAUTLINE_STATISTIC, &low, &len), -1, EINVAL);
    CHECK_ERRNO(zmq_setsockopt(push, ZMQ_TAUTLINE_STATISTIC, &number, sizeof number), -1, EINVAL);
}

static void statistics(void)
{
    void *push, *pull;
    zmq_tautline_statistics_t told;
    size_t len = sizeof told;
    char data[8];
    pair_of(ZMQ_PUSH, &push, ZMQ_PULL, &pull, "inproc://statistics");
    CHECK(zmq_send(push, "hello", 5, 0) == 5 && zmq_send(push, "again", 5, 0) == 5);
    CHECK(zmq_recv(pull, data, sizeof data, 0) == 5);
    CHECK(zmq_getsockopt(push, ZMQ_TAUTLINE_STATISTICS, &told, &len) == 0 && len == sizeof told);
    CHECK(told.messages_sent == 2 && told.bytes_sent == 14 && told.messages_received == 0 && told.peers == 1);
    CHECK(zmq_getsockopt(pull, ZMQ_TAUTLINE_STATISTICS, &told, &len) == 0);
    CHECK(told.messages_received == 1 && told.queued_in == 1 && told.dropped_full == 0);
    one_by_one(push);
    CHECK(zmq_close(push) == 0 && zmq_close(pull) == 0);
}

static void roster(void)
{
    void *push, *pull;
    zmq_tautline_peer_t told[2];
    size_t len = sizeof told;
    int one = 1, soon = 1;
    char data[8];
    CHECK(sizeof told[0] == 1168);
    pair_of(ZMQ_PUSH, &push, ZMQ_PULL, &pull, "inproc://peers");
    CHECK(zmq_setsockopt(push, ZMQ_TAUTLINE_WAIT_PEERS, &one, sizeof one) == 0);
    CHECK(zmq_send(push, "hello", 5, 0) == 5 && zmq_recv(pull, data, sizeof data, 0) == 5);
    CHECK(zmq_getsockopt(push, ZMQ_TAUTLINE_PEERS, told, &len) == 0 && len == sizeof told[0]);
    CHECK(told[0].state == ZMQ_TAUTLINE_PEER_CONNECTED && told[0].messages_sent == 1 && told[0].bytes_sent == 7);
    len = sizeof told;
    CHECK(zmq_getsockopt(pull, ZMQ_TAUTLINE_PEERS, told, &len) == 0 && len == sizeof told[0]);
    CHECK(told[0].messages_received == 1 && told[0].queued_in == 0 && told[0].mechanism[0] == 0);
    len = sizeof told[0] - 1;
    CHECK(zmq_getsockopt(pull, ZMQ_TAUTLINE_PEERS, told, &len) == 0 && len == 0);
    one = 2;
    CHECK(zmq_setsockopt(push, ZMQ_SNDTIMEO, &soon, sizeof soon) == 0);
    CHECK_ERRNO(zmq_setsockopt(push, ZMQ_TAUTLINE_WAIT_PEERS, &one, sizeof one), -1, EAGAIN);
    CHECK_ERRNO(zmq_setsockopt(push, ZMQ_TAUTLINE_WAIT_SUBSCRIPTIONS, &one, sizeof one), -1, ENOTSUP);
    CHECK(zmq_close(push) == 0 && zmq_close(pull) == 0);
}

static void context_bytes(void)
{
    char version[32];
    char name[16];
    size_t len = sizeof name;
    int threads_of_context = 0;
    CHECK(zmq_ctx_set_ext(context, ZMQ_THREAD_NAME_PREFIX, "prefix", 7) == 0);
    CHECK(zmq_ctx_get_ext(context, ZMQ_THREAD_NAME_PREFIX, name, &len) == 0 && len == 7);
    CHECK(strcmp(name, "prefix") == 0);
    len = sizeof version;
    CHECK(zmq_ctx_get_ext(context, ZMQ_TAUTLINE_VERSION, version, &len) == 0 && len == strlen(version) + 1 && strchr(version, '.'));
    len = 2;
    CHECK_ERRNO(zmq_ctx_get_ext(context, ZMQ_TAUTLINE_VERSION, version, &len), -1, EINVAL);
    len = sizeof threads_of_context;
    CHECK(zmq_ctx_get_ext(context, ZMQ_IO_THREADS, &threads_of_context, &len) == 0 && threads_of_context == 1);
    CHECK_ERRNO(zmq_ctx_set_ext(context, ZMQ_IO_THREADS, "x", 1), -1, EINVAL);
    CHECK_ERRNO(zmq_ctx_set_ext(NULL, ZMQ_IO_THREADS, "xxxx", 4), -1, EFAULT);
}

void drafts(void)
{
    CHECK(zmq_has("draft") == 1);
    context = zmq_ctx_new();
    context_bytes();
    threads();
    pollers();
    groups();
    peers();
    monitors();
    statistics();
    roster();
    CHECK(zmq_ctx_term(context) == 0);
}
