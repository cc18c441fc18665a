/* Kills readers or senders of large bodies at random moments, one after the other. The survivor must go on, and in the end it must have
 * the memory of all bodies again.
 *
 *   kills readers|subscribers|senders ROUNDS [SEED]
 *
 * In a round, the survivor exchanges bodies with a new process until it uses a slab, then for some milliseconds, and kills it. */
#include "bodies.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum
{
    HELD = 8,
    MOST = 3 * 1024 * 1024,
    /* Longest life of a process after its first slab. */
    LIFE_MS = 30,
    /* A process that has no slab after this number of bodies fails. */
    PATIENCE = 5000,
    /* Slabs without blocks are given back after this time and another body. */
    IDLE_MS = 5000
};

static char bodies_at[96], answers_at[96];
static int publishes;

static uint64_t now_ms (void)
{
    struct timespec t;
    clock_gettime (CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000 + (uint64_t) t.tv_nsec / 1000000;
}

/* Received messages, of which the oldest makes room. */
struct shelf {
    zmq_msg_t messages[HELD];
    uint64_t numbers[HELD], changes[HELD];
    unsigned next;
};

static void shelf_open (struct shelf *shelf)
{
    memset (shelf, 0, sizeof *shelf);
    for (int i = 0; i < HELD; i++)
        zmq_msg_init (&shelf->messages[i]);
}

static void shelf_release (struct shelf *shelf, unsigned place)
{
    zmq_msg_t *message = &shelf->messages[place];
    size_t length = zmq_msg_size (message);
    if (length > 0) {
        if (shelf->changes[place] != 0)
            body_scribble (zmq_msg_data (message), length, shelf->changes[place]);
        if (!body_is_right (zmq_msg_data (message), length, shelf->numbers[place]))
            fail ("a body changed while the reader had it");
    }
    zmq_msg_close (message);
    zmq_msg_init (message);
}

/* Checks a message and takes it. */
static void shelf_put (struct shelf *shelf, zmq_msg_t *message, uint64_t *random)
{
    unsigned place = shelf->next++ % HELD;
    void *body = zmq_msg_data (message);
    size_t length = zmq_msg_size (message);

    shelf_release (shelf, place);
    shelf->numbers[place] = body_number (body);
    shelf->changes[place] = 0;
    if (!body_is_right (body, length, shelf->numbers[place]))
        fail ("a wrong body");
    if (random_next (random) % 2 == 0) {
        shelf->changes[place] = random_next (random) | 1;
        body_scribble (body, length, shelf->changes[place]);
    }
    zmq_msg_move (&shelf->messages[place], message);
}

/* Set in the number of a body whose sender has slabs. */
#define HAS_SLABS (UINT64_C (1) << 31)

/* A process that reads until it is killed. It answers each body once it maps a slab. */
static void victim_reads (uint64_t seed)
{
    void *context = zmq_ctx_new (), *socket = socket_open (context, publishes ? ZMQ_SUB : ZMQ_PULL);
    void *answers = socket_open (context, ZMQ_PUSH);
    struct shelf shelf;
    unsigned before = 0;
    int is_mapped = 0;

    shelf_open (&shelf);
    if (publishes)
        zmq_setsockopt (socket, ZMQ_SUBSCRIBE, "", 0);
    socket_connect (answers, answers_at);
    socket_connect (socket, bodies_at);
    for (;;) {
        zmq_msg_t message;
        zmq_msg_init (&message);
        if (body_receive (socket, &message, 0) != 0)
            fail ("zmq_msg_recv");
        shelf_put (&shelf, &message, &seed);
        zmq_msg_close (&message);
        is_mapped = is_mapped || mappings_of (getpid ()).read != 0;
        if (is_mapped)
            zmq_send (answers, "right", 5, ZMQ_DONTWAIT);
        else if (++before == PATIENCE)
            fail ("no slab is mapped: the library does not lend");
    }
}

/* A process that sends until it is killed. */
static void victim_sends (uint64_t seed)
{
    void *context = zmq_ctx_new (), *socket = socket_open (context, ZMQ_PUSH);
    uint64_t number = seed << 32, has_slabs = 0;

    socket_set (socket, ZMQ_SNDHWM, 4);
    socket_connect (socket, bodies_at);
    for (unsigned before = 0;; number++) {
        if (body_send (socket, random_length (&seed, MOST), number | has_slabs, 0) != 0)
            fail ("zmq_msg_send");
        if (has_slabs == 0 && mappings_of (getpid ()).own != 0)
            has_slabs = HAS_SLABS;
        else if (has_slabs == 0 && ++before == PATIENCE)
            fail ("there is no slab: the library does not lend");
    }
}

static void end_victim (pid_t victim)
{
    int status;
    kill (victim, SIGKILL);
    if (waitpid (victim, &status, 0) != victim)
        fail ("waitpid");
    if (!WIFSIGNALED (status) || WTERMSIG (status) != SIGKILL)
        fail ("a victim ended by itself");
}

/* Sends to one reader after the other. */
static void sender_survives (void *context, unsigned rounds, uint64_t random)
{
    void *socket = socket_open (context, publishes ? ZMQ_PUB : ZMQ_PUSH), *answers = socket_open (context, ZMQ_PULL);
    struct mappings mapped;
    uint64_t number = 0, sent = 0;
    size_t early = 0;
    char text[8];

    socket_set (socket, ZMQ_SNDHWM, 4);
    socket_set (socket, ZMQ_SNDTIMEO, 2);
    socket_bind (socket, bodies_at);
    socket_bind (answers, answers_at);
    for (unsigned round = 0; round <= rounds; round++) {
        /* The last process reads on, while idle slabs are given back. */
        int is_last = round == rounds;
        char seed[32];
        const char *arguments[] = {publishes ? "subscribe" : "read", bodies_at, answers_at, seed, NULL};
        uint64_t end = 0, life = is_last ? 2 * IDLE_MS : random_next (&random) % LIFE_MS;
        pid_t victim;

        snprintf (seed, sizeof seed, "%" PRIu64, random_next (&random) >> 8);
        while (zmq_recv (answers, text, sizeof text, ZMQ_DONTWAIT) != -1) {
        }
        victim = start (arguments);
        for (;;) {
            int is_sent = body_send (socket, is_last ? 1000000 : random_length (&random, MOST), number, 0) == 0;
            number += (unsigned) is_sent;
            sent += (unsigned) is_sent;
            if (end == 0 && zmq_recv (answers, text, sizeof text, ZMQ_DONTWAIT) != -1)
                end = now_ms () + life;
            if (end != 0 && now_ms () >= end)
                break;
            if (is_last || (publishes && end == 0))
                pause_ms (is_last ? 20 : 1);
            if (waitpid (victim, NULL, WNOHANG) != 0)
                fail ("a reader ended by itself");
        }
        mapped = mappings_of (getpid ());
        if (round <= rounds / 4 && mapped.own_kib > early)
            early = mapped.own_kib;
        if (round == rounds / 4 || is_last)
            printf ("round %u: %u slabs with %zu KiB, at most %zu before\n", round, mapped.own, mapped.own_kib, early);
        end_victim (victim);
    }
    printf ("%" PRIu64 " bodies sent\n", sent);
    if (mapped.own == 0)
        fail ("no slab is mapped: the library does not lend");
    if (mapped.own > 1)
        fail ("slabs are in use without a reader");
    zmq_close (socket);
    zmq_close (answers);
}

/* Receives from one sender after the other. */
static void reader_survives (void *context, unsigned rounds, uint64_t random)
{
    void *socket = socket_open (context, ZMQ_PULL);
    uint64_t received = 0;
    struct mappings mapped;
    struct shelf shelf;
    zmq_msg_t message;
    int was_mapped = 0;

    shelf_open (&shelf);
    socket_set (socket, ZMQ_RCVHWM, 4);
    socket_bind (socket, bodies_at);
    for (unsigned round = 0; round < rounds; round++) {
        char seed[32];
        const char *arguments[] = {"send", bodies_at, answers_at, seed, NULL};
        uint64_t id = round + 1, number, end = 0, life = random_next (&random) % LIFE_MS;
        pid_t victim;

        snprintf (seed, sizeof seed, "%" PRIu64, id);
        victim = start (arguments);
        /* Bodies of earlier senders may still arrive. */
        while (end == 0 || now_ms () < end) {
            zmq_msg_init (&message);
            if (body_receive (socket, &message, 0) != 0)
                fail ("zmq_msg_recv");
            number = body_number (zmq_msg_data (&message));
            if (end == 0 && number >> 32 == id && (number & HAS_SLABS) != 0)
                end = now_ms () + life;
            shelf_put (&shelf, &message, &random);
            zmq_msg_close (&message);
            received++;
            if (random_next (&random) % 32 == 0)
                pause_ms (1);
        }
        was_mapped |= mappings_of (getpid ()).written != 0;
        end_victim (victim);
    }
    for (unsigned place = 0; place < HELD; place++)
        shelf_release (&shelf, place);
    /* The rest of the last senders, and then the end of their connections. */
    do {
        zmq_msg_init (&message);
        while (body_receive (socket, &message, ZMQ_DONTWAIT) == 0) {
            shelf_put (&shelf, &message, &random);
            shelf_release (&shelf, (shelf.next - 1) % HELD);
        }
        zmq_msg_close (&message);
        pause_ms (5);
        mapped = mappings_of (getpid ());
    } while (mapped.read != 0 || mapped.written != 0);
    printf ("%" PRIu64 " bodies received\n", received);
    if (!was_mapped)
        fail ("no slab was mapped: the library does not lend");
    zmq_close (socket);
}

int main (int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    char folder[] = "/tmp/loans-XXXXXX";
    unsigned rounds;
    uint64_t random;
    void *context;

    publishes = strncmp (mode, "subscribe", 9) == 0;
    if (argc == 5) {
        snprintf (bodies_at, sizeof bodies_at, "%s", argv[2]);
        snprintf (answers_at, sizeof answers_at, "%s", argv[3]);
        watchdog (300);
        if (strcmp (mode, "send") == 0)
            victim_sends (strtoull (argv[4], NULL, 10));
        victim_reads (strtoull (argv[4], NULL, 10) | 1);
    }
    if (argc < 3 || mkdtemp (folder) == NULL) {
        fprintf (stderr, "usage: kills readers|subscribers|senders ROUNDS [SEED]\n");
        return 2;
    }
    rounds = (unsigned) strtoul (argv[2], NULL, 10);
    random = (argc > 3 ? strtoull (argv[3], NULL, 10) : 1) * 31 + 7;
    snprintf (bodies_at, sizeof bodies_at, "ipc://%s/bodies", folder);
    snprintf (answers_at, sizeof answers_at, "ipc://%s/answers", folder);
    watchdog (300 + 3 * rounds);
    context = zmq_ctx_new ();
    if (strcmp (mode, "senders") == 0)
        reader_survives (context, rounds, random);
    else
        sender_survives (context, rounds, random);
    if (zmq_ctx_term (context) != 0)
        fail ("zmq_ctx_term");
    rmdir (folder);
    printf ("%s: %u kills survived\n", mode, rounds);
    return 0;
}
