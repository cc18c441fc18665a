/* Moves messages both ways between two ends under rules for one end or both, and prints the outcome.
 *
 *   limits TRANSPORT [on=near|far|both] [patience=MS] [watchdog=S] [threads=N] [affinity] [huge] [fd] [retry] [RULE...]
 *                                                                                                    rules: rules.h
 *
 * TRANSPORT: tcp, ipc, ws, curve (over tcp), interface (tcp, bound by the interface's name), inproc. The ends are two processes,
 * except for inproc. `near` binds a ROUTER, `far` connects a DEALER. The first line of the output is the outcome:
 *
 *   moves                all messages arrived over one connection, and both contexts ended
 *   CALL ERRNO           this call of the near end failed (`far CALL ERRNO` for the far end), and the context ended
 *   reconnected          the far end connected a second time
 *   descriptors          more descriptors are open than before the context was created
 *   wrong                a message arrived out of order
 *   signal N, hang       an end was killed; an end or one of its threads did not end in time
 *
 * With `huge`, the first message has 128 MiB. With `fd`, an end waits for messages on ZMQ_FD. With `retry`, the same processes
 * repeat the failed steps without the limits: ", then OUTCOME". A second line tells whether memory was shared, and the number of
 * calls that a rule with a number counted. */
#define _GNU_SOURCE
#include "rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum { ROUNDS = 300, STREAM = 4000, SMALL = 64, LARGE = 40000, HUGE_ONE = 128 << 20, WATCHDOG = 60 };

/* Results of one end, in memory that all processes share. */
struct end {
    char outcome[64];
    int over;
    int memory;
    unsigned count;
    int command[2], report[2]; /* socket pairs: [0] for main, [1] for the end */
};
static struct shared { struct end end[2]; } *shared;
static const char *const names[] = { "near", "far" };
static const char *transport;
static int patience = -1, maps = -1, by_fd, io_threads, affinity, huge;
static int endpoint_pipe[2];
/* Seconds after which a running process counts as hanging. */
static int watchdog = WATCHDOG;
static char server_public[41];

struct side {
    struct end *mine, *other;
    void *context, *socket;
    char identity[16];
    int identity_length;
    int descriptors, threads;
    int told;
};

static long long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* ---- outcomes */

static int say(struct side *side, const char *outcome)
{
    if (!side->mine->outcome[0])
        snprintf(side->mine->outcome, sizeof side->mine->outcome, "%s", outcome);
    return -1;
}

static int failed(struct side *side, const char *call)
{
    char text[64];
    int error = zmq_errno();
    const char *name = strerrorname_np(error);
    if (name)
        snprintf(text, sizeof text, "%s %s", call, name);
    else if (error == EMTHREAD)
        snprintf(text, sizeof text, "%s EMTHREAD", call);
    else
        snprintf(text, sizeof text, "%s errno %d", call, error);
    return say(side, text);
}

/* ---- moving */

/* Waits on ZMQ_FD until there is a message. */
static int await(struct side *side)
{
    int events = 0;
    struct pollfd ready = { -1, POLLIN, 0 };
    size_t size = sizeof ready.fd;
    if (zmq_getsockopt(side->socket, ZMQ_FD, &ready.fd, &size))
        return failed(side, "zmq_getsockopt");
    for (;;) {
        size = sizeof events;
        if (zmq_getsockopt(side->socket, ZMQ_EVENTS, &events, &size))
            return failed(side, "zmq_getsockopt");
        if (events & ZMQ_POLLIN)
            return 0;
        if (poll(&ready, 1, -1) < 0)
            return say(side, "poll");
    }
}

/* Receives one part into `bytes`, truncated to `size`. Returns its length, or -1. */
static int receive(struct side *side, void *bytes, size_t size)
{
    long long end = patience < 0 ? -1 : milliseconds() + patience;
    if (by_fd && await(side))
        return -1;
    for (;;) {
        int n = zmq_recv(side->socket, bytes, size, 0);
        if (n >= 0)
            return n;
        if (zmq_errno() != EAGAIN || (end >= 0 && milliseconds() > end))
            return failed(side, "zmq_recv");
        if (__atomic_load_n(&side->other->over, __ATOMIC_ACQUIRE))
            return say(side, "-");
    }
}

static int transmit(struct side *side, const void *bytes, size_t size, int flags)
{
    long long end = patience < 0 ? -1 : milliseconds() + patience;
    for (;;) {
        if (zmq_send(side->socket, bytes, size, flags) >= 0)
            return 0;
        if (zmq_errno() != EAGAIN || (end >= 0 && milliseconds() > end))
            return failed(side, "zmq_send");
        if (__atomic_load_n(&side->other->over, __ATOMIC_ACQUIRE))
            return say(side, "-");
    }
}

static size_t size_of(unsigned number)
{
    return number % 100 == 99 ? LARGE : SMALL;
}

static unsigned char buffer[LARGE + 1];

static int give(struct side *side, unsigned number)
{
    size_t size = size_of(number);
    memset(buffer, (int)(number % 251), size);
    memcpy(buffer, &number, sizeof number);
    if (side->identity_length && transmit(side, side->identity, (size_t)side->identity_length, ZMQ_SNDMORE))
        return -1;
    return transmit(side, buffer, size, 0);
}

static int take(struct side *side, unsigned number)
{
    if (side->mine == &shared->end[0]) {
        char identity[sizeof side->identity];
        int n = receive(side, identity, sizeof identity);
        if (n < 0)
            return -1;
        if (side->identity_length && (n != side->identity_length || memcmp(identity, side->identity, (size_t)n)))
            return say(side, "reconnected");
        memcpy(side->identity, identity, (size_t)n);
        side->identity_length = n;
    }
    int n = receive(side, buffer, sizeof buffer);
    if (n < 0)
        return -1;
    if ((size_t)n != size_of(number) || memcmp(buffer, &number, sizeof number) || buffer[n - 1] != number % 251)
        return say(side, "wrong");
    return 0;
}

static void note_memory(struct side *side)
{
    char text[4096 + 1];
    if (lseek(maps, 0, SEEK_SET) < 0)
        return;
    for (ssize_t n; (n = read(maps, text, sizeof text - 1)) > 0;) {
        text[n] = 0;
        if (strstr(text, "tautline-ipc"))
            side->mine->memory = 1;
    }
}

/* Moves a message that is larger than all other messages together. */
static int move_huge(struct side *side, int near)
{
    char *bytes;
    int status;
    if (near) {
        /* The part is truncated to the size of the buffer. */
        if (receive(side, side->identity, sizeof side->identity) < 0)
            return -1;
        status = receive(side, buffer, sizeof buffer);
        return status < 0 ? -1 : status == HUGE_ONE ? 0 : say(side, "wrong");
    }
    if (!(bytes = calloc(1, HUGE_ONE)))
        return say(side, "calloc");
    status = transmit(side, bytes, HUGE_ONE, 0);
    free(bytes);
    return status;
}

static int move(struct side *side)
{
    int near = side->mine == &shared->end[0];
    if (huge && move_huge(side, near))
        return -1;
    for (unsigned i = 0; i < ROUNDS; i++)
        if (near ? take(side, i) || give(side, i) : give(side, i) || take(side, i))
            return -1;
    for (unsigned i = 0; i < STREAM; i++)
        if (near ? take(side, i) : give(side, i))
            return -1;
    for (unsigned i = 0; i < STREAM; i++)
        if (near ? give(side, i) : take(side, i))
            return -1;
    note_memory(side);
    return near ? take(side, 0) : give(side, 0);
}

/* ---- setting up */

static int number_option(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value);
}

static int open_socket(struct side *side, int type)
{
    if (!(side->socket = zmq_socket(side->context, type)))
        return failed(side, "zmq_socket");
    number_option(side->socket, ZMQ_RCVTIMEO, 50);
    number_option(side->socket, ZMQ_SNDTIMEO, 50);
    return 0;
}

static int open_near(struct side *side)
{
    if (open_socket(side, ZMQ_ROUTER))
        return -1;
    number_option(side->socket, ZMQ_ROUTER_MANDATORY, 1);
    if (strcmp(transport, "curve") == 0) {
        char secret[41];
        if (zmq_curve_keypair(server_public, secret))
            return failed(side, "zmq_curve_keypair");
        if (number_option(side->socket, ZMQ_CURVE_SERVER, 1)
            || zmq_setsockopt(side->socket, ZMQ_CURVE_SECRETKEY, secret, 40))
            return failed(side, "zmq_setsockopt");
    }
    char address[256];
    const char *place = "127.0.0.1:*", *scheme = transport;
    if (strcmp(transport, "curve") == 0)
        scheme = "tcp";
    else if (strcmp(transport, "interface") == 0)
        scheme = "tcp", place = "lo:*";
    else if (strcmp(transport, "ipc") == 0)
        place = "*";
    else if (strcmp(transport, "inproc") == 0)
        place = "limits";
    snprintf(address, sizeof address, "%s://%s", scheme, place);
    return zmq_bind(side->socket, address) ? failed(side, "zmq_bind") : 0;
}

/* Sends the near end's endpoint and key to the far end. */
static int tell(struct side *side)
{
    char text[512] = "";
    size_t size = 256;
    if (zmq_getsockopt(side->socket, ZMQ_LAST_ENDPOINT, text, &size))
        return failed(side, "zmq_getsockopt");
    memcpy(text + 256, server_public, sizeof server_public);
    side->told = write(endpoint_pipe[1], text, sizeof text) == sizeof text;
    return side->told ? 0 : say(side, "write");
}

static int open_far(struct side *side)
{
    char text[512];
    if (read(endpoint_pipe[0], text, sizeof text) != sizeof text || !text[0])
        return say(side, "-");
    if (open_socket(side, ZMQ_DEALER))
        return -1;
    if (strcmp(transport, "curve") == 0) {
        char public[41], secret[41];
        if (zmq_curve_keypair(public, secret))
            return failed(side, "zmq_curve_keypair");
        if (zmq_setsockopt(side->socket, ZMQ_CURVE_SERVERKEY, text + 256, 40)
            || zmq_setsockopt(side->socket, ZMQ_CURVE_PUBLICKEY, public, 40)
            || zmq_setsockopt(side->socket, ZMQ_CURVE_SECRETKEY, secret, 40))
            return failed(side, "zmq_setsockopt");
    }
    return zmq_connect(side->socket, text) ? failed(side, "zmq_connect") : 0;
}

/* Returns the number of files in this folder of /proc, or -1 if two attempts to open it fail. If getrandom is refused,
 * run-time libraries keep /dev/urandom open for the life of the process. */
static int count(const char *folder)
{
    int n = 0;
    DIR *all = opendir(folder);
    /* A rule may refuse the first attempt. */
    if (!all && !(all = opendir(folder)))
        return -1;
    for (struct dirent *one; (one = readdir(all));) {
        char target[64];
        ssize_t length = readlinkat(dirfd(all), one->d_name, target, sizeof target);
        n += length != (ssize_t)strlen("/dev/urandom") || memcmp(target, "/dev/urandom", (size_t)length) != 0;
    }
    closedir(all);
    return n;
}

static void close_all(struct side *side)
{
    int linger = side->mine->outcome[0] ? 0 : -1;
    if (side->socket) {
        number_option(side->socket, ZMQ_LINGER, linger);
        if (zmq_close(side->socket))
            failed(side, "zmq_close");
    }
    if (side->context && zmq_ctx_term(side->context))
        failed(side, "zmq_ctx_term");
    side->socket = side->context = NULL;
    /* The system may list a joined thread a moment longer, and the thread that closes the peer's descriptors may still run. Their
     * end is not reported, so this loop polls. The pause only saves processor time, and `timeout` in run.sh ends an endless wait. */
    while (side->threads >= 0 && count("/proc/self/task") > side->threads)
        usleep(1000);
    int now = count("/proc/self/fd");
    if (now >= 0 && side->descriptors >= 0 && now > side->descriptors)
        snprintf(side->mine->outcome, sizeof side->mine->outcome, "descriptors");
}

static int open_context(struct side *side)
{
    side->descriptors = count("/proc/self/fd");
    side->threads = count("/proc/self/task");
    if (!(side->context = zmq_ctx_new()))
        return failed(side, "zmq_ctx_new");
    if (io_threads)
        zmq_ctx_set(side->context, ZMQ_IO_THREADS, io_threads);
    if (affinity)
        zmq_ctx_set(side->context, ZMQ_THREAD_AFFINITY_CPU_ADD, 0);
    return 0;
}

static void attempt(int which)
{
    struct side side;
    memset(&side, 0, sizeof side);
    side.mine = &shared->end[which];
    side.other = &shared->end[!which];
    if (open_context(&side))
        (void)0;
    else if (which == 0 ? open_near(&side) || tell(&side) : open_far(&side))
        (void)0;
    else
        move(&side);
    if (which == 0 && !side.told) {
        char nothing[512] = "";
        if (write(endpoint_pipe[1], nothing, sizeof nothing) < 0)
            say(&side, "write");
    }
    __atomic_store_n(&side.mine->over, side.mine->outcome[0] != 0, __ATOMIC_RELEASE);
    close_all(&side);
    if (!side.mine->outcome[0])
        say(&side, "moves");
    side.mine->count = rules_count();
}

/* Runs both ends on one thread, which receives the sent messages before the queues are full. */
static void attempt_inproc(void)
{
    struct side near, far;
    memset(&near, 0, sizeof near);
    memset(&far, 0, sizeof far);
    near.mine = far.other = &shared->end[0];
    far.mine = near.other = &shared->end[1];
    far.descriptors = far.threads = -1;
    if (open_context(&near) == 0 && (far.context = near.context, 1) && open_near(&near) == 0 && tell(&near) == 0
        && open_far(&far) == 0)
        for (unsigned i = 0; i < STREAM; i++)
            if (give(&far, i) || take(&near, i) || give(&near, i) || take(&far, i))
                break;
    far.context = NULL;
    if (far.mine->outcome[0])
        say(&near, "-");
    close_all(&far);
    close_all(&near);
    say(&near, "moves");
    say(&far, "moves");
}

/* ---- processes */

static void run_end(int which, int limited, int inproc)
{
    char command = 0;
    struct end *end = &shared->end[which];
    maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (rules_user() || (limited && rules_apply()))
        _exit(2);
    do {
        if (inproc)
            attempt_inproc();
        else
            attempt(which);
        if (write(end->report[1], "", 1) != 1 || read(end->command[1], &command, 1) != 1)
            _exit(2);
        if (limited)
            rules_lift();
    } while (command == 'a');
    _exit(0);
}

/* True if this end has finished its attempt, or makes no attempt. */
static int is_done(int which, pid_t *process, long long until)
{
    struct end *end = &shared->end[which];
    struct pollfd ready = { end->report[0], POLLIN, 0 };
    int status = 0;
    char byte;
    if (!*process || (poll(&ready, 1, 5) == 1 && read(end->report[0], &byte, 1) == 1))
        return 1;
    if (waitpid(*process, &status, WNOHANG) == *process) {
        snprintf(end->outcome, sizeof end->outcome, WIFSIGNALED(status) ? "signal %s" : "exit %s",
                 WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : "early");
    } else if (milliseconds() > until) {
        kill(*process, SIGKILL);
        waitpid(*process, &status, 0);
        snprintf(end->outcome, sizeof end->outcome, "hang");
    } else {
        return 0;
    }
    *process = 0;
    __atomic_store_n(&end->over, 1, __ATOMIC_RELEASE);
    return 1;
}

/* Waits for both ends and writes the outcome. This is the near end's outcome, unless only the far end failed. */
static void describe(char *text, size_t size, pid_t *processes, int ends)
{
    long long until = milliseconds() + watchdog * 1000LL;
    int done[2] = { 0, ends < 2 };
    while (!done[0] || !done[1])
        for (int i = 0; i < ends; i++)
            done[i] = done[i] || is_done(i, &processes[i], until);
    const char *near = shared->end[0].outcome, *far = shared->end[1].outcome;
    if (strcmp(near, "-") == 0 || (strcmp(near, "moves") == 0 && strcmp(far, "moves") != 0 && strcmp(far, "-") != 0))
        snprintf(text, size, "far %s", far);
    else
        snprintf(text, size, "%s", near);
}

int main(int count, char **arguments)
{
    int on[2] = { 1, 0 }, retry = 0;
    transport = count > 1 ? arguments[1] : "";
    for (int i = 2; i < count; i++) {
        if (strcmp(arguments[i], "on=far") == 0)
            on[0] = 0, on[1] = 1;
        else if (strcmp(arguments[i], "on=both") == 0)
            on[0] = on[1] = 1;
        else if (strncmp(arguments[i], "patience=", 9) == 0)
            patience = atoi(arguments[i] + 9);
        else if (strncmp(arguments[i], "watchdog=", 9) == 0)
            watchdog = atoi(arguments[i] + 9);
        else if (strncmp(arguments[i], "threads=", 8) == 0)
            io_threads = atoi(arguments[i] + 8);
        else if (strcmp(arguments[i], "affinity") == 0)
            affinity = 1;
        else if (strcmp(arguments[i], "huge") == 0)
            huge = 1;
        else if (strcmp(arguments[i], "fd") == 0)
            by_fd = 1;
        else if (strcmp(arguments[i], "retry") == 0)
            retry = 1;
        else if (strcmp(arguments[i], "on=near") != 0 && rules_take(arguments[i]))
            return fprintf(stderr, "no rule: %s\n", arguments[i]), 2;
    }
    if (rules_missing() || (strcmp(transport, "ws") == 0 && !zmq_has("WS")) || (strcmp(transport, "curve") == 0 && !zmq_has("curve"))) {
        printf("skipped: %s\n", rules_missing() ? rules_missing() : "the library does not have the transport");
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    /* Folder in which any user may bind an ipc address. */
    if (chdir("/tmp"))
        return perror("/tmp"), 2;
    /* Close descriptors that the shell left open, because gaps between descriptors would be room below the limit. */
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(endpoint_pipe))
        return perror("mmap"), 2;
    int inproc = strcmp(transport, "inproc") == 0, ends = inproc ? 1 : 2;
    pid_t processes[2] = { 0, 0 };
    for (int i = 0; i < ends; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, shared->end[i].command)
            || socketpair(AF_UNIX, SOCK_STREAM, 0, shared->end[i].report))
            return perror("socketpair"), 2;
        processes[i] = fork();
        if (processes[i] == 0)
            run_end(i, on[i], inproc);
    }
    char first[80], second[80] = "";
    describe(first, sizeof first, processes, ends);
    int memory = shared->end[0].memory + 2 * shared->end[1].memory;
    if (retry && strcmp(first, "moves") != 0 && processes[0] && (inproc || processes[1])) {
        for (int i = 0; i < 2; i++)
            shared->end[i].outcome[0] = 0, shared->end[i].over = 0;
        for (int i = 0; i < ends; i++)
            if (write(shared->end[i].command[0], "a", 1) != 1)
                return perror("write"), 2;
        describe(second, sizeof second, processes, ends);
    }
    printf("%s%s%s\n", first, second[0] ? ", then " : "", second);
    printf("memory %d, calls %u %s\n", memory, shared->end[0].count + shared->end[1].count, names[on[1] && !on[0]]);
    for (int i = 0; i < ends; i++)
        if (processes[i]) {
            if (write(shared->end[i].command[0], "e", 1) != 1)
                kill(processes[i], SIGKILL);
            waitpid(processes[i], NULL, 0);
        }
    return 0;
}
