/* Uses several socket types over all transports, and then releases all sockets and contexts. It runs under valgrind, and compares the
 * numbers of its file descriptors and threads before and after. */

#include "checked.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum
{
    MESSAGES = 200
};

static int entries (const char *path)
{
    int count = 0;
    DIR *folder = opendir (path);
    if (!folder)
        return 0;
    while (readdir (folder))
        count++;
    closedir (folder);
    return count;
}

/* Binds to a wildcard, or to a new inproc name, because a closed socket may hold its name a moment longer. */
static int bind_any (void *socket, const char *wildcard)
{
    static int used;
    char endpoint[64];
    snprintf (endpoint, sizeof endpoint, strchr (wildcard, '*') ? "%s" : "%s-%d", wildcard, used++);
    return zmq_bind (socket, endpoint);
}

/* `a` sends messages, and `b` receives them. If `back`, `b` answers with one message. */
static void exchange (void *context, const char *wildcard, int type_a, int type_b, int back)
{
    char endpoint[256];
    size_t size = sizeof endpoint;
    checked_header header;
    uint64_t number;
    void *a = zmq_socket (context, type_a);
    void *b = zmq_socket (context, type_b);
    if (!a || !b)
        fail ("zmq_socket");
    if (type_b == ZMQ_SUB && zmq_setsockopt (b, ZMQ_SUBSCRIBE, "", 0) == -1)
        fail ("ZMQ_SUBSCRIBE");
    if (bind_any (a, wildcard) == -1 || zmq_getsockopt (a, ZMQ_LAST_ENDPOINT, endpoint, &size) == -1
        || zmq_connect (b, endpoint) == -1)
        fail (wildcard);
    if (type_a == ZMQ_XPUB && zmq_recv (a, endpoint, sizeof endpoint, 0) == -1)
        fail ("a subscription");
    for (number = 1; number <= MESSAGES; number++) {
        if (checked_send (a, 7, number, 0) == -1)
            fail ("send");
        if (checked_recv (b, type_b == ZMQ_ROUTER, &header, 0) == -1)
            fail ("recv");
        if (back && (checked_send (b, 8, number, 0) == -1 || checked_recv (a, 0, &header, 0) == -1))
            fail ("the message back");
    }
    zmq_close (a);
    zmq_close (b);
}

/* Closes sockets with unread and unsent messages, and with connections that were never established. */
static void left_behind (void *context, const char *wildcard)
{
    char endpoint[256];
    size_t size = sizeof endpoint;
    uint64_t number;
    int zero = 0;
    void *push = zmq_socket (context, ZMQ_PUSH);
    void *pull = zmq_socket (context, ZMQ_PULL);
    zmq_setsockopt (push, ZMQ_LINGER, &zero, sizeof zero);
    if (bind_any (pull, wildcard) == -1 || zmq_getsockopt (pull, ZMQ_LAST_ENDPOINT, endpoint, &size) == -1
        || zmq_connect (push, endpoint) == -1 || zmq_connect (push, "tcp://127.0.0.1:9") == -1)
        fail ("left_behind");
    for (number = 1; number <= MESSAGES; number++)
        if (checked_send (push, 9, number, 0) == -1)
            fail ("send");
    zmq_close (push);
    zmq_close (pull);
}

static void everything (void)
{
    static const char *const wildcards[] = {"tcp://127.0.0.1:*", "ipc://*", "inproc://leak"};
    void *context = zmq_ctx_new ();
    size_t index;
    for (index = 0; index < sizeof wildcards / sizeof *wildcards; index++) {
        exchange (context, wildcards[index], ZMQ_PUSH, ZMQ_PULL, 0);
        exchange (context, wildcards[index], ZMQ_PAIR, ZMQ_PAIR, 1);
        exchange (context, wildcards[index], ZMQ_XPUB, ZMQ_SUB, 0);
        exchange (context, wildcards[index], ZMQ_REQ, ZMQ_REP, 1);
        exchange (context, wildcards[index], ZMQ_DEALER, ZMQ_ROUTER, 0);
        left_behind (context, wildcards[index]);
    }
    if (zmq_ctx_term (context) == -1)
        fail ("zmq_ctx_term");
}

/* Waits until only the earlier number of threads is left. A separate thread closes the descriptors of a peer, and may
 * still run. */
static void until_idle (int threads)
{
    while (entries ("/proc/self/task") > threads)
        usleep (1000);
}

int main (void)
{
    int round;
    int files = 0;
    int threads = entries ("/proc/self/task");
    /* Ends the process if a thread never ends. */
    alarm (250);
    /* The first round creates the caches that stay until the end of the process. */
    for (round = 0; round < 3; round++) {
        everything ();
        until_idle (threads);
        if (round == 0)
            files = entries ("/proc/self/fd");
    }
    if (entries ("/proc/self/fd") > files) {
        fprintf (stderr, "leak: %d descriptors became %d\n", files, entries ("/proc/self/fd"));
        return 1;
    }
    return 0;
}
