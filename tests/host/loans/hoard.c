/* Readers that keep all that they receive.
 *
 *   hoard keep READERS MESSAGES LENGTH   one sender, and as many readers, each of which keeps this number of bodies. No reader may hold up
 *                                        the sender or another reader. After that, the readers release all and the bodies go on.
 *   hoard limit HWM LENGTH...            prints for each length how many bodies a sender with ZMQ_SNDHWM = HWM can send before EAGAIN to a
 *                                        peer that takes none, after the two have exchanged some */
#include "bodies.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
    READERS = 32,
    WARM = 12 /* bodies after which loans are in use */
};

static char folder[] = "/tmp/loans-XXXXXX";
static char endpoints[READERS + 1][64];

static void name_endpoints (const char *in)
{
    for (int i = 0; i <= READERS; i++)
        snprintf (endpoints[i], sizeof endpoints[i], "ipc://%s/%d", in, i);
}

static void receive_right (void *socket, zmq_msg_t *message, uint64_t number)
{
    zmq_msg_init (message);
    if (body_receive (socket, message, 0) != 0)
        fail ("zmq_msg_recv");
    if (!body_is_right (zmq_msg_data (message), zmq_msg_size (message), number))
        fail ("a wrong body");
}

static void answer (void *socket, char what)
{
    if (zmq_send (socket, &what, 1, 0) != 1)
        fail ("zmq_send");
}

static void await (void *socket, char what)
{
    char got = 0;
    if (zmq_recv (socket, &got, 1, 0) != 1 || got != what)
        fail ("not the expected answer");
}

/* Keeps the first `messages` bodies, releases them all, and takes as many again. */
static int hoarder (int place, unsigned messages)
{
    void *context = zmq_ctx_new (), *socket = socket_open (context, ZMQ_PULL), *answers = socket_open (context, ZMQ_PUSH);
    zmq_msg_t *kept = calloc (messages, sizeof *kept), message;

    socket_set (answers, ZMQ_LINGER, -1);
    socket_connect (answers, endpoints[READERS]);
    socket_bind (socket, endpoints[place]);
    answer (answers, 'b');
    for (unsigned i = 0; i < messages; i++)
        receive_right (socket, &kept[i], i);
    answer (answers, 'k');
    /* The first body of the second half is the sign to release. */
    receive_right (socket, &message, messages);
    zmq_msg_close (&message);
    for (unsigned i = 0; i < messages; i++) {
        if (!body_is_right (zmq_msg_data (&kept[i]), zmq_msg_size (&kept[i]), i))
            fail ("a body changed while it was kept");
        zmq_msg_close (&kept[i]);
    }
    for (unsigned i = messages + 1; i < 2 * messages; i++) {
        receive_right (socket, &message, i);
        zmq_msg_close (&message);
    }
    if (mappings_of (getpid ()).written == 0)
        fail ("no slab is mapped: the library does not lend");
    answer (answers, 'd');
    zmq_close (socket);
    zmq_close (answers);
    return zmq_ctx_term (context) != 0;
}

static int keep (int readers, unsigned messages, size_t length)
{
    void *context = zmq_ctx_new (), *sockets[READERS], *answers = socket_open (context, ZMQ_PULL);
    struct mappings full, again;
    pid_t children[READERS];
    int failed = 0;

    socket_bind (answers, endpoints[READERS]);
    for (int i = 0; i < readers; i++) {
        char place[16], count[16];
        const char *arguments[] = {"hoarder", place, count, folder, NULL};
        snprintf (place, sizeof place, "%d", i);
        snprintf (count, sizeof count, "%u", messages);
        children[i] = start (arguments);
        await (answers, 'b');
        sockets[i] = socket_open (context, ZMQ_PUSH);
        socket_set (sockets[i], ZMQ_LINGER, -1);
        socket_set (sockets[i], ZMQ_SNDHWM, 4);
        socket_connect (sockets[i], endpoints[i]);
    }
    for (unsigned half = 0; half < 2; half++) {
        for (unsigned i = half * messages; i < (half + 1) * messages; i++)
            for (int to = 0; to < readers; to++)
                if (body_send (sockets[to], length, i, 0) != 0)
                    fail ("zmq_msg_send");
        for (int i = 0; i < readers; i++)
            await (answers, half == 0 ? 'k' : 'd');
        if (half == 0)
            full = mappings_of (getpid ());
    }
    again = mappings_of (getpid ());
    printf ("%d readers with %u bodies of %zu KiB: %u slabs with %zu MiB at the sender, %u with %zu MiB after the release\n", readers,
            messages, length / 1024, full.own, full.own_kib / 1024, again.own, again.own_kib / 1024);
    for (int i = 0; i < readers; i++) {
        int status;
        zmq_close (sockets[i]);
        failed |= waitpid (children[i], &status, 0) != children[i] || status != 0;
    }
    if (full.own_kib > 1024 * 1024)
        fail ("the slabs have more memory than their budget");
    zmq_close (answers);
    return zmq_ctx_term (context) != 0 || failed;
}

/* Takes the first bodies, and no other. */
static int idler (void)
{
    void *context = zmq_ctx_new (), *socket = socket_open (context, ZMQ_PULL), *answers = socket_open (context, ZMQ_PUSH);
    zmq_msg_t message;
    char byte;

    socket_set (socket, ZMQ_RCVHWM, 1);
    socket_connect (answers, endpoints[READERS]);
    socket_bind (socket, endpoints[0]);
    answer (answers, 'b');
    for (unsigned i = 0; i < WARM; i++) {
        receive_right (socket, &message, i);
        zmq_msg_close (&message);
        answer (answers, 'w');
    }
    /* Until the parent ends it. */
    return read (STDIN_FILENO, &byte, 1) < 0;
}

static unsigned limit (int hwm, size_t length)
{
    const char *arguments[] = {"idler", "0", "0", folder, NULL};
    void *context = zmq_ctx_new (), *socket = socket_open (context, ZMQ_PUSH), *answers = socket_open (context, ZMQ_PULL);
    unsigned count = 0, idle = 0;
    int hold[2], status;
    pid_t child;

    if (pipe (hold) != 0 || dup2 (hold[0], STDIN_FILENO) < 0)
        fail ("pipe");
    close (hold[0]);
    socket_bind (answers, endpoints[READERS]);
    child = start (arguments);
    await (answers, 'b');
    socket_set (socket, ZMQ_SNDHWM, hwm);
    socket_connect (socket, endpoints[0]);
    for (unsigned i = 0; i < WARM; i++) {
        if (body_send (socket, length, i, 0) != 0)
            fail ("zmq_msg_send");
        await (answers, 'w');
    }
    /* The I/O threads of both ends move bodies for a while after the first EAGAIN. */
    while (idle < 100) {
        if (body_send (socket, length, WARM + count, ZMQ_DONTWAIT) == 0) {
            count++;
            idle = 0;
        } else {
            idle++;
            pause_ms (5);
        }
    }
    zmq_close (socket);
    zmq_close (answers);
    if (zmq_ctx_term (context) != 0)
        fail ("zmq_ctx_term");
    close (hold[1]);
    kill (child, SIGKILL);
    if (waitpid (child, &status, 0) != child)
        fail ("waitpid");
    return count;
}

int main (int argc, char **argv)
{
    int result = 0;

    watchdog (600);
    if (argc == 5 && (strcmp (argv[1], "hoarder") == 0 || strcmp (argv[1], "idler") == 0)) {
        name_endpoints (argv[4]);
        return argv[1][0] == 'h' ? hoarder (atoi (argv[2]), (unsigned) atoi (argv[3])) : idler ();
    }
    if (argc < 4 || mkdtemp (folder) == NULL) {
        fprintf (stderr, "usage: hoard keep READERS MESSAGES LENGTH | hoard limit HWM LENGTH...\n");
        return 2;
    }
    name_endpoints (folder);
    if (strcmp (argv[1], "keep") == 0) {
        result = keep (atoi (argv[2]), (unsigned) atoi (argv[3]), strtoull (argv[4], NULL, 10));
    } else {
        for (int i = 3; i < argc; i++)
            printf ("%s %u\n", argv[i], limit (atoi (argv[2]), strtoull (argv[i], NULL, 10)));
    }
    for (int i = 0; i <= READERS; i++)
        unlink (endpoints[i] + strlen ("ipc://"));
    rmdir (folder);
    return result;
}
