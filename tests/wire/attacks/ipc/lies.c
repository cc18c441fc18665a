/*
 * lies ahead|far|back|early|never|hole|storm: a peer that shares memory after its handshake and lies about its contents.
 *
 * ahead, far: the end lies beyond the ring's capacity. back: the end moves backwards. early: the ring begins at an octet that already
 * came over the socket. never: the ring begins at the last possible octet. hole: the peer removes the memory's pages. storm: another thread
 * writes random bytes to random places all the time. The victim detects the first three and ends the connection. Each attack leaves good
 * clients unaffected.
 */
#include "ipc.h"

enum { STORMS = 20, WRITES = 200000 };

static const char PING[] = "\x04\x07\x04PING\0\0";
enum { PING_SIZE = sizeof PING - 1 };

static char *memory;
static volatile int storming;

/* Connects a peer and switches it to its ring at octet `at` of the stream, or at the next octet if `at` is 0. */
static int peer_with_a_ring(int *fd, uint64_t at)
{
    int pair[2], fds[2];
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    fds[0] = *fd = make_region(RING, &memory);
    fds[1] = pair[1];
    int peer = call_victim();
    shake_hands(peer);
    /* Send a complete command, so that the ring begins with another command. */
    if (send_rights(peer, PING, PING_SIZE, fds, 2) != 0)
        send_all(peer, PING, PING_SIZE);
    let_victim_look(0);
    if (*accepted(memory) == 0)
        finish(1, "lies: the victim did not take the memory");
    *switch_at(memory) = at ? at : 64 + READY_SIZE + PING_SIZE;
    __atomic_store_n(switched(memory), 1, __ATOMIC_SEQ_CST);
    for (int offset = 0; offset + PING_SIZE <= RING; offset += PING_SIZE)
        memcpy(memory + PAGE + offset, PING, PING_SIZE);
    return peer;
}

static void show(int peer, uint64_t end)
{
    __atomic_store_n(tail(memory), end, __ATOMIC_SEQ_CST);
    send(peer, "", 1, MSG_NOSIGNAL);
}

/* Waits for the victim to close the connection. Otherwise the time limit of the suite ends the program. */
static void ends(int peer)
{
    char answers[4096];
    while (recv(peer, answers, sizeof answers, 0) > 0) {
    }
}

static void *storm(void *at)
{
    unsigned seed = 1;
    char *to = at;
    while (storming)
        to[rand_r(&seed) % (PAGE + RING)] = (char)rand_r(&seed);
    return NULL;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "far";
    int fd, peer, told = 0;
    start_victim(0);
    double before = slowest_answer_ms(0);
    if (strcmp(what, "storm") == 0) {
        for (int number = 0; number < STORMS; number++) {
            pthread_t thread;
            peer = peer_with_a_ring(&fd, 0);
            storming = 1;
            pthread_create(&thread, NULL, storm, memory);
            for (int write = 0; write < WRITES / STORMS; write++) {
                __atomic_store_n(tail(memory), __atomic_load_n(head(memory), __ATOMIC_ACQUIRE) + write % RING, __ATOMIC_RELEASE);
                if (send(peer, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
                    break;
            }
            storming = 0;
            pthread_join(thread, NULL);
            close(peer);
            close(fd);
            munmap(memory, PAGE + RING);
        }
    } else {
        peer = peer_with_a_ring(&fd, strcmp(what, "early") == 0 ? 1 : strcmp(what, "never") == 0 ? UINT64_MAX : 0);
        if (strcmp(what, "ahead") == 0)
            show(peer, RING + 1);
        else if (strcmp(what, "far") == 0)
            show(peer, UINT64_MAX);
        else if (strcmp(what, "hole") == 0)
            NEED(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, RING) == 0);
        else
            show(peer, 100 * PING_SIZE);
        if (strcmp(what, "hole") == 0)
            show(peer, RING);
        if (strcmp(what, "back") == 0) {
            /* The end moves backwards only after the victim has taken the commands. */
            while (__atomic_load_n(head(memory), __ATOMIC_ACQUIRE) < 100 * PING_SIZE)
                sched_yield();
            show(peer, PING_SIZE);
        }
        told = strcmp(what, "ahead") == 0 || strcmp(what, "far") == 0 || strcmp(what, "back") == 0;
        if (told)
            ends(peer);
        else
            let_victim_look(0);
    }
    char name[64];
    snprintf(name, sizeof name, "lies %s%s", what, told ? ", and it ends" : "");
    judge(name, 0, before);
}
