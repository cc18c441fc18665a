#define _GNU_SOURCE
#include "systems.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define VERSION(major, minor) ((major) * 1000 + (minor))

/* The kernel version that introduced each call, for calls whose numbers differ between processors. */
static const struct { int number, since; } calls[] = {
    { SYS_sched_setattr, VERSION(3, 14) }, { SYS_sched_getattr, VERSION(3, 14) }, { SYS_renameat2, VERSION(3, 15) },
    { SYS_seccomp, VERSION(3, 17) }, { SYS_getrandom, VERSION(3, 17) }, { SYS_memfd_create, VERSION(3, 17) },
    { SYS_bpf, VERSION(3, 18) }, { SYS_execveat, VERSION(3, 19) }, { SYS_userfaultfd, VERSION(4, 3) },
    { SYS_membarrier, VERSION(4, 3) }, { SYS_mlock2, VERSION(4, 4) }, { SYS_copy_file_range, VERSION(4, 5) },
    { SYS_preadv2, VERSION(4, 6) }, { SYS_pwritev2, VERSION(4, 6) }, { SYS_pkey_mprotect, VERSION(4, 9) },
    { SYS_pkey_alloc, VERSION(4, 9) }, { SYS_pkey_free, VERSION(4, 9) }, { SYS_statx, VERSION(4, 11) },
    { SYS_io_pgetevents, VERSION(4, 18) }, { SYS_rseq, VERSION(4, 18) },
};

/* Since Linux 5.1 new calls have the same number on all processors. The table has the first number of each version. */
enum { CLONE3 = 435, FIRST = 424, BEYOND = 467 };
static const struct { int first, since; } numbers[] = {
    { 424, VERSION(5, 1) }, { 428, VERSION(5, 2) }, { 434, VERSION(5, 3) }, { 436, VERSION(5, 9) }, { 437, VERSION(5, 6) },
    { 439, VERSION(5, 8) }, { 440, VERSION(5, 10) }, { 441, VERSION(5, 11) }, { 442, VERSION(5, 12) }, { 443, VERSION(5, 14) },
    { 444, VERSION(5, 13) }, { 447, VERSION(5, 14) }, { 448, VERSION(5, 15) }, { 449, VERSION(5, 16) }, { 450, VERSION(5, 17) },
    { 451, VERSION(6, 5) }, { 452, VERSION(6, 6) }, { 454, VERSION(6, 7) }, { 457, VERSION(6, 8) }, { 462, VERSION(6, 10) },
    { 463, VERSION(6, 13) },
};

/* Features of older calls that later versions added: up to two arguments with these values, or these bits. */
enum { SOL_SOCKET_ = SOL_SOCKET, PASSRIGHTS = 83, BUSY_POLL = 46, NOTSENT_LOWAT = 25, BIND_ADDRESS_NO_PORT = 24, ANY = -1 };
static const struct detail { int call, at, value, at_too, value_too, bits, error, since, gvisor; } details[] = {
    { SYS_setsockopt, 1, SOL_SOCKET_, 2, PASSRIGHTS, 0, ENOPROTOOPT, VERSION(6, 16), 1 },
    { SYS_setsockopt, 1, SOL_SOCKET_, 2, BUSY_POLL, 0, ENOPROTOOPT, VERSION(3, 11), 1 },
    { SYS_setsockopt, 1, IPPROTO_TCP, 2, NOTSENT_LOWAT, 0, ENOPROTOOPT, VERSION(3, 12), 0 },
    { SYS_setsockopt, 1, IPPROTO_IP, 2, BIND_ADDRESS_NO_PORT, 0, ENOPROTOOPT, VERSION(4, 2), 1 },
    /* MFD_NOEXEC_SEAL. */
    { SYS_memfd_create, 1, 8, ANY, 0, 1, EINVAL, VERSION(6, 3), 1 },
    /* F_ADD_SEALS and F_GET_SEALS. */
    { SYS_fcntl, 1, 1033, ANY, 0, 0, EINVAL, VERSION(3, 17), 0 },
    { SYS_fcntl, 1, 1034, ANY, 0, 0, EINVAL, VERSION(3, 17), 0 },
    /* The expedited private barrier, and its registration. */
    { SYS_membarrier, 0, 8, ANY, 0, 0, EINVAL, VERSION(4, 14), 0 },
    { SYS_membarrier, 0, 16, ANY, 0, 0, EINVAL, VERSION(4, 14), 0 },
    { SYS_prctl, 0, PR_SET_TIMERSLACK, ANY, 0, 0, EINVAL, 0, 1 },
};

/* Calls of all processors that Docker's default profile refuses to processes without capabilities. */
static const int by_docker[] = {
    SYS_acct, SYS_add_key, SYS_bpf, SYS_clock_adjtime, SYS_clock_settime, SYS_delete_module, SYS_finit_module, SYS_get_mempolicy,
    SYS_init_module, SYS_kcmp, SYS_kexec_load, SYS_keyctl, SYS_mbind, SYS_mount, SYS_move_pages, SYS_open_by_handle_at,
    SYS_perf_event_open, SYS_pivot_root, SYS_process_vm_readv, SYS_process_vm_writev, SYS_quotactl, SYS_reboot, SYS_request_key,
    SYS_set_mempolicy, SYS_setns, SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS_syslog, SYS_umount2, SYS_unshare,
    SYS_userfaultfd, SYS_vhangup, 425, 426, 427,
};

/* Version of the emulated kernel, newest version whose calls Docker knows (newer calls return EPERM), and the chosen sandboxes. */
static int kernel, known_to_docker, docker, gvisor;

int system_take(const char *rule)
{
    int major, minor;
    if (sscanf(rule, "kernel=%d.%d", &major, &minor) == 2)
        return kernel = VERSION(major, minor), 0;
    if (strcmp(rule, "sandbox=docker") == 0)
        return docker = 1, 0;
    if (strcmp(rule, "sandbox=docker-19.03") == 0)
        return docker = 1, known_to_docker = VERSION(4, 17), 0;
    if (strcmp(rule, "sandbox=gvisor") == 0)
        return gvisor = 1, 0;
    return -1;
}

static struct sock_filter *next;

#define ADD(...) *next++ = (struct sock_filter)__VA_ARGS__
#define LOAD(field) ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offsetof(struct seccomp_data, field))))

static void answer(int error)
{
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error));
}

/* Adds a refusal. The filter has loaded the number of the call before and after this code. */
static void refuse(int call, int error)
{
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1));
    answer(error);
}

static void refuse_detail(const struct detail *detail)
{
    unsigned char two = detail->at_too != ANY;
    unsigned short compare = BPF_JMP | BPF_K | (detail->bits ? BPF_JSET : BPF_JEQ);
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)detail->call, 0, (unsigned char)(two ? 6 : 4)));
    LOAD(args[detail->at]);
    ADD(BPF_JUMP(compare, (unsigned)detail->value, 0, (unsigned char)(two ? 3 : 1)));
    if (two) {
        LOAD(args[detail->at_too]);
        ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)detail->value_too, 0, 1));
    }
    answer(detail->error);
    LOAD(nr);
}

/* Refuses all calls that are newer than `version`. */
static void refuse_newer(int version, int error)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].since > version)
            refuse(calls[i].number, error);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int end = i + 1 < sizeof numbers / sizeof *numbers ? numbers[i + 1].first : BEYOND;
        for (int number = numbers[i].first; number < end; number++)
            if (numbers[i].since > version)
                refuse(number, number == CLONE3 ? ENOSYS : error);
    }
    ADD(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, BEYOND, 0, 1));
    answer(error);
}

unsigned short system_filter(struct sock_filter *filter)
{
    next = filter;
    if (!kernel && !docker && !gvisor)
        return 0;
    LOAD(nr);
    if (kernel)
        refuse_newer(kernel, ENOSYS);
    if (docker) {
        for (size_t i = 0; i < sizeof by_docker / sizeof *by_docker; i++)
            refuse(by_docker[i], EPERM);
        /* The filter cannot see the flags of clone3. With ENOSYS, the C library falls back to clone. */
        refuse(CLONE3, ENOSYS);
        static const struct detail vsock = { SYS_socket, 0, AF_VSOCK, ANY, 0, 0, EPERM, 0, 0 };
        refuse_detail(&vsock);
        if (known_to_docker) {
            refuse_newer(known_to_docker, EPERM);
            refuse(SYS_membarrier, EPERM);
        } else {
            refuse_newer(VERSION(6, 10), ENOSYS);
        }
    }
    if (gvisor) {
        refuse_newer(VERSION(4, 17), ENOSYS);
        refuse(SYS_membarrier, ENOSYS);
        refuse(SYS_userfaultfd, ENOSYS);
    }
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if ((kernel && details[i].since > kernel) || (gvisor && details[i].gvisor))
            refuse_detail(&details[i]);
    return (unsigned short)(next - filter);
}
