/* raw-bench: what the system does with the same messages when no messaging library is between; the limit for one.
 *
 *   raw-bench --mode stream|copied|objects|pipe|blocking|handover|untouched|malloc and the options of zmq-bench (README.md)
 *
 *   stream     push_pull: bodies one after the other in writes of up to 64 KiB; tcp and ipc (a Unix stream), and for inproc
 *              a copy of each body within one thread. req_rep: both ends spin on non-blocking reads. crowd_publish, crowd_route:
 *              raw_crowd.c
 *   copied     push_pull as stream, but each body is copied out of the sender's memory into a frame and out of it into the
 *              receiver's, by one function call at either end: what an interface with a call for each message has to do at least
 *   objects    the same with memory of its own for each body, allocated and freed at either end: what an interface of message
 *              objects has to do at least
 *   pipe       push_pull through a pipe, for ipc
 *   handover   push_pull over inproc by reference: pointers to bodies in a ring from one thread to another, and back in a second one;
 *              untouched: the same without stamps and checks; malloc: each body is allocated by one thread and freed by the other
 *   blocking   req_rep with both ends asleep in read; oversubscribed, its pairs of processes and busy loops
 *
 * Bodies carry the same stamps and are checked alike. What a mode has not, it says ("unsupported"). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "raw.h"

#define RING (2u << 20)

const char *transport = "";
size_t size;
uint64_t corrupted;
int millis, connections, near_end, far_end;

/* The head of a short frame. */
#define FRAME 2

static const char *mode = "stream", *pattern = "";
static uint64_t count;
static int pairs = 1, busy, spinning, copied, objects; /* objects are copied, too */
static int messages = 1; /* bodies of their own; no: buffers */

static void end_with(const char *what, const char *kind)
{
    printf("{\"ok\":false,%s\"error\":\"raw: %s: %s\"}\n", kind, what, errno ? strerror(errno) : "-");
    fflush(stdout);
    _exit(2);
}

void fail(const char *what)
{
    end_with(what, "");
}

void unsupported(void)
{
    errno = 0;
    end_with("this mode has no such pattern or transport", "\"unsupported\":true,");
}

static void expired(int signal_number)
{
    static const char line[] = "{\"ok\":false,\"error\":\"hung: the watchdog ended it\"}\n";
    (void) signal_number;
    _exit(write(STDOUT_FILENO, line, sizeof line - 1) > 0 ? 3 : 4);
}

void connect_ends(void)
{
    if (strcmp(mode, "pipe") == 0) {
        int ends[2];
        if (strcmp(transport, "ipc") != 0)
            unsupported();
        if (pipe(ends) != 0)
            fail("pipe");
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        far_end = ends[0];
        near_end = ends[1];
    } else if (strcmp(transport, "ipc") == 0) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
            fail("socketpair");
        near_end = ends[0];
        far_end = ends[1];
    } else if (strcmp(transport, "tcp") == 0) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
        if (listener < 0 || bind(listener, (struct sockaddr *) &address, sizeof address) != 0
            || listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *) &address, &length) != 0)
            fail("listen");
        near_end = socket(AF_INET, SOCK_STREAM, 0);
        if (near_end < 0 || connect(near_end, (struct sockaddr *) &address, sizeof address) != 0)
            fail("connect");
        far_end = accept(listener, NULL, NULL);
        if (far_end < 0)
            fail("accept");
        close(listener);
        setsockopt(near_end, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(far_end, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    } else {
        unsupported();
    }
}

void write_all(int descriptor, const unsigned char *from, size_t length)
{
    while (length > 0) {
        ssize_t n = write(descriptor, from, length);
        if (n <= 0)
            fail("write");
        from += n;
        length -= (size_t) n;
    }
}

int read_body(int descriptor, unsigned char *into)
{
    size_t have = 0;
    uint32_t tries = 0;

    while (have < size) {
        ssize_t n = spinning ? recv(descriptor, into + have, size - have, MSG_DONTWAIT)
                             : read(descriptor, into + have, size - have);
        if (n > 0)
            have += (size_t) n;
        else if (n == 0)
            return 0;
        else if (errno != EAGAIN && errno != EINTR)
            fail("read");
        else if (++tries % 256 == 0)
            sched_yield();
    }
    return 1;
}

/* Calls that the compiler does not see through, as those of a library. */
__attribute__((noinline)) static void put_copy(unsigned char *at, const unsigned char *body)
{
    at[0] = 0;
    at[1] = (unsigned char) size;
    memcpy(at + FRAME, body, size);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static size_t take_copy(const unsigned char *at, unsigned char *body)
{
    size_t length = at[1];
    memcpy(body, at + FRAME, length);
    __asm__ volatile("" ::: "memory");
    return length;
}

/* Memory for one body, and its end: of each, or of all. */
static unsigned char *open_body(unsigned char *common)
{
    unsigned char *body = objects ? malloc(size) : common;
    if (body == NULL)
        fail("malloc");
    return body;
}

static void close_body(unsigned char *body)
{
    if (objects)
        free(body);
}

static void *stream_away(void *unused)
{
    size_t head = copied ? FRAME : 0, each = size + head, batch = CHUNK / each > 0 ? CHUNK / each : 1;
    unsigned char *chunk = calloc(batch, each), *body = calloc(1, size);

    (void) unused;
    if (chunk == NULL || body == NULL)
        fail("calloc");
    for (uint64_t sent = 0; sent < count;) {
        size_t now = count - sent < batch ? (size_t) (count - sent) : batch;
        for (size_t i = 0; i < now; i++) {
            unsigned char *from = copied ? open_body(body) : chunk + i * each;
            stamp(from, size, sent + i);
            if (copied) {
                put_copy(chunk + i * each, from);
                close_body(from);
            }
        }
        write_all(near_end, chunk, now * each);
        sent += now;
    }
    free(body);
    free(chunk);
    return NULL;
}

static double stream(void)
{
    pthread_t thread;
    size_t each = size + (copied ? FRAME : 0), room = CHUNK + each, have = 0;
    unsigned char *buffer = malloc(room), *body = malloc(size);
    uint64_t expected = 0, first = 0;

    connect_ends();
    if (buffer == NULL || body == NULL || pthread_create(&thread, NULL, stream_away, NULL) != 0)
        fail("starting");
    while (expected < count) {
        ssize_t n = read(far_end, buffer + have, room - have);
        if (n <= 0)
            fail("read");
        have += (size_t) n;
        if (first == 0)
            first = now_ns();
        size_t at = 0;
        for (; have - at >= each; at += each, expected++) {
            unsigned char *came = copied ? open_body(body) : buffer + at;
            size_t length = copied ? take_copy(buffer + at, came) : size;
            corrupted += !intact(came, length, size) || sequence_of(came) != expected;
            if (copied)
                close_body(came);
        }
        have -= at;
        memmove(buffer, buffer + at, have);
    }
    double seconds = (double) (now_ns() - first) / 1e9;
    pthread_join(thread, NULL);
    free(body);
    free(buffer);
    return seconds;
}

/* Into one place after the other, so that it does not all happen in the nearest cache. */
static double copy(void)
{
    unsigned char *ring = calloc(1, RING + size), *body = calloc(1, size), *out = calloc(1, size);
    size_t at = 0;

    if (ring == NULL || body == NULL || out == NULL)
        fail("calloc");
    uint64_t began = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        stamp(body, size, i);
        memcpy(ring + at, body, size);
        __asm__ volatile("" ::: "memory");
        memcpy(out, ring + at, size);
        corrupted += !intact(out, size, size);
        at = at + size < RING ? at + size : 0;
    }
    return (double) (now_ns() - began) / 1e9;
}

/* Pointers from one thread to another. What the two write lies on lines of their own, and each looks at the other's only when it must. */
#define PLACES 1024
static struct way {
    _Alignas(128) _Atomic uint64_t given;
    uint64_t taken_then;
    _Alignas(128) _Atomic uint64_t taken;
    uint64_t given_then;
    _Alignas(128) unsigned char *place[PLACES];
} there, back;

static void give(struct way *way, unsigned char *body)
{
    uint64_t at = atomic_load_explicit(&way->given, memory_order_relaxed);
    for (uint32_t tries = 1; at - way->taken_then >= PLACES; tries++) {
        way->taken_then = atomic_load_explicit(&way->taken, memory_order_acquire);
        if (tries % 4096 == 0)
            sched_yield();
    }
    way->place[at % PLACES] = body;
    atomic_store_explicit(&way->given, at + 1, memory_order_release);
}

static unsigned char *take(struct way *way)
{
    uint64_t at = atomic_load_explicit(&way->taken, memory_order_relaxed);
    for (uint32_t tries = 1; at == way->given_then; tries++) {
        way->given_then = atomic_load_explicit(&way->given, memory_order_acquire);
        if (tries % 4096 == 0)
            sched_yield();
    }
    unsigned char *body = way->place[at % PLACES];
    atomic_store_explicit(&way->taken, at + 1, memory_order_release);
    return body;
}

static void *hand_away(void *unused)
{
    /* As many bodies as are on their way with a blocking sender over inproc, but enough for both to have work. */
    uint64_t bodies = RING / size > 256 ? 256 : RING / size > 32 ? RING / size : 32;
    int fresh = strcmp(mode, "malloc") == 0, touched = strcmp(mode, "untouched") != 0;

    (void) unused;
    for (uint64_t i = 0; i < count; i++) {
        unsigned char *body = fresh ? malloc(size) : i < bodies ? calloc(1, size) : take(&back);
        if (body == NULL)
            fail("malloc");
        if (touched)
            stamp(body, size, i);
        give(&there, body);
    }
    return NULL;
}

static double hand_over(void)
{
    pthread_t thread;
    uint64_t first = 0;
    int fresh = strcmp(mode, "malloc") == 0, touched = strcmp(mode, "untouched") != 0;

    if (pthread_create(&thread, NULL, hand_away, NULL) != 0)
        fail("starting");
    for (uint64_t i = 0; i < count; i++) {
        unsigned char *body = take(&there);
        if (first == 0)
            first = now_ns();
        if (touched)
            corrupted += !intact(body, size, size) || sequence_of(body) != i;
        if (fresh)
            free(body);
        else
            give(&back, body);
    }
    double seconds = (double) (now_ns() - first) / 1e9;
    pthread_join(thread, NULL);
    return seconds;
}

static void *echo(void *unused)
{
    unsigned char *body = malloc(size);
    (void) unused;
    while (body != NULL && read_body(far_end, body))
        write_all(far_end, body, size);
    free(body);
    return NULL;
}

static int trip(unsigned char *body, uint64_t sequence)
{
    stamp(body, size, sequence);
    write_all(near_end, body, size);
    return read_body(near_end, body) && intact(body, size, size) && sequence_of(body) == sequence;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return (x > y) - (x < y);
}

void print(uint64_t messages, double seconds, double cpu, const char *metrics)
{
    printf("{\"ok\":true,\"count\":%llu,\"messages\":%llu,\"seconds\":%.9f,\"cpu_seconds\":%.6f,\"lost\":0,"
           "\"reordered\":0,\"corrupted\":%llu,\"metrics\":{%s}}\n",
           (unsigned long long) messages, (unsigned long long) messages, seconds, cpu,
           (unsigned long long) corrupted, metrics);
}

static void round_trips(void)
{
    pthread_t thread;
    unsigned char *body = calloc(1, size);
    uint32_t *samples = calloc(count, sizeof *samples);
    char text[128];

    connect_ends();
    if (body == NULL || samples == NULL || pthread_create(&thread, NULL, echo, NULL) != 0)
        fail("starting");
    for (uint64_t i = 0; i < count / 10; i++)
        trip(body, i);
    double cpu = cpu_seconds();
    uint64_t began = now_ns(), before = began;
    for (uint64_t i = 0; i < count; i++) {
        corrupted += !trip(body, i);
        uint64_t after = now_ns();
        samples[i] = after - before > UINT32_MAX ? UINT32_MAX : (uint32_t) (after - before);
        before = after;
    }
    cpu = cpu_seconds() - cpu;
    qsort(samples, count, sizeof *samples, ascending);
    snprintf(text, sizeof text, "\"p50_us\":%.3f,\"p99_us\":%.3f", samples[(count - 1) / 2] / 1e3,
             samples[(uint64_t) ((double) (count - 1) * 0.99)] / 1e3);
    print(count, (double) (before - began) / 1e9, cpu, text);
}

/* ---- oversubscribed ---- */

static struct shared {
    _Atomic int ready, go;
    _Atomic uint64_t trips, bad, cpu_us, samples;
    uint32_t sample[1 << 22];
} *shared;

static void pair_process(void)
{
    pthread_t thread;
    unsigned char *body = calloc(1, size);
    uint64_t trips = 0, bad = 0;

    connect_ends();
    if (body == NULL || pthread_create(&thread, NULL, echo, NULL) != 0)
        fail("starting");
    trip(body, HELLO);
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->go))
        usleep(200);
    double cpu = cpu_seconds();
    uint64_t before = now_ns(), end = before + (uint64_t) millis * 1000000u;
    while (before < end) {
        bad += !trip(body, trips++);
        uint64_t after = now_ns(), at = atomic_fetch_add(&shared->samples, 1);
        if (at < sizeof shared->sample / sizeof *shared->sample)
            shared->sample[at] = (uint32_t) (after - before);
        before = after;
    }
    atomic_fetch_add(&shared->cpu_us, (uint64_t) ((cpu_seconds() - cpu) * 1e6));
    atomic_fetch_add(&shared->trips, trips);
    atomic_fetch_add(&shared->bad, bad);
    _exit(0);
}

static pid_t start(int works)
{
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (works)
        pair_process();
    for (volatile uint64_t turns = 0;; turns++) {
    }
}

static void oversubscribed(void)
{
    pid_t working[MAX_SUBSCRIBERS], idling[MAX_SUBSCRIBERS];
    char text[160];

    if (pairs > MAX_SUBSCRIBERS || busy > MAX_SUBSCRIBERS || millis < 1)
        unsupported();
    shared = shared_memory(sizeof *shared);
    for (int i = 0; i < pairs; i++)
        working[i] = start(1);
    while (atomic_load(&shared->ready) < pairs)
        usleep(1000);
    for (int i = 0; i < busy; i++)
        idling[i] = start(0);
    usleep(20000);
    atomic_store(&shared->go, 1);
    for (int i = 0; i < pairs; i++) {
        int status = 0;
        waitpid(working[i], &status, 0);
        if (status != 0)
            fail("a pair failed");
    }
    for (int i = 0; i < busy; i++) {
        kill(idling[i], SIGKILL);
        waitpid(idling[i], NULL, 0);
    }
    uint64_t samples = atomic_load(&shared->samples), most = sizeof shared->sample / sizeof *shared->sample;
    samples = samples < most ? samples : most;
    if (samples == 0)
        fail("no round trip");
    qsort(shared->sample, samples, sizeof *shared->sample, ascending);
    corrupted = atomic_load(&shared->bad);
    snprintf(text, sizeof text, "\"messages_per_second\":%.1f,\"p50_us\":%.3f,\"p99_us\":%.3f",
             (double) atomic_load(&shared->trips) * 1e3 / millis, shared->sample[(samples - 1) / 2] / 1e3,
             shared->sample[(uint64_t) ((double) (samples - 1) * 0.99)] / 1e3);
    print(atomic_load(&shared->trips), millis / 1e3, (double) atomic_load(&shared->cpu_us) / 1e6, text);
}

int main(int argc, char **argv)
{
    int timeout = 20;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (strcmp(key, "--mode") == 0)
            mode = value;
        else if (strcmp(key, "--pattern") == 0)
            pattern = value;
        else if (strcmp(key, "--transport") == 0)
            transport = value;
        else if (strcmp(key, "--size") == 0)
            size = strtoull(value, NULL, 10);
        else if (strcmp(key, "--count") == 0)
            count = strtoull(value, NULL, 10);
        else if (strcmp(key, "--api") == 0)
            messages = strcmp(value, "messages") == 0;
        else if (strcmp(key, "--millis") == 0)
            millis = atoi(value);
        else if (strcmp(key, "--pairs") == 0)
            pairs = atoi(value);
        else if (strcmp(key, "--busy") == 0)
            busy = atoi(value);
        else if (strcmp(key, "--connections") == 0)
            connections = atoi(value);
        else if (strcmp(key, "--timeout") == 0)
            timeout = atoi(value);
    }
    if (size < 16)
        fail("--size is 16 bytes or more");
    signal(SIGALRM, expired);
    alarm((unsigned) timeout);
    objects = strcmp(mode, "objects") == 0;
    copied = objects || strcmp(mode, "copied") == 0;
    int blocking = strcmp(mode, "blocking") == 0, push_pull = strcmp(pattern, "push_pull") == 0;
    if (push_pull && count > 1 && !blocking) {
        char text[64];
        double cpu = cpu_seconds();
        int by_reference = strcmp(mode, "stream") != 0 && strcmp(mode, "pipe") != 0 && !copied, inproc = strcmp(transport, "inproc") == 0;
        if ((by_reference && (!inproc || !messages)) || (copied && (inproc || size > 255 || (objects && !messages))))
            unsupported();
        double seconds = by_reference ? hand_over() : inproc && strcmp(mode, "stream") == 0 ? copy() : stream();
        cpu = cpu_seconds() - cpu;
        snprintf(text, sizeof text, "\"messages_per_second\":%.1f", (double) count / seconds);
        print(count, seconds, cpu, text);
    } else if (strcmp(pattern, "req_rep") == 0 && count > 1 && (blocking || strcmp(mode, "stream") == 0)) {
        spinning = !blocking;
        round_trips();
    } else if (strcmp(pattern, "oversubscribed") == 0 && blocking) {
        oversubscribed();
    } else if (strcmp(pattern, "crowd_route") == 0 && connections > 0 && millis > 0 && strcmp(mode, "stream") == 0) {
        crowd_of_dealers();
    } else if (strcmp(pattern, "crowd_publish") == 0 && connections > 0 && millis > 0 && strcmp(mode, "stream") == 0) {
        crowd_of_subscribers();
    } else {
        unsupported();
    }
    return 0;
}
