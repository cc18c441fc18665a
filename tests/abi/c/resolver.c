/*
 * Tests a name server that does not answer. The lookup of a name that begins with "slow" lasts until the test releases it. An abandoned
 * lookup must not delay other calls. run.sh links it to the built library. It replaces the C library's getaddrinfo and pthread_create.
 *
 *   resolver [lenient]     lenient: only the checks that libzmq passes as well, to try the checks on another libzmq
 */
#define _GNU_SOURCE
#define ZMQ_BUILD_DRAFT_API
#include "check.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* `begun` is posted when a slow lookup begins, `let_go` once for each slow lookup that may end. */
static sem_t begun, let_go;
/* Number of lookups of slow names. */
static int asked_slow;
/* Number of the next threads whose start fails. */
static int no_threads;

static int ask_system(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&real, &symbol, sizeof real);
    return real(node, service, hints, result);
}

/* Resolves "slow.good" (after its release) and "quick" to the loopback address. All other slow names are unknown. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    if (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0) {
        /* A numeric host needs no lookup. */
    } else if (node != NULL && strncmp(node, "slow", 4) == 0) {
        __atomic_add_fetch(&asked_slow, 1, __ATOMIC_SEQ_CST);
        sem_post(&begun);
        while (sem_wait(&let_go) != 0) {
        }
        if (strcmp(node, "slow.good") != 0)
            return EAI_NONAME;
        node = "127.0.0.1";
    } else if (node != NULL && strcmp(node, "quick") == 0) {
        node = "127.0.0.1";
    }
    return ask_system(node, service, hints, result);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *symbol = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&real, &symbol, sizeof real);
    if (__atomic_load_n(&no_threads, __ATOMIC_SEQ_CST) > 0) {
        __atomic_sub_fetch(&no_threads, 1, __ATOMIC_SEQ_CST);
        return EAGAIN;
    }
    return real(thread, attributes, start, argument);
}

static void *socket_of(void *context, int type, int linger)
{
    void *socket = zmq_socket(context, type);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    return socket;
}

static void await_lookup(void)
{
    while (sem_wait(&begun) != 0) {
    }
}

static int threads(void)
{
    struct dirent *entry;
    DIR *all = opendir("/proc/self/task");
    int count = 0;
    while ((entry = readdir(all)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(all);
    return count;
}

/* Number of threads before the first context: one, and the threads of an emulator. */
static int at_first;

/* Ends the running lookup, and waits for the threads of former contexts. */
static void end_lookup(void)
{
    sem_post(&let_go);
    while (threads() > at_first)
        sched_yield();
}

static void given_up(const char *endpoint, int type)
{
    void *context = zmq_ctx_new();
    void *socket = socket_of(context, type, 0);
    int five = 5, i;
    char names[5][64];

    for (i = 0; i < five; i++) {
        sprintf(names[i], endpoint, i);
        CHECK(zmq_connect(socket, names[i]) == 0);
    }
    await_lookup();
    /* The disconnect removes the endpoint from the socket and from the resolver's list. */
    CHECK(zmq_disconnect(socket, names[1]) == 0);
    CHECK_ERRNO(zmq_disconnect(socket, names[1]), -1, ENOENT);
    CHECK(zmq_close(socket) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    asked_slow = 0;
    end_lookup();
    CHECK(asked_slow == 0);
}

static void given_up_at_a_proxy(void)
{
    void *context = zmq_ctx_new();
    void *socket = socket_of(context, ZMQ_PUSH, 0);
    CHECK(zmq_setsockopt(socket, ZMQ_SOCKS_PROXY, "slow.proxy:1080", 15) == 0);
    CHECK(zmq_connect(socket, "tcp://127.0.0.1:1") == 0);
    await_lookup();
    CHECK(zmq_close(socket) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    end_lookup();
}

/* Queued messages wait for the name, but no longer than the linger time. */
static void lingers(int milliseconds)
{
    void *context = zmq_ctx_new();
    void *socket = socket_of(context, ZMQ_PUSH, milliseconds);
    CHECK(zmq_connect(socket, "tcp://slow.0:1") == 0);
    await_lookup();
    CHECK(zmq_send(socket, "lost", 4, ZMQ_DONTWAIT) == 4);
    CHECK(zmq_close(socket) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    end_lookup();
}

static void is_sent_in_the_end(void)
{
    void *context = zmq_ctx_new();
    void *pull = socket_of(context, ZMQ_PULL, 0);
    void *push = socket_of(context, ZMQ_PUSH, -1);
    char endpoint[64], name[64], body[8] = "";
    size_t size = sizeof endpoint;
    CHECK(zmq_bind(pull, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    sprintf(name, "tcp://slow.good:%s", strrchr(endpoint, ':') + 1);
    CHECK(zmq_connect(push, name) == 0);
    await_lookup();
    CHECK(zmq_send(push, "kept", 4, 0) == 4);
    CHECK(zmq_close(push) == 0);
    sem_post(&let_go);
    CHECK(zmq_recv(pull, body, sizeof body, 0) == 4 && memcmp(body, "kept", 4) == 0);
    CHECK(zmq_close(pull) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

static void other_names_wait_their_turn(void)
{
    void *context = zmq_ctx_new();
    void *pull = socket_of(context, ZMQ_PULL, 0);
    void *push = socket_of(context, ZMQ_PUSH, 0);
    void *other = socket_of(context, ZMQ_PUSH, 0);
    char endpoint[64], name[64], body[8] = "";
    size_t size = sizeof endpoint;
    int i;
    CHECK(zmq_bind(pull, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    CHECK(zmq_connect(push, "tcp://slow.0:1") == 0);
    await_lookup();
    asked_slow = 0;
    for (i = 0; i < 1000; i++) {
        CHECK(zmq_connect(push, "tcp://slow.1:1") == 0);
        CHECK(zmq_disconnect(push, "tcp://slow.1:1") == 0);
    }
    CHECK(zmq_disconnect(push, "tcp://slow.0:1") == 0);
    sprintf(name, "tcp://quick:%s", strrchr(endpoint, ':') + 1);
    CHECK(zmq_connect(push, name) == 0);
    CHECK(zmq_send(push, "kept", 4, 0) == 4);
    /* The I/O thread connects this endpoint after it has disconnected the earlier ones. */
    CHECK(zmq_connect(other, endpoint) == 0);
    CHECK(zmq_send(other, "now", 3, 0) == 3);
    CHECK(zmq_recv(pull, body, sizeof body, 0) == 3);
    sem_post(&let_go);
    CHECK(zmq_recv(pull, body, sizeof body, 0) == 4);
    CHECK(asked_slow == 0);
    CHECK(zmq_close(other) == 0);
    CHECK(zmq_close(push) == 0);
    CHECK(zmq_close(pull) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

/* If the resolver's thread cannot start, the library retries later. */
static void without_a_thread(void)
{
    void *context = zmq_ctx_new();
    void *pull = socket_of(context, ZMQ_PULL, 0);
    void *push = socket_of(context, ZMQ_PUSH, 0);
    char endpoint[64], name[64], body[8] = "";
    size_t size = sizeof endpoint;
    int one = 1;
    CHECK(zmq_bind(pull, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    sprintf(name, "tcp://quick:%s", strrchr(endpoint, ':') + 1);
    CHECK(zmq_setsockopt(push, ZMQ_RECONNECT_IVL, &one, sizeof one) == 0);
    __atomic_store_n(&no_threads, 3, __ATOMIC_SEQ_CST);
    CHECK(zmq_connect(push, name) == 0);
    CHECK(zmq_send(push, "kept", 4, 0) == 4);
    CHECK(zmq_recv(pull, body, sizeof body, 0) == 4);
    CHECK(__atomic_load_n(&no_threads, __ATOMIC_SEQ_CST) == 0);
    CHECK(zmq_close(push) == 0);
    CHECK(zmq_close(pull) == 0);
    CHECK(zmq_ctx_term(context) == 0);
}

/* Returns a RADIO that connects to a datagram socket of the test by this name. If that fails, `receiver` is -1. */
static void *radio(void *context, const char *host, int linger, int *receiver)
{
    void *socket_ = socket_of(context, ZMQ_RADIO, linger);
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    char name[64];
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *receiver = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(bind(*receiver, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(*receiver, (struct sockaddr *)&address, &size) == 0);
    sprintf(name, "udp://%s:%d", host, ntohs(address.sin_port));
    CHECK(zmq_connect(socket_, name) == 0);
    return socket_;
}

static void send_to_group(void *socket_)
{
    zmq_msg_t message;
    CHECK(zmq_msg_init_size(&message, 1) == 0);
    memcpy(zmq_msg_data(&message), "m", 1);
    CHECK(zmq_msg_set_group(&message, "g") == 0);
    CHECK(zmq_msg_send(&message, socket_, 0) == 1);
}

static void datagrams_given_up(int milliseconds)
{
    int receiver;
    char datagram[8];
    void *context = zmq_ctx_new();
    void *socket_ = radio(context, "slow.0", milliseconds, &receiver);
    await_lookup();
    send_to_group(socket_);
    CHECK(zmq_close(socket_) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    end_lookup();
    CHECK(recv(receiver, datagram, sizeof datagram, MSG_DONTWAIT) == -1);
    close(receiver);
}

static void datagrams_are_sent_in_the_end(int disconnect)
{
    int receiver;
    char datagram[8], endpoint[64];
    size_t size = sizeof endpoint;
    void *context = zmq_ctx_new();
    void *socket_ = radio(context, "slow.good", -1, &receiver);
    await_lookup();
    send_to_group(socket_);
    if (disconnect) {
        CHECK(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
        CHECK(zmq_disconnect(socket_, endpoint) == 0);
    }
    CHECK(zmq_close(socket_) == 0);
    sem_post(&let_go);
    CHECK(zmq_ctx_term(context) == 0);
    CHECK(recv(receiver, datagram, sizeof datagram, 0) == 3 && memcmp(datagram, "\1gm", 3) == 0);
    close(receiver);
}

static void datagrams_without_a_thread(void)
{
    int receiver;
    char datagram[8];
    void *context = zmq_ctx_new(), *first = zmq_socket(context, ZMQ_PAIR), *socket_;
    /* The I/O thread runs now. */
    zmq_close(first);
    __atomic_store_n(&no_threads, 1, __ATOMIC_SEQ_CST);
    socket_ = radio(context, "quick", 0, &receiver);
    CHECK(__atomic_load_n(&no_threads, __ATOMIC_SEQ_CST) == 0);
    send_to_group(socket_);
    CHECK(recv(receiver, datagram, sizeof datagram, 0) == 3);
    CHECK(zmq_close(socket_) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    close(receiver);
}

/* During a lookup, a process ends, and another process is forked. */
static void other_processes(void)
{
    void *context = zmq_ctx_new();
    void *socket_ = socket_of(context, ZMQ_PUSH, 0);
    int status = -1;
    pid_t child;
    CHECK(zmq_connect(socket_, "tcp://slow.0:1") == 0);
    await_lookup();
    child = fork();
    if (child == 0) {
        /* The child ignores the lookups of its parent; it performs its own. */
        void *own = zmq_ctx_new(), *push = socket_of(own, ZMQ_PUSH, 0);
        int bad = zmq_close(socket_) != 0 || zmq_ctx_term(context) != 0;
        bad |= push == NULL || zmq_connect(push, "tcp://slow.0:1") != 0;
        await_lookup();
        bad |= zmq_close(push) != 0 || zmq_ctx_term(own) != 0;
        /* The child's lookup is still running. */
        exit(bad);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(zmq_close(socket_) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    end_lookup();
}

int main(int argc, char **argv)
{
    strict = argc < 2 || strcmp(argv[1], "lenient") != 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    alarm(120);
    at_first = threads();
    sem_init(&begun, 0, 0);
    sem_init(&let_go, 0, 0);
    is_sent_in_the_end();
    if (strict) {
        given_up("tcp://slow.%d:1", ZMQ_PUSH);
        given_up("ws://slow.%d:1", ZMQ_DEALER);
        given_up_at_a_proxy();
        lingers(0);
        lingers(1);
        other_names_wait_their_turn();
        without_a_thread();
        datagrams_given_up(0);
        datagrams_given_up(1);
        datagrams_are_sent_in_the_end(0);
        datagrams_are_sent_in_the_end(1);
        datagrams_without_a_thread();
        other_processes();
    }
    printf("resolver: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
