/* Sends twenty events a second, each through a new socket: events LINGER. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    struct timespec pause = {0, 50 * 1000 * 1000};
    int linger = argc == 2 ? atoi(argv[1]) : 0;
    void *context = zmq_ctx_new();
    for (;;) {
        void *push = zmq_socket(context, ZMQ_PUSH);
        zmq_setsockopt(push, ZMQ_LINGER, &linger, sizeof linger);
        if (zmq_connect(push, "tcp://127.0.0.1:5638") != 0)
            return 1;
        zmq_send(push, "a door opened", 13, 0);
        zmq_close(push);
        nanosleep(&pause, NULL);
    }
}
