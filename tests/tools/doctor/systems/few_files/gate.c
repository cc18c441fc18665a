/* Answers the greeting of each visitor. */
#include <zmq.h>

int main(void)
{
    char name[64];
    void *context = zmq_ctx_new();
    void *router = zmq_socket(context, ZMQ_ROUTER);
    int length;
    if (zmq_bind(router, "tcp://127.0.0.1:5610") != 0)
        return 1;
    while ((length = zmq_recv(router, name, sizeof name, 0)) >= 0) {
        char greeting[64];
        int size = zmq_recv(router, greeting, sizeof greeting, 0);
        zmq_send(router, name, (size_t) length, ZMQ_SNDMORE);
        zmq_send(router, greeting, (size_t) size, 0);
    }
    return 1;
}
