/* raw-bench: the speed of the system with the same messages and no messaging library in between: the limit for a library.
 *
 *   raw-bench --mode stream|copied|objects|pipe|blocking|handover|untouched|malloc and the options of zmq-bench (README.md)
 *
 *   stream     push_pull, router_router: bodies one after the other in writes of up to 64 KiB; tcp and ipc (a Unix stream), and for
 *              push_pull over inproc a copy of each body within one thread. req_rep: both ends spin on non-blocking reads. latency: the
 *              receiver spins (raw_latency.c). fan_out: raw_fan_out.c. crowd_publish, crowd_route: raw_crowd.c
 *   copied     push_pull as in stream, but one function call at either end copies each body: from the sender's memory into a frame,
 *              and from the frame into the receiver's memory. This is the minimum for an interface with a call per message.
 *              inproc: into a ring in memory, where the other thread sees the body when the call returns. router_router: one more call
 *              at either end, which looks up the receiver's name, or returns the sender's name. fan_out, inproc: one such ring, from
 *              which each receiver copies. crowd_route: each name is looked up among those of the crowd
 *   objects    like copied, with separate memory for each body (no name), allocated and freed at either end. This is the minimum for
 *              an interface of message objects
 *   pipe       push_pull through a pipe, for ipc
 *   handover   push_pull over inproc by reference: pointers to bodies in a ring from one thread to another, and back in a second one
 *   untouched  like handover, without stamps and checks
 *   malloc     like handover, but one thread allocates each body and the other frees it
 *   blocking   req_rep with both ends asleep in read; latency with the receiver asleep; oversubscribed, with its pairs of processes
 *              and its busy loops
 *
 * In stream, copied, objects and pipe the sender can be a separate process (--two-processes), except over inproc.
 * Bodies carry the same stamps and get the same checks as in zmq-bench. A mode reports missing features as "unsupported". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "raw.h"

enum mode mode = STREAM;
const char *transport = "";
size_t size;
uint64_t count, corrupted;
int millis, connections, subscribers = 1, pairs = 1, busy, rate, burst = 1, spinning, copied, named, near_end, far_end;

static const char *const modes[] = {"stream", "copied", "objects", "pipe", "blocking", "handover", "untouched", "malloc"};
static const char *pattern = "";
static int messages = 1; /* bodies of their own; no: buffers */
static int two_processes, timeout_s = 20;

static const struct {
    const char *name;
    int *value;
} numbers[] = {
    {"--millis", &millis}, {"--connections", &connections}, {"--subscribers", &subscribers}, {"--pairs", &pairs},
    {"--busy", &busy}, {"--rate", &rate}, {"--burst", &burst}, {"--timeout", &timeout_s},
};

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
    end_with("this mode has no such pattern, transport or option", "\"unsupported\":true,");
}

static void expired(int signal_number)
{
    static const char line[] = "{\"ok\":false,\"error\":\"hung: the watchdog ended it\"}\n";
    (void) signal_number;
    _exit(write(STDOUT_FILENO, line, sizeof line - 1) > 0 ? 3 : 4);
}

void connect_ends(void)
{
    if (mode == PIPE) {
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

static pthread_t sending_thread;
static pid_t sending_process;

void start_sender(void *(*run)(void *))
{
    if (!two_processes) {
        thread_start(&sending_thread, run, NULL);
        return;
    }
    sending_process = fork();
    if (sending_process < 0)
        fail("fork");
    if (sending_process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(far_end);
        run(NULL);
        _exit(0);
    }
    close(near_end);
}

void await_sender(void)
{
    int status = 0;

    if (!two_processes)
        pthread_join(sending_thread, NULL);
    else if (waitpid(sending_process, &status, 0) != sending_process || status != 0)
        fail("the sending process");
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

size_t read_some(int descriptor, unsigned char *into, size_t room)
{
    for (uint32_t tries = 1;; tries++) {
        ssize_t n = spinning ? recv(descriptor, into, room, MSG_DONTWAIT) : read(descriptor, into, room);
        if (n >= 0)
            return (size_t) n;
        if (errno != EAGAIN && errno != EINTR)
            fail("read");
        if (tries % 256 == 0)
            sched_yield();
    }
}

int read_body(int descriptor, unsigned char *into)
{
    for (size_t have = 0, n; have < size; have += n) {
        n = read_some(descriptor, into + have, size - have);
        if (n == 0)
            return 0;
    }
    return 1;
}

void print(uint64_t messages, double seconds, double cpu, const char *metrics)
{
    printf("{\"ok\":true,\"count\":%llu,\"messages\":%llu,\"seconds\":%.9f,\"cpu_seconds\":%.6f,\"lost\":0,"
           "\"reordered\":0,\"corrupted\":%llu,\"metrics\":{%s}}\n",
           (unsigned long long) messages, (unsigned long long) messages, seconds, cpu,
           (unsigned long long) corrupted, metrics);
}

void put_quantiles(char *text, size_t room, uint32_t *samples_ns, uint64_t samples)
{
    if (samples == 0)
        fail("no samples");
    sort_samples(samples_ns, samples);
    snprintf(text, room, "\"p50_us\":%.3f,\"p99_us\":%.3f", quantile_us(samples_ns, samples, 0.5),
             quantile_us(samples_ns, samples, 0.99));
}

static enum mode mode_of(const char *name)
{
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(name, modes[i]) == 0)
            return (enum mode) i;
    }
    fail("no such mode");
    return STREAM;
}

static int set_number(const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].name) == 0) {
            *numbers[i].value = atoi(value);
            return 1;
        }
    }
    return 0;
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *key = argv[i], *value;
        if (strcmp(key, "--two-processes") == 0) {
            two_processes = 1;
            continue;
        }
        if (i + 1 == argc)
            fail("an option lacks its value");
        value = argv[++i];
        if (strcmp(key, "--mode") == 0)
            mode = mode_of(value);
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
        else if (!set_number(key, value))
            unsupported();
    }
    if (size < 16)
        fail("--size must be at least 16 bytes");
}

/* push_pull and router_router. */
static void one_way(int router)
{
    int by_reference = mode >= HANDOVER, inproc = strcmp(transport, "inproc") == 0;
    char text[64];

    if (by_reference && (!inproc || !messages))
        unsupported();
    if ((mode == OBJECTS && !messages) || (inproc && two_processes))
        unsupported();
    if (router && !copied && (inproc || mode != STREAM))
        unsupported();
    named = router && copied;
    name_ends(RECEIVER, SENDER);
    double cpu = cpu_seconds();
    double seconds = by_reference ? hand_over() : !inproc || mode == PIPE ? stream() : copied ? copy_across() : copy();
    /* The sender's process has ended. */
    cpu = cpu_seconds() + cpu_of(RUSAGE_CHILDREN) - cpu;
    snprintf(text, sizeof text, "\"messages_per_second\":%.1f", (double) count / seconds);
    print(count, seconds, cpu, text);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    signal(SIGALRM, expired);
    alarm((unsigned) timeout_s);
    copied = mode == COPIED || mode == OBJECTS;
    int router = strcmp(pattern, "router_router") == 0, awake_or_asleep = mode == STREAM || mode == BLOCKING;
    if ((router || strcmp(pattern, "push_pull") == 0) && count > 1 && mode != BLOCKING) {
        one_way(router);
    } else if (two_processes) {
        unsupported();
    } else if (strcmp(pattern, "fan_out") == 0 && count > 1 && subscribers > 0 && (mode == STREAM || mode == COPIED)) {
        fan_out();
    } else if (strcmp(pattern, "req_rep") == 0 && count > 1 && awake_or_asleep) {
        spinning = mode == STREAM;
        round_trips();
    } else if (strcmp(pattern, "latency") == 0 && rate > 0 && burst > 0 && awake_or_asleep) {
        spinning = mode == STREAM;
        latency();
    } else if (strcmp(pattern, "oversubscribed") == 0 && mode == BLOCKING) {
        oversubscribed();
    } else if (strcmp(pattern, "crowd_route") == 0 && connections > 0 && millis > 0 && (mode == STREAM || mode == COPIED)) {
        crowd_of_dealers();
    } else if (strcmp(pattern, "crowd_publish") == 0 && connections > 0 && millis > 0 && mode == STREAM) {
        crowd_of_subscribers();
    } else {
        unsupported();
    }
    return 0;
}
