/* Two processes exchange large messages and use them in each way that the C interface has.
 *
 *   ways               all cases
 *   ways locked        the same in processes that lock all their memory
 *   ways addresses=MIB the same if the other process has only so much room for addresses
 *   ways descriptors   the same if the other process can open no file after the first message
 *
 * The other process sends back all that it receives, changed as the first part of the message says. */
#include "bodies.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
    ROUNDS = 30,
    LENGTH = 400000
};

static char endpoint[64];

static void set_up (const char *how)
{
    struct rlimit limit;
    if (strcmp (how, "locked") == 0 && mlockall (MCL_CURRENT | MCL_FUTURE) != 0)
        fail ("mlockall");
    if (strncmp (how, "addresses=", 10) == 0) {
        limit.rlim_cur = limit.rlim_max = strtoull (how + 10, NULL, 10) << 20;
        if (setrlimit (RLIMIT_AS, &limit) != 0)
            fail ("setrlimit");
    }
}

/* Opens files until the limit of this process. */
static void use_all_descriptors (void)
{
    struct rlimit limit;
    if (getrlimit (RLIMIT_NOFILE, &limit) != 0)
        fail ("getrlimit");
    limit.rlim_cur = 200;
    if (setrlimit (RLIMIT_NOFILE, &limit) != 0)
        fail ("setrlimit");
    while (dup (STDERR_FILENO) != -1) {
    }
}

static void receive (void *socket, zmq_msg_t *message)
{
    zmq_msg_init (message);
    if (zmq_msg_recv (message, socket, 0) == -1)
        fail ("zmq_msg_recv");
}

static void send (void *socket, zmq_msg_t *message, int flags)
{
    if (zmq_msg_send (message, socket, flags) == -1)
        fail ("zmq_msg_send");
}

/* The other process. */
static int other (const char *how)
{
    void *context, *socket, *in, *out;
    int uses_all = strcmp (how, "descriptors") == 0;
    set_up (how);
    context = zmq_ctx_new ();
    socket = socket_open (context, ZMQ_REP);
    in = socket_open (context, ZMQ_PULL);
    out = socket_open (context, ZMQ_PUSH);
    socket_bind (in, "inproc://back");
    socket_connect (out, "inproc://back");
    socket_bind (socket, endpoint);
    for (;;) {
        zmq_msg_t what, body, extra;
        unsigned char *data;
        char way;

        receive (socket, &what);
        if (uses_all) {
            use_all_descriptors ();
            uses_all = 0;
        }
        way = *(char *) zmq_msg_data (&what);
        zmq_msg_close (&what);
        if (way == 'x')
            break;
        receive (socket, &body);
        switch (way) {
        case 'f': /* forwards without a look */
            break;
        case 'w': /* writes, and sends the same message */
            body_scribble (zmq_msg_data (&body), zmq_msg_size (&body), 77);
            break;
        case 'c': /* copies the message when it has its address, and writes: both messages share the body */
            data = zmq_msg_data (&body);
            zmq_msg_init (&extra);
            zmq_msg_copy (&extra, &body);
            body_scribble (data, zmq_msg_size (&body), 77);
            zmq_msg_close (&body);
            zmq_msg_init (&body);
            zmq_msg_move (&body, &extra);
            zmq_msg_close (&extra);
            break;
        case 'i': /* writes, and passes the message over inproc */
            body_scribble (zmq_msg_data (&body), zmq_msg_size (&body), 77);
            send (out, &body, 0);
            receive (in, &body);
            break;
        case 'p': /* passes the message over inproc, and writes */
            send (out, &body, 0);
            receive (in, &body);
            body_scribble (zmq_msg_data (&body), zmq_msg_size (&body), 77);
            break;
        case 'b': /* sends by zmq_send from the message */
            data = zmq_msg_data (&body);
            body_scribble (data, zmq_msg_size (&body), 77);
            if (zmq_send (socket, data, zmq_msg_size (&body), 0) == -1)
                fail ("zmq_send");
            zmq_msg_close (&body);
            continue;
        case 'm': /* reads, writes twice, and compares the two addresses */
            data = zmq_msg_data (&body);
            body_scribble (data, zmq_msg_size (&body), 5);
            body_scribble (data, zmq_msg_size (&body), 5);
            body_scribble (data, zmq_msg_size (&body), 77);
            if (zmq_msg_data (&body) != data)
                fail ("zmq_msg_data returns two addresses");
            break;
        }
        send (socket, &body, 0);
    }
    zmq_send (socket, "end", 3, 0);
    socket_set (socket, ZMQ_LINGER, -1);
    zmq_close (socket);
    zmq_close (in);
    zmq_close (out);
    return zmq_ctx_term (context) != 0;
}

static void run (void *socket, const char *way, int is_written)
{
    zmq_msg_t message, kept;
    int flags = way[0] == 0 ? 0 : ZMQ_SNDMORE;

    for (uint64_t number = 0; number < ROUNDS; number++) {
        if (zmq_send (socket, way, 1, flags) != 1)
            fail ("zmq_send");
        zmq_msg_init_size (&message, LENGTH);
        body_write (zmq_msg_data (&message), LENGTH, number);
        /* The sender's own copy must stay. */
        zmq_msg_init (&kept);
        zmq_msg_copy (&kept, &message);
        send (socket, &message, 0);
        receive (socket, &message);
        if (zmq_msg_size (&message) != LENGTH)
            fail ("a wrong length");
        if (is_written)
            body_scribble (zmq_msg_data (&message), LENGTH, 77);
        if (!body_is_right (zmq_msg_data (&message), LENGTH, number)) {
            fprintf (stderr, "way %s, round %d\n", way, (int) number);
            fail ("a wrong body");
        }
        if (!body_is_right (zmq_msg_data (&kept), LENGTH, number))
            fail ("the sender's copy changed");
        zmq_msg_close (&kept);
        zmq_msg_close (&message);
    }
}

int main (int argc, char **argv)
{
    static char folder[] = "/tmp/loans-XXXXXX";
    const char *how = argc > 1 ? argv[1] : "plainly", *arguments[] = {how, endpoint, NULL};
    void *context, *socket;
    pid_t child;
    int status;
    char text[8];

    watchdog (300);
    if (argc > 2) {
        snprintf (endpoint, sizeof endpoint, "%s", argv[2]);
        return other (how);
    }
    if (mkdtemp (folder) == NULL)
        fail ("mkdtemp");
    snprintf (endpoint, sizeof endpoint, "ipc://%s/other", folder);
    child = start (arguments);
    if (strcmp (how, "locked") == 0)
        set_up (how);
    context = zmq_ctx_new ();
    socket = socket_open (context, ZMQ_REQ);
    socket_connect (socket, endpoint);
    run (socket, "f", 0);
    for (const char *way = "wcipbm"; *way != 0; way++) {
        char one[2] = {*way, 0};
        run (socket, one, 1);
    }
    if (mappings_of (child).read == 0 && strncmp (how, "addresses=", 10) != 0 && strcmp (how, "descriptors") != 0)
        fail ("no slab is mapped: the library does not lend");
    if (zmq_send (socket, "x", 1, 0) != 1 || zmq_recv (socket, text, sizeof text, 0) != 3)
        fail ("the end");
    zmq_close (socket);
    if (zmq_ctx_term (context) != 0 || waitpid (child, &status, 0) != child || status != 0)
        fail ("the other process failed");
    rmdir (folder);
    printf ("ways %s: all bodies right\n", how);
    return 0;
}
