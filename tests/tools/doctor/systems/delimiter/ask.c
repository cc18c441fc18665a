/* Asks twenty questions a second, and does not wait for the answers: ask [--delimiter]. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    char answer[64];
    struct timespec pause = {0, 50 * 1000 * 1000};
    int more, answers = 0;
    size_t size = sizeof more;
    void *context = zmq_ctx_new();
    void *dealer = zmq_socket(context, ZMQ_DEALER);
    (void) argv;
    if (zmq_connect(dealer, "tcp://127.0.0.1:5634") != 0)
        return 1;
    for (;;) {
        if (argc == 2)
            zmq_send(dealer, "", 0, ZMQ_SNDMORE);
        zmq_send(dealer, "what time is it?", 16, 0);
        while (zmq_recv(dealer, answer, sizeof answer, ZMQ_DONTWAIT) >= 0) {
            zmq_getsockopt(dealer, ZMQ_RCVMORE, &more, &size);
            if (!more && ++answers == 10) {
                puts("working");
                fflush(stdout);
            }
        }
        nanosleep(&pause, NULL);
    }
}
