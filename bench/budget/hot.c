/* hot: cost of a message without waiting: one thread sends a batch over inproc and
 * receives it, repeatedly.
 *
 * hot push_pull|pub_sub|router_dealer|router_in_turn|dealer_router[_monitored]
 * buffers|messages SIZE ROUNDS
 *
 * Over tcp the receiver is another process, which is not counted:
 *
 * hot sink                                        prints its endpoint, receives until it is killed
 * hot push_pull_tcp buffers|messages SIZE ROUNDS  sends to the endpoint in the variable SINK
 *
 * scripts/budget.sh counts the instructions of send_batch and receive_batch under
 * callgrind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define BATCH 500 /* below the high-water mark */
#define PEERS 4 /* of router_in_turn */

static size_t size;
static int messages, routed, named, in_turn, batch = BATCH;
static void *peers[PEERS];
static const char *const names[PEERS] = {"id", "id1", "id2", "id3"};
static char body[65536];

static void check(int good)
{
    if (!good) {
        fprintf(stderr, "hot: %s\n", zmq_strerror(zmq_errno()));
        exit(1);
    }
}

static void send_in_turn(void *socket)
{
    for (int i = 0; i < BATCH; i++) {
        check(zmq_send(socket, names[i % PEERS], i % PEERS == 0 ? 2 : 3, ZMQ_SNDMORE) >= 2);
        check(zmq_send(socket, body, size, 0) == (int) size);
    }
}

static void receive_in_turn(void)
{
    for (int i = 0; i < BATCH; i++)
        check(zmq_recv(peers[i % PEERS], body, sizeof body, 0) == (int) size);
}

__attribute__((noinline)) void send_batch(void *socket)
{
    if (in_turn) {
        send_in_turn(socket);
        return;
    }
    for (int i = 0; i < batch; i++) {
        if (routed)
            check(zmq_send(socket, "id", 2, ZMQ_SNDMORE) == 2);
        if (messages) {
            zmq_msg_t message;
            check(zmq_msg_init_size(&message, size) == 0);
            memcpy(zmq_msg_data(&message), body, size);
            check(zmq_msg_send(&message, socket, 0) == (int) size);
        } else {
            check(zmq_send(socket, body, size, 0) == (int) size);
        }
    }
}

__attribute__((noinline)) void receive_batch(void *socket)
{
    if (in_turn) {
        receive_in_turn();
        return;
    }
    for (int i = 0; i < BATCH; i++) {
        if (named)
            check(zmq_recv(socket, body, sizeof body, 0) == 2);
        if (messages) {
            zmq_msg_t message;
            check(zmq_msg_init(&message) == 0);
            check(zmq_msg_recv(&message, socket, 0) == (int) size);
            check(zmq_msg_close(&message) == 0);
        } else {
            check(zmq_recv(socket, body, sizeof body, 0) == (int) size);
        }
    }
}

/* Monitors all events of a socket. */
static void *monitor(void *context, void *socket, const char *endpoint)
{
    void *pair = zmq_socket(context, ZMQ_PAIR);

    check(pair != NULL && zmq_socket_monitor(socket, endpoint, ZMQ_EVENT_ALL) == 0 && zmq_connect(pair, endpoint) == 0);
    return pair;
}

static void sink(void)
{
    void *socket = zmq_socket(zmq_ctx_new(), ZMQ_PULL);
    char endpoint[256];
    size_t length = sizeof endpoint;

    check(socket != NULL && zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
    check(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length) == 0);
    puts(endpoint);
    fflush(stdout);
    for (;;)
        check(zmq_recv(socket, body, sizeof body, 0) >= 0);
}

/* Sends to another process. After a pause each message is written at once. */
static int send_over_tcp(int rounds)
{
    void *context = zmq_ctx_new(), *sender = zmq_socket(context, ZMQ_PUSH);
    const int immediate = 1;
    int events = 0;
    size_t length = sizeof events;

    check(sender != NULL && zmq_setsockopt(sender, ZMQ_IMMEDIATE, &immediate, sizeof immediate) == 0);
    check(getenv("SINK") != NULL && zmq_connect(sender, getenv("SINK")) == 0);
    while ((events & ZMQ_POLLOUT) == 0) {
        usleep(20 * 1000);
        check(zmq_getsockopt(sender, ZMQ_EVENTS, &events, &length) == 0);
    }
    batch = 1;
    for (int i = 0; i < rounds * BATCH; i++) {
        send_batch(sender);
        usleep(20);
    }
    zmq_close(sender);
    zmq_ctx_term(context);
    return 0;
}

int main(int argc, char **argv)
{
    void *listeners[2] = {NULL, NULL};
    int rounds, to = ZMQ_PUSH, from = ZMQ_PULL;
    char subscription[2];

    if (argc == 2 && strcmp(argv[1], "sink") == 0)
        sink();
    if (argc != 5)
        return 2;
    if (strncmp(argv[1], "pub_sub", 7) == 0)
        to = ZMQ_XPUB, from = ZMQ_SUB;
    else if (strncmp(argv[1], "router_dealer", 13) == 0)
        to = ZMQ_ROUTER, from = ZMQ_DEALER, routed = 1;
    else if (strcmp(argv[1], "router_in_turn") == 0)
        to = ZMQ_ROUTER, from = ZMQ_DEALER, routed = in_turn = 1;
    else if (strncmp(argv[1], "dealer_router", 13) == 0)
        to = ZMQ_DEALER, from = ZMQ_ROUTER, named = 1;
    messages = strcmp(argv[2], "messages") == 0;
    size = strtoul(argv[3], NULL, 10);
    rounds = atoi(argv[4]);
    check(size <= sizeof body);
    if (strcmp(argv[1], "push_pull_tcp") == 0)
        return send_over_tcp(rounds);

    void *context = zmq_ctx_new(), *sender = zmq_socket(context, to), *receiver = zmq_socket(context, from);
    if (strstr(argv[1], "_monitored") != NULL) {
        listeners[0] = monitor(context, sender, "inproc://events-of-sender");
        listeners[1] = monitor(context, receiver, "inproc://events-of-receiver");
    }
    check(sender != NULL && receiver != NULL);
    if (routed || named)
        check(zmq_setsockopt(routed ? receiver : sender, ZMQ_ROUTING_ID, "id", 2) == 0);
    check(zmq_bind(sender, "inproc://hot") == 0);
    if (from == ZMQ_SUB)
        check(zmq_setsockopt(receiver, ZMQ_SUBSCRIBE, "", 0) == 0);
    check(zmq_connect(receiver, "inproc://hot") == 0);
    peers[0] = receiver;
    for (int i = 1; in_turn && i < PEERS; i++) {
        peers[i] = zmq_socket(context, from);
        check(peers[i] != NULL && zmq_setsockopt(peers[i], ZMQ_ROUTING_ID, names[i], 3) == 0);
        check(zmq_connect(peers[i], "inproc://hot") == 0);
    }
    if (to == ZMQ_XPUB)
        check(zmq_recv(sender, subscription, sizeof subscription, 0) == 1);
    for (int i = 0; routed && i < PEERS && peers[i] != NULL; i++) { /* so that the ROUTER knows it */
        check(zmq_send(peers[i], "hello", 5, 0) == 5);
        check(zmq_recv(sender, body, sizeof body, 0) >= 2 && zmq_recv(sender, body, sizeof body, 0) == 5);
    }
    for (int i = 0; i < rounds; i++) {
        send_batch(sender);
        receive_batch(receiver);
    }
    zmq_close(sender);
    for (int i = 0; i < PEERS; i++) {
        if (peers[i] != NULL)
            zmq_close(peers[i]);
    }
    for (int i = 0; i < 2; i++) {
        if (listeners[i] != NULL)
            zmq_close(listeners[i]);
    }
    zmq_ctx_term(context);
    return 0;
}
