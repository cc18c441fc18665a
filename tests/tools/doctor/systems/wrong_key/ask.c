/* Asks the vault ten times a second: ask PUBLIC-KEY-OF-THE-VAULT. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    char public[41], secret[41], answer[64];
    struct timespec pause = {0, 100 * 1000 * 1000};
    int answers = 0;
    void *context = zmq_ctx_new();
    void *req = zmq_socket(context, ZMQ_REQ);
    zmq_curve_keypair(public, secret);
    if (argc != 2 || zmq_setsockopt(req, ZMQ_CURVE_SERVERKEY, argv[1], 40) != 0 ||
        zmq_setsockopt(req, ZMQ_CURVE_PUBLICKEY, public, 40) != 0 ||
        zmq_setsockopt(req, ZMQ_CURVE_SECRETKEY, secret, 40) != 0 || zmq_connect(req, "tcp://127.0.0.1:5601") != 0) {
        fprintf(stderr, "ask: %s\n", zmq_strerror(zmq_errno()));
        return 1;
    }
    for (;;) {
        zmq_send(req, "open", 4, 0);
        if (zmq_recv(req, answer, sizeof answer, 0) < 0)
            return 1;
        if (++answers == 5) {
            puts("working");
            fflush(stdout);
        }
        nanosleep(&pause, NULL);
    }
}
