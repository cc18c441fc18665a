/*
 * held_lock socket|memory|offer [handshake]: a peer holds the lock of a descriptor, in a page fault that is never resolved. A
 * thread that needs the lock waits for ever, and cannot be killed.
 *
 * socket: a TCP socket in the place of the peer's request socket. memory: the memory of an offer. offer: the socket of an offer. With
 * `handshake` the peer completes its handshake before it sends the descriptors.
 */
#include "ipc.h"
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static int target, of_memory;
static char *page;

static void *hold(void *unused)
{
    (void)unused;
    ssize_t n = of_memory ? pwrite(target, page, PAGE, PAGE) : send(target, page, PAGE, 0);
    return (void *)(intptr_t)n;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "socket";
    int known = count > 2, pair[2], fds[2], rights = 1, ready[2];
    char *memory;
    start_victim(0);
    double before = slowest_answer_ms(0);
    NEED(pipe(ready) == 0);
    attacker = fork();
    NEED(attacker >= 0);
    if (attacker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), accepted;
        struct uffdio_api api = {.api = UFFD_API};
        page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct uffdio_register range = {.range = {(uintptr_t)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
        if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0 || ioctl(faults, UFFDIO_REGISTER, &range) != 0)
            finish(SKIPPED, "held_lock %s: no userfaultfd (root, or vm.unprivileged_userfaultfd)", what);
        NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        of_memory = strcmp(what, "memory") == 0;
        target = of_memory ? make_region(RING, &memory) : tcp_socket(&accepted);
        fds[0] = target;
        if (of_memory) {
            fds[rights++] = pair[1];
        } else if (strcmp(what, "offer") == 0) {
            fds[0] = make_region(RING, &memory);
            fds[rights++] = target;
        }
        int peer = call_victim();
        if (known)
            shake_hands(peer);
        pthread_t thread;
        pthread_create(&thread, NULL, hold, NULL);
        /* The thread is in the page fault, and holds the lock. */
        struct pollfd fault = {faults, POLLIN, 0};
        NEED(poll(&fault, 1, -1) == 1 && fault.revents == POLLIN);
        send_rights(peer, known ? "\0" : greeting("NULL"), known ? 1 : 64, fds, rights);
        if (write(ready[1], "r", 1) == 1)
            pause();
        _exit(0);
    }
    close(ready[1]);
    wait_for_attacker(ready[0]);
    char name[64];
    snprintf(name, sizeof name, "held_lock %s%s", what, known ? " handshake" : "");
    judge(name, 0, before);
}
