/* A worker of jobs.py. It computes divisions of whole numbers. */
#include <stdio.h>
#include <zmq.h>

int main(void)
{
    char job[32];
    int length, one, other;
    void *context = zmq_ctx_new();
    void *dealer = zmq_socket(context, ZMQ_DEALER);
    if (zmq_connect(dealer, "tcp://127.0.0.1:5624") != 0)
        return 1;
    zmq_send(dealer, "ready", 5, 0);
    while ((length = zmq_recv(dealer, job, sizeof job - 1, 0)) >= 0) {
        job[length] = 0;
        if (sscanf(job, "%d/%d", &one, &other) == 2)
            zmq_send(dealer, job, (size_t) sprintf(job, "%d", one / other), 0);
    }
    return 1;
}
