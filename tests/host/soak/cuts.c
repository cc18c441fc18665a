/* Connections with heartbeats that are cut at any byte: cuts SECONDS SEED
 *
 * A round takes a pattern, senders, high-water marks, messages of several parts and heartbeats at random. A relay between the
 * senders and the receiver reads the forwarded frames. Sometimes it ends a connection after some byte, with a FIN or a reset.
 * The program checks these rules: each message leaves its sender once and complete. Exactly the completely forwarded messages
 * arrive, each once, in order until the first cut. (After a reset, forwarded messages may be lost. libzmq itself loses the last
 * messages of a closing sender here, if a PONG arrives at that time.) */

#include "checked.h"
#include "relay.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum
{
    HANG_SECONDS = 90
};

static const struct
{
    const char *name;
    int sender, receiver;
} patterns[] = {{"PUSH/PULL", ZMQ_PUSH, ZMQ_PULL}, {"DEALER/ROUTER", ZMQ_DEALER, ZMQ_ROUTER}, {"DEALER/DEALER", ZMQ_DEALER, ZMQ_DEALER}};

static uint64_t state;
static relay between;
static tally received;
static atomic_uint senders_done;

struct sender
{
    int type, number, heartbeat, mark;
    unsigned count;
    uint64_t random;
};

static void *send_all (void *argument)
{
    struct sender *sender = argument;
    void *context = zmq_ctx_new (), *socket = zmq_socket (context, sender->type);
    unsigned number;
    set_option (socket, ZMQ_SNDHWM, sender->mark);
    set_option (socket, ZMQ_RECONNECT_IVL, 1 + (int) random_below (&sender->random, 20));
    set_option (socket, ZMQ_HEARTBEAT_IVL, sender->heartbeat);
    /* The timeout is long, because the relay forwards no answers while the receiver is slow. */
    set_option (socket, ZMQ_HEARTBEAT_TIMEOUT, HANG_SECONDS * 1000);
    if (zmq_connect (socket, between.endpoint) != 0)
        fail ("connect");
    for (number = 0; number < sender->count; number++) {
        if (checked_send (socket, (uint64_t) sender->number, number, 0) != 0)
            fail ("a message is refused");
        if (random_below (&sender->random, 100) == 0)
            usleep (random_below (&sender->random, 3000));
    }
    if (zmq_close (socket) != 0 || zmq_ctx_term (context) != 0)
        fail ("cannot end a sender");
    atomic_fetch_add (&senders_done, 1);
    return NULL;
}

/* Receives messages until all forwarded messages have arrived. */
static void receive_all (void *socket, int skip, unsigned senders, uint64_t *random)
{
    uint64_t next[MOST_SENDERS] = {0};
    unsigned total = 0, idle = 0;
    set_option (socket, ZMQ_RCVTIMEO, 20);
    for (;;) {
        checked_header header;
        /* The order matters: forwarding ends after the last sender, once the last connection is closed. */
        int over = atomic_load (&senders_done) == senders && atomic_load (&between.open) == 0;
        if (over && (total == atomic_load (&between.passed_total) || (between.resets && idle > 15)))
            return;
        if (checked_recv (socket, skip, &header, 0) != 0) {
            if (zmq_errno () != EAGAIN)
                fail ("cannot receive a message");
            idle++;
            continue;
        }
        if (header.sender >= senders)
            fail ("a message has an unknown sender");
        /* The remaining bytes of a cut connection are received in turn with those of the next connection. */
        if (atomic_load (&between.cuts) == 0 && header.number != next[header.sender])
            fail ("a message is out of order");
        next[header.sender] = header.number + 1;
        received[header.sender][header.number]++;
        total++;
        idle = 0;
        if (random_below (random, 200) == 0)
            usleep (random_below (random, 3000));
    }
}

static void check (const struct sender *senders, unsigned count)
{
    unsigned i, number;
    for (i = 0; i < count; i++)
        for (number = 0; number < senders[i].count; number++) {
            if (!between.resets && between.left[i][number] != 1)
                fail ("a message never left its sender");
            if (received[i][number] > between.passed[i][number] || (!between.resets && received[i][number] != between.passed[i][number]))
                fail ("a forwarded message is missing, or a message arrived that was not forwarded");
        }
}

static void play_round (uint64_t number, uint64_t seed)
{
    static const int marks[] = {1, 2, 5, 30, 1000, 0};
    struct sender senders[MOST_SENDERS];
    pthread_t threads[MOST_SENDERS];
    char endpoint[64];
    size_t size = sizeof endpoint;
    unsigned pattern = random_below (&state, 3), count = 1 + random_below (&state, MOST_SENDERS), i;
    int heartbeat = random_below (&state, 3) == 0 ? 0 : 1 + (int) random_below (&state, 20);
    void *context = zmq_ctx_new (), *socket = zmq_socket (context, patterns[pattern].receiver);

    memset (received, 0, sizeof received);
    senders_done = 0;
    between.random = random_next (&state);
    between.resets = random_below (&state, 4) == 0;
    set_option (socket, ZMQ_RCVHWM, marks[random_below (&state, 6)]);
    set_option (socket, ZMQ_LINGER, 0);
    set_option (socket, ZMQ_HEARTBEAT_IVL, random_below (&state, 2) ? heartbeat : 0);
    set_option (socket, ZMQ_HEARTBEAT_TIMEOUT, HANG_SECONDS * 1000);
    if (zmq_bind (socket, "tcp://127.0.0.1:*") != 0 || zmq_getsockopt (socket, ZMQ_LAST_ENDPOINT, endpoint, &size) != 0)
        fail ("bind");
    between.receiver_port = atoi (strrchr (endpoint, ':') + 1);
    snprintf (shown, sizeof shown, "cuts: hangs: round %llu of seed %llu: %s, %u senders, heartbeats %d ms%s\n", (unsigned long long) number,
              (unsigned long long) seed, patterns[pattern].name, count, heartbeat, between.resets ? ", resets" : "");
    alarm (HANG_SECONDS);
    relay_start (&between);
    for (i = 0; i < count; i++) {
        struct sender sender = {patterns[pattern].sender, (int) i, heartbeat, marks[random_below (&state, 6)], 1 + random_below (&state, MOST_MESSAGES), 0};
        sender.random = random_next (&state);
        senders[i] = sender;
        if (pthread_create (&threads[i], NULL, send_all, &senders[i]) != 0)
            fail ("cannot start a thread");
    }
    receive_all (socket, patterns[pattern].receiver == ZMQ_ROUTER, count, &state);
    for (i = 0; i < count; i++)
        pthread_join (threads[i], NULL);
    if (zmq_close (socket) != 0 || zmq_ctx_term (context) != 0)
        fail ("cannot end the receiver");
    relay_stop (&between);
    check (senders, count);
}

int main (int argc, char **argv)
{
    time_t end = time (NULL) + (argc > 1 ? atoi (argv[1]) : 10);
    uint64_t seed = argc > 2 ? strtoull (argv[2], NULL, 10) : (uint64_t) getpid (), rounds = 0;
    show_on_alarm ();
    signal (SIGPIPE, SIG_IGN);
    state = seed * UINT64_C (0x9E3779B97F4A7C15) + 1;
    while (time (NULL) < end)
        play_round (rounds++, seed);
    printf ("%llu rounds of cuts\n", (unsigned long long) rounds);
    return 0;
}
