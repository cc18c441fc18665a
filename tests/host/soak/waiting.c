/* Sockets that wait for each other in different ways: waiting SECONDS SEED
 *
 * A round takes a pattern, a transport, high-water marks and peers at random. Each side gets one of the ways in which programs wait: a
 * blocking call, a timeout, zmq_poll, ZMQ_FD level- or edge-triggered, or repeated calls. All messages must arrive once, complete and in
 * order, and the context must end. Otherwise the round hangs, and the process prints it and aborts. (libzmq itself hangs here, because its
 * REP drops replies at a high-water mark of 1.) */

#include "checked.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum
{
    HANG_SECONDS = 90,
    MOST_PEERS = 3
};

enum way
{
    BLOCKING,
    TIMEOUT,
    POLL,
    POLL_SHORTLY,
    LEVEL,
    EDGES,
    RETRY,
    WAYS
};

static const char *const way_names[] = {"blocking", "timeout", "zmq_poll", "zmq_poll 1 ms", "ZMQ_FD", "ZMQ_FD edges", "retry"};

enum pattern
{
    PUSH_PULL,
    DEALER_ROUTER,
    DEALER_DEALER,
    PAIR_PAIR,
    XPUB_SUB,
    FAN_OUT,
    REQ_REP,
    ECHO_PAIR,
    ECHO_DEALER,
    PATTERNS
};

static const struct
{
    const char *name;
    int sender, receiver;
    int several; /* more than one peer is possible */
    int answers; /* the receiver sends each message back */
} patterns[] = {
    {"PUSH/PULL", ZMQ_PUSH, ZMQ_PULL, 1, 0},     {"DEALER/ROUTER", ZMQ_DEALER, ZMQ_ROUTER, 1, 0}, {"DEALER/DEALER", ZMQ_DEALER, ZMQ_DEALER, 1, 0},
    {"PAIR/PAIR", ZMQ_PAIR, ZMQ_PAIR, 0, 0},     {"XPUB/SUB", ZMQ_XPUB, ZMQ_SUB, 1, 0},           {"fan-out of XPUB", ZMQ_XPUB, ZMQ_SUB, 1, 0},
    {"REQ/REP", ZMQ_REQ, ZMQ_REP, 1, 1},         {"PAIR echo", ZMQ_PAIR, ZMQ_PAIR, 0, 1},         {"DEALER echo", ZMQ_DEALER, ZMQ_DEALER, 0, 1},
};

/* Subscriptions of a subscriber: topics, and the matching last bits of a message's number, see checked.c. Some topics occur twice. */
static const struct
{
    const char *topics;
    unsigned wanted;
} tastes[] = {{"", 15}, {"A", 1}, {"BDB", 10}};

/* One side of a round. */
struct end
{
    void *socket;
    enum way way;
    int single; /* waits before each message, not only after EAGAIN */
    int epoll;
    int number;
    unsigned count;
    unsigned window; /* most messages in transit, if the receiver returns them */
    unsigned subscriptions; /* number of expected subscriptions */
    unsigned wanted; /* subscribed topics, as bits */
    enum pattern pattern;
    uint64_t state;
};

static uint64_t state;

static void set (void *socket, int option, int value)
{
    if (zmq_setsockopt (socket, option, &value, sizeof value) != 0)
        fail ("an option is refused");
}

static int get (void *socket, int option)
{
    int value = 0;
    size_t size = sizeof value;
    if (zmq_getsockopt (socket, option, &value, &size) != 0)
        fail ("cannot read an option");
    return value;
}

/* Delays this thread by a random time. */
static void stray (uint64_t *random)
{
    unsigned chance = random_below (random, 128);
    if (chance == 0)
        usleep (random_below (random, 300));
    else if (chance < 4)
        sched_yield ();
}

static void prepare (struct end *end)
{
    end->epoll = -1;
    if (end->way == TIMEOUT) {
        set (end->socket, ZMQ_SNDTIMEO, 1);
        set (end->socket, ZMQ_RCVTIMEO, 1);
    } else if (end->way == LEVEL || end->way == EDGES) {
        struct epoll_event event;
        memset (&event, 0, sizeof event);
        event.events = end->way == EDGES ? EPOLLIN | EPOLLET : EPOLLIN;
        end->epoll = epoll_create1 (EPOLL_CLOEXEC);
        if (epoll_ctl (end->epoll, EPOLL_CTL_ADD, get (end->socket, ZMQ_FD), &event) != 0)
            fail ("cannot watch ZMQ_FD");
    }
}

static int flags_of (const struct end *end)
{
    return end->way == BLOCKING || end->way == TIMEOUT ? 0 : ZMQ_DONTWAIT;
}

/* Waits until `wanted` may be possible. */
static void await (struct end *end, short wanted)
{
    zmq_pollitem_t item;
    struct epoll_event event;
    switch (end->way) {
    case POLL:
    case POLL_SHORTLY:
        memset (&item, 0, sizeof item);
        item.socket = end->socket;
        item.events = wanted;
        if (zmq_poll (&item, 1, end->way == POLL ? -1 : 1) == -1)
            fail ("zmq_poll");
        break;
    case LEVEL:
    case EDGES:
        while ((get (end->socket, ZMQ_EVENTS) & wanted) == 0)
            epoll_wait (end->epoll, &event, 1, -1);
        break;
    case RETRY:
        sched_yield ();
        break;
    default:
        break;
    }
}

static void send_one (struct end *end, unsigned number)
{
    int ask = end->single;
    stray (&end->state);
    for (;;) {
        if (ask)
            await (end, ZMQ_POLLOUT);
        if (checked_send (end->socket, (uint64_t) end->number, number, flags_of (end)) == 0)
            return;
        if (zmq_errno () != EAGAIN)
            fail ("a message is refused");
        ask = 1;
    }
}

static checked_header receive_one (struct end *end)
{
    checked_header header;
    int ask = end->single;
    stray (&end->state);
    for (;;) {
        if (ask)
            await (end, ZMQ_POLLIN);
        if (checked_recv (end->socket, end->pattern == DEALER_ROUTER, &header, flags_of (end)) == 0)
            return header;
        if (zmq_errno () != EAGAIN)
            fail ("cannot receive a message");
        ask = 1;
    }
}

static void *send_all (void *argument)
{
    struct end *end = argument;
    unsigned sent = 0, back = 0;
    prepare (end);
    while (end->subscriptions > 0) {
        char subscription[2];
        if (zmq_recv (end->socket, subscription, sizeof subscription, flags_of (end)) == -1)
            await (end, ZMQ_POLLIN);
        else
            end->subscriptions--;
    }
    while (sent < end->count || back < end->count * (unsigned) patterns[end->pattern].answers) {
        if (sent < end->count && (!patterns[end->pattern].answers || sent - back < end->window))
            send_one (end, sent++);
        else if (receive_one (end).number != back++)
            fail ("an answer is out of order");
    }
    if (zmq_close (end->socket) != 0)
        fail ("cannot close a sender");
    if (end->epoll != -1)
        close (end->epoll);
    return NULL;
}

static void receive_all (struct end *end, unsigned senders)
{
    unsigned next[MOST_PEERS] = {0};
    unsigned left = 0, number;
    prepare (end);
    for (number = 0; number < end->count; number++)
        left += (end->wanted >> number % 4 & 1) * senders;
    for (; left > 0; left--) {
        checked_header header = receive_one (end);
        if (header.sender >= senders)
            fail ("a message has an unknown sender");
        while ((end->wanted >> next[header.sender] % 4 & 1) == 0)
            next[header.sender]++;
        if (header.number != next[header.sender]++)
            fail ("a message is out of order");
        if (patterns[end->pattern].answers)
            send_one (end, (unsigned) header.number);
    }
    if (zmq_close (end->socket) != 0)
        fail ("cannot close the receiver");
    if (end->epoll != -1)
        close (end->epoll);
}

static void *receive_alone (void *argument)
{
    receive_all (argument, 1);
    return NULL;
}

static void join (void *bound, void *connecting, int transport, int name)
{
    char endpoint[256];
    size_t size = sizeof endpoint;
    snprintf (endpoint, sizeof endpoint, transport == 0 ? "tcp://127.0.0.1:*" : transport == 1 ? "ipc://*" : "inproc://%d", name);
    if (name == 0 && zmq_bind (bound, endpoint) != 0)
        fail ("bind");
    if (zmq_getsockopt (bound, ZMQ_LAST_ENDPOINT, endpoint, &size) != 0 || zmq_connect (connecting, endpoint) != 0)
        fail ("connect");
}

static void secure (void *bound, void *connecting)
{
    char keys[2][2][41];
    int i;
    for (i = 0; i < 2; i++)
        if (zmq_curve_keypair (keys[i][0], keys[i][1]) != 0)
            fail ("cannot create keys");
    set (bound, ZMQ_CURVE_SERVER, 1);
    zmq_setsockopt (bound, ZMQ_CURVE_SECRETKEY, keys[0][1], 41);
    zmq_setsockopt (connecting, ZMQ_CURVE_SERVERKEY, keys[0][0], 41);
    zmq_setsockopt (connecting, ZMQ_CURVE_PUBLICKEY, keys[1][0], 41);
    zmq_setsockopt (connecting, ZMQ_CURVE_SECRETKEY, keys[1][1], 41);
}

static void shape (void *socket, int mark, int small_buffers)
{
    set (socket, ZMQ_SNDHWM, mark);
    set (socket, ZMQ_RCVHWM, mark);
    if (small_buffers) {
        set (socket, ZMQ_SNDBUF, 4096);
        set (socket, ZMQ_RCVBUF, 4096);
    }
}

static void subscribe (struct end *subscriber, const char *topics)
{
    do
        if (zmq_setsockopt (subscriber->socket, ZMQ_SUBSCRIBE, topics, *topics ? 1 : 0) != 0)
            fail ("a subscription is refused");
    while (*topics && *++topics);
}

static void describe (uint64_t number, uint64_t seed, const struct end *one, const struct end *others, unsigned count, const char *rest)
{
    unsigned i;
    int at = snprintf (shown, sizeof shown, "waiting: hangs: round %llu of seed %llu: %s, %u messages, %s: %s%s with", (unsigned long long) number,
                       (unsigned long long) seed, patterns[one->pattern].name, one->count, rest, way_names[one->way],
                       one->single ? " for each" : "");
    for (i = 0; i < count; i++)
        at += snprintf (shown + at, sizeof shown - (size_t) at, " %s%s;", way_names[others[i].way], others[i].single ? " for each" : "");
    snprintf (shown + at, sizeof shown - (size_t) at, "\n");
}

/* Plays a round with one socket and its peers: a receiver with its senders, or a publisher with its subscribers. */
static void play_round (uint64_t number, uint64_t seed)
{
    static const int marks[] = {1, 2, 5, 30, 100, 1000, 0};
    static const char *const transports[] = {"tcp", "ipc", "inproc"};
    struct end others[MOST_PEERS], one;
    pthread_t threads[MOST_PEERS];
    char rest[128];
    void *context = zmq_ctx_new ();
    enum pattern pattern = random_below (&state, PATTERNS);
    int transport = (int) random_below (&state, 3), publishes = pattern == FAN_OUT;
    unsigned count = patterns[pattern].several ? 1 + random_below (&state, MOST_PEERS) : 1, i;
    int own_mark = marks[random_below (&state, 7)], other_mark = marks[random_below (&state, 7)];
    int small = random_below (&state, 2) == 0, curve = transport != 2 && count == 1 && random_below (&state, 8) == 0;
    int other_binds = count == 1 && random_below (&state, 2) == 0;

    memset (&one, 0, sizeof one);
    one.pattern = pattern;
    one.count = 50 + random_below (&state, random_below (&state, 4) == 0 ? 3000 : 500);
    one.wanted = 15;
    one.way = random_below (&state, WAYS);
    one.single = random_below (&state, 2) == 0;
    one.state = random_next (&state);
    one.socket = zmq_socket (context, publishes ? patterns[pattern].sender : patterns[pattern].receiver);
    shape (one.socket, own_mark, small);
    for (i = 0; i < count; i++) {
        others[i] = one;
        others[i].number = (int) i;
        others[i].way = random_below (&state, WAYS);
        others[i].single = random_below (&state, 2) == 0;
        others[i].state = random_next (&state);
        /* The window has only as many messages as fit without a reader. */
        others[i].window = pattern == REQ_REP || own_mark == 1 || other_mark == 1 ? 1 : 2;
        others[i].socket = zmq_socket (context, publishes ? patterns[pattern].receiver : patterns[pattern].sender);
        shape (others[i].socket, other_mark, small);
    }
    for (i = 0; i < count && (pattern == XPUB_SUB || pattern == FAN_OUT); i++) {
        struct end *publisher = publishes ? &one : &others[i], *subscriber = publishes ? &others[i] : &one;
        unsigned taste = publishes ? random_below (&state, 3) : 0;
        subscriber->wanted = tastes[taste].wanted;
        if (publishes || i == 0)
            subscribe (subscriber, tastes[taste].topics);
        set (publisher->socket, ZMQ_XPUB_NODROP, 1);
        set (publisher->socket, ZMQ_XPUB_VERBOSE, 1);
        /* A subscriber sends a repeated subscription once. */
        publisher->subscriptions += taste == 2 ? 2 : 1;
    }
    for (i = 0; i < count; i++) {
        void *bound = other_binds ? others[i].socket : one.socket, *connecting = other_binds ? one.socket : others[i].socket;
        if (curve)
            secure (bound, connecting);
        join (bound, connecting, transport, (int) i);
    }
    snprintf (rest, sizeof rest, "%s%s, marks %d and %d%s%s", transports[transport], curve ? " CURVE" : "", own_mark, other_mark,
              small ? ", small buffers" : "", other_binds ? ", the other bound" : "");
    describe (number, seed, &one, others, count, rest);
    alarm (HANG_SECONDS);
    for (i = 0; i < count; i++)
        if (pthread_create (&threads[i], NULL, publishes ? receive_alone : send_all, &others[i]) != 0)
            fail ("cannot start a thread");
    if (publishes)
        send_all (&one);
    else
        receive_all (&one, count);
    for (i = 0; i < count; i++)
        pthread_join (threads[i], NULL);
    if (zmq_ctx_term (context) != 0)
        fail ("zmq_ctx_term");
}

int main (int argc, char **argv)
{
    time_t end = time (NULL) + (argc > 1 ? atoi (argv[1]) : 10);
    uint64_t seed = argc > 2 ? strtoull (argv[2], NULL, 10) : (uint64_t) getpid (), rounds = 0;
    show_on_alarm ();
    state = seed * UINT64_C (0x9E3779B97F4A7C15) + 1;
    while (time (NULL) < end)
        play_round (rounds++, seed);
    printf ("%llu rounds\n", (unsigned long long) rounds);
    return 0;
}
