/*
 * bells: a peer that shares memory and rings for an empty ring, with 64 KiB of bells a call. The output compares the processor times of
 * both processes.
 */
#include "ipc.h"
#include <poll.h>
#include <sys/resource.h>

enum { SECONDS = 3 };

int main(void)
{
    static char bells[65536];
    char *memory;
    int pair[2], fds[2];
    start_victim(0);
    double before = slowest_answer_ms(0);
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    fds[0] = make_region(RING, &memory);
    fds[1] = pair[1];
    int peer = call_victim();
    shake_hands(peer);
    /* The first of two bytes of a message. */
    if (send_rights(peer, "\0", 1, fds, 2) != 0)
        send_all(peer, "\0", 1);
    let_victim_look(0);
    *switch_at(memory) = 64 + READY_SIZE + 1;
    __atomic_store_n(switched(memory), 1, __ATOMIC_SEQ_CST);
    double seconds = victim_seconds(), end = now_ms() + SECONDS * 1000;
    long rung = 0;
    while (now_ms() < end) {
        ssize_t n = send(peer, bells, sizeof bells, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            break;
        rung += n > 0 ? n : 0;
        struct pollfd room = {peer, POLLOUT, 0};
        if (n < 0)
            poll(&room, 1, SECONDS * 1000);
    }
    seconds = victim_seconds() - seconds;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double during = slowest_answer_ms(0);
    finish(during > LATE_MS || rung > 4 << 20 || *accepted(memory) == 0,
           "bells: %.1f MiB taken, %.2f s of the victim's processor, %.2f s of mine, accepted %u, slowest answer %.1f ms, before %.1f",
           rung / 1048576.0, seconds, usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6, *accepted(memory), during, before);
}
