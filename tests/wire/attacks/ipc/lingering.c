/*
 * lingering [handshake] [COUNT]: a peer sends sockets with unread data and a linger time. The thread that closes the last descriptor of
 * such a socket waits for that time. The peer is a stranger, or it has completed its handshake.
 */
#include "ipc.h"

enum { LINGER_S = 60 };

static int full_socket(void)
{
    static char zeros[65536];
    int accepted, fd = tcp_socket(&accepted);
    struct linger linger = {1, LINGER_S};
    NEED(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    while (send(fd, zeros, sizeof zeros, MSG_DONTWAIT) > 0) {
    }
    return fd;
}

int main(int count, char **words)
{
    int known = count > 1 && strcmp(words[1], "handshake") == 0;
    int sockets = count > 1 + known ? atoi(words[1 + known]) : 3;
    start_victim(0);
    double before = slowest_answer_ms(0);
    int peer = call_victim();
    if (known)
        shake_hands(peer);
    let_victim_look(0);
    /* Stop the victim, so that it holds the last reference to each descriptor later. */
    NEED(kill(victim, SIGSTOP) == 0 && waitpid(victim, NULL, WUNTRACED) == victim);
    for (int sent = 0; sent < sockets; sent++) {
        int fd = full_socket();
        /* If the send failed, our own close would block. */
        if (send_rights(peer, known ? "\0" : greeting("NULL") + sent, 1, &fd, 1) == 0)
            close(fd);
    }
    kill(victim, SIGCONT);
    judge(known ? "lingering handshake" : "lingering", 0, before);
}
