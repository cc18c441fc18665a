/* REQ to REP, one at a time; both ends check each message. Every message is a sample in
 * nanoseconds:
 *
 *   req_rep   the REP sends a message of the same size back; a sample is the round trip
 *   one_way   the REP answers with the time at which it had received and checked the
 *             message; a sample is the time from before the requester wrote it until then */
#include "bench.h"
#include <errno.h>

/* Number of messages after which all memory of a run has been used, also if a library has several blocks. */
#define FIRST_USES 5

/* Answer of one_way. */
struct receipt {
    uint64_t sequence, received_ns;
};

/* Writes and sends a message: the reused buffer, or a new zmq_msg_t. */
static void send_body(const struct config *config, void *socket, unsigned char *body, uint64_t sequence)
{
    zmq_msg_t message;

    if (!config->messages) {
        write_body(config, body, sequence);
        send_all(socket, body, config->size, 0);
        return;
    }
    if (zmq_msg_init_size(&message, config->size) != 0)
        fail("zmq_msg_init_size");
    write_body(config, zmq_msg_data(&message), sequence);
    if (zmq_msg_send(&message, socket, 0) < 0)
        fail("zmq_msg_send");
}

/* Receives and checks a message, with `body` (which has 8 bytes to spare) as the buffer.
   Returns its sequence number. */
static uint64_t receive_body(struct end *end, void *socket, unsigned char *body)
{
    const struct config *config = end->config;
    const unsigned char *at = body;
    uint64_t sequence;
    zmq_msg_t message;
    size_t length;

    if (config->messages) {
        zmq_msg_init(&message);
        if (zmq_msg_recv(&message, socket, 0) < 0)
            fail("zmq_msg_recv");
        length = zmq_msg_size(&message);
        at = zmq_msg_data(&message);
    } else {
        length = receive_all(socket, body, config->size + 8);
    }
    if (length < 8) {
        errno = 0;
        fail("a message without a sequence number");
    }
    sequence = sequence_of(at);
    if (!body_is_right(config, at, length))
        end->tally.corrupted++;
    if (config->messages)
        zmq_msg_close(&message);
    return sequence;
}

/* Sends a message and receives the answer. Returns the end of the sample. */
static uint64_t trip(struct end *end, void *socket, unsigned char *body, uint64_t sequence)
{
    struct receipt receipt;
    uint64_t answered;

    send_body(end->config, socket, body, sequence);
    if (end->config->pattern == REQ_REP) {
        answered = receive_body(end, socket, body);
        receipt.received_ns = now_ns();
    } else {
        if (receive_all(socket, &receipt, sizeof receipt) != sizeof receipt) {
            errno = 0;
            fail("not a receipt");
        }
        answered = receipt.sequence;
    }
    if (answered != sequence)
        end->tally.reordered++;
    return receipt.received_ns;
}

void round_trip_request(struct end *end)
{
    const struct config *config = end->config;
    void *socket = socket_open(end, ZMQ_REQ);
    unsigned char *body = calloc(1, config->size + 8);

    if (body == NULL)
        fail("calloc");
    socket_connect(end, socket);
    trip(end, socket, body, HELLO);
    control_await(end->control[0], 'r');
    /* A tenth more, and the first uses of memory, unmeasured, as a warm-up of both ends. */
    for (uint64_t i = 0; i < config->count / 10 + FIRST_USES; i++)
        trip(end, socket, body, i);

    end->cpu_start = cpu_seconds();
    end->tally.first_ns = now_ns();
    for (uint64_t i = 0; i < config->count; i++) {
        uint64_t before = now_ns();
        uint64_t took = trip(end, socket, body, i) - before;
        end->samples_ns[i] = took > UINT32_MAX ? UINT32_MAX : (uint32_t) took;
        end->tally.received++;
    }
    end->tally.last_ns = now_ns();
    end->tally.cpu_end = cpu_seconds();
    trip(end, socket, body, FINISH);
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
        struct receipt receipt = {.sequence = receive_body(end, socket, body)};
        if (config->pattern == REQ_REP) {
            send_body(config, socket, body, receipt.sequence);
        } else {
            receipt.received_ns = now_ns();
            send_all(socket, &receipt, sizeof receipt, 0);
        }
        if (receipt.sequence == HELLO) {
            control_put(end->control[0], 'r');
            end->cpu_start = cpu_seconds();
        }
        finished = receipt.sequence == FINISH;
    }
    end->tally.cpu_end = cpu_seconds();
    control_put(end->control[0], 'd');
    free(body);
    zmq_close(socket);
}
