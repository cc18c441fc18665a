/* A sender process, and a reader process of two threads that writes into half of the received bodies. Every byte of each body is checked
 * when it arrives, and again when it is released, which another thread may do. The sender checks the messages of which it keeps a copy.
 *
 *   verify BODIES [SEED]
 *
 * Prints the number of bodies, and of those that the reader wrote to. Ends with 1 at the first wrong byte. */
#include "bodies.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
    THREADS = 2,
    HELD = 12,  /* messages that the reader keeps for a while */
    COPIES = 4, /* messages of which the sender keeps a copy */
    MOST = 6 * 1024 * 1024
};

#define END UINT64_MAX

static uint64_t bodies, seed;
static char endpoints[THREADS][128];

/* A received message, and the seed of the bytes that were changed, 0: none. */
struct held {
    zmq_msg_t message;
    uint64_t number, changes;
    int is_used;
};

static struct held pool[HELD];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t total, written, lent;

static void release (struct held *held)
{
    void *body = zmq_msg_data (&held->message);
    size_t length = zmq_msg_size (&held->message);
    if (held->changes != 0)
        body_scribble (body, length, held->changes);
    if (!body_is_right (body, length, held->number))
        fail ("a body changed while the reader had it");
    zmq_msg_close (&held->message);
}

/* Keeps a message, and releases another one if its place is in use. */
static void keep (struct held *one, uint64_t *random)
{
    struct held other = {.is_used = 0};
    struct held *place = &pool[random_next (random) % HELD];
    pthread_mutex_lock (&lock);
    if (place->is_used) {
        other.is_used = 1;
        other.number = place->number;
        other.changes = place->changes;
        zmq_msg_init (&other.message);
        zmq_msg_move (&other.message, &place->message);
    } else {
        zmq_msg_init (&place->message);
    }
    zmq_msg_move (&place->message, &one->message);
    place->number = one->number;
    place->changes = one->changes;
    place->is_used = 1;
    pthread_mutex_unlock (&lock);
    zmq_msg_close (&one->message);
    if (other.is_used)
        release (&other);
}

struct reader {
    void *context;
    int thread;
    uint64_t total, written, lent;
};

static void *reader_run (void *of)
{
    struct reader *reader = of;
    uint64_t random = seed * 7 + (uint64_t) reader->thread + 1, expected = 0;
    unsigned char *room = malloc (MOST + 1);
    void *socket = socket_open (reader->context, ZMQ_PULL);
    socket_bind (socket, endpoints[reader->thread]);
    for (;;) {
        struct held one = {.changes = 0};
        if (random_next (&random) % 8 == 0) {
            int length = zmq_recv (socket, room, MOST + 1, 0);
            if (length == -1 && zmq_errno () == EINTR)
                continue;
            if (length < 8)
                fail ("zmq_recv");
            if (body_number (room) == END)
                break;
            if (!body_is_right (room, (size_t) length, expected++))
                fail ("a wrong body, by zmq_recv");
            reader->total++;
            continue;
        }
        zmq_msg_init (&one.message);
        if (body_receive (socket, &one.message, 0) != 0)
            fail ("zmq_msg_recv");
        one.number = body_number (zmq_msg_data (&one.message));
        if (one.number == END) {
            zmq_msg_close (&one.message);
            break;
        }
        if (one.number != expected++)
            fail ("a wrong number: a message is lost, or its first word is wrong");
        if (!body_is_right (zmq_msg_data (&one.message), zmq_msg_size (&one.message), one.number))
            fail ("a wrong body");
        reader->total++;
        reader->lent += zmq_msg_get (&one.message, ZMQ_TAUTLINE_IS_LOAN) == 1;
        if (random_next (&random) % 2 == 0) {
            one.changes = random_next (&random) | 1;
            body_scribble (zmq_msg_data (&one.message), zmq_msg_size (&one.message), one.changes);
            reader->written++;
        }
        switch (random_next (&random) % 4) {
        case 0: release (&one); break;
        /* Closed with its changes. */
        case 1: zmq_msg_close (&one.message); break;
        default: keep (&one, &random);
        }
    }
    zmq_close (socket);
    free (room);
    return NULL;
}

static int reader_main (void)
{
    struct reader readers[THREADS] = {{0}};
    pthread_t threads[THREADS];
    void *context = zmq_ctx_new ();

    for (int i = 0; i < THREADS; i++) {
        readers[i].context = context;
        readers[i].thread = i;
        if (pthread_create (&threads[i], NULL, reader_run, &readers[i]) != 0)
            fail ("pthread_create");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join (threads[i], NULL);
        total += readers[i].total;
        written += readers[i].written;
        lent += readers[i].lent;
    }
    for (int i = 0; i < HELD; i++)
        if (pool[i].is_used)
            release (&pool[i]);
    if (zmq_ctx_term (context) != 0)
        fail ("zmq_ctx_term");
    printf ("%" PRIu64 " bodies right, %" PRIu64 " of them written to, %" PRIu64 " received without a copy\n", total, written, lent);
    if (bodies >= 200 && lent == 0)
        fail ("the library does not lend, or the peers are not neighbours");
    if (mappings_of (getpid ()).read != 0)
        fail ("slabs stay mapped after the last message and the context");
    return total == bodies ? 0 : 1;
}

static void freed (void *data, void *hint)
{
    (void) hint;
    free (data);
}

/* Sends a body by one of the ways of the interface. */
static void send_one (void *socket, uint64_t number, uint64_t *random, zmq_msg_t *copies, uint64_t *copied)
{
    size_t length = random_length (random, MOST), place = random_next (random) % COPIES;
    zmq_msg_t message;
    void *data;

    switch (random_next (random) % 8) {
    case 0:
        data = malloc (length);
        body_write (data, length, number);
        while (zmq_send (socket, data, length, 0) == -1)
            if (zmq_errno () != EINTR)
                fail ("zmq_send");
        free (data);
        return;
    case 1:
        data = malloc (length);
        body_write (data, length, number);
        zmq_msg_init_data (&message, data, length, freed, NULL);
        break;
    default:
        if (zmq_msg_init_size (&message, length) != 0)
            fail ("zmq_msg_init_size");
        body_write (zmq_msg_data (&message), length, number);
    }
    if (random_next (random) % 8 == 0) {
        if (!body_is_right (zmq_msg_data (&copies[place]), zmq_msg_size (&copies[place]), copied[place]))
            fail ("a copy at the sender changed");
        zmq_msg_copy (&copies[place], &message);
        copied[place] = number;
    }
    while (zmq_msg_send (&message, socket, 0) == -1)
        if (zmq_errno () != EINTR)
            fail ("zmq_msg_send");
}

struct sender {
    void *context;
    int thread;
};

static void *sender_run (void *of)
{
    struct sender *sender = of;
    uint64_t random = seed * 13 + (uint64_t) sender->thread + 1, copied[COPIES];
    uint64_t count = bodies / THREADS + (sender->thread == 0 ? bodies % THREADS : 0), end = END;
    zmq_msg_t copies[COPIES];
    void *socket = socket_open (sender->context, ZMQ_PUSH);

    for (int i = 0; i < COPIES; i++) {
        zmq_msg_init_size (&copies[i], 64);
        body_write (zmq_msg_data (&copies[i]), 64, copied[i] = 0);
    }
    socket_set (socket, ZMQ_LINGER, -1);
    socket_set (socket, ZMQ_SNDHWM, 8);
    socket_connect (socket, endpoints[sender->thread]);
    for (uint64_t number = 0; number < count; number++)
        send_one (socket, number, &random, copies, copied);
    while (zmq_send (socket, &end, sizeof end, 0) == -1)
        if (zmq_errno () != EINTR)
            fail ("zmq_send");
    zmq_close (socket);
    for (int i = 0; i < COPIES; i++) {
        if (!body_is_right (zmq_msg_data (&copies[i]), zmq_msg_size (&copies[i]), copied[i]))
            fail ("a copy at the sender changed");
        zmq_msg_close (&copies[i]);
    }
    return NULL;
}

int main (int argc, char **argv)
{
    char number[32], seeded[32];
    const char *arguments[] = {number, seeded, argc > 3 ? argv[3] : NULL, "reader", NULL};
    struct sender senders[THREADS];
    pthread_t threads[THREADS];
    char folder[] = "/tmp/loans-XXXXXX";
    void *context;
    pid_t child;
    int status;

    bodies = argc > 1 ? strtoull (argv[1], NULL, 10) : 2000;
    seed = argc > 2 ? strtoull (argv[2], NULL, 10) : 1;
    if (argc < 4 && mkdtemp (folder) == NULL)
        fail ("mkdtemp");
    for (int i = 0; i < THREADS; i++)
        snprintf (endpoints[i], sizeof endpoints[i], "ipc://%s/%d", argc > 3 ? argv[3] : folder, i);
    watchdog (300 + (unsigned) (bodies / 300));
    if (argc > 4)
        return reader_main ();
    snprintf (number, sizeof number, "%" PRIu64, bodies);
    snprintf (seeded, sizeof seeded, "%" PRIu64, seed);
    arguments[2] = folder;
    child = start (arguments);
    context = zmq_ctx_new ();
    for (int i = 0; i < THREADS; i++) {
        senders[i] = (struct sender){context, i};
        if (pthread_create (&threads[i], NULL, sender_run, &senders[i]) != 0)
            fail ("pthread_create");
    }
    /* The reader ends only after all messages, or with a failure, after which the senders would wait for ever. */
    if (waitpid (child, &status, 0) != child)
        fail ("waitpid");
    for (int i = 0; status == 0 && i < THREADS; i++)
        pthread_join (threads[i], NULL);
    if (status == 0 && zmq_ctx_term (context) != 0)
        fail ("zmq_ctx_term");
    for (int i = 0; i < THREADS; i++)
        unlink (endpoints[i] + strlen ("ipc://"));
    rmdir (folder);
    return status == 0 ? 0 : 1;
}
