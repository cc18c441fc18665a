/* Implements play.h: sockets, their monitors and the table. */
#include "play.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A libzmq without the draft interface lacks this function. */
extern int zmq_socket_monitor_versioned(void *, const char *, uint64_t, int, int) __attribute__((weak));

void *context;
int version = 1;
const char *directory;

static const char *situation;
static struct watched sockets[8];
static int socket_count;
static struct {
    char text[256];
    char alias[64];
} aliases[32];
static int alias_count;

/* Returns the time limit in milliseconds for an expected event. It distinguishes a library that never reports the event
 * from a slow one. */
static int patience(void)
{
    const char *value = getenv("EVENTS_PATIENCE");
    return value ? atoi(value) : 120000;
}

static void die(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", situation ? situation : "events", what, zmq_strerror(errno));
    exit(3);
}

/* ---- the table */

static const char *errno_name(int number)
{
    static char other[32];
    switch (number) {
    case 0: return "0";
    case EINVAL: return "EINVAL";
    case ENOENT: return "ENOENT";
    case ENODEV: return "ENODEV";
    case EAGAIN: return "EAGAIN";
    case EACCES: return "EACCES";
    case EPIPE: return "EPIPE";
    case EFAULT: return "EFAULT";
    case EADDRINUSE: return "EADDRINUSE";
    case EADDRNOTAVAIL: return "EADDRNOTAVAIL";
    case ECONNREFUSED: return "ECONNREFUSED";
    case ECONNRESET: return "ECONNRESET";
    case EINPROGRESS: return "EINPROGRESS";
    case ETIMEDOUT: return "ETIMEDOUT";
    case EHOSTUNREACH: return "EHOSTUNREACH";
    case ENAMETOOLONG: return "ENAMETOOLONG";
    case ENOCOMPATPROTO: return "ENOCOMPATPROTO";
    case EPROTONOSUPPORT: return "EPROTONOSUPPORT";
    case ETERM: return "ETERM";
    case EFSM: return "EFSM";
    case EPROTO: return "EPROTO";
    case EBADF: return "EBADF";
    case ENOTSOCK: return "ENOTSOCK";
    case ENOTDIR: return "ENOTDIR";
    }
    snprintf(other, sizeof other, "errno %d", number);
    return other;
}

void call(const char *text, const char *alias)
{
    if (alias_count == 32)
        die("too many aliases");
    snprintf(aliases[alias_count].text, sizeof aliases[0].text, "%s", text);
    snprintf(aliases[alias_count].alias, sizeof aliases[0].alias, "%s", alias);
    alias_count++;
}

/* Returns the number after the last colon, or -1 without a number. */
static int port_of(const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    return colon && end != colon + 1 && (*end == '\0' || *end == '/') ? (int)port : -1;
}

/* Returns an address without the names and ports of this run. */
static const char *address(const char *text)
{
    static char shown[2][512];
    static int turn;
    char *out = shown[turn ^= 1];
    int port = port_of(text), index;
    for (index = 0; index < alias_count; index++) {
        const char *known = aliases[index].text;
        const char *found = strstr(text, known);
        if (found && strlen(known) > 0 && (found[strlen(known)] == '\0' || found[strlen(known)] == '/')) {
            snprintf(out, 512, "%.*s<%s>%s", (int)(found - text), text, aliases[index].alias, found + strlen(known));
            return out;
        }
    }
    if (port > 0) {
        const char *colon = strrchr(text, ':'), *rest = colon + 1 + strspn(colon + 1, "0123456789");
        snprintf(out, 512, "%.*s:<port>%s", (int)(colon - text), text, rest);
        return out;
    }
    if (strstr(text, directory)) {
        const char *found = strstr(text, directory);
        snprintf(out, 512, "%.*s<dir>%s", (int)(found - text), text, found + strlen(directory));
        return out;
    }
    return text;
}

static void line(const struct watched *watched, const char *what, const char *value, const char *first,
                 const char *second)
{
    printf("%d\t%s\t%s\t%s\t%s\t%s", version, situation, watched ? watched->name : "", what, value, first);
    printf("%s%s\n", second ? "\t" : "", second ? second : "");
    fflush(stdout);
}

void note(const struct watched *watched, const char *what, int result)
{
    line(watched, what, result == -1 ? errno_name(zmq_errno()) : "0", "", NULL);
}

/* ---- sockets */

struct watched *unwatched(const char *name, int type)
{
    struct watched *watched = &sockets[socket_count++];
    memset(watched, 0, sizeof *watched);
    watched->name = name;
    watched->socket = zmq_socket(context, type);
    if (!watched->socket)
        die("zmq_socket");
    set(watched, ZMQ_LINGER, 0);
    return watched;
}

struct watched *watch(const char *name, int type)
{
    struct watched *watched = unwatched(name, type);
    char endpoint[64];
    int linger = 0, rc;
    snprintf(endpoint, sizeof endpoint, "inproc://monitor-%s", name);
    if (version == 1)
        rc = zmq_socket_monitor(watched->socket, endpoint, ZMQ_EVENT_ALL);
    else
        rc = zmq_socket_monitor_versioned(watched->socket, endpoint, ZMQ_EVENT_ALL_V2, 2, ZMQ_PAIR);
    if (rc)
        die("zmq_socket_monitor");
    watched->monitor = zmq_socket(context, ZMQ_PAIR);
    if (!watched->monitor || zmq_setsockopt(watched->monitor, ZMQ_LINGER, &linger, sizeof linger)
        || zmq_connect(watched->monitor, endpoint))
        die("monitor");
    return watched;
}

void set(struct watched *watched, int option, int value)
{
    if (zmq_setsockopt(watched->socket, option, &value, sizeof value))
        die("zmq_setsockopt");
}

void set_text(struct watched *watched, int option, const char *value)
{
    if (zmq_setsockopt(watched->socket, option, value, strlen(value)))
        die("zmq_setsockopt");
}

static int result(const struct watched *watched, const char *what, int rc, const char *endpoint)
{
    line(watched, what, rc == -1 ? errno_name(zmq_errno()) : "0", address(endpoint), NULL);
    return rc;
}

int do_bind(struct watched *watched, const char *endpoint)
{
    int rc = zmq_bind(watched->socket, endpoint);
    /* libzmq may overwrite errno when it reports to the monitor. */
    line(watched, "bind", rc == 0 ? "0" : watched->monitor ? "fails" : errno_name(zmq_errno()), address(endpoint), NULL);
    return rc;
}

int do_connect(struct watched *watched, const char *endpoint)
{
    return result(watched, "connect", zmq_connect(watched->socket, endpoint), endpoint);
}

int do_unbind(struct watched *watched, const char *endpoint)
{
    return result(watched, "unbind", zmq_unbind(watched->socket, endpoint), endpoint);
}

int do_disconnect(struct watched *watched, const char *endpoint)
{
    return result(watched, "disconnect", zmq_disconnect(watched->socket, endpoint), endpoint);
}

int do_send(struct watched *watched, const char *text)
{
    int rc = zmq_send(watched->socket, text, strlen(text), ZMQ_DONTWAIT);
    line(watched, "send", rc == -1 ? errno_name(zmq_errno()) : "0", text, NULL);
    return rc;
}

int send_waiting(struct watched *watched, const char *text)
{
    int time = patience();
    zmq_setsockopt(watched->socket, ZMQ_SNDTIMEO, &time, sizeof time);
    return zmq_send(watched->socket, text, strlen(text), 0);
}

int do_recv(struct watched *watched, int flags)
{
    char text[256];
    int rc, time = patience();
    zmq_setsockopt(watched->socket, ZMQ_RCVTIMEO, &time, sizeof time);
    rc = zmq_recv(watched->socket, text, sizeof text - 1, flags);
    text[rc > 0 ? rc : 0] = '\0';
    line(watched, "recv", rc == -1 ? errno_name(zmq_errno()) : "0", text, NULL);
    return rc;
}

const char *endpoint_of(struct watched *watched, const char *alias)
{
    static char ends[4][256];
    static int turn;
    char *end = ends[turn = (turn + 1) % 4];
    size_t size = 256;
    if (zmq_getsockopt(watched->socket, ZMQ_LAST_ENDPOINT, end, &size))
        die("ZMQ_LAST_ENDPOINT");
    if (alias) {
        char bare[256];
        /* The alias replaces the part after the transport, because a table may show it with the transport or without. */
        snprintf(bare, sizeof bare, "%s", strstr(end, "://") ? strstr(end, "://") + 3 : end);
        if (*bare && bare[strlen(bare) - 1] == '/')
            bare[strlen(bare) - 1] = '\0';
        call(bare, alias);
    }
    return end;
}

const char *fresh(const char *transport)
{
    static char ends[4][256];
    static int turn;
    char *end = ends[turn = (turn + 1) % 4];
    static int number;
    if (!strcmp(transport, "ipc"))
        snprintf(end, 256, "ipc://%s/%d", directory, ++number);
    else
        snprintf(end, 256, "%s://127.0.0.1:*", transport);
    return end;
}

const char *nobody(const char *transport)
{
    static char end[256];
    if (!strcmp(transport, "ipc")) {
        snprintf(end, sizeof end, "ipc://%s/nobody", directory);
    } else {
        /* Bind the port without listening, so that no other process gets it. */
        struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof name;
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&name, length)
            || getsockname(fd, (struct sockaddr *)&name, &length))
            die("nobody");
        snprintf(end, sizeof end, "127.0.0.1:%d", ntohs(name.sin_port));
        call(end, "nobody");
        snprintf(end, sizeof end, "%s://127.0.0.1:%d", transport, ntohs(name.sin_port));
    }
    return end;
}

/* ---- events */

static const char *event_name(uint64_t event)
{
    switch (event) {
    case ZMQ_EVENT_CONNECTED: return "CONNECTED";
    case ZMQ_EVENT_CONNECT_DELAYED: return "CONNECT_DELAYED";
    case ZMQ_EVENT_CONNECT_RETRIED: return "CONNECT_RETRIED";
    case ZMQ_EVENT_LISTENING: return "LISTENING";
    case ZMQ_EVENT_BIND_FAILED: return "BIND_FAILED";
    case ZMQ_EVENT_ACCEPTED: return "ACCEPTED";
    case ZMQ_EVENT_ACCEPT_FAILED: return "ACCEPT_FAILED";
    case ZMQ_EVENT_CLOSED: return "CLOSED";
    case ZMQ_EVENT_CLOSE_FAILED: return "CLOSE_FAILED";
    case ZMQ_EVENT_DISCONNECTED: return "DISCONNECTED";
    case ZMQ_EVENT_MONITOR_STOPPED: return "MONITOR_STOPPED";
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL: return "HANDSHAKE_FAILED_NO_DETAIL";
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: return "HANDSHAKE_SUCCEEDED";
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL: return "HANDSHAKE_FAILED_PROTOCOL";
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH: return "HANDSHAKE_FAILED_AUTH";
    case ZMQ_EVENT_PIPES_STATS: return "PIPES_STATS";
    }
    return "?";
}

/* Returns the name of a descriptor from its earlier events. */
static const char *descriptor(struct watched *watched, uint64_t event, int fd)
{
    int index;
    for (index = 0; index < watched->opens && watched->open[index].fd != fd; index++)
        ;
    if (event == ZMQ_EVENT_CLOSED || event == ZMQ_EVENT_DISCONNECTED) {
        const char *origin;
        if (index == watched->opens)
            return "fd";
        origin = watched->open[index].origin;
        watched->open[index] = watched->open[--watched->opens];
        return origin;
    }
    if (index == watched->opens) {
        if (index == 16)
            die("too many descriptors");
        watched->opens++;
    }
    watched->open[index].fd = fd;
    watched->open[index].origin = event == ZMQ_EVENT_LISTENING  ? "fd of LISTENING"
                                  : event == ZMQ_EVENT_ACCEPTED ? "fd of ACCEPTED"
                                                                : "fd of CONNECTED";
    return "fd";
}

static const char *value_of(struct watched *watched, uint64_t event, const uint64_t *values)
{
    static char text[64];
    int interval;
    size_t size = sizeof interval;
    switch (event) {
    case ZMQ_EVENT_CONNECT_DELAYED:
    case ZMQ_EVENT_BIND_FAILED:
    case ZMQ_EVENT_ACCEPT_FAILED:
    case ZMQ_EVENT_CLOSE_FAILED:
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL: return errno_name((int)values[0]);
    case ZMQ_EVENT_CONNECTED:
    case ZMQ_EVENT_LISTENING:
    case ZMQ_EVENT_ACCEPTED:
    case ZMQ_EVENT_CLOSED:
    case ZMQ_EVENT_DISCONNECTED: return descriptor(watched, event, (int)values[0]);
    case ZMQ_EVENT_CONNECT_RETRIED:
        /* The interval is exact if a longest interval is set. Otherwise it has a random part. */
        if (watched->socket && !zmq_getsockopt(watched->socket, ZMQ_RECONNECT_IVL_MAX, &interval, &size) && interval)
            break;
        if (watched->socket && !zmq_getsockopt(watched->socket, ZMQ_RECONNECT_IVL, &interval, &size)
            && values[0] >= (uint64_t)interval && values[0] < 2 * (uint64_t)interval)
            return "ms";
        break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        snprintf(text, sizeof text, "0x%08x", (unsigned)values[0]);
        return text;
    case ZMQ_EVENT_PIPES_STATS:
        snprintf(text, sizeof text, "%u %u", (unsigned)values[0], (unsigned)values[1]);
        return text;
    }
    snprintf(text, sizeof text, "%u", (unsigned)values[0]);
    return text;
}

/* Receives one part of an event. Returns its size, or -1 if no part arrived. */
static int part(void *monitor, void *bytes, size_t size)
{
    int rc = zmq_recv(monitor, bytes, size - 1, 0);
    if (rc > (int)size - 1)
        die("an event's part is too long");
    ((char *)bytes)[rc < 0 ? 0 : rc] = '\0';
    return rc;
}

/* Receives the next event within `time`. Returns 0 if no event arrived. */
static uint64_t take(struct watched *watched, int time, int shown)
{
    char first[512], second[512];
    uint64_t event = 0, count = 1, values[4] = {0};
    char bytes[64];
    if (!watched->monitor || watched->stopped)
        return 0;
    zmq_setsockopt(watched->monitor, ZMQ_RCVTIMEO, &time, sizeof time);
    if (version == 1) {
        uint16_t number;
        uint32_t value;
        if (part(watched->monitor, bytes, sizeof bytes) != 6)
            return 0;
        memcpy(&number, bytes, 2);
        memcpy(&value, bytes + 2, 4);
        event = number, values[0] = value;
    } else {
        uint64_t index;
        if (part(watched->monitor, bytes, sizeof bytes) != 8)
            return 0;
        memcpy(&event, bytes, 8);
        part(watched->monitor, bytes, sizeof bytes);
        memcpy(&count, bytes, 8);
        for (index = 0; index < count && index < 4; index++) {
            part(watched->monitor, bytes, sizeof bytes);
            memcpy(&values[index], bytes, 8);
        }
    }
    part(watched->monitor, first, sizeof first);
    if (version == 2)
        part(watched->monitor, second, sizeof second);
    if (event == ZMQ_EVENT_MONITOR_STOPPED)
        watched->stopped = 1;
    if (shown) {
        const char *value = value_of(watched, event, values);
        line(watched, event_name(event), value, address(first), version == 2 ? address(second) : NULL);
    } else {
        value_of(watched, event, values);
    }
    return event;
}

static void wait_for(struct watched *watched, int event, int shown)
{
    uint64_t came;
    do
        came = take(watched, patience(), shown);
    while (came && came != (uint64_t)event);
    if (!came)
        line(watched, event_name((uint64_t)event), "has not come", "", NULL);
}

void until(struct watched *watched, int event)
{
    wait_for(watched, event, 1);
}

void pass(struct watched *watched, int event)
{
    wait_for(watched, event, 0);
}

/* Makes the only I/O thread open and close connections. Its earlier work is complete afterwards. */
void fence(void)
{
    int round, index, linger = 0, wait = patience();
    for (round = 0; round < 3; round++) {
        void *bound = zmq_socket(context, ZMQ_PAIR), *connected = zmq_socket(context, ZMQ_PAIR);
        char end[64], byte;
        size_t size = sizeof end;
        zmq_setsockopt(bound, ZMQ_LINGER, &linger, sizeof linger);
        zmq_setsockopt(connected, ZMQ_LINGER, &linger, sizeof linger);
        zmq_setsockopt(connected, ZMQ_RCVTIMEO, &wait, sizeof wait);
        zmq_setsockopt(bound, ZMQ_RCVTIMEO, &wait, sizeof wait);
        if (zmq_bind(bound, "tcp://127.0.0.1:*") || zmq_getsockopt(bound, ZMQ_LAST_ENDPOINT, end, &size)
            || zmq_connect(connected, end) || zmq_send(connected, "1", 1, 0) != 1
            || zmq_recv(bound, &byte, 1, 0) != 1 || zmq_send(bound, "2", 1, 0) != 1
            || zmq_recv(connected, &byte, 1, 0) != 1)
            die("fence");
        zmq_close(connected);
        zmq_close(bound);
        for (index = 0; index < socket_count; index++) {
            int events;
            size = sizeof events;
            if (sockets[index].socket)
                zmq_getsockopt(sockets[index].socket, ZMQ_EVENTS, &events, &size);
        }
    }
}

void settle(void)
{
    int index;
    fence();
    for (index = 0; index < socket_count; index++)
        while (take(&sockets[index], 0, 1))
            ;
}

void do_close(struct watched *watched)
{
    line(watched, "close", "0", "", NULL);
    zmq_close(watched->socket);
    watched->socket = NULL;
    if (!watched->monitor)
        return;
    if (!watched->stopped)
        until(watched, ZMQ_EVENT_MONITOR_STOPPED);
    zmq_close(watched->monitor);
    watched->monitor = NULL;
}

void close_unread(struct watched *watched)
{
    zmq_close(watched->socket);
    zmq_close(watched->monitor);
    watched->socket = watched->monitor = NULL;
}

const char *meet(struct watched *bound, struct watched *connected, const char *transport)
{
    const char *end;
    do_bind(bound, fresh(transport));
    end = endpoint_of(bound, "bound");
    do_connect(connected, end);
    until(bound, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    until(connected, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    return end;
}

/* ---- running */

static void play(const struct situation *what)
{
    char name[128], place[256];
    int index;
    alarm(600);
    snprintf(place, sizeof place, "%s/XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    snprintf(name, sizeof name, "%s%s%s", what->name, what->transport ? " " : "", what->transport ? what->transport : "");
    situation = name;
    directory = mkdtemp(place);
    if (!directory)
        die("mkdtemp");
    context = zmq_ctx_new();
    what->play(what->transport);
    for (index = 0; index < socket_count; index++)
        if (sockets[index].socket)
            do_close(&sockets[index]);
    zmq_ctx_shutdown(context);
    zmq_ctx_term(context);
    exit(0);
}

/* Plays a situation in a separate process, because a library may abort in it. The caller removes the remaining files. */
static void run(const struct situation *what)
{
    pid_t child;
    int status;
    fflush(stdout);
    child = fork();
    if (child == 0)
        play(what);
    if (child < 0 || waitpid(child, &status, 0) != child)
        die("fork");
    if (WIFSIGNALED(status))
        printf("%d\t%s%s%s\t\tkilled by signal %d\n", version, what->name, what->transport ? " " : "",
               what->transport ? what->transport : "", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        printf("%d\t%s%s%s\t\texit code %d\n", version, what->name, what->transport ? " " : "",
               what->transport ? what->transport : "", WEXITSTATUS(status));
}

/* events VERSION [NAME]: plays all situations, or those whose names begin with NAME. */
int main(int count, char **arguments)
{
    const struct situation *lists[] = {bind_situations, connect_situations, loss_situations, refusal_situations, broken_situations,
                                       unbind_situations};
    int drafts = zmq_socket_monitor_versioned != NULL;
    size_t list;
    if (count < 2)
        return 2;
    version = atoi(arguments[1]);
    signal(SIGPIPE, SIG_IGN);
    for (list = 0; list < sizeof lists / sizeof *lists; list++) {
        const struct situation *what;
        for (what = lists[list]; what->name; what++)
            if ((version == 1 ? what->versions != SECOND : what->versions != FIRST && drafts)
                && (count < 3 || !strncmp(what->name, arguments[2], strlen(arguments[2]))))
                run(what);
    }
    return 0;
}
