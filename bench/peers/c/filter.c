/* XPUB to one SUB with `--topics` subscriptions of 8 bytes each; `--match` per cent of
 * the messages match one. Counts published messages. The subscriber checks that it
 * receives all matching messages, and only those. */
#include "bench.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define TOPIC 8

static const struct config *config;
static char endpoint[ENDPOINT_SIZE];
static int ready[2]; /* one byte in each direction */
static struct tally tally;

static void topic(char *into, char kind, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%c%07llu", kind, (unsigned long long) number);
    memcpy(into, text, TOPIC);
}

static void *subscribe(void *context)
{
    void *socket = open_in(config, context, ZMQ_SUB);
    unsigned char *body = calloc(1, config->size + 8);
    uint64_t expected = 0;
    char name[TOPIC];

    if (body == NULL)
        fail("calloc");
    /* libzmq drops subscriptions beyond the high-water mark. */
    if (config->topics > 500)
        option_int(socket, ZMQ_SNDHWM, 0, "ZMQ_SNDHWM");
    for (int i = 0; i < config->topics; i++) {
        topic(name, 's', (uint64_t) i);
        option(socket, ZMQ_SUBSCRIBE, name, TOPIC, "ZMQ_SUBSCRIBE");
    }
    if (zmq_connect(socket, endpoint) != 0)
        fail("zmq_connect");
    for (;;) {
        size_t length = receive_all(socket, body, config->size + 8);
        uint64_t sequence = sequence_of(body + TOPIC);
        if (length != config->size || !intact(body + TOPIC, length - TOPIC, config->size - TOPIC)
            || body[0] != 's') {
            tally.corrupted++;
            expected++;
        } else if (sequence == FINISH) {
            break;
        } else if (sequence == HELLO) {
            control_put(ready[1], 'r');
        } else {
            if (tally.received++ == 0)
                tally.first_ns = now_ns();
            if (sequence == expected)
                expected++;
            else
                tally_sequence(&tally, sequence, &expected);
        }
    }
    tally.last_ns = now_ns();
    control_put(ready[1], (char) 'd');
    /* Messages that are missing at the end also count as lost. */
    uint64_t due = config->count * (uint64_t) config->match / 100;
    if (expected < due)
        tally.lost += due - expected;
    free(body);
    zmq_close(socket);
    return NULL;
}

void filter_run(const struct config *of, struct result *result)
{
    pthread_t thread;
    uint64_t matched = 0, mix = 0x9e3779b97f4a7c15u;
    double cpu;

    config = of;
    size_t count = (size_t) config->topics;
    char *wanted = malloc(count * TOPIC), *other = malloc(count * TOPIC);
    unsigned char *body = calloc(1, config->size + 8);
    if (wanted == NULL || other == NULL || body == NULL || pipe(ready) != 0)
        fail("setting up");
    for (size_t i = 0; i < count; i++) {
        topic(wanted + i * TOPIC, 's', i);
        topic(other + i * TOPIC, 'n', i);
    }
    void *context = context_open();
    void *socket = open_and_bind(config, context, ZMQ_XPUB, 0, endpoint);
    option_int(socket, ZMQ_XPUB_NODROP, 1, "ZMQ_XPUB_NODROP");
    watchdog_watch(&tally);
    thread_start(&thread, subscribe, context);
    for (size_t i = 0; i < count; i++) {
        if (receive_all(socket, body, config->size) != TOPIC + 1) {
            errno = 0;
            fail("not the expected subscription");
        }
    }
    memcpy(body, wanted, TOPIC);
    stamp(body + TOPIC, config->size - TOPIC, HELLO);
    send_all(socket, body, config->size, 0);
    control_await(ready[0], 'r');

    cpu = cpu_seconds();
    for (uint64_t i = 0; i < config->count; i++) {
        int match = (i + 1) * (uint64_t) config->match / 100 != i * (uint64_t) config->match / 100;
        mix ^= mix << 13, mix ^= mix >> 7, mix ^= mix << 17;
        memcpy(body, (match ? wanted : other) + mix % count * TOPIC, TOPIC);
        stamp(body + TOPIC, config->size - TOPIC, matched);
        matched += (uint64_t) match;
        send_all(socket, body, config->size, 0);
    }
    memcpy(body, wanted, TOPIC);
    stamp(body + TOPIC, config->size - TOPIC, FINISH);
    send_all(socket, body, config->size, 0);
    control_await(ready[0], 'd');
    result->cpu_seconds = cpu_seconds() - cpu;
    pthread_join(thread, NULL);
    result->seconds = (double) (tally.last_ns - tally.first_ns) / 1e9;
    result->messages = config->count;
    result_tally(result, &tally);
    result_metric(result, "messages_per_second", (double) config->count / result->seconds);
    free(wanted);
    free(other);
    free(body);
    zmq_close(socket);
    zmq_ctx_term(context);
}
