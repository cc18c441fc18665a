/*
 * A forked child closes its copies of the parent's sockets, ends its copy of the context and works with its own
 * context. This does not affect the parent. Its messages continue in order during the fork and after it. All other
 * calls on the copies fail with EINTR.
 */
#define _POSIX_C_SOURCE 200809L
#define ZMQ_BUILD_DRAFT_API
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { CHILDREN = 4, MESSAGES = 2000 };

struct parent {
    void *context, *push, *pull, *own, *client, *poller;
    char endpoint[256];
    /* The sender sets this before it continues. The main thread forks at this point. */
    int sent_all;
};

static void *send_all(void *arg)
{
    struct parent *parent = arg;
    int i;
    for (i = 0; i < CHILDREN * MESSAGES; i++)
        if (zmq_send(parent->push, &i, sizeof i, 0) != sizeof i)
            return NULL;
    parent->sent_all = 1;
    return NULL;
}

#define INTERRUPTED(call, failure) (errno = 0, (call) == (failure) && errno == EINTR)

/* True if all calls on the parent's socket fail with EINTR, except the queries that are allowed before a close. */
static int socket_is_inherited(void *socket, int type)
{
    char byte = 0;
    int value = 0;
    size_t size = sizeof value;
    zmq_pollitem_t item;
    zmq_msg_t message;
    memset(&item, 0, sizeof item);
    item.socket = socket;
    item.events = ZMQ_POLLIN;
    zmq_msg_init(&message);
    return INTERRUPTED(zmq_send(socket, &byte, 1, 0), -1) && INTERRUPTED(zmq_send(socket, &byte, 1, ZMQ_DONTWAIT), -1) &&
           INTERRUPTED(zmq_send_const(socket, &byte, 1, 0), -1) && INTERRUPTED(zmq_recv(socket, &byte, 1, 0), -1) &&
           INTERRUPTED(zmq_msg_send(&message, socket, 0), -1) && INTERRUPTED(zmq_msg_recv(&message, socket, 0), -1) &&
           INTERRUPTED(zmq_poll(&item, 1, -1), -1) && INTERRUPTED(zmq_bind(socket, "inproc://child"), -1) &&
           INTERRUPTED(zmq_connect(socket, "inproc://child"), -1) && INTERRUPTED(zmq_unbind(socket, "inproc://child"), -1) &&
           INTERRUPTED(zmq_disconnect(socket, "inproc://child"), -1) && INTERRUPTED(zmq_proxy(socket, socket, NULL), -1) &&
           INTERRUPTED(zmq_socket_monitor(socket, "inproc://child", ZMQ_EVENT_ALL), -1) &&
           INTERRUPTED(zmq_setsockopt(socket, ZMQ_SNDHWM, &value, sizeof value), -1) &&
           INTERRUPTED(zmq_getsockopt(socket, ZMQ_EVENTS, &value, &size), -1) &&
           zmq_setsockopt(socket, ZMQ_LINGER, &value, sizeof value) == 0 &&
           zmq_getsockopt(socket, ZMQ_TYPE, &value, &size) == 0 && value == type && size == sizeof value;
}

static int poller_is_inherited(void *poller)
{
    zmq_poller_event_t event;
    return INTERRUPTED(zmq_poller_size(poller), -1) && INTERRUPTED(zmq_poller_wait(poller, &event, -1), -1) &&
           INTERRUPTED(zmq_poller_add_fd(poller, 0, NULL, ZMQ_POLLIN), -1) && zmq_poller_destroy(&poller) == 0;
}

/* Runs in the child, which has only this thread. Returns 0, or the number of the failed step. */
static int child(struct parent *parent)
{
    void *context, *push;
    if (!socket_is_inherited(parent->own, ZMQ_PULL) || !socket_is_inherited(parent->push, ZMQ_PUSH) ||
        !socket_is_inherited(parent->client, ZMQ_CLIENT))
        return 8;
    if (!poller_is_inherited(parent->poller))
        return 9;
    if (!INTERRUPTED(zmq_socket(parent->context, ZMQ_PAIR), NULL) || !INTERRUPTED(zmq_ctx_get(parent->context, ZMQ_IO_THREADS), -1) ||
        !INTERRUPTED(zmq_ctx_set(parent->context, ZMQ_IO_THREADS, 1), -1) || zmq_ctx_shutdown(parent->context) != 0)
        return 10;
    if (zmq_close(parent->client) != 0)
        return 11;
    if (zmq_close(parent->own) != 0)
        return 1;
    if (zmq_close(parent->pull) != 0)
        return 2;
    /* The sender's thread may have been in a call on this socket. The close must not wait for it. */
    if (zmq_close(parent->push) != 0)
        return 3;
    if (zmq_ctx_term(parent->context) != 0)
        return 4;
    errno = 0;
    if (zmq_close(parent->own) != -1 || errno != ENOTSOCK || zmq_ctx_term(parent->context) != -1 || errno != EFAULT)
        return 12;
    context = zmq_ctx_new();
    push = context ? zmq_socket(context, ZMQ_PUSH) : NULL;
    if (push == NULL)
        return 5;
    if (zmq_connect(push, parent->endpoint) != 0 || zmq_send(push, "child", 5, 0) != 5)
        return 6;
    return zmq_close(push) == 0 && zmq_ctx_term(context) == 0 ? 0 : 7;
}

void forks(void)
{
    struct parent parent;
    pthread_t sender;
    size_t len = sizeof parent.endpoint;
    char data[256], text[16];
    int i, round, in_order = 1;

    memset(&parent, 0, sizeof parent);
    parent.context = zmq_ctx_new();
    parent.pull = zmq_socket(parent.context, ZMQ_PULL);
    parent.own = zmq_socket(parent.context, ZMQ_PULL);
    parent.push = zmq_socket(parent.context, ZMQ_PUSH);
    parent.client = zmq_socket(parent.context, ZMQ_CLIENT);
    parent.poller = zmq_poller_new();
    CHECK(zmq_poller_add(parent.poller, parent.client, NULL, ZMQ_POLLIN) == 0);
    CHECK(zmq_bind(parent.own, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(parent.own, ZMQ_LAST_ENDPOINT, parent.endpoint, &len) == 0);
    CHECK(zmq_bind(parent.pull, "tcp://127.0.0.1:*") == 0);
    len = sizeof data;
    CHECK(zmq_getsockopt(parent.pull, ZMQ_LAST_ENDPOINT, data, &len) == 0);
    CHECK(zmq_connect(parent.push, data) == 0);
    CHECK(pthread_create(&sender, NULL, send_all, &parent) == 0);
    for (round = 0; round < CHILDREN; round++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(&parent));
        CHECK(pid > 0);
        for (i = round * MESSAGES; i < (round + 1) * MESSAGES; i++) {
            int got = -1;
            in_order &= zmq_recv(parent.pull, &got, sizeof got, 0) == sizeof got && got == i;
        }
        CHECK(zmq_recv(parent.own, text, sizeof text, 0) == 5 && memcmp(text, "child", 5) == 0);
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(in_order);
    CHECK(pthread_join(sender, NULL) == 0 && parent.sent_all);
    CHECK(zmq_poller_destroy(&parent.poller) == 0 && zmq_close(parent.client) == 0);
    CHECK(zmq_close(parent.push) == 0 && zmq_close(parent.pull) == 0 && zmq_close(parent.own) == 0);
    CHECK(zmq_ctx_term(parent.context) == 0);
}

/* Waits for a message that does not come. A thread writes the messages that it has left before it waits. */
static int waits_in_vain(void *socket)
{
    char byte;
    return zmq_recv(socket, &byte, 1, 0) == -1 && errno == EAGAIN;
}

static void *silent_socket(void *context)
{
    int time = 5;
    void *socket = zmq_socket(context, ZMQ_PAIR);
    return zmq_setsockopt(socket, ZMQ_RCVTIMEO, &time, sizeof time) == 0 ? socket : NULL;
}

static int waits_in_a_context_of_its_own(void)
{
    void *context = zmq_ctx_new(), *silent = silent_socket(context);
    int waited = waits_in_vain(silent);
    return zmq_close(silent) == 0 && zmq_ctx_term(context) == 0 && waited;
}

/* A thread has the habit to wait after some messages, and forks before it waits. Only the parent writes the messages. */
void forks_with_messages_left(void)
{
    enum { ROUNDS = 200 };
    char endpoint[256];
    size_t len = sizeof endpoint;
    void *context = zmq_ctx_new(), *push = zmq_socket(context, ZMQ_PUSH), *pull = zmq_socket(context, ZMQ_PULL);
    void *silent = silent_socket(context);
    int round, i, status, number = 0, expected = 0, in_order = 1;

    CHECK(zmq_bind(pull, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &len) == 0 && zmq_connect(push, endpoint) == 0);
    for (round = 0; round < ROUNDS; round++) {
        /* Bursts of equal lengths would be foreseen, and written as a whole. */
        for (i = round * round % 13; i >= 0; i--, number++)
            in_order &= zmq_send(push, &number, sizeof number, 0) == sizeof number;
        if (round % 10 == 9) {
            pid_t pid = fork();
            if (pid == 0)
                _exit(waits_in_a_context_of_its_own() ? 0 : 1);
            CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        in_order &= waits_in_vain(silent);
    }
    for (; expected < number; expected++) {
        int got = -1;
        in_order &= zmq_recv(pull, &got, sizeof got, 0) == sizeof got && got == expected;
    }
    CHECK(zmq_send(push, "end", 3, 0) == 3 && zmq_recv(pull, endpoint, sizeof endpoint, 0) == 3);
    CHECK(in_order);
    CHECK(zmq_close(silent) == 0 && zmq_close(push) == 0 && zmq_close(pull) == 0 && zmq_ctx_term(context) == 0);
}
