/*
 * A CURVE server under attack: how fast it still serves a good client, and how much memory it takes.
 *
 *   attack [SECONDS]      for each measurement, 3 by default
 *
 * A server(PULL) and a good client(PUSH, messages of 1 KiB as fast as they go) are processes of their own, and so is the attacker,
 * which is made of raw sockets. The attacker, and the system on its behalf, need processor time too, and so take it from the others on a
 * small machine: therefore an attack takes turns, several times a second, with the same attack on another such server, and with a process
 * that just burns as much, and the rates are held against each other. Prints a line of tab-separated values for each: name, messages per
 * second, per cent of the quiet rate, per cent of the rate beside the attack elsewhere, per cent of the rate beside a burner, attacks per
 * second, the attacker's share of a core, the server's memory in KiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "zmq.h"

enum { SLOTS = 1000, BODY = 1024, ROUNDS = 8 };

/* What the processes tell each other. */
struct board
{
    volatile int port;
    volatile uint64_t received;
    volatile uint64_t attacks;
};

static struct board *board;
/* The port that a process attacks. */
static int target;
static char server_public[41], server_secret[41], client_public[41], client_secret[41];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void rest(double seconds)
{
    struct timespec t = {(time_t) seconds, (long) ((seconds - (time_t) seconds) * 1e9)};
    nanosleep(&t, NULL);
}

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "attack: %s: %s\n", what, zmq_strerror(zmq_errno()));
        exit(1);
    }
}

static pid_t start(void (*body) (void))
{
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        body();
        _exit(0);
    }
    return child;
}

static void stop(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* Seconds of processor time that a process has used. */
static double used_by(pid_t process)
{
    char path[64];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int) process);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
            user = system = 0;
        fclose(file);
    }
    return (user + system) / (double) sysconf(_SC_CLK_TCK);
}

static long memory_of(pid_t process)
{
    char path[64], line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int) process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &kib);
    if (file)
        fclose(file);
    return kib;
}

static void server(void)
{
    void *context = zmq_ctx_new();
    void *pull = zmq_socket(context, ZMQ_PULL);
    int yes = 1;
    char body[BODY], endpoint[128];
    size_t length = sizeof endpoint;
    zmq_setsockopt(pull, ZMQ_CURVE_SERVER, &yes, sizeof yes);
    zmq_setsockopt(pull, ZMQ_CURVE_SECRETKEY, server_secret, 41);
    must(zmq_bind(pull, "tcp://127.0.0.1:*") == 0, "bind");
    zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &length);
    board->port = atoi(strrchr(endpoint, ':') + 1);
    while (zmq_recv(pull, body, sizeof body, 0) >= 0)
        board->received++;
}

static void client(void)
{
    void *context = zmq_ctx_new();
    void *push = zmq_socket(context, ZMQ_PUSH);
    char body[BODY] = {0}, endpoint[64];
    zmq_setsockopt(push, ZMQ_CURVE_SERVERKEY, server_public, 41);
    zmq_setsockopt(push, ZMQ_CURVE_PUBLICKEY, client_public, 41);
    zmq_setsockopt(push, ZMQ_CURVE_SECRETKEY, client_secret, 41);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", board->port);
    must(zmq_connect(push, endpoint) == 0, "connect");
    while (zmq_send(push, body, sizeof body, 0) >= 0)
        ;
}

/* Raw peers. */

static int connected(int flags)
{
    struct sockaddr_in address = {0};
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0), yes = 1;
    struct linger reset = {1, 0};
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t) target);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    /* Or the ports of a long flood would all wait for their time. */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (connect(fd, (struct sockaddr *) &address, sizeof address) != 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static size_t greeting(char *bytes)
{
    memset(bytes, 0, 64);
    memcpy(bytes, "\xff\0\0\0\0\0\0\0\x01\x7f\x03\x00" "CURVE", 17);
    return 64;
}

/* Greets, says a HELLO made with another key than the server's, and messages without end, until it is thrown out; and again. */
static void wrong_key(void)
{
    char bytes[64 + 202 + 1024];
    size_t length = greeting(bytes);
    memcpy(bytes + length, "\x04\xc8\x05HELLO\x01\x00", 10);
    for (size_t i = length + 10; i < sizeof bytes; i++)
        bytes[i] = (char) rand();
    memset(bytes + length + 10, 0, 72);
    for (;;) {
        int fd = connected(0);
        char heard[64];
        if (fd < 0)
            continue;
        ssize_t said = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        while (said > 0 && recv(fd, heard, sizeof heard, 0) > 0)
            ;
        while (said > 0 && (said = send(fd, bytes + 266, 1024, MSG_NOSIGNAL | MSG_DONTWAIT)) > 0)
            ;
        close(fd);
        board->attacks++;
    }
}

/* Connects as fast as it can, without waiting, and says nothing. The oldest of many makes room for a new one. */
static void silent(void)
{
    static int slots[SLOTS];
    for (unsigned at = 0;; at = (at + 1) % SLOTS) {
        if (slots[at] > 0)
            close(slots[at]);
        slots[at] = connected(SOCK_NONBLOCK);
        board->attacks++;
    }
}

/* Many connections that greet, one octet at a time: each says one about ten times a second, and begins anew at the end. */
static void slow(void)
{
    static int slots[SLOTS], said[SLOTS];
    char bytes[64];
    greeting(bytes);
    for (;;) {
        for (int at = 0; at < SLOTS; at++) {
            if (slots[at] <= 0 || said[at] >= 64 || send(slots[at], bytes + said[at], 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
                if (slots[at] > 0)
                    close(slots[at]);
                slots[at] = connected(SOCK_NONBLOCK);
                said[at] = 0;
                board->attacks++;
            } else
                said[at]++;
        }
        rest(0.1);
    }
}

static double burn_share;

static void burner(void)
{
    for (;;) {
        double start = now();
        while (now() - start < 0.002 * burn_share)
            ;
        if (burn_share < 0.99)
            rest(0.002 * (1 - burn_share));
    }
}

/* Adds the messages received and the time it took while one process of several is at work. */
static void measure(const pid_t *processes, int count, int works, double seconds, double *messages, double *time)
{
    for (int i = 0; i < count; i++)
        kill(processes[i], i == works ? SIGCONT : SIGSTOP);
    uint64_t before = board->received;
    double began = now();
    rest(seconds);
    *messages += board->received - before;
    *time += now() - began;
}

static pid_t start_server(int *port)
{
    board->port = 0;
    pid_t serving = start(server);
    while (board->port == 0)
        rest(0.01);
    *port = board->port;
    return serving;
}

static double rate(double seconds)
{
    double messages = 0, time = 0;
    measure(NULL, 0, 0, seconds, &messages, &time);
    return messages / time;
}

int main(int argc, char **argv)
{
    static const struct
    {
        const char *name;
        void (*body) (void);
    } attacks[] = {{"wrong key", wrong_key}, {"silent connections", silent}, {"slow handshakes", slow}};
    double seconds = argc > 1 ? atof(argv[1]) : 3, quiet = 0;
    struct rlimit files;
    int failed = 0;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(zmq_curve_keypair(server_public, server_secret) == 0, "keys");
    must(zmq_curve_keypair(client_public, client_secret) == 0, "keys");

    int port, elsewhere;
    pid_t other = start_server(&elsewhere);
    pid_t serving = start_server(&port);
    pid_t sending = start(client);
    rest(0.5);
    quiet = rate(seconds);
    printf("quiet\t%.0f\t100\t100\t100\t0\t0\t%ld\n", quiet, memory_of(serving));
    fflush(stdout);
    for (unsigned i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        uint64_t before = board->attacks;
        double began = now(), messages[3] = {0}, time[3] = {0};
        pid_t works[3];
        target = port;
        works[0] = start(attacks[i].body);
        /* Until all connections of the slow ones are there; and to see what it takes. */
        rest(1);
        double share = used_by(works[0]) / (now() - began);
        double attempts = (board->attacks - before) / (now() - began);
        burn_share = share > 1 ? 1 : share;
        kill(works[0], SIGSTOP);
        target = elsewhere;
        works[1] = start(attacks[i].body);
        rest(1);
        works[2] = start(burner);
        long kib = 0;
        for (int round = 0; round < ROUNDS; round++) {
            for (int work = 0; work < 3; work++)
                measure(works, 3, work, seconds / ROUNDS, &messages[work], &time[work]);
            if (memory_of(serving) > kib)
                kib = memory_of(serving);
        }
        for (int work = 0; work < 3; work++)
            stop(works[work]);
        rest(0.2);
        double under = messages[0] / time[0], away = messages[1] / time[1], beside = messages[2] / time[2];
        printf("%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%ld\n", attacks[i].name, under, 100 * under / quiet, 100 * under / away,
                100 * under / beside, attempts, share, kib);
        fflush(stdout);
        if (under < 0.8 * away)
            failed++;
    }
    double after = rate(seconds);
    printf("afterwards\t%.0f\t%.0f\t100\t100\t0\t0\t%ld\n", after, 100 * after / quiet, memory_of(serving));
    stop(sending);
    stop(serving);
    stop(other);
    return failed ? 2 : 0;
}
