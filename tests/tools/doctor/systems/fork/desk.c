/* Leaves the questions to a forked process: desk [--own]. With --own, that process makes its own socket. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

static void *ask(void *context)
{
    void *req = zmq_socket(context, ZMQ_REQ);
    zmq_connect(req, "tcp://127.0.0.1:5642");
    return req;
}

int main(int argc, char **argv)
{
    char answer[16];
    struct timespec pause = {0, 100 * 1000 * 1000};
    int answers = 0, refused = 0;
    void *context = zmq_ctx_new(), *req = ask(context);
    zmq_send(req, "hello", 5, 0);
    if (zmq_recv(req, answer, sizeof answer, 0) < 0)
        return 1;
    if (fork() != 0)
        return wait(NULL) < 0;
    if (argc == 2 && strcmp(argv[1], "--own") == 0) {
        zmq_close(req);
        zmq_ctx_term(context);
        req = ask(zmq_ctx_new());
    }
    for (;;) {
        if (zmq_send(req, "how much?", 9, 0) < 0 || zmq_recv(req, answer, sizeof answer, 0) < 0)
            refused++;
        else
            answers++;
        if (refused == 10 || answers == 10) {
            puts(refused ? "broken" : "working");
            fflush(stdout);
        }
        nanosleep(&pause, NULL);
    }
}
