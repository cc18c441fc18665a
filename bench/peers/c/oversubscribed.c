/* REQ and REP in `--pairs` processes of two threads each, beside `--busy` processes
 * that only use a core. Shows the cost of a library's waiting for other processes, and
 * the effect of their work on it. Counts round trips of all pairs together in
 * `--millis`. */
#include "bench.h"
#include "histogram.h"
#include "pairs.h"
#include <stdatomic.h>
#include <unistd.h>

static const struct config *config;
static char endpoint[ENDPOINT_SIZE];

static struct shared {
    struct gate gate;
    _Atomic uint64_t trips, bad, cpu_us;
    struct shared_histogram times;
} *shared;

static void *reply(void *socket)
{
    unsigned char *body = calloc(1, config->size + 8);
    uint64_t sequence = 0;

    if (body == NULL)
        fail("calloc");
    while (sequence != FINISH) {
        size_t length = receive_all(socket, body, config->size + 8);
        sequence = sequence_of(body);
        send_all(socket, body, length, 0);
    }
    free(body);
    zmq_close(socket);
    return NULL;
}

static int trip(void *socket, unsigned char *body, uint64_t sequence)
{
    stamp(body, config->size, sequence);
    send_all(socket, body, config->size, 0);
    size_t length = receive_all(socket, body, config->size + 8);
    return intact(body, length, config->size) && sequence_of(body) == sequence;
}

static void pair_process(int number)
{
    pthread_t thread;
    uint64_t before, end, trips = 0, bad = 0;
    double cpu;
    static struct histogram times;
    void *context = context_open();
    void *server = open_and_bind(config, context, ZMQ_REP, number, endpoint);
    unsigned char *body = calloc(1, config->size + 8);

    if (body == NULL)
        fail("calloc");
    thread_start(&thread, reply, server);
    void *socket = open_and_connect(config, context, ZMQ_REQ, endpoint);
    trip(socket, body, HELLO);
    gate_pass(&shared->gate);
    cpu = cpu_seconds();
    before = now_ns();
    end = before + (uint64_t) config->millis * 1000000u;
    while (before < end) {
        bad += !trip(socket, body, trips);
        uint64_t after = now_ns();
        histogram_record(&times, after - before);
        before = after;
        trips++;
    }
    cpu = cpu_seconds() - cpu;
    trip(socket, body, FINISH);
    atomic_fetch_add(&shared->trips, trips);
    atomic_fetch_add(&shared->bad, bad);
    atomic_fetch_add(&shared->cpu_us, (uint64_t) (cpu * 1e6));
    histogram_add(&shared->times, &times);
    pthread_join(thread, NULL);
    zmq_close(socket);
    zmq_ctx_term(context);
    _exit(0);
}

void oversubscribed_run(const struct config *of, struct result *result)
{
    uint64_t trips;

    config = of;
    shared = shared_memory(sizeof *shared);
    pairs_run(config->pairs, config->busy, pair_process, &shared->gate);
    trips = atomic_load(&shared->trips);
    result->messages = trips;
    result->seconds = config->millis / 1e3;
    result->cpu_seconds = (double) atomic_load(&shared->cpu_us) / 1e6;
    result->corrupted = atomic_load(&shared->bad);
    result_metric(result, "messages_per_second", (double) trips / result->seconds);
    result_metric(result, "p50_us", histogram_quantile_us(&shared->times, 0.5));
    result_metric(result, "p99_us", histogram_quantile_us(&shared->times, 0.99));
}
