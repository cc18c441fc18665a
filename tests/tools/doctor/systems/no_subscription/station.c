/* Receives the weather: station TOPIC... */
#include <stdio.h>
#include <string.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    char line[64];
    int i, received = 0;
    void *context = zmq_ctx_new();
    void *sub = zmq_socket(context, ZMQ_SUB);
    for (i = 1; i < argc; i++)
        zmq_setsockopt(sub, ZMQ_SUBSCRIBE, argv[i], strlen(argv[i]));
    if (zmq_connect(sub, "tcp://127.0.0.1:5604") != 0)
        return 1;
    while (zmq_recv(sub, line, sizeof line, 0) >= 0)
        if (++received == 20) {
            puts("working");
            fflush(stdout);
        }
    return 1;
}
