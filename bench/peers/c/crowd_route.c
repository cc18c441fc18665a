/* One ROUTER and a crowd of `--connections` DEALERs, in this order:
 *
 * - connect: from the first connection to the hello of the last
 * - idle: memory added by the connections; crowd_idle stays here for `--millis`,
 *   measures processor use, and ends
 * - dealers: memory added by the same number of DEALERs of this library, one
 *   connection each, beyond the ROUTER's part
 * - in turn: one message to each connection in turn, for `--millis`
 * - echo: one message to each and its echo from each, for `--millis`
 *
 * crowd_route counts the messages that it sends in turn; echoes have a separate
 * figure. */
#include "crowd.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const struct config *config;

static double memory_kib(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &all, &resident) != 2)
        fail("/proc/self/statm");
    fclose(file);
    return (double) resident * (double) sysconf(_SC_PAGESIZE) / 1024;
}

static void put_round(void *socket, unsigned char *body, uint64_t sequence)
{
    unsigned char id[CROWD_ID];

    stamp(body, config->size, sequence);
    for (int i = 0; i < config->connections; i++) {
        crowd_id(id, (uint32_t) i);
        send_all(socket, id, sizeof id, ZMQ_SNDMORE);
        send_all(socket, body, config->size, 0);
    }
}

static void take_round(void *socket, unsigned char *body, uint64_t sequence, struct tally *tally)
{
    unsigned char id[CROWD_ID + 8];

    for (int i = 0; i < config->connections; i++) {
        if (receive_all(socket, id, sizeof id) != CROWD_ID) {
            errno = 0;
            fail("a message without a dealer's routing id in front");
        }
        size_t length = receive_all(socket, body, config->size + 8);
        if (sequence == HELLO ? sequence_of(body) != HELLO : !intact(body, length, config->size))
            tally->corrupted++;
        else if (sequence_of(body) != sequence)
            tally->reordered++;
    }
}

static void in_turn(void *socket, unsigned char *body, struct crowd *crowd, struct result *result, uint64_t *rounds)
{
    double cpu = cpu_seconds();
    uint64_t began = now_ns(), end = began + (uint64_t) config->millis * 1000000u;

    while (now_ns() < end)
        put_round(socket, body, (*rounds)++);
    result->messages = *rounds * (uint64_t) config->connections;
    crowd_await(crowd, result->messages);
    result->cpu_seconds = cpu_seconds() - cpu;
    result->seconds = (double) (atomic_load(&crowd->shared->last_ns) - began) / 1e9;
    result_metric(result, "messages_per_second", (double) result->messages / result->seconds);
}

static void echoes(void *socket, unsigned char *body, struct crowd *crowd, struct result *result, uint64_t rounds)
{
    struct tally tally = {0};
    uint64_t first = rounds;

    atomic_store(&crowd->shared->echo, 1);
    uint64_t began = now_ns(), end = began + (uint64_t) config->millis * 1000000u;
    while (now_ns() < end) {
        put_round(socket, body, rounds);
        take_round(socket, body, rounds, &tally);
        rounds++;
    }
    result_tally(result, &tally);
    result_metric(result, "echoes_per_second",
                  (double) ((rounds - first) * (uint64_t) config->connections) * 1e9 / (double) (now_ns() - began));
}

/* Memory of the DEALERs, which are in this process, in a separate context. Each DEALER
   has sent its hello, and the ROUTER has received it. */
static double dealer_kib(void *router, const char *endpoint, double router_kib)
{
    int count = config->connections;
    void **dealers = calloc((size_t) count, sizeof *dealers), *context = context_open();
    unsigned char part[CROWD_ID + 8];

    if (dealers == NULL || zmq_ctx_set(context, ZMQ_MAX_SOCKETS, count + 1) != 0)
        fail("the dealers' context");
    double before = memory_kib();
    for (int i = 0; i < count; i++) {
        dealers[i] = open_and_connect(config, context, ZMQ_DEALER, endpoint);
        send_all(dealers[i], "hello", 5, 0);
    }
    for (int i = 0; i < 2 * count; i++)
        receive_all(router, part, sizeof part);
    usleep(200000);
    double each_kib = (memory_kib() - before) / count - router_kib;
    for (int i = 0; i < count; i++) {
        option_int(dealers[i], ZMQ_LINGER, 0, "ZMQ_LINGER");
        zmq_close(dealers[i]);
    }
    zmq_ctx_term(context);
    free(dealers);
    return each_kib;
}

void crowd_route_run(const struct config *of, struct result *result)
{
    struct crowd crowd;
    struct tally tally = {0};
    char endpoint[ENDPOINT_SIZE];
    uint64_t rounds = 0;

    config = of;
    if (strcmp(config->transport, "inproc") == 0) {
        errno = 0;
        fail("a crowd is in another process");
    }
    crowd_start(&crowd, config, CROWD_DEALERS);
    void *context = context_open();
    void *socket = open_and_bind(config, context, ZMQ_ROUTER, 0, endpoint);
    option_int(socket, ZMQ_ROUTER_MANDATORY, 1, "ZMQ_ROUTER_MANDATORY");
    unsigned char *body = calloc(1, config->size + 8);
    if (body == NULL)
        fail("calloc");
    usleep(20000);

    double before = memory_kib();
    uint64_t began = now_ns();
    crowd_connect(&crowd, endpoint);
    take_round(socket, body, HELLO, &tally);
    double connect_ms = (double) (now_ns() - began) / 1e6;
    usleep(200000);
    double each_kib = (memory_kib() - before) / config->connections;

    if (config->pattern == CROWD_IDLE) {
        double cpu = cpu_seconds();
        began = now_ns();
        usleep((useconds_t) config->millis * 1000);
        result->seconds = (double) (now_ns() - began) / 1e9;
        result->cpu_seconds = cpu_seconds() - cpu;
        result->messages = (uint64_t) config->connections;
        result_metric(result, "cpu_percent", 100 * result->cpu_seconds / result->seconds);
        result_metric(result, "memory_per_dealer_kib", dealer_kib(socket, endpoint, each_kib));
    } else {
        in_turn(socket, body, &crowd, result, &rounds);
        echoes(socket, body, &crowd, result, rounds);
    }
    result_metric(result, "connect_all_ms", connect_ms);
    result_metric(result, "memory_per_connection_kib", each_kib);
    result_tally(result, &tally);
    crowd_end(&crowd, result);
    free(body);
    option_int(socket, ZMQ_LINGER, 0, "ZMQ_LINGER");
    zmq_close(socket);
    zmq_ctx_term(context);
}
