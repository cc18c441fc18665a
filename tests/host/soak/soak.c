/* One process of the soak: soak ROLE STATUS-FILE SEED ENDPOINT...
 *
 * Roles with a "!" in the usage run until SIGTERM, and soak.py checks that they do not grow. Processes of other roles start
 * and end, and are killed at any moment. The status file always has the number of finished messages (or rounds). A process
 * without progress for HANG_SECONDS ends itself. */

#include "checked.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum
{
    HANG_SECONDS = 60,
    SENDERS = 4096
};

static volatile sig_atomic_t stopping;
static int status_file;
static uint64_t done;
static uint64_t state;
static int endpoint_count;
static char **endpoints;

static void on_term (int signal)
{
    (void) signal;
    stopping = 1;
}

static void on_alarm (int signal)
{
    static const char text[] = "soak: hangs: no progress within one call\n";
    (void) signal;
    (void) !write (2, text, sizeof text - 1);
    abort ();
}

/* Counts a step, writes the count to the status file, and restarts the watchdog. */
static void progress (void)
{
    done++;
    if (done % 64 == 1 || done < 64) {
        char text[32];
        int length = snprintf (text, sizeof text, "%020llu\n", (unsigned long long) done);
        (void) !pwrite (status_file, text, (size_t) length, 0);
        alarm (HANG_SECONDS);
    }
}

static unsigned below (unsigned limit)
{
    return (unsigned) (random_next (&state) >> 33) % limit;
}

static void set (void *socket, int option, int value)
{
    if (zmq_setsockopt (socket, option, &value, sizeof value) == -1)
        fail ("zmq_setsockopt");
}

static void *new_context (void)
{
    void *context = zmq_ctx_new ();
    if (!context)
        fail ("zmq_ctx_new");
    return context;
}

static void *new_socket (void *context, int type, int linger)
{
    void *socket = zmq_socket (context, type);
    if (!socket)
        fail ("zmq_socket");
    set (socket, ZMQ_LINGER, linger);
    set (socket, ZMQ_RCVTIMEO, 200);
    set (socket, ZMQ_SNDTIMEO, 200);
    set (socket, ZMQ_RECONNECT_IVL, 5);
    set (socket, ZMQ_RECONNECT_IVL_MAX, 100);
    return socket;
}

static void bind_all (void *socket)
{
    int index;
    for (index = 0; index < endpoint_count; index++)
        while (zmq_bind (socket, endpoints[index]) == -1) {
            /* The descriptor of the previous socket or of a killed process may stay open for a moment. */
            if (zmq_errno () != EADDRINUSE)
                fail ("zmq_bind");
            usleep (1000);
        }
    alarm (HANG_SECONDS);
}

/* Endpoints come in pairs for the same process. Connects to one endpoint of a pair, because two connections would not keep the order. */
static void connect_some (void *socket)
{
    int pairs = endpoint_count / 2;
    int first = (int) below ((unsigned) pairs);
    int count = 1 + (int) below ((unsigned) pairs);
    int index;
    for (index = 0; index < count; index++)
        if (zmq_connect (socket, endpoints[(first + index) % pairs * 2 + (int) below (2)]) == -1)
            fail ("zmq_connect");
}

/* Terminates a context. A signal may interrupt zmq_ctx_term, and then it is called again. */
static void term (void *context)
{
    while (zmq_ctx_term (context) == -1)
        if (zmq_errno () != EINTR)
            fail ("zmq_ctx_term");
}

static void close_and_term (void *socket, void *context)
{
    if (zmq_close (socket) == -1)
        fail ("zmq_close");
    term (context);
    alarm (HANG_SECONDS);
}

static void expect_timeout (void)
{
    if (zmq_errno () != EAGAIN && !(stopping && zmq_errno () == EINTR))
        fail ("a call failed with another error than a timeout");
}

/* Checks that the numbers of each sender increase, without duplicates or reordering. */
static void in_order (const checked_header *header)
{
    static struct
    {
        uint64_t sender, number;
    } last[SENDERS];
    unsigned at = (unsigned) (header->sender * UINT64_C (0x9E3779B97F4A7C15) >> 52) % SENDERS;
    if (last[at].sender == header->sender && header->number <= last[at].number)
        fail ("a message was duplicated or reordered");
    last[at].sender = header->sender;
    last[at].number = header->number;
}

/* Runs a PULL until SIGTERM. With `restarts`, creates a new context every few thousand messages. */
static void sink (int restarts)
{
    checked_header header;
    while (!stopping) {
        void *context = new_context ();
        void *socket = new_socket (context, ZMQ_PULL, 0);
        unsigned left = 500 + below (20000);
        bind_all (socket);
        while (!stopping && (!restarts || left-- > 0))
            if (checked_recv (socket, 0, &header, 0) == 0) {
                in_order (&header);
                progress ();
            } else
                expect_timeout ();
        close_and_term (socket, context);
    }
}

static void source (void)
{
    while (!stopping) {
        void *context = new_context ();
        void *socket = new_socket (context, ZMQ_PUSH, below (3) == 0 ? 100 : 0);
        uint64_t sender = random_next (&state) | 1;
        uint64_t number;
        uint64_t count = 1 + below (below (8) == 0 ? 30000 : 1000);
        set (socket, ZMQ_SNDHWM, 1 + (int) below (1000));
        connect_some (socket);
        for (number = 1; number <= count && !stopping; number++) {
            if (checked_send (socket, sender, number, 0) == -1)
                expect_timeout ();
            progress ();
        }
        close_and_term (socket, context);
    }
}

/* Runs a ROUTER that returns each message. */
static void echo (void)
{
    void *context = new_context ();
    void *socket = new_socket (context, ZMQ_ROUTER, 0);
    bind_all (socket);
    while (!stopping) {
        int more = 1;
        while (more) {
            zmq_msg_t part;
            zmq_msg_init (&part);
            if (zmq_msg_recv (&part, socket, 0) == -1) {
                expect_timeout ();
                zmq_msg_close (&part);
                break;
            }
            more = zmq_msg_more (&part);
            /* Without MANDATORY a ROUTER drops messages for a full peer, and never returns EAGAIN. */
            if (zmq_msg_send (&part, socket, more ? ZMQ_SNDMORE : 0) == -1)
                fail ("a ROUTER refused a message");
            if (!more)
                progress ();
        }
    }
    close_and_term (socket, context);
}

/* Runs a DEALER that expects its own messages back in order. */
static void asker (void)
{
    checked_header header;
    while (!stopping) {
        void *context = new_context ();
        void *socket = new_socket (context, ZMQ_DEALER, 0);
        uint64_t sender = random_next (&state) | 1;
        uint64_t sent = 0;
        uint64_t received = 0;
        unsigned count = 1 + below (2000);
        unsigned timeouts = 0;
        if (zmq_connect (socket, endpoints[below ((unsigned) endpoint_count)]) == -1)
            fail ("zmq_connect");
        while (received < count && !stopping && timeouts < 25) {
            while (sent < count && sent < received + 1 + below (32)) {
                if (checked_send (socket, sender, sent + 1, 0) == -1)
                    fail ("a DEALER with few messages in transit refused a message");
                sent++;
            }
            if (checked_recv (socket, 0, &header, 0) == -1) {
                expect_timeout ();
                timeouts++;
                continue;
            }
            if (header.sender != sender || header.number != ++received)
                fail ("an answer is out of order or belongs to another asker");
            progress ();
        }
        /* The echo process is never restarted, and drops no message with so few in transit. */
        if (timeouts == 25)
            fail ("no answer for five seconds");
        close_and_term (socket, context);
    }
}

static void publisher (void)
{
    void *context = new_context ();
    void *socket = new_socket (context, ZMQ_PUB, 0);
    uint64_t sender = random_next (&state) | 1;
    uint64_t number;
    bind_all (socket);
    for (number = 1; !stopping; number++) {
        if (checked_send (socket, sender, number, 0) == -1)
            fail ("a PUB refused a message");
        progress ();
        if (number % 50 == 0)
            usleep (1000);
    }
    close_and_term (socket, context);
}

static void subscriber (void)
{
    checked_header header;
    while (!stopping) {
        void *context = new_context ();
        void *socket = new_socket (context, ZMQ_SUB, 0);
        char topic = (char) ('A' + below (4));
        unsigned count = 1 + below (3000);
        uint64_t last = 0;
        unsigned timeouts = 0;
        if (zmq_setsockopt (socket, ZMQ_SUBSCRIBE, &topic, 1) == -1)
            fail ("ZMQ_SUBSCRIBE");
        if (zmq_connect (socket, endpoints[below ((unsigned) endpoint_count)]) == -1)
            fail ("zmq_connect");
        while (count-- > 0 && !stopping) {
            if (checked_recv (socket, 0, &header, 0) == -1) {
                expect_timeout ();
                if (++timeouts == 50)
                    fail ("no publication for ten seconds");
                continue;
            }
            timeouts = 0;
            if (header.topic != topic)
                fail ("received a publication without a subscription");
            if (header.number <= last)
                fail ("a publication was duplicated or reordered");
            last = header.number;
            progress ();
        }
        close_and_term (socket, context);
    }
}

/* Call in which a thread of `churn` blocks until the context is terminated. */
typedef struct
{
    void *socket;
    int kind;
} blocked;

static void *block_until_term (void *argument)
{
    blocked *self = (blocked *) argument;
    zmq_pollitem_t item;
    char byte = 0;
    int result;
    do {
        item.socket = self->socket;
        item.fd = 0;
        item.events = ZMQ_POLLIN;
        item.revents = 0;
        switch (self->kind) {
        case 0: result = zmq_recv (self->socket, &byte, 1, 0); break;
        case 1: result = zmq_send (self->socket, &byte, 1, 0); break;
        default: result = zmq_poll (&item, 1, -1); break;
        }
        /* zmq_poll returns at once if the context is terminated. A call on the socket then returns ETERM. */
        if (self->kind == 2 && result >= 0 && (result = zmq_recv (self->socket, &byte, 1, ZMQ_DONTWAIT)) == -1
            && zmq_errno () == EAGAIN)
            result = 0;
    } while (result >= 0 || zmq_errno () == EINTR);
    if (zmq_errno () != ETERM)
        fail ("a blocked call did not end with ETERM");
    if (zmq_close (self->socket) == -1)
        fail ("zmq_close after ETERM");
    return NULL;
}

/* Blocks threads in recv, send and poll. zmq_ctx_term on another thread wakes all of them. */
static void churn (void)
{
    static const int types[] = {ZMQ_PULL, ZMQ_PUSH, ZMQ_PULL, ZMQ_DEALER, ZMQ_SUB, ZMQ_ROUTER};
    static const int kinds[] = {0, 1, 2, 1, 2, 0};
    enum
    {
        THREADS = 6
    };
    while (!stopping) {
        pthread_t threads[THREADS];
        blocked work[THREADS];
        void *context = new_context ();
        int index;
        for (index = 0; index < THREADS; index++) {
            char endpoint[64];
            void *socket = zmq_socket (context, types[index]);
            snprintf (endpoint, sizeof endpoint, index % 2 ? "inproc://churn-%d" : "tcp://127.0.0.1:*", index / 2);
            set (socket, ZMQ_LINGER, 0);
            if (zmq_bind (socket, endpoint) == -1)
                fail ("zmq_bind");
            work[index].socket = socket;
            work[index].kind = kinds[index];
            if (pthread_create (&threads[index], NULL, block_until_term, &work[index]) != 0)
                fail ("pthread_create");
        }
        usleep (below (3000));
        term (context);
        for (index = 0; index < THREADS; index++)
            pthread_join (threads[index], NULL);
        progress ();
        alarm (HANG_SECONDS);
    }
}

int main (int argc, char **argv)
{
    const char *role = argc > 4 ? argv[1] : "";
    struct sigaction action;
    memset (&action, 0, sizeof action);
    action.sa_handler = on_term;
    sigaction (SIGTERM, &action, NULL);
    action.sa_handler = on_alarm;
    sigaction (SIGALRM, &action, NULL);
    if (argc > 4) {
        status_file = open (argv[2], O_CREAT | O_RDWR | O_CLOEXEC, 0644);
        state = strtoull (argv[3], NULL, 10) * 2 + 1;
        endpoints = argv + 4;
        endpoint_count = argc - 4;
    }
    alarm (HANG_SECONDS);
    if (!strcmp (role, "sink"))
        sink (0);
    else if (!strcmp (role, "restarting-sink"))
        sink (1);
    else if (!strcmp (role, "source"))
        source ();
    else if (!strcmp (role, "echo"))
        echo ();
    else if (!strcmp (role, "asker"))
        asker ();
    else if (!strcmp (role, "publisher"))
        publisher ();
    else if (!strcmp (role, "subscriber"))
        subscriber ();
    else if (!strcmp (role, "churn"))
        churn ();
    else {
        fprintf (stderr, "usage: soak sink!|restarting-sink|source|echo!|asker|publisher!|subscriber|churn! "
                         "STATUS-FILE SEED ENDPOINT...\n");
        return 2;
    }
    return 0;
}
