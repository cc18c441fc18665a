/* Sends a measurement every 10 ms: sensor PORT. It drops measurements while no peer takes them. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    char at[64];
    int yes = 1;
    struct timespec pause = {0, 10 * 1000 * 1000};
    void *context = zmq_ctx_new();
    void *push = zmq_socket(context, ZMQ_PUSH);
    snprintf(at, sizeof at, "tcp://127.0.0.1:%s", argc == 2 ? argv[1] : "");
    if (zmq_setsockopt(push, ZMQ_IMMEDIATE, &yes, sizeof yes) != 0 || zmq_connect(push, at) != 0)
        return 1;
    for (;;) {
        zmq_send(push, "21.5", 4, ZMQ_DONTWAIT);
        nanosleep(&pause, NULL);
    }
}
