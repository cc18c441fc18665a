/*
 * lingering [handshake] [COUNT]: sockets with data that nobody takes, and a time to linger. Whoever closes the last descriptor of one waits for
 * that time. They come from a stranger, or from a peer that has shaken hands.
 */
#include "ipc.h"
#include <netinet/in.h>

enum { LINGER_S = 60 };

static int full_socket(void)
{
    static char zeros[65536];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    NEED(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0);
    NEED(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    NEED(connect(fd, (struct sockaddr *)&address, size) == 0);
    NEED(accept(listener, NULL, NULL) >= 0);
    close(listener);
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
    if (known) {
        NEED(write(peer, greeting("NULL"), 64) == 64 && write(peer, READY, READY_SIZE) == READY_SIZE);
        skip_answers(peer);
    }
    for (int sent = 0; sent < sockets; sent++) {
        int fd = full_socket();
        /* Else to close it would keep us. */
        if (send_rights(peer, known ? "\0" : greeting("NULL") + sent, 1, &fd, 1) == 0)
            close(fd);
    }
    usleep(100000);
    judge(known ? "lingering handshake" : "lingering", 0, before);
}
