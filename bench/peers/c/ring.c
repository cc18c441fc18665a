/* A ring of `--nodes` processes: each receives from its left neighbour (PULL) and sends on to its right one (PUSH),
 * with `--window` tokens (1) on their way, for `--millis`. Counts hops. p50 and p99 are of a hop, from just before the
 * send to the receipt.
 *
 * Node 0 numbers the tokens and raises the number of a token that returns by the number of tokens. So each node
 * receives the numbers 0, 1, 2 and so on, and checks them. A token carries the time of its last send. */
#include "bench.h"
#include "histogram.h"
#include "pairs.h"
#include <errno.h>
#include <unistd.h>

#define SENT_AT 8 /* offset of that time in a token */

static const struct config *config;

static struct shared {
    struct gate gate;
    _Atomic int bound[MAX_SUBSCRIBERS];
    char endpoints[MAX_SUBSCRIBERS][ENDPOINT_SIZE];
    struct tally tallies[MAX_SUBSCRIBERS];
    _Atomic uint64_t cpu_us, ns;
    struct shared_histogram hops;
} *shared;

static struct node {
    void *in, *out;
    unsigned char *body;
    struct tally *tally;
    uint64_t expected;
    struct histogram hops;
} node;

static void node_send(uint64_t sequence)
{
    uint64_t now = now_ns();

    stamp(node.body, config->size, sequence);
    memcpy(node.body + SENT_AT, &now, sizeof now);
    send_all(node.out, node.body, config->size, 0);
}

/* Receives and checks one token. Returns its number, or HELLO or FINISH. */
static uint64_t node_receive(void)
{
    size_t length = receive_all(node.in, node.body, config->size + 8);
    uint64_t sent, now = now_ns(), sequence = sequence_of(node.body);

    memcpy(&sent, node.body + SENT_AT, sizeof sent);
    if (!intact(node.body, length, config->size)) {
        /* The number of a corrupt token is unreliable: the token counts as the expected one. */
        node.tally->corrupted++;
        sequence = node.expected++;
    } else if (sequence == HELLO || sequence == FINISH) {
        return sequence;
    } else if (sequence == node.expected) {
        node.expected++;
    } else {
        tally_sequence(node.tally, sequence, &node.expected);
    }
    node.tally->received++;
    histogram_record(&node.hops, now - sent);
    return sequence;
}

/* Node 0: sends the tokens, and takes them out of the ring when the time is over. */
static void lead(void)
{
    uint64_t window = (uint64_t) config->window, under_way = window, began = now_ns(), now = began;

    for (uint64_t token = 0; token < window; token++)
        node_send(token);
    while (under_way > 0) {
        uint64_t sequence = node_receive();
        now = now_ns();
        if (now - began < (uint64_t) config->millis * 1000000u)
            node_send(sequence + window);
        else
            under_way--;
    }
    atomic_store(&shared->ns, now - began);
    node_send(FINISH);
    while (node_receive() != FINISH) {
    }
}

static void follow(void)
{
    uint64_t sequence;

    do {
        sequence = node_receive();
        node_send(sequence);
    } while (sequence != FINISH);
}

static void node_process(int number)
{
    int right = (number + 1) % config->nodes;
    void *context = context_open();
    double cpu;

    node.tally = &shared->tallies[number];
    node.body = calloc(1, config->size + 8);
    if (node.body == NULL)
        fail("calloc");
    node.in = open_and_bind(config, context, ZMQ_PULL, number, shared->endpoints[number]);
    atomic_store(&shared->bound[number], 1);
    while (!atomic_load(&shared->bound[right]))
        usleep(200);
    node.out = open_and_connect(config, context, ZMQ_PUSH, shared->endpoints[right]);
    if (number == 0)
        node_send(HELLO);
    if (node_receive() != HELLO) {
        errno = 0;
        fail("not the expected hello");
    }
    if (number > 0)
        node_send(HELLO);
    gate_pass(&shared->gate);
    cpu = cpu_seconds();
    if (number == 0)
        lead();
    else
        follow();
    atomic_fetch_add(&shared->cpu_us, (uint64_t) ((cpu_seconds() - cpu) * 1e6));
    histogram_add(&shared->hops, &node.hops);
    zmq_close(node.in);
    zmq_close(node.out);
    zmq_ctx_term(context);
    _exit(0);
}

void ring_run(const struct config *of, struct result *result)
{
    static struct config own;

    own = *of;
    own.window = of->window > 0 ? of->window : 1;
    config = &own;
    shared = shared_memory(sizeof *shared);
    for (int i = 0; i < config->nodes; i++)
        watchdog_watch(&shared->tallies[i]);
    pairs_run(config->nodes, 0, node_process, &shared->gate);
    for (int i = 0; i < config->nodes; i++) {
        result->messages += shared->tallies[i].received;
        result_tally(result, &shared->tallies[i]);
    }
    result->seconds = (double) atomic_load(&shared->ns) / 1e9;
    result->cpu_seconds = (double) atomic_load(&shared->cpu_us) / 1e6;
    result_metric(result, "messages_per_second", (double) result->messages / result->seconds);
    result_metric(result, "p50_us", histogram_quantile_us(&shared->hops, 0.5));
    result_metric(result, "p99_us", histogram_quantile_us(&shared->hops, 0.99));
}
