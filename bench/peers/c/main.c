/* zmq-bench: one run of one cell on the libzmq.so.5 that the loader found; prints one JSON line.
 *
 *   zmq-bench --pattern NAME --transport tcp|ipc|inproc|ws --size BYTES --count N|--millis N
 *             [--api buffers|messages] [--two-processes] [--timeout SECONDS] [--OPTION VALUE ...]
 *             [--near-address IP --far-address IP --far-netns NAME]   (sides.c)
 *
 * The table below has the patterns, and `options` their options. Each pattern's file describes it.
 * Exit codes: 0 a result, 1 usage, 2 an error, 3 ended by the watchdog; the last two print a JSON line too. */
#define _GNU_SOURCE
#include "bench.h"
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static struct config config = {.api = "buffers", .subscribers = 1, .timeout_s = 20, .burst = 1,
                               .connections = 100, .pairs = 1, .senders = 1, .nodes = 20, .topics = 1,
                               .match = 100, .hwm = -1,
                               .near_address = "127.0.0.1", .far_address = "127.0.0.1"};

static const struct {
    const char *name;
    enum pattern pattern;
    void (*run)(const struct config *, struct result *);
    int timed;      /* lasts --millis instead of --count messages */
    size_t smallest; /* body that holds all it must */
} patterns[] = {
    {"push_pull", PUSH_PULL, ends_run, 0, 16},
    {"router_router", ROUTER_ROUTER, ends_run, 0, 16},
    {"pub_sub", PUB_SUB, ends_run, 0, 16},
    {"fan_out", FAN_OUT, ends_run, 0, 16},
    {"req_rep", REQ_REP, ends_run, 0, 16},
    {"one_way", ONE_WAY, ends_run, 0, 16},
    {"dealer_router", DEALER_ROUTER, dealer_router_run, 0, 16},
    {"filter", FILTER, filter_run, 0, 32},
    {"fan_in", FAN_IN, streams_run, 0, 16},
    {"scaling", SCALING, streams_run, 0, 16},
    {"in_turn", IN_TURN, in_turn_run, 0, 16},
    {"latency", LATENCY, latency_run, 1, 24},
    {"oversubscribed", OVERSUBSCRIBED, oversubscribed_run, 1, 16},
    {"ring", RING, ring_run, 1, 24},
    {"crowd_publish", CROWD_PUBLISH, crowd_publish_run, 1, 16},
    {"crowd_route", CROWD_ROUTE, crowd_route_run, 1, 16},
    {"crowd_idle", CROWD_IDLE, crowd_route_run, 1, 16},
    {"handshakes", HANDSHAKES, handshakes_run, 1, 16},
};

static const struct {
    const char *name;
    size_t at;
    int least, most;
} options[] = {
    {"--subscribers", offsetof(struct config, subscribers), 1, MAX_SUBSCRIBERS},
    {"--timeout", offsetof(struct config, timeout_s), 1, 3600},
    {"--millis", offsetof(struct config, millis), 1, 600000},
    {"--window", offsetof(struct config, window), 0, 900},
    {"--rate", offsetof(struct config, rate), 1, 10000000},
    {"--burst", offsetof(struct config, burst), 1, 1000},
    {"--connections", offsetof(struct config, connections), 1, 9000},
    {"--stuck", offsetof(struct config, stuck), 0, 100},
    {"--pairs", offsetof(struct config, pairs), 1, MAX_SUBSCRIBERS},
    {"--senders", offsetof(struct config, senders), 1, MAX_SUBSCRIBERS},
    {"--busy", offsetof(struct config, busy), 0, 64},
    {"--nodes", offsetof(struct config, nodes), 2, MAX_SUBSCRIBERS},
    {"--hwm", offsetof(struct config, hwm), 0, 1000000},
    {"--topics", offsetof(struct config, topics), 1, 1000000},
    {"--match", offsetof(struct config, match), 1, 100},
    {"--monitor", offsetof(struct config, monitor), 0, 1},
    {"--curve", offsetof(struct config, curve), 0, 1},
    {"--plain", offsetof(struct config, plain), 0, 1},
    {"--filled", offsetof(struct config, filled), 0, 1},
    {"--tls", offsetof(struct config, tls), 0, 1},
};

static void usage(const char *why)
{
    fprintf(stderr,
            "zmq-bench: %s\nusage: zmq-bench --pattern NAME --transport tcp|ipc|inproc|ws --size BYTES "
            "--count N|--millis N [--api buffers|messages] [--two-processes] [--timeout SECONDS] "
            "[--OPTION VALUE ...]\n",
            why);
    exit(1);
}

static int set_option(const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(key, options[i].name) != 0)
            continue;
        int number = atoi(value);
        if (number < options[i].least || number > options[i].most)
            usage("a number is out of range");
        *(int *) ((char *) &config + options[i].at) = number;
        return 1;
    }
    return 0;
}

/* Bytes that the messages of a run may occupy without a high-water mark, and the bytes that a message takes beside its
   body, as an estimate. */
#define MOST_BYTES (UINT64_C(1) << 30)
#define BESIDE_BODY 128

/* Without a high-water mark, all messages of a run may be queued at once, at the sender or at each receiver. So this
   bounds their number. */
static void bound_count(void)
{
    uint64_t most = MOST_BYTES / ((config.size + BESIDE_BODY) * (uint64_t) config.subscribers);

    if (config.hwm == 0 && config.count > most)
        config.count = most > 2 ? most : 2;
}

/* Returns the pattern's row. */
static size_t parse(int argc, char **argv)
{
    size_t row = 0;

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
        else if (strcmp(key, "--near-address") == 0)
            config.near_address = value;
        else if (strcmp(key, "--far-address") == 0)
            config.far_address = value;
        else if (strcmp(key, "--far-netns") == 0)
            config.far_netns = value;
        else if (strcmp(key, "--size") == 0)
            config.size = strtoull(value, NULL, 10);
        else if (strcmp(key, "--count") == 0)
            config.count = strtoull(value, NULL, 10);
        else if (!set_option(key, value))
            usage("an unknown option");
    }
    if (config.pattern_name == NULL || config.transport == NULL)
        usage("--pattern and --transport are needed");
    while (strcmp(config.pattern_name, patterns[row].name) != 0) {
        if (++row == sizeof patterns / sizeof *patterns)
            usage("unknown pattern");
    }
    config.pattern = patterns[row].pattern;
    if (strcmp(config.transport, "tcp") != 0 && strcmp(config.transport, "ipc") != 0
        && strcmp(config.transport, "inproc") != 0 && strcmp(config.transport, "ws") != 0)
        usage("unknown transport");
    config.messages = strcmp(config.api, "messages") == 0;
    if (!config.messages && strcmp(config.api, "buffers") != 0)
        usage("--api must be buffers or messages");
    if (config.size < patterns[row].smallest || config.size > (1u << 30))
        usage("--size is too small for the data that both ends need for the checks");
    if (patterns[row].timed ? config.millis < 1 : config.count < 2)
        usage(patterns[row].timed ? "--millis is needed" : "--count must be at least 2");
    if (config.pattern != FAN_OUT && config.pattern != IN_TURN && config.subscribers != 1)
        usage("--subscribers works only with fan_out and in_turn");
    if (config.hwm >= 0 && config.pattern > FAN_OUT)
        usage("--hwm works only with push_pull, router_router, pub_sub and fan_out");
    if (config.filled && config.pattern > ONE_WAY)
        usage("--filled works only with push_pull, router_router, pub_sub, fan_out, req_rep and one_way");
    bound_count();
    if (config.pattern == LATENCY && config.rate < 1)
        usage("--rate is needed");
    if (config.two_processes && (strcmp(config.transport, "inproc") == 0 || config.pattern > DEALER_ROUTER))
        usage("--two-processes works neither with inproc nor with this pattern");
    if (config.pattern == RING && strcmp(config.transport, "inproc") == 0)
        usage("a ring of processes works only between processes");
    if (config.far_netns != NULL && (!config.two_processes || strcmp(config.transport, "tcp") != 0))
        usage("--far-netns needs --two-processes and --transport tcp");
    if (config.curve && (strcmp(config.transport, "inproc") == 0 || config.pattern >= CROWD_PUBLISH)
        && config.pattern != HANDSHAKES)
        usage("this pattern or transport cannot use a security mechanism");
    if (config.plain && (config.pattern != HANDSHAKES || config.curve || strcmp(config.transport, "inproc") == 0))
        usage("--plain works only with handshakes and without --curve");
    if (config.tls && (config.curve || strcmp(config.transport, "tcp") != 0))
        usage("TLS works only over tcp, and without CURVE");
    if (config.tls && zmq_has("tls+tcp") != 1) {
        if (zmq_has("tautline"))
            usage("the library was built without TLS: cargo build --release -p tautline-libzmq --features tls");
        config.tls = 0;
        config.curve = 1;
    }
    return row;
}

int main(int argc, char **argv)
{
    struct result result = {0};
    struct rlimit files;
    size_t row = parse(argc, argv);

    /* A crowd needs more descriptors than a shell gives. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    watchdog_start(&config);
    if (strcmp(config.transport, "ipc") == 0) {
        snprintf(config.directory, sizeof config.directory, "/tmp/zmq-bench-XXXXXX");
        if (mkdtemp(config.directory) == NULL)
            fail("mkdtemp");
    }
    security_prepare(&config);
    patterns[row].run(&config, &result);
    remove_directory();
    result_print(&result, &config);
    return 0;
}
