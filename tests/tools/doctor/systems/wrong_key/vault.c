/* Answers clients that know its public key: vault SECRET-KEY. */
#include <stdio.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    int server = 1;
    char request[64];
    void *context = zmq_ctx_new();
    void *rep = zmq_socket(context, ZMQ_REP);
    if (argc != 2 || zmq_setsockopt(rep, ZMQ_CURVE_SERVER, &server, sizeof server) != 0 ||
        zmq_setsockopt(rep, ZMQ_CURVE_SECRETKEY, argv[1], 40) != 0 || zmq_bind(rep, "tcp://127.0.0.1:5601") != 0) {
        fprintf(stderr, "vault: %s\n", zmq_strerror(zmq_errno()));
        return 1;
    }
    while (zmq_recv(rep, request, sizeof request, 0) >= 0)
        zmq_send(rep, "a secret", 8, 0);
    return 0;
}
