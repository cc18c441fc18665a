/* Forwards requests to the workers, and their answers back. */
#include <zmq.h>

int main(void)
{
    void *context = zmq_ctx_new();
    void *front = zmq_socket(context, ZMQ_ROUTER), *back = zmq_socket(context, ZMQ_DEALER);
    if (zmq_bind(front, "tcp://127.0.0.1:5650") != 0 || zmq_bind(back, "tcp://127.0.0.1:5651") != 0)
        return 1;
    return zmq_proxy(front, back, NULL);
}
