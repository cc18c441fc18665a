/* calibrate: measures the current speed of this machine, without any messaging
 * library. Prints one JSON line.
 *
 * calibrate [--ms N] [--line-only]
 *
 * - line_ns: one-way time of a cache line between two threads (a virtual machine may
 *   alternate between about 50 and 200)
 * - tcp_mb_s: raw loopback TCP, one way, 64 KiB writes, blocking
 * - ping_pong_us: one round trip of 64 bytes over loopback TCP, both ends spinning on
 *   non-blocking reads, median
 *
 * Each part lasts about N milliseconds (default 20). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 65536
#define SMALL 64
#define MAX_SAMPLES 65536

static uint64_t part_ns = 20000000;
static int near_end, far_end; /* a connected loopback TCP pair */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void fail(const char *what)
{
    printf("{\"ok\":false,\"error\":\"calibrate: %s: %s\"}\n", what, strerror(errno));
    exit(2);
}

/* Moves the caller to the `which`-th available processor, so that two spinning threads
 * never share one. With a single processor, they share it and stay there. */
static void pin(int which)
{
    static cpu_set_t allowed;
    cpu_set_t one;
    if (CPU_COUNT(&allowed) == 0)
        sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < 2)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && which-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
            return;
        }
    }
}

static pthread_t start(void *(*run)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        fail("pthread_create");
    return thread;
}

/* ---- cache line ---- */

static _Alignas(128) _Atomic uint32_t ball;
static _Atomic int line_stop;
static uint64_t line_end; /* set before the second thread starts */

/* Waits until the ball is `want`. Yields sometimes, so that a machine with one free
   core makes progress. Returns 0 if the time is over. */
static int await_ball(uint32_t want)
{
    for (uint32_t tries = 1; atomic_load_explicit(&ball, memory_order_acquire) != want; tries++) {
        if (tries % 4096 == 0) {
            if (atomic_load(&line_stop) || now_ns() > line_end)
                return 0;
            sched_yield();
        }
    }
    return 1;
}

static void *line_far(void *unused)
{
    (void) unused;
    pin(1);
    for (uint32_t i = 1; await_ball(i); i += 2)
        atomic_store_explicit(&ball, i + 1, memory_order_release);
    return NULL;
}

static double line_ns(void)
{
    enum { BATCH = 100 };
    double best = 1e9;
    uint32_t at = 0;
    int goes_on = 1;
    line_end = now_ns() + 10 * part_ns;
    pthread_t far = start(line_far);
    /* Best of several batches, because a batch that another thread interrupts is
     * worthless. On a busy machine the two threads seldom run at the same time. Then the
     * exchanges within the time must suffice. */
    for (int batch = 0; batch < 60 && goes_on; batch++) {
        uint64_t began = now_ns();
        int done = 0;
        while (done < BATCH && goes_on) {
            atomic_store_explicit(&ball, at + 1, memory_order_release);
            at += 2;
            goes_on = await_ball(at);
            done++;
        }
        if (goes_on || batch == 0) {
            double each = (double) (now_ns() - began) / (2.0 * done);
            best = each < best ? each : best;
        }
    }
    atomic_store(&line_stop, 1);
    pthread_join(far, NULL);
    return best;
}

/* ---- loopback TCP ---- */

static void connect_pair(void)
{
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
}

static void *stream_near(void *unused)
{
    static char chunk[CHUNK];
    uint64_t end = now_ns() + part_ns;
    (void) unused;
    while (now_ns() < end) {
        if (write(near_end, chunk, sizeof chunk) < 0)
            fail("write");
    }
    shutdown(near_end, SHUT_WR);
    return NULL;
}

static double tcp_mb_s(void)
{
    static char chunk[CHUNK];
    uint64_t bytes = 0, first = 0, last;
    ssize_t n;
    connect_pair();
    pthread_t near = start(stream_near);
    while ((n = read(far_end, chunk, sizeof chunk)) > 0) {
        if (first == 0)
            first = now_ns();
        else
            bytes += (uint64_t) n;
    }
    last = now_ns();
    pthread_join(near, NULL);
    close(near_end);
    close(far_end);
    return (double) bytes / 1e6 / ((double) (last - first) / 1e9);
}

/* Reads one small message without ever sleeping. Returns 0 at the end of the stream. */
static int read_spinning(int descriptor, char *into)
{
    size_t have = 0;
    uint32_t tries = 0;
    while (have < SMALL) {
        ssize_t n = recv(descriptor, into + have, SMALL - have, MSG_DONTWAIT);
        if (n > 0)
            have += (size_t) n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return 0;
        else if (++tries % 256 == 0)
            sched_yield();
    }
    return 1;
}

static void *echo_far(void *unused)
{
    char small[SMALL];
    (void) unused;
    pin(1);
    while (read_spinning(far_end, small)) {
        if (send(far_end, small, SMALL, MSG_NOSIGNAL) != SMALL)
            break;
    }
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return (x > y) - (x < y);
}

static double ping_pong_us(void)
{
    static uint32_t samples[MAX_SAMPLES];
    char small[SMALL] = {0};
    uint64_t before, end;
    size_t count = 0;

    connect_pair();
    pthread_t far = start(echo_far);
    before = now_ns();
    end = before + part_ns;
    while (before < end && count < MAX_SAMPLES) {
        uint64_t after;
        if (send(near_end, small, SMALL, MSG_NOSIGNAL) != SMALL || !read_spinning(near_end, small))
            fail("ping-pong");
        after = now_ns();
        samples[count++] = (uint32_t) (after - before);
        before = after;
    }
    shutdown(near_end, SHUT_WR);
    pthread_join(far, NULL);
    close(near_end);
    close(far_end);
    qsort(samples, count, sizeof *samples, ascending);
    return samples[count / 2] / 1e3;
}

int main(int argc, char **argv)
{
    int only_line = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--line-only") == 0) {
            only_line = 1;
        } else if (strcmp(argv[i], "--ms") == 0 && i + 1 < argc) {
            part_ns = strtoull(argv[++i], NULL, 10) * 1000000u;
        } else {
            fprintf(stderr, "usage: calibrate [--ms N] [--line-only]\n");
            return 1;
        }
    }
    alarm(300 + 3 * (unsigned) (part_ns / 1000000000u));
    double stream = only_line ? 0 : tcp_mb_s(); /* first, so that the scheduler places its two threads */
    pin(0);
    printf("{\"ok\":true,\"line_ns\":%.1f", line_ns());
    if (!only_line)
        printf(",\"tcp_mb_s\":%.1f,\"ping_pong_us\":%.2f", stream, ping_pong_us());
    printf("}\n");
    return 0;
}
