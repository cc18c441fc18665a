/* zmq-bench: one run of one cell on the libzmq.so.5 that the loader found; prints one JSON line.
 *
 *   zmq-bench --pattern push_pull|router_router|pub_sub|fan_out|req_rep --transport tcp|ipc|inproc --size BYTES
 *             --count N [--api buffers|messages] [--subscribers N] [--two-processes] [--timeout SECONDS]
 *
 * Exit codes: 0 a result, 1 usage, 2 an error, 3 ended by the watchdog; the last two print a JSON line too. */
#define _GNU_SOURCE
#include "bench.h"
#include <dlfcn.h>
#include <errno.h>
#include <float.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct config config = {.api = "buffers", .subscribers = 1, .timeout_s = 20};
static struct end sender, receivers[MAX_SUBSCRIBERS];
static int sender_control[MAX_SUBSCRIBERS], receiver_control[MAX_SUBSCRIBERS];

static void usage(const char *why)
{
    fprintf(stderr,
            "zmq-bench: %s\nusage: zmq-bench --pattern push_pull|router_router|pub_sub|fan_out|req_rep "
            "--transport tcp|ipc|inproc --size BYTES --count N [--api buffers|messages] [--subscribers N] "
            "[--two-processes] [--timeout SECONDS]\n",
            why);
    exit(1);
}

static void parse(int argc, char **argv)
{
    static const char *const names[] = {"push_pull", "router_router", "pub_sub", "fan_out", "req_rep"};

    for (int i = 1; i < argc; i++) {
        const char *key = argv[i], *value;
        if (strcmp(key, "--two-processes") == 0) {
            config.two_processes = 1;
            continue;
        }
        if (i + 1 == argc)
            usage("an option lacks its value");
        value = argv[++i];
        if (strcmp(key, "--pattern") == 0)
            config.pattern_name = value;
        else if (strcmp(key, "--transport") == 0)
            config.transport = value;
        else if (strcmp(key, "--api") == 0)
            config.api = value;
        else if (strcmp(key, "--size") == 0)
            config.size = strtoull(value, NULL, 10);
        else if (strcmp(key, "--count") == 0)
            config.count = strtoull(value, NULL, 10);
        else if (strcmp(key, "--subscribers") == 0)
            config.subscribers = atoi(value);
        else if (strcmp(key, "--timeout") == 0)
            config.timeout_s = atoi(value);
        else
            usage("an unknown option");
    }
    if (config.pattern_name == NULL || config.transport == NULL)
        usage("--pattern and --transport are needed");
    for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
        if (i == sizeof names / sizeof *names)
            usage("no such pattern");
        if (strcmp(config.pattern_name, names[i]) == 0) {
            config.pattern = (enum pattern) i;
            break;
        }
    }
    if (strcmp(config.transport, "tcp") != 0 && strcmp(config.transport, "ipc") != 0
        && strcmp(config.transport, "inproc") != 0)
        usage("no such transport");
    config.messages = strcmp(config.api, "messages") == 0;
    if (!config.messages && strcmp(config.api, "buffers") != 0)
        usage("--api is buffers or messages");
    if (config.size < 16 || config.size > (1u << 30))
        usage("--size is 16 bytes or more: both ends carry 8 bytes to check");
    if (config.count < 2)
        usage("--count is 2 or more");
    if (config.pattern != FAN_OUT && config.subscribers != 1)
        usage("--subscribers belongs to fan_out");
    if (config.subscribers < 1 || config.subscribers > MAX_SUBSCRIBERS)
        usage("--subscribers is 1 to 64");
    if (config.two_processes && strcmp(config.transport, "inproc") == 0)
        usage("inproc has one process");
}

static void *run_sender(void *unused)
{
    (void) unused;
    if (config.pattern == REQ_REP)
        round_trip_request(&sender);
    else
        flow_send(&sender);
    return NULL;
}

static void *run_receiver(void *end)
{
    if (config.pattern == REQ_REP)
        round_trip_reply(end);
    else
        flow_receive(end);
    return NULL;
}

static void *new_context(void)
{
    void *context = zmq_ctx_new();
    if (context == NULL)
        fail("zmq_ctx_new");
    return context;
}

/* What a sender in its own process hands back. */
struct handback {
    struct tally tally;
    double cpu_start;
};

/* The sender's process: sends, hands back its tally (and samples), and ends. */
static void sender_process(int out)
{
    struct handback back;
    const char *bytes = (const char *) sender.samples_ns;
    size_t left = sender.samples_ns != NULL ? config.count * sizeof *sender.samples_ns : 0;

    sender.context = new_context();
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

    if (config.two_processes) {
        if (pipe(pipe_ends) != 0)
            fail("pipe");
        child = fork();
        if (child < 0)
            fail("fork");
        watchdog_start(&config); /* an alarm does not survive the fork */
        if (child == 0)
            sender_process(pipe_ends[1]);
        close(pipe_ends[1]);
        for (int i = 0; i < config.subscribers; i++)
            close(sender_control[i]);
    }
    void *context = new_context();
    for (int i = 0; i < config.subscribers; i++) {
        receivers[i].context = context;
        watchdog_watch(&receivers[i].tally);
        if (pthread_create(&threads[i], NULL, run_receiver, &receivers[i]) != 0)
            fail("pthread_create");
    }
    if (!config.two_processes) {
        sender.context = context;
        if (config.pattern == REQ_REP)
            watchdog_watch(&sender.tally);
        if (pthread_create(&sending, NULL, run_sender, NULL) != 0)
            fail("pthread_create");
        pthread_join(sending, NULL);
    }
    for (int i = 0; i < config.subscribers; i++)
        pthread_join(threads[i], NULL);
    if (zmq_ctx_term(context) != 0)
        fail("zmq_ctx_term");
    if (config.two_processes) {
        struct handback back;
        read_all(pipe_ends[0], &back, sizeof back);
        if (sender.samples_ns != NULL)
            read_all(pipe_ends[0], sender.samples_ns, config.count * sizeof *sender.samples_ns);
        sender.tally = back.tally;
        sender.cpu_start = back.cpu_start;
        waitpid(child, NULL, 0);
    }
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return (x > y) - (x < y);
}

static double quantile_us(const uint32_t *sorted, uint64_t count, double q)
{
    uint64_t at = (uint64_t) (q * (double) (count - 1) + 0.5);
    return sorted[at] / 1e3;
}

/* Path of the library that zmq_version() comes from: proof of which one this run measured. */
static const char *library_path(void)
{
    static char path[PATH_MAX];
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "zmq_version");
    if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fname == NULL
        || realpath(info.dli_fname, path) == NULL)
        return "unknown";
    return path;
}

static void report(void)
{
    char head[512];
    uint64_t lost = sender.tally.lost, reordered = sender.tally.reordered, corrupted = sender.tally.corrupted;
    uint64_t first = UINT64_MAX, last = 0, messages;
    double cpu_start = DBL_MAX, cpu_end = 0, cpu, seconds;
    int major, minor, patch;

    for (int i = 0; i < config.subscribers; i++) {
        const struct tally *t = &receivers[i].tally;
        lost += t->lost;
        reordered += t->reordered;
        corrupted += t->corrupted;
        first = t->first_ns < first ? t->first_ns : first;
        last = t->last_ns > last ? t->last_ns : last;
        cpu_end = t->cpu_end > cpu_end ? t->cpu_end : cpu_end;
        cpu_start = receivers[i].cpu_start < cpu_start ? receivers[i].cpu_start : cpu_start;
    }
    if (config.pattern == REQ_REP) {
        first = sender.tally.first_ns;
        last = sender.tally.last_ns;
        messages = config.count;
        if (!config.two_processes)
            cpu_end = sender.tally.cpu_end;
    } else {
        messages = (config.count - 1) * (uint64_t) config.subscribers;
    }
    seconds = (double) (last - first) / 1e9;
    /* One process: from just before the first send to the end of the last receiver. Two: the sum of their parts. */
    cpu = config.two_processes ? cpu_end - cpu_start + (sender.tally.cpu_end - sender.cpu_start)
                               : cpu_end - sender.cpu_start;

    zmq_version(&major, &minor, &patch);
    json_head(head, sizeof head, &config);
    printf("{\"ok\":true,%s,\"library\":\"%s\",\"version\":\"%d.%d.%d\",\"messages\":%llu,\"seconds\":%.9f,"
           "\"cpu_seconds\":%.6f,\"lost\":%llu,\"reordered\":%llu,\"corrupted\":%llu,\"metrics\":{",
           head, library_path(), major, minor, patch, (unsigned long long) messages, seconds, cpu,
           (unsigned long long) lost, (unsigned long long) reordered, (unsigned long long) corrupted);
    if (config.pattern == REQ_REP) {
        qsort(sender.samples_ns, config.count, sizeof *sender.samples_ns, ascending);
        printf("\"p50_us\":%.3f,\"p99_us\":%.3f", quantile_us(sender.samples_ns, config.count, 0.5),
               quantile_us(sender.samples_ns, config.count, 0.99));
    } else {
        printf("\"messages_per_second\":%.1f", (double) messages / seconds);
    }
    printf("}}\n");
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    watchdog_start(&config);
    if (strcmp(config.transport, "ipc") == 0) {
        snprintf(config.directory, sizeof config.directory, "/tmp/zmq-bench-XXXXXX");
        if (mkdtemp(config.directory) == NULL)
            fail("mkdtemp");
    }
    if (config.pattern == REQ_REP) {
        sender.samples_ns = calloc(config.count, sizeof *sender.samples_ns);
        if (sender.samples_ns == NULL)
            fail("calloc");
    }
    for (int i = 0; i < config.subscribers; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
            fail("socketpair");
        sender_control[i] = pair[0];
        receiver_control[i] = pair[1];
        receivers[i].config = &config;
        receivers[i].control = &receiver_control[i];
    }
    sender.config = &config;
    sender.control = sender_control;
    run();
    remove_directory();
    report();
    return 0;
}
