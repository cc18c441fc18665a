/* A service for run.sh: receives messages until it is killed. */
#include <zmq.h>

int main(void)
{
    void *socket = zmq_socket(zmq_ctx_new(), ZMQ_PULL);
    char message[64];

    if (zmq_bind(socket, "tcp://127.0.0.1:*"))
        return 1;
    for (;;)
        zmq_recv(socket, message, sizeof message, 0);
}
