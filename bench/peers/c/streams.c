/* Several PUSH at once. Each has a separate thread and sends its part of `--count`:
 * `--senders` of them into one PULL (fan_in), or `--pairs`, each with a PULL in another
 * thread (scaling). Every stream is checked separately. */
#include "bench.h"
#include <errno.h>

#define STREAM_SHIFT 48
#define COUNTER ((UINT64_C(1) << STREAM_SHIFT) - 1)

static const struct config *config;
static void *context;
static int streams;
static uint64_t each;
static pthread_barrier_t together;

static struct receiver {
    void *socket;
    char endpoint[ENDPOINT_SIZE];
    int first, count; /* streams that it receives */
    struct tally tally;
    pthread_t thread;
} receivers[MAX_SUBSCRIBERS];

static struct sender {
    struct receiver *to;
    int number;
    pthread_t thread;
} senders[MAX_SUBSCRIBERS];

static void *send_stream(void *of)
{
    const struct sender *sender = of;
    uint64_t mark = (uint64_t) sender->number << STREAM_SHIFT;
    void *socket = open_and_connect(config, context, ZMQ_PUSH, sender->to->endpoint);
    unsigned char *body = calloc(1, config->size);

    if (body == NULL)
        fail("calloc");
    stamp(body, config->size, mark | COUNTER);
    send_all(socket, body, config->size, 0);
    pthread_barrier_wait(&together);
    for (uint64_t i = 0; i < each; i++) {
        stamp(body, config->size, mark | i);
        send_all(socket, body, config->size, 0);
    }
    stamp(body, config->size, mark | COUNTER);
    send_all(socket, body, config->size, 0);
    free(body);
    zmq_close(socket);
    return NULL;
}

static void *receive_streams(void *of)
{
    struct receiver *receiver = of;
    struct tally *tally = &receiver->tally;
    uint64_t expected[MAX_SUBSCRIBERS] = {0};
    unsigned char *body = calloc(1, config->size + 8);
    int open = receiver->count;

    if (body == NULL)
        fail("calloc");
    for (int i = 0; i < receiver->count; i++)
        receive_all(receiver->socket, body, config->size + 8);
    pthread_barrier_wait(&together);
    while (open > 0) {
        size_t length = receive_all(receiver->socket, body, config->size + 8);
        uint64_t sequence = sequence_of(body);
        int stream = (int) (sequence >> STREAM_SHIFT) - receiver->first;
        if (!intact(body, length, config->size) || stream < 0 || stream >= receiver->count) {
            tally->corrupted++;
            continue;
        }
        sequence &= COUNTER;
        if (sequence == COUNTER) {
            tally->lost += each - expected[stream];
            open--;
            continue;
        }
        if (tally->received++ == 0)
            tally->first_ns = now_ns();
        if (sequence == expected[stream])
            expected[stream]++;
        else
            tally_sequence(tally, sequence, &expected[stream]);
    }
    tally->last_ns = now_ns();
    free(body);
    zmq_close(receiver->socket);
    return NULL;
}

void streams_run(const struct config *of, struct result *result)
{
    int sinks;
    double cpu;
    uint64_t first = UINT64_MAX, last = 0;

    config = of;
    streams = config->pattern == SCALING ? config->pairs : config->senders;
    sinks = config->pattern == SCALING ? config->pairs : 1;
    each = config->count / (uint64_t) streams;
    if (each == 0) {
        errno = 0;
        fail("--count is too small");
    }
    context = context_open();
    pthread_barrier_init(&together, NULL, (unsigned) (streams + sinks + 1));
    for (int i = 0; i < sinks; i++) {
        struct receiver *receiver = &receivers[i];
        receiver->first = i;
        receiver->count = streams / sinks;
        receiver->socket = open_and_bind(config, context, ZMQ_PULL, i, receiver->endpoint);
        watchdog_watch(&receiver->tally);
        thread_start(&receiver->thread, receive_streams, receiver);
    }
    for (int i = 0; i < streams; i++) {
        senders[i].to = &receivers[i % sinks];
        senders[i].number = i;
        thread_start(&senders[i].thread, send_stream, &senders[i]);
    }
    cpu = cpu_seconds();
    pthread_barrier_wait(&together);
    for (int i = 0; i < streams; i++)
        pthread_join(senders[i].thread, NULL);
    for (int i = 0; i < sinks; i++) {
        const struct tally *tally = &receivers[i].tally;
        pthread_join(receivers[i].thread, NULL);
        result_tally(result, tally);
        first = tally->first_ns < first ? tally->first_ns : first;
        last = tally->last_ns > last ? tally->last_ns : last;
    }
    result->cpu_seconds = cpu_seconds() - cpu;
    result->seconds = (double) (last - first) / 1e9;
    result->messages = each * (uint64_t) streams;
    result_metric(result, "messages_per_second", (double) result->messages / result->seconds);
    zmq_ctx_term(context);
}
