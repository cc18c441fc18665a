/* One way, PUSH to PULL, at a given rate: `--rate` times a second, `--burst` messages
 * are due at once. Each carries its due time, and its latency counts from there. So
 * the time for which earlier messages delayed the sender is not hidden. The first
 * tenth is not counted. The sender spins until the next message is due (it sleeps if
 * that is far away), which is part of the reported processor time. */
#include "bench.h"
#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

static const struct config *config;
static char endpoint[ENDPOINT_SIZE];
static uint64_t count;
static struct tally tally;
static uint32_t *samples_ns;
static int greeted[2];

static void put(void *socket, unsigned char *body, uint64_t sequence, uint64_t due)
{
    stamp(body, config->size, sequence);
    memcpy(body + 8, &due, 8);
    send_all(socket, body, config->size, 0);
}

static void *send_on_time(void *context)
{
    void *socket = open_and_connect(config, context, ZMQ_PUSH, endpoint);
    unsigned char *body = calloc(1, config->size);
    uint64_t start, sequence = 0;

    if (body == NULL)
        fail("calloc");
    prctl(PR_SET_TIMERSLACK, 1);
    put(socket, body, HELLO, 0);
    control_await(greeted[0], 'r');
    start = now_ns() + 1000000;
    while (sequence < count) {
        uint64_t burst = sequence / (uint64_t) config->burst;
        uint64_t due = start + (uint64_t) ((double) burst * 1e9 / config->rate);
        wait_until(due);
        for (int i = 0; i < config->burst && sequence < count; i++)
            put(socket, body, sequence++, due);
    }
    put(socket, body, FINISH, 0);
    free(body);
    zmq_close(socket);
    return NULL;
}

void latency_run(const struct config *of, struct result *result)
{
    pthread_t thread;
    uint64_t expected = 0, sequence = 0, taken = 0, skipped;
    double cpu;

    config = of;
    count = (uint64_t) config->rate * (uint64_t) config->burst * (uint64_t) config->millis / 1000;
    if (count < 20 || count > 50000000) {
        errno = 0;
        fail("too few or too many messages for --millis");
    }
    skipped = count / 10;
    samples_ns = calloc(count, sizeof *samples_ns);
    unsigned char *body = calloc(1, config->size + 8);
    if (samples_ns == NULL || body == NULL || pipe(greeted) != 0)
        fail("setting up");
    memset(samples_ns, 0, count * sizeof *samples_ns);
    void *context = context_open();
    void *socket = open_and_bind(config, context, ZMQ_PULL, 0, endpoint);
    watchdog_watch(&tally);
    thread_start(&thread, send_on_time, context);
    receive_all(socket, body, config->size + 8);
    control_put(greeted[1], 'r');
    cpu = cpu_seconds();
    for (;;) {
        size_t length = receive_all(socket, body, config->size + 8);
        uint64_t now = now_ns(), due;
        sequence = sequence_of(body);
        if (!intact(body, length, config->size)) {
            tally.corrupted++;
            expected++;
            continue;
        }
        if (sequence == FINISH)
            break;
        if (tally.received++ == 0)
            tally.first_ns = now;
        tally.last_ns = now;
        if (sequence == expected)
            expected++;
        else
            tally_sequence(&tally, sequence, &expected);
        memcpy(&due, body + 8, 8);
        if (sequence >= skipped && taken < count)
            samples_ns[taken++] = now - due > UINT32_MAX ? UINT32_MAX : (uint32_t) (now - due);
    }
    result->cpu_seconds = cpu_seconds() - cpu;
    if (expected < count)
        tally.lost += count - expected;
    pthread_join(thread, NULL);
    result->seconds = (double) (tally.last_ns - tally.first_ns) / 1e9;
    result->messages = tally.received;
    result_tally(result, &tally);
    result_quantiles(result, samples_ns, taken);
    free(body);
    free(samples_ns);
    zmq_close(socket);
    zmq_ctx_term(context);
}
