/*
 * A forked child closes its copies of the parent's sockets, ends its copy of the context and works with a context of
 * its own, all without effect on the parent: whose traffic goes on, in order, at the moment of the fork and after it.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { CHILDREN = 4, MESSAGES = 2000 };

struct parent {
    void *context, *push, *pull, *own;
    char endpoint[256];
    /* Written by the sender before it goes on; the main thread forks between. */
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

/* In the child: 0 if all went well, else the number of the step. No thread but this one exists here. */
static int child(struct parent *parent)
{
    void *context, *push;
    if (zmq_close(parent->own) != 0)
        return 1;
    if (zmq_close(parent->pull) != 0)
        return 2;
    /* The sender's thread may have been inside this one; closing must not wait for it. */
    if (zmq_close(parent->push) != 0)
        return 3;
    if (zmq_ctx_term(parent->context) != 0)
        return 4;
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
    CHECK(zmq_close(parent.push) == 0 && zmq_close(parent.pull) == 0 && zmq_close(parent.own) == 0);
    CHECK(zmq_ctx_term(parent.context) == 0);
}
