/* Measures TIMES times, sends each result to the collector, and exits: report TIMES. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    struct timespec pause = {0, 50 * 1000 * 1000};
    char line[32];
    int i, times = argc == 2 ? atoi(argv[1]) : 0;
    void *context = zmq_ctx_new();
    void *push = zmq_socket(context, ZMQ_PUSH);
    if (zmq_connect(push, "tcp://127.0.0.1:5609") != 0)
        return 1;
    for (i = 0; i < times; i++) {
        zmq_send(push, line, (size_t) sprintf(line, "result %d", i), 0);
        nanosleep(&pause, NULL);
    }
    zmq_close(push);
    return zmq_ctx_term(context);
}
