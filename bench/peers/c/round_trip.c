/* REQ to REP and back, one at a time. Every round trip is a sample in nanoseconds;
   both ends check each message. */
#include "bench.h"
#include <errno.h>

static void send_body(const struct config *config, void *socket, unsigned char *body)
{
    zmq_msg_t message;

    if (!config->messages) {
        if (zmq_send(socket, body, config->size, 0) < 0)
            fail("zmq_send");
        return;
    }
    if (zmq_msg_init_size(&message, config->size) != 0)
        fail("zmq_msg_init_size");
    memcpy(zmq_msg_data(&message), body, config->size);
    if (zmq_msg_send(&message, socket, 0) < 0)
        fail("zmq_msg_send");
}

/* Receives into `body` (which has 8 bytes to spare) and returns the length. */
static size_t receive_body(const struct config *config, void *socket, unsigned char *body)
{
    zmq_msg_t message;
    size_t length;
    int n;

    if (!config->messages) {
        n = zmq_recv(socket, body, config->size + 8, 0);
        if (n < 0)
            fail("zmq_recv");
        return (size_t) n;
    }
    zmq_msg_init(&message);
    if (zmq_msg_recv(&message, socket, 0) < 0)
        fail("zmq_msg_recv");
    length = zmq_msg_size(&message);
    memcpy(body, zmq_msg_data(&message), length <= config->size + 8 ? length : config->size + 8);
    zmq_msg_close(&message);
    return length;
}

static void round_trip(struct end *end, void *socket, unsigned char *body, uint64_t sequence)
{
    const struct config *config = end->config;
    size_t length;

    stamp(body, config->size, sequence);
    send_body(config, socket, body);
    length = receive_body(config, socket, body);
    if (!intact(body, length, config->size))
        end->tally.corrupted++;
    else if (sequence_of(body) != sequence)
        end->tally.reordered++;
}

void round_trip_request(struct end *end)
{
    const struct config *config = end->config;
    void *socket = socket_open(end, ZMQ_REQ);
    unsigned char *body = calloc(1, config->size + 8);
    uint64_t before, after;

    if (body == NULL)
        fail("calloc");
    socket_connect(end, socket);
    round_trip(end, socket, body, HELLO);
    control_await(end->control[0], 'r');
    /* A tenth more, unmeasured, as a warm-up of both ends. */
    for (uint64_t i = 0; i < config->count / 10; i++)
        round_trip(end, socket, body, i);

    end->cpu_start = cpu_seconds();
    before = end->tally.first_ns = now_ns();
    for (uint64_t i = 0; i < config->count; i++) {
        uint64_t took;
        round_trip(end, socket, body, i);
        after = now_ns();
        took = after - before;
        end->samples_ns[i] = took > UINT32_MAX ? UINT32_MAX : (uint32_t) took;
        before = after;
        end->tally.received++;
    }
    end->tally.last_ns = before;
    end->tally.cpu_end = cpu_seconds();
    round_trip(end, socket, body, FINISH);
    control_await(end->control[0], 'd');
    free(body);
    zmq_close(socket);
}

void round_trip_reply(struct end *end)
{
    const struct config *config = end->config;
    void *socket = socket_open(end, ZMQ_REP);
    unsigned char *body = calloc(1, config->size + 8);
    int finished = 0;

    if (body == NULL)
        fail("calloc");
    socket_bind(end, socket, 1);
    while (!finished) {
        size_t length = receive_body(config, socket, body);
        uint64_t sequence = sequence_of(body);
        if (!intact(body, length, config->size))
            end->tally.corrupted++;
        send_body(config, socket, body);
        if (sequence == HELLO) {
            control_put(end->control[0], 'r');
            end->cpu_start = cpu_seconds();
        }
        finished = sequence == FINISH;
    }
    end->tally.cpu_end = cpu_seconds();
    control_put(end->control[0], 'd');
    free(body);
    zmq_close(socket);
}
