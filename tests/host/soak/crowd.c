/* A publisher and a crowd of subscribers, slow ones among them: crowd SECONDS SEED
 *
 * A round takes high-water marks, transports, topics, heartbeats and ZMQ_XPUB_NODROP at random. Some subscribers are slow, so that
 * they reach their high-water mark. Guests connect, receive a few messages and disconnect. A client that subscribed before the first
 * message receives only its messages, complete and in order. With ZMQ_XPUB_NODROP it receives all of them. Without this option it may
 * miss some messages, but it receives the last messages, which the publisher repeats until all clients have them. (libzmq hangs here,
 * because its subscribers lose subscriptions above their ZMQ_SNDHWM.) */

#include "checked.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum
{
    HANG_SECONDS = 90,
    MOST_SUBSCRIBERS = 16,
    TOPICS = 4
};

/* Topics, and the matching last bits of a message's number, see checked.c. */
static const struct
{
    const char *topics;
    unsigned wanted;
} tastes[] = {{"", 15}, {"A", 1}, {"BD", 10}, {"ABCD", 15}};

struct subscriber
{
    const char *endpoint;
    unsigned taste, slowness; /* slowness: most microseconds for a message */
    int mark, heartbeat, is_guest;
    uint64_t random;
};

static uint64_t state;
static void *context;
static int nodrop;
static unsigned count;
static atomic_uint done;
static atomic_int over;

static void shape (void *socket, int mark, int heartbeat)
{
    set_option (socket, ZMQ_SNDHWM, mark);
    set_option (socket, ZMQ_RCVHWM, mark);
    set_option (socket, ZMQ_LINGER, 0);
    set_option (socket, ZMQ_HEARTBEAT_IVL, heartbeat);
    set_option (socket, ZMQ_HEARTBEAT_TIMEOUT, HANG_SECONDS * 1000);
}

static void *subscribe (const struct subscriber *subscriber)
{
    void *socket = zmq_socket (context, ZMQ_SUB);
    const char *topic = tastes[subscriber->taste].topics;
    shape (socket, subscriber->mark, subscriber->heartbeat);
    set_option (socket, ZMQ_RCVTIMEO, 5);
    do
        if (zmq_setsockopt (socket, ZMQ_SUBSCRIBE, topic, *topic ? 1 : 0) != 0)
            fail ("a subscription is refused");
    while (*topic && *++topic);
    if (zmq_connect (socket, subscriber->endpoint) != 0)
        fail ("connect");
    return socket;
}

/* Returns the next number with a subscribed topic, from `number` on. */
static uint64_t next_wanted (const struct subscriber *subscriber, uint64_t number)
{
    while ((tastes[subscriber->taste].wanted >> number % TOPICS & 1) == 0)
        number++;
    return number;
}

static void *stay (void *argument)
{
    struct subscriber *subscriber = argument;
    void *socket = subscribe (subscriber);
    uint64_t next = next_wanted (subscriber, 0);
    for (;;) {
        checked_header header;
        if (checked_recv (socket, 0, &header, 0) != 0) {
            if (zmq_errno () != EAGAIN)
                fail ("cannot receive a message");
            continue;
        }
        if (header.number < next || header.number != next_wanted (subscriber, header.number))
            fail ("received a message without a subscription, or twice");
        if (nodrop && header.number != next)
            fail ("a message is missing");
        if (header.number >= count)
            break;
        next = next_wanted (subscriber, header.number + 1);
        if (subscriber->slowness)
            usleep (random_below (&subscriber->random, subscriber->slowness));
    }
    atomic_fetch_add (&done, 1);
    if (zmq_close (socket) != 0)
        fail ("cannot close a subscriber");
    return NULL;
}

static void *come_and_go (void *argument)
{
    struct subscriber *subscriber = argument;
    while (!atomic_load (&over)) {
        void *socket = subscribe (subscriber);
        unsigned most = random_below (&subscriber->random, 30);
        uint64_t next = 0;
        int tries = 3;
        while (most > 0 && tries > 0) {
            checked_header header;
            if (checked_recv (socket, 0, &header, 0) != 0) {
                tries--;
                continue;
            }
            /* The publisher repeats the last messages. */
            if (header.number < next && header.number < count)
                fail ("a guest received a message twice");
            next = header.number + 1;
            most--;
        }
        usleep (random_below (&subscriber->random, 2000));
        if (zmq_close (socket) != 0)
            fail ("cannot close a guest");
    }
    return NULL;
}

static void publish (void *publisher, unsigned subscribers)
{
    unsigned number;
    for (number = 0; number < count; number++) {
        if (checked_send (publisher, 0, number, 0) != 0)
            fail ("a message is refused");
        if (random_below (&state, 100) == 0)
            usleep (random_below (&state, 1000));
    }
    while (atomic_load (&done) < subscribers) {
        for (number = count; number < count + TOPICS; number++)
            if (checked_send (publisher, 0, number, 0) != 0)
                fail ("a last message is refused");
        usleep (1000);
    }
}

static void play_round (uint64_t number, uint64_t seed)
{
    static const int marks[] = {1, 2, 5, 30, 100, 1000, 0};
    static const char *const places[] = {"tcp://127.0.0.1:*", "ipc://*", "inproc://crowd"};
    struct subscriber subscribers[MOST_SUBSCRIBERS];
    pthread_t threads[MOST_SUBSCRIBERS];
    char endpoints[3][256];
    unsigned crowd = 1 + random_below (&state, MOST_SUBSCRIBERS), guests = random_below (&state, 3), staying, expected = 0, i;
    int heartbeat = random_below (&state, 2) ? 1 + (int) random_below (&state, 20) : 0, mark = marks[random_below (&state, 7)];
    void *publisher;

    context = zmq_ctx_new ();
    publisher = zmq_socket (context, ZMQ_XPUB);
    nodrop = random_below (&state, 2) == 0;
    count = TOPICS * (25 + random_below (&state, 300));
    done = 0;
    over = 0;
    guests = guests < crowd ? guests : 0;
    staying = crowd - guests;
    shape (publisher, mark, heartbeat);
    set_option (publisher, ZMQ_XPUB_NODROP, nodrop);
    set_option (publisher, ZMQ_XPUB_VERBOSE, 1);
    for (i = 0; i < 3; i++) {
        size_t size = sizeof endpoints[i];
        if (zmq_bind (publisher, places[i]) != 0 || zmq_getsockopt (publisher, ZMQ_LAST_ENDPOINT, endpoints[i], &size) != 0)
            fail ("bind");
    }
    snprintf (shown, sizeof shown, "crowd: hangs: round %llu of seed %llu: %u subscribers and %u guests, %u messages, mark %d, heartbeats %d ms%s\n",
              (unsigned long long) number, (unsigned long long) seed, staying, guests, count, mark, heartbeat, nodrop ? ", nothing dropped" : "");
    alarm (HANG_SECONDS);
    for (i = 0; i < crowd; i++) {
        struct subscriber *subscriber = &subscribers[i];
        char notice[2];
        subscriber->endpoint = endpoints[random_below (&state, 3)];
        subscriber->taste = random_below (&state, 4);
        subscriber->slowness = random_below (&state, 3) == 0 ? random_below (&state, 500) : 0;
        subscriber->mark = marks[random_below (&state, 7)];
        subscriber->heartbeat = heartbeat;
        subscriber->random = random_next (&state);
        subscriber->is_guest = i >= staying;
        if (i == staying)
            for (; expected > 0; expected--)
                if (zmq_recv (publisher, notice, sizeof notice, 0) == -1)
                    fail ("a subscription did not arrive");
        if (pthread_create (&threads[i], NULL, subscriber->is_guest ? come_and_go : stay, subscriber) != 0)
            fail ("cannot start a thread");
        expected += subscriber->is_guest ? 0 : *tastes[subscriber->taste].topics ? (unsigned) strlen (tastes[subscriber->taste].topics) : 1;
    }
    for (; guests == 0 && expected > 0; expected--) {
        char notice[2];
        if (zmq_recv (publisher, notice, sizeof notice, 0) == -1)
            fail ("a subscription did not arrive");
    }
    publish (publisher, staying);
    atomic_store (&over, 1);
    for (i = 0; i < crowd; i++)
        pthread_join (threads[i], NULL);
    if (zmq_close (publisher) != 0 || zmq_ctx_term (context) != 0)
        fail ("cannot end the publisher");
}

int main (int argc, char **argv)
{
    time_t end = time (NULL) + (argc > 1 ? atoi (argv[1]) : 10);
    uint64_t seed = argc > 2 ? strtoull (argv[2], NULL, 10) : (uint64_t) getpid (), rounds = 0;
    show_on_alarm ();
    state = seed * UINT64_C (0x9E3779B97F4A7C15) + 1;
    while (time (NULL) < end)
        play_round (rounds++, seed);
    printf ("%llu rounds of crowds\n", (unsigned long long) rounds);
    return 0;
}
