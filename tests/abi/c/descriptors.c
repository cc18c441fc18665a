/*
 * Counts the descriptors of sockets over inproc, and of a peer that waits for the ZAP handler. run.sh links it to the built library.
 *
 *   descriptors [lenient]     lenient: only the checks that libzmq passes as well
 */
#define _GNU_SOURCE
#define ZMQ_BUILD_DRAFT_API
#include "check.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Number of descriptors that wake a socket: an eventfd on Linux, or two ends of a pair. */
#ifndef WAKE_DESCRIPTORS
#define WAKE_DESCRIPTORS 1
#endif

enum { SOCKETS = 15000, LIMIT = 1024, ROUNDS = 2000, STRANGERS = 100 };

static int descriptors(void)
{
    struct dirent *entry;
    DIR *all = opendir("/proc/self/fd");
    int count = 0;
    while ((entry = readdir(all)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(all);
    return count;
}

static void *new_context(void)
{
    void *context = zmq_ctx_new();
    CHECK(zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 2 * SOCKETS + 10) == 0);
    CHECK(zmq_ctx_set(context, ZMQ_BLOCKY, 0) == 0);
    return context;
}

static void *new_socket(void *context, int type)
{
    void *socket = zmq_socket(context, type);
    CHECK(socket != NULL);
    return socket;
}

/* Takes all descriptors that the process may have, except for `leave` of them. */
static int *taken, taken_count;

static void exhaust(int leave)
{
    int fd;
    taken = malloc(LIMIT * sizeof *taken);
    taken_count = 0;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        taken[taken_count++] = fd;
    while (leave-- > 0)
        close(taken[--taken_count]);
}

static void relent(void)
{
    while (taken_count > 0)
        close(taken[--taken_count]);
    free(taken);
}

/* With a limit of about a thousand descriptors, any number of sockets exist and exchange messages. */
static void many(void)
{
    void *context = new_context(), *sink = new_socket(context, ZMQ_PULL), **all = malloc(SOCKETS * sizeof *all);
    int i, n, before;
    char body[16];
    CHECK(zmq_bind(sink, "inproc://sink") == 0);
    before = descriptors();
    for (i = 0; i < SOCKETS; i++) {
        all[i] = new_socket(context, ZMQ_PUSH);
        CHECK(zmq_connect(all[i], "inproc://sink") == 0);
    }
    CHECK(descriptors() == before);
    for (i = 0; i < SOCKETS; i++)
        CHECK(zmq_send(all[i], &i, sizeof i, ZMQ_DONTWAIT) == sizeof i);
    for (i = 0; i < SOCKETS; i++)
        CHECK(zmq_recv(sink, &n, sizeof n, ZMQ_DONTWAIT) == sizeof n);
    CHECK_ERRNO(zmq_recv(sink, body, sizeof body, ZMQ_DONTWAIT), -1, EAGAIN);
    CHECK(descriptors() == before);
    for (i = 0; i < SOCKETS; i++)
        CHECK(zmq_close(all[i]) == 0);
    CHECK(zmq_close(sink) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    free(all);
}

/* A descriptor is created only for a use that needs it, and is closed with its socket. */
static void when_needed(void)
{
    void *context = new_context(), *pull = new_socket(context, ZMQ_PULL), *push = new_socket(context, ZMQ_PUSH);
    void *router = new_socket(context, ZMQ_ROUTER), *server = new_socket(context, ZMQ_SERVER);
    zmq_pollitem_t item = {NULL, 0, ZMQ_POLLIN, 0};
    int before = descriptors(), patience = 1, fd = -1, i;
    size_t size = sizeof fd;
    char body[8];
    CHECK(zmq_bind(pull, "inproc://pull") == 0);
    CHECK(zmq_connect(push, "inproc://pull") == 0);
    item.socket = pull;
    CHECK(zmq_poll(&item, 1, 0) == 0);
    CHECK(descriptors() == before);
    /* A blocking call needs a descriptor. */
    CHECK(zmq_setsockopt(pull, ZMQ_RCVTIMEO, &patience, sizeof patience) == 0);
    for (i = 0; i < 3; i++) {
        CHECK_ERRNO(zmq_recv(pull, body, sizeof body, 0), -1, EAGAIN);
        CHECK(descriptors() == before + WAKE_DESCRIPTORS);
    }
    CHECK(zmq_poll(&item, 1, 1) == 0);
    CHECK(descriptors() == before + WAKE_DESCRIPTORS);
    /* ZMQ_FD needs a descriptor. */
    CHECK(zmq_getsockopt(push, ZMQ_FD, &fd, &size) == 0 && fcntl(fd, F_GETFD) != -1);
    CHECK(descriptors() == before + 2 * WAKE_DESCRIPTORS);
    /* Streams need descriptors for the listener, for the epoll set and for the wake-up. */
    CHECK(zmq_bind(router, "tcp://127.0.0.1:*") == 0);
    CHECK(descriptors() == before + 3 * WAKE_DESCRIPTORS + 2);
    CHECK(zmq_close(router) == 0);
    CHECK(zmq_setsockopt(server, ZMQ_RCVTIMEO, &patience, sizeof patience) == 0);
    CHECK_ERRNO(zmq_recv(server, body, sizeof body, 0), -1, EAGAIN);
    CHECK(zmq_close(server) == 0);
    CHECK(zmq_close(push) == 0);
    CHECK(zmq_close(pull) == 0);
    CHECK(fcntl(fd, F_GETFD) == -1);
    CHECK(zmq_ctx_term(context) == 0);
}

/* A message that was signalled before the descriptor existed is not lost. */
static void told_before(void)
{
    void *context = new_context(), *pull = new_socket(context, ZMQ_PULL), *push = new_socket(context, ZMQ_PUSH);
    struct pollfd poll_fd;
    size_t size = sizeof poll_fd.fd;
    int events = 0;
    char body[8];
    CHECK(zmq_bind(pull, "inproc://told") == 0);
    CHECK(zmq_connect(push, "inproc://told") == 0);
    CHECK(zmq_send(push, "a", 1, 0) == 1);
    CHECK(zmq_getsockopt(pull, ZMQ_FD, &poll_fd.fd, &size) == 0);
    poll_fd.events = POLLIN;
    CHECK(poll(&poll_fd, 1, -1) == 1);
    size = sizeof events;
    CHECK(zmq_getsockopt(pull, ZMQ_EVENTS, &events, &size) == 0 && events == ZMQ_POLLIN);
    CHECK(zmq_recv(pull, body, sizeof body, ZMQ_DONTWAIT) == 1);
    CHECK(zmq_getsockopt(pull, ZMQ_EVENTS, &events, &size) == 0 && events == 0);
    CHECK(poll(&poll_fd, 1, 0) == 0);
    CHECK(zmq_send(push, "b", 1, 0) == 1);
    CHECK(poll(&poll_fd, 1, -1) == 1);
    CHECK(zmq_close(push) == 0);
    CHECK(zmq_close(pull) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

static void *send_later(void *push)
{
    CHECK(zmq_send(push, "later", 5, 0) == 5);
    return NULL;
}

/* Without free descriptors, sockets over inproc continue to work, including blocking calls. Calls that return a descriptor report the
 * error. */
static void without_descriptors(void)
{
    void *context = new_context(), *pull = new_socket(context, ZMQ_PULL), *push = new_socket(context, ZMQ_PUSH);
    void *gather = new_socket(context, ZMQ_GATHER), *scatter = new_socket(context, ZMQ_SCATTER);
    void *poller = zmq_poller_new(), *more;
    zmq_pollitem_t item = {NULL, 0, ZMQ_POLLIN, 0};
    zmq_poller_event_t event;
    int fd, one = 1, forever = -1, i;
    size_t size = sizeof fd;
    char body[8];
    pthread_t thread;
    CHECK(zmq_setsockopt(push, ZMQ_SNDHWM, &one, sizeof one) == 0);
    CHECK(zmq_setsockopt(pull, ZMQ_RCVHWM, &one, sizeof one) == 0);
    CHECK(zmq_bind(pull, "inproc://none") == 0);
    CHECK(zmq_connect(push, "inproc://none") == 0);
    CHECK(zmq_bind(gather, "inproc://gather") == 0);
    CHECK(zmq_connect(scatter, "inproc://gather") == 0);
    CHECK(zmq_setsockopt(pull, ZMQ_RCVTIMEO, &one, sizeof one) == 0);
    CHECK(zmq_setsockopt(gather, ZMQ_RCVTIMEO, &one, sizeof one) == 0);
    CHECK(zmq_setsockopt(push, ZMQ_SNDTIMEO, &one, sizeof one) == 0);
    item.socket = pull;
    exhaust(0);
    more = new_socket(context, ZMQ_PUSH);
    CHECK(zmq_connect(more, "inproc://none") == 0);
    CHECK(zmq_send(push, "1", 1, 0) == 1);
    CHECK(zmq_poll(&item, 1, -1) == 1);
    CHECK(zmq_recv(pull, body, sizeof body, 0) == 1);
    for (i = 0; i < 2; i++) {
        CHECK_ERRNO(zmq_recv(pull, body, sizeof body, ZMQ_DONTWAIT), -1, EAGAIN);
        CHECK_ERRNO(zmq_recv(pull, body, sizeof body, 0), -1, EAGAIN);
        CHECK(zmq_poll(&item, 1, 1) == 0);
        CHECK_ERRNO(zmq_getsockopt(pull, ZMQ_FD, &fd, &size), -1, EMFILE);
        CHECK_ERRNO(zmq_recv(gather, body, sizeof body, 0), -1, EAGAIN);
        CHECK_ERRNO(zmq_connect(push, "tcp://127.0.0.1:1"), -1, EMFILE);
        CHECK_ERRNO(zmq_bind(pull, "tcp://127.0.0.1:*"), -1, EMFILE);
        CHECK_ERRNO(zmq_poller_add(poller, gather, NULL, ZMQ_POLLIN), -1, EMFILE);
        CHECK(zmq_poller_size(poller) == 0);
        CHECK(zmq_poller_add(poller, pull, NULL, ZMQ_POLLIN) == 0);
        CHECK_ERRNO(zmq_poller_wait(poller, &event, 1), -1, EAGAIN);
        CHECK(zmq_poller_remove(poller, pull) == 0);
    }
    while (zmq_send(push, "2", 1, ZMQ_DONTWAIT) == 1) {
    }
    CHECK_ERRNO(zmq_send(push, "3", 1, 0), -1, EAGAIN);
    while (zmq_recv(pull, body, sizeof body, ZMQ_DONTWAIT) == 1) {
    }
    CHECK(zmq_setsockopt(pull, ZMQ_RCVTIMEO, &forever, sizeof forever) == 0);
    CHECK(zmq_setsockopt(gather, ZMQ_RCVTIMEO, &forever, sizeof forever) == 0);
    CHECK(zmq_setsockopt(push, ZMQ_SNDTIMEO, &forever, sizeof forever) == 0);
    for (i = 0; i < 2; i++) {
        CHECK(pthread_create(&thread, NULL, send_later, more) == 0);
        CHECK(zmq_recv(pull, body, sizeof body, 0) == 5);
        CHECK(pthread_join(thread, NULL) == 0);
        while (zmq_send(push, "2", 1, ZMQ_DONTWAIT) == 1) {
        }
        CHECK(pthread_create(&thread, NULL, send_later, push) == 0);
        while (zmq_recv(pull, body, sizeof body, 0) != 5) {
        }
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(pthread_create(&thread, NULL, send_later, scatter) == 0);
        CHECK(zmq_recv(gather, body, sizeof body, 0) == 5);
        CHECK(pthread_join(thread, NULL) == 0);
        if (i == 0)
            relent();
    }
    CHECK(zmq_close(more) == 0);
    CHECK(zmq_close(scatter) == 0);
    CHECK(zmq_poller_destroy(&poller) == 0);
    CHECK(zmq_close(gather) == 0);
    CHECK(zmq_close(push) == 0);
    CHECK(zmq_close(pull) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

/* Short-lived sockets with descriptors do not leak them. They close before a peer binds, or their peer never makes a call. */
static void come_and_go(const char *name, int with_message)
{
    void *context = new_context(), *lazy = new_socket(context, ZMQ_PULL);
    int before, i;
    size_t size = sizeof i;
    CHECK(zmq_bind(lazy, "inproc://lazy") == 0);
    before = descriptors();
    for (i = 0; i < ROUNDS; i++) {
        int fd;
        void *push = new_socket(context, ZMQ_PUSH);
        CHECK(zmq_connect(push, name) == 0);
        CHECK(zmq_getsockopt(push, ZMQ_FD, &fd, &size) == 0);
        if (with_message)
            CHECK(zmq_send(push, &i, sizeof i, ZMQ_DONTWAIT) == sizeof i);
        if (i % 2)
            CHECK(zmq_disconnect(push, name) == 0);
        CHECK(zmq_close(push) == 0);
    }
    CHECK(descriptors() == before);
    if (with_message) {
        int n, last = -1;
        if (strcmp(name, "inproc://lazy") != 0)
            CHECK(zmq_bind(lazy, name) == 0);
        for (i = 0; i < ROUNDS; i++)
            CHECK(zmq_recv(lazy, &n, sizeof n, ZMQ_DONTWAIT) == sizeof n && (last = n) >= 0);
        CHECK(last >= 0);
    }
    CHECK(zmq_close(lazy) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

/* A stranger that waits for the ZAP handler uses only the descriptor of its connection. */
static void wait_for_the_handler(void)
{
    static const char greeting[64] = "\xff\0\0\0\0\0\0\0\1\x7f\3\0PLAIN", hello[] = "\4\16\5HELLO\3who\3how";
    char endpoint[64], part[256];
    size_t length = sizeof endpoint;
    int strangers[STRANGERS], one = 1, before;
    void *context = new_context(), *handler = new_socket(context, ZMQ_ROUTER), *server = new_socket(context, ZMQ_PULL);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    CHECK(zmq_bind(handler, "inproc://zeromq.zap.01") == 0);
    CHECK(zmq_setsockopt(server, ZMQ_PLAIN_SERVER, &one, sizeof one) == 0);
    CHECK(zmq_setsockopt(server, ZMQ_ZAP_DOMAIN, "test", 4) == 0);
    CHECK(zmq_bind(server, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(server, ZMQ_LAST_ENDPOINT, endpoint, &length) == 0);
    address.sin_port = htons((unsigned short) atoi(strrchr(endpoint, ':') + 1));
    /* Create the handler's descriptor before the first count. */
    CHECK(zmq_getsockopt(handler, ZMQ_FD, part, (length = sizeof(int), &length)) == 0);
    before = descriptors();
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(strangers[i], (struct sockaddr *) &address, sizeof address) == 0);
        CHECK(send(strangers[i], greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting);
        CHECK(send(strangers[i], hello, sizeof hello - 1, MSG_NOSIGNAL) == sizeof hello - 1);
    }
    for (int asked = 0, more = 1; asked < STRANGERS; asked += !more) {
        CHECK(zmq_recv(handler, part, sizeof part, 0) >= 0);
        CHECK(zmq_getsockopt(handler, ZMQ_RCVMORE, &more, (length = sizeof more, &length)) == 0);
    }
    /* This process has both ends of each connection. */
    CHECK(descriptors() - before == 2 * STRANGERS);
    for (int i = 0; i < STRANGERS; i++)
        close(strangers[i]);
    zmq_close(server);
    zmq_close(handler);
    CHECK(zmq_ctx_term(context) == 0);
}

int main(int argc, char **argv)
{
    struct rlimit limit = {LIMIT, LIMIT};
    strict = argc < 2 || strcmp(argv[1], "lenient") != 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    alarm(300);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    told_before();
    wait_for_the_handler();
    if (strict) {
        when_needed();
        without_descriptors();
        come_and_go("inproc://nobody", 0);
        come_and_go("inproc://nobody", 1);
        come_and_go("inproc://lazy", 0);
        come_and_go("inproc://lazy", 1);
        many();
    }
    printf("descriptors: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
