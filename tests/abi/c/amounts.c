/*
 * One queue has more bytes than the memory. Its messages share a constant body, so they need no memory for their bodies. run.sh
 * links it to the built library.
 *
 *   amounts [MESSAGES]     number of messages with 256 MiB that are sent before the peer exists, by default for a little more than 64 GiB
 */
#include "check.h"

#include <stdio.h>
#include <sys/mman.h>

enum { TAKEN = 4 };

static const size_t length = (size_t)256 << 20;

/* Checks that the first messages of the queue arrive complete. */
static void take(void *pull)
{
    int i;
    for (i = 0; i < TAKEN; i++) {
        zmq_msg_t message;
        const char *body;
        CHECK(zmq_msg_init(&message) == 0);
        CHECK(zmq_msg_recv(&message, pull, 0) == (int)length);
        body = zmq_msg_data(&message);
        CHECK(zmq_msg_size(&message) == length && body[0] == 7 && body[length - 1] == 9);
        CHECK(zmq_msg_close(&message) == 0);
    }
}

int main(int count, char **arguments)
{
    int messages = count > 1 ? atoi(arguments[1]) : 258, sent = 0;
    char endpoint[64];
    size_t size = sizeof endpoint;
    void *context = zmq_ctx_new(), *push = zmq_socket(context, ZMQ_PUSH), *pull = zmq_socket(context, ZMQ_PULL);
    char *body = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(body != MAP_FAILED);
    body[0] = 7;
    body[length - 1] = 9;
    set_int_option(push, ZMQ_LINGER, 0);
    set_int_option(pull, ZMQ_RCVHWM, 1);
    set_int_option(pull, ZMQ_RCVTIMEO, 20000);
    /* Choose a port without a listener. */
    CHECK(zmq_bind(pull, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    CHECK(zmq_unbind(pull, endpoint) == 0);
    CHECK(zmq_connect(push, endpoint) == 0);
    while (sent < messages && zmq_send_const(push, body, length, ZMQ_DONTWAIT) == (int)length)
        sent++;
    CHECK(sent == messages);
    while (zmq_bind(pull, endpoint) != 0)
        CHECK(zmq_errno() == EADDRINUSE);
    take(pull);
    CHECK(zmq_close(push) == 0 && zmq_close(pull) == 0 && zmq_ctx_term(context) == 0);
    munmap(body, length);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
