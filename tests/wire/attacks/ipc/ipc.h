/*
 * Helpers that the programs of this folder share: a victim in its own process, good clients that measure the time to an answer,
 * and a peer that writes raw bytes to the victim's socket.
 *
 * Each program prints one line. It exits with 0 if good clients were served as without the attack, with 1 if not, and with 77 if the system
 * lacks a feature that the attack needs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum { SKIPPED = 77, CLIENTS = 5, PATIENCE_MS = 3000 };

/* An answer that takes longer is late. A successful attack blocks the victim for seconds. */
static const double LATE_MS = 500;

static char path[108], endpoint[128];
static pid_t victim, attacker;

static void clean_up(void)
{
    /* Kill the attacker first, because a victim with a blocked thread cannot end before it. */
    if (attacker > 0)
        kill(attacker, SIGKILL);
    if (victim > 0)
        kill(victim, SIGKILL);
    unlink(path);
}

static _Noreturn void finish(int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    puts(code == 0 ? ": ok" : code == SKIPPED ? ": skipped" : ": FAILED");
    fflush(stdout);
    clean_up();
    _exit(code);
}

#define NEED(condition) do { if (!(condition)) finish(SKIPPED, "%s: %s", #condition, strerror(errno)); } while (0)

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

/* ---- the victim: answers requests, and accepts clients with the password "good" */

static void *authenticate(void *context)
{
    void *handler = zmq_socket(context, ZMQ_REP);
    zmq_bind(handler, "inproc://zeromq.zap.01");
    for (;;) {
        char frames[16][64] = {{0}};
        int count = 0, more = 1;
        size_t size = sizeof more;
        while (more) {
            if (zmq_recv(handler, frames[count < 15 ? count : 15], 63, 0) < 0)
                return NULL;
            count++;
            zmq_getsockopt(handler, ZMQ_RCVMORE, &more, &size);
        }
        zmq_send(handler, "1.0", 3, ZMQ_SNDMORE);
        zmq_send(handler, frames[1], strlen(frames[1]), ZMQ_SNDMORE);
        zmq_send(handler, strcmp(frames[7], "good") == 0 ? "200" : "400", 3, ZMQ_SNDMORE);
        zmq_send(handler, "", 0, ZMQ_SNDMORE);
        zmq_send(handler, "", 0, ZMQ_SNDMORE);
        zmq_send(handler, "", 0, 0);
    }
}

static _Noreturn void serve(int plain, int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_REP);
    pthread_t thread;
    if (plain) {
        pthread_create(&thread, NULL, authenticate, context);
        zmq_setsockopt(socket, ZMQ_PLAIN_SERVER, &plain, sizeof plain);
        zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, "all", 3);
    }
    if (zmq_bind(socket, endpoint) != 0)
        _exit(1);
    if (write(ready, "r", 1) != 1)
        _exit(1);
    for (;;) {
        char body[64];
        int size = zmq_recv(socket, body, sizeof body, 0);
        if (size >= 0)
            zmq_send(socket, body, size < 64 ? size : 64, 0);
    }
}

/* Starts the victim with PLAIN or NULL. */
static void start_victim(int plain)
{
    int ready[2];
    char byte;
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(path, sizeof path, "/tmp/attack-ipc-%d", (int)getpid());
    snprintf(endpoint, sizeof endpoint, "ipc://%s", path);
    NEED(pipe(ready) == 0);
    victim = fork();
    NEED(victim >= 0);
    if (victim == 0)
        serve(plain, ready[1]);
    NEED(read(ready[0], &byte, 1) == 1);
}

/* Returns the processor time of the victim in seconds. */
static double victim_seconds(void)
{
    char name[64], text[512] = "";
    unsigned long user = 0, system = 0;
    snprintf(name, sizeof name, "/proc/%d/stat", (int)victim);
    FILE *file = fopen(name, "r");
    if (file && fgets(text, sizeof text, file) && strrchr(text, ')'))
        sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    if (file)
        fclose(file);
    return (double)(user + system) / sysconf(_SC_CLK_TCK);
}

/* ---- good clients */

/* Connects several clients in turn, and returns the longest time to an answer. */
static double slowest_answer_ms(int plain)
{
    double slowest = 0;
    int patience = PATIENCE_MS, linger = 0;
    for (int client = 0; client < CLIENTS; client++) {
        void *context = zmq_ctx_new();
        void *socket = zmq_socket(context, ZMQ_REQ);
        char body[8];
        if (plain) {
            zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, "somebody", 8);
            zmq_setsockopt(socket, ZMQ_PLAIN_PASSWORD, "good", 4);
        }
        zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof patience);
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
        double begin = now_ms();
        zmq_connect(socket, endpoint);
        zmq_send(socket, "question", 8, 0);
        zmq_recv(socket, body, sizeof body, 0);
        double took = now_ms() - begin;
        slowest = took > slowest ? took : slowest;
        zmq_close(socket);
        zmq_ctx_term(context);
    }
    return slowest;
}

/* Waits for the byte that the attacker sends once it is ready. If the attacker has ended, the program exits with the same code. */
static void wait_for_attacker(int ready)
{
    char byte;
    int status = 0;
    if (read(ready, &byte, 1) == 1)
        return;
    waitpid(attacker, &status, 0);
    attacker = 0;
    finish(WIFEXITED(status) ? WEXITSTATUS(status) : 1, "the attacker has ended");
}

/*
 * Waits until the victim has read all sent bytes. Its only I/O thread reads the streams in turn, so it answers a new client after them.
 * If the victim is blocked, the wait ends with the timeout of the client.
 */
static void let_victim_look(int plain)
{
    slowest_answer_ms(plain);
}

/* Exits with the results of the good clients before and during the attack. */
static _Noreturn void judge(const char *name, int plain, double before)
{
    double during = slowest_answer_ms(plain);
    finish(during > LATE_MS, "%s: slowest answer %.1f ms, before %.1f", name, during, before);
}

/* ---- a peer from raw bytes */

static int call_victim(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    NEED(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* Sends bytes and descriptors. Returns -1 if they were refused. In this case it sends no byte. */
static int send_rights(int to, const void *bytes, size_t size, const int *fds, int count)
{
    union { char bytes[CMSG_SPACE(253 * sizeof(int))]; struct cmsghdr align; } control = {.bytes = {0}};
    struct iovec vector = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

/* Returns the greeting of a ZMTP 3.1 client. */
static const char *greeting(const char *mechanism)
{
    static char bytes[64];
    memset(bytes, 0, sizeof bytes);
    bytes[0] = (char)0xff;
    bytes[9] = 0x7f;
    bytes[10] = 3;
    bytes[11] = 1;
    strcpy(bytes + 12, mechanism);
    return bytes;
}

static void send_all(int fd, const void *bytes, size_t size)
{
    if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        finish(1, "a peer's bytes are not taken: %s", strerror(errno));
}

static void read_exactly(int fd, void *bytes, size_t size)
{
    if (recv(fd, bytes, size, MSG_WAITALL) != (ssize_t)size)
        finish(1, "a peer has no answer: %s", strerror(errno));
}

/* Reads a short frame and ignores its contents. */
static void skip_frame(int fd)
{
    unsigned char head[2], body[255];
    read_exactly(fd, head, sizeof head);
    read_exactly(fd, body, head[1]);
}

static const char READY[] = "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REQ";
enum { READY_SIZE = sizeof READY - 1 };

/* Completes a NULL handshake, and waits until the victim has noticed it. The victim then accepts descriptors. */
static void shake_hands(int fd)
{
    char theirs[64];
    send_all(fd, greeting("NULL"), 64);
    send_all(fd, READY, READY_SIZE);
    read_exactly(fd, theirs, sizeof theirs);
    skip_frame(fd);
    let_victim_look(0);
}

/* Returns a connected TCP socket. `accepted` is its other end, which stays unread. */
static int tcp_socket(int *accepted)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    NEED(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0);
    NEED(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    NEED(connect(fd, (struct sockaddr *)&address, size) == 0);
    *accepted = accept(listener, NULL, NULL);
    NEED(*accepted >= 0);
    close(listener);
    return fd;
}

/* Creates a shared region in the format of the library, with a ring of `ring` bytes. */
enum { PAGE = 4096, RING = 2 << 20 };
static int make_region(size_t ring, char **memory)
{
    int fd = memfd_create("attack", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    NEED(fd >= 0 && ftruncate(fd, PAGE + ring) == 0);
    *memory = mmap(NULL, PAGE + ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    NEED(*memory != MAP_FAILED);
    memcpy(*memory, "tautlin1", 8);
    NEED(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    return fd;
}

/* Words of the region's header. */
static uint32_t *accepted(char *memory) { return (uint32_t *)(memory + 8); }
static uint64_t *switch_at(char *memory) { return (uint64_t *)(memory + 128); }
static uint32_t *switched(char *memory) { return (uint32_t *)(memory + 256); }
static uint64_t *tail(char *memory) { return (uint64_t *)(memory + 384); }
static uint64_t *head(char *memory) { return (uint64_t *)(memory + 512); }
