/* Process of a crowd (crowd.h): connects, greets, and then reads all input through one
   epoll set. */
#include "crowd.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK 65536
/* Number of connections before the first of them is greeted: below a listener's usual
   backlog. */
#define AT_ONCE 50

enum { MORE = 1, LONG = 2, COMMAND = 4 };

static const struct config *config;
static enum crowd_kind kind;
static struct crowd_shared *shared;

struct peer {
    int descriptor;
    uint64_t expected;
    size_t have; /* bytes of an unfinished frame */
    unsigned char *partial;
};

static void write_all(int descriptor, const void *data, size_t length)
{
    const char *at = data;
    while (length > 0) {
        ssize_t n = write(descriptor, at, length);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
            poll(&wait, 1, -1);
            continue;
        }
        if (n <= 0)
            fail("crowd: write");
        at += n;
        length -= (size_t) n;
    }
}

void read_all(int descriptor, void *into, size_t length)
{
    char *at = into;
    while (length > 0) {
        ssize_t n = read(descriptor, at, length);
        if (n <= 0) {
            errno = n == 0 ? 0 : errno;
            fail("crowd: read");
        }
        at += n;
        length -= (size_t) n;
    }
}

static int connect_to(const char *endpoint)
{
    const char *port = strrchr(endpoint, ':');
    const int one = 1;
    int descriptor;

    if (strncmp(endpoint, "tcp://", 6) == 0) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        address.sin_port = htons((uint16_t) atoi(port + 1));
        descriptor = socket(AF_INET, SOCK_STREAM, 0);
        if (descriptor < 0 || connect(descriptor, (struct sockaddr *) &address, sizeof address) != 0)
            fail("crowd: connect");
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        /* A crowd of thousands closes without TIME-WAIT. Otherwise, the system would
           soon run out of ports. */
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
        return descriptor;
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(endpoint) - strlen("ipc://") >= sizeof address.sun_path)
        fail("crowd: the path of the socket");
    strcpy(address.sun_path, endpoint + strlen("ipc://"));
    descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    if (descriptor < 0 || connect(descriptor, (struct sockaddr *) &address, sizeof address) != 0)
        fail("crowd: connect");
    return descriptor;
}

static unsigned char *property(unsigned char *at, const char *name, const void *value, size_t length)
{
    *at++ = (unsigned char) strlen(name);
    memcpy(at, name, strlen(name));
    at += strlen(name);
    memset(at, 0, 3);
    at[3] = (unsigned char) length;
    memcpy(at + 4, value, length);
    return at + 4 + length;
}

/* Sends greeting and READY together. */
static void introduce(const struct peer *peer, uint32_t number)
{
    unsigned char text[256] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1, 'N', 'U', 'L', 'L'};
    unsigned char *at = text + 64, id[CROWD_ID];

    *at = COMMAND;
    memcpy(at + 2, "\5READY", 6);
    unsigned char *end = at + 8;
    if (kind == CROWD_SUBSCRIBERS) {
        end = property(end, "Socket-Type", "SUB", 3);
    } else {
        crowd_id(id, number);
        end = property(end, "Socket-Type", "DEALER", 6);
        end = property(end, "Identity", id, sizeof id);
    }
    at[1] = (unsigned char) (end - at - 2);
    write_all(peer->descriptor, text, (size_t) (end - text));
}

/* Reads the other side's greeting and READY, then subscribes to all or sends hello. */
static void settle(const struct peer *peer)
{
    unsigned char text[256], head[2];

    read_all(peer->descriptor, text, 64);
    read_all(peer->descriptor, head, 2);
    read_all(peer->descriptor, text, head[1]);
    if (kind == CROWD_SUBSCRIBERS) {
        write_all(peer->descriptor, "\4\12\11SUBSCRIBE", 12);
    } else {
        unsigned char hello[18] = {0, 16};
        stamp(hello + 2, 16, HELLO);
        write_all(peer->descriptor, hello, sizeof hello);
    }
    if (fcntl(peer->descriptor, F_SETFL, O_NONBLOCK) != 0)
        fail("crowd: fcntl");
}

static void body_came(struct peer *peer, const unsigned char *body, size_t length)
{
    uint64_t sequence;

    if (!intact(body, length, config->size)) {
        atomic_fetch_add(&shared->corrupted, 1);
        peer->expected++;
        return;
    }
    sequence = sequence_of(body);
    if (sequence == peer->expected) {
        peer->expected++;
    } else {
        struct tally tally = {0};
        tally_sequence(&tally, sequence, &peer->expected);
        atomic_fetch_add(&shared->lost, tally.lost);
        atomic_fetch_add(&shared->reordered, tally.reordered);
    }
}

/* Parses the frames in `text`. Returns the number of bytes in whole frames, and counts
   messages. */
static size_t frames_came(struct peer *peer, const unsigned char *text, size_t length, uint64_t *messages)
{
    size_t at = 0;

    while (length - at >= 2) {
        const unsigned char *frame = text + at;
        size_t head = frame[0] & LONG ? 9 : 2;
        uint64_t body = frame[1];
        if (length - at < head)
            break;
        if (frame[0] & LONG) {
            body = 0;
            for (int i = 1; i < 9; i++)
                body = body << 8 | frame[i];
        }
        if (length - at - head < body)
            break;
        if (!(frame[0] & COMMAND)) {
            body_came(peer, frame + head, (size_t) body);
            ++*messages;
        }
        at += head + (size_t) body;
    }
    return at;
}

/* Reads once. An incomplete frame is kept for the next read. */
static void read_some(struct peer *peer, unsigned char *scratch, size_t room)
{
    uint64_t messages = 0;
    size_t whole, have = peer->have;

    memcpy(scratch, peer->partial, have);
    ssize_t n = read(peer->descriptor, scratch + have, room - have);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0)
        fail("crowd: read");
    if (n == 0) { /* the library closed: the end of the run */
        close(peer->descriptor);
        peer->descriptor = -1;
        return;
    }
    have += (size_t) n;
    whole = frames_came(peer, scratch, have, &messages);
    peer->have = have - whole;
    memcpy(peer->partial, scratch + whole, peer->have);
    if (messages > 0) {
        if (atomic_load(&shared->echo))
            write_all(peer->descriptor, scratch, whole);
        atomic_store(&shared->last_ns, now_ns());
        atomic_fetch_add(&shared->received, messages);
    }
}

static void live(int control)
{
    char endpoint[ENDPOINT_SIZE];
    size_t count = (size_t) config->connections, room = CHUNK + config->size + 16;
    struct peer *peers = calloc(count, sizeof *peers);
    unsigned char *scratch = malloc(room);
    struct epoll_event events[256];
    int set = epoll_create1(0);

    if (peers == NULL || scratch == NULL || set < 0)
        fail("crowd: setting up");
    read_all(control, endpoint, sizeof endpoint);
    for (size_t first = 0; first < count; first += AT_ONCE) {
        size_t end = first + AT_ONCE < count ? first + AT_ONCE : count;
        for (size_t i = first; i < end; i++) {
            peers[i].descriptor = connect_to(endpoint);
            introduce(&peers[i], (uint32_t) i);
        }
        for (size_t i = first; i < end; i++) {
            struct epoll_event event = {.events = EPOLLIN, .data.ptr = &peers[i]};
            settle(&peers[i]);
            peers[i].partial = malloc(config->size + 16);
            if (peers[i].partial == NULL)
                fail("crowd: malloc");
            /* A stuck member never reads. */
            if (i >= (size_t) config->stuck && epoll_ctl(set, EPOLL_CTL_ADD, peers[i].descriptor, &event) != 0)
                fail("crowd: epoll_ctl");
        }
    }
    for (;;) {
        int ready = epoll_wait(set, events, sizeof events / sizeof *events, -1);
        if (ready < 0 && errno != EINTR)
            fail("crowd: epoll_wait");
        for (int i = 0; i < ready; i++)
            read_some(events[i].data.ptr, scratch, room);
    }
}

void crowd_start(struct crowd *crowd, const struct config *of, enum crowd_kind what)
{
    int pair[2];

    config = crowd->config = of;
    kind = crowd->kind = what;
    shared = crowd->shared = shared_memory(sizeof *crowd->shared);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        fail("socketpair");
    crowd->control = pair[0];
    crowd->process = fork();
    if (crowd->process < 0)
        fail("fork");
    if (crowd->process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        live(pair[1]);
        _exit(0);
    }
    close(pair[1]);
}

void crowd_connect(struct crowd *crowd, const char *endpoint)
{
    char padded[ENDPOINT_SIZE] = {0};
    snprintf(padded, sizeof padded, "%s", endpoint);
    write_all(crowd->control, padded, sizeof padded);
}

void crowd_await(const struct crowd *crowd, uint64_t received)
{
    while (atomic_load(&crowd->shared->received) < received)
        usleep(50);
}

void crowd_end(struct crowd *crowd, struct result *result)
{
    kill(crowd->process, SIGKILL);
    waitpid(crowd->process, NULL, 0);
    result->lost += atomic_load(&crowd->shared->lost);
    result->reordered += atomic_load(&crowd->shared->reordered);
    result->corrupted += atomic_load(&crowd->shared->corrupted);
}
