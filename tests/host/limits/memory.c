/* Refuses the 1st, 2nd, ... allocation of the library while it sets up sockets and moves the first messages.
 *
 *   memory TRANSPORT once|on [all] [first=N] [most=N]
 *   memory shortage
 *
 * TRANSPORT: tcp, ipc, curve (over tcp), inproc. With `once`, one allocation fails; with `on`, this one and all later ones do. A child
 * process runs each case. `most` limits the number of cases, which are then spread evenly. The library's calls of malloc and its like
 * are counted; with `all`, those of the C library and the C++ library too. The first line of the output is the outcome:
 *
 *   survives N              N cases: each call worked or returned an errno, the context ended without leaking descriptors or
 *                           threads, and messages moved over a new context in the same process
 *   fails at N (REASON)...  the cases that failed
 *
 * `shortage` refuses all allocations between two moments, and checks the errno of each call and the events of a listener. */
#define _GNU_SOURCE
#include <zmq.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WATCHDOG = 120, PARALLEL = 8, PATIENCE = 100, LARGE = 50000, SHOWN = 12 };

/* ---- refusing */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static uintptr_t library_begin, library_end;
static int refuses_all, goes_on, armed;
static long target, counted;

static int is_refused(const void *caller)
{
    if (!__atomic_load_n(&armed, __ATOMIC_RELAXED))
        return 0;
    if (!refuses_all && ((uintptr_t)caller < library_begin || (uintptr_t)caller >= library_end))
        return 0;
    long number = __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
    if (target < 1 || (goes_on ? number < target : number != target))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **place, size_t alignment, size_t size)
{
    if (is_refused(__builtin_return_address(0)))
        return ENOMEM;
    *place = __libc_memalign(alignment, size);
    return *place ? 0 : ENOMEM;
}

static int find_library(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(object->dlpi_name, "libzmq"))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
            if (!library_begin)
                library_begin = begin;
            library_end = begin + object->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

/* ---- one case */

/* The reason of a failed case, in memory that the processes share. */
struct verdict { long counted; char reason[96]; };
static struct verdict *verdict;
static const char *transport;

static void fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(verdict->reason, sizeof verdict->reason, format, values);
    va_end(values);
    _exit(1);
}

/* Checks the errno of a failed call. Returns true if the call has worked. */
static int worked(const char *call, int has_worked)
{
    int error = zmq_errno();
    if (!has_worked && error != ENOMEM && error != EMTHREAD && error != EAGAIN)
        fail("%s: %s", call, zmq_strerror(error));
    return has_worked;
}

static void set(void *socket, int option, int value)
{
    worked("zmq_setsockopt", zmq_setsockopt(socket, option, &value, sizeof value) == 0);
}

static void set_text(void *socket, int option, const char *value)
{
    worked("zmq_setsockopt", zmq_setsockopt(socket, option, value, strlen(value)) == 0);
}

static void *open_socket(void *context, int type)
{
    void *socket = zmq_socket(context, type);
    if (worked("zmq_socket", socket != NULL)) {
        set(socket, ZMQ_LINGER, 0);
        set(socket, ZMQ_RCVTIMEO, PATIENCE);
        set(socket, ZMQ_SNDTIMEO, PATIENCE);
    }
    return socket;
}

static char server_public[41], server_secret[41], client_public[41], client_secret[41];

static void encrypt(void *server, void *client)
{
    set(server, ZMQ_CURVE_SERVER, 1);
    set_text(server, ZMQ_CURVE_SECRETKEY, server_secret);
    set_text(client, ZMQ_CURVE_SERVERKEY, server_public);
    set_text(client, ZMQ_CURVE_PUBLICKEY, client_public);
    set_text(client, ZMQ_CURVE_SECRETKEY, client_secret);
}

/* Binds and connects two sockets. Returns true if both calls have worked. */
static int join(void *bound, void *connected, int number)
{
    static const char *const endpoints[] = { "tcp", "tcp://127.0.0.1:*", "curve", "tcp://127.0.0.1:*", "ipc", "ipc://*" };
    char endpoint[256];
    size_t size = sizeof endpoint;
    if (!bound || !connected)
        return 0;
    snprintf(endpoint, sizeof endpoint, "inproc://%d", number);
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i += 2)
        if (strcmp(transport, endpoints[i]) == 0)
            snprintf(endpoint, sizeof endpoint, "%s", endpoints[i + 1]);
    if (strcmp(transport, "curve") == 0)
        encrypt(bound, connected);
    if (!worked("zmq_bind", zmq_bind(bound, endpoint) == 0))
        return 0;
    if (!worked("zmq_getsockopt", zmq_getsockopt(bound, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0))
        return 0;
    return worked("zmq_connect", zmq_connect(connected, endpoint) == 0);
}

static char large[LARGE];

static int send_part(void *socket, size_t size, int flags)
{
    return worked("zmq_send", zmq_send(socket, large, size, flags) >= 0);
}

static int receive_part(void *socket, size_t size)
{
    static char part[LARGE];
    int length = zmq_recv(socket, part, sizeof part, 0);
    if (worked("zmq_recv", length >= 0) && size != SIZE_MAX && ((size_t)length != size || memcmp(part, large, size)))
        fail("a message of %d bytes instead of %zu", length, size);
    return length >= 0;
}

static void keep(void *data, void *hint)
{
    (void)data, (void)hint;
}

/* Sends messages of the program's own memory, with several references. */
static void share_messages(void *from, void *to)
{
    static char body[3000];
    zmq_msg_t first, second;
    if (!worked("zmq_msg_init_data", zmq_msg_init_data(&first, body, sizeof body, keep, NULL) == 0))
        return;
    zmq_msg_init(&second);
    if (worked("zmq_msg_copy", zmq_msg_copy(&second, &first) == 0)) {
        worked("zmq_msg_send", zmq_msg_send(&second, from, 0) >= 0);
        worked("zmq_msg_recv", zmq_msg_recv(&second, to, 0) >= 0);
    }
    zmq_msg_close(&second);
    zmq_msg_close(&first);
}

static void close_all(void **sockets, int count)
{
    for (int i = 0; i < count; i++)
        if (sockets[i] && zmq_close(sockets[i]))
            fail("zmq_close: %s", zmq_strerror(zmq_errno()));
}

/* Sets up sockets of several types and moves messages between them, as far as the calls work. */
static void converse(void)
{
    void *context = zmq_ctx_new();
    if (!worked("zmq_ctx_new", context != NULL))
        return;
    enum { BOUND, CONNECTED, PUBLISHER, SUBSCRIBER, ROUTER, DEALER, MONITOR, COUNT };
    static const int types[COUNT] = { ZMQ_PAIR, ZMQ_PAIR, ZMQ_XPUB, ZMQ_SUB, ZMQ_ROUTER, ZMQ_DEALER, ZMQ_PAIR };
    void *sockets[COUNT];
    for (int i = 0; i < COUNT; i++)
        sockets[i] = open_socket(context, types[i]);
    if (sockets[BOUND] && sockets[MONITOR]
        && worked("zmq_socket_monitor", zmq_socket_monitor(sockets[BOUND], "inproc://events", ZMQ_EVENT_ALL) == 0))
        worked("zmq_connect", zmq_connect(sockets[MONITOR], "inproc://events") == 0);
    if (join(sockets[BOUND], sockets[CONNECTED], 1)) {
        for (size_t i = 0; i < 12; i++)
            if (!send_part(sockets[CONNECTED], i * 3000, i % 3 ? 0 : ZMQ_SNDMORE)
                || (i % 3 == 0 && !send_part(sockets[CONNECTED], 5, 0)))
                break;
        while (receive_part(sockets[BOUND], SIZE_MAX))
            ;
        share_messages(sockets[BOUND], sockets[CONNECTED]);
    }
    if (sockets[SUBSCRIBER])
        set_text(sockets[SUBSCRIBER], ZMQ_SUBSCRIBE, "to");
    if (join(sockets[PUBLISHER], sockets[SUBSCRIBER], 2) && receive_part(sockets[PUBLISHER], SIZE_MAX)) {
        set_text(sockets[SUBSCRIBER], ZMQ_SUBSCRIBE, "another topic, which is longer");
        worked("zmq_send", zmq_send(sockets[PUBLISHER], "topic", 5, ZMQ_SNDMORE) >= 0);
        send_part(sockets[PUBLISHER], LARGE, 0);
        if (receive_part(sockets[SUBSCRIBER], SIZE_MAX))
            receive_part(sockets[SUBSCRIBER], SIZE_MAX);
    }
    if (sockets[DEALER])
        set_text(sockets[DEALER], ZMQ_ROUTING_ID, "a client with a name");
    if (join(sockets[ROUTER], sockets[DEALER], 3) && send_part(sockets[DEALER], 100, 0)
        && receive_part(sockets[ROUTER], SIZE_MAX) && receive_part(sockets[ROUTER], 100)) {
        worked("zmq_send", zmq_send(sockets[ROUTER], "a client with a name", 20, ZMQ_SNDMORE) >= 0);
        if (send_part(sockets[ROUTER], 100, 0))
            receive_part(sockets[DEALER], 100);
    }
    close_all(sockets, COUNT);
    if (zmq_ctx_term(context))
        fail("zmq_ctx_term: %s", zmq_strerror(zmq_errno()));
}

/* Moves messages over a new context. All calls must work. */
static void check_that_messages_move(void)
{
    void *context = zmq_ctx_new();
    void *sockets[] = { context ? zmq_socket(context, ZMQ_PAIR) : NULL, context ? zmq_socket(context, ZMQ_PAIR) : NULL };
    int wait = -1;
    if (!join(sockets[0], sockets[1], 1))
        fail("afterwards: %s", zmq_strerror(zmq_errno()));
    zmq_setsockopt(sockets[0], ZMQ_RCVTIMEO, &wait, sizeof wait);
    for (size_t i = 0; i < 10; i++)
        if (!send_part(sockets[1], i * 5000, 0) || !receive_part(sockets[0], i * 5000))
            fail("afterwards: %s", zmq_strerror(zmq_errno()));
    close_all(sockets, 2);
    zmq_ctx_term(context);
}

static int entries(const char *folder)
{
    DIR *directory = opendir(folder);
    int count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* Threads leave /proc a moment after they were joined. */
static void await_entries(const char *folder, int count)
{
    while (entries(folder) > count)
        usleep(1000);
}

static void run_case(void)
{
    alarm(WATCHDOG);
    int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    __atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
    converse();
    __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
    verdict->counted = counted;
    await_entries("/proc/self/task", threads);
    if (entries("/proc/self/fd") > descriptors)
        fail("%d descriptors leaked", entries("/proc/self/fd") - descriptors);
    check_that_messages_move();
    _exit(0);
}

/* ---- a shortage */

static void expect(const char *call, int has_failed, int error)
{
    if (!has_failed)
        fail("%s works without memory", call);
    if (zmq_errno() != error)
        fail("%s: %s", call, zmq_strerror(zmq_errno()));
}

static void must(const char *call, int has_worked)
{
    if (!has_worked)
        fail("%s: %s", call, zmq_strerror(zmq_errno()));
}

/* Waits for this event of a monitor. Returns its value. */
static uint32_t await_event(void *monitor, unsigned event)
{
    for (;;) {
        unsigned char head[6];
        char address[256];
        uint16_t number;
        uint32_t value;
        must("zmq_recv", zmq_recv(monitor, head, sizeof head, 0) == sizeof head);
        must("zmq_recv", zmq_recv(monitor, address, sizeof address, 0) >= 0);
        memcpy(&number, head, sizeof number);
        memcpy(&value, head + sizeof number, sizeof value);
        if (number == event)
            return value;
    }
}

static void do_nothing(void *unused)
{
    (void)unused;
}

static void run_shortage(void)
{
    alarm(WATCHDOG);
    char endpoint[256], part[100];
    size_t size = sizeof endpoint;
    int linger = 0;
    void *context = zmq_ctx_new(), *bound = zmq_socket(context, ZMQ_PULL), *monitor = zmq_socket(context, ZMQ_PAIR);
    void *sender = zmq_socket(context, ZMQ_PUSH), *other = zmq_socket(context, ZMQ_PUSH);
    must("zmq_socket_monitor", zmq_socket_monitor(bound, "inproc://events", ZMQ_EVENT_ALL) == 0);
    must("zmq_connect", zmq_connect(monitor, "inproc://events") == 0);
    must("zmq_bind", zmq_bind(bound, "tcp://127.0.0.1:*") == 0);
    must("zmq_getsockopt", zmq_getsockopt(bound, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    must("zmq_connect", zmq_connect(sender, endpoint) == 0);
    await_event(monitor, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    must("zmq_send", zmq_send(sender, large, 100, 0) == 100);
    must("zmq_recv", zmq_recv(bound, part, sizeof part, 0) == 100);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strrchr(endpoint, ':') + 1)) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    target = goes_on = 1;
    __atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
    /* The first refusal is in this call, which the reserve serves. */
    void *last = zmq_socket(context, ZMQ_PULL);
    must("zmq_socket", last != NULL);
    expect("zmq_socket", !zmq_socket(context, ZMQ_PULL), ENOMEM);
    expect("zmq_ctx_new", !zmq_ctx_new(), ENOMEM);
    expect("zmq_bind", zmq_bind(last, "tcp://127.0.0.1:*"), ENOMEM);
    expect("zmq_bind", zmq_bind(last, "inproc://last"), ENOMEM);
    expect("zmq_connect", zmq_connect(other, endpoint), ENOMEM);
    expect("zmq_setsockopt", zmq_setsockopt(last, ZMQ_RCVHWM, &linger, sizeof linger), ENOMEM);
    expect("zmq_socket_monitor", zmq_socket_monitor(sender, "inproc://others", ZMQ_EVENT_ALL), ENOMEM);
    expect("zmq_threadstart", !zmq_threadstart(do_nothing, NULL), EAGAIN);
    expect("zmq_stopwatch_start", !zmq_stopwatch_start(), ENOMEM);
    expect("zmq_atomic_counter_new", !zmq_atomic_counter_new(), ENOMEM);
    must("zmq_setsockopt", zmq_setsockopt(last, ZMQ_LINGER, &linger, sizeof linger) == 0);
    must("zmq_setsockopt", zmq_setsockopt(last, ZMQ_RCVTIMEO, &linger, sizeof linger) == 0);
    must("connect", connect(client, (struct sockaddr *)&address, sizeof address) == 0);
    if (await_event(monitor, ZMQ_EVENT_ACCEPT_FAILED) != ENOMEM)
        fail("the event has another errno");
    must("zmq_close", zmq_close(last) == 0);
    __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);

    await_event(monitor, ZMQ_EVENT_ACCEPTED);
    must("zmq_connect", zmq_connect(other, endpoint) == 0);
    must("zmq_send", zmq_send(other, large, 100, 0) == 100);
    must("zmq_recv", zmq_recv(bound, part, sizeof part, 0) == 100);
    close(client);
    close_all((void *[]){ bound, monitor, sender, other }, 4);
    zmq_ctx_term(context);
    _exit(0);
}

/* ---- all cases */

static int failures;
static struct running { pid_t process; long target; struct verdict *verdict; } running[PARALLEL];

static void start(struct running *slot, long number)
{
    *slot->verdict = (struct verdict){ 0, "" };
    target = number;
    verdict = slot->verdict;
    slot->target = number;
    slot->process = fork();
    if (slot->process == 0)
        transport ? run_case() : run_shortage();
    if (slot->process < 0) {
        perror("fork");
        exit(2);
    }
}

/* Waits for the end of any case and returns its slot. */
static struct running *finish(void)
{
    int status;
    pid_t process = wait(&status);
    struct running *slot = running;
    while (slot->process != process)
        slot++;
    slot->process = 0;
    if (status == 0)
        return slot;
    if (WIFSIGNALED(status))
        snprintf(slot->verdict->reason, sizeof slot->verdict->reason, "%s",
                 WTERMSIG(status) == SIGALRM ? "hang" : strsignal(WTERMSIG(status)));
    if (failures++ < SHOWN)
        printf("%s%ld (%s)", failures == 1 ? "fails at " : ", ", slot->target, slot->verdict->reason);
    return slot;
}

int main(int count, char **arguments)
{
    long first = 1, most = 1000, last;
    if (count > 2)
        transport = arguments[1], goes_on = strcmp(arguments[2], "on") == 0;
    else if (count < 2 || strcmp(arguments[1], "shortage") != 0)
        return fprintf(stderr, "usage: memory TRANSPORT once|on [all] [first=N] [most=N], memory shortage\n"), 2;
    for (int i = 3; i < count; i++)
        if (strcmp(arguments[i], "all") == 0)
            refuses_all = 1;
        else if (sscanf(arguments[i], "first=%ld", &first) != 1 && sscanf(arguments[i], "most=%ld", &most) != 1)
            return fprintf(stderr, "unknown argument: %s\n", arguments[i]), 2;
    struct verdict *verdicts = mmap(NULL, PARALLEL * sizeof *verdicts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdicts == MAP_FAILED)
        return perror("mmap"), 2;
    for (int i = 0; i < PARALLEL; i++)
        running[i].verdict = verdicts + i;
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)(i % 251);
    dl_iterate_phdr(find_library, NULL);
    setbuf(stdout, NULL);
    if (!transport) {
        start(running, 1);
        finish();
        return failures ? puts(""), 1 : (puts("survives 1"), 0);
    }
    if (strcmp(transport, "curve") == 0
        && (zmq_curve_keypair(server_public, server_secret) || zmq_curve_keypair(client_public, client_secret)))
        return fprintf(stderr, "no CURVE\n"), 2;

    /* A case that refuses nothing counts the allocations. */
    start(running, -1);
    finish();
    last = verdicts->counted;
    if (failures || !last)
        return printf("without a refusal: %ld allocations\n", last), 1;
    long step = (last - first) / most + 1, cases = 0;
    for (long number = first; number <= last; number += step, cases++)
        start(cases < PARALLEL ? running + cases : finish(), number);
    for (long left = cases < PARALLEL ? cases : PARALLEL; left > 0; left--)
        finish();
    if (failures)
        printf("%s: %d of %ld\n", failures > SHOWN ? ", ..." : "", failures, cases);
    else
        printf("survives %ld\n", cases);
    return failures != 0;
}
