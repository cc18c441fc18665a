/* Shared declarations of zmq-bench: the run's configuration, the check of every
 * message, and errors.
 *
 * zmq-bench is one program that uses only the public zmq.h. It is compiled once and
 * runs on the libzmq.so.5 that the loader finds, so LD_LIBRARY_PATH alone selects the
 * library. See ../../README.md for its command line. */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#ifndef WITHOUT_ZMQ
#include <zmq.h>
#endif

#define MAX_SUBSCRIBERS 64
#define ENDPOINT_SIZE 256

/* Sequence numbers that are not data: the first message of a connection, and the one
   after the last. */
#define HELLO UINT64_MAX
#define FINISH (UINT64_MAX - 1)

enum pattern {
    PUSH_PULL,
    ROUTER_ROUTER,
    PUB_SUB,
    FAN_OUT,
    REQ_REP,
    ONE_WAY,
    DEALER_ROUTER, /* the last pattern that can have its ends in two processes */
    FILTER,
    FAN_IN,
    SCALING,
    IN_TURN,
    LATENCY,
    OVERSUBSCRIBED,
    RING,
    CROWD_PUBLISH,
    CROWD_ROUTE,
    CROWD_IDLE,
    HANDSHAKES
};

struct config {
    enum pattern pattern;
    const char *pattern_name;
    const char *transport;
    const char *api;
    size_t size;
    uint64_t count;
    int subscribers;
    int filled;        /* the sender writes every word of a body, and the receiver checks every word */
    int messages;      /* api: zmq_msg_* instead of zmq_send and zmq_recv */
    int two_processes; /* the far end, which sends (the ROUTER of dealer_router), is a separate process */
    int timeout_s;
    /* Options of single patterns. */
    int millis;      /* duration of a timed pattern */
    int window;      /* messages in flight; 0: the pattern's default */
    int rate, burst; /* bursts per second, messages in each */
    int connections, stuck;
    int pairs, busy, senders, nodes;
    int hwm;           /* high-water mark of both ends, 0: none; -1: the library's default */
    int topics, match; /* subscriptions, and per cent of the messages that match one */
    int monitor;       /* monitor the events of every socket */
    int curve;         /* with CURVE: 1 */
    int plain;         /* handshakes: with PLAIN and a handler that admits all clients: 1 */
    int tls;           /* by TLS: 1; a libzmq without TLS uses CURVE instead */
    const char *near_address, *far_address; /* bind addresses of the ends over tcp and ws */
    const char *far_netns; /* the network namespace that the far end moves to; NULL: it stays here */
    char directory[64]; /* of the ipc endpoint; empty otherwise */
};

/* Results of one receiving end. `received` is volatile because the watchdog reads it
   from its signal handler. */
struct tally {
    volatile uint64_t received;
    uint64_t lost, reordered, corrupted;
    uint64_t first_ns, last_ns;
    double cpu_end;
};

/* One end of a run: its configuration, the control descriptor to the other end, and
 * its tally. The control descriptor carries the endpoint, then one byte each for
 * "ready" and "done". It is never used while the clock runs. */
struct end {
    const struct config *config;
    void *context;
    int *control; /* the sender has one per receiver, a receiver has one */
    struct tally tally;
    double cpu_start; /* of the whole process, just before the clock can start */
    uint32_t *samples_ns; /* round trips only */
};

/* Result of a run. */
#define MAX_METRICS 8
struct result {
    uint64_t messages, lost, reordered, corrupted;
    double seconds, cpu_seconds;
    int metric_count;
    struct {
        const char *name;
        double value;
    } metrics[MAX_METRICS];
};

/* The patterns: one run each. */
void ends_run(const struct config *config, struct result *result);
void dealer_router_run(const struct config *config, struct result *result);
void filter_run(const struct config *config, struct result *result);
void streams_run(const struct config *config, struct result *result);
void in_turn_run(const struct config *config, struct result *result);
void latency_run(const struct config *config, struct result *result);
void oversubscribed_run(const struct config *config, struct result *result);
void ring_run(const struct config *config, struct result *result);
void crowd_publish_run(const struct config *config, struct result *result);
void crowd_route_run(const struct config *config, struct result *result);
void handshakes_run(const struct config *config, struct result *result);

/* report.c */
void result_metric(struct result *result, const char *name, double value);
void result_quantiles(struct result *result, uint32_t *samples_ns, uint64_t count);
void result_tally(struct result *result, const struct tally *tally);
void result_print(const struct result *result, const struct config *config);

/* flow.c */
void flow_send(struct end *end);
void flow_receive(struct end *end);
/* round_trip.c */
void round_trip_request(struct end *end);
void round_trip_reply(struct end *end);

/* watchdog.c */
void fail(const char *what);
void remove_directory(void);
void watchdog_start(const struct config *config);
void watchdog_watch(const struct tally *tally);
void json_head(char *text, size_t room, const struct config *config);

/* common.c */
void tally_sequence(struct tally *tally, uint64_t sequence, uint64_t *expected);
void wait_until(uint64_t due_ns);
void sort_samples(uint32_t *samples_ns, uint64_t count);
double quantile_us(const uint32_t *sorted_ns, uint64_t count, double q);
void thread_start(pthread_t *thread, void *(*run)(void *), void *of);
void *shared_memory(size_t size);

/* sides.c */
const char *side_address(const struct config *config);
/* Forks the far end, before any library state exists. Returns 0 in the far end, and
   its process id here. */
pid_t side_fork(const struct config *config);

/* setup.c */
void security_prepare(const struct config *config);
/* ZAP handler for PLAIN, in a separate thread. Start it before the first bind. It
   ends with the context. */
void security_serve(const struct config *config, void *context);
void *context_open(void);
void option(void *socket, int name, const void *value, size_t length, const char *what);
void option_int(void *socket, int name, int value, const char *what);
void send_all(void *socket, const void *data, size_t length, int flags);
size_t receive_all(void *socket, void *data, size_t room);
void *open_in(const struct config *config, void *context, int type);
void *open_and_bind(const struct config *config, void *context, int type, int number, char *endpoint);
void *open_and_connect(const struct config *config, void *context, int type, const char *endpoint);
void *socket_open(struct end *end, int type);
/* Endpoint that one end has bound, for the other end. */
void endpoint_tell(int control, const char *endpoint);
void endpoint_learn(int control, char *endpoint);
void socket_bind(struct end *end, void *socket, int peers);
void socket_connect(struct end *end, void *socket);
void control_put(int control, char byte);
void control_await(int control, char byte);

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static inline double cpu_of(int whom)
{
    struct rusage u;
    getrusage(whom, &u);
    return (double) (u.ru_utime.tv_sec + u.ru_stime.tv_sec)
           + (double) (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static inline double cpu_seconds(void)
{
    return cpu_of(RUSAGE_SELF);
}

static inline uint64_t tail_of(uint64_t sequence)
{
    return (sequence + 0x51ed270b2f1ca3d5u) * 0x9e3779b97f4a7c15u;
}

/* Writes the sequence number into the first 8 bytes, and a value derived from it into
   the last 8. */
static inline void stamp(unsigned char *body, size_t size, uint64_t sequence)
{
    uint64_t tail = tail_of(sequence);
    memcpy(body, &sequence, 8);
    memcpy(body + size - 8, &tail, 8);
}

static inline uint64_t sequence_of(const unsigned char *body)
{
    uint64_t sequence;
    memcpy(&sequence, body, 8);
    return sequence;
}

/* Number of the last word before the tail, plus 1. Word 0 is the sequence number. */
static inline size_t words_of(size_t size)
{
    return (size - 8) / 8;
}

/* Writes a body for `sequence`: its two ends, or with `filled` every word. A store to the body could change `config`, as far as the
 * compiler knows, so the loops below have their own copies of its fields. */
static inline void write_body(const struct config *config, unsigned char *body, uint64_t sequence)
{
    size_t words = config->filled ? words_of(config->size) : 0;

    for (size_t i = 1; i < words; i++) {
        uint64_t word = sequence + i;
        memcpy(body + 8 * i, &word, 8);
    }
    stamp(body, config->size, sequence);
}

/* Returns true if this is a whole message of this run whose two ends match. */
static inline int intact(const unsigned char *body, size_t length, size_t size)
{
    uint64_t tail;
    if (length != size)
        return 0;
    memcpy(&tail, body + size - 8, 8);
    return tail == tail_of(sequence_of(body));
}

/* Returns true if a message is intact, with `filled` in every word. */
static inline int body_is_right(const struct config *config, const unsigned char *body, size_t length)
{
    uint64_t wrong = 0, sequence;
    size_t words = config->filled ? words_of(length) : 0;

    if (!intact(body, length, config->size))
        return 0;
    sequence = sequence_of(body);
    for (size_t i = 1; i < words; i++) {
        uint64_t word;
        memcpy(&word, body + 8 * i, 8);
        wrong |= word ^ (sequence + i);
    }
    return wrong == 0;
}

#endif
