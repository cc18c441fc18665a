/* DEALER to ROUTER and back, with `--window` messages (100) in flight. Counts round
 * trips. The DEALER checks that the echoes arrive whole and in order. The ROUTER is a
 * thread, or a separate process at the far end. */
#include "bench.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct config *config;
static void *context;
static char endpoint[ENDPOINT_SIZE];
static double echo_cpu; /* from the first message after the greeting to the last */

static void *echo(void *socket)
{
    unsigned char id[256], *body = calloc(1, config->size + 8);
    uint64_t sequence = 0;

    if (body == NULL)
        fail("calloc");
    while (sequence != FINISH) {
        size_t id_length = receive_all(socket, id, sizeof id);
        size_t length = receive_all(socket, body, config->size + 8);
        sequence = sequence_of(body);
        if (sequence == HELLO)
            echo_cpu = cpu_seconds();
        else if (sequence == FINISH)
            echo_cpu = cpu_seconds() - echo_cpu;
        send_all(socket, id, id_length, ZMQ_SNDMORE);
        send_all(socket, body, length < config->size + 8 ? length : config->size + 8, 0);
    }
    free(body);
    zmq_close(socket);
    return NULL;
}

/* Process of the ROUTER: reports its endpoint, echoes, and returns the processor time
   of the echoes. */
static void echo_process(int control)
{
    context = context_open();
    void *router = open_and_bind(config, context, ZMQ_ROUTER, 0, endpoint);
    endpoint_tell(control, endpoint);
    echo(router);
    zmq_ctx_term(context);
    if (write(control, &echo_cpu, sizeof echo_cpu) != (ssize_t) sizeof echo_cpu)
        fail("hand-back");
    _exit(0);
}

static void put(void *socket, unsigned char *body, uint64_t sequence)
{
    stamp(body, config->size, sequence);
    send_all(socket, body, config->size, 0);
}

/* Receives the available messages; with `wait`, at least one. Returns their number. */
static uint64_t take(void *socket, unsigned char *body, struct tally *tally, uint64_t *expected, int wait)
{
    uint64_t taken = 0;
    int length;

    while ((length = zmq_recv(socket, body, config->size + 8, wait && taken == 0 ? 0 : ZMQ_DONTWAIT)) >= 0
           || errno == EINTR) {
        if (length < 0)
            continue;
        taken++;
        tally->received++;
        if (!intact(body, (size_t) length, config->size)) {
            tally->corrupted++;
            ++*expected;
        } else if (sequence_of(body) == *expected) {
            ++*expected;
        } else {
            tally_sequence(tally, sequence_of(body), expected);
        }
    }
    if (errno != EAGAIN)
        fail("zmq_recv");
    return taken;
}

void dealer_router_run(const struct config *of, struct result *result)
{
    pthread_t thread;
    static struct tally tally;
    pid_t child = 0;
    int control[2] = {-1, -1};
    uint64_t sent = 0, taken = 0, expected = 0, began, window = of->window > 0 ? (uint64_t) of->window : 100;
    double cpu;

    config = of;
    if (config->two_processes) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, control) != 0)
            fail("socketpair");
        child = side_fork(config);
        if (child == 0)
            echo_process(control[1]);
        close(control[1]);
    }
    context = context_open();
    if (config->two_processes)
        endpoint_learn(control[0], endpoint);
    else
        thread_start(&thread, echo, open_and_bind(config, context, ZMQ_ROUTER, 0, endpoint));
    void *dealer = open_and_connect(config, context, ZMQ_DEALER, endpoint);
    unsigned char *body = calloc(1, config->size + 8);
    if (body == NULL)
        fail("calloc");
    watchdog_watch(&tally);
    put(dealer, body, HELLO);
    receive_all(dealer, body, config->size + 8);

    cpu = cpu_seconds();
    began = now_ns();
    while (taken < config->count) {
        while (sent < config->count && sent - taken < window)
            put(dealer, body, sent++);
        taken += take(dealer, body, &tally, &expected, 1);
    }
    result->seconds = (double) (now_ns() - began) / 1e9;
    result->cpu_seconds = cpu_seconds() - cpu;
    result->messages = taken;
    result_tally(result, &tally);
    result_metric(result, "messages_per_second", (double) taken / result->seconds);
    put(dealer, body, FINISH);
    receive_all(dealer, body, config->size + 8);
    if (config->two_processes) {
        if (read(control[0], &echo_cpu, sizeof echo_cpu) != (ssize_t) sizeof echo_cpu)
            fail("hand-back");
        result->cpu_seconds += echo_cpu;
        waitpid(child, NULL, 0);
    } else {
        pthread_join(thread, NULL);
    }
    free(body);
    zmq_close(dealer);
    zmq_ctx_term(context);
}
