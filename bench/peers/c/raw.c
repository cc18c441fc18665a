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
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "raw.h"

enum mode mode = STREAM;
const char *transport = "";
size_t size;
uint64_t count, corrupted;
int millis, connections, pairs = 1, busy, spinning, copied, near_end, far_end;

static const char *const modes[] = {"stream", "copied", "objects", "pipe", "blocking", "handover", "untouched", "malloc"};
static const char *pattern = "";
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

void print(uint64_t messages, double seconds, double cpu, const char *metrics)
{
    printf("{\"ok\":true,\"count\":%llu,\"messages\":%llu,\"seconds\":%.9f,\"cpu_seconds\":%.6f,\"lost\":0,"
           "\"reordered\":0,\"corrupted\":%llu,\"metrics\":{%s}}\n",
           (unsigned long long) messages, (unsigned long long) messages, seconds, cpu,
           (unsigned long long) corrupted, metrics);
}

void put_quantiles(char *text, size_t room, uint32_t *samples_ns, uint64_t samples)
{
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

int main(int argc, char **argv)
{
    int timeout = 20;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
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
    copied = mode == COPIED || mode == OBJECTS;
    if (strcmp(pattern, "push_pull") == 0 && count > 1 && mode != BLOCKING) {
        char text[64];
        double cpu = cpu_seconds();
        int by_reference = mode >= HANDOVER, inproc = strcmp(transport, "inproc") == 0;
        if ((by_reference && (!inproc || !messages)) || (copied && (inproc || size > 255)) || (mode == OBJECTS && !messages))
            unsupported();
        double seconds = by_reference ? hand_over() : inproc && mode == STREAM ? copy() : stream();
        cpu = cpu_seconds() - cpu;
        snprintf(text, sizeof text, "\"messages_per_second\":%.1f", (double) count / seconds);
        print(count, seconds, cpu, text);
    } else if (strcmp(pattern, "req_rep") == 0 && count > 1 && (mode == BLOCKING || mode == STREAM)) {
        spinning = mode == STREAM;
        round_trips();
    } else if (strcmp(pattern, "oversubscribed") == 0 && mode == BLOCKING) {
        oversubscribed();
    } else if (strcmp(pattern, "crowd_route") == 0 && connections > 0 && millis > 0 && mode == STREAM) {
        crowd_of_dealers();
    } else if (strcmp(pattern, "crowd_publish") == 0 && connections > 0 && millis > 0 && mode == STREAM) {
        crowd_of_subscribers();
    } else {
        unsupported();
    }
    return 0;
}
