/* One-way patterns: PUSH to PULL, ROUTER to ROUTER, XPUB to one or several SUB.
 *
 * Both ends say hello first, so the clock never includes a handshake. Then the sender
 * sends `count` messages and one FINISH. A receiver measures the time from its first
 * to its last message and checks each one. Socket options are the defaults, except
 * those that prevent loss: ROUTER_MANDATORY, XPUB_NODROP (a send to a full subscriber
 * waits). */
#include "bench.h"
#include <errno.h>

static const char SENDER[] = "sender";
static const char RECEIVER[] = "receiver";
#define ID_SIZE(id) (sizeof(id) - 1)

static inline void send_buffer(void *socket, const void *data, size_t length, int flags)
{
    while (zmq_send(socket, data, length, flags) < 0) {
        if (errno != EINTR)
            fail("zmq_send");
    }
}

/* Sends one message stamped with `sequence`: the reused buffer, or a new zmq_msg_t. */
static inline void send_one(const struct config *config, void *socket, unsigned char *body, uint64_t sequence)
{
    zmq_msg_t message;

    if (config->pattern == ROUTER_ROUTER)
        send_buffer(socket, RECEIVER, ID_SIZE(RECEIVER), ZMQ_SNDMORE);
    if (!config->messages) {
        write_body(config, body, sequence);
        send_buffer(socket, body, config->size, 0);
        return;
    }
    if (zmq_msg_init_size(&message, config->size) != 0)
        fail("zmq_msg_init_size");
    write_body(config, zmq_msg_data(&message), sequence);
    while (zmq_msg_send(&message, socket, 0) < 0) {
        if (errno != EINTR)
            fail("zmq_msg_send");
    }
}

static inline int receive_buffer(void *socket, void *data, size_t room)
{
    int length;
    while ((length = zmq_recv(socket, data, room, 0)) < 0) {
        if (errno != EINTR)
            fail("zmq_recv");
    }
    return length;
}

/* Receives one message. Returns its length, and its body, which is valid until the
   next call. */
static inline const unsigned char *receive_one(const struct config *config, void *socket, unsigned char *body,
                                               zmq_msg_t *message, size_t *length)
{
    if (config->pattern == ROUTER_ROUTER) {
        char id[32];
        int n = receive_buffer(socket, id, sizeof id);
        if (n != (int) ID_SIZE(SENDER) || memcmp(id, SENDER, ID_SIZE(SENDER)) != 0) {
            errno = 0;
            fail("a message without the sender's routing id in front");
        }
    }
    if (!config->messages) {
        *length = (size_t) receive_buffer(socket, body, config->size + 8);
        return body;
    }
    while (zmq_msg_recv(message, socket, 0) < 0) {
        if (errno != EINTR)
            fail("zmq_msg_recv");
    }
    *length = zmq_msg_size(message);
    return zmq_msg_data(message);
}

static void *open_sender(struct end *end)
{
    const struct config *config = end->config;
    const int one = 1;
    void *socket;

    switch (config->pattern) {
    case PUSH_PULL:
        socket = socket_open(end, ZMQ_PUSH);
        break;
    case ROUTER_ROUTER:
        socket = socket_open(end, ZMQ_ROUTER);
        option(socket, ZMQ_ROUTING_ID, SENDER, ID_SIZE(SENDER), "ZMQ_ROUTING_ID");
        option(socket, ZMQ_CONNECT_ROUTING_ID, RECEIVER, ID_SIZE(RECEIVER), "ZMQ_CONNECT_ROUTING_ID");
        option(socket, ZMQ_ROUTER_MANDATORY, &one, sizeof one, "ZMQ_ROUTER_MANDATORY");
        break;
    default:
        socket = socket_open(end, ZMQ_XPUB);
        option(socket, ZMQ_XPUB_NODROP, &one, sizeof one, "ZMQ_XPUB_NODROP");
        /* Report every subscriber's subscription, and not only the first of a topic. */
        option(socket, ZMQ_XPUB_VERBOSE, &one, sizeof one, "ZMQ_XPUB_VERBOSE");
        socket_bind(end, socket, config->subscribers);
        for (int i = 0; i < config->subscribers; i++) {
            unsigned char subscription[8];
            if (receive_buffer(socket, subscription, sizeof subscription) != 1 || subscription[0] != 1) {
                errno = 0;
                fail("not the expected subscription");
            }
        }
        return socket;
    }
    socket_connect(end, socket);
    return socket;
}

void flow_send(struct end *end)
{
    const struct config *config = end->config;
    void *socket = open_sender(end);
    unsigned char *body = calloc(1, config->size);

    if (body == NULL)
        fail("calloc");
    send_one(config, socket, body, HELLO);
    if (config->pattern == ROUTER_ROUTER) {
        /* The receiver greets back, so both routers know each other. */
        char id[32];
        receive_buffer(socket, id, sizeof id);
        receive_buffer(socket, body, config->size);
    }
    for (int i = 0; i < config->subscribers; i++)
        control_await(end->control[i], 'r');

    end->cpu_start = cpu_seconds();
    for (uint64_t sequence = 0; sequence < config->count; sequence++)
        send_one(config, socket, body, sequence);
    send_one(config, socket, body, FINISH);

    for (int i = 0; i < config->subscribers; i++)
        control_await(end->control[i], 'd');
    end->tally.cpu_end = cpu_seconds();
    free(body);
    zmq_close(socket);
}

static void *open_receiver(struct end *end)
{
    const int one = 1;
    void *socket;

    switch (end->config->pattern) {
    case PUSH_PULL:
        socket = socket_open(end, ZMQ_PULL);
        break;
    case ROUTER_ROUTER:
        socket = socket_open(end, ZMQ_ROUTER);
        option(socket, ZMQ_ROUTING_ID, RECEIVER, ID_SIZE(RECEIVER), "ZMQ_ROUTING_ID");
        option(socket, ZMQ_ROUTER_MANDATORY, &one, sizeof one, "ZMQ_ROUTER_MANDATORY");
        break;
    default:
        socket = socket_open(end, ZMQ_SUB);
        option(socket, ZMQ_SUBSCRIBE, "", 0, "ZMQ_SUBSCRIBE");
        socket_connect(end, socket);
        return socket;
    }
    socket_bind(end, socket, 1);
    return socket;
}

void flow_receive(struct end *end)
{
    const struct config *config = end->config;
    struct tally *tally = &end->tally;
    void *socket = open_receiver(end);
    unsigned char *room = calloc(1, config->size + 8);
    const unsigned char *body;
    uint64_t expected = 0, sequence = 0;
    int finished = 0;
    size_t length;
    zmq_msg_t message;

    if (room == NULL)
        fail("calloc");
    zmq_msg_init(&message);
    body = receive_one(config, socket, room, &message, &length);
    if (!body_is_right(config, body, length) || sequence_of(body) != HELLO) {
        errno = 0;
        fail("not the expected hello");
    }
    if (config->pattern == ROUTER_ROUTER) {
        send_buffer(socket, SENDER, ID_SIZE(SENDER), ZMQ_SNDMORE);
        send_buffer(socket, "hello", 5, 0);
    }
    control_put(end->control[0], 'r');
    end->cpu_start = cpu_seconds();

    while (expected < config->count) {
        body = receive_one(config, socket, room, &message, &length);
        if (tally->received++ == 0)
            tally->first_ns = now_ns();
        if (!body_is_right(config, body, length)) {
            /* The number of a corrupt message is unreliable: the message counts as the
               expected one. */
            tally->corrupted++;
            expected++;
            continue;
        }
        sequence = sequence_of(body);
        if (sequence == expected) {
            expected++;
        } else if (sequence == FINISH) {
            tally->received--;
            finished = 1;
            tally->lost += config->count - expected;
            break;
        } else {
            tally_sequence(tally, sequence, &expected);
        }
    }
    tally->last_ns = now_ns();
    tally->cpu_end = cpu_seconds();

    /* Messages that arrive between the last one and FINISH are late or duplicates. */
    while (!finished) {
        body = receive_one(config, socket, room, &message, &length);
        if (!body_is_right(config, body, length))
            tally->corrupted++;
        else if (sequence_of(body) == FINISH)
            finished = 1;
        else
            tally_sequence(tally, sequence_of(body), &expected);
    }
    control_put(end->control[0], 'd');
    zmq_msg_close(&message);
    free(room);
    zmq_close(socket);
}
