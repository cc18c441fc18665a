/* One PUSH in a separate thread, to `--subscribers` PULL in one thread that polls
 * them. Each message goes to the next PULL that has room. The messages of each PULL
 * are checked separately, and all together by their sum. */
#include "bench.h"
#include <errno.h>

static const struct config *config;
static void *context;
static char endpoints[MAX_SUBSCRIBERS][ENDPOINT_SIZE];

static void *send_to_all(void *nothing)
{
    void *socket = open_and_connect(config, context, ZMQ_PUSH, endpoints[0]);
    unsigned char *body = calloc(1, config->size);

    (void) nothing;
    if (body == NULL)
        fail("calloc");
    for (int i = 1; i < config->subscribers; i++)
        if (zmq_connect(socket, endpoints[i]) != 0)
            fail("zmq_connect");
    for (uint64_t i = 0; i < config->count; i++) {
        stamp(body, config->size, i);
        send_all(socket, body, config->size, 0);
    }
    free(body);
    zmq_close(socket);
    return NULL;
}

/* Receives the messages of this PULL. Its next sequence number is at least `expected`. */
static uint64_t drain(void *socket, unsigned char *body, struct tally *tally, uint64_t *expected)
{
    uint64_t sum = 0;
    int length;

    while ((length = zmq_recv(socket, body, config->size + 8, ZMQ_DONTWAIT)) >= 0) {
        uint64_t sequence = sequence_of(body);
        if (tally->received++ == 0)
            tally->first_ns = now_ns();
        if (!intact(body, (size_t) length, config->size))
            tally->corrupted++;
        if (sequence < *expected)
            tally->reordered++;
        *expected = sequence + 1;
        sum += sequence;
    }
    if (errno != EAGAIN)
        fail("zmq_recv");
    return sum;
}

void in_turn_run(const struct config *of, struct result *result)
{
    static struct tally tally;
    zmq_pollitem_t items[MAX_SUBSCRIBERS] = {{0}};
    uint64_t expected[MAX_SUBSCRIBERS] = {0}, sum = 0;
    unsigned char *body = calloc(1, of->size + 8);
    pthread_t sender;
    double cpu;

    if (body == NULL)
        fail("calloc");
    config = of;
    context = context_open();
    for (int i = 0; i < config->subscribers; i++) {
        items[i].socket = open_and_bind(config, context, ZMQ_PULL, i, endpoints[i]);
        items[i].events = ZMQ_POLLIN;
    }
    watchdog_watch(&tally);
    cpu = cpu_seconds();
    thread_start(&sender, send_to_all, NULL);
    while (tally.received < config->count) {
        if (zmq_poll(items, config->subscribers, -1) < 0)
            fail("zmq_poll");
        for (int i = 0; i < config->subscribers; i++)
            if (items[i].revents)
                sum += drain(items[i].socket, body, &tally, &expected[i]);
    }
    tally.last_ns = now_ns();
    pthread_join(sender, NULL);
    if (sum != (config->count % 2 ? (config->count - 1) / 2 * config->count : config->count / 2 * (config->count - 1)))
        tally.lost++;
    result_tally(result, &tally);
    result->cpu_seconds = cpu_seconds() - cpu;
    result->seconds = (double) (tally.last_ns - tally.first_ns) / 1e9;
    result->messages = config->count;
    result_metric(result, "messages_per_second", (double) result->messages / result->seconds);
    for (int i = 0; i < config->subscribers; i++)
        zmq_close(items[i].socket);
    zmq_ctx_term(context);
    free(body);
}
