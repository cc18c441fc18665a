/* Forwards messages and subscriptions: exchange PORT-OF-PUBLISHERS PORT-OF-SUBSCRIBERS. */
#include <stdio.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    char publishers[64], subscribers[64];
    void *context = zmq_ctx_new();
    void *xsub = zmq_socket(context, ZMQ_XSUB), *xpub = zmq_socket(context, ZMQ_XPUB);
    if (argc != 3)
        return 1;
    snprintf(publishers, sizeof publishers, "tcp://127.0.0.1:%s", argv[1]);
    snprintf(subscribers, sizeof subscribers, "tcp://127.0.0.1:%s", argv[2]);
    if (zmq_bind(xsub, publishers) != 0 || zmq_bind(xpub, subscribers) != 0)
        return 1;
    return zmq_proxy(xsub, xpub, NULL);
}
