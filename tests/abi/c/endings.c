/*
 * Both ends of a connection end at the same time. A body is freed exactly once, a program can read statistics of pipes while they
 * end, and it can disconnect one of several peers by its routing id. A close ends the call of another thread.
 */
#define _POSIX_C_SOURCE 200809L
#define ZMQ_BUILD_DRAFT_API
#include <pthread.h>

#include "check.h"

/* A body of SMALL bytes is copied into the queue, and a body of LARGE bytes is stored outside of it. */
enum { ROUNDS = 10, BODIES = 20, SMALL = 100, LARGE = 40000, VISITS = 100 };

static char body[LARGE];

static void count(void *data, void *counter)
{
    (void) data;
    zmq_atomic_counter_inc(counter);
}

/* Sends as many bodies as fit without waiting. Each body has its counter, even if it was not sent. */
static void send_bodies(void *socket, void **counters)
{
    zmq_msg_t message;
    int i;
    for (i = 0; i < BODIES; i++) {
        size_t len = i % 2 ? SMALL : LARGE;
        CHECK(zmq_msg_init_data(&message, body, len, count, counters[i]) == 0);
        if (zmq_msg_send(&message, socket, ZMQ_DONTWAIT) < 0)
            CHECK(errno == EAGAIN && zmq_msg_close(&message) == 0);
    }
}

struct end {
    void *socket;
    const char *endpoint;
    int way; /* 0: closes; 1: unbinds or disconnects its endpoint and closes */
    int bound;
    pthread_barrier_t *together;
};

static void *end_it(void *argument)
{
    struct end *end = argument;
    int ok = 1;
    pthread_barrier_wait(end->together);
    if (end->way == 1)
        /* The other end may be closed, which also removes its endpoint over inproc. */
        ok = (end->bound ? zmq_unbind(end->socket, end->endpoint) : zmq_disconnect(end->socket, end->endpoint)) == 0 ||
             errno == ENOENT;
    return zmq_close(end->socket) == 0 && ok ? end : NULL;
}

static void freed_once(const char *at, int ways)
{
    void *counters[2][BODIES], *context = zmq_ctx_new(), *result;
    char endpoint[256], nothing[1];
    size_t len = sizeof endpoint;
    struct end ends[2];
    pthread_t threads[2];
    pthread_barrier_t together;
    int i, j, wrong = 0;

    CHECK(pthread_barrier_init(&together, NULL, 2) == 0);
    for (i = 0; i < 2; i++) {
        ends[i].socket = zmq_socket(context, ZMQ_DEALER);
        ends[i].endpoint = endpoint;
        ends[i].way = ways >> i & 1;
        ends[i].bound = i == 0;
        ends[i].together = &together;
        set_int_option(ends[i].socket, ZMQ_LINGER, 0);
        for (j = 0; j < BODIES; j++)
            counters[i][j] = zmq_atomic_counter_new();
    }
    CHECK(zmq_bind(ends[0].socket, at) == 0);
    CHECK(zmq_getsockopt(ends[0].socket, ZMQ_LAST_ENDPOINT, endpoint, &len) == 0);
    CHECK(zmq_connect(ends[1].socket, endpoint) == 0);
    /* After a received message both ends exist. */
    CHECK(zmq_send(ends[1].socket, "", 0, 0) == 0);
    CHECK(zmq_recv(ends[0].socket, nothing, sizeof nothing, 0) == 0);
    send_bodies(ends[0].socket, counters[0]);
    send_bodies(ends[1].socket, counters[1]);
    for (i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, end_it, &ends[i]) == 0);
    for (i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], &result) == 0 && result == &ends[i]);
    CHECK(zmq_ctx_term(context) == 0);
    for (i = 0; i < 2; i++)
        for (j = 0; j < BODIES; j++) {
            wrong += zmq_atomic_counter_value(counters[i][j]) != 1;
            zmq_atomic_counter_destroy(&counters[i][j]);
        }
    CHECK(wrong == 0);
    CHECK(pthread_barrier_destroy(&together) == 0);
}

struct guests {
    void *context;
    const char *endpoint;
};

/* Runs peers that connect, send a message, receive the answer and disconnect. */
static void *come_and_go(void *argument)
{
    struct guests *guests = argument;
    void *dealer;
    char answer[8];
    int i;
    for (i = 0; i < VISITS; i++) {
        dealer = zmq_socket(guests->context, ZMQ_DEALER);
        if (!dealer || zmq_connect(dealer, guests->endpoint) != 0 || zmq_send(dealer, "hello", 5, 0) != 5 ||
            zmq_recv(dealer, answer, sizeof answer, 0) != 3 || zmq_close(dealer) != 0)
            return NULL;
    }
    return guests;
}

/* Reads the statistics of a socket's pipes while some of them end. */
static void statistics_meanwhile(const char *at)
{
    void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER), *events = zmq_socket(context, ZMQ_PULL);
    char endpoint[256], name[64], data[64];
    size_t len = sizeof endpoint;
    struct guests guests;
    pthread_t threads[2];
    void *result;
    int i, told = 0;

    CHECK(zmq_socket_monitor_versioned(router, "inproc://pipes", ZMQ_EVENT_PIPES_STATS, 2, ZMQ_PUSH) == 0);
    CHECK(zmq_connect(events, "inproc://pipes") == 0);
    CHECK(zmq_bind(router, at) == 0);
    CHECK(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, endpoint, &len) == 0);
    guests.context = context;
    guests.endpoint = endpoint;
    for (i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, come_and_go, &guests) == 0);
    for (i = 0; i < 2 * VISITS; i++) {
        int n = zmq_recv(router, name, sizeof name, 0);
        CHECK(n > 0 && zmq_recv(router, data, sizeof data, 0) == 5);
        CHECK(zmq_send(router, name, n, ZMQ_SNDMORE) == n && zmq_send(router, "bye", 3, 0) == 3);
        CHECK(zmq_socket_monitor_pipes_stats(router) == 0 || errno == EAGAIN);
        while (zmq_recv(events, data, sizeof data, ZMQ_DONTWAIT) >= 0)
            told++;
    }
    for (i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], &result) == 0 && result == &guests);
    CHECK(told > 0);
    CHECK(zmq_close(router) == 0 && zmq_close(events) == 0 && zmq_ctx_term(context) == 0);
}

static uint32_t receive_from(void *socket)
{
    zmq_msg_t message;
    uint32_t id;
    zmq_msg_init(&message);
    CHECK(zmq_msg_recv(&message, socket, 0) == 5);
    id = zmq_msg_routing_id(&message);
    zmq_msg_close(&message);
    return id;
}

static int send_to(void *socket, uint32_t id)
{
    zmq_msg_t message;
    int sent;
    CHECK(zmq_msg_init_buffer(&message, "hello", 5) == 0 && zmq_msg_set_routing_id(&message, id) == 0);
    sent = zmq_msg_send(&message, socket, 0);
    if (sent < 0) {
        int number = errno;
        zmq_msg_close(&message);
        errno = number;
    }
    return sent;
}

/* A SERVER or PEER disconnects one peer and keeps the other; the connecting side then reconnects. */
static void one_peer_is_let_go(int type, int peer_type, const char *at)
{
    void *context = zmq_ctx_new(), *bound = zmq_socket(context, type), *peers[2];
    char endpoint[256];
    size_t len = sizeof endpoint;
    uint32_t ids[2], asked[2], again;
    int i;

    CHECK(zmq_bind(bound, at) == 0);
    CHECK(zmq_getsockopt(bound, ZMQ_LAST_ENDPOINT, endpoint, &len) == 0);
    for (i = 0; i < 2; i++) {
        peers[i] = zmq_socket(context, peer_type);
        asked[i] = peer_type == ZMQ_PEER ? zmq_connect_peer(peers[i], endpoint) : 0;
        if (peer_type == ZMQ_PEER)
            CHECK(asked[i] != 0 && send_to(peers[i], asked[i]) == 5);
        else
            CHECK(zmq_connect(peers[i], endpoint) == 0 && zmq_send(peers[i], "hello", 5, 0) == 5);
        ids[i] = receive_from(bound);
    }
    CHECK(ids[0] != ids[1]);
    CHECK(zmq_disconnect_peer(bound, ids[0]) == 0);
    CHECK_ERRNO(send_to(bound, ids[0]), -1, EHOSTUNREACH);
    CHECK_ERRNO(zmq_disconnect_peer(bound, ids[0]), -1, EHOSTUNREACH);
    CHECK(send_to(bound, ids[1]) == 5 && receive_from(peers[1]) == asked[1]);
    if (peer_type == ZMQ_CLIENT && strncmp(at, "inproc", 6) != 0) {
        /* Messages to the old connection are lost until the new connection exists. This thread also receives, so it
           must not wait for room. */
        do
            CHECK(zmq_send(peers[0], "hello", 5, ZMQ_DONTWAIT) == 5 || errno == EAGAIN);
        while (zmq_recv(bound, endpoint, sizeof endpoint, ZMQ_DONTWAIT) < 0);
        /* The queue may be full now. In this case its messages arrive. */
        CHECK(zmq_send(peers[0], "hello", 5, ZMQ_DONTWAIT) == 5 || errno == EAGAIN);
        again = receive_from(bound);
        CHECK(again != ids[0] && again != ids[1] && send_to(bound, again) == 5);
    }
    for (i = 0; i < 2; i++) {
        /* Discard messages without a receiver, so that they do not delay the end. */
        set_int_option(peers[i], ZMQ_LINGER, 0);
        CHECK(zmq_close(peers[i]) == 0);
    }
    CHECK(zmq_close(bound) == 0 && zmq_ctx_term(context) == 0);
}

enum call { RECEIVE, SEND, POLL, PROXY_FRONT, PROXY_BACK, CALLS };

/* A blocking call and its result. */
struct blocked {
    void *socket, *other;
    enum call call;
    int result, error;
    pthread_barrier_t *together;
};

static void *block(void *argument)
{
    struct blocked *blocked = argument;
    zmq_pollitem_t item;
    char byte = 0;
    memset(&item, 0, sizeof item);
    item.socket = blocked->socket;
    item.events = ZMQ_POLLIN;
    pthread_barrier_wait(blocked->together);
    switch (blocked->call) {
    case RECEIVE:
        blocked->result = zmq_recv(blocked->socket, &byte, 1, 0);
        break;
    case SEND:
        do
            blocked->result = zmq_send(blocked->socket, &byte, 1, 0);
        while (blocked->result == 1);
        break;
    case POLL:
        blocked->result = zmq_poll(&item, 1, -1);
        break;
    case PROXY_FRONT:
        blocked->result = zmq_proxy(blocked->socket, blocked->other, NULL);
        break;
    default:
        blocked->result = zmq_proxy(blocked->other, blocked->socket, NULL);
    }
    blocked->error = zmq_errno();
    return NULL;
}

/* A close ends a call of another thread with ENOTSOCK. It may happen before the call, at its begin, or while it blocks. */
static void closed_beside_a_call(enum call call, const char *at)
{
    void *context = zmq_ctx_new();
    pthread_barrier_t together;
    struct blocked blocked;
    pthread_t thread;
    int round;
    for (round = 0; round < ROUNDS; round++) {
        memset(&blocked, 0, sizeof blocked);
        blocked.socket = zmq_socket(context, ZMQ_PAIR);
        blocked.other = zmq_socket(context, ZMQ_PAIR);
        blocked.call = call;
        blocked.together = &together;
        set_int_option(blocked.socket, ZMQ_LINGER, 0);
        CHECK(zmq_bind(blocked.socket, at) == 0);
        CHECK(pthread_barrier_init(&together, NULL, 2) == 0);
        CHECK(pthread_create(&thread, NULL, block, &blocked) == 0);
        pthread_barrier_wait(&together);
        if (round % 2)
            zmq_poll(NULL, 0, round); /* the thread most likely blocks by then */
        CHECK(zmq_close(blocked.socket) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(blocked.result == -1 && blocked.error == ENOTSOCK);
        CHECK(zmq_close(blocked.other) == 0);
        CHECK(pthread_barrier_destroy(&together) == 0);
    }
    CHECK(zmq_ctx_term(context) == 0);
}

void endings(void)
{
    static const char *const transports[] = {"inproc://endings", "ipc://*", "tcp://127.0.0.1:*"};
    int i, round, call;
    for (i = 0; i < 3; i++) {
        if (strncmp(transports[i], "ipc", 3) == 0 && !zmq_has("ipc"))
            continue;
        for (round = 0; round < ROUNDS; round++)
            freed_once(transports[i], round % 4);
        statistics_meanwhile(transports[i]);
        one_peer_is_let_go(ZMQ_SERVER, ZMQ_CLIENT, transports[i]);
        one_peer_is_let_go(ZMQ_PEER, ZMQ_PEER, transports[i]);
        /* libzmq ends the call only when the context ends. */
        for (call = RECEIVE; strict && call < CALLS; call++)
            closed_beside_a_call((enum call) call, transports[i]);
    }
}
