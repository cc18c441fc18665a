#define _GNU_SOURCE
#include "rules.h"
#include "systems.h"

#include <dirent.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name) { #name, SYS_##name }
static const struct { const char *name; int number; } calls[] = {
    CALL(accept4), CALL(bind), CALL(connect), CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_pwait2),
    CALL(eventfd2), CALL(fallocate), CALL(fcntl), CALL(fstatfs), CALL(ftruncate), CALL(getpeername),
    CALL(getrandom), CALL(getsockname), CALL(getsockopt), CALL(listen), CALL(madvise), CALL(membarrier),
    CALL(memfd_create), CALL(mmap), CALL(openat), CALL(ppoll), CALL(prctl), CALL(recvmsg), CALL(sched_getaffinity),
    CALL(sched_setaffinity), CALL(sched_yield), CALL(sendmsg), CALL(setsockopt), CALL(socket), CALL(socketpair),
    CALL(timerfd_create), CALL(timerfd_settime), CALL(clone3), CALL(sigaltstack), CALL(prlimit64),
    CALL(rt_sigtimedwait), CALL(clock_nanosleep), CALL(ioctl), CALL(shutdown),
};

#define ERROR(name) { #name, name }
static const struct { const char *name; int number; } errors[] = {
    ERROR(EACCES), ERROR(EAGAIN), ERROR(EINVAL), ERROR(EMFILE), ERROR(ENFILE), ERROR(ENOBUFS), ERROR(ENOMEM), ERROR(ENOSPC),
    ERROR(ENOSYS), ERROR(EPERM), ERROR(ETOOMANYREFS), ERROR(ENOTSUP),
};

#define LIMIT(name) { #name, RLIMIT_##name }
static const struct { const char *name; int number; } limits[] = {
    LIMIT(FSIZE), LIMIT(NOFILE), LIMIT(AS), LIMIT(DATA), LIMIT(NPROC), LIMIT(MEMLOCK),
};

enum { MOST = 16, FLIGHT = 256 };
static struct { int call, error, argument; unsigned long value; unsigned nth; } refused[MOST];
static int refusals;
static struct { int limit, relative; rlim_t value, before; } limited[MOST];
static int limitations;
static int user, in_flight, system_rules;
static unsigned counted;
static int listener = -1;

static const char *after(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

#define FIND(table, wanted, length, found)                                                          \
    for (size_t at = 0; at < sizeof table / sizeof *table; at++)                                    \
        if (strlen(table[at].name) == (length) && strncmp(table[at].name, wanted, length) == 0)     \
            found = table[at].number;

static int take_limit(const char *text)
{
    size_t n = strcspn(text, ":");
    int limit = -1;
    FIND(limits, text, n, limit)
    if (limit < 0 || text[n] != ':' || limitations == MOST)
        return -1;
    limited[limitations].limit = limit;
    limited[limitations].relative = text[n + 1] == '+';
    limited[limitations].value = strtoull(text + n + 1, NULL, 10);
    limitations++;
    return 0;
}

static int take_refusal(const char *text)
{
    size_t n = strcspn(text, ":");
    int call = -1, error = -1;
    FIND(calls, text, n, call)
    if (call < 0 || text[n] != ':' || refusals == MOST)
        return -1;
    text += n + 1;
    n = strcspn(text, ":");
    FIND(errors, text, n, error)
    if (error < 0)
        return -1;
    refused[refusals].call = call;
    refused[refusals].error = error;
    refused[refusals].argument = -1;
    if (text[n] == ':' && strchr(text, '=')) {
        refused[refusals].argument = atoi(text + n + 1);
        refused[refusals].value = strtoul(strchr(text, '=') + 1, NULL, 0);
    } else if (text[n] == ':') {
        refused[refusals].nth = (unsigned)atoi(text + n + 1);
    }
    refusals++;
    return 0;
}

int rules_take(const char *rule)
{
    const char *text;
    if ((text = after(rule, "limit=")))
        return take_limit(text);
    if ((text = after(rule, "refuse=")))
        return take_refusal(text);
    if (system_take(rule) == 0) {
        system_rules = 1;
        return 0;
    }
    if (strcmp(rule, "flight") == 0) {
        in_flight = 1;
        return 0;
    }
    if ((text = after(rule, "uid="))) {
        user = atoi(text);
        return 0;
    }
    return -1;
}

/* ---- limits */

static rlim_t in_use(int limit)
{
    if (limit == RLIMIT_NOFILE) {
        int highest = -1;
        DIR *all = opendir("/proc/self/fd");
        for (struct dirent *one; all && (one = readdir(all));)
            if (atoi(one->d_name) > highest && atoi(one->d_name) != dirfd(all))
                highest = atoi(one->d_name);
        if (all)
            closedir(all);
        return (rlim_t)highest + 1;
    }
    if (limit == RLIMIT_AS || limit == RLIMIT_DATA) {
        unsigned long pages = 0, data = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (file) {
            if (fscanf(file, "%lu %*u %*u %*u %*u %lu", &pages, &data) != 2)
                pages = data = 0;
            fclose(file);
        }
        return (limit == RLIMIT_AS ? pages : data) * (rlim_t)sysconf(_SC_PAGESIZE);
    }
    return 0;
}

static int apply_limits(void)
{
    for (int i = 0; i < limitations; i++) {
        struct rlimit limit;
        if (getrlimit((unsigned)limited[i].limit, &limit))
            return perror("getrlimit"), -1;
        limited[i].before = limit.rlim_cur;
        limit.rlim_cur = limited[i].value + (limited[i].relative ? in_use(limited[i].limit) : 0);
        if (setrlimit((unsigned)limited[i].limit, &limit))
            return perror("setrlimit"), -1;
    }
    return 0;
}

void rules_lift(void)
{
    for (int i = 0; i < limitations; i++) {
        struct rlimit limit;
        getrlimit((unsigned)limited[i].limit, &limit);
        limit.rlim_cur = limited[i].before;
        setrlimit((unsigned)limited[i].limit, &limit);
    }
}

/* Sends as many descriptors as a user may have in flight, so that further sends of descriptors fail. */
static int fill_flight(void)
{
    struct rlimit limit;
    int pair[2];
    char byte = 0, control[CMSG_SPACE(sizeof pair[0])];
    struct iovec bytes = { &byte, 1 };
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = FLIGHT;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        return perror("setrlimit"), -1;
    for (;;) {
        struct msghdr message;
        memset(&message, 0, sizeof message);
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
            return perror("socketpair"), -1;
        for (int sent = 0; sent < FLIGHT / 4; sent++) {
            message.msg_iov = &bytes;
            message.msg_iovlen = 1;
            message.msg_control = control;
            message.msg_controllen = sizeof control;
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof pair[0]);
            memcpy(CMSG_DATA(header), &pair[0], sizeof pair[0]);
            if (sendmsg(pair[1], &message, 0) < 0)
                return errno == ETOOMANYREFS ? 0 : (perror("sendmsg"), -1);
        }
    }
}

/* ---- system calls */

/* Decides about the calls of rules with a number. Runs on a thread that was started before the filter. */
static void *decide(void *unused)
{
    (void)unused;
    for (;;) {
        struct seccomp_notif asked;
        struct seccomp_notif_resp answer;
        memset(&asked, 0, sizeof asked);
        memset(&answer, 0, sizeof answer);
        if (ioctl(__atomic_load_n(&listener, __ATOMIC_ACQUIRE), SECCOMP_IOCTL_NOTIF_RECV, &asked))
            continue;
        answer.id = asked.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        for (int i = 0; i < refusals; i++)
            if (refused[i].nth && refused[i].call == asked.data.nr
                && __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED) == refused[i].nth) {
                answer.flags = 0;
                answer.error = -refused[i].error;
            }
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    return NULL;
}

static void *start_deciding(void *unused)
{
    while (__atomic_load_n(&listener, __ATOMIC_ACQUIRE) < 0)
        usleep(100);
    return decide(unused);
}

static int install(struct sock_filter *filter, unsigned short length, unsigned flags)
{
    struct sock_fprog program = { length, filter };
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static int apply_refusals(void)
{
    struct sock_filter filter[8 * MOST + SYSTEM_MOST + 4];
    unsigned short n = system_filter(filter);
    int asks = 0;
#define ADD(...) filter[n++] = (struct sock_filter)__VA_ARGS__
    for (int i = 0; i < refusals; i++) {
        unsigned verdict = SECCOMP_RET_ERRNO | (unsigned)refused[i].error;
        if (refused[i].nth)
            verdict = SECCOMP_RET_USER_NOTIF, asks = 1;
        ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
        if (refused[i].argument >= 0) {
            ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i].call, 0, 3));
            ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                         (unsigned)(offsetof(struct seccomp_data, args) + 8 * (size_t)refused[i].argument)));
            ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i].value, 0, 1));
        } else {
            ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i].call, 0, 1));
        }
        ADD(BPF_STMT(BPF_RET | BPF_K, verdict));
    }
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
#undef ADD
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!asks)
        return install(filter, n, 0) ? (perror("seccomp"), -1) : 0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, start_deciding, NULL))
        return perror("pthread_create"), -1;
    int fd = install(filter, n, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    if (fd < 0)
        return perror("seccomp"), -1;
    __atomic_store_n(&listener, fd, __ATOMIC_RELEASE);
    return 0;
}

unsigned rules_count(void)
{
    return __atomic_load_n(&counted, __ATOMIC_RELAXED);
}

int rules_user(void)
{
    if (user && (setresgid((gid_t)user, (gid_t)user, (gid_t)user) || setresuid((uid_t)user, (uid_t)user, (uid_t)user)))
        return perror("setresuid"), -1;
    return 0;
}

int rules_apply(void)
{
    if (in_flight && fill_flight())
        return -1;
    if ((refusals || system_rules) && apply_refusals())
        return -1;
    return apply_limits();
}

const char *rules_missing(void)
{
    if (user && geteuid() != 0)
        return "to become another user needs root";
    unsigned action = SECCOMP_RET_ERRNO;
    if ((refusals || system_rules) && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action))
        return "no seccomp";
    action = SECCOMP_RET_USER_NOTIF;
    for (int i = 0; i < refusals; i++)
        if (refused[i].nth && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action))
            return "seccomp without a listener";
    return NULL;
}
