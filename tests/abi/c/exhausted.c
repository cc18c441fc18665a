/*
 * Receives messages while memory is exhausted. They were sent while memory was available. The library returns ENOMEM until memory is
 * available again, and keeps all messages. run.sh links it to the built library.
 */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

enum { MESSAGES = 40, PARTS = 3, ROUNDS = 3 };

static const size_t lengths[PARTS] = {50, 3000, 20000};

struct block {
    struct block *next;
};

/* Allocates all available memory in shrinking pieces, because the C library keeps free pieces of each size. */
static struct block *take_all(void)
{
    struct block *taken = NULL;
    size_t size;
    for (size = 1 << 20; size >= sizeof *taken; size -= size > 1 << 16 ? 1 << 15 : sizeof *taken) {
        struct block *block;
        while ((block = malloc(size))) {
            block->next = taken;
            taken = block;
        }
    }
    return taken;
}

static void give_back(struct block *taken)
{
    while (taken) {
        struct block *next = taken->next;
        free(taken);
        taken = next;
    }
}

/* Limits the address space to its current use. */
static void set_limit(struct rlimit *former)
{
    struct rlimit limit;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu", &pages) == 1 && pages > 0);
    fclose(file);
    CHECK(getrlimit(RLIMIT_AS, former) == 0);
    limit = *former;
    limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void send_all(void *socket)
{
    static char body[20000];
    int message, part;
    for (message = 0; message < MESSAGES; message++)
        for (part = 0; part < PARTS; part++) {
            memset(body, message + part, lengths[part]);
            CHECK(zmq_send(socket, body, lengths[part], part + 1 < PARTS ? ZMQ_SNDMORE : 0) == (int)lengths[part]);
        }
}

/* Receives all sent messages, and checks each part and its position. */
static void receive_all(void *socket, zmq_msg_t *parts, int first_part)
{
    int number;
    for (number = first_part; number < MESSAGES * PARTS; number++) {
        zmq_msg_t *part = &parts[number];
        const unsigned char *body;
        size_t length = lengths[number % PARTS];
        CHECK(zmq_msg_init(part) == 0);
        CHECK(zmq_msg_recv(part, socket, ZMQ_DONTWAIT) == (int)length);
        body = zmq_msg_data(part);
        CHECK(body[0] == number / PARTS + number % PARTS && body[length - 1] == body[0]);
        CHECK(zmq_msg_more(part) == (number % PARTS + 1 < PARTS));
    }
    CHECK_ERRNO(zmq_recv(socket, NULL, 0, ZMQ_DONTWAIT), -1, EAGAIN);
}

static void *other_sockets[2];

/* Lets the I/O thread serve some sockets. Afterwards it is idle, and does not disturb this test. */
static void start(void *context)
{
    char endpoint[64], byte;
    size_t size = sizeof endpoint;
    void *push = zmq_socket(context, ZMQ_PUSH), *pull = zmq_socket(context, ZMQ_PULL);
    CHECK(zmq_bind(pull, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    CHECK(zmq_connect(push, endpoint) == 0);
    CHECK(zmq_send(push, "x", 1, 0) == 1 && zmq_recv(pull, &byte, 1, 0) == 1);
    other_sockets[0] = push;
    other_sockets[1] = pull;
}

int main(void)
{
    void *context = zmq_ctx_new(), *one, *other;
    /* Keep the received blocks. Otherwise the library could reuse their memory for the next messages. */
    static zmq_msg_t parts[ROUNDS][MESSAGES * PARTS];
    int round, part;
    start(context);
    make_pair(context, &one, &other);
    for (round = 0; round < ROUNDS; round++) {
        struct rlimit former;
        struct block *taken;
        zmq_msg_t message;
        char first[50];
        int failures = 0, tries, begun = round % 2;
        send_all(one);
        if (begun)
            CHECK(zmq_recv(other, first, sizeof first, 0) == (int)sizeof first && int_option(other, ZMQ_RCVMORE));
        CHECK(zmq_msg_init(&message) == 0);
        set_limit(&former);
        taken = take_all();
        for (tries = 0; tries < 3; tries++)
            failures += zmq_msg_recv(&message, other, ZMQ_DONTWAIT) == -1 && errno == ENOMEM;
        give_back(taken);
        CHECK(setrlimit(RLIMIT_AS, &former) == 0);
        CHECK(failures == 3);
        CHECK(zmq_msg_close(&message) == 0);
        receive_all(other, parts[round], begun);
    }
    for (round = 0; round < ROUNDS; round++)
        for (part = round % 2; part < MESSAGES * PARTS; part++)
            CHECK(zmq_msg_close(&parts[round][part]) == 0);
    CHECK(zmq_close(other_sockets[0]) == 0 && zmq_close(other_sockets[1]) == 0);
    CHECK(zmq_close(one) == 0 && zmq_close(other) == 0 && zmq_ctx_term(context) == 0);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
