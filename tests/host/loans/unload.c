/* Two processes load the library, lend each other bodies, unload it, and fork, again and again. Each body is kept until the library is
 * unloaded, and stays readable. A fork after that must not run the library's handlers from memory that is no longer there.
 *
 *   unload LIBRARY */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

enum
{
    ROUNDS = 20,
    BODIES = 20,
    LENGTH = 1000000
};

/* bodies.c is not used here, because it is linked with the library. */
static void fail (const char *what)
{
    fprintf (stderr, "loans: process %d: %s (%s)\n", (int) getpid (), what, strerror (errno));
    exit (1);
}

static void body_write (void *body, uint64_t number)
{
    memset (body, (int) (number % 251), LENGTH);
}

static int body_is_right (const void *body, uint64_t number)
{
    const unsigned char *bytes = body;
    return bytes[0] == number % 251 && memcmp (bytes, bytes + 1, LENGTH - 1) == 0;
}

/* The functions of the library that this program uses. It is not linked with the library. */
struct functions {
    void *(*ctx_new) (void);
    int (*ctx_term) (void *);
    void *(*socket) (void *, int);
    int (*close) (void *);
    int (*bind) (void *, const char *);
    int (*connect) (void *, const char *);
    int (*msg_init) (zmq_msg_t *);
    int (*msg_init_size) (zmq_msg_t *, size_t);
    void *(*msg_data) (zmq_msg_t *);
    int (*msg_get) (const zmq_msg_t *, int);
    int (*msg_set) (zmq_msg_t *, int, int);
    int (*msg_send) (zmq_msg_t *, void *, int);
    int (*msg_recv) (zmq_msg_t *, void *, int);
};

static void *load (const char *library, struct functions *z)
{
    static const char *const names[] = {"ctx_new",       "ctx_term", "socket",  "close",   "bind",     "connect", "msg_init",
                                        "msg_init_size", "msg_data", "msg_get", "msg_set", "msg_send", "msg_recv"};
    void *loaded = dlopen (library, RTLD_NOW | RTLD_LOCAL), *found[sizeof names / sizeof *names];
    size_t i;
    if (loaded == NULL)
        fail (dlerror ());
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf (name, sizeof name, "zmq_%s", names[i]);
        if ((found[i] = dlsym (loaded, name)) == NULL)
            fail (name);
    }
    /* ISO C has no conversion from a data pointer to a function pointer. */
    memcpy (z, found, sizeof found);
    return loaded;
}

/* One end: sends a body in memory for loans, and receives one. Returns the number of bodies that came without a copy. */
static int round_of (const char *library, const char *endpoint, int is_bound, int other, uint64_t number)
{
    struct functions z;
    void *loaded = load (library, &z), *context = z.ctx_new (), *socket = z.socket (context, ZMQ_PAIR);
    zmq_msg_t message;
    const void *body;
    int i, lent = 0;
    char ready = 'r';

    if (is_bound && z.bind (socket, endpoint) != 0)
        fail ("bind");
    /* The other end connects once this one is bound, and both unload once both have checked their bodies. */
    if (write (other, &ready, 1) != 1 || read (other, &ready, 1) != 1)
        fail ("the other process");
    if (!is_bound && z.connect (socket, endpoint) != 0)
        fail ("connect");
    for (i = 0; i < BODIES; i++) {
        if (z.msg_init_size (&message, LENGTH) != 0 || z.msg_set (&message, ZMQ_TAUTLINE_LOAN, 1) != 0)
            fail ("a message for loans");
        body_write (z.msg_data (&message), number + (uint64_t) i);
        if (z.msg_send (&message, socket, 0) != LENGTH)
            fail ("msg_send");
        z.msg_init (&message);
        if (z.msg_recv (&message, socket, 0) != LENGTH)
            fail ("msg_recv");
        lent += z.msg_get (&message, ZMQ_TAUTLINE_IS_LOAN);
    }
    body = z.msg_data (&message);
    z.close (socket);
    /* The last message is never closed. */
    if (z.ctx_term (context) != 0 || dlclose (loaded) != 0)
        fail ("the end of the library");
    if (!body_is_right (body, number + BODIES - 1))
        fail ("the body that was kept");
    if (write (other, &ready, 1) != 1 || read (other, &ready, 1) != 1)
        fail ("the other process");
    return lent;
}

static void forked_child_ends (void)
{
    int status;
    pid_t child = fork ();
    if (child == 0)
        exit (0);
    if (waitpid (child, &status, 0) != child || status != 0)
        fail ("a forked child");
}

int main (int count, char **arguments)
{
    char folder[] = "/tmp/unload.XXXXXX", endpoint[64];
    int between[2], lent = 0, status;
    uint64_t number;
    pid_t child;

    if (count != 2 || mkdtemp (folder) == NULL || socketpair (AF_UNIX, SOCK_STREAM, 0, between) != 0)
        fail ("usage: unload LIBRARY");
    alarm (300);
    child = fork ();
    close (between[child == 0]);
    for (number = 0; number < ROUNDS; number++) {
        snprintf (endpoint, sizeof endpoint, "ipc://%s/%u", folder, (unsigned) number);
        lent += round_of (arguments[1], endpoint, child != 0, between[child != 0], BODIES * number);
        forked_child_ends ();
    }
    if (child == 0)
        exit (0);
    if (waitpid (child, &status, 0) != child || status != 0)
        fail ("the other process");
    printf ("%d of %d bodies came without a copy\n", lent, BODIES * ROUNDS);
    rmdir (folder);
    return lent == 0;
}
