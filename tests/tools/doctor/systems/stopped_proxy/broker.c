/* Forwards requests to the workers, and their answers back. SIGHUP makes it reload its settings. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <zmq.h>

static volatile sig_atomic_t reload;

static void on_hangup(int signal)
{
    (void) signal;
    reload = 1;
}

int main(void)
{
    struct sigaction action = {0};
    void *context = zmq_ctx_new();
    void *front = zmq_socket(context, ZMQ_ROUTER), *back = zmq_socket(context, ZMQ_DEALER);
    action.sa_handler = on_hangup;
    sigaction(SIGHUP, &action, NULL);
    if (zmq_bind(front, "tcp://127.0.0.1:5607") != 0 || zmq_bind(back, "tcp://127.0.0.1:5608") != 0)
        return 1;
    /* The proxy returns only if a signal interrupts it. */
    zmq_proxy(front, back, NULL);
    while (reload)
        pause();
    return 1;
}
