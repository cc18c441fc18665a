/* Resizes pictures: resizer LIMIT. After LIMIT pictures it waits for a disk with free space; 0 means no limit. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    char picture[1000];
    int resized = 0, limit = argc == 2 ? atoi(argv[1]) : 0;
    void *context = zmq_ctx_new();
    void *pull = zmq_socket(context, ZMQ_PULL);
    if (zmq_connect(pull, "tcp://127.0.0.1:5623") != 0)
        return 1;
    while (zmq_recv(pull, picture, sizeof picture, 0) >= 0) {
        if (++resized == 20) {
            puts("working");
            fflush(stdout);
        }
        while (resized == limit)
            pause();
    }
    return 1;
}
