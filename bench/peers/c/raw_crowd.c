/* A crowd (crowd.h) over plain sockets: the rate at which one thread can send to it,
 * and the speed of its answers.
 *
 * - publish: the same messages to each: encoded once, written to one connection after
 *   the other, 64 KiB at a time
 * - in turn: one message to each connection in turn; a connection's output is written
 *   when 4 KiB of it are buffered
 * - copied: each message by two calls, one that looks up the connection's name, and
 *   one that copies the message into its frame
 * - echo: one write for each message, and one read for its echo, by epoll; the other
 *   end also answers message by message
 *
 * In the first two, the other end is the same process as with a library: it parses the
 * frames and checks each message. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "raw.h"
#include "crowd.h"

#define IN_TURN 4096

static void allow_many_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        fail("getrlimit");
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* ---- a crowd that speaks ZMTP ---- */

/* Endpoint for the crowd. The directory must be removed. */
static int listen_for_crowd(char *endpoint, char *directory)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    socklen_t length = sizeof address;
    int tcp = strcmp(transport, "tcp") == 0, listener = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);

    if (!tcp && strcmp(transport, "ipc") != 0)
        unsupported();
    if (tcp) {
        if (bind(listener, (struct sockaddr *) &address, sizeof address) != 0
            || getsockname(listener, (struct sockaddr *) &address, &length) != 0)
            fail("bind");
        snprintf(endpoint, ENDPOINT_SIZE, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
    } else {
        strcpy(directory, "/tmp/raw-crowd-XXXXXX");
        if (mkdtemp(directory) == NULL)
            fail("mkdtemp");
        snprintf(path.sun_path, sizeof path.sun_path, "%s/here", directory);
        if (bind(listener, (struct sockaddr *) &path, sizeof path) != 0)
            fail("bind");
        snprintf(endpoint, ENDPOINT_SIZE, "ipc://%s", path.sun_path);
    }
    if (listen(listener, 1024) != 0)
        fail("listen");
    return listener;
}

/* Exchanges greeting and READY, and reads the first frame of every member of a crowd. */
static void greet(int descriptor, const char *type)
{
    unsigned char text[320] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1, 'N', 'U', 'L', 'L'};
    size_t length = strlen(type);
    unsigned char *ready = text + 64;

    memcpy(ready, "\4\0\5READY\13Socket-Type\0\0\0", 23);
    ready[23] = (unsigned char) length;
    memcpy(ready + 24, type, length);
    ready[1] = (unsigned char) (22 + length);
    write_all(descriptor, text, 64 + 24 + length);
    read_all(descriptor, text, 64);
    for (int frame = 0; frame < 2; frame++) {
        read_all(descriptor, text, 2);
        read_all(descriptor, text + 2, text[1]);
    }
}

static int *gather(struct crowd *crowd, const struct config *config, enum crowd_kind kind, char *directory)
{
    char endpoint[ENDPOINT_SIZE];
    int *ends = calloc((size_t) connections, sizeof *ends);
    const int one = 1;

    if (ends == NULL)
        fail("calloc");
    allow_many_files();
    crowd_start(crowd, config, kind);
    int listener = listen_for_crowd(endpoint, directory);
    crowd_connect(crowd, endpoint);
    for (int i = 0; i < connections; i++) {
        ends[i] = accept(listener, NULL, NULL);
        if (ends[i] < 0)
            fail("accept");
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        greet(ends[i], kind == CROWD_SUBSCRIBERS ? "XPUB" : "ROUTER");
    }
    close(listener);
    if (*directory != 0) {
        char path[64];
        snprintf(path, sizeof path, "%s/here", directory);
        unlink(path);
        rmdir(directory);
    }
    usleep(20000);
    return ends;
}

static size_t frame_length(void)
{
    return size + (size > 255 ? 9 : 2);
}

static void put_frame(unsigned char *at, uint64_t sequence)
{
    size_t head = frame_length() - size;

    at[0] = size > 255 ? 2 : 0;
    for (size_t i = 1; i < head; i++)
        at[i] = (unsigned char) (size >> 8 * (head - 1 - i));
    stamp(at + head, size, sequence);
}

static uint64_t publish(const int *ends, uint64_t end)
{
    size_t frame = frame_length(), batch = CHUNK / frame > 0 ? CHUNK / frame : 1;
    unsigned char *chunk = calloc(batch, frame);
    uint64_t sent = 0;

    if (chunk == NULL)
        fail("calloc");
    while (now_ns() < end) {
        for (size_t i = 0; i < batch; i++)
            put_frame(chunk + i * frame, sent++);
        for (int i = 0; i < connections; i++)
            write_all(ends[i], chunk, batch * frame);
    }
    free(chunk);
    return sent;
}

static uint64_t in_turn(const int *ends, uint64_t end)
{
    size_t frame = frame_length(), batch = IN_TURN / frame > 0 ? IN_TURN / frame : 1;
    unsigned char *chunks = calloc((size_t) connections * batch, frame), *body = calloc(1, size), name[CROWD_ID];
    uint64_t sent = 0;

    if (chunks == NULL || body == NULL)
        fail("calloc");
    names_open(connections);
    do {
        size_t place = (size_t) (sent++ % batch);
        stamp(body, size, sent - 1);
        for (int i = 0; i < connections; i++) {
            int to = i;
            if (copied) {
                crowd_id(name, (uint32_t) i);
                to = find_name(name);
            }
            unsigned char *chunk = chunks + (size_t) to * batch * frame;
            if (copied)
                put_copy(chunk + place * frame, body, size);
            else
                put_frame(chunk + place * frame, sent - 1);
            if (place + 1 == batch)
                write_all(ends[to], chunk, batch * frame);
        }
    } while (now_ns() < end || sent % batch != 0);
    names_close();
    free(body);
    free(chunks);
    return sent;
}

/* Sends for `millis`. Returns the number of received messages per second. */
static double flood(enum crowd_kind kind, uint64_t *messages, double *seconds, double *cpu)
{
    struct config config = {.size = size, .connections = connections};
    struct crowd crowd;
    struct result result = {0};
    char directory[32] = {0};
    int *ends = gather(&crowd, &config, kind, directory);

    *cpu = cpu_seconds();
    uint64_t began = now_ns(), end = began + (uint64_t) millis * 1000000u;
    uint64_t sent = kind == CROWD_SUBSCRIBERS ? publish(ends, end) : in_turn(ends, end);
    *messages = sent * (uint64_t) connections;
    crowd_await(&crowd, *messages);
    *cpu = cpu_seconds() - *cpu;
    *seconds = (double) (atomic_load(&crowd.shared->last_ns) - began) / 1e9;
    crowd_end(&crowd, &result);
    corrupted += result.corrupted + result.lost + result.reordered;
    for (int i = 0; i < connections; i++)
        close(ends[i]);
    free(ends);
    return (double) *messages / *seconds;
}

void crowd_of_subscribers(void)
{
    uint64_t messages;
    double seconds, cpu, rate = flood(CROWD_SUBSCRIBERS, &messages, &seconds, &cpu);
    char text[64];

    snprintf(text, sizeof text, "\"messages_per_second\":%.1f", rate);
    print(messages, seconds, cpu, text);
}

/* ---- echoes ---- */

static int watch(const int *ends)
{
    int set = epoll_create1(0);
    for (int i = 0; i < connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = ends[i]};
        if (epoll_ctl(set, EPOLL_CTL_ADD, ends[i], &event) != 0)
            fail("epoll_ctl");
    }
    return set;
}

/* Reads a body from each end that has one. Returns their number. */
static int take_ready(int set, unsigned char *body, int send_back, uint64_t expected)
{
    struct epoll_event events[256];
    int ready = epoll_wait(set, events, sizeof events / sizeof *events, -1);
    for (int i = 0; i < ready; i++) {
        int end = events[i].data.fd;
        if (!read_body(end, body))
            _exit(0);
        if (send_back)
            write_all(end, body, size);
        else
            corrupted += !intact(body, size, size) || sequence_of(body) != expected;
    }
    return ready > 0 ? ready : 0;
}

static double echoes(void)
{
    int *here = calloc((size_t) connections, sizeof *here), *there = calloc((size_t) connections, sizeof *there);
    unsigned char *body = calloc(1, size);
    uint64_t rounds = 0;

    if (here == NULL || there == NULL || body == NULL)
        fail("calloc");
    for (int i = 0; i < connections; i++) {
        connect_ends();
        /* Read all sent data before the close, so that no TIME-WAIT remains. */
        setsockopt(near_end, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
        setsockopt(far_end, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
        here[i] = near_end;
        there[i] = far_end;
    }
    pid_t peers = fork();
    if (peers < 0)
        fail("fork");
    if (peers == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int set = watch(there);;)
            take_ready(set, body, 1, 0);
    }
    int set = watch(here);
    uint64_t began = now_ns(), end = began + (uint64_t) millis * 1000000u;
    for (; now_ns() < end; rounds++) {
        stamp(body, size, rounds);
        for (int i = 0; i < connections; i++)
            write_all(here[i], body, size);
        for (int left = connections; left > 0;)
            left -= take_ready(set, body, 0, rounds);
    }
    double seconds = (double) (now_ns() - began) / 1e9;
    kill(peers, SIGKILL);
    waitpid(peers, NULL, 0);
    return (double) rounds * connections / seconds;
}

void crowd_of_dealers(void)
{
    uint64_t messages;
    double seconds, cpu, rate = flood(CROWD_DEALERS, &messages, &seconds, &cpu);
    char text[128];

    snprintf(text, sizeof text, "\"messages_per_second\":%.1f,\"echoes_per_second\":%.1f", rate, echoes());
    print(messages, seconds, cpu, text);
}
