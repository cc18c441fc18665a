/* Patterns with one sender and its receivers: threads of one process, or the sender in
   a separate process. */
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <float.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct end sender, receivers[MAX_SUBSCRIBERS];
static int sender_control[MAX_SUBSCRIBERS], receiver_control[MAX_SUBSCRIBERS];
static const struct config *config;

/* Returns true if each message has an answer, and is a sample. */
static int is_trip(void)
{
    return config->pattern == REQ_REP || config->pattern == ONE_WAY;
}

static void *run_sender(void *unused)
{
    (void) unused;
    if (is_trip())
        round_trip_request(&sender);
    else
        flow_send(&sender);
    return NULL;
}

static void *run_receiver(void *end)
{
    if (is_trip())
        round_trip_reply(end);
    else
        flow_receive(end);
    return NULL;
}

/* Result of a sender in a separate process. */
struct handback {
    struct tally tally;
    double cpu_start;
};

/* Process of the sender: sends, returns its tally (and samples), and ends. */
static void sender_process(int out)
{
    struct handback back;
    const char *bytes = (const char *) sender.samples_ns;
    size_t left = sender.samples_ns != NULL ? config->count * sizeof *sender.samples_ns : 0;

    sender.context = context_open();
    watchdog_watch(&sender.tally);
    run_sender(NULL);
    zmq_ctx_term(sender.context);
    back.tally = sender.tally;
    back.cpu_start = sender.cpu_start;
    if (write(out, &back, sizeof back) != (ssize_t) sizeof back)
        fail("hand-back");
    while (left > 0) {
        ssize_t n = write(out, bytes, left);
        if (n <= 0)
            fail("hand-back");
        bytes += n;
        left -= (size_t) n;
    }
    _exit(0);
}

static void read_all(int from, void *into, size_t left)
{
    char *at = into;
    while (left > 0) {
        ssize_t n = read(from, at, left);
        if (n <= 0) {
            errno = 0;
            fail("the sending process ended early");
        }
        at += n;
        left -= (size_t) n;
    }
}

static void run(void)
{
    pthread_t threads[MAX_SUBSCRIBERS], sending;
    int pipe_ends[2] = {-1, -1};
    pid_t child = 0;

    if (config->two_processes) {
        if (pipe(pipe_ends) != 0)
            fail("pipe");
        child = side_fork(config);
        if (child == 0)
            sender_process(pipe_ends[1]);
        close(pipe_ends[1]);
        for (int i = 0; i < config->subscribers; i++)
            close(sender_control[i]);
    }
    void *context = context_open();
    for (int i = 0; i < config->subscribers; i++) {
        receivers[i].context = context;
        watchdog_watch(&receivers[i].tally);
        if (pthread_create(&threads[i], NULL, run_receiver, &receivers[i]) != 0)
            fail("pthread_create");
    }
    if (!config->two_processes) {
        sender.context = context;
        if (is_trip())
            watchdog_watch(&sender.tally);
        if (pthread_create(&sending, NULL, run_sender, NULL) != 0)
            fail("pthread_create");
        pthread_join(sending, NULL);
    }
    for (int i = 0; i < config->subscribers; i++)
        pthread_join(threads[i], NULL);
    if (zmq_ctx_term(context) != 0)
        fail("zmq_ctx_term");
    if (config->two_processes) {
        struct handback back;
        read_all(pipe_ends[0], &back, sizeof back);
        if (sender.samples_ns != NULL)
            read_all(pipe_ends[0], sender.samples_ns, config->count * sizeof *sender.samples_ns);
        sender.tally = back.tally;
        sender.cpu_start = back.cpu_start;
        waitpid(child, NULL, 0);
    }
}


static void account_for(struct result *result)
{
    uint64_t first = UINT64_MAX, last = 0;
    double cpu_start = DBL_MAX, cpu_end = 0;

    result_tally(result, &sender.tally);
    for (int i = 0; i < config->subscribers; i++) {
        const struct tally *t = &receivers[i].tally;
        result_tally(result, t);
        first = t->first_ns < first ? t->first_ns : first;
        last = t->last_ns > last ? t->last_ns : last;
        cpu_end = t->cpu_end > cpu_end ? t->cpu_end : cpu_end;
        cpu_start = receivers[i].cpu_start < cpu_start ? receivers[i].cpu_start : cpu_start;
    }
    if (is_trip()) {
        first = sender.tally.first_ns;
        last = sender.tally.last_ns;
        result->messages = config->count;
        if (!config->two_processes)
            cpu_end = sender.tally.cpu_end;
        result_quantiles(result, sender.samples_ns, config->count);
    } else {
        result->messages = (config->count - 1) * (uint64_t) config->subscribers;
    }
    result->seconds = (double) (last - first) / 1e9;
    /* With one process: from just before the first send to the end of the last
       receiver. With two processes: the sum of their parts. */
    result->cpu_seconds = config->two_processes
                              ? cpu_end - cpu_start + (sender.tally.cpu_end - sender.cpu_start)
                              : cpu_end - sender.cpu_start;
    if (!is_trip())
        result_metric(result, "messages_per_second", (double) result->messages / result->seconds);
}

void ends_run(const struct config *of, struct result *result)
{
    config = of;
    if (is_trip()) {
        sender.samples_ns = calloc(config->count, sizeof *sender.samples_ns);
        if (sender.samples_ns == NULL)
            fail("calloc");
    }
    for (int i = 0; i < config->subscribers; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
            fail("socketpair");
        sender_control[i] = pair[0];
        receiver_control[i] = pair[1];
        receivers[i].config = config;
        receivers[i].control = &receiver_control[i];
    }
    sender.config = config;
    sender.control = sender_control;
    run();
    account_for(result);
}
